"""An interior-point method for the local problem of a Newton step, losses with their kinks as they are.

    minimize  v^T Q v / 2 + g^T v + sum_k w_k loss(m_k + a_k v)

Where multipliers may grow large a loss all but breaks at the margin's prior mean, and a quadratic model of it points
nowhere. Here multipliers l and slacks z = m + a v - u'(l) are unknowns of their own, both positive, with l z led to
zero. Where multipliers are bounded, u'(l) = apart(l) - h with (upper - l) h = 1, and h is a third unknown: linear in l
alone, 1 / (upper - l) would throw a step far past the bound, and one row would hold up all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixent.core.arrays import Array
from mixent.core.linalg import solver_of
from mixent.med.margins import MarginPrior

MOST = 100  # linear systems
EDGE = 0.99  # of the way to the border a step may go
SHORT = 0.1  # a step that may go no farther is taken to the middle instead
STALE = 4  # systems without progress, so near the end that rounding has the last word


@dataclass(frozen=True)
class Move:
    """A step, or where steps have led."""

    v: Array  # (p,)
    lam: Array  # (K,)
    z: Array  # (K,)
    h: Array  # (K,)
    left: Array  # (K,) upper - l: next to the bound the difference itself has no digits


def local_minimum(
    Q: Array, g: Array, A: Array, m: Array, weight: Array, margin: MarginPrior, precise: float = 1e-13
) -> Array:
    """(p,) v; Q (p, p) positive semi-definite, A (K, p), weights > 0; `precise`: l z at the end, relative."""
    return _Interior(Q, g, A, m, weight, margin).minimum(precise)


class _Interior:
    """The problem, and the point that moves through it."""

    def __init__(self, Q: Array, g: Array, A: Array, m: Array, weight: Array, margin: MarginPrior) -> None:
        self.Q, self.g, self.A, self.m, self.weight, self.margin = Q, g, A, m, weight, margin
        self.share = weight / weight.sum()
        self.bounded = margin.upper < np.inf
        lam = np.minimum(np.ones(len(m)), 0.5 * margin.upper)
        left = margin.upper - lam if self.bounded else np.ones(len(m))
        apart, _ = margin.apart(lam)
        h = np.maximum(apart - m, 1.0 / left) if self.bounded else np.zeros(len(m))
        self.at = Move(np.zeros(len(g)), lam, np.maximum(m - apart + h, 1.0), h, left)

    def minimum(self, precise: float) -> Array:
        least, stale = np.inf, 0
        for _ in range(MOST):
            self._look()
            off = self.off / (1.0 + float(np.abs(self.kept).mean()))
            pulled = np.abs(self.dual).max() / (1.0 + np.abs(self.g).max() + float(self.weight @ self.at.lam))
            if off <= precise and pulled <= 100 * precise:
                break
            least, stale = (off, 0) if off < 0.5 * least else (least, stale + 1)
            if stale == STALE and off < 1e-6 * (1.0 + float(self.at.lam.mean())):
                break
            self._go()
        return self.at.v

    def _look(self) -> None:
        """What lacks of each condition here."""
        at = self.at
        apart, self.loss_curvature = self.margin.apart(at.lam)
        self.kept = self.m + self.A @ at.v
        self.dual = self.Q @ at.v + self.g - self.A.T @ (self.weight * at.lam)
        self.lacking = self.kept - apart + at.h - at.z
        self.over = at.left * at.h - 1.0 if self.bounded else np.zeros(len(at.h))
        self.mu = float(self.share @ (at.lam * at.z + np.abs(self.over)))
        self.off = max(self.mu, np.abs(self.lacking).max(initial=0.0) * float(at.lam.mean()))

    def _go(self) -> None:
        """One step: Mehrotra's, or where that is short one to the middle."""
        at = self.at
        ratio = at.h / at.left
        self.stiff = at.z + at.lam * (self.loss_curvature + ratio)
        self.solve = solver_of(self.Q + (self.A * (self.weight * at.lam / self.stiff)[:, None]).T @ self.A)
        # how far the plain step gets tells how much to center, and what to correct
        plain = self._direction(0.0, None)
        there = self._after(plain, min(self._room(plain), 1.0))
        over = np.abs(there.left * there.h - 1.0) if self.bounded else 0.0
        ahead = float(self.share @ (there.lam * there.z + over))
        step = self._direction(self.mu * min(ahead / max(self.mu, 1e-300), 1.0) ** 3, plain)
        reach = min(EDGE * self._room(step), 1.0)
        if reach < SHORT:
            step = self._direction(0.5 * self.mu, None)
            reach = min(EDGE * self._room(step), 1.0)
        self.at = self._after(step, reach)

    def _direction(self, aim: float, plain: Move | None) -> Move:
        """Towards  l z = aim  and  (upper - l) h = 1 + aim."""
        at = self.at
        product = aim - at.lam * at.z
        second = aim - self.over if self.bounded else np.zeros(len(at.h))
        if plain is not None:
            product = product - plain.lam * plain.z
            second = second + plain.lam * plain.h
        push = (product - at.lam * (self.lacking + second / at.left)) / self.stiff
        dv = self.solve(self.A.T @ (self.weight * push) - self.dual)
        dl = push - at.lam * (self.A @ dv) / self.stiff
        dh = (second + at.h * dl) / at.left if self.bounded else np.zeros(len(at.h))
        return Move(dv, dl, (product - at.z * dl) / at.lam, dh, -dl if self.bounded else np.zeros(len(dl)))

    def _after(self, step: Move, reach: float) -> Move:
        at = self.at
        return Move(
            at.v + reach * step.v,
            at.lam + reach * step.lam,
            at.z + reach * step.z,
            at.h + reach * step.h,
            at.left + reach * step.left,
        )

    def _room(self, step: Move) -> float:
        """How far the step may go before something positive is zero."""
        at = self.at
        ways = [(at.lam, step.lam), (at.z, step.z)]
        if self.bounded:
            ways += [(at.h, step.h), (at.left, step.left)]
        with np.errstate(divide="ignore", invalid="ignore"):
            return min(float(np.where(way < 0, -now / way, np.inf).min(initial=np.inf)) for now, way in ways)
