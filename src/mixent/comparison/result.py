"""The result of a comparison: scores, tests and the recommendation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mixent.base.document import Bullets, Content, Paragraph
from mixent.base.multiple_tests import adjusted_p_values, homogeneous_groups
from mixent.base.params import check_choice
from mixent.base.recipes import Shape
from mixent.base.result import Records, Result, as_table
from mixent.comparison.candidates import Candidate
from mixent.comparison.estimate import ALPHA, Estimate, against_best
from mixent.comparison.recommendation import Recommendation
from mixent.evaluate.paired import TTest
from mixent.evaluate.paired_rows import RowTest
from mixent.evaluate.records import CrossValidation, check_asked
from mixent.evaluate.row_losses import paired_test
from mixent.evaluate.scores import COMPARED


@dataclass(frozen=True, repr=False)
class Comparison(Result):
    """Comparison of methods on one table; `str()` is a table of scores and the recommendation.

    Attributes
    ----------
    cv : CrossValidation
        Records of every method, repeat and fold, and out-of-fold probabilities, on the rows and folds on which the
        methods are compared. A method that was stopped early, or failed in a fold, has fewer records and no rank.
    candidates : dict of name -> Candidate
        The methods that were tried.
    skipped : dict of name -> str
        The methods that were left out or stopped early, with the reasons.
    shape : Shape
    problems : list of str
        Problems in the data; see `data_problems`.
    metric : str
        What the recommendation is based on.
    recommendation : Recommendation
        The method with the lowest mean of `metric`, and the evidence for it.
    estimate : Estimate
        Its score, corrected for selection.
    winner : estimator or None
        The recommended method, fitted to all rows.
    fingerprint : str
        Changes with any cell, label, weight or fold.
    data : tuple
        X, y and sample_weight as given, for the report.
    trials : list of dict
        Records of further fits within a budget, on samples of the rows (`sample` training rows) or in folds that too
        few methods finished.
    options : dict
        The arguments of `compare`: folds, repeats, random_state, metric, budget, methods ("own" for a dict), baselines,
        categorical.
    """

    _title = "Comparison of methods"

    cv: CrossValidation
    candidates: dict[str, Candidate]
    skipped: dict[str, str]
    shape: Shape
    problems: list[str]
    metric: str
    recommendation: Recommendation
    estimate: Estimate
    winner: Any = None
    fingerprint: str = ""
    data: tuple = field(default=(), repr=False)
    trials: list[dict[str, Any]] = field(default_factory=list, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def recommended(self) -> str:
        """Name of the recommended method."""
        return self.recommendation.method

    @property
    def skipped_notes(self) -> list[str]:
        """A sentence on each method that was stopped early or left out."""
        return [
            f"Stopped early: {name}{reason.removeprefix('stopped')}."
            if reason.startswith("stopped")
            else f"Left out: {name}: {reason}."
            for name, reason in self.skipped.items()
        ]

    def ranking(self, metric: str | None = None) -> list[str]:
        """Methods that worked in every fold, the best first."""
        return self.cv.ranking(check_choice("metric", metric or self.metric, COMPARED))

    def means(self) -> list[dict[str, Any]]:
        """One dict per method: method, kind, and mean and sd over the folds of every score, the best first."""
        means: dict[str, dict[str, Any]] = {
            m: {"method": m, "kind": self.candidates[m].kind} for m in [*self.ranking(), *self.cv.methods]
        }
        for entry in self.cv.means():
            means[entry["method"]] |= {entry["metric"]: entry["mean"], f"{entry['metric']}_sd": entry["sd"]}
        return list(means.values())

    def frame(self) -> Any:
        """The scores as a pandas DataFrame, a row for each method: its kind, and mean and sd of every score."""
        return Records(self.means()).frame().set_index("method")

    def best(self, *, from_mixent: bool, metric: str | None = None) -> str | None:
        """The best method of mixent, or the best of all others; None if there is none."""
        return next((m for m in self.ranking(metric) if self.candidates[m].from_mixent == from_mixent), None)

    def test(self, a: str, b: str, metric: str | None = None) -> RowTest | TTest:
        """Paired t test of two methods on the rows that both predicted; `str()` states the result.

        See `mixent.evaluate.row_t_test`. The calibration error, which is not a mean over rows, is tested on the folds.
        """
        metric = check_choice("metric", metric or self.metric, COMPARED)
        for name in (a, b):
            check_asked(name, self.cv.methods, metric, COMPARED)
        test = paired_test(self.cv, a, b, metric)
        if test is None:
            raise ValueError(f"{a!r} and {b!r} have no folds in common in which both finished; choose other methods")
        return test

    def tests(self, metric: str | None = None) -> Any:
        """Paired t test of every method against the best, as a table.

        A pandas DataFrame, or a list of records without pandas: method, mean difference, low, high, p_value, adjusted
        (Holm's adjustment for all methods that were begun) and significant. Methods that were stopped, or failed in
        some folds, are tested on the rows that they share with the best.
        """
        metric = metric or self.metric
        begun = [record["method"] for record in self.trials]
        tests = against_best(self.cv, self.ranking(metric)[0], metric, begun)
        records = [
            {
                "method": name,
                "mean": test.mean,
                "low": test.interval[0],
                "high": test.interval[1],
                "p_value": test.p_value,
                "adjusted": adjusted,
                "significant": adjusted < ALPHA,
            }
            for name, (test, adjusted) in tests.items()
        ]
        return as_table(records, index="method")

    def groups(self, metric: str | None = None) -> list[list[str]]:
        """Maximal groups of methods, in order of their means, without significantly different pairs (Holm)."""
        order = self.ranking(metric)
        adjusted = adjusted_p_values(order, lambda a, b: self.test(a, b, metric).p_value)
        return [[order[i] for i in run] for run in homogeneous_groups(adjusted, ALPHA)]

    def report(self, path: Any, *, title: str | None = None, commands: str = "") -> Path:
        """Write the comparison as one HTML file and return its path."""
        from importlib import import_module  # the layer above

        write = import_module("mixent.report").comparison_report
        return write(path, self, title=title or "Comparison of classifiers", commands=commands)

    def _brief(self) -> str:
        score = float(self.cv.values(self.recommended, self.metric).mean())
        return f"{len(self.cv.methods)} methods, recommended={self.recommended!r}, {self.metric}={score:.4g}"

    def _content(self) -> list[Content]:
        lead = Paragraph(self.recommendation.headline, lead=True)
        notes = [Bullets(self.skipped_notes)] if self.skipped else []
        return [lead, Bullets(self.recommendation.points), *self.cv._content(), *notes]

    def __str__(self) -> str:
        own = [name for name in self.candidates if self.candidates[name].from_mixent and name in self.cv.methods]
        methods = f"Methods of mixent: {', '.join(own) or 'none'}."
        return "\n".join([str(self.cv), "", methods, *self.skipped_notes, "", str(self.recommendation)])
