"""Features of a maximum entropy model: each turns columns of a table into cells.

The cells of a row sum to one (moments apart), or to nothing where the columns are missing. A term is fitted once and
then reads any table of the same columns. Discrete terms give codes, the others dense cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mixent.core.arrays import Array, softmax_columns
from mixent.data import Table
from mixent.mixtures.columns import FAR, ColumnMixture


@dataclass(frozen=True)
class Coded:
    """A categorical column as it is."""

    name: str
    place: int  # among Table.codes
    values: tuple

    def codes(self, table: Table) -> np.ndarray:
        assert table.codes is not None
        return table.codes[:, self.place]


@dataclass(frozen=True)
class Binned:
    """A continuous column in bins: the baseline of section 2.6."""

    name: str
    place: int  # among Table.X
    edges: Array  # (B - 1,) inner borders, rising

    @property
    def values(self) -> tuple:
        borders = told_apart(self.edges.tolist())
        if not borders:
            return ("any",)
        between = [f"{a} to {b}" for a, b in pairwise(borders)]
        return (f"< {borders[0]}", *between, f">= {borders[-1]}")

    def codes(self, table: Table) -> np.ndarray:
        x = table.X[:, self.place]
        return np.where(np.isnan(x), -1, np.searchsorted(self.edges, x, side="right")).astype(np.int32)


@dataclass(frozen=True)
class Probabilistic:
    """A probabilistic instance: columns that hold a pmf over the feature's values."""

    name: str
    places: tuple[int, ...]  # among Table.X
    values: tuple
    speakers: tuple[int, ...] | None = (
        None  # the only class each value has a multiplier for; None: all values for all classes
    )

    n_features = 1

    def cells(self, table: Table) -> Array:
        return np.nan_to_num(table.X[:, list(self.places)], nan=0.0).T


@dataclass(frozen=True)
class Slope:
    """A column in standard deviations about its mean, three at most: its count with a class is the class's mean.

    A component does not distinguish the values within it; the slope does.
    """

    center: float
    scale: float

    value = "slope"

    def cell(self, x: Array) -> Array:
        """(n,); nothing for a missing value."""
        return np.nan_to_num(np.clip((x - self.center) / self.scale, -3.0, 3.0), nan=0.0)


@dataclass(frozen=True)
class Latent:
    """The hidden component of a mixture of one continuous column, P[M = j | a], as a probabilistic instance.

    kind "pooled": one mixture of all rows. "union": a mixture per class, responsibilities over all classes' components
    together. "class": responsibilities within each class's own mixture; a cell then has a multiplier for its own class
    only.
    """

    name: str
    place: int  # among Table.X
    kind: str
    mixtures: tuple[ColumnMixture, ...]  # one, or one for each class
    shares: Array  # their weights, (1,) or (C,)
    classes: tuple = ()  # the classes' names, for the values
    slopes: tuple[Slope, ...] = ()  # of the column itself, or none

    @property
    def n_features(self) -> int:
        return 1 + len(self.slopes)

    @cached_property
    def values(self) -> tuple:
        return (*self._abouts(), *(slope.value for slope in self.slopes))

    def _abouts(self) -> tuple:
        """What each component is about; a class gives several of the same mean different spreads."""
        out = []
        means = iter(told_apart([m for mixture in self.mixtures for m in mixture.means.tolist()]))
        for c, mixture in enumerate(self.mixtures):
            of = f" (of {self.classes[c]})" if self.classes else ""
            spreads = np.sqrt(mixture.variances)
            out += [f"{m} \N{PLUS-MINUS SIGN} {float(f'{s:.2g}'):g}{of}" for s, m in zip(spreads, means)]
        return tuple(out)

    @property
    def owner(self) -> np.ndarray | None:
        """(K,) the class each component was learned from."""
        if self.kind == "pooled":
            return None
        return np.repeat(np.arange(len(self.mixtures)), [len(m.means) for m in self.mixtures])

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.place]
        return np.concatenate([self.pmf(table), *(slope.cell(x)[None] for slope in self.slopes)])

    def pmf(self, table: Table) -> Array:
        """(K, n) of the hidden component alone."""
        x = table.X[:, self.place]
        seen = ~np.isnan(x)
        out = np.zeros((sum(len(m.means) for m in self.mixtures), len(x)))
        if seen.any():
            out[:, seen] = self._resp(self._within_reach(x[seen]))
        return out

    def _within_reach(self, x: Array) -> Array:
        means = np.concatenate([m.means for m in self.mixtures])
        reach = FAR * float(np.sqrt(max(m.variances.max() for m in self.mixtures)))
        return np.clip(x, means.min() - reach, means.max() + reach)

    def _resp(self, x: Array) -> Array:
        """(K, n)."""
        log_joint = np.concatenate([m.log_joint(x) + np.log(p) for m, p in zip(self.mixtures, self.shares)])
        return _by_class(log_joint, np.asarray(self.owner) if self.kind == "class" else np.zeros(len(log_joint)))


