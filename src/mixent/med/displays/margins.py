"""Histogram of the margins of the training rows, with support rows marked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, color, tidy
from mixent.data import TableLike
from mixent.data.labels import as_labels, encode, labelled_rows
from mixent.med.estimator import MEDBase

PALE = "#c9c9c9"
TAIL = 0.005  # share of the rows at either end that may lie outside the axis; they are drawn in the outermost bin
BARS = 36
CLASSIFIERS = "MEDClassifier, MEDGaussianClassifier, MEDTreeClassifier or MEDBayesNetClassifier"


def check_margins(est: BaseEstimator) -> None:
    """Raise an error for estimators that were not trained with margins."""
    if not isinstance(est, MEDBase):
        raise TypeError(f"this display needs a fitted {CLASSIFIERS}; got {type(est).__name__}")
    check_is_fitted(est)
    if not est._trains_margins():
        raise ValueError("this display needs a model trained with margins; fit it with objective='margin'")


@dataclass(repr=False)
class MarginsDisplay(Display):
    """Margins of the labelled training rows of a classifier by maximum entropy discrimination.

    The margin is the score of the row's class minus the highest score of another class; scores are the discriminant
    functions, without the offsets of the calibration. Only support rows determine the boundary.
    """

    margin: np.ndarray  # (n,)
    support: np.ndarray  # (n,) bool: whether the multiplier is not zero
    expected: float  # prior expectation of the margin; rows with a larger margin are not support rows

    @classmethod
    @draws
    def from_estimator(cls, est: MEDBase, X: TableLike, y: ArrayLike | None) -> Self:
        """Compute the margins of a fitted classifier by maximum entropy discrimination.

        Parameters
        ----------
        est : fitted classifier
        X, y : training rows and labels
        """
        check_margins(est)
        y = as_labels(y)
        if len(y) != est.n_rows_:
            raise ValueError(f"X and y must be the {est.n_rows_} rows that the model was fitted to; got {len(y)} rows")
        labelled = labelled_rows(y)
        scores = est._scores(X)[labelled]
        rows, own = np.arange(labelled.sum()), encode(y[labelled], est.classes_)
        own_scores = scores[rows, own]
        scores[rows, own] = -np.inf
        support: np.ndarray = np.reshape(est.multipliers_, (len(y), -1)).max(axis=1) > 0
        return cls(own_scores - scores.max(axis=1), support[labelled], float(est.margin_.mean(0.0)))

    @property
    def n_wrong(self) -> int:
        """Number of rows with a negative margin."""
        return int(np.sum(self.margin < 0))

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 6.4, 3.6

    def _draw(self, ax: Any) -> None:
        low, high = np.quantile(self.margin, [TAIL, 1 - TAIL])
        low, high = min(low, 0.0), max(high, self.expected)
        space = 0.02 * (high - low) or 1.0
        edges = np.linspace(low - space, high + space, BARS + 1)
        edges -= edges[np.abs(edges).argmin()]  # one edge is exactly 0
        margin = np.clip(self.margin, edges[0], edges[-1])
        support = np.histogram(margin[self.support], edges)[0]
        others = np.histogram(margin[~self.support], edges)[0]
        style = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.5, "zorder": 2}
        if support.any():
            ax.bar(edges[:-1], support, color=color(0), label=f"Support rows: {support.sum()}", **style)
        if others.any():
            ax.bar(edges[:-1], others, bottom=support, color=PALE, label=f"Other rows: {others.sum()}", **style)
        ax.axvline(0, color=INK, lw=1, zorder=3, label=f"Negative margin: {self.n_wrong}")
        label = f"Expected margin: {self.expected:.3g}"
        ax.axvline(self.expected, color=INK, lw=1, ls=(0, (4, 3)), zorder=3, label=label)
        ax.set(xlabel="Margin (own class score minus highest other class score)", ylabel="Number of training rows")
        ax.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.06 * max((support + others).max(), 1)))
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        tidy(ax)
        ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
