"""Growth: partial EM raises what it says, the joined mixture is what it raised, and no stage falls behind the last."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from mixent import GaussianMixture
from mixent.core import driver
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.product import Components, ProductFamily
from mixent.mixtures import growth
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.growth import grow, leaves, partial_problem, propose, restart
from mixent.mixtures.partial import (
    MIN_SHARE,
    PartialParams,
    PartialProblem,
    candidate_family,
    double,
    frozen_group,
    join,
)
from mixent.mixtures.predict import each_row
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
every = pytest.mark.parametrize("name", NAMES)


def options(**changes):
    """The estimator of a plan."""
    return GaussianMixture(**{"prior": None, "max_iter": 500, "n_jobs": 1, **changes})


def plain(name, K=1, prior=None, **more):
    return Candidate((K,), (name,), False, prior, **more)


def plan_of(X, seed=0, weight=None, codes=None, sizes=(), **changes):
    return FitPlan(options(**changes), Block(X, codes, weight=weight), sizes, seed)


def mixture(seed, weights, name, d=3, prior=2.0, sizes=(), gaps=0.0, n=90, weighted=True, P=4):
    """A frozen mixture inside its structure, rows with its offsets, and P candidates beside it."""
    rng = np.random.default_rng(seed)
    weights = np.array(weights)
    (C, K), structure = weights.shape, COVARIANCES[name]
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(K, d))[rng.integers(K, size=n)]
    X[rng.random((n, d)) < gaps] = np.nan
    codes = np.stack([rng.integers(-1, s, size=n) for s in sizes], axis=1).astype(np.int32) if sizes else None
    scale = np.nanstd(X, axis=0)
    gaussian = GaussianFamily((Group(name, 0, K),), np.nanmean(X, axis=0), scale)
    if prior:
        rule = Prior(np.array(prior), np.diag(scale**2), np.zeros(d), np.array(0.01))
        gaussian = replace(gaussian, prior=rule.expand(K, gaussian.axis_aligned))
    roots = rng.normal(size=(K + P, d + 3, d)) * scale
    scatter = np.swapaxes(roots, 1, 2) @ roots
    like = structure.update(np.full(K, 8.0), scatter[:K])
    old = Gaussians(rng.normal(size=(K, d)) * scale, like.covs, (like.axes,))
    tables = np.concatenate([rng.dirichlet(np.ones(s), K + P) for s in sizes], axis=1) if sizes else None
    family = ProductFamily(gaussian, CategoricalFamily(tuple(sizes), np.full(sum(sizes), 0.3)) if sizes else None)
    frozen = MixtureParams(weights, Components(old, Categoricals(np.log(tables[:K])) if sizes else None))
    problem = MixtureProblem(family)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    table = Block(X, codes, None, weight)
    table = replace(table, offset=each_row(problem, frozen, table, problem.log_joint, C, 1))
    covs = structure.update_added(np.full(P, 8.0), scatter[K:], like)
    new = Gaussians(rng.normal(size=(P, d)) * scale, covs, (like.axes,))
    start = PartialParams(
        rng.uniform(0.1, 0.6, size=(P, C)),
        Components(new, Categoricals(np.log(tables[K:])) if sizes else None),
        np.zeros(P, dtype=bool),
    )
    partial = PartialProblem(candidate_family(family, P), frozen_group(frozen.components), weights.sum(axis=1))
    return problem, frozen, partial, start, table


def one(params, p):
    """Candidate p alone."""
    gaussian, categorical = params.components.gaussian, params.components.categorical
    gaussian = replace(gaussian, means=gaussian.means[[p]], covs=gaussian.covs[[p]])
    categorical = categorical and Categoricals(categorical.log_probs[[p]])
    return PartialParams(params.alpha[[p]], Components(gaussian, categorical), params.fixed[[p]])


def each(problem, params, source):
    ready = problem.prepare(params)
    with Serial() as workers:
        return problem.each(params, workers.total(lambda block: problem.stats(ready, block), source))


def labelled(table, C, seed=0):
    """Known, uncertain and absent labels: as classes of the rows, and as likelihoods that say the same or more."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(-1, C, table.n_rows)
    label = np.where(classes[:, None] < 0, 1.0, (classes[:, None] == np.arange(C)).astype(float))
    return classes, label, rng.dirichlet(np.ones(C), table.n_rows)


# --- partial EM ------------------------------------------------------------------------------------------------------

