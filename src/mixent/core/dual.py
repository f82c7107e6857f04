"""Maximization of a concave dual function with box constraints and at most one equality constraint.

    maximize  J(λ) = sum_t w_t u(λ_t) - a^T K a / 2,    a_t = w_t e_t λ_t,    0 <= λ_t < upper,   [sum_t a_t = 0]

over the multipliers λ, with u concave (`Potential`) and e_t in [-1, 1] the expected label of row t. Without the
equality constraint this is coordinate ascent; with it, two coordinates change at a time (a_i + d, a_j - d), as in
sequential minimal optimization: the pair that violates the optimality conditions most. Every step maximizes J along its
line, so J never decreases. Rows whose multiplier is zero and would stay zero are set aside (shrinking) and checked
again before the end.

The certificate is the primal objective: with f = K a and the best constant b, J* <= a^T K a / 2 + sum_t w_t
loss(e_t (f_t + b)), loss(m) = max_λ u(λ) - λ m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy
from scipy.optimize import brentq

from mixent.core.arrays import Array
from mixent.core.blocks import Blocks, NumberedRows
from mixent.core.driver import Problem
from mixent.core.stats import Stats

MIN_STEPS = 200  # steps of a sweep
SHRINK = 0.7  # copy the kernel of the active rows when they are less than this share of those of the last copy
NEAR = 0.99  # share of the upper bound that initial multipliers may reach
SOLVED = 1e-6  # relative accuracy of the maximum along a line; the next step corrects the rest


class Potential(Protocol):
    """A concave function u of one multiplier, for numbers and arrays."""

    @property
    def upper(self) -> float:
        """Upper end of the domain; the slope is -inf there unless it is inf."""

    def potential(self, multiplier: Array) -> Array: ...
    def mean(self, multiplier: float) -> float:
        """Return the slope of u."""

    def curvature(self, multiplier: float) -> float:
        """Return minus the second derivative of u."""

    def multiplier(self, margin: Array) -> Array:
        """Return the λ that maximizes u(λ) - λ m."""

    def loss(self, margin: Array) -> Array:
        """Return max_λ u(λ) - λ m."""


@dataclass(frozen=True)
class Point:
    """Multipliers and the resulting discriminant function, without its constant."""

    lam: Array  # (n,)
    f: Array  # (n,) K a


@dataclass(frozen=True)
class Parts(Stats):
    potential: float  # sum w u(λ)
    energy: float  # a^T K a


@dataclass(frozen=True)
class BoxDual(Problem[Point, Point, Parts]):
    """J over the box; `update` is a sweep of max(200, n / 2) steps."""

    kernel: Array  # (n, n)
    direction: Array  # (n,) e_t; a row with zero has no effect
    weight: Array  # (n,)
    potential: Potential
    balanced: bool  # with the equality constraint
    tol: float = 1e-10  # largest remaining slope
    cache: list[_ActiveRows] = field(default_factory=list, repr=False)  # kernel of all rows, and of the active rows

    def start(self, alpha: Array | None = None) -> Point:
        """Return zero, or the feasible point nearest to the coefficients `alpha` of another problem."""
        n = len(self.direction)
        if alpha is None:
            return Point(np.zeros(n), np.zeros(n))
        scale = self.weight * self.direction
        lam = np.divide(alpha, scale, out=np.zeros(n), where=scale != 0)
        lam = np.clip(lam, 0.0, NEAR * self.potential.upper)
        if self.balanced:
            positive, negative = float((scale * lam)[scale > 0].sum()), -float((scale * lam)[scale < 0].sum())
            lam[scale > 0] *= min(1.0, negative / positive) if positive > 0 else 0.0
            lam[scale < 0] *= min(1.0, positive / negative) if negative > 0 else 0.0
        return Point(lam, np.asarray(self.kernel @ (scale * lam)))

    def source(self) -> Blocks:
        return Blocks(NumberedRows.of(self.weight), 64)

    def prepare(self, params: Point) -> Point:
        return params

    def stats(self, ready: Point, block: NumberedRows) -> Parts:  # type: ignore[override]
        rows = block.index
        potential = block.weight @ self.potential.potential(ready.lam[rows])
        return Parts(float(potential), float(self.alpha(ready)[rows] @ ready.f[rows]))

    def objective(self, params: Point, total: Parts) -> float:
        return total.potential - 0.5 * total.energy

    def alpha(self, params: Point) -> Array:
        """Return the coefficients a_t, (n,)."""
        return np.asarray(self.weight * self.direction * params.lam)

    def update(self, params: Point, total: Parts, step: float) -> Point:
        slope = self._slope(params)
        increasing, decreasing = self._free_directions(params.lam)
        rows = self._active_rows(params.lam, slope, increasing, decreasing)
        if len(rows) == 0:
            return params
        active = self._active_kernel(rows)
        lam, n_steps = params.lam.copy(), max(MIN_STEPS, len(self.direction) // 2)
        sweep = _Sweep(self, active, lam[active.rows], params.f[active.rows])
        (sweep.change_pairs if self.balanced else sweep.change_single)(n_steps)
        lam[active.rows] = sweep.lam
        change = np.zeros(len(lam))
        change[active.rows] = (
            self.weight[active.rows] * self.direction[active.rows] * (sweep.lam - params.lam[active.rows])
        )
        return Point(lam, params.f + self.kernel @ change)

    def _slope(self, params: Point) -> Array:
        """Return the derivatives of J by a_t, (n,); inf for rows with e_t = 0, which `_free_directions` excludes."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.potential.mean(params.lam) / self.direction - params.f)  # type: ignore[arg-type]

    def _free_directions(self, lam: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the rows whose a_t may increase, and those whose a_t may decrease."""
        usable = self.weight > 0
        increasing = usable & ((self.direction > 0) | ((self.direction < 0) & (lam > 0)))
        return increasing, usable & ((self.direction < 0) | ((self.direction > 0) & (lam > 0)))

    def _active_rows(
        self, lam: Array, slope: Array, increasing: NDArray[np.bool_], decreasing: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Return the rows whose multiplier is positive, or would become so for a possible value of the constant."""
        low = high = 0.0
        if self.balanced:
            if not increasing.any() or not decreasing.any():
                return np.empty(0, dtype=np.intp)
            high = float(slope[increasing].max())  # the constant is between these two
            low = float(slope[decreasing].min())
        violating = (increasing & (slope >= min(low, high))) | (decreasing & (slope <= max(low, high)))
        return np.flatnonzero((lam > 0) & (increasing | decreasing) | violating)

    def _active_kernel(self, rows: NDArray[np.intp]) -> _ActiveRows:
        """Return the kernel of these rows (and a few more, where that saves a copy)."""
        if not self.cache:
            usable = np.flatnonzero((self.weight > 0) & (self.direction != 0))
            all_usable = len(usable) == len(self.direction)
            self.cache.append(_ActiveRows.of(self, usable, self.kernel if all_usable else None))
        active = self.cache[-1]
        covered = np.isin(rows, active.rows, assume_unique=True).all()
        if not covered:
            del self.cache[1:]
            active = self.cache[0]
        if len(rows) < SHRINK * len(active.rows):
            del self.cache[1:]
            active = _ActiveRows.of(self, rows)
            self.cache.append(active)
        return active

    def constant(self, params: Point) -> float:
        """Return the bias: the b that minimizes the certificate."""
        if not self.balanced:
            return 0.0
        return best_constant(self.potential, params.f, self.direction, self.weight, self._initial_constant(params))

    def _initial_constant(self, params: Point) -> float:
        """Return the median slope of J in a_t of the active rows, which at the optimum is the constant.

        (001, section 5, corrected.)
        """
        active = (params.lam > 0) & (self.direction != 0) & (self.weight > 0)
        return float(np.median(self._slope(params)[active])) if active.any() else 0.0

    def gap(self, params: Point, total: Parts) -> float | None:
        directed = self.direction != 0
        margin = (self.direction * (params.f + self.constant(params)))[directed]
        loss = float(self.weight[directed] @ self.potential.loss(margin))
        return 0.5 * total.energy + loss - (total.potential - 0.5 * total.energy)


@dataclass(frozen=True)
class _ActiveRows:
    """The active rows, their kernel and what their steps need."""

    rows: NDArray[np.intp]
    kernel: Array  # (m, m)
    diagonal: list[float]
    rate: list[float]  # change of λ_t per unit change of a_t: 1 / (w_t e_t)
    weight: list[float]

    @classmethod
    def of(cls, dual: BoxDual, rows: NDArray[np.intp], kernel: Array | None = None) -> _ActiveRows:
        if kernel is None:
            kernel = dual.kernel[np.ix_(rows, rows)]
        rate = 1.0 / (dual.weight[rows] * dual.direction[rows])
        return cls(rows, kernel, np.diagonal(kernel).tolist(), rate.tolist(), dual.weight[rows].tolist())


class _Sweep:
    """A sweep of steps: multipliers of the active rows, and the slope of J in each a_t."""

    def __init__(self, dual: BoxDual, active: _ActiveRows, lam: Array, f: Array) -> None:
        self.dual, self.active, self.lam = dual, active, lam
        direction = dual.direction[active.rows]
        self.slope = np.asarray(dual.potential.mean(lam) / direction - f)  # type: ignore[arg-type]
        self.positive = (direction > 0).tolist()
        self.direction = direction.tolist()
        # slopes of the rows whose a_t may increase, and of those whose a_t may decrease; infinite for the others
        self.increasing = np.where((direction > 0) | (lam > 0), self.slope, -inf)
        self.decreasing = np.where((direction < 0) | (lam > 0), self.slope, inf)

    def change_pairs(self, n_steps: int) -> None:
        """Change the pair that violates the optimality conditions most; the sum of all a_t remains the same."""
        K, diagonal, between = self.active.kernel, self.active.diagonal, np.empty(len(self.lam))
        for _ in range(n_steps):
            i, j = int(self.increasing.argmax()), int(self.decreasing.argmin())
            slope = float(self.increasing[i] - self.decreasing[j])
            if not slope > self.dual.tol:
                return
            row, other = K[i], K[j]
            curvature = max(diagonal[i] + diagonal[j] - 2.0 * float(row[j]), 0.0)
            length = self._maximize_line((i, 1.0), (j, -1.0), slope, curvature)
            if length == 0.0:
                return
            np.subtract(row, other, out=between)
            self._add_to_slopes(between, -length)
            self._set_limits(i)
            self._set_limits(j)

    def change_single(self, n_steps: int) -> None:
        """Change the coefficient with the largest slope."""
        for _ in range(n_steps):
            i, j = int(self.increasing.argmax()), int(self.decreasing.argmin())
            if self.increasing[i] >= -self.decreasing[j]:
                t, sign, slope = i, 1.0, float(self.increasing[i])
            else:
                t, sign, slope = j, -1.0, -float(self.decreasing[j])
            if not slope > self.dual.tol:
                return
            length = self._maximize_line((t, sign), None, slope, max(self.active.diagonal[t], 0.0))
            if length == 0.0:
                return
            self._add_to_slopes(self.active.kernel[t], -sign * length)
            self._set_limits(t)

    def _add_to_slopes(self, column: Array, amount: float) -> None:
        """Update all slopes after f has changed."""
        for values in (self.slope, self.increasing, self.decreasing):
            daxpy(column, values, a=amount)

    def _set_limits(self, t: int) -> None:
        """Update the slope of a changed row in the directions in which it may change again."""
        slope, positive_multiplier = self.slope[t], self.lam[t] > 0
        self.increasing[t] = slope if self.positive[t] or positive_multiplier else -inf
        self.decreasing[t] = slope if not self.positive[t] or positive_multiplier else inf

    def _maximize_line(
        self, first: tuple[int, float], second: tuple[int, float] | None, slope: float, curvature: float
    ) -> float:
        """Maximize J along the line with this slope at 0, set the multipliers and return the step length, >= 0."""
        a = self._coordinate(*first)
        b = _Coordinate(-1, 0.0, 0.0, 0.0) if second is None else self._coordinate(*second)
        upper = self.dual.potential.upper
        zero = min(a.zero, b.zero)  # the line ends where the first multiplier reaches zero
        end = min(a.end(upper), b.end(upper))  # where the first would reach its upper bound; never attained
        length = self._best_length(a, b, slope, curvature, zero, end)
        for coordinate in (a, b):
            if coordinate.row >= 0:
                at_zero = length == zero == coordinate.zero
                lam = 0.0 if at_zero else max(coordinate.lam + coordinate.rate * length, 0.0)
                mean = self.dual.potential.mean
                self.lam[coordinate.row] = lam
                self.slope[coordinate.row] += (mean(lam) - mean(coordinate.lam)) / self.direction[coordinate.row]
        return length

    def _coordinate(self, t: int, sign: float) -> _Coordinate:
        rate = sign * self.active.rate[t]
        return _Coordinate(t, float(self.lam[t]), rate, rate * self.active.weight[t])

    def _best_length(
        self,
        first: _Coordinate,
        second: _Coordinate,
        initial_slope: float,
        kernel_curvature: float,
        zero: float,
        end: float,
    ) -> float:
        """Return the step length that maximizes J: Newton's method, safeguarded by an interval around the maximum."""
        mean, curvature = self.dual.potential.mean, self.dual.potential.curvature
        a, rate_a, share_a = first.lam, first.rate, first.share
        b, rate_b, share_b = second.lam, second.rate, second.share
        rest = initial_slope - share_a * mean(a) - share_b * mean(b)  # slope without the potentials
        if zero < end:
            slope = (
                rest - kernel_curvature * zero + share_a * mean(a + rate_a * zero) + share_b * mean(b + rate_b * zero)
            )
            if slope >= 0:
                return zero
        low, high, length, slope = 0.0, min(zero, end), 0.0, initial_slope
        for _ in range(60):
            x, y = a + rate_a * length, b + rate_b * length
            total_curvature = kernel_curvature + share_a * rate_a * curvature(x) + share_b * rate_b * curvature(y)
            proposed = length + slope / total_curvature if total_curvature > 0 else inf
            if not low < proposed < high:
                proposed = 0.5 * (low + high) if high < inf else 2.0 * length + 1.0
            converged = abs(proposed - length) <= SOLVED * proposed
            length = proposed
            if converged:
                break
            slope = (
                rest
                - kernel_curvature * length
                + share_a * mean(a + rate_a * length)
                + share_b * mean(b + rate_b * length)
            )
            if slope > 0:
                low = length
            else:
                high = length
        return length


@dataclass(frozen=True, slots=True)
class _Coordinate:
    """A multiplier along a line: lam + rate * length."""

    row: int
    lam: float
    rate: float
    share: float  # rate times weight

    @property
    def zero(self) -> float:
        """Length at which the multiplier reaches zero."""
        return -self.lam / self.rate if self.rate < 0 else inf

    def end(self, upper: float) -> float:
        """Return the length at which the multiplier reaches its upper bound."""
        return (upper - self.lam) / self.rate if self.rate > 0 else inf


def best_constant(potential: Potential, f: Array, direction: Array, weight: Array, start: float) -> float:
    """Return the b that minimizes the convex function  sum_t w_t loss(e_t (f_t + b)),  searched around `start`."""

    def slope(b: float) -> float:
        return -float((weight * direction) @ potential.multiplier(direction * (f + b)))

    width = 1e-3 * (1.0 + abs(start))
    low, high = start - width, start + width
    while slope(low) > 0 and width < 1e12:
        width *= 4
        low = start - width
    while slope(high) < 0 and width < 1e12:
        width *= 4
        high = start + width
    for end in (low, high):
        if slope(end) == 0:  # no row has a positive loss
            return end
    if not slope(low) < 0 < slope(high):
        return 0.5 * (low + high)
    return float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))
