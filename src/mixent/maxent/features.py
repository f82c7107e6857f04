"""From a table and options to the features of a maximum entropy model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Labels, Schema, Table
from mixent.maxent.binning import bins_of, entropy_bins
from mixent.maxent.layout import Layout
from mixent.maxent.options import BinFeatures, ComponentFeatures, MomentFeatures, NumericFeatures
from mixent.maxent.terms import Binned, Coded, Grouped, Latent, Moments, Probabilistic, Slope, Term, crossable, crossed
from mixent.mixtures import GaussianMixture, MixtureClassifier
from mixent.mixtures.options import Search
from mixent.mixtures.univariate import fit_columns


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
    """Rows with class distributions; all zero for a row without a label."""
    likelihood = labels.likelihood
    absent = likelihood.min(axis=1) == 1.0  # even probabilities are a label too: that the row is of no class rather
    if (np.ptp(likelihood, axis=1) == 0).all():
        raise ValueError("y has no row with a label that favors a class; label some rows of each class")
    if weight is not None and not weight[~absent].any():
        raise ValueError("every labelled row has sample_weight 0; give some labelled rows of each class a weight")
    target = np.where(absent[:, None], 0.0, likelihood / likelihood.sum(axis=1, keepdims=True))
    return Training(table, target, weight, tuple(labels.classes.tolist()))


@dataclass(frozen=True)
class FeaturePlan:
    """What the columns shall become: places among Table.X and Table.codes, checked."""

    numeric: NumericFeatures
    given: tuple[Probabilistic, ...]
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
        alone = [p for p in range(X.shape[1]) if p not in taken and varies(X[weights > 0, p])]
        names = continuous_names(rows.table.schema)
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
        names = tuple(continuous_names(rows.table.schema)[p] for p in places)
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


def varies(x: Array) -> bool:
    x = x[~np.isnan(x)]
    return len(x) > 0 and bool(x.min() < x.max())


def _mean_and_std(x: Array, weights: Array) -> tuple[float, float]:
    seen = ~np.isnan(x) & (weights > 0)
    if not seen.any():
        return 0.0, 1.0
    center = float(np.average(x[seen], weights=weights[seen]))
    std = float(np.sqrt(np.average((x[seen] - center) ** 2, weights=weights[seen])))
    return center, std if std > 0 else 1.0  # a column of a group may be constant in a fold


def continuous_names(schema: Schema) -> list[str]:
    return [schema.columns[i].name for i in schema.continuous]


def feature_names(plan: FeaturePlan, schema: Schema) -> list[str]:
    """Names the single features of a plan will have."""
    names = continuous_names(schema)
    taken = {p for term in plan.given for p in term.places} | {p for group in plan.groups for p in group}
    alone = [name for p, name in enumerate(names) if p not in taken]
    together = [" & ".join(names[p] for p in group) for group in plan.groups]
    return [schema.columns[i].name for i in schema.categorical] + [t.name for t in plan.given] + alone + together
