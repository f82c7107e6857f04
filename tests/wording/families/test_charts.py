"""Wording of families, charts."""

from dataclasses import replace

import numpy as np
import pytest

from mixent.core.driver import OutsideDomainError
from mixent.families.categorical import CategoricalFamily, Counts
from mixent.families.charts import CategoricalChart
from mixent.families.gaussian.charts import GaussianChart

from ...families.test_charts import make_family, random_params


def test_no_chart_where_numbers_fail():
    family = make_family("VVV")
    start = random_params(family)
    chart = GaussianChart(family, start, np.ones(3, dtype=bool))
    for where, what in [(0, "a mean"), (9, "a standard deviation"), (-1, "an axis")]:
        for value in (1e12, np.inf, np.nan):
            vector = np.zeros(chart.size)
            vector[where] = value
            with pytest.raises(OutsideDomainError, match=f"{what} is out of range"):
                chart.params(vector)
    flat = replace(start, covs=start.covs * np.array([1.0, -1.0, 1.0])[:, None, None])
    with pytest.raises(OutsideDomainError, match="not positive definite"):
        chart.vector(flat)


@pytest.mark.parametrize("own", [False, True])
def test_a_logit_is_not_finite(own):
    rng = np.random.default_rng(0)
    sizes, K = (2, 3, 4), 4
    rows = rng.random((K, 9) if own else 9) + 0.1
    family = CategoricalFamily(sizes, rows)
    start = family.update(None, Counts(rng.random((K, 9))))
    live = np.array([True, True, False, True])
    chart = CategoricalChart(family, start, live)
    at = rng.normal(size=chart.size)
    with pytest.raises(OutsideDomainError, match="a logit is not finite"):
        chart.params(np.where(np.arange(chart.size) == 3, np.nan, at))
