"""The kernel Fisher discriminant, with probabilities from rows left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import LEFT_OUT, YES, able, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.executors import choose_executor
from mixent.base.kernels import RBF, Kernel, Linear, Nystrom, Polynomial, read_kernel
from mixent.base.options import reads
from mixent.base.params import check_flag, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.classical.discriminant import ClassGaussians, Smoother, directions, log_proba
from mixent.classical.parzen import losses
from mixent.classical.training import Rows, read_rows, spread_out
from mixent.core.arrays import Array
from mixent.data import Table, read_features
from mixent.med.encoding import FILLED, Encoder
from mixent.med.training_sets import in_batches

GAMMAS = 2.0 ** np.array([-6, -4, -3, -2, -1, 0, 1, 2])  # times gamma="scale"
SHRINKAGES = 10.0 ** np.arange(-5, 2.5, 0.5)
MOST_ROWS = 2_000  # beyond, a kernel goes through features
LANDMARKS = 1_000
PART = 1_024  # rows scored together


@reads(RBF, Linear, Polynomial)
def read_fisher_kernel(name: str, value: Any) -> Kernel:
    """The kernel; that of a short form has its gamma chosen."""
    return read_kernel(name, value, (RBF, Linear, Polynomial), gamma="auto")


class KernelFisherClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ProbabilisticClassifier):
    """Kernel Fisher discriminant (Mika et al. 1999), for any number of classes.

    Finds the functions f of a kernel's space along which classes lie apart and are narrow.  Maximizes

        variance of f between classes / (variance of f within classes + lam |f|^2 / N)

    which is ridge regression on one indicator for each class (Hastie, Buja and Tibshirani 1995); lam is `shrinkage`
    times the rows' variance in the kernel's space. In closed form, so there are no steps; the best value
    found on the way never falls.

    Probabilities are those of Gaussians with one covariance in the space of the C - 1 discriminants, a share of
    1 / (n + 2) spread as the class priors. They are fitted to
    the scores that each training row gets from all others: those of a row that was trained on are too good.
    Leaving a row out of ridge regression has a closed form, so this is exact and takes no further fit. "auto" chooses
    gamma and shrinkage by the log-loss of those scores: it maximizes sum_n w_n log p(y_n | scores of n by the others).
    The encoding of the columns is that of all rows.

    A missing value of a numeric column is replaced by the mean, with an indicator column; categories are one-hot
    encoded (a missing value has no bit), as for MEDClassifier.

    Parameters
    ----------
    kernel : "rbf", "linear", "poly", RBF or Polynomial
        "rbf" and "poly" are RBF(gamma="auto") and Polynomial(gamma="auto"): gamma is chosen from 1/64 to 4 times
        "scale". "linear" is linear discriminant analysis with a ridge. Beyond 2000 rows 1000 Nyström features replace
        the kernel matrix, unless `n_landmarks` of the kernel is a number or None.
    shrinkage : "auto" or float
        Weight of |f|^2; "auto" chooses from 1e-5 to 100.
    class_prior : "empirical" or (C,) array
        Shares of the classes.
    standardize : bool
        Bring every continuous column to mean 0 and variance 1 first.
    categorical : "auto" or list
        Columns to treat as categories whatever their type; each category becomes a bit.
    random_state : int, RandomState or None
        For the landmarks of Nyström features.
    n_jobs : int or None
        Threads for the kernel matrix; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares.
    gamma_, shrinkage_ : float
        In use; gamma_ is None for the linear kernel.
    tried_ : list of dict
        gamma, shrinkage and leave-one-out log_loss of every pair tried.
    loo_proba_ : (n, C) array
        Probabilities of the classes of each training row, by scores from all others; NaN without a label or weight.
    loo_log_loss_, loo_error_ : float
        Of those; slightly too good, as gamma and shrinkage were chosen by them.
    gaussians_ : ClassGaussians
        Means of the classes and their common covariance, in the space of the discriminants.
    feature_names_ : tuple of str
        Names of the encoded columns.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from mixent import KernelFisherClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = KernelFisherClassifier().fit(X, y)
    >>> model.transform(X).shape, bool(model.loo_error_ < 0.03)
    ((178, 2), True)
    """

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
        """Find the discriminants.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : (n,) labels or (n, C) label probabilities
            None, NaN or "" for a row without a label: it plays no part.
        sample_weight : (n,) array, optional
            Counts: a weight of 2 is equivalent to repeating the row, also when one is left out (not where Nyström
            landmarks are drawn).

        Returns
        -------
        self
        """
        self._check()
        rows = read_rows(self, X, y, sample_weight)
        prior = read_class_prior(self.class_prior, len(self.classes_))
        self.class_prior_ = rows.shares if prior is None else prior
        self.shares_ = self.class_prior_.copy()  # what the probabilities were fitted with
        self.encoder_ = Encoder.of(rows.table, rows.weight, self.standardize)
        Z = self.encoder_(rows.table)
        workers = choose_executor(self.n_jobs, len(Z), len(Z))
        with progress_bar(self.progress, "discriminants") as show, workers as executor:
            search = _Search(Z, rows, self.class_prior_, self._landmarks(len(Z)), executor)
            best = self._choose(search, show)
            self._keep(search, best)
        return self

    def _check(self) -> None:
        self._group("kernel").check(("auto", "scale"))
        check_flag("standardize", self.standardize)
        check_random_state(self.random_state)  # a bad one is refused even where nothing is drawn
        if not (isinstance(self.shrinkage, str) and self.shrinkage == "auto"):
            check_positive("shrinkage", self.shrinkage)

    # --- one fit ------------------------------------------------------------------------------------------------

    def _landmarks(self, n: int) -> np.ndarray | None:
        """Rows whose kernels span the features; None: all of them."""
        wanted = self._group("kernel").count_landmarks(n, LANDMARKS if n > MOST_ROWS else None)
        return None if wanted is None else np.sort(check_random_state(self.random_state).permutation(n)[:wanted])

    def _kernels(self, Z: Array, weight: Array) -> list[Kernel]:
        """Those to try."""
        kernel: Any = clone(self._group("kernel"))
        auto = getattr(kernel, "gamma", None) == "auto"
        default = (kernel.set_params(gamma="scale") if auto else kernel).resolved(Z, weight)
        factors = GAMMAS if auto else ()
        return [clone(default).set_params(gamma=default.gamma * float(f)) for f in factors] or [default]

    def _choose(self, search: _Search, show: Any) -> _Found:
        """The kernel and shrinkage of least log-loss when each row is left out."""
        kernels = self._kernels(search.Z, search.rows.weight)
        shrinkages = SHRINKAGES if isinstance(self.shrinkage, str) else np.array([float(self.shrinkage)])
        self.tried_: list[dict] = []
        best: _Found | None = None
        for i, kernel in enumerate(kernels):
            if show is not None:
                show(i, len(kernels), "kernel" if _gamma(kernel) is None else f"gamma {_gamma(kernel):.3g}")
            for found in search(kernel, shrinkages):
                told = {"gamma": _gamma(kernel), "shrinkage": found.shrinkage, "log_loss": found.log_loss}
                self.tried_.append(told)
                best = found if best is None or found.log_loss < best.log_loss else best
        assert best is not None
        return best

    def _keep(self, search: _Search, best: _Found) -> None:
        rows = search.rows
        coefficients = best.smoother.coefficients(rows.target, best.lam) @ best.combine
        share = rows.weight / rows.weight.sum()
        self.basis_, self.coefficients_ = best.basis, coefficients
        raw = np.concatenate([best.basis(search.Z[a : a + PART]) @ coefficients for a in range(0, len(share), PART)])
        self.intercept_ = share @ rows.target @ best.combine - share @ raw
        self.gaussians_ = best.gaussians
        self.weight_ = float(rows.weight.sum())
        self.gamma_, self.shrinkage_ = _gamma(best.basis.kernel), best.shrinkage
        self.loo_proba_ = spread_out(np.exp(best.log_proba), rows.at, self.n_rows_)
        self.loo_log_loss_, self.loo_error_ = losses(best.log_proba, rows.counts)

    # --- predictions --------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """Rows in the space of the discriminants.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C - 1) array: the strongest discriminant first, each with variance 1 within classes (of rows left out).
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False)

        def scores(part: Table) -> Array:
            return self.basis_(self.encoder_(part)) @ self.coefficients_ + self.intercept_

        out = in_batches(table, scores)
        lost = ~np.isfinite(out).all(axis=1)
        if lost.any():
            raise ValueError(f"row {int(lost.argmax())} is so far from the training rows that its kernel overflows")
        return out

    def _log_joint(self, X: Any) -> Array:
        told = log_proba(self.gaussians_.log_density(self.transform(X)), self.shares_, self.weight_)
        return told + np.log(self.class_prior_) - np.log(self.shares_)  # other priors are Bayes' rule and nothing else

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
        shared = yes("read as target shares: a row counts for every class by its share")
        return able(
            tags, reads_tables=True, missing=FILLED, weights=YES, soft_labels=shared, absent_labels=LEFT_OUT, mixed=YES
        )


