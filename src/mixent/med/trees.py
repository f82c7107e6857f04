"""Discriminants of tree-structured models: log-ratios of trees whose structure, and perhaps tables, are distributed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, xlogy

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.med.constraints import Constraints, PairConstraints, contrasts, pairs
from mixent.med.exponential_family import ExponentialFamilyProblem, JointDistribution
from mixent.med.exponential_family_solving import JointSolution, solve
from mixent.med.families import Distribution, SingleTree, TreeDistribution
from mixent.med.features import CountFeatures, RowFeatures
from mixent.med.latent import LatentProblem, LatentSolution, alternate_steps
from mixent.med.margins import MarginPrior
from mixent.med.model_training_sets import ModelDiscriminant, ModelTrainingSet, members, prior_bias
from mixent.med.solving import Search, Solution
from mixent.med.training_sets import Subset, in_batches
from mixent.med.tree_columns import TreeColumns
from mixent.med.tree_mixture import fit_tree_mixture
from mixent.med.tree_tables import EdgeTables, best_tree, counted_tables, fixed_tables


@dataclass(frozen=True)
class TreeModel:
    """What turns rows into scores, beside the distributions themselves."""

    columns: TreeColumns
    class_of: np.ndarray  # (S,) class of each output: a class has as many as components
    log_shares: Array  # (S,) of the components within their class
    tables: tuple[EdgeTables, ...] | None  # of each output; None: they are distributed

    @property
    def n_classes(self) -> int:
        return int(self.class_of.max()) + 1

    @property
    def mixed(self) -> bool:
        return len(self.class_of) > self.n_classes

    @property
    def contrast(self) -> Array:
        """(S, C - 1)."""
        return contrasts(self.n_classes)[self.class_of]

    def features(self, cells: Array) -> tuple[RowFeatures, ...]:
        """Of each output."""
        if self.tables is None:
            counted = CountFeatures.of(cells)
            return tuple(counted.add_offset(float(share)) for share in self.log_shares)
        layout = self.columns.layout
        return tuple(one.features(cells, layout, float(share)) for one, share in zip(self.tables, self.log_shares))

    def outputs(self, joint: JointDistribution, cells: Array) -> Array:
        """(n, S) expected log-probabilities, and bias."""
        owners = [joint.parts[0]] * len(self.class_of) if len(joint.parts) == 1 else joint.parts
        parts = [phi.dot(one.mean) + phi.offset for phi, one in zip(self.features(cells), owners)]
        return np.column_stack(parts) + self.contrast @ joint.bias

    def scores(self, joint: JointDistribution, table: Table) -> Array:
        """(n, C)."""
        return in_batches(table, lambda rows: self.merged(self.outputs(joint, self.columns(rows))))

    def merged(self, outputs: Array) -> Array:
        """(n, C) from (n, S): log of the sum over a class's components."""
        if not self.mixed:
            return outputs
        return np.column_stack([logsumexp(outputs[:, self.class_of == s], axis=1) for s in range(self.n_classes)])


