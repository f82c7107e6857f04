"""Scores of methods on one data set, and groups without significant differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.multiple_tests import adjusted_p_values, homogeneous_groups
from mixent.base.params import check_choice
from mixent.base.style import FAINT, INK, color, plain, stacked_bars, tidy
from mixent.base.text import listing
from mixent.evaluate.scores import COMPARED, HIGHER, SCALES, Scale

ROW, LETTER = 0.3, 0.078  # inches: of a method, of a letter
WIDE = 10.0  # worst over best mean: beyond, the axis is logarithmic


@dataclass(repr=False)
class MethodScoresDisplay(Display):
    """Mean scores of methods on the same folds of one data set; bars join methods that do not differ significantly.

    Every pair is tested by the paired t test on rows (`mixent.evaluate.row_t_test`; the calibration error on folds, by
    `corrected_t_test`), and the p-values are adjusted by Holm for the number of pairs. A bar joins neighboring methods
    of which no two differ significantly at `alpha`. The result holds for tables like this one; for several data sets
    use `CriticalDifferenceDisplay`.
    """

    names: list[str]  # (k,) the best first
    means: np.ndarray  # (k,) increasing
    values: np.ndarray  # (k, J) of every repeat and fold
    adjusted: np.ndarray  # (k, k) p-values of the pairs, adjusted by Holm; 1 on the diagonal
    metric: str
    alpha: float = 0.05
    from_mixent: list[bool] | None = None  # (k,) methods of mixent; None: not known

    @classmethod
    @draws
    def from_comparison(cls, comparison: Any, *, metric: str = "log_loss", alpha: float = 0.05) -> Self:
        """The result of `mixent.compare` or `cross_validate`.

        Parameters
        ----------
        comparison : Comparison or CrossValidation
            Methods that failed in a fold are left out.
        metric : "error", "balanced_error", "log_loss", "brier", "calibration" or "auc"
        alpha : float
            Level of significance.
        """
        cv = getattr(comparison, "cv", comparison)
        if not hasattr(cv, "ranking") or not hasattr(cv, "difference"):
            raise TypeError(f"this display needs the result of compare or cross_validate; got {comparison!r}")
        check_choice("metric", metric, COMPARED)
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1; got {alpha}")
        names = cv.ranking(metric)
        if len(names) < 2:
            raise ValueError(f"this display needs two methods that worked in every fold; there is {len(names)}")
        values = np.stack([cv.values(name, metric) for name in names])
        candidates = getattr(comparison, "candidates", None)
        from_mixent = None if candidates is None else [bool(candidates[name].from_mixent) for name in names]
        adjusted = adjusted_p_values(names, _p_value_of(comparison, cv, metric))
        return cls(names, values.mean(axis=1), values, adjusted, metric, alpha, from_mixent)

    @property
    def groups(self) -> list[list[int]]:
        """Places of the methods that a bar joins."""
        return homogeneous_groups(self.adjusted, self.alpha)

    @property
    def heading(self) -> str:
        """The name of the metric, with its unit."""
        heading = self.scale.heading
        return heading[0].upper() + heading[1:]

    @property
    def scale(self) -> Scale:
        """How a score is shown."""
        return SCALES[self.metric]

    def text(self) -> str:
        """Which methods do not differ significantly from the best, in a sentence."""
        heading = self.heading.split(" (")[0]
        best, *others = self.names
        similar = [name for name, p in zip(others, self.adjusted[0, 1:]) if p >= self.alpha]  # need not be a run
        if not similar:
            return f"{heading}: {best} differs significantly from every other method."
        if self.adjusted.min() >= self.alpha:
            return f"{heading}: no two methods differ significantly."
        rest = "any other method" if similar == others else listing(similar, 6)
        return f"{heading}: {best} does not differ significantly from {rest}."

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        longest = max(len(label) for label in self._labels())
        return 3.5 + LETTER * longest + 0.12 * len(self._levels()), 0.95 + ROW * len(self.names)

    def _draw(self, ax: Any) -> None:
        """A line for each method: its folds, their mean, and the bars beside."""
        factor = self.scale.factor
        at = np.arange(len(self.names))
        for i, scores in enumerate(factor * self.values):
            ax.plot(scores, np.full(len(scores), i), ls="none", marker="o", ms=3, mfc=FAINT, mec="none", alpha=0.7)
            own = self.from_mixent is None or self.from_mixent[i]
            look = {"marker": "o" if own else "s", "ms": 8, "color": color(0) if own else color(1)}
            ax.plot(factor * self.means[i], i, ls="none", zorder=4, **look)
        self._scale_axis(ax)
        ax.set_yticks(at, self._labels())
        ax.set_ylim(len(at) - 0.5, -0.5)
        better = "higher" if self.metric in HIGHER else "lower"
        ax.set_xlabel(f"{self.heading}, {better} is better")
        self._draw_bars(ax)
        self._draw_kinds(ax)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=FAINT, lw=0.4, alpha=0.5)
        ax.set_axisbelow(True)

    def _labels(self) -> list[str]:
        return [f"{plain(name, 32).strip()}  {self.scale.text(mean)}" for name, mean in zip(self.names, self.means)]

    def _scale_axis(self, ax: Any) -> None:
        """Logarithmic where one bad method would squeeze all others together; ticks without exponents."""
        low, high = float(self.values.min()), float(self.values.max())
        if self.means[-1] > WIDE * self.means[0] > 0 and low > 0:
            from matplotlib.ticker import LogLocator, NullFormatter

            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 100 * low else (1.0, 2.0, 5.0)))
            ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
            ax.xaxis.set_minor_formatter(NullFormatter())
        elif low >= 0:
            room = 0.04 * self.scale.factor * (high - low)
            ax.set_xlim(left=max(self.scale.factor * low - room, -room))

    def _levels(self) -> list[list[list[int]]]:
        return stacked_bars(self.groups, lambda before, group: before[-1] < group[0])

    def _draw_bars(self, ax: Any) -> None:
        for level, groups in enumerate(self._levels()):
            x = 1.02 + 0.028 * level
            for group in groups:
                ends = group[0] - 0.3, group[-1] + 0.3
                look = {"color": INK, "lw": 3.6, "solid_capstyle": "butt", "clip_on": False}
                ax.plot([x, x], ends, transform=ax.get_yaxis_transform(), **look)

    def _draw_kinds(self, ax: Any) -> None:
        if self.from_mixent is None or len(set(self.from_mixent)) < 2:
            return
        from matplotlib.lines import Line2D

        kinds = [("o", color(0), "mixent"), ("s", color(1), "other")]
        handles = [Line2D([], [], ls="none", marker=m, color=c, ms=7, label=label) for m, c, label in kinds]
        how = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "borderaxespad": 0.1}
        ax.legend(handles=handles, frameon=False, fontsize="small", **how)


def _p_value_of(comparison: Any, cv: Any, metric: str) -> Callable[[str, str], float]:
    """The paired test of a comparison, or else of its folds."""
    if hasattr(comparison, "test"):
        return lambda a, b: comparison.test(a, b, metric).p_value
    return lambda a, b: cv.difference(a, b, metric)["p_value"]
