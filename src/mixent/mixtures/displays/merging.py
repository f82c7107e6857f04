"""Merging of components into clusters: the entropy by number of clusters, and the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.maps import (
    Entry,
    Grid,
    column_values,
    darker,
    draw_frame,
    draw_gaussian,
    draw_points,
    find_columns,
    jittered,
    map_grid,
    refuse_categories,
)
from mixent.base.style import INK, RING, color, divided, legend, marker, tidy
from mixent.base.text import count
from mixent.mixtures.displays.regions import gaussian_components, on_two_columns
from mixent.mixtures.merging import merge_components, two_lines


@dataclass(repr=False)
class ClusterMap(Display):
    """Rows of two columns by their clusters, and the components as ellipses."""

    grid: Grid
    points: np.ndarray  # (n, 2)
    labels: np.ndarray  # (n,) cluster of each row
    clusters: list[list[int]]  # components of each cluster
    names: tuple[str, str]
    means: np.ndarray | None  # (K, 2)
    covariances: Any  # (K, 2, 2)

    def _draw(self, ax: Any) -> None:
        points = np.stack([jittered(self.points[:, j], seed=j) for j in range(2)], axis=1)
        draw_points(ax, points, self.labels)
        owner = {k: c for c, cluster in enumerate(self.clusters) for k in cluster}
        for k, mean in enumerate([] if self.means is None else self.means):
            draw_gaussian(ax, mean, self.covariances[k], darker(color(owner[k])), (1.8, 1.0))
        draw_frame(ax, self.grid, self.names, self._entries())
        ax.get_legend().set_title("cluster: components", {"size": "small"})
        n_components = sum(map(len, self.clusters))
        ax.set_title(f"{count(len(self.clusters), 'cluster')} of {count(n_components, 'component')}", fontsize="medium")

    def _entries(self) -> list[Entry]:
        from matplotlib.lines import Line2D

        look: dict[str, Any] = {"markeredgecolor": "white", "ls": "none", "ms": 7}
        return [
            (Line2D([], [], color=color(c), marker=marker(c), **look), f"{c}: {', '.join(map(str, cluster))}")
            for c, cluster in enumerate(self.clusters)
        ]


@dataclass(repr=False)
class MergingDisplay(Display):
    """Entropy of the clusters of merged components (`GaussianMixture.merge_components`), and the clusters.

    From left to right: the entropy against the number of clusters, and against the cumulative number of rows in merged
    clusters, so that a merge of many rows has more room; both with the two lines that fit best. The ring is the number
    of clusters of the third panel: the rows by cluster, with ellipses at 1 and 2 standard deviations of the components.
    Without two numeric columns there is no third panel.
    """

    entropy: np.ndarray  # (K,) nats, of 1, ..., K clusters
    cumulative: np.ndarray  # (K,) rows merged from k to 1 clusters
    n_clusters: int
    clusters: ClusterMap | None = None
    axes_: Any = field(default=None, repr=False)  # of the panels

    @classmethod
    @draws
    def from_estimator(
        cls,
        est: Any,
        X: Any,
        sample_weight: Any = None,
        *,
        n_clusters: int | None = None,
        columns: Sequence[int | str] | None = None,
    ) -> Self:
        """Merge the components of a fitted `GaussianMixture`.

        Parameters
        ----------
        est : GaussianMixture
        X : table of n rows
        sample_weight : (n,) array, optional
        n_clusters : int, optional
            Number of clusters to draw (default: the suggested number).
        columns : two positions or names, optional
            Columns of the map (default: the first two numeric columns).
        """
        if not hasattr(est, "merge_components"):
            raise ValueError(f"{type(est).__name__} has no merge_components; pass a fitted GaussianMixture")
        merging = merge_components(est, X, sample_weight)
        drawn = merging.components(n_clusters)
        cumulative = np.concatenate([[0.0], np.cumsum(merging.merged_rows)])
        where = _numeric(est)[:2] if columns is None else columns
        out = cls(merging.entropy, cumulative, len(drawn))
        if columns is not None or len(where) == 2:
            out.clusters = _cluster_map(est, X, where, merging.predict(X, n_clusters), drawn)
        return out

    def size(self) -> tuple[float, float]:
        return (3.2 * 2 + (4.6 if self.clusters is not None else 0.0), 3.4)

    def _draw(self, ax: Any) -> None:
        """Draw the panels next to each other in the area of `ax`."""
        widths = [1.0, 1.0] + ([1.4] if self.clusters is not None else [])
        self.axes_ = divided(ax, len(widths), 1, len(widths), widths)
        numbers = np.arange(1.0, len(self.entropy) + 1)
        self._draw_entropy(self.axes_[0], numbers, "Number of clusters")
        self.axes_[0].xaxis.get_major_locator().set_params(integer=True)
        self._draw_entropy(self.axes_[1], self.cumulative, "Cumulative number of merged rows")
        if self.clusters is not None:
            self.clusters.plot(self.axes_[2])

    def _draw_entropy(self, ax: Any, x: np.ndarray, xlabel: str) -> None:
        ax.plot(x, self.entropy, ls="none", marker="o", ms=5, color=color(0), zorder=3)
        if len(x) > 2:
            elbow = two_lines(x, self.entropy)
            for part, (slope, intercept) in ((x[: elbow.at + 1], elbow.first), (x[elbow.at :], elbow.second)):
                ax.plot(part, slope * part + intercept, color=color(1), ls="--", lw=1.3, zorder=2, label="two lines")
        chosen = count(self.n_clusters, "cluster")
        ax.plot(x[self.n_clusters - 1], self.entropy[self.n_clusters - 1], label=chosen, color=INK, **RING)
        ax.set(xlabel=xlabel, ylabel="Entropy (nats)")
        handles = dict(zip(*ax.get_legend_handles_labels()[::-1]))
        legend(ax, len(handles), handles=list(handles.values()), labels=list(handles), loc="upper left")
        tidy(ax)


def _numeric(est: Any) -> list[int]:
    """Return the positions of the columns of the user's table that are one numeric column."""
    schema = est.schema_
    return [
        i for i, entry in enumerate(schema.inputs) if len(entry.columns) == 1 and entry.columns[0] in schema.continuous
    ]


def _cluster_map(
    est: Any, X: Any, columns: Sequence[int | str], labels: np.ndarray, clusters: list[list[int]]
) -> ClusterMap:
    names, where = find_columns(est, X, columns)
    model, points = on_two_columns(est, where), column_values(X, where)
    refuse_categories(model, names)
    shown, grid, _ = map_grid(points, names, 2)
    return ClusterMap(grid, points[shown], labels[shown], clusters, names, *gaussian_components(model))
