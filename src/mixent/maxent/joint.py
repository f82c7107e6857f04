"""Joint maximum entropy model of all columns, which predicts any column, or any two, from the others."""

from __future__ import annotations

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
    imputed_like,
    keep_notes,
    listed,
    read_features,
    read_weights,
    with_missing_columns,
)
from mixent.maxent.joint_inference import ColumnScore, RowInference, score_column
from mixent.maxent.joint_prior import choose_variance
from mixent.maxent.joint_problem import SOLVERS, UNBOUNDED, JointProblem, Pairwise, RowBlocks, pose, solve
from mixent.maxent.joint_terms import Layout, Term, read_terms
from mixent.maxent.prior import read_variance
from mixent.warn import warn

CHUNK = 4096  # rows predicted at a time
WIDEST = 4000  # most values of all columns together


class MaxEntJoint(FittedByRun, Estimator):
    """Pairwise maximum entropy model of all columns of a table, which predicts any column, or any two, from the others.

    Maximizes the penalized pseudo-likelihood of Besag [3]_,

        sum_n w_n sum_m log P[F_m = f_nm | all other columns of row n] - |Gamma|^2 / (2 prior_variance),

    of the pairwise model P[f] ~ exp(sum_m b(f_m) + sum_{m<k} Gamma(f_m, f_k)). This is the joint distribution with the
    largest entropy among those with given distributions of all pairs of columns [1]_ [2]_. The objective is concave. A
    step of L-BFGS is accepted only if it does not decrease it, and a step of iterative scaling is guaranteed to
    increase it, so this value never falls.

    A continuous column is represented by the hidden component of its mixture, P[M = j | x]. A missing value contributes
    nothing.

    Parameters
    ----------
    max_components : int, default=6
        Maximum number of components of the mixture of a continuous column; BIC chooses the number. One or two
        components are split into three or four overlapping parts, which represent a value more precisely.
    prior_variance : "auto", float or None, default="auto"
        Variance of the Gaussian prior on the multipliers of pairs. "auto" chooses from 0.03 to 10 by the
        pseudo-likelihood of held-out rows. None: no prior; the multipliers of pairs of values that never occur together
        then have no finite optimum.
    solver : {"lbfgs", "iis"}, default="lbfgs"
        Optimization algorithm: L-BFGS, or improved iterative scaling with extrapolation. Both reach the same optimum,
        but iterative scaling takes small steps: use a tolerance a hundred times smaller.
    tol : float, default=1e-5
        Stop when the gain of a pass is below this value, in nats per row.
    max_iter : int, default=1000
        Maximum number of iterations (passes over the data).
    categorical : "auto" or list, default="auto"
        Columns to treat as categories, whatever their type.
    random_state : int, RandomState or None, default=None
        Seed of the initialization of the mixtures and of the held-out rows.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    params_ : Pairwise
        Lagrange multipliers: `single` (S,) of the cells and `pairs` (S, S) of pairs of cells of different columns.
    terms_ : tuple of Category, Hidden or Constant
        Representation of each column.
    shares_ : ndarray of shape (S,)
        Training frequency of each cell within its column.
    prior_variance_ : float or None
        Variance of the prior.
    run_ : Run
        Status, number of passes and trace of the optimizer.
    schema_ : Schema
        Names, types and categories of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    MaxEntClassifier : Maximum entropy model of one column, the class, given the others.
    GaussianMixture : Mixture model of all columns, which also fills missing values.
    sklearn.impute.KNNImputer : Imputation from the nearest rows.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Section 2.5 (document 004).
    .. [2] Yan, L. and Miller, D. J. (2000). General statistical inference for discrete and mixed spaces by an
       approximate application of the maximum entropy principle. IEEE Transactions on Neural Networks, 11(3).
    .. [3] Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician, 24(3).

    Examples
    --------
    >>> from mixent import MaxEntJoint
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
            missing="a missing value contributes nothing; `impute` fills it",
            weights=YES,
            soft_labels=IGNORED,
            absent_labels=IGNORED,
            multiclass="predicts any column, with any number of values, from the others",
            mixed=YES,
            explanations=NOTHING,
            density=yes("pseudo-likelihood of categories and mixture components; it does not detect extreme numbers"),
            imputation=YES,
            shifted_priors=NOTHING,
            saved=YES,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. A class label, if there is
            one, is a column like any other.
        y : ignored
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        keep_notes(self, table, quiet=isinstance(X, Table))
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
        if variance is None and _warn_unobserved_pairs(problem):
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
        """Number of identifiable multipliers: one value of each column is the reference."""
        free = [len(term.values) - 1 for term in self.terms_]
        return sum(free) + (sum(free) ** 2 - sum(r * r for r in free)) // 2

    def values(self, target: Any = None) -> np.ndarray:
        """The values to which the columns of `predict_proba` belong.

        Parameters
        ----------
        target : column name or position, optional
            The column (default: the last).

        Returns
        -------
        (values,) array: categories, or the means of the components of a continuous column.
        """
        check_is_fitted(self)
        return np.array(self.terms_[self._column(target)].values)

    def predict_proba(self, X: Any, target: Any = None) -> Array:
        """Probabilities of the values of a column, or of two columns jointly, given the other columns of each row.

        Parameters
        ----------
        X : table of n rows
            All columns. The values of the target column are ignored; a DataFrame need not contain it. Other missing
            values contribute nothing; with many missing values, `impute` is more accurate, since it fills them together
            with the target.
        target : column name or position, or a pair of them, optional
            The column to predict (default: the last).

        Returns
        -------
        (n, values) array; (n, values of the first, values of the second) for a pair. See `values`. If all other columns
        of a row are missing, these are the training frequencies.
        """
        check_is_fitted(self)
        columns = self._target(target)
        table = self._read(X, absent=columns)
        parts = self._each(table, lambda inference, _: inference.conditional(*columns))
        return np.moveaxis(np.concatenate(parts, axis=-1), -1, 0)

    def predict(self, X: Any, target: Any = None) -> np.ndarray:
        """The most probable value of a column given the others; the expected value of a continuous column.

        Parameters
        ----------
        X : table of n rows
            All columns. The values of the target column are ignored; a DataFrame need not contain it.
        target : column name or position, or a pair of them, optional
            The column to predict (default: the last).

        Returns
        -------
        (n,) array; for a pair an (n, 2) object array with the most probable pair of `values`.
        """
        proba, columns = self.predict_proba(X, target), self._target(target)
        lists = [np.array(self.terms_[j].values) for j in columns]
        if len(columns) == 1:
            return lists[0][proba.argmax(axis=1)] if self.terms_[columns[0]].discrete else proba @ lists[0]
        cells = np.unravel_index(proba.reshape(len(proba), -1).argmax(axis=1), proba.shape[1:])
        return np.stack([values[cell].astype(object) for values, cell in zip(lists, cells)], axis=1)

    def impute(self, X: Any) -> Any:
        """Fill every missing value with the most probable value, or with the expected value of a continuous column.

        Several missing values in a row are filled together: each is predicted from the distributions of the others
        until convergence (mean field). Observed values are returned unchanged; missing values of integer columns are
        filled with integers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        A DataFrame like X (same library, index, columns and types), or an array if X is one (of objects if there are
        categories).
        """
        table = self._read(X)
        filled, codes = table.X.copy(), None if table.codes is None else table.codes.copy()
        parts = self._each(table, lambda inference, _: _imputed(inference, self.terms_))
        for j, term in enumerate(self.terms_):
            imputed = np.concatenate([part[j] for part in parts])
            if not term.discrete:
                np.copyto(filled[:, term.column], imputed, where=np.isnan(table.X[:, term.column]))
            elif codes is not None:
                np.copyto(codes[:, term.column], imputed, where=codes[:, term.column] < 0)
        return imputed_like(X, table, filled, codes)

    def score_samples(self, X: Any) -> Array:
        """Pseudo-log-likelihood of each row, in nats: the sum over its observed columns of log P[column | rest].

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array.
        """
        return np.concatenate(self._each(self._read(X), lambda inference, _: inference.log_lik()))

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
        """Accuracy of the prediction of each column from all others.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        dict of column name -> ColumnScore; columns that are missing in all rows of X are left out.
        """
        table = self._read(X)
        columns = range(len(self.terms_))
        parts = self._each(table, lambda inference, _: [inference.conditional(j) for j in columns])
        pmfs = [np.concatenate(part, axis=1) for part in zip(*parts)]
        scores = {term.name: score_column(term, pmf, table) for term, pmf in zip(self.terms_, pmfs)}
        return {name: score for name, score in scores.items() if score.n_rows}

    def errors_by_pair(self, X: Any) -> dict[tuple[str, str], float]:
        """Error of the joint prediction of each pair of discrete columns from all other columns.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        dict of (column name, column name) -> share of the rows in which at least one of the two is wrong, among the
        rows in which both are observed.
        """
        counts = self._each(self._read(X), lambda inference, part: inference.pair_errors(self.terms_, part))
        names = self.schema_.names
        errors = {}
        for (j, k), parts in zip(counts[0], zip(*(part.values() for part in counts))):
            wrong, observed = np.sum(parts, axis=0).tolist()
            if observed:
                errors[names[j], names[k]] = wrong / observed
        return errors

    def _read(self, X: Any, absent: tuple[int, ...] = ()) -> Table:
        """Read the rows; a DataFrame need not contain the columns `absent`."""
        check_is_fitted(self)
        if absent and self.schema_.named:
            names = [given.name for given in self.schema_.inputs if {*given.columns} & {*absent}]
            X = with_missing_columns(X, names, self.schema_.input_names)
        return read_features(self, X, reset=False)

    def _each(self, table: Table, function: Callable[[RowInference, Table], Any]) -> list:
        """Results of a function for each chunk of rows."""
        layout, results = Layout(self.terms_), []
        with Serial():
            for start in range(0, table.n_rows, CHUNK):
                rows = slice(start, start + CHUNK)
                part = table.take(rows)
                inference = RowInference(self.params_, self.shares_, layout.spans, layout.rows(part))
                results.append(function(inference, part))
        return results

    def _target(self, target: Any) -> tuple[int, ...]:
        """Positions of the target column, or of the pair of target columns."""
        if not isinstance(target, (tuple, list)):
            return (self._column(target),)
        if len(target) != 2 or self._column(target[0]) == self._column(target[1]):
            raise ValueError(f"target must be a column or a pair of different columns; got {target!r}")
        return self._column(target[0]), self._column(target[1])

    def _column(self, target: Any) -> int:
        names = self.schema_.names
        if target is None:
            return len(names) - 1
        integer = isinstance(target, (int, np.integer)) and not isinstance(target, bool)
        if integer and -len(names) <= target < len(names):
            return int(target) % len(names)
        if isinstance(target, str) and target in names:
            return names.index(target)
        raise ValueError(f"target: the model has no column {target!r}; its columns are {listed(names)}")


def _check_width(layout: Layout) -> None:
    """Refuse tables with so many values that one multiplier for every pair of values is impractical."""
    if sum(layout.sizes) > WIDEST:
        widest = max(layout.terms, key=lambda term: len(term.values))
        raise ValueError(
            f"the columns have {sum(layout.sizes)} values, and every pair of values has a multiplier; at most {WIDEST} "
            f"values are supported; drop {widest.name!r}, which has {len(widest.values)} values, or merge rare values"
        )


def _imputed(inference: RowInference, terms: tuple[Term, ...]) -> list[np.ndarray]:
    """(n,) for each column: the most probable code, or the expected value of a continuous column."""
    phi, certain = inference.fill(), np.ones((1, inference.rows.n_rows))
    pmfs = [phi[inference.spans[j]] if j in inference.spans else certain for j in range(len(terms))]
    return [p.argmax(axis=0) if t.discrete else np.array(t.values) @ p for t, p in zip(terms, pmfs)]


def _warn_unobserved_pairs(problem: JointProblem) -> bool:
    """Warn if some pairs of values never occur together; return whether there are any."""
    possible = problem.between * np.outer(problem.seen, problem.seen) > 0
    never = possible & (problem.pair_counts <= 0)
    if never.any():
        warn(
            f"prior_variance=None: {never.sum() // 2} of {possible.sum() // 2} pairs of values never occur together, "
            "and their multipliers have no finite optimum: their values depend on tol and max_iter; set "
            "prior_variance='auto' or a number"
        )
    return bool(never.any())
