"""Scores of class probabilities. All but the AUC are losses: lower is better; logarithms are natural (nats)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.result import Result
from mixent.data import as_labels, classes_of, encode, row_weights
from mixent.data.files import need_pandas
from mixent.data.labels import label_value

SMALLEST = 1e-15  # probabilities below this count as this in log_loss
METRICS = ("error", "balanced_error", "log_loss", "brier", "calibration")
ROW_LOSSES = ("error", "balanced_error", "log_loss", "brier")  # metrics that are weighted means over rows
HIGHER = ("auc",)  # metrics of which higher is better; `as_loss` turns them round
COMPARED = (*METRICS, *HIGHER)  # all metrics of a cross-validation


class Scale(NamedTuple):
    """How a metric is shown."""

    heading: str  # its name and unit
    factor: float
    digits: int  # decimals

    def text(self, value: float) -> str:
        """The value without its unit."""
        return f"{self.factor * value:.{self.digits}f}"


SCALES = {
    "error": Scale("error (%)", 100, 1),
    "balanced_error": Scale("balanced error (%)", 100, 1),
    "log_loss": Scale("log-loss (nats)", 1, 3),
    "brier": Scale("Brier score", 1, 3),
    "calibration": Scale("calibration error (%)", 100, 1),
    "auc": Scale("AUC", 1, 3),
    "fit_seconds": Scale("fit (s)", 1, 2),
    "predict_seconds": Scale("predict (s)", 1, 2),
}


def error_rate(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows (of the weight) whose predicted label is not `y`."""
    y, predicted, weight = _read_labels(y, predicted, sample_weight)
    return _mean(y != predicted, weight)


