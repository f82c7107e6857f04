"""The bandwidth of Parzen windows, by leaving each row out.

    conditional   sum_n w_n log p(y_n | x_n; all rows but n)
    likelihood    sum_n w_n log p(x_n | y_n; all rows but n)

Both are exact: the sums over windows are taken without the row's own. The scales of the columns are those of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.classical.training import Rows
from mixent.classical.windows import Encoded, Windows
from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.executors import Executor

GRID = 2.0 ** (np.arange(6, -19, -1) / 3)  # times the typical spread of a column: 4 down to 1/64
CHUNK = 7  # bandwidths tried at once, with the distances of one block
CRITERIA = ("conditional", "likelihood")
Show = Callable[[int, int, str], None] | None


@dataclass(frozen=True)
class LeftOut:
    """Training rows scored by all others."""

    windows: Windows
    encoded: Encoded
    rows: Rows
    class_prior: Array | None  # (C,) as given; None: the shares of the rows that stay
    executor: Executor

    @property
    def scored(self) -> Any:
        """(m,) rows whose classes all have other rows."""
        alone = (self.rows.target > 0) & ~np.isfinite(self._log_rest())
        return np.logical_not(alone.any(axis=1))

    def _log_rest(self) -> Array:
        """(m, C) log of the rows of each class when one is left out."""
        counts = self.rows.counts
        mass = counts.sum(axis=0)
        rest = mass - self.rows.left_out[:, None] * self.rows.target
        return safe_log(np.where(rest > 1e-12 * mass, rest, 0.0))

    def log_density(self, bandwidths: Array) -> Array:
        """(G, m, C) log p(x_n | c; all rows but n), in units of the scales; -inf for a class without other rows."""
        own = Windows.own(self.rows.counts, self.rows.left_out)
        sums = self.windows.log_sums(self.encoded, bandwidths, self.executor, own)
        rest = self._log_rest()
        left = np.isfinite(rest)
        return np.where(left, sums - np.where(left, rest, 0.0), -np.inf)

    def log_proba(self, log_density: Array) -> Array:
        """(..., m, C) log p(c | x_n; all rows but n)."""
        rest = self._log_rest()
        prior = rest - log_sum_exp(rest, axis=1)[:, None] if self.class_prior is None else np.log(self.class_prior)
        joint = log_density + prior
        return joint - log_sum_exp(joint, axis=-1)[..., None]

    def value(self, log_density: Array, criterion: str) -> Array:
        """(...,) the criterion, in nats per row."""
        found = self.log_proba(log_density) if criterion == "conditional" else log_density
        counts = self.rows.counts[self.scored]
        told = np.where(counts > 0, found[..., self.scored, :], 0.0)
        return (counts * told).sum(axis=(-2, -1)) / counts.sum()


@dataclass(frozen=True)
class Chosen:
    """Bandwidths of the classes, what was tried, and the rows left out at the bandwidths chosen."""

    bandwidths: Array  # (C,)
    tried: list[dict]
    log_density: Array  # (m, C)


def choose(left: LeftOut, criterion: str, per_class: bool, base: float, show: Show) -> Chosen:
    """The best of a grid, from wide windows to narrow ones; then class by class."""
    C = left.windows.n_classes
    grid, parts = base * GRID, []
    for a in range(0, len(grid), CHUNK):
        if show is not None:
            show(a, len(grid), f"bandwidth {grid[a]:.3g}")
        parts.append(left.log_density(np.repeat(grid[a : a + CHUNK, None], C, axis=1)))
    found = np.concatenate(parts)
    values = left.value(found, criterion)
    at = np.full(C, values.argmax())
    tried = [{"bandwidth": float(h), "value": float(v)} for h, v in zip(grid, values)]
    if per_class:
        at = _class_by_class(left, criterion, found, at)
    return Chosen(grid[at], tried, _taken(found, at))


def _class_by_class(left: LeftOut, criterion: str, found: Array, at: np.ndarray) -> np.ndarray:
    """Coordinate ascent from the best common bandwidth: no step lowers the criterion."""
    best = float(left.value(_taken(found, at), criterion))
    moved = True
    while moved:
        moved = False
        for c in range(len(at)):
            rivals = np.repeat(_taken(found, at)[None], len(found), axis=0)
            rivals[:, :, c] = found[:, :, c]
            values = left.value(rivals, criterion)
            if values.max() > best + 1e-12 * abs(best):
                at[c], best, moved = values.argmax(), float(values.max()), True
    return at


def _taken(found: Array, at: np.ndarray) -> Array:
    """(m, C) from (G, m, C): for each class at its own bandwidth."""
    return np.stack([found[g, :, c] for c, g in enumerate(at)], axis=1)