CASES = {
    "plain": {"weights": [[0.4, 0.3, 0.3]]},
    "no prior": {"weights": [[0.6, 0.4]], "prior": None, "weighted": False},
    "gaps": {"weights": [[0.4, 0.6]], "gaps": 0.2},
    "categories": {"weights": [[1.0]], "sizes": (2, 3)},
    "classes": {"weights": [[0.2, 0.3], [0.4, 0.1]], "gaps": 0.1, "sizes": (3,)},
}


@every
@pytest.mark.parametrize("case", CASES)
def test_no_pass_of_partial_em_lowers_the_objective(name, case):
    for seed in range(2):
        _, _, partial, start, table = mixture(seed, name=name, **CASES[case])
        C = start.alpha.shape[1]
        classes, _, soft = labelled(table, C, seed)
        source = ArrayBlocks(replace(table, label=soft), 20, 20, classes) if C > 1 else ArrayBlocks(table, 20, 20)
        result = run(partial, source, start, stop=Stop(1e-9, 12), executor=Serial())
        assert result.status in (Status.CONVERGED, Status.MAX_PASSES) and len(result.trace) > 2, result.message
        assert all(s.accepted for s in result.trace)
        for a, b in pairwise(result.trace):
            assert b.objective >= a.objective - rounding(a.objective, source.total_weight)
        assert (each(partial, result.params, source) >= each(partial, start, source) - 1e-9 * table.n_rows).all()
        assert ((result.params.alpha >= MIN_SHARE) & (result.params.alpha <= 1 - MIN_SHARE)).all()


@pytest.mark.parametrize("case", CASES)
def test_candidates_together_are_the_candidates_one_by_one(case):
    _, _, partial, start, table = mixture(1, name="VEV", **CASES[case])
    C = start.alpha.shape[1]
    source = ArrayBlocks(table, 30, 30, labelled(table, C)[0] if C > 1 else None)
    stop = Stop(-1.0, 8)
    together = run(partial, source, start, stop=stop, executor=Serial())
    values = each(partial, together.params, source)
    assert together.objective == pytest.approx(values.sum(), rel=1e-10)
    lone = replace(partial, family=candidate_family(partial.family, 1))
    for p in range(start.n_candidates):
        alone = run(lone, source, one(start, p), stop=stop, executor=Serial())
        assert alone.objective == pytest.approx(values[p], rel=1e-9)
        same = one(together.params, p)
        np.testing.assert_allclose(alone.params.alpha, same.alpha, rtol=1e-8)
        for field in ("means", "covs"):
            a, b = (getattr(x.components.gaussian, field) for x in (alone.params, same))
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@every
@pytest.mark.parametrize("case", CASES)
def test_the_joined_mixture_is_what_partial_em_has_raised(name, case):
    """Its log-likelihood under the mixture's own problem, for every kind of label, is the candidate's."""
    problem, frozen, partial, start, table = mixture(2, name=name, **CASES[case])
    C, K = frozen.weights.shape
    start = replace(start, alpha=start.alpha.clip(0.2, 0.5))
    classes, label, soft = labelled(table, C)
    sources = [ArrayBlocks(table)]
    if C > 1:
        sources += [
            ArrayBlocks(table, classes=classes),
            ArrayBlocks(replace(table, label=label)),
            ArrayBlocks(replace(table, label=soft)),
        ]
    for source in sources:
        values = each(partial, start, source)
        for p in range(start.n_candidates):
            larger = join(frozen, start, p)
            np.testing.assert_allclose(larger.weights.sum(axis=1), frozen.weights.sum(axis=1), rtol=1e-12)
            whole = MixtureProblem(candidate_family(problem.family, K + 1))
            ready = whole.prepare(larger)
            with Serial() as workers:
                log_lik = workers.total(lambda block: whole.stats(ready, block), source).log_lik  # noqa: B023
            prior = partial.family.log_prior(start.components, np.eye(start.n_candidates)[p])
            assert log_lik == pytest.approx(values[p] - prior, rel=1e-9)


