"""Trust weights by the divergence: the gradient, independence, copies."""

import numpy as np
import pytest

from mixent.fusion.pool import fit_pool, value_and_gradient
from mixent.fusion.problem import MinDivergence
from mixent.fusion.rules import composite, weighted_sum
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells

TABLE = np.array([[0.75, 0.25], [0.3, 0.7]])


def panel(copies=0, n=3000, J=4, prior=0.25, seed=0):
    """Problem, rows and evidence of J independent sources, the first of them copied so often; truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < prior).astype(int)
    codes = np.stack([rng.random(n) < TABLE[truth, 1] for _ in range(J)], axis=1).astype(np.int32)
    codes = np.concatenate([codes, *[codes[:, :1]] * copies], axis=1)
    patterns, place, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    J += copies
    cells, group = Cells((2,) * J), np.repeat(np.arange(J), 2)
    problem = MinDivergence(cells, np.concatenate([TABLE.T] * J), group, np.ones(2 * J), float(J))
    m = len(patterns)
    rows = Rows(cells.packed(patterns), np.empty((0, m)), np.zeros((2, m)), counts / n, np.full(m, J))
    evidence = np.log(TABLE.T)[patterns.T]  # (J, m, K)
    return problem, rows, evidence, truth, place.ravel()


def test_the_gradient_is_that_of_the_divergence():
    problem, rows, evidence, _, _ = panel()
    trust, prior = np.array([0.4, 1.2, 0.7, 0.1]), np.array([0.6, 0.4])
    _, slope = value_and_gradient(problem, rows, evidence, trust, prior)
    for j in range(4):
        step = 1e-6 * np.eye(4)[j]
        up, down = (value_and_gradient(problem, rows, evidence, trust + s, prior)[0] for s in (step, -step))
        np.testing.assert_allclose(slope[j], (up - down) / 2e-6, rtol=1e-5, atol=1e-9)


def test_independent_sources_are_trusted_as_naive_bayes_trusts_them():
    problem, rows, evidence, truth, place = panel(n=20000)
    prior = composite(evidence, rows.weight, np.array([0.5, 0.5])).prior
    found = fit_pool(problem, rows, evidence, prior)
    np.testing.assert_allclose(found.trust, 1.0, atol=0.25)
    ours = np.mean(found.posterior[place].argmax(axis=1) != truth)
    bayes = np.mean((weighted_sum(evidence) + np.log(prior))[place].argmax(axis=1) != truth)
    assert ours <= bayes + 0.01
    assert found.divergence <= value_and_gradient(problem, rows, evidence, np.ones(4), prior)[0] + 1e-12


@pytest.mark.parametrize("copies", [5, 20])
def test_copies_share_the_trust_of_one(copies):
    problem, rows, evidence, truth, place = panel(copies)
    prior = composite(evidence, rows.weight, np.array([0.5, 0.5])).prior
    found = fit_pool(problem, rows, evidence, prior)
    together = found.trust[0] + found.trust[4:].sum()
    assert together < 2.0 and (found.trust[1:4] > 0.5).all()
    ours = np.mean(found.posterior[place].argmax(axis=1) != truth)
    bayes = np.mean((weighted_sum(evidence) + np.log(prior))[place].argmax(axis=1) != truth)
    assert ours < bayes - 0.02


def test_a_source_that_says_nothing_gets_no_say():
    problem, rows, evidence, _, _ = panel()
    blind = np.concatenate([evidence[:3], np.zeros_like(evidence[:1])])
    found = fit_pool(problem, rows, blind, np.array([0.7, 0.3]))
    assert np.isfinite(found.divergence) and (found.trust >= 0).all()
