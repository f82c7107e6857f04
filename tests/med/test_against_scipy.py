"""Gaussians, trees, nets and level sets beside a general optimizer of scipy on the dual, written out.

    J(λ) = sum_t w_t sum_ab u(λ_tab) - sum_s log E exp(sum_t alpha_ts log p_s(x_t)) - sum_s a_s log n_s - v |a|^2 / 4,

with alpha_ts = w_t sum_ab λ_tab p_tab (1_a - 1_b)_s and a_s = sum_t alpha_ts, which must be zero if the bias is flat;
n_s is the weight of class s, v the variance of the bias. The expectation is that over the prior of the parameters.
A level set has one density and no bias: its dual is  sum_t w_t u(λ_t) - log E exp(sum_t w_t λ_t log p(x_t)).
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from mixent import MEDBayesNetClassifier, MEDGaussianClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.options import GaussianPrior, Margin, Tables

PRECISION = 1e-8  # of the optimum, relative where it is above 1
BEYOND = 1e-10  # how far below C the multipliers stay, relative


class GaussianPartition:
    """The Gaussian of a class, whose parameters have a Normal-Wishart prior: the posterior of its rows."""

    def __init__(self, X, weight, prior):
        self.X = X
        k, mean = prior.strength, prior.mean
        self.N = k + weight.sum()
        self.sum = k * mean + weight @ X
        self.squares = k * (prior.cov + np.outer(mean, mean)) + (X.T * weight) @ X
        self.at_prior = self._log_z(self.N, self.sum, self.squares)[0]

    def __call__(self, alpha):
        """log E exp(sum alpha log p(x)), and its gradient, the expected log-densities; -inf where it does not exist."""
        N = self.N + alpha.sum()
        square = self.squares + (self.X.T * alpha) @ self.X
        log_z, S = self._log_z(N, total := self.sum + alpha @ self.X, square)
        if S is None:
            return np.inf, np.zeros(len(alpha))
        centered = self.X - total / N
        d = self.X.shape[1]
        at_mean = 0.5 * psi(0.5 * (N + 1 - np.arange(1, d + 1))).sum() - 0.5 * d / N
        at_mean -= 0.5 * d * np.log(np.pi) + 0.5 * np.linalg.slogdet(S)[1]
        return log_z - self.at_prior, at_mean - 0.5 * N * (centered @ np.linalg.inv(S) * centered).sum(axis=1)

    def _log_z(self, N, total, squares):
        d = len(total)
        if not d - 1 < N:
            return np.inf, None
        S = squares - np.outer(total, total) / N
        if not np.linalg.eigvalsh(S).min() > 0:
            return np.inf, None
        gamma = gammaln(0.5 * (N + 1 - np.arange(1, d + 1))).sum()
        return -0.5 * d * np.log(N) - 0.5 * N * (d * np.log(np.pi) + np.linalg.slogdet(S)[1]) + gamma, S


class TreePartition:
    """All trees of a class with equal prior probabilities, and smoothed marginals as tables."""

    def __init__(self, X, weight, ess):
        n, d = X.shape
        marginals = np.zeros((n, d))
        for v in range(d):
            marginals[:, v] = np.log(self._shares(X[:, v], weight, ess))
        self.constant = marginals.sum(axis=1)
        self.edges = list(combinations(range(d), 2))
        self.ratios = np.zeros((n, len(self.edges)))
        for e, (u, v) in enumerate(self.edges):
            size = (X[:, u].max() + 1) * (X[:, v].max() + 1)
            both = X[:, u] * (X[:, v].max() + 1) + X[:, v]
            joint = self._shares(both, weight, ess, size)
            self.ratios[:, e] = np.log(joint) - marginals[:, u] - marginals[:, v]
        self.d = d

    @staticmethod
    def _shares(codes, weight, ess, size=None):
        """(n,) share of the value of every row."""
        size = codes.max() + 1 if size is None else size
        counts = np.bincount(codes, weights=weight, minlength=size) + ess / size
        return (counts / counts.sum())[codes]

    def __call__(self, alpha):
        """log E exp(sum alpha log p(x)), and its gradient, the expected log-probabilities."""
        log_weight = alpha @ self.ratios
        top = log_weight.max()
        W = np.zeros((self.d, self.d))
        for e, (u, v) in enumerate(self.edges):
            W[u, v] = W[v, u] = np.exp(log_weight[e] - top)
        laplacian = (np.diag(W.sum(axis=1)) - W)[1:, 1:]
        log_trees = np.linalg.slogdet(laplacian)[1] + (self.d - 1) * top - (self.d - 2) * np.log(self.d)
        inverse = np.zeros((self.d, self.d))
        inverse[1:, 1:] = np.linalg.inv(laplacian)
        in_tree = [W[u, v] * (inverse[u, u] + inverse[v, v] - 2 * inverse[u, v]) for u, v in self.edges]
        return alpha @ self.constant + log_trees, self.constant + self.ratios @ np.array(in_tree)


class NetPartition:
    """The tables of a class, with Dirichlet distributions that have counted its rows; values are 0, 1 and 2."""

    def __init__(self, X, weight, ess, edges):
        self.cells, self.counts = [], []
        for v in range(X.shape[1]):
            parents = [u for u, child in edges if child == v]
            n_configurations = 3 ** len(parents)
            configuration = sum((3**i * X[:, u] for i, u in enumerate(parents)), np.zeros(len(X), dtype=int))
            self.cells.append((configuration, X[:, v]))
            self.counts.append(np.full((n_configurations, 3), ess / (3 * n_configurations)) + self._table(-1, weight))
        self.at_prior = self._log_z(self.counts)

    def _table(self, v, weight):
        configuration, value = self.cells[v]
        return np.bincount(3 * configuration + value, weights=weight, minlength=3 * (configuration.max() + 1)).reshape(
            -1, 3
        )

    @staticmethod
    def _log_z(tables):
        return sum(gammaln(N).sum() - gammaln(N.sum(axis=1)).sum() for N in tables)

    def __call__(self, alpha):
        """log E exp(sum alpha log p(x)), and its gradient, the expected log-probabilities."""
        tables = [N + self._table(v, alpha) for v, N in enumerate(self.counts)]
        if min(N.min() for N in tables) <= 0:
            return np.inf, np.zeros(len(alpha))
        scores = sum(psi(N[cells]) - psi(N.sum(axis=1))[cells[0]] for N, cells in zip(tables, self.cells))
        return self._log_z(tables) - self.at_prior, scores


@dataclass(frozen=True)
class Dual:
    """The dual of a random problem."""

    partitions: list[Any]
    y: np.ndarray
    weight: np.ndarray
    margin: str
    C: float
    target: float
    bias: float  # variance; inf: flat

    @property
    def signed(self):
        """(n, pairs, C): p_tab (1_a - 1_b)."""
        eye = np.eye(len(self.partitions))
        differences = np.array([eye[a] - eye[b] for a, b in combinations(range(len(eye)), 2)])
        return (eye[self.y] @ differences.T)[:, :, None] * differences

    def potential(self, lam):
        """The values of u, and of its derivative."""
        C, target = self.C, self.target
        if self.margin == "exponential":
            return target * lam + np.log1p(-lam / C), target - 1.0 / (C - lam)
        if self.margin == "laplace":
            return target * lam + np.log1p(-((lam / C) ** 2)), target - 2.0 * lam / (C**2 - lam**2)
        return target * lam - 0.5 * (lam / C) ** 2, target - lam / C**2

    def __call__(self, lam):
        """J and its gradient at multipliers (n, pairs)."""
        used = (self.signed != 0).any(axis=2) & (self.weight > 0)[:, None]
        alpha = np.einsum("tk,tks->ts", self.weight[:, None] * np.where(used, lam, 0.0), self.signed)
        u, slope = self.potential(lam)
        value, scores = float(self.weight @ np.where(used, u, 0.0).sum(axis=1)), np.zeros(alpha.shape)
        for s, partition in enumerate(self.partitions):
            log_z, scores[:, s] = partition(alpha[:, s])
            value -= log_z
        a = alpha.sum(axis=0)
        log_share = np.log(np.bincount(self.y, weights=self.weight))
        scores += log_share
        value -= a @ log_share
        if np.isfinite(self.bias):
            value -= 0.25 * self.bias * a @ a
            scores += 0.5 * self.bias * a
        margins = np.einsum("ts,tks->tk", scores, self.signed)
        return value, np.where(used, self.weight[:, None] * (slope - margins), 0.0)

    def imbalance(self, lam):
        """(C,) a."""
        return np.einsum("tk,tks->s", self.weight[:, None] * lam, self.signed)

    def maximum(self):
        """The maximum by sequential quadratic programming."""
        n, n_pairs = self.signed.shape[:2]

        def negative(flat):
            value, gradient = self(flat.reshape(n, n_pairs))
            return (-value, -gradient.ravel()) if np.isfinite(value) else (1e10, -gradient.ravel())

        upper = np.inf if self.margin == "gaussian" else self.C * (1.0 - BEYOND)
        options = {"ftol": 1e-14, "maxiter": 2000}
        jacobian = np.einsum("t,tks->stk", self.weight, self.signed).reshape(len(self.partitions), -1)[1:]
        balanced = {"type": "eq", "fun": lambda flat: jacobian @ flat, "jac": lambda flat: jacobian}
        result = minimize(
            negative,
            np.zeros(n * n_pairs),
            jac=True,
            method="SLSQP",
            bounds=[(0.0, upper)] * (n * n_pairs),
            constraints=[balanced] if np.isinf(self.bias) else [],
            options=options,
        )
        return -result.fun


# margin, C, bias, classes, weights
PROBLEMS = [
    ("laplace", 0.5, np.inf, 2, False),
    ("exponential", 1.5, 1.0, 2, True),
    ("gaussian", 0.4, np.inf, 3, False),
    ("laplace", 2.0, 0.5, 3, True),
    ("exponential", 0.8, np.inf, 2, True),
]


def drawn(seed, n_classes, weights):
    rng = np.random.default_rng(seed)
    y = np.arange(8 * n_classes) % n_classes
    return rng, y, rng.uniform(0.5, 2.0, len(y)) if weights else np.ones(len(y))


def fitted(model, X, dual):
    options = {"calibration": None, "tol": 1e-12, "max_iter": 3000, "n_jobs": 1, "C": dual.C}
    options |= {"bias": "flat" if np.isinf(dual.bias) else dual.bias, "margin": Margin(dual.margin, target=dual.target)}
    return model.set_params(**options).fit(X, dual.y, sample_weight=dual.weight)


def check(model, dual):
    best = dual.maximum()
    size = max(1.0, abs(best))
    lam = model.multipliers_.reshape(len(dual.y), -1)
    assert (lam > 0).sum() >= 2
    if np.isinf(dual.bias):
        np.testing.assert_allclose(dual.imbalance(lam), 0.0, atol=1e-6)
    assert dual(lam)[0] == pytest.approx(model.objective_, abs=PRECISION * size)
    assert best <= model.objective_ + PRECISION * size and model.gap_ <= PRECISION * size
    assert best == pytest.approx(model.objective_, abs=1e-5 * size)  # scipy has the same optimum, if less precisely


@pytest.mark.parametrize(("margin", "C", "bias", "n_classes", "weights"), PROBLEMS)
def test_gaussians(margin, C, bias, n_classes, weights):
    rng, y, weight = drawn(1, n_classes, weights)
    X = rng.normal(size=(n_classes, 2))[y] + rng.normal(size=(len(y), 2)) * (1.0 + 0.5 * y[:, None])
    prior = GaussianPrior(3.0, mean=np.array([0.2, -0.1]), cov=np.array([[1.0, 0.3], [0.3, 1.5]]))
    partitions = [GaussianPartition(X, weight * (y == s), prior) for s in range(n_classes)]
    dual = Dual(partitions, y, weight, margin, C, 2.0, bias)
    check(fitted(MEDGaussianClassifier(prior=prior), X, dual), dual)


def words(rng, y):
    """Codes of four columns with three values, of which the second depends on the first in every class."""
    X = rng.integers(3, size=(len(y), 4))
    X[:, 1] = np.where(rng.random(len(y)) < 0.7, (X[:, 0] + y) % 3, X[:, 1])
    X[:3] = np.arange(3)[:, None]  # every column has three values
    return X


@pytest.mark.parametrize(("margin", "C", "bias", "n_classes", "weights"), PROBLEMS)
def test_trees(margin, C, bias, n_classes, weights):
    rng, y, weight = drawn(2, n_classes, weights)
    X = words(rng, y)
    partitions = [TreePartition(X, weight * (y == s), 1.5) for s in range(n_classes)]
    dual = Dual(partitions, y, weight, margin, C, 2.0, bias)
    check(fitted(MEDTreeClassifier(Tables(ess=1.5)), np.array(list("abc"))[X], dual), dual)


@pytest.mark.parametrize(("margin", "C", "bias", "n_classes", "weights"), PROBLEMS)
def test_nets(margin, C, bias, n_classes, weights):
    rng, y, weight = drawn(3, n_classes, weights)
    X, edges = words(rng, y), [(0, 1), (2, 1)]
    partitions = [NetPartition(X, weight * (y == s), 2.0, edges) for s in range(n_classes)]
    dual = Dual(partitions, y, weight, margin, C, 4.0, bias)
    check(fitted(MEDBayesNetClassifier(edges, ess=2.0), np.array(list("abc"))[X], dual), dual)


def independent_columns(X, ess, alpha):
    """log E exp(sum alpha log p(x)) of columns with Dirichlet priors, and its gradient."""
    value, scores = 0.0, np.zeros(len(X))
    for column in X.T:
        size = column.max() + 2  # one cell for categories that did not occur
        prior = np.full(size, ess / size)
        counts = prior + np.bincount(column, weights=alpha, minlength=size)
        value += gammaln(counts).sum() - gammaln(counts.sum()) - gammaln(prior).sum() + gammaln(ess)
        scores += (psi(counts) - psi(counts.sum()))[column]
    return value, scores


@pytest.mark.parametrize(("margin", "C"), [("exponential", 1.0), ("laplace", 2.0), ("gaussian", 0.5)])
def test_level_sets(margin, C):
    rng, y, _ = drawn(4, 3, weights=False)
    X, ess = words(rng, y), 1.5
    options = {"C": C, "ess": ess, "tol": 1e-12, "max_iter": 3000}
    model = MEDNoveltyDetector("product", margin=Margin(margin, quantile=0.5), **options).fit(np.array(list("abc"))[X])
    dual = Dual([], y, np.ones(len(y)), margin, C, model.margin_.target, np.inf)

    def negative(lam):
        (u, slope), (log_z, scores) = dual.potential(lam), independent_columns(X, ess, lam)
        return log_z - u.sum(), scores - slope

    upper = np.inf if margin == "gaussian" else C * (1.0 - BEYOND)
    bounds = [(0.0, upper)] * len(y)
    best = minimize(
        negative, np.full(len(y), 0.1 * C), jac=True, method="SLSQP", bounds=bounds, options={"ftol": 1e-14}
    )
    size = max(1.0, abs(best.fun))
    assert (model.multipliers_ > 0).sum() >= 2
    assert -negative(model.multipliers_)[0] == pytest.approx(model.objective_, abs=PRECISION * size)
    assert -best.fun <= model.objective_ + PRECISION * size and model.gap_ <= PRECISION * size
    assert -best.fun == pytest.approx(model.objective_, abs=1e-5 * size)