def test_the_statistics_are_the_formula():
    """Expected rows of each class in the candidate and in the frozen part, from exponentials and loops."""
    _, _, partial, start, table = mixture(4, name="VVI", weights=[[0.2, 0.3], [0.4, 0.1]])
    _, _, label = labelled(table, 2)
    label[:20] = 1.0
    ready = partial.prepare(start)
    with Serial() as workers:
        found = workers.total(
            lambda block: partial.stats(ready, block), ArrayBlocks(replace(table, label=label), 20, 20)
        )
    gaussian, center = start.components.gaussian, partial.family.gaussian.center
    for p in range(start.n_candidates):
        density = norm.pdf(table.X, gaussian.means[p] + center, np.sqrt(gaussian.covs[p])).prod(axis=1)
        new = label * start.alpha[p] * partial.class_weights * density[:, None]
        old = label * (1 - start.alpha[p]) * np.exp(table.offset)
        whole = (new + old).sum(axis=1)
        assert found.log_lik[p] == pytest.approx(table.weight @ np.log(whole), rel=1e-9)
        np.testing.assert_allclose(found.new_counts[p], table.weight @ (new / whole[:, None]), rtol=1e-9)
        np.testing.assert_allclose(found.old_counts[p], table.weight @ (old / whole[:, None]), rtol=1e-9)


def test_a_class_known_by_its_number_or_by_a_one_hot_label_is_the_same():
    _, _, partial, start, table = mixture(3, name="VVV", **CASES["classes"])
    classes, label, _ = labelled(table, 2)
    known, soft = ArrayBlocks(table, 20, 20, classes), ArrayBlocks(replace(table, label=label), 20, 20)
    stop = Stop(-1.0, 5)
    a, b = (run(partial, source, start, stop=stop, executor=Serial()) for source in (known, soft))
    assert a.objective == pytest.approx(b.objective, rel=1e-10)
    np.testing.assert_allclose(a.params.alpha, b.params.alpha, rtol=1e-8)


def test_a_class_that_the_label_rules_out_may_be_any_number_of_nats_above():
    _, _, partial, start, table = mixture(3, name="VVV", weights=[[0.5], [0.5]], weighted=False)
    label = np.zeros((table.n_rows, 2))
    label[:, 0] = 1.0
    offset = np.column_stack([table.offset[:, 0] - 2000, table.offset[:, 1] + 2000])
    result = run(partial, ArrayBlocks(replace(table, label=label, offset=offset)), start, stop=Stop(1e-9, 5))
    assert np.isfinite(result.objective) and not result.status.failed


@pytest.mark.parametrize("name", ["VII", "EII"])
def test_in_one_column_it_finds_what_brute_force_finds(name):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 150), rng.normal(5, 0.7, 50), rng.normal(15, 1, 50)])
    plan = plan_of(x[:, None])
    old, _ = plan.fit(plain(name, 2))
    partial, table, start = partial_problem(plan, old, plain(name, 3), np.arange(len(x)), 8, rng)
    result = run(partial, ArrayBlocks(table), start, stop=Stop(1e-13, 3000), executor=Serial())
    gaussian, center = old.params.components.gaussian, old.problem.family.gaussian.center
    stds = np.sqrt(gaussian.covs[:, 0])
    frozen = norm.pdf(x[:, None], gaussian.means[:, 0] + center, stds) @ old.params.weights[0]

    def loss(theta):
        share = 1 / (1 + np.exp(-theta[0]))
        std = np.exp(theta[2]) if name == "VII" else stds[0]
        return -np.log((1 - share) * frozen + share * norm.pdf(x, theta[1], std)).sum()

    starts = [[a, m, s] for a in (-2.0, 0.0) for m in np.linspace(-2, 15, 9) for s in (-1.0, 0.0)]
    bounds = [(-15, 15), (-5, 20), (np.log(0.05), 4)]  # without a prior the likelihood has spikes, which are not meant
    found = [minimize(loss, s, bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-8}) for s in starts]
    best = max(-f.fun for f in found)
    assert best > -loss([-15.0, 0.0, 0.0]) + 1
    assert each(partial, result.params, ArrayBlocks(table)).max() == pytest.approx(best, abs=1e-5)


def test_a_candidate_about_to_become_flat_stands_still_and_says_so():
    _, _, partial, start, table = mixture(0, name="VVV", weights=[[1.0]], prior=None, weighted=False)
    gaussian = start.components.gaussian
    means, covs = gaussian.means.copy(), gaussian.covs.copy()
    means[0], covs[0] = table.X[0] - partial.family.gaussian.center, covs[0] * 1e-9
    start = replace(start, components=Components(replace(gaussian, means=means, covs=covs), None))
    result = run(partial, ArrayBlocks(table), start, stop=Stop(-1.0, 6), executor=Serial())
    assert all(s.accepted for s in result.trace) and np.isfinite(result.objective)
    assert result.params.fixed.tolist() == [True, False, False, False]
    np.testing.assert_array_equal(result.params.components.gaussian.covs[0], covs[0])


