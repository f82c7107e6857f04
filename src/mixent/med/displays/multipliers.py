"""Multipliers of the training rows in decreasing order, which show the sparsity of the solution."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, color, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.med.displays.margins import check_margins
from mixent.med.estimator import MEDBase
from mixent.med.novelty import MEDNoveltyDetector

NEAR = 2.0  # the upper bound is drawn if it is below this multiple of the largest multiplier


@dataclass(repr=False)
class MultipliersDisplay(Display):
    """Multipliers of the training rows in decreasing order; with more than two classes, the sum for each row.

    Removing a row with a multiplier of zero changes nothing. The share of the support rows is a crude estimate of the
    leave-one-out error. For a novelty detector, the multiplier is the number of times that the row counts (once in a
    Bayesian fit), and there are no classes and no errors.
    """

    multipliers: np.ndarray  # (n,) decreasing
    row: np.ndarray  # (n,) position of each row
    row_class: np.ndarray  # (n,) class index; -1: the label was uncertain, or there are no classes
    classes: Any  # (C,); empty for a novelty detector
    upper: float | None  # upper bound on the multipliers; None: no bound, or sums
    loo_estimate: float | None  # share of support rows among the labelled rows; None for a novelty detector

    @classmethod
    @draws
    def from_estimator(cls, est: MEDBase | MEDNoveltyDetector) -> Self:
        """Read the multipliers of a fitted model.

        Parameters
        ----------
        est : fitted classifier by maximum entropy discrimination, or fitted MEDNoveltyDetector
        """
        if isinstance(est, MEDNoveltyDetector):
            return cls._of_detector(est)
        check_margins(est)
        multipliers = est.multipliers_ if est.multipliers_.ndim == 1 else est.multipliers_.sum(axis=1)
        used = np.flatnonzero(~np.isnan(est.label_posterior_[:, 0]))  # rows with a positive weight
        order = used[np.argsort(-multipliers[used], kind="stable")]
        posterior = est.label_posterior_[order]
        row_class = np.where(posterior.max(axis=1) == 1.0, posterior.argmax(axis=1), -1)
        bounded = est.multipliers_.ndim == 1 and np.isfinite(est.margin_.upper)
        upper = float(est.margin_.upper) if bounded else None
        return cls(multipliers[order], order, row_class, est.classes_, upper, float(est.loo_estimate_))

    @classmethod
    def _of_detector(cls, est: MEDNoveltyDetector) -> Self:
        check_is_fitted(est)
        if est.margin_ is None:
            raise ValueError("this display needs a model trained with margins; fit it with objective='margin'")
        order = np.argsort(-est.multipliers_, kind="stable")
        upper = float(est.margin_.upper) if np.isfinite(est.margin_.upper) else None
        return cls(est.multipliers_[order], order, np.full(len(order), -1), np.empty(0), upper, None)

    @property
    def zero_share(self) -> float:
        """Share of rows with a multiplier of zero."""
        return float(np.mean(self.multipliers == 0))

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        return 6.4, 3.6

    def _draw(self, ax: Any) -> None:
        n = len(self.multipliers)
        rank = np.arange(1, n + 1)
        n_support = int((self.multipliers > 0).sum())
        ax.vlines(rank[:n_support], 0, self.multipliers[:n_support], color=FAINT, lw=0.5, zorder=1)
        for rows, style in self._groups():
            ax.scatter(rank[rows], self.multipliers[rows], s=16, zorder=2, **style)
        top = float(self.multipliers.max(initial=0.0)) or 1.0
        if self.upper is not None and self.upper < NEAR * top:
            ax.axhline(self.upper, color=INK, lw=0.9, ls="--", label=f"C = {self.upper:.3g}")
            top = max(top, self.upper)
        ax.axvline(n_support + 0.5, color=INK, lw=0.9, ls=":")
        ax.set(xlim=(0, n + 1), ylim=(-0.03 * top, 1.08 * top))
        title = f"{n_support} of {n} rows are support rows"
        if self.loo_estimate is not None:
            title += f"; leave-one-out estimate of the error: {100 * self.loo_estimate:.0f} %"
        ax.set_title(title, loc="left", fontsize="small", color=INK)
        ylabel = "Sum of multipliers" if len(self.classes) > 2 else "Multiplier"
        ax.set(xlabel="Training rows, by decreasing multiplier", ylabel=ylabel)
        if ax.get_legend_handles_labels()[0]:
            legend(ax, len(self.classes) + 2, loc="center right")
        tidy(ax)

    def _groups(self) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
        """Groups of rows, with the style of their markers."""
        unknown = self.row_class < 0
        if not len(self.classes):
            yield unknown, {"color": color(0), "marker": marker(0), "edgecolors": "white", "lw": 0.4}
        elif unknown.any():
            yield unknown, {"color": FAINT, "marker": ".", "label": "Uncertain label"}
        for c, label in enumerate(self.classes):
            style = {"color": color(c), "marker": marker(c), "edgecolors": "white", "lw": 0.4}
            yield self.row_class == c, {**style, "label": plain(class_name(label), 24)}
