"""Log-ratios of tree-structured models with distributions over their structures and, optionally, over their tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, xlogy

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.med.constraints import Constraints, PairConstraints, contrasts, multipliers_by_pair
from mixent.med.exponential_family import JointDistribution
from mixent.med.exponential_family_solving import solve
from mixent.med.families import Distribution, SingleTree, TreeDistribution
from mixent.med.features import CountFeatures, RowFeatures
from mixent.med.latent import LatentProblem, alternate_steps
from mixent.med.margins import Fixed, MarginPrior
from mixent.med.model_training_sets import ModelDiscriminant, ModelTrainingSet, members, prior_bias, solve_near
from mixent.med.solving import Search, Solution
from mixent.med.spanning_trees import unpacked
from mixent.med.training_sets import Subset, in_batches
from mixent.med.tree_columns import TreeColumns
from mixent.med.tree_mixture import fit_tree_mixture
from mixent.med.tree_tables import EdgeTables, best_tree, counted_tables, fixed_tables
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class TreeModel(Short):
    """The columns, components and known tables, which with the distributions give the scores of rows."""

    columns: TreeColumns
    class_of: np.ndarray  # (S,) class of each output; a class has one output per component
    log_shares: Array  # (S,) log weight of each component within its class
    tables: tuple[EdgeTables, ...] | None  # of each output; None: they have a distribution

    @property
    def n_classes(self) -> int:
        return int(self.class_of.max()) + 1

    @property
    def is_mixture(self) -> bool:
        return len(self.class_of) > self.n_classes

    @property
    def contrast(self) -> Array:
        """(S, C - 1) coefficients of the bias in each output."""
        return contrasts(self.n_classes)[self.class_of]

    def features(self, cells: Array) -> tuple[RowFeatures, ...]:
        """The features of rows for each output."""
        if self.tables is None:
            counts = CountFeatures.of(cells)
            return tuple(counts.add_offset(float(share)) for share in self.log_shares)
        layout = self.columns.layout
        return tuple(
            tables.features(cells, layout, float(share)) for tables, share in zip(self.tables, self.log_shares)
        )

    def outputs(self, joint: JointDistribution, cells: Array) -> Array:
        """(n, S) expected log-probabilities, plus the bias."""
        parts = joint.parts * len(self.class_of) if len(joint.parts) == 1 else joint.parts
        log_probs = [phi.dot(part.mean) + phi.offset for phi, part in zip(self.features(cells), parts)]
        return np.column_stack(log_probs) + self.contrast @ joint.bias

    def terms(self, joint: JointDistribution, table: Table) -> Array:
        """(n, columns + edges, C) terms of the columns alone and of the edges u < v, whose sum is the score of a class.

        For a single tree, or distribution over trees, of each class with fixed tables.
        """
        assert self.tables is not None and not self.is_mixture
        cells, layout = self.columns(table), self.columns.layout
        parts = joint.parts * self.n_classes if len(joint.parts) == 1 else joint.parts
        first = np.triu_indices(layout.n, 1)[0]
        terms = np.empty((len(cells), layout.n + len(first), self.n_classes))
        for c, (tables, part) in enumerate(zip(self.tables, parts)):
            terms[:, : layout.n, c] = np.add.reduceat(cells * tables.log_marginals, layout.starts, axis=1)
            shares = unpacked(part.mean, layout.n)
            for a in range(layout.n - 1):
                span = slice(layout.starts[a], layout.starts[a] + layout.sizes[a])
                by_cell = (cells[:, span] @ tables.log_ratios[span]) * cells
                terms[:, layout.n + np.flatnonzero(first == a), c] = (
                    np.add.reduceat(by_cell, layout.starts, axis=1)[:, a + 1 :] * shares[a, a + 1 :]
                )
        return terms

    def scores(self, joint: JointDistribution, table: Table) -> Array:
        """(n, C) scores of the rows of a table."""
        return in_batches(table, lambda rows: self.merged(self.outputs(joint, self.columns(rows))))

    def merged(self, outputs: Array) -> Array:
        """(n, C) log-sum-exp of the outputs (n, S) over the components of each class."""
        if not self.is_mixture:
            return outputs
        return np.column_stack([logsumexp(outputs[:, self.class_of == s], axis=1) for s in range(self.n_classes)])


class TreeDiscriminant(ModelDiscriminant):
    """Log-ratios of trees on some rows."""

    def __init__(self, model: TreeModel, cells: Array, prior: JointDistribution, bias_variance: float) -> None:
        self.model, self.cells, self.prior, self.bias_variance = model, cells, prior, bias_variance
        self.features, self.contrast = model.features(cells), model.contrast
        shared = len(prior.parts) == 1
        self.family_of = tuple(0 if shared else s for s in range(len(model.class_of)))
        self.generative = all(isinstance(part, SingleTree) for part in prior.parts)
        self.convex = not model.is_mixture

    @cached_property
    def prior_scores(self) -> Array:
        return self.model.merged(self.model.outputs(self.prior, self.cells))

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if self.model.is_mixture and not self.generative:
            return self._solve_mixture(constraints, margin, search, start)
        none = Constraints.none(constraints, len(self.model.class_of))
        on_outputs = none if self.generative else Constraints.between_classes(constraints)
        solution = solve_near(self.problem(on_outputs, margin), search, start)
        return replace(solution, scores=self.model.merged(solution.scores))

    # --- mixtures -----------------------------------------------------------------------------------------------

    def _solve_mixture(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any) -> Solution:
        """Each row has a margin between its class, as a mixture, and every component of the other classes.

        A fixed margin is one between mixtures: a component k of another class has the margin of its class minus
        log r_k for any shares r_k of the components of this class; those of the solution make both the same.
        """
        label, model = constraints.label, self.model
        inner = replace(search, gap=min(search.gap, 1e-9), observers=())
        fixed = isinstance(margin, Fixed)

        def solve_given(hidden: tuple[Array, Array], previous: Solution | None) -> Solution:
            own, shares = hidden
            problem = self.problem(self._mixture_constraints(own, label, constraints, shares), margin)
            return solve(problem, inner, previous.state if previous is not None else start)

        def infer(joint: JointDistribution) -> tuple[Array, Array]:
            shares = self._log_shares(joint)
            return self._responsibilities(joint, label), shares if fixed else np.zeros_like(shares)

        own, shares = infer(self.prior if start is None else start)
        if fixed:  # at first no share is small, whatever the prior
            equal = -np.log(np.bincount(model.class_of))[model.class_of]
            shares = np.logaddexp(shares, equal) - np.log(2.0)
        problem = LatentProblem(solve_given, lambda solution: infer(solution.state))
        run = alternate_steps(problem, (own, shares), constraints.weight, search, 10.0 * search.gap)
        solution = run.params.solution
        lam = self._by_pair(solution.multipliers, label)
        return replace(solution, run=run, multipliers=lam, scores=model.merged(solution.scores))

    def _responsibilities(self, joint: JointDistribution, label: np.ndarray) -> Array:
        """(n, S) Q_t, the distribution over the components of the row's class (49)."""
        outputs = self.model.outputs(joint, self.cells)
        own_class = self.model.class_of == label[:, None]
        return np.exp(log_softmax(np.where(own_class, outputs, -np.inf), axis=1))

    def _log_shares(self, joint: JointDistribution) -> Array:
        """(n, S) logarithms of the distributions over the components of every class."""
        outputs = self.model.outputs(joint, self.cells)
        return outputs - self.model.merged(outputs)[:, self.model.class_of]

    def _mixture_constraints(
        self, hidden: Array, label: np.ndarray, constraints: PairConstraints, log_shares: Array | float = 0.0
    ) -> Constraints:
        rivals = (self.model.class_of != label[:, None]) & np.asarray(constraints.imposed.any(axis=1))[:, None]
        entropy = -xlogy(hidden, hidden).sum(axis=1)
        offset = np.tile(entropy[:, None], rivals.shape[1]) + log_shares
        return Constraints.against_rivals(hidden, rivals, constraints.weight, offset)

    def _by_pair(self, lam: Array, label: np.ndarray) -> Array:
        """(n, pairs) sums of the multipliers (n, S) of a row over the components of each other class."""
        against = [lam[:, self.model.class_of == s].sum(axis=1) for s in range(self.model.n_classes)]
        return multipliers_by_pair(np.column_stack(against), label)