def test_a_candidate_far_from_every_row_ends_with_next_to_nothing():
    _, _, partial, start, table = mixture(0, name="VVI", weights=[[1.0]], prior=None, weighted=False)
    gaussian = start.components.gaussian
    means = gaussian.means.copy()
    means[1] += 1e6
    start = replace(start, components=Components(replace(gaussian, means=means), None))
    result = run(partial, ArrayBlocks(table), start, stop=Stop(-1.0, 6), executor=Serial())
    assert all(s.accepted for s in result.trace)
    assert result.params.alpha[1, 0] == MIN_SHARE < result.params.alpha[0, 0]


# --- leaves ----------------------------------------------------------------------------------------------------------


def test_leaves_halve_the_rows_along_the_widest_column():
    points = np.column_stack([np.arange(16.0), np.zeros(16)])
    label = leaves(points, None, 4, np.random.default_rng(0))
    assert label.tolist() == np.repeat([0, 1, 2, 3], 4).tolist()
    few = leaves(points, None, 3, np.random.default_rng(0))  # of four, three at random
    assert sorted(set(few.tolist())) == [-1, 0, 1, 2]
    assert set(leaves(points, None, 100, np.random.default_rng(0)).tolist()) == set(range(8))  # two rows at least
    light = leaves(points, np.full(16, 0.01), 100, np.random.default_rng(0))
    assert set(light.tolist()) == set(range(8))  # and two are two however little they weigh
    heavy = leaves(points[:4], np.array([2.0, 2.0, 1.0, 1.0]), 100, np.random.default_rng(0))
    assert heavy.tolist() == [0, 1, 2, 2]
    assert not leaves(np.ones((5, 2)), None, 4, np.random.default_rng(0)).any()


def test_leaves_see_a_weight_of_two_as_the_row_twice():
    rng = np.random.default_rng(1)
    points, weight = rng.normal(size=(60, 3)).round(1), rng.integers(1, 4, 60)
    once = leaves(points, weight.astype(float), 10, np.random.default_rng(2))
    again = leaves(np.repeat(points, weight, axis=0), None, 10, np.random.default_rng(2))
    assert (again == np.repeat(once, weight)).all()


# --- growth ----------------------------------------------------------------------------------------------------------


def path(stages):
    return np.array([stage.log_likelihood for stage in stages])


def check_path(stages, first, last, weight):
    assert [stage.n_components for stage in stages] == list(range(first, last + 1))
    values = path(stages)
    assert (np.diff(values) >= -2 * rounding(np.abs(values).max(), weight)).all(), values


@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VEE", "EVE", "VVE", "VEV", "VVV"])
def test_without_a_prior_the_likelihood_never_falls(draw, name):
    for seed in range(2):
        X, _ = draw(seed=seed, n=120, d=2, gap=1.0, missing=0.1 * seed)
        check_path(list(grow(plan_of(X, seed), plain(name), 4, n_candidates=8)), 1, 4, len(X))


@pytest.mark.slow
@every
def test_without_a_prior_the_likelihood_never_falls_from_many_seeds(draw, name):
    for seed in range(12):
        X, _ = draw(seed=seed, n=60 + 20 * (seed % 4), d=2 + seed % 2, gap=1.0, missing=0.1 * (seed % 3 == 1))
        check_path(list(grow(plan_of(X, seed), plain(name), 7, n_candidates=4 + seed)), 1, 7, len(X))


