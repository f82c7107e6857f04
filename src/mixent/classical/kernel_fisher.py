"""The kernel Fisher discriminant, with probabilities from leave-one-out scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import ExplainedByColumn
from mixent.base.bounded_loss import log_with_uniform
from mixent.base.capabilities import LEFT_OUT, YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.executors import choose_executor
from mixent.base.kernels import RBF, Kernel, Linear, Nystrom, Polynomial, read_kernel
from mixent.base.options import reads
from mixent.base.params import check_flag, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.base.result import RecordsAttribute
from mixent.classical.discriminant import ClassGaussians, Smoother, directions, log_proba
from mixent.classical.parzen import log_loss_and_error
from mixent.classical.training import LabelledRows, read_labelled_rows, to_all_rows
from mixent.core.arrays import Array
from mixent.data import Table, read_features
from mixent.med.encoding import FILLED, Encoder
from mixent.med.training_sets import in_batches
from mixent.show import Short

GAMMAS = 2.0 ** np.array([-6, -4, -3, -2, -1, 0, 1, 2])  # factors of gamma="scale"
SHRINKAGES = 10.0 ** np.arange(-5, 2.5, 0.5)
MOST_ROWS = 2_000  # with more rows, Nyström features approximate the kernel
LANDMARKS = 1_000
BATCH = 1_024  # rows scored together


@reads(RBF, Linear, Polynomial)
def read_fisher_kernel(name: str, value: Any) -> Kernel:
    """Read the kernel."""
    return read_kernel(name, value, (RBF, Linear, Polynomial))


class KernelFisherClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ExplainedByColumn, ProbabilisticClassifier
):
    """Kernel Fisher discriminant analysis for any number of classes.

    The discriminants are the functions f of a kernel's feature space that separate the classes best [1]_, [4]_. Each
    maximizes the Rayleigh quotient

        variance of f between classes / (variance of f within classes + lam |f|^2 / N),

    which is equivalent to ridge regression on one-hot class labels [2]_, [3]_; lam is `shrinkage` times the variance of
    the rows in the feature space. The solution is in closed form.

    Class probabilities follow from Gaussians with a common covariance in the space of the C - 1 discriminants, mixed
    with a share 1 / (n + 2) of the class prior. The Gaussians are fitted to leave-one-out scores, because the scores of
    rows used in training are too optimistic; for ridge regression these have an exact closed form and need no further
    fits. gamma="auto" and shrinkage="auto" choose from a grid.  Maximizes

        sum_n w_n log p(y_n | leave-one-out scores of row n)

    over the grid. Only the encoding of the columns uses all rows.

    A missing value of a numeric column is replaced by the mean, with an indicator column; categories are one-hot
    encoded (all zero for a missing value), as for MEDClassifier.

    Parameters
    ----------
    kernel : "rbf", "linear", "poly", RBF or Polynomial
        Kernel function. "rbf" and "poly" are `RBF()` and `Polynomial()`, whose gamma is chosen from 1/64 to 4 times
        "scale". "linear" is linear discriminant analysis with a ridge penalty. With more than 2000 rows, 1000 Nyström
        features replace the kernel matrix, unless `n_landmarks` of the kernel is a number or None.
    shrinkage : "auto" or float
        Ridge penalty on |f|^2, relative to the variance of the rows. "auto" chooses from 1e-5 to 100.
    class_prior : "empirical", (C,) array or dict of label -> probability
        Class prior probabilities.
    standardize : bool
        Scale continuous columns to mean 0 and variance 1.
    categorical : "auto" or list
        Columns to treat as categorical whatever their type.
    random_state : int, RandomState or None
        Seed for the landmarks of Nyström features.
    n_jobs : int or None
        Number of threads for the kernel matrix; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    class_prior_ : (C,) array
        Class priors in use, which `adjust_priors` may change.
    training_prior_ : (C,) array
        Class priors with which the model was fitted.
    gamma_ : float or None
        `gamma` of the kernel in use; None for the linear kernel.
    shrinkage_ : float
        `shrinkage` in use.
    tried_ : list of dict
        gamma, shrinkage and leave-one-out log_loss of every combination tried.
    loo_proba_ : (n, C) array
        Leave-one-out class probabilities of the training rows; NaN for rows without a label or weight.
    loo_log_loss_, loo_error_ : float
        Log-loss (nats) and error rate of `loo_proba_`. Slightly optimistic if gamma or shrinkage was chosen by them.
    gaussians_ : ClassGaussians
        Class means and common covariance in the space of the discriminants.
    coefficients_ : (m, C - 1) array
        Coefficients of the discriminants in `basis_`.
    intercept_ : (C - 1,) array
        Intercepts of the discriminants.
    basis_ : Basis
        Basis functions of the discriminants: the kernel with the training rows, Nyström features or encoded columns.
    encoder_ : Encoder
        Encoding of the columns.
    feature_names_ : tuple of str
        Names of the encoded columns.
    total_weight_ : float
        Total weight of the labelled training rows.
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
    ParzenClassifier : Bayes classifier with a kernel density estimate for each class.
    MEDClassifier : Maximum-margin classifier with a kernel.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Fisher's linear discriminant.
    sklearn.kernel_ridge.KernelRidge : Kernel ridge regression.

    References
    ----------
    .. [1] Fisher, R. A. (1936). The use of multiple measurements in taxonomic problems. Annals of Eugenics 7, 179-188.
    .. [2] Mika, S., Rätsch, G., Weston, J., Schölkopf, B. and Müller, K.-R. (1999). Fisher discriminant analysis with
       kernels. Neural Networks for Signal Processing IX, 41-48.
    .. [3] Hastie, T., Buja, A. and Tibshirani, R. (1995). Penalized discriminant analysis. Annals of Statistics 23(1),
       73-102.
    .. [4] Johns Hopkins University, 685.621 Algorithms for Data Science. Machine Learning I. Section 1 (document 003).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixent import KernelFisherClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelFisherClassifier().fit(X, y)
    >>> model.transform(X).shape, bool(model.loo_error_ < 0.03)
    ((178, 2), True)
    """

    tried_ = RecordsAttribute()

    _groups = {"kernel": read_fisher_kernel}

    def __init__(
        self,
        kernel: str | Kernel = "rbf",
        *,
        shrinkage: str | float = "auto",
        class_prior: Any = "empirical",
        standardize: bool = True,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.kernel = kernel
        self.shrinkage = shrinkage
        self.class_prior = class_prior
        self.standardize = standardize
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the discriminants.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : (n,) labels or (n, C) label probabilities
            Rows without a label (None, NaN or "") are not used.
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row, also in leave-one-out scores (not with Nyström features,
            whose landmarks are drawn at random).

        Returns
        -------
        self
        """
        self._check()
        rows = read_labelled_rows(self, X, y, sample_weight)
        prior = read_class_prior(self.class_prior, self.classes_)
        self.class_prior_ = rows.class_shares if prior is None else prior
        self.training_prior_ = self.class_prior_.copy()
        self._keep_background(rows.table, rows.weight)
        self.encoder_ = Encoder.of(rows.table, rows.weight, self.standardize)
        Z = self.encoder_(rows.table)
        workers = choose_executor(self.n_jobs, len(Z), len(Z))
        with progress_bar(self.progress, "discriminants") as show, workers as executor:
            search = _Search(Z, rows, self.class_prior_, self._landmarks(len(Z)), executor)
            best = self._choose(search, show)
            self._set_attributes(search, best)
        return self

    def _check(self) -> None:
        self._group("kernel").check()
        check_flag("standardize", self.standardize)
        check_random_state(self.random_state)  # an invalid value is an error even if nothing is drawn
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            check_positive("shrinkage", self.shrinkage, also="'auto'")

    # --- one fit ------------------------------------------------------------------------------------------------

    def _landmarks(self, n: int) -> np.ndarray | None:
        """Rows that are landmarks of Nyström features; None: use the whole kernel matrix."""
        n_landmarks = self._group("kernel").count_landmarks(n, LANDMARKS if n > MOST_ROWS else None)
        if n_landmarks is None:
            return None
        return np.sort(check_random_state(self.random_state).permutation(n)[:n_landmarks])

    def _choose(self, search: _Search, show: Any) -> _Fit:
        """Return the fit with the lowest leave-one-out log-loss."""
        kernels = self._group("kernel").candidates(search.Z, search.rows.weight, GAMMAS)
        shrinkages = SHRINKAGES if isinstance(self.shrinkage, str) else np.array([float(self.shrinkage)])
        tried: list[dict] = []
        best: _Fit | None = None
        for i, kernel in enumerate(kernels):
            if show is not None:
                show(i, len(kernels), "kernel" if _gamma(kernel) is None else f"gamma {_gamma(kernel):.3g}")
            for fit in search(kernel, shrinkages):
                tried.append({"gamma": _gamma(kernel), "shrinkage": fit.shrinkage, "log_loss": fit.log_loss})
                best = fit if best is None or fit.log_loss < best.log_loss else best
        assert best is not None
        self.tried_ = tried
        return best

    def _set_attributes(self, search: _Search, best: _Fit) -> None:
        rows = search.rows
        coefficients = best.smoother.coefficients(rows.target, best.lam) @ best.projection
        share = rows.weight / rows.weight.sum()
        self.basis_, self.coefficients_ = best.basis, coefficients
        scores = np.concatenate(
            [best.basis(search.Z[start : start + BATCH]) @ coefficients for start in range(0, len(share), BATCH)]
        )
        self.intercept_ = share @ rows.target @ best.projection - share @ scores
        self.gaussians_ = best.gaussians
        self.total_weight_ = float(rows.weight.sum())
        self.gamma_, self.shrinkage_ = _gamma(best.basis.kernel), best.shrinkage
        self.loo_proba_ = to_all_rows(np.exp(best.log_proba), rows.index, self.n_rows_)
        self.loo_log_loss_, self.loo_error_ = log_loss_and_error(best.log_proba, rows.counts)

    # --- predictions --------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Project rows onto the discriminants.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C - 1) array
            The strongest discriminant first, each with variance 1 within classes (of leave-one-out scores).
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False)

        def scores(part: Table) -> Array:
            return self.basis_(self.encoder_(part)) @ self.coefficients_ + self.intercept_

        out = in_batches(table, scores)
        overflowed = ~np.isfinite(out).all(axis=1)
        if overflowed.any():
            raise ValueError(
                f"row {int(overflowed.argmax())} is so far from the training rows that its kernel overflows; correct "
                "or remove it"
            )
        return out

    def _log_joint(self, X: Any) -> Array:
        log_density = self.gaussians_.log_density(self.transform(X))
        log_posterior = log_proba(log_density, self.training_prior_, self.total_weight_)
        return log_posterior + np.log(self.class_prior_) - np.log(self.training_prior_)  # Bayes' rule for other priors

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = floored(prior)

    @property
    def feature_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        check_is_fitted(self)
        return self.encoder_.names

    @property
    def _n_features_out(self) -> int:
        return self.coefficients_.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        shared = yes("a row counts for each class in proportion to its probability")
        return able(
            tags, reads_tables=True, missing=FILLED, weights=YES, soft_labels=shared, absent_labels=LEFT_OUT, mixed=YES
        )


