"""Contribution of each feature of a maximum entropy model to the log-odds: by value, or as a curve along a column.

The multipliers of the components of one column can cancel each other; only their sum at a value of the column is
interpretable. Contributions are relative to the average training row, as those of `explain`:

    contribution(x) = sum_s cell_s(x) gamma_s - its mean over the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.purified import PurePair, pairs_of, with_missing
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
class Surface(Short):
    """The contribution of a pair of features, by the values of the first (rows) and of the second (columns)."""

    names: tuple[str, str]
    values: tuple[tuple[str, ...], tuple[str, ...]]  # K and L
    logits: Array  # (K, L, C) contribution to each logit, nats


@dataclass(frozen=True, repr=False)
class Contribution(Short):
    """The contribution of a feature to the logits: of its values, as a curve (numeric column), or as a map (pair)."""

    name: str
    strength: float  # nats
    values: tuple[str, ...]  # (V,)
    shares: Array  # (V,) share of the rows with each value; NaN for cells that are not probabilities
    logits: Array  # (V, C) contribution to each logit, nats; NaN where a value has no constraint with a class
    missing_logits: Array  # (C,) contribution of a missing value
    missing_share: float  # share of the rows with a missing value; NaN if unknown
    curve: Curve | None = None
    surface: Surface | None = None


def feature_contributions(model: Any, names: list[str] | None = None) -> list[Contribution]:
    """Contributions of the features of a fitted maximum entropy model, the strongest first; or of those in `names`."""
    table = model.constraint_table()
    layout, mask = model.layout_, model.layout_.mask(len(table.classes))
    schema = getattr(model, "schema_", None)  # a stacking model has no schema
    pairs = pairs_of(layout, model.params_, getattr(model, "margins_", ()))
    pairs = [pair for pair in pairs if pair.margins is not None]
    by_name = {}
    for i, (term, span) in enumerate(zip(layout.terms, layout.spans)):
        absent = cells_without_constraint(mask, span)
        shares = table.truth[span].sum(axis=1)
        part = _Part(
            term,
            table.multipliers[span],
            shares,
            absent,
            schema,
            model.mean_logits_[i],
            np.zeros(model.params_.n_classes),
        )
        part = part.with_margins([(term, m) for pair in pairs for term, m in pair.margins_at(i)])
        own = next((pair for pair in pairs if pair.place == i), None)
        strength = table.strength[term.name]
        by_name[term.name] = part.contribution(strength) if own is None else part.of_pair(strength, own)
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


@dataclass(frozen=True)
class _Part:
    """A term, the multipliers of its values, and the means of its contribution over the training rows."""

    term: Any
    gamma: Array  # (V, C)
    shares: Array  # (V,)
    absent: np.ndarray | None
    schema: Any
    mean: Array  # (C,)
    missing: Array  # (C,) contribution of a missing value
    margins: tuple[tuple[Any, Array], ...] = ()  # those of pairs, as functions of the values of other terms

    def with_margins(self, margins: list[tuple[Any, Array]]) -> _Part:
        """The same with the margins of pairs: added to the values if the pair has the same values."""
        n, gamma, missing, others = len(pmf_values(self.term)), self.gamma.copy(), self.missing, []
        for factor, margin in margins:
            missing = missing + margin[-1]
            if type(factor) is type(self.term):
                gamma[:n] += margin[:-1]
            else:
                others.append((factor, margin))
        return replace(self, gamma=gamma, missing=missing, margins=tuple(others))

    def contribution(self, strength: float) -> Contribution:
        term, shares = self.term, self.shares
        n = len(pmf_values(term))
        logits = self.gamma.copy()
        if not isinstance(term, Moments):
            logits[:n] -= self.mean - shares[n:] @ self.gamma[n:]  # slopes are already centered
        if self.absent is not None:
            logits[self.absent] = np.nan
        value_shares = np.full(len(shares), np.nan)
        missing_share = float("nan")
        if not isinstance(term, Moments):
            value_shares[:n] = shares[:n]
            by_class = isinstance(term, Hidden) and term.kind == "class"  # the cells of each class sum to one
            present = shares[:n][np.asarray(term.component_class) == 0] if by_class else shares[:n]
            missing_share = max(0.0, 1.0 - float(present.sum()))
        values, missing = tuple(map(str, term.values)), self.missing - self.mean
        return Contribution(term.name, strength, values, value_shares, logits, missing, missing_share, self._curve())

    def of_pair(self, strength: float, pair: PurePair) -> Contribution:
        """The contribution of a pair without those of its features."""
        assert pair.margins is not None
        pure = pair.gamma - pair.margins.first[:-1, None] - pair.margins.second[None, :-1] - self.mean
        names, values = (pair.term.first.name, pair.term.second.name), tuple(map(str, self.term.values))
        sides = tuple(tuple(map(str, pmf_values(term))) for term in (pair.term.first, pair.term.second))
        surface = Surface(names, sides, pure)  # type: ignore[arg-type]
        logits = pure.reshape(len(values), -1)
        return Contribution(self.term.name, strength, values, self.shares, logits, -self.mean, 0.0, None, surface)

    def _curve(self) -> Curve | None:
        term = self.term
        if isinstance(term, Binned) and not len(term.edges):
            return None
        if isinstance(term, Binned):
            x, own = _steps(term.edges), np.repeat(self.gamma, 2, axis=0)
            return Curve(x, own + self._others(x) - self.mean, np.repeat(self.shares / 2, 2))
        if isinstance(term, Moments):
            x, mass = _points(np.ones(1), np.array([term.center]), np.array([term.scale]))
        elif isinstance(term, Latent):
            weights = np.concatenate([p * m.weights for p, m in zip(term.shares, term.mixtures)])
            means = np.concatenate([m.means for m in term.mixtures])
            x, mass = _points(weights, means, np.sqrt(np.concatenate([m.variances for m in term.mixtures])))
        else:
            return None
        own = term.cells(self._table(x)).T @ self.gamma
        return Curve(x, own + self._others(x) - self.mean, mass, not isinstance(term, Moments))

    def _table(self, x: Array) -> Table:
        X = np.full((len(x), self.term.column + 1), np.nan)
        X[:, self.term.column] = x
        return Table(X, None, self.schema)

    def _others(self, x: Array) -> Array | float:
        """(G, C) margins of pairs that have other values than this term."""
        return sum(with_missing(factor, self._table(x)).T @ margin for factor, margin in self.margins)


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
