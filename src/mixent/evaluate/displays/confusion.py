"""Which classes are taken for which."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.style import INK, Short, axes_or_new, plain, share_colours
from mixent.data import row_weights
from mixent.data.labels import classes_of, encode


@dataclass(repr=False)
class ConfusionDisplay(Short):
    """Counts of true against predicted class, shaded by the share of the true class (each row sums to 1)."""

    counts: np.ndarray  # (C, C) weight of true class r predicted as class c
    classes: np.ndarray
    weighted: bool = False  # are the counts sums of weights?
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @property
    def shares(self) -> np.ndarray:
        """Row-normalised counts; a class without rows has zeros."""
        total = self.counts.sum(axis=1, keepdims=True)
        return self.counts / np.where(total > 0, total, 1)

    @classmethod
    def from_estimator(cls, est: Any, X: Any, y: Any, *, sample_weight: Any = None):
        """Confusion of a fitted classifier's decisions."""
        return cls.from_predictions(y, est.predict(X), est.classes_, sample_weight=sample_weight)

    @classmethod
    def from_predictions(cls, y: Any, predicted: Any, classes: Any = None, *, sample_weight: Any = None):
        """Confusion of predicted labels (n,) with true labels (n,)."""
        if classes is None:
            classes = np.union1d(classes_of(y), classes_of(predicted))
        true, guess, n_classes = encode(y, classes), encode(predicted, classes), len(classes)
        if len(true) != len(guess):
            raise ValueError(f"y has {len(true)} rows, predicted has {len(guess)}")
        weight = row_weights(sample_weight, len(true))
        counts = np.bincount(true * n_classes + guess, weight, minlength=n_classes**2)
        return cls(counts.reshape(n_classes, n_classes), np.asarray(classes), sample_weight is not None)

    def plot(self, ax: Any = None):
        """Draw the matrix: the count in each cell, the share as shade."""
        n = len(self.classes)
        side = min(max(3.6, 1.6 + 0.62 * n), 11)
        ax = axes_or_new(ax, (side + 0.6, side))
        image = ax.imshow(self.shares, cmap=share_colours(), vmin=0, vmax=1)
        for edge in np.arange(n + 1) - 0.5:
            ax.plot([-0.5, n - 0.5], [edge, edge], color="#dddddd", lw=0.6, clip_on=False)
            ax.plot([edge, edge], [-0.5, n - 0.5], color="#dddddd", lw=0.6, clip_on=False)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        if n <= 20:
            self._write_counts(ax)
        names = [plain(label, 18) for label in self.classes]
        steep = max(map(len, names)) > (12 if n <= 3 else 4)
        ax.set_xticks(range(n), names, **({"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if steep else {}))
        ax.set_yticks(range(n), names)
        ax.set(xlabel="predicted class", ylabel="true class")
        ax.tick_params(length=0, colors=INK, labelsize="medium" if n <= 12 else "small")
        ax.spines[:].set_visible(False)
        told = "share of the true class" + (" (weighted)" if self.weighted else "")
        bar = ax.figure.colorbar(image, ax=ax, label=told, shrink=0.8, ticks=[0, 0.5, 1])
        bar.outline.set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_counts(self, ax: Any) -> None:
        for (row, column), share in np.ndenumerate(self.shares):
            count = self.counts[row, column]
            if count > 0:
                shade = "white" if share > 0.5 else INK
                size = "medium" if len(self.classes) <= 10 else "x-small"
                ax.text(
                    column,
                    row,
                    f"{count:.0f}" if count >= 1000 else f"{count:.4g}",
                    ha="center",
                    va="center",
                    color=shade,
                    fontsize=size,
                )
