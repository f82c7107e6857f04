"""Base class of conditional maximum entropy models: solving, optimality certificate, prediction, explanation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.convergence import FittedByRun, warn_unconverged
from mixent.base.explanation import EXACT, Explanation, Rivals
from mixent.base.params import check_choice, check_count, check_positive
from mixent.base.priors import LEAST, floored
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array
from mixent.core.driver import Stop
from mixent.data import Table
from mixent.maxent.blocks import Rows
from mixent.maxent.constraints import (
    Constraints,
    explain_columns,
    feature_strengths,
    mean_logits,
    read_constraints,
)
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout, cell_variances
from mixent.maxent.prior import Features, VarianceChoice, choose_variance, read_variance
from mixent.maxent.problem import Multipliers
from mixent.maxent.row_values import ColumnParts
from mixent.maxent.solvers import SOLVERS, Solved, Sums, solve, total_at
from mixent.maxent.terms import n_free
from mixent.warn import warn

CHUNK = 65536  # rows predicted at a time
CERTAIN = 1e-3  # nats per row: without a prior, a log-loss below this converges to zero


class EntropyModel(FittedByRun, ProbabilisticClassifier):
    """A conditional maximum entropy model of the features that its `layout_` computes from a table.

    A subclass has the parameters prior_variance, solver, cv, tol and max_iter, and defines `_read(X) -> Table`.
    """

    layout_: Layout
    params_: Multipliers
    prior_variances_tried_ = RecordsAttribute()
    _explained_by = "column"
    _absent_value = "missing"

    def _read(self, X: Any) -> Table:
        raise AttributeError(f"{type(self).__name__} must define _read")

    def _check_solving(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        read_variance(self.prior_variance)

    def _learn(self, plan: Features, rows: Training, executor: Any, show: Any) -> Solved:
        """Choose the variance of the prior if prior_variance="auto", solve, and store the optimum."""
        choice = None
        if isinstance(self.prior_variance, str):
            choice = choose_variance(plan, rows, self._prior_folds(), executor, show)
        variance = self.prior_variance if choice is None else choice.variance
        self.prior_variance_ = None if variance is None else float(variance)
        self.prior_variances_tried_ = [] if choice is None else choice.tried
        self.layout_ = plan.layout(rows)
        pair_variance = None if choice is None else self._extend(choice, rows, executor, show)
        solved, sums = self._solve(self.layout_, rows, self.prior_variance_, pair_variance, executor, show)
        self._store(solved, sums, executor)
        return solved

    def _extend(self, choice: VarianceChoice, rows: Training, executor: Any, show: Any) -> float | None:
        """Extend the layout by terms that cross-validation finds; their prior variance if it has found any."""
        return None

    def _prior_folds(self) -> Any:
        """Folds that choose the variance if prior_variance="auto"."""
        return self.cv

    def _solve(
        self,
        layout: Layout,
        rows: Training,
        variance: float | None,
        pair_variance: float | None,
        executor: Any,
        show: Any,
    ) -> tuple[Solved, Sums]:
        all_rows = layout.rows(rows.table, rows.target, rows.weight)
        sums = Sums.of(layout.cells, all_rows, executor, gram=self.solver != "iis")
        cell_variance = cell_variances(layout, all_rows, variance, pair_variance)
        certified = self.solver in (
            "bohning",
            "iis",
        )  # otherwise the gain of the last step is the better criterion
        stop = Stop(-np.inf, self.max_iter, gain=self.tol) if certified else Stop(self.tol, self.max_iter)
        mask = layout.mask(len(rows.classes))
        return solve(layout.cells, sums, cell_variance, self.solver, stop, executor, mask, show=show), sums

    def _store(self, solved: Solved, sums: Sums, executor: Any) -> None:
        """Store the optimum and its expectations over the training rows."""
        problem, params, source = solved.problem, solved.run.params, sums.source
        self.params_, self.run_ = params, replace(solved.run, last=None)
        self.gap_, self.gain_, self.residual_ = solved.gap, solved.gain, solved.residual
        self.class_prior_ = problem.truth[0] / problem.truth[0].sum()
        self.truth_ = problem.truth / problem.total_weight
        self.expected_ = total_at(problem, params, source, executor).total / problem.total_weight
        log_post = problem.log_posterior(params, source.rows)
        self.entropy_ = -float((np.exp(log_post) * log_post * source.rows.weight).sum()) / source.total_weight
        cell_means = problem.cells.expected(source.rows.weight[None], source.rows)[:, 0] / problem.total_weight
        self.mean_logits_ = mean_logits(self.layout_, params, cell_means)
        self.strengths_ = feature_strengths(self.layout_, params, self.mean_logits_, source, executor)

    def _warn(self, solved: Solved) -> None:
        """Warn if the solver has not converged, or if there is no finite optimum."""
        warn_unconverged(solved.run, type(self).__name__)
        if self.prior_variance is not None:
            return
        never = (self.truth_[1:] == 0) & (self.truth_[1:].sum(axis=1, keepdims=True) > 0)
        if solved.problem.mask is not None:
            never &= solved.problem.mask > 0
        table = self.constraint_table()
        if never.any():
            s, c = np.argwhere(never)[0]
            warn(
                f"prior_variance=None: {never.sum()} multipliers have no finite optimum, because a value never occurs "
                f"with a class ({table.features[s]} = {table.values[s]} with {self.classes_[c]}); set "
                "prior_variance='auto' or a number",
                ConvergenceWarning,
            )
        elif -solved.run.objective < CERTAIN * solved.problem.total_weight:
            warn(
                "prior_variance=None: the classes look separable, and the multipliers grow without bound; set "
                "prior_variance='auto' or a number",
                ConvergenceWarning,
            )

    def _set_class_prior(self, prior: Array) -> None:
        prior = floored(prior)
        shift = np.log(prior) - np.log(np.maximum(self.class_prior_, LEAST))
        self.params_ = replace(self.params_, bias=self.params_.bias + shift)
        self.class_prior_ = prior

    def _rows(self, table: Table) -> Rows:
        return self.layout_.rows(table, np.zeros((table.n_rows, len(self.classes_))), None)

    def _each(self, table: Table) -> Iterator[tuple[slice, Rows]]:
        """The rows in chunks, to limit memory."""
        for start in range(0, table.n_rows, CHUNK):
            rows = slice(start, start + CHUNK)
            yield rows, self._rows(table.take(rows))

    def _log_joint(self, X: Any) -> Array:
        return self._logits(self._read(X))

    def _logits(self, table: Table) -> Array:
        """(n, C)."""
        out = np.empty((table.n_rows, len(self.classes_)))
        for where, rows in self._each(table):
            out[where] = self.layout_.cells.logits(self.params_.cells, rows).T
        return out + self.params_.bias

    def _contributions(self, table: Table, rows: Rows) -> Array:
        """(terms, C, n) contributions of the features to the logits."""
        return self.layout_.term_logits(self.params_.cells, rows)

    @property
    def feature_terms_(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(term.name for term in self.layout_.terms)

    @property
    def n_parameters_(self) -> int:
        """Number of identifiable multipliers; one observed value of each feature and one class are the reference."""
        observed = np.abs(self.truth_[1:]).sum(axis=1) > 0
        C, layout = len(self.classes_), self.layout_
        return C - 1 + sum(n_free(term, observed[span], C) for term, span in zip(layout.terms, layout.spans))

    def constraint_table(self) -> Constraints:
        """The constraints of all features: the probability in the data and in the model, and the multiplier.

        Returns
        -------
        Constraints
            `frame()` returns a DataFrame, `residuals` the differences, `strength` the strength of each feature.
        """
        check_is_fitted(self)
        return read_constraints(
            self.layout_, self.classes_, self.truth_[1:], self.expected_[1:], self.params_, self.strengths_
        )

    def explain(self, X: Any, label: Any = None, rival: Any = None) -> Explanation:
        """Contribution of each feature to the log-odds of one class against another.

        Parameters
        ----------
        X : table of n rows
        label : class label, optional
            The class to explain (default: the most probable class of each row).
        rival : class label, optional
            The class it is compared with (default: the most probable other class of each row).

        Returns
        -------
        Explanation
            The log-odds in nats and its parts, which add up exactly: the log-odds of the average training row, and the
            contribution of each feature relative to that row; the features of one column, such as the parts of a date,
            have one contribution together. A missing value contributes too: relative to the average
            row, that a value is missing is evidence.
        """
        table = self._read(X)
        rivals = Rivals.of(self._logits(table), self.classes_, label, rival, X)
        ours, theirs = rivals.ours, rivals.theirs
        parts = np.empty((table.n_rows, len(self.layout_.terms)))
        for where, rows in self._each(table):
            logits = self._contributions(table.take(where), rows)
            parts[where] = explain_columns(logits, ours[where], theirs[where])
        mean = (self.mean_logits_[:, ours] - self.mean_logits_[:, theirs]).T  # (n, terms)
        average = self.params_.bias[ours] - self.params_.bias[theirs] + mean.sum(axis=1)
        columns = ColumnParts.of(self.layout_.terms, table.schema)
        values = partial(columns.values, self.layout_.terms, table, self._absent_value)
        terms = average, (parts - mean) @ columns.of_terms, columns.names
        return rivals.explanation(*terms, self._explained_by, "average row", EXACT, values)
