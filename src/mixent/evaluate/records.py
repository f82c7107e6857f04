"""Results that are a list of records, one for each fit: what is common to reading them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.params import check_choice
from mixent.base.result import Records, Result
from mixent.base.text import count, ordinal
from mixent.evaluate.scores import COMPARED, HIGHER, SCALES, as_loss

TIMED = (*COMPARED, "fit_seconds", "predict_seconds")
SHOWN = ("error", "log_loss", "brier", "calibration", "fit_seconds")  # in the short table


class Recorded:
    """Records with the keys method and failed (None, or the error), and a number for every metric."""

    records: list[dict[str, Any]]

    @property
    def failures(self) -> dict[str, str]:
        """First error of every method that failed somewhere."""
        failures: dict[str, str] = {}
        for record in self.records:
            if record["failed"]:
                failures.setdefault(record["method"], record["failed"])
        return failures

    def check_some_worked(self, what: str) -> None:
        """Refuse a result in which every method failed everywhere.

        Parameters
        ----------
        what : str
            Where they failed, such as "fold".
        """
        if all(record["failed"] for record in self.records):
            text = "; ".join(f"{name}: {message}" for name, message in self.failures.items())
            raise RuntimeError(f"every method failed {what}. {text}")

    def _column(self, method: str, metric: str) -> np.ndarray:
        """The metric of a method, in the order of the records."""
        return np.array([record[metric] for record in self.records if record["method"] == method])


@dataclass(frozen=True, repr=False)
class CrossValidation(Result, Recorded):
    """Scores of several methods in every fold of a cross-validation; `str()` is a table.

    `records` has one dict per method, repeat and fold: method, repeat, fold, n_train and n_test (rows with a label),
    the scores, fit_seconds, predict_seconds, labelled_only (the method could not use rows without a label) and failed
    (None, or the error).
    """

    _title = "Cross-validation"

    records: list[dict[str, Any]]
    proba: dict[str, np.ndarray]  # method: (n, C) out-of-fold probabilities of the first repeat; NaN where never scored
    classes: np.ndarray  # (C,)
    y: np.ndarray  # (n,) labels, None where absent
    folds: np.ndarray  # (repeats, n) the fold that scores each row; -1 = always in training, never scored
    sample_weight: np.ndarray | None = None
    random_state: Any = None  # as given
    groups: np.ndarray | None = None  # (n,) rows with the same value are not independent of each other
    n_planned: int | None = None  # folds of all repeats that were planned, where a time budget ended before; None: all

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(dict.fromkeys(record["method"] for record in self.records))

    @property
    def _places(self) -> list[tuple[int, int]]:
        """Repeats and folds that were run."""
        return sorted({(record["repeat"], record["fold"]) for record in self.records})

    def values(self, method: str, metric: str) -> np.ndarray:
        """The metric of a method in every repeat and fold; NaN where it failed or was not run.

        The AUC leaves out folds in which it is not defined because all test rows are of one class.
        """
        places = self._places
        if metric in HIGHER:  # it is not defined in a fold whose test rows are of one class
            places = sorted({(r["repeat"], r["fold"]) for r in self.records if np.isfinite(r.get(metric, np.nan))})
        mine = {(r["repeat"], r["fold"]): r.get(metric, np.nan) for r in self.records if r["method"] == method}
        return np.array([mine.get(place, np.nan) for place in places])

    def label(self, method: str) -> str:
        """The name of a method, with the number of folds where it has a score in some of them only."""
        scored = np.isfinite(self.values(method, "log_loss"))
        total = self.n_planned or len(scored)
        return method if scored.all() else f"{method} ({scored.sum()} of {count(total, 'fold')})"

    def means(self) -> list[dict[str, Any]]:
        """One dict per method and metric: method, metric, mean and sd over the folds without an error, folds."""
        rows = []
        for method in self.methods:
            for metric in TIMED:
                values = self.values(method, metric)
                values = values[np.isfinite(values)]
                mean = float(values.mean()) if len(values) else float("nan")
                sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
                rows.append({"method": method, "metric": metric, "mean": mean, "sd": sd, "folds": len(values)})
        return rows

    @property
    def design(self) -> str:
        """How rows were held out, in words; a time budget may leave one part of them."""
        repeats, folds = len(self.folds), int(self.folds.max()) + 1
        if self.n_planned is not None:
            n_run = len(self._places)
            ended = f"the time budget ended before {ordinal(n_run + 1)} was complete"
            return f"{n_run} of the {self.n_planned} folds of cross-validation ({ended})"
        if folds == 1:
            return f"one held-out part of {count(int((self.folds[0] == 0).sum()), 'row')}"
        return f"{folds}-fold cross-validation" + (f", repeated {repeats} times" if repeats > 1 else "")

    def ranking(self, metric: str = "log_loss") -> list[str]:
        """Methods that worked in every fold, the best first: that of the lowest mean (of the highest, for the AUC)."""
        means = {method: _mean(as_loss(self.values(method, metric), metric)) for method in self.methods}
        return sorted((m for m in means if np.isfinite(means[m])), key=lambda m: means[m])

    def frame(self) -> Any:
        """The scores as a pandas DataFrame: a row for each method and metric, with mean, sd and number of folds."""
        return Records(self.means()).frame()

    def _brief(self) -> str:
        repeats, folds = len(self.folds), int(self.folds.max()) + 1
        part = "" if self.n_planned is None else f"{len(self._places)} of "
        run = part + count(self.n_planned or folds, "fold")
        return ", ".join([count(len(self.methods), "method"), run, count(repeats, "repeat"), count(len(self.y), "row")])

    def _content(self) -> list[Content]:
        means = {(s["method"], s["metric"]): s["mean"] for s in self.means()}
        rows: list[list[Any]] = [
            [self.label(method), *(_number(means[method, m], m) for m in SHOWN)] for method in self._ordered()
        ]
        header = ["method", "error (%)", "log-loss", "Brier score", "calibration error (%)", "seconds per fit"]
        return [Table(f"Means over {self._brief().split(', ', 1)[1]}, the best first", header, rows)]

    def _ordered(self) -> list[str]:
        """All methods, the best first, those that failed last."""
        return [*self.ranking(), *(m for m in self.methods if m not in self.ranking())]

    def __str__(self) -> str:
        """Means over the folds, the best first."""
        means = {(s["method"], s["metric"]): s["mean"] for s in self.means()}
        lines = ["method                       error %  log-loss     Brier  calib. %     fit s"]
        for method in self._ordered():
            values = {metric: means[method, metric] for metric in SHOWN}
            cells = [SCALES[metric].text(v) if np.isfinite(v) else "failed" for metric, v in values.items()]
            lines.append(f"{self.label(method):<26}" + "".join(f"{cell:>10}" for cell in cells))
        return "\n".join(lines)

    def difference(self, a: str, b: str, metric: str = "log_loss") -> dict[str, float]:
        """Mean of metric(a) - metric(b) over the folds that both finished, its standard error and two-sided p-value.

        A metric that is a mean over rows is tested on the rows, see `row_t_test`; any other on the folds, see
        `corrected_t_test`.
        """
        from mixent.evaluate.row_losses import paired_test  # which cross-validates itself

        for name in (a, b):
            check_asked(name, self.methods, metric, TIMED)
        test = paired_test(self, a, b, metric)
        if test is None:
            gap = self.values(a, metric) - self.values(b, metric)
            gap = gap[np.isfinite(gap)]
            mean = float(gap.mean()) if len(gap) else float("nan")
            return {"mean": mean, "se": float("nan"), "p_value": float("nan")}
        return {"mean": test.mean, "se": test.std_error, "p_value": test.p_value}


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _number(value: float, metric: str) -> Number:
    return Number(SCALES[metric].text(value) if np.isfinite(value) else "failed")


def check_asked(method: str, methods: list[str], metric: str, metrics: tuple[str, ...]) -> None:
    """Refuse an unknown method or metric."""
    if method not in methods:
        raise ValueError(f"unknown method {method!r}; choose one of {', '.join(map(repr, methods))}")
    check_choice("metric", metric, metrics)
