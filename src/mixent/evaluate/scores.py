"""Scores of class probabilities. All are losses: lower is better; logarithms are natural (nats)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.labels import as_labels, classes_of, encode, key

SMALLEST = 1e-15  # probabilities below this count as this in log_loss
METRICS = ("error", "balanced_error", "log_loss", "brier", "calibration")


def error_rate(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows (of the weight) whose predicted label is not `y`."""
    y, predicted = as_labels(y), as_labels(predicted)
    if len(y) != len(predicted):
        raise ValueError(f"y has {len(y)} rows, predicted has {len(predicted)}")
    return _mean(y != predicted, _weights(sample_weight, len(y)))


def balanced_error(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Mean over the classes in `y` of the error rate inside each class."""
    y, predicted = as_labels(y), as_labels(predicted)
    if len(y) != len(predicted):
        raise ValueError(f"y has {len(y)} rows, predicted has {len(predicted)}")
    weight = _weights(sample_weight, len(y))
    y, predicted, weight = y[weight > 0], predicted[weight > 0], weight[weight > 0]
    rows = [y == label for label in classes_of(y)]
    return float(np.mean([_mean(predicted[r] != y[r], weight[r]) for r in rows]))


def log_loss(y: Any, proba: Any, classes: Any = None, *, sample_weight: Any = None) -> float:
    """Mean of -log p(true class), in nats.

    `proba` (n, C) has its columns in the order of `classes` (the sorted labels of `y` unless given).
    A probability below 1e-15 counts as 1e-15, so that one impossible row costs 34.5 nats and not infinity.
    """
    true, proba, weight = _checked(y, proba, classes, sample_weight)
    chosen = proba[np.arange(len(true)), true]
    return _mean(-np.log(np.clip(chosen, SMALLEST, 1.0)), weight)


def brier(y: Any, proba: Any, classes: Any = None, *, sample_weight: Any = None) -> float:
    """Mean over rows of sum_c (p_c - [y = c])^2: 0 is perfect, 2 is certain and wrong.

    With two classes this is twice the binary Brier score.
    """
    true, proba, weight = _checked(y, proba, classes, sample_weight)
    miss = proba - np.eye(proba.shape[1])[true]
    return _mean(np.einsum("nc,nc->n", miss, miss), weight)


def calibration_error(y: Any, proba: Any, classes: Any = None, *, n_bins: int = 10, sample_weight: Any = None) -> float:
    """Expected calibration error of the most probable label.

    sum_b mass_b |share correct in b - mean confidence in b|, with `n_bins` bins of equal mass (weight) over the sorted
    confidences; rows with the same confidence share a bin. A perfectly calibrated model does not score 0 on a finite
    sample: with few rows per bin the value is mostly noise, so compare methods on the same rows only.
    """
    true, proba, weight = _checked(y, proba, classes, sample_weight)
    hit = proba.argmax(axis=1) == true
    bins = reliability(proba.max(axis=1), hit, n_bins=n_bins, sample_weight=weight)
    return float(np.sum(bins.mass * np.abs(bins.observed - bins.predicted)) / bins.mass.sum())


def score_table(y: Any, proba: Any, classes: Any, sample_weight: Any = None) -> dict[str, float]:
    """All scores of one set of predictions: error, balanced_error, log_loss, brier, calibration (see each function)."""
    true, proba, weight = _checked(y, proba, classes, sample_weight)
    predicted, order = proba.argmax(axis=1), np.arange(proba.shape[1])
    return {
        "error": error_rate(true, predicted, sample_weight=weight),
        "balanced_error": balanced_error(true, predicted, sample_weight=weight),
        "log_loss": log_loss(true, proba, order, sample_weight=weight),
        "brier": brier(true, proba, order, sample_weight=weight),
        "calibration": calibration_error(true, proba, order, sample_weight=weight),
    }


@dataclass(frozen=True)
class Reliability:
    """Predicted probability against observed frequency in bins of equal mass."""

    predicted: np.ndarray  # (B,) mean predicted probability
    observed: np.ndarray  # (B,) share of the mass where the event happened
    mass: np.ndarray  # (B,) weight in the bin
    n_rows: np.ndarray  # (B,) effective rows: (sum w)^2 / sum w^2

    def band(self, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
        """Wilson interval of the observed frequency (95 % for z = 1.96), taking rows as independent."""
        n, p = self.n_rows, self.observed
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def reliability(predicted: Any, happened: Any, *, n_bins: int = 10, sample_weight: Any = None) -> Reliability:
    """Bins of equal mass over the predicted probabilities of an event.

    A bin is a function of the probability alone, so ties stay together, the order of rows does not matter, and a row
    of weight two counts as the row twice.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1; got {n_bins}")
    predicted = np.asarray(predicted, dtype=float)
    weight = _weights(sample_weight, len(predicted))
    place = np.unique(predicted, return_inverse=True)[1]
    mass = np.bincount(place, weight)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    rank = np.minimum((middle * n_bins).astype(int), n_bins - 1)[place]
    rank = np.unique(rank[weight > 0], return_inverse=True)[1]  # empty bins vanish
    predicted, happened, weight = (np.asarray(a, dtype=float)[weight > 0] for a in (predicted, happened, weight))
    total = np.bincount(rank, weight)
    return Reliability(
        predicted=np.bincount(rank, weight * predicted) / total,
        observed=np.clip(np.bincount(rank, weight * happened) / total, 0, 1),
        mass=total,
        n_rows=total**2 / np.bincount(rank, weight**2),
    )


def _checked(y: Any, proba: Any, classes: Any, sample_weight: Any) -> tuple[np.ndarray, ...]:
    """Class index, probabilities and weight of every row, checked."""
    proba = np.asarray(proba, dtype=float)
    if proba.ndim != 2:
        raise ValueError(f"proba must have one row per row of y and one column per class; its shape is {proba.shape}")
    classes = classes_of(y) if classes is None else classes
    if proba.shape[1] != len(classes):
        raise ValueError(
            f"proba has {proba.shape[1]} column{'s' * (proba.shape[1] != 1)} for "
            f"{len(classes)} classes {[key(c) for c in classes]}; "
            "pass classes= in the order of the columns"
        )
    true = encode(y, classes)
    if len(true) != len(proba):
        raise ValueError(f"y has {len(true)} rows, proba has {len(proba)}")
    bad = ~(np.isfinite(proba).all(axis=1) & (proba >= 0).all(axis=1) & (np.abs(proba.sum(axis=1) - 1) < 1e-4))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"every row of proba must be >= 0 and sum to 1; row {row} is {proba[row].tolist()}")
    return true, proba, _weights(sample_weight, len(true))


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    if n_rows == 0:
        raise ValueError("there is no row to score")
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one value per row ({n_rows}); its shape is {weight.shape}")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight must be finite and >= 0; row {row} has {weight[row]:.3g}")
    if not weight.sum() > 0:
        raise ValueError("sample_weight is zero on every row; there is nothing to score")
    return weight


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    return float(np.dot(values, weight) / weight.sum())
