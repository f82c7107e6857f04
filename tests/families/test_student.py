"""t distributions and the uniform component: densities, marginals, samples, limits."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln
from scipy.stats import multivariate_t

from mixent.core.blocks import ArrayBlocks, Block
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.student import LEAST_DF, MOST_DF, StudentFamily, Students, best_df
from mixent.families.uniform import Uniform

DF = np.array([1.5, 4.0, 30.0])


def three(name, d=3, df=DF):
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(3, d, d)) / np.sqrt(d) + np.eye(d)
    covs = roots @ roots.swapaxes(1, 2)
    covs = np.diagonal(covs, axis1=1, axis2=2).copy() if name.endswith("I") else covs
    family = StudentFamily((Group(name, 0, 3),), np.full(d, 0.5), np.ones(d))
    return family, Students(rng.normal(size=(3, d)), covs, (None,), df)


def rows(n=60, d=3, missing=0.3):
    rng = np.random.default_rng(1)
    X = 2.0 * rng.normal(size=(n, d))
    X[rng.random((n, d)) < missing] = np.nan
    return X


def log_prob(family, params, X):
    ready, out = family.prepare(params), np.empty((params.n_components, len(X)))
    for block in ArrayBlocks(Block(X)):
        out[:, slice(None) if block.rows is None else block.rows] = family.open(ready, block).log_prob()
    return out


@pytest.mark.parametrize("missing", [0.0, 0.4], ids=["complete", "missing"])
@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_the_density_of_the_observed_values_is_that_of_scipy(name, missing):
    family, params = three(name)
    X = rows(missing=missing)
    ours = log_prob(family, params, X)
    for i, row in enumerate(X):
        seen = np.flatnonzero(~np.isnan(row))
        for k, cov in enumerate(params.full_covs()):
            mean = params.means[k] + family.center
            args = mean[seen], cov[np.ix_(seen, seen)], params.df[k]
            theirs = multivariate_t.logpdf(row[seen], *args) if len(seen) else 0.0
            assert ours[k, i] == pytest.approx(theirs, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_a_missing_value_is_the_marginal_of_the_other_columns(name):
    family, params = three(name)
    X = rows(missing=0.0)
    other, marginal = family.marginal(params, np.array([2, 0]))
    X[:, 1] = np.nan
    np.testing.assert_allclose(log_prob(other, marginal, X[:, [2, 0]]), log_prob(family, params, X), rtol=1e-12)
    np.testing.assert_array_equal(marginal.df, params.df)


def test_the_density_with_a_missing_value_is_an_integral():
    family, params = three("VVV", d=2)
    grid = np.tan(np.linspace(-np.pi / 2, np.pi / 2, 20001)[1:-1])  # the whole line, for heavy tails
    points = np.column_stack([np.full(len(grid), 0.7), grid])
    density = np.exp(log_prob(family, params, points))
    whole = log_prob(family, params, np.array([[0.7, np.nan]]))
    integral = np.trapezoid(density * (1 + grid**2), np.arctan(grid), axis=1)
    np.testing.assert_allclose(np.log(integral), whole[:, 0], atol=1e-6)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_with_many_degrees_of_freedom_densities_and_moments_are_gaussian(name):
    family, params = three(name, df=np.full(3, 1e7))
    gaussian = GaussianFamily(family.groups, family.center, family.scale)
    plain = Gaussians(params.means, params.covs, params.axes)
    X = rows()
    np.testing.assert_allclose(log_prob(family, params, X), log_prob(gaussian, plain, X), rtol=1e-3)
    resp = np.random.default_rng(0).random((3, len(X)))
    for block in ArrayBlocks(Block(X)):
        works = family.open(family.prepare(params), block), gaussian.open(gaussian.prepare(plain), block)
        ours, theirs = (work.log_prob() is not None and work.moments(np.array(resp[:, block.rows])) for work in works)
        for field in ("mass", "first", "second", "rows"):
            np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=1e-3)


@pytest.mark.parametrize("df", [1.2, 3.0, 20.0, 150.0])
def test_the_degrees_of_freedom_are_the_maximum(df):
    """Of the expected log density of gamma(nu / 2, nu / 2), here of draws with other degrees of freedom."""
    u = np.random.default_rng(0).gamma(df / 2, 2 / df, 300)
    counts, excess = np.array([300.0]), np.array([(np.log(u) - u).sum()])

    def minus(nu):
        return -(300 * (nu / 2 * np.log(nu / 2) - gammaln(nu / 2)) + nu / 2 * excess[0])

    best = minimize_scalar(minus, bounds=(LEAST_DF, MOST_DF), method="bounded", options={"xatol": 1e-9}).x
    assert best_df(counts, excess)[0] == pytest.approx(best, rel=1e-5)


def test_the_degrees_of_freedom_have_bounds():
    nu = np.array([1e-3, 1e6])
    excess = -1 - (np.log(nu / 2) - digamma(nu / 2))
    np.testing.assert_array_equal(best_df(np.ones(2), excess), [LEAST_DF, MOST_DF])
    assert np.isfinite(best_df(np.array([0.0, 1.0]), np.array([0.0, -1.0]))).all()


def test_samples_have_the_covariance_of_a_t_distribution():
    family, params = three("VVV", df=np.array([8.0, 8.0, 8.0]))
    X = family.sample(params, np.full(200_000, 1), np.random.default_rng(0))
    np.testing.assert_allclose(X.mean(axis=0), params.means[1] + family.center, atol=0.03)
    np.testing.assert_allclose(np.cov(X.T), params.covs[1] * 8 / 6, atol=0.06)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_pack_and_unpack(name):
    family, params = three(name)
    again = family.unpack(family.pack(params), params, np.ones(3))
    for field in ("means", "covs", "df"):
        np.testing.assert_allclose(getattr(again, field), getattr(params, field), rtol=1e-12)
    assert family.unpack(np.append(family.pack(params)[:-1], np.inf), params, np.ones(3)) is None
    assert family.n_free() == GaussianFamily(family.groups, family.center, family.scale).n_free() + 3


def test_the_uniform_density_integrates_missing_values_out():
    uniform = Uniform(np.array([0.0, -1.0]), np.array([2.0, 3.0]), (2, 5))
    X, codes = np.array([[1.0, 0.0], [9.0, np.nan], [np.nan, np.nan]]), np.array([[0, 4], [1, -1], [-1, -1]])
    block = Block(X, codes.astype(np.int32), complete=False)
    np.testing.assert_allclose(np.exp(uniform.log_prob(block)), [1 / 80, 1 / 4, 1.0])
    np.testing.assert_array_equal(uniform.expected(X), [[1.0, 0.0], [9.0, 1.0], [1.0, 1.0]])
    part = uniform.marginal(np.array([1]), np.array([1]))
    assert (part.low, part.high, part.sizes) == ([-1.0], [3.0], (5,))
    drawn, categories = uniform.sample(1000, np.random.default_rng(0))
    assert (drawn.min(0) >= [0, -1]).all() and (drawn.max(0) <= [2, 3]).all()
    np.testing.assert_allclose(drawn.mean(0), [1, 1], atol=0.15)
    np.testing.assert_allclose(np.bincount(categories[:, 1]) / 1000, 0.2, atol=0.05)
