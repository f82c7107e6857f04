from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import OutsideDomainError, Stop, run
from mixent.core.executors import Serial
from mixent.core.stats import tree_sum
from mixent.families.gaussian.family import FLAT, GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
every = pytest.mark.parametrize("name", NAMES)
MIXES = [(("VVI", 2), ("VVV", 2)), (("EEE", 2), ("EII", 1), ("VVE", 2)), (("VEI", 2), ("EVI", 2))]


def make_family(groups, d, prior=None, center=None):
    spans, start = [], 0
    for name, size in groups:
        spans.append(Group(name, start, start + size))
        start += size
    family = GaussianFamily(tuple(spans), np.zeros(d) if center is None else center, np.linspace(0.5, 2.0, d))
    return family if prior is None else replace(family, prior=prior.expand(start, family.axis_aligned))


def start_params(rng, family):
    K, d = family.groups[-1].stop, family.n_columns
    covs = np.ones((K, d)) if family.axis_aligned else np.repeat(np.eye(d)[None], K, axis=0)
    return Gaussians(rng.normal(size=(K, d)), covs, (None,) * len(family.groups))


def moments(family, params, X, resp):
    ready, source, parts = family.prepare(params), ArrayBlocks(Block(X)), []
    for i in range(len(source)):
        work = family.open(ready, source[i])
        work.log_prob()
        parts.append(work.moments(np.ascontiguousarray(resp[:, source[i].rows])))
    return tree_sum(parts)


def fitted(rng, family, n=60):
    """Parameters the structures allow."""
    K, d = family.groups[-1].stop, family.n_columns
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + family.center
    params = start_params(rng, family)
    for _ in range(3):
        resp = rng.dirichlet(np.full(K, 0.3), n).T
        params = family.update(params, moments(family, params, X, resp))
    return params, X


def log_density(family, params, X):
    covs = params.full_covs()
    return np.stack(
        [
            np.atleast_1d(multivariate_normal.logpdf(X, m + family.center, C))
            for m, C in zip(params.means, covs, strict=True)
        ]
    )


def penalized(family, params, X, resp):
    """Written from the formula: sum_nk r log N + log prior, K by K."""
    value = float((resp * log_density(family, params, X)).sum())
    prior = family.prior
    if prior is not None:
        for k, (m, C) in enumerate(zip(params.means, params.full_covs())):
            cov = prior.cov[k] if prior.cov.ndim == 3 else np.diag(prior.cov[k])
            away = m - prior.mean[k]
            scatter = prior.rows[k] * cov + prior.mean_rows[k] * np.outer(away, away)
            value -= 0.5 * (prior.rows[k] * np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, scatter)))
    return value


def random_prior(rng, d, rows=3.0, mean_rows=0.5):
    root = rng.normal(size=(d + 2, d))
    return Prior(np.array(rows), root.T @ root / d, rng.normal(size=d), np.array(mean_rows))


@pytest.mark.parametrize("groups", [((name, 3),) for name in NAMES] + MIXES)
@pytest.mark.parametrize("with_prior", [False, True])
def test_no_update_lowers_the_penalized_objective_and_no_neighbor_is_better(groups, with_prior):
    rng = np.random.default_rng(len(groups) + with_prior)
    d, n = 3, 80
    family = make_family(groups, d, random_prior(rng, d) if with_prior else None, rng.normal(size=d))
    K = family.groups[-1].stop
    params, X = fitted(rng, family, n)
    assert family.log_prior(params) == pytest.approx(penalized(family, params, X, np.zeros((K, n))), rel=1e-9, abs=1e-9)
    for _ in range(4):
        resp = rng.dirichlet(np.full(K, 0.5), n).T * rng.random(n)
        new = family.update(params, moments(family, params, X, resp))
        best = penalized(family, new, X, resp)
        assert best >= penalized(family, params, X, resp) - 1e-9 * abs(best)
        if {name for name, _ in groups}.isdisjoint({"EVE", "VVE"}):  # these have local maxima
            other, _ = fitted(rng, family, n)
            assert best >= penalized(family, other, X, resp)
        for sign in (-1, 1):
            near = replace(new, means=new.means + sign * 1e-3 * rng.normal(size=new.means.shape))
            assert penalized(family, near, X, resp) < best
            wider = replace(new, covs=new.covs * (1 + sign * 1e-3))  # allowed by every structure
            assert penalized(family, wider, X, resp) < best
        params = new


