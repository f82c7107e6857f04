"""The mixture in coordinates: the gradient of its objective, and L-BFGS beside EM."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import OutsideDomainError, Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.core.lbfgs import run_lbfgs
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.chart import MixtureChart
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = sorted({structure.name for structure in COVARIANCES.values()})
SIZES = (2, 3)
UNITS = np.array([1.0, 20.0, 0.1])


def total_of(problem, source, params):
    with Serial() as workers:
        return workers.total(partial(problem.stats, problem.prepare(params)), source)


def make(
    names=("VVV",), n=200, prior=1.0, gaps=0.0, weights=False, codes=False, labels="", mask=None, seed=0, **options
):
    """A problem with K = 2 components per structure, its rows, and parameters of these structures."""
    rng = np.random.default_rng(seed)
    K, d = 2 * len(names), len(UNITS)
    member = rng.integers(K, size=n)
    roots = rng.normal(size=(K, d, d))
    X = 1.5 * rng.normal(size=(K, d))[member] + np.einsum("nij,nj->ni", roots[member], rng.normal(size=(n, d)))
    X *= UNITS
    X[rng.random(X.shape) < gaps] = np.nan
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    groups = tuple(Group(name, 2 * g, 2 * g + 2) for g, name in enumerate(names))
    gaussian = GaussianFamily(groups, center, scale)
    if prior:
        rule = Prior(np.array(prior), scale**2, np.zeros(d), np.array(0.1))
        gaussian = replace(gaussian, prior=rule.expand(K, gaussian.axis_aligned))
    categorical = CategoricalFamily(SIZES, np.full(5, 0.7)) if codes else None
    problem = MixtureProblem(ProductFamily(gaussian, categorical), **options)
    C = 2 if labels else 1
    table = Block(
        X,
        np.stack([rng.integers(-1, size, size=n) for size in SIZES], axis=1).astype(np.int32) if codes else None,
        rng.dirichlet(np.ones(C), size=n) if labels == "soft" else None,
        3 * rng.random(n) if weights else None,
    )
    source = ArrayBlocks(table, 64, 64, classes=rng.integers(-1, C, size=n) if labels == "known" else None)
    variances = np.tile(scale**2, (K, 1))
    covs = variances if gaussian.axis_aligned else variances[:, :, None] * np.eye(d)
    start = Components(
        Gaussians(0.5 * rng.normal(size=(K, d)) * scale, covs, (None,) * len(groups)),
        Categoricals(np.log(np.tile([0.4, 0.6, 0.2, 0.3, 0.5], (K, 1)))) if codes else None,
    )
    W = rng.random((C, K)) * (1.0 if mask is None else np.array(mask))
    if problem.class_prior is not None:
        W *= problem.class_prior[:, None] / W.sum(axis=1, keepdims=True)
    params = MixtureParams(W / W.sum(), start)
    return problem, source, problem.update(params, total_of(problem, source, params))  # now of the structures


CASES = {
    "plain": {"prior": 0.0},
    "prior": {"names": ("VEV", "EEI")},
    "axis-aligned": {"names": ("VEI",), "codes": True},
    "gaps": {"gaps": 0.2},
    "gaps, axis-aligned": {"names": ("EVI",), "gaps": 0.2},
    "weights": {"weights": True, "names": ("EVE", "VEE")},
    "categorical": {"codes": True, "weights": True},
    "soft labels": {"labels": "soft", "names": ("VVV", "EVV")},
    "known classes": {"labels": "known", "mask": [[1, 1, 1, 0], [1, 0, 1, 1]], "names": ("VVE", "EII")},
    "class prior held": {"labels": "soft", "class_prior": np.array([0.3, 0.7]), "gaps": 0.1},
    "rows of the weights": {"labels": "soft", "weight_rows": np.array([[1.0, 2.0], [5.0, 0.5]])},
    "a component dropped": {"labels": "soft", "mask": [[1, 0, 1, 1], [1, 0, 0, 1]], "names": ("EEE", "VVV")},
    "all": {"labels": "known", "gaps": 0.1, "weights": True, "codes": True, "names": ("EEV", "EEE")},
}


@pytest.mark.parametrize("case", CASES)
def test_the_gradient_equals_finite_differences(case):
    problem, source, params = make(**CASES[case])
    chart = MixtureChart(problem, params)
    rng = np.random.default_rng(1)
    at = chart.vector(params)
    at = at + 0.2 * rng.normal(size=len(at))

    def value(x):
        params = chart.params(x)
        return problem.objective(params, total_of(problem, source, params))

    here = chart.params(at)
    gradient = chart.gradient(here, total_of(problem, source, here))
    h = 1e-4
    for _ in range(6):
        direction = rng.normal(size=len(at)) * rng.choice([0.0, 1.0], len(at))
        f = [value(at + step * h * direction) for step in (-2, -1, 1, 2)]
        expected = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
        assert gradient @ direction == pytest.approx(expected, rel=1e-6, abs=1e-7 * np.abs(gradient).max())


@pytest.mark.parametrize("case", CASES)
def test_parameters_to_vector_and_back(case):
    problem, source, params = make(**CASES[case])
    chart = MixtureChart(problem, params)
    back = chart.params(chart.vector(params))
    np.testing.assert_allclose(back.weights, params.weights, rtol=1e-12)
    value, again = (problem.objective(p, total_of(problem, source, p)) for p in (params, back))
    assert again == pytest.approx(value, rel=1e-10)
    far = chart.params(chart.vector(params) + np.random.default_rng(2).normal(size=len(chart.vector(params))))
    np.testing.assert_array_equal(far.weights > 0, params.weights > 0)
    assert far.weights.sum() == pytest.approx(1.0, rel=1e-12)
    if problem.class_prior is not None:
        np.testing.assert_allclose(far.weights.sum(axis=1), problem.class_prior, rtol=1e-12)
    dropped = ~params.live
    np.testing.assert_array_equal(far.components.gaussian.means[dropped], params.components.gaussian.means[dropped])


def test_a_weight_too_small_for_a_number_is_no_mask():
    problem, _, params = make()
    chart = MixtureChart(problem, params)
    vector = chart.vector(params)
    vector[0] = -2000.0
    assert chart.params(vector).live.all()
    vector[0] = np.inf
    with pytest.raises(OutsideDomainError, match="weight"):
        chart.params(vector)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_vanishes_where_em_stands_still_and_both_find_the_same_optimum(name):
    problem, source, params = make((name,), codes=name == "EVV", gaps=0.1 * (name == "VEE"), seed=3)
    params = run(problem, source, params, stop=Stop(0.0, 30), executor=Serial()).params
    stop = Stop(1e-13, 20000)
    em = run(problem, source, params, stop=stop, executor=Serial())
    chart = MixtureChart(problem, em.params)
    gradient = chart.gradient(em.params, total_of(problem, source, em.params))
    assert np.abs(gradient).max() < 1e-3 * source.total_weight
    result = run_lbfgs(problem, source, MixtureChart(problem, params), params, stop=stop, executor=Serial())
    assert result.status is Status.CONVERGED, result.message
    accepted = [s.objective for s in result.trace if s.accepted]
    assert all(b >= a - rounding(a, source.total_weight) for a, b in pairwise(accepted))
    assert result.objective == pytest.approx(em.objective, abs=1e-6 * source.total_weight)
    # and EM, started there (from these axes, too), has nothing to add and nothing to complain of
    after = run(problem, source, result.params, stop=Stop(1e-9, 100), executor=Serial())
    assert after.status is Status.CONVERGED and after.n_passes <= 3
    assert after.objective >= result.objective - rounding(result.objective, source.total_weight)


@pytest.mark.parametrize("name", ["VVV", "EEE", "VVE", "EEV"])
@pytest.mark.parametrize("degrees", [60, 90, 150])
def test_axes_turn_far_from_the_start(name, degrees):
    """Long thin clouds; the start holds them turned."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 2)) * [5.0, 0.5]
    X[150:] += [0.0, 20.0]
    turn = np.deg2rad(degrees)
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    covs = np.repeat((R @ np.diag([25.0, 0.25]) @ R.T)[None], 2, axis=0)
    family = GaussianFamily((Group(name, 0, 2),), X.mean(axis=0), X.std(axis=0))
    problem = MixtureProblem(ProductFamily(family, None))
    means = np.array([[0.0, -10.0], [0.0, 10.0]])
    params = MixtureParams(
        np.full((1, 2), 0.5), Components(Gaussians(means, covs, (R if name == "VVE" else None,)), None)
    )
    source, stop = ArrayBlocks(Block(X)), Stop(1e-12, 2000)
    em = run(problem, source, params, stop=stop, executor=Serial())
    result = run_lbfgs(problem, source, MixtureChart(problem, params), params, stop=stop, executor=Serial())
    assert result.status is Status.CONVERGED
    assert result.objective >= em.objective - 1e-6 * 300


def test_a_component_that_collapses_is_told_and_not_called_an_optimum():
    problem, source, params = make(prior=0.0, n=100)
    gaussian = params.components.gaussian
    means, covs = np.array(gaussian.means), np.array(gaussian.covs)
    means[1], covs[1] = source.table.X[0] - problem.family.gaussian.center, 1e-5 * covs[1]
    spike = replace(gaussian, means=means, covs=covs)
    params = replace(params, components=replace(params.components, gaussian=spike))
    result = run_lbfgs(problem, source, MixtureChart(problem, params), params, stop=Stop(1e-6, 3000), executor=Serial())
    assert result.status is Status.NOT_FINITE
    assert "use a prior" in result.message
    assert not problem.family.degenerate(result.params.components).any()
