"""What a typical row may look like: models whose parameters have conjugate distributions (001, section 4).

A model reads rows into data, knows the prior P0 of its parameters, and looks at data with expected log-parameters:
the view of what rows add to the statistics, and the highest lower bound of every row's log-probability, in which what
is hidden (components, states, missing numbers) is distributed as equation 49 says. The bound is
<mean, phi_t> + H(Q_t); where nothing is hidden it is the expected log-probability itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp

from mixent.core.arrays import Array
from mixent.hmm.lattice import forward_backward
from mixent.med.encoding import Encoder
from mixent.med.families import CellLayout, Dirichlets, Distribution, Product, TreeTables
from mixent.med.tree_columns import TreeColumns
from mixent.med.views import Counted, Matrix, View
from mixent.med.wishart import Wishart
from mixent.tables import Table

SPARE = 1  # cells of a category for values not seen in training: they are new, not missing


@dataclass(frozen=True)
class Look:
    """Rows seen with some expected log-parameters."""

    view: View  # its offset is H(Q), what the bound has beside the statistics
    bound: Array  # (n,) of each row's log-probability


class NoveltyModel(ABC):
    """One kind of model; a dataclass of arrays."""

    prior: Distribution

    @property
    def hides(self) -> bool:
        """Is something hidden, so that views change with the parameters?"""
        return True

    @abstractmethod
    def read(self, table: Table) -> Any:
        """Rows as this model needs them."""

    @abstractmethod
    def look(self, distribution: Distribution, data: Any) -> Look:
        """Rows under a distribution of the parameters."""

    def start(self, data: Any, weight: Array) -> Distribution:
        """The distribution from which to begin."""
        return self.prior


def seen(view: Matrix, mean: Array, bound: Array) -> Look:
    """With H(Q) = bound - <mean, phi>, whatever Q is."""
    return Look(Matrix(view.phi, bound - view.dot(mean)), bound)


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

    def prior(self, ess: float, spread: Array) -> Product:
        """`ess` rows spread evenly over every table, and as many of a Gaussian as it takes, of variances `spread`."""
        parts: list[Distribution] = []
        if self.sizes:
            cells = np.concatenate([np.full(size, ess / size) for size in self.sizes])
            parts.append(Dirichlets(cells, np.repeat(np.arange(len(self.sizes)), self.sizes)))
        if self.d and self.joint:
            k = self.d + 1.0 + ess
            parts.append(Wishart(np.concatenate([[k], np.zeros(self.d), k * np.diag(spread).ravel()]), self.d))
        elif self.d:
            k = 1.0 + ess
            parts += [Wishart(np.array([k, 0.0, k * one]), 1) for one in spread]
        return Product(tuple(parts))

    def features(self, X: Array, bits: Array, mean: Array) -> tuple[Array, Array]:
        """phi (n, M) and H(Q) (n,) of standardised numbers (n, d), NaN missing, and bits (n, cells)."""
        if not self.d:
            return bits, np.zeros(len(bits))
        if not self.joint:
            known = ~np.isnan(X)
            z = np.where(known, X, 0.0)
            return np.concatenate([bits, np.stack([known, z, z**2], axis=2).reshape(len(X), -1)], axis=1), np.zeros(
                len(X)
            )
        first, second, entropy = _completed(X, mean[self.n_cells :], self.d)
        ones = np.ones((len(X), 1))
        return np.concatenate([bits, ones, first, second.reshape(len(X), -1)], axis=1), entropy


def _completed(X: Array, mean: Array, d: int) -> tuple[Array, Array, Array]:
    """E x (n, d), E x x^T (n, d, d) and H(Q) (n,): missing numbers as the quadratic form `mean` has them."""
    missing = np.isnan(X)
    first = np.where(missing, 0.0, X)
    covered = np.zeros((len(X), d, d))
    entropy = np.zeros(len(X))
    if missing.any():
        b, C = mean[1 : 1 + d], mean[1 + d :].reshape(d, d)
        for pattern in np.unique(missing[missing.any(axis=1)], axis=0):
            rows = np.flatnonzero((missing == pattern).all(axis=1))
            gap, seen = np.flatnonzero(pattern), np.flatnonzero(~pattern)
            cov = np.linalg.inv(-2.0 * C[np.ix_(gap, gap)])
            slope = b[gap] + 2.0 * first[np.ix_(rows, seen)] @ C[np.ix_(seen, gap)]
            first[np.ix_(rows, gap)] = slope @ cov
            covered[np.ix_(rows, gap, gap)] = cov
            entropy[rows] = 0.5 * (len(gap) * (1.0 + np.log(2 * np.pi)) + np.linalg.slogdet(cov)[1])
    return first, first[:, :, None] * first[:, None, :] + covered, entropy


@dataclass(frozen=True)
class Rows:
    """Rows (or steps) as emissions need them."""

    X: Array  # (n, d) standardised, NaN missing
    bits: Array  # (n, cells)


@dataclass(frozen=True)
class Scale:
    """Numbers to mean 0 and variance 1."""

    centre: Array  # (d,)
    scale: Array  # (d,)

    @classmethod
    def of(cls, table: Table, weight: Array) -> Scale:
        encoder = Encoder.of(table, weight, True)
        return cls(encoder.centre, encoder.scale)

    def __call__(self, X: Array) -> Array:
        return (X - self.centre) / self.scale

    @property
    def log_volume(self) -> float:
        """What a log-density in standardised numbers has too much."""
        return float(np.log(self.scale).sum())


def sizes_of(table: Table) -> tuple[int, ...]:
    """Cells of each category: its values, and one for any that is new."""
    return tuple(size + SPARE for size in table.schema.sizes)


def bits_of(codes: Array | None, sizes: tuple[int, ...], n: int) -> Array:
    """(n, cells); a missing category has none."""
    parts = [(codes[:, j, None] == np.arange(size)).astype(float) for j, size in enumerate(sizes)]  # type: ignore
    return np.concatenate(parts, axis=1) if parts else np.zeros((n, 0))


def _grouped(X: Array, bits: Array, weight: Array, K: int) -> np.ndarray:
    """(n,) a first guess of what belongs together: the widest group is cut across its longest axis, K - 1 times."""
    Z = np.concatenate([np.where(np.isnan(X), 0.0, X), bits], axis=1)
    member = np.zeros(len(Z), dtype=np.intp)
    for new in range(1, K):
        widths, axes = zip(*(_longest(Z[member == k], weight[member == k]) for k in range(new)))
        widest = int(np.argmax(widths))
        centre, axis = axes[widest]
        member[(member == widest) & ((Z - centre) @ axis > 0)] = new
    return member


def _longest(Z: Array, weight: Array) -> tuple[float, tuple[Array, Array]]:
    """The scatter along the longest axis of a group, its centre and that axis."""
    mass = weight.sum()
    centre = weight @ Z / mass if mass > 0 else np.zeros(Z.shape[1])
    left = Z - centre
    values, vectors = np.linalg.eigh((left * weight[:, None]).T @ left)
    axis = vectors[:, -1]
    return float(values[-1]), (centre, axis * np.sign(axis[np.abs(axis).argmax()]))


# --- components and states ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MixtureModel(NoveltyModel):
    """Components with shares: T = (counts of the components, statistics of each)."""

    scale: Scale
    emission: Emission
    n_components: int
    prior: Product

    @classmethod
    def of(cls, table: Table, weight: Array, n_components: int, joint: bool, ess: float) -> MixtureModel:
        scale = Scale.of(table, weight)
        emission = Emission(sizes_of(table), table.X.shape[1], joint)
        one = emission.prior(ess, np.ones(emission.d))
        shares = Dirichlets(np.full(n_components, max(ess, 1.0)), np.zeros(n_components, dtype=np.intp))
        return cls(scale, emission, n_components, Product((shares, *[one] * n_components)))

    @property
    def hides(self) -> bool:
        return self.n_components > 1 or (self.emission.joint and self.emission.d > 0)

    def read(self, table: Table) -> Rows:
        return Rows(self.scale(table.X), bits_of(table.codes, self.emission.sizes, table.n_rows))

    def _parts(self, distribution: Distribution, data: Rows) -> tuple[list[Array], Array]:
        """phi of each component, and log p_k + its bound (n, K)."""
        assert isinstance(distribution, Product)
        shares, *parts = distribution.parts
        seen = [self.emission.features(data.X, data.bits, part.mean) for part in parts]
        bounds = [phi @ part.mean + entropy for (phi, entropy), part in zip(seen, parts)]
        return [phi for phi, _ in seen], np.column_stack(bounds) + shares.mean

    def look(self, distribution: Distribution, data: Rows) -> Look:
        phis, joint = self._parts(distribution, data)
        resp = np.exp(log_softmax(joint, axis=1))
        phi = np.concatenate([resp, *(r[:, None] * one for r, one in zip(resp.T, phis))], axis=1)
        return seen(Matrix(phi), distribution.mean, logsumexp(joint, axis=1) - self.scale.log_volume)

    def start(self, data: Rows, weight: Array) -> Distribution:
        if self.n_components == 1:
            return self.prior
        phis, _ = self._parts(self.prior, data)
        member = _grouped(data.X, data.bits, weight, self.n_components)
        resp = weight[:, None] * np.eye(self.n_components)[member]
        return self.prior.at(self.prior.T + np.concatenate([resp.sum(axis=0), *(resp.T @ phis[0])]))


@dataclass(frozen=True)
class Steps:
    """Sequences of equal or different lengths, steps one after the other."""

    rows: Rows
    lengths: np.ndarray


@dataclass(frozen=True)
class ChainModel(NoveltyModel):
    """A hidden Markov model of rows that are sequences: T = (first states, transitions, statistics of each state)."""

    scale: Scale
    emission: Emission
    n_states: int
    prior: Product

    @classmethod
    def of(cls, steps: Table, weight: Array, n_states: int, ess: float) -> ChainModel:
        """`steps` has a row for each step, with its sequence's weight."""
        scale = Scale.of(steps, weight)
        emission = Emission(sizes_of(steps), steps.X.shape[1], steps.X.shape[1] > 1)
        one = emission.prior(ess, np.ones(emission.d))
        S = n_states
        even = max(ess, 1.0)
        first = Dirichlets(np.full(S, even), np.zeros(S, dtype=np.intp))
        moves = Dirichlets(np.full(S * S, even), np.repeat(np.arange(S), S))
        return cls(scale, emission, S, Product((first, moves, *[one] * S)))

    def read(self, table: Table) -> Steps:
        raise NotImplementedError("sequences are read by their steps; see `read_steps`")

    def read_steps(self, steps: Table, lengths: np.ndarray) -> Steps:
        rows = Rows(self.scale(steps.X), bits_of(steps.codes, self.emission.sizes, steps.n_rows))
        return Steps(rows, lengths)

    def look(self, distribution: Distribution, data: Steps) -> Look:
        assert isinstance(distribution, Product)
        first, moves, *parts = distribution.parts
        S = self.n_states
        seen_parts = [self.emission.features(data.rows.X, data.rows.bits, part.mean) for part in parts]
        emit = np.column_stack([phi @ part.mean + own for (phi, own), part in zip(seen_parts, parts)])
        found = forward_backward(first.mean, moves.mean.reshape(S, S), emit, data.lengths, pairs="sequence")
        begins = np.cumsum(data.lengths) - data.lengths
        sums = [
            np.add.reduceat(state[:, None] * phi, begins, axis=0) for state, (phi, _) in zip(found.states.T, seen_parts)
        ]
        phi = np.concatenate([found.states[begins], found.pairs.reshape(len(begins), -1), *sums], axis=1)
        return seen(Matrix(phi), distribution.mean, found.log_lik - data.lengths * self.scale.log_volume)

    def start(self, data: Steps, weight: Array) -> Distribution:
        S, by_step = self.n_states, np.repeat(weight, data.lengths)
        phi, _ = self.emission.features(data.rows.X, data.rows.bits, self.prior.parts[2].mean)
        member = _grouped(data.rows.X, data.rows.bits, by_step, S)
        T = self.prior.T.copy()
        T[S + S * S :] += ((by_step[:, None] * np.eye(S)[member]).T @ phi).ravel()
        return self.prior.at(T)


