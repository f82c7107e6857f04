import threading

import numpy as np
from scipy.special import logsumexp

from mixent.core.arrays import Scratch, log_sum_exp, safe_log, softmax_columns, weighted_total


def test_softmax_columns_is_normalization_in_place():
    rng = np.random.default_rng(0)
    joint = rng.normal(scale=300, size=(4, 50))
    joint[1, :10] = -np.inf
    joint[:, 7] = -np.inf
    before = joint.copy()
    log_mass = softmax_columns(joint)
    with np.errstate(divide="ignore"):
        expected = logsumexp(before, axis=0)
    np.testing.assert_allclose(log_mass, expected, rtol=1e-13)
    some = np.arange(50) != 7
    np.testing.assert_allclose(joint[:, some], np.exp(before[:, some] - expected[some]), rtol=1e-9, atol=1e-300)
    assert log_mass[7] == -np.inf and (joint[:, 7] == 0).all()
    np.testing.assert_allclose(joint[:, some].sum(axis=0), 1.0, rtol=1e-14)


def test_nothing_at_all_has_no_density():
    assert (softmax_columns(np.empty((0, 3))) == -np.inf).all()
    assert (log_sum_exp(np.empty((3, 0)), axis=1) == -np.inf).all()
    assert log_sum_exp(np.full(3, -np.inf), axis=0) == -np.inf


def test_log_sum_exp_against_scipy():
    values = np.random.default_rng(1).normal(scale=500, size=(3, 4, 5))
    for axis in range(3):
        np.testing.assert_allclose(log_sum_exp(values, axis), logsumexp(values, axis=axis), rtol=1e-14)


def test_a_zero_weight_is_a_mask():
    np.testing.assert_array_equal(safe_log(np.array([0.0, 1.0])), [-np.inf, 0.0])


def test_scratch_is_reused_within_a_thread_and_never_shared():
    scratch = Scratch()
    a = scratch.get("a", (3, 4))
    assert np.shares_memory(a, scratch.get("a", (2, 2)))
    assert not np.shares_memory(a, scratch.get("b", (3, 4)))
    assert scratch.get("a", (5, 5)).shape == (5, 5)
    others = []
    thread = threading.Thread(target=lambda: others.append(scratch.get("a", (5, 5))))
    thread.start()
    thread.join()
    assert not np.shares_memory(others[0], scratch.get("a", (5, 5)))


def test_a_row_of_weight_zero_is_left_out_of_a_total_even_without_density():
    log_lik, weight = np.array([-1.0, -np.inf, -3.0]), np.array([2.0, 0.0, 1.0])
    assert weighted_total(log_lik, weight) == -5.0
    assert weighted_total(log_lik[[0, 2]], None) == -4.0
    assert weighted_total(log_lik, np.ones(3)) == -np.inf
