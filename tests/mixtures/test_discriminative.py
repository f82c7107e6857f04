"""Training for the posterior: its statistics, its gradient, and an update that never lowers what it says it raises."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Status, Stop, rounding, run
from mixent.core.executors import Serial, Threads
from mixent.core.lbfgs import run_lbfgs
from mixent.core.proposals import Squarem
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.mixtures import discriminative
from mixent.mixtures.chart import MixtureChart
from mixent.mixtures.discriminative import ConditionalLikelihood, DiscriminativeProblem, SmoothedError, on_simplex
from mixent.mixtures.problem import MixtureParams, MixtureProblem

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
CRITERIA = {
    "conditional": ConditionalLikelihood(1.0),
    "blend": ConditionalLikelihood(0.4),
    "error": SmoothedError(1.0),
    "sharp error": SmoothedError(3.0),
}
every_structure = pytest.mark.parametrize("name", NAMES)
every_criterion = pytest.mark.parametrize("criterion", CRITERIA)
SIZES = (2, 3)
UNITS = np.array([1.0, 20.0, 0.1])
C = 3
OWN = np.kron(np.eye(C), np.ones(2))  # two components for each class alone


@dataclass(frozen=True)
class Case:
    problem: DiscriminativeProblem
    source: ArrayBlocks
    params: MixtureParams
    label: np.ndarray  # (n, C) label likelihoods, however the source holds them

    @property
    def table(self):
        return self.source.table

    @property
    def weight(self):
        return np.ones(self.table.n_rows) if self.table.weight is None else self.table.weight

    def total(self, params=None, source=None, problem=None):
        problem, params = problem or self.problem, params or self.params
        with Serial() as workers:
            return workers.total(partial(problem.stats, problem.prepare(params)), source or self.source)

    def value(self, params=None):
        params = params or self.params
        return self.problem.objective(params, self.total(params))


def make(
    name="VVV",
    criterion="conditional",
    n=60,
    gaps=0.0,
    weights=False,
    codes=False,
    labels="known",
    mask=None,
    groups=1,
    prior=1.0,
    anchor=0.0,
    held=False,
    apart=1.0,
    seed=0,
    rows=32,
):
    """A problem of three classes, rows with labels that only half tell them apart, parameters of the structure."""
    rng = np.random.default_rng(seed)
    d, K = len(UNITS), 6
    member = rng.integers(K, size=n)
    roots = 0.7 * rng.normal(size=(K, d, d))
    X = apart * rng.normal(size=(K, d))[member] + np.einsum("nij,nj->ni", roots[member], rng.normal(size=(n, d)))
    X *= UNITS
    X[rng.random(X.shape) < gaps] = np.nan
    truth = np.where(rng.random(n) < 0.8, member // 2, rng.integers(C, size=n))
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    size = K // groups
    family = GaussianFamily(tuple(Group(name, g * size, (g + 1) * size) for g in range(groups)), center, scale)
    if prior:
        rule = Prior(np.array(prior), scale**2, np.zeros(d), np.array(0.1))
        family = replace(family, prior=rule.expand(K, family.axis_aligned))
    categorical = CategoricalFamily(SIZES, np.full(5, 0.7)) if codes else None
    class_prior = np.array([0.2, 0.5, 0.3]) if held else None
    problem = DiscriminativeProblem(ProductFamily(family, categorical), class_prior, criterion=CRITERIA[criterion])
    known, label = np.where(rng.random(n) < 0.15, -1, truth), np.eye(C)[truth]
    label[known < 0] = 1.0
    if labels == "soft":  # some certain, some uncertain, some absent
        unsure = rng.random(n) < 0.4
        label[unsure] = rng.dirichlet(np.ones(C), size=int(unsure.sum()))
    table = Block(
        X,
        np.stack([rng.integers(-1, size, size=n) for size in SIZES], axis=1).astype(np.int32) if codes else None,
        label if labels == "soft" else None,
        3 * rng.random(n) * (rng.random(n) < 0.9) if weights else None,
    )
    source = ArrayBlocks(table, rows, rows, classes=known if labels == "known" else None)
    variances = np.tile(scale**2, (K, 1))
    start = Components(
        Gaussians(
            0.5 * rng.normal(size=(K, d)) * scale,
            variances if family.axis_aligned else variances[:, :, None] * np.eye(d),
            (None,) * groups,
        ),
        Categoricals(np.log(np.tile([0.4, 0.6, 0.2, 0.3, 0.5], (K, 1)))) if codes else None,
    )
    W = rng.random((C, K)) * (1.0 if mask is None else mask)
    if held:
        W *= class_prior[:, None] / W.sum(axis=1, keepdims=True)
    plain, params = plain_of(problem), MixtureParams(W / W.sum(), start)
    case = Case(problem, source, params, label)
    for _ in range(3):  # now of the structures, and near where training starts
        params = plain.update(params, case.total(params, problem=plain))
    if anchor:
        family = problem.family.anchored(params.components, np.full(K, anchor), 0.3)
        problem = replace(problem, family=family, weight_rows=anchor * K * params.weights)
    return replace(case, problem=problem, params=params)


def plain_of(problem):
    """EM for the same model."""
    return MixtureProblem(problem.family, problem.class_prior, problem.weight_rows)


CASES = {
    "known": {},
    "known, weights": {"weights": True, "name": "VEV"},
    "gaps": {"gaps": 0.2, "labels": "soft"},
    "gaps, axis-aligned": {"gaps": 0.2, "name": "EVI", "weights": True},
    "categories": {"codes": True, "gaps": 0.1, "name": "VVI"},
    "soft": {"labels": "soft", "weights": True},
    "per class": {"mask": OWN, "groups": 3, "name": "EEE"},
    "per class, across": {"mask": OWN, "name": "VEE", "labels": "soft"},
    "class prior held": {"held": True, "labels": "soft", "codes": True},
    "class prior held per class": {"held": True, "mask": OWN, "gaps": 0.1},
    "anchored": {"anchor": 4.0, "weights": True, "gaps": 0.1, "codes": True},
    "all": {"anchor": 3.0, "weights": True, "gaps": 0.1, "codes": True, "held": True, "labels": "soft", "name": "VVE"},
}
every_case = pytest.mark.parametrize("case", CASES)


# --- what it is, written out -----------------------------------------------------------------------------------------


def log_densities(case):
    """log f_k(x_n), (n, K), by scipy."""
    gaussian, tables = case.params.components.gaussian, case.params.components.categorical
    means, covs = gaussian.means + case.problem.family.gaussian.center, gaussian.full_covs()
    X, codes = case.table.X, case.table.codes
    out = np.zeros((len(X), len(means)))
    for pattern in np.unique(np.isnan(X), axis=0):
        rows, seen = np.flatnonzero((np.isnan(X) == pattern).all(axis=1)), np.flatnonzero(~pattern)
        for k in range(len(means) if len(seen) else 0):
            out[rows, k] = multivariate_normal.logpdf(
                X[np.ix_(rows, seen)], means[k][seen], covs[k][np.ix_(seen, seen)]
            )
    for j, start in enumerate((0, SIZES[0]) if codes is not None else ()):
        seen = codes[:, j] >= 0
        out[seen] += tables.log_probs[:, start + codes[seen, j]].T
    return out


@dataclass(frozen=True)
class Written:
    """Value and signed responsibilities by the definitions, in the log domain throughout."""

    data: float
    clamped: np.ndarray  # (n, C, K), times u_n
    free: np.ndarray  # (n, C, K), times v_n

    @property
    def resp(self):
        return (self.clamped - self.free).sum(axis=1).T  # (K, n)


def written(case):
    with np.errstate(divide="ignore"):
        joint = np.log(case.params.weights) + log_densities(case)[:, None, :]
        ours, rest = joint + np.log(case.label)[:, :, None], joint + np.log(1 - case.label)[:, :, None]
    a, b, q = (logsumexp(values, axis=(1, 2)) for values in (ours, joint, rest))  # q: log sum (1 - l_c) p(c, x)
    criterion, w = case.problem.criterion, case.weight
    if isinstance(criterion, ConditionalLikelihood):
        value, up, down = a - criterion.blend * b, w, criterion.blend * w
    else:
        g, log_odds = criterion.sharpness, a - q
        value = -1 / (1 + np.exp(np.minimum(g * log_odds, 700)))
        # d/da of -1 / (1 + r^g) at fixed b, where d log r / d a = 1 / (1 - p)
        with np.errstate(invalid="ignore"):
            slope = g * np.exp(-np.logaddexp(0, -g * log_odds) - np.logaddexp(0, g * log_odds) - (q - b))
        up = down = w * np.where(np.isfinite(slope), slope, 0.0)
    clamped, free = np.exp(ours - a[:, None, None]), np.exp(joint - b[:, None, None])
    return Written(float(w @ value), up[:, None, None] * clamped, down[:, None, None] * free)


def moments(case, resp, source=None):
    """The family's own moments of given responsibilities (K, n)."""
    family, source = case.problem.family, source or case.source
    ready, parts = family.prepare(case.params.components), []
    for i in range(len(source)):
        work = family.open(ready, source[i])
        work.log_prob()
        parts.append(work.moments(np.ascontiguousarray(resp[:, source[i].rows])))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def assert_same_components(got, wanted, size):
    """Signed sums: what cancels is measured by what went in."""
    pairs = [(got.gaussian.mass, wanted.gaussian.mass, 1.0)]
    pairs.append((got.gaussian.first / UNITS, wanted.gaussian.first / UNITS, 1.0))
    unit = UNITS**2 if got.gaussian.second.ndim == 2 else np.outer(UNITS, UNITS)
    pairs.append((got.gaussian.second / unit, wanted.gaussian.second / unit, 10.0))
    if got.categorical is not None:
        pairs.append((got.categorical.counts, wanted.categorical.counts, 1.0))
    for a, b, factor in pairs:
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * factor * size)


