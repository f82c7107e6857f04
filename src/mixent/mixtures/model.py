"""Methods of all fitted mixtures: densities, responsibilities, samples, imputation, marginals."""

from __future__ import annotations

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, CapableTags, able, no, yes
from mixent.base.convergence import FittedByRun, warn_unconverged
from mixent.base.options import Estimator
from mixent.base.params import check_count, check_file
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Run, Stop, run
from mixent.core.proposals import Squarem
from mixent.data import Schema, Table, drawn_rows, imputed_like, read_features
from mixent.families.student import Students
from mixent.mixtures.category_probabilities import CategoryProbabilities
from mixent.mixtures.conditional import ConditionalDistribution
from mixent.mixtures.explain import typical
from mixent.mixtures.fit_plan import FitPlan
from mixent.mixtures.online import PastStatistics, past_statistics, with_past
from mixent.mixtures.outliers import check_gaussian
from mixent.mixtures.predict import RowFunction, block_resp, each_row, log_density, responsibilities
from mixent.mixtures.problem import MixtureParams, MixtureProblem, Ready


def varying_columns(X: Array, weight: Array | None) -> tuple[np.ndarray, Array]:
    """Return the positions of the columns that vary, and the values of the constant ones (NaN for the others).

    If all columns are constant, all are returned, since a density needs at least one.
    """
    rows = X if weight is None else X[weight > 0]
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varying = np.flatnonzero(high - low > 1e-15 * np.maximum(np.abs(low), np.abs(high)))
    if not len(varying):
        varying = np.arange(X.shape[1])
    high[varying] = np.nan
    return varying, high


def select_columns(table: Table, varying: np.ndarray, label: Array | None = None, weight: Array | None = None) -> Block:
    """Return a block of the varying columns, without a copy if all columns vary."""
    X = table.X if len(varying) == table.X.shape[1] else table.X[:, varying]
    return Block(X, table.codes, label, weight)


