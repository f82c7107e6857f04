"""What a typical row may look like: models whose parameters have conjugate distributions (001, section 4).

A model reads rows into data, knows the prior P0 of its parameters, and looks at data with expected log-parameters:
the view of what rows add to the statistics, and the highest lower bound of every row's log-probability, in which what
is hidden (components, states, missing numbers) is distributed as equation 49 says. The bound is
<mean, phi_t> + H(Q_t); where nothing is hidden it is the expected log-probability itself.
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

POWERS = 30  # of a first guess
SPARE = 1  # cells of a category for values not seen in training: they are new, not missing


@dataclass(frozen=True)
class Evaluation:
    """Rows seen with some expected log-parameters."""

    features: RowFeatures  # its offset is H(Q), what the bound has beside the statistics
    bound: Array  # (n,) of each row's log-probability
    missing_gain: Array  # (n,) what the row has too much, for not having all its values


class NoveltyModel(ABC):
    """One kind of model; a dataclass of arrays."""

    prior: Distribution

    def has_hidden(self, data: Any) -> bool:
        """Is something hidden in these rows, so that views change with the parameters?"""
        return True

    @abstractmethod
    def read(self, table: Table) -> Any:
        """Rows as this model needs them."""

    @abstractmethod
    def evaluate(self, distribution: Distribution, data: Any) -> Evaluation:
        """Rows under a distribution of the parameters."""

    def start(self, data: Any, weight: Array) -> Distribution:
        """The distribution from which to begin."""
        return self.prior


# --- one component --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Emission:
    """Categories independent of each other, numbers jointly Gaussian or each by itself."""

    sizes: tuple[int, ...]  # of the categorical columns
    d: int  # continuous ones
    joint: bool

    @property
    def n_cells(self) -> int:
        return sum(self.sizes)

    def prior(self, ess: float) -> Product:
        """`ess` rows spread evenly over every table, and as many more of standard Gaussians as their columns take."""
        parts: list[Distribution] = []
        if self.sizes:
            cells = np.concatenate([np.full(size, ess / size) for size in self.sizes])
            parts.append(Dirichlets(cells, np.repeat(np.arange(len(self.sizes)), self.sizes)))
        for d in [self.d] * (self.d > 0) if self.joint else [1] * self.d:
            k = d + ess
            parts.append(Wishart(np.concatenate([[k], np.zeros(d), k * np.eye(d).ravel()]), d))
        return Product(tuple(parts))

    def fields(self, mean: Array) -> tuple[Array, Array, Array, Array]:
        """Expected log-probability as  bits a + b0 + z b + z C z,  from the mean of a component's distribution."""
        a, numbers, d = mean[: self.n_cells], mean[self.n_cells :], self.d
        if self.joint:
            return a, numbers[:1], numbers[1 : 1 + d], numbers[1 + d :].reshape(d, d)
        b0, b, c = numbers.reshape(d, 3).T
        return a, b0, b, np.diag(c)

    def statistics(self, share: Array, bits: Array, seen: Completed) -> Array:
        """(M,) what rows with these shares (n,) add up to."""
        first, square = share @ seen.first, seen.square(share)
        if self.joint:
            return np.concatenate([share @ bits, np.full(min(self.d, 1), share.sum()), first, square.ravel()])
        numbers = np.column_stack([np.full(self.d, share.sum()), first, np.diagonal(square)])
        return np.concatenate([share @ bits, numbers.ravel()])

    def completed(self, X: Array, mean: Array) -> Completed:
        """Rows (n, d) with what is missing: as the quadratic form has it, or of numbers by themselves the average."""
        if self.joint:
            _, _, b, C = self.fields(mean)
            return complete(X, b, C)
        missing = np.isnan(X)
        patterns, pattern = np.unique(missing, axis=0, return_inverse=True)
        covs = np.array([np.diag(one.astype(float)) for one in patterns]).reshape(len(patterns), self.d, self.d)
        return Completed(np.where(missing, 0.0, X), pattern.ravel(), covs, np.zeros(len(X)))


