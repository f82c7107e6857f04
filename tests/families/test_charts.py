"""Coordinates of Gaussians and categoricals: every vector is a set of parameters, and the gradient is the density's."""

from dataclasses import replace

import numpy as np
import pytest

from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.charts import CategoricalChart, ComponentChart
from mixent.families.gaussian.charts import GaussianChart, all_rows, cayley, uncayley
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.kernels import Moments
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES, Covariances
from mixent.families.product import Components, ComponentStats, ProductFamily

NAMES = sorted({structure.name for structure in COVARIANCES.values()})
SCALE = np.array([1.0, 40.0, 0.02, 3.0])


def gaussian_gradient(family, params, moments, live):
    """With P = C^-1, prior and noise among the rows:  d/dm = P first,  d/dC = 1/2 (P second P - mass P)."""
    rows = all_rows(family, params, moments, live)
    if params.covs.ndim == 2:
        P = 1 / params.covs
        second = rows.second if rows.second.ndim == 2 else np.diagonal(rows.second, axis1=1, axis2=2)
        return P * rows.first, 0.5 * (P**2 * second - rows.mass[:, None] * P)
    P = np.linalg.inv(params.covs)
    return np.einsum("kij,kj->ki", P, rows.first), 0.5 * (P @ rows.second @ P - rows.mass[:, None, None] * P)


def make_family(*structures, sizes=None, d=3, prior=False, noise=False):
    sizes = sizes or [3] * len(structures)
    edges = np.cumsum([0, *sizes]).tolist()
    groups = tuple(Group(name, a, b) for name, a, b in zip(structures, edges, edges[1:]))
    family = GaussianFamily(groups, np.arange(float(d)), SCALE[:d])
    if prior:
        rng = np.random.default_rng(7)
        K = edges[-1]
        rule = Prior(rng.random(K) + 1, SCALE[:d] ** 2, rng.normal(size=(K, d)) * SCALE[:d], 3 * rng.random(K))
        family = replace(family, prior=rule.expand(K, family.axis_aligned))
    return replace(family, noise=0.1 * SCALE[:d] ** 2) if noise else family


def random_params(family, seed=0):
    """Parameters of these structures: the M-step of random moments."""
    rng = np.random.default_rng(seed)
    K, d = family.groups[-1].stop, family.n_columns
    roots = rng.normal(size=(K, d, d + 2)) * SCALE[:d, None]
    second = roots @ np.swapaxes(roots, 1, 2)
    if family.axis_aligned:
        second = np.diagonal(second, axis1=1, axis2=2).copy()
    flat = Gaussians(np.zeros((K, d)), np.ones_like(second), (None,) * len(family.groups))
    bare = replace(family, prior=None, noise=None)
    params = bare.update(flat, Moments(rng.random(K) + d, np.zeros((K, d)), second, "means"))
    return replace(params, means=rng.normal(size=(K, d)) * SCALE[:d])


def random_block(family, seed=0, n=30, gaps=False):
    rng = np.random.default_rng(seed)
    X = family.center + rng.normal(size=(n, family.n_columns)) * family.scale
    if gaps:
        X[np.arange(n), rng.integers(family.n_columns, size=n)] = np.nan
        X = X[np.lexsort(np.isnan(X).T)]
    return Block(X, complete=not gaps)


def weighed_log_density(family, params, block, resp, live=None):
    """sum_nk r_nk log N(x_n; m_k, C_k) + log prior, and its moments."""
    work = family.open(family.prepare(params), block)
    value = float((resp * work.log_prob()).sum()) + family.log_prior(params, live)
    return value, work.moments(resp)


def slope(function, x, direction, h=1e-4):
    """Central difference, fourth order."""
    f = [function(x + step * h * direction) for step in (-2, -1, 1, 2)]
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)


def signed(K, n, seed=1):
    return np.random.default_rng(seed).normal(size=(K, n))