@dataclass(frozen=True)
class Grouped:
    """The hidden component of a mixture of several continuous columns together; `kind` as in `Latent`."""

    name: str
    places: tuple[int, ...]  # among Table.X
    kind: str
    mixture: Any  # GaussianMixture ("pooled") or MixtureClassifier of these columns
    classes: tuple = ()
    slopes: tuple[Slope, ...] = ()  # of the columns, or none
    names: tuple[str, ...] = ()  # of the columns

    @property
    def n_features(self) -> int:
        return 1 + len(self.slopes)

    @cached_property
    def values(self) -> tuple:
        return (*self._abouts(), *(f"{slope.value} of {name}" for name, slope in zip(self.names, self.slopes)))

    def _abouts(self) -> tuple:
        about = [", ".join(f"{m:.4g}" for m in mean) for mean in self.mixture.means_]
        if self.owner is None:
            return tuple(f"about {a}" for a in about)
        return tuple(f"about {a} (of {self.classes[c]})" for a, c in zip(about, self.owner))

    @property
    def owner(self) -> np.ndarray | None:
        """(K,) the class each component was learned from."""
        return None if self.kind == "pooled" else self.mixture.component_class_

    def cells(self, table: Table) -> Array:
        slopes = [slope.cell(table.X[:, place])[None] for place, slope in zip(self.places, self.slopes)]
        return np.concatenate([self.pmf(table), *slopes])

    def pmf(self, table: Table) -> Array:
        """(K, n) of the hidden component alone."""
        X = table.X[:, list(self.places)]
        seen = ~np.isnan(X).all(axis=1)
        out = np.zeros((len(self.mixture.means_), len(X)))
        if seen.any():
            out[:, seen] = self._resp(X[seen])
        return out

    def _resp(self, X: Array) -> Array:
        """(K, n)."""
        table = Table.of_numbers(X)
        if self.kind != "class":
            return self.mixture._responsibilities(table).T
        owner = self.mixture.component_class_
        weights = self.mixture.weights_[owner, np.arange(len(owner))]
        return _by_class(self.mixture._log_components(table) + np.log(weights)[:, None], owner)


@dataclass(frozen=True)
class Moments:
    """Class-conditional mean and second moment of a column: the weak constraints of section 2.4."""

    name: str
    place: int
    center: float
    scale: float

    n_features = 2
    values = ("mean", "second moment")

    def cells(self, table: Table) -> Array:
        z = (table.X[:, self.place] - self.center) / self.scale
        z = np.nan_to_num(z, nan=0.0)
        return np.stack([z, z * z])


@dataclass(frozen=True)
class Crossed:
    """Two discrete features together, for the constraints P[C, F_i, F_j]."""

    first: Discrete
    second: Discrete

    @property
    def name(self) -> str:
        return f"{self.first.name} & {self.second.name}"

    @cached_property
    def values(self) -> tuple:
        return tuple(f"{a} & {b}" for a in self.first.values for b in self.second.values)

    def codes(self, table: Table) -> np.ndarray:
        a, b = self.first.codes(table), self.second.codes(table)
        return np.where((a < 0) | (b < 0), -1, a * len(self.second.values) + b).astype(np.int32)


@dataclass(frozen=True)
class CrossedDense:
    """Two features of which one at least is probabilistic: their product."""

    first: Term
    second: Term

    n_features = 1

    @property
    def name(self) -> str:
        return f"{self.first.name} & {self.second.name}"

    @cached_property
    def values(self) -> tuple:
        return tuple(f"{a} & {b}" for a in pmf_values(self.first) for b in pmf_values(self.second))

    def cells(self, table: Table) -> Array:
        a, b = pmf_cells(self.first, table), pmf_cells(self.second, table)
        return (a[:, None] * b[None]).reshape(len(a) * len(b), -1)


