"""Discriminative training: conditional likelihood (Theorem 4.2 of document 000) and smoothed classification error.

With a_n = log sum_ck l_nc W_ck f_k(x_n), the log density of a row with its label ("clamped"), and
b_n = log sum_ck W_ck f_k(x_n), that without it ("free"), log p(label | x_n) = a_n - b_n. The objective is

    sum_n w_n [a_n - blend b_n] + log prior        conditional likelihood (blend = 1), or between it and the joint one
    - sum_n w_n s(a_n - b_n) + log prior           smoothed error

The gradient is sum_n [u_n h_k(x_n, y_n) - v_n h_k(x_n)] d log f_k: clamped minus free responsibilities, so the
statistics are those of EM with signed responsibilities. The update is extended Baum-Welch: the M-step of the structure
on

    (clamped - free) + D_k E_current[statistics],

whose surrogate has the same gradient as the objective at the current parameters for any D_k. Larger D_k give smaller
steps; the driver reduces the step size until the objective does not decrease.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mixent.core.arrays import Array, safe_log, softmax_columns
from mixent.core.blocks import Block
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats, Ready

UNDERFLOW = 1e-250  # ratio of clamped to free density below which both are computed in the log domain


class Criterion(Protocol):
    """A function of the clamped and free log densities a, b (n,) of rows, and its derivatives."""

    def __call__(self, a: Array, b: Array) -> tuple[Array, Array | float, Array | float]:
        """Return (value, d value / d a, - d value / d b)."""


@dataclass(frozen=True)
class ConditionalLikelihood:
    """a - blend b: log p(label | x) at blend = 1, log p(label, x) at 0."""

    blend: float = 1.0

    def __call__(self, a: Array, b: Array) -> tuple[Array, Array | float, Array | float]:
        return a - self.blend * b, 1.0, self.blend


@dataclass(frozen=True)
class SmoothedError:
    """Minus a smoothed count of errors:  - 1 / (1 + (p / (1 - p))^g)  with p = p(label | x).

    For g = 1 this is -(1 - p), minus the error rate of a label drawn from the posterior; for two classes and large g it
    tends to minus the error of the most probable class.
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
    """`counts` and `free` are the clamped and the free expected counts; `components` has differences of moments."""

    free: Array  # (C, K)

    @property
    def signed_counts(self) -> Array:
        return self.counts - self.free


@dataclass(frozen=True)
class DiscriminativeProblem(MixtureProblem):
    """Discriminative training of a mixture."""

    criterion: Criterion = ConditionalLikelihood()

    first_step = 1.0
    safe_step = 2.0**-20  # the update increases the objective for small steps; even smaller ones could hide an error

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
        underflow = clamped <= UNDERFLOW * mass
        if underflow.any():  # these rows are computed in the log domain; here they have weight zero
            weight = np.where(underflow, 0.0, weight)
            clamped, mass = np.where(underflow, 1.0, clamped), np.where(underflow, 1.0, mass)
        value, d_clamped, d_free = self.criterion(safe_log(clamped) + top, safe_log(mass) + top)
        d_clamped, d_free = weight * d_clamped / clamped, weight * d_free / mass
        counts, free_counts = _counts(share, free, d_clamped, d_free, block)
        free *= allowed * d_clamped - d_free
        total = SignedStats(counts, work.moments(free), float(value @ weight), free_counts)
        if underflow.any():
            rows = np.flatnonzero(underflow)
            total = total + self._log_domain(ready, block.take(rows, complete=block.complete, known=block.known))
        return total

    def _log_domain(self, ready: Ready, block: Block) -> SignedStats:
        """Return the same statistics without underflow, for rows of very low density under their own class."""
        work = self.family.open(ready.family, block)
        free = np.array(work.log_prob())
        free += ready.log_weights[:, None]
        share = _shares(ready.weights)
        clamped = free + safe_log(_allowed(share, block))
        a, b = softmax_columns(clamped), softmax_columns(free)
        weight = block.row_weights
        possible = np.isfinite(a) & np.isfinite(b)  # rows of density zero do not contribute
        value, d_clamped, d_free = self.criterion(np.where(possible, a, 0.0), np.where(possible, b, 0.0))
        weight = np.where(possible, weight, 0.0)
        clamped *= weight * d_clamped
        free *= weight * d_free
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
        damping = total.free.sum(axis=0) / step  # D_k
        stats = self.family.with_expected_rows(components, total.components, damping)
        for _ in range(60):
            bad = live & ~self.family.feasible(components, stats, live)
            if not bad.any():
                break
            damping = np.where(bad, 4 * damping + 1e-3, damping)
            stats = self.family.with_expected_rows(components, total.components, damping)
        return replace(params, weights=weights, components=self.family.update(components, stats, live))

    def _next_weights(self, params: MixtureParams, total: SignedStats, step: float) -> Array:
        """Maximize  sum (clamped + rows) log W - sum (free / W_current) W  over the simplex, then take a partial step.

        As a function of the weights this is a lower bound of the conditional likelihood that touches it:
        -log z >= -log z0 - (z - z0) / z0. With fixed class priors, each class has its own simplex.
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
    """Return the maximum of  sum_i rows_i log w_i - slope_i w_i  over w >= 0 with sum w = size.

    w_i = rows_i / (slope_i + m). Newton's method for m, started below the solution, never exceeds it.
    """
    # relative to the smallest slope, so that m + slope is accurate for a weight with few rows
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
    """Return p(class | component), (C, K)."""
    mass = weights.sum(axis=0)
    return np.divide(weights, mass, out=np.zeros_like(weights), where=mass > 0)


def _allowed(share: Array, block: Block) -> Array:
    """Return p(label | component): (K, 1) if all rows have the same class or none a label, (K, n) otherwise."""
    if block.known is not None:
        return share[block.known][:, None]
    return share.sum(axis=0)[:, None] if block.label is None else share.T @ block.label.T


def _clamped_mass(free: Array, allowed: Array) -> Array:
    return allowed[:, 0] @ free if allowed.shape[1] == 1 else np.einsum("kn,kn->n", free, allowed)


def _counts(share: Array, free: Array, d_clamped: Array, d_free: Array, block: Block) -> tuple[Array, Array]:
    """Return the clamped and free expected counts, (C, K)."""
    free_counts = share * (free @ d_free)
    if block.known is not None:
        counts = np.zeros_like(share)
        counts[block.known] = share[block.known] * (free @ d_clamped)
    elif block.label is None:
        counts = share * (free @ d_clamped)
    else:
        counts = share * (free @ (block.label * d_clamped[:, None])).T
    return counts, free_counts
