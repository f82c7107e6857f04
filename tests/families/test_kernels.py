import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import OutsideDomainError
from mixent.core.stats import tree_sum
from mixent.families.gaussian import kernels
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.kernels import (
    Centered,
    CenteredDiagonal,
    Quadratic,
    Ready,
    about_center,
    about_means,
    embed,
    quadratic_pays,
)
from mixent.families.gaussian.missing import Incomplete, IncompleteDiagonal

SIZES = [(K, d) for K in (1, 2, 5) for d in (1, 2, 3, 5, 12)]
every_size = pytest.mark.parametrize(("K", "d"), SIZES)
both = pytest.mark.parametrize("diagonal", [False, True])


def random_ready(rng, K, d, diagonal, spread=1.0, **options):
    center = rng.normal(size=d)
    means = spread * rng.normal(size=(K, d))
    if diagonal:
        covs = np.exp(rng.normal(size=(K, d)))
    else:
        roots = rng.normal(size=(K, d + 2, d))
        covs = np.swapaxes(roots, 1, 2) @ roots / d
    name = "VVI" if diagonal else "VVV"
    family = GaussianFamily((Group(name, 0, K),), center, np.ones(d))
    return family.prepare(Gaussians(means, covs, (None,)))


def full(ready):
    return ready.covs if ready.covs.ndim == 3 else ready.covs[:, :, None] * np.eye(ready.covs.shape[1])


def rows(rng, ready, n):
    d = ready.means.shape[1]
    return ready.center + ready.means[rng.integers(len(ready.means), size=n)] + rng.normal(size=(n, d))


def brute_force(ready, X, resp):
    """Log density of the observed cells, and E[z], E[z z^T] given them with z = x - m_k, row by row."""
    K, d = ready.means.shape
    log_prob = np.zeros((K, len(X)))
    first, second = np.zeros((K, d)), np.zeros((K, d, d))
    for k in range(K):
        C, m = full(ready)[k], ready.means[k] + ready.center
        for n, x in enumerate(X):
            o, g = ~np.isnan(x), np.isnan(x)
            z, V = np.where(o, x - m, 0.0), np.zeros((d, d))
            if o.any():
                log_prob[k, n] = multivariate_normal.logpdf(x[o], m[o], C[np.ix_(o, o)])
            if g.any():
                gain = C[np.ix_(g, o)] @ np.linalg.inv(C[np.ix_(o, o)]) if o.any() else np.zeros((g.sum(), 0))
                z[g] = gain @ z[o]
                V[np.ix_(g, g)] = C[np.ix_(g, g)] - gain @ C[np.ix_(o, g)]
            first[k] += resp[k, n] * z
            second[k] += resp[k, n] * (np.outer(z, z) + V)
    return log_prob, first, second


