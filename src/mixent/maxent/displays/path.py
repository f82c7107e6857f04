"""Which features forward selection added, in which order, and the gain of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixent.base.params import check_choice
from mixent.base.style import FAINT, INK, RING, Display, color, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTITIES = ("score", "gain")
LABELS = {
    "bic": "BIC (nats × 2; lower is better)",
    "validation": "held-out log-loss (nats per row; lower is better)",
}


@dataclass(repr=False)
class PathDisplay(Display):
    """The path of forward selection, top to bottom: the score after each addition, or its gain."""

    names: list[str]  # (T,)
    score: np.ndarray  # (T,) BIC, or log-loss of the rows held out
    gain: np.ndarray  # (T,) nats of log-likelihood
    expected_gain: np.ndarray  # (T,) lower bound of the gain, from the counts
    kept: np.ndarray  # (T,) bool
    criterion: str  # "bic" or "validation"
    start: float | None = None  # the score without features, where it is known

    @classmethod
    def from_estimator(cls, est: Any) -> Self:
        """The path of a `MaxEntClassifier` fitted with `selection` (`est.path_`).

        Parameters
        ----------
        est : fitted MaxEntClassifier
        """
        path = getattr(est, "path_", None)
        if not path or not hasattr(path[0], "expected_gain"):
            raise ValueError(f'{type(est).__name__} has no path of features: fit a MaxEntClassifier(selection="bic")')
        columns = {
            name: np.array([getattr(step, name) for step in path]) for name in ("score", "gain", "expected_gain")
        }
        kept = np.array([step.kept for step in path])
        criterion = path[0].criterion
        start = _bic_of_nothing(path, len(est.classes_)) if criterion == "bic" else None
        return cls([step.name for step in path], **columns, kept=kept, criterion=criterion, start=start)

    def plot(self, ax: Axes | None = None, *, quantity: str = "score") -> Self:
        """Draw a line for each step.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw (default: a new figure).
        quantity : "score" or "gain"
            The score after each addition, or its gain beside the expected gain.

        Returns
        -------
        self
        """
        return self._plot(ax, quantity=check_choice("quantity", quantity, QUANTITIES))

    def _draw(self, ax: Any, quantity: str = "score") -> None:
        n = len(self.names)
        at = np.arange(n)
        names = [f"{plain(name, 44).strip()}\u00a0\u00a0{i}" for i, name in enumerate(self.names, 1)]
        below = self.start is not None and quantity == "score"
        self._draw_score(ax, at) if quantity == "score" else self._draw_gain(ax, at)
        ax.set_yticks([-1, *at] if below else at, ["no feature", *names] if below else names, fontsize="small")
        ax.set_ylim(n - 0.4, -1.6 if below else -0.6)
        ax.set_ylabel("added, in this order")
        if not self.kept.any():
            ax.set_title("no feature was kept", fontsize="medium", loc="left")
        ax.margins(x=0.1)
        ax.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        for label, kept in zip(ax.get_yticklabels()[-n:], self.kept):
            label.set_color(INK if kept else FAINT)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.8, 1.6 + 0.25 * (len(self.names) + (self.start is not None))

    def _draw_score(self, ax: Any, at: np.ndarray) -> None:
        ax.plot(self.score, at, color=FAINT, lw=1.2, zorder=1)
        if self.start is not None:
            ax.plot([self.start, self.score[0]], [-1, 0], color=FAINT, lw=1.2, zorder=1)
            ax.plot(self.start, -1, color=INK, ls="none", marker="D", ms=5, zorder=3, label="no feature")
            if not self.kept.any():
                ax.plot(self.start, -1, label="chosen model", **RING | {"ms": 11})
        kept, look = self.kept, {"ls": "none", "marker": "o", "ms": 6, "zorder": 3}
        if not kept.all():
            ax.plot(self.score[~kept], at[~kept], mfc="white", mec=FAINT, label="not kept", **look)
        if kept.any():
            ax.plot(self.score[kept], at[kept], color=color(0), label="kept", **look)
            last = int(np.flatnonzero(kept)[-1])
            ax.plot(self.score[last], at[last], label="chosen model", **RING | {"ms": 11})
        ax.set_xlabel(LABELS[self.criterion])

    def _draw_gain(self, ax: Any, at: np.ndarray) -> None:
        shades = [color(0) if kept else "#c9c9c9" for kept in self.kept]
        ax.barh(at, self.gain, color=shades, height=0.62, zorder=2, label="gained")
        ax.plot(self.expected_gain, at, ls="none", marker="|", ms=11, mew=2, color=color(1), zorder=3, label="expected")
        ax.axvline(0, color=INK, lw=0.8)
        ax.set_xlabel("log-likelihood of the training rows (nats)")


def _bic_of_nothing(path: list, n_classes: int) -> float | None:
    """BIC = -2 log_lik + k log n of the class priors alone, from two steps of which the gains and k are known."""
    if len(path) < 2 or path[1].n_parameters == path[0].n_parameters:
        return None
    first, second = path[:2]
    log_n = (second.score - first.score + 2 * second.gain) / (second.n_parameters - first.n_parameters)
    return float(first.score + 2 * first.gain - log_n * (first.n_parameters - (n_classes - 1)))
