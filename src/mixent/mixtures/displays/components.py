"""The classes of each component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, plain, share_colors

BAR = 1.1  # height of the tallest bar of weights, in rows of the heat map
MAX_CELLS = 18  # number of classes or components up to which values are written
MAX_TICKS = 24


@dataclass(repr=False)
class ComponentsDisplay(Display):
    """Heat map of p(class | component), with a column for each component; bars show the weights of the components."""

    table: np.ndarray  # (C, K) p(class | component), columns sum to 1
    weights: np.ndarray  # (K,) weights of the components
    classes: np.ndarray

    @classmethod
    @draws
    def from_estimator(cls, est: Any) -> Self:
        """Create the display from a fitted classifier.

        Parameters
        ----------
        est : SharedMixtureClassifier or MixtureClassifier
        """
        if getattr(est, "params_", None) is None or not hasattr(est, "class_given_component_"):
            raise ValueError(
                f"{type(est).__name__} has no class_given_component_; fit a SharedMixtureClassifier or a "
                "MixtureClassifier first"
            )
        return cls(est.class_given_component_, est.weights_.sum(axis=0), est.classes_)

    def size(self) -> tuple[float, float]:
        C, K = self.table.shape
        return float(np.clip(2.6 + 0.55 * K, 4.6, 12)), float(np.clip(1.5 + 0.46 * (C + BAR), 2.8, 10))

    def _draw(self, ax: Any) -> None:
        """Draw the heat map, its values if they fit, and the weights."""
        C, K = self.table.shape
        image = ax.imshow(self.table, cmap=share_colors(), vmin=0, vmax=1, aspect="auto")
        ax.hlines(np.arange(C + 1) - 0.5, -0.5, K - 0.5, color="#dddddd", lw=0.6)
        ax.vlines(np.arange(K + 1) - 0.5, -0.5, C - 0.5, color="#dddddd", lw=0.6)
        self._draw_weights(ax)
        if K <= MAX_CELLS and C <= MAX_CELLS:
            self._write_values(ax)
        ticks = np.arange(0, K, -(-K // MAX_TICKS))
        ax.set_xticks(ticks, [str(k) for k in ticks])
        ax.set_yticks([-0.65 - BAR / 2, *range(C)], ["weight", *(plain(label, 18) for label in self.classes)])
        ax.set(xlim=(-0.5, K - 0.5), ylim=(C - 0.5, -1.0 - BAR), xlabel="Component", ylabel="Class")
        ax.tick_params(length=0, colors=INK, labelsize="medium" if max(C, K) <= 12 else "small")
        ax.spines[:].set_visible(False)
        bar = ax.figure.colorbar(image, ax=ax, label="p(class | component)", shrink=0.8, ticks=[0, 0.5, 1])
        bar.outline.set_visible(False)

    def _draw_weights(self, ax: Any) -> None:
        """Draw a bar for each weight above the heat map, with the weight in percent."""
        K = len(self.weights)
        height = BAR * self.weights / self.weights.max()
        ax.bar(range(K), -height, bottom=-0.65, width=0.62, color=FAINT)
        if K <= MAX_CELLS:
            for k, share in enumerate(self.weights):
                text = f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else "<1 %"
                ax.text(k, -0.7 - height[k], text, ha="center", va="bottom", fontsize="x-small", color=INK)

    def _write_values(self, ax: Any) -> None:
        for (c, k), share in np.ndenumerate(self.table):
            if share >= 0.005:
                shade = "white" if share > 0.5 else INK
                text = "1" if share > 0.995 else f"{share:.2f}".lstrip("0")
                ax.text(k, c, text, ha="center", va="center", color=shade, fontsize="small")
