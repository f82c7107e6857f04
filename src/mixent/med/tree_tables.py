"""Tables of pairwise marginals (001, equations 27 and 28), and the prior counts of unknown tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.med.families import CellLayout, SingleTree, TreeTables
from mixent.med.features import CountFeatures, EdgeFeatures
from mixent.med.spanning_trees import SpanningTrees, packed
from mixent.med.tree_columns import TreeColumns

PRIOR_ROWS = 3.0  # strength of the prior of a numeric column, as in a mixture
MIN_VARIANCE = 1e-6  # of a standardized number
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class EdgeTables:
    """The coefficients of w_0 and w_uv of one class, in terms of the cells of a row."""

    log_marginals: Array  # (R,) log T_v(x_v)
    log_ratios: Array  # (R, R) log T_uv(x_u, x_v) / T_u(x_u) T_v(x_v)
    gains: Array  # (E,) increase of the log-likelihood, rows of the prior included, by each edge: N I_uv
    rows: Array  # (E,) N, the number of rows with a value in both columns, those of the prior included

    def features(self, cells: Array, layout: CellLayout, log_share: float = 0.0) -> EdgeFeatures:
        """The features of rows; `log_share` is added to the log-probability."""
        return EdgeFeatures(cells, self.log_ratios, self.log_marginals, layout, cells @ self.log_marginals + log_share)

    @property
    def likeliest(self) -> SingleTree:
        """The tree of highest likelihood (Chow and Liu)."""
        return best_tree(self.gains)


def best_tree(gains: Array) -> SingleTree:
    """The tree with the largest sum of gains (E,)."""
    trees = SpanningTrees(gains)
    edges = np.zeros((trees.n, trees.n))
    edges[trees.best[:, 0], trees.best[:, 1]] = edges[trees.best[:, 1], trees.best[:, 0]] = 1.0
    return SingleTree(packed(edges))


def fixed_tables(cells: Array, weight: Array, columns: TreeColumns, ess: float, within: Array) -> EdgeTables:
    """Marginals of rows with these weights, smoothed by `ess` rows that are spread evenly over every table.

    A pair with a missing value is not counted. Numbers with powers as cells have Gaussian marginals, also given a
    category, with a prior of `PRIOR_ROWS` uncorrelated rows with the variances `within` (n,).
    """
    layout = columns.layout
    counts = (cells.T * weight) @ cells
    size = np.repeat(layout.sizes, layout.sizes).astype(float)
    discrete = np.repeat(~np.isin(np.arange(layout.n), columns.powers), layout.sizes)
    smooth = ess / np.outer(size, size) * (discrete[:, None] & discrete & layout.different)
    pairs = np.where(layout.different, counts, 0.0) + smooth
    single = weight @ cells + ess / size
    with np.errstate(divide="ignore", invalid="ignore"):  # the cells of powers are replaced below
        log_marginals = np.log(single) - np.log(layout.spread(layout.by_column(single)))
        log_pairs = np.log(pairs) - np.log(layout.spread_pairs(layout.by_pair(pairs)))
        log_ratios = log_pairs - log_marginals[:, None] - log_marginals
    both_discrete = discrete[:, None] & discrete & layout.different
    log_marginals, log_ratios = np.where(discrete, log_marginals, 0.0), np.where(both_discrete, log_ratios, 0.0)
    if len(columns.powers):
        _add_gaussians(log_marginals, log_ratios, counts, columns, within)
    presence = np.concatenate([_presence(v, columns) for v in range(layout.n)])
    rows = layout.by_pair(counts * np.outer(presence, presence) + smooth)
    gains = layout.by_pair(log_ratios * (counts + smooth))
    return EdgeTables(log_marginals, log_ratios, packed(gains), packed(rows))


def _presence(v: int, columns: TreeColumns) -> Array:
    """Weights with which the cells of a column add up to 1 unless its value is missing."""
    size = columns.layout.sizes[v]
    return np.eye(size)[0] if v in columns.powers else np.ones(size)


def _add_gaussians(log_marginals: Array, log_ratios: Array, counts: Array, columns: TreeColumns, within: Array) -> None:
    """Write the Gaussian marginals of numeric columns into the arrays."""
    layout = columns.layout
    starts = layout.starts[columns.powers]
    n = counts[starts, starts]
    prior_var = np.maximum(within[columns.powers], MIN_VARIANCE)
    mean = counts[starts, starts + 1] / (n + PRIOR_ROWS)  # the mean of the prior is that of all rows, 0
    var = (counts[starts, starts + 2] + PRIOR_ROWS * prior_var) / (n + PRIOR_ROWS) - mean**2
    marginal = _log_normal(mean, var)
    log_marginals[starts[:, None] + np.arange(3)] = marginal
    rho = _correlations(counts, starts, mean, var)
    deviation = np.stack([-mean, np.ones_like(mean), np.zeros_like(mean)], axis=1) / np.sqrt(var)[:, None]
    square = np.stack([mean**2, -2 * mean, np.ones_like(mean)], axis=1) / var[:, None]
    for a, u in enumerate(columns.powers):
        block = slice(starts[a], starts[a] + 3)
        for v in range(layout.n):
            span = slice(layout.starts[v], layout.starts[v] + layout.sizes[v])
            if v in columns.powers:
                b = int(np.searchsorted(columns.powers, v))
                if u != v:
                    log_ratios[block, span] = _log_ratio(rho[a, b], deviation[a], deviation[b], square[a], square[b])
            else:
                log_ratio = _log_conditional(counts[span, block], mean[a], var[a]) - marginal[a]
                log_ratios[span, block], log_ratios[block, span] = log_ratio, log_ratio.T


def _log_normal(mean: Array, var: Array) -> Array:
    """(..., 3) coefficients of log N(z; mean, var) as a polynomial in z."""
    return np.stack([-0.5 * (np.log(var) + LOG_2PI + mean**2 / var), mean / var, -0.5 / var], axis=-1)


def _correlations(counts: Array, starts: np.ndarray, mean: Array, var: Array) -> Array:
    """(m, m) correlations from the rows that have both values and `PRIOR_ROWS` uncorrelated rows."""
    n = counts[np.ix_(starts, starts)] + PRIOR_ROWS
    pair_mean = (counts[np.ix_(starts + 1, starts)] + PRIOR_ROWS * mean[:, None]) / n  # of u, where v is not missing
    pair_var = (counts[np.ix_(starts + 2, starts)] + PRIOR_ROWS * (var + mean**2)[:, None]) / n - pair_mean**2
    cov = (counts[np.ix_(starts + 1, starts + 1)] + PRIOR_ROWS * np.outer(mean, mean)) / n - pair_mean * pair_mean.T
    rho = cov / np.sqrt(np.maximum(pair_var * pair_var.T, MIN_VARIANCE**2))
    return np.clip(rho, -1 + 1e-9, 1 - 1e-9)


def _log_ratio(rho: float, deviation_u: Array, deviation_v: Array, square_u: Array, square_v: Array) -> Array:
    """(3, 3) log of the bivariate normal density over the product of its marginals, in powers of both numbers."""
    constant = np.array([1.0, 0.0, 0.0])
    unexplained = 1.0 - rho**2
    out = -0.5 * np.log(unexplained) * np.outer(constant, constant)
    out += rho / unexplained * np.outer(deviation_u, deviation_v)
    return out - 0.5 * rho**2 / unexplained * (np.outer(square_u, constant) + np.outer(constant, square_v))


def _log_conditional(counts: Array, mean: float, var: float) -> Array:
    """(r, 3) log-density of a number given each category; counts (r, 3), prior of `PRIOR_ROWS` rows with mean, var."""
    n = counts[:, 0] + PRIOR_ROWS
    m = (counts[:, 1] + PRIOR_ROWS * mean) / n
    v = (counts[:, 2] + PRIOR_ROWS * (var + mean**2)) / n - m**2
    return _log_normal(m, np.maximum(v, MIN_VARIANCE))


def counted_tables(cells: Array, weight: Array, layout: CellLayout, ess: float, structure: str) -> TreeTables:
    """Dirichlet tables from weighted rows and `ess` evenly spread ones, which are the prior of discrimination."""
    size = np.repeat(layout.sizes, layout.sizes).astype(float)
    spread = np.concatenate([[1.0], 1.0 / size])
    T = CountFeatures.of(cells).weighted_sum(weight) + ess * np.outer(spread, spread).ravel()
    tables = TreeTables(T, layout, np.zeros(layout.n * (layout.n - 1) // 2))
    return tables.uniform if structure == "uniform" else tables