Discrete = Coded | Binned | Crossed
Hidden = Latent | Grouped
Dense = Probabilistic | Latent | Grouped | Moments | CrossedDense
Term = Discrete | Dense


def crossed(first: Term, second: Term) -> Term:
    """The two features together."""
    if isinstance(first, Discrete) and isinstance(second, Discrete):
        return Crossed(first, second)
    return CrossedDense(first, second)


def crossable(term: Term) -> bool:
    """Only pmfs have products that are pmfs; a class's own cells have multipliers for it alone."""
    if isinstance(term, (Moments, Crossed, CrossedDense)):
        return False
    return not (isinstance(term, Hidden) and term.kind == "class")


def given_of(terms: Iterable[Term]) -> list[Probabilistic]:
    """The probabilistic instances among terms, and within pairs."""
    out: list[Probabilistic] = []
    for term in terms:
        if isinstance(term, Probabilistic):
            out.append(term)
        elif isinstance(term, CrossedDense):
            out += given_of((term.first, term.second))
    return out


def n_free(term: Term, seen: np.ndarray, n_classes: int) -> int:
    """Identifiable multipliers of a term, `seen` (S,) its values that occur."""
    if isinstance(term, Moments):
        return 2 * (n_classes - 1)
    if not isinstance(term, Hidden):
        return max(int(seen.sum()) - 1, 0) * (n_classes - 1)
    slopes = len(term.slopes) * (n_classes - 1)
    own = seen[: len(seen) - len(term.slopes)]
    if term.kind == "class":  # each class's cells are a pmf of their own, with multipliers for it alone
        owner = np.asarray(term.owner)
        return slopes + sum(max(int(own[owner == c].sum()) - 1, 0) for c in range(n_classes))
    return slopes + max(int(own.sum()) - 1, 0) * (n_classes - 1)


def told_apart(numbers: Iterable[float]) -> list[str]:
    """Numbers as text, with as many digits as distinguish them."""
    numbers = list(numbers)
    for digits in range(4, 17):
        text = [f"{x:.{digits}g}" for x in numbers]
        if len(set(text)) == len(set(numbers)):
            break
    return text if numbers else []


def pmf_values(term: Term) -> tuple:
    """The values of a term that are one pmf: all but its slopes."""
    return term._abouts() if isinstance(term, Hidden) else term.values


def pmf_cells(term: Term, table: Table) -> Array:
    """(S, n) cells of these."""
    if isinstance(term, Hidden):
        return term.pmf(table)
    if not isinstance(term, Discrete):
        return term.cells(table)
    codes = term.codes(table)
    return np.equal(np.arange(len(term.values))[:, None], codes).astype(float)


def mask_of(term: Term, n_classes: int) -> Array | None:
    """(S, C) ones where a value of the term has a multiplier for a class; None: all for all."""
    if isinstance(term, CrossedDense):
        return _crossed_mask(term, n_classes)
    if isinstance(term, Probabilistic) and term.speakers is not None:
        return _only(np.array(term.speakers), n_classes)
    if isinstance(term, Hidden) and term.kind == "class":
        slopes = np.ones((len(term.values) - len(np.asarray(term.owner)), n_classes))
        return np.concatenate([_only(np.asarray(term.owner), n_classes), slopes])
    return None


def _only(speakers: np.ndarray, n_classes: int) -> Array:
    return np.equal(speakers[:, None], np.arange(n_classes)).astype(float)


def _crossed_mask(term: CrossedDense, n_classes: int) -> Array | None:
    """A pair of values has a multiplier for a class if both do."""
    first, second = mask_of(term.first, n_classes), mask_of(term.second, n_classes)
    if first is None and second is None:
        return None
    sizes = len(pmf_values(term.first)), len(pmf_values(term.second))
    first, second = (np.ones((n, n_classes)) if m is None else m[:n] for m, n in zip((first, second), sizes))
    return (first[:, None] * second[None]).reshape(-1, n_classes)


def _by_class(log_joint: Array, owner: np.ndarray) -> Array:
    """(K, n) responsibilities within the components of each class."""
    out = np.empty_like(log_joint)
    for c in np.unique(owner):
        part = log_joint[owner == c]
        softmax_columns(part)
        out[owner == c] = part
    return out
