"""Models of typical rows, with conjugate prior distributions of their parameters (001, section 4).

A model converts a table to its own form of data, has a prior P0 of its parameters, and evaluates data under a
distribution of the parameters. The result consists of the features phi_t of the rows and of the highest lower bound on
the log-probability of every row,  <mean, phi_t> + H(Q_t),  where Q_t is the distribution of the hidden variables
(components, states, missing numbers) of equation 49. Without hidden variables the bound is the expected log-probability
itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, xlogy

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.hmm.lattice import forward_backward
from mixent.hmm.sequences import from_rows, step_schema
from mixent.med.encoding import Encoder
from mixent.med.families import Dirichlets, Distribution, Product, TreeTables
from mixent.med.features import CountFeatures, FeatureMatrix, RowFeatures
from mixent.med.tree_columns import TreeColumns
from mixent.med.tree_tables import counted_tables
from mixent.med.wishart import Wishart
from mixent.show import Short

POWER_ITERATIONS = 30  # for the initialization
SPARE = 1  # more cells of a category, for values that do not occur in the training rows: they are new, not missing


@dataclass(frozen=True)
class Evaluation:
    """Rows under a distribution of the parameters."""

    features: RowFeatures  # with the offset H(Q)
    bound: Array  # (n,) lower bound on the log-probability of each row
    missing_gain: Array  # (n,) increase of the bound that is due to missing values, to be subtracted


class NoveltyModel(ABC):
    """Base class of the models; each is a dataclass of arrays."""

    prior: Distribution

    def has_hidden(self, data: Any) -> bool:
        """Whether these rows have hidden variables, so that their features depend on the distribution."""
        return True

    @abstractmethod
    def read(self, table: Table) -> Any:
        """The rows in the form that this model needs."""

    @abstractmethod
    def evaluate(self, distribution: Distribution, data: Any) -> Evaluation:
        """Features and bounds of the rows under a distribution of the parameters."""

    def start(self, data: Any, weight: Array) -> Distribution:
        """The distribution at which the Bayesian fit starts."""
        return self.prior


# --- one component --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Emission:
    """Independent categories, and jointly or independently Gaussian numbers."""

    sizes: tuple[int, ...]  # cells of the categorical columns
    d: int  # number of continuous columns
    joint: bool  # whether the numbers are jointly Gaussian

    @property
    def n_cells(self) -> int:
        return sum(self.sizes)

    def prior(self, ess: float) -> Product:
        """`ess` rows spread evenly over every table, and d + ess standard Gaussian rows for a Gaussian of d columns."""
        parts: list[Distribution] = []
        if self.sizes:
            cells = np.concatenate([np.full(size, ess / size) for size in self.sizes])
            parts.append(Dirichlets(cells, np.repeat(np.arange(len(self.sizes)), self.sizes)))
        for d in [self.d] * (self.d > 0) if self.joint else [1] * self.d:
            k = d + ess
            parts.append(Wishart(np.concatenate([[k], np.zeros(d), k * np.eye(d).ravel()]), d))
        return Product(tuple(parts))

    def coefficients(self, mean: Array) -> tuple[Array, Array, Array, Array]:
        """(a, b0, b, C) of the expected log-probability  bits a + b0 + z b + z C z,  from the mean parameters."""
        a, numbers, d = mean[: self.n_cells], mean[self.n_cells :], self.d
        if self.joint:
            return a, numbers[:1], numbers[1 : 1 + d], numbers[1 + d :].reshape(d, d)
        b0, b, c = numbers.reshape(d, 3).T
        return a, b0, b, np.diag(c)

    def feature_sum(self, share: Array, bits: Array, completed: Completed) -> Array:
        """(M,) sum of the features of the rows, weighted by their shares (n,)."""
        first, square = share @ completed.mean, completed.square(share)
        if self.joint:
            return np.concatenate([share @ bits, np.full(min(self.d, 1), share.sum()), first, square.ravel()])
        numbers = np.column_stack([np.full(self.d, share.sum()), first, np.diagonal(square)])
        return np.concatenate([share @ bits, numbers.ravel()])

    def completed(self, X: Array, mean: Array) -> Completed:
        """Rows (n, d) with the distributions of missing numbers given the others; standard if independent."""
        if self.joint:
            _, _, b, C = self.coefficients(mean)
            return complete(X, b, C)
        patterns, pattern_of = missing_patterns(X)
        covs = np.array([np.diag(pattern.astype(float)) for pattern in patterns]).reshape(len(patterns), self.d, self.d)
        return Completed(np.where(np.isnan(X), 0.0, X), pattern_of, covs, np.zeros(len(X)))


@dataclass(frozen=True)
class Completed:
    """The distribution of the numbers of each row: its mean, and a covariance for every pattern of missing values."""

    mean: Array  # (n, d)
    pattern_of: np.ndarray  # (n,) pattern of missing values of each row
    covs: Array  # (patterns, d, d)
    entropy: Array  # (n,) of the missing numbers

    def square(self, share: Array) -> Array:
        """(d, d) sum_t share_t E z z^T, without forming the squares of single rows."""
        mass = np.bincount(self.pattern_of, share, minlength=len(self.covs))
        return (self.mean * share[:, None]).T @ self.mean + np.tensordot(mass, self.covs, 1)

    def form(self, b0: Array, b: Array, C: Array) -> Array:
        """(n,) E[b0 + z b + z C z]."""
        spread = np.einsum("pij,ij->p", self.covs, C)[self.pattern_of]
        return b0.sum() + self.mean @ b + np.einsum("ni,ni->n", self.mean @ C, self.mean) + spread

    def squares(self) -> Array:
        """(n, d, d) E z z^T of every row."""
        return self.mean[:, :, None] * self.mean[:, None, :] + self.covs[self.pattern_of]

    def bound(self, emission: Emission, bits: Array, mean: Array) -> Array:
        """(n,) lower bounds on the log-probabilities under one component."""
        a, b0, b, C = emission.coefficients(mean)
        return bits @ a + self.form(b0, b, C) + self.entropy

    def take(self, rows: np.ndarray | slice) -> Completed:
        return Completed(self.mean[rows], self.pattern_of[rows], self.covs, self.entropy[rows])


def missing_patterns(X: Array) -> tuple[np.ndarray, np.ndarray]:
    """The distinct patterns of missing values (patterns, d), and the pattern of each row (n,)."""
    missing = np.isnan(X)
    if not missing.any():
        return missing[:1], np.zeros(len(X), dtype=np.intp)
    bits = np.packbits(missing, axis=1)  # sorted as one value each
    _, first, pattern_of = np.unique(bits.view(f"V{bits.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return missing[first], pattern_of.ravel()


def complete(X: Array, b: Array, C: Array) -> Completed:
    """Missing numbers with their conditional distribution under the density proportional to exp(z b + z C z)."""
    patterns, pattern_of = missing_patterns(X)
    both = patterns[:, :, None] & patterns[:, None, :]
    precision = np.where(both, -2.0 * C, np.eye(len(C)))  # (patterns, d, d) of missing numbers; of others, the identity
    covs = np.where(both, np.linalg.inv(precision), 0.0)
    entropy = 0.5 * (patterns.sum(axis=1) * (1.0 + np.log(2 * np.pi)) - np.linalg.slogdet(precision)[1])
    missing = np.isnan(X)
    mean = np.where(missing, 0.0, X)
    linear = np.where(missing, b + 2.0 * mean @ C, 0.0)
    rows = np.argsort(pattern_of, kind="stable")
    for some, cov in zip(np.split(rows, np.cumsum(np.bincount(pattern_of, minlength=len(covs)))[:-1]), covs):
        mean[some] += linear[some] @ cov
    return Completed(mean, pattern_of, covs, entropy[pattern_of])


class MixtureFeatures(RowFeatures):
    """Features of a mixture: the responsibilities, and the features of each component, weighted by them."""

    def __init__(self, emission: Emission, resp: Array, bits: Array, completed: list[Completed], offset: Array) -> None:
        """`resp` (n, K) are the responsibilities, `completed` the rows as completed by each component."""
        self.emission, self.resp, self.bits, self.completed, self.offset = emission, resp, bits, completed, offset

    @property
    def row_bytes(self) -> int:
        return 24 * self.resp.shape[1] * (1 + self.bits.shape[1] + self.emission.d)

    def dot(self, mean: Array) -> Array:
        K = self.resp.shape[1]
        out = self.resp @ mean[:K]
        for share, completed, component_mean in zip(self.resp.T, self.completed, mean[K:].reshape(K, -1)):
            a, b0, b, C = self.emission.coefficients(component_mean)
            out += share * (self.bits @ a + completed.form(b0, b, C))
        return out

    def weighted_sum(self, alpha: Array) -> Array:
        sums = [
            self.emission.feature_sum(alpha * share, self.bits, completed)
            for share, completed in zip(self.resp.T, self.completed)
        ]
        return np.concatenate([alpha @ self.resp, *sums])

    def take(self, rows: np.ndarray | slice) -> MixtureFeatures:
        completed = [c.take(rows) for c in self.completed]
        return MixtureFeatures(self.emission, self.resp[rows], self.bits[rows], completed, self.offset[rows])

    def to_array(self) -> Array:
        emission, ones = self.emission, np.ones((self.n_rows, 1))
        parts = [self.resp]
        for share, completed in zip(self.resp.T, self.completed):
            mean, squares = completed.mean, completed.squares()
            if emission.joint:
                numbers = [ones[:, : min(emission.d, 1)], mean, squares.reshape(self.n_rows, emission.d**2)]
            else:
                powers = np.stack([np.ones_like(mean), mean, np.einsum("nii->ni", squares)], axis=2)
                numbers = [powers.reshape(self.n_rows, 3 * emission.d)]
            parts.append(share[:, None] * np.concatenate([self.bits, *numbers], axis=1))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Rows:
    """Rows (or steps of sequences) as emissions need them."""

    X: Array  # (n, d) standardized; NaN where missing
    bits: Array  # (n, cells) one-hot encoded categories

    @property
    def any(self) -> np.ndarray:
        """(n,) bool: whether any value of the row is present."""
        return np.asarray((~np.isnan(self.X)).any(axis=1) | self.bits.any(axis=1))


@dataclass(frozen=True)
class Scale:
    """Standardizes numbers and one-hot encodes categories, with the category frequencies where one is missing."""

    center: Array  # (d,)
    scale: Array  # (d,)
    sizes: tuple[int, ...]  # cells of each categorical column
    shares: Array  # (cells,) frequencies of the categories

    @classmethod
    def of(cls, table: Table, weight: Array) -> Scale:
        encoder = Encoder.of(table, weight, True)
        spread = np.sqrt(weight @ np.nan_to_num((table.X - encoder.center) ** 2))
        constant = spread <= 1e-12 * np.abs(encoder.center) * np.sqrt(weight.sum())
        magnitude = np.where(encoder.center != 0, np.abs(encoder.center), 1.0)  # scale of a constant column
        sizes = sizes_of(table)
        scale = cls(encoder.center, np.where(constant, magnitude, encoder.scale), sizes, np.zeros(sum(sizes)))
        return replace(scale, shares=scale._shares(weight @ scale.bits(table)))

    def _shares(self, counts: Array) -> Array:
        cuts = np.cumsum(self.sizes)[:-1]
        parts = [part / part.sum() if part.sum() > 0 else part for part in np.split(counts, cuts)]
        return np.concatenate(parts) if self.sizes else np.zeros(0)

    def bits(self, table: Table) -> Array:
        """(n, cells) one-hot encoded categories."""
        parts = []
        for j, shares in enumerate(np.split(self.shares, np.cumsum(self.sizes)[:-1]) if self.sizes else []):
            assert table.codes is not None
            code = table.codes[:, j, None]
            parts.append(np.where(code < 0, shares, (code == np.arange(self.sizes[j])).astype(float)))
        return np.concatenate(parts, axis=1) if parts else np.zeros((table.n_rows, 0))

    def __call__(self, table: Table) -> Rows:
        return Rows((table.X - self.center) / self.scale, self.bits(table))

    @property
    def log_volume(self) -> float:
        """The log-density of standardized numbers minus that of the original ones."""
        return float(np.log(self.scale).sum())


def sizes_of(table: Table) -> tuple[int, ...]:
    """Cells of each categorical column: one for each value, and one for all new values."""
    return tuple(size + SPARE for size in table.schema.sizes)


def _initial_groups(X: Array, bits: Array, weight: Array, K: int) -> np.ndarray:
    """(n,) initial component of each row: the group with the largest scatter is split at its mean, K - 1 times."""
    Z = np.concatenate([np.where(np.isnan(X), 0.0, X), bits], axis=1)
    member = np.zeros(len(Z), dtype=np.intp)
    for new in range(1, K):
        scatters, axes = zip(*(_principal_axis(Z[member == k], weight[member == k]) for k in range(new)))
        largest = int(np.argmax(scatters))
        center, axis = axes[largest]
        member[(member == largest) & ((Z - center) @ axis > 0)] = new
    return member


def _principal_axis(Z: Array, weight: Array) -> tuple[float, tuple[Array, Array]]:
    """The scatter along the first principal axis of a group, its mean and that axis, by a few power iterations."""
    mass = weight.sum()
    center = weight @ Z / mass if mass > 0 else np.zeros(Z.shape[1])
    centered = Z - center
    axis, scatter = weight @ centered**2, 0.0
    for _ in range(POWER_ITERATIONS):
        norm = float(np.linalg.norm(axis))
        if norm <= 1e-300:
            break
        axis = axis / norm
        product = (weight * (centered @ axis)) @ centered
        scatter, axis = float(axis @ product), product
    norm = float(np.linalg.norm(axis))
    return scatter, (center, axis / norm if norm > 0 else axis)


# --- components and states ------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class NoveltyMixture(Short, NoveltyModel):
    """A mixture: T = (counts of the components, natural parameters of each)."""

    scale: Scale
    emission: Emission
    n_components: int
    prior: Product

    @classmethod
    def of(cls, table: Table, weight: Array, n_components: int, joint: bool, ess: float) -> NoveltyMixture:
        emission = Emission(sizes_of(table), table.X.shape[1], joint)
        shares = Dirichlets(np.full(n_components, max(ess, 1.0)), np.zeros(n_components, dtype=np.intp))
        prior = Product((shares, *[emission.prior(ess)] * n_components))
        return cls(Scale.of(table, weight), emission, n_components, prior)

    def has_hidden(self, data: Rows) -> bool:
        return self.n_components > 1 or (self.emission.joint and bool(np.isnan(data.X).any()))

    def read(self, table: Table) -> Rows:
        return self.scale(table)

    def evaluate(self, distribution: Distribution, data: Rows) -> Evaluation:
        assert isinstance(distribution, Product)
        shares, *parts = distribution.parts
        completed = [self.emission.completed(data.X, part.mean) for part in parts]
        joint = np.column_stack([c.bound(self.emission, data.bits, p.mean) for c, p in zip(completed, parts)])
        joint += shares.mean
        resp = np.exp(log_softmax(joint, axis=1))
        missing_gain = sum(share * c.entropy for share, c in zip(resp.T, completed))
        entropy = -xlogy(resp, resp).sum(axis=1)
        features = MixtureFeatures(
            self.emission, resp, data.bits, completed, entropy + missing_gain - self.scale.log_volume
        )
        return Evaluation(features, logsumexp(joint, axis=1) - self.scale.log_volume, np.asarray(missing_gain))

    def start(self, data: Rows, weight: Array) -> Distribution:
        if self.n_components == 1:
            return self.prior
        member = _initial_groups(data.X, data.bits, weight, self.n_components)
        completed = self.emission.completed(data.X, self.prior.parts[1].mean)
        resp = np.eye(self.n_components)[member]
        features = MixtureFeatures(
            self.emission, resp, data.bits, [completed] * self.n_components, np.zeros(len(member))
        )
        return self.prior.with_natural_parameters(self.prior.T + features.weighted_sum(weight))


@dataclass(frozen=True)
class Steps:
    """The steps of all sequences, one sequence after the other, and the length of each."""

    rows: Rows
    lengths: np.ndarray


def steps_of(table: Table) -> tuple[Table, np.ndarray]:
    """The steps of rows that are sequences, as a table, and the length of each sequence."""
    sequences = from_rows(table)
    steps = sequences.table
    return Table(steps.X, steps.codes, step_schema(table.schema)), sequences.lengths


@dataclass(frozen=True)
class NoveltyChain(NoveltyModel):
    """A hidden Markov model of rows that are sequences: T = (first states, transitions, parameters of each state)."""

    scale: Scale
    emission: Emission
    n_states: int
    prior: Product

    @classmethod
    def of(cls, table: Table, weight: Array, n_states: int, ess: float) -> NoveltyChain:
        steps, lengths = steps_of(table)
        weight = np.repeat(weight, lengths)
        emission = Emission(sizes_of(steps), steps.X.shape[1], False)
        S, count = n_states, max(ess, 1.0)
        first = Dirichlets(np.full(S, count), np.zeros(S, dtype=np.intp))
        transitions = Dirichlets(np.full(S * S, count), np.repeat(np.arange(S), S))
        scale = Scale.of(steps, weight)
        scale = replace(scale, shares=np.zeros_like(scale.shares))  # a missing value has no emission
        return cls(scale, emission, S, Product((first, transitions, *[emission.prior(ess)] * S)))

    def read(self, table: Table) -> Steps:
        steps, lengths = steps_of(table)
        return Steps(self.scale(steps), lengths)

    def evaluate(self, distribution: Distribution, data: Steps) -> Evaluation:
        assert isinstance(distribution, Product)
        first, transitions, *parts = distribution.parts
        S, rows, emitted = self.n_states, data.rows, data.rows.any[:, None]
        completed = self.emission.completed(rows.X, parts[0].mean)  # the same for all states: numbers are independent
        log_emission = np.column_stack([completed.bound(self.emission, rows.bits, part.mean) for part in parts])
        log_trans = transitions.mean.reshape(S, S)
        log_emission = np.where(emitted, log_emission, 0.0)
        posterior = forward_backward(first.mean, log_trans, log_emission, data.lengths, pairs="sequence")
        starts = np.cumsum(data.lengths) - data.lengths
        resp = posterior.states * emitted
        features = MixtureFeatures(self.emission, resp, rows.bits, [completed] * S, np.zeros(len(resp)))
        sums = np.add.reduceat(features.to_array()[:, S:], starts, axis=0)
        phi = np.concatenate([posterior.states[starts], posterior.pairs.reshape(len(starts), -1), sums], axis=1)
        n_present = np.add.reduceat(rows.any.astype(float), starts)
        bound = posterior.log_lik - n_present * self.scale.log_volume
        # missing steps count as if they were as probable as the other steps of the row
        missing_gain = -bound * (data.lengths - n_present) / np.maximum(n_present, 1.0)
        # the offset H(Q) is the difference between the bound and the product with the mean parameters
        return Evaluation(FeatureMatrix(phi, bound - phi @ distribution.mean), bound, missing_gain)

    def start(self, data: Steps, weight: Array) -> Distribution:
        S, rows, step_weight = self.n_states, data.rows, np.repeat(weight, data.lengths) * data.rows.any
        member = _initial_groups(rows.X, rows.bits, step_weight, S)
        completed = self.emission.completed(rows.X, self.prior.parts[2].mean)
        features = MixtureFeatures(self.emission, np.eye(S)[member], rows.bits, [completed] * S, np.zeros(len(member)))
        T = self.prior.T.copy()
        T[S + S * S :] += features.weighted_sum(step_weight)[S:]
        return self.prior.with_natural_parameters(T)


# --- trees ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """Rows as cells of pairwise tables."""

    cells: Array  # (n, R)
    log_density: Array  # (n,) of the numbers given their cells


@dataclass(frozen=True)
class NoveltyTrees(NoveltyModel):
    """A distribution over all trees, with Dirichlet tables.

    Numbers are softly quantized; missing values have the frequencies of their column as cells.
    """

    columns: TreeColumns
    prior: TreeTables

    @classmethod
    def of(cls, table: Table, weight: Array, ess: float) -> NoveltyTrees:
        columns = TreeColumns.of(table, weight[:, None], weight, "quantized", True, SPARE)
        no_rows = np.zeros((0, columns.layout.n_cells))
        return cls(columns, counted_tables(no_rows, np.zeros(0), columns.layout, ess, "uniform"))

    def has_hidden(self, data: Cells) -> bool:
        return False

    def read(self, table: Table) -> Cells:
        cells = self.columns(table)
        return Cells(cells, self.columns.log_density(table, cells))

    def evaluate(self, distribution: Distribution, data: Cells) -> Evaluation:
        features = CountFeatures.of(data.cells).add_offset(data.log_density)
        return Evaluation(features, features.dot(distribution.mean) + features.offset, np.zeros(len(data.log_density)))
