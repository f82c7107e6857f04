"""The rows of a maximum entropy problem, and blocks of rows that the executors process in parallel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks

RUN = 64  # consecutive rows that are sampled together


@dataclass(frozen=True)
class Rows:
    """Features and targets of some rows. Rows are the last axis of numbers (for speed) and the first axis of codes."""

    packed: np.ndarray  # (n, packs) joint codes of the discrete columns, see `cells.Pack`
    dense: Array  # (D, n) probabilistic and real-valued cells, zero where missing
    target: Array  # (C, n) class distribution of each row times its weight; zero for an unlabelled row
    weight: Array  # (n,) weight of each row; zero for an unlabelled row
    sums: np.ndarray  # (n,) number of observed features, including the class term

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    def part(self, rows: slice | np.ndarray) -> Rows:
        return Rows(self.packed[rows], self.dense[:, rows], self.target[:, rows], self.weight[rows], self.sums[rows])

    def ordered(self) -> Rows:
        """The labelled rows, sorted by their number of observed features."""
        used = np.flatnonzero(self.weight > 0)
        order = used[np.argsort(self.sums[used], kind="stable")]
        if len(order) == self.n_rows and (np.diff(order) == 1).all():
            return self
        return self.part(order)


class RowBlocks(Blocks):
    """A partition of the rows into blocks."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows, 8 * (rows.packed.shape[1] + len(rows.dense) + 4 * len(rows.target)))

    def sample(self, n_rows: int) -> RowBlocks:
        """About n_rows rows, in evenly spaced runs of consecutive rows: single rows would touch the whole memory."""
        if n_rows >= self.n_rows:
            return self
        starts = np.linspace(0, self.n_rows - RUN, max(1, n_rows // RUN)).astype(np.intp)
        return RowBlocks(self.rows.part(np.unique(starts[:, None] + np.arange(RUN))))
