"""Displays of the studies: detection error trade-off curves, and scores by ensemble size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from mixent.base.displays import Display, draws
from mixent.base.params import check_choice
from mixent.base.style import FAINT, INK, beside_width, class_style, color, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.show import Short
from mixent.studies.ensemble_size import SizeCurves
from mixent.studies.verification import (
    VerificationRates,
    _clients,
    _eer,
    _operating_points,
    _scores,
    bayes_threshold,
    verification_rates,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDE = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])  # ticks of axes that start below 0.2 %
NARROW = np.array([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
LEAST, HALF = 1e-5, 0.5
LABELS = {"error": "Error (%)", "log_loss": "Log-loss (nats)"}
MOST_TICKS = 12


@dataclass(repr=False)
class DetCurve(Short):
    """The curve of one system: a point for each threshold, from accepting none to accepting all."""

    far: np.ndarray  # false acceptance rate
    frr: np.ndarray  # false rejection rate
    eer: float
    bayes: VerificationRates | None = None  # at the Bayes threshold of the prior


@dataclass(repr=False)
class VerificationDisplay(Display):
    """Detection error trade-off (DET) curves of several systems, with equal error rates and operating points.

    The false rejection rate against the false acceptance rate at every threshold, both on normal deviate scales; if the
    scores are normally distributed among clients and among impostors, the curve is a straight line. A ring marks the
    equal error rate. If a prior is given, a filled square marks the threshold that is optimal for it, provided that the
    scores are log-likelihood ratios. For a curve without these marks, use `sklearn.metrics.DetCurveDisplay`.
    """

    curves: dict[str, DetCurve]
    target: Any  # label of the clients
    prior: float | None

    @classmethod
    @draws
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        *,
        target: Any,
        prior: float | None = None,
        cost_miss: float = 1.0,
        cost_false_alarm: float = 1.0,
    ) -> Self:
        """Compute the curve of each system.

        Parameters
        ----------
        y_true : (n,) labels
        scores : (n,) array, or dict of name -> (n,) array
            Scores, which are high for clients: log-likelihood ratios if a prior is given, otherwise on any scale.
        target : label
            Label of the clients; all other rows are impostors.
        prior : float, optional
            Prior probability of a client; marks the operating point, see `bayes_threshold`.
        cost_miss, cost_false_alarm : float
            Cost of a rejected client and of an accepted impostor; only used with a prior.
        """
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        if not named:
            raise ValueError("scores is empty; give the scores of at least one system")
        threshold = None
        if prior is not None:
            threshold = bayes_threshold(prior, cost_miss=cost_miss, cost_false_alarm=cost_false_alarm)
        elif (cost_miss, cost_false_alarm) != (1.0, 1.0):
            raise ValueError("cost_miss and cost_false_alarm are only used with prior; give the prior of a client")
        client, curves = _clients(y_true, target), {}
        for name, values in named.items():
            values = _scores(f"scores of {name!r}", values, client)
            far, frr, _ = _operating_points(client, values)
            bayes = None if threshold is None else verification_rates(client, values, target=True, threshold=threshold)
            curves[str(name)] = DetCurve(*_corners(far, frr), _eer(far, frr), bayes)
        return cls(curves, target, None if prior is None else float(prior))

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 5.2 + beside_width(self._labels()), 4.9

    def _labels(self) -> list[str]:
        return [f"{plain(name, 32)} (EER = {100 * curve.eer:.2f} %)" for name, curve in self.curves.items()]

    def _draw(self, ax: Any) -> None:
        labels = self._labels()
        x_low, y_low, high = self._limits()
        worst = max(curve.eer for curve in self.curves.values())
        line = ndtri([min(x_low, y_low), min(high, max(2 * worst, 2 * x_low, 2 * y_low))])
        ax.plot(line, line, color=FAINT, lw=0.8, zorder=1)
        for i, curve in enumerate(self.curves.values()):
            x, y = (ndtri(np.clip(rate, LEAST / 10, 1 - LEAST / 10)) for rate in (curve.far, curve.frr))
            ax.plot(x, y, label=labels[i], zorder=3, **class_style(i))
            self._mark(ax, i, curve, [x_low, y_low], high)
        self._add_marks_to_legend(ax)
        for axis, low in ((ax.xaxis, x_low), (ax.yaxis, y_low)):
            ticks = WIDE if low < 0.002 else NARROW
            ticks = ticks[(low <= ticks) & (ticks <= high)]
            axis.set_ticks(ndtri(ticks), [f"{100 * t:g}" for t in ticks])
        ax.set(xlim=ndtri([x_low, high]), ylim=ndtri([y_low, high]))
        target = plain(class_name(self.target), 24).strip()
        ax.set(xlabel=f"False acceptance rate of {target} (%)", ylabel=f"False rejection rate of {target} (%)")
        legend(ax, len(labels), beside=True)
        tidy(ax)

    def _limits(self) -> tuple[float, float, float]:
        """Lower limits of FAR and FRR, such that every curve is shown from its first error, and the upper limit."""
        low = [
            max(min(rate[rate > 0].min() for rate in rates) * 0.7, LEAST)
            for rates in ([c.far for c in self.curves.values()], [c.frr for c in self.curves.values()])
        ]
        worst = max(curve.eer for curve in self.curves.values())
        high = HALF if worst < 0.35 else 0.99
        return min(low[0], 0.1), min(low[1], 0.1), high

    def _mark(self, ax: Any, i: int, curve: DetCurve, low: list[float], high: float) -> None:
        """Mark the equal error rate and the operating point; a mark outside the axes is drawn at their edge."""
        equal = ndtri(np.clip(curve.eer, low, high))
        ax.plot(*equal[:, None], "o", ms=8, mfc="none", mec=color(i), mew=1.4, zorder=4, clip_on=False)
        if curve.bayes is not None:
            point = ndtri(np.clip([curve.bayes.far, curve.bayes.frr], low, high))
            ax.plot(*point[:, None], "s", ms=6, color=color(i), zorder=5, clip_on=False)

    def _add_marks_to_legend(self, ax: Any) -> None:
        ax.plot([], [], "o", ms=8, mfc="none", mec=INK, mew=1.4, label="equal error rate")
        if self.prior is not None:
            ax.plot([], [], "s", ms=6, color=INK, label=f"threshold for prior {self.prior:.3g}")


def _corners(far: np.ndarray, frr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of a step curve; all other points lie on straight lines between them."""
    flat = [(rate[:-2] == rate[1:-1]) & (rate[1:-1] == rate[2:]) for rate in (far, frr)]
    keep = np.concatenate([[True], ~(flat[0] | flat[1]), [True]])
    return far[keep], frr[keep]


