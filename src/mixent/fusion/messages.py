"""Warnings of a fusion, in sentences, the most serious first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mixent.base.text import count, listing, percent
from mixent.fusion.batch import ROUNDING, Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.crowd_models import MIN_ROWS
from mixent.fusion.decisions import answer_text
from mixent.fusion.sources import Layout
from mixent.fusion.stated import SIGNIFICANT, reliability_of_sums

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser
    from mixent.fusion.faults import Fault

MIN_BATCH = 50  # items; a smaller batch has a warning
FEW_ROWS = 20  # calibration rows of a class; fewer have a warning
MAX_STATED = 3  # sources with a warning each that their probabilities are not calibrated
WIDE = 0.5  # width of the interval of a prior; a wider one has a warning
SIGNIFICANT_Z = 4.0  # of the excess agreement of a pair
METHOD_WARNINGS = {  # limitations of the posteriors of a method
    "majority": "shares of votes are not probabilities of the classes",
    "min-divergence": (
        "min-divergence fits the confusion matrices as closely as possible, so that its posteriors are overconfident"
    ),
    "ml-sum": "ml-sum is the sum rule as printed, which adds ratios on different scales; prefer composite",
}


def fit_warnings(fuser: Fuser, layout: Layout, batch: Batch) -> list[str]:
    """Warnings of a fit, the most serious first."""
    return [
        *_inconsistent(layout, batch),
        *_unanswered(layout, batch),
        *(fault_text(fuser, fault) for fault in fuser.faults_),
        *_dependent(fuser, layout),
        *([] if uncalibrated(layout) else _priors(fuser)),
        *_calibrations(layout),
        *_stated(layout, batch),
        *_small(batch),
        *([METHOD_WARNINGS[fuser.method_]] if fuser.method_ in METHOD_WARNINGS else []),
    ]


def _inconsistent(layout: Layout, batch: Batch) -> list[str]:
    """Calibrations that do not match the answers, or each other."""
    out = []
    for j, (name, calibration, answers) in enumerate(zip(layout.names, layout.calibrations, batch.answers.responses)):
        if j in layout.relearned:
            continue
        absent = [str(c) for c in layout.classes.tolist() if c not in calibration.classes]
        if absent:
            out.append(
                f"the calibration of {name!r} does not contain class {', '.join(absent)} of the other sources; check "
                "the spelling"
            )
        if calibration.cells is not None or calibration.edges is not None or calibration.line is not None:
            continue
        soft = bool((np.abs(calibration.counts - np.round(calibration.counts)) > ROUNDING).any())
        if soft and answers.ndim == 1 and (answers >= 0).any() and not uncalibrated(layout):
            out.append(f"source {name!r} gives labels, but was calibrated on probabilities; calibrate it on labels")
        if j in batch.calibrated_on_labels:
            out.append(
                f"source {name!r} gives probabilities, but was calibrated on labels; calibrate it on probabilities"
            )
    return out


def _unanswered(layout: Layout, batch: Batch) -> list[str]:
    out = []
    empty = float(batch.weight @ ~batch.answered.any(axis=0))
    if empty:
        out.append(f"no source answered {count(empty, 'item')}; the class priors are used as posteriors")
    shares = batch.answered @ batch.weight / batch.weight.sum()
    rare = [(float(share), name) for share, name in zip(shares, layout.names) if share < 0.5]
    if len(rare) > 3:
        share, name = min(rare)
        out.append(f"{len(rare)} sources answered less than half of the items, {name!r} only {percent(share, 0)}")
    else:
        out += [f"source {name!r} answered only {percent(share, 0)} of the items" for share, name in rare]
    return out


KINDS = {  # what the answers of a faulty source look like
    "swapped": "its answers look swapped",
    "random": "its answers look random",
    "shifted threshold": "its answers look as if its threshold had been shifted",
    "changed": "its confusion matrix has changed",
}


def action(layout: Layout, name: str) -> str | None:
    """What "auto" did with a faulty source: "left out", "re-estimated" or None."""
    j = layout.names.index(name)
    return "left out" if j in layout.left_out else "re-estimated" if j in layout.relearned else None


def fault_text(fuser: Fuser, fault: Fault) -> str:
    """A fault, the evidence for it and what was done, in a sentence."""
    name, p = fault.sources[0], "p < 1e-300" if fault.p_value < 1e-300 else f"p = {fault.p_value:.2g}"
    if fault.kind is None:
        names = listing([*map(repr, fault.sources)])
        return (
            f"one of the sources {names} contradicts its calibration ({p}), but the answers do not show which; label "
            "some items to find out"
        )
    done = {
        "left out": "it is left out",
        "re-estimated": "its confusion matrix is re-estimated from the batch",
        None: "its answers are used with the calibration nevertheless",
    }[action(fuser._fitted_layout, name)]
    return (
        f"source {name!r} contradicts the other sources: {KINDS[fault.kind]} ({_evidence(fuser, fault)}, {p}); {done}"
    )


def _evidence(fuser: Fuser, fault: Fault) -> str:
    name, layout = fault.sources[0], fuser._first_layout
    if fault.test == "agreement":
        z = fuser.agreement_[name].z
        return f"it agrees with them less often than its calibration implies, by {-z:.1f} standard errors"
    test = fuser.drift_[name]
    symbol = int(np.abs(test.observed - test.expected).argmax())
    answer = answer_text(layout.calibrations[layout.names.index(name)], symbol)
    return (
        f"{percent(test.observed[symbol], 1)} of its answers are {answer!r}, whereas its calibration and the other "
        f"sources imply {percent(test.expected[symbol], 1)}"
    )


def _dependent(fuser: Fuser, layout: Layout) -> list[str]:
    z = np.triu(np.nan_to_num(fuser.dependence_.z), 1)
    pairs = np.argwhere(z > SIGNIFICANT_Z)
    if not len(pairs):
        return []
    i, j = pairs[z[z > SIGNIFICANT_Z].argmax()]
    others = f", as do {count(len(pairs) - 1, 'other pair')}" if len(pairs) > 1 else ""
    return [
        f"sources {layout.names[i]!r} and {layout.names[j]!r} agree more often than their confusion matrices imply "
        f"(by {z[i, j]:.1f} standard errors){others}. The {layout.n_sources} sources are equivalent to about "
        f"{fuser.dependence_.n_effective:.1f} independent ones. If a source is a copy of another, declare it with "
        "copy_of"
    ]


def _priors(fuser: Fuser) -> list[str]:
    out = []
    estimate, test, classes = fuser.prior_estimate_, fuser.prior_shift_, fuser.classes_.tolist()
    if test.significant:
        training = isinstance(fuser.class_prior, str) and fuser.class_prior == "training"
        intervals = ", ".join(
            f"{label} {percent(low, 1)} to {percent(high, 1)}"
            for label, low, high in zip(classes, estimate.low, estimate.high)
        )
        out.append(
            "the class priors of this batch differ significantly from "
            f"{'those of the training sets' if training else 'class_prior'} (p = {test.robust_p_value:.2g}): "
            f"{intervals}"
        )
    for label, high in zip(classes, estimate.high):
        if high < 0.02:
            out.append(f"class {label!r} is rare or absent in this batch (at most {percent(high, 1)} of the items)")
    for label, low, high in zip(classes, estimate.low, estimate.high):
        if high - low > WIDE:
            out.append(
                f"the prior of class {label!r} is uncertain ({percent(low, 0)} to {percent(high, 0)}), because the "
                "sources do not separate it well from the other classes or were calibrated on few rows"
            )
    return out


def uncalibrated(layout: Layout) -> bool:
    """Whether all calibrations are assumptions (`Calibration.guess`)."""
    return bool(layout.n_rows.max() < MIN_ROWS)


def _calibrations(layout: Layout) -> list[str]:
    if uncalibrated(layout):
        return ["the sources are not calibrated; their confusion matrices are estimated from their agreement"]
    out = []
    for name, calibration, rows in zip(layout.names, layout.calibrations, layout.n_rows):
        classes = layout.classes.tolist()
        absent = [str(c) for c, n in zip(classes, rows) if n == 0 and c in calibration.classes]
        few = [f"{c} ({n:.0f})" for c, n in zip(classes, rows) if 0 < n < FEW_ROWS]
        if absent:
            out.append(
                f"source {name!r} has no calibration rows of class {', '.join(absent)}, so that its answers are no "
                "evidence for or against it"
            )
        if few:
            out.append(f"source {name!r} was calibrated on few rows of class {', '.join(few)}")
    if len(out) <= 5:
        return out
    return [*out[:4], f"{len(out) - 4} more calibrations have few rows, or none, of a class"]


def _stated(layout: Layout, batch: Batch) -> list[str]:
    """Sources whose probabilities are not calibrated as they are stated."""
    direct = [
        j
        for j in batch.soft
        if j not in layout.relearned and j not in batch.calibrated_on_labels and batch.class_probabilities(j)
    ]
    calibrations = {layout.names[j]: layout.calibrations[j] for j in direct}
    return [*unreliable(calibrations), *_of_sums(calibrations)]


def unreliable(calibrations: Mapping[str, Calibration]) -> list[str]:
    """Sources whose probabilities differ significantly from calibrated ones on the rows (Bonferroni)."""
    tested = {name: c.reliability for name, c in calibrations.items() if c.reliability is not None}
    rejected = {name: test for name, test in tested.items() if test.p_value < SIGNIFICANT / len(tested)}
    out = [
        f"source {name!r} {test}; its probabilities are "
        f"{'used as stated' if calibrations[name].scale is None else 'rescaled'}"
        for name, test in rejected.items()
    ]
    if len(out) <= MAX_STATED:
        return out
    first = min(rejected, key=lambda name: rejected[name].p_value)
    n_scaled = sum(calibrations[name].scale is not None for name in rejected)
    action = "they are rescaled" if n_scaled == len(rejected) else f"{n_scaled} of them are rescaled"
    return [
        f"{len(out)} of {len(tested)} sources state probabilities that are not calibrated; {action}. Source {first!r} "
        f"{rejected[first]}"
    ]


def _of_sums(calibrations: Mapping[str, Calibration]) -> list[str]:
    """Sources without a test on rows, whose sums of probabilities differ significantly from the class counts."""
    sums = {
        name: c
        for name, c in calibrations.items()
        if c.scale is None and c.reliability is None and c.priors is None and set(c.symbols) == set(c.classes)
    }
    out = []
    for name, c in sums.items():
        test = reliability_of_sums(c.counts[:, [c.symbols.index(label) for label in c.classes]], c.classes)
        if test is not None and test.p_value < SIGNIFICANT / len(sums):
            out.append(
                f"source {name!r} {test}; its probabilities are used as stated, because its calibration has only their "
                "sums; calibrate it on rows with `Calibration.from_predictions` to rescale them"
            )
    return out


def _small(batch: Batch) -> list[str]:
    total = float(batch.weight.sum())
    if total >= MIN_BATCH:
        return []
    return [f"the batch has only {count(total, 'item')}, so that class priors and trust weights are imprecise"]