def test_where_no_candidate_comes_out_above_the_heaviest_component_is_doubled(draw, monkeypatch):
    X, _ = draw(n=100)
    plan = plan_of(X)
    fit, spoiled = plan.fit, []

    def worse(candidate, *args, warm=None, **more):
        found, starts = fit(candidate, *args, warm=warm, **more)
        if warm is not None and len(spoiled) < 2:  # both that are fitted
            spoiled.append(found)
            found = replace(found, run=replace(found.run, objective=-1e9))
        return found, starts

    monkeypatch.setattr(plan, "fit", worse)
    before, after = grow(plan, plain("VVV"), 2)
    assert len(spoiled) == 2 and after.n_components == 2
    assert after.log_likelihood == pytest.approx(before.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(after.fitted.params.weights, [[0.5, 0.5]])


def test_and_where_em_cannot_keep_that_it_is_not_run(draw, monkeypatch):
    X, _ = draw(n=100)
    plan = plan_of(X)
    fit = plan.fit

    def worse(candidate, *args, warm=None, **more):
        found, starts = fit(candidate, *args, warm=warm, **more)
        return (found if warm is None else replace(found, run=replace(found.run, objective=-1e9))), starts

    monkeypatch.setattr(plan, "fit", worse)
    before, after = grow(plan, plain("VVV"), 2)
    assert after.log_likelihood == pytest.approx(before.log_likelihood, rel=1e-9) and not after.converged


def test_a_doubled_mixture_is_the_same_density(draw):
    X, _ = draw(n=80)
    found, _ = plan_of(X).fit(plain("VEV", 3))
    twice = double(found.params)
    whole = MixtureProblem(candidate_family(found.problem.family, 4))
    a = each_row(found.problem, found.params, Block(X), found.problem.log_joint, 1, 1)
    np.testing.assert_allclose(each_row(whole, twice, Block(X), whole.log_joint, 1, 1), a, rtol=1e-12)


def test_with_a_prior_it_grows_too(draw):
    X, _ = draw(n=150, missing=0.1)
    stages = list(grow(plan_of(X), plain("VVV", prior=5.0), 4))
    assert [stage.n_components for stage in stages] == [1, 2, 3, 4]
    for stage in stages:
        family, params = stage.fitted.problem.family, stage.fitted.params
        density = each_row(stage.fitted.problem, params, Block(X), stage.fitted.problem.log_joint, 1, 1)
        assert stage.log_likelihood == pytest.approx(density.sum(), rel=1e-9)
        assert stage.objective == pytest.approx(density.sum() + family.log_prior(params.components), rel=1e-9)
        assert stage.fitted.run.last is None and stage.covariance == "VVV"
        assert stage.n_free == stage.fitted.problem.n_free(params)
        assert len(stage.candidates) == (0 if stage is stages[0] else 16)
    assert stages[2].log_likelihood > stages[0].log_likelihood


def four_groups(n=400):
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0], [12.0, 12.0]])
    return centers[np.arange(n) % 4] + rng.normal(size=(n, 2))


@pytest.mark.parametrize("name", ["EII", "EEE", "VEV", "VVV"])
def test_separate_groups_are_found_one_by_one(name):
    X = four_groups()
    *_, last = grow(plan_of(X), plain(name), 4)
    best = max(next(restart(plan_of(X, seed), plain(name, 4), 4)).log_likelihood for seed in range(20))
    assert last.log_likelihood >= best - 1e-3 * len(X)


def test_shared_components_grow_over_all_classes(draw):
    X, label = draw(seed=4, n=200, gap=3.0, missing=0.05)
    codes = np.array([0, 1, 1])[label]
    codes[::7] = -1
    plan = FitPlan(options(), Block(X), (), 0, codes, np.array(["a", "b"]))
    stages = list(grow(plan, plain("VVV", shared=True), 4))
    check_path(stages, 1, 4, len(X))
    assert stages[-1].fitted.params.weights.shape == (2, 4)
    assert stages[2].log_likelihood > stages[0].log_likelihood + 50
    held = FitPlan(options(), Block(X), (), 0, codes, np.array(["a", "b"]), np.array([0.5, 0.5]))
    for stage in grow(held, plain("VVV", shared=True), 3):
        np.testing.assert_allclose(stage.fitted.params.weights.sum(axis=1), [0.5, 0.5], rtol=1e-9)
    check_path(list(grow(plan.of_class(1), plain("VVI"), 3)), 1, 3, len(X))


def test_full_em_starts_where_partial_em_has_ended(draw):
    X, label = draw(seed=4, n=200, missing=0.05)
    codes = np.array([0, 1, 1])[label]
    codes[::7] = -1
    plan = FitPlan(options(), Block(X), (), 0, codes, np.array(["a", "b"]))
    first = plain("VEV", shared=True)
    old, _ = plan.fit(first)
    rows, after = np.arange(200), replace(first, counts=(2,))
    tried = propose(plan, old, after, rows, 8, np.random.default_rng(0))
    for p in tried.order[:3]:
        found, _ = plan.fit(after, starts=plan.parts(after), warm=join(old.params, tried.params, p))
        assert found.run.trace[0].objective == pytest.approx(tried.objectives[p], rel=1e-9)
        assert found.run.objective >= tried.objectives[p] >= old.run.objective


