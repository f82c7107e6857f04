"""Curvature of the maximum entropy dual: upper bounds, and estimates that precondition L-BFGS."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells

Variance = float | Array | None  # of the Gaussian prior, for all multipliers or (S,) for each cell; None: no prior


def precision(variance: Variance) -> Array:
    """1 / variance as a column, (S, 1) or (1, 1); zero without a prior."""
    return np.zeros((1, 1)) if variance is None else np.atleast_1d(1.0 / np.asarray(variance, dtype=float))[:, None]


@dataclass(frozen=True)
class Gram(Stats):
    """Weighted Gram matrix sum_t w_t phi_t phi_t^T, with the class term first."""

    matrix: Array  # (S + 1, S + 1)


class Curvature:
    """Cholesky factors of 1/2 Phi^T W Phi + 1/var: one for all classes, or with a mask one for each class."""

    def __init__(self, gram: Array, variance: Variance, mask: Array | None) -> None:
        matrix = 0.5 * gram
        # columns that sum to one are collinear: with a weak prior or none, a small ridge is added to the bound
        ridge = np.zeros(len(gram))
        ridge[1:] = precision(variance)[:, 0]
        ridge = np.maximum(ridge, 1e-9 * float(np.diagonal(gram).mean()))
        matrix[np.diag_indices_from(matrix)] += ridge
        if mask is None:
            self.index = None
            self.factors = [cholesky(matrix, lower=True)]
        else:
            self.index = [np.concatenate([[0], 1 + np.flatnonzero(column)]) for column in mask.T]
            self.factors = [cholesky(matrix[np.ix_(i, i)], lower=True) for i in self.index]

    def solve(self, slope: Array) -> Array:
        """Curvature^-1 slope, (S + 1, C)."""
        if self.index is None:
            return cho_solve((self.factors[0], True), slope)
        out = np.zeros_like(slope)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = cho_solve((factor, True), slope[index, c])
        return out

    def whiten(self, slope: Array) -> Array:
        """L^-1 slope: the gradient in coordinates in which this curvature is the identity."""
        return self._triangular(slope, "N")

    def color(self, whitened: Array) -> Array:
        """L^-T u: transform back from these coordinates."""
        return self._triangular(whitened, "T")

    def uncolor(self, params: Array) -> Array:
        """L^T theta: transform to these coordinates."""
        if self.index is None:
            return self.factors[0].T @ params
        out = np.zeros_like(params)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = factor.T @ params[index, c]
        return out

    def _triangular(self, values: Array, trans: str) -> Array:
        if self.index is None:
            return solve_triangular(self.factors[0], values, lower=True, trans=trans)
        out = np.zeros_like(values)
        for c, (index, factor) in enumerate(zip(self.index, self.factors)):
            out[index, c] = solve_triangular(factor, values[index, c], lower=True, trans=trans)
        return out


@dataclass(frozen=True)
class Diagonal:
    """A diagonal bound on the curvature: |Phi|^T W |Phi| <= diag of its row sums, so half of these + 1/var is a bound.

    It is weaker than the matrix bound by a factor of the number of features, but works with any number of cells.
    """

    diagonal: Array  # (S + 1, 1)

    @staticmethod
    def of(row_sums: Array, variance: Variance) -> Diagonal:
        ridge = np.zeros(len(row_sums))
        ridge[1:] = precision(variance)[:, 0]
        floor = 1e-9 * float(row_sums.mean())  # for cells that never occur
        return Diagonal((0.5 * np.maximum(row_sums, floor) + ridge)[:, None])

    def solve(self, slope: Array) -> Array:
        return slope / self.diagonal

    def whiten(self, slope: Array) -> Array:
        return slope / np.sqrt(self.diagonal)

    color = whiten

    def uncolor(self, params: Array) -> Array:
        return params * np.sqrt(self.diagonal)


class Hessian:
    """The negative Hessian of some rows at given posteriors: sum_t w_t (diag p_t - p_t p_t^T) x phi_t phi_t^T + 1/var.

    It is computed in single precision, which is sufficient for a preconditioner.
    """

    def __init__(self, cells: Cells, rows: Rows, post: Array, variance: Variance) -> None:
        phi = np.concatenate([np.ones((1, rows.n_rows)), cells.dense(rows)]).astype(np.float32)  # (S + 1, n)
        n_classes, size = len(post), len(phi)
        matrix = np.empty((n_classes, size, n_classes, size))
        for a in range(n_classes):
            for b in range(a + 1):
                root = phi * np.sqrt(rows.weight * post[a] * (1 - post[a] if a == b else post[b])).astype(np.float32)
                # a product of an array with itself: BLAS computes one triangle only
                matrix[a, :, b] = matrix[b, :, a] = root @ root.T if a == b else -(root @ root.T)
        flat = matrix.reshape(n_classes * size, -1)
        # the direction common to all classes has zero curvature, which rounding can make negative
        ridge = np.full((n_classes, size), 1e-6 * float(np.trace(flat)) / n_classes)
        ridge[:, 1:] += precision(variance).T
        flat[np.diag_indices_from(flat)] += ridge.ravel()
        self.factor = cholesky(flat, lower=True, overwrite_a=True, check_finite=False)

    def whiten(self, slope: Array) -> Array:
        return self._triangular(slope, "N")

    def color(self, whitened: Array) -> Array:
        return self._triangular(whitened, "T")

    def uncolor(self, params: Array) -> Array:
        return (self.factor.T @ params.T.ravel()).reshape(params.T.shape).T

    def _triangular(self, values: Array, trans: str) -> Array:
        by_class = solve_triangular(self.factor, values.T.ravel(), lower=True, trans=trans, check_finite=False)
        return by_class.reshape(values.T.shape).T


def gram_matrix(cells: Cells, source: RowBlocks, executor: Executor) -> Array:
    """(S + 1, S + 1) Gram matrix sum_t w_t phi_t phi_t^T, class term first."""

    def gram(rows: Any) -> Gram:
        return Gram(cells.gram(rows))

    return executor.total(gram, source).matrix


def gram_row_sums(cells: Cells, source: RowBlocks, executor: Executor) -> Array:
    """(S + 1,) row sums of sum_t w_t |phi_t| |phi_t|^T, class term first, computed in one pass over the cells."""

    def sums(rows: Any) -> Gram:
        rows = replace(rows, dense=np.abs(rows.dense))
        # missing columns are counted too, which gives an upper bound
        width = (rows.weight * (1 + len(cells.sizes) + cells.dense_sums(rows)))[None]
        counts = cells.expected(width, rows)
        return Gram(np.concatenate([width.sum(axis=1)[None], counts])[:, 0])

    return executor.total(sums, source).matrix
