"""Decision regions or density over two columns, with the components as ellipses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.displays import Display, draws
from mixent.base.maps import (
    SIZE,
    Entry,
    Grid,
    class_entries,
    column_values,
    darker,
    draw_frame,
    draw_gaussian,
    draw_level,
    draw_points,
    draw_posterior,
    find_columns,
    jittered,
    map_grid,
    mesh_like,
    point_classes,
    refuse_categories,
)
from mixent.base.style import INK, color
from mixent.mixtures.model import MixtureModel


@dataclass(repr=False)
class RegionsDisplay(Display):
    """Decision regions of a classifier, or the log density of a mixture (nats), over two columns.

    Unlike `sklearn.inspection.DecisionBoundaryDisplay` it takes mixtures of more than two columns, whose other columns
    are integrated out exactly (`est.marginal`), and draws the rows and the components. Regions are shaded by the
    largest posterior, from white (all classes equal) to the color of the class (certain); outside the dashed line it is
    at least `sure`. Ellipses are at 1 and 2 standard deviations of each component.
    """

    grid: Grid  # (G,) first and (G,) second column
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
    @draws
    def from_estimator(
        cls,
        est: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] = (0, 1),
        grid_size: int = 200,
    ) -> Self:
        """Create the display from a fitted estimator.

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
        names, where = find_columns(est, X, columns)
        model, points = on_two_columns(est, where), column_values(X, where)
        refuse_categories(model, names)
        shown, axes, mesh = map_grid(points, names, grid_size)
        mesh = mesh_like(mesh, model, X)
        classes = getattr(model, "classes_", None)
        posterior = density = None
        if classes is None:
            density = np.asarray(model.score_samples(mesh)).reshape(grid_size, grid_size)
        else:
            posterior = np.asarray(model.predict_proba(mesh)).reshape(grid_size, grid_size, -1)
        codes = point_classes(y, classes, len(points))
        means, covs = gaussian_components(model)
        owner = getattr(model, "component_class_", None) if means is not None else None
        return cls(axes, posterior, density, points[shown], codes[shown], classes, names, means, covs, owner)

    @property
    def n_outside(self) -> int:
        """Number of rows outside the grid, which covers all but the most extreme values."""
        low, high = (np.array([axis[end] for axis in self.grid]) for end in (0, -1))
        return int(np.sum(((self.points < low) | (self.points > high)).any(axis=1)))

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return SIZE

    def _draw(self, ax: Any) -> None:
        """Draw the map, the rows and the components."""
        if self.posterior is None:
            self._draw_density(ax)
        else:
            self._draw_regions(ax)
        points = np.stack([jittered(self.points[:, j], seed=j) for j in range(2)], axis=1)
        draw_points(ax, points, self.point_class)
        for k, mean in enumerate([] if self.means is None else self.means):
            shade = color(1) if self.component_class is None else color(int(self.component_class[k]))
            draw_gaussian(ax, mean, self.covariances[k], darker(shade), (1.8, 1.0))
        draw_frame(ax, self.grid, self.names, self._legend_entries(), beside=self.posterior is not None)

    def _draw_regions(self, ax: Any) -> None:
        draw_posterior(ax, self.grid, self.posterior)
        top = self.posterior.max(axis=2)
        draw_level(ax, self.grid, top, self.sure, colors=INK, linewidths=0.9, linestyles="--", zorder=1)

    def _draw_density(self, ax: Any) -> None:
        top = self.log_density.max()
        low = max(np.min(self.log_density[np.isfinite(self.log_density)]), top - 12)  # lower densities are not shown
        levels = np.linspace(low, top, 13)
        filled = ax.contourf(*self.grid, self.log_density, levels=levels, cmap="Blues", alpha=0.75, zorder=0)
        bar = ax.figure.colorbar(filled, ax=ax, label="Log density (nats)", format="%.1f")
        bar.outline.set_visible(False)

    def _legend_entries(self) -> list[Entry]:
        from matplotlib.lines import Line2D

        if self.posterior is None:
            return []
        entries = class_entries(self.classes, self.point_class)
        if self.posterior.max(axis=2).min() < self.sure < self.posterior.max():
            entries.append((Line2D([], [], color=INK, ls="--", lw=0.9), f"posterior {self.sure:g}"))
        if self.means is not None:
            entries.append((Line2D([], [], color=INK, lw=1.6, marker="+", ms=8), "component, 1σ and 2σ"))
        return entries


def gaussian_components(model: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Means (K, 2) and full covariances (K, 2, 2) of a mixture, in the units of the columns; None for other models.

    Parameters
    ----------
    model : fitted estimator on two columns
    """
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture  # takes long to import

    if not isinstance(model, (MixtureModel, GaussianMixture, BayesianGaussianMixture)):
        return None, None
    means, covs = np.asarray(model.means_), np.asarray(model.covariances_)
    return (means, covs) if covs.shape == (len(means), 2, 2) else (None, None)


def on_two_columns(est: Any, where: tuple[int, int]) -> Any:
    """The estimator on these two columns alone: itself, or the marginal of a mixture.

    Parameters
    ----------
    est : fitted estimator
    where : positions of the columns
    """
    if getattr(est, "n_features_in_", 2) == 2 and where == (0, 1):
        return est
    if isinstance(est, MixtureModel):
        return est.marginal(where)
    raise ValueError(
        f"{type(est).__name__} has no marginal(columns), so its regions can be drawn for data of two columns only "
        f"(this one was fitted to {est.n_features_in_}); fit it to the two columns you want to see"
    )
