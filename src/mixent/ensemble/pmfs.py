"""The output of a classifier: a pmf over its labels, (n, V); an abstention is a row of NaN."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array
from mixent.data import missing_mask

PMF = 1e-5  # by which probabilities may miss a sum of one: some classifiers reckon in single precision


def pmf(proba: Array, name: str) -> Array:
    """Checked, with NaN throughout a row that is an abstention."""
    total = proba @ np.ones(proba.shape[1])
    if proba.size and proba.min() >= 0 and np.abs(total - 1).max() <= PMF:  # untrue where there is a NaN
        return proba / total[:, None]
    absent = np.isnan(proba).any(axis=1) | ~proba.any(axis=1)
    wrong = ~absent & ((proba < 0).any(axis=1) | ~(np.abs(proba.sum(axis=1) - 1) <= PMF))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the probabilities of {name!r} must be >= 0 and sum to 1 (a row of NaN abstains); row {row} has "
            f"{np.round(proba[row], 6).tolist()}"
        )
    out = proba / np.where(absent, 1.0, proba.sum(axis=1))[:, None]
    out[absent] = np.nan
    return out


def hardened(proba: Array) -> Array:
    """One-hot of the most probable label."""
    absent = np.isnan(proba).any(axis=1) | ~proba.any(axis=1)
    out = np.eye(proba.shape[1])[np.where(np.isnan(proba), 0.0, proba).argmax(axis=1)]
    out[absent] = np.nan
    return out


def one_hot(labels: np.ndarray, alphabet: np.ndarray) -> Array:
    """(n, V); NaN where there is no label, or one of no known name."""
    places = {label: j for j, label in enumerate(alphabet.tolist())}
    absent = missing_mask(labels)
    codes = np.array([-1 if gone else places.get(label, -1) for label, gone in zip(labels.tolist(), absent)], dtype=int)
    out = np.eye(len(alphabet))[codes]
    out[codes < 0] = np.nan
    return out
