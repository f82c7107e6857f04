"""Contribution of each feature of a maximum entropy model to the log-odds: by value, or as a curve along a column.

The multipliers of the components of one column can cancel each other; only their sum at a value of the column is
interpretable. Contributions are relative to the average training row, as those of `explain`:

    contribution(x) = sum_s cell_s(x) gamma_s - its mean over the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.terms import Binned, Hidden, Latent, Moments, pmf_values
from mixent.show import Short

TAIL = 0.002  # share of the rows beyond either end of a curve
EXTREME = 0.01  # share of the rows at either end that are ignored when the strongest range is determined
EVEN = 241  # evenly spaced points of a curve, in addition to those near each component


@dataclass(frozen=True, repr=False)
class Curve(Short):
    """The contribution of a numeric column as a function of its value."""

    x: Array  # (G,) increasing; each inner bin edge appears twice
    logits: Array  # (G, C) contribution to each logit, nats
    mass: Array  # (G,) share of the rows near each point, under the mixtures, the bins or a normal distribution
    has_density: bool = True  # whether the mass was estimated from the rows; False for moments


@dataclass(frozen=True, repr=False)
class Contribution(Short):
    """The contribution of a feature to the logits: of each of its values, and for a numeric column also as a curve."""

    name: str
    strength: float  # nats
    values: tuple[str, ...]  # (V,)
    shares: Array  # (V,) share of the rows with each value; NaN for cells that are not probabilities
    logits: Array  # (V, C) contribution to each logit, nats; NaN where a value has no constraint with a class
    missing_logits: Array  # (C,) contribution of a missing value
    missing_share: float  # share of the rows with a missing value; NaN if unknown
    curve: Curve | None = None


def feature_contributions(model: Any, names: list[str] | None = None) -> list[Contribution]:
    """Contributions of the features of a fitted maximum entropy model, the strongest first; or of those in `names`."""
    table = model.constraint_table()
    layout, mask = model.layout_, model.layout_.mask(len(table.classes))
    schema = getattr(model, "schema_", None)  # a stacking model has no schema
    by_name = {}
    for term, span in zip(layout.terms, layout.spans):
        absent = cells_without_constraint(mask, span)
        shares = table.truth[span].sum(axis=1)
        strength = table.strength[term.name]
        by_name[term.name] = _contribution(term, strength, table.multipliers[span], shares, absent, schema)
    ranking = sorted(by_name, key=lambda name: -by_name[name].strength)
    return [by_name[name] for name in (ranking if names is None else names)]


def cells_without_constraint(mask: Array | None, span: slice) -> np.ndarray | None:
    """(V, C) bool: values that have a constraint with some class but not with this one; None if there are none.

    A value without any constraint (a label that is not a class) contributes 0 to every class.
    """
    if mask is None:
        return None
    absent = mask[span] == 0
    return absent & ~absent.all(axis=1, keepdims=True)


def evidence(logits: Array) -> Array:
    """(V, C) evidence of each value for each class, from its contributions to the logits.

    For two classes the log-odds; for more, the logit minus its mean over the classes. Where a value has no constraint
    with some classes (NaN), the contributions are returned unchanged.
    """
    if np.isnan(logits).any():
        return logits
    return logits - logits.mean(axis=1, keepdims=True) if logits.shape[1] > 2 else logits - logits[:, ::-1]


def strongest_value(contribution: Contribution) -> tuple[str, int, float]:
    """The value, or range of values, with the strongest evidence; its class; and the mean evidence there, in nats."""
    if contribution.curve is not None:
        return _strongest_range(contribution.curve)
    nats, shares = evidence(contribution.logits), contribution.shares
    weight = np.sqrt(np.where(np.isnan(shares), 0.0, np.maximum(shares, 0.0)))
    v, c = np.unravel_index(int(np.nanargmax(nats * weight[:, None])), nats.shape)
    return contribution.values[v], int(c), float(nats[v, c])


def strongest_features(model: Any, max_features: int = 8) -> list[dict[str, Any]]:
    """The features with the largest contributions, each with the value that is the strongest evidence for a class.

    Parameters
    ----------
    model : fitted MaxEntClassifier or MaxEntStackingClassifier
    max_features : int

    Returns
    -------
    list of dict
        feature; strength: standard deviation over rows of its contribution to the log-odds, in nats; value: a value or
        a range of values; class: the class it is evidence for; nats: its contribution relative to the average row, to
        the log-odds of two classes, or to the logit minus the mean over more classes.
    """
    out = []
    for contribution in feature_contributions(model)[:max_features]:
        value, c, nats = strongest_value(contribution)
        entry = {"feature": contribution.name, "strength": contribution.strength, "value": value}
        out.append(entry | {"class": model.classes_.tolist()[c], "nats": nats})
    return out


def _strongest_range(curve: Curve) -> tuple[str, int, float]:
    """The range around a class's peak, above half of its height, that carries the most evidence over the rows."""
    nats, below = evidence(curve.logits), np.cumsum(curve.mass)
    central = np.flatnonzero((below >= EXTREME) & (below <= 1 - EXTREME))
    first, last = (central[0], central[-1]) if len(central) else (0, len(below) - 1)
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
    mean = shares @ gamma  # (C,) contribution of the average row
    n = len(pmf_values(term))
    logits = gamma.copy()
    if not isinstance(term, Moments):
        logits[:n] -= shares[:n] @ gamma[:n]  # slopes are already centered
    if absent is not None:
        logits[absent] = np.nan
    value_shares = np.full(len(shares), np.nan)
    missing_share = float("nan")
    if not isinstance(term, Moments):
        value_shares[:n] = shares[:n]
        by_class = isinstance(term, Hidden) and term.kind == "class"  # the cells of each class sum to one
        present = shares[:n][np.asarray(term.component_class) == 0] if by_class else shares[:n]
        missing_share = max(0.0, 1.0 - float(present.sum()))
    curve = _curve(term, gamma, shares, mean, schema)
    values = tuple(map(str, term.values))
    return Contribution(term.name, strength, values, value_shares, logits, -mean, missing_share, curve)


