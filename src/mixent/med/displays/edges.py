"""Learned edge weights and mutual information of pairs of columns, in one matrix for each class."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mixent.base.displays import Display, draws
from mixent.base.style import INK, OKABE_ITO, divided, plain, share_colors
from mixent.base.text import class_name
from mixent.med.tree_classifier import MEDTreeClassifier

MOST_NAMES = 30  # tick labels of an axis; with more columns only every second (third, ...) is labelled
NAME = 20, 14  # maximum characters of a tick label, with few and with many columns
FEW = 12
SIDE = 3.9, 0.9  # inches of a matrix, and of the color bars
MOST_BESIDE = 3  # matrices in a row
NAMES = {"information": "Mutual information (nats)", "marginals": "Probability of the edge"}


@dataclass(repr=False)
class EdgeWeightsDisplay(Display):
    """Edge weights log W_uv above the diagonal and mutual information below, for each class (document 001, Figure 8).

    The log-probability of a tree is the sum of log W over its edges, up to a constant; so the mean of each class is
    subtracted. The sum of the mutual information over the edges is the log-likelihood per row, minus that of
    independent columns. An edge that is dark above and pale below separates the classes, although its columns have
    little mutual information. With tables="integrated" mutual information is not defined, and the lower half shows the
    probability that a tree contains the edge.
    """

    weights: list[np.ndarray]  # for each class (or tree): (n, n) log W_uv minus its mean, nats
    below: list[np.ndarray]  # (n, n) lower half
    kind: str  # of the lower half: "information" (nats) or "marginals"
    titles: list[str]
    names: tuple[str, ...]  # (n,) names of the columns
    axes_: Any = field(default=None, init=False, repr=False)  # one for each matrix

    @classmethod
    @draws
    def from_estimator(cls, est: MEDTreeClassifier, label: Hashable | None = None) -> Self:
        """Read the edge weights of a fitted `MEDTreeClassifier`.

        Parameters
        ----------
        est : fitted MEDTreeClassifier
        label : class, optional
            Draw only this class (default: all classes).
        """
        if not isinstance(est, MEDTreeClassifier):
            raise TypeError(f"this display needs a fitted MEDTreeClassifier; got {type(est).__name__}")
        weights = est.edge_weights_
        if len(est.column_names_) < 2:
            raise ValueError(f"this display needs at least two columns; got {est.column_names_[0]!r} only")
        if np.isnan(weights[0]).any():
            raise ValueError(
                "this display needs edge weights, which objective='likelihood' does not have; use TreeDisplay"
            )
        fixed = est.model_.tables is not None
        below = est.mutual_information_ if fixed else est.edge_marginals_
        if len(below) > len(weights):  # the classes share the structure: average their mutual information
            below = [np.asarray(sum(share * values for share, values in zip(est.class_prior_, below)))]
        chosen, titles = chosen_classes(est, len(weights), label)
        kind = "information" if fixed else "marginals"
        return cls([_centered(weights[i]) for i in chosen], [below[i] for i in chosen], kind, titles, est.column_names_)

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        rows, columns = self._panels()
        return SIDE[0] * columns + SIDE[1], (SIDE[0] + 0.1) * rows

    def _panels(self) -> tuple[int, int]:
        """Number of rows and columns of matrices."""
        columns = min(len(self.weights), MOST_BESIDE)
        return -(-len(self.weights) // columns), columns

    def _draw(self, ax: Any) -> None:
        panels = divided(ax, len(self.weights), *self._panels())
        pairs = np.triu_indices(len(self.names), 1)
        scales = [
            _color_range([weights[pairs] for weights in self.weights]),
            _color_range([np.zeros(1), *(below[pairs] for below in self.below)]),
        ]
        images = [
            self._draw_matrix(panel, weights, below, title, scales)
            for panel, weights, below, title in zip(panels, self.weights, self.below, self.titles)
        ]
        _color_bars(panels[-1], images[-1], ("Centered log W (nats)", NAMES[self.kind]))
        self.axes_ = panels

    def _draw_matrix(self, ax: Any, weights: np.ndarray, below: np.ndarray, title: str, scales: Any) -> list[Any]:
        n = len(self.names)
        above = np.triu(np.ones((n, n), dtype=bool), 1)
        halves = (np.ma.masked_where(~above, weights), np.ma.masked_where(~above.T, below))
        images = [
            ax.imshow(half, cmap=colors, vmin=low, vmax=high, interpolation="nearest")
            for half, colors, (low, high) in zip(halves, (share_colors(), _warm_colors()), scales)
        ]
        ax.plot([-0.5, n - 0.5], [-0.5, n - 0.5], color=INK, lw=0.6)
        ticks = np.arange(0, n, -(-n // MOST_NAMES))
        labels = [plain(self.names[v], NAME[n > FEW]).strip() for v in ticks]
        size = "small" if n <= FEW else "x-small" if n <= 20 else 6
        ax.set_xticks(ticks, labels, rotation=90 if n > FEW or max(map(len, labels)) > 3 else 0, fontsize=size)
        ax.set_yticks(ticks, labels, fontsize=size)
        ax.tick_params(length=2, colors=INK, pad=2)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="Column v", ylabel="Column u")
        ax.set_title(plain(title, 40), loc="left", fontsize="medium", color=INK)
        return images


def _centered(weights: np.ndarray) -> np.ndarray:
    """(n, n) minus the mean; a constant added to all edges does not change the distribution over trees."""
    off_diagonal = ~np.eye(len(weights), dtype=bool)
    return np.asarray(np.where(off_diagonal, weights - weights[off_diagonal].mean(), 0.0))


def _color_range(values: list[np.ndarray]) -> tuple[float, float]:
    """Lowest and highest value of all matrices."""
    pooled = np.concatenate(values)
    low, high = float(pooled.min()), float(pooled.max())
    return low, high if high > low else low + 1.0


def _warm_colors() -> Any:
    """Color map from white (lowest) to dark orange."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("warm", ["#ffffff", "#f7cfb0", OKABE_ITO[1], "#5e2a00"])


def _color_bars(ax: Any, images: list[Any], labels: tuple[str, str]) -> None:
    """A color bar for each half, beside the last matrix."""
    for bottom, image, label in zip((0.54, 0.0), images, labels):
        bar = ax.figure.colorbar(image, cax=ax.inset_axes([1.05, bottom, 0.045, 0.46]))
        bar.set_label(label, fontsize="x-small")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize="x-small", colors=INK)


def chosen_classes(est: BaseEstimator, n_structures: int, label: Hashable | None) -> tuple[list[int], list[str]]:
    """Positions and titles of the structures of the class `label`, or of all classes if it is None."""
    classes = est.classes_.tolist()
    class_of = getattr(est.model_, "class_of", np.arange(n_structures))
    if n_structures < len(classes):
        if label is not None:
            raise ValueError(f"all classes share one structure; leave label={label!r} out")
        return [0], ["all classes"]
    if label is not None and label not in classes:
        raise ValueError(f"label must be one of the classes {classes}; got {label!r}")
    chosen, titles = [], []
    for i, c in enumerate(class_of):
        component = f", tree {i - int(np.argmax(class_of == c))}" if n_structures > len(classes) else ""
        if label is None or classes[c] == label:
            chosen.append(i)
            titles.append(class_name(classes[c]) + component)
    return chosen, titles
