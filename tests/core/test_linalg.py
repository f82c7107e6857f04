"""Systems that should be positive definite."""

import numpy as np
import pytest

from mixent.core.linalg import solve_positive, solver_of


def test_a_sound_matrix_is_solved_to_rounding():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    matrix, x = root @ root.T + np.eye(6), rng.normal(size=(6, 2))
    np.testing.assert_allclose(solve_positive(matrix.copy(), matrix @ x), x, rtol=1e-10)
    solve = solver_of(matrix.copy())
    for column in x.T:
        np.testing.assert_allclose(solve(matrix @ column), column, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_a_free_direction_is_left_alone_where_nothing_pulls(scale):
    rng = np.random.default_rng(1)
    half = rng.normal(size=(5, 3))
    matrix = scale * half @ half.T  # rank 3 of 5
    x = half @ rng.normal(size=3)
    found = solve_positive(matrix.copy(), matrix @ x)
    np.testing.assert_allclose(matrix @ found, matrix @ x, rtol=1e-6)
    assert np.isfinite(found).all()


def test_unknowns_may_have_any_units():
    scale = np.array([1e6, 1.0, 1e-6, 1e-3])
    half = np.random.default_rng(2).normal(size=(4, 4))
    matrix = (half @ half.T + np.eye(4)) * np.outer(scale, scale)
    x = 1.0 / scale
    np.testing.assert_allclose(solve_positive(matrix.copy(), matrix @ x), x, rtol=1e-8)


def test_a_matrix_of_zeros_and_one_that_rounding_made_indefinite_are_mended():
    assert np.isfinite(solve_positive(np.zeros((3, 3)), np.zeros(3))).all()
    almost = np.diag([1.0, 1.0, -1e-10])
    found = solve_positive(almost, np.array([1.0, 2.0, 0.0]))
    np.testing.assert_allclose(found, [1.0, 2.0, 0.0], rtol=1e-6)