class MixtureModel(FittedByRun, Estimator):
    """Density, samples, imputation and marginals of estimators with the attributes `problem_`, `params_`, `schema_`.

    A column that is constant in the training rows carries no information, and its likelihood would be infinite. It is
    left out of the density: `varying_` are the other continuous columns, `constants_` the values of the constant ones.
    """

    problem_: MixtureProblem
    params_: MixtureParams
    schema_: Schema
    run_: Run
    search_ = RecordsAttribute()
    path_ = RecordsAttribute()
    statistics_: Any  # PastStatistics of the training rows, for `partial_fit`
    varying_: np.ndarray  # positions among the continuous columns
    constants_: Array  # (d,) NaN where a column varies
    outliers: str | None = None  # of models in files from before this parameter

    def __sklearn_tags__(self) -> CapableTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="integrated out exactly",
            weights=YES,
            mixed=YES,
            out_of_core=yes("a memory-mapped array (`numpy.memmap`) of numbers is read in blocks, not copied"),
            density=YES,
            sampling=YES,
            imputation=YES,
            batches=no('with outliers=None or "noise"') if self.outliers == "t" else YES,
            saved=YES,
        )

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _block(self, table: Table, label: Array | None = None) -> Block:
        """Return the block of the varying columns."""
        return select_columns(table, self.varying_, label)

    def _each(self, table: Table, function: RowFunction, width: int | None = None, label: Array | None = None) -> Array:
        return each_row(self.problem_, self.params_, self._block(table, label), function, width, self.n_jobs)

    def score_samples(self, X: Any) -> Array:
        """Return the log density of each row, in nats; low values indicate outliers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array.
        """
        return self._log_density(self._read(X))

    def _log_density(self, table: Table) -> Array:
        return log_density(self.problem_, self.params_, self._block(table), self.n_jobs)

    def _responsibilities(self, table: Table, label: Array | None = None) -> Array:
        """Return p(component | x), (n, K), given label likelihoods (n, C) if there are any."""
        return responsibilities(self.problem_, self.params_, self._block(table, label), self.n_jobs)

    def _log_components(self, table: Table) -> Array:
        """Return log f_k(x_n), (K, n), with a last row for the noise component if there is one."""
        width = self.params_.width
        return self._each(table, lambda ready, block: self.problem_.log_components(ready, block).T, width).T

    def typical_rows(self, X: Any, n_rows: int = 5) -> list[np.ndarray]:
        """Return typical rows of each component: those of highest density among the rows assigned to it.

        Parameters
        ----------
        X : table of n rows
        n_rows : int
            Number of rows of each component.

        Returns
        -------
        list of K arrays of row positions, the most typical first; shorter if fewer rows are assigned to a component.
        """
        check_count("n_rows", n_rows)
        table = self._read(X)
        log_components = self._log_components(table)[: self.params_.n_components]
        return typical(self._responsibilities(table), log_components, n_rows)

    def _check_statistics(self) -> None:
        if getattr(self, "statistics_", None) is None or isinstance(self.params_.components.gaussian, Students):
            raise ValueError("this model has no statistics of its training rows; fit it again on all rows")

    def _recorded(self, plan: FitPlan) -> AbstractContextManager[None]:
        """Return the context of a fit, which is recorded in the file `checkpoint` unless it is None."""
        check_file("checkpoint", self.checkpoint)
        if self.checkpoint is None:
            return nullcontext()
        from mixent.mixtures.checkpoint import recorded  # loaded when used

        return recorded(plan)

    def _update(self, plan: FitPlan) -> None:
        """Run EM on new rows with the statistics of earlier rows as a prior; then add the new statistics."""
        K = self.params_.n_components
        past: PastStatistics = self.statistics_.times(1.0 - self.forgetting)
        problem = with_past(self.problem_, past)
        source = plan.source(problem.family, K)
        with plan.executor(K) as executor:
            propose = Squarem() if len(self.params_.weights) < self.params_.width else None
            stop = Stop(self.tol, self.max_iter)
            result = run(problem, source, self.params_, stop=stop, executor=executor, propose=propose)
            self.params_, self.run_ = result.params, replace(result, last=None)
            ready = problem.prepare(result.params)
            total = executor.total(lambda block: problem.stats(ready, block), source)
        self.statistics_ = past.plus(past_statistics(problem, result.params, total))
        warn_unconverged(result, type(self).__name__)

    def impute(self, X: Any) -> Any:
        """Replace missing values by their conditional expectations (numeric) or most probable values (categorical).

        Observed values are returned unchanged; missing values of integer columns are replaced by integers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        A DataFrame like X (same library, index, columns and types), or an array if X is one (of objects if there are
        categories).
        """
        return self._imputed(X)

    def _imputed(self, X: Any, y: Any = None) -> Any:
        table = self._read(X)
        return imputed_like(X, table, *self._impute(table, self._label_likelihood(y, table.n_rows)))

    def _label_likelihood(self, y: Any, n_rows: int) -> Array | None:
        """Return the likelihoods of labels, (n, C); None without labels."""
        return None

    def _impute(self, table: Table, label: Array | None = None) -> tuple[Array, np.ndarray | None]:
        family, params = self.problem_.family, self.params_.components
        filled, codes = table.X, table.codes
        if family.gaussian is not None:

            def expected(ready: Ready, block: Block) -> Array:
                if block.complete:
                    return block.X
                return family.expected(ready.family, block, block_resp(self.problem_, ready, block))

            values = np.tile(self.constants_, (table.n_rows, 1))
            values[:, self.varying_] = self._each(table, expected, len(self.varying_), label)
            # the overall mean where all densities underflow
            weights = self.params_.weights.sum(axis=0)[: self.params_.n_components]
            values = np.where(np.isnan(values), weights / weights.sum() @ self.means_, values)
            filled = np.where(np.isnan(table.X), values, table.X)
        if codes is not None:
            codes = family.likely_codes(params, codes, self._responsibilities(table, label).T)
        return filled, codes

    def conditional(self, X: Any) -> ConditionalDistribution:
        """Return the exact distribution of the missing values of each row, given its observed values.

        It is a mixture: of Gaussians in the missing numeric columns, and of independent categorical distributions in
        the missing categorical columns.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        ConditionalDistribution
            With the methods `mean`, `std`, `quantile`, `interval`, `probabilities`, `log_density` and `sample`.
        """
        return self._conditional(X)

    def sample_conditional(self, X: Any, n_samples: int = 1, *, random_state: Any = None) -> list[Any]:
        """Draw the missing values of X from their distribution given the observed values, for multiple imputation.

        Parameters
        ----------
        X : table of n rows
        n_samples : int
            Number of tables.
        random_state : int, RandomState or None
            None uses the `random_state` of the estimator.

        Returns
        -------
        list of `n_samples` tables
            Each like X (same library, index, columns and types) without missing values. Observed values are unchanged;
            integer columns have integers.
        """
        return self._sample_conditional(X, n_samples, random_state)

    def _sample_conditional(self, X: Any, n_samples: int, random_state: Any, y: Any = None) -> list[Any]:
        seed = self.random_state if random_state is None else random_state
        return self._conditional(X, y).sample(n_samples, random_state=seed)

    def _conditional(self, X: Any, y: Any = None) -> ConditionalDistribution:
        check_is_fitted(self)
        check_gaussian(self, "the distribution of missing values")
        table = self._read(X)
        weights = self._responsibilities(table, self._label_likelihood(y, table.n_rows))
        family, params = self.problem_.family.gaussian, self.params_.components.gaussian
        gaussians = None
        if family is not None and params is not None:
            gaussians = family.conditional(params, table.X[:, self.varying_])
        parts = (weights, gaussians, self.category_probabilities_, self.varying_, self.constants_)
        return ConditionalDistribution(*parts, X, table, self._read)

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """Draw rows from the fitted distribution.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        random_state : int, RandomState or None
            None uses the `random_state` of the estimator.

        Returns
        -------
        (X, labels)
            X like the training table (a DataFrame of its library with its columns, or an array), and the component (-1
            for noise), or class, of each row.
        """
        check_is_fitted(self)
        check_count("n_samples", n_samples)
        seed = check_random_state(self.random_state if random_state is None else random_state)
        rng = np.random.default_rng(seed.randint(2**31 - 1))
        weights = self.params_.weights
        cell = rng.choice(weights.size, n_samples, p=weights.ravel() / weights.sum())
        label, component = np.unravel_index(cell, weights.shape)
        drawn, codes = self.problem_.family.sample(self.params_.components, component, rng)
        X = np.tile(self.constants_, (n_samples, 1))
        X[:, self.varying_] = drawn
        return drawn_rows(self.schema_, X, codes), self._sample_label(label, component)

    def _sample_label(self, label: np.ndarray, component: np.ndarray) -> np.ndarray:
        return component

    def marginal(self, columns: Any) -> Any:
        """Return the fitted model of some columns, with all other columns integrated out exactly.

        Parameters
        ----------
        columns : list of column names or positions

        Returns
        -------
        A fitted copy of this estimator for tables with these columns only.
        """
        check_is_fitted(self)
        if isinstance(columns, str) or not np.iterable(columns):
            raise ValueError(f"columns must be a list of column names or positions; got {columns!r}")
        inputs = [self._position(c) for c in columns]
        if not inputs or len(set(inputs)) < len(inputs):
            raise ValueError(f"columns must contain at least one column, and none twice; got {columns!r}")
        schema = self.schema_.select(inputs)
        positions = [j for i in inputs for j in self.schema_.inputs[i].columns]
        numeric = [list(self.schema_.continuous).index(i) for i in positions if i in self.schema_.continuous]
        varying = {c: i for i, c in enumerate(self.varying_.tolist())}
        categorical = {c: i for i, c in enumerate(self.schema_.categorical)}
        if not any(c in varying for c in numeric) and not any(i in categorical for i in positions):
            raise ValueError("all these columns were constant in training; pass at least one column that varies")
        family, components = self.problem_.family.marginal(
            self.params_.components,
            np.array([varying[c] for c in numeric if c in varying], dtype=int),
            np.array([categorical[i] for i in positions if i in categorical], dtype=int),
        )
        other = copy.copy(self)
        other.statistics_ = None
        other.problem_ = MixtureProblem(family, self.problem_.class_prior)
        other.params_ = MixtureParams(self.params_.weights, components)
        other.schema_ = schema
        other.varying_ = np.array([i for i, c in enumerate(numeric) if c in varying], dtype=int)
        other.constants_ = self.constants_[numeric]
        other.n_features_in_ = len(inputs)
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = self.feature_names_in_[inputs]
        return other

    def _position(self, column: Any) -> int:
        """Position of a column of the user's table."""
        names = list(self.schema_.input_names)
        if (
            isinstance(column, (int, np.integer))
            and not isinstance(column, bool)
            and -len(names) <= column < len(names)
        ):
            return int(column) % len(names)
        if column in names:
            return names.index(column)
        raise ValueError(f"unknown column {column!r}; the columns are {', '.join(map(str, names[:20]))}")

    @property
    def means_(self) -> Array:
        """(K, d) component means of the continuous columns."""
        family, params = self.problem_.family.gaussian, self.params_.components.gaussian
        means = np.tile(self.constants_, (self.params_.n_components, 1))
        if family is not None and params is not None:
            means[:, self.varying_] = params.means + family.center
        return means

    @property
    def covariances_(self) -> Array:
        """(K, d, d) component covariances of the continuous columns; with outliers="t" scale matrices."""
        d = len(self.constants_)
        covs = np.zeros((self.params_.n_components, d, d))
        if self.params_.components.gaussian is not None:
            covs[:, self.varying_[:, None], self.varying_] = self.params_.components.gaussian.full_covs()
        return covs

    @property
    def precisions_(self) -> Array:
        """(K, d, d) inverses of the covariances; constant columns have an infinite precision."""
        constant = np.setdiff1d(np.arange(len(self.constants_)), self.varying_)
        precisions = np.zeros_like(self.covariances_)
        precisions[:, constant, constant] = np.inf
        if self.params_.components.gaussian is not None:
            inverse = np.linalg.inv(self.params_.components.gaussian.full_covs())
            precisions[:, self.varying_[:, None], self.varying_] = inverse
        return precisions

    @property
    def degrees_of_freedom_(self) -> Array:
        """(K,) degrees of freedom of the components, infinite for Gaussians."""
        gaussian = self.params_.components.gaussian
        return gaussian.df if isinstance(gaussian, Students) else np.full(self.params_.n_components, np.inf)

    @property
    def category_probabilities_(self) -> dict[str, CategoryProbabilities]:
        """Probabilities (K, values) of the values of each categorical column within the components."""
        family, params = self.problem_.family.categorical, self.params_.components.categorical
        if family is None or params is None:
            return {}
        probs = np.split(np.exp(params.log_probs), family.starts[1:], axis=1)
        columns = [self.schema_.columns[i] for i in self.schema_.categorical]
        return {column.name: CategoryProbabilities(p, column.categories) for column, p in zip(columns, probs)}

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters of the fitted model."""
        return self.problem_.n_free(self.params_)
