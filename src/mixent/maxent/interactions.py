"""Ranking of pairs of columns by the gain of one block of constraints at the model of the main effects.

With the factors u (K,) and v (L,) of two columns, centered and rotated to their principal axes, the block of a pair has
the cells u_k v_l, which are nearly uncorrelated. At held-out posteriors p_tc, the residuals of a class are
r_tc = w_t (q_tc - p_tc), and a Newton step in the multipliers of the block with the diagonal of the Hessian gains

    1/2 sum_kl R_kl^2 / (H_kl + 1 / var),    R = sum_t r_t u_t v_t^T,    H = sum_t w_t p_t (1 - p_t) (u_t v_t^T)^2,

for each class. Noise alone gives the same with J = sum_t r_t^2 (u_t v_t^T)^2 for R^2, whether or not the probabilities
are calibrated: after J is subtracted from R^2, the expected gain of columns without an interaction is zero. A gain is
clear above the 1 - a/P quantile of what noise gives, where a is the expected number of errors among P pairs; the
distribution is taken to be a multiple of chi-squared with the same mean and variance. R, H and J of all pairs are three
matrix products per class.

Posteriors of training rows would not do: where the main effects separate the classes, their residuals vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from mixent.core.arrays import Array
from mixent.maxent.binning import knots_of
from mixent.maxent.features import Training
from mixent.maxent.terms import SEPARATOR, Binned, Coded, Knots, Latent, Moments, Term, pmf_cells

N_KNOTS = 5  # of a continuous column
MOST_VALUES = 64  # most values of a category that is paired
FALSE = 0.1  # expected number of pairs without an interaction among those with a clear gain
WIDEST = 1500  # most cells of all factors: the tables of all pairs have the square of this size


@dataclass(frozen=True)
class Factors:
    """The columns that can be paired, each as a pmf over categories or knots, which do not depend on the classes."""

    terms: tuple[Term, ...]

    @staticmethod
    def of(terms: Sequence[Term], rows: Training) -> Factors:
        """The factors of the columns of these terms; none if the table is too wide."""
        factors = [factor for term in terms if (factor := _factor(term, rows)) is not None]
        return Factors(tuple(factors) if sum(len(f.values) for f in factors) <= WIDEST else ())

    def axes(self, rows: Training) -> tuple[Array, np.ndarray]:
        """(D, n) principal axes of the cells of each factor, and (d,) the first axis of each.

        The cells are centered over the labelled rows with a value, and zero where it is missing.
        """
        labelled = rows.weights * rows.target.any(axis=1)
        parts = [_principal(pmf_cells(term, rows.table), labelled) for term in self.terms]
        return np.concatenate(parts), np.cumsum([0, *(len(part) for part in parts)])[:-1]


def _principal(cells: Array, weight: Array) -> Array:
    """(D, n) principal axes, without the direction of the sum, which is constant."""
    observed = cells.any(axis=0)
    weight = weight * observed
    total = max(float(weight.sum()), 1e-300)
    centered = (cells - (cells @ weight / total)[:, None]) * observed
    _, directions = np.linalg.eigh((centered * weight) @ centered.T)
    return directions.T[1:] @ centered


def _factor(term: Term, rows: Training) -> Term | None:
    """The factor of the column of a term; None if it cannot be paired."""
    if SEPARATOR in term.name:  # the name of a pair would be ambiguous
        return None
    if isinstance(term, Coded):
        return term if 2 <= len(term.values) <= MOST_VALUES else None
    if not isinstance(term, Latent | Binned | Moments):
        return None
    knots = knots_of(rows.table.X[:, term.column], rows.weights, N_KNOTS)
    return Knots(term.name, term.column, knots) if len(knots) > 1 else None


@dataclass(frozen=True)
class Gains:
    """Gains of all pairs of factors beyond what noise gives."""

    net: Array  # (d, d) expected gain in nats
    beyond: Array  # (d, d) gain minus the least that is clear, in nats

    def best(self, n: int, excluded: set[tuple[int, int]], clear: bool) -> list[tuple[int, int]]:
        """The n pairs (i < j) with the largest positive net gains, the largest first.

        `clear`: only those whose gain is clear.
        """
        first, second = np.triu_indices(len(self.net), 1)
        size = (self.beyond if clear else self.net)[first, second]
        order = np.argsort(-self.net[first, second], kind="stable")
        ranked = ((int(first[k]), int(second[k])) for k in order if size[k] > 0)
        return [pair for pair in ranked if pair not in excluded][:n]


def pair_gains(
    cells: Array,
    starts: np.ndarray,
    target: Array,
    post: Array,
    weight: Array,
    sets: Sequence[np.ndarray],
    variance: float,
) -> list[Gains]:
    """Gains of all pairs for each set of rows without one of the parts, and then for all rows.

    Parameters
    ----------
    cells : (D, n) array
        Axes of all factors.
    starts : (d,) array of int
        First axis of each factor.
    target : (C, n) array
        Weighted label distributions.
    post : (C, n) array
        Held-out posteriors.
    weight : (n,) array
    sets : list of arrays of row numbers
        The parts of the rows.
    variance : float
        Prior variance of the multipliers of a pair.
    """
    C, classes = len(target), range(len(target) if len(target) > 2 else 1)  # the residuals of two classes are opposite
    share = 0.5 * (1.0 if C == 2 else (C - 1) / C)  # the multipliers of C classes have C - 1 degrees of freedom
    spread = 2.0 * share**2 * (1.0 if C == 2 else C / (C - 1))  # the residuals of several classes are correlated
    gain, noise, scatter = (np.zeros((len(sets) + 1, len(starts), len(starts))) for _ in range(3))
    for c in classes:
        residual = target[c] - weight * post[c]
        curvature = weight * post[c] * (1.0 - post[c])
        by_part = [_tables(cells[:, rows], residual[rows], curvature[rows]) for rows in sets]
        total = [sum(tables) for tables in zip(*by_part)]
        for s, part in enumerate([*by_part, None]):
            R, J, H = total if part is None else (t - p for t, p in zip(total, part))
            H = np.maximum(H, 0.0) + 1.0 / variance
            gain[s] += share * _by_pair(R**2 / H, starts)
            noise[s] += share * _by_pair(J / H, starts)
            scatter[s] += spread * _by_pair((J / H) ** 2, starts)
    n_pairs = max(len(starts) * (len(starts) - 1) / 2, 2.0)
    return [_gains(*tables, n_pairs) for tables in zip(gain, noise, scatter)]


def _gains(gain: Array, noise: Array, scatter: Array, n_pairs: float) -> Gains:
    noise, scatter = np.maximum(noise, 1e-300), np.maximum(scatter, 1e-300)
    scale = scatter / (2.0 * noise)
    return Gains(gain - noise, gain - scale * chi2.isf(FALSE / n_pairs, noise / scale))


def _tables(cells: Array, residual: Array, curvature: Array) -> tuple[Array, Array, Array]:
    """(D, D) R, J and H of some rows."""
    squares = cells**2
    return (cells * residual) @ cells.T, (squares * residual**2) @ squares.T, (squares * curvature) @ squares.T


def _by_pair(table: Array, starts: np.ndarray) -> Array:
    """(d, d) sums of a table (D, D) over the cells of each pair."""
    return np.add.reduceat(np.add.reduceat(table, starts, axis=0), starts, axis=1)
