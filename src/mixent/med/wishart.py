"""Normal-Wishart distributions over the mean and the covariance of a Gaussian, as exponential families (001, 3.1.1).

The natural parameters T = (N, sum w z, sum w z z^T) are the number, the sum and the second moments of rows with mean m
and scatter S = sum w z z^T - N m m^T. Up to terms that are linear in T the log-partition function (16) is

    A(T) = - d/2 log N - N/2 log det S + sum_j log Gamma((N + 1 - j) / 2),    N > d - 1,  S positive definite.

The rows z = R^-1 (x - c) are in coordinates of a `Frame`, in which the prior distribution has mean 0 and scatter 1, so
that columns far from zero or with different units lose no precision. In coordinates whitened by the distribution
itself, u = L^-1 (z - m), S = L L^T, the Hessian of A is nearly diagonal: the covariance of the log-densities of two
rows follows from the inner product of their coordinates, and the features (1, z, z z^T) are never formed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import gammaln, polygamma, psi

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.med.families import Distribution
from mixent.med.features import RowFeatures
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Frame(Short):
    """Coordinates z = root^-1 (x - center)."""

    center: Array  # (d,)
    root: Array  # (d, d) lower

    @cached_property
    def log_det(self) -> float:
        """log det of the root: the log-density of z minus that of x."""
        return float(np.log(np.diagonal(self.root)).sum())

    def __call__(self, X: Array) -> Array:
        """(n, d) the rows in these coordinates."""
        return np.asarray(solve_triangular(self.root, (X - self.center).T, lower=True).T)


def moments(X: Array, weight: Array, k: float, mean: Array, cov: Array) -> tuple[float, Array, Array]:
    """Number, mean and scatter of the posterior of the prior (k, mean, cov) given these rows (16, corrected).

    N = k + sum w,  m = (k mean + sum w x) / N,  S = k cov + sum w x x^T + k mean mean^T - N m m^T.
    """
    N = k + float(weight.sum())
    m = (k * mean + weight @ X) / max(N, 1e-300)
    centered, shift = X - m, mean - m
    return N, m, k * cov + (centered * weight[:, None]).T @ centered + k * np.outer(shift, shift)


def scatter_root(scatter: Array, rows: float, spread: Array | float = 0.0) -> Array:
    """(d, d) lower Cholesky factor of a scatter, of which more than rounding errors about a constant must remain."""
    scale = np.sqrt(np.maximum(np.diagonal(scatter), 1e-300))
    try:
        root = cholesky(scatter / np.outer(scale, scale), lower=True)
    except LinAlgError:
        root = np.zeros_like(scatter)
    if (scale**2 <= 1e-12 * rows * spread).any() or np.diagonal(root).min() < 1e-7:
        raise OutsideDomainError("has columns that are constant or depend on each other")
    return np.asarray(scale[:, None] * root)


@dataclass(frozen=True, repr=False)
class Wishart(Short, Distribution):
    """N(mean; m, V / N) IW(V; S, N); with `diagonal`, a product of such distributions, one for each column."""

    T: Array  # (1 + d + d^2,), or (1 + 2 d,) with `diagonal`
    d: int
    diagonal: bool = False
    frame: Frame | None = None  # None: the columns themselves

    _shown = ("rows", "d", "diagonal")

    def __post_init__(self) -> None:
        least = self._shape[1] - 1
        if not (least < self.T[0] < np.inf) or not np.isfinite(self.T).all():
            columns = "independent columns" if self.diagonal else "columns"
            raise OutsideDomainError(
                f"a Gaussian of {self.d} {columns} needs finite parameters and a total weight above {least}; "
                f"the total weight would be {self.T[0]:.3g}"
            )
        self._root  # noqa: B018  (raises an error if the scatter is not positive definite)

    @classmethod
    def of_moments(
        cls, rows: float, mean: Array, scatter: Array, spread: Array | float = 0.0, diagonal: bool = False
    ) -> Wishart:
        """The distribution with N = rows, m = mean and S = scatter; `spread` (d,) is the variance of all rows."""
        d = len(mean)
        least = 0 if diagonal else d - 1
        if not least < rows:
            raise OutsideDomainError(f"has a total weight of {rows:.3g}; {d} columns need more than {least}")
        scatter = np.diag(np.diagonal(scatter)) if diagonal else scatter
        return cls.standard(rows, mean, scatter_root(scatter, rows, spread), diagonal)

    @classmethod
    def standard(cls, rows: float, center: Array, root: Array, diagonal: bool = False) -> Wishart:
        """N = rows, m = center and S = root root^T, in coordinates where m = 0 and S = 1."""
        d = len(center)
        scatter = np.ones(d) if diagonal else np.eye(d).ravel()
        return cls(np.concatenate([[rows], np.zeros(d), scatter]), d, diagonal, Frame(center, root))

    @property
    def _shape(self) -> tuple[int, int]:
        """The number of independent groups of columns, and of columns in each."""
        return (self.d, 1) if self.diagonal else (1, self.d)

    @property
    def rows(self) -> float:
        """N, the total weight of the rows."""
        return float(self.T[0])

    # --- in the coordinates of the frame, by groups of columns --------------------------------------------------

    @cached_property
    def _mean(self) -> Array:
        """(g, k) m."""
        return self.T[1 : 1 + self.d].reshape(self._shape) / self.rows

    @cached_property
    def _root(self) -> Array:
        """(g, k, k) L, lower."""
        m = self._mean
        scatter = self.T[1 + self.d :].reshape(*self._shape, -1) - self.rows * m[:, :, None] * m[:, None, :]
        try:
            return np.asarray(np.linalg.cholesky(scatter), dtype=float)
        except LinAlgError as error:
            raise OutsideDomainError("the scatter would not be positive definite") from error

    @cached_property
    def _inverse(self) -> Array:
        return 1.0 / self._root if self.diagonal else solve_triangular(self._root[0], np.eye(self.d), lower=True)[None]

    @cached_property
    def _log_det(self) -> float:
        return float(np.log(np.diagonal(self._root, axis1=1, axis2=2)).sum())

    def _gamma_sum(self, function: object) -> float:
        """The sum of a function over the arguments (N + 1 - j) / 2 of the gamma functions."""
        groups, k = self._shape
        return groups * float(function(0.5 * (self.rows - np.arange(k))).sum())  # type: ignore[operator]

    @cached_property
    def log_partition(self) -> float:
        N, d = self.rows, self.d
        return -0.5 * d * float(np.log(N)) - N * self._log_det + self._gamma_sum(gammaln) - 0.5 * N * d * np.log(np.pi)

    def _unwhitened(self, constant: float, first: Array, second: Array) -> Array:
        """Coefficients of (1, u, u u^T) converted to those of (1, z, z z^T)."""
        inverse, m = self._inverse, self._mean[:, :, None]
        C = inverse.swapaxes(1, 2) @ second @ inverse
        b = inverse.swapaxes(1, 2) @ first[:, :, None]
        product = C @ m
        constant += float((m * (product - b)).sum())
        return np.concatenate([[constant], (b - 2.0 * product).ravel(), C.ravel()])

    @cached_property
    def _constant(self) -> float:
        """The expected log-density at z = m: the constant of equation 19."""
        return -0.5 * self.d * (float(np.log(np.pi)) + 1.0 / self.rows) - self._log_det + 0.5 * self._gamma_sum(psi)

    @cached_property
    def mean(self) -> Array:
        groups, k = self._shape
        second = np.broadcast_to(-0.5 * self.rows * np.eye(k), (groups, k, k))
        return self._unwhitened(self._constant, np.zeros((groups, k)), second)

    @cached_property
    def _variance(self) -> float:
        """Variance of the log-density at z = m."""
        return 0.5 * self.d / self.rows**2 + 0.25 * self._gamma_sum(lambda x: polygamma(1, x))

    def hessian_product(self, f: Array) -> Array:
        """The Hessian times f, computed in whitened coordinates, where the Hessian is nearly diagonal."""
        d, m, inverse = self.d, self._mean[:, :, None], self._inverse
        n, s, Q = f[0], f[1 : 1 + d].reshape(*self._shape, 1), f[1 + d :].reshape(*self._shape, -1)
        first = inverse @ (s - n * m)
        cross = s @ m.swapaxes(1, 2)
        second = inverse @ (Q - cross - cross.swapaxes(1, 2) + n * m @ m.swapaxes(1, 2)) @ inverse.swapaxes(1, 2)
        trace = float(np.trace(second, axis1=1, axis2=2).sum())
        identity = np.eye(self._shape[1])
        return self._unwhitened(
            self._variance * n - 0.5 * trace, first[:, :, 0], 0.5 * self.rows * second - 0.5 * n * identity
        )

    def kernel(self, Z: Array) -> Array:
        """(n, n) covariances of the log-densities of rows in the coordinates of the frame."""
        U = self._whitened(Z)
        U2 = U**2
        product = U @ U.T
        out = U2 @ U2.T if self.diagonal else product**2
        out *= 0.5 * self.rows
        out += product
        half = 0.5 * U2.sum(axis=1)
        out -= half[:, None]
        out += self._variance - half
        return out

    @property
    def rank(self) -> int:
        """Number of columns of `kernel_factor`."""
        groups, k = self._shape
        return 1 + self.d + groups * k * (k + 1) // 2

    def kernel_factor(self, Z: Array) -> Array:
        """(n, rank) F with the kernel F F^T."""
        U, N = self._whitened(Z), self.rows
        constant = np.full((len(U), 1), np.sqrt(max(self._variance - 0.5 * self.d / N, 0.0)))
        parts = [constant, U, np.sqrt(0.5 * N) * (U**2 - 1.0 / N)]
        if not self.diagonal:
            i, j = np.triu_indices(self.d, 1)
            parts.append(np.sqrt(N) * U[:, i] * U[:, j])
        return np.concatenate(parts, axis=1)

    def gram(self, F: Array) -> Array:
        """(K, K) F H F^T, for all rows of F at once, in whitened coordinates."""
        K, d, m, inverse = len(F), self.d, self._mean[:, :, None], self._inverse
        n, s, Q = F[:, 0, None, None, None], F[:, 1 : 1 + d].reshape(K, *self._shape, 1), F[:, 1 + d :]
        cross = s @ m.swapaxes(1, 2)
        centered = Q.reshape(K, *self._shape, -1) - cross - cross.swapaxes(2, 3) + n * m @ m.swapaxes(1, 2)
        first = (inverse @ (s - n * m)).reshape(K, -1)
        second = inverse @ centered @ inverse.swapaxes(1, 2)
        mixed = np.outer(F[:, 0], np.trace(second, axis1=2, axis2=3).sum(axis=1))
        second = second.reshape(K, -1)
        out = self._variance * np.outer(F[:, 0], F[:, 0]) - 0.5 * (mixed + mixed.T)
        return np.asarray(out + first @ first.T + 0.5 * self.rows * second @ second.T)

    def with_natural_parameters(self, T: Array) -> Wishart:
        return Wishart(T, self.d, self.diagonal, self.frame)

    # --- in the units of the columns ----------------------------------------------------------------------------

    def features(self, X: Array) -> tuple[RowFeatures, ...]:
        """The features of rows."""
        Z = X if self.frame is None else self.frame(X)
        return (QuadraticFeatures(Z, self.diagonal, np.full(len(Z), -self._jacobian)),)

    @cached_property
    def center(self) -> Array:
        """(d,) the mean m."""
        m = self._mean.ravel()
        return m if self.frame is None else self.frame.center + self.frame.root @ m

    @cached_property
    def root(self) -> Array:
        """(d, d) the lower Cholesky factor of the scatter."""
        root = np.diag(self._root.ravel()) if self.diagonal else self._root[0]
        return root if self.frame is None else self.frame.root @ root

    @property
    def gaussians(self) -> list[tuple[Array, Array]]:
        """Mean and covariance S / N at the center of the distribution."""
        return [(self.center, self.root @ self.root.T / self.rows)]

    def _whitened(self, Z: Array) -> Array:
        """(n, d) u of rows in the coordinates of the frame."""
        centered = Z - self._mean.ravel()
        return centered * self._inverse.ravel() if self.diagonal else centered @ self._inverse[0].T

    def whiten(self, X: Array) -> Array:
        """(n, d) the rows in coordinates in which the mean is 0 and the scatter is the identity."""
        return self._whitened(X if self.frame is None else self.frame(X))

    @property
    def _jacobian(self) -> float:
        return 0.0 if self.frame is None else self.frame.log_det

    def expected_log_prob(self, X: Array) -> Array:
        """(n,) E log p(x | mean, V), equation 19."""
        return self._constant - self._jacobian - 0.5 * self.rows * (self.whiten(X) ** 2).sum(axis=1)

    def predictive_log_prob(self, X: Array) -> Array:
        """(n,) log E p(x | mean, V): Student's t with N + 1 - d degrees of freedom, for each column if independent."""
        (groups, k), N = self._shape, self.rows
        # the ratio of the partition functions with and without x, where S' = S + N / (N + 1) (x - m)(x - m)^T
        squares = (self.whiten(X) ** 2).reshape(len(X), groups, k).sum(axis=2)
        log_growth = np.log1p(N / (N + 1) * squares).sum(axis=1)
        ratio = groups * (gammaln(0.5 * (N + 1)) - gammaln(0.5 * (N + 1 - k)))
        constant = ratio - 0.5 * self.d * np.log(np.pi * (N + 1) / N) - self._log_det - self._jacobian
        return np.asarray(constant - 0.5 * (N + 1) * log_growth)