# --- trees ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cells:
    """Rows as cells of pairwise tables."""

    cells: Array  # (n, R)
    density: Array  # (n,) of numbers within their cells


@dataclass(frozen=True)
class TreeNovelty(NoveltyModel):
    """All trees at once, their tables Dirichlet; numbers are softly quantised, the columns' shares stand for gaps."""

    columns: TreeColumns
    prior: TreeTables

    @classmethod
    def of(cls, table: Table, weight: Array, ess: float) -> TreeNovelty:
        columns = TreeColumns.of(table, weight[:, None], weight, "quantised", True, SPARE)
        layout: CellLayout = columns.layout
        size = np.repeat(layout.sizes, layout.sizes).astype(float)
        spread = np.concatenate([[1.0], 1.0 / size])
        T = ess * np.outer(spread, spread).ravel()
        return cls(columns, TreeTables(T, layout, np.zeros(layout.n * (layout.n - 1) // 2)).uniform)

    @property
    def hides(self) -> bool:
        return False

    def read(self, table: Table) -> Cells:
        cells = self.columns(table)
        return Cells(cells, self.columns.log_density(table, cells))

    def look(self, distribution: Distribution, data: Cells) -> Look:
        view = Counted.of(data.cells).shifted(data.density)
        return Look(view, view.dot(distribution.mean) + view.offset)
