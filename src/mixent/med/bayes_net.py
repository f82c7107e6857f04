"""Discriminants of Bayes nets: log-ratios of nets of known structure whose tables are distributed (001, 3.6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.med.constraints import Constraints, PairConstraints, contrasts
from mixent.med.exponential_family import ExponentialFamilyProblem, JointDistribution
from mixent.med.exponential_family_solving import solve
from mixent.med.families import Dirichlets
from mixent.med.features import FeatureMatrix
from mixent.med.margins import MarginPrior
from mixent.med.model_training_sets import ModelDiscriminant, ModelTrainingSet, members, prior_bias
from mixent.med.net_structure import Parents
from mixent.med.solving import Search, Solution
from mixent.med.training_sets import Subset, in_batches
from mixent.med.tree_columns import CodedColumn, TreeColumns

MOST_CELLS = 10**5  # of one column's table


@dataclass(frozen=True)
class Net:
    """A structure as tables: each column's, given its parents.

    The cells of all tables lie in one line. A table has an axis per parent, in the order of the columns, and the
    column's own as the last; what lies along that is one distribution.
    """

    sizes: tuple[int, ...]  # values of each column
    parents: Parents  # of each column, rising

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of each column's table."""
        return tuple((*(self.sizes[u] for u in above), self.sizes[v]) for v, above in enumerate(self.parents))

    @property
    def n_cells(self) -> int:
        return sum(map(prod, self.shapes))

    @cached_property
    def group(self) -> np.ndarray:
        """(M,) the distribution each cell belongs to."""
        per = np.repeat(self.sizes, [prod(shape[:-1]) for shape in self.shapes])  # cells of each distribution
        return np.repeat(np.arange(np.count_nonzero(per)), per[per > 0])

    @cached_property
    def even(self) -> Array:
        """(M,) one row spread evenly over every table."""
        cells = np.array([prod(shape) for shape in self.shapes])
        return np.repeat(1.0 / np.maximum(cells, 1), cells)

    def features(self, cells: tuple[csr_array, ...]) -> FeatureMatrix:
        """Rows whose columns have these cells: a table's cell is the product of its values' cells."""
        parts = []
        for v, above in enumerate(self.parents):
            part = cells[v]
            for u in reversed(above):
                part = across(cells[u], part)
            parts.append(part)
        return FeatureMatrix(hstack(parts, format="csr"))

    def tables(self, line: Array) -> list[Array]:
        """What is in a line (M,), as each column's table."""
        cuts = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(line, cuts), self.shapes)]

    def check(self, names: tuple[str, ...]) -> None:
        """Refuse tables that are too large."""
        for v, (name, shape) in enumerate(zip(names, self.shapes)):
            if prod(shape) > MOST_CELLS:
                above = ", ".join(f"{names[u]!r} ({self.sizes[u]})" for u in self.parents[v])
                raise ValueError(
                    f"the table of column {name!r} has {prod(shape[:-1])} configurations of its parents {above} times "
                    f"{shape[-1]} values, {prod(shape)} cells; the most are {MOST_CELLS}. Give it fewer parents, "
                    f"or join rare categories"
                )


def cells_of(column: Any, table: Table) -> csr_array:
    """(n, size) a column's cells; categories may be many, and are not written out."""
    if not isinstance(column, CodedColumn):
        return csr_array(column.cells(table))
    assert table.codes is not None
    codes = table.codes[:, column.place]
    seen = codes >= 0
    indptr = np.concatenate([[0], np.cumsum(seen)])
    return csr_array((np.ones(indptr[-1]), codes[seen], indptr), shape=(len(codes), column.size))


def across(a: csr_array, b: csr_array) -> csr_array:
    """(n, A B) products of a row's cells (n, A) and (n, B), those of b running faster."""
    in_a, in_b = np.diff(a.indptr), np.diff(b.indptr)
    times = np.repeat(in_b, in_a)  # how often each entry of a is needed
    at_a = np.repeat(np.arange(a.nnz), times)
    first = np.repeat(b.indptr[:-1], in_a)
    at_b = np.repeat(first - (np.cumsum(times) - times), times) + np.arange(len(at_a))
    where = a.indices[at_a].astype(np.int64) * b.shape[1] + b.indices[at_b]
    indptr = np.concatenate([[0], np.cumsum(in_a * in_b)])
    return csr_array((a.data[at_a] * b.data[at_b], where, indptr), shape=(a.shape[0], a.shape[1] * b.shape[1]))


