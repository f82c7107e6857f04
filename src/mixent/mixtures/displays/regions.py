"""Two columns of the data as a map: decision regions or density, with the components as ellipses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.style import INK, Display, colour, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.data import frame_like
from mixent.data.labels import as_labels, encode, labelled_rows

MANY_POINTS = 2000  # above this points are drawn as a picture, small and pale
FEW_VALUES = 10  # a column with no more different values is jittered
OUTERMOST = (0.005, 0.995)  # quantiles the map spans: one wild value must not squeeze all others


@dataclass(repr=False)
class RegionsDisplay(Display):
    """A classifier's decision regions, or a mixture's log density (nats), over two columns.

    Regions are shaded by the largest posterior, from white (all classes equal) to the colour of the class (certain);
    outside the dashed line it is at least `sure`. Ellipses are at 1 and 2 standard deviations of each component. With
    more than two columns the others are integrated out exactly (`est.marginal`).
    """

    grid: tuple[np.ndarray, np.ndarray]  # (G,) first and (G,) second column
    posterior: Any  # (G, G, C) at [second, first]; None for a density
    log_density: Any  # (G, G) nats; None for a classifier
    points: np.ndarray  # (n, 2)
    point_class: np.ndarray  # (n,) class index, -1 without label
    classes: Any  # (C,); None for a density
    names: tuple[str, str]
    means: np.ndarray | None = None  # (K, 2)
    covariances: Any = None  # (K, 2, 2)
    component_class: np.ndarray | None = None  # (K,)
    sure: float = 0.9

    @classmethod
    def from_estimator(cls, est: Any, X: Any, y: Any = None, *, columns: Any = (0, 1), grid_size: int = 200) -> Self:
        """Map of a fitted estimator over two columns.

        Parameters
        ----------
        est : fitted mixture, or classifier with `predict_proba` and two columns
        X : table of n rows
            Drawn as points.
        y : (n,) labels, optional
            The colors of the points.
        columns : two positions or names
        grid_size : int
            Points of the grid along each column.
        """
        names, where = _columns(est, X, columns)
        model, points = _two_columns(est, where), _values(X, where)
        _refuse_categories(model, names)
        shown = np.isfinite(points).all(axis=1)
        if not shown.any():
            raise ValueError(f"no row of X has values in both {names[0]!r} and {names[1]!r}; choose other columns")
        axes = _span(points[shown, 0], grid_size), _span(points[shown, 1], grid_size)
        mesh = np.stack([a.ravel() for a in np.meshgrid(*axes)], axis=1)
        mesh = _named(mesh, model, X)
        classes = getattr(model, "classes_", None)
        posterior = density = None
        if classes is None:
            density = np.asarray(model.score_samples(mesh)).reshape(grid_size, grid_size)
        else:
            posterior = np.asarray(model.predict_proba(mesh)).reshape(grid_size, grid_size, -1)
        kind = _point_classes(y, classes, len(points))
        means, covs = _components(model)
        owner = getattr(model, "component_class_", None) if means is not None else None
        return cls(axes, posterior, density, points[shown], kind[shown], classes, names, means, covs, owner)

    @property
    def n_outside(self) -> int:
        """Rows beyond the grid, which spans all but the most extreme values."""
        low, high = (np.array([axis[end] for axis in self.grid]) for end in (0, -1))
        return int(np.sum(((self.points < low) | (self.points > high)).any(axis=1)))

    def size(self) -> tuple[float, float]:
        return 5.8, 4.4

    def _draw(self, ax: Any) -> None:
        """The map, the points and the ellipses."""
        if self.posterior is None:
            self._draw_density(ax)
        else:
            self._draw_regions(ax)
        self._draw_points(ax)
        self._draw_ellipses(ax)
        ax.set(xlim=self.grid[0][[0, -1]], ylim=self.grid[1][[0, -1]])
        ax.set(xlabel=plain(self.names[0]), ylabel=plain(self.names[1]))
        handles, labels = self._legend_entries()
        # never over the points: the whole area is map
        legend(ax, len(labels), handles=handles, labels=labels, beside=self.posterior is not None)
        tidy(ax)

    def _draw_regions(self, ax: Any) -> None:
        from matplotlib.colors import to_rgb

        top, n_classes = self.posterior.max(axis=2), self.posterior.shape[2]
        paint = np.array([to_rgb(colour(c)) for c in range(n_classes)])[self.posterior.argmax(axis=2)]
        strength = (
            0.45 * np.clip((top - 1 / n_classes) / (1 - 1 / n_classes), 0, 1)[..., None] if n_classes > 1 else 0.3
        )
        ends = [*self.grid[0][[0, -1]], *self.grid[1][[0, -1]]]
        image = 1 - strength * (1 - paint)
        ax.imshow(image, extent=ends, origin="lower", aspect="auto", interpolation="bilinear", zorder=0)
        if top.min() < self.sure < top.max():
            ax.contour(*self.grid, top, levels=[self.sure], colors=INK, linewidths=0.9, linestyles="--", zorder=1)

    def _draw_density(self, ax: Any) -> None:
        top = self.log_density.max()
        low = max(
            np.min(self.log_density[np.isfinite(self.log_density)]), top - 12
        )  # exp(-12): out of any sample's reach
        levels = np.linspace(low, top, 13)
        filled = ax.contourf(*self.grid, self.log_density, levels=levels, cmap="Blues", alpha=0.75, zorder=0)
        bar = ax.figure.colorbar(filled, ax=ax, label="log density (nats)", format="%.1f")
        bar.outline.set_visible(False)

    def _draw_points(self, ax: Any) -> None:
        many = len(self.points) > MANY_POINTS
        style = {"s": 6 if many else 18, "alpha": 0.4 if many else 0.9, "lw": 0 if many else 0.5, "rasterized": many}
        points = np.stack([_jittered(self.points[:, j], seed=j) for j in range(2)], axis=1)
        for c in np.unique(self.point_class):
            rows, shade = self.point_class == c, self._point_colour(c)
            look = {"color": shade, "marker": marker(int(c)) if c >= 0 else "o", "edgecolors": "white", "zorder": 2}
            ax.scatter(*points[rows].T, **look, **style)

    def _draw_ellipses(self, ax: Any) -> None:
        if self.means is None:
            return
        from matplotlib.patches import Ellipse

        for k, (mean, cov) in enumerate(zip(self.means, self.covariances)):
            spread, turn = np.linalg.eigh(cov)
            width, height = 2 * np.sqrt(np.maximum(spread[::-1], 0))
            angle = np.degrees(np.arctan2(turn[1, 1], turn[0, 1]))
            shade = _darker(self._component_colour(k))
            for sigma, line in ((1, 1.8), (2, 1.0)):
                look = {"fill": False, "edgecolor": shade, "lw": line, "zorder": 3}
                ax.add_patch(Ellipse(mean, sigma * width, sigma * height, angle=angle, **look))
            ax.plot(*mean, marker="+", color=shade, ms=8, mew=1.6, zorder=3)

    def _point_colour(self, c: int) -> str:
        return "#555555" if c < 0 else colour(int(c))

    def _component_colour(self, k: int) -> str:
        return colour(1) if self.component_class is None else colour(int(self.component_class[k]))

    def _legend_entries(self) -> tuple[list, list[str]]:
        from matplotlib.lines import Line2D

        if self.posterior is None:
            return [], []
        entries = []
        for c, label in enumerate(self.classes):
            look: dict[str, Any] = {
                "marker": marker(c),
                "color": colour(c),
                "markeredgecolor": "white",
                "ls": "none",
                "ms": 7,
            }
            entries.append((Line2D([], [], **look), plain(class_name(label), 24)))
        if (self.point_class < 0).any():
            entries.append((Line2D([], [], marker="o", color="#555555", ls="none", ms=5), "no label"))
        if self.posterior.max(axis=2).min() < self.sure < self.posterior.max():
            entries.append((Line2D([], [], color=INK, ls="--", lw=0.9), f"posterior {self.sure:g}"))
        if self.means is not None:
            entries.append((Line2D([], [], color=INK, lw=1.6, marker="+", ms=8), "component, 1σ and 2σ"))
        return [e[0] for e in entries], [e[1] for e in entries]


def _columns(est: Any, X: Any, columns: Any) -> tuple[tuple[str, str], tuple[int, int]]:
    """Names and positions of the two columns."""
    if len(columns) != 2:
        raise ValueError(f"columns must name two columns; got {columns!r}")
    if hasattr(X, "columns"):
        names = [str(name) for name in X.columns]
    elif hasattr(est, "feature_names_in_"):
        names = [str(name) for name in est.feature_names_in_]
    else:
        names = [f"column {j}" for j in range(np.shape(X)[1])]
    where = []
    for column in columns:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"X has no column {column!r}; its columns are {names}")
            where.append(names.index(column))
        elif not 0 <= column < len(names):
            raise ValueError(f"X has {len(names)} column{'s' * (len(names) != 1)}; there is no column {column}")
        else:
            where.append(int(column))
    return (names[where[0]], names[where[1]]), (where[0], where[1])


def _two_columns(est: Any, where: tuple[int, int]) -> Any:
    """The estimator on these two columns alone."""
    if getattr(est, "n_features_in_", 2) == 2 and where == (0, 1):
        return est
    if hasattr(est, "marginal"):
        return est.marginal(where)
    raise ValueError(
        f"{type(est).__name__} has no marginal(columns), so its regions can be drawn for data of two columns only "
        f"(this one was fitted to {est.n_features_in_}); fit it to the two columns you want to see"
    )


def _refuse_categories(model: Any, names: tuple[str, str]) -> None:
    coded = getattr(getattr(model, "schema_", None), "categorical", ())
    if len(coded):
        told = " and ".join(repr(names[j]) for j in coded)
        raise ValueError(f"a map needs two continuous columns; the model takes {told} as categorical")


def _values(X: Any, where: tuple[int, int]) -> np.ndarray:
    from sklearn.utils import _safe_indexing

    pair = [_safe_indexing(X, j, axis=1) for j in where]
    try:
        return np.stack([np.asarray(column, dtype=float) for column in pair], axis=1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the two columns of a map must be numbers: {error}") from None


def _named(mesh: np.ndarray, model: Any, X: Any) -> Any:
    """The grid as a frame like `X` if the model was fitted to one: scikit-learn warns where names are missing."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or not hasattr(X, "columns"):
        return mesh
    return frame_like(X, {str(name): mesh[:, j] for j, name in enumerate(names)})


