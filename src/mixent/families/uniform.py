"""A component for outliers, with a uniform density."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block


@dataclass(frozen=True)
class Uniform:
    """A density of 1 / (high - low) for each observed numeric column, times 1 / size for each observed categorical one.

    It has no parameters to estimate. Missing values are integrated out exactly. So that rows far from all training rows
    can be assigned to it, the density is the same outside the range.
    """

    low: Array  # (d,)
    high: Array  # (d,) > low
    sizes: tuple[int, ...]  # number of values of each categorical column

    def log_prob(self, block: Block) -> Array:
        """Return the log density of each row, (n,)."""
        log_width, log_sizes = np.log(self.high - self.low), np.log(self.sizes)
        out = np.full(block.n_rows, -log_width.sum()) if block.complete else -(~np.isnan(block.X) @ log_width)
        return out if block.codes is None else out - (block.codes >= 0) @ log_sizes

    def sample(self, n_rows: int, rng: np.random.Generator) -> tuple[Array, np.ndarray | None]:
        """Sample continuous columns, (n, d), and codes, (n, m) or None."""
        X = rng.uniform(self.low, self.high, (n_rows, len(self.low)))
        codes = rng.integers(0, self.sizes, (n_rows, len(self.sizes)), dtype=np.int32) if self.sizes else None
        return X, codes

    def expected(self, X: Array) -> Array:
        """Replace missing values by the middle of the range."""
        return np.where(np.isnan(X), 0.5 * (self.low + self.high), X)

    def marginal(self, columns: np.ndarray, code_columns: np.ndarray) -> Uniform:
        """Return the marginal over some continuous and some categorical columns."""
        return Uniform(self.low[columns], self.high[columns], tuple(self.sizes[j] for j in code_columns))
