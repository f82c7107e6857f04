"""Leave-one-out choice of the bandwidth of Parzen windows.

The criterion, over a grid of bandwidths, is one of

    conditional   sum_n w_n log p(y_n | x_n; all rows but n)
    likelihood    sum_n w_n log p(x_n | y_n; all rows but n)

Both are exact: each sum over windows omits the window of the row itself. Only the scales of the columns are computed
from all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.classical.training import LabelledRows
from mixent.classical.windows import Encoded, Windows
from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.executors import Executor

GRID = 2.0 ** (np.arange(6, -19, -1) / 3)  # factors of the typical standard deviation of a column, from 4 to 1/64
CHUNK = 7  # bandwidths evaluated together, from the same block of distances
CRITERIA = ("conditional", "likelihood")
Show = Callable[[int, int, str], None] | None


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out densities and class probabilities of the training rows."""

    windows: Windows
    encoded: Encoded
    rows: LabelledRows
    class_prior: Array | None  # (C,) given by the user; None: class shares of the remaining rows
    executor: Executor

    @property
    def scored(self) -> Any:
        """(m,) bool: rows all of whose classes have at least one other row."""
        no_other_row = (self.rows.target > 0) & ~np.isfinite(self._log_remaining())
        return np.logical_not(no_other_row.any(axis=1))

    def _log_remaining(self) -> Array:
        """(m, C) log of the total weight of each class without the row."""
        mass = self.rows.counts.sum(axis=0)
        remaining = mass - self.rows.left_out[:, None] * self.rows.target
        return safe_log(np.where(remaining > 1e-12 * mass, remaining, 0.0))

    def log_density(self, bandwidths: Array) -> Array:
        """(G, m, C) log p(x_n | c; all rows but n), in units of the scales; -inf for a class without other rows."""
        own = Windows.own_windows(self.rows.counts, self.rows.left_out)
        sums = self.windows.log_sums(self.encoded, bandwidths, self.executor, own)
        remaining = self._log_remaining()
        nonempty = np.isfinite(remaining)
        return np.where(nonempty, sums - np.where(nonempty, remaining, 0.0), -np.inf)

    def log_proba(self, log_density: Array) -> Array:
        """(..., m, C) log p(c | x_n; all rows but n)."""
        if self.class_prior is None:
            remaining = self._log_remaining()
            log_prior = remaining - log_sum_exp(remaining, axis=1)[:, None]
        else:
            log_prior = np.log(self.class_prior)
        joint = log_density + log_prior
        return joint - log_sum_exp(joint, axis=-1)[..., None]

    def value(self, log_density: Array, criterion: str) -> Array:
        """(...,) the criterion, in nats per row."""
        log_p = self.log_proba(log_density) if criterion == "conditional" else log_density
        counts = self.rows.counts[self.scored]
        log_p = np.where(counts > 0, log_p[..., self.scored, :], 0.0)
        return (counts * log_p).sum(axis=(-2, -1)) / counts.sum()


@dataclass(frozen=True)
class BandwidthChoice:
    """The chosen bandwidths, the values tried, and the leave-one-out densities at the chosen bandwidths."""

    bandwidths: Array  # (C,)
    tried: list[dict]
    log_density: Array  # (m, C)


def choose_bandwidths(
    leave_one_out: LeaveOneOut, criterion: str, per_class: bool, base: float, show: Show
) -> BandwidthChoice:
    """Return the best common bandwidth of a grid; with `per_class`, refine it one class at a time."""
    C = leave_one_out.windows.n_classes
    grid, parts = base * GRID, []
    for start in range(0, len(grid), CHUNK):
        if show is not None:
            show(start, len(grid), f"bandwidth {grid[start]:.3g}")
        parts.append(leave_one_out.log_density(np.repeat(grid[start : start + CHUNK, None], C, axis=1)))
    log_density = np.concatenate(parts)
    values = leave_one_out.value(log_density, criterion)
    index = np.full(C, values.argmax())
    tried = [{"bandwidth": float(h), "value": float(v)} for h, v in zip(grid, values)]
    if per_class:
        index = _refine_per_class(leave_one_out, criterion, log_density, index)
    return BandwidthChoice(grid[index], tried, _select(log_density, index))


def _refine_per_class(leave_one_out: LeaveOneOut, criterion: str, log_density: Array, index: np.ndarray) -> np.ndarray:
    """Coordinate ascent from the best common bandwidth: no step lowers the criterion."""
    best = float(leave_one_out.value(_select(log_density, index), criterion))
    improved = True
    while improved:
        improved = False
        for c in range(len(index)):
            candidates = np.repeat(_select(log_density, index)[None], len(log_density), axis=0)
            candidates[:, :, c] = log_density[:, :, c]
            values = leave_one_out.value(candidates, criterion)
            if values.max() > best + 1e-12 * abs(best):
                index[c], best, improved = values.argmax(), float(values.max()), True
    return index


def _select(log_density: Array, index: np.ndarray) -> Array:
    """(m, C) from (G, m, C): the densities of each class at its bandwidth."""
    return np.stack([log_density[g, :, c] for c, g in enumerate(index)], axis=1)
