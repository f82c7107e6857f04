"""More cells than rows: the optimum lies in the span of the rows, and all but lies in that of some of them.

With a Gaussian prior gamma = D Phi_P^T a for some a (r, C), D the variances of the cells relative to the largest and P
the rows that span. Cholesky's method with pivots finds them, and L (n, r) with Phi D Phi_P^T = L L_P^T; b = L_P^T a:

    Phi gamma = L b     and     |D^-1/2 gamma|^2 = |b|^2 :

the same problem with the r columns of L as cells, all of one variance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from mixent.core.arrays import Array
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.problem import Multipliers

MOST_ROWS = 5000  # the square of them is held, and factorized
WRITTEN = 4_000_000  # numbers written out at a time
LEFT = 1e-7  # of the largest square of a row: what is left of every row outside the span


@dataclass(frozen=True)
class Spanned:
    """The problem in the coordinates of its rows."""

    cells: Cells  # those of the problem as it was
    rows: Rows
    relative: Array  # (S,) variances of the cells, the largest one
    factor: Array  # (n, r) L
    spanning: np.ndarray  # (r,) the rows P, in the order of their pivots

    @staticmethod
    def of(cells: Cells, rows: Rows, variance: Any) -> Spanned:
        relative = np.broadcast_to(np.asarray(variance, dtype=float), (cells.n_cells,)) / np.max(variance)
        inner = _inner(cells, rows, np.sqrt(relative))
        tol = LEFT * float(np.diagonal(inner).max())
        factor, pivots, rank, _ = dpstrf(inner, tol=tol, lower=1, overwrite_a=1)
        order = pivots - 1
        found = np.empty((len(order), rank))
        found[order] = np.tril(factor)[:, :rank]
        return Spanned(cells, rows, relative, found, order[:rank])

    @property
    def turned(self) -> tuple[Cells, Rows]:
        """Cells and rows in these coordinates."""
        packed = np.empty((self.rows.n_rows, 0), dtype=self.rows.packed.dtype)
        dense = np.ascontiguousarray(self.factor.T)
        return Cells((), len(dense)), replace(self.rows, packed=packed, dense=dense)

    def there(self, params: Multipliers) -> Multipliers:
        """b of a gamma in the span: L_P b = Phi_P gamma."""
        logits = self.cells.logits(params.cells, self.rows.part(self.spanning))
        return replace(params, cells=solve_triangular(self.factor[self.spanning], logits.T, lower=True))

    def back(self, params: Multipliers) -> Multipliers:
        """Gamma of a b."""
        dual = solve_triangular(self.factor[self.spanning], params.cells, lower=True, trans="T")  # (r, C)
        counts = self.cells.expected(np.ascontiguousarray(dual.T), self.rows.part(self.spanning))
        return replace(params, cells=self.relative[:, None] * counts)


def _inner(cells: Cells, rows: Rows, scale: Array) -> Array:
    """(n, n) Phi D Phi^T, some of the cells' columns at a time."""
    n = rows.n_rows
    out = np.empty((n, n))
    step = max(1, WRITTEN // cells.n_cells)
    for a in range(0, n, step):
        first = cells.dense(rows.part(slice(a, a + step))) * scale[:, None]
        for b in range(0, a + 1, step):
            second = first if a == b else cells.dense(rows.part(slice(b, b + step))) * scale[:, None]
            part = first.T @ second
            out[a : a + step, b : b + step], out[b : b + step, a : a + step] = part, part.T
    return out