@dataclass(frozen=True)
class TreeTrainingSet(ModelTrainingSet):
    """Rows as a table, for the trees of each class."""

    tables: str
    objective: str
    sharing: str
    structure_prior: str
    continuous: str
    n_trees: int
    ess: float
    seed: int

    def build(self, subset: Subset, bias_variance: float) -> TreeDiscriminant:
        member = members(subset)
        table = self.table.take(subset.rows)
        fill = self.tables == "integrated" or self.n_trees > 1
        columns = TreeColumns.of(table, member, subset.weight, self.continuous, fill)
        cells = columns(table)
        weights, class_of, log_shares = self._components(cells, member, columns)
        model = TreeModel(columns, class_of, log_shares, None)
        parts: tuple[Distribution, ...]
        if self.tables == "integrated":
            parts = tuple(counted_tables(cells, w, columns.layout, self.ess, self.structure_prior) for w in weights)
        else:
            within = _within(cells, member, columns)
            tables = tuple(fixed_tables(cells, w, columns, self.ess, within) for w in weights)
            model, parts = replace(model, tables=tables), self._structures(tables)
        return TreeDiscriminant(model, cells, JointDistribution(parts, prior_bias(member)), bias_variance)

    def _components(self, cells: Array, member: Array, columns: TreeColumns) -> tuple[list[Array], np.ndarray, Array]:
        """Row weights and class of each output, and the log weight of the component within its class."""
        if self.n_trees == 1:
            return list(member.T), np.arange(member.shape[1]), np.zeros(member.shape[1])
        weights, log_shares = [], []
        for weight in member.T:
            used = weight > 0
            mixture, resp = fit_tree_mixture(cells[used], weight[used], columns, self.ess, self.n_trees, self.seed)
            all_resp = np.zeros((len(weight), self.n_trees))
            all_resp[used] = resp
            weights += list((all_resp * weight[:, None]).T)
            log_shares.append(mixture.log_shares)
        return weights, np.repeat(np.arange(member.shape[1]), self.n_trees), np.concatenate(log_shares)

    def _structures(self, tables: tuple[EdgeTables, ...]) -> tuple[Distribution, ...]:
        shared = self.sharing == "shared"
        gains = [t.gains for t in tables]
        gains = [np.asarray(sum(gains))] if shared else gains
        if self.objective == "likelihood":
            return tuple(best_tree(g) for g in gains)
        uniform = self.structure_prior == "uniform"
        return tuple(TreeDistribution(np.zeros_like(g) if uniform else g) for g in gains)

    def scores(self, subset, fitted, solution, constraints, rows):
        return fitted.model.scores(solution.state, self.table.take(rows))


def _within(cells: Array, member: Array, columns: TreeColumns) -> Array:
    """(n,) variance within classes of each numeric column with powers as cells; 0 for other columns."""
    out = np.zeros(columns.layout.n)
    for v in columns.powers:
        start = columns.layout.starts[v]
        sums = member.T @ cells[:, start : start + 3]  # (C, 3)
        mass = np.maximum(sums[:, 0], 1e-300)
        out[v] = max(float((sums[:, 2] - sums[:, 1] ** 2 / mass).sum() / mass.sum()), 0.0)
    return out
