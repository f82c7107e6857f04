"""Several tests at once: p-values adjusted for their number, and groups without significant differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

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


def adjusted_p_values(order: Sequence[str], p_value: Callable[[str, str], float]) -> np.ndarray:
    """(k, k) p-values of all pairs, adjusted by Holm for their number; 1 on the diagonal.

    Parameters
    ----------
    order : k names
    p_value : callable(name, name) -> float
        Of one pair. NaN, as for one fold or equal scores, counts as 1.
    """
    out = np.ones((len(order), len(order)))
    pairs = list(combinations(range(len(order)), 2))
    if pairs:
        p = np.array([p_value(order[i], order[j]) for i, j in pairs], dtype=float)
        i, j = np.transpose(pairs)
        out[i, j] = out[j, i] = holm(np.where(np.isnan(p), 1.0, p))
    return out


def homogeneous_groups(adjusted: np.ndarray, alpha: float = 0.05) -> list[list[int]]:
    """Maximal runs of two or more places without a significant difference between any two of them.

    Parameters
    ----------
    adjusted : (k, k) array
        P-values of methods in the order of their means, see `adjusted_p_values`.
    alpha : float
    """
    runs: list[list[int]] = []
    for start in range(len(adjusted)):
        end = start
        while end + 1 < len(adjusted) and (adjusted[start : end + 1, end + 1] >= alpha).all():
            end += 1
        if end > start and not (runs and runs[-1][-1] >= end):
            runs.append(list(range(start, end + 1)))
    return runs
