"""Reliability curves: observed frequency against predicted probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.delegation import aligned_proba
from mixent.base.displays import Display, computed, draws
from mixent.base.style import FAINT, color, dash, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.data.labels import classes_of
from mixent.evaluate.scores import Reliability, read_predictions, reliability

COUNTS_SHARE = 0.16  # of the height of the axes
KINDS = ("top", "class")
MOST_BANDS = 4  # more hide each other


@dataclass(repr=False)
class ReliabilityDisplay(Display):
    """Observed frequency against predicted probability, in bins of equal mass, with 95 % Wilson intervals.

    Unlike `sklearn.calibration.CalibrationDisplay` it takes several classes, sample weights and tied probabilities, and
    shows how uncertain the observed frequencies are. `kind="top"` has one curve for each method, of its most probable
    class; `kind="class"` one for each class against the others. The histogram above is of the first method.
    """

    curves: dict[str, Reliability]
    kind: str
    predicted: np.ndarray  # (n,) probabilities behind the counts
    weight: np.ndarray  # (n,)

    @classmethod
    @draws
    def from_estimator(
        cls,
        est: Any,
        X: Any,
        y: ArrayLike,
        *,
        kind: str = "top",
        n_bins: int = 10,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Reliability of a fitted classifier.

        Parameters
        ----------
        est : fitted classifier
        X : table
            Rows that were not used for fitting.
        y : (n,) labels
        kind : "top" or "class"
        n_bins : int
        sample_weight : (n,) array, optional
        """
        proba = aligned_proba(est, X, est.classes_)
        return computed(
            cls.from_predictions, y, proba, est.classes_, kind=kind, n_bins=n_bins, sample_weight=sample_weight
        )

    @classmethod
    @draws
    def from_predictions(
        cls,
        y: ArrayLike,
        proba: ArrayLike | Mapping[str, ArrayLike],
        classes: Sequence[Any] | np.ndarray | None = None,
        *,
        kind: str = "top",
        n_bins: int = 10,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Reliability of predicted probabilities.

        Parameters
        ----------
        y : (n,) labels
        proba : (n, C) array, or dict of name -> (n, C) array
            With kind="top", of several methods by name.
        classes : C labels, optional
            In the order of the columns of `proba` (default: the sorted labels in `y`).
        kind : "top" or "class"
        n_bins : int
        sample_weight : (n,) array, optional
        """
        if kind not in KINDS or (kind == "class" and isinstance(proba, Mapping)):
            raise ValueError(f'kind must be "top", or "class" with the probabilities of one method; got {kind!r}')
        classes = classes_of(y) if classes is None else classes
        named = proba if isinstance(proba, Mapping) else {"most probable class": proba}
        read = {name: read_predictions(y, proba, classes, sample_weight) for name, proba in named.items()}
        true, first, weight = next(iter(read.values()))
        if kind == "top":
            events = {name: (proba.max(axis=1), proba.argmax(axis=1) == true) for name, (_, proba, _) in read.items()}
            predicted, mass = first.max(axis=1), weight
        else:
            events = {class_name(label): (first[:, c], true == c) for c, label in enumerate(classes)}
            predicted, mass = first.ravel(), np.repeat(weight, len(classes))
        curves = {name: reliability(p, hit, n_bins=n_bins, sample_weight=weight) for name, (p, hit) in events.items()}
        return cls(curves, kind, predicted, mass)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 4.8, 5.5

    def _draw(self, ax: Any) -> None:
        low = self._lowest()
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1, zorder=1)
        shaded = 1 if self.kind == "top" else len(self.curves) if len(self.curves) <= MOST_BANDS else 0
        for i, (name, bins) in enumerate(self.curves.items()):
            if i < shaded:
                ax.fill_between(bins.predicted, *bins.band(), color=color(i), alpha=0.13, lw=0, zorder=2)
            style = {"color": color(i), "marker": marker(i), "ls": dash(i), "ms": 5, "lw": 1.6}
            ax.plot(bins.predicted, bins.observed, label=plain(name), zorder=3, **style)
        self._draw_counts(ax, low)
        self._set_axes(ax, low)
        legend(ax, len(self.curves), loc="upper left", bbox_to_anchor=(0, 1 - COUNTS_SHARE))
        tidy(ax)

    def _set_axes(self, ax: Any, low: float) -> None:
        """Limits, ticks and labels; the counts lie inside the axes, above the curves."""
        room, share = 0.02 * (1 - low), 1 - COUNTS_SHARE
        ax.set(xlim=(low - room, 1 + room), ylim=(low - room, low - room + (1 - low + 2 * room) / share))
        ticks = np.arange(10, np.ceil(10 * low - 1e-9) - 1, -1 if low >= 0.5 else -2)[::-1] / 10
        ax.set(aspect="equal", xticks=ticks, yticks=ticks)
        ax.spines["left"].set_bounds(low - room, 1 + room)
        top = self.kind == "top"
        ax.set_xlabel("Largest predicted probability" if top else "Predicted probability")
        ax.set_ylabel("Share of correct predictions" if top else "Observed frequency")

    def _lowest(self) -> float:
        """Start of both axes: 0, or the last tenth below all points of the curve of the most probable class."""
        if self.kind != "top":
            return 0.0
        points = [np.minimum(bins.predicted, bins.observed).min() for bins in self.curves.values()]
        return float(np.floor(10 * min(*points, self.predicted.min(), 0.9) - 1e-9).clip(0) / 10)

    def _draw_counts(self, ax: Any, low: float) -> None:
        gap = 0.03
        above = ax.inset_axes([0, 1 - COUNTS_SHARE + gap, 1, COUNTS_SHARE - gap], sharex=ax)
        above.hist(self.predicted, bins=np.linspace(low, 1, 41), weights=self.weight, color=FAINT)
        above.set_ylabel("Rows" if (self.weight == 1).all() else "Weight", fontsize="small")
        above.tick_params(labelbottom=False, bottom=False, labelsize="small")
        above.yaxis.get_major_locator().set_params(nbins=2, integer=True)
        above.spines[["top", "right", "bottom"]].set_visible(False)
        above.spines["left"].set_color(FAINT)
