"""Methods along the axis of a score on one data set, and which of them paired tests do not tell apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from mixent.base.multiple_tests import holm
from mixent.base.style import FAINT, INK, Short, axes_or_new, colour, plain, tidy

SCALES = {  # metric: (what it is called, factor, decimals)
    "error": ("error (%)", 100, 1),
    "balanced_error": ("balanced error (%)", 100, 1),
    "log_loss": ("log-loss (nats)", 1, 3),
    "brier": ("Brier score", 1, 3),
    "calibration": ("calibration error (%)", 100, 1),
}
ROW, LETTER = 0.3, 0.078  # inches: of a method, of a letter
WIDE = 10.0  # worst over best mean: beyond, the axis is logarithmic


@dataclass(repr=False)
class DifferencesDisplay(Short):
    """Mean scores of methods on the same folds of one data set; bars join those that are not told apart.

    Every pair is tested by the t test of Nadeau and Bengio (2003) on the differences of its folds, and the p-values are
    adjusted by Holm for the number of pairs. A bar spans methods that follow each other by mean, none of which differs
    from another at `alpha`. Folds share rows, so that this speaks of one data set; for many use
    `CriticalDifferenceDisplay`.
    """

    names: list[str]  # (k,) the best first
    means: np.ndarray  # (k,) rising
    values: np.ndarray  # (k, J) of every repeat and fold
    adjusted: np.ndarray  # (k, k) p-values of the pairs, adjusted by Holm; 1 on the diagonal
    metric: str
    alpha: float = 0.05
    ours: list[bool] | None = None  # (k,) of the library; None: not known
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_comparison(cls, comparison: Any, *, metric: str = "log_loss", alpha: float = 0.05):
        """Of what `mixent.compare` or `cross_validate` returned.

        Parameters
        ----------
        comparison : Comparison or CrossValidation
            Methods that failed in a fold are left out.
        metric : str
        alpha : float
            A pair whose adjusted p-value is below is told apart.
        """
        cv = getattr(comparison, "cv", comparison)
        if not hasattr(cv, "ranking") or not hasattr(cv, "difference"):
            raise TypeError(f"give what compare or cross_validate returned; got a {type(comparison).__name__}")
        if metric not in SCALES:
            raise ValueError(f"metric must be one of {', '.join(SCALES)}; got {metric!r}")
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must be between 0 and 1; got {alpha}")
        names = cv.ranking(metric)
        if len(names) < 2:
            raise ValueError(f"a comparison needs two methods that worked in every fold; there is {len(names)}")
        values = np.stack([cv.values(name, metric) for name in names])
        candidates = getattr(comparison, "candidates", None)
        ours = None if candidates is None else [bool(candidates[name].ours) for name in names]
        adjusted = adjusted_p_values(names, _p_value_of(comparison, cv, metric))
        return cls(names, values.mean(axis=1), values, adjusted, metric, alpha, ours)

    @property
    def groups(self) -> list[list[int]]:
        """Places of the methods that a bar joins."""
        return not_told_apart(self.adjusted, self.alpha)

    @property
    def heading(self) -> str:
        """What the metric is called, with its unit."""
        return SCALES[self.metric][0]

    @property
    def scale(self) -> tuple[float, int]:
        """Factor and decimals of a score as it is shown."""
        return SCALES[self.metric][1:]

    def in_words(self) -> str:
        """Which methods are not told apart from the best, in a sentence."""
        what = self.heading.split(" (")[0]
        best, *others = self.names
        like = [name for name, p in zip(others, self.adjusted[0, 1:]) if p >= self.alpha]  # which need not be a run
        if not like:
            return f"By {what}, {best} is told apart from every other."
        if self.adjusted.min() >= self.alpha:
            return f"By {what}, these rows do not tell any of the methods apart."
        return f"By {what}, these rows do not tell {best} from {_listed(like) if like != others else 'any other'}."

    def size(self) -> tuple[float, float]:
        """Inches the picture needs."""
        longest = max(len(label) for label in self._labels())
        return 3.5 + LETTER * longest + 0.12 * len(self._levels()), 0.95 + ROW * len(self.names)

    def plot(self, ax: Any = None):
        """Draw a line for each method: its folds, their mean, and the bars beside."""
        ax = axes_or_new(ax, self.size())
        factor = self.scale[0]
        at = np.arange(len(self.names))
        for i, scores in enumerate(factor * self.values):
            ax.plot(scores, np.full(len(scores), i), ls="none", marker="o", ms=3, mfc=FAINT, mec="none", alpha=0.7)
            own = self.ours is None or self.ours[i]
            look = {"marker": "o" if own else "s", "ms": 8, "color": colour(0) if own else colour(1)}
            ax.plot(factor * self.means[i], i, ls="none", zorder=4, **look)
        self._scale_axis(ax)
        ax.set_yticks(at, self._labels())
        ax.set_ylim(len(at) - 0.5, -0.5)
        ax.set_xlabel(f"{self.heading}, lower is better")
        self._draw_bars(ax)
        self._draw_kinds(ax)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", color=FAINT, lw=0.4, alpha=0.5)
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _labels(self) -> list[str]:
        factor, digits = self.scale
        return [f"{plain(name, 32).strip()}  {factor * mean:.{digits}f}" for name, mean in zip(self.names, self.means)]

    def _scale_axis(self, ax: Any) -> None:
        """Logarithmic where one bad method would push all others together; ticks without exponents."""
        low, high = float(self.values.min()), float(self.values.max())
        if self.means[-1] > WIDE * self.means[0] > 0 and low > 0:
            from matplotlib.ticker import LogLocator, NullFormatter

            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 100 * low else (1.0, 2.0, 5.0)))
            ax.xaxis.set_major_formatter(lambda x, _: f"{x:g}")
            ax.xaxis.set_minor_formatter(NullFormatter())
        elif low >= 0:
            room = 0.04 * self.scale[0] * (high - low)
            ax.set_xlim(left=max(self.scale[0] * low - room, -room))

    def _levels(self) -> list[list[list[int]]]:
        """Bars one above the other, level by level; those that would touch go to the next."""
        levels: list[list[list[int]]] = []
        for group in self.groups:
            free = next((level for level in levels if level[-1][-1] < group[0]), None)
            if free is None:
                levels.append([group])
            else:
                free.append(group)
        return levels

    def _draw_bars(self, ax: Any) -> None:
        for level, groups in enumerate(self._levels()):
            x = 1.02 + 0.028 * level
            for group in groups:
                ends = group[0] - 0.3, group[-1] + 0.3
                look = {"color": INK, "lw": 3.6, "solid_capstyle": "butt", "clip_on": False}
                ax.plot([x, x], ends, transform=ax.get_yaxis_transform(), **look)

    def _draw_kinds(self, ax: Any) -> None:
        if self.ours is None or len(set(self.ours)) < 2:
            return
        from matplotlib.lines import Line2D

        kinds = [("o", colour(0), "mixent"), ("s", colour(1), "other")]
        handles = [Line2D([], [], ls="none", marker=m, color=c, ms=7, label=label) for m, c, label in kinds]
        how = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 2, "borderaxespad": 0.1}
        ax.legend(handles=handles, frameon=False, fontsize="small", **how)


def _p_value_of(comparison: Any, cv: Any, metric: str) -> Callable[[str, str], float]:
    """The paired test of a comparison, or else of its folds."""
    if hasattr(comparison, "test"):
        return lambda a, b: comparison.test(a, b, metric).p_value
    return lambda a, b: cv.difference(a, b, metric)["p_value"]


def adjusted_p_values(order: Sequence[str], p_value: Callable[[str, str], float]) -> np.ndarray:
    """(k, k) p-values of all pairs, adjusted by Holm for their number; 1 on the diagonal.

    Parameters
    ----------
    order : k names
    p_value : callable(name, name) -> float
        Of one pair. NaN, which one fold or equal scores give, shows nothing and counts as 1.
    """
    out = np.ones((len(order), len(order)))
    pairs = list(combinations(range(len(order)), 2))
    if pairs:
        p = np.array([p_value(order[i], order[j]) for i, j in pairs], dtype=float)
        i, j = np.transpose(pairs)
        out[i, j] = out[j, i] = holm(np.where(np.isnan(p), 1.0, p))
    return out


def not_told_apart(adjusted: np.ndarray, alpha: float = 0.05) -> list[list[int]]:
    """Maximal runs of two places or more, no pair of which has an adjusted p-value below `alpha`.

    Parameters
    ----------
    adjusted : (k, k) of methods in the order of their means; see `adjusted_p_values`
    alpha : float
    """
    runs: list[list[int]] = []
    for start in range(len(adjusted)):
        end = start
        while end + 1 < len(adjusted) and (adjusted[start : end + 1, end + 1] >= alpha).all():
            end += 1
        if end > start and not (runs and runs[-1][-1] >= end):
            runs.append(list(range(start, end + 1)))
    return runs


def _listed(names: list[str], most: int = 6) -> str:
    """`A, B and C`; of many the first."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
