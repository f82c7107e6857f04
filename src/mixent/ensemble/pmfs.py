"""The output of a classifier: a pmf over its labels, (n, V); an abstention is a row of NaN."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array
from mixent.data import missing_mask

PMF = 1e-5  # tolerance for the sum of probabilities: some classifiers compute in single precision


def pmf(proba: Array, name: str) -> Array:
    """Checked and normalized probabilities; a row that is an abstention is NaN."""
    total = proba @ np.ones(proba.shape[1])
    if proba.size and proba.min() >= 0 and np.abs(total - 1).max() <= PMF:  # False if there is a NaN
        return proba / total[:, None]
    absent = np.isnan(proba).any(axis=1) | ~proba.any(axis=1)
    invalid = ~absent & ((proba < 0).any(axis=1) | ~(np.abs(proba.sum(axis=1) - 1) <= PMF))
    if invalid.any():
        row = int(np.flatnonzero(invalid)[0])
        raise ValueError(
            f"the probabilities of {name!r} must be >= 0 and sum to 1, or all be NaN (an abstention); row {row} has "
            f"{np.round(proba[row], 6).tolist()}"
        )
    out = proba / np.where(absent, 1.0, proba.sum(axis=1))[:, None]
    out[absent] = np.nan
    return out


def hardened(proba: Array) -> Array:
    """One-hot rows of the most probable label."""
    absent = np.isnan(proba).any(axis=1) | ~proba.any(axis=1)
    out = np.eye(proba.shape[1])[np.where(np.isnan(proba), 0.0, proba).argmax(axis=1)]
    out[absent] = np.nan
    return out


def one_hot(labels: np.ndarray, classes: np.ndarray) -> Array:
    """(n, V) one-hot rows; NaN where the label is missing or not in `classes`."""
    position = {label: j for j, label in enumerate(classes.tolist())}
    pairs = zip(labels.tolist(), missing_mask(labels))
    codes = np.array([-1 if missing else position.get(label, -1) for label, missing in pairs], dtype=int)
    out = np.eye(len(classes))[codes]
    out[codes < 0] = np.nan
    return out
