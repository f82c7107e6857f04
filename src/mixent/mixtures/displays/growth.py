"""Criterion, log-likelihood and cost along the stages of incremental growth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import RING, beside_width, class_style, color, dodge, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.mixtures.displays.selection import FROM_STAGES, check_criterion, criterion_label, default_criterion
from mixent.show import Short

QUANTITIES = ("criterion", "log_likelihood", "evaluations")


@dataclass(repr=False)
class Line(Short):
    """Growth of the mixture of a class, or of all rows."""

    n_components: np.ndarray  # (T,)
    criterion: np.ndarray  # (T,)
    log_likelihood: np.ndarray  # (T,) nats per row
    evaluations: np.ndarray  # (T,) cumulative density evaluations (rows x components)
    chosen: int  # selected number of components
    rows: float  # total weight


@dataclass(repr=False)
class GrowthDisplay(Display):
    """Criterion, log-likelihood per row, or cumulative density evaluations against the number of components."""

    lines: dict[str, Line]
    criterion: str

    @classmethod
    @draws
    def from_estimator(cls, est: Any, criterion: str | None = None) -> Self:
        """Create the display from an estimator fitted with `Search(growth="incremental")` (`est.path_`).

        Parameters
        ----------
        est : fitted mixture or classifier
        criterion : str, optional
            BIC and AIC are computed for each class; other criteria are those of `est.search_`, which may be for all
            classes together (default: the criterion of the search).
        """
        path = getattr(est, "path_", None)
        if not path:
            raise ValueError(f'{type(est).__name__} has no path_: fit it with growth="incremental" first')
        search = getattr(est, "search_", None) or []
        if criterion is None:
            criterion = default_criterion(est, search)
        check_criterion(criterion)
        by_class = isinstance(path[0], list)
        names = [plain(class_name(label), 24) for label in est.classes_] if by_class else ["all rows"]
        chosen = np.atleast_1d(est.n_components_)
        lines = {
            name: _line(stages, int(k))
            for name, stages, k in zip(names, path if by_class else [path], chosen, strict=True)
        }
        if criterion not in FROM_STAGES:
            lines = _from_search(lines, search, criterion, est)
        elif criterion == "aic":
            for line, stages in zip(lines.values(), path if by_class else [path]):
                line.criterion = np.array([-2 * s.log_likelihood + 2 * s.n_free for s in stages])
        return cls(lines, criterion)

    def size(self) -> tuple[float, float]:
        return 4.4 + beside_width([*self.lines, "chosen"]), 3.8

    def plot(self, ax: Any = None, *, quantity: str = "criterion") -> Self:
        """Draw a line for each class, or for all rows.

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
            x = line.n_components + dodge(i, n)  # so that classes with a single stage do not overlap
            ax.plot(x, values, label=name, zorder=2, **style)
            chosen = line.n_components == line.chosen
            ring = RING | ({"mec": color(i), "ms": 10} if n > 1 else {})
            ax.plot(x[chosen], values[chosen], **ring)
        ax.plot([], [], label="chosen", **RING)
        label = {
            "criterion": criterion_label(self.criterion, " − minimum of the class" if from_best else ""),
            "log_likelihood": "Log-likelihood per row (nats)",
            "evaluations": "Cumulative density evaluations\n(passes × rows × components)",
        }[quantity]
        ax.set(xlabel="Number of components", ylabel=label)
        if quantity == "evaluations":
            ax.set_ylim(bottom=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, n + 1, beside=True)
        tidy(ax)


def _line(stages: list, chosen: int) -> Line:
    """Return the line of a path, with BIC as the criterion."""
    log_lik, n_free = np.array([s.log_likelihood for s in stages]), np.array([s.n_free for s in stages])
    rows = next((s.fitted.statistics.counts.sum() for s in stages if s.fitted.statistics is not None), np.nan)
    return Line(
        np.array([s.n_components for s in stages]),
        -2 * log_lik + n_free * np.log(rows),
        log_lik / rows,
        np.cumsum([s.evaluations for s in stages]),
        chosen,
        float(rows),
    )


def _from_search(lines: dict[str, Line], search: list[dict], criterion: str, est: Any) -> dict[str, Line]:
    """Set the criterion from the entries of a search, for each class or for all classes together."""
    if not any(criterion in entry for entry in search):
        raise ValueError(
            f'the search has no {criterion}; fit with n_components="auto" and search={criterion!r}, '
            'or use criterion="bic" or "aic"'
        )
    by_class = "class" in search[0]
    names = np.atleast_1d(est.covariance_).tolist()
    if len(lines) > 1 and not by_class:
        lines = {"all classes": _sum(list(lines.values()))}
    out = {}
    for i, (name, line) in enumerate(lines.items()):
        values = {
            entry["n_components"]: entry[criterion]
            for entry in search
            if entry["covariance"] == names[i if by_class else 0]
            and not isinstance(entry["n_components"], list)
            and (not by_class or entry["class"] == est.classes_.tolist()[i])
        }
        line.criterion = np.array([values.get(int(k), np.nan) for k in line.n_components], dtype=float)
        out[name] = line
    return out


def _sum(lines: list[Line]) -> Line:
    """Return the sum over all classes; a class whose growth has ended keeps its last value."""
    longest = max(lines, key=lambda line: len(line.n_components))
    stage = [np.minimum(np.arange(len(longest.n_components)), len(line.n_components) - 1) for line in lines]
    rows = sum(line.rows for line in lines)
    log_lik = np.sum([line.rows * line.log_likelihood[i] for line, i in zip(lines, stage)], axis=0) / rows
    evaluations = np.sum([line.evaluations[i] for line, i in zip(lines, stage)], axis=0)
    undefined = np.full(len(log_lik), np.nan)
    return Line(longest.n_components, undefined, log_lik, evaluations, max(line.chosen for line in lines), rows)
