"""A fitted fusion as plain values: classes, sources, pairs of sources, and convergence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.text import plain
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.messages import action
from mixent.fusion.rules import posterior_of

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser
    from mixent.fusion.faults import Fault

MAX_PAIRS = 12  # pairs of sources that are listed
MIN_Z = 2.0  # of a pair that is listed
Z_ONE_SIDED = 1.645  # of a one-sided test at the 5 % level
ASSUMED = "the calibrations are assumptions or have few rows"
REASONS = {  # why "auto" chose a method
    "equal": f"{ASSUMED}, and held-out answers are predicted best if all sources are equally accurate",
    "one-coin": f"{ASSUMED}, and held-out answers are predicted best with one accuracy of each source",
    "hierarchical": (
        f"{ASSUMED}, and held-out answers are predicted best with confusion matrices that are shrunk to common ones"
    ),
    "dawid-skene": f"{ASSUMED}, so the confusion matrices are estimated from the batch",
    "product": "a single source without calibration is returned as it is",
    "discounted": (
        "the sources are calibrated, and each has a trust weight, which is smaller if it agrees with others more often "
        "than independent sources should"
    ),
}


def fusion_facts(fuser: Fuser) -> dict[str, Any]:
    """Results of a fitted `Fuser` as JSON-compatible values."""
    estimate, test = fuser.prior_estimate_, fuser.prior_shift_
    return {
        "method": fuser.method_,
        "requested_method": fuser.method,
        "reason": REASONS.get(fuser.method_) if fuser.method == "auto" else None,
        "items": int(fuser.n_items_),
        "patterns": int(fuser.n_patterns_),
        "classes": _classes(fuser),
        "confidence": float(estimate.confidence),
        "prior_shift": {
            "significant": bool(test.significant),
            "p_value": _finite(test.robust_p_value),
            "likelihood_ratio_p_value": _finite(test.p_value),
            "reference": _reference_prior(fuser),
        },
        "sources": _sources(fuser),
        "faults": [_fault(fuser, fault) for fault in fuser.faults_],
        "effective_sources": float(fuser.dependence_.n_effective),
        "pairs": _pairs(fuser),
        "objective": None if fuser.objective_ is None else float(fuser.objective_),
        "gap": _finite(fuser.gap_),
        "passes": max((step.n_pass for step in fuser.history_), default=0),
        "warnings": list(fuser.warnings_),
    }


def _classes(fuser: Fuser) -> list[dict[str, Any]]:
    estimate, training = fuser.prior_estimate_, fuser._fitted_layout.training_prior
    columns = zip(fuser.classes_, fuser.prior_, estimate.prior, estimate.low, estimate.high, training)
    keys = ("prior", "estimate", "low", "high", "training")
    return [{"class": plain(label)} | dict(zip(keys, map(float, values))) for label, *values in columns]


def _reference_prior(fuser: Fuser) -> str:
    """Reference priors of the test of a prior shift: "given", "equal" or "training"."""
    if not isinstance(fuser.class_prior, str):
        return "given"
    return "equal" if fuser.class_prior == "uniform" or fuser.sources is None else "training"


def _fault(fuser: Fuser, fault: Fault) -> dict[str, Any]:
    return {
        "sources": list(fault.sources),
        "test": fault.test,
        "p_value": float(fault.p_value),
        "kind": fault.kind,
        "action": action(fuser._fitted_layout, fault.sources[0]) if fault.kind else None,
    }


def _sources(fuser: Fuser) -> list[dict[str, Any]]:
    bits = contributions(fuser)
    named = {fault.sources[0]: _fault(fuser, fault) for fault in fuser.faults_ if fault.kind is not None}
    return [_source(fuser, j, bits[j], named) for j in range(fuser._first_layout.n_sources)]


def _source(fuser: Fuser, j: int, bits: float | None, named: dict[str, dict[str, Any]]) -> dict[str, Any]:
    batch, layout = fuser._batch, fuser._first_layout
    name, calibration = layout.names[j], layout.calibrations[j]
    histogram, agreement = fuser.drift_.get(name), fuser.agreement_.get(name)
    return {
        "name": name,
        "answers": answer_type(calibration, soft=batch.answers.responses[j].ndim == 2),
        "rows": {str(label): float(n) for label, n in zip(calibration.classes, calibration.n_rows)},
        "calibration_set": calibration.calibration_set,
        "copy_of": calibration.copy_of,
        "accuracy": accuracy(calibration),
        "information_bits": information(calibration),
        "contribution_bits": bits,
        "answered": float(batch.weight @ batch.answered[j] / batch.weight.sum()),
        "trust": None if fuser.trust_ is None else float(fuser.trust_[name]),
        "drift_p_value": None if histogram is None else _finite(histogram.p_value),
        "agreement_p_value": None if agreement is None else _finite(agreement.p_value),
        "agreement_z": None if agreement is None else _finite(agreement.z),
        "fault": named.get(name),
    }


def contributions(fuser: Fuser) -> list[float | None]:
    """Contribution of each source to the posteriors, in bits per answer; None without an answer.

    The expected information of an answer about the class at the class priors p of the batch, times the trust weight:
    t_j times the mean of  sum_k q_ij(k) log2(q_ij(k) / p_k)  over the items that source j answered, with q_ij the
    posteriors from its answer alone. Labelled rows of the calibration enter through the likelihood ratios.
    """
    first, layout = fuser._batch, fuser._fitted_layout
    batch = Batch(layout, first.answers, first.weight, first.labels)
    prior = np.maximum(fuser.prior_, 1e-300)
    out: list[float | None] = []
    for j, name in enumerate(layout.names):
        answered = batch.answered[j]
        weight = first.weight[answered]
        if not weight.sum() > 0:
            out.append(None)
            continue
        q = posterior_of(batch.source_evidence(j, fuser.confusion_[name].T)[answered] + np.log(prior))
        information = (q * np.log2(np.maximum(q, 1e-300) / prior)).sum(axis=1)
        trust = layout.share[j] if fuser.trust_ is None else fuser.trust_[name]
        out.append(float(trust * (weight @ information) / weight.sum()))
    return out


def answer_type(calibration: Calibration, *, soft: bool = False) -> str:
    """Type of the answers of a source: labels, probabilities or scores."""
    if calibration.line is not None:
        kind = "scores (logistic)"
    elif calibration.ordinal:
        kind = f"ordered {'labels' if calibration.edges is None else 'scores'} ({len(calibration.symbols)} values)"
    elif calibration.edges is not None:
        kind = f"scores ({len(calibration.symbols)} bins)"
    else:
        kind = "probabilities" if soft else "labels"
    return kind + ("" if calibration.cells is None else " within cells" if calibration.context else " with cells")


def accuracy(calibration: Calibration) -> float | None:
    """Balanced accuracy on the calibration rows; None where no symbol of the source is a class."""
    if calibration.edges is not None or calibration.ordinal or not set(calibration.symbols) & set(calibration.classes):
        return None
    counts = calibration.counts if calibration.cells is None else calibration.counts.sum(axis=2)
    seen, symbols = counts.sum(axis=1) > 0, calibration.symbols
    correct = np.array(
        [counts[k, symbols.index(c)] if c in symbols else 0.0 for k, c in enumerate(calibration.classes)]
    )
    return float((correct[seen] / counts.sum(axis=1)[seen]).mean())


def below_chance(calibration: Calibration) -> float | None:
    """Balanced accuracy of the answers that are classes if significantly (5 %) less than 1 / K; None otherwise."""
    classes, symbols = calibration.classes, calibration.symbols
    if accuracy(calibration) is None or not set(classes) <= set(symbols):
        return None
    counts = calibration.counts if calibration.cells is None else calibration.counts.sum(axis=2)
    counts = counts[:, [symbols.index(label) for label in classes]]
    counts = counts[counts.sum(axis=1) > 0]
    if len(counts) < len(classes):
        return None
    rows, chance = counts.sum(axis=1), 1 / len(classes)
    right = float((np.diag(counts) / rows).mean())
    std = float(np.sqrt((chance * (1 - chance) / rows).sum())) / len(classes)
    return right if right < chance - Z_ONE_SIDED * std else None


def information(calibration: Calibration) -> float | None:
    """Mutual information of answer and class in bits, for equal class priors; None within contexts."""
    if calibration.context:
        return None
    A = calibration.confusion.reshape(len(calibration.classes), -1)
    log_ratio = np.log2(np.where(A > 0, A / A.mean(axis=0), 1.0))
    return float((A * log_ratio).sum(axis=1).mean())


def _pairs(fuser: Fuser, max_pairs: int = MAX_PAIRS) -> list[dict[str, Any]]:
    """Pairs of sources that agree more often than their confusion matrices imply, the most significant first."""
    names, dependence = fuser._first_layout.names, fuser.dependence_
    z = np.triu(np.nan_to_num(dependence.z), 1)
    order = np.argsort(-z, axis=None, kind="stable")[:max_pairs]
    return [
        {"sources": [names[i], names[j]], "z": float(z[i, j]), "correlation": float(dependence.correlation[i, j])}
        for i, j in zip(*np.unravel_index(order, z.shape))
        if z[i, j] > MIN_Z
    ]


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
