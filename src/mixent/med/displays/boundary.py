"""Decision boundary over two columns, with margins, support rows, and Gaussians before and after discrimination."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mixent.base.delegation import aligned_proba
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
    gaussian_components,
    map_grid,
    mesh_like,
    on_two_columns,
    point_classes,
    refuse_categories,
)
from mixent.base.style import INK, Display, Short, color
from mixent.data import TableLike
from mixent.med.estimator import MEDBase
from mixent.med.gaussian_classifier import MEDGaussianClassifier


@dataclass(frozen=True, repr=False)
class Ellipses(Short):
    """A Gaussian of each class, in the units of the columns."""

    means: np.ndarray  # (C, 2)
    covariances: np.ndarray  # (C, 2, 2)


@dataclass(repr=False)
class BoundaryDisplay(Display):
    """The decision boundary of a classifier of two columns, with margins and support rows.

    With two classes the boundary is where the discriminant function f is zero; the dotted line of a class is where f
    has the expected margin E[margin]: rows of the class beyond it have no multiplier. With more classes regions are
    drawn. Rings are support rows, whose multiplier is not zero. Gaussians are solid ellipses, dashed before
    discrimination.

    The boundary is that of `decision_function`, or of the probabilities where there is none; a calibration that changes
    the threshold ("affine", "predictive", `adjust_priors`) is not included.
    """

    grid: Grid  # (G,) first and (G,) second column
    scores: np.ndarray  # (G, G) f of two classes, else (G, G, C); at [second, first]
    margin: float | None  # prior expectation of the margin; None: not known, or more than two classes
    points: np.ndarray  # (n, 2)
    point_class: np.ndarray  # (n,) class index, -1 without label
    support: np.ndarray  # (n,) bool: has a multiplier that is not zero
    classes: Any  # (C,)
    names: tuple[str, str]
    before: Ellipses | None = None  # Gaussians of the prior
    after: Ellipses | None = None  # of the model

    @classmethod
    def from_estimator(
        cls,
        est: BaseEstimator,
        X: TableLike,
        y: ArrayLike | None = None,
        *,
        columns: Sequence[int | str] = (0, 1),
        grid_size: int = 200,
    ) -> Self:
        """Boundary of a fitted classifier of two columns.

        Parameters
        ----------
        est : fitted classifier
            With `decision_function` or `predict_proba`; `MEDClassifier` and `MEDGaussianClassifier` also have margins
            and support rows.
        X : table
            The rows it was fitted to.
        y : (n,) labels, optional
            Colors of the rows (default: the classes of the training rows, where the model keeps them).
        columns : two positions or names of columns
            The horizontal one first. For a mixture of more columns the marginal is drawn.
        grid_size : int
            Points of the grid along each column.

        Returns
        -------
        BoundaryDisplay
        """
        if getattr(est, "classes_", None) is None:
            raise ValueError(f"{type(est).__name__} has no classes_; fit a classifier first")
        names, where = find_columns(est, X, columns)
        whole = getattr(est, "n_features_in_", 2) == 2 and set(where) == {0, 1}
        model = est if whole else on_two_columns(est, where)
        turned = whole and where == (1, 0)
        refuse_categories(model, names[::-1] if turned else names)
        points = column_values(X, where)
        shown, axes, mesh = map_grid(points, names, grid_size)
        scores = _scores(model, mesh_like(mesh[:, ::-1] if turned else mesh, model, X))
        before, after = _gaussians(model, turned)
        return cls(
            axes,
            scores.reshape(grid_size, grid_size, *scores.shape[1:]),
            _margin(model),
            points[shown],
            _classes_of(model, y, len(points))[shown],
            _support(model, len(points))[shown],
            model.classes_,
            names,
            before,
            after,
        )

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
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
                draw_level(ax, self.grid, f, sign * self.margin, zorder=3, **style)  # type: ignore[operator]

    def _draw_regions(self, ax: Any) -> None:
        best = self.scores.argmax(axis=2)
        draw_classes(ax, self.grid, best, np.full(best.shape, 0.12))
        for c in range(self.scores.shape[2]):  # where it leads, by how much over the best of the others
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
            entries.append((Line2D([], [], **ring), f"support: {self.support.sum()} of {len(self.support)} rows"))
        entries.append((Line2D([], [], color=INK, lw=1.8), "boundary"))
        if self._has_margins():
            entries.append(
                (Line2D([], [], color=INK, lw=1.1, ls=(0, (1, 1.5))), f"margin {self.margin:.3g} of a class")
            )
        for ellipses, style, when in ((self.before, "--", "before"), (self.after, "-", "after")):
            if ellipses is not None:
                text = "1σ of a class" + (f", {when}" if self.before is not None else "")
                entries.append((Line2D([], [], color=INK, lw=1.4, ls=style, marker="+", ms=7), text))
        return entries


def _scores(model: BaseEstimator, mesh: Any) -> np.ndarray:
    """(G^2,) f of two classes, positive for the second; else (G^2, C)."""
    if hasattr(model, "decision_function"):
        f = np.asarray(model.decision_function(mesh))
        if f.shape[1:] in ((), (len(model.classes_),)):
            return f
    log_p = np.log(np.maximum(aligned_proba(model, mesh, model.classes_), 1e-300))
    return log_p[:, 1] - log_p[:, 0] if log_p.shape[1] == 2 else log_p


def _margin(model: BaseEstimator) -> float | None:
    if not isinstance(model, MEDBase) or len(model.classes_) != 2:
        return None
    return float(model.margin_.mean(0.0))


def _classes_of(model: BaseEstimator, y: ArrayLike | None, n_rows: int) -> np.ndarray:
    if y is not None and np.ndim(y) < 2:
        return point_classes(y, model.classes_, n_rows)
    known = model.label_posterior_ if isinstance(model, MEDBase) else np.empty((0, 0))
    if len(known) != n_rows:
        return np.full(n_rows, -1)
    best = np.where(np.isnan(known), -1.0, known)
    return np.where(np.isnan(known).any(axis=1), -1, best.argmax(axis=1))


def _support(model: BaseEstimator, n_rows: int) -> np.ndarray:
    """(n,) bool; none where X are not the training rows."""
    ringed = np.zeros(n_rows, dtype=bool)
    if isinstance(model, MEDBase) and model.n_rows_ == n_rows:
        ringed[model.support_] = True
    return ringed


def _gaussians(model: BaseEstimator, turned: bool) -> tuple[Ellipses | None, Ellipses | None]:
    """Before and after discrimination; of a model that was not discriminated, its components."""
    if not isinstance(model, MEDGaussianClassifier):
        means, covs = gaussian_components(model)
        return None, None if means is None else _turned(Ellipses(means, np.asarray(covs)), turned)
    if model.components_ is not None:  # of a kernel: not in these columns
        return None, None
    return _in_units(model, model.prior_gaussians_, turned), _in_units(model, model.gaussians_, turned)


def _in_units(model: BaseEstimator, gaussians: Any, turned: bool) -> Ellipses:
    """Means and S / N of the two columns, standardization undone."""
    center, scale = model.encoder_.center, model.encoder_.scale
    means = np.array([center + scale * one.mean[:2] for one in gaussians])
    covs = np.array([np.outer(scale, scale) * (one.root @ one.root.T / one.rows)[:2, :2] for one in gaussians])
    return _turned(Ellipses(means, covs), turned)


def _turned(found: Ellipses, turned: bool) -> Ellipses:
    return Ellipses(found.means[:, ::-1], found.covariances[:, ::-1, ::-1]) if turned else found
