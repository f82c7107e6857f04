"""The optimum in the coordinates of the rows: the same problem, whatever the number of cells."""

import numpy as np
import pytest

from mixent.core.driver import Stop
from mixent.core.executors import Serial
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.low_rank import Spanned
from mixent.maxent.problem import Bohning, Multipliers, start
from mixent.maxent.solvers import Sums, approximate, solve, total_at

N, S, C = 30, 90, 3


def rows_of(seed=0, repeated=0):
    rng = np.random.default_rng(seed)
    dense = rng.random((S, N))
    dense[:, N - repeated :] = dense[:, :repeated]
    weight = rng.integers(1, 4, N).astype(float)
    target = np.eye(C)[rng.integers(0, C, N)].T * weight
    return Rows(np.empty((N, 0), dtype=np.int32), dense, target, weight, np.full(N, 2))


def sums_of(rows):
    return Sums.of(Cells((), S), rows, Serial())


VARIANCE = np.linspace(0.2, 2.0, S)


@pytest.mark.parametrize("repeated", [0, 7])
def test_factor_and_span_are_those_of_the_inner_products(repeated):
    rows = rows_of(repeated=repeated)
    spanned = Spanned.of(Cells((), S), rows, VARIANCE)
    relative = VARIANCE / VARIANCE.max()
    inner = rows.dense.T @ (relative[:, None] * rows.dense)
    assert spanned.factor.shape == (N, N - repeated)
    np.testing.assert_allclose(spanned.factor @ spanned.factor.T, inner, atol=1e-9)
    np.testing.assert_allclose(
        spanned.factor @ spanned.factor[spanned.spanning].T, inner[:, spanned.spanning], atol=1e-10
    )
    assert np.allclose(np.triu(spanned.factor[spanned.spanning], 1), 0)


def test_logits_and_penalty_are_the_same_in_both_coordinates():
    rows = rows_of()
    spanned = Spanned.of(Cells((), S), rows, VARIANCE)
    b = Multipliers(np.zeros(C), np.random.default_rng(1).normal(size=(N, C)))
    gamma = spanned.from_span(b)
    np.testing.assert_allclose(rows.dense.T @ gamma.cells, spanned.factor @ b.cells, atol=1e-9)
    relative = VARIANCE / VARIANCE.max()
    np.testing.assert_allclose((gamma.cells**2 / relative[:, None]).sum(), (b.cells**2).sum(), rtol=1e-9)
    np.testing.assert_allclose(spanned.to_span(gamma).cells, b.cells, atol=1e-8)


@pytest.mark.parametrize("repeated", [0, 7])
def test_the_optimum_is_that_of_all_cells(repeated):
    sums = sums_of(rows_of(repeated=repeated))
    cells = sums.cells
    ours = solve(cells, sums, VARIANCE, "auto", Stop(1e-12, 500), Serial())
    plain = solve(cells, sums, VARIANCE, "lbfgs", Stop(1e-14, 5000), Serial())
    assert "spanned" in sums.span_cache
    np.testing.assert_allclose(ours.run.objective, plain.run.objective, rtol=1e-9)
    np.testing.assert_allclose(ours.run.params.cells, plain.run.params.cells, atol=1e-5)
    assert ours.gap < 1e-8


def test_an_approach_is_as_near_as_its_stop_says_and_goes_on_from_where_it_was():
    sums = sums_of(rows_of())
    cells = sums.cells
    problem, near = approximate(cells, sums, VARIANCE, Stop(1e-5, 300), Serial())
    best = solve(cells, sums, VARIANCE, "lbfgs", Stop(1e-14, 5000), Serial()).run.objective
    value = problem.objective(near, total_at(problem, near, sums.source, Serial()))
    assert best - 1e-3 * N < value <= best + 1e-9
    first = sums.span_cache["spanned"]
    _, again = approximate(cells, sums, 3.0 * VARIANCE, Stop(1e-5, 300), Serial(), None, near)
    assert sums.span_cache["spanned"] is first  # variances that differ by a factor have the same coordinates
    wider = Bohning(cells, sums.truth, 3.0 * VARIANCE, sums.source.total_weight, max_square=sums.max_square)
    assert wider.objective(again, total_at(wider, again, sums.source, Serial())) > wider.objective(
        start(sums.truth), total_at(wider, start(sums.truth), sums.source, Serial())
    )
    approximate(cells, sums, VARIANCE[::-1].copy(), Stop(1e-5, 300), Serial())
    assert sums.span_cache["spanned"] is not first


def test_without_a_prior_or_with_a_mask_all_cells_are_kept():
    sums = sums_of(rows_of())
    approximate(sums.cells, sums, VARIANCE, Stop(1e-3, 20), Serial(), np.ones((S, C)))
    approximate(sums.cells, sums, None, Stop(1e-3, 20), Serial())
    assert sums.span_cache == {}