# --- the chart -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_parameters_to_vector_and_back(name, d):
    for K in (1, 3):
        family = make_family(name, sizes=[K], d=d)
        start, params = random_params(family, 0), random_params(family, 1)
        chart = GaussianChart(family, start, np.ones(K, dtype=bool))
        for p in (start, params):
            vector = chart.vector(p)
            given = vector.copy()
            back = chart.params(given)
            np.testing.assert_allclose(back.means, p.means, rtol=1e-9, atol=1e-12)
            unit = SCALE[:d] if p.covs.ndim == 2 else SCALE[:d, None] * SCALE[:d]
            np.testing.assert_allclose(back.covs / unit, p.covs / unit, rtol=1e-8, atol=1e-9)
            assert (back.axes[0] is None) == (name not in ("EVE", "VVE"))
            given[:] = np.nan  # the caller's array may be used again
            np.testing.assert_array_equal(chart.vector(back), vector)  # exactly where it came from
        redundant = {"I": 0, "E": 1, "V": K}[name[1]]  # only b - mean b counts
        assert chart.size == len(chart.vector(start)) == family.n_free() + redundant


@pytest.mark.parametrize("name", NAMES)
def test_every_vector_is_of_the_structure(name):
    """The M-step of a structure's own covariances is these covariances: it is their projection."""
    family = make_family(name)
    chart = GaussianChart(family, random_params(family), np.ones(3, dtype=bool))
    rng = np.random.default_rng(2)
    for size in (0.1, 1.0, 3.0):
        params = chart.params(size * rng.normal(size=chart.size))
        mass = np.array([1.0, 2.0, 5.0])
        scatter = mass.reshape(-1, *[1] * (params.covs.ndim - 1)) * params.covs
        own = COVARIANCES[name].update(mass, scatter, Covariances(params.covs, params.axes[0]))
        largest = np.abs(params.covs).max(axis=tuple(range(1, params.covs.ndim)), keepdims=True)
        np.testing.assert_allclose(own.covs / largest, params.covs / largest, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["EVE", "VVE"])
def test_axes_belong_to_the_covariances(name):
    family = make_family(name)
    chart = GaussianChart(family, random_params(family), np.ones(3, dtype=bool))
    params = chart.params(np.random.default_rng(3).normal(size=chart.size))
    axes = params.axes[0]
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
    inside = axes.T @ params.covs @ axes
    off = inside - np.diagonal(inside, axis1=1, axis2=2)[:, :, None] * np.eye(3)
    assert np.abs(off).max() < 1e-10 * np.abs(inside).max()
    # covariances of the structure whose axes nobody has kept
    lost = replace(params, axes=(None,))
    again = GaussianChart(family, lost, np.ones(3, dtype=bool))
    np.testing.assert_allclose(again.params(again.vector(lost)).covs, params.covs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("variances", [[(1, 5, 9), (9, 5, 1), (5, 5, 5)], [(2, 2, 2), (1, 4, 9), (3, 3, 3)]])
def test_lost_axes_are_found_though_the_sum_of_the_covariances_or_the_first_has_none(variances):
    R = np.linalg.qr(np.random.default_rng(8).normal(size=(3, 3)))[0]
    covs = np.stack([R @ np.diag(v) @ R.T for v in np.array(variances, dtype=float)])
    family, params = make_family("VVE"), Gaussians(np.zeros((3, 3)), covs, (None,))
    chart = GaussianChart(family, params, np.ones(3, dtype=bool))
    np.testing.assert_allclose(chart.params(chart.vector(params)).covs, covs, atol=1e-9)


def test_a_start_outside_the_structure_is_averaged():
    family = make_family("EEE")
    params = random_params(make_family("VVV"))
    chart = GaussianChart(family, params, np.ones(3, dtype=bool))
    covs = chart.params(chart.vector(params)).covs
    np.testing.assert_allclose(covs, covs[:1].repeat(3, axis=0), rtol=1e-12)


@pytest.mark.parametrize("names", [("VVV", "EEI"), ("VEE", "EVE"), ("VVI", "EII")])
def test_groups_have_their_own_charts_and_dropped_components_stay(names):
    family = make_family(*names, prior=True)
    start = random_params(family)
    live = np.array([True, False, True, True, True, False])
    chart = GaussianChart(family, start, live)
    params = chart.params(chart.vector(start) + 0.3)
    np.testing.assert_array_equal(params.means[~live], start.means[~live])
    np.testing.assert_array_equal(params.covs[~live], start.covs[~live])
    assert (params.means[live] != start.means[live]).all()
    assert all((params.covs[k] != start.covs[k]).any() for k in np.flatnonzero(live))
    lone = GaussianChart(family, start, np.arange(6) < 3)  # a whole group dropped
    assert lone.params(lone.vector(start) + 0.3).axes[1] is start.axes[1]


def test_rotations_up_to_the_signs_of_axes():
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 6):
        random = np.linalg.qr(rng.normal(size=(20, d, d)))[0]  # rotations and reflections
        swaps = np.stack([np.eye(d)[rng.permutation(d)] * rng.choice([-1.0, 1.0], d) for _ in range(20)])
        for Q in (random, swaps, -np.eye(d)[None]):
            S = uncayley(Q)
            np.testing.assert_allclose(S, -np.swapaxes(S, 1, 2))
            signs = np.swapaxes(Q, 1, 2) @ cayley(S)
            np.testing.assert_allclose(np.abs(signs), np.broadcast_to(np.eye(d), signs.shape), atol=1e-10)


