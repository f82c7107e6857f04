"""The two inner maximizations of the covariance structures: relative volumes, and common axes.

Both minimize a smooth function of few variables, take no step that raises it, and run to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixent.core.arrays import Array

FLOOR = 1e-30  # of the largest value: what a logarithm or a division sees instead of zero
_RANGE = 80.0  # log of the largest ratio of two volumes; beyond it a component has collapsed
_TURN = 0.7  # largest angle (radians) one step of common_axes may put on one pair of axes
_MEMORY = 12  # curvature pairs kept by common_axes


def positive(values: Array, largest: float | None = None) -> Array:
    """The values, none below FLOOR of the largest (nor so small that its reciprocal overflows)."""
    return np.maximum(values, max(FLOOR * float(values.max() if largest is None else largest), 1e-290))


# --- volumes: VEI, VEE, VEV ------------------------------------------------------------------------------------------

Whiten = Callable[[Array], tuple[float, Array, Array]]


def whiten_diagonal(parts: Array) -> tuple[float, Array, Array]:
    """log|M|, tr(M^-1 P_k) and the whitened parts as rows, for diagonal parts P_k (K, d) and M their sum."""
    total = parts.sum(0)
    shares = parts / total
    return float(np.log(total).sum()), shares.sum(1), shares


def whiten_full(parts: Array) -> tuple[float, Array, Array]:
    """log|M|, tr(M^-1 P_k) and the whitened parts as rows, for parts P_k (K, d, d) and M their sum."""
    factor = np.linalg.cholesky(parts.sum(0))
    inverse = np.linalg.inv(factor)
    shares = inverse @ parts @ inverse.T
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum())
    return log_det, np.trace(shares, axis1=1, axis2=2), shares.reshape(len(parts), -1)


def relative_volumes(mass: Array, scatter: Array, start: Array, whiten: Whiten) -> Array:
    """Volumes lambda_k, their product 1, of Sigma_k = lambda_k C with C free in its class; `start` holds their logs.

    With C at its best, C = sum_k W_k / (n lambda_k), the M-step minimizes over u_k = -log lambda_k

        f(u) = n log|sum_k exp(u_k) W_k| - d sum_k mass_k u_k,

    which is convex (the log-determinant of a sum of exponentials): Newton's step with halving finds the one minimum.
    Celeux & Govaert (1995) alternate lambda and C instead; that is coordinate descent on the same function.
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
    if not np.isfinite(value):  # a start that no Cholesky survives; equal volumes are the tamest there is
        u = np.zeros_like(u)
        value, traces, shares = f(u)
    for _ in range(100):
        if not np.isfinite(value):
            break
        slope = n * traces - d * mass
        hessian = n * (np.diag(traces) - shares @ shares.T)
        hessian += n * d / len(u) ** 2  # f does not change along (1, ..., 1): fix that direction
        hessian[np.diag_indices_from(hessian)] += 1e-13 * n * d
        move = -np.linalg.solve(hessian, slope)
        move *= min(1.0, 8.0 / max(np.abs(move).max(), 1e-290))
        promise = -float(slope @ move)
        step, trial = 1.0, f(u + move)
        while not trial[0] <= value - 1e-4 * step * promise and step > 1e-9:
            step /= 2.0
            trial = f(u + step * move)
        if not trial[0] < value:
            break
        u = u + step * move
        value, traces, shares = trial
        if promise < 1e-13 * n * d:
            break
    volumes: Array = np.exp(u.mean() - u)
    return volumes


# --- axes: EVE, VVE --------------------------------------------------------------------------------------------------


def common_axes(
    mass: Array, scatter: Array, equal_volume: bool, start: Array, max_iter: int = 300
) -> tuple[float, Array]:
    """Orthogonal D shared by all components, and the value it attains.

    With the diagonal of each Sigma_k at its best given D, and w_k = diag(D^T W_k D), the M-step minimizes

        VVE:  sum_k mass_k sum_i log w_ki             EVE:  n d log sum_k exp(mean_i log w_ki)

    over rotations D <- D exp(Omega), Omega skew. Limited-memory BFGS in Omega, preconditioned by the second
    derivative of each plane rotation; a step is taken only if it lowers the value.
    """
    n, d = mass.sum(), len(start)
    floor = max(FLOOR * float(np.trace(scatter, axis1=1, axis2=2).max()), 1e-290)
    eye = np.eye(d)

    def look(D: Array) -> tuple[float, Array, Array, Array]:
        w = D.T @ scatter @ D
        diagonal = np.maximum(np.diagonal(w, axis1=1, axis2=2), floor)
        logs = np.log(diagonal)
        if not equal_volume:
            return float(mass @ logs.sum(1)), mass, diagonal, w
        means = logs.mean(1)
        top = means.max()
        shares = np.exp(means - top)
        return n * d * float(np.log(shares.sum()) + top), n * shares / shares.sum(), diagonal, w

    def slope_and_bend(pull: Array, diagonal: Array, w: Array) -> tuple[Array, Array]:
        """First and (positive) second derivative by the angle of each pair of axes."""
        weighted = pull[:, None] / diagonal
        P = np.einsum("ki,kij->ij", weighted, w)
        ratio = weighted.T @ diagonal  # sum_k pull_k w_kj / w_ki
        bend = 2.0 * (ratio + ratio.T) - 4.0 * n
        return 2.0 * (P.T - P), np.maximum(bend, 1e-2 * n)

    D = np.linalg.qr(start)[0]  # many warm starts in a row would let rounding grow
    value, *state = look(D)
    slope, bend = slope_and_bend(*state)
    moves: list[tuple[Array, Array, float]] = []
    for _ in range(max_iter if d > 1 else 0):
        move = _two_loop(slope, bend, moves)
        promise = -0.5 * float(np.vdot(slope, move))  # each pair stands twice in a skew matrix
        if not promise > 1e-15 * n * d:
            if not moves:
                break
            moves = []
            continue
        move *= min(1.0, _TURN / np.abs(move).max())
        promise = -0.5 * float(np.vdot(slope, move))
        step = 1.0
        while True:
            half = (0.5 * step) * move
            trial_D = D @ np.linalg.solve(eye - half, eye + half)  # Cayley: orthogonal, and exp(2 half) to second order
            trial, *state = look(trial_D)
            if trial <= value - 1e-4 * step * promise or step < 1e-6:
                break
            step *= min(0.5, max(0.1, 0.5 * step * promise / (trial - value + step * promise)))
        if not trial < value:
            if not moves:
                break
            moves = []  # try once more without the memory
            continue
        gain = value - trial
        D, value, old = trial_D, trial, slope
        slope, bend = slope_and_bend(*state)
        turn, change = step * move, slope - old
        curvature = float(np.vdot(turn, change))
        if curvature > 1e-12 * float(np.vdot(turn, turn)) * n:
            moves = [*moves[-_MEMORY + 1 :], (turn, change, curvature)]
        if gain < 1e-14 * n * d and promise < 1e-13 * n * d:
            break
    return value, D


def _two_loop(slope: Array, bend: Array, moves: list[tuple[Array, Array, float]]) -> Array:
    """The quasi-Newton direction (Nocedal & Wright, algorithm 7.4), from the inverse of the diagonal `bend`."""
    q = -slope
    kept = []
    for turn, change, curvature in reversed(moves):
        a = float(np.vdot(turn, q)) / curvature
        q = q - a * change
        kept.append(a)
    q = q / bend
    for (turn, change, curvature), a in zip(moves, reversed(kept)):
        q = q + (a - float(np.vdot(change, q)) / curvature) * turn
    return q
