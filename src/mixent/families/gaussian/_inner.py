"""The two inner optimizations of the covariance structures: relative volumes, and common axes.

Both minimize a smooth function of few variables to rounding accuracy; no step increases it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dgejsv

from mixent.core.arrays import Array

FLOOR = 1e-40  # relative to the largest value: replaces zero in logarithms and divisions
_RANGE = 80.0  # log of the largest ratio of two volumes; beyond it, a component is degenerate
_TURN = 0.7  # largest angle (radians) by which one step of common_axes may rotate a pair of axes
_GRADED = 1e-8  # ratio of the variances of two columns, below which `eigen` takes the units into account
_MEMORY = 12  # curvature pairs stored by common_axes


def positive(values: Array, largest: float | None = None) -> Array:
    """Return the values, at least FLOOR times the largest (and large enough for a finite reciprocal)."""
    return np.maximum(values, max(FLOOR * float(values.max() if largest is None else largest), 1e-290))


def eigen(scatter: Array) -> tuple[Array, Array]:
    """Return eigenvalues >= 0 in increasing order, (K, d), and eigenvectors, (K, d, d), of scatter matrices.

    The usual algorithm has errors of rounding relative to the largest eigenvalue, which may exceed the variance of a
    column in small units. If the units of the columns differ much, the one-sided Jacobi method (gejsv of LAPACK)
    computes the singular values of the Cholesky factor instead: their errors are relative to each column.
    """
    values, vectors = np.linalg.eigh(scatter)
    values = np.maximum(values, 0.0)
    variances = np.diagonal(scatter, axis1=1, axis2=2)
    for k in np.flatnonzero(variances.max(axis=1) * _GRADED > variances.min(axis=1)):
        try:
            factor = np.linalg.cholesky(scatter[k])
        except np.linalg.LinAlgError:  # singular in any units
            continue
        singular, left, _, work, _, info = dgejsv(factor, joba=2, jobr=0, jobp=0)
        if info == 0:
            values[k], vectors[k] = ((singular * (work[0] / work[1])) ** 2)[::-1], left[:, ::-1]
    return values, vectors


# --- volumes: VEI, VEE, VEV ------------------------------------------------------------------------------------------

Whiten = Callable[[Array], tuple[float, Array, Array]]


def whiten_diagonal(parts: Array) -> tuple[float, Array, Array]:
    """Return log|M|, tr(M^-1 P_k) and the whitened parts as rows, for diagonal parts P_k, (K, d), and M their sum."""
    total = parts.sum(0)
    shares = parts / total
    return float(np.log(total).sum()), shares.sum(1), shares


def whiten_full(parts: Array) -> tuple[float, Array, Array]:
    """Return log|M|, tr(M^-1 P_k) and the whitened parts as rows, for parts P_k, (K, d, d), and M their sum."""
    factor = np.linalg.cholesky(parts.sum(0))
    inverse = np.linalg.inv(factor)
    shares = inverse @ parts @ inverse.T
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum())
    return log_det, np.trace(shares, axis1=1, axis2=2), shares.reshape(len(parts), -1)


def relative_volumes(mass: Array, scatter: Array, start: Array, whiten: Whiten) -> Array:
    """Return the volumes lambda_k, with product 1, of Sigma_k = lambda_k C; `start` has their initial logarithms.

    With the optimal C = sum_k W_k / (n lambda_k), the M-step minimizes over u_k = -log lambda_k

        f(u) = n log|sum_k exp(u_k) W_k| - d sum_k mass_k u_k,

    which is convex (the log-determinant of a sum of exponentials). Newton's method with step halving finds its unique
    minimum. Celeux & Govaert (1995) alternate between lambda and C, which is coordinate descent on the same function.
    """
    n, d = mass.sum(), scatter.shape[1]
    scatter = scatter / max(float(np.abs(scatter).max()), 1e-290)
    shape = (-1,) + (1,) * (scatter.ndim - 1)

    def f(u: Array) -> tuple[float, Array, Array]:
        if np.ptp(u) > _RANGE:
            return np.inf, u, u
        try:
            log_det, traces, shares = whiten(np.exp(u - u.max()).reshape(shape) * scatter)
        except np.linalg.LinAlgError:
            return np.inf, u, u
        return n * (log_det + d * u.max()) - d * float(mass @ u), traces, shares

    u = np.clip(-start + start.mean(), -_RANGE / 2, _RANGE / 2)
    value, traces, shares = f(u)
    if not np.isfinite(value):  # the Cholesky factorization fails at this start; begin with equal volumes
        u = np.zeros_like(u)
        value, traces, shares = f(u)
    for _ in range(100):
        if not np.isfinite(value):
            break
        slope = n * traces - d * mass
        hessian = n * (np.diag(traces) - shares @ shares.T)
        hessian += n * d / len(u) ** 2  # f is constant along (1, ..., 1): fix that direction
        hessian[np.diag_indices_from(hessian)] += 1e-13 * n * d
        direction = -np.linalg.solve(hessian, slope)
        direction *= min(1.0, 8.0 / max(np.abs(direction).max(), 1e-290))
        predicted = -float(slope @ direction)
        step, trial = 1.0, f(u + direction)
        while not trial[0] <= value - 1e-4 * step * predicted and step > 1e-9:
            step /= 2.0
            trial = f(u + step * direction)
        if not trial[0] < value:
            break
        u = u + step * direction
        value, traces, shares = trial
        if predicted < 1e-13 * n * d:
            break
    volumes: Array = np.exp(u.mean() - u)
    return volumes


# --- axes: EVE, VVE --------------------------------------------------------------------------------------------------


def common_axes(
    mass: Array, scatter: Array, equal_volume: bool, start: Array, max_iter: int = 300
) -> tuple[float, Array]:
    """Return the minimum, and the orthogonal matrix D of axes shared by all components that attains it.

    With the optimal diagonal of each Sigma_k given D, and w_k = diag(D^T W_k D), the M-step minimizes

        VVE:  sum_k mass_k sum_i log w_ki             EVE:  n d log sum_k exp(mean_i log w_ki)

    over rotations D <- D exp(Omega), Omega skew-symmetric, by L-BFGS in Omega, preconditioned by the second
    derivative of each plane rotation. A step is accepted only if it decreases the value.
    """
    n, d = mass.sum(), len(start)
    floor = max(FLOOR * float(np.trace(scatter, axis1=1, axis2=2).max()), 1e-290)
    eye = np.eye(d)

    def evaluate(D: Array) -> tuple[float, Array, Array, Array]:
        w = D.T @ scatter @ D
        diagonal = np.maximum(np.diagonal(w, axis1=1, axis2=2), floor)
        logs = np.log(diagonal)
        if not equal_volume:
            return float(mass @ logs.sum(1)), mass, diagonal, w
        means = logs.mean(1)
        top = means.max()
        shares = np.exp(means - top)
        return n * d * float(np.log(shares.sum()) + top), n * shares / shares.sum(), diagonal, w

    def derivatives(weight: Array, diagonal: Array, w: Array) -> tuple[Array, Array]:
        """Return the first and the (positive) second derivative by the angle of each pair of axes."""
        weighted = weight[:, None] / diagonal
        P = np.einsum("ki,kij->ij", weighted, w)
        ratio = weighted.T @ diagonal  # sum_k weight_k w_kj / w_ki
        second = 2.0 * (ratio + ratio.T) - 4.0 * n
        return 2.0 * (P.T - P), np.maximum(second, 1e-2 * n)

    D = np.linalg.qr(start)[0]  # rounding errors would accumulate over many warm starts
    value, *state = evaluate(D)
    slope, second = derivatives(*state)
    memory: list[tuple[Array, Array, float]] = []
    for _ in range(max_iter if d > 1 else 0):
        direction = _two_loop(slope, second, memory)
        predicted = -0.5 * float(np.vdot(slope, direction))  # each pair occurs twice in a skew-symmetric matrix
        if not predicted > 1e-15 * n * d:
            if not memory:
                break
            memory = []
            continue
        direction *= min(1.0, _TURN / np.abs(direction).max())
        predicted = -0.5 * float(np.vdot(slope, direction))
        step = 1.0
        while True:
            half = (0.5 * step) * direction
            trial_D = D @ np.linalg.solve(eye - half, eye + half)  # Cayley: orthogonal, and exp(2 half) to second order
            trial, *state = evaluate(trial_D)
            if trial <= value - 1e-4 * step * predicted or step < 1e-6:
                break
            step *= min(0.5, max(0.1, 0.5 * step * predicted / (trial - value + step * predicted)))
        if not trial < value:
            if not memory:
                break
            memory = []  # try once more with the preconditioned gradient
            continue
        gain = value - trial
        D, value, old = trial_D, trial, slope
        slope, second = derivatives(*state)
        turn, change = step * direction, slope - old
        curvature = float(np.vdot(turn, change))
        if curvature > 1e-12 * float(np.vdot(turn, turn)) * n:
            memory = [*memory[-_MEMORY + 1 :], (turn, change, curvature)]
        if gain < 1e-14 * n * d and predicted < 1e-13 * n * d:
            break
    return value, D


def _two_loop(slope: Array, diagonal: Array, memory: list[tuple[Array, Array, float]]) -> Array:
    """Return the L-BFGS direction (Nocedal & Wright, algorithm 7.4) with this diagonal as initial Hessian."""
    q = -slope
    coefficients = []
    for turn, change, curvature in reversed(memory):
        a = float(np.vdot(turn, q)) / curvature
        q = q - a * change
        coefficients.append(a)
    q = q / diagonal
    for (turn, change, curvature), a in zip(memory, reversed(coefficients)):
        q = q + (a - float(np.vdot(change, q)) / curvature) * turn
    return q
