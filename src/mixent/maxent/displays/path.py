"""The path of forward selection: which features were added, in which order, and the gain of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.params import check_choice
from mixent.base.style import FAINT, INK, RING, color, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTITIES = ("score", "gain")
LABELS = {
    "bic": "BIC (lower is better)",
    "validation": "Held-out log-loss (nats; lower is better)",
}


@dataclass(repr=False)
class PathDisplay(Display):
    """The path of forward selection, from top to bottom: the score after each step, or the gain of each step."""

    names: list[str]  # (T,)
    score: np.ndarray  # (T,) BIC, or log-loss of the held-out rows
    gain: np.ndarray  # (T,) gain of the log-likelihood, nats
    expected_gain: np.ndarray  # (T,) gain predicted from the counts, nats
    kept: np.ndarray  # (T,) bool: whether the selected model contains the feature
    criterion: str  # "bic" or "validation"
    start: float | None = None  # the score without features; None if unknown

    @classmethod
    @draws
    def from_estimator(cls, est: Any) -> Self:
        """The path of a `MaxEntClassifier` fitted with `selection` (`est.path_`).

        Parameters
        ----------
        est : fitted MaxEntClassifier
        """
        path = getattr(est, "path_", None)
        if not path or not hasattr(path[0], "expected_gain"):
            raise ValueError(
                f"{type(est).__name__} has no selection path; fit a MaxEntClassifier(selection='bic'), for example"
            )
        columns = {
            name: np.array([getattr(step, name) for step in path]) for name in ("score", "gain", "expected_gain")
        }
        kept = np.array([step.kept for step in path])
        criterion = path[0].criterion
        start = _bic_without_features(path, len(est.classes_)) if criterion == "bic" else None
        return cls([step.name for step in path], **columns, kept=kept, criterion=criterion, start=start)

    def plot(self, ax: Axes | None = None, *, quantity: str = "score") -> Self:
        """Draw one line for each step.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw (default: a new figure).
        quantity : "score" or "gain"
            The score after each step, or the gain of each step and its prediction.

        Returns
        -------
        self
        """
        return self._plot(ax, quantity=check_choice("quantity", quantity, QUANTITIES))

    def _draw(self, ax: Any, quantity: str = "score") -> None:
        n = len(self.names)
        y = np.arange(n)
        names = [f"{plain(name, 44).strip()}\u00a0\u00a0{i}" for i, name in enumerate(self.names, 1)]
        with_start = self.start is not None and quantity == "score"
        self._draw_score(ax, y) if quantity == "score" else self._draw_gain(ax, y)
        ax.set_yticks([-1, *y] if with_start else y, ["no feature", *names] if with_start else names, fontsize="small")
        ax.set_ylim(n - 0.4, -1.6 if with_start else -0.6)
        ax.set_ylabel("Added feature, in order")
        if not self.kept.any():
            ax.set_title("No feature was selected", fontsize="medium", loc="left")
        ax.margins(x=0.1)
        ax.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        for label, kept in zip(ax.get_yticklabels()[-n:], self.kept):
            label.set_color(INK if kept else FAINT)

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 6.8, 1.6 + 0.25 * (len(self.names) + (self.start is not None))

    def _draw_score(self, ax: Any, y: np.ndarray) -> None:
        ax.plot(self.score, y, color=FAINT, lw=1.2, zorder=1)
        if self.start is not None:
            ax.plot([self.start, self.score[0]], [-1, 0], color=FAINT, lw=1.2, zorder=1)
            ax.plot(self.start, -1, color=INK, ls="none", marker="D", ms=5, zorder=3, label="no feature")
            if not self.kept.any():
                ax.plot(self.start, -1, label="selected model", **RING | {"ms": 11})
        kept, style = self.kept, {"ls": "none", "marker": "o", "ms": 6, "zorder": 3}
        if not kept.all():
            ax.plot(self.score[~kept], y[~kept], mfc="white", mec=FAINT, label="not kept", **style)
        if kept.any():
            ax.plot(self.score[kept], y[kept], color=color(0), label="kept", **style)
            last = int(np.flatnonzero(kept)[-1])
            ax.plot(self.score[last], y[last], label="selected model", **RING | {"ms": 11})
        ax.set_xlabel(LABELS[self.criterion])

    def _draw_gain(self, ax: Any, y: np.ndarray) -> None:
        shades = [color(0) if kept else "#c9c9c9" for kept in self.kept]
        ax.barh(y, self.gain, color=shades, height=0.62, zorder=2, label="actual gain")
        style = {"ls": "none", "marker": "|", "ms": 11, "mew": 2, "color": color(1), "zorder": 3}
        ax.plot(self.expected_gain, y, label="expected gain", **style)
        ax.axvline(0, color=INK, lw=0.8)
        ax.set_xlabel("Gain of the training log-likelihood (nats)")


def _bic_without_features(path: list, n_classes: int) -> float | None:
    """BIC = -2 log_lik + k log n of the class priors alone, derived from the gains and k of the first two steps."""
    if len(path) < 2 or path[1].n_parameters == path[0].n_parameters:
        return None
    first, second = path[:2]
    log_n = (second.score - first.score + 2 * second.gain) / (second.n_parameters - first.n_parameters)
    return float(first.score + 2 * first.gain - log_n * (first.n_parameters - (n_classes - 1)))
