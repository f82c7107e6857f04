"""From a table and options to the features of a maximum entropy model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Labels, Schema, Table, listed
from mixent.maxent.binning import bins_of, entropy_bins
from mixent.maxent.layout import Layout
from mixent.maxent.options import BinFeatures, ComponentFeatures, MomentFeatures, NumericFeatures
from mixent.maxent.terms import Binned, Coded, Given, Grouped, Latent, Moments, Slope, Term, crossable, crossed
from mixent.mixtures import GaussianMixture, MixtureClassifier, Search
from mixent.mixtures.univariate import fit_columns

RELATED = 0.7  # correlation within classes from which columns share a mixture
LARGEST = 4  # columns of such a group
PMF = 1e-6  # by which given probabilities may miss a sum of one


@dataclass(frozen=True)
class Training:
    """The rows features are learned from."""

    table: Table
    target: Array  # (n, C) class distribution of each row, zero without a label
    weight: Array | None  # (n,)
    classes: tuple

    @property
    def weights(self) -> Array:
        """(n,)."""
        return np.ones(self.table.n_rows) if self.weight is None else self.weight

    def take(self, rows: np.ndarray) -> Training:
        weight = None if self.weight is None else self.weight[rows]
        return Training(self.table.take(rows), self.target[rows], weight, self.classes)


def training_rows(table: Table, labels: Labels, weight: Array | None) -> Training:
    """Rows with class distributions; nothing for a row without a label, or with one that says nothing."""
    likelihood = labels.likelihood
    absent = likelihood.min(axis=1) == 1.0  # even probabilities are a label too: that the row is of no class rather
    if (np.ptp(likelihood, axis=1) == 0).all():
        raise ValueError("y tells no class from another in any row; label some rows of each class")
    if weight is not None and not weight[~absent].any():
        raise ValueError("every labelled row has sample_weight 0; give some labelled rows of each class a weight")
    target = np.where(absent[:, None], 0.0, likelihood / likelihood.sum(axis=1, keepdims=True))
    return Training(table, target, weight, tuple(labels.classes.tolist()))


@dataclass(frozen=True)
class Plan:
    """What the columns shall become: places among Table.X and Table.codes, checked."""

    numeric: NumericFeatures
    given: tuple[Given, ...]
    groups: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[str, str], ...]  # names of features to be crossed
    seed: int
    n_jobs: int | None
    kept: frozenset[str] | None = None  # names of the features a selection has kept; None: all

    def has_slopes(self, schema: Schema) -> bool:
        """Will some column have a mean to be constrained?"""
        taken = {p for term in self.given for p in term.places}
        means = isinstance(self.numeric, ComponentFeatures) and self.numeric.means
        return means and len(schema.continuous) > len(taken)

    def layout(self, rows: Training) -> Layout:
        """The features that are kept, fitted to these rows."""
        return Layout.of([term for term in self.terms(rows) if self.kept is None or term.name in self.kept])

    def terms(self, rows: Training) -> list[Term]:
        """Fit every feature to these rows."""
        schema = rows.table.schema
        terms: list[Term] = [
            Coded(schema.columns[i].name, place, schema.columns[i].categories)
            for place, i in enumerate(schema.categorical)
        ]
        terms += self.given
        terms += self._continuous(rows)
        terms += [self._group(group, rows) for group in self.groups]
        by_name = {term.name: term for term in terms}
        both = [pair for pair in self.pairs if set(pair) <= set(by_name)]  # a constant column became no feature
        for name in {name for pair in both for name in pair}:
            if not crossable(by_name[name]):
                raise ValueError(
                    f"pairs names {name!r}, which with features={self.numeric!r} is no pmf that can be crossed"
                )
        return terms + [crossed(by_name[a], by_name[b]) for a, b in both]

    def _continuous(self, rows: Training) -> list[Term]:
        taken = {p for term in self.given for p in term.places} | {p for group in self.groups for p in group}
        X, weights = rows.table.X, rows.weights
        alone = [p for p in range(X.shape[1]) if p not in taken and _varies(X[weights > 0, p])]
        names = _continuous_names(rows.table.schema)
        if isinstance(self.numeric, MomentFeatures):
            return [Moments(names[p], p, *_mean_and_std(X[:, p], weights)) for p in alone]
        if isinstance(self.numeric, BinFeatures):
            return [Binned(names[p], p, _edges(self.numeric, X[:, p], rows)) for p in alone]
        return self._hidden(self.numeric, alone, names, rows)

    def _hidden(self, numeric: ComponentFeatures, places: list[int], names: list[str], rows: Training) -> list[Term]:
        """Mixtures of all columns (of all classes) at once, their orders by BIC."""
        X = rows.table.X
        if numeric.kind == "pooled":
            shares, by_class, classes = np.ones(1), rows.weights[:, None], ()
        else:
            by_class = rows.target * rows.weights[:, None]
            shares = np.maximum(by_class.sum(axis=0), 1e-12)
            shares, classes = shares / shares.sum(), rows.classes
        # a class in which a column was never seen takes the mixture of all rows
        units = []
        for p in places:
            for c in range(len(shares)):
                weight = by_class[:, c]
                some = (weight[~np.isnan(X[:, p])] > 0).any()
                units.append((X[:, p], weight if some else rows.weights))
        found = fit_columns(units, numeric.max_components, seed=self.seed)
        n = len(shares)
        terms: list[Term] = []
        for i, p in enumerate(places):
            mixtures = tuple(found[i * n : (i + 1) * n])
            terms.append(Latent(names[p], p, numeric.kind, mixtures, shares, classes, _slopes(numeric, (p,), rows)))
        return terms

    def _group(self, places: tuple[int, ...], rows: Training) -> Term:
        """One mixture of several columns; rows without any of them are left out."""
        assert isinstance(self.numeric, ComponentFeatures)  # no other features have groups
        kind = self.numeric.kind
        X = rows.table.X[:, list(places)]
        names = tuple(_continuous_names(rows.table.schema)[p] for p in places)
        seen = ~np.isnan(X).all(axis=1) & (rows.weights > 0)
        options: dict[str, Any] = {
            "search": Search("bic", self.numeric.max_components, per_class=kind != "pooled"),
            "random_state": self.seed,
            "n_jobs": self.n_jobs,
        }
        if kind == "pooled":
            mixture: Any = GaussianMixture("auto", ["VVV"], **options)
            mixture.fit(Table.of_numbers(X[seen]), sample_weight=rows.weights[seen])
        else:
            mixture = MixtureClassifier("auto", "VVV", **options)
            target = rows.target[seen]
            y = np.where(target.any(axis=1, keepdims=True), target, 1.0 / target.shape[1])
            mixture.fit(Table.of_numbers(X[seen]), y, rows.weights[seen])
        classes = () if kind == "pooled" else rows.classes
        return Grouped(" & ".join(names), places, kind, mixture, classes, _slopes(self.numeric, places, rows), names)


def _edges(numeric: BinFeatures, x: Array, rows: Training) -> Array:
    if numeric.strategy == "entropy":
        return entropy_bins(x, rows.target * rows.weights[:, None], numeric.n_bins)
    return bins_of(x, rows.weights, numeric.n_bins, numeric.strategy)


def _slopes(numeric: ComponentFeatures, places: tuple[int, ...], rows: Training) -> tuple[Slope, ...]:
    if not numeric.means:
        return ()
    return tuple(Slope(*_mean_and_std(rows.table.X[:, p], rows.weights)) for p in places)


def _varies(x: Array) -> bool:
    x = x[~np.isnan(x)]
    return len(x) > 0 and bool(x.min() < x.max())


def _mean_and_std(x: Array, weights: Array) -> tuple[float, float]:
    seen = ~np.isnan(x) & (weights > 0)
    if not seen.any():
        return 0.0, 1.0
    centre = float(np.average(x[seen], weights=weights[seen]))
    std = float(np.sqrt(np.average((x[seen] - centre) ** 2, weights=weights[seen])))
    return centre, std if std > 0 else 1.0  # a column of a group may be constant in a fold


def _continuous_names(schema: Schema) -> list[str]:
    return [schema.columns[i].name for i in schema.continuous]


def feature_names(plan: Plan, schema: Schema) -> list[str]:
    """Names the single features of a plan will have."""
    names = _continuous_names(schema)
    taken = {p for term in plan.given for p in term.places} | {p for group in plan.groups for p in group}
    alone = [name for p, name in enumerate(names) if p not in taken]
    together = [" & ".join(names[p] for p in group) for group in plan.groups]
    return [schema.columns[i].name for i in schema.categorical] + [t.name for t in plan.given] + alone + together


def read_given(probabilistic: Any, schema: Schema) -> tuple[Given, ...]:
    """The features given as pmfs: a dict from the feature's name to the columns that hold its probabilities."""
    if probabilistic is None:
        return ()
    wanted = "probabilistic must be a dict, feature name -> list of at least two columns"
    if not isinstance(probabilistic, dict):
        raise ValueError(f"{wanted}; got {probabilistic!r}")
    out: list[Given] = []
    for name, columns in probabilistic.items():
        if isinstance(columns, str) or not np.iterable(columns) or len(list(columns)) < 2:
            raise ValueError(f"{wanted}; {name!r} has {columns!r}")
        places = tuple(_place(c, schema, f"probabilistic[{name!r}]") for c in columns)
        twice = set(places) & {p for term in out for p in term.places}
        if twice or len(set(places)) < len(places):
            raise ValueError(f"probabilistic[{name!r}] uses a column twice; a column belongs to one feature")
        if name in schema.names or name in [term.name for term in out]:
            raise ValueError(f"probabilistic names a feature {name!r} as another feature or column is named")
        out.append(Given(str(name), places, tuple(_continuous_names(schema)[p] for p in places)))
    return tuple(out)


