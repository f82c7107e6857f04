"""Reliability curves: are 80 % sure predictions right in 80 % of cases?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.delegation import aligned_proba
from mixent.base.style import FAINT, Short, axes_or_new, colour, dash, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.evaluate.scores import Reliability, read_predictions, reliability

COUNTS_SHARE = 0.16  # of the height of the axes


@dataclass(repr=False)
class CalibrationDisplay(Short):
    """Observed frequency against predicted probability, in bins of equal mass, with 95 % Wilson bands.

    `kind="top"` has one curve, for the most probable label; `kind="class"` one per class, each against the rest.
    """

    curves: dict[str, Reliability]
    kind: str
    confidence: np.ndarray = field(repr=False)  # (n,) the probabilities behind the counts (top label)
    weight: np.ndarray = field(repr=False)  # (n,)
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(
        cls, est: Any, X: Any, y: Any, *, kind: str = "top", n_bins: int = 10, sample_weight: Any = None
    ):
        """Calibration of a fitted classifier on rows it should not have been fitted to."""
        proba = aligned_proba(est, X, est.classes_)
        return cls.from_predictions(y, proba, est.classes_, kind=kind, n_bins=n_bins, sample_weight=sample_weight)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        proba: Any,
        classes: Any = None,
        *,
        kind: str = "top",
        n_bins: int = 10,
        sample_weight: Any = None,
        name: str = "top label",
    ):
        """Calibration of probabilities (n, C) whose columns are in the order of `classes`."""
        from mixent.data.labels import classes_of

        classes = classes_of(y) if classes is None else classes
        true, proba, weight = read_predictions(y, proba, classes, sample_weight)
        top = proba.argmax(axis=1)
        if kind == "top":
            events = {name: (proba.max(axis=1), top == true)}
        elif kind == "class":
            events = {str(label): (proba[:, c], true == c) for c, label in enumerate(classes)}
        else:
            raise ValueError(f'kind must be "top" or "class"; got {kind!r}')
        curves = {label: reliability(p, hit, n_bins=n_bins, sample_weight=weight) for label, (p, hit) in events.items()}
        confidence = proba.max(axis=1) if kind == "top" else proba.ravel()
        return cls(curves, kind, confidence, weight if kind == "top" else np.repeat(weight, proba.shape[1]))

    def plot(self, ax: Any = None, *, first_colour: int = 0, counts: bool = True, band: bool = True):
        """Draw; `first_colour`, `counts=False` and `band=False` let several displays share one `ax`."""
        ax = axes_or_new(ax, (4.8, 5.5))
        low = self._lowest() if counts else min(self._lowest(), max(ax.get_xlim()[0], 0))
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1, zorder=1)
        for i, (name, bins) in enumerate(self.curves.items(), start=first_colour):
            if band and len(self.curves) <= 4:  # more bands than that hide each other
                ax.fill_between(bins.predicted, *bins.band(), color=colour(i), alpha=0.13, lw=0, zorder=2)
            style = {"color": colour(i), "marker": marker(i), "ls": dash(i), "ms": 5, "lw": 1.6}
            called = class_name(name) if self.kind == "class" else name
            ax.plot(bins.predicted, bins.observed, label=plain(called), zorder=3, **style)
        if counts:
            self._draw_counts(ax, low)
        room = 0.02 * (1 - low)
        share = 1 - COUNTS_SHARE * bool(ax.child_axes)  # of the height; the counts take the rest, inside the axes
        ax.set(xlim=(low - room, 1 + room), ylim=(low - room, low - room + (1 - low + 2 * room) / share))
        ticks = np.arange(10, np.ceil(10 * low - 1e-9) - 1, -1 if low >= 0.5 else -2)[::-1] / 10
        ax.set(aspect="equal", xticks=ticks, yticks=ticks)
        ax.spines["left"].set_bounds(low - room, 1 + room)
        top = self.kind == "top"
        ax.set_xlabel("confidence (probability of the top label)" if top else "predicted probability of the class")
        ax.set_ylabel("share that is right" if top else "share that is of the class")
        legend(ax, len(ax.get_legend_handles_labels()[1]), loc="upper left", bbox_to_anchor=(0, share))
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _lowest(self) -> float:
        """Start of both axes: 0, or the last tenth below all points of a top-label curve."""
        if self.kind != "top":
            return 0.0
        points = [np.minimum(bins.predicted, bins.observed).min() for bins in self.curves.values()]
        return float(np.floor(10 * min(*points, self.confidence.min(), 0.9) - 1e-9).clip(0) / 10)

    def _draw_counts(self, ax: Any, low: float) -> None:
        gap = 0.03
        above = ax.inset_axes([0, 1 - COUNTS_SHARE + gap, 1, COUNTS_SHARE - gap], sharex=ax)
        above.hist(self.confidence, bins=np.linspace(low, 1, 41), weights=self.weight, color=FAINT)
        above.set_ylabel("rows" if (self.weight == 1).all() else "weight", fontsize="small")
        above.tick_params(labelbottom=False, bottom=False, labelsize="small")
        above.yaxis.get_major_locator().set_params(nbins=2, integer=True)
        above.spines[["top", "right", "bottom"]].set_visible(False)
        above.spines["left"].set_color(FAINT)
