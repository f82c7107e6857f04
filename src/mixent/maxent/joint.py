"""One model from which any column, or any two, is predicted from the rest."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import IGNORED, NOTHING, YES, able, yes
from mixent.base.convergence import FittedByRun, warn_unconverged
from mixent.base.executors import choose_executor
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_positive
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.driver import Run, Status, Stop
from mixent.core.executors import Serial
from mixent.core.observers import ShowProgress
from mixent.data import (
    Schema,
    Table,
    check_spread,
    integers_back,
    listed,
    read_features,
    read_weights,
    to_frame,
    with_missing_columns,
)
from mixent.maxent.joint_inference import ColumnScore, RowInference, score_column
from mixent.maxent.joint_prior import choose_variance
from mixent.maxent.joint_problem import SOLVERS, UNBOUNDED, JointProblem, Pairwise, RowBlocks, pose, solve
from mixent.maxent.joint_terms import Layout, Term, read_terms
from mixent.maxent.prior import read_variance

CHUNK = 4096  # rows answered at a time
WIDEST = 4000  # values of all columns


class MaxEntJoint(FittedByRun, Estimator):
    """One maximum entropy model of a whole table: any column, or any two, is predicted from the rest.

    Maximizes  sum_n w_n sum_m log P[F_m = f_nm | all other columns of row n] - |Gamma|^2 / (2 prior_variance),
    Besag's pseudo-likelihood of the pairwise model  P[f] prop. to exp(sum_m b(f_m) + sum_{m<k} Gamma(f_m, f_k)), the
    joint distribution of highest entropy with given pmfs of all pairs of columns. It is concave, each step is kept only
    if it does not lower it, and iterative scaling provably raises it: this value never falls.

    A continuous column stands in the model as the hidden component of its mixture, P[M = j | a], a probabilistic
    instance. A missing value drops out of the sums.

    Parameters
    ----------
    max_components : int
        Most components of the mixture of a continuous column; BIC chooses among 1 to this. One or two are cut into
        three or four parts, which locate a value better.
    prior_variance : "auto", float or None
        Variance of the Gaussian prior on the multipliers of pairs. "auto" takes the one of 0.03 to 10 that predicts
        rows held out best. None: no prior; multipliers of pairs of values that never occur together then have no
        optimum.
    solver : "lbfgs" or "iis"
        L-BFGS, or improved iterative scaling with extrapolation. The optimum is the same, but the steps of scaling are
        short: give it a tol a hundred times smaller.
    tol : float
        Stop when a pass gains less than this per row, in nats.
    max_iter : int
        Most passes over the data.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        Of the starts of the mixtures and of the rows held out.
    n_jobs : int or None
        Threads; None takes all cores. The number changes no bit of the result.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    params_ : Pairwise
        Multipliers: `single` (S,) of the cells, `pairs` (S, S) of two cells of unlike columns.
    terms_ : tuple
        What stands for each column: Category, Hidden or Constant.
    shares_ : (S,) array
        Share of each cell within its column, in training.
    prior_variance_ : float or None
        The variance used.
    run_ : Run
        How the search went: `status`, `trace`, `objective`.

    Examples
    --------
    >>> from mixent.maxent.joint import MaxEntJoint
    >>> X = [["rain", "wet", "cold"], ["rain", "wet", "mild"], ["sun", "dry", "warm"], ["sun", "dry", "mild"]] * 5
    >>> model = MaxEntJoint(prior_variance=1.0).fit(X)
    >>> model.predict([["sun", None, "warm"]], target=1).tolist()
    ['dry']
    >>> model.predict([["rain", None, None]], target=(1, 2))[0, 0]
    'wet'
    """

    schema_: Schema
    params_: Pairwise
    terms_: tuple[Term, ...]
    shares_: Array
    prior_variance_: float | None
    run_: Run

    def __init__(
        self,
        max_components: int = 6,
        *,
        prior_variance: str | float | None = "auto",
        solver: str = "lbfgs",
        tol: float = 1e-5,
        max_iter: int = 1000,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.max_components = max_components
        self.prior_variance = prior_variance
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="a missing value drops out of the row's sums; `impute` fills it",
            weights=YES,
            soft_labels=IGNORED,
            absent_labels=IGNORED,
            multiclass="any column, of any number of values, is predicted from the others",
            mixed=YES,
            explanations=NOTHING,
            density=yes("pseudo-likelihood of values, or of parts of their range: blind to how far out a number lies"),
            imputation=YES,
            shifted_priors=NOTHING,
            saved=YES,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. A class, where there is
            one, is a column like any other.
        y : ignored
        sample_weight : (n,) array, optional
            Counts: a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        weight = read_weights(sample_weight, table.n_rows)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        terms = read_terms(table, weight, self.max_components, seed)
        layout = Layout(terms)
        _check_width(layout)
        rows = layout.rows(table, weight)
        if weight is not None and not weight.all():
            rows = rows.part(weight > 0)
        rows = rows.distinct()
        with (
            progress_bar(self.progress, "joint model") as show,
            choose_executor(self.n_jobs, rows.n_rows, len(rows.phi)) as executor,
        ):
            variance = read_variance(self.prior_variance)
            if isinstance(variance, str):
                variance = choose_variance(rows, layout.sizes, seed, executor, show)
            source = RowBlocks(rows)
            problem = pose(source, layout.sizes, variance, executor)
            observers = [] if show is None else [ShowProgress(show, self.max_iter)]
            stop = Stop(self.tol, self.max_iter)
            done = solve(problem, source, self.solver, stop, executor, observers=observers)
        self.schema_, self.terms_, self.prior_variance_ = table.schema, terms, variance
        self.params_, self.shares_, self.run_ = done.params, problem.shares, replace(done, last=None)
        if variance is None and _warn_unattested(problem):
            self.run_ = replace(self.run_, message=UNBOUNDED) if done.status is Status.CONVERGED else self.run_
        warn_unconverged(done, type(self).__name__)
        return self

    def _check(self) -> None:
        check_count("max_components", self.max_components)
        check_choice("solver", self.solver, SOLVERS)
        check_positive("tol", self.tol, zero=True)
        check_count("max_iter", self.max_iter)
        read_variance(self.prior_variance)

    @property
    def n_parameters_(self) -> int:
        """Identifiable multipliers: of values less one of each column, and of pairs of such."""
        free = [len(term.values) - 1 for term in self.terms_]
        return sum(free) + (sum(free) ** 2 - sum(r * r for r in free)) // 2

    def values(self, target: Any = None) -> np.ndarray:
        """What `predict_proba` gives probabilities of.

        Parameters
        ----------
        target : column name or position, optional
            The last column by default.

        Returns
        -------
        (values,) array: categories, or the means of a continuous column's components.
        """
        check_is_fitted(self)
        return np.array(self.terms_[self._column(target)].values)

    def predict_proba(self, X: Any, target: Any = None) -> Array:
        """Probabilities of a column's values, or of two columns' pairs of values, given the rest of each row.

        Parameters
        ----------
        X : table of n rows
            All columns; what stands in the target's is ignored, and a DataFrame may lack it. Other missing values
            drop out; where there are many, `impute`, which fills them together with the target, errs less.
        target : column name or position, or two of them, optional
            The last column by default.

        Returns
        -------
        (n, values) array; (n, values of the first, values of the second) for a pair. See `values`. Where nothing else
        in the row is known, a column has its shares in training.
        """
        check_is_fitted(self)
        columns = self._target(target)
        table = self._read(X, absent=columns)
        parts = self._each(table, lambda answers, _: answers.about(*columns))
        return np.moveaxis(np.concatenate(parts, axis=-1), -1, 0)

    def predict(self, X: Any, target: Any = None) -> np.ndarray:
        """The most probable value of a column given the rest of each row; the expected value of a continuous one.

        Parameters
        ----------
        X : table of n rows
            All columns; what stands in the target's is ignored, and a DataFrame may lack it.
        target : column name or position, or two of them, optional
            The last column by default.

        Returns
        -------
        (n,) array; for a pair (n, 2) of object, the most probable pair of what `values` lists.
        """
        proba, columns = self.predict_proba(X, target), self._target(target)
        lists = [np.array(self.terms_[j].values) for j in columns]
        if len(columns) == 1:
            return lists[0][proba.argmax(axis=1)] if self.terms_[columns[0]].discrete else proba @ lists[0]
        cells = np.unravel_index(proba.reshape(len(proba), -1).argmax(axis=1), proba.shape[1:])
        return np.stack([values[cell].astype(object) for values, cell in zip(lists, cells)], axis=1)

    def impute(self, X: Any) -> Any:
        """Fill every missing value with its most probable value, or its expected value in a continuous column.

        Several missing values in a row are filled together: each is predicted from the pmfs of the others until they
        agree (mean field). Observed cells are returned unchanged; missing values of integer columns are filled with
        whole numbers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        A pandas DataFrame when X was any DataFrame or has categories, otherwise an array.
        """
        table = self._read(X)
        filled, codes = table.X.copy(), None if table.codes is None else table.codes.copy()
        guesses = self._each(table, lambda answers, _: _filled(answers, self.terms_))
        for j, term in enumerate(self.terms_):
            guess = np.concatenate([part[j] for part in guesses])
            if not term.discrete:
                np.copyto(filled[:, term.place], guess, where=np.isnan(table.X[:, term.place]))
            elif codes is not None:
                np.copyto(codes[:, term.place], guess, where=codes[:, term.place] < 0)
        if codes is None and not hasattr(X, "columns"):
            return integers_back(self.schema_, filled)
        return to_frame(self.schema_, filled, codes)

    def score_samples(self, X: Any) -> Array:
        """Pseudo-log-likelihood of each row, in nats: the sum over its known columns of log P[column | rest].

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array.
        """
        return np.concatenate(self._each(self._read(X), lambda answers, _: answers.log_lik()))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean pseudo-log-likelihood per row, in nats.

        Parameters
        ----------
        X : table of n rows
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def accuracy_by_column(self, X: Any) -> dict[str, ColumnScore]:
        """How well each column is predicted from all others.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        dict of column name -> ColumnScore; columns without a known value in X are left out.
        """
        table = self._read(X)
        everything = range(len(self.terms_))
        parts = self._each(table, lambda answers, _: [answers.about(j) for j in everything])
        pmfs = [np.concatenate(part, axis=1) for part in zip(*parts)]
        scores = {term.name: score_column(term, pmf, table) for term, pmf in zip(self.terms_, pmfs)}
        return {name: score for name, score in scores.items() if score.n_rows}

    def errors_by_pair(self, X: Any) -> dict[tuple[str, str], float]:
        """Share of the rows in which two discrete columns, predicted together from all others, are not both right.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        dict of (column name, column name) -> error, over the rows in which both are known.
        """
        counts = self._each(self._read(X), lambda answers, part: answers.count_pairs(self.terms_, part))
        names = self.schema_.names
        found = {}
        for (j, k), parts in zip(counts[0], zip(*(part.values() for part in counts))):
            wrong, known = np.sum(parts, axis=0).tolist()
            if known:
                found[names[j], names[k]] = wrong / known
        return found

    def _read(self, X: Any, absent: tuple[int, ...] = ()) -> Table:
        """The rows; columns `absent` may be missing from a DataFrame."""
        check_is_fitted(self)
        if absent and self.schema_.named:
            X = with_missing_columns(X, [self.schema_.names[j] for j in absent], self.schema_.names)
        return read_features(self, X, reset=False)

    def _each(self, table: Table, function: Callable[[RowInference, Table], Any]) -> list:
        """Predictions for some rows at a time."""
        layout, found = Layout(self.terms_), []
        with Serial():
            for start in range(0, table.n_rows, CHUNK):
                rows = slice(start, start + CHUNK)
                part = table.take(rows)
                answers = RowInference(self.params_, self.shares_, layout.spans, layout.rows(part))
                found.append(function(answers, part))
        return found

    def _target(self, target: Any) -> tuple[int, ...]:
        """Positions of the target column, or of both."""
        if not isinstance(target, (tuple, list)):
            return (self._column(target),)
        if len(target) != 2 or self._column(target[0]) == self._column(target[1]):
            raise ValueError(f"target must be one column or two different ones; got {target!r}")
        return self._column(target[0]), self._column(target[1])

    def _column(self, target: Any) -> int:
        names = self.schema_.names
        if target is None:
            return len(names) - 1
        whole = isinstance(target, (int, np.integer)) and not isinstance(target, bool)
        if whole and -len(names) <= target < len(names):
            return int(target) % len(names)
        if isinstance(target, str) and target in names:
            return names.index(target)
        raise ValueError(f"target names a column {target!r} the model does not have; its columns are {listed(names)}")


def _check_width(layout: Layout) -> None:
    """Every two values have a multiplier: are they still few enough?"""
    if sum(layout.sizes) > WIDEST:
        widest = max(layout.terms, key=lambda term: len(term.values))
        raise ValueError(
            f"the columns have {sum(layout.sizes)} values, and every pair of values has a multiplier; at most {WIDEST} "
            f"are reasonable: leave out or merge values of {widest.name!r}, which has {len(widest.values)}"
        )


def _filled(answers: RowInference, terms: tuple[Term, ...]) -> list[np.ndarray]:
    """For each column (n,) its most probable cell, or its expected value if it is continuous."""
    phi, one = answers.fill(), np.ones((1, answers.rows.n_rows))
    pmfs = [phi[answers.spans[j]] if j in answers.spans else one for j in range(len(terms))]
    return [p.argmax(axis=0) if t.discrete else np.array(t.values) @ p for t, p in zip(terms, pmfs)]


def _warn_unattested(problem: JointProblem) -> bool:
    """Warn of pairs of values that never occur together, if there are any."""
    possible = problem.between * np.outer(problem.seen, problem.seen) > 0
    never = possible & (problem.pair_counts <= 0)
    if never.any():
        warnings.warn(
            f"prior_variance=None: {never.sum() // 2} of {possible.sum() // 2} pairs of values never occur together, "
            "and their multipliers have no optimum: they end where tol or max_iter ends the search; set "
            "prior_variance='auto' or a number",
            UserWarning,
            stacklevel=3,
        )
    return bool(never.any())
