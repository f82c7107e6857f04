"""What each feature of a maximum entropy model contributes to the log-odds: at each value, or along a column.

Multipliers of the components of one column cancel each other; only their sum at a value of the column can be read.
Parts are against the average training row, as those of `explain`:  part(x) = sum_s cell_s(x) gamma_s - its mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from mixent.base.style import Short
from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.terms import Binned, Hidden, Latent, Moments, pmf_values

TAIL = 0.002  # share of the rows beyond either end of a curve
EXTREME = 0.01  # share of the rows at either end whose part is no reason to name a region
EVEN = 241  # points of a curve, beside those near each component


@dataclass(frozen=True, repr=False)
class Curve(Short):
    """A feature's part along its column."""

    x: Array  # (G,) rising; twice where a bin ends and the next begins
    parts: Array  # (G, C) nats
    mass: Array  # (G,) share of the rows about each point: of the mixtures, of the bins, or of a normal (moments)
    counted: bool = True  # was the mass learned from the rows?


@dataclass(frozen=True, repr=False)
class Contribution(Short):
    """The contribution of a feature: of each value, and of a numeric column as a curve."""

    name: str
    strength: float  # nats
    values: tuple[str, ...]  # (V,)
    shares: Array  # (V,) of the rows; NaN where cells are no probabilities
    parts: Array  # (V, C) nats; NaN where a value has no constraint with a class
    missing: Array  # (C,) the part of a missing value
    missing_share: float  # of the rows; NaN: not known
    curve: Curve | None = None


def feature_contributions(model: Any, names: list[str] | None = None) -> list[Contribution]:
    """The contribution of each feature of a fitted maximum entropy model, the strongest first, or of these."""
    found = model.constraint_table()
    layout, mask = model.layout_, model.layout_.mask(len(found.classes))
    schema = getattr(model, "schema_", None)  # a stack has none, and no columns of its own
    by_name = {}
    for term, span in zip(layout.terms, layout.spans):
        absent = cells_without_constraint(mask, span)
        shares = found.truth[span].sum(axis=1)
        strength = found.strength[term.name]
        by_name[term.name] = _contribution(term, strength, found.multipliers[span], shares, absent, schema)
    ranking = sorted(by_name, key=lambda name: -by_name[name].strength)
    return [by_name[name] for name in (ranking if names is None else names)]


def cells_without_constraint(mask: Array | None, span: slice) -> np.ndarray | None:
    """(V, C) bool: values of a feature without a constraint with a class, but with one for another; None: none.

    A value without a constraint with any class (a label that is no class) contributes 0 to all.
    """
    if mask is None:
        return None
    absent = mask[span] == 0
    return absent & ~absent.all(axis=1, keepdims=True)


def evidence(parts: Array) -> Array:
    """(V, C) evidence of each value for each class: the log-odds of two; of more, the logit less the classes' mean.

    Where a value has no constraint with some classes, its contribution to the others.
    """
    if np.isnan(parts).any():
        return parts
    return parts - parts.mean(axis=1, keepdims=True) if parts.shape[1] > 2 else parts - parts[:, ::-1]


def strongest_value(contribution: Contribution) -> tuple[str, int, float]:
    """The value, or range of values, that is the strongest evidence; for which class; nats, the mean over such rows."""
    if contribution.curve is not None:
        return _strongest_range(contribution.curve)
    nats, shares = evidence(contribution.parts), contribution.shares
    weight = np.sqrt(np.where(np.isnan(shares), 0.0, np.maximum(shares, 0.0)))
    v, c = np.unravel_index(int(np.nanargmax(nats * weight[:, None])), nats.shape)
    return contribution.values[v], int(c), float(nats[v, c])


def strongest_features(model: Any, most: int = 8) -> list[dict[str, Any]]:
    """The features with the largest contributions, and of each the value that is the strongest evidence.

    Parameters
    ----------
    model : fitted MaxEntClassifier or MaxEntStackingClassifier
    most : int

    Returns
    -------
    list of dict
        feature; strength: standard deviation over rows of its part of the log-odds, nats; value, or range of values;
        class it is evidence for; nats it adds, against the average row: of two classes to the log-odds, of more to the
        logit less the classes' mean.
    """
    out = []
    for contribution in feature_contributions(model)[:most]:
        value, c, nats = strongest_value(contribution)
        found = {"feature": contribution.name, "strength": contribution.strength, "value": value}
        out.append(found | {"class": model.classes_.tolist()[c], "nats": nats})
    return out