@dataclass(frozen=True)
class Basis:
    """What the coefficients multiply: the kernel with training rows, features, or the encoded columns themselves."""

    kernel: Kernel
    nystrom: Nystrom | None
    vectors: Array | None  # (m, width)

    def __call__(self, Z: Array) -> Array:
        if self.nystrom is not None:
            return self.nystrom(Z)
        return Z if self.vectors is None else self.kernel.gram(Z, self.vectors)


def _gamma(kernel: Kernel) -> float | None:
    return getattr(kernel, "gamma", None)


@dataclass(frozen=True)
class _Found:
    """A fit, and its predictions for rows left out."""

    basis: Basis
    smoother: Smoother
    lam: float
    shrinkage: float
    combine: Array  # (C, C-1) from class scores to discriminants
    gaussians: ClassGaussians
    log_proba: Array  # (m, C) of rows left out
    log_loss: float


@dataclass(frozen=True)
class _Search:
    """Fits with one kernel after the other."""

    Z: Array
    rows: Rows
    prior: Array
    landmarks: np.ndarray | None
    executor: Any

    def __call__(self, kernel: Kernel, shrinkages: Array) -> list[_Found]:
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
        return [self._one(Basis(kernel, nystrom, vectors), smoother, float(share)) for share in shrinkages]

    def _one(self, basis: Basis, smoother: Smoother, shrinkage: float) -> _Found:
        rows = self.rows
        lam = max(shrinkage * smoother.trace / rows.weight.sum(), 1e-300)
        fit, left = smoother.left_out(rows.target, lam, rows.left_out)
        left = left + rows.shares - rows.shares_left
        combine = directions(rows.target, fit, rows.weight)
        one_row = np.eye(combine.shape[1])  # the variance of the indicators themselves
        gaussians = ClassGaussians.of(left @ combine, rows.counts, one_row)
        combine = combine / np.sqrt(np.diagonal(gaussians.cov))
        gaussians = gaussians.scaled(1 / np.sqrt(np.diagonal(gaussians.cov)))
        told = log_proba(gaussians.log_density(left @ combine), self.prior, rows.weight.sum())
        return _Found(basis, smoother, lam, shrinkage, combine, gaussians, told, losses(told, rows.counts)[0])
