"""Wording of med, exponential family."""

from dataclasses import replace

import numpy as np
import pytest

from mixent.med.exponential_family_solving import solve
from mixent.med.margins import Fixed
from mixent.med.solving import Search

from ...med.test_exponential_family import problem_of


@pytest.mark.parametrize("kind", ["fixed", "integrated"])
def test_a_margin_that_no_distribution_keeps_is_refused_in_words(kind):
    """The same row in both classes."""
    problem = problem_of(kind, Fixed(1.0), n=6)
    same = tuple(row_features.take(np.zeros(6, dtype=int)) for row_features in problem.features)
    with pytest.raises(
        ValueError, match=r"no solution satisfies the fixed margin 1 for every row \(largest shortfall \d"
    ):
        solve(replace(problem, features=same), Search(gap=1e-9))
