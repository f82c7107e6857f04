"""K multivariate t distributions, with the covariance structures of Gaussians and estimated degrees of freedom.

A t distribution is a Gaussian whose precision is multiplied by an unobserved u of each row (Peel and McLachlan 2000,
Statistics and Computing 10, 339-348):

    x | u ~ N(m, C / u),  u ~ gamma(nu / 2, rate nu / 2)   =>   x ~ t_nu(m, C)

Given a row with d observed columns at squared Mahalanobis distance delta from m (both of the observed part), u has the
distribution gamma((nu + d) / 2, rate (nu + delta) / 2). Thus E u = (nu + d) / (nu + delta): rows far from the mean have
a small weight in the means and scatters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from mixent.core.arrays import Array, scratch
from mixent.core.blocks import Block
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments, Ready

LEAST_DF, MOST_DF = 1.0, 200.0  # bounds of the degrees of freedom; with 200, a t distribution is practically Gaussian
FIRST_DF = 10.0  # initial degrees of freedom
NEWTON_STEPS = 6


@dataclass(frozen=True)
class Students(Gaussians):
    """Parameters of K t distributions; `covs` are the scale matrices C (the covariance is C nu / (nu - 2))."""

    df: Array  # (K,) degrees of freedom nu

    def take(self, index: np.ndarray) -> Self:
        return replace(super().take(index), df=self.df[index])

    def extended(self, others: Sequence[Self]) -> Self:
        return replace(super().extended(others), df=np.concatenate([self.df, *(other.df for other in others)]))


@dataclass(frozen=True)
class StudentMoments(Moments):
    """Expected moments of the rows, weighted with r u: `mass` is sum_n r_nk E[u_nk]."""

    counts: Array  # (K,) sum_n r_nk
    log_excess: Array  # (K,) sum_n r_nk E[log u_nk - u_nk]

    @property
    def rows(self) -> Array:
        return self.counts


@dataclass(frozen=True)
class StudentReady:
    """What a pass computes once from the parameters."""

    gaussian: Ready
    df: Array  # (K,)

    def restrict(self, index: np.ndarray) -> StudentReady:
        """Return some of the components."""
        return StudentReady(self.gaussian.restrict(index), self.df[index])

    def open(self, block: Block) -> StudentWork:
        return StudentWork(self, block)

    @cached_property
    def by_observed(self) -> tuple[Array, Array]:
        """For 0 to d observed columns: log t - log N at the mode, and E log u + log((nu + delta) / 2), (K, d + 1) each.

        The first is  log G((nu + d) / 2) - log G(nu / 2) + d / 2 log(2 / nu),  where G is the gamma function.
        """
        df, n_observed = self.df[:, None], np.arange(self.gaussian.means.shape[1] + 1)
        shape = 0.5 * (df + n_observed)
        return gammaln(shape) - gammaln(0.5 * df) + 0.5 * n_observed * np.log(2 / df), digamma(shape)


class StudentWork:
    """A block with given parameters: the densities and weighted moments of the Gaussians with the same scale."""

    def __init__(self, ready: StudentReady, block: Block) -> None:
        self.ready, self.complete = ready, block.complete
        self.work: Any = ready.gaussian.open(block)
        d = block.X.shape[1]
        self.n_observed = np.array([d]) if block.complete else d - np.isnan(block.X).sum(axis=1)  # (1,) or (n,)

    def log_prob(self) -> Array:
        df = self.ready.df[:, None]
        out: Array = self.work.log_prob()
        mode: Array = self.work.log_mode()
        distance = np.subtract(mode, out, out=scratch.get("distance", out.shape))
        distance *= 2.0
        self.distance = np.maximum(distance, 0.0, out=distance)  # delta
        np.divide(distance, df, out=out)
        np.log1p(out, out=out)
        out *= -0.5 * (df + self.n_observed)
        out += mode + self.ready.by_observed[0][:, self.n_observed]
        return out

    def moments(self, resp: Array) -> StudentMoments:
        df = self.ready.df[:, None]
        rate = np.add(self.distance, df, out=scratch.get("rate", resp.shape))  # nu + delta
        weight = (df + self.n_observed) / rate  # E u
        log_weight = self.ready.by_observed[1][:, self.n_observed] - np.log(np.multiply(rate, 0.5, out=rate))
        log_excess = np.einsum("kn,kn->k", resp, log_weight - weight)
        weight *= resp
        # the covariance of missing values given u is C / u, which counts u C / u = C for each row
        moments = self.work.moments(weight) if self.complete else self.work.moments(weight, resp)
        return StudentMoments(moments.mass, moments.first, moments.second, moments.about, resp.sum(axis=1), log_excess)


@dataclass(frozen=True)
class StudentFamily(GaussianFamily):
    """Maximizes  sum_nk r_nk E[log N(x_n; m_k, C_k / u_nk) + log gamma(u_nk; nu_k / 2, nu_k / 2)] + log prior(m, C).

    The expectation over u_n and over missing values given the current parameters is a lower bound of the log density of
    t distributions that touches it. The M-step of means and scatters has weights r u, that of the covariances divides
    by the sum of r; degrees of freedom are the maximum within [`LEAST_DF`, `MOST_DF`].
    """

    def initial(self, means: Array, covs: Array) -> Students:
        start = super().initial(means, covs)
        return Students(start.means, start.covs, start.axes, np.full(len(means), FIRST_DF))

    def prepare(self, params: Students) -> StudentReady:  # type: ignore[override]
        return StudentReady(super().prepare(params), params.df)

    def restrict(self, ready: StudentReady, index: np.ndarray) -> StudentReady:  # type: ignore[override]
        return ready.restrict(index)

    def open(self, ready: StudentReady, block: Block) -> StudentWork:  # type: ignore[override]
        return ready.open(block)

    def update_tails(self, params: Students, moments: StudentMoments) -> Students:  # type: ignore[override]
        df = best_df(moments.counts, moments.log_excess)
        return replace(params, df=np.where(moments.counts > 0, df, params.df))

    def n_free(self) -> int:
        return super().n_free() + sum(group.size for group in self.groups)

    def pack(self, params: Students) -> Array:  # type: ignore[override]
        return np.concatenate([super().pack(params), np.log(params.df)])

    def unpack(self, vector: Array, like: Students, mass: Array) -> Students | None:  # type: ignore[override]
        cut = len(vector) - len(like.df)
        params = super().unpack(vector[:cut], like, mass)
        if params is None or not np.isfinite(vector[cut:]).all():
            return None
        df = np.exp(np.clip(vector[cut:], np.log(LEAST_DF), np.log(MOST_DF)))
        return Students(params.means, params.covs, params.axes, df)

    def sample(self, params: Students, component: np.ndarray, rng: np.random.Generator) -> Array:  # type: ignore[override]
        drawn = super().sample(params, component, rng)
        means, df = params.means[component] + self.center, params.df[component]
        return means + (drawn - means) / np.sqrt(rng.chisquare(df) / df)[:, None]

    def expected(self, ready: StudentReady, block: Block, resp: Array) -> Array:  # type: ignore[override]
        return super().expected(ready.gaussian, block, resp)  # the conditional mean does not depend on u


def best_df(counts: Array, log_excess: Array) -> Array:
    """Return the degrees of freedom nu (K,) that maximize the expected log density of u, within their bounds.

    With x = nu / 2, the maximum of  n [x log x - log G(x)] + x sum_n E[log u - u]  solves  log x - digamma(x) = a,
    a = -1 - sum_n E[log u - u] / n >= 0.  Newton steps of 1 / x, in which the equation is almost linear (Minka 2002).
    The objective has a single maximum: if it is outside the bounds, the nearer bound is optimal.
    """
    a = np.maximum(-1.0 - np.divide(log_excess, counts, out=np.full(len(counts), -2.0), where=counts > 0), 1e-10)
    x = (3 - a + np.sqrt((a - 3) ** 2 + 24 * a)) / (12 * a)
    for _ in range(NEWTON_STEPS):
        x = 1 / (1 / x + (np.log(x) - digamma(x) - a) / (x - x**2 * polygamma(1, x)))
    return np.clip(2 * x, LEAST_DF, MOST_DF)
