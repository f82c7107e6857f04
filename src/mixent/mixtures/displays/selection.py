"""Criteria of a search over the number of components and the covariance structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, computed, draws
from mixent.base.style import (
    DASHES,
    FAINT,
    INK,
    RING,
    beside_width,
    class_style,
    color,
    dash,
    dodge,
    legend,
    marker,
    plain,
    tidy,
    wrapped,
)
from mixent.base.text import class_name

UNITS = {  # name, unit
    "bic": ("BIC", "nats × 2"),
    "icl": ("ICL", "nats × 2"),
    "aic": ("AIC", "nats × 2"),
    "dic": ("DIC", "nats × 2"),
    "dic_robust": ("Robust DIC", "nats × 2"),
    "cbic": ("Conditional BIC", "nats × 2"),
    "cv": ("−2 × held-out log density", "nats × 2"),
    "log_loss": ("Held-out log-loss", "nats per row"),
    "error": ("Held-out error rate", "share of rows"),
}
CRITERIA = tuple(UNITS)
FROM_STAGES = ("bic", "aic")  # computed from the stages of growth, without a search
MANY_CURVES = 8
SHOWN_SHARE = 0.6  # share of the best values that determines the range of the axis, so that outliers do not


@dataclass(repr=False)
class SelectionDisplay(Display):
    """Criterion against the number of components, with a line for each covariance structure; lower is better.

    If the models were selected for each class, there is a line for each class, relative to its minimum. Models selected
    in nested folds are not connected by lines: each is a dot.
    """

    search: list[dict[str, Any]]  # n_components, covariance, the criterion; optionally `class` and `chosen`
    criterion: str = "bic"
    joined: bool = True  # whether the entries form lines; those selected in nested folds do not

    @property
    def picks(self) -> list[dict[str, Any]]:
        """The selected entries, one or one for each class; if none is marked, that with the lowest criterion."""
        marked = [entry for entry in self.search if entry.get("chosen") and np.isfinite(entry[self.criterion])]
        finite = (entry for entry in self.search if np.isfinite(entry[self.criterion]))
        return marked or [min(finite, key=lambda entry: entry[self.criterion])]

    @property
    def chosen(self) -> dict[str, Any]:
        """The selected entry, of the first class if there is one for each class."""
        return self.picks[0]

    @classmethod
    @draws
    def from_estimator(cls, est: Any, criterion: str | None = None) -> Self:
        """Create the display from an estimator fitted with n_components="auto" or covariance="auto" (`est.search_`).

        Parameters
        ----------
        est : fitted mixture or classifier
        criterion : str, optional
            Criterion to draw (default: that of `est.search`, or the held-out log-loss or error).
        """
        if not getattr(est, "search_", None):
            raise ValueError(
                f'{type(est).__name__} has no search_: fit it with n_components="auto" or covariance="auto" first'
            )
        display = computed(
            cls.from_search, est.search_, default_criterion(est, est.search_) if criterion is None else criterion
        )
        display.joined = est._group("search").nested is None
        return display

    @classmethod
    @draws
    def from_search(cls, search: Any, criterion: str = "bic") -> Self:
        """Create the display from the entries of a search.

        Parameters
        ----------
        search : list of dict
            With n_components, covariance and the criterion, NaN for failed fits.
        criterion : str
            Criterion to draw.
        """
        check_criterion(criterion)
        search = [dict(entry) for entry in search]
        if not all(criterion in entry for entry in search):
            raise ValueError(f"this search has no {criterion}; it has {', '.join(map(str, search[0]))}")
        n_folds = max(entry.get("folds", 0) for entry in search)
        search = [entry for entry in search if entry.get("folds", 0) == n_folds]  # others were discarded after a fold
        if not any(np.isfinite(entry[criterion]) for entry in search):
            raise ValueError(f"no entry of the search has a finite {criterion}; every fit failed")
        return cls(search, criterion)

    @property
    def by_class(self) -> bool:
        """Whether models were selected for each class."""
        return "class" in self.search[0]

    @property
    def in_all(self) -> bool:
        """Whether numbers of components differ between classes, so that their sum is drawn."""
        return any(isinstance(e["n_components"], list) and len(set(e["n_components"])) > 1 for e in self.search)

    def count(self, entry: dict[str, Any]) -> int:
        """Return the position of an entry on the horizontal axis: components of a class, or in total."""
        counts = entry["n_components"]
        if not self.in_all:
            return counts[0] if isinstance(counts, list) else counts
        if isinstance(counts, list):
            return sum(counts)
        return counts * next(len(e["n_components"]) for e in self.search if isinstance(e["n_components"], list))

    def curves(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return for each structure (of each class) the numbers of components and their lowest criterion."""
        lines: dict[str, dict[int, float]] = {}
        for entry in self.search:
            points, k = lines.setdefault(self._curve(entry), {}), self.count(entry)
            value = float(entry[self.criterion]) - self._floor(entry)
            points[k] = float(np.fmin(points.get(k, np.nan), value))
        return {name: tuple(np.array(sorted(points.items()), dtype=float).T) for name, points in lines.items()}

    def _curve(self, entry: dict[str, Any]) -> str:
        """Return the name of the curve of an entry."""
        name = _structure(entry)
        if not self.by_class:
            return name
        label = plain(class_name(entry["class"]), 24)
        return label if len(self._structures) == 1 else f"{label}, {name}"

    def _floor(self, entry: dict[str, Any]) -> float:
        """Return the reference of a value: the minimum of its class if there is a line for each class, else 0."""
        if not self.by_class:
            return 0.0
        values = [float(e[self.criterion]) for e in self.search if e["class"] == entry["class"]]
        return float(np.nanmin(values))

    def size(self) -> tuple[float, float]:
        if self.joined:
            return 4.4 + beside_width(label for _, label in self._legend_entries()), 4.0
        lines = [wrapped(_choice(entry), 30).count("\n") + 1 for entry in self._ranked()]
        return 6.0, max(1.3 + 0.17 * sum(n + 1 for n in lines), 1.9)

    def _draw(self, ax: Any) -> None:
        """Draw the curves with a ring at the selected model; for nested folds, a dot for each selected model."""
        if not self.joined:
            self._draw_dots(ax)
            return
        styles, entries, curves = self._styles(), self._legend_entries(), self.curves()
        for name, (k, value) in curves.items():
            ax.plot(k + styles[name].pop("dodge"), value, label=plain(name), zorder=2, **styles[name])
        rings = self._rings(ax)
        xlabel = "Total number of components" if self.in_all else "Number of components"
        xlabel += " of each class" if self._per_class and not self.in_all else ""
        relative = " − minimum of the class" if self.by_class else ""
        ax.set(xlabel=xlabel, ylabel=criterion_label(self.criterion, relative))
        ax.xaxis.get_major_locator().set_params(integer=True)
        low, high = self._limits(curves, max(value for _, value in rings))
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        handles, labels = zip(*entries)
        legend(ax, len(labels), beside=True, handles=list(handles), labels=list(labels))
        tidy(ax)

    def _ranked(self) -> list[dict[str, Any]]:
        """Return the entries with a finite criterion, best first."""
        finite = (entry for entry in self.search if np.isfinite(entry[self.criterion]))
        return sorted(finite, key=lambda entry: entry[self.criterion])

    def _draw_dots(self, ax: Any) -> None:
        """Draw a row for each selected model, best first, with its name and a dot at its value."""
        rows = self._ranked()
        names = [wrapped(_choice(entry), 30) for entry in rows]
        lines = np.array([name.count("\n") + 1 for name in names])
        height = np.cumsum(lines + 1) - (lines + 1) / 2
        value = np.array([entry[self.criterion] for entry in rows])
        ax.hlines(height, value.min(), value, color=FAINT, lw=0.8, zorder=1)
        ax.plot(value, height, ls="none", marker="o", ms=6, color=color(0), zorder=3)
        chosen = [any(entry is pick for pick in self.picks) for entry in rows]
        ax.plot(value[chosen], height[chosen], clip_on=False, **RING)
        for x, y in zip(value[chosen], height[chosen]):
            style = {"textcoords": "offset points", "va": "center", "fontsize": "small", "color": INK}
            ax.annotate("chosen", (x, y), (10, 0), **style, bbox={"fc": "white", "ec": "none", "pad": 1})
        room = 0.1 * np.ptp(value) or max(0.05 * abs(value[0]), 1e-3)
        ax.set(xlim=(value.min() - room, value.max() + room), ylim=(height[-1] + lines[-1] / 2 + 0.6, 0))
        ax.set_yticks(height, names)
        ax.set(xlabel=criterion_label(self.criterion).replace("\n", " "), title="Models selected in the folds")
        ax.xaxis.get_major_locator().set_params(nbins=6)
        tidy(ax)

    @property
    def _classes(self) -> list[Any]:
        return list(dict.fromkeys(entry["class"] for entry in self.search)) if self.by_class else []

    def _styles(self) -> dict[str, dict[str, Any]]:
        """Return the style of each curve: a color and dash for each class, a marker for each structure.

        Lines of classes are shifted horizontally, since all of them have a minimum of 0, many at the same position.
        """
        curves, styles = self.curves(), {}
        if not self.by_class:
            for i, name in enumerate(curves):
                line = DASHES[i % len(DASHES)] if len(curves) > MANY_CURVES else dash(i)  # up to 28 different styles
                styles[name] = {"color": color(i), "marker": marker(i), "ls": line, "ms": 4.5, "lw": 1.4, "dodge": 0.0}
            return styles
        classes, structures = self._classes, self._structures
        for entry in self.search:
            i, s = classes.index(entry["class"]), structures.index(_structure(entry))
            styles[self._curve(entry)] = class_style(i) | {
                "marker": marker(s if len(structures) > 1 else i),
                "dodge": dodge(i, len(classes)),
            }
        return styles

    @property
    def _structures(self) -> list[str]:
        return list(dict.fromkeys(_structure(entry) for entry in self.search))

    def _rings(self, ax: Any) -> list[tuple[int, float]]:
        """Draw rings around the selected models, in the color of their class; return their positions."""
        classes, rings = self._classes, []
        for pick in self.picks:
            k, value = self.count(pick), float(pick[self.criterion] - self._floor(pick))
            i = classes.index(pick["class"]) if classes else 0
            style = RING | ({"mec": color(i), "ms": 9} if len(classes) > 1 else {})
            ax.plot(k + dodge(i, len(classes)), value, label="_chosen", clip_on=False, **style)
            rings.append((k, value))
        return rings

    def _legend_entries(self) -> list[tuple[Any, str]]:
        """Return handles and texts: the curves and the selected model, or each class with its model, and structures."""
        from matplotlib.lines import Line2D

        def handle(**style: Any) -> Any:
            style.pop("dodge", None)
            return Line2D([], [], **style)

        ring, styles = handle(**RING), self._styles()
        if not self.by_class:
            text = f"chosen: {_choice(self.picks[0])}"
            return [(handle(**styles[name]), plain(name)) for name in self.curves()] + [(ring, wrapped(text, 30))]
        several = len(self._structures) > 1
        picks = {pick["class"]: pick for pick in self.picks}
        entries = []
        for i, label in enumerate(self._classes):
            style = class_style(i) | {"marker": "" if several else marker(i)}
            text = plain(class_name(label), 24)
            pick = picks.get(label)
            entries.append((handle(**style), text if pick is None else f"{text}: {_choice(pick)}"))
        if several:
            style = {"color": FAINT, "ls": "none", "ms": 4.5}
            entries += [(handle(marker=marker(s), **style), plain(name)) for s, name in enumerate(self._structures)]
        return [*entries, (ring, "chosen")]

    @property
    def _per_class(self) -> bool:
        return self.by_class or any(isinstance(entry["n_components"], list) for entry in self.search)

    def _limits(self, curves: dict[str, tuple[np.ndarray, np.ndarray]], marked: float) -> tuple[float, float]:
        """Return the range of the best values, which includes the selected model."""
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
    """Return the criterion of the selection: that of the search, or the held-out log-loss or error."""
    selection = est._group("search").criterion
    if not search:
        return "bic"
    for name in (selection, "log_loss" if selection == "cv" else "error"):
        if name in search[0]:
            return name
    return selection


def criterion_label(criterion: str, relative: str = "") -> str:
    """Return the axis label of a criterion."""
    name, unit = UNITS[criterion]
    return f"{name}{relative}\n({unit}; lower is better)"


def _choice(entry: dict[str, Any]) -> str:
    """Return structure and number of components of an entry as text; for each class if they differ."""
    counts, names = entry["n_components"], entry["covariance"]
    if isinstance(names, list) and len(set(names)) > 1:
        counts = counts if isinstance(counts, list) else [counts] * len(names)
        text = plain(" + ".join(f"{k}_{name}" for k, name in zip(counts, names)), 100)
        return text.replace("_", "\u00a0")  # no line break between a count and its structure
    if isinstance(counts, list):
        counts = counts[0] if len(set(counts)) == 1 else " + ".join(map(str, counts))
    return f"{plain(_structure(entry))}, {plain(counts, 60)}"


def _structure(entry: dict[str, Any]) -> str:
    """Return the name of the covariance structure of an entry."""
    names = entry["covariance"]
    if isinstance(names, list):
        names = names[0] if len(set(names)) == 1 else "several structures"
    return f"{names} across classes" if entry.get("across_classes") else str(names)
