"""A fusion in plain values and in words: priors, sources, pairs, decisions against the majority and their reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.text import count
from mixent.fusion import Calibration
from mixent.fusion.batch import Batch
from mixent.fusion.messages import drifted_sources as drift_alarms
from mixent.fusion.rules import majority

CASES = 12  # decisions that are told in words
LOUD = 5  # sources of each
LISTED = 12  # pairs, symbols
SLIGHT = 0.005  # nats
WHY = {
    "dawid-skene": "the calibrations are guesses or thin, so that what the sources are worth is learned from the batch",
    "discounted": "sources agree more than their confusion matrices say, so that each gets a trust weight",
    "ml-product": "sources do not agree more than their confusion matrices say",
}
OLD = {"training": "those of the sources' training", "given": "those given", "equal": "equal shares"}


def describe_fusion(fuser: Any) -> dict[str, Any]:
    """A fitted `Fuser` in values that JSON can hold."""
    estimate, moved, pairs = fuser.prior_estimate_, fuser.prior_shift_, fuser.dependence_
    training = fuser._fitted_layout.training_prior
    columns = zip(fuser.classes_.tolist(), fuser.prior_, estimate.prior, estimate.low, estimate.high, training)
    return {
        "fusion": fuser.method_,
        "method_asked": fuser.method,
        "why": WHY.get(fuser.method_) if fuser.method == "auto" else None,
        "items": int(fuser.n_items_),
        "patterns": int(fuser.n_patterns_),
        "classes": [
            dict(zip(("class", "prior", "estimate", "low", "high", "training"), (c, *map(float, rest))))
            for c, *rest in columns
        ],
        "confidence": float(estimate.confidence),
        "moved": {
            "moved": bool(moved.significant),
            "p_value": _finite(moved.robust_p_value),
            "p_value_of_saerens": _finite(moved.p_value),
            "from": _old_prior(fuser),
        },
        "sources": _sources(fuser),
        "effective_sources": float(pairs.n_effective),
        "pairs": _pairs(fuser),
        "objective": None if fuser.objective_ is None else float(fuser.objective_),
        "gap": _finite(fuser.gap_),
        "passes": max((step.n_pass for step in fuser.history_), default=0),
        "warnings": list(fuser.warnings_),
    }


def _old_prior(fuser: Any) -> str:
    """What the test of moved priors compares with."""
    if not isinstance(fuser.class_prior, str):
        return "given"
    return "equal" if fuser.class_prior == "uniform" or fuser.sources is None else "training"


def _finite(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _sources(fuser: Any) -> list[dict[str, Any]]:
    batch, layout, alarms = fuser._batch, fuser._first_layout, drift_alarms(fuser)
    total = batch.weight.sum()
    out = []
    for j, (name, one) in enumerate(zip(layout.names, layout.calibrations)):
        drift = fuser.drift_.get(name)
        out.append(
            {"name": name, "kind": kind_of(one, soft=batch.answers.said[j].ndim == 2)}
            | {"rows": {str(c): float(n) for c, n in zip(one.classes, one.n_rows)}}
            | {"calibration_set": one.calibration_set, "copy_of": one.copy_of}
            | {"right": accuracy(one), "bits": information(one)}
            | {"answered": float(batch.weight @ batch.answered[j] / total)}
            | {"trust": None if fuser.trust_ is None else float(fuser.trust_[name])}
            | {"drift_p": None if drift is None else _finite(drift.p_value), "drifted": name in alarms}
        )
    return out


def kind_of(one: Calibration, *, soft: bool = False) -> str:
    """What a source gives, in a word or two."""
    kind = "scores" if one.edges is not None or one.line is not None else "probabilities" if soft else "labels"
    kind += " (ratio)" if one.line is not None else f" ({len(one.symbols)} bins)" if one.edges is not None else ""
    return kind + ("" if one.cells is None else " in context" if one.context else " with cells")


def accuracy(one: Calibration) -> float | None:
    """Share of right answers, the classes it was calibrated on counting alike; None where it names no class."""
    if one.edges is not None or not set(one.symbols) & set(one.classes):
        return None
    counts = one.counts if one.cells is None else one.counts.sum(axis=2)
    seen = counts.sum(axis=1) > 0
    right = np.array([counts[k, one.symbols.index(c)] if c in one.symbols else 0.0 for k, c in enumerate(one.classes)])
    return float((right[seen] / counts.sum(axis=1)[seen]).mean())


def information(one: Calibration) -> float | None:
    """Bits that an answer tells of the class, if all classes are as frequent; None within contexts."""
    if one.context:
        return None
    A = one.confusion.reshape(len(one.classes), -1)
    log_ratio = np.log2(np.where(A > 0, A / A.mean(axis=0), 1.0))
    return float((A * log_ratio).sum(axis=1).mean())


def _pairs(fuser: Any, most: int = LISTED) -> list[dict[str, Any]]:
    """Pairs of sources that agree too much, the surest first."""
    names, found = fuser._first_layout.names, fuser.dependence_
    z = np.triu(np.nan_to_num(found.z), 1)
    order = np.argsort(-z, axis=None, kind="stable")[:most]
    out = []
    for i, j in zip(*np.unravel_index(order, z.shape)):
        if z[i, j] > 2.0:
            values = {"z": float(z[i, j]), "correlation": float(found.correlation[i, j])}
            out.append({"between": [names[i], names[j]]} | values)
    return out


@dataclass(frozen=True)
class Decisions:
    """The patterns of a batch: what was decided, and what most of the sources say."""

    batch: Batch
    posterior: np.ndarray  # (P, K)
    decided: np.ndarray  # (P,) class
    majority: np.ndarray  # (P,) class; -1: a tie, or no vote

    @property
    def changed(self) -> np.ndarray:
        """(P,) whether they differ; a tie is no majority."""
        return np.asarray((self.majority >= 0) & (self.majority != self.decided))


def decisions(fuser: Any) -> Decisions:
    """What a fitted `Fuser` decided beside what a majority vote would have."""
    first = fuser._batch
    batch = Batch(fuser._fitted_layout, first.answers, first.weight, first.known, first.pattern_of)
    posterior = fuser.rule_.posterior(batch)
    known = np.flatnonzero(batch.known >= 0)
    posterior[known] = np.eye(posterior.shape[1])[batch.known[known]]
    votes = np.sort(shares := majority(batch.votes(), batch.layout.share).posterior, axis=1)
    clear = votes[:, -1] - votes[:, -2] > 1e-9
    return Decisions(batch, posterior, posterior.argmax(axis=1), np.where(clear, shares.argmax(axis=1), -1))


# --- in words -------------------------------------------------------------------------------------------------------


def fusion_in_words(about: dict[str, Any]) -> list[str]:
    """What a fusion found, a sentence each."""
    J, n = len(about["sources"]), about["items"]
    same = f", {count(about['patterns'], 'pattern')} of answers" if about["patterns"] < n else ""
    told = [f"{count(n, 'item')}{same}, {count(J, 'source')}", _method(about)]
    if J > 1:
        told.append(f"{count(J, 'source')} are worth about {about['effective_sources']:.1f} independent ones")
    told.append(moved_in_words(about))
    if about["gap"] is not None:
        told.append(f"Certificate: at most {about['gap']:.2g} nats per item above the least divergence")
    return told


def _method(about: dict[str, Any]) -> str:
    auto = about["method_asked"] == "auto"
    why = f": {about['why']}" if about["why"] else ""
    passes = f" ({count(about['passes'], 'pass', 'passes')})" if about["passes"] else ""
    return f"Method {about['fusion']}{passes}" + (f", taken by auto{why}" if auto else "")


def moved_in_words(about: dict[str, Any]) -> str:
    """Have the class priors moved?"""
    moved = about["moved"]
    what = OLD[moved["from"]]
    p = "" if moved["p_value"] is None else f" ({p_in_words(moved['p_value'])})"
    return (
        f"The class priors have moved from {what}{p}" if moved["moved"] else f"No sign of priors other than {what}{p}"
    )


def p_in_words(value: float) -> str:
    """`p = 0.03`."""
    return f"p = {value:.2g}" if value > 1e-300 else "p < 1e-300"


def said_in_words(calibration: Calibration, said: Any) -> str:
    """What a source said of an item: its code among the symbols, or a pmf over them."""
    n_cells = 1 if calibration.cells is None else len(calibration.cells)
    if np.ndim(said):
        best = int(np.argmax(said))
        return f"{calibration.symbols[best // n_cells]} {100 * said[best]:.0f}\u00a0%"
    symbol = str(calibration.symbols[int(said) // n_cells])
    return symbol if calibration.cells is None else f"{symbol} in {calibration.cells[int(said) % n_cells]}"


def changed_cases(fuser: Any, found: Decisions, most: int = CASES) -> list[dict[str, Any]]:
    """Typical items that were decided against the majority, and what each source added to the log-odds.

    Parameters
    ----------
    fuser : fitted Fuser
    found : of `decisions`
    most : int

    Returns
    -------
    list of dict: pattern, items (how many), majority, decided, probability, parts (a list of dict: source, says, nats;
    the loudest first; None where the method's posteriors are no sum).
    """
    rows = _typical(found, most)
    if not len(rows):
        return []
    classes = fuser.classes_.tolist()
    try:
        parts = fuser.explain(found.batch.answers.part(rows))
    except ValueError:  # the method takes means
        parts = None
    out = []
    for i, row in enumerate(rows.tolist()):
        d, m = int(found.decided[row]), int(found.majority[row])
        known = found.batch.known[row] >= 0
        out.append(
            {"pattern": row, "items": float(found.batch.weight[row]), "majority": classes[m], "decided": classes[d]}
            | {"probability": float(found.posterior[row, d]), "known": bool(known)}
            | {"parts": None if parts is None else _parts(found.batch, row, parts[i, :, d] - parts[i, :, m])}
        )
    return out


def _typical(found: Decisions, most: int) -> np.ndarray:
    """Patterns of most items; where every item is its own, from the surest to the least sure."""
    rows = np.flatnonzero(found.changed)
    weight, p = found.batch.weight[rows], found.posterior[rows].max(axis=1)
    if len(rows) > most and found.batch.pattern_of is None:
        order = np.argsort(-p, kind="stable")
        return rows[order[np.linspace(0, len(rows) - 1, most).astype(int)]]
    return rows[np.lexsort((-p, -weight))[:most]]


def _parts(batch: Batch, row: int, nats: np.ndarray) -> list[dict[str, Any]]:
    names, calibrations = batch.layout.names, batch.layout.calibrations
    told = [
        {"source": names[j], "says": said_in_words(calibrations[j], batch.answers.said[j][row]), "nats": float(nats[j])}
        for j in range(len(names))
        if batch.answered[j, row]
    ]
    told.append({"source": "priors", "says": None, "nats": float(nats[-1])})
    return sorted(told, key=lambda part: -abs(part["nats"]))


def parts_in_words(case: dict[str, Any], most: int = LOUD) -> str:
    """`A (says ill, +2.1), B (says healthy, -0.4), priors (-1.3)`: the loudest, then all others together."""
    if case["known"]:
        return "its class is known"
    if case["parts"] is None:
        return "a mean of the sources' posteriors, which is no sum of parts"
    loud = [part for part in case["parts"] if abs(part["nats"]) >= SLIGHT]
    said = ["" if part["says"] is None else f"says {part['says']}, " for part in loud]
    told = [f"{part['source']} ({says}{_nats(part['nats'])})" for part, says in zip(loud[:most], said)]
    if len(loud) > most:
        rest = sum(part["nats"] for part in loud[most:])
        told.append(f"{count(len(loud) - most, 'other')} ({_nats(rest)})")
    return ", ".join(told)


def _nats(value: float) -> str:
    return f"{round(value, 1) + 0.0:+.1f}"  # + 0.0: not -0.0


def whole(n: float) -> str:
    """A sum of weights: without decimals where they are counts."""
    return f"{n:.0f}" if n == round(n) else f"{n:.1f}"