@pytest.mark.parametrize("with_prior", [False, True])
def test_vvv_is_the_optimum_a_general_optimizer_finds(with_prior):
    rng = np.random.default_rng(0)
    family = make_family((("VVV", 1),), 2, random_prior(rng, 2) if with_prior else None)
    X, resp = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 2)), rng.random((1, 30))
    params = start_params(rng, family)
    new = family.update(params, moments(family, params, X, resp))

    def build(theta):
        L = np.array([[np.exp(theta[2]), 0.0], [theta[3], np.exp(theta[4])]])
        return Gaussians(theta[None, :2], (L @ L.T)[None], (None,))

    found = minimize(lambda t: -penalized(family, build(t), X, resp), np.zeros(5), tol=1e-12)
    np.testing.assert_allclose(build(found.x).means, new.means, atol=1e-5)
    np.testing.assert_allclose(build(found.x).covs, new.covs, atol=1e-5)
    assert penalized(family, new, X, resp) >= -found.fun


@every
def test_without_data_the_prior_speaks_alone(name):
    rng = np.random.default_rng(0)
    d, K = 3, 2
    cov = np.diag([1.0, 2.0, 0.5]) if COVARIANCES[name].axis_aligned else random_prior(rng, d).cov
    if name in ("EII", "VII"):
        cov = 2.0 * np.eye(d)
    prior = Prior(np.array(4.0), cov, np.array([1.0, 2.0, 3.0]), np.array(0.5))
    family = make_family(((name, K),), d, prior)
    params = start_params(rng, family)
    new = family.update(params, moments(family, params, np.zeros((1, d)), np.zeros((K, 1))))
    np.testing.assert_allclose(new.full_covs(), np.repeat(cov[None], K, axis=0), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(new.means, np.repeat(prior.mean[None], K, axis=0), rtol=1e-12)


def test_the_prior_is_rows_seen_before():
    """rows = 2 with mean_rows = 0: as two rows at +-sqrt(cov) about each mean; means as with mean_rows rows more."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 1))
    family = make_family((("VVV", 1),), 1, Prior(np.array(5.0), np.array([[4.0]]), np.array([7.0]), np.array(2.0)))
    params = start_params(rng, family)
    new = family.update(params, moments(family, params, X, np.ones((1, 20))))
    mean = (X.sum() + 2 * 7.0) / 22
    assert new.means[0, 0] == pytest.approx(mean, rel=1e-12)
    expected = (((X - mean) ** 2).sum() + 5 * 4.0 + 2 * (mean - 7.0) ** 2) / 25
    assert new.covs[0, 0, 0] == pytest.approx(expected, rel=1e-12)


def test_a_prior_may_be_given_as_variances_or_as_one_matrix_for_each_component():
    d = 3
    variances = np.array([1.0, 2.0, 3.0])
    for cov in (variances, np.diag(variances), np.repeat(np.diag(variances)[None], d, axis=0)):
        prior = Prior(np.array(2.0), cov, np.zeros(d), np.array(0.1))
        np.testing.assert_array_equal(prior.expand(d, True).cov, np.repeat(variances[None], d, axis=0))
        np.testing.assert_array_equal(prior.expand(d, False).cov, np.repeat(np.diag(variances)[None], d, axis=0))
    some = prior.expand(4 - 1, False).take(np.array([2, 0]))
    assert some.cov.shape == (2, d, d) and some.rows.shape == (2,)


@every
def test_weight_two_is_the_row_twice(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 2),), 3, random_prior(rng, 3))
    params, X = fitted(rng, family)
    resp, twice = rng.random((2, 60)), rng.integers(0, 3, 60)
    one = family.update(params, moments(family, params, X, resp * twice))
    other = family.update(params, moments(family, params, np.repeat(X, twice, axis=0), np.repeat(resp, twice, axis=1)))
    np.testing.assert_allclose(one.means, other.means, rtol=1e-9, atol=1e-12)
    # an inner minimization that compares values determines its minimum to the square root of rounding
    rtol = 1e-6 if name in ("EVE", "VVE") else 1e-8
    np.testing.assert_allclose(one.covs, other.covs, rtol=rtol, atol=1e-10)


def test_a_component_without_rows_keeps_its_parameters():
    rng = np.random.default_rng(0)
    family = make_family((("EEE", 2), ("VVV", 1)), 2)
    params, X = fitted(rng, family)
    resp = np.array([[1.0], [0.0], [0.0]]) * np.ones(60)
    new = family.update(params, moments(family, params, X, resp))
    assert not np.allclose(new.covs[0], params.covs[0])
    np.testing.assert_array_equal(new.covs[1:], params.covs[1:])
    np.testing.assert_array_equal(new.means[1:], params.means[1:])


@pytest.mark.parametrize("groups", MIXES)
def test_groups_do_not_see_each_other(groups):
    rng = np.random.default_rng(0)
    family = make_family(groups, 3, random_prior(rng, 3))
    K = family.groups[-1].stop
    params, X = fitted(rng, family)
    resp = rng.random((K, 60))
    new = family.update(params, moments(family, params, X, resp))
    for group in family.groups:
        index = np.arange(group.start, group.stop)
        alone, part = family.take(params, index)
        assert alone.axis_aligned == COVARIANCES[group.structure].axis_aligned
        part = alone.update(part, moments(alone, part, X, resp[index]))
        np.testing.assert_allclose(part.full_covs(), new.full_covs()[index], rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(part.means, new.means[index], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("groups", [((name, 4),) for name in NAMES] + MIXES)
def test_taking_some_components_leaves_their_densities(groups):
    rng = np.random.default_rng(0)
    family = make_family(groups, 3, random_prior(rng, 3))
    params, X = fitted(rng, family)
    K = params.n_components
    index = np.array([k for k in range(K - 1, -1, -1) if k != 1])
    index = index[
        np.argsort([[g.start <= k < g.stop for g in family.groups].index(True) for k in index], kind="stable")
    ]
    some, part = family.take(params, index)
    np.testing.assert_array_equal(
        some.open(some.prepare(part), Block(X)).log_prob().round(9),
        family.open(family.prepare(params), Block(X)).log_prob()[index].round(9),
    )
    assert some.groups[-1].stop == len(index) and some.prior.rows.shape == (len(index),)
    np.testing.assert_allclose(
        some.log_prior(part), family.log_prior(params) - family.take(params, np.array([1]))[0].log_prior(
            family.take(params, np.array([1]))[1]
        )
    )  # fmt: skip


def test_free_parameters_add_over_groups():
    family = make_family((("EEE", 2), ("VVI", 3)), 4)
    assert family.n_free() == 5 * 4 + 10 + 12


# --- other views -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["VVI", "VEV"])
def test_marginals_and_conditional_expectations(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 2),), 4, center=np.arange(4.0))
    params, X = fitted(rng, family)
    columns = np.array([3, 0])
    some, part = family.marginal(params, columns)
    expected = [
        multivariate_normal.logpdf(X[:, columns], (m + family.center)[columns], C[np.ix_(columns, columns)])
        for m, C in zip(params.means, params.full_covs())
    ]
    log_prob = some.open(some.prepare(part), Block(X[:, columns])).log_prob()
    np.testing.assert_allclose(log_prob, expected, rtol=1e-9)
    # the same as the rest missing
    gappy = X.copy()
    gappy[:, [1, 2]] = np.nan
    ready = family.prepare(params)
    work = family.open(ready, Block(gappy, complete=False))
    np.testing.assert_allclose(work.log_prob(), expected, rtol=1e-9)
    resp = rng.dirichlet(np.ones(2), len(X)).T
    filled = family.expected(ready, Block(gappy, complete=False), resp)
    np.testing.assert_allclose(filled[:, columns], X[:, columns], rtol=1e-12, atol=1e-12)
    rest = np.array([1, 2])
    wanted = np.zeros((len(X), 2))
    for k, (m, C) in enumerate(zip(params.means + family.center, params.full_covs())):
        slope = C[np.ix_(rest, columns)] @ np.linalg.inv(C[np.ix_(columns, columns)])
        wanted += resp[k][:, None] * (m[rest] + (X[:, columns] - m[columns]) @ slope.T)
    np.testing.assert_allclose(filled[:, rest], wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_samples_have_the_moments_of_their_components(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 2),), 2, center=np.array([5.0, -5.0]))
    params, _ = fitted(rng, family)
    component = np.repeat([1, 0], 20_000)
    X = family.sample(params, component, rng)
    for k in range(2):
        rows = X[component == k]
        C = params.full_covs()[k]
        assert np.abs((rows.mean(axis=0) - family.center - params.means[k]) / np.sqrt(np.diag(C) / 2e4)).max() < 4.5
        np.testing.assert_allclose(np.cov(rows.T), C, atol=5 * np.abs(C).max() / np.sqrt(2e4))


@every
def test_packing_and_unpacking_is_the_identity(name):
    rng = np.random.default_rng(0)
    for seed in range(3):
        family = make_family(((name, 3),), 4, random_prior(rng, 4) if seed else None)
        params, _ = fitted(rng, family)
        mass = rng.random(3) + 0.1
        back = family.unpack(family.pack(params), params, mass)
        np.testing.assert_allclose(back.means, params.means, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(back.covs, params.covs, rtol=1e-9, atol=1e-9 * np.abs(params.covs).max())
        # elsewhere it gives what the structure allows, and that is its own image
        other = family.unpack(family.pack(params) + 0.3 * rng.normal(size=len(family.pack(params))), params, mass)
        again = family.unpack(family.pack(other), other, mass)
        np.testing.assert_allclose(again.covs, other.covs, rtol=1e-7, atol=1e-9 * np.abs(other.covs).max())


@pytest.mark.parametrize("groups", MIXES)
def test_packing_groups(groups):
    rng = np.random.default_rng(0)
    family = make_family(groups, 3)
    params, _ = fitted(rng, family)
    back = family.unpack(family.pack(params), params, np.ones(params.n_components))
    np.testing.assert_allclose(back.covs, params.covs, rtol=1e-9, atol=1e-9 * np.abs(params.covs).max())


def test_packing_is_in_units_of_the_data():
    rng = np.random.default_rng(0)
    for name in ("VVI", "VVV"):
        family = make_family(((name, 2),), 3)
        params, _ = fitted(rng, family)
        units = np.array([1e-150, 1.0, 1e120])
        scaled = replace(family, scale=family.scale * units)
        outer = units if name == "VVI" else units[:, None]
        covs = params.covs * outer * units
        other = Gaussians(params.means * units, covs, params.axes)
        np.testing.assert_allclose(scaled.pack(other), family.pack(params), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["VVI", "VVV", "VEE", "EVE"])
def test_vectors_far_out_and_flat_components_are_refused_without_a_word(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 2),), 3)
    params, _ = fitted(rng, family)
    vector, mass = family.pack(params), np.ones(2)
    for wrong in (np.nan, np.inf, 1e9, 1e3):
        for at in (0, 6, len(vector) - 1):
            far = vector.copy()
            far[at] = wrong
            found = family.unpack(far, params, mass)
            assert found is None or wrong == 1e3
    for scale in (1.0, 10.0, 100.0):
        family.unpack(scale * rng.normal(size=len(vector)), params, mass)
    with pytest.raises(OutsideDomainError, match="not positive"):
        family.pack(replace(params, covs=params.covs * 0))


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_flat_components_are_found_in_any_unit(name):
    rng = np.random.default_rng(0)
    for unit in (1e-100, 1.0, 1e100):
        family = make_family(((name, 3),), 2)
        params, _ = fitted(rng, family)
        family = replace(family, scale=family.scale * unit)
        covs = params.covs * unit**2
        assert not family.degenerate(replace(params, covs=covs)).any()
        flat = np.array(covs)
        flat[1] = (np.diag if name == "VVV" else np.asarray)(np.array([1.0, 0.5 * FLAT]) * family.scale**2)
        np.testing.assert_array_equal(family.degenerate(replace(params, covs=flat)), [False, True, False])
        flat[2] = np.nan
        np.testing.assert_array_equal(family.degenerate(replace(params, covs=flat)), [False, True, True])
    prior = random_prior(rng, 2).expand(3, name == "VVI")
    assert not replace(family, prior=prior).degenerate(params).any()


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_splitting_puts_the_child_beside_the_parent(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 3),), 3)
    params, _ = fitted(rng, family)
    new = family.split(params, 0, 2)
    np.testing.assert_allclose((new.means[0] + new.means[2]) / 2, params.means[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(new.covs[2], params.covs[0])
    np.testing.assert_array_equal(new.means[1], params.means[1])
    scaled = params.full_covs()[0] / np.outer(family.scale, family.scale)
    apart = (new.means[2] - new.means[0]) / family.scale
    assert apart @ apart == pytest.approx(np.linalg.eigvalsh(scaled)[-1], rel=1e-9)
    np.testing.assert_allclose(scaled @ apart, np.linalg.eigvalsh(scaled)[-1] * apart, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("gaps", [0.0, 0.3], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", ["VVI", "EEI", "VVV", "EEE", "VEV"])
def test_noise_blurs_every_row_inside_the_objective(name, gaps):
    """With noise R the density is N(x; m, C) exp(-tr(C^-1 R) / 2), and EM on it never falls."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 3)) @ rng.normal(size=(3, 3))
    X[rng.random(X.shape) < gaps] = np.nan
    noise = np.array([0.1, 0.02, 0.3])
    plain = GaussianFamily((Group(name, 0, 2),), np.zeros(3), np.ones(3))
    blurred = replace(plain, noise=noise)
    covs = np.stack([np.diag([1.0, 2.0, 0.5]), np.diag([0.7, 1.0, 3.0])])
    params = Gaussians(rng.normal(size=(2, 3)), covs[:, range(3), range(3)] if plain.axis_aligned else covs, (None,))
    source = ArrayBlocks(Block(X))
    for i in range(len(source)):
        without, with_noise = (f.open(f.prepare(params), source[i]).log_prob().copy() for f in (plain, blurred))
        penalty = 0.5 * np.trace(np.linalg.inv(covs) * noise, axis1=1, axis2=2)
        np.testing.assert_allclose(with_noise, without - penalty[:, None], rtol=1e-9, atol=1e-12)
    problem = MixtureProblem(ProductFamily(blurred, None))
    start = MixtureParams(np.array([[0.5, 0.5]]), Components(params, None))
    found = run(problem, source, start, stop=Stop(0.0, 25), executor=Serial())
    values = [s.objective for s in found.trace]
    assert found.status.name in ("MAX_PASSES", "CONVERGED") and min(np.diff(values)) > -1e-9 * abs(values[-1])
    smallest = np.linalg.eigvalsh(found.params.components.gaussian.full_covs()).min()
    assert smallest > noise.min()  # every covariance carries the noise


# --- priors that add, rows of one's own, anchors ---------------------------------------------------------------------


@pytest.mark.parametrize("mean_rows", [(0.5, 2.0), (0.0, 2.0), (0.5, 0.0), (0.0, 0.0)])
@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_the_sum_of_two_priors_is_the_product_of_their_densities(name, mean_rows):
    """Log densities add, up to a constant, wherever one looks."""
    rng = np.random.default_rng(3)
    d, K = 3, 2
    family = make_family(((name, K),), d)
    one, two = (random_prior(rng, d, rows, m).expand(K, family.axis_aligned) for rows, m in zip((3.0, 5.0), mean_rows))
    families = [replace(family, prior=p) for p in (one, two, one.plus(two), two.plus(one))]
    apart = []
    for _ in range(6):
        params, _ = fitted(rng, family)
        a, b, both, other = (f.log_prior(params) for f in families)
        assert other == pytest.approx(both, rel=1e-9)
        apart.append(both - a - b)
    np.testing.assert_allclose(apart, apart[0], rtol=1e-9, atol=1e-9)
    assert abs(apart[0]) < 1e-9 or all(mean_rows)  # the constant: the mean terms leave a scatter between the means


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_a_prior_times_a_factor_is_its_log_density_times_that(name):
    rng = np.random.default_rng(4)
    family = make_family(((name, 2),), 3, random_prior(rng, 3))
    some = replace(family, prior=family.prior.times(0.3))
    for _ in range(3):
        params, _ = fitted(rng, family)
        assert some.log_prior(params) == pytest.approx(0.3 * family.log_prior(params), rel=1e-9)


def test_priors_of_no_rows_add_nothing():
    rng = np.random.default_rng(5)
    prior = random_prior(rng, 3).expand(2, False)
    none = prior.times(0.0)
    both = none.plus(prior)
    for name in ("rows", "cov", "mean", "mean_rows"):
        np.testing.assert_allclose(getattr(both, name), getattr(prior, name), rtol=1e-12)
    assert np.isfinite(none.plus(none).cov).all()


@pytest.mark.parametrize("noise", [False, True], ids=["sharp", "blurred"])
@every
def test_rows_of_its_own_leave_a_component_where_it_stands(name, noise):
    """Without data, and without a prior, the update on D rows of each component is the component."""
    rng = np.random.default_rng(0)
    family = make_family(((name, 3),), 3, center=np.arange(3.0))
    params, X = fitted(rng, family)
    if noise:
        family = replace(family, noise=np.array([0.1, 0.02, 0.03]))
    nothing = moments(family, params, X, np.zeros((3, len(X))))
    rows = np.array([0.5, 20.0, 3.0])
    own = family.with_expected_rows(params, nothing, rows)
    np.testing.assert_array_equal(own.mass, rows)
    new = family.update(params, own)
    np.testing.assert_allclose(new.means, params.means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(new.covs, params.covs, rtol=1e-6, atol=1e-7 * np.abs(params.covs).max())


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_rows_of_its_own_are_the_expected_statistics_of_the_component(name):
    """As many rows, drawn: their moments about the mean are those added."""
    rng = np.random.default_rng(0)
    family = make_family(((name, 2),), 2, center=np.array([5.0, -5.0]))
    params, X = fitted(rng, family)
    own = family.with_expected_rows(params, moments(family, params, X, np.zeros((2, len(X)))), np.array([1.0, 1.0]))
    drawn = family.sample(params, np.repeat([0, 1], 40_000), rng) - family.center
    for k in range(2):
        away = drawn[40_000 * k : 40_000 * (k + 1)] - params.means[k]
        second = own.second[k] if name == "VVV" else np.diag(own.second[k])
        np.testing.assert_allclose(np.diagonal(away.T @ away) / 40_000, np.diagonal(second), rtol=0.05)
    np.testing.assert_array_equal(own.first, 0.0)


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_feasible_is_a_positive_mass_and_a_positive_definite_scatter(name):
    rng = np.random.default_rng(0)
    family = make_family(((name, 4),), 3)
    params, X = fitted(rng, family)
    good = family.with_expected_rows(params, moments(family, params, X, np.zeros((4, len(X)))), np.ones(4))
    assert family.feasible(params, good).all()
    short = replace(good, mass=np.array([1.0, 1.0, -1.0, 1.0]))  # every scatter as it should be
    np.testing.assert_array_equal(family.feasible(params, short), [True, True, False, True])
    second, mass, first = np.array(good.second), np.array(good.mass), np.array(good.first)
    second[1] *= -1.0
    mass[2] = -1.0
    first[3] = 1e3  # a mean so far out that nothing is left of the scatter about it
    bad = replace(good, second=second, mass=mass, first=first)
    np.testing.assert_array_equal(family.feasible(params, bad), [True, False, False, False])
    prior = random_prior(rng, 3, rows=1e9).expand(4, family.axis_aligned)  # enough pseudo-rows make anything feasible
    assert replace(family, prior=prior).feasible(params, replace(bad, first=good.first)).all()


@pytest.mark.parametrize("with_prior", [False, True])
@every
def test_an_anchor_is_pseudo_rows_that_look_as_the_components_do(name, with_prior):
    """The product of the prior's power and a density whose mode is here."""
    rng = np.random.default_rng(1)
    family = make_family(((name, 3),), 3, random_prior(rng, 3) if with_prior else None)
    params, X = fitted(rng, family)
    rows = np.array([2.0, 5.0, 1.0])
    held = family.anchored(params, rows, 0.4)
    alone = replace(family, prior=Prior(rows, params.covs, params.means, rows))
    apart = []
    for _ in range(3):
        other, _ = fitted(rng, family)
        apart.append(held.log_prior(other) - alone.log_prior(other) - 0.4 * family.log_prior(other))
        assert alone.log_prior(other) < alone.log_prior(params)
    np.testing.assert_allclose(apart, apart[0], rtol=1e-9, atol=1e-9)
    still = alone.update(params, moments(alone, params, X, np.zeros((3, len(X)))))
    np.testing.assert_allclose(still.means, params.means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(still.covs, params.covs, rtol=1e-6, atol=1e-7 * np.abs(params.covs).max())


@pytest.mark.parametrize("name", ["VVI", "VVV"])
def test_the_scatter_of_equal_rows_far_from_the_current_means_is_not_negative(name):
    """The scatter about the new mean is a difference of large numbers; rounding must not make it indefinite."""
    rng = np.random.default_rng(0)
    for scale in 10.0 ** np.arange(-8, 9.0):
        row = scale * rng.normal(size=3)
        family = GaussianFamily((Group(name, 0, 1),), np.zeros(3), np.full(3, scale))
        covs = np.full((1, 3), scale**2) if family.axis_aligned else scale**2 * np.eye(3)[None]
        start = Gaussians(np.zeros((1, 3)), covs, (None,))
        block = Block(np.tile(row, (7, 1)), weight=rng.random(7) * 1e6)
        work = family.open(family.prepare(start), block)
        work.log_prob()
        _, scatter, means = family.sufficient(start, work.moments(block.weight[None]))
        least = scatter.min() if name == "VVI" else np.linalg.eigvalsh(scatter).min()
        assert 0 <= least <= 1e-9 * scale**2 * block.weight.sum()
        np.testing.assert_allclose(means, row[None], rtol=1e-12)


def test_a_prior_counts_for_a_share_of_the_rows_however_many_there_are():
    few, many = (Prior.of_covariances(4.0, np.eye(2), weight) for weight in (100.0, 1e9))
    assert few.rows == 4.0 and many.rows == 1e3
    assert (many.mean_rows == 0).all()


def test_the_condition_is_the_largest_variance_inflation_factor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)) * [1.0, 1e-6, 1e6]
    cov = np.cov(X, rowvar=False)
    others = [np.delete(np.arange(3), i) for i in range(3)]
    given = [cov[i, i] - cov[i, o] @ np.linalg.solve(cov[np.ix_(o, o)], cov[o, i]) for i, o in enumerate(others)]
    family = GaussianFamily((Group("VVV", 0, 1),), np.zeros(3), np.sqrt(np.diagonal(cov)))
    params = Gaussians(np.zeros((1, 3)), cov[None], (None,))
    assert family.condition(params) == pytest.approx((np.diagonal(cov) / given).max(), rel=1e-9)
    aligned = GaussianFamily((Group("VVI", 0, 1),), np.zeros(3), np.ones(3))
    assert aligned.condition(Gaussians(np.zeros((1, 3)), np.ones((1, 3)), (None,))) == 1.0
