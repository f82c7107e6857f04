"""Criteria of a search over the number of components and the covariance structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.evaluate.displays.palette import DASHES, INK, axes_or_new, colour, dash, legend, marker, plain, tidy

UNITS = {  # name, unit
    "bic": ("BIC", "nats × 2"),
    "icl": ("ICL", "nats × 2"),
    "aic": ("AIC", "nats × 2"),
    "dic": ("DIC", "nats × 2"),
    "dic_robust": ("robust DIC", "nats × 2"),
    "cbic": ("conditional BIC", "nats × 2"),
    "cv": ("−2 × held-out log density", "nats × 2"),
    "log_loss": ("held-out log-loss", "nats per row"),
    "error": ("held-out error", "share of rows"),
}
CRITERIA = tuple(UNITS)
FROM_STAGES = ("bic", "aic")  # what a path of growth says without a search
MANY_CURVES = 8
SHOWN_SHARE = 0.6  # of the values, the best: hopeless models would flatten the rest


@dataclass
class SelectionDisplay:
    """A criterion against the number of components, one line per covariance structure. Lower is better.

    Where each class chose on its own there is a line for each class too, counted from its lowest value.
    """

    search: list[dict[str, Any]]  # n_components, covariance, the criterion; `class` and `chosen` where there are any
    criterion: str = "bic"
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @property
    def picks(self) -> list[dict[str, Any]]:
        """The entries chosen, one or one for each class; where none is marked, that of the lowest criterion."""
        marked = [entry for entry in self.search if entry.get("chosen") and np.isfinite(entry[self.criterion])]
        finite = (entry for entry in self.search if np.isfinite(entry[self.criterion]))
        return marked or [min(finite, key=lambda entry: entry[self.criterion])]

    @property
    def chosen(self) -> dict[str, Any]:
        """The entry chosen, of the first class where each chose on its own."""
        return self.picks[0]

    @classmethod
    def from_estimator(cls, est: Any, criterion: str | None = None):
        """Search of an estimator fitted with n_components="auto" or covariance="auto" (`est.search_`).

        The criterion is that of `est.selection`, and the held-out log-loss or error where it chose by folds.
        """
        if not getattr(est, "search_", None):
            raise ValueError(
                f'{type(est).__name__} has no search_: fit it with n_components="auto" or covariance="auto" first'
            )
        return cls.from_search(est.search_, default_criterion(est, est.search_) if criterion is None else criterion)

    @classmethod
    def from_search(cls, search: Any, criterion: str = "bic"):
        """A list of dicts with n_components, covariance and the criterion; failed fits hold NaN."""
        check_criterion(criterion)
        search = [dict(entry) for entry in search]
        if not all(criterion in entry for entry in search):
            raise ValueError(f"this search has no {criterion}; it holds {', '.join(map(str, search[0]))}")
        most = max(entry.get("folds", 0) for entry in search)
        search = [entry for entry in search if entry.get("folds", 0) == most]  # others were given up after a fold
        if not any(np.isfinite(entry[criterion]) for entry in search):
            raise ValueError(f"no entry of the search has a finite {criterion}; every fit failed")
        return cls(search, criterion)

    @property
    def by_class(self) -> bool:
        """Has each class chosen on its own?"""
        return "class" in self.search[0]

    @property
    def in_all(self) -> bool:
        """Do classes differ in their numbers of components, so that only the sum can be drawn?"""
        return any(isinstance(e["n_components"], list) and len(set(e["n_components"])) > 1 for e in self.search)

    def count(self, entry: dict[str, Any]) -> int:
        """Where an entry stands on the horizontal axis: components of a class, of all rows, or of all classes."""
        counts = entry["n_components"]
        if not self.in_all:
            return counts[0] if isinstance(counts, list) else counts
        if isinstance(counts, list):
            return sum(counts)
        return counts * next(len(e["n_components"]) for e in self.search if isinstance(e["n_components"], list))

    def curves(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For every structure (of every class) its numbers of components and the lowest criterion of each."""
        names = {_structure(entry) for entry in self.search}
        lines: dict[str, dict[int, float]] = {}
        for entry in self.search:
            name = _structure(entry)
            if self.by_class:
                label = plain(entry["class"], 24)
                name = label if len(names) == 1 else f"{label}, {name}"
            points, k = lines.setdefault(name, {}), self.count(entry)
            value = float(entry[self.criterion]) - self._floor(entry)
            points[k] = float(np.fmin(points.get(k, np.nan), value))
        return {name: tuple(np.array(sorted(points.items()), dtype=float).T) for name, points in lines.items()}

    def _floor(self, entry: dict[str, Any]) -> float:
        """What values are counted from: the lowest of the class, where classes have lines of their own."""
        if not self.by_class:
            return 0.0
        mine = [float(e[self.criterion]) for e in self.search if e["class"] == entry["class"]]
        return float(np.nanmin(mine))

    def plot(self, ax: Any = None):
        """Draw the curves, and ring what was chosen."""
        ax = axes_or_new(ax, (6.0, 4.0))
        curves = self.curves()
        for i, (name, (k, value)) in enumerate(curves.items()):
            line = DASHES[i % len(DASHES)] if len(curves) > MANY_CURVES else dash(i)  # no two alike up to 28
            style = {"color": colour(i), "marker": marker(i), "ls": line, "ms": 4.5, "lw": 1.4}
            ax.plot(k, value, label=plain(name), zorder=2, **style)
        picks = self.picks
        at = [(self.count(pick), pick[self.criterion] - self._floor(pick)) for pick in picks]
        ring = {"marker": "o", "ms": 12, "mfc": "none", "mec": INK, "mew": 1.4, "ls": "none", "zorder": 4}
        ax.plot(*zip(*at), label=self._told(picks), clip_on=False, **ring)
        what = "number of components"
        what += " in all" if self.in_all else (" of each class" if self._per_class else "")
        ax.set(xlabel=what, ylabel=criterion_label(self.criterion, " − lowest of its class" if self.by_class else ""))
        ax.xaxis.get_major_locator().set_params(integer=True)
        low, high = self._limits(curves, max(value for _, value in at))
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        legend(ax, len(curves) + 1, beside=True)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @property
    def _per_class(self) -> bool:
        return self.by_class or any(isinstance(entry["n_components"], list) for entry in self.search)

    def _told(self, picks: list[dict[str, Any]]) -> str:
        if len(picks) > 1:
            return "chosen"
        counts = picks[0]["n_components"]
        if isinstance(counts, list):
            counts = counts[0] if len(set(counts)) == 1 else " + ".join(map(str, counts))
        return f"chosen: {plain(_structure(picks[0]))}, {plain(counts, 24)}"

    def _limits(self, curves: dict[str, tuple[np.ndarray, np.ndarray]], marked: float) -> tuple[float, float]:
        """The lowest and the worst of the best values; what was chosen is in sight."""
        values = np.concatenate([value for _, value in curves.values()])
        values = np.sort(values[np.isfinite(values)])
        low, high = float(values[0]), float(values[max(int(np.ceil(SHOWN_SHARE * len(values))), 1) - 1])
        high = max(high, marked)
        if high > low:
            return low, high
        return low, float(values[-1]) if values[-1] > low else low + max(0.1 * abs(low), 1e-3)


def check_criterion(criterion: str) -> None:
    if criterion not in CRITERIA:
        raise ValueError(f"criterion must be one of {', '.join(map(repr, CRITERIA))}; got {criterion!r}")


def default_criterion(est: Any, search: Any) -> str:
    """What the estimator chose by: its criterion, or, on rows held out, the log-loss or the error."""
    selection = getattr(est, "selection", "bic")
    if not search:
        return "bic"
    for name in (selection, "log_loss" if selection == "cv" else "error"):
        if name in search[0]:
            return name
    return selection


def criterion_label(criterion: str, counted: str = "") -> str:
    """What stands at the vertical axis."""
    name, unit = UNITS[criterion]
    return f"{name}{counted}\n({unit}; lower is better)"


def _structure(entry: dict[str, Any]) -> str:
    """The covariance structure of an entry, in words."""
    names = entry["covariance"]
    if isinstance(names, list):
        names = names[0] if len(set(names)) == 1 else "several structures"
    return f"{names} across classes" if entry.get("across_classes") else str(names)
