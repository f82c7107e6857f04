"""Normal-Wishart distributions over the means of several Gaussians with one covariance.

The distribution is  prod_s N(mean_s; m_s, V / N_s) IW(V; S, ν).  The log-ratios of two of the Gaussians are linear: the
quadratic parts of their log-densities are equal, so the multipliers of a row change neither the number ν of all rows
nor their second moments Q. The natural parameters T = (N_s, sum w z) of all s are the numbers and sums of rows, and up
to linear terms

    A(T) = - d/2 sum_s log N_s - ν/2 log det S,     S = Q - sum_s N_s m_s m_s^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import gammaln, psi

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.med.families import Distribution
from mixent.med.features import RowFeatures
from mixent.med.wishart import Frame, scatter_root
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class TiedWishart(Short, Distribution):
    """The distribution of C means and one covariance, without those parts of log-densities that all classes share."""

    T: Array  # (C (1 + d),) the number and the sum of rows of each class, in the coordinates of the frame
    total: float  # ν
    square: Array  # (d, d) Q
    frame: Frame

    _shown = ("rows", "d")

    def __post_init__(self) -> None:
        if not (self.rows > 0).all() or not np.isfinite(self.T).all():
            raise OutsideDomainError(
                f"a class needs finite parameters and a total weight above 0; it would be {self.rows.min():.3g}"
            )
        self._root  # noqa: B018  (raises an error if the scatter is not positive definite)

    @classmethod
    def of_moments(cls, rows: Array, means: Array, scatter: Array, spread: Array | float = 0.0) -> TiedWishart:
        """The distribution with the numbers N_s (C,), means m_s (C, d) and scatter S (d, d)."""
        total, d = float(rows.sum()), means.shape[1]
        if not d - 1 < total:
            raise OutsideDomainError(f"has a total weight of {total:.3g}; {d} columns need more than {d - 1}")
        frame = Frame(rows @ means / total, scatter_root(scatter, total, spread))
        m = frame(means)
        T = np.column_stack([rows, rows[:, None] * m]).ravel()
        return cls(T, total, np.eye(d) + (m * rows[:, None]).T @ m, frame)

    @property
    def d(self) -> int:
        return len(self.square)

    @property
    def _table(self) -> Array:
        """(C, 1 + d) T."""
        return self.T.reshape(-1, 1 + self.d)

    @property
    def rows(self) -> Array:
        """(C,) N_s."""
        return self._table[:, 0]

    @cached_property
    def _means(self) -> Array:
        return self._table[:, 1:] / self.rows[:, None]

    @cached_property
    def _root(self) -> Array:
        """(d, d) L, lower: S = L L^T, in the coordinates of the frame."""
        try:
            return np.asarray(cholesky(self.square - (self._means * self.rows[:, None]).T @ self._means, lower=True))
        except (LinAlgError, ValueError) as error:
            raise OutsideDomainError("the scatter would not be positive definite") from error

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(solve_triangular(self._root, np.eye(self.d), lower=True))

    @cached_property
    def _log_det(self) -> float:
        return float(np.log(np.diagonal(self._root)).sum())

    @cached_property
    def _whitened_means(self) -> Array:
        return self._means @ self._inverse.T

    @cached_property
    def log_partition(self) -> float:
        return float(-0.5 * self.d * np.log(self.rows).sum() - self.total * self._log_det)

    @cached_property
    def mean(self) -> Array:
        mu = self._whitened_means
        constant = -0.5 * self.d / self.rows - 0.5 * self.total * (mu**2).sum(axis=1)
        return np.column_stack([constant, self.total * (mu @ self._inverse)]).ravel()

    def hessian_product(self, f: Array) -> Array:
        table, mu, rows, inverse = f.reshape(-1, 1 + self.d), self._whitened_means, self.rows, self._inverse
        n, sums = table[:, 0], table[:, 1:] @ inverse.T
        centered = (sums - n[:, None] * mu) * (self.total / rows)[:, None]
        cross = sums.T @ mu
        second = self.total * (mu @ ((mu * n[:, None]).T @ mu - cross - cross.T))  # (C, d)
        constant = 0.5 * self.d * n / rows**2 + ((0.5 * second - centered) * mu).sum(axis=1)
        return np.column_stack([constant, (centered - second) @ inverse]).ravel()

    @cached_property
    def _hessian_root(self) -> Array:
        """(M, M) G, H = G G^T."""
        H = np.array([self.hessian_product(f) for f in np.eye(len(self.T))])
        scale = np.sqrt(np.diagonal(H))
        return scale[:, None] * cholesky(H / np.outer(scale, scale) + 1e-14 * np.eye(len(H)), lower=True)

    @property
    def rank(self) -> int:
        """Number of columns of `kernel_factor`."""
        return len(self.T)

    def gram(self, F: Array) -> Array:
        half = F @ self._hessian_root
        return np.asarray(half @ half.T)

    def with_natural_parameters(self, T: Array) -> TiedWishart:
        return TiedWishart(T, self.total, self.square, self.frame)

    # --- in the units of the columns ----------------------------------------------------------------------------

    def features(self, X: Array) -> tuple[RowFeatures, ...]:
        """The features of rows, for each class."""
        Z = np.column_stack([np.ones(len(X)), self.frame(X)])
        return tuple(LinearFeatures(Z, s, len(self.rows)) for s in range(len(self.rows)))

    @property
    def gaussians(self) -> list[tuple[Array, Array]]:
        """Mean and covariance S / ν of each class."""
        root = self.frame.root @ self._root
        means = self.frame.center + self._means @ self.frame.root.T
        return [(m, root @ root.T / self.total) for m in means]

    def _squares(self, X: Array) -> Array:
        """(n, C) squared distances |L^-1 (z - m_s)|^2."""
        U = self.frame(X) @ self._inverse.T
        return np.column_stack([((U - mu) ** 2).sum(axis=1) for mu in self._whitened_means])

    def expected_log_prob(self, X: Array) -> Array:
        """(n, C) E log p(x | mean_s, V)."""
        d = self.d
        digamma = float(psi(0.5 * (self.total - np.arange(d))).sum())
        constant = 0.5 * (digamma - d * np.log(np.pi) - d / self.rows) - self._log_det - self.frame.log_det
        return np.asarray(constant - 0.5 * self.total * self._squares(X))

    def predictive_log_prob(self, X: Array) -> Array:
        """(n, C) log E p(x | mean_s, V): Student's t with ν + 1 - d degrees of freedom."""
        d, N, total = self.d, self.rows, self.total
        ratio = gammaln(0.5 * (total + 1)) - gammaln(0.5 * (total + 1 - d))
        constant = ratio - 0.5 * d * np.log(np.pi * (N + 1) / N) - self._log_det - self.frame.log_det
        return np.asarray(constant - 0.5 * (total + 1) * np.log1p(N / (N + 1) * self._squares(X)))


