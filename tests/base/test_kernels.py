"""Kernels: tiles are the whole, factors multiply back, landmarks are exact, bad matrices are refused."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from mixent.base import kernels as module
from mixent.base.kernels import KernelFunction, Linear, Nystrom, check_kernel_matrix, factor
from mixent.core.executors import Serial, Threads
from mixent.options import RBF, Polynomial

KERNELS = [Linear(), Polynomial(3, 0.5, 1.0), RBF(0.3), KernelFunction(lambda A, B: (A @ B.T) ** 2)]


def rows(n=30, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_kernels_are_what_scikit_learn_calls_so():
    A, B = rows(), rows(8, seed=1)
    np.testing.assert_allclose(Polynomial(3, 0.5, 1.0).gram(A, B), polynomial_kernel(A, B, 3, 0.5, 1.0), rtol=1e-12)
    np.testing.assert_allclose(RBF(0.3).gram(A, B), rbf_kernel(A, B, 0.3), rtol=1e-12)
    np.testing.assert_array_equal(Linear().gram(A, B), A @ B.T)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("n", [1, 16, 17, 40])
def test_the_square_in_tiles_is_the_gram_matrix_and_threads_change_no_bit(kernel, n, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 16)
    A = rows(n)
    with Serial() as one, Threads(3) as three:
        square = kernel.square(A, one)
        np.testing.assert_array_equal(kernel.square(A, three), square)
    np.testing.assert_allclose(square, kernel.gram(A, A), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(square, square.T, rtol=1e-15, atol=1e-15)


def test_a_row_is_like_itself_even_far_from_the_origin():
    A = 1e6 + rows()
    square = RBF(0.3).gram(A, A)
    assert (square <= 1.0).all()
    np.testing.assert_allclose(np.diagonal(square), 1.0, atol=1e-2)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: type(k).__name__)
def test_nystrom_is_exact_on_its_landmarks(kernel):
    A = rows()
    marks = A[:12]
    phi = Nystrom.of(kernel, marks)
    np.testing.assert_allclose(phi(marks) @ phi(marks).T, kernel.gram(marks, marks), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(phi(A) @ phi(marks).T, kernel.gram(A, marks), rtol=1e-7, atol=1e-7)
    if isinstance(kernel, Linear):  # three directions: twelve landmarks span them all
        assert phi(A).shape == (30, 3)
        np.testing.assert_allclose(phi(A) @ phi(A).T, A @ A.T, atol=1e-9)


def test_nystrom_never_exceeds_the_kernel():
    A = rows(60)
    phi = Nystrom.of(RBF(0.3), A[:10])(A)
    left = RBF(0.3).gram(A, A) - phi @ phi.T
    assert np.linalg.eigvalsh(left).min() > -1e-8


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_factor_multiplies_back_whatever_the_rank(rank):
    half = rows(20, rank) * 10.0 ** np.random.default_rng(1).uniform(-1, 1, size=(20, 1))
    K = half @ half.T
    kept = K.copy()
    L = factor(K)
    np.testing.assert_array_equal(K, kept)
    assert L.shape == (20, rank)
    np.testing.assert_allclose(L @ L.T, K, atol=1e-10 * K.max())


def test_a_factor_of_a_full_matrix_and_of_nothing():
    K = RBF(2.0).gram(rows(), rows())
    np.testing.assert_allclose(factor(K) @ factor(K).T, K, atol=1e-11)
    assert np.abs(factor(np.zeros((4, 4)))).max(initial=0.0) == 0.0


def test_a_matrix_that_is_no_kernel_is_refused_with_the_remedy():
    K = RBF(0.3).gram(rows(), rows())
    check_kernel_matrix(K, "X")
    check_kernel_matrix(rows(20, 2) @ rows(20, 2).T, "X")  # singular
    lopsided = K.copy()
    lopsided[3, 7] += 0.5
    with pytest.raises(ValueError, match="symmetric"):
        check_kernel_matrix(lopsided, "X")
    with pytest.raises(ValueError, match="semi-definite"):
        check_kernel_matrix(K - np.eye(30) * (np.linalg.eigvalsh(K)[0] + 0.5), "the kernel")
    least = np.linalg.eigvalsh(K - np.eye(30))[0]
    with pytest.raises(ValueError, match="diagonal"):
        check_kernel_matrix(K - np.eye(30), "the kernel")
    check_kernel_matrix(K - np.eye(30) - 1.001 * least * np.eye(30), "the kernel")
