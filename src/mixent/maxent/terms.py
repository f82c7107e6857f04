"""Features (terms) of a maximum entropy model: each computes cells from columns of a table.

Except for moments and slopes, the cells of a row sum to one, or to zero where the columns are missing. A term is fitted
once and then applied to any table with the same columns. Discrete terms return codes, the others dense cells.
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

SEPARATOR = " & "  # of the names of the features of a pair


@dataclass(frozen=True)
class Coded:
    """A categorical column."""

    name: str
    column: int  # position in Table.codes
    values: tuple

    def codes(self, table: Table) -> np.ndarray:
        assert table.codes is not None
        return table.codes[:, self.column]


@dataclass(frozen=True)
class Binned:
    """A continuous column in bins (the baseline of section 2.6)."""

    name: str
    column: int  # position in Table.X
    edges: Array  # (B - 1,) inner edges, increasing

    @property
    def values(self) -> tuple:
        edges = distinct_texts(self.edges.tolist())
        if not edges:
            return ("any",)
        inner = [f"{a} to {b}" for a, b in pairwise(edges)]
        return (f"< {edges[0]}", *inner, f">= {edges[-1]}")

    def codes(self, table: Table) -> np.ndarray:
        x = table.X[:, self.column]
        return np.where(np.isnan(x), -1, np.searchsorted(self.edges, x, side="right")).astype(np.int32)


@dataclass(frozen=True)
class Probabilistic:
    """A probabilistic feature: columns that hold a pmf over its values."""

    name: str
    columns: tuple[int, ...]  # positions in Table.X
    values: tuple
    value_class: tuple[int, ...] | None = None  # the one class for which each value has a multiplier; None: all

    n_features = 1

    def cells(self, table: Table) -> Array:
        return np.nan_to_num(table.X[:, list(self.columns)], nan=0.0).T


@dataclass(frozen=True)
class Slope:
    """A standardized column, clipped at three standard deviations; its expectation with a class is the class's mean.

    Components do not distinguish the values within them; the slope does.
    """

    center: float
    scale: float

    value = "slope"

    def cell(self, x: Array) -> Array:
        """(n,) standardized values; zero where missing."""
        return np.nan_to_num(np.clip((x - self.center) / self.scale, -3.0, 3.0), nan=0.0)


@dataclass(frozen=True)
class Latent:
    """The hidden component of a mixture of one continuous column: the pmf P[M = j | x].

    kind "pooled": one mixture of all rows. "union": one mixture per class, with responsibilities over the components of
    all classes. "class": responsibilities within the mixture of each class, with multipliers for that class only.
    """

    name: str
    column: int  # position in Table.X
    kind: str
    mixtures: tuple[ColumnMixture, ...]  # one, or one for each class
    shares: Array  # weights of the mixtures, (1,) or (C,)
    classes: tuple = ()  # names of the classes
    slopes: tuple[Slope, ...] = ()  # of the column, or none

    @property
    def n_features(self) -> int:
        return 1 + len(self.slopes)

    @cached_property
    def values(self) -> tuple:
        return (*self.component_names(), *(slope.value for slope in self.slopes))

    def component_names(self) -> tuple:
        """Mean and standard deviation of each component, and its class."""
        out = []
        means = iter(distinct_texts([m for mixture in self.mixtures for m in mixture.means.tolist()]))
        for c, mixture in enumerate(self.mixtures):
            of = f" (of {self.classes[c]})" if self.classes else ""
            stds = np.sqrt(mixture.variances)
            out += [f"{m} \N{PLUS-MINUS SIGN} {float(f'{s:.2g}'):g}{of}" for s, m in zip(stds, means)]
        return tuple(out)

    @property
    def component_class(self) -> np.ndarray | None:
        """(K,) the class of each component; None for a pooled mixture."""
        if self.kind == "pooled":
            return None
        return np.repeat(np.arange(len(self.mixtures)), [len(m.means) for m in self.mixtures])

    def cells(self, table: Table) -> Array:
        x = table.X[:, self.column]
        return np.concatenate([self.pmf(table), *(slope.cell(x)[None] for slope in self.slopes)])

    def pmf(self, table: Table) -> Array:
        """(K, n) probabilities of the components."""
        x = table.X[:, self.column]
        observed = ~np.isnan(x)
        out = np.zeros((sum(len(m.means) for m in self.mixtures), len(x)))
        if observed.any():
            out[:, observed] = self._resp(self._clipped(x[observed]))
        return out

    def _clipped(self, x: Array) -> Array:
        means = np.concatenate([m.means for m in self.mixtures])
        margin = FAR * float(np.sqrt(max(m.variances.max() for m in self.mixtures)))
        return np.clip(x, means.min() - margin, means.max() + margin)

    def _resp(self, x: Array) -> Array:
        """(K, n) responsibilities."""
        log_joint = np.concatenate([m.log_joint(x) + np.log(p) for m, p in zip(self.mixtures, self.shares)])
        by_class = self.kind == "class"
        return _class_softmax(log_joint, np.asarray(self.component_class) if by_class else np.zeros(len(log_joint)))


@dataclass(frozen=True)
class Grouped:
    """The hidden component of a multivariate mixture of several continuous columns; `kind` as in `Latent`."""

    name: str
    columns: tuple[int, ...]  # positions in Table.X
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
        slopes = (f"{slope.value} of {name}" for name, slope in zip(self.names, self.slopes))
        return (*self.component_names(), *slopes)

    def component_names(self) -> tuple:
        """Mean of each component, and its class."""
        means = [", ".join(f"{m:.4g}" for m in mean) for mean in self.mixture.means_]
        if self.component_class is None:
            return tuple(f"about {mean}" for mean in means)
        return tuple(f"about {mean} (of {self.classes[c]})" for mean, c in zip(means, self.component_class))

    @property
    def component_class(self) -> np.ndarray | None:
        """(K,) the class of each component; None for a pooled mixture."""
        return None if self.kind == "pooled" else self.mixture.component_class_

    def cells(self, table: Table) -> Array:
        slopes = [slope.cell(table.X[:, column])[None] for column, slope in zip(self.columns, self.slopes)]
        return np.concatenate([self.pmf(table), *slopes])

    def pmf(self, table: Table) -> Array:
        """(K, n) probabilities of the components."""
        X = table.X[:, list(self.columns)]
        observed = ~np.isnan(X).all(axis=1)
        out = np.zeros((len(self.mixture.means_), len(X)))
        if observed.any():
            out[:, observed] = self._resp(X[observed])
        return out

    def _resp(self, X: Array) -> Array:
        """(K, n) responsibilities."""
        table = Table.of_numbers(X)
        if self.kind != "class":
            return self.mixture._responsibilities(table).T
        component_class = self.mixture.component_class_
        weights = self.mixture.weights_[component_class, np.arange(len(component_class))]
        return _class_softmax(self.mixture._log_components(table) + np.log(weights)[:, None], component_class)


@dataclass(frozen=True)
class Knots:
    """A continuous column in overlapping bins: the weights of its two nearest knots in linear interpolation.

    A factor of pairs that are found: the knots do not depend on the classes, and a pair is a bilinear function.
    """

    name: str
    column: int  # position in Table.X
    knots: Array  # (K,) increasing, K >= 2

    n_features = 1

    @cached_property
    def values(self) -> tuple:
        return tuple(f"about {knot}" for knot in distinct_texts(self.knots.tolist()))

    def cells(self, table: Table) -> Array:
        return self.weights(table.X[:, self.column])

    def weights(self, x: Array) -> Array:
        """(K, n) weights, which sum to one; zero where missing."""
        observed = np.flatnonzero(~np.isnan(x))
        inside = np.clip(x[observed], self.knots[0], self.knots[-1])
        left = np.clip(np.searchsorted(self.knots, inside, side="right") - 1, 0, len(self.knots) - 2)
        share = (inside - self.knots[left]) / (self.knots[left + 1] - self.knots[left])
        out = np.zeros((len(self.knots), len(x)))
        out[left, observed], out[left + 1, observed] = 1.0 - share, share
        return out


@dataclass(frozen=True)
class Moments:
    """A standardized column and its square: constraints on the mean and second moment in each class (section 2.4)."""

    name: str
    column: int  # position in Table.X
    center: float
    scale: float

    n_features = 2
    values = ("mean", "second moment")

    def cells(self, table: Table) -> Array:
        z = (table.X[:, self.column] - self.center) / self.scale
        z = np.nan_to_num(z, nan=0.0)
        return np.stack([z, z * z])


@dataclass(frozen=True)
class Crossed:
    """The joint value of two discrete features, for constraints on P[C, F_i, F_j]."""

    first: Discrete
    second: Discrete

    @property
    def name(self) -> str:
        return f"{self.first.name}{SEPARATOR}{self.second.name}"

    @cached_property
    def values(self) -> tuple:
        return tuple(f"{a} & {b}" for a in self.first.values for b in self.second.values)

    def codes(self, table: Table) -> np.ndarray:
        a, b = self.first.codes(table), self.second.codes(table)
        return np.where((a < 0) | (b < 0), -1, a * len(self.second.values) + b).astype(np.int32)


@dataclass(frozen=True)
class CrossedDense:
    """The product of two features, at least one of which is probabilistic."""

    first: Term
    second: Term

    n_features = 1

    @property
    def name(self) -> str:
        return f"{self.first.name}{SEPARATOR}{self.second.name}"

    @cached_property
    def values(self) -> tuple:
        return tuple(f"{a} & {b}" for a in pmf_values(self.first) for b in pmf_values(self.second))

    def cells(self, table: Table) -> Array:
        a, b = pmf_cells(self.first, table), pmf_cells(self.second, table)
        return (a[:, None] * b[None]).reshape(len(a) * len(b), -1)


Discrete = Coded | Binned | Crossed
Hidden = Latent | Grouped
Dense = Probabilistic | Latent | Grouped | Knots | Moments | CrossedDense
Term = Discrete | Dense


def crossed(first: Term, second: Term) -> Term:
    """The pair of two features as one term."""
    if isinstance(first, Discrete) and isinstance(second, Discrete):
        return Crossed(first, second)
    return CrossedDense(first, second)


def is_pair(term: Term) -> bool:
    """Whether a term is a pair of features."""
    return isinstance(term, Crossed | CrossedDense)


def crossable(term: Term) -> bool:
    """Whether a term can be paired: it must be a pmf over the same values for all classes, and not a pair itself."""
    if isinstance(term, (Moments, Crossed, CrossedDense)):
        return False
    return not (isinstance(term, Hidden) and term.kind == "class")


def given_of(terms: Iterable[Term]) -> list[Probabilistic]:
    """The probabilistic features among the terms, including those within pairs."""
    out: list[Probabilistic] = []
    for term in terms:
        if isinstance(term, Probabilistic):
            out.append(term)
        elif isinstance(term, CrossedDense):
            out += given_of((term.first, term.second))
    return out


def n_free(term: Term, observed: np.ndarray, n_classes: int) -> int:
    """Number of identifiable multipliers of a term; `observed` (S,) are the values that occur."""
    if isinstance(term, Moments):
        return 2 * (n_classes - 1)
    if not isinstance(term, Hidden):
        return max(int(observed.sum()) - 1, 0) * (n_classes - 1)
    slopes = len(term.slopes) * (n_classes - 1)
    components = observed[: len(observed) - len(term.slopes)]
    if term.kind == "class":  # the cells of each class are a pmf, with multipliers for that class only
        component_class = np.asarray(term.component_class)
        return slopes + sum(max(int(components[component_class == c].sum()) - 1, 0) for c in range(n_classes))
    return slopes + max(int(components.sum()) - 1, 0) * (n_classes - 1)


def distinct_texts(numbers: Iterable[float]) -> list[str]:
    """Numbers as text, with enough digits to distinguish them."""
    numbers = list(numbers)
    for digits in range(4, 17):
        text = [f"{float(f'{x:.{digits}g}'):.16g}" for x in numbers]  # 45350, not 4.535e+04
        if len(set(text)) == len(set(numbers)):
            break
    return text if numbers else []


def pmf_values(term: Term) -> tuple:
    """The values of a term that belong to its pmf: all except slopes."""
    return term.component_names() if isinstance(term, Hidden) else term.values


def pmf_cells(term: Term, table: Table) -> Array:
    """(S, n) cells of the pmf of a term."""
    if isinstance(term, Hidden):
        return term.pmf(table)
    if not isinstance(term, Discrete):
        return term.cells(table)
    codes = term.codes(table)
    return np.equal(np.arange(len(term.values))[:, None], codes).astype(float)


def mask_of(term: Term, n_classes: int) -> Array | None:
    """(S, C) 1 where a value has a multiplier for a class, else 0; None if every value has one for every class."""
    if isinstance(term, CrossedDense):
        return _crossed_mask(term, n_classes)
    if isinstance(term, Probabilistic) and term.value_class is not None:
        return _class_mask(np.array(term.value_class), n_classes)
    if isinstance(term, Hidden) and term.kind == "class":
        slopes = np.ones((len(term.values) - len(np.asarray(term.component_class)), n_classes))
        return np.concatenate([_class_mask(np.asarray(term.component_class), n_classes), slopes])
    return None


def _class_mask(value_class: np.ndarray, n_classes: int) -> Array:
    """(S, C) one-hot rows of the class of each value."""
    return np.equal(value_class[:, None], np.arange(n_classes)).astype(float)


def _crossed_mask(term: CrossedDense, n_classes: int) -> Array | None:
    """The mask of a pair: a pair of values has a multiplier for a class if both values have one."""
    first, second = mask_of(term.first, n_classes), mask_of(term.second, n_classes)
    if first is None and second is None:
        return None
    sizes = len(pmf_values(term.first)), len(pmf_values(term.second))
    first, second = (np.ones((n, n_classes)) if m is None else m[:n] for m, n in zip((first, second), sizes))
    return (first[:, None] * second[None]).reshape(-1, n_classes)


def _class_softmax(log_joint: Array, component_class: np.ndarray) -> Array:
    """(K, n) responsibilities within the components of each class."""
    out = np.empty_like(log_joint)
    for c in np.unique(component_class):
        part = log_joint[component_class == c]
        softmax_columns(part)
        out[component_class == c] = part
    return out