def assert_same_stats(got, wanted, size):
    assert got.log_lik == pytest.approx(wanted.log_lik, rel=1e-9, abs=1e-9 * size)
    np.testing.assert_allclose(got.signed_counts, wanted.signed_counts, rtol=1e-9, atol=1e-9 * size)
    assert_same_components(got.components, wanted.components, size)


@every_criterion
@every_case
def test_value_and_statistics_are_those_of_the_definitions(case, criterion):
    case = make(criterion=criterion, **CASES[case])
    total, right = case.total(), written(case)
    assert total.log_lik == pytest.approx(right.data, rel=1e-9)
    signed = (right.clamped - right.free).sum(axis=0)
    np.testing.assert_allclose(total.signed_counts, signed, rtol=1e-9, atol=1e-9 * case.weight.sum())
    if isinstance(case.problem.criterion, ConditionalLikelihood):  # for the error, rows that are certain may cancel
        np.testing.assert_allclose(total.counts, right.clamped.sum(axis=0), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(total.free, right.free.sum(axis=0), rtol=1e-9, atol=1e-12)
    assert_same_components(total.components, moments(case, right.resp), case.weight.sum())
    objective = right.data + case.problem.log_prior(case.params)
    assert case.problem.objective(case.params, total) == pytest.approx(objective, rel=1e-9)


def far_apart(case, by):
    """Components of each class moved apart until rows of other classes have no density left in them."""
    gaussian = case.params.components.gaussian
    where = np.repeat(np.arange(C), 2)[:, None] * np.array([1.0, -1.0, 0.5])
    means = gaussian.means + by * where * np.sqrt(np.einsum("kii->ki", gaussian.full_covs()))
    components = replace(case.params.components, gaussian=replace(gaussian, means=means))
    return replace(case, params=replace(case.params, components=components))


@every_criterion
@pytest.mark.parametrize("labels", ["known", "soft"])
@pytest.mark.parametrize(
    "more",
    [{}, {"gaps": 0.2, "weights": True}, {"name": "VVI", "codes": True, "gaps": 0.1}],
    ids=["complete", "gaps", "categories"],
)
def test_rows_their_own_class_all_but_excludes_count_as_by_the_definitions(more, labels, criterion, monkeypatch):
    case = far_apart(make(criterion=criterion, labels=labels, mask=OWN, **more), 25.0)
    lost = []
    log_domain = DiscriminativeProblem._log_domain
    monkeypatch.setattr(
        DiscriminativeProblem, "_log_domain", lambda self, r, b: lost.append(b.n_rows) or log_domain(self, r, b)
    )
    total, right = case.total(), written(case)
    assert 3 < sum(lost) < case.table.n_rows
    assert total.log_lik == pytest.approx(right.data, rel=1e-9)
    signed = (right.clamped - right.free).sum(axis=0)
    np.testing.assert_allclose(total.signed_counts, signed, rtol=1e-9, atol=1e-9 * case.weight.sum())
    assert_same_components(total.components, moments(case, right.resp), 100 * case.weight.sum())


@every_criterion
@every_case
def test_both_ways_to_the_statistics_agree(case, criterion, monkeypatch):
    case = make(criterion=criterion, **CASES[case])
    fast = case.total()
    monkeypatch.setattr(discriminative, "UNDERFLOW", 1e300)  # every row by the log domain
    assert_same_stats(case.total(), fast, case.weight.sum())


@pytest.mark.parametrize("criterion", ["conditional", "error", "sharp error"])
@pytest.mark.parametrize("labels", ["known", "soft"])
def test_absent_labels_have_no_part_in_training_for_the_posterior(criterion, labels):
    case = make(criterion=criterion, labels=labels, gaps=0.1, codes=True, weights=True)
    seen = np.flatnonzero(np.ptp(case.label, axis=1) > 0)
    assert len(seen) < case.table.n_rows - 5
    part = replace(case.table.take(seen), rows=None)
    known = case.label[seen].argmax(axis=1) if labels == "known" else None
    assert_same_stats(case.total(source=ArrayBlocks(part, 32, 32, known)), case.total(), case.weight.sum())


def test_even_label_probabilities_say_as_little_as_none():
    case = make(labels="soft", weights=True)
    absent = np.ptp(case.label, axis=1) == 0
    label = np.where(absent[:, None], 1 / C, case.label)
    other = case.total(source=ArrayBlocks(replace(case.table, label=label), 32, 32))
    expected = case.total().log_lik - case.weight[absent].sum() * np.log(C)
    assert other.log_lik == pytest.approx(expected, rel=1e-9)
    assert_same_components(other.components, case.total().components, case.weight.sum())


def test_weight_zero_is_the_row_left_out():
    case = make(weights=True, labels="soft")
    some = np.flatnonzero(case.weight > 0)
    assert len(some) < case.table.n_rows
    X = np.array(case.table.X)
    X[case.weight == 0] = 1e3  # whatever it holds
    every = ArrayBlocks(replace(case.table, X=X), 32, 32)
    part = ArrayBlocks(replace(case.table.take(some), rows=None), 32, 32)
    assert_same_stats(case.total(source=every), case.total(source=part), case.weight.sum())


@every_criterion
@pytest.mark.parametrize("labels", ["known", "soft"])
def test_a_row_beyond_every_density_says_nothing(labels, criterion):
    """A value that no component thinks possible."""
    case = make(criterion=criterion, labels=labels, codes=True, weights=True)
    tables = np.array(case.params.components.categorical.log_probs)
    tables[:, 1] = -np.inf
    components = replace(case.params.components, categorical=Categoricals(tables))
    case = replace(case, params=replace(case.params, components=components))
    possible = np.flatnonzero(case.table.codes[:, 0] != 1)
    assert len(possible) < case.table.n_rows - 10
    label = case.label[possible]
    known = np.where(np.ptp(label, axis=1) == 0, -1, label.argmax(axis=1)) if labels == "known" else None
    rest = ArrayBlocks(replace(case.table.take(possible), rows=None), 32, 32, known)
    assert_same_stats(case.total(), case.total(source=rest), case.weight.sum())


@every_case
def test_at_alpha_zero_the_statistics_are_those_of_em(case):
    case = make(**CASES[case])
    problem = replace(case.problem, criterion=ConditionalLikelihood(0.0))
    total, em = case.total(problem=problem), case.total(problem=plain_of(problem))
    assert_same_stats(total, em, case.weight.sum())
    assert not total.free.any()
    value, likelihood = problem.objective(case.params, total), plain_of(problem).objective(case.params, em)
    assert value == pytest.approx(likelihood, rel=1e-9)


@every_criterion
@pytest.mark.parametrize("case", ["known, weights", "gaps", "all"])
def test_splitting_rows_into_blocks_changes_nothing(case, criterion):
    case = make(criterion=criterion, **CASES[case])
    whole = case.total(source=case.source.reblock(1000))
    for rows in (1, 7, 64):
        assert_same_stats(case.total(source=case.source.reblock(rows)), whole, case.weight.sum())


@every_criterion
def test_the_number_of_threads_changes_no_bit(criterion):
    case = make(criterion=criterion, n=400, rows=16, **CASES["all"])
    ready = case.problem.prepare(case.params)
    totals = []
    for workers in (Serial(), Threads(2), Threads(3)):
        with workers:
            totals.append(workers.total(partial(case.problem.stats, ready), case.source))
    for other in totals[1:]:
        assert other.log_lik == totals[0].log_lik
        for field in ("counts", "free"):
            np.testing.assert_array_equal(getattr(other, field), getattr(totals[0], field))
        for field in ("mass", "first", "second"):
            a, b = (getattr(t.components.gaussian, field) for t in (other, totals[0]))
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(other.components.categorical.counts, totals[0].components.categorical.counts)


def test_the_smoothed_error_at_slope_one_is_one_minus_the_posterior():
    a, b = np.array([-1.0, -700.0, -3.0, -2.0]), np.array([-1.0, -1.0, -2.5, -2.0 + 1e-14])
    value, slope, same = SmoothedError(1.0)(a, b)
    np.testing.assert_allclose(value, -(1 - np.exp(a - b)), rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(slope, np.exp(a - b), rtol=1e-2)  # where 1 - p is all rounding; else:
    np.testing.assert_allclose(slope[:3], np.exp(a - b)[:3], rtol=1e-9)
    assert same is slope
    sharp = SmoothedError(200.0)(np.log(np.array([0.45, 0.55])), np.zeros(2))[0]
    np.testing.assert_allclose(sharp, [-1.0, 0.0], atol=1e-9)  # the count of errors of two classes


# --- the gradient ----------------------------------------------------------------------------------------------------


def assert_gradient_is_that_of_differences(case, n_directions=3, seed=1):
    chart, rng = MixtureChart(case.problem, case.params), np.random.default_rng(seed)
    at = chart.vector(case.params)
    at = at + 0.1 * rng.normal(size=len(at))
    here = chart.params(at)
    gradient = chart.gradient(here, case.total(here))
    h = 1e-4
    for _ in range(n_directions):
        direction = rng.normal(size=len(at)) * rng.choice([0.0, 1.0], len(at))
        f = [case.value(chart.params(at + step * h * direction)) for step in (-2, -1, 1, 2)]
        expected = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
        assert gradient @ direction == pytest.approx(expected, rel=1e-6, abs=1e-6 * np.abs(gradient).max())


@every_criterion
@every_structure
def test_the_gradient_equals_finite_differences_for_every_structure(name, criterion):
    assert_gradient_is_that_of_differences(make(name, criterion))


@every_criterion
@every_case
def test_the_gradient_equals_finite_differences(case, criterion):
    assert_gradient_is_that_of_differences(make(criterion=criterion, **CASES[case]))


@every_criterion
def test_the_gradient_equals_finite_differences_where_densities_are_lost(criterion):
    assert_gradient_is_that_of_differences(far_apart(make(criterion=criterion, mask=OWN, weights=True), 25.0))


# --- extended Baum-Welch ---------------------------------------------------------------------------------------------


def assert_never_falls(result, weight):
    assert result.status in (Status.CONVERGED, Status.MAX_PASSES), result.message
    for segment in {s.segment for s in result.trace}:
        values = [s.objective for s in result.trace if s.segment == segment and s.accepted]
        assert all(b >= a - rounding(a, weight) for a, b in pairwise(values))
    assert result.objective == [s.objective for s in result.trace if s.accepted][-1]


@pytest.mark.parametrize("criterion", ["conditional", "blend", "error"])
@pytest.mark.parametrize("mask", [None, OWN], ids=["shared", "per class"])
@every_structure
def test_no_accepted_step_lowers_the_objective(name, mask, criterion):
    number = NAMES.index(name)
    case = make(
        name,
        criterion,
        mask=mask,
        groups=3 if mask is not None and number % 2 else 1,
        gaps=0.15 * (number % 3 == 0),
        codes=number % 3 == 1,
        weights=number % 2 == 0,
        held=number % 5 == 0,
        labels="soft" if number % 4 == 1 else "known",
        anchor=5.0 if number % 4 else 0.5,
        seed=number,
    )
    propose = Squarem() if number % 2 else None
    result = run(case.problem, case.source, case.params, stop=Stop(1e-7, 25), executor=Serial(), propose=propose)
    assert_never_falls(result, case.weight.sum())
    assert result.objective > case.value() + 1e-3


@every_criterion
@every_case
def test_a_short_step_gains_what_the_gradient_promises(case, criterion):
    """The surrogate has the objective's gradient: the step goes uphill, and by so much."""
    case = make(criterion=criterion, **CASES[case])
    total, before = case.total(), case.value()
    chart = MixtureChart(case.problem, case.params)
    at, gradient = chart.vector(case.params), chart.gradient(case.params, total)
    after = case.problem.update(case.params, total, 2.0**-12)
    promise = gradient @ (chart.vector(after) - at)
    assert promise > 0
    assert case.value(after) - before == pytest.approx(promise, rel=0.02)


def test_standing_rows_leave_a_stationary_component_where_it_stands():
    """(clamped - free) = 0 for every component: D rows of its own move nothing, whatever D."""
    case = make(labels="soft", codes=True, gaps=0.1, prior=0.0)
    nothing = ArrayBlocks(replace(case.table, label=np.ones_like(case.label)), 32, 32)
    family = replace(case.problem.family, categorical=CategoricalFamily(SIZES, np.full(5, 1e-12)))
    problem = replace(case.problem, family=family)
    total = case.total(source=nothing, problem=problem)
    for step in (1.0, 0.1):
        after = problem.update(case.params, total, step)
        np.testing.assert_allclose(after.weights, case.params.weights, rtol=1e-9)
        a, b = after.components, case.params.components
        np.testing.assert_allclose(a.gaussian.means / UNITS, b.gaussian.means / UNITS, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            a.gaussian.covs, b.gaussian.covs, rtol=1e-8, atol=1e-9 * np.abs(b.gaussian.covs).max()
        )
        np.testing.assert_allclose(a.categorical.log_probs, b.categorical.log_probs, rtol=1e-8)


@pytest.mark.parametrize("alpha", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("held", [False, True], ids=["learned", "held"])
@pytest.mark.parametrize("anchor", [0.0, 3.0], ids=["free", "anchored"])
@pytest.mark.parametrize("mask", [None, OWN], ids=["shared", "per class"])
def test_the_weights_alone_never_lower_the_conditional_likelihood_even_at_full_step(mask, anchor, held, alpha):
    """-log z >= -log z0 - (z - z0) / z0: for the weights the surrogate lies below the objective."""
    for seed in range(3):
        case = make(mask=mask, anchor=anchor, held=held, labels="soft", weights=True, seed=seed)
        case = replace(case, problem=replace(case.problem, criterion=ConditionalLikelihood(alpha)))
        params, before = case.params, case.value()
        first = before
        for _ in range(12):
            weights = case.problem._next_weights(params, case.total(params), 1.0)
            assert weights.sum() == pytest.approx(1.0, rel=1e-12)
            if held:
                np.testing.assert_allclose(weights.sum(axis=1), case.problem.class_prior, rtol=1e-12)
            np.testing.assert_array_equal(weights > 0, params.weights > 0)
            params = replace(params, weights=weights)
            after = case.value(params)
            assert after >= before - 1e-12 * abs(before)
            before = after
        assert before > first


@pytest.mark.parametrize("seed", range(40))
def test_the_maximum_on_the_simplex_meets_its_conditions(seed):
    """rows_i / w_i - slope_i is the same for all i, and w adds up."""
    rng = np.random.default_rng(seed)
    n, size = rng.integers(1, 9), rng.choice([1.0, 0.3, 1e-9])
    rows = rng.exponential(size=n) * 10.0 ** rng.uniform(-20, 3, size=n)
    slope = rng.exponential(size=n) * 10.0 ** rng.uniform(-3, 4, size=n)
    w = on_simplex(rows, slope, size)
    assert (w > 0).all() and w.sum() == pytest.approx(size, rel=1e-12)
    least = slope.min()  # differences, where digits are left
    multiplier, scale = rows / w - (slope - least), np.maximum(rows / w, slope - least)
    np.testing.assert_array_less(np.abs(multiplier - multiplier[slope.argmin()]), 1e-9 * scale)

    def value(v):
        return rows @ np.log(v) - (slope - least) @ v

    for _ in range(20):
        other = w * np.exp(rng.normal(size=n) * rng.choice([1e-3, 0.1, 1.0]))
        other *= size / other.sum()
        assert value(other) <= value(w) + 1e-9 * (abs(value(w)) + rows.sum())


def test_the_maximum_on_the_simplex_where_rows_are_few_or_none():
    np.testing.assert_allclose(on_simplex(np.array([1e-20, 1.0]), np.array([50.0, 1050.0]), 1.0), [0.999, 0.001])
    np.testing.assert_allclose(on_simplex(np.array([0.0, 1.0]), np.array([0.0, 10.0]), 1.0), [0.9, 0.1])
    np.testing.assert_allclose(on_simplex(np.array([0.0, 1.0]), np.array([9.0, 0.0]), 0.5), [0.0, 0.5], atol=1e-200)
    np.testing.assert_allclose(on_simplex(np.zeros(3), np.array([1.0, 1.0, 2.0]), 0.4), [0.2, 0.2, 0.0], atol=1e-200)
    np.testing.assert_allclose(on_simplex(np.array([1.0, 3.0]), np.zeros(2), 2.0), [0.5, 1.5], rtol=1e-12)


def test_the_maximum_on_the_simplex_is_what_an_optimizer_finds():
    rows, slope = np.array([1.0, 4.0, 0.5]), np.array([3.0, 20.0, 0.0])

    def minus(t):
        w = np.exp(t - logsumexp(t))
        return slope @ w - rows @ np.log(w)

    found = minimize(minus, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(on_simplex(rows, slope, 1.0), np.exp(found - logsumexp(found)), atol=1e-6)


@every_case
def test_at_alpha_zero_one_update_is_that_of_em(case):
    case = make(**CASES[case])
    problem = replace(case.problem, criterion=ConditionalLikelihood(0.0))
    plain = plain_of(problem)
    one = problem.update(case.params, case.total(problem=problem))
    other = plain.update(case.params, case.total(problem=plain))
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9)
    a, b = one.components.gaussian, other.components.gaussian
    np.testing.assert_allclose(a.means / UNITS, b.means / UNITS, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(a.covs, b.covs, rtol=1e-7, atol=1e-9 * np.abs(b.covs).max())


@pytest.mark.parametrize("criterion", ["conditional", "blend", "error"])
@pytest.mark.parametrize("name", ["EII", "VVI", "EEE", "VEV", "VVV"])
def test_both_solvers_reach_the_same_objective(name, criterion):
    case = make(name, criterion, anchor=10.0, n=100, apart=2.0, seed=2)
    stop = Stop(1e-7, 2000)
    ebw = run(case.problem, case.source, case.params, stop=stop, executor=Serial(), propose=Squarem())
    chart = MixtureChart(case.problem, case.params)
    newton = run_lbfgs(case.problem, case.source, chart, case.params, stop=stop, executor=Serial())
    assert ebw.status is Status.CONVERGED, ebw.message
    assert newton.status is Status.CONVERGED, newton.message
    assert ebw.objective == pytest.approx(newton.objective, abs=1e-4 * case.weight.sum())
    assert ebw.objective > case.value() + 1e-2


class Downhill(DiscriminativeProblem):
    """An update with a sign wrong."""

    def update(self, params, total, step=1.0):
        right = super().update(params, total, step).components.gaussian
        gaussian = params.components.gaussian
        wrong = replace(gaussian, means=2 * gaussian.means - right.means)
        return replace(params, components=replace(params.components, gaussian=wrong))


class Stubborn(DiscriminativeProblem):
    """An update too long, whatever step it is told."""

    def update(self, params, total, step=1.0):
        gaussian = params.components.gaussian
        wide = replace(gaussian, covs=3 * gaussian.covs)
        return replace(params, components=replace(params.components, gaussian=wide))


@every_criterion
@pytest.mark.parametrize("broken", [Downhill, Stubborn])
def test_a_broken_update_is_caught(broken, criterion):
    case = make(criterion=criterion, anchor=5.0)
    problem = broken(case.problem.family, None, case.problem.weight_rows, case.problem.criterion)
    result = run(problem, case.source, case.params, stop=Stop(0.0, 200), executor=Serial())
    assert result.status is Status.DECREASED and "by more than rounding error" in result.message
    assert result.objective == case.value()


def test_a_step_that_would_leave_the_domain_is_held_by_rows_of_its_own():
    """Negative scatter: D grows, component by component, until every scatter is positive definite."""
    case = far_apart(make(anchor=0.0, prior=0.0, apart=2.0), 3.0)
    total, family = case.total(), case.problem.family
    components, own = case.params.components, total.free.sum(axis=0)
    bare = family.feasible(components, family.with_expected_rows(components, total.components, own), case.params.live)
    assert not bare.all()
    after = case.problem.update(case.params, total)
    assert np.isfinite(after.components.gaussian.covs).all()
    assert (np.linalg.eigvalsh(after.components.gaussian.full_covs()) > 0).all()
