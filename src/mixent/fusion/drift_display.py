"""Drift chart: class priors and tests of the sources, window by window."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, OKABE_ITO, class_style, divided, dodge, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.fusion.answers import AnswersLike
from mixent.fusion.displays import MAX_HEIGHT, fitted_fuser, middle_cut
from mixent.fusion.estimator import Fuser

MAX_LABELS = 8  # windows with a tick label
MAX_CLASSES = 6  # in the panel of priors: the largest ones
ABOVE: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2, "ncols": 4}
SMALLEST = 6.0  # -log10 of the p-value at which the color saturates


@dataclass(repr=False)
class DriftDisplay(Display):
    """Class priors with intervals (above), and p-values of the tests of each source (below), window by window.

    The p-value is that of the histogram of the source and of its agreement with the others, combined by Bonferroni's
    correction. A cross marks a source that is named as faulty: its p-value remains significant after Holm's correction
    for the number of sources. Circles mark several sources of which one is faulty, but it is not known which. There is
    no correction for the number of windows: without any fault, a source is marked in about one window of twenty at the
    default `confidence` of the fuser. A gray field is a source without a test.
    """

    windows: tuple[str, ...]  # W names
    classes: list[Any]  # K labels
    prior: np.ndarray  # (W, K) estimated from the sources' histograms in the window
    low: np.ndarray  # (W, K)
    high: np.ndarray  # (W, K)
    training: np.ndarray  # (K,)
    names: tuple[str, ...]  # J sources
    p_value: np.ndarray  # (W, J), NaN without a test
    faulty: np.ndarray  # (W, J) bool: the source is named as faulty
    suspected: np.ndarray  # (W, J) bool: one of several sources of which one is faulty
    confidence: float

    @classmethod
    @draws
    def from_windows(cls, fuser: Fuser, windows: Iterable[AnswersLike], names: Sequence[Any] | None = None) -> Self:
        """The drift of later items, tested with `Fuser.update_prior` of a copy; the fuser remains as it is.

        Parameters
        ----------
        fuser : fitted Fuser
        windows : iterable of tables
            The items of each window, in the order of time; each as for `Fuser.fit`.
        names : sequence, optional
            Names of the windows, such as dates (default: their numbers, from 1).
        """
        fits = [copy.copy(fitted_fuser(fuser)).update_prior(window) for window in windows]
        if not fits:
            raise ValueError("windows must contain at least one table of answers; got none")
        labels = range(1, len(fits) + 1) if names is None else names
        if len(labels) != len(fits):
            raise ValueError(f"names must have one name for each of the {len(fits)} windows; got {len(labels)}")
        layout = fuser._fitted_layout
        estimates = [fit.prior_estimate_ for fit in fits]
        return cls(
            tuple(map(str, labels)),
            fuser.classes_.tolist(),
            np.array([estimate.prior for estimate in estimates]),
            np.array([estimate.low for estimate in estimates]),
            np.array([estimate.high for estimate in estimates]),
            layout.training_prior,
            tuple(layout.names),
            np.array([[_p_value(fit, name) for name in layout.names] for fit in fits]),
            np.array([_in_faults(fit, layout.names, alone=True) for fit in fits]),
            np.array([_in_faults(fit, layout.names, alone=False) for fit in fits]),
            float(estimates[0].confidence),
        )

    def size(self) -> tuple[float, float]:
        """Width and height of a separate figure, in inches."""
        return 7.2, min(3.6 + 0.28 * len(self.names), MAX_HEIGHT)

    def _draw(self, ax: Any) -> None:
        above, below = self.axes_ = divided(ax, 2, 2, 1, what="the priors and the tests")
        self._draw_priors(above)
        self._draw_tests(below)

    def _draw_priors(self, ax: Any) -> None:
        x = np.arange(len(self.windows))
        shown = np.sort(np.argsort(-self.prior.max(axis=0), kind="stable")[:MAX_CLASSES])
        for i, k in enumerate(shown.tolist()):
            style = class_style(i)
            low, high = 100 * (self.prior - self.low)[:, k], 100 * (self.high - self.prior)[:, k]
            ax.errorbar(
                x + dodge(i, len(shown), 0.2),
                100 * self.prior[:, k],
                np.maximum([low, high], 0.0),
                marker=marker(i),
                elinewidth=1.0,
                label=class_name(self.classes[k]),
                **style,
            )
            ax.axhline(100 * self.training[k], color=style["color"], lw=0.8, ls=":")
        ax.set(xlim=(-0.5, len(x) - 0.5), xticks=[], ylim=(0, None))
        tidy(ax)
        ax.plot([], [], color=INK, lw=0.8, ls=":", label="training")
        legend(ax, 1, **ABOVE)
        ax.set_ylabel(f"Class prior (%),\n{100 * self.confidence:.3g} % interval")

    def _draw_tests(self, ax: Any) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        strength = np.ma.masked_invalid(-np.log10(np.maximum(self.p_value.T, 10.0**-SMALLEST)))
        colors = LinearSegmentedColormap.from_list("p", ["#ffffff", "#f7cfb0", OKABE_ITO[1], "#5e2a00"])
        ax.set_facecolor("#e4e4e4")
        image = ax.imshow(strength, cmap=colors, vmin=0, vmax=SMALLEST, aspect="auto", interpolation="nearest")
        for marked, shape, label in (
            (self.faulty, "X", "named as faulty"),
            (self.suspected, "o", "one of these is faulty"),
        ):
            if marked.any():
                ax.plot(*np.nonzero(marked), shape, mfc="white", mec=INK, ms=8, ls="none", label=label)
        ticks = np.arange(0, len(self.windows), -(-len(self.windows) // MAX_LABELS))
        ax.set_xticks(ticks, [plain(self.windows[i], 12) for i in ticks])
        ax.set_yticks(np.arange(len(self.names)), [plain(middle_cut(name, 20), 20) for name in self.names])
        ax.set_xlabel("Window")
        ax.tick_params(length=2, colors=INK)
        ax.spines[:].set_color(FAINT)
        bar = ax.figure.colorbar(image, ax=ax, ticks=[0, 2, 4, 6], label="p-value of the source")
        bar.ax.set_yticklabels(["1", "0.01", "0.0001", "< 1e-6"], fontsize="x-small")
        bar.outline.set_visible(False)
        legend(ax, int(self.faulty.any()) + int(self.suspected.any()), **ABOVE)


def _in_faults(fuser: Fuser, names: Sequence[str], *, alone: bool) -> list[bool]:
    """Whether each source is in a fault, alone or with others."""
    named = {name for fault in fuser.faults_ if (fault.kind is not None) is alone for name in fault.sources}
    return [name in named for name in names]


def _p_value(fuser: Fuser, name: str) -> float:
    """The smaller p-value of the two tests of a source, times the number of tests."""
    values = np.array([fuser.drift_[name].p_value, fuser.agreement_[name].p_value])
    known = values[np.isfinite(values)]
    return min(len(known) * float(known.min()), 1.0) if len(known) else np.nan