# --- gradients -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("names", [("VVV",), ("VVI",), ("VVV", "VVI")])
@pytest.mark.parametrize("extra", [{}, {"prior": True}, {"prior": True, "noise": True}])
def test_the_natural_gradient_equals_finite_differences_with_signed_responsibilities(names, gaps, extra):
    family = make_family(*names, **extra)
    params, block = random_params(family), random_block(family, gaps=gaps)
    K = len(params.means)
    resp, live = signed(K, block.n_rows), np.arange(K) != 1
    resp[1] = 0.0
    _, moments = weighed_log_density(family, params, block, resp)
    d_means, d_covs = gaussian_gradient(family, params, moments, live)
    assert d_means.shape == params.means.shape and d_covs.shape == params.covs.shape
    rng = np.random.default_rng(5)
    for _ in range(4):
        means = rng.normal(size=params.means.shape) * family.scale
        covs = rng.normal(size=params.covs.shape)
        if covs.ndim == 3:
            root = np.linalg.cholesky(params.covs)
            covs = root @ (covs + np.swapaxes(covs, 1, 2)) @ np.swapaxes(root, 1, 2)
        else:
            covs = params.covs * covs

        def value(t, means=means, covs=covs):
            moved = replace(params, means=params.means + t * means, covs=params.covs + t * covs)
            return weighed_log_density(family, moved, block, resp, live)[0]

        terms = (d_means * means).sum(), (d_covs * covs).sum()
        assert slope(value, 0.0, 1.0, 1e-4) == pytest.approx(sum(terms), rel=1e-6, abs=1e-6 * max(map(abs, terms)))


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_in_coordinates_equals_finite_differences(name):
    for others, gaps in [((), False), (("VEV",), True)]:
        family = make_family(name, *others, prior=True, noise=True)
        start, block = random_params(family), random_block(family, gaps=gaps)
        K = len(start.means)
        live = np.arange(K) != 1
        resp = signed(K, block.n_rows) * live[:, None] + 0.3 * live[:, None]
        chart = GaussianChart(family, start, live)
        rng = np.random.default_rng(6)
        at = chart.vector(start) + 0.5 * rng.normal(size=chart.size)  # turned well away from the start's axes
        params = chart.params(at)
        _, moments = weighed_log_density(family, params, block, resp, live)
        gradient = chart.gradient(params, moments)
        for _ in range(5):
            direction = rng.normal(size=chart.size)

            def value(x, chart=chart, family=family, block=block, resp=resp, live=live):
                return weighed_log_density(family, chart.params(x), block, resp, live)[0]

            expected = slope(value, at, direction, 1e-4)
            assert gradient @ direction == pytest.approx(expected, rel=1e-6, abs=1e-7 * np.abs(gradient).max())


