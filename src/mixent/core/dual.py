"""Concave dual ascent on a box, with or without one equality: coordinate by coordinate, or pair by pair.

    maximize  J(l) = sum_t w_t u(l_t) - a^T K a / 2,    a_t = w_t e_t l_t,    0 <= l_t < upper,   [sum_t a_t = 0]

over multipliers l, u concave (`Potential`), e_t in [-1, 1] the direction in which row t pulls. With the equality two
coordinates move against each other (a_i + d, a_j - d), chosen where the slopes contradict the optimum most; without
it, one. Every move maximizes J along its line, so J never falls. Rows that have nothing to say for now are set aside
(shrinking) and looked at again before the end.

The certificate is the dual's own dual: with f = K a and the best constant b, J* <= a^T K a / 2 + sum_t w_t
loss(e_t (f_t + b)), loss(m) = max_l u(l) - l m.
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

LEAST = 200  # moves of a sweep
ASIDE = 0.7  # copy the kernel of the rows at work once they are less than this share of those it was copied for
NEAR = 0.99  # of the upper end a start may reach
SOLVED = 1e-6  # relative: a line's maximum is found so well; the next move mends the rest


class Potential(Protocol):
    """A concave function of one multiplier; numbers and arrays alike."""

    @property
    def upper(self) -> float:
        """Where it ends; its slope is -inf there unless that is inf."""

    def potential(self, multiplier: Array) -> Array: ...
    def mean(self, multiplier: float) -> float:
        """Its slope."""

    def curvature(self, multiplier: float) -> float:
        """Minus its second derivative."""

    def multiplier(self, margin: Array) -> Array:
        """The l that maximizes u(l) - l m."""

    def loss(self, margin: Array) -> Array:
        """max u(l) - l m."""


@dataclass(frozen=True)
class Point:
    """Multipliers and the field they make."""

    lam: Array  # (n,)
    f: Array  # (n,) K a


@dataclass(frozen=True)
class Parts(Stats):
    potential: float  # sum w u(l)
    energy: float  # a^T K a


@dataclass(frozen=True)
class BoxDual(Problem[Point, Point, Parts]):
    """J over the box; `update` is a sweep of half as many moves as there are rows, 200 at least."""

    kernel: Array  # (n, n)
    pull: Array  # (n,) e_t, zero: the row cannot pull
    weight: Array  # (n,)
    potential: Potential
    balanced: bool  # with the equality
    tol: float = 1e-10  # largest slope left
    work: list[_Work] = field(default_factory=list, repr=False)  # the kernel of the rows at work: a memo

    def start(self, alpha: Array | None = None) -> Point:
        """Nothing, or as near to what rows added to the field in another problem as this one allows."""
        n = len(self.pull)
        if alpha is None:
            return Point(np.zeros(n), np.zeros(n))
        scale = self.weight * self.pull
        lam = np.divide(alpha, scale, out=np.zeros(n), where=scale != 0)
        lam = np.clip(lam, 0.0, NEAR * self.potential.upper)
        if self.balanced:
            up, down = float((scale * lam)[scale > 0].sum()), -float((scale * lam)[scale < 0].sum())
            lam[scale > 0] *= min(1.0, down / up) if up > 0 else 0.0
            lam[scale < 0] *= min(1.0, up / down) if down > 0 else 0.0
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
        """(n,) what each row adds to the field."""
        return np.asarray(self.weight * self.pull * params.lam)

    def update(self, params: Point, total: Parts, step: float) -> Point:
        slope = self._slope(params)
        rising, falling = self._may_move(params.lam)
        rows = self._at_work(params.lam, slope, rising, falling)
        if len(rows) == 0:
            return params
        work = self._work(rows)
        lam, n_moves = params.lam.copy(), max(LEAST, len(self.pull) // 2)
        moved = _Moves(self, work, lam[work.rows], params.f[work.rows])
        (moved.in_pairs if self.balanced else moved.one_by_one)(n_moves)
        lam[work.rows] = moved.lam
        change = np.zeros(len(lam))
        change[work.rows] = self.weight[work.rows] * self.pull[work.rows] * (moved.lam - params.lam[work.rows])
        return Point(lam, params.f + self.kernel @ change)

    def _slope(self, params: Point) -> Array:
        """(n,) of J in a_t; inf for rows that cannot pull, which `_may_move` leaves out."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.potential.mean(params.lam) / self.pull - params.f)  # type: ignore[arg-type]

    def _may_move(self, lam: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows whose a_t may rise, and may fall."""
        usable = self.weight > 0
        rising = usable & ((self.pull > 0) | ((self.pull < 0) & (lam > 0)))
        return rising, usable & ((self.pull < 0) | ((self.pull > 0) & (lam > 0)))

    def _at_work(
        self, lam: Array, slope: Array, rising: NDArray[np.bool_], falling: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Rows with a multiplier, and those that want one at some constant now possible."""
        low = high = 0.0
        if self.balanced:
            if not rising.any() or not falling.any():
                return np.empty(0, dtype=np.intp)
            high = float(slope[rising].max())  # the constant is somewhere between
            low = float(slope[falling].min())
        wanting = (rising & (slope >= min(low, high))) | (falling & (slope <= max(low, high)))
        return np.flatnonzero((lam > 0) & (rising | falling) | wanting)

    def _work(self, rows: NDArray[np.intp]) -> _Work:
        """The kernel among these rows (and a few more, where that saves a copy)."""
        if not self.work:
            everything = np.flatnonzero((self.weight > 0) & (self.pull != 0))
            whole = len(everything) == len(self.pull)
            self.work.append(_Work.of(self, everything, self.kernel if whole else None))
        known = self.work[-1]
        covered = np.isin(rows, known.rows, assume_unique=True).all()
        if not covered:
            del self.work[1:]
            known = self.work[0]
        if len(rows) < ASIDE * len(known.rows):
            del self.work[1:]
            known = _Work.of(self, rows)
            self.work.append(known)
        return known

    def constant(self, params: Point) -> float:
        """The b that minimizes the certificate: the bias."""
        if not self.balanced:
            return 0.0
        return best_constant(self.potential, params.f, self.pull, self.weight, self._guess(params))

    def _guess(self, params: Point) -> float:
        """Median of what the active rows say: there the slope of J in a_t is the constant (001, section 5, mended)."""
        speaks = (params.lam > 0) & (self.pull != 0) & (self.weight > 0)
        return float(np.median(self._slope(params)[speaks])) if speaks.any() else 0.0

    def gap(self, params: Point, total: Parts) -> float | None:
        speaks = self.pull != 0
        margin = (self.pull * (params.f + self.constant(params)))[speaks]
        loss = float(self.weight[speaks] @ self.potential.loss(margin))
        return 0.5 * total.energy + loss - (total.potential - 0.5 * total.energy)


@dataclass(frozen=True)
class _Work:
    """The rows at work, and what moving them takes."""

    rows: NDArray[np.intp]
    kernel: Array  # (m, m)
    diagonal: list[float]
    rate: list[float]  # by which l_t moves when a_t moves by one: 1 / (w_t e_t)
    weight: list[float]

    @classmethod
    def of(cls, dual: BoxDual, rows: NDArray[np.intp], kernel: Array | None = None) -> _Work:
        if kernel is None:
            kernel = dual.kernel[np.ix_(rows, rows)]
        rate = 1.0 / (dual.weight[rows] * dual.pull[rows])
        return cls(rows, kernel, np.diagonal(kernel).tolist(), rate.tolist(), dual.weight[rows].tolist())


class _Moves:
    """One sweep: multipliers of the rows at work, and the slope of J in each a_t."""

    def __init__(self, dual: BoxDual, work: _Work, lam: Array, f: Array) -> None:
        self.dual, self.work, self.lam = dual, work, lam
        pull = dual.pull[work.rows]
        self.slope = np.asarray(dual.potential.mean(lam) / pull - f)  # type: ignore[arg-type]
        self.positive = (pull > 0).tolist()
        self.pull = pull.tolist()
        # slopes of the rows that may rise, and of those that may fall; the others out of reach
        self.rising = np.where((pull > 0) | (lam > 0), self.slope, -inf)
        self.falling = np.where((pull < 0) | (lam > 0), self.slope, inf)

    def in_pairs(self, n_moves: int) -> None:
        """Move the two rows whose slopes contradict each other most; the sum of all a_t stays."""
        K, diagonal, between = self.work.kernel, self.work.diagonal, np.empty(len(self.lam))
        for _ in range(n_moves):
            i, j = int(self.rising.argmax()), int(self.falling.argmin())
            steep = float(self.rising[i] - self.falling[j])
            if not steep > self.dual.tol:
                return
            row, other = K[i], K[j]
            bend = max(diagonal[i] + diagonal[j] - 2.0 * float(row[j]), 0.0)
            length = self._line((i, 1.0), (j, -1.0), steep, bend)
            if length == 0.0:
                return
            np.subtract(row, other, out=between)
            self._feel(between, -length)
            self._settle(i)
            self._settle(j)

    def one_by_one(self, n_moves: int) -> None:
        """Move the row with the steepest slope."""
        for _ in range(n_moves):
            i, j = int(self.rising.argmax()), int(self.falling.argmin())
            if self.rising[i] >= -self.falling[j]:
                t, way, steep = i, 1.0, float(self.rising[i])
            else:
                t, way, steep = j, -1.0, -float(self.falling[j])
            if not steep > self.dual.tol:
                return
            length = self._line((t, way), None, steep, max(self.work.diagonal[t], 0.0))
            if length == 0.0:
                return
            self._feel(self.work.kernel[t], -way * length)
            self._settle(t)

    def _feel(self, column: Array, amount: float) -> None:
        """All slopes change with the field."""
        for values in (self.slope, self.rising, self.falling):
            daxpy(column, values, a=amount)

    def _settle(self, t: int) -> None:
        """The moved row's own slope, and which way it may go now."""
        slope, some = self.slope[t], self.lam[t] > 0
        self.rising[t] = slope if self.positive[t] or some else -inf
        self.falling[t] = slope if not self.positive[t] or some else inf

    def _line(self, first: tuple[int, float], second: tuple[int, float] | None, steep: float, bend: float) -> float:
        """How far to move, at least 0: maximize J along the line whose slope at 0 is `steep`; multipliers are set."""
        one = self._mover(*first)
        two = _Mover(-1, 0.0, 0.0, 0.0) if second is None else self._mover(*second)
        upper = self.dual.potential.upper
        stop = min(one.zero, two.zero)  # the first multiplier to reach zero ends the line
        end = min(one.end(upper), two.end(upper))  # where one would reach its upper end; never attained
        length = self._top(one, two, steep, bend, stop, end)
        for mover in (one, two):
            if mover.row >= 0:
                now = 0.0 if length == stop == mover.zero else max(mover.lam + mover.rate * length, 0.0)
                mean = self.dual.potential.mean
                self.lam[mover.row] = now
                self.slope[mover.row] += (mean(now) - mean(mover.lam)) / self.pull[mover.row]
        return length

    def _mover(self, t: int, way: float) -> _Mover:
        rate = way * self.work.rate[t]
        return _Mover(t, float(self.lam[t]), rate, rate * self.work.weight[t])

    def _top(self, one: _Mover, two: _Mover, steep: float, bend: float, stop: float, end: float) -> float:
        """Where on the line J is highest: Newton's method, kept between what is known to be too short and too long."""
        mean, curvature = self.dual.potential.mean, self.dual.potential.curvature
        a, rate_a, share_a = one.lam, one.rate, one.share
        b, rate_b, share_b = two.lam, two.rate, two.share
        level = steep - share_a * mean(a) - share_b * mean(b)  # slope of all but the potentials
        if stop < end:
            there = level - bend * stop + share_a * mean(a + rate_a * stop) + share_b * mean(b + rate_b * stop)
            if there >= 0:
                return stop
        low, high, at, slope = 0.0, min(stop, end), 0.0, steep
        for _ in range(60):
            x, y = a + rate_a * at, b + rate_b * at
            curve = bend + share_a * rate_a * curvature(x) + share_b * rate_b * curvature(y)
            ahead = at + slope / curve if curve > 0 else inf
            if not low < ahead < high:
                ahead = 0.5 * (low + high) if high < inf else 2.0 * at + 1.0
            near = abs(ahead - at) <= SOLVED * ahead
            at = ahead
            if near:
                break
            slope = level - bend * at + share_a * mean(a + rate_a * at) + share_b * mean(b + rate_b * at)
            if slope > 0:
                low = at
            else:
                high = at
        return at


@dataclass(frozen=True, slots=True)
class _Mover:
    """A multiplier on the move: l + rate * length."""

    row: int
    lam: float
    rate: float
    share: float  # rate times weight

    @property
    def zero(self) -> float:
        """Where the multiplier reaches zero."""
        return -self.lam / self.rate if self.rate < 0 else inf

    def end(self, upper: float) -> float:
        """Where it reaches its upper end."""
        return (upper - self.lam) / self.rate if self.rate > 0 else inf


def best_constant(potential: Potential, f: Array, pull: Array, weight: Array, guess: float) -> float:
    """The b that minimizes  sum_t w_t loss(e_t (f_t + b)): convex; where its slope is zero, near a guess."""

    def slope(b: float) -> float:
        return -float((weight * pull) @ potential.multiplier(pull * (f + b)))

    width = 1e-3 * (1.0 + abs(guess))
    low, high = guess - width, guess + width
    while slope(low) > 0 and width < 1e12:
        width *= 4
        low = guess - width
    while slope(high) < 0 and width < 1e12:
        width *= 4
        high = guess + width
    for end in (low, high):
        if slope(end) == 0:  # level there: all rows are content
            return end
    if not slope(low) < 0 < slope(high):
        return 0.5 * (low + high)
    return float(brentq(slope, low, high, xtol=1e-13, rtol=1e-13))