def test_categories_alone_and_beside_numbers_grow():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=200)
    codes = np.where(rng.random((200, 4)) < 0.9, label[:, None], 1 - label[:, None]).astype(np.int32)
    codes[rng.random((200, 4)) < 0.1] = -1
    alone = list(grow(plan_of(np.empty((200, 0)), codes=codes, sizes=(2,) * 4), plain("VVV"), 3))
    assert alone[1].log_likelihood > alone[0].log_likelihood + 50
    mixed = list(grow(plan_of(rng.normal(size=(200, 2)), codes=codes, sizes=(2,) * 4), plain("VVI", prior=4.0), 3))
    assert mixed[1].log_likelihood > mixed[0].log_likelihood + 50


def same_path(a, b, rtol):
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x.log_likelihood, y.log_likelihood, rtol=rtol)
        p, q = x.fitted.params, y.fitted.params
        for u, v in [
            (p.weights, q.weights),
            (p.components.gaussian.means, q.components.gaussian.means),
            (p.components.gaussian.covs, q.components.gaussian.covs),
        ]:
            np.testing.assert_allclose(u, v, rtol=rtol, atol=100 * rtol)


def test_the_same_seed_gives_the_same_bits_whatever_the_threads(draw, monkeypatch):
    X, _ = draw(n=400, missing=0.05)
    monkeypatch.setattr("mixent.base.executors.SMALL", 0)
    monkeypatch.setattr("mixent.mixtures.fitting.FEATURE_BYTES", 1 << 12)
    first = plain("VVE", prior=3.0)
    paths = [list(grow(plan_of(X, 3, n_jobs=n_jobs), first, 3, n_candidates=5)) for n_jobs in (1, 1, 2)]
    for other in paths[1:]:
        same_path(paths[0], other, 0)
        assert [s.candidates for s in paths[0]] == [s.candidates for s in other]
        assert [s.evaluations for s in paths[0]] == [s.evaluations for s in other]


def test_weight_two_is_the_row_twice(draw):
    X, _ = draw(n=120, missing=0.1)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    first = plain("VVV", prior=4.0)
    changes = {"tol": 1e-10, "max_iter": 5000}
    once = list(grow(plan_of(X, 1, weight.astype(float), **changes), first, 3))
    again = list(grow(plan_of(np.repeat(X, weight, axis=0), 1, **changes), first, 3))
    same_path(once, again, 1e-4)
    for a, b in zip(once, again, strict=True):
        np.testing.assert_allclose(a.candidates, b.candidates, rtol=1e-7)
        assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-7)


def test_growth_by_a_criterion_takes_every_candidate_through_full_em(draw):
    X, _ = draw(n=120)
    plan, asked = plan_of(X), []

    def by(found, candidate):
        asked.append((found.run.objective, candidate.n_components))
        return found.run.objective  # the worst that does not fall behind

    before, after = grow(plan, plain("VVI"), 2, n_candidates=6, by=by)
    assert len(asked) == 6 and {k for _, k in asked} == {2}
    assert after.objective == min(value for value, _ in asked) >= before.objective
    best = list(grow(plan_of(X), plain("VVI"), 2, n_candidates=6, n_full=6))[1]
    assert best.objective == max(value for value, _ in asked)


@pytest.mark.parametrize("name", ["VVV", "EEE"])
@pytest.mark.parametrize("kind", [grow, restart])
def test_evaluations_are_the_densities_em_has_asked_for(draw, monkeypatch, kind, name):
    X, _ = draw(n=150)
    counted = [0]

    def counting(self, params, statistics=driver._Loop._statistics):
        total = statistics(self, params)
        counted[0] += total.components.gaussian.mass.size * self.source.n_rows
        return total

    monkeypatch.setattr(driver._Loop, "_statistics", counting)
    more = {} if kind is grow else {"n_init": 3}
    for stage in kind(plan_of(X, tol=1e-8), plain(name, prior=3.0), 4, **more):
        assert stage.evaluations == counted[0]
        counted[0] = 0


def test_show_is_told_of_every_stage(draw):
    X, _ = draw(n=80)
    told = []
    for kind in (grow, restart):
        stages = list(kind(plan_of(X), plain("EEE"), 3, show=lambda *what: told.append(what)))
        assert [t[:2] for t in told] == [(1, 3), (2, 3), (3, 3)]
        assert told[0][2] == f"EEE with 1: log-likelihood {stages[0].log_likelihood:.6g}"
        told.clear()


def test_the_caller_stops_when_it_has_seen_enough(draw, monkeypatch):
    X, _ = draw(n=80)
    stages = grow(plan_of(X), plain("EEE"), 100)
    next(stages)
    monkeypatch.setattr(growth, "propose", None)  # nothing is computed ahead
    with pytest.raises(TypeError):
        next(stages)
