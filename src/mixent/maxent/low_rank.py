"""Reduction of problems with more cells than rows to the span of the rows.

With a Gaussian prior, the optimum lies in the span of the rows: gamma = D Phi_P^T a for some a (r, C), where D holds
the variances of the cells relative to the largest and P is a set of rows that spans all rows up to a small tolerance. A
pivoted Cholesky decomposition finds P, and L (n, r) with Phi D Phi_P^T = L L_P^T. With b = L_P^T a,

    Phi gamma = L b     and     |D^-1/2 gamma|^2 = |b|^2,

so the problem is equivalent to one whose cells are the r columns of L, all with the same prior variance.
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

MOST_ROWS = 5000  # a matrix of this size is stored and factorized
CHUNK = 4_000_000  # numbers of a dense chunk of rows
TOL = 1e-7  # largest squared distance of a row from the span, relative to the largest squared norm of a row


@dataclass(frozen=True)
class Spanned:
    """The problem in coordinates of the span of its rows."""

    cells: Cells  # of the original problem
    rows: Rows
    relative: Array  # (S,) variances of the cells, relative to the largest
    factor: Array  # (n, r) L
    spanning: np.ndarray  # (r,) the rows P, in pivot order

    @staticmethod
    def of(cells: Cells, rows: Rows, variance: Any) -> Spanned:
        relative = np.broadcast_to(np.asarray(variance, dtype=float), (cells.n_cells,)) / np.max(variance)
        inner = _inner(cells, rows, np.sqrt(relative))
        tol = TOL * float(np.diagonal(inner).max())
        factor, pivots, rank, _ = dpstrf(inner, tol=tol, lower=1, overwrite_a=1)
        order = pivots - 1
        L = np.empty((len(order), rank))
        L[order] = np.tril(factor)[:, :rank]
        return Spanned(cells, rows, relative, L, order[:rank])

    @property
    def transformed(self) -> tuple[Cells, Rows]:
        """The cells and rows in these coordinates."""
        packed = np.empty((self.rows.n_rows, 0), dtype=self.rows.packed.dtype)
        dense = np.ascontiguousarray(self.factor.T)
        return Cells((), len(dense)), replace(self.rows, packed=packed, dense=dense)

    def to_span(self, params: Multipliers) -> Multipliers:
        """The b of a gamma in the span: L_P b = Phi_P gamma."""
        logits = self.cells.logits(params.cells, self.rows.part(self.spanning))
        return replace(params, cells=solve_triangular(self.factor[self.spanning], logits.T, lower=True))

    def from_span(self, params: Multipliers) -> Multipliers:
        """The gamma of a b."""
        dual = solve_triangular(self.factor[self.spanning], params.cells, lower=True, trans="T")  # (r, C)
        counts = self.cells.expected(np.ascontiguousarray(dual.T), self.rows.part(self.spanning))
        return replace(params, cells=self.relative[:, None] * counts)


def _inner(cells: Cells, rows: Rows, scale: Array) -> Array:
    """(n, n) Phi D Phi^T, computed in chunks of rows."""
    n = rows.n_rows
    out = np.empty((n, n))
    step = max(1, CHUNK // cells.n_cells)
    for a in range(0, n, step):
        first = cells.dense(rows.part(slice(a, a + step))) * scale[:, None]
        for b in range(0, a + 1, step):
            second = first if a == b else cells.dense(rows.part(slice(b, b + step))) * scale[:, None]
            part = first.T @ second
            out[a : a + step, b : b + step], out[b : b + step, a : a + step] = part, part.T
    return out
