"""Decision boundary in two columns, with margins, support rows, and Gaussians before and after discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mixent.base.delegation import aligned_proba
from mixent.base.displays import Display, draws
from mixent.base.maps import (
    MANY_POINTS,
    SIZE,
    Entry,
    Grid,
    class_entries,
    column_values,
    darker,
    draw_classes,
    draw_frame,
    draw_gaussian,
    draw_level,
    draw_points,
    find_columns,
    map_grid,
    mesh_like,
    point_classes,
    refuse_categories,
)
from mixent.base.style import INK, color
from mixent.data import TableLike
from mixent.med.estimator import MEDBase
from mixent.med.gaussian_classifier import MEDGaussianClassifier
from mixent.mixtures.displays.regions import gaussian_components, on_two_columns
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Ellipses(Short):
    """The Gaussian of each class, in the units of the columns."""

    means: np.ndarray  # (C, 2)
    covariances: np.ndarray  # (C, 2, 2)


@dataclass(repr=False)
class BoundaryDisplay(Display):
    """Decision boundary of a classifier in two columns, with margins and support rows.

    With two classes, the boundary is where `decision_function` is zero, and the dotted line of each class is where the
    discriminant function, which is `decision_function` without the offset of the calibration, equals the expected
    margin: rows of the class beyond it have a multiplier of zero. With more classes, the regions of the classes are
    drawn. Rings mark support rows, whose multiplier is not zero. Ellipses are Gaussians,
    solid after discrimination and dashed before.

    The boundary is that of `decision_function`, or of the probabilities for classifiers without it.
    """

    grid: Grid  # (G,) first and (G,) second column
    scores: np.ndarray  # (G, G) f of two classes, else (G, G, C); at [second, first]
    margin: float | None  # prior expectation of the margin; None: `scores` have no margins, or more than two classes
    points: np.ndarray  # (n, 2)
    point_class: np.ndarray  # (n,) class index; -1 without a label
    support: np.ndarray  # (n,) bool: whether the multiplier is not zero
    classes: Any  # (C,)
    names: tuple[str, str]
    before: Ellipses | None = None  # Gaussians before discrimination
    after: Ellipses | None = None  # Gaussians of the fitted model
    offset: float = 0.0  # `scores` of a row whose discriminant function is zero

    @classmethod
    @draws
    def from_estimator(
        cls,
        est: BaseEstimator,
        X: TableLike,
        y: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] = (0, 1),
        grid_size: int = 200,
    ) -> Self:
        """Compute the boundary of a fitted classifier in two columns.

        Parameters
        ----------
        est : fitted classifier
            With `decision_function` or `predict_proba`. Classifiers by maximum entropy discrimination also have margins
            and support rows.
        X : table
            Training rows.
        y : (n,) labels, optional
            Labels by which the rows are colored (default: the labels of the training rows, if the model stores them).
        columns : two positions or names of columns
            Horizontal and vertical axis. For a mixture of more columns, the marginal is drawn.
        grid_size : int
            Number of grid points along each axis.

        Returns
        -------
        BoundaryDisplay
        """
        if getattr(est, "classes_", None) is None:
            raise ValueError(f"{type(est).__name__} has no classes_; fit a classifier first")
        names, positions = find_columns(est, X, columns)
        all_columns = getattr(est, "n_features_in_", 2) == 2 and set(positions) == {0, 1}
        model = est if all_columns else on_two_columns(est, positions)
        swapped = all_columns and positions == (1, 0)
        refuse_categories(model, names[::-1] if swapped else names)
        points = column_values(X, positions)
        shown, axes, mesh = map_grid(points, names, grid_size)
        scores = _scores(model, mesh_like(mesh[:, ::-1] if swapped else mesh, model, X))
        before, after = _gaussians(model, swapped)
        return cls(
            axes,
            scores.reshape(grid_size, grid_size, *scores.shape[1:]),
            _margin(model),
            points[shown],
            _point_classes(model, y, len(points))[shown],
            _support(model, len(points))[shown],
            model.classes_,
            names,
            before,
            after,
            _offset(model),
        )

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return SIZE

    def _draw(self, ax: Any) -> None:
        if self.scores.ndim == 2:
            self._draw_boundary(ax)
        else:
            self._draw_regions(ax)
        self._draw_points(ax)
        for ellipses, style in ((self.before, "--"), (self.after, "-")):
            if ellipses is not None:
                for c, (mean, cov) in enumerate(zip(ellipses.means, ellipses.covariances)):
                    draw_gaussian(ax, mean, cov, darker(color(c)), (1.4,), ls=style, zorder=4)
        draw_frame(ax, self.grid, self.names, self._legend_entries())

    def _draw_boundary(self, ax: Any) -> None:
        f = self.scores
        for side in range(2):
            level = [f.min() - 1, 0] if side == 0 else [0, f.max() + 1]
            if level[0] < level[1]:
                ax.contourf(*self.grid, f, levels=level, colors=[color(side)], alpha=0.1, zorder=0)
        draw_level(ax, self.grid, f, 0.0, colors=INK, linewidths=1.8, zorder=3)
        if self._has_margins():
            for side, sign in enumerate((-1, 1)):
                style = {"colors": [darker(color(side))], "linewidths": 1.1, "linestyles": [(0, (1, 1.5))]}
                draw_level(ax, self.grid, f, self.offset + sign * self.margin, zorder=3, **style)  # type: ignore[operator]

    def _draw_regions(self, ax: Any) -> None:
        best = self.scores.argmax(axis=2)
        draw_classes(ax, self.grid, best, np.full(best.shape, 0.12))
        for c in range(self.scores.shape[2]):
            lead = self.scores[..., c] - np.delete(self.scores, c, axis=2).max(axis=2)
            draw_level(ax, self.grid, lead, 0.0, colors=INK, linewidths=1.4, zorder=3)

    def _draw_points(self, ax: Any) -> None:
        many = len(self.points) > MANY_POINTS
        draw_points(ax, self.points, self.point_class)
        if self.support.any():
            ring = {"s": 24 if many else 60, "lw": 0.5 if many else 0.9, "facecolors": "none", "edgecolors": INK}
            ax.scatter(*self.points[self.support].T, zorder=2.5, rasterized=many, **ring)

    def _has_margins(self) -> bool:
        return self.margin is not None and self.margin != 0.0 and self.scores.ndim == 2

    def _legend_entries(self) -> list[Entry]:
        from matplotlib.lines import Line2D

        entries = class_entries(self.classes, self.point_class)
        if self.support.any():
            ring: dict[str, Any] = {"marker": "o", "mfc": "none", "mec": INK, "ls": "none", "ms": 7}
            entries.append((Line2D([], [], **ring), f"Support rows: {self.support.sum()} of {len(self.support)}"))
        entries.append((Line2D([], [], color=INK, lw=1.8), "Decision boundary"))
        if self._has_margins():
            entries.append((Line2D([], [], color=INK, lw=1.1, ls=(0, (1, 1.5))), f"Expected margin: {self.margin:.3g}"))
        fitted = "Gaussian (1σ)" if self.before is None else "Fitted Gaussian (1σ)"
        for ellipses, style, text in ((self.before, "--", "Prior Gaussian (1σ)"), (self.after, "-", fitted)):
            if ellipses is not None:
                entries.append((Line2D([], [], color=INK, lw=1.4, ls=style, marker="+", ms=7), text))
        return entries


def _scores(model: BaseEstimator, mesh: Any) -> np.ndarray:
    """(G^2,) discriminant function of two classes, positive for the second; otherwise (G^2, C)."""
    if hasattr(model, "decision_function"):
        f = np.asarray(model.decision_function(mesh))
        if f.shape[1:] in ((), (len(model.classes_),)):
            return f
    log_p = np.log(np.maximum(aligned_proba(model, mesh, model.classes_), 1e-300))
    return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p


def _margin(model: BaseEstimator) -> float | None:
    if not isinstance(model, MEDBase) or len(model.classes_) != 2 or not model._has_plain_scores():
        return None
    return float(model.margin_.mean(0.0))


def _offset(model: BaseEstimator) -> float:
    """Difference between the decision function and the discriminant function of two classes."""
    return 0.0 if _margin(model) is None else float(np.diff(model.calibration_.score_offset)[0])


def _point_classes(model: BaseEstimator, y: ArrayLike | None, n_rows: int) -> np.ndarray:
    """(n,) class indices from `y`, or from the labels of the training rows; -1 where they are not known."""
    if y is not None and np.ndim(y) < 2:
        return point_classes(y, model.classes_, n_rows)
    posterior = model.label_posterior_ if isinstance(model, MEDBase) else np.empty((0, 0))
    if len(posterior) != n_rows:
        return np.full(n_rows, -1)
    unknown = np.isnan(posterior)
    return np.where(unknown.any(axis=1), -1, np.where(unknown, -1.0, posterior).argmax(axis=1))


def _support(model: BaseEstimator, n_rows: int) -> np.ndarray:
    """(n,) bool: whether a row is a support row; all False if X are not the training rows."""
    support = np.zeros(n_rows, dtype=bool)
    if isinstance(model, MEDBase) and model.n_rows_ == n_rows:
        support[model.support_] = True
    return support


def _gaussians(model: BaseEstimator, swapped: bool) -> tuple[Ellipses | None, Ellipses | None]:
    """Gaussians before and after discrimination; for other models, None and their components."""
    if not isinstance(model, MEDGaussianClassifier):
        means, covs = gaussian_components(model)
        return None, None if means is None else _swap(Ellipses(means, np.asarray(covs)), swapped)
    if model.components_ is not None:  # Gaussians of kernel components, not of the columns
        return None, None
    return _in_units(model, model.prior_gaussians_, swapped), _in_units(model, model.gaussians_, swapped)


def _in_units(model: BaseEstimator, gaussians: Any, swapped: bool) -> Ellipses:
    """Means and covariances S / N in the units of the two columns."""
    center, scale = model.encoder_.center, model.encoder_.scale
    pairs = [pair for gaussian in gaussians for pair in gaussian.gaussians]
    means = np.array([center + scale * mean[:2] for mean, _ in pairs])
    covs = np.array([np.outer(scale, scale) * cov[:2, :2] for _, cov in pairs])
    return _swap(Ellipses(means, covs), swapped)


def _swap(ellipses: Ellipses, swapped: bool) -> Ellipses:
    """Exchange the two columns if they are `swapped`."""
    return Ellipses(ellipses.means[:, ::-1], ellipses.covariances[:, ::-1, ::-1]) if swapped else ellipses