@dataclass(frozen=True)
class NetModel:
    """What turns rows into scores, beside the distributions themselves."""

    columns: TreeColumns
    nets: tuple[Net, ...]  # of each class

    @property
    def contrast(self) -> Array:
        """(C, C - 1)."""
        return contrasts(len(self.nets))

    def features(self, table: Table) -> tuple[FeatureMatrix, ...]:
        """Of each class; a row adds 1 to one cell of every table, nothing where the value or a parent's is missing."""
        cells = tuple(cells_of(column, table) for column in self.columns.columns)
        seen = {net: net.features(cells) for net in dict.fromkeys(self.nets)}
        return tuple(seen[net] for net in self.nets)

    def outputs(self, joint: JointDistribution, features: tuple[FeatureMatrix, ...]) -> Array:
        """(n, C) expected log-probabilities, and bias."""
        parts = [phi.dot(one.mean) for phi, one in zip(features, joint.parts)]
        return np.column_stack(parts) + self.contrast @ joint.bias

    def scores(self, joint: JointDistribution, table: Table) -> Array:
        """(n, C)."""
        return self._by_parts(table, lambda features: self.outputs(joint, features))

    def predictive_scores(self, joint: JointDistribution, table: Table, shares: Array) -> Array:
        """(n, C) log p(class) + log E p(x | class)."""
        predictive = [one.log_predictive for one in joint.parts if isinstance(one, Dirichlets)]

        def of(features: tuple[FeatureMatrix, ...]) -> Array:
            return np.column_stack([phi.dot(one) for phi, one in zip(features, predictive)]) + np.log(shares)

        return self._by_parts(table, of)

    def _by_parts(self, table: Table, function: Any) -> Array:
        return in_batches(table, lambda rows: function(self.features(rows)))


class NetDiscriminant(ModelDiscriminant):
    """On some rows; `certain`: the prior stays, whatever rows say."""

    def __init__(
        self,
        model: NetModel,
        features: tuple[FeatureMatrix, ...],
        prior: JointDistribution,
        bias_variance: float,
        certain: bool = False,
    ) -> None:
        self.model, self.features, self.prior, self.bias_variance = model, features, prior, bias_variance
        self.certain = certain

    def problem(self, constraints: PairConstraints, margin: MarginPrior) -> ExponentialFamilyProblem:
        """The dual's dual for these constraints."""
        return ExponentialFamilyProblem(
            self.features,
            tuple(range(len(self.features))),
            Constraints.between_classes(constraints),
            margin,
            self.prior,
            self.model.contrast,
            self.bias_variance,
        )

    def prior_scores(self) -> Array:
        return self.model.outputs(self.prior, self.features)

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if self.certain:
            constraints = replace(constraints, imposed=np.zeros_like(constraints.imposed))
        found = solve(self.problem(constraints, margin), search, start)
        scores = self.model.outputs(found.joint, self.features)
        return Solution(scores, found.multipliers, found.minimum, found.dual, found.run, found.joint)


@dataclass(frozen=True)
class NetTrainingSet(ModelTrainingSet):
    """A Bayes net of every class."""

    parents: tuple[Parents, ...]  # of each class
    ess: float
    certain: bool  # no discrimination: the prior is the answer
    predictive: bool  # scores are those of Bayes' rule with predictive probabilities

    def made(self, part: Subset, bias_variance: float) -> NetDiscriminant:
        member = members(part)
        table = self.table.take(part.rows)
        columns = TreeColumns.read(table, member, part.weight, "quantized")
        nets = tuple(Net(columns.layout.sizes, parents) for parents in self.parents)
        for net in nets:
            net.check(columns.names)
        model = NetModel(columns, nets)
        features = model.features(table)
        counts = [phi.weighted_sum(own) + self.ess * net.even for net, phi, own in zip(nets, features, member.T)]
        parts = tuple(Dirichlets(T, net.group) for net, T in zip(nets, counts))
        return NetDiscriminant(
            model, features, JointDistribution(parts, prior_bias(member)), bias_variance, self.certain
        )

    def scores(self, part, fitted, solution, constraints, rows):
        table = self.table.take(rows)
        if self.predictive:
            member = members(part).sum(axis=0)
            return fitted.model.predictive_scores(solution.state, table, member / member.sum())
        return fitted.model.scores(solution.state, table)
