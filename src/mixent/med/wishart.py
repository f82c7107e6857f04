"""Normal-Wishart distributions over the parameters of a Gaussian, as an exponential family in the original coordinates.

T = (N, sum w x, sum w x x^T). `gaussians.NormalWishart` is the same distribution in whitened coordinates.
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


@dataclass(frozen=True)
class Wishart(Distribution):
    """N(mean; m, V / N) IW(V; S, N),  S = sum w x x^T - N m m^T."""

    T: Array  # (1 + d + d^2,)
    d: int

    def __post_init__(self) -> None:
        if not (self.d - 1 < self.T[0] < np.inf) or not np.isfinite(self.T).all():
            raise OutsideDomainError(
                f"a Gaussian of {self.d} columns needs finite parameters and a total weight above {self.d - 1}; "
                f"the total weight would be {self.T[0]:.3g}"
            )
        self.root  # noqa: B018  (raises an error if the scatter is not positive definite)

    @property
    def rows(self) -> float:
        """N, the total weight of the rows."""
        return float(self.T[0])

    @cached_property
    def center(self) -> Array:
        """(d,) the mean m."""
        return self.T[1 : 1 + self.d] / self.rows

    @cached_property
    def root(self) -> Array:
        """(d, d) the lower Cholesky factor L of the scatter, S = L L^T."""
        square = self.T[1 + self.d :].reshape(self.d, self.d)
        try:
            return np.asarray(cholesky(square - self.rows * np.outer(self.center, self.center), lower=True))
        except (LinAlgError, ValueError) as error:
            raise OutsideDomainError("the scatter would not be positive definite") from error

    @cached_property
    def _inverse(self) -> Array:
        return np.asarray(solve_triangular(self.root, np.eye(self.d), lower=True))

    @cached_property
    def log_partition(self) -> float:
        N, d = self.rows, self.d
        log_det = float(np.log(np.diagonal(self.root)).sum())
        gamma = float(gammaln(0.5 * (N + 1 - np.arange(1, d + 1))).sum())
        return -0.5 * d * float(np.log(N)) - N * log_det + gamma - 0.5 * N * d * float(np.log(np.pi))

    def _unwhitened(self, constant: float, first: Array, second: Array) -> Array:
        """Coefficients of (1, z, z z^T), z = L^-1 (x - m), converted to those of (1, x, x x^T)."""
        L = self._inverse
        C = L.T @ second @ L
        b = L.T @ first
        m = self.center
        return np.concatenate([[constant - b @ m + m @ C @ m], b - 2.0 * (C @ m), C.ravel()])

    @cached_property
    def mean(self) -> Array:
        N, d = self.rows, self.d
        digamma = float(psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum())
        log_det = float(np.log(np.diagonal(self.root)).sum())
        constant = -0.5 * d * float(np.log(np.pi)) - log_det + 0.5 * digamma - 0.5 * d / N
        return self._unwhitened(constant, np.zeros(d), -0.5 * N * np.eye(d))

    def hessian_product(self, f: Array) -> Array:
        """The Hessian times f, computed in whitened coordinates, where the Hessian is nearly diagonal."""
        N, d, m, L = self.rows, self.d, self.center, self._inverse
        n, s, Q = f[0], f[1 : 1 + d], f[1 + d :].reshape(d, d)
        first = L @ (s - n * m)
        second = L @ (Q - np.outer(s, m) - np.outer(m, s) + n * np.outer(m, m)) @ L.T
        h = 0.5 * d / N**2 + 0.25 * float(polygamma(1, 0.5 * (N + 1 - np.arange(1, d + 1))).sum())
        constant = h * n - 0.5 * float(np.trace(second))
        return self._unwhitened(constant, first, 0.5 * N * second - 0.5 * n * np.eye(d))

    def gram(self, F: Array) -> Array:
        """(K, K) F H F^T, for all rows of F at once, in whitened coordinates."""
        N, d, m, L = self.rows, self.d, self.center, self._inverse
        n, s, Q = F[:, 0], F[:, 1 : 1 + d], F[:, 1 + d :].reshape(len(F), d, d)
        first = (s - n[:, None] * m) @ L.T
        cross = s[:, :, None] * m
        second = L @ (Q - cross - cross.transpose(0, 2, 1) + n[:, None, None] * np.outer(m, m)) @ L.T
        h = 0.5 * d / N**2 + 0.25 * float(polygamma(1, 0.5 * (N + 1 - np.arange(1, d + 1))).sum())
        mixed = np.outer(n, np.trace(second, axis1=1, axis2=2))
        second = second.reshape(len(F), d * d)
        return np.asarray(h * np.outer(n, n) - 0.5 * (mixed + mixed.T) + first @ first.T + 0.5 * N * second @ second.T)

    def with_natural_parameters(self, T: Array) -> Wishart:
        return Wishart(T, self.d)
