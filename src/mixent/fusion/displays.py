"""Displays of a fusion: class priors with intervals, trust weights, and the dependence of pairs of sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, OKABE_ITO, color, legend, plain, tidy
from mixent.base.text import class_name
from mixent.fusion.estimator import Fuser

MAX_NAMES = 40  # tick labels of a matrix; of more sources every second (third ...) has a label
MAX_NUMBERS = 14  # sources of a matrix with a number in each cell
MAX_BARS = 40  # sources in a bar chart
NAME_LENGTH = 24, 14  # characters of the name of a source: with few sources, with many
FEW = 12
MAX_HEIGHT = 12.0  # inches
VALUE_STYLE: dict[str, Any] = {"va": "center", "fontsize": "small", "zorder": 3}
VALUE_BOX = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
VOTES = ("product", "ml-product")  # methods whose weights are shares of a vote
DARK = 0.62  # share of the color scale above which a number is white


def fitted_fuser(fuser: Fuser) -> Fuser:
    if not isinstance(fuser, Fuser):
        raise TypeError(f"this display needs a fitted Fuser; got a {type(fuser).__name__}")
    check_is_fitted(fuser, "rule_")
    return fuser


def middle_cut(name: str, most: int) -> str:
    """A long name with its middle replaced by an ellipsis: the names of related sources differ at their ends."""
    keep = (most - 1) // 2
    return name if len(name) <= most else f"{name[:keep]}…{name[-keep:]}"


@dataclass(repr=False)
class PriorsDisplay(Display):
    """Class priors of the batch compared with those of the training sets.

    The intervals include the sampling errors of the batch and of the calibrations. A training prior outside its
    interval means that the class has become more or less frequent.
    """

    classes: list[Any]  # K labels
    prior: np.ndarray  # (K,) estimated from the batch
    low: np.ndarray  # (K,)
    high: np.ndarray  # (K,)
    training: np.ndarray  # (K,) mean over the training sets of all sources
    used: np.ndarray  # (K,) priors that the posteriors use
    confidence: float

    @classmethod
    @draws
    def from_estimator(cls, fuser: Fuser) -> Self:
        """The class priors of a fitted `Fuser`.

        Parameters
        ----------
        fuser : fitted Fuser
        """
        estimate = fitted_fuser(fuser).prior_estimate_
        return cls(
            fuser.classes_.tolist(),
            estimate.prior,
            estimate.low,
            estimate.high,
            fuser._fitted_layout.training_prior,
            fuser.prior_,
            float(estimate.confidence),
        )

    def size(self) -> tuple[float, float]:
        """Width and height of a separate figure, in inches."""
        return 6.4, min(1.5 + 0.42 * len(self.classes), MAX_HEIGHT)

    def _draw(self, ax: Any) -> None:
        K = len(self.classes)
        y = np.arange(K)
        interval = f"{100 * self.confidence:.3g} % interval"
        ax.hlines(y, 100 * self.low, 100 * self.high, color=color(0), lw=5, alpha=0.3, label=interval, zorder=2)
        style = {"ls": "none", "clip_on": False}
        ax.plot(100 * self.prior, y, "o", color=color(0), ms=6, label="estimate", zorder=4, **style)
        if not np.allclose(self.used, self.prior):
            ax.plot(100 * self.used, y, "|", color=INK, ms=13, mew=1.6, label="in posteriors", zorder=5, **style)
        ax.plot(100 * self.training, y, "D", mfc="none", mec=color(1), mew=1.5, ms=7, label="training", **style)
        ax.set_yticks(y, [plain(class_name(label), 24) for label in self.classes])
        ax.set(xlabel="Class prior (%)", ylim=(K - 0.5, -0.5))
        ax.set_xlim(0, min(100.0, 1.08 * 100 * max(self.high.max(), self.training.max(), self.used.max())))
        ax.grid(axis="x", color=FAINT, lw=0.3, alpha=0.5, zorder=0)
        tidy(ax)
        ax.legend(
            frameon=False, fontsize="small", ncols=4, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0.2
        )


@dataclass(repr=False)
class TrustDisplay(Display):
    """Trust weights of the sources: the exponents of their likelihood ratios.

    A source with weight one counts as independent of all others; copies share a weight of one.
    """

    names: tuple[str, ...]
    trust: np.ndarray  # (J,)
    learned: bool  # whether the weights were estimated; otherwise they are shares of a vote

    @classmethod
    @draws
    def from_estimator(cls, fuser: Fuser) -> Self:
        """The trust weights of a fitted `Fuser`.

        Parameters
        ----------
        fuser : fitted Fuser
            With trust weights: fitted by "product", "ml-product", "pool" or "discounted".
        """
        trust = fitted_fuser(fuser).trust_
        if trust is None:
            raise ValueError(
                f"method {fuser.method_!r} has no trust weights; use 'product', 'ml-product', 'pool' or 'discounted'"
            )
        return cls(tuple(trust), np.array(list(trust.values())), fuser.method_ not in VOTES)

    def size(self) -> tuple[float, float]:
        """Width and height of a separate figure, in inches."""
        return 6.4, min(1.1 + 0.32 * min(len(self.names), MAX_BARS), MAX_HEIGHT)

    def _draw(self, ax: Any) -> None:
        names, trust = self.names, self.trust
        n_omitted = len(names) - MAX_BARS
        if n_omitted > 0:
            largest = np.sort(np.argsort(-trust, kind="stable")[:MAX_BARS])
            names, trust = tuple(names[j] for j in largest), trust[largest]
        J = len(names)
        y = np.arange(J)
        ax.barh(y, trust, color=color(0), alpha=0.75, height=0.65, zorder=2)
        for bar, value in zip(y, trust):
            ax.annotate(f"{value:.2f}", (value, bar), (4, 0), textcoords="offset points", bbox=VALUE_BOX, **VALUE_STYLE)
        ax.axvline(1.0, color=INK, lw=0.9, ls="--", zorder=1.5, label="independent source")
        ax.set_yticks(
            y, [plain(middle_cut(name, 28), 28) for name in names], fontsize="medium" if J <= FEW else "small"
        )
        more = f" (the {MAX_BARS} largest of {len(self.names)})" if n_omitted > 0 else ""
        label = "Trust weight" if self.learned else "Share of a vote"
        ax.set(xlabel=f"{label}{more}", ylim=(J - 0.4, -0.6), xlim=(0, 1.15 * max(1.0, float(trust.max()))))
        tidy(ax)
        legend(ax, 1, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)


@dataclass(repr=False)
class DependenceDisplay(Display):
    """Dependence of pairs of sources: z above the diagonal, correlation within a class below it.

    Orange pairs agree more often than their confusion matrices imply, blue ones less often. The color of z saturates at
    `LIMIT` standard errors. Pairs without a test are gray.
    """

    LIMIT = 6.0

    names: tuple[str, ...]
    z: np.ndarray  # (J, J)
    correlation: np.ndarray  # (J, J)
    n_effective: float

    @classmethod
    @draws
    def from_estimator(cls, fuser: Fuser) -> Self:
        """The dependence of the sources of a fitted `Fuser`.

        Parameters
        ----------
        fuser : fitted Fuser
            With at least two sources.
        """
        dependence = fitted_fuser(fuser).dependence_
        names = tuple(fuser._fitted_layout.names)
        if len(names) < 2:
            raise ValueError(f"this display needs at least two sources; got only {names[0]!r}")
        return cls(names, dependence.z, dependence.correlation, float(dependence.n_effective))

    def size(self) -> tuple[float, float]:
        """Width and height of a separate figure, in inches."""
        side = min(max(3.2, 1.6 + 0.5 * len(self.names)), 9.0)
        return side + 1.6, side

    def _draw(self, ax: Any) -> None:
        J = len(self.names)
        above = np.triu(np.ones((J, J), dtype=bool), 1)
        halves = (np.where(above, self.z / self.LIMIT, np.nan), np.where(above.T, self._below(), np.nan))
        ax.set_facecolor("#e4e4e4")
        image = None
        for half in halves:
            shown = np.ma.masked_invalid(np.clip(half, -1.0, 1.0))
            image = ax.imshow(shown, cmap=_diverging_colors(), vmin=-1, vmax=1, interpolation="nearest")
        ax.plot([-0.5, J - 0.5], [-0.5, J - 0.5], color=INK, lw=0.6)
        if J <= MAX_NUMBERS:
            self._write(ax)
        self._names(ax)
        ax.set_title(
            f"{J} sources; effective number {self.n_effective:.1f}",
            loc="left",
            fontsize="medium",
            color=INK,
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.8, ticks=[-1, 0, 1])
        limit = f"{self.LIMIT:g}"
        bar.ax.set_yticklabels([f"-{limit} s.e.\n-1", "0", f"{limit} s.e.\n+1"], fontsize="x-small")
        bar.set_label(
            "above diagonal: excess agreement (s.e.)\nbelow diagonal: correlation within a class", fontsize="x-small"
        )
        bar.outline.set_visible(False)

    def _below(self) -> np.ndarray:
        """Correlations of the tested pairs and of declared copies; NaN for the others."""
        available = np.isfinite(self.z) | (self.correlation != 0)
        return np.asarray(np.where(available, self.correlation, np.nan))

    def _write(self, ax: Any) -> None:
        below = self._below()
        size = "small" if len(self.names) <= 8 else 6
        for i, j in zip(*np.triu_indices(len(self.names), 1)):
            for row, column, value, digits, full in (
                (i, j, self.z[i, j], 1, self.LIMIT),
                (j, i, below[i, j], 2, 1.0),
            ):
                if np.isfinite(value):
                    shade = "white" if abs(value) > DARK * full else INK
                    text = f"{round(value, digits) + 0.0:+.{digits}f}"  # + 0.0: not -0.0
                    ax.text(column, row, text, ha="center", va="center", color=shade, fontsize=size)

    def _names(self, ax: Any) -> None:
        J = len(self.names)
        ticks = np.arange(0, J, -(-J // MAX_NAMES))
        length = NAME_LENGTH[J > FEW]
        labels = [plain(middle_cut(self.names[j], length), length).strip() for j in ticks]
        size = "small" if J <= FEW else "x-small" if J <= 20 else 6
        ax.set_xticks(ticks, labels, rotation=90 if J > FEW or max(map(len, labels)) > 4 else 0, fontsize=size)
        ax.set_yticks(ticks, labels, fontsize=size)
        ax.tick_params(length=2, colors=INK, pad=2)
        ax.spines[:].set_visible(False)


def _diverging_colors() -> Any:
    """Diverging color map from blue (-1) through white (0) to orange (1)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "both", ["#00375a", OKABE_ITO[0], "#a9cfe8", "#ffffff", "#f7cfb0", OKABE_ITO[1], "#5e2a00"]
    )
