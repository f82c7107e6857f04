"""How probable the training rows are: under the level set, and under the Bayesian fit it begins with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.style import FAINT, INK, Short, axes_or_new, colour, tidy

BARS = 44
TAIL = 0.001  # share of the rows at either end that may lie outside the picture, drawn at its edge


@dataclass(repr=False)
class LikelihoodsDisplay(Short):
    """Log-probabilities of the training rows of a novelty detector, and of its Bayesian fit (Figure 9a).

    The level set asks every row for the level l and nothing more: rows below it are raised, at the price of those
    above, so that its tail is shorter.
    """

    scores: np.ndarray  # (n,) nats
    bayes_scores: np.ndarray | None  # (n,) nats; None: the Bayesian fit is all there is
    level: float  # l, nats
    threshold: float  # rows below are outliers
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, est: Any):
        """Of a fitted `MEDNoveltyDetector`, on the rows it was fitted to."""
        if not hasattr(est, "bayes_scores_"):
            raise ValueError(f"{type(est).__name__} has no bayes_scores_; give a fitted MEDNoveltyDetector")
        other = est.bayes_scores_ if est.objective == "margin" else None
        return cls(est.scores_, other, float(est.level_), float(est.offset_))

    @property
    def n_outliers(self) -> int:
        """Training rows below the threshold."""
        return int(np.sum(self.scores < self.threshold))

    def plot(self, ax: Any = None):
        """Draw how many rows have which log-probability."""
        ax = axes_or_new(ax, (6.4, 3.6))
        both = self.scores if self.bayes_scores is None else np.concatenate([self.scores, self.bayes_scores])
        low, high = np.quantile(both, [TAIL, 1 - TAIL])
        low, high = min(low, self.threshold, self.level), max(high, self.level)
        room = 0.02 * (high - low) or 1.0
        edges = np.linspace(low - room, high + room, BARS + 1)
        look = {"bins": edges, "zorder": 2}
        name = "Bayesian fit" if self.bayes_scores is None else "level set"
        ax.hist(_inside(self.scores, edges), color=colour(0), alpha=0.45, label=name, **look)
        if self.bayes_scores is not None:
            look |= {"histtype": "step", "lw": 1.6, "ls": (0, (4, 1.5)), "zorder": 3}
            ax.hist(_inside(self.bayes_scores, edges), color=colour(1), label="Bayesian fit", **look)
        if self.bayes_scores is not None:
            ax.axvline(self.level, color=INK, lw=1, ls=(0, (4, 3)), zorder=4, label=f"level l: {self.level:.3g}")
        told = f"threshold: {self.threshold:.3g} ({self.n_outliers} of {len(self.scores)} rows below)"
        ax.axvline(self.threshold, color=INK, lw=1, zorder=4, label=told)
        ax.set(xlabel="log-probability of a row, nats", ylabel="training rows", xlim=(edges[0], edges[-1]))
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        tidy(ax)
        ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _inside(scores: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.clip(scores, edges[0], edges[-1])
