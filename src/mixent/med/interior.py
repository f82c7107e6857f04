"""An interior-point method for the local problem of a Newton step, losses with their kinks as they are.

    minimise  v^T Q v / 2 + g^T v + sum_k w_k loss(m_k + a_k v)

Where multipliers may grow large a loss all but breaks at the margin's prior mean, and a quadratic model of it points
nowhere. Here multipliers l and slacks z = m + a v - u'(l) are unknowns of their own, both positive, with l z led to
zero: some twenty linear systems, whatever c is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixent.core.arrays import Array
from mixent.core.linalg import solver_of
from mixent.med.margins import Margin

MOST = 100  # linear systems
EDGE = 0.99  # of the way to the border a step may go


def local_minimum(
    Q: Array, g: Array, A: Array, m: Array, weight: Array, margin: Margin, precise: float = 1e-13
) -> Array:
    """(p,) v; Q (p, p) positive semi-definite, A (K, p), weights > 0; `precise`: l z at the end, relative."""
    v = np.zeros(len(g))
    upper = margin.upper
    lam = np.minimum(np.full(len(m), 1.0), 0.5 * upper)
    z = np.maximum(m - margin.mean(lam), 1.0)
    for _ in range(MOST):
        kept = m + A @ v
        dual = Q @ v + g - A.T @ (weight * lam)
        lacking = kept - margin.mean(lam) - z
        mu = float(weight @ (lam * z) / weight.sum())
        apart = max(mu, np.abs(lacking).max(initial=0.0) * float(lam.mean())) / (1.0 + float(np.abs(kept).mean()))
        pulled = np.abs(dual).max() / (1.0 + np.abs(g).max() + float(weight @ lam))
        if apart <= precise and pulled <= 100 * precise:
            break
        stiff = z + lam * margin.curvature(lam)
        matrix = Q + (A * (weight * lam / stiff)[:, None]).T @ A
        solve = solver_of(matrix)
        step = _direction(solve, dual, A, weight, lam, z, lacking, stiff, 0.0, None)
        # Mehrotra: how far the plain step gets tells how much to centre, and what to correct
        reach = min(_room(lam, step[1], upper), _room(z, step[2], np.inf), 1.0)
        after = float(weight @ ((lam + reach * step[1]) * (z + reach * step[2])) / weight.sum())
        aim = mu * min(max(after / max(mu, 1e-300), 0.0), 1.0) ** 3
        step = _direction(solve, dual, A, weight, lam, z, lacking, stiff, aim, step)
        reach = min(EDGE * _room(lam, step[1], upper), EDGE * _room(z, step[2], np.inf), 1.0)
        v, lam, z = v + reach * step[0], lam + reach * step[1], z + reach * step[2]
    return v


def _direction(
    solve: Callable[[Array], Array],
    dual: Array,
    A: Array,
    weight: Array,
    lam: Array,
    z: Array,
    lacking: Array,
    stiff: Array,
    aim: float,
    plain: tuple[Array, Array, Array] | None,
) -> tuple[Array, Array, Array]:
    """Steps of v, l and z towards  l z = aim."""
    product = aim - lam * z
    if plain is not None:
        product = product - plain[1] * plain[2]
    push = (product - lam * lacking) / stiff
    dv = solve(A.T @ (weight * push) - dual)
    dl = push - lam * (A @ dv) / stiff
    dz = (product - z * dl) / lam
    return dv, dl, dz


def _room(values: Array, step: Array, upper: float) -> float:
    """How far values may go before one is zero, or at its upper end."""
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.where(step < 0, -values / step, np.inf).min(initial=np.inf)
        up = np.where(step > 0, (upper - values) / step, np.inf).min(initial=np.inf) if upper < np.inf else np.inf
    return float(min(down, up))
