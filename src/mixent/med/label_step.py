"""The label step: the optimal label distributions for fixed discriminant functions (001, equations 77 to 79).

The label distribution q of each row minimizes

    D(q || P0) + sum_p loss(m_p),      m_p = d_p (q_a - q_b),   d_p = F_a - F_b,   for the pairs of classes p = (a, b).

With the multipliers λ_p of the margins, their slacks z_p = m_p - u'(λ_p) and multipliers s of q >= 0, the optimality
conditions are

    log(q / P0) = sum_p λ_p d_p (1_a - 1_b) + s + ν,      λ z = 0,   q s = 0,      q, s, λ, z >= 0.

Where the multipliers may grow large, the loss has almost a kink; where the scores are large, q is almost a step
function of the multipliers. A primal-dual interior-point method, for which all of these are unknowns, is not affected
by either. As in `interior_point`, a bound on the multipliers has the unknown h with (upper - λ) h = 1.

Constrained class shares have a multiplier μ_y each, with which the prior of the rows is P0(y) exp(μ_y); at the optimum
μ_y sum_t w_t q_t(y) = n_y. They are the only connection between rows: every row has its own step length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import rel_entr

from mixent.core.arrays import Array, log_sum_exp
from mixent.med.constraints import pairs
from mixent.med.margins import MarginPrior

FIRST, MAX_ITER = 6, 80  # linear systems before the gap is computed, which is large until then, and after it
PRECISION, ROUNDING = 1e-13, 1e-6  # relative duality gap at the end, and at the end if it no longer falls
STALLED = 6  # iterations after which a gap that is not halved no longer falls
TO_BOUNDARY = 0.99  # largest fraction of the way to the boundary that a step may take
SHORT = 0.1  # a step that can take less than this fraction is replaced by a centering step
LEAST = 1e-12  # prior of a possible class
MAX_CURVATURE = 1e10  # of a margin, relative to that of D(q || P0)


@dataclass(frozen=True)
class ClassShares:
    """Constraint on the class shares of the unlabelled rows, with the Dirichlet prior of these shares."""

    weight: Array  # (n,) of the unlabelled rows; 0 for the others
    counts: Array  # (C,) n_y > 0

    def penalty(self, q: Array) -> float:
        """-sum_y n_y log π_y for the shares of these label distributions, minus its minimum."""
        return float(rel_entr(self.counts, self.counts.sum() * (self.weight @ q) / self.weight.sum()).sum())

    def take(self, rows: np.ndarray) -> ClassShares:
        return ClassShares(self.weight[rows], self.counts)


def best_labels(scores: Array, prior: Array, margin: MarginPrior, shares: ClassShares | None = None) -> Array:
    """The optimal label distributions (n, C) for scores (n, C) and priors of the labels (n, C).

    The prior of a possible class counts as at least `LEAST`; with class shares, every class is possible.
    """
    q = prior / prior.sum(axis=1, keepdims=True)
    separate = (prior > 0).sum(axis=1) > 1
    q[separate] = np.where(q[separate] > 0, np.maximum(q[separate], LEAST), 0.0)
    if shares is not None:
        together = np.flatnonzero(shares.weight > 0)
        separate[together] = False
        q[together] = np.maximum(q[together], LEAST)  # every class is possible
        q[together] = LabelStep(scores[together], q[together], margin, shares.take(together)).solve()
    if separate.any():
        q[separate] = LabelStep(scores[separate], q[separate], margin).solve()
    return q


class Iterate:
    """The unknowns of n rows, or a step of all of them, as the columns of one array."""

    def __init__(self, values: Array, n_classes: int) -> None:
        n_pairs = n_classes * (n_classes - 1) // 2
        ends = np.cumsum([n_classes, n_classes, n_pairs, n_pairs, n_pairs])
        self.values, self.n_classes = values, n_classes
        self.q, self.s, self.lam, self.z, self.h, self.distance = np.split(values, ends, axis=1)  # distance: upper - λ

    @classmethod
    def of(cls, q: Array, *others: Array) -> Iterate:
        return cls(np.concatenate([q, *others], axis=1), q.shape[1])

    def take(self, rows: np.ndarray) -> Iterate:
        return Iterate(self.values[rows], self.n_classes)

    def plus(self, step: Iterate, length: Array) -> Iterate:
        """After a step with these lengths (n,)."""
        return Iterate(self.values + length[:, None] * step.values, self.n_classes)

    def longest(self, step: Iterate) -> Array:
        """(n,) lengths at which the first of a row's unknowns becomes zero."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.asarray(np.where(step.values < 0, -self.values / step.values, np.inf).min(axis=1))


