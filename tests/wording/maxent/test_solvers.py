"""Wording of maxent, solvers."""

import numpy as np
import pytest

from mixent.core.driver import Stop
from mixent.maxent import solvers

from ...maxent.test_solvers import draw, random_table, rows_of, solved


@pytest.mark.parametrize("solver", ["bohning", "iis", "lbfgs"])
def test_the_certified_gain_per_row_fell_below_the_one_asked(solver):
    cells, rows, _, variance = random_table(1)
    result = solved(rows, cells, solver, variance, Stop(-np.inf, 5000, gain=1e-8))
    assert result.run.message == "the certified gain per row fell below its tolerance"


def test_needs_the_gram_matrix_of_all_cells_use_solver_lbfgs(monkeypatch):
    cells, rows = rows_of(*draw(gaps=0.1))
    monkeypatch.setattr(solvers, "WIDEST", 5)
    with pytest.raises(ValueError, match="requires the Gram matrix .* at most 5 values .*; got 17; use solver='lbfgs'"):
        solved(rows, cells, "bohning")
