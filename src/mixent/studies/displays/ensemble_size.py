"""Scores by ensemble size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.style import Short, axes_or_new, beside_width, class_style, colour, legend, marker, plain, tidy

LABELS = {"error": "error (%)", "log_loss": "log-loss (nats per row)"}
MOST_TICKS = 12


@dataclass(repr=False)
class SizeCurveDisplay(Short):
    """Error and log-loss by ensemble size: the mean over folds and one standard error either side."""

    sizes: np.ndarray  # (S,)
    mean: dict[str, dict[str, np.ndarray]]  # metric, method: (S,)
    std_error: dict[str, dict[str, np.ndarray]]
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_curves(cls, curves: Any):
        """Of what `size_curves` returned. Methods that failed in a fold are left out."""
        if not hasattr(curves, "sizes") or not hasattr(curves, "std_error"):
            raise TypeError(f"give what size_curves returned; got a {type(curves).__name__}")
        worked = [name for name in curves.methods if name not in curves.failures]
        if not worked:
            raise ValueError(f"no method worked in every fold: {curves.failures}")
        mean = {metric: {name: curves.mean(name, metric) for name in worked} for metric in LABELS}
        std_error = {metric: {name: curves.std_error(name, metric) for name in worked} for metric in LABELS}
        return cls(np.asarray(curves.sizes), mean, std_error)

    def plot(self, ax: Any = None, *, metric: str = "error", band: bool = True):
        """Draw a line for each method; `metric`: "error" or "log_loss"; `band`: the standard errors."""
        if metric not in LABELS:
            raise ValueError(f"metric must be one of {', '.join(map(repr, LABELS))}; got {metric!r}")
        said = [plain(name, 32) for name in self.mean[metric]]
        ax = axes_or_new(ax, (4.6 + beside_width(said), 3.6))
        factor = 100 if metric == "error" else 1
        for i, (name, mean) in enumerate(self.mean[metric].items()):
            values, spread = factor * mean, factor * self.std_error[metric][name]
            ax.plot(self.sizes, values, label=said[i], marker=marker(i), zorder=3, **class_style(i))
            if band:
                ax.fill_between(self.sizes, values - spread, values + spread, color=colour(i), alpha=0.13, lw=0)
        ax.set(xlabel="ensemble size (estimators)", ylabel=LABELS[metric])
        self._set_sizes(ax)
        legend(ax, len(said), beside=True, title="mean ± one\nstandard error" if band else None, title_fontsize="small")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _set_sizes(self, ax: Any) -> None:
        """Ticks at the sizes, where they stand apart; a logarithmic axis where sizes grow by factors."""
        sizes, steps = self.sizes, np.diff(self.sizes)
        if len(sizes) > 2 and sizes[-1] >= 10 * sizes[0] and steps[-1] >= 4 * steps[0]:
            ax.set_xscale("log")
        if len(sizes) > MOST_TICKS:
            return
        place = np.log(sizes) if ax.get_xscale() == "log" else sizes.astype(float)
        apart = np.diff(place) >= 0.045 * max(np.ptp(place), 1e-12)
        if apart.all():
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
