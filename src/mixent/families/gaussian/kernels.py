"""Log densities and expected moments of K Gaussians on a block of rows, the inner loop of all fits.

There are three algorithms for the same numbers, each linear in the responsibilities (which may be signed):

* `Quadratic`: one matrix product with the features [1, x, x_i x_j] of globally centered data. The fastest; accurate
  while the components are within `REACH` standard deviations of the common center.
* `Centered`: about the mean of each component, with triangular factors. For few components, many columns, and
  components far apart.
* `missing.Incomplete`: rows with missing values, which are integrated out exactly.

Arrays are stored transposed, (features, rows), so that every step is a GEMM or a contiguous ufunc.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Protocol, TypeVar

import numpy as np
from scipy.linalg import blas

from mixent.core.arrays import Array, scratch
from mixent.core.blocks import Block
from mixent.core.stats import Stats

LOG_2PI = float(np.log(2 * np.pi))
REACH = 300.0  # standard deviations; the error of quadratic features is about REACH^2 * 1e-15
FEW_ROWS = 512  # of a block, up to which all components are processed at once
WIDE = 64  # number of columns beyond which quadratic features do not fit the cache


@dataclass(frozen=True)
class Moments(Stats):
    """Expected moments of the rows of each component."""

    mass: Array  # (K,)
    first: Array  # (K, d)
    second: Array  # (K, d) or (K, d, d)
    about: str  # "center": the common center; "means": the component means in this pass

    @property
    def rows(self) -> Array:
        """(K,) number of rows, by which a scatter is divided."""
        return self.mass


M = TypeVar("M", bound=Moments)


def embed(moments: M, index: np.ndarray, n_components: int) -> M:
    """Return moments of some components as moments of all, zero for the others."""

    def spread(values: Array | str) -> Array | str:
        if isinstance(values, str):
            return values
        out = np.zeros((n_components, *values.shape[1:]))
        out[index] = values
        return out

    return type(moments)(*(spread(getattr(moments, f.name)) for f in fields(moments)))  # type: ignore[arg-type]


class Work(Protocol):
    """A block with given parameters: first the log densities, then the moments."""

    def log_prob(self) -> Array:
        """Return the log densities log N_k(x_n), (K, n); the caller may overwrite them."""

    def log_mode(self) -> Array:
        """Return the largest log density of rows with the same observed columns, (K, 1) or (K, n).

        With missing values, `log_prob` has to be called before.
        """

    def moments(self, resp: Array) -> Moments:
        """Return the moments under responsibilities (K, n), which include the row weights."""


@dataclass(frozen=True)
class Ready:
    """What a pass computes once from the parameters."""

    means: Array  # (K, d) about the center
    covs: Array  # (K, d) variances or (K, d, d)
    half_log_det: Array  # (K,)
    factors: Array  # (K, d) 1/std, or (K, d, d) lower triangular F with F^T F = precision
    center: Array  # (d,)
    quadratic: bool  # quadratic features are used for all components; all moments are then about the center
    given_precisions: Array | None = None  # computed before, for the prior

    def restrict(self, index: np.ndarray) -> Ready:
        """Return some of the components, with the same algorithm, so that moments remain additive."""
        parts = (self.means[index], self.covs[index], self.half_log_det[index], self.factors[index])
        given = None if self.given_precisions is None else self.given_precisions[index]
        return Ready(*parts, self.center, self.quadratic, given)

    @property
    def axis_aligned(self) -> bool:
        return self.covs.ndim == 2

    @cached_property
    def precisions(self) -> Array:
        """(K, d) or (K, d, d)."""
        if self.given_precisions is not None:
            return self.given_precisions
        return self.factors**2 if self.axis_aligned else np.swapaxes(self.factors, 1, 2) @ self.factors

    @cached_property
    def whitened_means(self) -> Array:
        """(K, d): factor times mean."""
        return _whiten(self.factors, self.means)

    @cached_property
    def columns(self) -> Array:
        """(K, q): log N_k(x) = columns_k . features(x)."""
        d = self.means.shape[1]
        constant = -0.5 * (d * LOG_2PI + (self.whitened_means**2).sum(axis=1)) - self.half_log_det
        if self.axis_aligned:
            linear, square = self.precisions * self.means, -0.5 * self.precisions
        else:
            linear = np.matmul(self.precisions, self.means[:, :, None])[:, :, 0]
            i, j, factor = upper(d)
            square = self.precisions[:, i, j] * factor
        return np.concatenate([constant[:, None], linear, square], axis=1)

    def open(self, block: Block) -> Work:
        if not block.complete:
            from mixent.families.gaussian.missing import Incomplete, IncompleteDiagonal

            return IncompleteDiagonal(self, block) if self.axis_aligned else Incomplete(self, block)
        if self.quadratic and (self.axis_aligned or quadratic_pays(*self.means.shape)):
            return Quadratic(self, block)
        return CenteredDiagonal(self, block) if self.axis_aligned else Centered(self, block)


def make_ready(
    means: Array,
    covs: Array,
    half_log_det: Array,
    factors: Array,
    center: Array,
    precisions: Array | None = None,
) -> Ready:
    """Choose the algorithm: quadratic features where they are faster and no component is far from the center."""
    near = bool(_largest_term(factors, means, covs).max(initial=0.0) <= REACH**2)
    quadratic = near and (covs.ndim == 2 or quadratic_pays(*means.shape))
    return Ready(means, covs, half_log_det, factors, center, quadratic, precisions)


def quadratic_pays(n_components: int, n_columns: int) -> bool:
    """Whether quadratic features, computed once for all components, are faster than a product per component."""
    return n_columns <= WIDE and 7 * n_components > n_columns


def _largest_term(factors: Array, means: Array, covs: Array) -> Array:
    """Return the size of the terms that cancel in a quadratic form of order d, for rows of the component, (K,).

    They are large if the mean is far from the center or columns are nearly collinear.
    """
    if covs.ndim == 2:
        return ((factors * means) ** 2).sum(axis=1)
    terms = (factors**2).sum(axis=1) * (np.diagonal(covs, axis1=1, axis2=2) + means**2)  # P_ii E[x_i^2]
    return np.maximum(terms.sum(axis=1), (_whiten(factors, means) ** 2).sum(axis=1))


def _whiten(factors: Array, means: Array) -> Array:
    return factors * means if factors.ndim == 2 else np.matmul(factors, means[:, :, None])[:, :, 0]


@cache
def square(d: int) -> np.ndarray:
    """Return the position in the upper triangle of each entry of a symmetric (d, d) matrix, row by row."""
    i, j, _ = upper(d)
    where = np.empty((d, d), dtype=np.intp)
    where[i, j] = where[j, i] = np.arange(len(i))
    return where.ravel()


@cache
def upper(d: int) -> tuple[np.ndarray, np.ndarray, Array]:
    """Return rows and columns of the upper triangle, in the order of the product features.

    Also return the factor of each entry of a symmetric P in -x^T P x / 2.
    """
    i, j = np.triu_indices(d)
    return i, j, np.where(i == j, -0.5, -1.0)


def _log_mode(work: Quadratic | CenteredDiagonal | Centered) -> Array:
    """Return log N_k at its mean, (K, 1): all columns are observed."""
    ready = work.ready
    return -(0.5 * ready.means.shape[1] * LOG_2PI + ready.half_log_det)[:, None]


class Quadratic:
    """Quadratic features: one tiled matrix product for the densities, and one for the moments."""

    log_mode = _log_mode

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        d = ready.means.shape[1]
        n_square = d if ready.axis_aligned else d * (d + 1) // 2
        n = block.n_rows
        features = scratch.get("features", (1 + d + n_square, _padded(n)))
        features[0] = 1.0
        x = features[1 : d + 1]
        np.subtract(block.X.T, ready.center[:, None], out=x[:, :n])
        x[:, n:] = 0.0
        if ready.axis_aligned:
            np.multiply(x, x, out=features[d + 1 :])
        else:
            start = d + 1
            for i in range(d):
                np.multiply(x[i:], x[i], out=features[start : start + d - i])
                start += d - i
        self.features, self.n_rows = features, n

    def log_prob(self) -> Array:
        columns = self.ready.columns
        out = scratch.get("log_prob", (len(columns), self.features.shape[1]))
        _product(columns, self.features, out)
        return out[:, : self.n_rows]

    def moments(self, resp: Array) -> Moments:
        d = self.ready.means.shape[1]
        sums = _product_back(self.features[:, : self.n_rows], resp)  # (q, K)
        if self.ready.axis_aligned:
            second = sums[d + 1 :].T
        else:
            second = sums[1 + d :].take(square(d), axis=0).reshape(d, d, -1).transpose(2, 0, 1)
        return Moments(sums[0], sums[1 : d + 1].T, second, "center")


# OpenBLAS multiplies small matrices in place and copies large ones first, which for such flat products takes as long as
# the product itself. Tiles below its limits are not copied; for other libraries they are cache blocks.
TILE_WORK = 1_000_000  # multiplications
TILE_BACK = 1200  # entries of the result when the sum is over the long side
LANES = 32  # rows that the product processes at once
TILE_ROWS = 512


def _padded(n_rows: int) -> int:
    """Return n_rows padded to an odd multiple of LANES: with powers of two, rows would compete for cache lines."""
    return LANES * (-(-n_rows // LANES) | 1)


def _tiles(matrix: Array, height: int, width: int) -> Array:
    """Return a view of the complete tiles of a matrix, (down, across, height, width)."""
    down, across = matrix.shape[0] // height, matrix.shape[1] // width
    complete = matrix[: down * height, : across * width]
    return complete.reshape(down, height, across, width).transpose(0, 2, 1, 3)


def _product(columns: Array, features: Array, out: Array) -> None:
    """Set out (K, n) = columns (K, q) @ features (q, n)."""
    K, q = columns.shape
    n = features.shape[1]
    group = min(K, TILE_WORK // (q * LANES))
    if group == 0:
        np.matmul(columns, features, out=out)
        return
    width = min(n, TILE_ROWS, TILE_WORK // (q * group) // LANES * LANES)
    rest = n // width * width
    for k in range(0, K, group):
        part, into = columns[k : k + group], out[k : k + group]
        np.matmul(part, _tiles(features, q, width)[0], out=_tiles(into, len(part), width)[0])
        if rest < n:
            np.matmul(part, features[:, rest:], out=into[:, rest:])


def _product_back(features: Array, resp: Array) -> Array:
    """Return features (q, n) @ resp (K, n).T, (q, K)."""
    (q, n), K = features.shape, len(resp)
    strips = -(-q * K // TILE_BACK)
    if n == 0 or K == 0 or (strips > 1 and q < 8 * strips):
        return features @ resp.T
    height, width = q // strips, n // -(-n // TILE_ROWS)
    done, rest = q // height * height, n // width * width
    out = np.empty((q, K))
    weights = _tiles(resp, K, width)[0].transpose(0, 2, 1)  # (across, width, K)
    np.matmul(_tiles(features, height, width), weights).sum(axis=1, out=out[:done].reshape(-1, height, K))
    if rest < n:
        out[:done] += features[:done, rest:] @ resp[:, rest:].T
    if done < q:
        out[done:] = features[done:] @ resp.T
    return out


class CenteredDiagonal:
    """Diagonal covariances, components far apart: differences from each mean, column by column."""

    log_mode = _log_mode

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        self.x = np.subtract(block.X.T, ready.center[:, None], out=scratch.get("x", block.X.T.shape))

    def log_prob(self) -> Array:
        ready, (d, n) = self.ready, self.x.shape
        out = scratch.get("log_prob", (len(ready.means), n))
        for k in range(len(out)):
            z = np.subtract(self.x, ready.means[k][:, None], out=scratch.get("z", (d, n)))
            z *= ready.factors[k][:, None]
            np.einsum("in,in->n", z, z, out=out[k])
        out *= -0.5
        out -= (0.5 * d * LOG_2PI + ready.half_log_det)[:, None]
        return out

    def moments(self, resp: Array) -> Moments:
        first, second = np.empty_like(self.ready.means), np.empty_like(self.ready.means)
        for k, r in enumerate(resp):
            z = np.subtract(self.x, self.ready.means[k][:, None], out=scratch.get("z", self.x.shape))
            first[k] = z @ r
            second[k] = np.multiply(z, z, out=z) @ r
        return Moments(resp.sum(axis=1), first, second, "means")


class Centered:
    """Full covariances: a triangular product per component for the densities, a rank-n update for the moments."""

    log_mode = _log_mode

    def __init__(self, ready: Ready, block: Block) -> None:
        self.ready = ready
        self.x = np.subtract(block.X.T, ready.center[:, None], out=scratch.get("x", block.X.T.shape))

        # with many components and few rows, the calls for each component would take longer than the products
        self.small = len(ready.means) > 1 and block.n_rows <= FEW_ROWS

    def _about(self, k: int, name: str = "z") -> Array:
        return np.subtract(self.x, self.ready.means[k][:, None], out=scratch.get(name, self.x.shape))

    def _all_about(self) -> Array:
        shape = (len(self.ready.means), *self.x.shape)
        return np.subtract(self.x, self.ready.means[:, :, None], out=scratch.get("all_z", shape))

    def log_prob(self) -> Array:
        ready, (d, n) = self.ready, self.x.shape
        out = scratch.get("log_prob", (len(ready.means), n))
        if self.small:
            y = np.matmul(ready.factors, self._all_about())
            np.einsum("kin,kin->kn", y, y, out=out)
        for k in range(0 if self.small else len(out)):
            z = self._about(k)
            # z is (d, n) in C order, so z.T is (n, d) in Fortran order: y^T = z^T F^T
            y = blas.dtrmm(1.0, ready.factors[k].T, z.T, side=1, lower=0, overwrite_b=1).T
            np.einsum("in,in->n", y, y, out=out[k])
        out *= -0.5
        out -= (0.5 * d * LOG_2PI + ready.half_log_det)[:, None]
        return out

    def moments(self, resp: Array) -> Moments:
        ready = self.ready
        first, second = np.empty_like(ready.means), np.empty_like(ready.covs)
        signed = bool(resp.min(initial=0.0) < 0)
        if self.small:
            z = self._all_about()
            first = np.matmul(z, resp[:, :, None])[:, :, 0]
            second = np.matmul(z * resp[:, None, :], np.swapaxes(z, 1, 2))
        for k, r in enumerate(() if self.small else resp):
            z = self._about(k)
            first[k] = z @ r
            if signed:
                second[k] = np.multiply(z, r, out=scratch.get("zr", z.shape)) @ z.T
            else:
                z *= np.sqrt(r)
                half = blas.dsyrk(1.0, z.T, trans=1, lower=0)
                second[k] = half + np.triu(half, 1).T
        moments = Moments(resp.sum(axis=1), first, second, "means")
        return about_center(moments, ready.means) if ready.quadratic else moments


def about_center(moments: M, means: Array) -> M:
    """Return the moments about the common center, given those about the component means."""
    mass, first = moments.mass, moments.first
    if moments.second.ndim == 2:
        second = moments.second + 2 * first * means + mass[:, None] * means**2
    else:
        half = (first + 0.5 * mass[:, None] * means)[:, :, None] * means[:, None, :]
        second = moments.second + half
        second += np.swapaxes(half, 1, 2)
    return replace(moments, first=first + mass[:, None] * means, second=second, about="center")


def about_means(moments: M, means: Array) -> M:
    """Return the moments about the component means, given those about the common center."""
    return replace(about_center(moments, -means), about="means")
