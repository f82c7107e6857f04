"""How clearly the training rows are on their side, and which of them hold the boundary in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.style import FAINT, INK, MED, Short, axes_or_new, colour, tidy
from mixent.data.labels import as_labels, encode, labelled_rows

SILENT = "#c9c9c9"
TAIL = 0.005  # share of the rows at either end that may lie outside the picture, drawn at its edge
BARS = 36


@dataclass(repr=False)
class MarginsDisplay(Short):
    """Margins of the labelled training rows of a classifier by maximum entropy discrimination.

    The margin is the score of the row's own class less that of its strongest rival. Rows with a multiplier ask for more
    than they would have without discrimination: they hold the boundary in place.
    """

    margin: np.ndarray  # (n,)
    support: np.ndarray  # (n,) bool: has the row a multiplier?
    wanted: float  # margin the prior expects: rows that keep it say nothing
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, est: Any, X: Any, y: Any):
        """Of a fitted classifier by maximum entropy discrimination, on the rows X, y it was fitted to."""
        if not hasattr(est, "multipliers_"):
            raise ValueError(f"{type(est).__name__} has no multipliers; give a fitted {MED}")
        if not hasattr(est, "classes_"):
            raise ValueError(
                f"{type(est).__name__} has no classes, and margins are between classes; draw the log-probabilities "
                f"of its rows by LikelihoodsDisplay, how much each counts by MultipliersDisplay"
            )
        if getattr(est, "objective", "margin") != "margin":
            raise ValueError(f"objective={est.objective!r} asks for no margin; fit with objective='margin'")
        y = as_labels(y)
        if len(y) != est.n_rows_:
            raise ValueError(
                f"margins are those of the rows the model was fitted to: it saw {est.n_rows_}, and these are {len(y)}"
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
        """Rows whose strongest rival scores more."""
        return int(np.sum(self.margin < 0))

    def plot(self, ax: Any = None):
        """Draw how many rows have which margin, those with a multiplier apart."""
        ax = axes_or_new(ax, (6.4, 3.6))
        low, high = np.quantile(self.margin, [TAIL, 1 - TAIL])
        low, high = min(low, 0.0), max(high, self.wanted)
        room = 0.02 * (high - low) or 1.0
        edges = np.linspace(low - room, high + room, BARS + 1)
        edges -= edges[np.abs(edges).argmin()]  # no bar on both sides of 0
        seen = np.clip(self.margin, edges[0], edges[-1])
        held = np.histogram(seen[self.support], edges)[0]
        silent = np.histogram(seen[~self.support], edges)[0]
        look = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.5, "zorder": 2}
        if held.any():
            ax.bar(edges[:-1], held, color=colour(0), label=f"with a multiplier: {held.sum()}", **look)
        if silent.any():
            ax.bar(edges[:-1], silent, bottom=held, color=SILENT, label=f"without: {silent.sum()}", **look)
        ax.axvline(0, color=INK, lw=1, zorder=3, label=f"left of 0, wrong: {self.n_wrong}")
        ax.axvline(self.wanted, color=INK, lw=1, ls=(0, (4, 3)), zorder=3, label=f"margin asked for: {self.wanted:.3g}")
        ax.set(xlabel="margin: score of the row's class less the strongest rival's", ylabel="training rows")
        ax.set(xlim=(edges[0], edges[-1]), ylim=(0, 1.06 * max((held + silent).max(), 1)))
        ax.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
        tidy(ax)
        ax.grid(axis="y", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self
