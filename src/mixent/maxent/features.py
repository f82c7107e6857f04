"""Features of a maximum entropy model: how the columns of a table are converted to terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Labels, Schema, Table
from mixent.maxent.binning import bin_edges, entropy_bin_edges
from mixent.maxent.layout import Layout
from mixent.maxent.options import BinFeatures, ComponentFeatures, MomentFeatures, NumericFeatures
from mixent.maxent.terms import Binned, Coded, Grouped, Latent, Moments, Probabilistic, Slope, Term, crossable, crossed
from mixent.mixtures import GaussianMixture, MixtureClassifier
from mixent.mixtures.options import Search
from mixent.mixtures.univariate import fit_columns


@dataclass(frozen=True)
class Training:
    """The training rows."""

    table: Table
    target: Array  # (n, C) class distribution of each row; zero for an unlabelled row
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
    """Training rows with their class distributions."""
    likelihood = labels.likelihood
    absent = likelihood.min(axis=1) == 1.0  # equal probabilities that sum to one are a label, if an uninformative one
    if (np.ptp(likelihood, axis=1) == 0).all():
        raise ValueError("y has no informative label; label some rows of each class")
    if weight is not None and not weight[~absent].any():
        raise ValueError("every labelled row has sample_weight 0; give some labelled rows a positive weight")
    target = np.where(absent[:, None], 0.0, likelihood / likelihood.sum(axis=1, keepdims=True))
    return Training(table, target, weight, tuple(labels.classes.tolist()))


@dataclass(frozen=True)
class FeaturePlan:
    """Checked options: how columns, given by their positions in Table.X and Table.codes, are converted to features."""

    numeric: NumericFeatures
    given: tuple[Probabilistic, ...]
    groups: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[str, str], ...]  # names of the features to be crossed
    seed: int
    n_jobs: int | None
    selected: frozenset[str] | None = None  # names of the selected features; None: all

    def has_slopes(self, schema: Schema) -> bool:
        """Whether the mean of some column is constrained."""
        given = {p for term in self.given for p in term.columns}
        means = isinstance(self.numeric, ComponentFeatures) and self.numeric.means
        return means and len(schema.continuous) > len(given)

    def layout(self, rows: Training) -> Layout:
        """The selected features, fitted to these rows."""
        return Layout.of([term for term in self.terms(rows) if self.selected is None or term.name in self.selected])

    def terms(self, rows: Training) -> list[Term]:
        """Fit every feature to these rows."""
        schema = rows.table.schema
        terms: list[Term] = [
            Coded(schema.columns[i].name, column, schema.columns[i].categories)
            for column, i in enumerate(schema.categorical)
        ]
        terms += self.given
        terms += self._continuous(rows)
        terms += [self._group(group, rows) for group in self.groups]
        by_name = {term.name: term for term in terms}
        pairs = [pair for pair in self.pairs if set(pair) <= set(by_name)]  # a constant column is not a feature
        for name in {name for pair in pairs for name in pair}:
            if not crossable(by_name[name]):
                raise ValueError(
                    f"pairs: the feature {name!r} cannot be paired with features={self.numeric!r}; choose features "
                    "whose values have probabilities, such as 'union' or 'bins'"
                )
        return terms + [crossed(by_name[a], by_name[b]) for a, b in pairs]

    def _continuous(self, rows: Training) -> list[Term]:
        used = {p for term in self.given for p in term.columns} | {p for group in self.groups for p in group}
        X, weights = rows.table.X, rows.weights
        columns = [p for p in range(X.shape[1]) if p not in used and varies(X[weights > 0, p])]
        names = continuous_names(rows.table.schema)
        if isinstance(self.numeric, MomentFeatures):
            return [Moments(names[p], p, *_mean_and_std(X[:, p], weights)) for p in columns]
        if isinstance(self.numeric, BinFeatures):
            return [Binned(names[p], p, _edges(self.numeric, X[:, p], rows)) for p in columns]
        return self._hidden(self.numeric, columns, names, rows)

    def _hidden(self, numeric: ComponentFeatures, columns: list[int], names: list[str], rows: Training) -> list[Term]:
        """Fit the mixtures of all columns (and classes) together; BIC chooses the numbers of components."""
        X = rows.table.X
        if numeric.kind == "pooled":
            shares, by_class, classes = np.ones(1), rows.weights[:, None], ()
        else:
            by_class = rows.target * rows.weights[:, None]
            shares = np.maximum(by_class.sum(axis=0), 1e-12)
            shares, classes = shares / shares.sum(), rows.classes
        # a class without observed values of a column uses the mixture of all rows
        samples = []
        for p in columns:
            for c in range(len(shares)):
                weight = by_class[:, c]
                observed = (weight[~np.isnan(X[:, p])] > 0).any()
                samples.append((X[:, p], weight if observed else rows.weights))
        fitted = fit_columns(samples, numeric.max_components, seed=self.seed)
        n = len(shares)
        terms: list[Term] = []
        for i, p in enumerate(columns):
            mixtures = tuple(fitted[i * n : (i + 1) * n])
            terms.append(Latent(names[p], p, numeric.kind, mixtures, shares, classes, _slopes(numeric, (p,), rows)))
        return terms

    def _group(self, columns: tuple[int, ...], rows: Training) -> Term:
        """Fit one mixture to several columns; rows in which all of them are missing are left out."""
        assert isinstance(self.numeric, ComponentFeatures)  # no other features have groups
        kind = self.numeric.kind
        X = rows.table.X[:, list(columns)]
        names = tuple(continuous_names(rows.table.schema)[p] for p in columns)
        used = ~np.isnan(X).all(axis=1) & (rows.weights > 0)
        options: dict[str, Any] = {
            "search": Search("bic", self.numeric.max_components, per_class=kind != "pooled"),
            "random_state": self.seed,
            "n_jobs": self.n_jobs,
        }
        if kind == "pooled":
            mixture: Any = GaussianMixture("auto", ["VVV"], **options)
            mixture.fit(Table.of_numbers(X[used]), sample_weight=rows.weights[used])
        else:
            mixture = MixtureClassifier("auto", "VVV", **options)
            target = rows.target[used]
            y = np.where(target.any(axis=1, keepdims=True), target, 1.0 / target.shape[1])
            mixture.fit(Table.of_numbers(X[used]), y, rows.weights[used])
        classes = () if kind == "pooled" else rows.classes
        return Grouped(" & ".join(names), columns, kind, mixture, classes, _slopes(self.numeric, columns, rows), names)


def _edges(numeric: BinFeatures, x: Array, rows: Training) -> Array:
    if numeric.strategy == "entropy":
        return entropy_bin_edges(x, rows.target * rows.weights[:, None], numeric.n_bins)
    return bin_edges(x, rows.weights, numeric.n_bins, numeric.strategy)


def _slopes(numeric: ComponentFeatures, columns: tuple[int, ...], rows: Training) -> tuple[Slope, ...]:
    if not numeric.means:
        return ()
    return tuple(Slope(*_mean_and_std(rows.table.X[:, p], rows.weights)) for p in columns)


def varies(x: Array) -> bool:
    """Whether a column has at least two different values."""
    x = x[~np.isnan(x)]
    return len(x) > 0 and bool(x.min() < x.max())


def _mean_and_std(x: Array, weights: Array) -> tuple[float, float]:
    used = ~np.isnan(x) & (weights > 0)
    if not used.any():
        return 0.0, 1.0
    mean = float(np.average(x[used], weights=weights[used]))
    std = float(np.sqrt(np.average((x[used] - mean) ** 2, weights=weights[used])))
    return mean, std if std > 0 else 1.0  # a column of a group can be constant in a fold


def continuous_names(schema: Schema) -> list[str]:
    return [schema.columns[i].name for i in schema.continuous]


def feature_names(plan: FeaturePlan, schema: Schema) -> list[str]:
    """Names of the features of a plan, without pairs."""
    names = continuous_names(schema)
    used = {p for term in plan.given for p in term.columns} | {p for group in plan.groups for p in group}
    single = [name for p, name in enumerate(names) if p not in used]
    grouped = [" & ".join(names[p] for p in group) for group in plan.groups]
    return [schema.columns[i].name for i in schema.categorical] + [t.name for t in plan.given] + single + grouped
