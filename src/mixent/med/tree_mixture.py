"""Mixtures of trees by EM: each component a tree of its own (Meila and Jordan), the start of section 3.3's mixtures.

Maximizes  sum_t w_t log sum_k p_k T_k(x_t) + ess sum_k E[log T_k]  + sum_k log p_k,  the middle term over rows spread
evenly: the M-step takes the component's smoothed marginals and its heaviest spanning tree, which together are the
exact maximum, so this value never falls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax, softmax

from mixent.core.arrays import Array, log_sum_exp
from mixent.core.blocks import NumberedRows, Whole
from mixent.core.driver import Problem, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import Stats
from mixent.med.families import SingleTree
from mixent.med.tree_columns import TreeColumns
from mixent.med.tree_tables import EdgeTables, fixed_tables

STARTS, SPREAD = 4, 2.0
PASSES = Stop(1e-5, 200)


@dataclass(frozen=True)
class TreeMixture:
    """Components of one class."""

    log_shares: Array  # (K,)
    tables: tuple[EdgeTables, ...]
    trees: tuple[SingleTree, ...]


@dataclass(frozen=True)
class Shares(Stats):
    log_lik: float
    resp: Array  # (n, K): there is one block, all rows of the class


@dataclass(frozen=True)
class TreeMixtureProblem(Problem[TreeMixture, TreeMixture, Shares]):
    """EM on the cells of one class's rows."""

    cells: Array  # (n, R)
    weight: Array  # (n,)
    columns: TreeColumns
    ess: float

    def maximum(self, resp: Array) -> TreeMixture:
        """The M-step, (n, K)."""
        mass = self.weight @ resp + 1.0
        none = np.zeros(self.columns.layout.n)
        tables = tuple(fixed_tables(self.cells, self.weight * r, self.columns, self.ess, none) for r in resp.T)
        return TreeMixture(np.log(mass / mass.sum()), tables, tuple(one.likeliest for one in tables))

    def log_joint(self, params: TreeMixture, cells: Array) -> Array:
        """(n, K)."""
        parts = []
        for share, one, tree in zip(params.log_shares, params.tables, params.trees):
            features = one.features(cells, self.columns.layout, float(share))
            parts.append(features.offset + features.dot(tree.mean))
        return np.column_stack(parts)

    def prepare(self, params: TreeMixture) -> TreeMixture:
        return params

    def stats(self, ready: TreeMixture, block: NumberedRows) -> Shares:  # type: ignore[override]
        joint = self.log_joint(ready, self.cells)
        return Shares(float(self.weight @ log_sum_exp(joint, axis=1)), np.exp(log_softmax(joint, axis=1)))

    def objective(self, params: TreeMixture, total: Shares) -> float:
        even = np.concatenate([np.full(size, 1.0 / size) for size in self.columns.layout.sizes])[None]
        prior = self.ess * float((self.log_joint(params, even)[0] - params.log_shares).sum())
        return total.log_lik + prior + float(params.log_shares.sum())

    def update(self, params: TreeMixture, total: Shares, step: float) -> TreeMixture:
        return self.maximum(total.resp)


def fit_tree_mixture(
    cells: Array, weight: Array, columns: TreeColumns, ess: float, K: int, seed: int
) -> tuple[TreeMixture, Array]:
    """The best of some starts, and how much each row (n, K) belongs to each component."""
    problem = TreeMixtureProblem(cells, weight, columns, ess)
    rng = np.random.default_rng(seed)
    source = Whole(weight)
    runs = []
    for _ in range(STARTS if K > 1 else 1):
        # directions are drawn, not rows: a row twice starts as the row with weight two
        start = problem.maximum(softmax(cells @ rng.normal(scale=SPREAD, size=(cells.shape[1], K)), axis=1))
        runs.append(run(problem, source, start, stop=PASSES, executor=Serial()))
    best = max(runs, key=lambda found: found.objective)
    return best.params, np.exp(log_softmax(problem.log_joint(best.params, cells), axis=1))
