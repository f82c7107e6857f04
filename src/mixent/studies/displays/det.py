"""Detection error trade-off: false accepts against false rejects, on axes that make normal scores straight lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtri

from mixent.base.style import FAINT, INK, Short, axes_or_new, beside_width, class_style, colour, legend, plain, tidy
from mixent.base.text import class_name
from mixent.studies.verification import (
    VerificationRates,
    _clients,
    _eer,
    _operating_points,
    _scores,
    bayes_threshold,
    verification_rates,
)

MOST_INSIDE = 4  # systems in a legend that fits above the curves
WIDE = np.array([1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])  # ticks of axes that begin below 0.2 %
NARROW = np.array([0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
LEAST, HALF = 1e-5, 0.5


@dataclass(repr=False)
class Det(Short):
    """One system: a point for each threshold, from accepting none to accepting all."""

    far: np.ndarray  # share of the impostors accepted
    frr: np.ndarray  # share of the clients rejected
    eer: float
    at: VerificationRates | None = None  # at the Bayes threshold of the prior


@dataclass(repr=False)
class DetDisplay(Short):
    """False accepts against false rejects at every threshold, both as normal deviates.

    Scores that are normal among clients and among impostors make a straight line, of slope -1 where the spreads are
    equal; nearer to the lower left corner is better. A ring marks FAR = FRR; a filled point, where a prior was given,
    the threshold that is best for it if the scores are log-likelihood ratios.
    """

    curves: dict[str, Det]
    target: Any  # label of the clients
    prior: float | None
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_predictions(
        cls,
        truth: Any,
        scores: Any,
        *,
        target: Any,
        prior: float | None = None,
        cost_miss: float = 1.0,
        cost_false_alarm: float = 1.0,
    ):
        """Of scores (n,), high for clients; or of a dict of such scores by name of the system.

        Parameters
        ----------
        truth : (n,) labels
        scores : (n,) array, or dict of name to array
            Log-likelihood ratios where a prior is given, otherwise on any scale.
        target : label
            That of the clients; all other rows are impostors.
        prior : float, optional
            Of a client: marks the operating point, see `bayes_threshold`.
        cost_miss, cost_false_alarm : float
            Of a client rejected, and of an impostor accepted; they serve the operating point.
        """
        named = scores if isinstance(scores, Mapping) else {"scores": scores}
        if not named:
            raise ValueError("scores is empty; give the scores of one system at least")
        threshold = None
        if prior is not None:
            threshold = bayes_threshold(prior, cost_miss=cost_miss, cost_false_alarm=cost_false_alarm)
        elif (cost_miss, cost_false_alarm) != (1.0, 1.0):
            raise ValueError("costs have no effect without a prior; give prior=, that of a client")
        client = _clients(truth, target)
        made = {}
        for name, one in named.items():
            one = _scores(f"scores of {name!r}", one, client)
            far, frr, _ = _operating_points(client, one)
            at = None if threshold is None else verification_rates(client, one, target=True, threshold=threshold)
            made[str(name)] = Det(*_corners(far, frr), _eer(far, frr), at)
        return cls(made, target, None if prior is None else float(prior))

    def plot(self, ax: Any = None):
        """Draw the curves, the equal error rate of each in the legend."""
        said = [f"{plain(name, 32)}, EER {100 * curve.eer:.2f} %" for name, curve in self.curves.items()]
        beside = len(said) > MOST_INSIDE
        ax = axes_or_new(ax, (5.2 + (beside_width(said) if beside else 0.0), 4.9))
        x_low, y_low, high = self._limits()
        worst = max(curve.eer for curve in self.curves.values())
        line = ndtri([min(x_low, y_low), min(high, max(2 * worst, 2 * x_low, 2 * y_low))])
        ax.plot(line, line, color=FAINT, lw=0.8, zorder=1)
        for i, curve in enumerate(self.curves.values()):
            x, y = (ndtri(np.clip(rate, LEAST / 10, 1 - LEAST / 10)) for rate in (curve.far, curve.frr))
            ax.plot(x, y, label=said[i], zorder=3, **class_style(i))
            self._mark(ax, i, curve, [x_low, y_low], high)
        self._explain_marks(ax)
        for axis, low in ((ax.xaxis, x_low), (ax.yaxis, y_low)):
            ticks = WIDE if low < 0.002 else NARROW
            ticks = ticks[(low <= ticks) & (ticks <= high)]
            axis.set_ticks(ndtri(ticks), [f"{100 * t:g}" for t in ticks])
        ax.set(xlim=ndtri([x_low, high]), ylim=ndtri([y_low, high]))
        called = plain(class_name(self.target), 24).strip()
        ax.set(xlabel=f"FAR: others accepted as {called}, %", ylabel=f"FRR: {called} rejected, %")
        legend(ax, len(said), beside=beside, loc="upper right")
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _limits(self) -> tuple[float, float, float]:
        """Least FAR, least FRR and the end of both axes, so that every curve is seen from its first error on."""
        low = [
            max(min(rate[rate > 0].min() for rate in rates) * 0.7, LEAST)
            for rates in ([c.far for c in self.curves.values()], [c.frr for c in self.curves.values()])
        ]
        worst = max(curve.eer for curve in self.curves.values())
        high = HALF if worst < 0.35 else 0.99
        return min(low[0], 0.1), min(low[1], 0.1), high

    def _mark(self, ax: Any, i: int, curve: Det, low: list[float], high: float) -> None:
        """The equal error rate, and the operating point; one that lies off the axes stands at their edge."""
        where = ndtri(np.clip(curve.eer, low, high))
        ax.plot(*where[:, None], "o", ms=8, mfc="none", mec=colour(i), mew=1.4, zorder=4, clip_on=False)
        if curve.at is not None:
            at = ndtri(np.clip([curve.at.far, curve.at.frr], low, high))
            ax.plot(*at[:, None], "s", ms=6, color=colour(i), zorder=5, clip_on=False)

    def _explain_marks(self, ax: Any) -> None:
        ax.plot([], [], "o", ms=8, mfc="none", mec=INK, mew=1.4, label="FAR = FRR")
        if self.prior is not None:
            ax.plot([], [], "s", ms=6, color=INK, label=f"threshold for prior {self.prior:.3g}")


def _corners(far: np.ndarray, frr: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points where the steps turn: the others lie on straight lines that the axes leave straight."""
    flat = [(rate[:-2] == rate[1:-1]) & (rate[1:-1] == rate[2:]) for rate in (far, frr)]
    keep = np.concatenate([[True], ~(flat[0] | flat[1]), [True]])
    return far[keep], frr[keep]
