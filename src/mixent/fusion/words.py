"""What to look at after a fusion, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.fusion.batch import Batch
from mixent.fusion.methods import THIN
from mixent.fusion.sources import Layout

SMALL = 50  # items of a batch
FEW = 20  # calibration rows of a class
WIDE = 0.5  # an interval of a prior that says little
SIGNIFICANT = 4.0  # standard errors of a pair


def warnings_in_words(fuser: Any, layout: Layout, batch: Batch) -> list[str]:
    """From the gravest to the least."""
    return [
        *_strange(layout, batch),
        *_unanswered(layout, batch),
        *_drifted(fuser),
        *_dependent(fuser, layout),
        *([] if guessed(layout) else _priors(fuser)),
        *_calibrated(layout),
        *_small(batch),
        *_unsettled(fuser),
    ]


def _strange(layout: Layout, batch: Batch) -> list[str]:
    """Calibrations that do not fit what is given, or each other."""
    out = []
    for name, one, said in zip(layout.names, layout.calibrations, batch.answers.said):
        absent = [str(c) for c in layout.classes.tolist() if c not in one.classes]
        if absent:
            out.append(f"the calibration of {name!r} has no class {', '.join(absent)}, as others have: is it misspelt?")
        if one.cells is not None or one.edges is not None or one.line is not None:
            continue
        soft = bool((np.abs(one.counts - np.round(one.counts)) > 1e-6).any())
        if soft and said.ndim == 1 and (said >= 0).any() and not guessed(layout):
            out.append(f"{name!r} gives labels, but its calibration counts probabilities: calibrate it on labels")
        if not soft and said.ndim == 2:
            out.append(
                f"{name!r} gives probabilities, but its calibration counts labels: calibrate it on probabilities"
            )
    return out


def _unanswered(layout: Layout, batch: Batch) -> list[str]:
    out = []
    nobody = float(batch.weight @ ~batch.answered.any(axis=0))
    if nobody:
        out.append(f"no source answered {nobody:g} items: nothing is known of them but the priors")
    shares = batch.answered @ batch.weight / batch.weight.sum()
    quiet = [(float(share), name) for share, name in zip(shares, layout.names) if share < 0.5]
    if len(quiet) > 3:
        share, name = min(quiet)
        out.append(f"{len(quiet)} sources answered less than half of the items, {name!r} but {share:.0%}")
    else:
        out += [f"{name!r} answered {share:.0%} of the items only" for share, name in quiet]
    return out


def drift_alarms(fuser: Any) -> list[str]:
    """Sources that have drifted, by Holm's correction over those tested; the clearest first."""
    tested = [(d.p_value, -d.statistic, name) for name, d in fuser.drift_.items() if np.isfinite(d.p_value)]
    out = []
    for rank, (p, _, name) in enumerate(sorted(tested)):
        if p * (len(tested) - rank) >= 1 - fuser.confidence:
            break
        out.append(name)
    return out


def _drifted(fuser: Any) -> list[str]:
    alarms = [(fuser.drift_[name].p_value, name, fuser.drift_[name]) for name in drift_alarms(fuser)]
    out = []
    for p, name, found in alarms[:1]:
        symbol = int(np.abs(found.observed - found.expected).argmax())
        told = fuser._first_layout.calibrations[fuser._first_layout.names.index(name)]
        label = _symbol(told, symbol)
        out.append(
            f"{name!r} may have drifted: it says {label} of {found.observed[symbol]:.1%} of the items, where its "
            f"calibration and the other sources lead one to expect {found.expected[symbol]:.1%} (p = {p:.2g})"
        )
    if len(alarms) > 1:
        others = ", ".join(repr(name) for _, name, _ in alarms[1:])
        seem = "seems" if len(alarms) == 2 else "seem"
        out.append(f"beside it {others} {seem} off too, which one drifted source is enough to cause: see `drift_`")
    return out


def _symbol(calibration: Any, place: int) -> str:
    if calibration.cells is None:
        return repr(calibration.symbols[place])
    v, cell = divmod(place, len(calibration.cells))
    return f"{calibration.symbols[v]!r} in cell {calibration.cells[cell]!r}"


def _dependent(fuser: Any, layout: Layout) -> list[str]:
    z = np.triu(np.nan_to_num(fuser.dependence_.z), 1)
    pairs = np.argwhere(z > SIGNIFICANT)
    if not len(pairs):
        return []
    i, j = pairs[z[z > SIGNIFICANT].argmax()]
    more = len(pairs) - 1
    others = f", and {more} other pair{'s' if more > 1 else ''}" if more else ""
    return [
        f"{layout.names[i]!r} and {layout.names[j]!r} agree more than their confusion matrices say "
        f"({z[i, j]:.1f} standard errors{others}): {layout.n_sources} sources are worth about "
        f"{fuser.dependence_.n_effective:.1f} independent ones. If one is a copy of the other, declare it (copy_of)"
    ]


def _priors(fuser: Any) -> list[str]:
    out = []
    estimate = fuser.prior_estimate_
    if fuser.prior_shift_.significant:
        was = (
            "those of the training"
            if isinstance(fuser.class_prior, str) and fuser.class_prior == "training"
            else ("those given")
        )
        told = ", ".join(
            f"{c} {low:.1%} to {high:.1%}" for c, low, high in zip(fuser.classes_, estimate.low, estimate.high)
        )
        out.append(f"the class priors have moved from {was} (p = {fuser.prior_shift_.robust_p_value:.2g}): now {told}")
    for label, high in zip(fuser.classes_.tolist(), estimate.high):
        if high < 0.02:
            out.append(f"class {label!r} is rare or absent in this batch: at most {high:.1%}")
    for label, low, high in zip(fuser.classes_.tolist(), estimate.low, estimate.high):
        if high - low > WIDE:
            out.append(
                f"the share of class {label!r} is known only within {low:.0%} to {high:.0%}: the sources hardly tell "
                "it from others, or were calibrated on few rows"
            )
    return out


def guessed(layout: Layout) -> bool:
    """Are all calibrations no more than guesses?"""
    return bool(layout.n_rows.max() < THIN)


def _calibrated(layout: Layout) -> list[str]:
    if guessed(layout):
        return ["nobody has calibrated these sources: what they are worth is learned from how they agree"]
    out = []
    for name, rows in zip(layout.names, layout.n_rows):
        own = layout.calibrations[layout.names.index(name)].classes
        absent = [str(c) for c, n in zip(layout.classes.tolist(), rows) if n == 0 and c in own]
        few = [f"{c} ({n:.0f})" for c, n in zip(layout.classes, rows) if 0 < n < FEW]
        if absent:
            out.append(f"{name!r} was never calibrated on {', '.join(absent)}: it tells nothing of it")
        if few:
            out.append(f"{name!r} was calibrated on few rows of {', '.join(few)}")
    return out if len(out) <= 5 else [*out[:4], f"and {len(out) - 4} more calibrations are thin or lack a class"]


def _small(batch: Batch) -> list[str]:
    total = float(batch.weight.sum())
    told = "1 item is" if total == 1 else f"{total:g} items are"
    return [f"{told} few: priors and trust weights are rough"] if total < SMALL else []


def _unsettled(fuser: Any) -> list[str]:
    if fuser.method_ == "majority":
        return ["shares of votes are no probabilities of the classes"]
    if fuser.method_ == "min-divergence":
        return ["'min-divergence' fits the confusion matrices as closely as possible; its posteriors are overconfident"]
    if fuser.method_ == "ml-sum":
        return ["'ml-sum' is the printed rule, which adds ratios of different scales; 'composite' is the sound one"]
    return []
