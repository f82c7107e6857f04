"""What a fusion found: class priors with their intervals, trust in the sources, and which of them err together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.style import FAINT, INK, OKABE_ITO, Short, axes_or_new, colour, legend, plain, tidy
from mixent.base.text import class_name

MOST_NAMES = 40  # sources beside a map; of more every second (third ...) is named
MOST_NUMBERS = 14  # sources of a map whose cells are written out
MOST_BARS = 40  # sources with a bar of their own
NAME = 24, 14  # characters of a source, of few and of many
FEW = 12
TALLEST = 12.0  # inches
BESIDE: dict[str, Any] = {"va": "center", "fontsize": "small", "zorder": 3}
UNDER = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
VOTES = ("product", "ml-product")  # methods whose weights are shares of a vote
STRONG = 0.62  # shade from which on a number is white


def _need(fuser: Any, attribute: str) -> Any:
    if not hasattr(fuser, attribute):
        raise ValueError(f"{type(fuser).__name__} has no {attribute}; give a fitted Fuser")
    return getattr(fuser, attribute)


def middle_cut(name: str, most: int) -> str:
    """A long name without its middle: names of one family differ at their ends."""
    keep = (most - 1) // 2
    return name if len(name) <= most else f"{name[:keep]}…{name[-keep:]}"


@dataclass(repr=False)
class PriorsDisplay(Short):
    """Class priors of the batch, with intervals that carry batch and calibration error, beside those of the training.

    A training prior outside its interval says that the class has become more frequent, or less.
    """

    classes: list[Any]  # K labels
    prior: np.ndarray  # (K,) by the sources' histograms alone
    low: np.ndarray  # (K,)
    high: np.ndarray  # (K,)
    training: np.ndarray  # (K,) over all sources' training
    used: np.ndarray  # (K,) that go with the posteriors
    confidence: float
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, fuser: Any):
        """Of a fitted `Fuser`."""
        found = _need(fuser, "prior_estimate_")
        return cls(
            fuser.classes_.tolist(),
            found.prior,
            found.low,
            found.high,
            fuser._fitted_layout.training_prior,
            fuser.prior_,
            float(found.confidence),
        )

    def plot(self, ax: Any = None):
        """Draw a line for each class: the interval, the estimate, what the posteriors use, and the training prior."""
        K = len(self.classes)
        ax = axes_or_new(ax, (6.0, min(1.5 + 0.42 * K, TALLEST)))
        place = np.arange(K)
        told = f"{100 * self.confidence:.3g} % interval"
        ax.hlines(place, 100 * self.low, 100 * self.high, color=colour(0), lw=5, alpha=0.3, label=told, zorder=2)
        style = {"ls": "none", "clip_on": False}
        ax.plot(100 * self.prior, place, "o", color=colour(0), ms=6, label="this batch", zorder=4, **style)
        ax.plot(100 * self.used, place, "|", color=INK, ms=13, mew=1.6, label="in the posteriors", zorder=5, **style)
        ax.plot(100 * self.training, place, "D", mfc="none", mec=colour(1), mew=1.5, ms=7, label="training", **style)
        ax.set_yticks(place, [plain(class_name(label), 24) for label in self.classes])
        ax.set(xlabel="share of the items, %", ylim=(K - 0.5, -0.5))
        ax.set_xlim(0, min(100.0, 1.08 * 100 * max(self.high.max(), self.training.max(), self.used.max())))
        ax.grid(axis="x", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
        tidy(ax)
        ax.legend(
            frameon=False, fontsize="small", ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(repr=False)
class TrustDisplay(Short):
    """Trust weights of the sources: the power to which each one's likelihood ratio is raised.

    One: it is believed as if it were independent of all others. Copies share one.
    """

    names: tuple[str, ...]
    trust: np.ndarray  # (J,)
    learned: bool  # otherwise shares of a vote
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, fuser: Any):
        """Of a fitted `Fuser` whose method has trust weights."""
        trust = _need(fuser, "trust_")
        if trust is None:
            raise ValueError(
                f"method {fuser.method_!r} has no trust weights; product rules, 'pool' and 'discounted' have"
            )
        return cls(tuple(trust), np.array(list(trust.values())), fuser.method_ not in VOTES)

    def plot(self, ax: Any = None):
        """Draw a bar for each source, in their order."""
        names, trust = self.names, self.trust
        n_left = len(names) - MOST_BARS
        if n_left > 0:
            kept = np.sort(np.argsort(-trust, kind="stable")[:MOST_BARS])
            names, trust = tuple(names[j] for j in kept), trust[kept]
        J = len(names)
        ax = axes_or_new(ax, (6.0, min(1.1 + 0.32 * J, TALLEST)))
        place = np.arange(J)
        ax.barh(place, trust, color=colour(0), alpha=0.75, height=0.65, zorder=2)
        for at, value in zip(place, trust):
            ax.annotate(f"{value:.2f}", (value, at), (4, 0), textcoords="offset points", bbox=UNDER, **BESIDE)
        ax.axvline(1.0, color=INK, lw=0.9, ls="--", zorder=1.5, label="one independent source")
        ax.set_yticks(
            place, [plain(middle_cut(name, 28), 28) for name in names], fontsize="medium" if J <= FEW else "small"
        )
        more = f"; the {MOST_BARS} largest of {len(self.names)}" if n_left > 0 else ""
        what = "trust weight" if self.learned else "share of a vote"
        ax.set(xlabel=f"{what}{more}", ylim=(J - 0.4, -0.6), xlim=(0, 1.15 * max(1.0, float(trust.max()))))
        tidy(ax)
        legend(ax, 1, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(repr=False)
class DependenceDisplay(Short):
    """Which sources err together: above the diagonal how surely (z), below how much (correlation within a class).

    Orange pairs agree more than their confusion matrices say, blue ones less. The shade of z ends at `LIMIT` standard
    errors: beyond it a pair is as good as proved. Cells that are not known are grey.
    """

    LIMIT = 6.0

    names: tuple[str, ...]
    z: np.ndarray  # (J, J)
    correlation: np.ndarray  # (J, J)
    n_effective: float
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, fuser: Any):
        """Of a fitted `Fuser` of two sources or more."""
        found = _need(fuser, "dependence_")
        names = tuple(fuser._fitted_layout.names)
        if len(names) < 2:
            raise ValueError(f"there is one source, {names[0]!r}, and no pair of sources")
        return cls(names, found.z, found.correlation, float(found.n_effective))

    def plot(self, ax: Any = None):
        """Draw the map."""
        J = len(self.names)
        side = min(max(3.2, 1.6 + 0.5 * J), 9.0)
        ax = axes_or_new(ax, (side + 1.6, side))
        above = np.triu(np.ones((J, J), dtype=bool), 1)
        halves = (np.where(above, self.z / self.LIMIT, np.nan), np.where(above.T, self._below(), np.nan))
        ax.set_facecolor("#e4e4e4")
        image = None
        for half in halves:
            shown = np.ma.masked_invalid(np.clip(half, -1.0, 1.0))
            image = ax.imshow(shown, cmap=_both_ways(), vmin=-1, vmax=1, interpolation="nearest")
        ax.plot([-0.5, J - 0.5], [-0.5, J - 0.5], color=INK, lw=0.6)
        if J <= MOST_NUMBERS:
            self._write(ax)
        self._names(ax)
        ax.set_title(
            f"worth {self.n_effective:.1f} independent {'source' if self.n_effective < 1.05 else 'sources'} of {J}",
            loc="left",
            fontsize="medium",
            color=INK,
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, ticks=[-1, 0, 1])
        limit = f"{self.LIMIT:g}"
        bar.ax.set_yticklabels([f"-{limit} s.e.\n-1", "0", f"{limit} s.e.\n+1"], fontsize="x-small")
        bar.set_label(
            "above: agreement too much, standard errors\nbelow: correlation within a class", fontsize="x-small"
        )
        bar.outline.set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _below(self) -> np.ndarray:
        """Correlations of the pairs that are known; declared copies have one, though no z."""
        known = np.isfinite(self.z) | (self.correlation != 0)
        return np.asarray(np.where(known, self.correlation, np.nan))

    def _write(self, ax: Any) -> None:
        below = self._below()
        size = "small" if len(self.names) <= 8 else 6
        for i, j in zip(*np.triu_indices(len(self.names), 1)):
            for row, column, value, digits, full in (
                (i, j, self.z[i, j], 1, self.LIMIT),
                (j, i, below[i, j], 2, 1.0),
            ):
                if np.isfinite(value):
                    shade = "white" if abs(value) > STRONG * full else INK
                    text = f"{round(value, digits) + 0.0:+.{digits}f}"  # + 0.0: not -0.0
                    ax.text(column, row, text, ha="center", va="center", color=shade, fontsize=size)

    def _names(self, ax: Any) -> None:
        J = len(self.names)
        at = np.arange(0, J, -(-J // MOST_NAMES))
        said = [plain(middle_cut(self.names[j], NAME[J > FEW]), NAME[J > FEW]).strip() for j in at]
        size = "small" if J <= FEW else "x-small" if J <= 20 else 6
        ax.set_xticks(at, said, rotation=90 if J > FEW or max(map(len, said)) > 4 else 0, fontsize=size)
        ax.set_yticks(at, said, fontsize=size)
        ax.tick_params(length=2, colors=INK, pad=2)
        ax.spines[:].set_visible(False)


def _both_ways() -> Any:
    """From blue (-1) over white (0) to orange (1)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "both", ["#00375a", OKABE_ITO[0], "#a9cfe8", "#ffffff", "#f7cfb0", OKABE_ITO[1], "#5e2a00"]
    )
