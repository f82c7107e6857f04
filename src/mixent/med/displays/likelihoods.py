"""Histogram of log-probabilities under a novelty detector, compared with the Bayesian fit or the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, color, tidy
from mixent.data import TableLike
from mixent.med.novelty import MEDNoveltyDetector

BARS = 44
TAIL = 0.001  # share of the rows at either end that may lie outside the axis; they are drawn in the outermost bin


@dataclass(repr=False)
class LikelihoodsDisplay(Display):
    """Histogram of log-probabilities under a novelty detector, with its threshold.

    The training rows are compared with the same rows under the Bayesian fit (document 001, Figure 9a): the level set
    requires the level l of every row and no more, so that its lower tail is shorter. Other rows are compared with the
    training rows.
    """

    scores: np.ndarray  # (n,) log-probabilities, nats
    others: np.ndarray | None  # (m,) log-probabilities to compare with, nats
    threshold: float  # rows below it are outliers
    level: float | None = None  # level l, nats
    names: tuple[str, str] = ("Level set", "Bayesian fit")

    @classmethod
    @draws
    def from_estimator(cls, est: MEDNoveltyDetector, X: TableLike = None) -> Self:
        """Compute the log-probabilities under a fitted `MEDNoveltyDetector`.

        Parameters
        ----------
        est : fitted MEDNoveltyDetector
        X : table, optional
            Rows to compare with the training rows (default: the training rows, compared with the Bayesian fit).

        Returns
        -------
        LikelihoodsDisplay
        """
        if not isinstance(est, MEDNoveltyDetector):
            raise TypeError(f"this display needs a fitted MEDNoveltyDetector; got {type(est).__name__}")
        check_is_fitted(est)
        threshold = float(est.offset_)
        if X is not None:
            return cls(est.score_samples(X), est.scores_, threshold, names=("These rows", "Training rows"))
        if est.objective != "margin":
            return cls(est.scores_, None, threshold, names=("Bayesian fit", ""))
        return cls(est.scores_, est.bayes_scores_, threshold, float(est.level_))

    @property
    def n_outliers(self) -> int:
        """Number of rows below the threshold."""
        return int(np.sum(self.scores < self.threshold))

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 6.4, 3.6

    def _draw(self, ax: Any) -> None:
        edges = self._edges()
        style = {"bins": edges, "zorder": 2}
        ax.hist(**_percentages(self.scores, edges), color=color(0), alpha=0.45, label=self.names[0], **style)
        if self.others is not None:
            style |= {"histtype": "step", "lw": 1.6, "ls": (0, (4, 1.5)), "zorder": 3}
            ax.hist(**_percentages(self.others, edges), color=color(1), label=self.names[1], **style)
        if self.level is not None:
            ax.axvline(self.level, color=INK, lw=1, ls=(0, (4, 3)), zorder=4, label=f"Level l: {self.level:.3g}")
        text = f"Threshold: {self.threshold:.3g} ({self.n_outliers} of {len(self.scores)} rows below)"
        ax.axvline(self.threshold, color=INK, lw=1, zorder=4, label=text)
        ax.set(xlabel="Log-probability (nats)", ylabel="Rows (%)", xlim=(edges[0], edges[-1]))
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        tidy(ax)
        ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)

    def _edges(self) -> np.ndarray:
        """(BARS + 1,) bin edges that include both histograms, the threshold and the level."""
        both = self.scores if self.others is None else np.concatenate([self.scores, self.others])
        low, high = np.quantile(both, [TAIL, 1 - TAIL])
        marks = [self.threshold] if self.level is None else [self.threshold, self.level]
        low, high = min(low, *marks), max(high, marks[-1])
        space = 0.02 * (high - low) or 1.0
        return np.linspace(low - space, high + space, BARS + 1)


def _percentages(scores: np.ndarray, edges: np.ndarray) -> dict[str, np.ndarray]:
    """Scores clipped to the edges, and weights with which the histogram is in percent."""
    return {"x": np.clip(scores, edges[0], edges[-1]), "weights": np.full(len(scores), 100.0 / len(scores))}