def test_the_gradient_of_parameters_from_elsewhere_is_that_at_their_coordinates():
    family = make_family("VEV")
    chart = GaussianChart(family, random_params(family, 0), np.ones(3, dtype=bool))
    block, resp = random_block(family), signed(3, 30)
    params = random_params(family, 1)
    moments = weighed_log_density(family, params, block, resp)[1]
    gradient, at = chart.gradient(params, moments), chart.vector(params)
    direction = np.random.default_rng(0).normal(size=chart.size)
    expected = slope(lambda x: weighed_log_density(family, chart.params(x), block, resp)[0], at, direction, 1e-5)
    assert gradient @ direction == pytest.approx(expected, rel=1e-6)


# --- categorical columns and mixed tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("own", [False, True])
def test_logits_and_their_gradient(own):
    rng = np.random.default_rng(0)
    sizes, K = (2, 3, 4), 4
    rows = rng.random((K, 9) if own else 9) + 0.1
    family = CategoricalFamily(sizes, rows)
    start = family.update(None, Counts(rng.random((K, 9))))
    live = np.array([True, True, False, True])
    chart = CategoricalChart(family, start, live)
    np.testing.assert_allclose(chart.params(chart.vector(start)).log_probs, start.log_probs, rtol=1e-12)
    at = rng.normal(size=chart.size)
    params = chart.params(at)
    np.testing.assert_array_equal(params.log_probs[2], start.log_probs[2])
    np.testing.assert_allclose(np.add.reduceat(np.exp(params.log_probs), family.starts, axis=1), 1.0)
    counts = rng.normal(size=(K, 9))
    counts[2] = 0.0

    def value(x):
        params = chart.params(x)
        return float((counts * params.log_probs).sum() + family.log_prior(params, live))

    for _ in range(5):
        direction = rng.normal(size=chart.size)
        assert chart.gradient(params, Counts(counts)) @ direction == pytest.approx(
            slope(value, at, direction), rel=1e-7
        )
    assert np.isfinite(chart.params(1e5 * at).log_probs).all()
    with pytest.raises(OutsideDomainError, match="logit"):
        chart.params(np.where(np.arange(chart.size) == 3, np.nan, at))


def test_mixed_components_stand_side_by_side():
    rng = np.random.default_rng(1)
    gaussian, categorical = make_family("VVV"), CategoricalFamily((2, 3), np.ones(5))
    start = Components(random_params(gaussian), Categoricals(np.log(np.tile([0.5, 0.5, 0.2, 0.3, 0.5], (3, 1)))))
    stats = ComponentStats(
        weighed_log_density(gaussian, start.gaussian, random_block(gaussian), signed(3, 30))[1],
        Counts(rng.random((3, 5))),
    )
    live = np.ones(3, dtype=bool)
    both = ComponentChart(ProductFamily(gaussian, categorical), start, live)
    first, second = (
        GaussianChart(gaussian, start.gaussian, live),
        CategoricalChart(categorical, start.categorical, live),
    )
    np.testing.assert_array_equal(
        both.gradient(start, stats),
        np.r_[first.gradient(start.gaussian, stats.gaussian), second.gradient(start.categorical, stats.categorical)],
    )
    vector = both.vector(start) + rng.normal(size=first.size + second.size)
    params = both.params(vector)
    np.testing.assert_array_equal(params.gaussian.covs, first.params(vector[: first.size]).covs)
    np.testing.assert_array_equal(params.categorical.log_probs, second.params(vector[first.size :]).log_probs)
    np.testing.assert_array_equal(both.vector(params)[: first.size], vector[: first.size])
    alone = ComponentChart(ProductFamily(None, categorical), Components(None, start.categorical), live)
    assert alone.params(vector[first.size :]).gaussian is None
