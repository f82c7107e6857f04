"""Losses of the out-of-fold rows of a cross-validation, and the test of two methods that is based on them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.params import check_choice
from mixent.data import encode
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.paired_rows import RowTest, loss_interval, row_t_test
from mixent.evaluate.scores import METRICS, ROW_LOSSES, as_loss, losses_of
from mixent.evaluate.text import without_rounding

UPPER = {"error": 1.0, "balanced_error": 1.0, "log_loss": np.inf, "brier": 2.0}  # largest loss of a row
SAME = 1e-12  # probabilities that differ by less are the same
LEAST = {"error": 1.0, "balanced_error": 1.0}  # least nonzero difference of one row


def scored_rows(cv: Any, methods: list[str]) -> np.ndarray:
    """Rows that all of these methods predicted in the first repeat, each with a model not fitted to it."""
    known = [np.isfinite(cv.proba[m]).all(axis=1) for m in methods if m in cv.proba]
    return np.flatnonzero(np.all(known, axis=0)) if len(known) == len(methods) else np.array([], dtype=int)


def out_of_fold_losses(cv: Any, methods: list[str], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """(m, n) losses of the rows that all methods predicted in the first repeat, and the weights of these rows.

    The weighted mean of the losses is the metric, over all rows together.

    Parameters
    ----------
    cv : CrossValidation
    methods : list of str
    metric : {"error", "balanced_error", "log_loss", "brier"}
    """
    check_choice("metric", metric, ROW_LOSSES)
    rows = scored_rows(cv, methods)
    weight = np.ones(len(rows)) if cv.sample_weight is None else cv.sample_weight[rows]
    proba = np.stack([cv.proba[m][rows] for m in methods])
    return losses_of(encode(cv.y[rows], cv.classes), proba, weight, metric)


def paired_test(cv: Any, a: str, b: str, metric: str) -> RowTest | TTest | None:
    """Test of the difference of two methods on the folds that both finished; None if there is too little in common.

    A metric that is a mean over rows is tested on the rows (`row_t_test`), any other on the folds (`corrected_t_test`).

    Parameters
    ----------
    cv : CrossValidation
    a, b : str
    metric : str
    """
    first, second = as_loss(cv.values(a, metric), metric), as_loss(cv.values(b, metric), metric)
    both = np.isfinite(first) & np.isfinite(second)
    first, second = first[both], second[both]
    if not both.any():
        return None
    scores = (float(first.mean()), float(second.mean()))
    options: dict[str, Any] = {"names": (a, b), "metric": metric, "scores": scores}
    by_fold = without_rounding(first - second, first, second)
    rows = scored_rows(cv, [a, b])
    if metric in ROW_LOSSES and len(rows) > 1:
        losses, weight = out_of_fold_losses(cv, [a, b], metric)
        differences = without_rounding(losses[0] - losses[1], losses)
        sample: dict[str, Any] = {"sample_weight": weight, "groups": _groups(cv, rows), "bound": LEAST.get(metric, 0.0)}
        return row_t_test(differences, mean=float(by_fold.mean()), **sample, **options)
    if len(by_fold) < 2:
        return None
    options |= {} if metric in METRICS else {"metric": None}
    return corrected_t_test(by_fold, fold_ratio(cv), **options)


def score_interval(cv: Any, method: str, metric: str) -> tuple[float, float] | None:
    """95 % interval of the expected score of a method, within the range of the metric.

    None if the metric is not a mean over rows, or fewer than two rows were scored.
    """
    if metric not in ROW_LOSSES or len(scored_rows(cv, [method])) < 2:
        return None
    losses, weight = out_of_fold_losses(cv, [method], metric)
    groups = _groups(cv, scored_rows(cv, [method]))
    mean = float(np.nanmean(cv.values(method, metric)))
    return loss_interval(losses[0], weight=weight, groups=groups, upper=UPPER[metric], mean=mean)


def is_constant(cv: Any, method: str) -> bool:
    """Whether a method predicts the same probabilities for all rows of a fold, such as the class frequencies."""
    if method not in cv.proba:
        return False
    parts = [cv.proba[method][cv.folds[0] == fold] for fold in range(int(cv.folds.max()) + 1)]
    return all(np.ptp(p, axis=0).max() <= SAME for p in parts if len(p) and np.isfinite(p).all())


def best_of(cv: Any, metric: str, ranking: list[str]) -> list[str]:
    """The methods with the lowest mean of a metric (the highest AUC), but for differences by rounding.

    Constant probabilities, such as the class frequencies, are never the best: they are calibrated by construction, and
    fitted in no time.
    """
    among = [m for m in ranking if not is_constant(cv, m)]
    means = {m: float(values.mean()) for m in among if len(values := as_loss(cv.values(m, metric), metric))}
    least = min(means.values(), default=np.nan)
    return [m for m, mean in means.items() if not without_rounding(np.array(mean - least), mean, least)]


def fold_ratio(cv: Any) -> float:
    """Test rows for each training row."""
    return float(np.mean([r["n_test"] / r["n_train"] for r in cv.records]))


def _groups(cv: Any, rows: np.ndarray) -> np.ndarray | None:
    return None if cv.groups is None else cv.groups[rows]