def _curve(term: Any, gamma: Array, shares: Array, mean: Array, schema: Any) -> Curve | None:
    if isinstance(term, Binned):
        if not len(term.edges):
            return None
        return Curve(_steps(term.edges), np.repeat(gamma - mean, 2, axis=0), np.repeat(shares / 2, 2))
    if isinstance(term, Moments):
        x, mass = _points(np.ones(1), np.array([term.center]), np.array([term.scale]))
    elif isinstance(term, Latent):
        weights = np.concatenate([p * m.weights for p, m in zip(term.shares, term.mixtures)])
        means = np.concatenate([m.means for m in term.mixtures])
        x, mass = _points(weights, means, np.sqrt(np.concatenate([m.variances for m in term.mixtures])))
    else:
        return None
    X = np.full((len(x), term.column + 1), np.nan)
    X[:, term.column] = x
    return Curve(x, term.cells(Table(X, None, schema)).T @ gamma - mean, mass, not isinstance(term, Moments))


def _steps(edges: Array) -> Array:
    """The ends of all bins, each inner edge twice; the unbounded outer bins are drawn with the average width."""
    width = float(np.ptp(edges)) / (len(edges) - 1) if len(edges) > 1 else abs(float(edges[0])) or 1.0
    ends = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    return np.repeat(ends, 2)[1:-1]


def _points(weights: Array, means: Array, stds: Array) -> tuple[Array, Array]:
    """Points that cover a mixture of normals without its tails, dense at narrow components; and their probabilities."""

    def below(x: Array) -> Array:
        return ndtr((x[:, None] - means) / stds) @ weights / weights.sum()

    near = np.sort((means[:, None] + stds[:, None] * np.linspace(-3.5, 3.5, 71)).ravel())
    share = below(near)
    low, high = near[share <= TAIL].max(initial=near[0]), near[share >= 1 - TAIL].min(initial=near[-1])
    x = np.unique(np.concatenate([near[(near >= low) & (near <= high)], np.linspace(low, high, EVEN)]))
    borders = below((x[1:] + x[:-1]) / 2)
    return x, np.diff(np.concatenate([[0.0], borders, [1.0]]))