class LabelStep:
    """The problems of all rows, solved simultaneously; with class shares they are one problem."""

    def __init__(self, scores: Array, prior: Array, margin: MarginPrior, shares: ClassShares | None = None) -> None:
        """Scores and prior (n, C); several classes of each row are possible."""
        a, b = self.pairs = pairs(prior.shape[1])
        self.contrasts = np.eye(prior.shape[1])[a] - np.eye(prior.shape[1])[b]  # (P, C)
        self.prior, self.margin, self.shares = prior, margin, shares
        self.imposed = (prior[:, a] + prior[:, b]) > 0
        self.d = np.where(self.imposed, scores @ self.contrasts.T, 0.0)  # (n, P)
        self.bounded = margin.upper < np.inf
        self.tilt = np.zeros(prior.shape[1]) if shares is None else shares.counts / (shares.weight @ prior)  # μ

    def solve(self) -> Array:
        """(n, C) optimal label distributions, of the smallest duality gap."""
        n = len(self.prior)
        rows, x, best = np.arange(n), self._start(), self.prior.copy()
        smallest, n_stalled = np.full(n, np.inf), np.zeros(n, dtype=int)
        for _ in range(FIRST):
            x = self._iterate(x, rows)
        for _ in range(MAX_ITER):
            gap, size = self.gap(x, rows)
            smaller = gap < smallest[rows]
            n_stalled[rows] = np.where(gap < 0.5 * smallest[rows], 0, n_stalled[rows] + 1)
            best[rows[smaller]], smallest[rows[smaller]] = x.q[smaller], gap[smaller]
            ended = (gap <= PRECISION * size) | (n_stalled[rows] >= STALLED) & (gap <= ROUNDING * size)
            if ended.all():
                break
            if self.shares is None and ended.any():
                rows, x = rows[~ended], x.take(~ended)
            x = self._iterate(x, rows)
        return best / best.sum(axis=1, keepdims=True)

    def gap(self, x: Iterate, rows: np.ndarray) -> tuple[Array, Array]:
        """(n,) duality gap of each row, or of all with class shares, and the size of the values that are subtracted."""
        d, prior, imposed = self.d[rows], self.prior[rows], self.imposed[rows]
        divergence = rel_entr(x.q, prior).sum(axis=1)
        loss = np.where(imposed, self.margin.loss(self.margins(x.q, d)), 0.0).sum(axis=1)
        potential = np.where(imposed, self.margin.potential(x.lam), 0.0).sum(axis=1)
        with np.errstate(divide="ignore"):
            log_total = log_sum_exp(np.log(prior) + (x.lam * d) @ self.contrasts + self.tilt, axis=1)
        gap, size = divergence + loss - (potential - log_total), 1.0 + divergence + np.abs(loss) + np.abs(potential)
        if self.shares is None:
            return gap, size
        weight, counts = self.shares.weight, self.shares.counts
        of_shares = float((counts * np.log(counts / (self.tilt * (weight @ x.q))) - counts).sum())
        return np.full(len(gap), weight @ gap + of_shares), np.full(len(gap), weight @ size)

    def margins(self, q: Array, d: Array) -> Array:
        return (q @ self.contrasts.T) * d

    def complementarity(self, x: Iterate, rows: np.ndarray) -> Array:
        """(n,) mean of λ z, q s and (upper - λ) h - 1."""
        bound = np.abs(x.distance * x.h - 1.0) if self.bounded else 0.0
        total = np.where(self.imposed[rows], x.lam * x.z + bound, 0.0).sum(axis=1) + (x.q * x.s).sum(axis=1)
        return np.asarray(total / (self.imposed[rows].sum(axis=1) + x.q.shape[1]))

    def _start(self) -> Iterate:
        q = self.prior
        lam = np.full(self.d.shape, min(1.0, 0.5 * self.margin.upper))
        shortfall = self.margin.regular_mean(lam)[0] - self.margins(q, self.d)
        distance = self.margin.upper - lam if self.bounded else np.ones(lam.shape)
        h = np.maximum(shortfall, 1.0 / distance) if self.bounded else np.zeros(lam.shape)
        z = np.maximum(np.abs(h - shortfall), 1.0 / (1.0 + lam))
        return Iterate.of(q, (q > 0).astype(float), lam, z, h, distance)

    def _iterate(self, x: Iterate, rows: np.ndarray) -> Iterate:
        """Mehrotra's predictor-corrector step; a centering step where that is short or raises the complementarity."""
        system, mu = _System(self, x, rows), self.complementarity(x, rows)
        predictor, _ = system.direction(0.0 * mu, None)
        predicted = x.plus(predictor, np.minimum(x.longest(predictor), 1.0))
        ratio = np.minimum(self.complementarity(predicted, rows) / np.maximum(mu, 1e-300), 1.0)
        step, tilt_step = system.direction(mu * ratio**3, predictor)
        length = np.minimum(TO_BOUNDARY * x.longest(step), 1.0)
        poor = (length < SHORT) | (self.complementarity(x.plus(step, length), rows) > mu)  # else the steps may cycle
        if poor.any():
            centering, _ = system.direction(0.5 * mu, None)
            step = Iterate(np.where(poor[:, None], centering.values, step.values), x.n_classes)
            length = np.minimum(TO_BOUNDARY * x.longest(step), 1.0)
        if self.shares is not None:
            falls = float(np.max(-tilt_step / self.tilt))
            longest = TO_BOUNDARY / falls if falls > 0 else 1.0
            self.tilt = self.tilt + min(float(length.mean()), longest) * tilt_step
        return x.plus(step, length)


