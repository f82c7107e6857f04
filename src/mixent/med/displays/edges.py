"""Edge weights that discrimination learns, and the mutual information of the edges: two halves of a square."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from mixent.base.style import INK, OKABE_ITO, Display, divided, plain, share_colors
from mixent.base.text import class_name
from mixent.med.tree_classifier import MEDTreeClassifier

MOST_NAMES = 30  # beside a square; of more columns every second (third ...) is named
NAME = 20, 14  # characters of a column, of few and of many
FEW = 12
SIDE = 3.9, 0.9  # inches of a square, and of what stands beside all of them
MOST_BESIDE = 3  # squares in a row
NAMES = {"information": "Mutual information (nats)", "marginals": "Probability of the edge"}


@dataclass(repr=False)
class EdgeWeightsDisplay(Display):
    """log W_uv above the diagonal, mutual information below, a square for each class (Figure 8 of the document).

    The sum of log W over a tree's edges is its log-probability, up to a constant, so that the mean of a class is
    subtracted; the sum of the mutual information is its log-likelihood per row, minus that of independent columns. An
    edge that is dark above and pale below separates the classes, although it carries little information on the rows.
    With tables="integrated" there is no mutual information, and the lower half is the probability that a tree has the
    edge.
    """

    weights: list[np.ndarray]  # of each class (tree): (n, n) log W_uv less their mean, nats
    below: list[np.ndarray]  # (n, n)
    kind: str  # of what is below: "information" (nats) or "marginals"
    titles: list[str]
    names: tuple[str, ...]  # (n,) of the columns
    axes_: Any = field(default=None, init=False, repr=False)  # of the squares

    @classmethod
    def from_estimator(cls, est: MEDTreeClassifier, label: Hashable | None = None) -> Self:
        """The edge weights of a fitted `MEDTreeClassifier`.

        Parameters
        ----------
        est : fitted MEDTreeClassifier
        label : class, optional
            Draw this class alone (default: a square for each class).
        """
        if not isinstance(est, MEDTreeClassifier):
            raise TypeError(f"this display needs a fitted MEDTreeClassifier; got {type(est).__name__}")
        weights = est.edge_weights_
        if len(est.column_names_) < 2:
            raise ValueError(f"the model has one column, {est.column_names_[0]!r}, and no edges")
        if np.isnan(weights[0]).any():
            raise ValueError(
                "objective='likelihood' has one tree of each class and no edge weights; draw it by TreeDisplay"
            )
        known = est.model_.tables is not None
        below = est.mutual_information_ if known else est.edge_marginals_
        if len(below) > len(weights):  # one structure for all classes
            below = [np.asarray(sum(share * one for share, one in zip(est.class_prior_, below)))]
        kept, titles = chosen_classes(est, len(weights), label)
        kind = "information" if known else "marginals"
        return cls([_centered(weights[i]) for i in kept], [below[i] for i in kept], kind, titles, est.column_names_)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        rows, columns = self._panels()
        return SIDE[0] * columns + SIDE[1], (SIDE[0] + 0.1) * rows

    def _panels(self) -> tuple[int, int]:
        """Rows and columns of squares."""
        columns = min(len(self.weights), MOST_BESIDE)
        return -(-len(self.weights) // columns), columns

    def _draw(self, ax: Any) -> None:
        panels = divided(ax, len(self.weights), *self._panels())
        pairs = np.triu_indices(len(self.names), 1)
        scales = [
            _scale([one[pairs] for one in self.weights]),
            _scale([np.zeros(1), *(one[pairs] for one in self.below)]),
        ]
        images = [
            self._draw_square(panel, weights, below, title, scales)
            for panel, weights, below, title in zip(panels, self.weights, self.below, self.titles)
        ]
        _bars(panels[-1], images[-1], ("Log W minus mean (nats)", NAMES[self.kind]))
        self.axes_ = panels

    def _draw_square(self, ax: Any, weights: np.ndarray, below: np.ndarray, title: str, scales: Any) -> list[Any]:
        n = len(self.names)
        above = np.triu(np.ones((n, n), dtype=bool), 1)
        halves = (np.ma.masked_where(~above, weights), np.ma.masked_where(~above.T, below))
        images = [
            ax.imshow(half, cmap=shades, vmin=low, vmax=high, interpolation="nearest")
            for half, shades, (low, high) in zip(halves, (share_colors(), _warm()), scales)
        ]
        ax.plot([-0.5, n - 0.5], [-0.5, n - 0.5], color=INK, lw=0.6)
        at = np.arange(0, n, -(-n // MOST_NAMES))
        said = [plain(self.names[v], NAME[n > FEW]).strip() for v in at]
        size = "small" if n <= FEW else "x-small" if n <= 20 else 6
        ax.set_xticks(at, said, rotation=90 if n > FEW or max(map(len, said)) > 3 else 0, fontsize=size)
        ax.set_yticks(at, said, fontsize=size)
        ax.tick_params(length=2, colors=INK, pad=2)
        ax.spines[:].set_visible(False)
        ax.set(xlabel="column v", ylabel="column u")
        ax.set_title(plain(title, 40), loc="left", fontsize="medium", color=INK)
        return images


def _centered(weights: np.ndarray) -> np.ndarray:
    """(n, n): a constant more for every edge is no other distribution, since all trees have as many."""
    off = ~np.eye(len(weights), dtype=bool)
    return np.asarray(np.where(off, weights - weights[off].mean(), 0.0))


def _scale(halves: list[np.ndarray]) -> tuple[float, float]:
    """Lowest and highest value of all squares."""
    whole = np.concatenate(halves)
    low, high = float(whole.min()), float(whole.max())
    return low, high if high > low else low + 1.0


def _warm() -> Any:
    """From white (lowest) to dark orange."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("warm", ["#ffffff", "#f7cfb0", OKABE_ITO[1], "#5e2a00"])


def _bars(ax: Any, images: list[Any], labels: tuple[str, str]) -> None:
    """A scale beside each half of the last square."""
    for low, image, label in zip((0.54, 0.0), images, labels):
        beside = ax.inset_axes([1.05, low, 0.045, 0.46])
        bar = ax.figure.colorbar(image, cax=beside)
        bar.set_label(label, fontsize="x-small")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize="x-small", colors=INK)


def chosen_classes(est: BaseEstimator, n_structures: int, label: Hashable | None) -> tuple[list[int], list[str]]:
    """Positions and names of the structures of the class `label` (None: of all classes)."""
    classes = est.classes_.tolist()
    owner = getattr(est.model_, "class_of", np.arange(n_structures))
    if n_structures < len(classes):
        if label is not None:
            raise ValueError(f"all classes share one structure; leave label={label!r} out")
        return [0], ["all classes"]
    if label is not None and label not in classes:
        raise ValueError(f"label must be one of the classes {classes}; got {label!r}")
    kept, titles = [], []
    for i, c in enumerate(owner):
        component = f", tree {i - int(np.argmax(owner == c))}" if n_structures > len(classes) else ""
        if label is None or classes[c] == label:
            kept.append(i)
            titles.append(class_name(classes[c]) + component)
    return kept, titles
