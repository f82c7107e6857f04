"""Conditional distributions of missing values, given the observed values of their rows.

Given the observed values o of a row, its missing values have the mixture distribution

    p(x_m | x_o) = sum_k r_k N(x_m; m_k|o, C_k|o) prod_j q_kj(x_j),    r_k = p(k | x_o),

over the missing numeric columns m and the missing categorical columns j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from mixent.base.document import Content, Paragraph
from mixent.base.document import Table as Cells
from mixent.base.params import check_count
from mixent.base.result import MOST_ROWS, Result
from mixent.base.text import count, percent, readable
from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.data import Origin, Table, imputed_like
from mixent.families.gaussian.conditional import ConditionalGaussians
from mixent.families.gaussian.kernels import LOG_2PI
from mixent.mixtures.category_probabilities import CategoryProbabilities

BISECTIONS = 80


@dataclass(frozen=True, repr=False, eq=False)
class ConditionalRow(Result):
    """The mixture distribution of the missing values of one row, given its observed values.

    Parameters
    ----------
    weights : (K,) array
        p(component | observed values).
    columns : tuple of str
        The missing numeric columns.
    means : (K, m) array
        Their conditional means in each component.
    covariances : (K, m, m) array
        Their conditional covariances in each component.
    category_probabilities : dict of column -> CategoryProbabilities
        Probabilities (K, values) of the values of the missing categorical columns in each component.
    """

    _title = "Missing values given the observed values of a row"
    _shown = ("columns", "category_probabilities", "weights")

    weights: Array  # (K,)
    columns: tuple[str, ...]
    means: Array  # (K, m)
    covariances: Array  # (K, m, m)
    category_probabilities: dict[str, CategoryProbabilities]

    def mean(self) -> Array:
        """Return the conditional mean of the missing numeric columns, (m,)."""
        return self.weights @ self.means

    def cov(self) -> Array:
        """Return the conditional covariance of the missing numeric columns, within and between components, (m, m)."""
        between = self.means - self.mean()
        return np.einsum("k,kij->ij", self.weights, self.covariances) + np.einsum(
            "k,ki,kj->ij", self.weights, between, between
        )

    def std(self) -> Array:
        """Return the conditional standard deviations of the missing numeric columns, (m,)."""
        return np.sqrt(np.diagonal(self.cov()))

    def _content(self) -> list[Content]:
        rows: list[list[Any]] = [
            [name, f"{readable(m)} ± {readable(s, 3)}"] for name, m, s in zip(self.columns, self.mean(), self.std())
        ]
        rows += [[name, _likely(self.weights @ table, table)] for name, table in self.category_probabilities.items()]
        if not rows:
            return [Paragraph("No value is missing.")]
        return [Cells("Mean ± standard deviation, or most probable value", ["column", "distribution"], rows)]


@dataclass(frozen=True, repr=False, eq=False)
class ConditionalDistribution(Result):
    """The mixture distribution of the missing values of each row of a table, given its observed values.

    ``distribution[i]`` is that of row i, a `ConditionalRow`. A constant column has its constant value with certainty,
    and is left out of `log_density`, as in `score_samples`. A category that did not occur in training is taken as
    missing, but kept in samples. A date is in days since 1970-01-01, with columns for the parts of the year and the
    week; in samples it is a date.

    Parameters
    ----------
    weights : (n, K) array
        p(component | observed values).
    gaussians : ConditionalGaussians or None
        Conditional means and covariances of the numeric columns that vary.
    category_probabilities : dict of column -> CategoryProbabilities
        Probabilities of the values of each categorical column in each component.
    """

    _title = "Missing values given the observed values"

    weights: Array  # (n, K)
    gaussians: ConditionalGaussians | None
    category_probabilities: dict[str, CategoryProbabilities]
    varying: np.ndarray = field(repr=False)  # numeric columns of the Gaussians
    constants: Array = field(repr=False)  # (d,) values of the others
    given: Any = field(repr=False)  # the user's table
    table: Table = field(repr=False)
    read: Callable[[Any], Table] = field(repr=False)  # reads another table of the same columns

    # --- rows ---------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.weights)

    def __iter__(self) -> Iterator[ConditionalRow]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, row: int) -> ConditionalRow:
        schema, K = self.table.schema, self.weights.shape[1]
        columns = np.flatnonzero(np.isnan(self.table.X[row]))
        means = np.broadcast_to(self.constants[columns], (K, len(columns))).copy()
        covs = np.zeros((K, len(columns), len(columns)))
        if self.gaussians is not None:
            pattern = self.gaussians.pattern[row]
            missing = self.gaussians.columns[pattern]
            place = np.flatnonzero(np.isin(columns, self.varying))
            means[:, place] = self.gaussians.means[row][:, missing]
            covs[:, place[:, None], place] = self.gaussians.covs[pattern]
        names = tuple(schema.names[schema.continuous[j]] for j in columns)
        absent = [] if self.table.codes is None else np.flatnonzero(self.table.codes[row] < 0).tolist()
        categorical = [schema.names[schema.categorical[j]] for j in absent]
        tables = {name: self.category_probabilities[name] for name in categorical}
        return ConditionalRow(self.weights[row], names, means, covs, tables)

    # --- moments and quantiles of columns -----------------------------------------------------------------------------

    def mean(self) -> Any:
        """Return the conditional means of the numeric columns; observed values are unchanged.

        Returns
        -------
        A DataFrame of the library of the rows with their index, or an (n, d) array if the rows are an array.
        """
        return self._numbers(lambda means, _: np.einsum("nk,nk->n", self.weights, means), self._certain)

    def std(self) -> Any:
        """Return the conditional standard deviations of the numeric columns, 0 where a value is observed.

        Returns
        -------
        A DataFrame or an array, see `mean`.
        """

        def std(means: Array, variances: Array) -> Array:
            between = means - np.einsum("nk,nk->n", self.weights, means)[:, None]
            return np.sqrt(np.einsum("nk,nk->n", self.weights, variances + between**2))

        return self._numbers(std, np.where(np.isnan(self._certain), np.nan, 0.0))

    def quantile(self, q: float | Sequence[float], column: Any) -> Array:
        """Return quantiles of the conditional distribution of a numeric column; an observed value is its own quantile.

        Parameters
        ----------
        q : float or list of float
            Probabilities between 0 and 1.
        column : name or position of a numeric column

        Returns
        -------
        (n,) array, or (n, len(q)) array for a list.
        """
        shares = np.atleast_1d(np.asarray(q, dtype=float))
        if shares.ndim != 1 or not ((shares > 0) & (shares < 1)).all():
            raise ValueError(f"q must be between 0 and 1, or a list of such probabilities; got {q!r}")
        means, variances = self._column(self._numeric(column))
        out = np.stack([_mixture_quantile(self.weights, means, np.sqrt(variances), share) for share in shares], axis=1)
        return out[:, 0] if np.ndim(q) == 0 else out

    def interval(self, column: Any, level: float = 0.9) -> Array:
        """Return the central interval of a numeric column that has this conditional probability.

        Parameters
        ----------
        column : name or position of a numeric column
        level : float, default=0.9

        Returns
        -------
        (n, 2) array of the lower and upper limits.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1; got {level!r}")
        return self.quantile([0.5 * (1 - level), 0.5 * (1 + level)], column)

    def probabilities(self, column: Any) -> CategoryProbabilities:
        """Return the conditional probabilities of the values of a categorical column; 1 for an observed value.

        Parameters
        ----------
        column : name or position of a categorical column

        Returns
        -------
        CategoryProbabilities
            An (n, values) table whose columns are named by the values.
        """
        schema = self.table.schema
        names = [schema.names[j] for j in schema.categorical]
        place = names.index(self._name(column, names, "categorical"))
        tables, codes = self.category_probabilities[names[place]], self.table.column_codes(place)
        values = np.where(
            (codes < 0)[:, None], self.weights @ tables, np.equal(codes[:, None], np.arange(len(tables.categories)))
        )
        return CategoryProbabilities(values, tables.categories, of="row")

    def _numbers(self, function: Callable[[Array, Array], Array], certain: Array) -> Any:
        """Apply a function of conditional means and variances (n, K) to every numeric column.

        `certain` (n, d) has the results for values that are certain, and NaN for the others.
        """
        schema, origin = self.table.schema, Origin.of(self.given)
        columns = [np.where(np.isnan(values), function(*self._column(j)), values) for j, values in enumerate(certain.T)]
        if origin.library:
            return origin.frame({schema.names[j]: values for j, values in zip(schema.continuous, columns)})
        return np.stack(columns, axis=1) if columns else np.empty((len(self), 0))

    @property
    def _certain(self) -> Array:
        """(n, d) observed values, and those of constant columns; NaN for the others."""
        return np.where(np.isnan(self.table.X), self.constants, self.table.X)

    def _column(self, j: int) -> tuple[Array, Array]:
        """Return the conditional means and variances of a numeric column, (n, K) each."""
        place = np.flatnonzero(self.varying == j)
        if self.gaussians is not None and len(place):
            return self.gaussians.means[:, :, place[0]], self.gaussians.variances(int(place[0]))
        means = np.broadcast_to(self._certain[:, [j]], self.weights.shape)
        return means, np.zeros_like(means)

    def _numeric(self, column: Any) -> int:
        schema = self.table.schema
        names = [schema.names[j] for j in schema.continuous]
        return names.index(self._name(column, names, "numeric"))

    def _name(self, column: Any, names: list[str], kind: str) -> str:
        """Return the name of a column of the model, given by its name or by that or the position of a user's column."""
        schema, name = self.table.schema, column
        inputs = {given.name: given for given in schema.inputs}
        if isinstance(column, (int, np.integer)) and -len(inputs) <= column < len(inputs):
            name = schema.inputs[column].name
        if name in inputs and inputs[name].columns:
            name = schema.names[inputs[name].columns[0]]  # of a date, its days
        if name not in names:
            raise ValueError(f"{column!r} is not a {kind} column of the model; choose one of {', '.join(names[:20])}")
        return str(name)

    # --- densities and samples ----------------------------------------------------------------------------------------

    def log_density(self, values: Any) -> Array:
        """Return the log density of values in the place of the missing ones, given the observed ones, in nats.

        Parameters
        ----------
        values : table of n rows
            Like the rows, with values in the place of the missing ones; observed values are not used.

        Returns
        -------
        (n,) array, 0 for a row without missing values.
        """
        other = self.read(values)
        if other.n_rows != len(self):
            raise ValueError(f"values must have a row for each of the {len(self)} rows; got {other.n_rows}")
        self._check_complete(other)
        log_prob = safe_log(self.weights)
        if self.gaussians is not None:
            log_prob = log_prob + self._log_gaussians(self.gaussians, other.X[:, self.varying])
        for place, table in enumerate(self.category_probabilities.values()):
            absent = self.table.column_codes(place) < 0
            log_prob[absent] += np.log(table[:, other.column_codes(place)[absent]]).T
        return log_sum_exp(log_prob, axis=1)

    def _check_complete(self, other: Table) -> None:
        """Check that another table has values where this one has none."""
        schema = self.table.schema
        columns = [(j, np.isnan(self.table.X[:, i]) & np.isnan(other.X[:, i])) for i, j in enumerate(schema.continuous)]
        columns += [
            (j, (self.table.column_codes(i) < 0) & (other.column_codes(i) < 0))
            for i, j in enumerate(schema.categorical)
        ]
        for j, absent in columns:
            if absent.any():
                row = int(np.flatnonzero(absent)[0])
                raise ValueError(
                    f"values must have a value for each missing one; row {row} has none in column {schema.names[j]!r}"
                )

    @staticmethod
    def _log_gaussians(gaussians: ConditionalGaussians, X: Array) -> Array:
        """Return the log densities of the missing values in each component, (n, K)."""
        out = np.zeros(gaussians.means.shape[:2])
        for p, (columns, covs) in enumerate(zip(gaussians.columns, gaussians.covs)):
            rows = np.flatnonzero(gaussians.pattern == p)
            chol = np.linalg.cholesky(covs)  # (K, m, m)
            z = X[rows][:, None, columns] - gaussians.means[rows][:, :, columns]
            white = np.linalg.solve(chol, z.transpose(1, 2, 0))  # (K, m, rows)
            log_det = np.log(np.diagonal(chol, axis1=1, axis2=2)).sum(axis=1)
            out[rows] = -0.5 * (white**2).sum(axis=1).T - 0.5 * len(columns) * LOG_2PI - log_det
        return out

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> list[Any]:
        """Draw the missing values from their conditional distribution.

        Parameters
        ----------
        n_samples : int
            Number of tables.
        random_state : int, RandomState or None

        Returns
        -------
        list of `n_samples` tables
            Each like the rows (same library, index, columns and types), with the missing values drawn; integer columns
            have integers.
        """
        check_count("n_samples", n_samples)
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        cumulative = self.weights.cumsum(axis=1)
        uniform = rng.random((n_samples, len(self), 1)) * cumulative[:, -1:]
        component = (uniform > cumulative[:, :-1]).sum(axis=2)  # (samples, n)
        numbers = np.broadcast_to(self._certain, (n_samples, *self.table.X.shape)).copy()
        if self.gaussians is not None:
            numbers[:, :, self.varying] = _draw_numbers(self.gaussians, component, rng)
        codes = None if self.table.codes is None else self._draw_codes(self.table.codes, component, rng)
        return [
            imputed_like(self.given, self.table, numbers[s], None if codes is None else codes[s])
            for s in range(n_samples)
        ]

    def _draw_codes(self, observed: np.ndarray, component: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return codes with the missing ones drawn, (samples, n, m)."""
        codes = np.broadcast_to(observed, (len(component), *observed.shape)).copy()
        for place, table in enumerate(self.category_probabilities.values()):
            rows = np.flatnonzero(observed[:, place] < 0)
            cumulative = table.values.cumsum(axis=1)[:, :-1][component[:, rows]]  # (samples, rows, values - 1)
            codes[:, rows, place] = (rng.random((len(component), len(rows), 1)) > cumulative).sum(axis=2)
        return codes

    # --- text ---------------------------------------------------------------------------------------------------------

    @property
    def missing(self) -> np.ndarray:
        """(n,) which rows have missing values."""
        missing = np.isnan(self.table.X).any(axis=1)
        return missing if self.table.codes is None else missing | (self.table.codes < 0).any(axis=1)

    def _brief(self) -> str:
        n, K = self.weights.shape
        return f"{count(n, 'row')}, {int(self.missing.sum())} with missing values, {count(K, 'component')}"

    def _content(self) -> list[Content]:
        cells: list[list[Any]] = []
        for i in np.flatnonzero(self.missing)[:MOST_ROWS].tolist():
            row = self[i]
            numbers = zip(row.columns, row.mean(), row.std())
            cells += [[str(i), name, f"{readable(m)} ± {readable(s, 3)}"] for name, m, s in numbers]
            tables = row.category_probabilities.items()
            cells += [[str(i), name, _likely(row.weights @ table, table)] for name, table in tables]
        if not cells:
            return [Paragraph("No value is missing.")]
        caption = "Mean ± standard deviation, or most probable value"
        return [Cells(caption, ["row", "column", "distribution"], cells[:MOST_ROWS])]


def _likely(probabilities: Array, table: CategoryProbabilities) -> str:
    """The most probable value and its probability."""
    best = int(np.argmax(probabilities))
    return f"{table.categories[best]} ({percent(float(probabilities[best]))})"


def _mixture_quantile(weights: Array, means: Array, stds: Array, q: float) -> Array:
    """Return the quantile of Gaussian mixtures of one column, (n,), from arrays (n, K), by bisection.

    It lies between the smallest and the largest quantile of the components.
    """
    out = means[:, 0].copy()
    uncertain = (stds > 0).all(axis=1)
    weights, means, stds = weights[uncertain], means[uncertain], stds[uncertain]
    quantiles = means + stds * ndtri(q)
    low, high = quantiles.min(axis=1), quantiles.max(axis=1)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = (weights * ndtr((middle[:, None] - means) / stds)).sum(axis=1) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    out[uncertain] = 0.5 * (low + high)
    return out


def _draw_numbers(gaussians: ConditionalGaussians, component: np.ndarray, rng: np.random.Generator) -> Array:
    """Return numeric columns with the missing values drawn, (samples, n, d), given components (samples, n)."""
    n_samples, n = component.shape
    rows = np.arange(n)
    out = gaussians.means[rows, component]  # (samples, n, d)
    for p, (columns, covs) in enumerate(zip(gaussians.columns, gaussians.covs)):
        index = np.flatnonzero(gaussians.pattern == p)
        if not len(columns):
            continue
        chol = np.linalg.cholesky(covs)
        z = rng.standard_normal((n_samples, len(index), len(columns)))
        of = component[:, index]
        drawn = np.empty_like(z)
        for k in np.unique(of):
            drawn[of == k] = z[of == k] @ chol[k].T
        out[:, index[:, None], columns] += drawn
    return out