def check(ready, work, X, resp, rtol=1e-9):
    log_prob, first, second = brute_force(ready, X, resp)
    np.testing.assert_allclose(work.log_prob(), log_prob, rtol=rtol, atol=rtol)
    found = work.moments(resp)
    if found.about == "center":
        found = about_means(found, ready.means)
    if found.second.ndim == 2:
        second = np.diagonal(second, axis1=1, axis2=2)
    scale = max(1.0, np.abs(second).max())
    np.testing.assert_allclose(found.mass, resp.sum(axis=1), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(found.first, first, rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found.second, second, rtol=rtol, atol=rtol * scale)


@both
@every_size
@pytest.mark.parametrize("signed", [False, True])
def test_complete_rows_by_either_form_equal_brute_force(K, d, diagonal, signed):
    rng = np.random.default_rng(K * 100 + d)
    ready = random_ready(rng, K, d, diagonal)
    X = rows(rng, ready, 25)
    resp = rng.normal(size=(K, 25)) if signed else rng.random((K, 25))
    assert isinstance(ready.open(Block(X)), Quadratic) == (diagonal or quadratic_pays(K, d))
    check(ready, Quadratic(ready, Block(X)), X, resp)
    check(ready, (CenteredDiagonal if diagonal else Centered)(ready, Block(X)), X, resp)


def patterns(rng, d, n):
    """Gaps at random, with none seen, one seen and one missing among them."""
    gaps = rng.random((n, d)) < 0.4
    gaps[0] = True
    for i, only in ((1, True), (2, False)):
        gaps[i] = only
        gaps[i, rng.integers(d)] = not only
    return gaps


@both
@every_size
@pytest.mark.parametrize("quadratic", [True, False])
def test_rows_with_gaps_equal_the_marginal_and_the_conditional_expectations(K, d, diagonal, quadratic):
    rng = np.random.default_rng(K * 100 + d)
    ready = random_ready(rng, K, d, diagonal)
    ready = Ready(ready.means, ready.covs, ready.half_log_det, ready.factors, ready.center, quadratic)
    X = rows(rng, ready, 20)
    X[patterns(rng, d, 20)] = np.nan
    source = ArrayBlocks(Block(X), 8, 6)
    for i in range(len(source)):
        block = source[i]
        resp = rng.normal(size=(K, block.n_rows))
        work = ready.open(block)
        if not block.complete:
            assert isinstance(work, IncompleteDiagonal if diagonal else Incomplete)
            assert work.log_prob().shape == resp.shape
            assert work.moments(resp).about == ("center" if quadratic else "means")
        check(ready, work, block.X, resp)


@both
def test_moments_are_linear_in_the_responsibilities(diagonal):
    rng = np.random.default_rng(0)
    for quadratic in (True, False):
        ready = random_ready(rng, 3, 4, diagonal)
        ready = Ready(ready.means, ready.covs, ready.half_log_det, ready.factors, ready.center, quadratic)
        X = rows(rng, ready, 30)
        a, b = rng.normal(size=(3, 30)), rng.random((3, 30))
        work = ready.open(Block(X))
        left = work.moments(2 * a - 3 * b)
        parts = work.moments(a), work.moments(b)
        for name in ("mass", "first", "second"):
            x, y = (getattr(p, name) for p in parts)
            np.testing.assert_allclose(getattr(left, name), 2 * x - 3 * y, rtol=1e-10, atol=1e-10)


@both
def test_moving_moments_there_and_back_changes_nothing(diagonal):
    rng = np.random.default_rng(0)
    ready = random_ready(rng, 3, 4, diagonal)
    moments = Quadratic(ready, Block(rows(rng, ready, 30))).moments(rng.random((3, 30)))
    back = about_center(about_means(moments, ready.means), ready.means)
    assert back.about == "center"
    for name in ("mass", "first", "second"):
        np.testing.assert_allclose(getattr(back, name), getattr(moments, name), rtol=1e-12, atol=1e-12)


@both
@pytest.mark.parametrize("far", [0.0, 1e4])
def test_some_components_are_the_same_as_all_with_the_others_silent(diagonal, far):
    rng = np.random.default_rng(1)
    ready = random_ready(rng, 4, 3, diagonal, spread=1.0 + far)
    assert ready.quadratic == (far == 0.0)
    X = rows(rng, ready, 40)
    X[rng.random(X.shape) < 0.2] = np.nan
    source = ArrayBlocks(Block(X))
    index = np.array([0, 2])
    for chosen in (index, np.array([], dtype=int)):
        some = ready.restrict(chosen)
        for i in range(len(source)):
            resp = np.zeros((4, source[i].n_rows))
            resp[chosen] = rng.random((len(chosen), source[i].n_rows))
            work, whole = some.open(source[i]), ready.open(source[i])
            log_prob = whole.log_prob()[chosen].copy()
            np.testing.assert_allclose(work.log_prob(), log_prob, rtol=1e-12)
            part, all_ = embed(work.moments(resp[chosen]), chosen, 4), whole.moments(resp)
            np.testing.assert_allclose(part.second, all_.second, rtol=1e-9, atol=1e-9 * (1 + np.abs(all_.second).max()))
            assert part.about == all_.about
            assert tree_sum([part, all_]).mass.shape == (4,)


# --- digits ----------------------------------------------------------------------------------------------------------


def weighted_fit(family, params, X, label):
    """Means and covariances after one update with known components."""
    ready, source, parts = family.prepare(params), ArrayBlocks(Block(X)), []
    for i in range(len(source)):
        work = ready.open(source[i])
        work.log_prob()
        parts.append(work.moments((label[source[i].rows] == np.arange(params.n_components)[:, None]).astype(float)))
    return ready, family.update(params, tree_sum(parts))


@pytest.mark.parametrize("structure", ["VVV", "VVI"])
def test_an_offset_of_1e8_costs_no_digits_beyond_those_of_the_data(structure):
    rng = np.random.default_rng(0)
    small = np.round(rng.normal(size=(300, 3)) * 2**20) / 2**20  # exact at either place
    X = small + 2.0**27
    np.testing.assert_array_equal(X - 2.0**27, small)
    label = rng.integers(2, size=300)
    family = GaussianFamily((Group(structure, 0, 2),), np.full(3, 2.0**27), np.ones(3))
    covs = np.ones((2, 3)) if structure == "VVI" else np.repeat(np.eye(3)[None], 2, axis=0)
    _, fitted = weighted_fit(family, Gaussians(rng.normal(size=(2, 3)), covs, (None,)), X, label)
    for k in range(2):
        expected = np.cov(small[label == k].T, bias=True)
        expected = np.diag(expected) if structure == "VVI" else expected
        np.testing.assert_allclose(fitted.means[k], small[label == k].mean(axis=0), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(fitted.covs[k], expected, rtol=1e-10, atol=1e-12)


@pytest.fixture(params=["VVV", "VVI"])
def pair(request):
    """Rows of two components about the origin, and a family and a start for them, moved apart by `far`."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 200)
    z = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.5], [0.0, 0.7]])
    start = 0.3 * rng.normal(size=(2, 2))
    unit = np.ones((2, 2)) if request.param == "VVI" else np.repeat(np.eye(2)[None], 2, axis=0)

    def make(far):
        family = GaussianFamily((Group(request.param, 0, 2),), np.zeros(2), np.full(2, 1.0 + np.abs(far).max()))
        return family, Gaussians(start + far, unit, (None,))

    return z, label, make


@pytest.mark.parametrize("distance", [10.0, 200.0, 500.0, 1e4, 1e6])
@pytest.mark.parametrize("gaps", [False, True])
def test_components_far_apart_keep_their_covariances(pair, distance, gaps):
    """Rows and start moved with their component: covariances and log densities stay."""
    z, label, make = pair
    if gaps:
        z[np.random.default_rng(1).random(400) < 0.3, 0] = np.nan
    far = np.array([[-distance], [distance]]) / 2
    near, fitted_near = weighted_fit(*make(0 * far), z, label)
    ready, fitted = weighted_fit(*make(far), z + far[label], label)
    assert ready.quadratic == (distance < 300)
    np.testing.assert_allclose(fitted.covs, fitted_near.covs, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fitted.means, fitted_near.means + far, rtol=1e-9)
    if not gaps:
        at = label, np.arange(400)
        expected = near.open(Block(z)).log_prob()[at].copy()
        np.testing.assert_allclose(ready.open(Block(z + far[label])).log_prob()[at], expected, rtol=1e-8, atol=1e-8)
        for k in range(2):
            cov = np.cov(z[label == k].T, bias=True)
            np.testing.assert_allclose(fitted.covs[k], np.diag(cov) if fitted.covs.ndim == 2 else cov, rtol=1e-8)


@pytest.mark.parametrize("thin", [1e-2, 1e-4, 1e-6])
def test_nearly_dependent_columns_keep_their_log_densities(thin):
    """Quadratic features of columns equal up to 1e-6 cancel twelve digits; the kernel must notice."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    X = np.stack([a, a + thin * b], axis=1)
    covs = np.array([[[1.0, 1.0], [1.0, 1.0 + thin**2]]])
    family = GaussianFamily((Group("VVV", 0, 1),), np.zeros(2), np.ones(2))
    ready = family.prepare(Gaussians(np.zeros((1, 2)), covs, (None,)))
    seen = (X[:, 1] - X[:, 0]) / thin  # what b is after rounding
    exact = -0.5 * (a**2 + seen**2) - np.log(2 * np.pi) - np.log(thin)
    cov_error = 1e-16 / thin**2  # of the covariance as given
    np.testing.assert_allclose(ready.open(Block(X)).log_prob()[0], exact, atol=1e-10 + 30 * cov_error)
    # against the same covariance factorized, no digit may be lost to the features
    z = X @ ready.factors[0].T
    expected = -0.5 * (z**2).sum(axis=1) - np.log(2 * np.pi) - ready.half_log_det
    np.testing.assert_allclose(ready.open(Block(X)).log_prob()[0], expected, atol=1e-9)


def test_covariances_that_are_none_are_outside_the_domain():
    family = GaussianFamily((Group("VVV", 0, 1),), np.zeros(2), np.ones(2))
    with pytest.raises(OutsideDomainError, match="not positive definite"):
        family.prepare(Gaussians(np.zeros((1, 2)), np.ones((1, 2, 2)), (None,)))
    family = GaussianFamily((Group("VVI", 0, 1),), np.zeros(2), np.ones(2))
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(OutsideDomainError, match="not positive"):
            family.prepare(Gaussians(np.zeros((1, 2)), np.array([[1.0, wrong]]), (None,)))


@pytest.mark.parametrize(
    ("K", "q", "n"), [(1, 3, 5), (5, 21, 10_000), (16, 66, 1500), (16, 1326, 700), (40, 1326, 600), (300, 66, 550)]
)
def test_products_in_tiles_equal_products(K, q, n):
    rng = np.random.default_rng(0)
    columns, features, resp = rng.normal(size=(K, q)), rng.normal(size=(q, n)), rng.random((K, n))
    out = np.full((K, n), np.nan)
    kernels._product(columns, features, out)
    scale = np.sqrt(q)
    np.testing.assert_allclose(out, columns @ features, rtol=0, atol=1e-13 * scale)
    back = kernels._product_back(features, resp)
    np.testing.assert_allclose(back, features @ resp.T, rtol=0, atol=1e-13 * np.sqrt(n))


def test_few_of_many_components_go_another_way_to_the_same_moments():
    rng = np.random.default_rng(0)
    ready = random_ready(rng, 9, 12, diagonal=False)
    few = ready.restrict(np.array([4]))
    X, resp = rows(rng, ready, 50), rng.random((1, 50))
    assert isinstance(ready.open(Block(X)), Quadratic) and isinstance(few.open(Block(X)), Centered)
    check(few, few.open(Block(X)), X, resp)
    assert few.open(Block(X)).moments(resp).about == ready.open(Block(X)).moments(rng.random((9, 50))).about
