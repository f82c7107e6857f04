"""Uncertainty of a classifier, class by class, with its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.delegation import aligned_proba
from mixent.base.displays import Display, computed, draws
from mixent.base.style import color, dash, legend, plain, tidy
from mixent.base.text import class_name
from mixent.data.labels import classes_of
from mixent.evaluate.scores import read_predictions

MANY_CLASSES = 4  # above this the legend stands below, so that the axes keep their width
MOST_ENTRIES = 12


@dataclass(repr=False)
class UncertaintyDisplay(Display):
    """One minus the largest posterior of every row, sorted within each true class; wrong decisions are marked."""

    uncertainty: dict[str, np.ndarray]  # class: (n_c,) ascending
    wrong: dict[str, np.ndarray]  # class: (n_c,) bool, in the same order

    @classmethod
    @draws
    def from_estimator(cls, est: Any, X: Any, y: ArrayLike) -> Self:
        """Uncertainty of a fitted classifier.

        Parameters
        ----------
        est : fitted classifier
        X : table
        y : (n,) labels
        """
        return computed(cls.from_predictions, y, aligned_proba(est, X, est.classes_), est.classes_)

    @classmethod
    @draws
    def from_predictions(
        cls, y: ArrayLike, proba: ArrayLike, classes: Sequence[Any] | np.ndarray | None = None
    ) -> Self:
        """Uncertainty of predicted probabilities.

        Parameters
        ----------
        y : (n,) labels
        proba : (n, C) array
        classes : C labels, optional
            In the order of the columns of `proba` (default: the sorted labels in `y`).
        """
        classes = classes_of(y) if classes is None else classes
        true, proba, _ = read_predictions(y, proba, classes, None)
        values, miss = 1 - proba.max(axis=1), proba.argmax(axis=1) != true
        uncertainty, wrong = {}, {}
        for c, label in enumerate(classes):
            rows = np.flatnonzero(true == c)
            rows = rows[np.argsort(values[rows], kind="stable")]
            uncertainty[str(label)], wrong[str(label)] = values[rows], miss[rows]
        return cls(uncertainty, wrong)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        n_classes = len(self.uncertainty)
        lines = min(n_classes + 2, MOST_ENTRIES + 1) / 2 if n_classes > MANY_CLASSES else 0
        return 5.2, 4.0 + 0.17 * lines

    def _draw(self, ax: Any) -> None:
        for i, (name, values) in enumerate(self.uncertainty.items()):
            if not len(values):
                continue
            share, wrong = (np.arange(len(values)) + 1) / len(values), self.wrong[name]
            label = f"{plain(class_name(name))}: {wrong.sum()} of {len(values)} wrong"
            ax.plot(share, values, color=color(i), ls=dash(i), lw=1.7, label=label, zorder=2)
            if wrong.any():
                ax.scatter(share[wrong], values[wrong], color=color(i), marker="x", s=30, lw=1.2, zorder=3)
        most = max((values[-1] for values in self.uncertainty.values() if len(values)), default=1.0)
        ax.set(xlim=(0, 1.02), ylim=(0, max(1.08 * most, 0.02)))
        ax.set(xlabel="Share of the rows of the class, surest first", ylabel="1 − largest posterior")
        handles, labels = self._most_wrong(*ax.get_legend_handles_labels())
        if any(wrong.any() for wrong in self.wrong.values()):
            from matplotlib.lines import Line2D

            handles.append(Line2D([], [], color="#333333", marker="x", ls="none", ms=5))
            labels.append("wrong decision")
        self._legend(ax, handles, labels)
        tidy(ax)

    def _most_wrong(self, handles: list, labels: list[str]) -> tuple[list, list[str]]:
        """Legend entries of the classes with the most errors, when there are too many classes for all."""
        if len(labels) <= MOST_ENTRIES:
            return handles, labels
        from matplotlib.lines import Line2D

        errors = np.array([wrong.sum() for wrong in self.wrong.values() if len(wrong)])
        kept = np.sort(np.argsort(-errors, kind="stable")[: MOST_ENTRIES - 1])
        rest = f"{len(labels) - len(kept)} classes with fewer errors"
        return [*(handles[i] for i in kept), Line2D([], [], ls="none")], [*(labels[i] for i in kept), rest]

    def _legend(self, ax: Any, handles: list, labels: list[str]) -> None:
        if len(self.uncertainty) <= MANY_CLASSES:
            legend(ax, len(labels), handles=handles, labels=labels, loc="upper left")
            return
        look = {"loc": "upper left", "frameon": False, "fontsize": "small", "ncols": 2, "columnspacing": 1.0}
        if ax.figure.get_layout_engine() is None:  # no room below: inside, above the curves
            ax.legend(handles, labels, **{**look, "ncols": 1, "fontsize": "x-small"})
            return
        from matplotlib.transforms import ScaledTranslation

        below = ax.transAxes + ScaledTranslation(0, -0.5, ax.figure.dpi_scale_trans)  # inches: under the label
        ax.legend(handles, labels, **look, bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0)
