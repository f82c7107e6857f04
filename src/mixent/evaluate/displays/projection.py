"""Rows and mean posteriors of any classifier on the plane of two linear discriminants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.delegation import aligned_proba
from mixent.base.displays import Display, computed, draws
from mixent.base.maps import MANY_POINTS, class_entries, draw_points, draw_posterior, span
from mixent.base.style import INK, beside_width, legend, plain, tidy
from mixent.data.labels import as_labels, encode, labelled_rows

GRID = 120  # points of the map along each axis
MOST_ROWS = 2000  # whose answers make the map
MOST_COLUMNS = 300  # encoded; more would take long and add little
SHRINK = 0.1  # of the pooled covariance towards its mean variance: columns may outnumber rows
NAMED = 3  # columns that name an axis
LONG = 20  # letters of each
SEEN = 0.14  # where the kernel's sum is less, no row is near: one row at two bandwidths
MOST_ABOVE = 8  # entries of the legend that stand above the map
LEAST = 0.01  # share of the rows that a category must have to be a column of its own


@dataclass(repr=False)
class ProjectionDisplay(Display):
    """Decision regions of any classifier on the plane of two linear discriminants.

    Columns are encoded (numbers standardized, missing values at the mean; categories as 0 and 1) and projected on the
    directions v that maximize  v' B v / v' W v,  with B and W the scatter between and within classes; with two classes
    the second direction is that of largest variance orthogonal to the first. The color at a point u of the plane is

        q(c | u) = sum_n k(u - u_n) p(c | x_n) / sum_n k(u - u_n),

    the mean posterior of the rows near u (Gaussian kernel k), an estimate of E[p(c | x) | u]. It needs predictions for
    the rows only, so it works for any model and any columns; where no row is near, the map is white.
    """

    grid: tuple[np.ndarray, np.ndarray]  # (G,) along each axis
    posterior: np.ndarray  # (G, G, C) at [second, first]
    near: np.ndarray  # (G, G) 0 where no row is near, to 1
    points: np.ndarray  # (n, 2)
    point_class: np.ndarray  # (n,) class index
    wrong: np.ndarray  # (n,) is the most probable class another?
    classes: Any  # (C,)
    names: tuple[str, str]  # columns most correlated with each axis
    kept: float  # accuracy of the nearest class mean on the two axes

    @classmethod
    @draws
    def from_estimator(cls, est: Any, X: Any, y: ArrayLike) -> Self:
        """Predictions of a fitted classifier.

        Parameters
        ----------
        est : fitted classifier
        X : table
        y : (n,) labels
        """
        return computed(cls.from_predictions, X, y, aligned_proba(est, X, est.classes_), est.classes_)

    @classmethod
    @draws
    def from_predictions(cls, X: Any, y: ArrayLike, proba: ArrayLike, classes: Sequence[Any] | np.ndarray) -> Self:
        """Predicted probabilities of the rows.

        Parameters
        ----------
        X : table
        y : (n,) labels
            Rows without a label are left out.
        proba : (n, C) array
            Rows with NaN are left out.
        classes : C labels, in the order of the columns of `proba`
        """
        labels, proba, classes = as_labels(y), np.asarray(proba, dtype=float), np.asarray(classes)
        if proba.shape != (len(labels), len(classes)):
            raise ValueError(f"proba must have shape {(len(labels), len(classes))}, rows by classes; got {proba.shape}")
        rows = np.flatnonzero(labelled_rows(labels) & np.isfinite(proba).all(axis=1))
        true = encode(labels[rows], classes)
        if len(np.unique(true)) < 2:
            raise ValueError("a plane of discriminants needs labelled rows of two classes at least")
        Z, names = encoded(X)
        if len(Z) != len(labels):
            raise ValueError(f"X has {len(Z)} rows, y has {len(labels)}")
        Z = Z[rows]
        points, kept = discriminants(Z, true)
        axes = span(points[:, 0], GRID), span(points[:, 1], GRID)
        few = np.linspace(0, len(rows) - 1, min(len(rows), MOST_ROWS)).astype(int)
        posterior, near = local_mean(axes, points[few], proba[rows[few]], _bandwidth(points, true))
        axis_names = (_axis_name(Z, points[:, 0], names), _axis_name(Z, points[:, 1], names))
        wrong = proba[rows].argmax(axis=1) != true
        return cls(axes, posterior, near, points, true, wrong, classes, axis_names, kept)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        labels = self._legend_entries()[1]
        return 5.4 + (beside_width(labels) if len(labels) > MOST_ABOVE else 0.0), 4.8

    def _draw(self, ax: Any) -> None:
        """The map, the rows, and a cross through those that are misclassified."""
        draw_posterior(ax, self.grid, self.posterior, self.near)
        self._draw_points(ax)
        ax.set(xlim=self.grid[0][[0, -1]], ylim=self.grid[1][[0, -1]], xticks=[], yticks=[])
        ax.set_xlabel(plain(self.names[0], 90), fontsize="small")
        ax.set_ylabel(plain(self.names[1], 90), fontsize="small")
        handles, labels = self._legend_entries()
        many = len(labels) > MOST_ABOVE
        how = {} if many else {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": min(len(labels), 4)}
        legend(ax, len(labels), handles=handles, labels=labels, beside=many, **how)
        tidy(ax)

    def _draw_points(self, ax: Any) -> None:
        many = len(self.points) > MANY_POINTS
        draw_points(ax, self.points, self.point_class)
        cross = {"marker": "x", "color": INK, "s": 14 if many else 34, "lw": 0.7 if many else 1.1, "zorder": 3}
        ax.scatter(*self.points[self.wrong].T, rasterized=many, **cross)

    def _legend_entries(self) -> tuple[list, list[str]]:
        from matplotlib.lines import Line2D

        present = np.unique(self.point_class)
        entries = [entry for c, entry in enumerate(class_entries(self.classes, self.point_class)) if c in present]
        if self.wrong.any():
            entries.append((Line2D([], [], marker="x", color=INK, ls="none", ms=6), "misclassified"))
        return [handle for handle, _ in entries], [label for _, label in entries]


def encoded(X: Any) -> tuple[np.ndarray, list[str]]:
    """(n, p) columns as numbers of mean zero, and their names: standardized, missing values at the mean; categories as
    indicators of the values that some rows have.
    """
    from mixent.data import read_features

    table = read_features(SimpleNamespace(), X, reset=True, categorical="auto")
    columns, names = [], []
    for place, j in enumerate(table.schema.continuous):
        values = table.X[:, place]
        seen = np.isfinite(values)
        if seen.any() and (sd := float(values[seen].std())) > 0:
            columns.append(np.where(seen, (values - values[seen].mean()) / sd, 0.0))
            names.append(str(table.schema.names[j]) if table.schema.named else f"column {j}")
    for place, j in enumerate(table.schema.categorical):
        column, codes = table.schema.columns[j], table.codes[:, place]  # type: ignore[index]
        for code, value in enumerate(column.categories[:1] if len(column.categories) == 2 else column.categories):
            hit = (codes == code).astype(float)
            if LEAST <= hit.mean() <= 1 - LEAST:
                columns.append(hit - hit.mean())
                names.append(f"{column.name} = {value}")
    if not columns:
        raise ValueError("a plane needs columns that vary; every column of X is constant")
    return np.stack(columns, axis=1), names


def discriminants(Z: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, float]:
    """(n, 2) coordinates on the plane of the discriminants, and the accuracy of the nearest class mean on it.

    Coordinates are in standard deviations within the classes; signs are such that the last class lies to the right and
    above.
    """
    from scipy.linalg import eigh

    if Z.shape[1] > MOST_COLUMNS:  # those whose class means differ most
        Z = Z[:, np.sort(np.argsort(-_between(Z, true), kind="stable")[:MOST_COLUMNS])]
    Z = Z - Z.mean(axis=0)
    means = np.stack([Z[true == c].mean(axis=0) for c in np.unique(true)])
    place = np.searchsorted(np.unique(true), true)
    within = (Z - means[place]).T @ (Z - means[place]) / len(Z)
    level = np.trace(within) / len(within) or 1.0
    within = (1 - SHRINK) * within + SHRINK * level * np.eye(len(within))
    scatter = means[place].T @ means[place] / len(Z)
    last = [max(len(within) - 2, 0), len(within) - 1]
    _, directions = eigh(scatter, within, subset_by_index=last)
    points = Z @ directions[:, ::-1]
    if len(means) == 2 or points.shape[1] < 2:
        first = points[:, :1]
        rest = Z - first @ (first.T @ Z) / max(float((first**2).sum()), 1e-300)
        second = np.linalg.svd(rest, full_matrices=False)[2][0] if Z.shape[1] > 1 else np.zeros(Z.shape[1])
        points = np.concatenate([first, (rest @ second)[:, None]], axis=1)
    points = points * _signs(points, place)
    centers = np.stack([points[place == c].mean(axis=0) for c in range(len(means))])
    spread = np.sqrt(((points - centers[place]) ** 2).mean(axis=0))
    points, centers = points / np.where(spread > 0, spread, 1.0), centers / np.where(spread > 0, spread, 1.0)
    nearest = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return points, float((nearest == place).mean())


def _signs(points: np.ndarray, place: np.ndarray) -> np.ndarray:
    end = points[place == place.max()].mean(axis=0)
    return np.where(end < 0, -1.0, 1.0)


def _between(Z: np.ndarray, true: np.ndarray) -> np.ndarray:
    """(p,) share of each column's variance that lies between the classes."""
    total = ((Z - Z.mean(axis=0)) ** 2).sum(axis=0)
    parts = [np.sum(true == c) * (Z[true == c].mean(axis=0) - Z.mean(axis=0)) ** 2 for c in np.unique(true)]
    return np.sum(parts, axis=0) / np.where(total > 0, total, 1.0)


