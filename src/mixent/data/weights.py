"""The door for sample weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from mixent.data.frames import unwrapped


def read_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Check sample weights.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), number or None
        A number stands for that weight in every row.
    n_rows : int

    Returns
    -------
    ndarray of float64, shape (n_rows,), or None
        None stays None.

    Examples
    --------
    >>> from mixent.data import read_weights
    >>> read_weights([1, 2], 2)
    array([1., 2.])
    """
    if sample_weight is None:
        return None
    sample_weight = unwrapped(sample_weight)
    _check_finite(sample_weight, n_rows)
    rows = np.broadcast_to(0.0, (n_rows, 1))
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float64)
    if np.any(weight < 0):
        i = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight must be >= 0; row {i} has {weight[i]:.3g}")
    if not np.any(weight):  # older scikit-learn lets this pass
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def row_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """As `read_weights`; 1 for every row where none are given."""
    weight = read_weights(sample_weight, n_rows)
    return np.ones(n_rows) if weight is None else weight


def _check_finite(sample_weight: Any, n_rows: int) -> None:
    """Name the row; scikit-learn's own message, which follows for other faults, names none."""
    if getattr(getattr(sample_weight, "dtype", None), "kind", "f") in "Mmc":
        raise ValueError(f"sample_weight must be numbers, one per row; got {sample_weight.dtype}")
    try:
        weight = _as_floats(sample_weight)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers, one per row; {error}") from error
    if weight.ndim and weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one value per row ({n_rows}); its shape is {weight.shape}")
    weight = np.atleast_1d(weight)  # a lone number stands for every row
    if not np.isfinite(weight).all():
        i = int(np.argmin(np.isfinite(weight)))
        raise ValueError(f"sample_weight must be finite; row {i} has {weight[i]}")


def _as_floats(sample_weight: Any) -> np.ndarray:
    """Missing values as NaN; older pandas converts its nullable types only on request."""
    if hasattr(sample_weight, "isna") and hasattr(sample_weight, "to_numpy"):
        return sample_weight.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.asarray(sample_weight, dtype=np.float64)
