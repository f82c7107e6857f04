"""Tables of pairwise marginals (001, equations 27 and 28): known ones, and the counts of unknown ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.med.families import CellLayout, SingleTree, TreeTables
from mixent.med.features import CountFeatures, EdgeFeatures
from mixent.med.spanning_trees import SpanningTrees, packed
from mixent.med.tree_columns import TreeColumns

ROWS = 3.0  # that a number's prior counts for, as in a mixture
LEAST = 1e-6  # variance of a standardized number
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class EdgeTables:
    """w_0 and w_uv of one class, as forms in a row's cells."""

    alone: Array  # (R,) log T_v(x_v)
    table: Array  # (R, R) log T_uv(x_u, x_v) / T_u(x_u) T_v(x_v)
    gains: Array  # (E,) what each edge adds to the log-likelihood of the class's rows and the prior's: N I_uv
    rows: Array  # (E,) rows, and the prior's, that have both columns

    def features(self, cells: Array, layout: CellLayout, log_share: float = 0.0) -> EdgeFeatures:
        """Some rows; `log_share` is added to the log-probability."""
        return EdgeFeatures(cells, self.table, self.alone, layout, cells @ self.alone + log_share)

    @property
    def likeliest(self) -> SingleTree:
        """Chow and Liu: the tree of highest likelihood."""
        return best_tree(self.gains)


def best_tree(gains: Array) -> SingleTree:
    """Of the highest sum of gains (E,)."""
    trees = SpanningTrees(gains)
    edges = np.zeros((trees.n, trees.n))
    edges[trees.best[:, 0], trees.best[:, 1]] = edges[trees.best[:, 1], trees.best[:, 0]] = 1.0
    return SingleTree(packed(edges))


def fixed_tables(cells: Array, weight: Array, columns: TreeColumns, ess: float, within: Array) -> EdgeTables:
    """Marginals of rows with these weights, smoothed by `ess` rows spread evenly over every table.

    Pairs that are not both seen count nothing. Numbers as powers have Gaussian marginals: of `ROWS` prior rows with
    the variances `within` (n,) and no correlation; given a category they are Gaussian too.
    """
    layout = columns.layout
    counts = (cells.T * weight) @ cells
    size = np.repeat(layout.sizes, layout.sizes).astype(float)
    coded = np.repeat(~np.isin(np.arange(layout.n), columns.powers), layout.sizes)
    smooth = ess / np.outer(size, size) * (coded[:, None] & coded & layout.different)
    pairs = np.where(layout.different, counts, 0.0) + smooth
    ones = weight @ cells + ess / size
    with np.errstate(divide="ignore", invalid="ignore"):  # cells of powers come out as they may: see below
        alone = np.log(ones) - np.log(layout.spread(layout.by_column(ones)))
        table = np.log(pairs) - np.log(layout.spread_pairs(layout.by_pair(pairs))) - alone[:, None] - alone
    known = coded[:, None] & coded & layout.different
    alone, table = np.where(coded, alone, 0.0), np.where(known, table, 0.0)
    if len(columns.powers):
        _add_gaussians(alone, table, counts, columns, within)
    there = np.concatenate([_presence(v, columns) for v in range(layout.n)])
    rows = layout.by_pair(counts * np.outer(there, there) + smooth)
    return EdgeTables(alone, table, packed(layout.by_pair(table * (counts + smooth))), packed(rows))


def _presence(v: int, columns: TreeColumns) -> Array:
    """Weights of a column's cells that add up to one where it is seen."""
    size = columns.layout.sizes[v]
    return np.eye(size)[0] if v in columns.powers else np.ones(size)


def _add_gaussians(alone: Array, table: Array, counts: Array, columns: TreeColumns, within: Array) -> None:
    """Put the marginals of numbers in their places."""
    layout = columns.layout
    starts = layout.starts[columns.powers]
    n = counts[starts, starts]
    prior = np.maximum(within[columns.powers], LEAST)
    mean = counts[starts, starts + 1] / (n + ROWS)  # the prior's mean is 0, that of all rows
    var = (counts[starts, starts + 2] + ROWS * prior) / (n + ROWS) - mean**2
    own = _log_normal(mean, var)
    alone[starts[:, None] + np.arange(3)] = own
    rho = _correlations(counts, starts, mean, var)
    away = np.stack([-mean, np.ones_like(mean), np.zeros_like(mean)], axis=1) / np.sqrt(var)[:, None]
    square = np.stack([mean**2, -2 * mean, np.ones_like(mean)], axis=1) / var[:, None]
    for a, u in enumerate(columns.powers):
        block = slice(starts[a], starts[a] + 3)
        for v in range(layout.n):
            span = slice(layout.starts[v], layout.starts[v] + layout.sizes[v])
            if v in columns.powers:
                b = int(np.searchsorted(columns.powers, v))
                if u != v:
                    table[block, span] = _pair(rho[a, b], away[a], away[b], square[a], square[b])
            else:
                given = _given(counts[span, block], mean[a], var[a]) - own[a]
                table[span, block], table[block, span] = given, given.T


def _log_normal(mean: Array, var: Array) -> Array:
    """(..., 3) log N(z; mean, var) as a polynomial in z."""
    return np.stack([-0.5 * (np.log(var) + LOG_2PI + mean**2 / var), mean / var, -0.5 / var], axis=-1)


def _correlations(counts: Array, starts: np.ndarray, mean: Array, var: Array) -> Array:
    """(m, m) of rows that have both, and `ROWS` more that have none."""
    n = counts[np.ix_(starts, starts)] + ROWS
    first = (counts[np.ix_(starts + 1, starts)] + ROWS * mean[:, None]) / n  # of u, where v is seen
    second = (counts[np.ix_(starts + 2, starts)] + ROWS * (var + mean**2)[:, None]) / n - first**2
    cov = (counts[np.ix_(starts + 1, starts + 1)] + ROWS * np.outer(mean, mean)) / n - first * first.T
    rho = cov / np.sqrt(np.maximum(second * second.T, LEAST**2))
    return np.clip(rho, -1 + 1e-9, 1 - 1e-9)


def _pair(rho: float, away_u: Array, away_v: Array, square_u: Array, square_v: Array) -> Array:
    """(3, 3) log of the bivariate normal over the product of its marginals, as a form in powers."""
    one = np.array([1.0, 0.0, 0.0])
    left = 1.0 - rho**2
    out = -0.5 * np.log(left) * np.outer(one, one) + rho / left * np.outer(away_u, away_v)
    return out - 0.5 * rho**2 / left * (np.outer(square_u, one) + np.outer(one, square_v))


def _given(counts: Array, mean: float, var: float) -> Array:
    """(r, 3) log N(z; category's mean and variance), `ROWS` rows of the class's own added; counts (r, 3)."""
    n = counts[:, 0] + ROWS
    m = (counts[:, 1] + ROWS * mean) / n
    v = (counts[:, 2] + ROWS * (var + mean**2)) / n - m**2
    return _log_normal(m, np.maximum(v, LEAST))


def counted_tables(cells: Array, weight: Array, layout: CellLayout, ess: float, structure: str) -> TreeTables:
    """Dirichlet tables of rows with these weights and `ess` rows spread evenly: the prior of discrimination."""
    size = np.repeat(layout.sizes, layout.sizes).astype(float)
    spread = np.concatenate([[1.0], 1.0 / size])
    T = CountFeatures.of(cells).weighted_sum(weight) + ess * np.outer(spread, spread).ravel()
    tables = TreeTables(T, layout, np.zeros(layout.n * (layout.n - 1) // 2))
    return tables.uniform if structure == "uniform" else tables
