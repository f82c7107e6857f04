"""How much each row says, from most to least: the sparsity of a maximum entropy discrimination."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.evaluate.displays.palette import (
    FAINT,
    INK,
    Short,
    axes_or_new,
    class_name,
    colour,
    legend,
    marker,
    plain,
    tidy,
)

NEAR = 2.0  # times the largest multiplier: a bound farther away is left out of the picture


@dataclass(repr=False)
class MultipliersDisplay(Short):
    """The multipliers of the training rows in falling order; with more than two classes, the sum of each row's.

    Rows at zero play no part: the discriminant without them is the same. The share of all others is the leave-one-out
    estimate of the error, and a crude one.
    """

    multipliers: np.ndarray  # (n,) falling
    row: np.ndarray  # (n,) which row
    row_class: np.ndarray  # (n,) class index; -1: the label was in doubt
    classes: Any  # (C,)
    upper: float | None  # multipliers of two classes stay below; None: no bound, or a sum
    loo_estimate: float  # share of the labelled rows that are not zero
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, est: Any):
        """Of a fitted `MEDClassifier` or `MEDGaussianClassifier`."""
        if not hasattr(est, "multipliers_"):
            raise ValueError(
                f"{type(est).__name__} has no multipliers_; fit a MEDClassifier or a MEDGaussianClassifier first"
            )
        whole = est.multipliers_ if est.multipliers_.ndim == 1 else est.multipliers_.sum(axis=1)
        used = np.flatnonzero(~np.isnan(est.label_posterior_[:, 0]))  # rows with a weight
        order = used[np.argsort(-whole[used], kind="stable")]
        sure = est.label_posterior_[order]
        label = np.where(sure.max(axis=1) == 1.0, sure.argmax(axis=1), -1)
        bounded = est.multipliers_.ndim == 1 and np.isfinite(est.margin_.upper)
        upper = float(est.margin_.upper) if bounded else None
        return cls(whole[order], order, label, est.classes_, upper, float(est.loo_estimate_))

    @property
    def zero_share(self) -> float:
        """Share of rows that say nothing."""
        return float(np.mean(self.multipliers == 0))

    def plot(self, ax: Any = None):
        """Draw the rows one beside the other."""
        ax = axes_or_new(ax, (5.8, 3.6))
        n = len(self.multipliers)
        place = np.arange(1, n + 1)
        n_support = int((self.multipliers > 0).sum())
        ax.vlines(place[:n_support], 0, self.multipliers[:n_support], color=FAINT, lw=0.5, zorder=1)
        doubtful = self.row_class < 0
        if doubtful.any():
            look = {"color": FAINT, "marker": ".", "s": 16, "label": "label in doubt"}
            ax.scatter(place[doubtful], self.multipliers[doubtful], zorder=2, **look)
        for c, label in enumerate(self.classes):
            rows = self.row_class == c
            look = {"color": colour(c), "marker": marker(c), "s": 16, "edgecolors": "white", "lw": 0.4}
            ax.scatter(place[rows], self.multipliers[rows], label=plain(class_name(label), 24), zorder=2, **look)
        top = float(self.multipliers.max(initial=0.0)) or 1.0
        if self.upper is not None and self.upper < NEAR * top:
            ax.axhline(self.upper, color=INK, lw=0.9, ls="--", label=f"c = {self.upper:.3g}")
            top = max(top, self.upper)
        ax.axvline(n_support + 0.5, color=INK, lw=0.9, ls=":")
        said = f"{n_support} of {n} rows speak; leave-one-out estimate of the error {100 * self.loo_estimate:.0f} %"
        ax.set_title(said, loc="left", fontsize="small", color=INK)
        ax.set(xlim=(0, n + 1), ylim=(-0.03 * top, 1.08 * top))
        ax.set(xlabel="rows, by how much they say", ylabel="multiplier" + (", sum" if len(self.classes) > 2 else ""))
        legend(ax, len(self.classes) + 2, loc="center right")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