@dataclass(frozen=True)
class Completed:
    """Numbers of rows, missing ones distributed: their mean, and a covariance for every pattern of gaps."""

    first: Array  # (n, d)
    pattern: np.ndarray  # (n,)
    covs: Array  # (patterns, d, d)
    entropy: Array  # (n,) of what is missing

    def square(self, share: Array) -> Array:
        """(d, d) sum_t share_t E z z^T; no row's square is written out."""
        mass = np.bincount(self.pattern, share, minlength=len(self.covs))
        return (self.first * share[:, None]).T @ self.first + np.tensordot(mass, self.covs, 1)

    def form(self, b0: Array, b: Array, C: Array) -> Array:
        """(n,) E[b0 + z b + z C z]."""
        spread = np.einsum("pij,ij->p", self.covs, C)[self.pattern]
        return b0.sum() + self.first @ b + np.einsum("ni,ni->n", self.first @ C, self.first) + spread

    def squares(self) -> Array:
        """(n, d, d) E z z^T, written out."""
        return self.first[:, :, None] * self.first[:, None, :] + self.covs[self.pattern]

    def bound(self, emission: Emission, bits: Array, mean: Array) -> Array:
        """(n,) of the log-probabilities under one component."""
        a, b0, b, C = emission.fields(mean)
        return bits @ a + self.form(b0, b, C) + self.entropy

    def take(self, rows: Any) -> Completed:
        return Completed(self.first[rows], self.pattern[rows], self.covs, self.entropy[rows])


def complete(X: Array, b: Array, C: Array) -> Completed:
    """Missing numbers as  exp(z b + z C z)  has them given the others."""
    missing = np.isnan(X)
    first = np.where(missing, 0.0, X)
    d = X.shape[1]
    patterns, pattern = np.unique(missing, axis=0, return_inverse=True)
    pattern = pattern.ravel()
    covs, entropy = np.zeros((len(patterns), d, d)), np.zeros(len(patterns))
    groups = np.split(np.argsort(pattern, kind="stable"), np.cumsum(np.bincount(pattern))[:-1])
    for p, (gaps, rows) in enumerate(zip(patterns, groups)):
        gap, known = np.flatnonzero(gaps), np.flatnonzero(~gaps)
        if len(gap):
            cov = np.linalg.inv(-2.0 * C[np.ix_(gap, gap)])
            first[np.ix_(rows, gap)] = (b[gap] + 2.0 * first[np.ix_(rows, known)] @ C[np.ix_(known, gap)]) @ cov
            covs[p][np.ix_(gap, gap)] = cov
            entropy[p] = 0.5 * (len(gap) * (1.0 + np.log(2 * np.pi)) + np.linalg.slogdet(cov)[1])
    return Completed(first, pattern, covs, entropy[pattern])


class MixtureFeatures(RowFeatures):
    """Rows that belong to components in shares: T = (shares, statistics of each component)."""

    def __init__(self, emission: Emission, resp: Array, bits: Array, seen: list[Completed], offset: Array) -> None:
        """`resp` (n, K), `seen` the rows as each component completes them."""
        self.emission, self.resp, self.bits, self.seen, self.offset = emission, resp, bits, seen, offset

    @property
    def row_bytes(self) -> int:
        return 24 * self.resp.shape[1] * (1 + self.bits.shape[1] + self.emission.d)

    def dot(self, mean: Array) -> Array:
        K = self.resp.shape[1]
        out = self.resp @ mean[:K]
        for share, seen, own in zip(self.resp.T, self.seen, mean[K:].reshape(K, -1)):
            a, b0, b, C = self.emission.fields(own)
            out += share * (self.bits @ a + seen.form(b0, b, C))
        return out

    def weighted_sum(self, alpha: Array) -> Array:
        each = [self.emission.statistics(alpha * share, self.bits, seen) for share, seen in zip(self.resp.T, self.seen)]
        return np.concatenate([alpha @ self.resp, *each])

    def take(self, rows: Any) -> MixtureFeatures:
        seen = [one.take(rows) for one in self.seen]
        return MixtureFeatures(self.emission, self.resp[rows], self.bits[rows], seen, self.offset[rows])

    def to_array(self) -> Array:
        emission, ones = self.emission, np.ones((self.n_rows, 1))
        parts = [self.resp]
        for share, seen in zip(self.resp.T, self.seen):
            squares = seen.squares()
            if emission.joint:
                numbers = [ones[:, : min(emission.d, 1)], seen.first, squares.reshape(self.n_rows, emission.d**2)]
            else:
                powers = np.stack([np.ones_like(seen.first), seen.first, np.einsum("nii->ni", squares)], axis=2)
                numbers = [powers.reshape(self.n_rows, 3 * emission.d)]
            parts.append(share[:, None] * np.concatenate([self.bits, *numbers], axis=1))
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Rows:
    """Rows (or steps) as emissions need them."""

    X: Array  # (n, d) standardized, NaN missing
    bits: Array  # (n, cells)

    @property
    def any(self) -> np.ndarray:
        """(n,) bool: is anything there?"""
        return np.asarray((~np.isnan(self.X)).any(axis=1) | self.bits.any(axis=1))


