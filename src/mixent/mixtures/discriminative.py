"""Training for the posterior: conditional likelihood (Theorem 4.2 of document 000) and smoothed classification error.

With a_n = log sum_ck l_nc W_ck f_k(x_n), the density of a row with its label ("clamped"), and
b_n = log sum_ck W_ck f_k(x_n), without it ("free"), log p(label | x_n) = a_n - b_n. Maximized is

    sum_n w_n [a_n - blend b_n] + log prior        conditional likelihood (blend = 1), blended with the joint one
    - sum_n w_n s(a_n - b_n) + log prior           smoothed error

The gradient is sum_n [u_n h_k(x_n, y_n) - v_n h_k(x_n)] d log f_k: clamped minus free responsibilities, so the
statistics are those of EM with signed responsibilities. The update is extended Baum-Welch: the M-step of the structure
on

    (clamped - free) + D_k E_current[statistics],

whose surrogate has the objective's gradient at the current point for any D_k and moves less the larger D_k is; the
driver shortens the step until the objective does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixent.core.arrays import Array, safe_log, softmax_columns
from mixent.core.blocks import Block
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats, Ready

LOST = 1e-250  # a clamped density this far below the free one is computed again in the log domain


class Criterion(Protocol):
    """The value of a row with clamped and free log densities a, b (n,), and its derivatives."""

    def __call__(self, a: Array, b: Array) -> tuple[Array, Array | float, Array | float]:
        """(value, d value / d a, - d value / d b)."""


@dataclass(frozen=True)
class ConditionalLikelihood:
    """a - blend b: log p(label | x) at blend = 1, log p(label, x) at 0."""

    blend: float = 1.0

    def __call__(self, a: Array, b: Array) -> tuple[Array, Array | float, Array | float]:
        return a - self.blend * b, 1.0, self.blend


@dataclass(frozen=True)
class SmoothedError:
    """Minus a smoothed count of errors:  - 1 / (1 + (p / (1 - p))^g)  with p = p(label | x).

    At g = 1 this is -(1 - p), the error of a decision drawn from the posterior; as g grows, that of the most probable
    of two classes.
    """

    sharpness: float = 1.0

    def __call__(self, a: Array, b: Array) -> tuple[Array, Array | float, Array | float]:
        log_p = np.minimum(a - b, 0.0)
        log_rest = np.log(np.maximum(-np.expm1(log_p), 1e-300))
        odds = self.sharpness * (log_rest - log_p)
        slope = self.sharpness * np.exp(-np.logaddexp(0, odds) - np.logaddexp(0, -odds) - log_rest)
        return -0.5 * (1.0 + np.tanh(0.5 * odds)), slope, slope


@dataclass(frozen=True)
class SignedStats(MixtureStats):
    """`counts` and `free` are the clamped and the free expected rows; `components` their difference."""

    free: Array  # (C, K)

    @property
    def signed_counts(self) -> Array:
        return self.counts - self.free


@dataclass(frozen=True)
class DiscriminativeProblem(MixtureProblem):
    """The mixture trained for its posterior."""

    criterion: Criterion = ConditionalLikelihood()

    first_step = 1.0
    safe_step = 2.0**-20  # exact to first order only: short enough steps ascend; a shorter one could hide a wrong one

    def stats(self, ready: Ready, block: Block) -> SignedStats:
        work = self.family.open(ready.family, block)
        free = work.log_prob()
        free += ready.log_weights[:, None]
        top = free.max(axis=0)
        top[np.isneginf(top)] = 0.0
        free -= top
        np.exp(free, out=free)  # (K, n) up to a factor per row
        share = _shares(ready.weights)
        allowed = _allowed(share, block)  # (K, 1) or (K, n)
        mass = free.sum(axis=0)
        clamped = _clamped_mass(free, allowed)
        weight = block.row_weights
        lost = clamped <= LOST * mass
        if lost.any():  # left to the log domain; here any number will do
            weight = np.where(lost, 0.0, weight)
            clamped, mass = np.where(lost, 1.0, clamped), np.where(lost, 1.0, mass)
        value, up, down = self.criterion(safe_log(clamped) + top, safe_log(mass) + top)
        up, down = weight * up / clamped, weight * down / mass
        counts, free_counts = _counts(share, free, up, down, block)
        free *= allowed * up - down
        total = SignedStats(counts, work.moments(free), float(value @ weight), free_counts)
        if lost.any():
            rows = np.flatnonzero(lost)
            total = total + self._log_domain(ready, block.take(rows, complete=block.complete, known=block.known))
        return total

    def _log_domain(self, ready: Ready, block: Block) -> SignedStats:
        """The same statistics where a row's own class has hardly any density: slower, and exact."""
        work = self.family.open(ready.family, block)
        free = np.array(work.log_prob())
        free += ready.log_weights[:, None]
        share = _shares(ready.weights)
        clamped = free + safe_log(_allowed(share, block))
        a, b = softmax_columns(clamped), softmax_columns(free)
        weight = block.row_weights
        possible = np.isfinite(a) & np.isfinite(b)  # a row beyond every density counts nothing
        value, up, down = self.criterion(np.where(possible, a, 0.0), np.where(possible, b, 0.0))
        weight = np.where(possible, weight, 0.0)
        clamped *= weight * up
        free *= weight * down
        label = np.ones((block.n_rows, len(share))) if block.label is None else block.label
        if block.known is not None:
            label = np.equal(block.known, np.arange(len(share))) * np.ones((block.n_rows, 1))
        ratio = np.divide(clamped, _allowed(share, block), out=np.zeros_like(clamped), where=clamped > 0)
        counts = share * (ratio @ label).T
        return SignedStats(counts, work.moments(clamped - free), float(value @ weight), share * free.sum(axis=1))

    def update(  # type: ignore[override]
        self, params: MixtureParams, total: SignedStats, step: float = 1.0
    ) -> MixtureParams:
        weights = self._next_weights(params, total, min(step, 1.0))
        components, live = params.components, params.live
        own = total.free.sum(axis=0) / step
        held = self.family.with_own_rows(components, total.components, own)
        for _ in range(60):
            bad = live & ~self.family.feasible(components, held, live)
            if not bad.any():
                break
            own = np.where(bad, 4 * own + 1e-3, own)
            held = self.family.with_own_rows(components, total.components, own)
        return replace(params, weights=weights, components=self.family.update(components, held, live))

    def _next_weights(self, params: MixtureParams, total: SignedStats, step: float) -> Array:
        """Maximize  sum (clamped + rows) log W - sum (free / W_current) W  over the simplex, then go `step` of the way.

        For the conditional likelihood that lies below the objective and touches it, as far as the weights go:
        -log z >= -log z0 - (z - z0) / z0. With class priors held, each class has a simplex of its own.
        """
        rows = total.counts if self.weight_rows is None else total.counts + self.weight_rows
        old = params.weights
        used = old > 0
        slope = np.divide(total.free, old, out=np.zeros_like(old), where=used)
        best = np.zeros_like(old)
        if self.class_prior is None:
            best[used] = on_simplex(rows[used], slope[used], 1.0)
        else:
            for c, prior in enumerate(self.class_prior):
                best[c, used[c]] = on_simplex(rows[c, used[c]], slope[c, used[c]], prior)
        return np.where(used, np.maximum(old + step * (best - old), 1e-300), 0.0)


