"""Wording of base, kernels."""

import numpy as np
import pytest

from mixent.base.kernels import KernelFunction, check_kernel_matrix
from mixent.options import RBF

from ...base.test_kernels import rows


def test_a_function_that_gives_another_shape_or_no_numbers_is_refused():
    A, B = rows(4), rows(6)
    with pytest.raises(
        ValueError, match=r"must give a finite matrix of shape \(4, 6\) for that many rows; got shape \(6, 4\)$"
    ):
        KernelFunction(lambda A, B: B @ A.T).gram(A, B)
    with pytest.raises(ValueError, match=r"got shape \(4, 6\) with values that are not finite"):
        KernelFunction(lambda A, B: np.full((4, 6), np.nan)).gram(A, B)
    np.testing.assert_array_equal(KernelFunction(lambda A, B: (A @ B.T).tolist()).gram(A, B), A @ B.T)


def test_x_must_be_symmetric():
    K = RBF(0.3).gram(rows(), rows())
    lopsided = K.copy()
    lopsided[3, 7] += 0.5
    with pytest.raises(
        ValueError, match=rf"X must be symmetric; entry \[3, 7\] is {lopsided[3, 7]:.6g}, \[7, 3\] is {K[7, 3]:.6g}"
    ):
        check_kernel_matrix(lopsided, "X")
    with pytest.raises(
        ValueError, match=r"the kernel must be positive semi-definite; on 30 rows its smallest eigenvalue is -0\.5"
    ):
        check_kernel_matrix(K - np.eye(30) * (np.linalg.eigvalsh(K)[0] + 0.5), "the kernel")
    least = np.linalg.eigvalsh(K - np.eye(30))[0]
    with pytest.raises(ValueError, match=rf"add {-least:.3g} to its diagonal"):
        check_kernel_matrix(K - np.eye(30), "the kernel")
