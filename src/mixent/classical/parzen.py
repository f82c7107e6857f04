"""Bayes' rule with a Parzen window density for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import LEFT_OUT, YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.executors import choose_executor
from mixent.base.params import check_choice, check_flag, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.classical.bandwidths import CRITERIA, LeftOut, choose
from mixent.classical.training import Rows, read_rows, spread_out
from mixent.classical.windows import Columns, Windows
from mixent.core.arrays import Array, log_sum_exp
from mixent.data import read_features


class ParzenClassifier(ProbabilisticClassifier):
    """Bayes classifier with a Parzen window density for each class (Parzen 1962).

    Every training row is a window, a product over the columns; the density of a class is the mean of its windows:

        p(x | c) = 1/N_c sum_{n in c} prod_j K_j(x_j | x_nj),     p(c | x) = p_c p(x | c) / sum_k p_k p(x | k)

    For numbers K is a Gaussian whose standard deviation is `bandwidth` times that of the column (of all rows); for a
    category of k it is the kernel of Aitchison and Aitken (1976), 1 - a at the same category and a / (k - 1) at each
    other one, with a = (k - 1) / (k - 1 + exp(1 / bandwidth^2)). Columns that do not vary are left out.

    bandwidth="auto"  Maximizes over a grid the leave-one-out score, exactly,

        sum_n w_n log p(y_n | x_n; all rows but n)     (criterion="conditional"), or of p(x_n | y_n; ...) ("likelihood")

    and with `per_class` goes on from the best common bandwidth, one class at a time: the score never falls. There is
    nothing else to fit; predicting takes time in proportion to the training rows.

    Missing values: of a row to classify, the factor of the column is left out, which is the exact marginal of the
    density. In the window of a training row the factor is the pooled density of the column instead, the same for all
    classes (a Gaussian with the column's mean and variance, or the shares of the categories, under the same kernel):
    the density stays one, and a missing value of a training row is no evidence for a class. A category not seen in
    training counts as missing.

    Parameters
    ----------
    bandwidth : "auto", float or (C,) array
        Width of the windows, in standard deviations of the columns (standardize=False: in their units); an array has
        one for each class.
    criterion : "conditional" or "likelihood"
        What bandwidth="auto" is chosen by: "conditional" is for classification, "likelihood" for densities.
    per_class : bool
        With bandwidth="auto": a bandwidth for each class.
    class_prior : "empirical" or (C,) array
        Shares of the classes.
    standardize : bool
        Count the bandwidth in standard deviations of each column.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares.
    bandwidth_ : float or (C,) array
        In use.
    bandwidths_tried_ : list of dict
        Common bandwidths tried, and the value of each: the criterion per row, in nats.
    loo_proba_ : (n, C) array
        Probabilities of the classes of each training row by all others; NaN without a label or weight, and for a row
        whose class has no other.
    loo_log_loss_, loo_error_ : float
        Of those. Slightly too good where the bandwidth was chosen by them, and where rows are duplicated.
    windows_ : Windows
        The training rows as kernels see them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import ParzenClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ParzenClassifier().fit(X, y)
    >>> bool(model.loo_error_ < 0.06), bool(0.1 < model.bandwidth_ < 1)
    (True, True)
    """

    def __init__(
        self,
        bandwidth: Any = "auto",
        *,
        criterion: str = "conditional",
        per_class: bool = False,
        class_prior: Any = "empirical",
        standardize: bool = True,
        categorical: Any = "auto",
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.bandwidth = bandwidth
        self.criterion = criterion
        self.per_class = per_class
        self.class_prior = class_prior
        self.standardize = standardize
        self.categorical = categorical
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows, and choose the bandwidth.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : (n,) labels or (n, C) label probabilities
            A row with probabilities is a window of each class. None, NaN or "" for a row without a label: it plays no
            part.
        sample_weight : (n,) array, optional
            Counts: a weight of 2 is equivalent to repeating the row, also when one is left out.

        Returns
        -------
        self
        """
        self._check()
        rows = read_rows(self, X, y, sample_weight)
        prior = read_class_prior(self.class_prior, len(self.classes_))
        self._read_bandwidths()
        columns = Columns.of(rows.table, rows.weight, self.standardize)
        encoded = columns(rows.table)
        self.windows_ = Windows.of(columns, encoded, rows.counts)
        self.class_prior_ = rows.shares if prior is None else prior
        with progress_bar(self.progress, "windows") as show, self._executor(len(rows.at)) as executor:
            self._settle(LeftOut(self.windows_, encoded, rows, prior, executor), show)
        return self

    def _check(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        for name in ("per_class", "standardize"):
            check_flag(name, getattr(self, name))
        if not self._is_auto():
            for name, usual in (("criterion", CRITERIA[0]), ("per_class", False)):
                if getattr(self, name) != usual:
                    raise ValueError(
                        f"{name}={getattr(self, name)!r} is only used with bandwidth='auto'; got "
                        f"bandwidth={self.bandwidth!r}"
                    )

    def _is_auto(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "auto"

    def _read_bandwidths(self) -> Array | None:
        """(C,) as given; None where they are to be chosen."""
        if self._is_auto():
            return None
        C = len(self.classes_)
        if np.ndim(self.bandwidth) != 1:
            if isinstance(self.bandwidth, str):
                raise ValueError(
                    f"bandwidth must be 'auto', a number > 0, or one for each class; got {self.bandwidth!r}"
                )
            return np.full(C, check_positive("bandwidth", self.bandwidth))
        if len(self.bandwidth) != C:
            raise ValueError(f"bandwidth must have one number for each of the {C} classes; got {len(self.bandwidth)}")
        return np.array([check_positive("bandwidth", h) for h in self.bandwidth])

    def _settle(self, left: LeftOut, show: Any) -> None:
        """Choose the bandwidths, if they are not given, and score the rows left out."""
        given, columns = self._read_bandwidths(), left.windows.columns
        self.bandwidths_tried_: list[dict] = []
        base = float(np.exp(0.5 * np.log(columns.variance).mean())) if len(columns.variance) else 1.0
        if given is None and not left.scored.any():
            given = np.full(left.windows.n_classes, base * usual_bandwidth(left))  # nothing to choose by
        if given is None:
            chosen = choose(left, self.criterion, self.per_class, base, show)
            self.bandwidths_tried_, given, density = chosen.tried, chosen.bandwidths, chosen.log_density
        else:
            density = left.log_density(given[None])[0]
        single = np.ptp(given) == 0 and not self.per_class and np.ndim(self.bandwidth) == 0
        self.bandwidth_: Any = float(given[0]) if single else given
        self._keep_left_out(left.rows, left.log_proba(density), left.scored)

    def _keep_left_out(self, rows: Rows, log_proba: Array, scored: np.ndarray) -> None:
        self.loo_proba_ = spread_out(np.exp(log_proba[scored]), rows.at[scored], self.n_rows_)
        self.loo_log_loss_, self.loo_error_ = losses(log_proba[scored], rows.counts[scored])

    def _executor(self, n_rows: int) -> Any:
        return choose_executor(self.n_jobs, n_rows, len(self.windows_.log_count))

    def _log_joint(self, X: Any) -> Array:
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        windows = self.windows_
        rows = windows.columns(table)
        bandwidths = np.broadcast_to(np.asarray(self.bandwidth_, dtype=float), (1, windows.n_classes))
        with self._executor(len(rows.E)) as executor:
            sums = windows.log_sums(rows, bandwidths, executor)[0]
        per_class = np.log(self.class_prior_) - np.log(windows.mass)
        return sums + per_class + windows.columns.log_units(rows)[:, None]

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = floored(prior)

    def score_samples(self, X: Any) -> Array:
        """Log density of each row, its class summed out, in nats.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array; of the columns in which a row has values, in their own units.
        """
        check_is_fitted(self)
        return log_sum_exp(self._log_joint(X), axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="of a row to classify integrated out exactly; in a window the pooled density of the column",
            weights=YES,
            soft_labels=yes("a row is a window of each class, by its share"),
            absent_labels=LEFT_OUT,
            mixed=YES,
            density=YES,
        )


def usual_bandwidth(left: LeftOut) -> float:
    """Scott's rule, n^(-1/(d+4)), for tables in which no class has two rows."""
    n, d = float(left.rows.weight.sum()), left.encoded.seen.shape[1]
    return float(n ** (-1.0 / (d + 4)))


def losses(log_proba: Array, counts: Array) -> tuple[float, float]:
    """Log-loss in nats and error of rows with these counts in each class; NaN where there are none."""
    total = counts.sum()
    if total == 0:
        return float("nan"), float("nan")
    told = np.where(counts > 0, log_proba, 0.0)
    right = np.take_along_axis(counts, log_proba.argmax(axis=1)[:, None], axis=1).sum()
    return float(-(counts * told).sum() / total), float(1 - right / total)