def _bandwidth(points: np.ndarray, true: np.ndarray) -> np.ndarray:
    """(2,) of the kernel: n^(-1/6) standard deviations within the classes."""
    inside = [points[true == c] - points[true == c].mean(axis=0) for c in np.unique(true)]
    return np.maximum(np.concatenate(inside).std(axis=0), 1e-9) * len(points) ** (-1 / 6)


def local_mean(
    axes: tuple[np.ndarray, np.ndarray], points: np.ndarray, values: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(G, G, C) mean of values (n, C) about each point of a grid by a Gaussian kernel, and (G, G) whether any is near.

    Far from all points it is the mean of all.
    """
    squares = [((axis[:, None] - points[:, j]) / width[j]) ** 2 / 2 for j, axis in enumerate(axes)]
    mass = np.exp(-squares[1]) @ np.exp(-squares[0]).T
    kernels = [np.maximum(np.exp(-square), 1e-60) for square in squares]  # so that no sum is zero
    weight = kernels[1] @ kernels[0].T
    sums = [(kernels[1] * values[:, c]) @ kernels[0].T for c in range(values.shape[1])]
    return np.stack(sums, axis=2) / weight[..., None], np.clip(mass / SEEN, 0, 1)


def _axis_name(Z: np.ndarray, score: np.ndarray, names: list[str]) -> str:
    """The columns that go most with an axis, with their correlation."""
    spread = Z.std(axis=0) * score.std()
    r = np.where(spread > 0, ((Z - Z.mean(axis=0)) * (score - score.mean())[:, None]).mean(axis=0), 0.0)
    r = r / np.where(spread > 0, spread, 1.0)
    order = np.argsort(-np.abs(r), kind="stable")[:NAMED]
    labels = [(names[j] if len(names[j]) <= LONG else names[j][: LONG - 1] + "…", r[j]) for j in order]
    return ", ".join(f"{name} {size:+.2f}".replace("-", "−") for name, size in labels)
