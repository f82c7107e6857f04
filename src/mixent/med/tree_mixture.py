"""Mixtures of trees by EM (Meila and Jordan), which initialize the mixtures of section 3.3.

Maximizes  sum_t w_t log sum_k p_k T_k(x_t) + ess sum_k E[log T_k]  + sum_k log p_k,  with the expectation over evenly
spread rows. The M-step computes the smoothed marginals of each component and its maximum spanning tree. Together they
are the exact maximum, so the objective never falls.
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

N_STARTS, START_SCALE = 4, 2.0
STOP = Stop(1e-5, 200)


@dataclass(frozen=True)
class TreeMixture:
    """The mixture of one class."""

    log_shares: Array  # (K,) log weights of the components
    tables: tuple[EdgeTables, ...]
    trees: tuple[SingleTree, ...]


@dataclass(frozen=True)
class EMStats(Stats):
    """Log-likelihood and responsibilities."""

    log_lik: float
    resp: Array  # (n, K); all rows of the class are in one block


@dataclass(frozen=True)
class TreeMixtureProblem(Problem[TreeMixture, TreeMixture, EMStats]):
    """EM on the cells of the rows of one class."""

    cells: Array  # (n, R)
    weight: Array  # (n,)
    columns: TreeColumns
    ess: float

    def maximum(self, resp: Array) -> TreeMixture:
        """The M-step for responsibilities (n, K)."""
        mass = self.weight @ resp + 1.0
        within = np.zeros(self.columns.layout.n)
        tables = tuple(fixed_tables(self.cells, self.weight * r, self.columns, self.ess, within) for r in resp.T)
        return TreeMixture(np.log(mass / mass.sum()), tables, tuple(t.likeliest for t in tables))

    def log_joint(self, params: TreeMixture, cells: Array) -> Array:
        """(n, K) log p_k T_k(x_t)."""
        parts = []
        for share, tables, tree in zip(params.log_shares, params.tables, params.trees):
            features = tables.features(cells, self.columns.layout, float(share))
            parts.append(features.offset + features.dot(tree.mean))
        return np.column_stack(parts)

    def prepare(self, params: TreeMixture) -> TreeMixture:
        return params

    def stats(self, ready: TreeMixture, block: NumberedRows) -> EMStats:  # type: ignore[override]
        joint = self.log_joint(ready, self.cells)
        return EMStats(float(self.weight @ log_sum_exp(joint, axis=1)), np.exp(log_softmax(joint, axis=1)))

    def objective(self, params: TreeMixture, total: EMStats) -> float:
        even = np.concatenate([np.full(size, 1.0 / size) for size in self.columns.layout.sizes])[None]
        prior = self.ess * float((self.log_joint(params, even)[0] - params.log_shares).sum())
        return total.log_lik + prior + float(params.log_shares.sum())

    def update(self, params: TreeMixture, total: EMStats, step: float) -> TreeMixture:
        return self.maximum(total.resp)


def fit_tree_mixture(
    cells: Array, weight: Array, columns: TreeColumns, ess: float, K: int, seed: int
) -> tuple[TreeMixture, Array]:
    """The mixture of highest objective among several starts, and its responsibilities (n, K)."""
    problem = TreeMixtureProblem(cells, weight, columns, ess)
    rng = np.random.default_rng(seed)
    source = Whole(weight)
    runs = []
    for _ in range(N_STARTS if K > 1 else 1):
        # random directions instead of random rows: repeating a row is then the same as a weight of 2
        start = problem.maximum(softmax(cells @ rng.normal(scale=START_SCALE, size=(cells.shape[1], K)), axis=1))
        runs.append(run(problem, source, start, stop=STOP, executor=Serial()))
    best = max(runs, key=lambda run: run.objective)
    return best.params, np.exp(log_softmax(problem.log_joint(best.params, cells), axis=1))
