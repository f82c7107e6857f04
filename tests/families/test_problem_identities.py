"""What the one mixture problem promises, whatever the family: identities of its statistics, and ascent."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.core.proposals import Squarem
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
PER_CLASS = np.array([[0.3, 0.2, 0.0, 0.0], [0.0, 0.0, 0.1, 0.4]])
SHARED = np.array([[0.3, 0.1, 0.05, 0.15], [0.0, 0.1, 0.1, 0.2]])


def make(seed=0, weights=((0.4, 0.3, 0.3),), structure="VVV", d=3, prior=2.0, sizes=(), gaps=0.0, n=90, weighted=True):
    """Problem, table and start."""
    rng = np.random.default_rng(seed)
    weights = np.array(weights)
    K = weights.shape[1]
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(K, d))[rng.integers(K, size=n)]
    X[rng.random((n, d)) < gaps] = np.nan
    codes = np.stack([rng.integers(-1, s, size=n) for s in sizes], axis=1).astype(np.int32) if sizes else None
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    gaussian = GaussianFamily((Group(structure, 0, K),), center, scale)
    if prior:
        rule = Prior(np.array(prior), np.diag(scale**2), np.zeros(d), np.array(0.01))
        gaussian = replace(gaussian, prior=rule.expand(K, gaussian.axis_aligned))
    spread = np.full(d, (scale**2).mean()) if structure in ("EII", "VII") else scale**2  # what the structure allows
    covs = np.repeat(spread[None], K, axis=0) * rng.uniform(0.5, 1)
    start = Gaussians(
        rng.normal(size=(K, d)) * scale, covs if gaussian.axis_aligned else covs[:, :, None] * np.eye(d), (None,)
    )
    categorical = CategoricalFamily(tuple(sizes), np.full(sum(sizes), 0.3)) if sizes else None
    tables = (
        Categoricals(np.log(np.concatenate([rng.dirichlet(np.ones(s), K) for s in sizes], axis=1))) if sizes else None
    )
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    problem = MixtureProblem(ProductFamily(gaussian, categorical))
    return problem, Block(X, codes, None, weight), MixtureParams(weights, Components(start, tables))


def total(problem, params, source):
    ready = problem.prepare(params)
    with Serial() as workers:
        return workers.total(lambda block: problem.stats(ready, block), source)


def flat(stats):
    """All numbers in one vector."""
    parts = [stats.counts.ravel(), [stats.log_lik]]
    moments, counts = stats.components.gaussian, stats.components.categorical
    if moments is not None:
        parts += [moments.mass, moments.first.ravel(), moments.second.ravel()]
    if counts is not None:
        parts.append(counts.counts.ravel())
    return np.concatenate(parts)


def assert_same(a, b, rtol=1e-9):
    a, b = flat(a), flat(b)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(a).max())


def one_hot(labels, n_classes):
    """Label likelihoods: all ones where the label is absent (-1)."""
    return np.where(labels[:, None] < 0, 1.0, (labels[:, None] == np.arange(n_classes)).astype(float))


# --- statistics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [PER_CLASS, SHARED])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("labels", ["known", "likelihood", "absent"])
def test_how_rows_are_cut_into_blocks_changes_nothing(weights, gaps, labels):
    problem, table, params = make(1, weights, gaps=gaps, sizes=(2, 3))
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 2, table.n_rows) if labels == "known" else None
    if labels == "likelihood":
        table = replace(table, label=rng.dirichlet(np.ones(2), table.n_rows))
    source = ArrayBlocks(table, 10_000, 10_000, classes)
    whole = total(problem, params, source)
    for size in (1, 2, 7, 30):
        assert_same(total(problem, params, source.reblock(size, size)), whole, rtol=1e-12)


@pytest.mark.parametrize("weights", [PER_CLASS, SHARED])
@pytest.mark.parametrize("structure", ["VVV", "VVI"])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("far", [False, True])
def test_a_known_class_is_a_one_hot_likelihood_and_an_absent_one_all_ones(weights, structure, gaps, far):
    problem, table, params = make(2, weights, structure, gaps=gaps, sizes=(3,))
    if far:  # the kernel about the means
        components = params.components
        means = components.gaussian.means + 1e4 * np.arange(4)[:, None]
        params = replace(params, components=replace(components, gaussian=replace(components.gaussian, means=means)))
    classes = np.random.default_rng(0).integers(-1, 2, table.n_rows)
    known = total(problem, params, ArrayBlocks(table, 20, 20, classes))
    soft = total(problem, params, ArrayBlocks(replace(table, label=one_hot(classes, 2)), 20, 20))
    assert_same(known, soft)
    absent = total(problem, params, ArrayBlocks(table, 20, 20))
    for other in (
        total(problem, params, ArrayBlocks(replace(table, label=np.ones((table.n_rows, 2))), 20, 20)),
        total(problem, params, ArrayBlocks(table, 20, 20, np.full(table.n_rows, -1))),
    ):
        assert_same(absent, other)


def brute_force(problem, table, params, label):
    """Log-likelihood and class counts from the formula  sum_n w_n log sum_ck l_nc W_ck f_k(x_n)."""
    gaussian = problem.family.gaussian
    covs = params.components.gaussian.full_covs()
    log_f = np.zeros((params.n_components, table.n_rows))
    for k, m in enumerate(params.components.gaussian.means + gaussian.center):
        for n, x in enumerate(table.X):
            o = ~np.isnan(x)
            if o.any():
                log_f[k, n] = multivariate_normal.logpdf(x[o], m[o], covs[k][np.ix_(o, o)])
    joint = label.T[:, None, :] * params.weights[:, :, None]  # (C, K, n)
    with np.errstate(divide="ignore"):
        log_joint = np.log(joint) + log_f
    log_lik = logsumexp(log_joint, axis=(0, 1))
    counts = (np.exp(log_joint - log_lik) * table.weight).sum(axis=2)
    return float(log_lik @ table.weight), counts


@pytest.mark.parametrize("weights", [PER_CLASS, SHARED])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_the_objective_and_the_class_counts_are_the_formula(weights, gaps):
    problem, table, params = make(3, weights, gaps=gaps, n=40)
    label = np.random.default_rng(0).dirichlet(np.ones(2), 40)  # soft labels
    label[:10] = 1.0
    label[10:20] = one_hot(np.arange(10) % 2, 2)
    stats = total(problem, params, ArrayBlocks(replace(table, label=label), 16, 16))
    log_lik, counts = brute_force(problem, table, params, label)
    assert stats.log_lik == pytest.approx(log_lik, rel=1e-10)
    np.testing.assert_allclose(stats.counts, counts, rtol=1e-9, atol=1e-12)
    expected = log_lik + problem.family.log_prior(params.components)
    assert problem.objective(params, stats) == pytest.approx(expected, rel=1e-10)
    assert stats.counts.sum() == pytest.approx(table.weight.sum(), rel=1e-12)


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_weight_two_is_the_row_twice_and_weight_zero_no_row(gaps):
    problem, table, params = make(4, gaps=gaps, sizes=(3,))
    twice = table.weight.astype(int)
    assert {0, 1, 2, 3} == set(twice)
    repeated = Block(np.repeat(table.X, twice, axis=0), np.repeat(table.codes, twice, axis=0))
    a, b = total(problem, params, ArrayBlocks(table, 20, 20)), total(problem, params, ArrayBlocks(repeated, 20, 20))
    assert_same(a, b)


def test_a_row_of_weight_zero_with_no_density_at_all_is_no_row():
    problem, table, params = make(4, SHARED)
    label, weight = np.ones((table.n_rows, 2)), np.ones(table.n_rows)
    label[-1], weight[-1] = 0.0, 0.0  # it can be of neither class
    stats = total(problem, params, ArrayBlocks(Block(table.X, label=label, weight=weight)))
    without = total(problem, params, ArrayBlocks(Block(table.X[:-1], label=label[:-1])))
    assert_same(stats, without)


def test_a_class_that_lost_all_its_weight_is_no_obstacle():
    problem, table, params = make(5, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    classes = np.r_[np.zeros(80, dtype=int), np.ones(10, dtype=int)]
    weight = np.r_[np.ones(80), np.zeros(10)]
    source = ArrayBlocks(replace(table, weight=weight), 20, 20, classes)
    without = ArrayBlocks(Block(table.X[:80]), 20, 20, classes[:80])
    assert_same(total(problem, params, source), total(problem, params, without))


# --- ascent ----------------------------------------------------------------------------------------------------------


def check_ascent(result, weight):
    accepted = [s for s in result.trace if s.accepted]
    rejected = [s for s in result.trace if not s.accepted and s.kind == "plain"]
    assert rejected == [] and result.status in (Status.CONVERGED, Status.MAX_PASSES), result.message
    for a, b in pairwise(accepted):
        if a.segment == b.segment:
            assert b.gain >= -rounding(a.objective, weight)


@pytest.mark.parametrize("structure", NAMES)
@pytest.mark.parametrize("gaps", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("starts", "passes"), [(6, 6), pytest.param(30, 40, marks=pytest.mark.slow)])
def test_no_pass_lowers_the_objective(structure, gaps, weighted, starts, passes):
    for seed in range(starts):
        problem, table, params = make(seed, structure=structure, gaps=gaps, weighted=weighted, n=40, d=2)
        source = ArrayBlocks(table)
        result = run(problem, source, params, stop=Stop(1e-9, passes), executor=Serial())
        check_ascent(result, source.total_weight)
        assert len(result.trace) > 2


@pytest.mark.parametrize("structure", NAMES)
def test_no_pass_lowers_the_likelihood_without_a_prior_either(structure):
    for seed in range(2):
        problem, table, params = make(seed, structure=structure, prior=None, n=80, d=2, gaps=0.1 * (seed % 2))
        source = ArrayBlocks(table)
        check_ascent(run(problem, source, params, stop=Stop(1e-9, 12), executor=Serial()), source.total_weight)


@pytest.mark.parametrize("weights", [PER_CLASS, SHARED])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("propose", [None, Squarem()])
def test_no_pass_lowers_it_with_labels_of_every_kind_and_held_priors_stay(weights, held, propose):
    for seed in range(2):
        problem, table, params = make(seed, weights, "VEV", gaps=0.1, sizes=(2, 3))
        rng = np.random.default_rng(seed)
        class_prior = np.array([0.8, 0.2])
        if held:
            problem = replace(problem, class_prior=class_prior)
            rows = params.weights.sum(axis=1, keepdims=True)
            params = replace(params, weights=params.weights / rows * class_prior[:, None])
        label = rng.dirichlet(np.ones(2), table.n_rows)
        label[:20] = 1.0
        classes = rng.integers(-1, 2, table.n_rows)
        source = ArrayBlocks(replace(table, label=label), 20, 20, classes)
        result = run(problem, source, params, stop=Stop(1e-8, 40), executor=Serial(), propose=propose)
        check_ascent(result, source.total_weight)
        assert result.params.weights.sum() == pytest.approx(1.0, rel=1e-12)
        assert ((result.params.weights == 0) == (params.weights == 0)).all()  # the mask is kept
        if held:
            np.testing.assert_allclose(result.params.weights.sum(axis=1), class_prior, rtol=1e-12)


def test_a_class_prior_learned_from_known_labels_is_their_share():
    problem, table, params = make(0, PER_CLASS)
    classes = np.random.default_rng(0).integers(0, 2, table.n_rows)
    new = problem.update(params, total(problem, params, ArrayBlocks(table, classes=classes)))
    share = [table.weight[classes == c].sum() / table.weight.sum() for c in range(2)]
    np.testing.assert_allclose(new.weights.sum(axis=1), share, rtol=1e-12)


# --- symmetries ------------------------------------------------------------------------------------------------------


def answer(problem, table, params, classes=None, passes=6):
    source = ArrayBlocks(table, 25, 25, classes)
    return run(problem, source, params, stop=Stop(-1.0, passes), executor=Serial())


def rearrange(params, *, classes=None, components=None, columns=None):
    weights, gaussian = params.weights, params.components.gaussian
    means, covs = gaussian.means, gaussian.covs
    if classes is not None:
        weights = weights[classes]
    if components is not None:
        weights, means, covs = weights[:, components], means[components], covs[components]
    if columns is not None:
        means, covs = means[:, columns], covs[:, columns[:, None], columns]
    return MixtureParams(weights, Components(Gaussians(means, covs, (None,)), None))


def check_same_answer(a, b, objective=0.0):
    assert a.objective == pytest.approx(b.objective + objective, rel=1e-9)
    np.testing.assert_allclose(a.params.weights, b.params.weights, rtol=1e-7, atol=1e-10)
    first, second = a.params.components.gaussian, b.params.components.gaussian
    np.testing.assert_allclose(first.means, second.means, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(first.covs, second.covs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("structure", ["VVV", "EEE", "VEV"])
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_permuting_classes_components_columns_or_rows_permutes_the_answer(structure, gaps):
    problem, table, params = make(7, SHARED, structure, gaps=gaps)
    rng = np.random.default_rng(0)
    classes = rng.integers(-1, 2, table.n_rows)
    plain = answer(problem, table, params, classes)

    swapped = answer(problem, table, rearrange(params, classes=[1, 0]), np.where(classes < 0, -1, 1 - classes))
    check_same_answer(swapped, replace(plain, params=rearrange(plain.params, classes=[1, 0])))

    order = np.array([2, 0, 3, 1])
    check_same_answer(
        answer(problem, table, rearrange(params, components=order), classes),
        replace(plain, params=rearrange(plain.params, components=order)),
    )

    rows = rng.permutation(table.n_rows)
    shuffled = Block(table.X[rows], weight=table.weight[rows])
    check_same_answer(answer(problem, shuffled, params, classes[rows]), plain)

    columns = np.array([2, 0, 1])
    gaussian = problem.family.gaussian
    prior = gaussian.prior
    turned = GaussianFamily(
        gaussian.groups,
        gaussian.center[columns],
        gaussian.scale[columns],
        Prior(prior.rows, prior.cov[:, columns[:, None], columns], prior.mean[:, columns], prior.mean_rows),
    )
    other = MixtureProblem(ProductFamily(turned, None))
    check_same_answer(
        answer(other, Block(table.X[:, columns], weight=table.weight), rearrange(params, columns=columns), classes),
        replace(plain, params=rearrange(plain.params, columns=columns)),
    )


# --- predictions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_class_and_component_log_densities_sum_to_the_same(gaps):
    problem, table, params = make(8, SHARED, gaps=gaps, sizes=(3,))
    ready = problem.prepare(params)
    source = ArrayBlocks(replace(table, weight=None))
    log_lik = 0.0
    for i in range(len(source)):
        by_class = logsumexp(problem.log_joint(ready, source[i]), axis=1)
        by_component = logsumexp(problem.log_resp(ready, source[i]), axis=0)
        np.testing.assert_allclose(by_class, by_component, rtol=1e-12)
        log_lik += by_class.sum()
    assert total(problem, params, source).log_lik == pytest.approx(log_lik, rel=1e-12)


def test_free_parameters():
    problem, _, params = make(0, SHARED, "VVV", d=3, sizes=(2, 3))
    densities = 4 * (3 + 6) + 4 * (1 + 2)
    assert problem.n_free(params) == densities + 7 - 1
    assert replace(problem, class_prior=np.ones(2) / 2).n_free(params) == densities + 7 - 2


# --- repair ----------------------------------------------------------------------------------------------------------


def collapsing(K=3, times=30, **options):
    """Plain maximum likelihood with one component started on a heap of identical rows."""
    problem, table, params = make(9, np.full((1, K), 1 / K), prior=None, n=90, d=2, weighted=False, **options)
    X = table.X.copy()
    X[:times] = 8 * problem.family.gaussian.scale
    gaussian = params.components.gaussian
    means = gaussian.means.copy()
    means[1] = X[0] - problem.family.gaussian.center
    covs = gaussian.covs.copy()
    covs[1] *= 1e-3
    return problem, Block(X), replace(params, components=Components(replace(gaussian, means=means, covs=covs), None))


@pytest.mark.parametrize("structure", ["VVV", "VVI", "VII"])
def test_a_component_that_collapses_is_named_and_the_run_goes_on(structure):
    problem, table, params = collapsing(structure=structure)
    source = ArrayBlocks(table)
    result = run(problem, source, params, stop=Stop(1e-6, 300), executor=Serial())
    check_ascent(result, source.total_weight)
    assert result.notes
    assert np.isfinite(result.objective) and result.status.ok
    assert result.params.weights.sum() == pytest.approx(1.0, rel=1e-9)
    repairs = [s for s in result.trace if s.kind == "repair"]
    assert len(repairs) == len(result.notes) <= 2 * 3 + 1


@pytest.mark.parametrize(
    "far",
    [
        8,
        500,
    ],
)
def test_a_starved_component_is_named(far):
    problem, table, params = make(9, [[0.5, 0.5]], prior=None, weighted=False)
    gaussian = params.components.gaussian
    means = gaussian.means.copy()
    means[1] += far * problem.family.gaussian.scale
    params = replace(params, components=Components(replace(gaussian, means=means), None))
    result = run(problem, ArrayBlocks(table), params, stop=Stop(1e-6, 300), executor=Serial())
    assert result.notes and "component 1 starved" in result.notes[0]
    assert result.status.ok


def test_one_component_on_identical_rows_ends_with_a_status_not_an_exception():
    for structure in ("VVV", "VVI", "EII"):
        for propose in (None, Squarem()):
            problem, _, params = make(0, [[1.0]], structure, d=2, prior=None)
            result = run(
                problem, ArrayBlocks(Block(np.ones((20, 2)))), params, stop=Stop(1e-6, 50), propose=propose
            )  # fmt: skip
            assert result.status is Status.NOT_FINITE and "use a prior" in result.message
            assert np.isfinite(result.objective)


def test_after_a_repair_the_weights_are_still_a_distribution():
    problem, _, params = make(0, SHARED, prior=None)
    gaussian = params.components.gaussian
    covs = gaussian.covs.copy()
    covs[1] = 0.0
    flat_one = replace(params, components=Components(replace(gaussian, covs=covs), None))
    _, table, _ = make(0, SHARED, prior=None)
    stats = total(problem, params, ArrayBlocks(table))
    for repairs in (0, 100):  # re-seeded, dropped
        mended, note = problem.repair(replace(flat_one, repairs=repairs), stats)
        assert "component 1" in note
        assert mended.weights.sum() == pytest.approx(1.0, rel=1e-12)
        np.testing.assert_allclose(mended.weights.sum(axis=1), params.weights.sum(axis=1), rtol=1e-12)


def test_dropping_a_component_does_not_move_the_others():
    problem, table, params = make(0, SHARED, prior=None)
    gaussian = params.components.gaussian
    covs = gaussian.covs.copy()
    covs[1] = 0.0
    flat_one = replace(params, components=Components(replace(gaussian, covs=covs), None), repairs=100)
    mended, note = problem.repair(flat_one, total(problem, params, ArrayBlocks(table)))
    assert "dropped" in note and (mended.weights[:, 1] == 0).all()
    others = [0, 2, 3]
    np.testing.assert_array_equal(mended.components.gaussian.means[others], gaussian.means[others])