def check_pmfs(given: Sequence[Given], table: Table) -> None:
    """Are the given probabilities such? A row has all of them or none."""
    for term in given:
        P = table.X[:, list(term.places)]
        absent = np.isnan(P).all(axis=1)
        wrong = ~absent & ((P < 0).any(axis=1) | ~(np.abs(P.sum(axis=1) - 1) <= PMF))  # NaN among them is wrong too
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"the probabilities of feature {term.name!r} must be >= 0 and sum to 1, or be missing together; "
                f"row {row} has {np.round(P[row], 6).tolist()}"
            )


def read_groups(groups: Any, rows: Training, given: Sequence[Given]) -> tuple[tuple[int, ...], ...]:
    """Which continuous columns share a mixture."""
    if groups is None:
        return ()
    if isinstance(groups, str):
        if groups != "auto":
            raise ValueError(f"groups must be None, 'auto' or a list of lists of columns; got {groups!r}")
        return related_columns(rows, {p for term in given for p in term.places})
    out: list[tuple[int, ...]] = []
    for group in groups:
        if isinstance(group, str) or not np.iterable(group) or len(list(group)) < 2:
            raise ValueError(f"groups must be a list of lists of at least two columns; got {group!r} among them")
        places = tuple(_place(c, rows.table.schema, "groups") for c in group)
        used = [p for other in out for p in other] + [p for term in given for p in term.places]
        if set(places) & set(used) or len(set(places)) < len(places):
            raise ValueError(f"groups uses a column twice ({list(group)!r}); a column belongs to one feature")
        out.append(places)
    return tuple(out)