class QuadraticFeatures(RowFeatures):
    """Features (1, z, z z^T) of rows, or (1, z, z^2) if the columns are independent; only the rows z are stored."""

    def __init__(self, Z: Array, diagonal: bool, offset: Array) -> None:
        self.Z, self.diagonal, self.offset = Z, diagonal, offset

    @property
    def row_bytes(self) -> int:
        return 24 * self.Z.shape[1]

    def dot(self, mean: Array) -> Array:
        d = self.Z.shape[1]
        b, C = mean[1 : 1 + d], mean[1 + d :]
        product = self.Z * C if self.diagonal else self.Z @ C.reshape(d, d)
        product += b
        return mean[0] + np.einsum("nd,nd->n", product, self.Z)

    def weighted_sum(self, alpha: Array) -> Array:
        weighted = self.Z * alpha[:, None]
        second = (weighted * self.Z).sum(axis=0) if self.diagonal else (weighted.T @ self.Z).ravel()
        return np.concatenate([[alpha.sum()], weighted.sum(axis=0), second])

    def take(self, rows: np.ndarray | slice) -> QuadraticFeatures:
        return QuadraticFeatures(self.Z[rows], self.diagonal, self.offset[rows])

    def to_array(self) -> Array:
        second = self.Z**2 if self.diagonal else (self.Z[:, :, None] * self.Z[:, None, :]).reshape(self.n_rows, -1)
        return np.concatenate([np.ones((self.n_rows, 1)), self.Z, second], axis=1)

    def kernel(self, distribution: Wishart) -> Array:  # type: ignore[override]
        return distribution.kernel(self.Z)

    def kernel_factor(self, distribution: Wishart) -> Array:
        """(n, rank) F with the kernel F F^T."""
        return distribution.kernel_factor(self.Z)
