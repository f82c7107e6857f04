"""Margins of the training rows, and which of them determine the boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixent.base.style import FAINT, INK, Display, color, tidy
from mixent.data import TableLike
from mixent.data.labels import as_labels, encode, labelled_rows
from mixent.med.estimator import MEDBase

PALE = "#c9c9c9"
TAIL = 0.005  # share of the rows at either end that may lie outside the picture, drawn at its edge
BARS = 36
CLASSIFIERS = "MEDClassifier, MEDGaussianClassifier, MEDTreeClassifier or MEDBayesNetClassifier"


def check_margins(est: BaseEstimator) -> None:
    """Refuse estimators that were not trained for margins."""
    if not isinstance(est, MEDBase):
        raise TypeError(f"this display needs a fitted {CLASSIFIERS}; got {type(est).__name__}")
    check_is_fitted(est)
    if not est._trains_margins():
        raise ValueError("this display needs a model trained for margins; fit with objective='margin'")


@dataclass(repr=False)
class MarginsDisplay(Display):
    """Margins of the labelled training rows of a classifier by maximum entropy discrimination.

    The margin is the score of the row's own class minus that of its strongest rival. Only rows with a multiplier
    determine the boundary.
    """

    margin: np.ndarray  # (n,)
    support: np.ndarray  # (n,) bool: has the row a multiplier?
    expected: float  # under the prior of the margins: rows that keep it have no multiplier

    @classmethod
    def from_estimator(cls, est: MEDBase, X: TableLike, y: ArrayLike | None) -> Self:
        """The margins of a fitted classifier by maximum entropy discrimination.

        Parameters
        ----------
        est : fitted classifier
        X, y : the rows it was fitted to
        """
        check_margins(est)
        y = as_labels(y)
        if len(y) != est.n_rows_:
            raise ValueError(
                f"X and y must be the rows the model was fitted to, which were {est.n_rows_}; got {len(y)}"
            )
        known = labelled_rows(y)
        scores = est.decision_function(X)
        scores = np.stack([-scores, scores], axis=1) / 2 if scores.ndim == 1 else scores
        at, own = np.arange(known.sum()), encode(y[known], est.classes_)
        scores = scores[known]
        mine = scores[at, own]
        scores[at, own] = -np.inf
        support: np.ndarray = np.reshape(est.multipliers_, (len(y), -1)).max(axis=1) > 0
        return cls(mine - scores.max(axis=1), support[known], float(est.margin_.mean(0.0)))

    @property
    def n_wrong(self) -> int:
        """Rows with a negative margin."""
        return int(np.sum(self.margin < 0))

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.4, 3.6

    def _draw(self, ax: Any) -> None:
        low, high = np.quantile(self.margin, [TAIL, 1 - TAIL])
        low, high = min(low, 0.0), max(high, self.expected)
        room = 0.02 * (high - low) or 1.0
        edges = np.linspace(low - room, high + room, BARS + 1)
        edges -= edges[np.abs(edges).argmin()]  # no bar on both sides of 0
        seen = np.clip(self.margin, edges[0], edges[-1])
        held = np.histogram(seen[self.support], edges)[0]
        other = np.histogram(seen[~self.support], edges)[0]
        look = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.5, "zorder": 2}
        if held.any():
            ax.bar(edges[:-1], held, color=color(0), label=f"with a multiplier: {held.sum()}", **look)
        if other.any():
            ax.bar(edges[:-1], other, bottom=held, color=PALE, label=f"without: {other.sum()}", **look)
        ax.axvline(0, color=INK, lw=1, zorder=3, label=f"misclassified (left of 0): {self.n_wrong}")
        label = f"expected margin: {self.expected:.3g}"
        ax.axvline(self.expected, color=INK, lw=1, ls=(0, (4, 3)), zorder=3, label=label)
        ax.set(xlabel="Margin (score of the row's class minus the strongest rival's)", ylabel="Training rows")
        ax.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.06 * max((held + other).max(), 1)))
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        tidy(ax)
        ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