@dataclass(frozen=True)
class Scale:
    """Numbers to mean 0 and variance 1; categories to cells, the column's shares where one is missing."""

    center: Array  # (d,)
    scale: Array  # (d,)
    sizes: tuple[int, ...]  # cells of each category
    shares: Array  # (cells,)

    @classmethod
    def of(cls, table: Table, weight: Array) -> Scale:
        encoder = Encoder.of(table, weight, True)
        spread = np.sqrt(weight @ np.nan_to_num((table.X - encoder.center) ** 2))
        constant = spread <= 1e-12 * np.abs(encoder.center) * np.sqrt(weight.sum())
        own = np.where(encoder.center != 0, np.abs(encoder.center), 1.0)  # a constant's size is its unit
        sizes = sizes_of(table)
        plain = cls(encoder.center, np.where(constant, own, encoder.scale), sizes, np.zeros(sum(sizes)))
        return replace(plain, shares=plain._shares(weight @ plain.bits(table)))

    def _shares(self, counts: Array) -> Array:
        cuts = np.cumsum(self.sizes)[:-1]
        parts = [part / part.sum() if part.sum() > 0 else part for part in np.split(counts, cuts)]
        return np.concatenate(parts) if self.sizes else np.zeros(0)

    def bits(self, table: Table) -> Array:
        """(n, cells)."""
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
        """What a log-density in standardized numbers has too much."""
        return float(np.log(self.scale).sum())


def sizes_of(table: Table) -> tuple[int, ...]:
    """Cells of each category: its values, and one for any that is new."""
    return tuple(size + SPARE for size in table.schema.sizes)


def _grouped(X: Array, bits: Array, weight: Array, K: int) -> np.ndarray:
    """(n,) a first guess of what belongs together: the widest group is cut across its longest axis, K - 1 times."""
    Z = np.concatenate([np.where(np.isnan(X), 0.0, X), bits], axis=1)
    member = np.zeros(len(Z), dtype=np.intp)
    for new in range(1, K):
        widths, axes = zip(*(_longest(Z[member == k], weight[member == k]) for k in range(new)))
        widest = int(np.argmax(widths))
        center, axis = axes[widest]
        member[(member == widest) & ((Z - center) @ axis > 0)] = new
    return member


def _longest(Z: Array, weight: Array) -> tuple[float, tuple[Array, Array]]:
    """The scatter along the longest axis of a group, its center and that axis, roughly: by power iteration."""
    mass = weight.sum()
    center = weight @ Z / mass if mass > 0 else np.zeros(Z.shape[1])
    left = Z - center
    axis, width = weight @ left**2, 0.0
    for _ in range(POWERS):
        size = float(np.linalg.norm(axis))
        if size <= 1e-300:
            break
        axis = axis / size
        further = (weight * (left @ axis)) @ left
        width, axis = float(axis @ further), further
    size = float(np.linalg.norm(axis))
    return width, (center, axis / size if size > 0 else axis)


# --- components and states ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoveltyMixture(NoveltyModel):
    """Components with shares: T = (counts of the components, statistics of each)."""

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
        seen = [self.emission.completed(data.X, part.mean) for part in parts]
        joint = np.column_stack([one.bound(self.emission, data.bits, p.mean) for one, p in zip(seen, parts)])
        joint += shares.mean
        resp = np.exp(log_softmax(joint, axis=1))
        missing_gain = sum(share * one.entropy for share, one in zip(resp.T, seen))
        mixing = -xlogy(resp, resp).sum(axis=1)
        features = MixtureFeatures(self.emission, resp, data.bits, seen, mixing + missing_gain - self.scale.log_volume)
        return Evaluation(features, logsumexp(joint, axis=1) - self.scale.log_volume, np.asarray(missing_gain))

    def start(self, data: Rows, weight: Array) -> Distribution:
        if self.n_components == 1:
            return self.prior
        member = _grouped(data.X, data.bits, weight, self.n_components)
        seen = self.emission.completed(data.X, self.prior.parts[1].mean)
        resp = np.eye(self.n_components)[member]
        features = MixtureFeatures(self.emission, resp, data.bits, [seen] * self.n_components, np.zeros(len(member)))
        return self.prior.with_natural_parameters(self.prior.T + features.weighted_sum(weight))


@dataclass(frozen=True)
class Steps:
    """Sequences of equal or different lengths, steps one after the other."""

    rows: Rows
    lengths: np.ndarray