def _place(column: Any, schema: Schema, option: str) -> int:
    """Where a continuous column, named or numbered among all columns, stands in Table.X."""
    names = list(schema.names)
    known = column in names if isinstance(column, str) else isinstance(column, (int, np.integer))
    at = names.index(column) if known and isinstance(column, str) else column
    if not known or not 0 <= at < len(names):
        raise ValueError(f"{option} names a column {column!r} that X does not have; columns are {listed(names)}")
    if at not in schema.continuous:
        raise ValueError(f"{option} names the column {names[at]!r}, which is categorical; it needs numbers")
    return schema.continuous.index(int(at))


def related_columns(rows: Training, taken: set[int]) -> tuple[tuple[int, ...], ...]:
    """Groups of continuous columns correlated within the classes, each with each."""
    X, weights = rows.table.X, rows.weights
    free = [p for p in range(X.shape[1]) if p not in taken and _varies(X[weights > 0, p])]
    if len(free) < 2:
        return ()
    r = _within_correlation(X[:, free], rows.target * weights[:, None])
    np.fill_diagonal(r, 0.0)
    groups: list[list[int]] = [[j] for j in range(len(free))]
    while len(groups) > 1:  # complete linkage: join the two groups whose least correlation is largest
        best, pair = RELATED, None
        for a in range(len(groups)):
            for b in range(a):
                least = r[np.ix_(groups[a], groups[b])].min()
                if least > best and len(groups[a]) + len(groups[b]) <= LARGEST:
                    best, pair = least, (a, b)
        if pair is None:
            break
        groups[pair[1]] += groups.pop(pair[0])
    return tuple(tuple(free[j] for j in sorted(group)) for group in groups if len(group) > 1)


def _within_correlation(X: Array, by_class: Array) -> Array:
    """Root mean square over the classes of the correlations in each: they may have opposite signs.

    A missing value counts as its class's mean.
    """
    seen = ~np.isnan(X)
    out = np.zeros((X.shape[1], X.shape[1]))
    for weight in by_class.T:
        mass = np.maximum(weight @ seen, 1e-300)
        left = np.where(seen, X - weight @ np.where(seen, X, 0.0) / mass, 0.0)
        cov = (left * weight[:, None]).T @ left
        scale = np.sqrt(np.maximum(np.diagonal(cov), 1e-300))
        out += weight.sum() * (cov / np.outer(scale, scale)) ** 2
    return np.sqrt(out / by_class.sum())


def read_pairs(pairs: Any, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of features named by the user."""
    if pairs is None or (isinstance(pairs, str) and pairs == "auto"):
        return ()
    wanted = "pairs must be 'auto', None or a list of pairs of feature names"
    if isinstance(pairs, str) or not np.iterable(pairs):
        raise ValueError(f"{wanted}; got {pairs!r}")
    out = []
    for pair in pairs:
        two = [pair] if isinstance(pair, str) or not np.iterable(pair) else list(pair)
        if len(two) != 2 or len(set(two)) != 2:
            raise ValueError(f"{wanted}; got {pair!r} among them")
        strange = [name for name in two if name not in names]
        if strange:
            raise ValueError(f"pairs names a feature {strange[0]!r}; features are {listed(names)}")
        out.append((str(two[0]), str(two[1])))
    if len({frozenset(pair) for pair in out}) < len(out):
        raise ValueError("pairs names the same pair twice")
    clash = [f"{a} & {b}" for a, b in out if f"{a} & {b}" in names]
    if clash:
        raise ValueError(f"the pair {clash[0]!r} would have the name of a column; rename that column")
    return tuple(out)