class LinearFeatures(RowFeatures):
    """Features (1, z) of rows in the parameters of one of C classes."""

    def __init__(self, Z: Array, s: int, n_classes: int) -> None:
        """`Z` (n, 1 + d) has a first column of ones."""
        self.Z, self.s, self.n_classes = Z, s, n_classes
        self.offset = np.zeros(len(Z))

    @property
    def row_bytes(self) -> int:
        return 16 * self.Z.shape[1]

    def dot(self, mean: Array) -> Array:
        return np.asarray(self.Z @ mean.reshape(self.n_classes, -1)[self.s])

    def weighted_sum(self, alpha: Array) -> Array:
        out = np.zeros((self.n_classes, self.Z.shape[1]))
        out[self.s] = alpha @ self.Z
        return out.ravel()

    def take(self, rows: np.ndarray | slice) -> LinearFeatures:
        return LinearFeatures(self.Z[rows], self.s, self.n_classes)

    def to_array(self) -> Array:
        out = np.zeros((len(self.Z), self.n_classes, self.Z.shape[1]))
        out[:, self.s] = self.Z
        return out.reshape(len(self.Z), -1)

    def kernel_factor(self, distribution: TiedWishart) -> Array:
        """(n, rank) F with the kernel F F^T."""
        d1 = self.Z.shape[1]
        return self.Z @ distribution._hessian_root[self.s * d1 : (self.s + 1) * d1]
