"""Correlations of pairs: shrinkage towards the common mean, the effective number of sources, undeclared copies."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.fusion_panels import Cell, panel, true_effective_number

from mixent.fusion import Calibration, Fuser
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import all_marginals
from mixent.fusion.dependence import Dependence, _copies, dependence
from mixent.fusion.discounts import Pairs, discounts, effective_number
from mixent.fusion.methods import dependent
from mixent.fusion.shrinkage import DEPENDENT, shrunk
from mixent.fusion.sources import Layout

from . import panels

CELL = Cell(
    index=7000,
    kind="hard",
    answers="hard",
    n_items=600,
    priors=(0.5, 0.5),
    accuracy=(0.75,) * 10,
    correlation=0.4,
    n_copies=0,
    n_rows=200,
    calibration_priors=(0.5, 0.5),
    sharpness=1.0,
    n_levels=5,
    faulty=None,
)


def estimates(seed, n=45, spread=0.1, mean=0.3, std=(0.05, 0.5)):
    rng = np.random.default_rng(seed)
    s = np.exp(rng.uniform(*np.log(std), n))
    return mean + spread * rng.standard_normal(n) + s * rng.standard_normal(n), s


def found(drawn, weight=None):
    """The dependence in a batch of a panel."""
    layout = Layout.of(drawn.calibrations if hasattr(drawn, "calibrations") else drawn.sources)
    return dependence(all_marginals(Batch.of(layout, read_answers(layout, drawn.answers), weight)))


# --- empirical Bayes ----------------------------------------------------------------------------------------------


def test_without_evidence_the_correlation_is_the_mean_of_its_prior():
    nothing = np.full(10, 100.0)
    values, typical = shrunk(np.zeros(10), nothing, np.ones(10), 0.0, 100.0)
    np.testing.assert_allclose([*values, typical], DEPENDENT / 2, atol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_permuting_pairs_permutes_their_correlations(seed):
    r, s = estimates(seed)
    order = np.random.default_rng(seed).permutation(len(r))
    weight = np.ones(len(r))
    values, typical = shrunk(r, s, weight, r.mean(), 0.03)
    permuted, same = shrunk(r[order], s[order], weight, r.mean(), 0.03)
    np.testing.assert_allclose(permuted, values[order], rtol=1e-12)
    assert same == pytest.approx(typical, rel=1e-12)


def test_weight_two_is_the_pair_twice():
    r, s = estimates(0)
    twice = shrunk(np.repeat(r, 2), np.repeat(s, 2), np.ones(2 * len(r)), r.mean(), 0.03)
    once = shrunk(r, s, np.full(len(r), 2.0), r.mean(), 0.03)
    np.testing.assert_allclose(twice[0], np.repeat(once[0], 2), rtol=1e-12)
    assert once[1] == pytest.approx(twice[1], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_weak_pair_has_the_typical_correlation_and_a_sure_one_its_own(seed):
    r, s = estimates(seed, spread=0.15, std=(0.05, 0.1))
    r[:2], s[:2] = (0.9, 0.05), (2.0, 0.005)
    values, typical = shrunk(r, s, np.ones(len(r)), r[2:].mean(), 0.02)
    assert typical == pytest.approx(r[2:].mean(), abs=0.01)
    assert values[0] == pytest.approx(typical, abs=0.02) and values[1] == pytest.approx(0.05, abs=0.02)


def test_shrinkage_is_closer_to_the_truth_than_the_estimates_and_than_zero():
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = np.clip(0.3 + 0.1 * rng.standard_normal(28), 0, 1)
        s = rng.uniform(0.1, 0.4, 28)
        r = truth + s * rng.standard_normal(28)
        values, _ = shrunk(r, s, np.ones(28), r.mean(), float(np.sqrt((s**2).sum())) / 28)
        errors.append([((x - truth) ** 2).mean() for x in (values, r, np.where(r > 2 * s, r, 0.0))])
    shrunk_error, raw, by_significance = np.mean(errors, axis=0)
    assert shrunk_error < 0.25 * raw and shrunk_error < 0.25 * by_significance


def test_independent_sources_have_no_discount_worth_mentioning():
    values = []
    for seed in range(200):
        s = np.full(45, 0.1)
        r = s * np.random.default_rng(seed).standard_normal(45)
        values.append(shrunk(r, s, np.ones(45), r.mean(), 0.1 / np.sqrt(45))[1])
    assert np.mean(values) < 0.003 and np.max(values) < 0.06


def test_one_pair_unlike_the_others_keeps_its_correlation():
    r, s = 0.03 * np.random.default_rng(0).standard_normal(45), np.full(45, 0.05)
    r[7] = 0.8
    values, typical = shrunk(r, s, np.ones(45), r.mean(), 0.01)
    assert values[7] == pytest.approx(0.8, abs=0.05) and np.delete(values, 7).max() < 0.1 and typical < 0.06


# --- panels of sources --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_effective_number_is_that_of_the_true_correlations(kind):
    """1 / min w^T C w over weights with sum one, whatever the class priors."""
    for p in (0.5, 0.1):
        cell = replace(CELL, kind=kind, answers=kind, priors=(1 - p, p))
        numbers = [found(panel(cell, i)).n_effective for i in range(8)]
        truth = true_effective_number(cell)
        assert truth == pytest.approx(3.2 if kind == "hard" else 2.3, abs=0.3)
        assert np.mean(numbers) == pytest.approx(truth, rel=0.12), p


def test_the_effective_number_of_independent_sources_is_their_number():
    numbers = [found(panel(replace(CELL, correlation=0.0, n_rows=60), i)).n_effective for i in range(20)]
    assert 9.3 < np.mean(numbers) <= 10 and np.min(numbers) > 6


@pytest.mark.parametrize("seed", range(30))
def test_the_effective_number_is_between_one_and_the_number_of_sources(seed):
    rng = np.random.default_rng(seed)
    J = int(rng.integers(1, 9))
    drawn = panels.panel(seed, n=int(rng.integers(5, 90)), K=2 + seed % 3, J=J, kind="mixed", gaps=0.3, rows=3)
    assert 1 <= found(drawn).n_effective <= J
    low = rng.uniform(-1, 1, (J, J))  # need not be a correlation matrix
    assert 1 <= effective_number(Pairs((low + low.T) / 2, np.ones(J))) <= J


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_undeclared_exact_copies_count_once(kind):
    cell = replace(CELL, kind=kind, answers=kind, accuracy=(0.8, 0.75, 0.75, 0.7, 0.7), correlation=0.0)
    for i in range(5):
        alone, copied = (panel(replace(cell, n_copies=n), i) for n in (0, 4))
        with_copies = found(copied)
        J = len(copied.answers)
        same = [0, *range(5, J)]
        np.testing.assert_allclose(with_copies.correlation[np.ix_(same, same)], 1.0, atol=1e-3)
        assert with_copies.n_effective == pytest.approx(found(alone).n_effective, abs=0.5)
        once, often = (Fuser(one.calibrations, method="discounted").fit(one.answers) for one in (alone, copied))
        assert np.abs(once.posterior_ - often.posterior_).mean() < 0.05


def test_identical_answers_of_a_few_items_need_not_be_copies():
    one = Calibration.from_counts([[190, 10], [10, 190]], ["a", "b"])
    for times, low, high in ((1, 0.02, 0.2), (20, 0.99, 1.0)):
        answers = dict.fromkeys(("s0", "s1"), (["a"] * 15 + ["b"] * 15) * times)
        layout = Layout.of(dict.fromkeys(answers, one))
        assert low < _copies(all_marginals(Batch.of(layout, read_answers(layout, answers))))[0, 1] <= high


def test_weight_two_is_the_item_twice_and_sources_may_be_permuted():
    drawn = panel(replace(CELL, n_items=200), 0)
    twice = {name: np.concatenate([values, values]) for name, values in drawn.answers.items()}
    weighted, repeated = found(drawn, np.full(200, 2.0)), found(replace(drawn, answers=twice))
    np.testing.assert_allclose(weighted.correlation, repeated.correlation, atol=1e-9)
    assert weighted.n_effective == pytest.approx(repeated.n_effective, rel=1e-9)
    order = np.random.default_rng(0).permutation(10)
    names = [list(drawn.answers)[j] for j in order]
    other = found(replace(drawn, calibrations={name: drawn.calibrations[name] for name in names}))
    plain = found(drawn)
    np.testing.assert_allclose(other.correlation, plain.correlation[np.ix_(order, order)], atol=1e-9)
    assert other.n_effective == pytest.approx(plain.n_effective, rel=1e-9)


def test_discounts_and_the_effective_number_use_the_same_correlations():
    drawn = panel(replace(CELL, n_rows=40, n_items=100), 1)
    one = found(drawn)
    equal = Pairs(one.correlation, np.ones(10))
    assert discounts(equal).sum() == pytest.approx(one.n_effective, rel=1e-9)


def test_ordered_scores_of_two_classes_keep_their_correlation():
    """Of a score, and not of votes for its bins, which are less correlated."""
    cell = replace(CELL, kind="ordinal", answers="ordinal", n_levels=7)
    numbers = [found(panel(cell, i)).n_effective for i in range(8)]
    assert np.mean(numbers) == pytest.approx(true_effective_number(cell), rel=0.15)


def test_copies_are_dependent_where_the_tests_of_pairs_do_not_find_them():
    z = np.full((3, 3), 0.5)
    correlation = np.eye(3)
    for value, expected in ((0.9, False), (1.0, True)):
        correlation[0, 1] = correlation[1, 0] = value
        assert dependent(Dependence(z, correlation, 2.0, 0.5, np.ones(3)), np.arange(3)) == expected
    assert not dependent(Dependence(z, correlation, 2.0, 0.5, np.ones(3)), np.array([0, 2]))  # declared
