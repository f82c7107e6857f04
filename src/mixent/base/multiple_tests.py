"""Several tests at once: p-values adjusted for their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def holm(p_values: ArrayLike) -> np.ndarray:
    """P-values adjusted for their number by Holm's step-down rule.

    The i-th smallest of m becomes max_{j <= i} min(1, (m - j + 1) p_(j)): rejecting those below alpha keeps the
    probability of any false rejection at most alpha, whatever the dependence of the tests.

    Parameters
    ----------
    p_values : (m,) array

    Returns
    -------
    (m,) array, in the order given

    Examples
    --------
    >>> from mixent.evaluate import holm
    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"p_values must be a list of numbers between 0 and 1; got {p_values!r}")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]), 1.0)
    return adjusted