class TreeDiscriminant(ModelDiscriminant):
    """On some rows."""

    def __init__(self, model: TreeModel, cells: Array, prior: JointDistribution, bias_variance: float) -> None:
        self.model, self.cells, self.prior, self.bias_variance = model, cells, prior, bias_variance
        shared = len(prior.parts) == 1
        self.family_of = tuple(0 if shared else s for s in range(len(model.class_of)))
        self.certain = all(isinstance(part, SingleTree) for part in prior.parts)

    def problem(self, constraints: Constraints, margin: MarginPrior) -> ExponentialFamilyProblem:
        """The optimization problem for these constraints."""
        return ExponentialFamilyProblem(
            self.model.features(self.cells),
            self.family_of,
            constraints,
            margin,
            self.prior,
            self.model.contrast,
            self.bias_variance,
        )

    def prior_scores(self) -> Array:
        return self.model.merged(self.model.outputs(self.prior, self.cells))

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if self.model.mixed and not self.certain:
            return self._solve_mixture(constraints, margin, search, start)
        none = Constraints.none(constraints, len(self.model.class_of))
        on_outputs = none if self.certain else Constraints.between_classes(constraints)
        solution = solve(self.problem(on_outputs, margin), search, start)
        return self._solution(solution, solution.multipliers, solution.run)

    def _solution(self, solution: JointSolution, lam: Array, run: Any) -> Solution:
        scores = self.model.merged(self.model.outputs(solution.joint, self.cells))
        return Solution(scores, lam, solution.minimum, solution.dual, run, solution.joint)

    # --- mixtures -----------------------------------------------------------------------------------------------

    def _solve_mixture(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any) -> Solution:
        """A class's components share its rows; each rival component is a rival."""
        label = _labels(constraints)
        inner = replace(search, gap=min(search.gap, 1e-9), observers=())

        def step(hidden: Array, before: JointSolution | None) -> JointSolution:
            problem = self.problem(self._mixture_constraints(hidden, label, constraints), margin)
            return solve(problem, inner, before.joint if before is not None else start)

        def reveal(found: JointSolution) -> Array:
            return self._hidden(found.joint, label)

        hidden = self._hidden(self.prior if start is None else start, label)
        whole = alternate_steps(LatentProblem(step, reveal), hidden, constraints.weight, search, 10.0 * search.gap)
        guess: LatentSolution = whole.params
        return self._solution(guess.found, self._by_pair(guess.found.multipliers, label), whole)

    def _hidden(self, joint: JointDistribution, label: np.ndarray) -> Array:
        """(n, S) Q_t, over the components of the row's own class (49)."""
        outputs = self.model.outputs(joint, self.cells)
        own = self.model.class_of == label[:, None]
        return np.exp(log_softmax(np.where(own, outputs, -np.inf), axis=1))

    def _mixture_constraints(self, hidden: Array, label: np.ndarray, constraints: PairConstraints) -> Constraints:
        rivals = (self.model.class_of != label[:, None]) & np.asarray(constraints.imposed.any(axis=1))[:, None]
        entropy = -xlogy(hidden, hidden).sum(axis=1)
        return Constraints.against_rivals(
            hidden, rivals, constraints.weight, np.tile(entropy[:, None], rivals.shape[1])
        )

    def _by_pair(self, lam: Array, label: np.ndarray) -> Array:
        """(n, pairs) what a row's multipliers (n, S) say against each class."""
        a, b = pairs(self.model.n_classes)
        against = np.column_stack([lam[:, self.model.class_of == s].sum(axis=1) for s in range(self.model.n_classes)])
        rival = np.where(label[:, None] == a, b, a)
        ours = (label[:, None] == a) | (label[:, None] == b)
        return np.where(ours, np.take_along_axis(against, rival, axis=1), 0.0)


def _labels(constraints: PairConstraints) -> np.ndarray:
    """(n,) the class of each row, whose labels are all known."""
    return np.asarray((constraints.signs @ constraints.differences).argmax(axis=1))


@dataclass(frozen=True)
class TreeTrainingSet(ModelTrainingSet):
    """Trees of every class."""

    tables: str
    objective: str
    sharing: str
    structure_prior: str
    continuous: str
    n_trees: int
    ess: float
    seed: int

    def made(self, part: Subset, bias_variance: float) -> TreeDiscriminant:
        member = members(part)
        table = self.table.take(part.rows)
        fill = self.tables == "integrated" or self.n_trees > 1
        columns = TreeColumns.of(table, member, part.weight, self.continuous, fill)
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
        """Row weights of each output, its class, and its share within it."""
        if self.n_trees == 1:
            return list(member.T), np.arange(member.shape[1]), np.zeros(member.shape[1])
        weights, log_shares = [], []
        for own in member.T:
            seen = own > 0
            found, resp = fit_tree_mixture(cells[seen], own[seen], columns, self.ess, self.n_trees, self.seed)
            whole = np.zeros((len(own), self.n_trees))
            whole[seen] = resp
            weights += list((whole * own[:, None]).T)
            log_shares.append(found.log_shares)
        return weights, np.repeat(np.arange(member.shape[1]), self.n_trees), np.concatenate(log_shares)

    def _structures(self, tables: tuple[EdgeTables, ...]) -> tuple[Distribution, ...]:
        shared = self.sharing == "shared"
        gains = [sum(one.gains for one in tables)] if shared else [one.gains for one in tables]
        if self.objective == "likelihood":
            return tuple(best_tree(np.asarray(g)) for g in gains)
        even = self.structure_prior == "uniform"
        return tuple(TreeDistribution(np.zeros_like(g) if even else np.asarray(g)) for g in gains)

    def scores(self, part, fitted, solution, constraints, rows):
        return fitted.model.scores(solution.state, self.table.take(rows))


def _within(cells: Array, member: Array, columns: TreeColumns) -> Array:
    """(n,) variance of each number within classes; 0 for other columns."""
    out = np.zeros(columns.layout.n)
    for v in columns.powers:
        at = columns.layout.starts[v]
        sums = member.T @ cells[:, at : at + 3]  # (C, 3)
        mass = np.maximum(sums[:, 0], 1e-300)
        out[v] = max(float((sums[:, 2] - sums[:, 1] ** 2 / mass).sum() / mass.sum()), 0.0)
    return out
