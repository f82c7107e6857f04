"""Rules of likelihood ratios: what they maximize never falls, and what the document prints is what they do."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from mixent.fusion.rules import (
    DawidSkene,
    DawidSkeneParams,
    ItemAnswers,
    composite,
    dawid_skene,
    majority,
    mean_posterior,
    ml_product,
    ml_sum,
    posterior_of,
    trimmed_mean,
    weighted_sum,
)

EVEN = np.full(3, 1 / 3)


@pytest.fixture
def evidence():
    return np.random.default_rng(0).normal(size=(4, 50, 3))


def product(evidence, weight, start):
    return ml_product(weighted_sum(evidence), weight, start)


def weights(n=50):
    return np.ones(n)


def test_fixed_rules_are_those_written_out(evidence):
    prior = np.array([0.5, 0.3, 0.2])
    product = prior * np.exp(evidence).prod(axis=0)
    np.testing.assert_allclose(
        posterior_of(weighted_sum(evidence) + np.log(prior)), product / product.sum(axis=1, keepdims=True), rtol=1e-10
    )
    each = prior * np.exp(evidence)
    each /= each.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(mean_posterior(evidence, prior), each.mean(axis=0), rtol=1e-10)
    middle = np.sort(each, axis=0)[1:3].mean(axis=0)
    np.testing.assert_allclose(
        trimmed_mean(evidence, prior, 0.25).posterior, middle / middle.sum(axis=1, keepdims=True), rtol=1e-10
    )


def test_votes_are_counted_and_silence_is_no_vote():
    decisions = np.zeros((3, 2, 2))
    decisions[:, 0] = [[1, 0], [1, 0], [0, 1]]
    np.testing.assert_allclose(majority(decisions).posterior, [[2 / 3, 1 / 3], [0.5, 0.5]])


def likelihoods(evidence, prior):
    """What ml_product, ml_sum and composite maximize."""
    ratio = np.exp(evidence)
    return (
        np.log(ratio.prod(axis=0) @ prior).sum(),
        np.log(ratio.mean(axis=0) @ prior).sum(),
        np.log(ratio @ prior).sum(),
    )


@pytest.mark.parametrize(("place", "rule"), [(0, product), (1, ml_sum), (2, composite)])
def test_priors_are_those_of_greatest_likelihood(evidence, place, rule):
    found = rule(evidence, weights(), EVEN)
    values = [step.objective for step in found.run.trace if step.accepted]
    assert (np.diff(values) >= -1e-10).all()
    np.testing.assert_allclose(values[-1], likelihoods(evidence, found.prior)[place], rtol=1e-9)

    def cost(x):
        p = np.exp(x - x.max())
        return -likelihoods(evidence, p / p.sum())[place]

    best = -min(minimize(cost, start).fun for start in np.random.default_rng(1).normal(size=(4, 3)))
    assert values[-1] >= best - 1e-4


def test_the_posterior_of_the_product_rule_is_its_e_step(evidence):
    found = product(evidence, weights(), EVEN)
    joint = found.prior * np.exp(evidence.sum(axis=0))
    np.testing.assert_allclose(found.posterior, joint / joint.sum(axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(found.posterior.mean(axis=0), found.prior, atol=1e-4)


@pytest.mark.parametrize("rule", [product, ml_sum, composite])
def test_weight_two_is_the_item_twice(evidence, rule):
    twice = np.concatenate([evidence, evidence[:, :10]], axis=1)
    count = np.where(np.arange(50) < 10, 2.0, 1.0)
    np.testing.assert_allclose(rule(evidence, count, EVEN).prior, rule(twice, weights(60), EVEN).prior, atol=1e-7)


@pytest.mark.parametrize("rule", [product, ml_sum, composite])
def test_a_silent_source_changes_nothing(evidence, rule):
    silent = np.concatenate([evidence, np.zeros((1, 50, 3))])
    ours, theirs = rule(silent, weights(), EVEN), rule(evidence, weights(), EVEN)
    np.testing.assert_allclose(ours.posterior, theirs.posterior, atol=1e-9)
    quiet = rule(np.zeros((2, 5, 3)), weights(5), EVEN)
    np.testing.assert_allclose(quiet.posterior, 1 / 3, atol=1e-9)


def test_priors_of_a_shifted_batch_are_found():
    rng = np.random.default_rng(2)
    table = np.array([[0.8, 0.2], [0.3, 0.7]])
    truth = (rng.random(4000) < 0.15).astype(int)
    codes = np.stack([(rng.random(4000) < table[truth, 1]).astype(int) for _ in range(3)])
    found = np.log(table.T)[codes]  # (J, n, K)
    for rule in (product, composite):
        assert abs(rule(found, weights(4000), np.array([0.5, 0.5])).prior[1] - 0.15) < 0.03
    copied = np.concatenate([found] * 5)  # dependence spoils the product, not the composite likelihood
    assert abs(composite(copied, weights(4000), np.array([0.5, 0.5])).prior[1] - 0.15) < 0.03
    assert abs(product(copied, weights(4000), np.array([0.5, 0.5])).prior[1] - 0.15) > 0.05


def test_dawid_and_skene_learn_the_confusion_and_never_fall():
    rng = np.random.default_rng(3)
    tables = [
        np.array([[0.9, 0.1], [0.2, 0.8]]),
        np.array([[0.7, 0.3], [0.4, 0.6]]),
        np.array([[0.6, 0.4], [0.1, 0.9]]),
    ]
    truth = (rng.random(3000) < 0.4).astype(int)
    codes = np.stack([(rng.random(3000) < t[truth, 1]) for t in tables], axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < 0.1] = -1
    group = np.repeat(np.arange(3), 2)
    matrix = csr_array(np.stack([codes == 0, codes == 1], axis=2).reshape(3000, 6).astype(float))
    answers = ItemAnswers(matrix, np.ones(3000), np.full(3000, -1))
    known = np.concatenate([(20 * t + 0.5).T for t in tables])  # (S, K) counts of a small calibration
    problem = DawidSkene(answers, known, group)
    rates = np.concatenate([(t / t.sum(axis=1, keepdims=True)).T for t in tables])
    start = DawidSkeneParams(np.array([0.5, 0.5]), rates)
    found = dawid_skene(problem, start)
    values = [step.objective for step in found.run.trace if step.accepted]
    assert (np.diff(values) >= -1e-9).all() and found.run.status.ok
    assert abs(found.prior[1] - 0.4) < 0.05
    learned = found.run.params.confusion.reshape(3, 2, 2).transpose(0, 2, 1)
    np.testing.assert_allclose(learned, tables, atol=0.08)
    np.testing.assert_allclose(learned.sum(axis=2), 1.0, rtol=1e-12)
    assert np.mean(found.posterior.argmax(axis=1) == truth) > 0.8