@dataclass(frozen=True, repr=False)
class Basis(Short):
    """Basis functions of the discriminants: the kernel with training rows, Nyström features, or encoded columns."""

    kernel: Kernel
    nystrom: Nystrom | None
    vectors: Array | None  # (m, width) encoded training rows; None: features or encoded columns

    def __call__(self, Z: Array) -> Array:
        if self.nystrom is not None:
            return self.nystrom(Z)
        return Z if self.vectors is None else self.kernel.gram(Z, self.vectors)


def _gamma(kernel: Kernel) -> float | None:
    return getattr(kernel, "gamma", None)


@dataclass(frozen=True)
class _Fit:
    """A fit for one kernel and shrinkage, with its leave-one-out predictions."""

    basis: Basis
    smoother: Smoother
    lam: float
    shrinkage: float
    projection: Array  # (C, C-1) from class scores to discriminants
    gaussians: ClassGaussians
    log_proba: Array  # (m, C) leave-one-out
    log_loss: float


@dataclass(frozen=True)
class _Search:
    """Fits for given kernels, with all values of the shrinkage."""

    Z: Array
    rows: LabelledRows
    prior: Array
    landmarks: np.ndarray | None
    executor: Any

    def __call__(self, kernel: Kernel, shrinkages: Array) -> list[_Fit]:
        rows, nystrom = self.rows, None
        by_columns = isinstance(kernel, Linear) and self.Z.shape[1] < len(self.Z)
        if by_columns:
            smoother = Smoother.of_features(self.Z, rows.weight)
        elif self.landmarks is None:
            smoother = Smoother.of_kernel(kernel.square(self.Z, self.executor), rows.weight)
        else:
            nystrom = Nystrom.of(kernel, self.Z[self.landmarks])
            smoother = Smoother.of_features(nystrom(self.Z), rows.weight)
        vectors = None if by_columns or nystrom is not None else self.Z
        basis = Basis(kernel, nystrom, vectors)
        return [self._fit(basis, smoother, float(shrinkage)) for shrinkage in shrinkages]

    def _fit(self, basis: Basis, smoother: Smoother, shrinkage: float) -> _Fit:
        rows = self.rows
        lam = max(shrinkage * smoother.trace / rows.weight.sum(), 1e-300)
        fitted, loo = smoother.leave_one_out(rows.target, lam, rows.left_out)
        loo = loo + rows.class_shares - rows.loo_class_shares
        projection = directions(rows.target, fitted, rows.weight)
        one_row = np.eye(projection.shape[1])  # variance of the indicators
        gaussians = ClassGaussians.of(loo @ projection, rows.counts, one_row)
        projection = projection / np.sqrt(np.diagonal(gaussians.cov))
        gaussians = gaussians.scaled(1 / np.sqrt(np.diagonal(gaussians.cov)))
        log_p = log_proba(gaussians.log_density(loo @ projection), self.prior, rows.weight.sum())
        log_loss, _ = log_loss_and_error(log_with_uniform(log_p), rows.counts)
        return _Fit(basis, smoother, lam, shrinkage, projection, gaussians, log_p, log_loss)
