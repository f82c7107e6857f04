"""The rows of a maximum entropy problem, in blocks the executors can share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks

RUN = 64  # neighboring rows in a sample


@dataclass(frozen=True)
class Rows:
    """Some rows. Numbers are held with rows last, so that every step runs along them; codes with rows first."""

    packed: np.ndarray  # (n, packs) joint codes of the discrete columns, see `cells.Pack`
    dense: Array  # (D, n) probabilistic and real-valued cells, zero where missing
    target: Array  # (C, n) class distribution of each row times its weight; zero without a label
    weight: Array  # (n,) weight of each row, zero without a label
    sums: np.ndarray  # (n,) features present, the class term included

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    def part(self, rows: slice | np.ndarray) -> Rows:
        return Rows(self.packed[rows], self.dense[:, rows], self.target[:, rows], self.weight[rows], self.sums[rows])

    def ordered(self) -> Rows:
        """Rows ordered by their number of features; unlabelled rows are left out."""
        used = np.flatnonzero(self.weight > 0)
        order = used[np.argsort(self.sums[used], kind="stable")]
        if len(order) == self.n_rows and (np.diff(order) == 1).all():
            return self
        return self.part(order)


class RowBlocks(Blocks):
    """Blocks of these rows."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, 8 * (rows.packed.shape[1] + len(rows.dense) + 4 * len(rows.target)))

    def sample(self, n_rows: int) -> RowBlocks:
        """About so many rows: runs of neighbors, evenly spread, for single ones would touch as much memory as all."""
        if n_rows >= self.n_rows:
            return self
        starts = np.linspace(0, self.n_rows - RUN, max(1, n_rows // RUN)).astype(np.intp)
        return RowBlocks(self.rows.part(np.unique(starts[:, None] + np.arange(RUN))))
