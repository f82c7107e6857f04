"""What every fitted mixture can do: densities, responsibilities, sampling, imputation, marginals."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, CapableTags, able, yes
from mixent.base.convergence import FittedByRun, warn_unconverged
from mixent.base.options import Estimator
from mixent.base.params import check_count
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Run, Stop, run
from mixent.core.proposals import Squarem
from mixent.data import Schema, Table, read_features, to_frame
from mixent.mixtures.explain import typical
from mixent.mixtures.fit_plan import Job
from mixent.mixtures.online import Kept, keep, with_kept
from mixent.mixtures.predict import RowFunction, block_resp, each_row, log_density, responsibilities
from mixent.mixtures.problem import MixtureParams, MixtureProblem, Ready


def varying_columns(X: Array, weight: Array | None) -> tuple[np.ndarray, Array]:
    """Which columns are not constant, and the values of those that are (NaN for the others).

    When none varies, all take part: a density must be about something.
    """
    rows = X if weight is None else X[weight > 0]
    low, high = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    varying = np.flatnonzero(high - low > 1e-15 * np.maximum(np.abs(low), np.abs(high)))
    if not len(varying):
        varying = np.arange(X.shape[1])
    high[varying] = np.nan
    return varying, high


def taking_part(table: Table, varying: np.ndarray, label: Array | None = None, weight: Array | None = None) -> Block:
    """The rows in the columns that take part; nothing is copied when all do."""
    X = table.X if len(varying) == table.X.shape[1] else table.X[:, varying]
    return Block(X, table.codes, label, weight)


class MixtureModel(FittedByRun, Estimator):
    """The generative side of an estimator whose fitted state is `problem_`, `params_`, `schema_`, `run_`.

    A column that was constant in training carries no information and is left out of the density (its likelihood would
    be infinite): `varying_` are the continuous columns that take part, `constants_` the values of the others.
    """

    problem_: MixtureProblem
    params_: MixtureParams
    schema_: Schema
    run_: Run
    kept_: Any  # Kept: statistics of the rows seen, for `partial_fit`
    varying_: np.ndarray  # positions among the continuous columns
    constants_: Array  # (d,) NaN where a column varies

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
            batches=YES,
            saved=YES,
        )

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _block(self, table: Table) -> Block:
        """The columns that take part."""
        return taking_part(table, self.varying_)

    def _each(self, table: Table, function: RowFunction, width: int | None = None) -> Array:
        return each_row(self.problem_, self.params_, self._block(table), function, width, self.n_jobs)

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, in nats: low values are unlike anything seen in training.

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

    def _responsibilities(self, table: Table) -> Array:
        return responsibilities(self.problem_, self.params_, self._block(table), self.n_jobs)

    def _log_components(self, table: Table) -> Array:
        """log f_k(x_n), (K, n)."""
        width = self.params_.n_components
        return self._each(table, lambda ready, block: self.problem_.log_components(ready, block).T, width).T

    def typical_rows(self, X: Any, n_rows: int = 5) -> list[np.ndarray]:
        """The most typical rows of each component: of those most probable in it, the densest.

        Parameters
        ----------
        X : table of n rows
        n_rows : int
            How many of each component.

        Returns
        -------
        list of K arrays of row positions, most typical first; short or empty when a component claims fewer rows.
        """
        check_count("n_rows", n_rows)
        table = self._read(X)
        return typical(self._responsibilities(table), self._log_components(table), n_rows)

    def _check_kept(self) -> None:
        if getattr(self, "kept_", None) is None:
            raise ValueError("this model has kept no statistics of its training rows; fit it again on all rows")

    def _absorb(self, job: Job) -> None:
        """EM on the rows of the job, with what was kept of earlier ones; then keep these too."""
        K = self.params_.n_components
        kept: Kept = self.kept_.times(1.0 - self.forgetting)
        problem = with_kept(self.problem_, kept)
        source = job.source(problem.family, K)
        with job.executor(K) as executor:
            propose = Squarem() if self.accelerate and len(self.params_.weights) < K else None
            stop = Stop(self.tol, self.max_iter)
            done = run(problem, source, self.params_, stop=stop, executor=executor, propose=propose)
            self.params_, self.run_ = done.params, replace(done, last=None)
            ready = problem.prepare(done.params)
            total = executor.total(lambda block: problem.stats(ready, block), source)
        self.kept_ = kept.plus(keep(problem, done.params, total))
        warn_unconverged(done, type(self).__name__)

    def impute(self, X: Any) -> Any:
        """Fill every missing value with its conditional expectation (continuous) or most probable value (categorical).

        Observed cells are returned as they came; missing values of integer columns are filled with whole numbers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        A pandas DataFrame when X was any DataFrame or has categories, otherwise an array.
        """
        table = self._read(X)
        filled, codes = self._impute(table)
        if table.codes is None and not hasattr(X, "columns"):
            return filled
        return to_frame(self.schema_, filled, codes)

    def _impute(self, table: Table) -> tuple[Array, np.ndarray | None]:
        family, params = self.problem_.family, self.params_.components
        filled, codes = table.X, table.codes
        gaussian = family.gaussian
        if gaussian is not None:

            def expected(ready: Ready, block: Block) -> Array:
                if block.complete:
                    return block.X
                return gaussian.expected(ready.family[0], block, block_resp(self.problem_, ready, block))

            guess = np.tile(self.constants_, (table.n_rows, 1))
            guess[:, self.varying_] = self._each(table, expected, len(self.varying_))
            guess = np.where(
                np.isnan(guess), self.params_.weights.sum(axis=0) @ self.means_, guess
            )  # beyond every density: the overall mean
            filled = np.where(np.isnan(table.X), guess, table.X)
        if family.categorical is not None and params.categorical is not None and codes is not None:
            codes = family.categorical.expected(params.categorical, codes, self._responsibilities(table).T)
        return filled, codes

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> tuple[Any, np.ndarray]:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None
            None takes the estimator's own.

        Returns
        -------
        (X, labels)
            X as an array (a DataFrame when there are categories); the component, or class, each row came from.
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
        table = X if codes is None else to_frame(self.schema_, X, codes)
        return table, self._sample_label(label, component)

    def _sample_label(self, label: np.ndarray, component: np.ndarray) -> np.ndarray:
        return component

    def marginal(self, columns: Any) -> Any:
        """The fitted model of some columns alone, all others integrated out exactly.

        Parameters
        ----------
        columns : list of column names or positions

        Returns
        -------
        A fitted copy of this estimator that takes tables of these columns only.
        """
        check_is_fitted(self)
        if isinstance(columns, str) or not np.iterable(columns):
            raise ValueError(f"columns must be a list of column names or positions; got {columns!r}")
        where = [self._position(c) for c in columns]
        if not where or len(set(where)) < len(where):
            raise ValueError(f"columns must name at least one column, and none twice; got {columns!r}")
        schema = Schema(tuple(self.schema_.columns[i] for i in where), self.schema_.named)
        numbers = [list(self.schema_.continuous).index(i) for i in where if i in self.schema_.continuous]
        place = {c: i for i, c in enumerate(self.varying_.tolist())}
        categorical = {c: i for i, c in enumerate(self.schema_.categorical)}
        if not any(c in place for c in numbers) and not any(i in categorical for i in where):
            raise ValueError("every column named was constant in training; name at least one that varies")
        family, components = self.problem_.family.marginal(
            self.params_.components,
            np.array([place[c] for c in numbers if c in place], dtype=int),
            np.array([categorical[i] for i in where if i in categorical], dtype=int),
        )
        other = copy.copy(self)
        other.kept_ = None
        other.problem_ = MixtureProblem(family, self.problem_.class_prior)
        other.params_ = MixtureParams(self.params_.weights, components)
        other.schema_ = schema
        other.varying_ = np.array([i for i, c in enumerate(numbers) if c in place], dtype=int)
        other.constants_ = self.constants_[numbers]
        other.n_features_in_ = len(where)
        if hasattr(self, "feature_names_in_"):
            other.feature_names_in_ = self.feature_names_in_[where]
        return other

    def _position(self, column: Any) -> int:
        names = list(self.schema_.names)
        if (
            isinstance(column, (int, np.integer))
            and not isinstance(column, bool)
            and -len(names) <= column < len(names)
        ):
            return int(column) % len(names)
        if column in names:
            return names.index(column)
        raise ValueError(f"no column {column!r}; the model has {', '.join(map(str, names[:20]))}")

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
        """(K, d, d) component covariances of the continuous columns."""
        d = len(self.constants_)
        covs = np.zeros((self.params_.n_components, d, d))
        if self.params_.components.gaussian is not None:
            covs[:, self.varying_[:, None], self.varying_] = self.params_.components.gaussian.full_covs()
        return covs

    @property
    def category_probabilities_(self) -> dict[str, Array]:
        """For each categorical column, (K, values) probabilities within the components."""
        family, params = self.problem_.family.categorical, self.params_.components.categorical
        if family is None or params is None:
            return {}
        probs = np.split(np.exp(params.log_probs), family.starts[1:], axis=1)
        return {self.schema_.names[i]: p for i, p in zip(self.schema_.categorical, probs)}

    @property
    def n_parameters_(self) -> int:
        """Free parameters of the fitted model."""
        return self.problem_.n_free(self.params_)