def _span(values: np.ndarray, size: int) -> np.ndarray:
    """The grid of one column: all but the most extreme values, and some room. Few different values all count."""
    low, high = float(values.min()), float(values.max())
    if len(np.unique(values)) > FEW_VALUES:  # inwards to a value: half way to a wild one is as bad
        first = float(np.quantile(values, OUTERMOST[0], method="higher"))
        last = float(np.quantile(values, OUTERMOST[1], method="lower"))
        low, high = (first, last) if first < last else (low, high)
    room = 0.08 * (high - low) or max(abs(low), 1.0) * 0.1
    return np.linspace(low - room, high + room, size)


def _jittered(values: np.ndarray, seed: int) -> np.ndarray:
    """A column of few different values, spread a little, so that points do not hide each other."""
    different = np.unique(values)
    if not 1 < len(different) <= FEW_VALUES:
        return values
    width = min(0.2 * np.diff(different).min(), 0.06 * (different[-1] - different[0]))
    return values + np.random.default_rng(seed).uniform(-width, width, len(values))


def _point_classes(y: Any, classes: Any, n_rows: int) -> np.ndarray:
    found = np.full(n_rows, -1)
    if y is not None and classes is not None:
        y = as_labels(y)
        known = labelled_rows(y)
        found[known] = encode(y[known], classes)
    return found


def _components(model: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Means and full covariances, where the model has components with both."""
    means, covs = getattr(model, "means_", None), getattr(model, "covariances_", None)
    if means is None or covs is None or np.shape(covs) != (len(means), 2, 2):
        return None, None
    return np.asarray(means), np.asarray(covs)


def _darker(shade: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.65 * channel for channel in to_rgb(shade))
