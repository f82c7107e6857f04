"""Mean ranks of methods over data sets, and groups without significant differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import INK, color, plain, stacked_bars
from mixent.evaluate.multi_dataset import RankComparison

AXIS, LETTER = 4.2, 0.078  # inches: of the line of ranks in a figure of its own, of a letter
BAR, NAME, HEAD, FOOT = (
    0.13,
    0.23,
    0.95,
    0.1,
)  # inches: steps down from bar to bar and name to name, room above and below


@dataclass(repr=False)
class CriticalDifferenceDisplay(Display):
    """Mean ranks on a line, the best on the left; bars join methods that do not differ by Nemenyi's test."""

    names: list[str]  # (k,) the best first
    ranks: np.ndarray  # (k,) increasing
    groups: list[list[int]]  # places of the methods that a bar joins
    critical_difference: float
    n_sets: int
    p_value: float  # Friedman's, by Iman and Davenport
    alpha: float

    @classmethod
    @draws
    def from_comparison(cls, comparison: RankComparison) -> Self:
        """The result of `compare_over_sets`.

        Parameters
        ----------
        comparison : RankComparison
        """
        if not isinstance(comparison, RankComparison):
            raise TypeError(f"this display needs the result of compare_over_sets; got a {type(comparison).__name__}")
        names = comparison.order
        groups = [[names.index(name) for name in group] for group in comparison.groups]
        ranks, n_sets = np.sort(comparison.mean_ranks), len(comparison.sets)
        difference, p_value, alpha = comparison.critical_difference, comparison.p_value, comparison.alpha
        return cls(names, ranks, groups, difference, n_sets, p_value, alpha)

    def _draw(self, ax: Any) -> None:
        """The line, a stroke to the name of each method, the bars and the critical difference."""
        left, right = self._margins()
        own = ax.figure.get_layout_engine() is not None and len(ax.figure.axes) == 1
        wide = ax.figure.get_figwidth() * (1.0 if own else ax.get_position().width)
        line = max(wide - left - right, 0.3 * wide)  # the line of ranks keeps a third, be names as long as they are
        unit = (len(self.names) - 1) / line  # ranks per inch
        ax.set_xlim(1 - unit * left, len(self.names) + unit * right)
        ax.set_ylim(-self._depth(), HEAD)  # inches
        ax.set_axis_off()
        self._draw_line(ax)
        self._draw_difference(ax)
        self._draw_bars(ax, 0.03 * unit)
        self._draw_names(ax, unit)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return AXIS + sum(self._margins()), HEAD + self._depth()

    def _labels(self) -> list[str]:
        return [plain(name, 32).strip() for name in self.names]

    def _margins(self) -> tuple[float, float]:
        """Inches for the names on the left and on the right, and for their ranks."""
        labels, half = self._labels(), (len(self.names) + 1) // 2
        left, right = (0.75 + LETTER * max(map(len, side)) for side in (labels[:half], labels[half:]))
        return left, right

    def _depth(self) -> float:
        return self._top() + NAME * ((len(self.names) + 1) // 2 - 1) + NAME / 2 + FOOT

    def _top(self) -> float:
        """How far below the line names begin."""
        return 0.16 + BAR * len(self._levels())

    def _levels(self) -> list[list[list[int]]]:
        gap = 0.04 * (len(self.names) - 1)  # bars that nearly touch would look like one
        return stacked_bars(self.groups, lambda before, group: self.ranks[before[-1]] < self.ranks[group[0]] - gap)

    def _draw_line(self, ax: Any) -> None:
        k = len(self.names)
        ax.plot([1, k], [0, 0], color=INK, lw=1.2, solid_capstyle="projecting")
        for rank in range(1, k + 1):
            ax.plot([rank, rank], [0, 0.06], color=INK, lw=1.0)
            ax.text(rank, 0.09, str(rank), ha="center", va="bottom", color=INK, fontsize="small")
        friedman = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        title = f"Mean rank over {self.n_sets} data sets, 1 is best (Friedman test: {friedman})"
        ax.text((1 + k) / 2, 0.3, title, ha="center", va="bottom", color=INK, fontsize="small")

    def _draw_difference(self, ax: Any) -> None:
        """The critical difference, from the best rank on; without an end where it is longer than the line."""
        k, y, cap = len(self.names), 0.62, 0.045
        fits = self.critical_difference <= k - 1
        end = 1 + self.critical_difference if fits else k
        look = {"color": color(1), "lw": 1.8, "solid_capstyle": "butt"}
        ax.plot([1, end], [y, y], **look)
        for x in (1, end) if fits else (1,):
            ax.plot([x, x], [y - cap, y + cap], **look)
        label = f"critical difference {self.critical_difference:.2f} at {100 * self.alpha:g} %"
        label += "" if fits else ", longer than the line"
        ax.text(1, y + 0.08, label, ha="left", va="bottom", color=color(1), fontsize="small")

    def _draw_bars(self, ax: Any, over: float) -> None:
        for level, groups in enumerate(self._levels()):
            y = -0.1 - BAR * level
            for group in groups:
                ends = self.ranks[group[0]] - over, self.ranks[group[-1]] + over
                ax.plot(ends, [y, y], color=color(0), lw=3.6, solid_capstyle="butt", zorder=3)

    def _draw_names(self, ax: Any, unit: float) -> None:
        k, labels = len(self.names), self._labels()
        half = (k + 1) // 2
        for i, (label, rank) in enumerate(zip(labels, self.ranks)):
            on_left = i < half
            y = -self._top() - NAME * (i if on_left else k - 1 - i)
            edge, side = (1 - 0.12 * unit, "right") if on_left else (k + 0.12 * unit, "left")
            ax.plot([rank, rank, edge], [0, y, y], color=INK, lw=0.9, solid_joinstyle="miter")
            ax.plot(rank, 0, color=INK, marker="o", ms=3.5)
            text = f"{label}  {rank:.2f}" if on_left else f"{rank:.2f}  {label}"
            ax.text(edge + (-0.05 if on_left else 0.05) * unit, y, text, ha=side, va="center", color=INK, fontsize=9)
