"""Categorical columns, independent within each component, with a Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.stats import Stats


@dataclass(frozen=True)
class Categoricals:
    """Parameters: the probability tables of all columns, concatenated."""

    log_probs: Array  # (K, sum of sizes)

    @property
    def n_components(self) -> int:
        return len(self.log_probs)


@dataclass(frozen=True)
class Counts(Stats):
    """Expected counts of each value in each component."""

    counts: Array  # (K, sum of sizes)


@dataclass(frozen=True)
class CategoricalFamily:
    """Maximizes  sum_nk r_nk sum_j log p_kj(x_nj) + sum_kjv rows_jv log p_kjv:  likelihood and Dirichlet prior.

    A missing value (code -1) is left out of the sum, which gives the exact marginal.
    """

    sizes: tuple[int, ...]  # number of values of each column
    rows: Array  # (sum of sizes,) or (K, sum of sizes) pseudo-counts, > 0

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    def prepare(self, params: Categoricals) -> Array:
        return np.ascontiguousarray(params.log_probs.T)  # (values, K)

    def restrict(self, ready: Array, index: np.ndarray) -> Array:
        return np.ascontiguousarray(ready[:, index])

    def open(self, ready: Array, block: Block) -> OneHot:
        return OneHot(ready, block, self)

    def embed(self, stats: Counts, index: np.ndarray, n_components: int) -> Counts:
        counts = np.zeros((n_components, stats.counts.shape[1]))
        counts[index] = stats.counts
        return Counts(counts)

    def update(self, params: Categoricals, stats: Counts, live: np.ndarray | None = None) -> Categoricals:
        return Categoricals(np.log(self._normalize(stats.counts + self.rows)))

    def tempered(self, params: Categoricals, temperature: float) -> tuple[Categoricals, Array]:
        """Return the tables p^T, normalized, and the logarithm of the product of their sums, (K,)."""
        table = np.exp(temperature * params.log_probs)
        sums = np.add.reduceat(table, self.starts, axis=1)
        return Categoricals(np.log(self._normalize(table))), np.log(sums).sum(axis=1)

    def with_expected_rows(self, params: Categoricals, stats: Counts, rows: Array) -> Counts:
        """Add the counts of `rows` (K,) rows expected under each component, which damp the update."""
        return Counts(stats.counts + rows[:, None] * np.exp(params.log_probs))

    def feasible(self, params: Categoricals, stats: Counts, live: np.ndarray | None = None) -> np.ndarray:
        """Return whether all (possibly signed) counts are positive, (K,)."""
        return np.asarray((stats.counts + self.rows > 0).all(axis=1))

    def anchored(self, params: Categoricals, rows: Array, factor: float) -> CategoricalFamily:
        """Return the family with its prior times `factor`, plus `rows` (K,) pseudo-rows of the current components."""
        return replace(self, rows=factor * self.rows + rows[:, None] * np.exp(params.log_probs))

    def _normalize(self, table: Array) -> Array:
        sums = np.add.reduceat(table, self.starts, axis=1)
        return table / np.repeat(sums, self.sizes, axis=1)

    def log_prior(self, params: Categoricals, live: np.ndarray | None = None) -> float:
        each = (params.log_probs * self.rows).sum(axis=1)
        return float(each.sum() if live is None else each @ live)

    def degenerate(self, params: Categoricals) -> np.ndarray:
        return np.zeros(params.n_components, dtype=bool)  # pseudo-counts make every probability positive

    def copied(self, params: Categoricals, parent: int, child: int) -> Categoricals:
        """Copy the tables of `parent` to `child`."""
        log_probs = np.array(params.log_probs)
        log_probs[child] = log_probs[parent]
        return Categoricals(log_probs)

    def split(self, params: Categoricals, parent: int, child: int) -> Categoricals:
        """Copy the tables of `parent` to `child` with a small perturbation, so that the two can separate."""
        log_probs = np.array(params.log_probs)
        tilt = np.where(np.arange(log_probs.shape[1]) % 2 == 0, 0.1, -0.1)
        log_probs[child] = np.log(self._normalize(np.exp(log_probs[parent] + tilt)[None]))[0]
        return Categoricals(log_probs)

    def n_free(self, n_components: int) -> int:
        return n_components * (sum(self.sizes) - len(self.sizes))

    def pack(self, params: Categoricals) -> Array:
        return params.log_probs.ravel()

    def unpack(self, vector: Array, like: Categoricals, mass: Array) -> Categoricals | None:
        if not np.isfinite(vector).all() or vector.max() > 1e3:
            return None
        logs = vector.reshape(like.log_probs.shape)
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        table = np.maximum(np.exp(logs - np.repeat(top, self.sizes, axis=1)), 1e-300)
        return Categoricals(np.log(self._normalize(table)))

    def take(self, params: Categoricals, index: np.ndarray) -> tuple[CategoricalFamily, Categoricals]:
        rows = self.rows if self.rows.ndim == 1 else self.rows[index]
        return replace(self, rows=rows), Categoricals(params.log_probs[index])

    def sample(self, params: Categoricals, component: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sample codes, (n, m), one row per entry of `component`."""
        codes = np.empty((len(component), len(self.sizes)), dtype=np.int32)
        for j, (start, size) in enumerate(zip(self.starts, self.sizes)):
            cumulative = np.exp(params.log_probs[component, start : start + size]).cumsum(axis=1)
            codes[:, j] = (rng.random((len(component), 1)) > cumulative[:, :-1]).sum(axis=1)
        return codes

    def marginal(self, params: Categoricals, columns: np.ndarray) -> tuple[CategoricalFamily, Categoricals]:
        cells = np.concatenate([np.arange(self.starts[j], self.starts[j] + self.sizes[j]) for j in columns])
        sizes = tuple(self.sizes[j] for j in columns)
        return replace(self, sizes=sizes, rows=self.rows[..., cells]), Categoricals(params.log_probs[:, cells])

    def expected(self, params: Categoricals, codes: np.ndarray, resp: Array) -> np.ndarray:
        """Replace missing codes by their most probable values under component probabilities (K, n)."""
        codes = np.array(codes)
        for j, (start, size) in enumerate(zip(self.starts, self.sizes)):
            missing = codes[:, j] < 0
            codes[missing, j] = (resp[:, missing].T @ np.exp(params.log_probs[:, start : start + size])).argmax(axis=1)
        return codes


class OneHot:
    """A block of codes as a sparse indicator matrix."""

    def __init__(self, ready: Array, block: Block, family: CategoricalFamily) -> None:
        assert block.codes is not None
        n, m = block.codes.shape
        observed = block.codes >= 0
        cells = np.where(observed, block.codes, 0) + family.starts
        parts = (observed.astype(float).ravel(), cells.ravel(), np.arange(0, n * m + 1, m))
        self.indicator = sparse.csr_array(parts, shape=(n, sum(family.sizes)))
        self.ready = ready

    def log_prob(self) -> Array:
        return np.ascontiguousarray((self.indicator @ self.ready).T)

    def moments(self, resp: Array) -> Counts:
        return Counts(np.ascontiguousarray((self.indicator.T @ np.ascontiguousarray(resp.T)).T))