@dataclass(repr=False)
class EnsembleSizeDisplay(Display):
    """Error or log-loss by ensemble size: the mean over folds, with a band of one standard error."""

    sizes: np.ndarray  # (S,)
    mean: dict[str, dict[str, np.ndarray]]  # metric, method: (S,)
    std_error: dict[str, dict[str, np.ndarray]]

    @classmethod
    @draws
    def from_curves(cls, curves: SizeCurves) -> Self:
        """Take the scores from the result of `size_curves`.

        Parameters
        ----------
        curves : SizeCurves
            Methods that failed in a fold are left out.
        """
        if not isinstance(curves, SizeCurves):
            raise TypeError(f"curves must be the result of size_curves; got a {type(curves).__name__}")
        names = [name for name in curves.methods if name not in curves.failures]
        if not names:
            raise ValueError(f"every method failed in some fold: {curves.failures}")
        mean = {metric: {name: curves.mean(name, metric) for name in names} for metric in LABELS}
        std_error = {metric: {name: curves.std_error(name, metric) for name in names} for metric in LABELS}
        return cls(np.asarray(curves.sizes), mean, std_error)

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 4.6 + beside_width([plain(name, 32) for names in self.mean.values() for name in names]), 3.6

    def plot(self, ax: Axes | None = None, *, metric: str = "error", band: bool = True) -> Self:
        """Draw a line for each method.

        Parameters
        ----------
        ax : matplotlib axes, optional
        metric : "error" or "log_loss"
        band : bool
            Whether to draw a band of one standard error.
        """
        return self._plot(ax, metric=check_choice("metric", metric, tuple(LABELS)), band=band)

    def _draw(self, ax: Any, *, metric: str = "error", band: bool = True) -> None:
        factor = 100 if metric == "error" else 1
        for i, (name, mean) in enumerate(self.mean[metric].items()):
            values, std_error = factor * mean, factor * self.std_error[metric][name]
            ax.plot(self.sizes, values, label=plain(name, 32), marker=marker(i), zorder=3, **class_style(i))
            if band:
                ax.fill_between(self.sizes, values - std_error, values + std_error, color=color(i), alpha=0.13, lw=0)
        ax.set(xlabel="Ensemble size (number of estimators)", ylabel=LABELS[metric])
        self._set_ticks(ax)
        title = "mean ± one\nstandard error" if band else None
        legend(ax, len(self.mean[metric]), beside=True, title=title, title_fontsize="small")
        tidy(ax)

    def _set_ticks(self, ax: Any) -> None:
        """Ticks at the sizes if they do not overlap; a logarithmic axis if the sizes grow geometrically."""
        sizes, steps = self.sizes, np.diff(self.sizes)
        if len(sizes) > 2 and sizes[-1] >= 10 * sizes[0] and steps[-1] >= 4 * steps[0]:
            ax.set_xscale("log")
        if len(sizes) > MOST_TICKS:
            return
        positions = np.log(sizes) if ax.get_xscale() == "log" else sizes.astype(float)
        separate = np.diff(positions) >= 0.045 * max(np.ptp(positions), 1e-12)
        if separate.all():
            ax.set_xticks(sizes, [str(size) for size in sizes])
            ax.minorticks_off()