def balanced_error(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Mean over the classes in `y` of the error rate inside each class."""
    y, predicted, weight = _read_labels(y, predicted, sample_weight)
    counted = y[weight > 0]
    return _balanced(encode(counted, classes_of(counted)), (y != predicted)[weight > 0], weight[weight > 0])


def log_loss(y: Any, proba: Any, classes: Any = None, *, sample_weight: Any = None) -> float:
    """Mean of -log p(true class), in nats.

    `proba` (n, C) has its columns in the order of `classes` (default: the sorted labels of `y`).
    A probability below 1e-15 counts as 1e-15, so that one impossible row costs 34.5 nats and not infinity.
    """
    return _log_loss(*read_predictions(y, proba, classes, sample_weight))


def brier(y: Any, proba: Any, classes: Any = None, *, sample_weight: Any = None) -> float:
    """Mean over rows of sum_c (p_c - [y = c])^2: 0 is perfect, 2 is certain and wrong.

    With two classes this is twice the binary Brier score.
    """
    return _brier(*read_predictions(y, proba, classes, sample_weight))


def calibration_error(y: Any, proba: Any, classes: Any = None, *, n_bins: int = 10, sample_weight: Any = None) -> float:
    """Expected calibration error of the most probable label.

    sum_b mass_b |share correct in b - mean confidence in b|, with `n_bins` bins of equal mass (weight) over the sorted
    confidences; rows with the same confidence share a bin. A perfectly calibrated model does not score 0 on a finite
    sample: with few rows per bin the value is mostly noise, so compare methods on the same rows only.
    """
    return calibration_of(*read_predictions(y, proba, classes, sample_weight), n_bins=n_bins)


def score_table(y: Any, proba: Any, classes: Any, sample_weight: Any = None) -> dict[str, float]:
    """All scores of one set of predictions: error, balanced_error, log_loss, brier, calibration (see each function)."""
    return scores_of(*read_predictions(y, proba, classes, sample_weight))


def scores_of(true: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """As `score_table`, of positions of the true classes (n,), probabilities (n, C) and weights (n,)."""
    wrong, counted = proba.argmax(axis=1) != true, weight > 0
    return {
        "error": _mean(wrong, weight),
        "balanced_error": _balanced(true[counted], wrong[counted], weight[counted]),
        "log_loss": _log_loss(true, proba, weight),
        "brier": _brier(true, proba, weight),
        "calibration": calibration_of(true, proba, weight),
    }


def as_loss(value: Any, metric: str) -> Any:
    """A value of a metric as a loss: 1 less the AUC, any other as it is; applied twice, it gives the value back."""
    return 1.0 - value if metric in HIGHER else value


def auc_of(true: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> float:
    """Area under the ROC curve; with more than two classes, the mean over the classes of each against the rest.

    Classes without rows do not count; NaN if the rows are of one class.

    Parameters
    ----------
    true : (n,) positions of the true classes
    proba : (n, C) probabilities
    weight : (n,) weights
    """
    from sklearn.metrics import roc_auc_score

    rows = weight > 0
    true, proba, weight = true[rows], proba[rows], weight[rows]
    present = np.unique(true)
    if len(present) < 2:
        return float("nan")
    if proba.shape[1] == 2:
        present = present[1:]
    areas = [roc_auc_score(true == c, proba[:, c], sample_weight=weight) for c in present]
    return float(np.mean(areas))


def losses_of(true: np.ndarray, proba: np.ndarray, weight: np.ndarray, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Losses of several methods, (m, n), and the weights (n,) whose weighted mean is the metric.

    Parameters
    ----------
    true : (n,) positions of the true classes
    proba : (m, n, C) probabilities
    weight : (n,) weights
    metric : one of `ROW_LOSSES`
    """
    if metric == "log_loss":
        return -np.log(np.clip(proba[:, np.arange(len(true)), true], SMALLEST, 1.0)), weight
    if metric == "brier":
        return ((proba - np.eye(proba.shape[2])[true]) ** 2).sum(axis=2), weight
    if metric == "balanced_error":
        weight = weight / np.maximum(np.bincount(true, weight), 1e-300)[true]
    return (proba.argmax(axis=2) != true).astype(float), weight


def calibration_of(true: np.ndarray, proba: np.ndarray, weight: np.ndarray, n_bins: int = 10) -> float:
    """As `calibration_error`, of what has been read."""
    bins = _binned(proba.max(axis=1), (proba.argmax(axis=1) == true).astype(float), weight, n_bins)
    return float(np.sum(bins.mass * np.abs(bins.observed - bins.predicted)) / bins.mass.sum())


def _balanced(true: np.ndarray, wrong: np.ndarray, weight: np.ndarray) -> float:
    rows = [true == c for c in np.unique(true)]
    return float(np.mean([_mean(wrong[r], weight[r]) for r in rows]))


def _log_loss(true: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> float:
    return _mean(-np.log(np.clip(proba[np.arange(len(true)), true], SMALLEST, 1.0)), weight)


def _brier(true: np.ndarray, proba: np.ndarray, weight: np.ndarray) -> float:
    miss = proba - np.eye(proba.shape[1])[true]
    return _mean(np.einsum("nc,nc->n", miss, miss), weight)


@dataclass(frozen=True, repr=False)
class Reliability(Result):
    """Predicted probability against observed frequency in bins of equal mass."""

    _title = "Reliability"
    _shown = ("predicted", "observed")

    predicted: np.ndarray  # (B,) mean predicted probability
    observed: np.ndarray  # (B,) share of the mass where the event happened
    mass: np.ndarray  # (B,) weight in the bin
    n_rows: np.ndarray  # (B,) effective rows: (sum w)^2 / sum w^2

    def frame(self) -> Any:
        """The bins as a pandas DataFrame: predicted, observed, mass and n_rows."""
        names = ("predicted", "observed", "mass", "n_rows")
        return need_pandas("for a table of bins").DataFrame({name: getattr(self, name) for name in names})

    def _content(self) -> list[Content]:
        columns = np.column_stack([self.predicted, self.observed, self.mass, self.n_rows])
        rows = [[Number(f"{x:.4g}") for x in row] for row in columns]
        header = ["predicted probability", "observed frequency", "weight", "effective rows"]
        return [Table("Bins of equal mass", header, rows)]

    def band(self, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
        """Wilson interval of the observed frequency (95 % for z = 1.96), taking rows as independent."""
        n, p = self.n_rows, self.observed
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def reliability(predicted: Any, happened: Any, *, n_bins: int = 10, sample_weight: Any = None) -> Reliability:
    """Bins of equal mass over the predicted probabilities of an event.

    A bin is a function of the probability alone, so ties stay together, the order of rows does not matter, and a
    weight of 2 is equivalent to repeating the row.
    """
    predicted = np.asarray(predicted, dtype=float)
    return _binned(predicted, np.asarray(happened, dtype=float), _weights(sample_weight, len(predicted)), n_bins)


def _binned(predicted: np.ndarray, happened: np.ndarray, weight: np.ndarray, n_bins: int) -> Reliability:
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins}")
    place = np.unique(predicted, return_inverse=True)[1]
    mass = np.bincount(place, weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    rank = np.minimum((middle * n_bins).astype(int), n_bins - 1)[place]
    rank = np.unique(rank[weight > 0], return_inverse=True)[1]  # empty bins vanish
    predicted, happened, weight = (a[weight > 0] for a in (predicted, happened, weight))
    total = np.bincount(rank, weight)
    return Reliability(
        predicted=np.bincount(rank, weight * predicted) / total,
        observed=np.clip(np.bincount(rank, weight * happened) / total, 0, 1),
        mass=total,
        n_rows=total**2 / np.bincount(rank, weight**2),
    )


def read_predictions(y: Any, proba: Any, classes: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Class index, probabilities and weight of every row, checked."""
    proba = np.asarray(proba, dtype=float)
    if proba.ndim != 2:
        raise ValueError(f"proba must have one row per row of y and one column per class; its shape is {proba.shape}")
    classes = classes_of(y) if classes is None else classes
    if proba.shape[1] != len(classes):
        raise ValueError(
            f"proba has {proba.shape[1]} column{'s' * (proba.shape[1] != 1)} for "
            f"{len(classes)} classes {[label_value(c) for c in classes]}; "
            "pass classes= in the order of the columns"
        )
    true = encode(y, classes)
    if len(true) != len(proba):
        raise ValueError(f"y has {len(true)} rows, proba has {len(proba)}")
    check_proba(proba)
    return true, proba, _weights(sample_weight, len(true))


def _read_labels(y: Any, predicted: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y, predicted = as_labels(y), as_labels(predicted)
    if len(y) != len(predicted):
        raise ValueError(f"y has {len(y)} rows, predicted has {len(predicted)}")
    return y, predicted, _weights(sample_weight, len(y))


def check_proba(proba: np.ndarray) -> None:
    """Refuse rows that are not probabilities."""
    bad = ~(np.isfinite(proba).all(axis=1) & (proba >= 0).all(axis=1) & (np.abs(proba.sum(axis=1) - 1) < 1e-4))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"every row of proba must be >= 0 and sum to 1; row {row} is {proba[row].tolist()}")


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    if n_rows == 0:
        raise ValueError("no rows to score")
    return row_weights(sample_weight, n_rows)


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    return float(np.dot(values, weight) / weight.sum())