def on_simplex(rows: Array, slope: Array, size: float) -> Array:
    """The maximum of  sum_i rows_i log w_i - slope_i w_i  over w >= 0 with sum w = size.

    w_i = rows_i / (slope_i + m): Newton's method in m from below, where the sum is too large, never overshoots.
    """
    # counted from the least slope, where a weight with hardly any rows may yet go: m + slope keeps its digits there
    slope, rows = slope - slope.min(), np.maximum(rows, 1e-300)
    low = float((rows / size - slope).max())
    for _ in range(100):
        w = rows / (slope + low)
        excess = w.sum() - size
        low += excess / (w / (slope + low)).sum()
        if abs(excess) <= 1e-14 * size:
            break
    w = rows / (slope + low)
    return w * (size / w.sum())


def _shares(weights: Array) -> Array:
    """(C, K): p(class | component)."""
    mass = weights.sum(axis=0)
    return np.divide(weights, mass, out=np.zeros_like(weights), where=mass > 0)


def _allowed(share: Array, block: Block) -> Array:
    """p(label | component): (K, 1) for rows of one class or none, (K, n) otherwise."""
    if block.known is not None:
        return share[block.known][:, None]
    return share.sum(axis=0)[:, None] if block.label is None else share.T @ block.label.T


def _clamped_mass(free: Array, allowed: Array) -> Array:
    return allowed[:, 0] @ free if allowed.shape[1] == 1 else np.einsum("kn,kn->n", free, allowed)


def _counts(share: Array, free: Array, up: Array, down: Array, block: Block) -> tuple[Array, Array]:
    """Expected rows (C, K), clamped and free."""
    free_counts = share * (free @ down)
    if block.known is not None:
        counts = np.zeros_like(share)
        counts[block.known] = share[block.known] * (free @ up)
    elif block.label is None:
        counts = share * (free @ up)
    else:
        counts = share * (free @ (block.label * up[:, None])).T
    return counts, free_counts
