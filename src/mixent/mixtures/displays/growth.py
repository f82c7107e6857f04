"""The gain of each component that incremental growth added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.style import (
    RING,
    Display,
    Short,
    beside_width,
    class_style,
    color,
    dodge,
    legend,
    marker,
    plain,
    tidy,
)
from mixent.base.text import class_name
from mixent.mixtures.displays.selection import FROM_STAGES, check_criterion, criterion_label, default_criterion

QUANTITIES = ("criterion", "log_likelihood", "evaluations")


@dataclass(repr=False)
class Line(Short):
    """A path of growth: of a class, or of all rows."""

    n_components: np.ndarray  # (T,)
    criterion: np.ndarray  # (T,)
    log_likelihood: np.ndarray  # (T,) nats per row
    evaluations: np.ndarray  # (T,) of densities (rows x components), all stages so far
    chosen: int  # number of components
    rows: float


@dataclass(repr=False)
class GrowthDisplay(Display):
    """Along a path of growth: a criterion, the log-likelihood per row, and the density evaluations so far."""

    lines: dict[str, Line]
    criterion: str

    @classmethod
    def from_estimator(cls, est: Any, criterion: str | None = None) -> Self:
        """The path of an estimator fitted with `Search(growth="incremental")` (`est.path_`).

        Parameters
        ----------
        est : fitted mixture or classifier
        criterion : str, optional
            BIC and AIC are those of each class's own path; others are those of `est.search_`, for all classes together
            where it has one entry for all. Default: the criterion of the search.
        """
        path = getattr(est, "path_", None)
        if not path:
            raise ValueError(f'{type(est).__name__} has no path_: fit it with growth="incremental" first')
        search = getattr(est, "search_", None) or []
        if criterion is None:
            criterion = default_criterion(est, search)
        check_criterion(criterion)
        apart = isinstance(path[0], list)
        names = [plain(class_name(label), 24) for label in est.classes_] if apart else ["all rows"]
        chosen = np.atleast_1d(est.n_components_)
        lines = {
            name: _line(stages, int(k))
            for name, stages, k in zip(names, path if apart else [path], chosen, strict=True)
        }
        if criterion not in FROM_STAGES:
            lines = _from_search(lines, search, criterion, est)
        elif criterion == "aic":
            for line, stages in zip(lines.values(), path if apart else [path]):
                line.criterion = np.array([-2 * s.log_likelihood + 2 * s.n_free for s in stages])
        return cls(lines, criterion)

    def size(self) -> tuple[float, float]:
        return 4.4 + beside_width([*self.lines, "chosen"]), 3.8

    def plot(self, ax: Any = None, *, quantity: str = "criterion") -> Self:
        """Draw one line per path.

        Parameters
        ----------
        ax : matplotlib axes, optional
        quantity : "criterion", "log_likelihood" (per row) or "evaluations"

        Returns
        -------
        self
        """
        if quantity not in QUANTITIES:
            raise ValueError(f"quantity must be one of {', '.join(map(repr, QUANTITIES))}; got {quantity!r}")
        return self._plot(ax, quantity=quantity)

    def _draw(self, ax: Any, quantity: str = "criterion") -> None:
        n = len(self.lines)
        from_best = quantity == "criterion" and len(self.lines) > 1
        for i, (name, line) in enumerate(self.lines.items()):
            values = np.asarray(getattr(line, quantity), dtype=float)
            values = values - np.nanmin(values) if from_best else values
            style = class_style(i) | {"marker": marker(i)} | ({"ms": 6} if len(values) == 1 else {})
            place = line.n_components + dodge(i, n)  # classes of one stage would hide each other
            ax.plot(place, values, label=name, zorder=2, **style)
            at = line.n_components == line.chosen
            ring = RING | ({"mec": color(i), "ms": 10} if n > 1 else {})
            ax.plot(place[at], values[at], **ring)
        ax.plot([], [], label="chosen", **RING)
        label = {
            "criterion": criterion_label(self.criterion, " − lowest of its line" if from_best else ""),
            "log_likelihood": "log-likelihood per row (nats)",
            "evaluations": "density evaluations so far\n(passes × rows × components)",
        }[quantity]
        ax.set(xlabel="number of components", ylabel=label)
        if quantity == "evaluations":
            ax.set_ylim(bottom=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, n + 1, beside=True)
        tidy(ax)


def _line(stages: list, chosen: int) -> Line:
    """With BIC for the criterion."""
    log_lik, n_free = np.array([s.log_likelihood for s in stages]), np.array([s.n_free for s in stages])
    rows = next((s.fitted.kept.cells.sum() for s in stages if s.fitted.kept is not None), np.nan)
    return Line(
        np.array([s.n_components for s in stages]),
        -2 * log_lik + n_free * np.log(rows),
        log_lik / rows,
        np.cumsum([s.evaluations for s in stages]),
        chosen,
        float(rows),
    )


def _from_search(lines: dict[str, Line], search: list[dict], criterion: str, est: Any) -> dict[str, Line]:
    """The criterion from the lines of a search: of each class, or of all together."""
    if not any(criterion in entry for entry in search):
        raise ValueError(
            f'the search has no {criterion}; fit with n_components="auto" and search={criterion!r}, '
            'or look at "bic" or "aic"'
        )
    apart = "class" in search[0]
    names = np.atleast_1d(est.covariance_).tolist()
    if len(lines) > 1 and not apart:
        lines = {"all classes": _sum(list(lines.values()))}
    out = {}
    for i, (name, line) in enumerate(lines.items()):
        found = {
            entry["n_components"]: entry[criterion]
            for entry in search
            if entry["covariance"] == names[i if apart else 0]
            and not isinstance(entry["n_components"], list)
            and (not apart or entry["class"] == est.classes_.tolist()[i])
        }
        line.criterion = np.array([found.get(int(k), np.nan) for k in line.n_components], dtype=float)
        out[name] = line
    return out


def _sum(lines: list[Line]) -> Line:
    """All classes together: a class whose path has ended stays where it is."""
    longest = max(lines, key=lambda line: len(line.n_components))
    at = [np.minimum(np.arange(len(longest.n_components)), len(line.n_components) - 1) for line in lines]
    rows = sum(line.rows for line in lines)
    log_lik = np.sum([line.rows * line.log_likelihood[i] for line, i in zip(lines, at)], axis=0) / rows
    evaluations = np.sum([line.evaluations[i] for line, i in zip(lines, at)], axis=0)
    nothing = np.full(len(log_lik), np.nan)
    return Line(longest.n_components, nothing, log_lik, evaluations, max(line.chosen for line in lines), rows)