class _System:
    """The linear system of Newton's method: for each row, and for the multipliers of the class shares."""

    def __init__(self, problem: LabelStep, x: Iterate, rows: np.ndarray) -> None:
        self.problem, self.x = problem, x
        self.d, self.imposed, prior = problem.d[rows], problem.imposed[rows], problem.prior[rows]
        regular, curvature = problem.margin.regular_mean(x.lam)
        self.slack = problem.margins(x.q, self.d) - regular + x.h - x.z
        self.bound = x.distance * x.h - 1.0 if problem.bounded else 0.0 * x.h
        self.q = np.where(prior > 0, x.q, 1.0)
        log_ratio = np.log(self.q / np.where(prior > 0, prior, 1.0))
        self.residual = log_ratio - (x.lam * self.d) @ problem.contrasts - problem.tilt
        a, b = problem.pairs
        self.variance = variance = x.q / (1.0 + x.s)  # inverse curvature of D(q || P0), with q s
        squares = x.lam * self.d**2
        self.diagonal = np.maximum(
            x.z + x.lam * (curvature + x.h / x.distance), squares * (variance[:, a] + variance[:, b]) / MAX_CURVATURE
        )
        self.covariance = _covariance(np.where(self.imposed, squares / self.diagonal, 0.0), problem.pairs, variance)
        if problem.shares is not None:
            self.sums = problem.shares.weight @ x.q
            of_rows = np.einsum("n,nij->ij", problem.shares.weight, self.covariance)
            self.of_tilt = of_rows + np.diag(self.sums / problem.tilt)

    def direction(self, mu: Array, predictor: Iterate | None) -> tuple[Iterate, Array]:
        """The Newton step towards  λ z = q s = mu  and  (upper - λ) h = 1 + mu,  and that of the tilt."""
        x, problem, target = self.x, self.problem, mu[:, None]
        of_lam, of_q, bound = target - x.lam * x.z, target + 0.0 * x.q, target - self.bound
        if predictor is not None:  # second-order terms
            of_lam, of_q = of_lam - predictor.lam * predictor.z, of_q - predictor.q * predictor.s
            bound = bound + predictor.lam * predictor.h
        if not problem.bounded:
            bound = 0.0 * bound
        right = (of_lam - x.lam * (self.slack + bound / x.distance)) / self.diagonal
        gradient = (np.where(self.imposed, right, 0.0) * self.d) @ problem.contrasts - self.residual + of_q / self.q
        q = np.einsum("nij,nj->ni", self.covariance, gradient)
        tilt = np.zeros_like(problem.tilt)
        if problem.shares is not None:
            shortfall = problem.shares.counts / problem.tilt - self.sums - problem.shares.weight @ q
            tilt = np.linalg.solve(self.of_tilt, shortfall)
            q = q + self.covariance @ tilt
        q -= q.sum(axis=1, keepdims=True) * self.variance / self.variance.sum(axis=1, keepdims=True)  # rounding
        lam = right - x.lam * problem.margins(q, self.d) / self.diagonal
        s = np.where(x.q > 0, (of_q - x.s * q) / self.q - x.s, 0.0)
        h = (bound + x.h * lam) / x.distance
        z, distance = (of_lam - x.z * lam) / x.lam, -lam if problem.bounded else 0.0 * lam
        return Iterate.of(q, s, lam, z, h, distance), tilt


def _covariance(curvature: Array, classes: tuple[np.ndarray, np.ndarray], variance: Array) -> Array:
    """(n, C, C) derivative of q by a gradient: the inverse, for steps of sum zero, of the Hessian

        diag(1 / variance) + sum_p curvature_p (1_a - 1_b)(1_a - 1_b)^T.

    It is scaled by the standard deviations, so that probabilities near zero do no harm.
    """
    (n, C), (a, b) = variance.shape, classes
    root, diagonal = np.sqrt(variance), np.arange(C)
    matrix = np.zeros((n, C, C))
    matrix[:, a, b] = matrix[:, b, a] = -curvature
    matrix[:, diagonal, diagonal] = -matrix.sum(axis=2)
    matrix *= root[:, :, None] * root[:, None, :]
    matrix[:, diagonal, diagonal] += 1.0
    inverse = np.linalg.inv(matrix)
    v = (inverse @ root[:, :, None])[:, :, 0]
    inverse -= v[:, :, None] * v[:, None, :] / (root * v).sum(axis=1)[:, None, None]
    return np.asarray(root[:, :, None] * inverse * root[:, None, :])
