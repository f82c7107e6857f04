"""Displays that any fitted estimator may use: the objective, pass by pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.style import FAINT, OKABE_ITO, Display, legend, tidy
from mixent.core.driver import Step


@dataclass(repr=False)
class ConvergenceDisplay(Display):
    """Objective (nats) against passes over the data.

    A repair (a component re-seeded) starts a new segment; only there may the objective decrease.
    """

    n_pass: np.ndarray  # (T,)
    objective: np.ndarray  # (T,) nats
    kind: np.ndarray  # (T,) "start", "plain", "proposal", "repair"
    accepted: np.ndarray  # (T,) bool
    segment: np.ndarray  # (T,)

    @classmethod
    def from_estimator(cls, est: Any) -> Self:
        """The trace of a fitted estimator.

        Parameters
        ----------
        est : fitted estimator with `run_`
        """
        if getattr(est, "run_", None) is None:
            raise ValueError(f"{type(est).__name__} has no run_ with a trace; fit a mixent estimator first")
        return cls.from_trace(est.run_.trace)

    @classmethod
    def from_trace(cls, trace: Sequence[Step]) -> Self:
        """The steps of a run.

        Parameters
        ----------
        trace : sequence of steps, such as `run_.trace` or `Fuser.history_`
        """
        if not trace:
            raise ValueError("the trace is empty: no pass was made")
        names = ("n_pass", "objective", "kind", "accepted", "segment")
        return cls(*(np.array([getattr(record, name) for record in trace]) for name in names))

    def _draw(self, ax: Any) -> None:
        """One line per segment; accelerated, rejected and repaired steps are marked."""
        ok, finite = self.accepted.astype(bool), np.isfinite(self.objective)
        base = self._base(ok & finite)
        objective = self.objective - base
        for segment in np.unique(self.segment):
            rows = ok & finite & (self.segment == segment)
            ax.plot(self.n_pass[rows], objective[rows], color=OKABE_ITO[0], marker=".", ms=4, lw=1.5, zorder=2)
        fast = ok & finite & (self.kind == "proposal")
        style = {"ls": "none", "zorder": 3}
        if fast.any():
            look = {"marker": "^", "ms": 6, "color": OKABE_ITO[2], "label": "accelerated step"}
            ax.plot(self.n_pass[fast], objective[fast], **look, **style)
        self._limit(ax, objective[ok & finite])
        if (~ok).any():
            floor = ax.get_ylim()[0]
            height = np.where(finite[~ok], np.maximum(objective[~ok], floor), floor)
            look = {"marker": "x", "ms": 5, "color": OKABE_ITO[1], "label": "rejected", "clip_on": False}
            ax.plot(self.n_pass[~ok], height, **look, **style)
        for i, at in enumerate(self.n_pass[self.kind == "repair"]):
            ax.axvline(at, color=FAINT, lw=1, ls=(0, (2, 2)), zorder=1, label="component re-seeded" if i == 0 else None)
        from_base = "" if base == 0 else f" − ({base:.8g})"
        ax.set(xlabel="Pass over the data", ylabel=f"Objective{from_base} (nats)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, len(ax.get_legend_handles_labels()[1]), loc="lower right")
        tidy(ax)

    def _base(self, shown: np.ndarray) -> float:
        """The last value, to subtract where all values agree in their first digits, which would fill the axis."""
        values = self.objective[shown]
        close = len(values) > 1 and 0 < np.ptp(values) < 1e-4 * np.abs(values[-1])
        return float(values[-1]) if close else 0.0

    def _limit(self, ax: Any, values: np.ndarray) -> None:
        """Limits from the accepted values alone; rejected trials far below are drawn at the lower edge."""
        if len(values) and np.ptp(values) > 0:
            ax.set_ylim(values.min() - 0.06 * np.ptp(values), values.max() + 0.06 * np.ptp(values))