def steps_of(table: Table) -> tuple[Table, np.ndarray]:
    """The steps of rows that are sequences, as a table, and the length of each."""
    found = from_rows(table)
    return Table(found.table.X, found.table.codes, step_schema(table.schema)), found.lengths


@dataclass(frozen=True)
class NoveltyChain(NoveltyModel):
    """A hidden Markov model of rows that are sequences: T = (first states, transitions, statistics of each state)."""

    scale: Scale
    emission: Emission
    n_states: int
    prior: Product

    @classmethod
    def of(cls, table: Table, weight: Array, n_states: int, ess: float) -> NoveltyChain:
        steps, lengths = steps_of(table)
        weight = np.repeat(weight, lengths)
        emission = Emission(sizes_of(steps), steps.X.shape[1], False)
        S, even = n_states, max(ess, 1.0)
        first = Dirichlets(np.full(S, even), np.zeros(S, dtype=np.intp))
        moves = Dirichlets(np.full(S * S, even), np.repeat(np.arange(S), S))
        scale = Scale.of(steps, weight)
        scale = replace(scale, shares=np.zeros_like(scale.shares))  # a gap emits nothing, whatever the state
        return cls(scale, emission, S, Product((first, moves, *[emission.prior(ess)] * S)))

    def read(self, table: Table) -> Steps:
        steps, lengths = steps_of(table)
        return Steps(self.scale(steps), lengths)

    def evaluate(self, distribution: Distribution, data: Steps) -> Evaluation:
        assert isinstance(distribution, Product)
        first, moves, *parts = distribution.parts
        S, rows, emitted = self.n_states, data.rows, data.rows.any[:, None]
        seen = self.emission.completed(rows.X, parts[0].mean)  # the same for all: each variable by itself
        emit = np.column_stack([seen.bound(self.emission, rows.bits, part.mean) for part in parts])
        log_trans = moves.mean.reshape(S, S)
        found = forward_backward(first.mean, log_trans, np.where(emitted, emit, 0.0), data.lengths, pairs="sequence")
        begins = np.cumsum(data.lengths) - data.lengths
        features = MixtureFeatures(
            self.emission, found.states * emitted, rows.bits, [seen] * S, np.zeros(len(rows.bits))
        )
        sums = np.add.reduceat(features.to_array()[:, S:], begins, axis=0)
        phi = np.concatenate([found.states[begins], found.pairs.reshape(len(begins), -1), sums], axis=1)
        there = np.add.reduceat(rows.any.astype(float), begins)
        bound = found.log_lik - there * self.scale.log_volume
        missing_gain = (
            -bound * (data.lengths - there) / np.maximum(there, 1.0)
        )  # gaps as usual as the row's other steps
        # H(Q) is what the bound has beside the statistics, whatever Q is
        return Evaluation(FeatureMatrix(phi, bound - phi @ distribution.mean), bound, missing_gain)

    def start(self, data: Steps, weight: Array) -> Distribution:
        S, rows, by_step = self.n_states, data.rows, np.repeat(weight, data.lengths) * data.rows.any
        member = _grouped(rows.X, rows.bits, by_step, S)
        seen = self.emission.completed(rows.X, self.prior.parts[2].mean)
        features = MixtureFeatures(self.emission, np.eye(S)[member], rows.bits, [seen] * S, np.zeros(len(member)))
        T = self.prior.T.copy()
        T[S + S * S :] += features.weighted_sum(by_step)[S:]
        return self.prior.with_natural_parameters(T)


# --- trees ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """Rows as cells of pairwise tables."""

    cells: Array  # (n, R)
    density: Array  # (n,) of numbers within their cells


@dataclass(frozen=True)
class NoveltyTrees(NoveltyModel):
    """All trees at once, their tables Dirichlet; numbers are softly quantized, the columns' shares stand for gaps."""

    columns: TreeColumns
    prior: TreeTables

    @classmethod
    def of(cls, table: Table, weight: Array, ess: float) -> NoveltyTrees:
        columns = TreeColumns.of(table, weight[:, None], weight, "quantized", True, SPARE)
        nobody = np.zeros((0, columns.layout.n_cells))
        return cls(columns, counted_tables(nobody, np.zeros(0), columns.layout, ess, "uniform"))

    def has_hidden(self, data: Cells) -> bool:
        return False

    def read(self, table: Table) -> Cells:
        cells = self.columns(table)
        return Cells(cells, self.columns.log_density(table, cells))

    def evaluate(self, distribution: Distribution, data: Cells) -> Evaluation:
        features = CountFeatures.of(data.cells).add_offset(data.density)
        return Evaluation(features, features.dot(distribution.mean) + features.offset, np.zeros(len(data.density)))