def _strongest_range(curve: Curve) -> tuple[str, int, float]:
    """Of each class's peak and the range above half its height, the one with the most evidence over the rows."""
    nats, below = evidence(curve.parts), np.cumsum(curve.mass)
    usual = np.flatnonzero((below >= EXTREME) & (below <= 1 - EXTREME))
    first, last = (usual[0], usual[-1]) if len(usual) else (0, len(below) - 1)
    best: tuple[float, str, int, float] = (-1.0, "any", 0, 0.0)
    for c in range(nats.shape[1]):
        y = nats[first : last + 1, c]
        peak = int(y.argmax())
        low = np.flatnonzero(y[:peak] < y[peak] / 2)
        high = np.flatnonzero(y[peak:] < y[peak] / 2)
        a, b = (int(low[-1]) + 1 if len(low) else 0), (peak + int(high[0]) - 1 if len(high) else len(y) - 1)
        mass = curve.mass[first + a : first + b + 1]
        mean = float(mass @ y[a : b + 1] / max(mass.sum(), 1e-300))
        total = mean * float(np.sqrt(mass.sum()))
        if y[peak] > 0 and total > best[0]:
            ends = (None if a == 0 else curve.x[first + a]), (None if b == len(y) - 1 else curve.x[first + b])
            best = total, _range(*ends), c, mean
    return best[1:]


def _range(low: float | None, high: float | None) -> str:
    a, b = ("" if end is None else f"{float(f'{end:.3g}'):g}" for end in (low, high))
    if low is None or high is None:
        return f"above {a}" if a else f"below {b}" if b else "any"
    return f"{a} to {b}" if a != b else f"about {a}"


def _contribution(term: Any, strength: float, gamma: Array, shares: Array, absent: Any, schema: Any) -> Contribution:
    usual = shares @ gamma  # (C,) the part of the average row
    n = len(pmf_values(term))
    parts = gamma.copy()
    if not isinstance(term, Moments):
        parts[:n] -= shares[:n] @ gamma[:n]  # a slope is centered already
    if absent is not None:
        parts[absent] = np.nan
    known = np.full(len(shares), np.nan)
    missing_share = float("nan")
    if not isinstance(term, Moments):
        known[:n] = shares[:n]
        own = isinstance(term, Hidden) and term.kind == "class"  # each class's cells sum to one
        seen = shares[:n][np.asarray(term.owner) == 0] if own else shares[:n]
        missing_share = max(0.0, 1.0 - float(seen.sum()))
    curve = _curve(term, gamma, shares, usual, schema)
    values = tuple(map(str, term.values))
    return Contribution(term.name, strength, values, known, parts, -usual, missing_share, curve)


def _curve(term: Any, gamma: Array, shares: Array, usual: Array, schema: Any) -> Curve | None:
    if isinstance(term, Binned):
        if not len(term.edges):
            return None
        return Curve(_steps(term.edges), np.repeat(gamma - usual, 2, axis=0), np.repeat(shares / 2, 2))
    if isinstance(term, Moments):
        x, mass = _points(np.ones(1), np.array([term.center]), np.array([term.scale]))
    elif isinstance(term, Latent):
        weights = np.concatenate([p * m.weights for p, m in zip(term.shares, term.mixtures)])
        means = np.concatenate([m.means for m in term.mixtures])
        x, mass = _points(weights, means, np.sqrt(np.concatenate([m.variances for m in term.mixtures])))
    else:
        return None
    X = np.full((len(x), term.place + 1), np.nan)
    X[:, term.place] = x
    return Curve(x, term.cells(Table(X, None, schema)).T @ gamma - usual, mass, not isinstance(term, Moments))


def _steps(edges: Array) -> Array:
    """The borders of bins, each twice; the outer bins, which have no end, get a bin's average width."""
    width = float(np.ptp(edges)) / (len(edges) - 1) if len(edges) > 1 else abs(float(edges[0])) or 1.0
    borders = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    return np.repeat(borders, 2)[1:-1]


def _points(weights: Array, means: Array, stds: Array) -> tuple[Array, Array]:
    """Points across all but the tails of a mixture of normals, close where a component is narrow; and their masses."""

    def below(x: Array) -> Array:
        return ndtr((x[:, None] - means) / stds) @ weights / weights.sum()

    near = np.sort((means[:, None] + stds[:, None] * np.linspace(-3.5, 3.5, 71)).ravel())
    share = below(near)
    low, high = near[share <= TAIL].max(initial=near[0]), near[share >= 1 - TAIL].min(initial=near[-1])
    x = np.unique(np.concatenate([near[(near >= low) & (near <= high)], np.linspace(low, high, EVEN)]))
    borders = below((x[1:] + x[:-1]) / 2)
    return x, np.diff(np.concatenate([[0.0], borders, [1.0]]))
