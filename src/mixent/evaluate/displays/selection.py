"""Criteria of a search over the number of components and the covariance structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.evaluate.displays.palette import DASHES, INK, axes_or_new, colour, dash, legend, marker, plain, tidy

CRITERIA = ("bic", "icl", "aic")
MANY_CURVES = 8
SHOWN_SHARE = 0.6  # of the values, the best: hopeless models would flatten the rest


@dataclass
class SelectionDisplay:
    """BIC, ICL or AIC against the number of components, one line per covariance structure. Lower is better."""

    search: list[dict[str, Any]]  # n_components, covariance, bic, icl, aic, log_likelihood, n_free
    criterion: str = "bic"
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @property
    def chosen(self) -> dict[str, Any]:
        """The entry of the search with the lowest criterion."""
        return min((s for s in self.search if np.isfinite(s[self.criterion])), key=lambda s: s[self.criterion])

    @classmethod
    def from_estimator(cls, est: Any, criterion: str | None = None):
        """Search of an estimator fitted with n_components="auto" or covariance="auto" (`est.search_`)."""
        if not getattr(est, "search_", None):
            raise ValueError(
                f'{type(est).__name__} has no search_: fit it with n_components="auto" or covariance="auto" first'
            )
        if criterion is None:
            criterion = getattr(est, "selection", "bic")
        return cls.from_search(est.search_, criterion)

    @classmethod
    def from_search(cls, search: Any, criterion: str = "bic"):
        """A list of dicts with n_components, covariance and the criterion; failed fits hold NaN."""
        if criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {CRITERIA}; got {criterion!r}")
        search = [dict(entry) for entry in search]
        if not all(criterion in entry for entry in search):
            raise ValueError(f"this search has no {criterion}; it holds {', '.join(map(str, search[0]))}")
        if not any(np.isfinite(entry[criterion]) for entry in search):
            raise ValueError(f"no entry of the search has a finite {criterion}; every fit failed")
        return cls(search, criterion)

    def curves(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For every structure its numbers of components and criteria."""
        lines: dict[str, list] = {}
        for entry in self.search:
            lines.setdefault(str(entry["covariance"]), []).append((entry["n_components"], entry[self.criterion]))
        return {name: tuple(np.array(sorted(points), dtype=float).T) for name, points in lines.items()}

    def plot(self, ax: Any = None):
        """Draw the curves, and ring the chosen model."""
        ax = axes_or_new(ax, (6.0, 4.0))
        curves = self.curves()
        for i, (name, (k, value)) in enumerate(curves.items()):
            line = DASHES[i % len(DASHES)] if len(curves) > MANY_CURVES else dash(i)  # no two alike up to 28
            style = {"color": colour(i), "marker": marker(i), "ls": line, "ms": 4.5, "lw": 1.4}
            ax.plot(k, value, label=plain(name), zorder=2, **style)
        best = self.chosen
        k, value = best["n_components"], best[self.criterion]
        ring = {"marker": "o", "ms": 12, "mfc": "none", "mec": INK, "mew": 1.4, "ls": "none", "zorder": 4}
        ax.plot(k, value, label=f"chosen: {plain(best['covariance'])}, {k}", **ring)
        ax.set(xlabel="number of components", ylabel=f"{self.criterion.upper()} (nats × 2; lower is better)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        low, high = self._limits()
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        legend(ax, len(curves) + 1, beside=True)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _limits(self) -> tuple[float, float]:
        """The lowest and the worst of the best values."""
        values = np.array([entry[self.criterion] for entry in self.search], dtype=float)
        values = np.sort(values[np.isfinite(values)])
        low, high = float(values[0]), float(values[max(int(np.ceil(SHOWN_SHARE * len(values))), 1) - 1])
        return (low, high) if high > low else (low, max(float(values[-1]), low + 1.0))
