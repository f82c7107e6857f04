"""Bayes classifier with a Parzen window density for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import ExplainedByColumn
from mixent.base.capabilities import LEFT_OUT, YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.executors import choose_executor
from mixent.base.params import check_choice, check_flag, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.base.result import RecordsAttribute
from mixent.classical.bandwidths import CRITERIA, LeaveOneOut, choose_bandwidths
from mixent.classical.training import LabelledRows, read_labelled_rows, to_all_rows
from mixent.classical.windows import Columns, Windows
from mixent.core.arrays import Array, log_sum_exp
from mixent.data import read_features


class ParzenClassifier(ExplainedByColumn, ProbabilisticClassifier):
    """Bayes classifier with a Parzen window (kernel density) estimate for each class.

    The density of a class is the mean of product kernels centered at its training rows [1]_, [3]_:

        p(x | c) = 1/N_c sum_{n in c} prod_j K_j(x_j | x_nj),     p(c | x) = p_c p(x | c) / sum_k p_k p(x | k)

    For numbers, K is a Gaussian whose standard deviation is `bandwidth` times that of the column (of all rows). For a
    column with k categories it is the kernel of Aitchison and Aitken [2]_, 1 - a at the same category and a / (k - 1)
    at each other one, with a = (k - 1) / (k - 1 + exp(1 / bandwidth^2)). Constant columns are ignored.

    bandwidth="auto" chooses the bandwidth from a grid by exact leave-one-out cross-validation.  Maximizes

        sum_n w_n log p(y_n | x_n; all rows but n)     with criterion="conditional", or
        sum_n w_n log p(x_n | y_n; all rows but n)     with criterion="likelihood".

    With `per_class`, coordinate ascent then varies the bandwidth of one class at a time; the criterion never decreases.
    Nothing else is fitted, and the time of a prediction is proportional to the number of training rows.

    Missing values: for a row to classify, the factor of the column is left out, which is the exact marginal density. In
    the kernel of a training row the factor is replaced by the pooled density of the column, the same for all classes (a
    Gaussian with the column's mean and variance, or the shares of the categories, under the same kernel). So p(x | c)
    remains a density, and a missing value of a training row is no evidence for any class. A category that did not occur
    in training counts as missing.

    Parameters
    ----------
    bandwidth : "auto", float or (C,) array
        Bandwidth of the kernels, in standard deviations of the columns (in their units with standardize=False). An
        array has one bandwidth for each class.
    criterion : "conditional" or "likelihood"
        Criterion that selects the bandwidth if bandwidth="auto", computed by leave-one-out cross-validation. Use
        "conditional" for classification, "likelihood" for density estimation.
    per_class : bool
        Whether to choose the bandwidth separately for each class; only used with bandwidth="auto".
    class_prior : "empirical", (C,) array or dict of label -> probability
        Class prior probabilities.
    standardize : bool
        Scale continuous columns to variance 1, so that the bandwidth is in standard deviations of each column.
    categorical : "auto" or list
        Columns to treat as categorical whatever their type.
    n_jobs : int or None
        Number of threads; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    class_prior_ : (C,) array
        Class priors in use, which `adjust_priors` may change.
    bandwidth_ : float or (C,) array
        Bandwidth in use.
    bandwidths_tried_ : list of dict
        Common bandwidths tried, with the value of the criterion for each, in nats per row.
    loo_proba_ : (n, C) array
        Leave-one-out class probabilities of the training rows; NaN for rows without a label or weight, and for a row
        that is the only one of its class.
    loo_log_loss_, loo_error_ : float
        Log-loss (nats) and error rate of `loo_proba_`. Slightly optimistic if the bandwidth was chosen by them, or if
        rows are duplicated.
    windows_ : Windows
        Encoded training rows and their weights, by class.
    n_rows_ : int
        Number of training rows.
    schema_ : Schema
        Names and types of the columns.
    background_ : Background
        The training rows, at most 50, with which `explain` compares a row.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    KernelFisherClassifier : Kernel Fisher discriminant analysis.
    MixtureClassifier : Bayes classifier with a mixture density for each class.
    sklearn.neighbors.KernelDensity : Kernel density estimation without classes.

    References
    ----------
    .. [1] Parzen, E. (1962). On estimation of a probability density function and mode. Annals of Mathematical
       Statistics 33(3), 1065-1076.
    .. [2] Aitchison, J. and Aitken, C. G. G. (1976). Multivariate binary discrimination by the kernel method.
       Biometrika 63(3), 413-420.
    .. [3] Johns Hopkins University, 685.621 Algorithms for Data Science. Machine Learning I. Section 1 (document 003).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import ParzenClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ParzenClassifier().fit(X, y)
    >>> bool(model.loo_error_ < 0.06), bool(0.1 < model.bandwidth_ < 1)
    (True, True)
    """

    bandwidths_tried_ = RecordsAttribute()

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
        """Store the training rows and choose the bandwidth.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : (n,) labels or (n, C) label probabilities
            A row with probabilities counts for each class in proportion to its probability. Rows without a label (None,
            NaN or "") are not used.
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row, also in leave-one-out cross-validation.

        Returns
        -------
        self
        """
        self._check()
        rows = read_labelled_rows(self, X, y, sample_weight)
        prior = read_class_prior(self.class_prior, self.classes_)
        self._read_bandwidths()
        self._keep_background(rows.table, rows.weight)
        columns = Columns.of(rows.table, rows.weight, self.standardize)
        encoded = columns(rows.table)
        self.windows_ = Windows.of(columns, encoded, rows.counts)
        self.class_prior_ = rows.class_shares if prior is None else prior
        with progress_bar(self.progress, "bandwidth") as show, self._executor(len(rows.index)) as executor:
            self._fit_bandwidths(LeaveOneOut(self.windows_, encoded, rows, prior, executor), show)
        return self

    def _check(self) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        for name in ("per_class", "standardize"):
            check_flag(name, getattr(self, name))
        if not self._is_auto():
            for name, default in (("criterion", CRITERIA[0]), ("per_class", False)):
                if getattr(self, name) != default:
                    raise ValueError(
                        f"{name}={getattr(self, name)!r} is only used with bandwidth='auto'; got "
                        f"bandwidth={self.bandwidth!r}"
                    )

    def _is_auto(self) -> bool:
        return isinstance(self.bandwidth, str) and self.bandwidth == "auto"

    def _read_bandwidths(self) -> Array | None:
        """(C,) the given bandwidths; None with bandwidth="auto"."""
        if self._is_auto():
            return None
        C = len(self.classes_)
        if np.ndim(self.bandwidth) != 1:
            return np.full(C, check_positive("bandwidth", self.bandwidth, also="'auto' or one number for each class"))
        if len(self.bandwidth) != C:
            raise ValueError(f"bandwidth must have one number for each of the {C} classes; got {len(self.bandwidth)}")
        return np.array([check_positive("bandwidth of a class", h) for h in self.bandwidth])

    def _fit_bandwidths(self, leave_one_out: LeaveOneOut, show: Any) -> None:
        """Set the bandwidths, chosen if they are not given, and the leave-one-out predictions."""
        bandwidths, columns = self._read_bandwidths(), leave_one_out.windows.columns
        self.bandwidths_tried_ = []
        base = float(np.exp(0.5 * np.log(columns.variance).mean())) if len(columns.variance) else 1.0
        if bandwidths is None and not leave_one_out.scored.any():
            bandwidths = np.full(leave_one_out.windows.n_classes, base * scott_bandwidth(leave_one_out))
        if bandwidths is None:
            choice = choose_bandwidths(leave_one_out, self.criterion, self.per_class, base, show)
            self.bandwidths_tried_, bandwidths, log_density = choice.tried, choice.bandwidths, choice.log_density
        else:
            log_density = leave_one_out.log_density(bandwidths[None])[0]
        single = np.ptp(bandwidths) == 0 and not self.per_class and np.ndim(self.bandwidth) == 0
        self.bandwidth_: Any = float(bandwidths[0]) if single else bandwidths
        self._set_loo(leave_one_out.rows, leave_one_out.log_proba(log_density), leave_one_out.scored)

    def _set_loo(self, rows: LabelledRows, log_proba: Array, scored: np.ndarray) -> None:
        self.loo_proba_ = to_all_rows(np.exp(log_proba[scored]), rows.index[scored], self.n_rows_)
        self.loo_log_loss_, self.loo_error_ = log_loss_and_error(log_proba[scored], rows.counts[scored])

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
        return sums + per_class + windows.columns.log_jacobian(rows)[:, None]

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = floored(prior)

    def score_samples(self, X: Any) -> Array:
        """Log-density of each row, summed over the classes.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
            In nats; the density of the observed values, in the units of the columns.
        """
        check_is_fitted(self)
        return log_sum_exp(self._log_joint(X), axis=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="integrated out exactly; in training rows replaced by the pooled density of the column",
            weights=YES,
            soft_labels=yes("a row counts for each class in proportion to its probability"),
            absent_labels=LEFT_OUT,
            mixed=YES,
            density=YES,
        )


def scott_bandwidth(leave_one_out: LeaveOneOut) -> float:
    """Scott's rule, n^(-1/(d+4)), used if no class has two rows."""
    n, d = float(leave_one_out.rows.weight.sum()), leave_one_out.encoded.observed.shape[1]
    return float(n ** (-1.0 / (d + 4)))


def log_loss_and_error(log_proba: Array, counts: Array) -> tuple[float, float]:
    """Log-loss in nats and error rate, for rows with these weights in each class; NaN without any rows."""
    total = counts.sum()
    if total == 0:
        return float("nan"), float("nan")
    log_p = np.where(counts > 0, log_proba, 0.0)
    correct = np.take_along_axis(counts, log_proba.argmax(axis=1)[:, None], axis=1).sum()
    return float(-(counts * log_p).sum() / total), float(1 - correct / total)
