"""Descriptions of rows under a mixture: rows of each component, and maps over two columns."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Content, Figure, Heading, Number, Paragraph, Table
from mixent.base.text import percent
from mixent.core.arrays import Array
from mixent.data import Schema, as_labels, encode, labelled_rows
from mixent.data import Table as Rows
from mixent.mixtures.displays import MergingDisplay, RegionsDisplay

if TYPE_CHECKING:
    from mixent.mixtures.bayes import BayesMixture
    from mixent.mixtures.clustering import GaussianMixture

SURE = 0.9  # posterior above which a row is assigned to a component with confidence
TRIED = 6  # columns whose pairs are compared
SAMPLE = 1000  # rows on which pairs are compared
MERGED = 30  # components up to which their clusters are described


def mixture_on_rows(model: GaussianMixture, X: Any, y: Any) -> list[Content]:
    """Return the rows of each component, and a map of the density over the two columns that separate them best."""
    table = model._read(X)
    proba = model._responsibilities(table)
    nearest = proba.argmax(axis=1)
    rows: list[list[Any]] = [
        [_part_name(model, k), int((nearest == k).sum()), Number(f"{100 * proba[:, k].mean():.1f}")]
        for k in range(proba.shape[1])
    ]
    sure = percent(float(np.mean(proba.max(axis=1) > SURE)))
    caption = f"Rows of each component; {sure} of the rows belong to one component with probability above {SURE:g}"
    pair = _separating(table, nearest)[:2]
    return [
        Table(caption, ["", "rows", "share (%)"], rows),
        *_density_map(model, X, table, pair),
        *_merging(model, X, table, pair),
    ]


def _part_name(model: GaussianMixture, k: int) -> str:
    return f"component {k}" if k < model.n_components_ else "noise"


def _merging(model: GaussianMixture, X: Any, table: Rows, pair: list[int]) -> list[Content]:
    """Return the clusters of merged components, if fewer clusters than components are suggested."""
    if model.n_components_ > MERGED or model.outliers is not None:
        return []
    merging = model.merge_components(table)
    K, k = merging.n_components, merging.n_clusters
    if k == K:
        return []
    listed = "; ".join(f"cluster {c}: {', '.join(map(str, part))}" for c, part in enumerate(merging.components()))
    text = (
        f"Several components overlap: merging them by the entropy of the assignments suggests {k} clusters of the "
        f"{K} components. Components of each cluster: {listed}."
    )

    def draw() -> Any:
        columns = sorted(pair) if len(pair) == 2 else None
        return computed(MergingDisplay.from_estimator, model, X, columns=columns).picture()

    caption = (
        "Entropy of the assignments of the rows after each merge, with the two lines that fit best; a ring marks the "
        "suggested number of clusters. `merge_components` returns the clusters of any number."
    )
    return [
        Heading("Clusters"),
        Paragraph(text),
        Figure(draw, f"Entropy by number of clusters, and {k} clusters.", caption),
    ]


def _density_map(model: GaussianMixture, X: Any, table: Rows, pair: list[int]) -> list[Content]:
    if len(pair) < 2:
        return []
    first, second = (str(table.schema.names[j]) for j in pair)
    rest = ", the other columns integrated out" if len(table.schema.columns) > 2 else ""

    def draw() -> Any:
        return computed(RegionsDisplay.from_estimator, model, X, columns=sorted(pair)).picture()

    caption = (
        f"Log density over {first} and {second}{rest}; ellipses are the components at 1 and 2 standard deviations."
    )
    return [Figure(draw, f"Map of the density over {first} and {second}.", caption)]


def classifier_on_rows(model: BayesMixture, X: Any, y: Any) -> list[Content]:
    """Return decision regions over the two columns that separate classes best, with all others integrated out."""
    table = model._read(X)
    n_columns = len(table.schema.columns)
    labels = model.predict(table) if y is None else as_labels(y)
    known = np.flatnonzero(labelled_rows(labels))
    if n_columns < 3 or not len(known):  # with two columns, the page of every classifier shows the regions
        return []
    sample = known[np.linspace(0, len(known) - 1, min(SAMPLE, len(known))).astype(int)]
    part, codes = table.take(sample), encode(labels[sample], model.classes_)
    numeric = _separating(part, codes)
    columns = sorted(numeric[:TRIED])
    if len(columns) < 2:
        return []
    pair = min(combinations(columns, 2), key=lambda pair: _errors(model, part, codes, pair))
    first, second = (str(table.schema.names[j]) for j in pair)

    def draw() -> Any:
        return computed(RegionsDisplay.from_estimator, model, X, y, columns=pair).picture()

    others = "the other column is" if n_columns == 3 else f"the other {n_columns - 2} columns are"
    caption = f"Decision regions over {first} and {second}; {others} integrated out exactly."
    if len(columns) > 2:
        tried = (
            f"the {TRIED} numeric columns that separate the classes best" if len(numeric) > TRIED else "numeric columns"
        )
        n_pairs = len(columns) * (len(columns) - 1) // 2
        caption += f" Of the {n_pairs} pairs of {tried}, this pair gives the fewest errors."
    return [Figure(draw, f"Decision regions over {first} and {second}, with the rows.", caption)]


def _separating(table: Rows, groups: np.ndarray) -> list[int]:
    """Return the positions of the varying numeric columns, by decreasing share of the variance between groups."""
    shares = {j: _between(table.X[:, position], groups) for position, j in enumerate(table.schema.continuous)}
    return sorted((j for j, share in shares.items() if share is not None), key=lambda j: -float(shares[j] or 0.0))


def _between(values: Array, groups: np.ndarray) -> float | None:
    """Return the share of the variance of a column between groups; None if it is constant."""
    observed = np.isfinite(values)
    values, groups = values[observed], groups[observed]
    total = float(np.sum((values - values.mean()) ** 2)) if len(values) else 0.0
    if total == 0.0:
        return None
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    return float(np.sum(counts * (means - values.mean()) ** 2)) / total


def _errors(model: BayesMixture, table: Rows, codes: np.ndarray, pair: tuple[int, int]) -> int:
    """Return the number of errors of the marginal model of these two columns."""
    positions = [table.schema.continuous.index(j) for j in pair]
    schema = Schema(tuple(table.schema.columns[j] for j in pair), table.schema.named)
    part = replace(table, X=table.X[:, positions], codes=None, schema=schema, as_category=frozenset(), source=None)
    predicted = model.marginal(pair).predict(part)
    return int(np.sum(encode(predicted, model.classes_) != codes))
