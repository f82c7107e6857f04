"""Log-ratios of Bayes nets with known structures and Dirichlet-distributed tables (001, section 3.6)."""

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
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import Dirichlets
from mixent.med.features import FeatureMatrix, RowFeatures
from mixent.med.margins import MarginPrior
from mixent.med.model_training_sets import ModelDiscriminant, ModelTrainingSet, members, prior_bias, solve_near
from mixent.med.net_structure import Parents
from mixent.med.solving import Search, Solution
from mixent.med.training_sets import Subset, in_batches
from mixent.med.tree_columns import CodedColumn, TreeColumns
from mixent.show import Short

MAX_CELLS = 10**5  # of the table of a column
SMALL = 10**5  # entries of a feature matrix up to which it is dense: rows of a sparse one take longer to select


@dataclass(frozen=True)
class Net:
    """The conditional probability tables of a structure: one per column, given its parents.

    The cells of all tables are stored in one vector. A table has one axis per parent, in the order of the columns, and
    a last axis for the column itself, along which it is a distribution.
    """

    sizes: tuple[int, ...]  # number of values of each column
    parents: Parents  # positions of the parents of each column, in increasing order

    @cached_property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of the table of each column."""
        return tuple((*(self.sizes[u] for u in parents), self.sizes[v]) for v, parents in enumerate(self.parents))

    @property
    def n_cells(self) -> int:
        return sum(map(prod, self.shapes))

    @cached_property
    def group(self) -> np.ndarray:
        """(M,) number of the distribution that each cell belongs to."""
        n_cells = np.repeat(self.sizes, [prod(shape[:-1]) for shape in self.shapes])  # of each distribution
        return np.repeat(np.arange(np.count_nonzero(n_cells)), n_cells[n_cells > 0])

    @cached_property
    def even(self) -> Array:
        """(M,) one row, spread evenly over the cells of every table."""
        cells = np.array([prod(shape) for shape in self.shapes])
        return np.repeat(1.0 / np.maximum(cells, 1), cells)

    def features(self, cells: tuple[csr_array, ...]) -> FeatureMatrix:
        """Features of rows with these cells; the cell of a table is the product of the cells of its columns."""
        parts = []
        for v, parents in enumerate(self.parents):
            part = cells[v]
            for u in reversed(parents):
                part = row_products(cells[u], part)
            parts.append(part)
        phi = hstack(parts, format="csr")
        return FeatureMatrix(phi.toarray() if phi.shape[0] * phi.shape[1] <= SMALL else phi)

    def tables(self, vector: Array) -> list[Array]:
        """The table of each column, from the vector (M,) of all cells."""
        cuts = np.cumsum([prod(shape) for shape in self.shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(vector, cuts), self.shapes)]

    def check(self, names: tuple[str, ...]) -> None:
        """Raise an error if a table is too large."""
        for v, (name, shape) in enumerate(zip(names, self.shapes)):
            if prod(shape) > MAX_CELLS:
                parents = ", ".join(f"{names[u]!r} ({self.sizes[u]})" for u in self.parents[v])
                raise ValueError(
                    f"the table of column {name!r} has {prod(shape[:-1])} configurations of its parents {parents} "
                    f"times {shape[-1]} values, {prod(shape)} cells; at most {MAX_CELLS} are allowed. "
                    f"Use fewer parents, or merge rare categories"
                )


def cells_of(column: Any, table: Table) -> csr_array:
    """(n, size) the cells of a column, as a sparse matrix, since it may have many categories."""
    if not isinstance(column, CodedColumn):
        return csr_array(column.cells(table))
    assert table.codes is not None
    codes = table.codes[:, column.position]
    observed = codes >= 0
    indptr = np.concatenate([[0], np.cumsum(observed)])
    return csr_array((np.ones(indptr[-1]), codes[observed], indptr), shape=(len(codes), column.size))


def row_products(a: csr_array, b: csr_array) -> csr_array:
    """(n, A B) products of all pairs of cells (n, A) and (n, B) of a row, with the cells of b as the faster index."""
    in_a, in_b = np.diff(a.indptr), np.diff(b.indptr)
    repeats = np.repeat(in_b, in_a)  # how often each entry of a occurs
    index_a = np.repeat(np.arange(a.nnz), repeats)
    first = np.repeat(b.indptr[:-1], in_a)
    index_b = np.repeat(first - (np.cumsum(repeats) - repeats), repeats) + np.arange(len(index_a))
    columns = a.indices[index_a].astype(np.int64) * b.shape[1] + b.indices[index_b]
    indptr = np.concatenate([[0], np.cumsum(in_a * in_b)])
    products = a.data[index_a] * b.data[index_b]
    return csr_array((products, columns, indptr), shape=(a.shape[0], a.shape[1] * b.shape[1]))


@dataclass(frozen=True, repr=False)
class NetModel(Short):
    """The columns and structures, which with the distributions of the tables give the scores of rows."""

    columns: TreeColumns
    nets: tuple[Net, ...]  # of each class

    @property
    def contrast(self) -> Array:
        """(C, C - 1)."""
        return contrasts(len(self.nets))

    def features(self, table: Table) -> tuple[FeatureMatrix, ...]:
        """Features of each class: 1 in one cell of every table, none if the value or one of a parent is missing."""
        cells = tuple(cells_of(column, table) for column in self.columns.columns)
        by_net = {net: net.features(cells) for net in dict.fromkeys(self.nets)}
        return tuple(by_net[net] for net in self.nets)

    def outputs(self, joint: JointDistribution, features: tuple[RowFeatures, ...]) -> Array:
        """(n, C) expected log-probabilities, plus the bias."""
        parts = [phi.dot(part.mean) for phi, part in zip(features, joint.parts)]
        return np.column_stack(parts) + self.contrast @ joint.bias

    def scores(self, joint: JointDistribution, table: Table) -> Array:
        """(n, C) expected log-probabilities of the rows of a table, plus the bias."""
        return self._in_batches(table, lambda features: self.outputs(joint, features))

    def predictive_scores(self, joint: JointDistribution, table: Table, shares: Array) -> Array:
        """(n, C) log p(class) + log E p(x | class)."""
        log_probs = [part.log_predictive for part in joint.parts if isinstance(part, Dirichlets)]

        def log_joint(features: tuple[FeatureMatrix, ...]) -> Array:
            return np.column_stack([phi.dot(log_prob) for phi, log_prob in zip(features, log_probs)]) + np.log(shares)

        return self._in_batches(table, log_joint)

    def _in_batches(self, table: Table, function: Any) -> Array:
        return in_batches(table, lambda rows: function(self.features(rows)))


class NetDiscriminant(ModelDiscriminant):
    """Log-ratios of Bayes nets on some rows; a `generative` one is not trained for discrimination."""

    def __init__(
        self,
        model: NetModel,
        features: tuple[FeatureMatrix, ...],
        prior: JointDistribution,
        bias_variance: float,
        generative: bool = False,
    ) -> None:
        self.model, self.features, self.prior, self.bias_variance = model, features, prior, bias_variance
        self.generative, self.contrast, self.family_of = generative, model.contrast, tuple(range(len(features)))

    @cached_property
    def prior_scores(self) -> Array:
        return self.model.outputs(self.prior, self.features)

    def solve(self, constraints: PairConstraints, margin: MarginPrior, search: Search, start: Any = None) -> Solution:
        if self.generative:
            constraints = replace(constraints, imposed=np.zeros_like(constraints.imposed))
        on_outputs = Constraints.between_classes(constraints)
        return solve_near(self.problem(on_outputs, margin), search, start)


@dataclass(frozen=True)
class NetTrainingSet(ModelTrainingSet):
    """Rows as a table, for a Bayes net of each class."""

    parents: tuple[Parents, ...]  # of each class
    ess: float
    generative: bool  # no discrimination: the posterior of each class is the result
    predictive: bool  # whether the scores follow from Bayes' rule with predictive probabilities

    def build(self, subset: Subset, bias_variance: float) -> NetDiscriminant:
        member = members(subset)
        table = self.table.take(subset.rows)
        columns = TreeColumns.read(table, member, subset.weight, "quantized")
        nets = tuple(Net(columns.layout.sizes, parents) for parents in self.parents)
        for net in nets:
            net.check(columns.names)
        model = NetModel(columns, nets)
        features = model.features(table)
        counts = [phi.weighted_sum(weight) + self.ess * net.even for net, phi, weight in zip(nets, features, member.T)]
        parts = tuple(Dirichlets(T, net.group) for net, T in zip(nets, counts))
        return NetDiscriminant(
            model, features, JointDistribution(parts, prior_bias(member)), bias_variance, self.generative
        )

    def scores(self, subset, fitted, solution, constraints, rows):
        table = self.table.take(rows)
        if self.predictive:
            member = members(subset).sum(axis=0)
            return fitted.model.predictive_scores(solution.state, table, member / member.sum())
        return fitted.model.scores(solution.state, table)
