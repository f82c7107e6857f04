"""Wording of mixtures, chart."""

import numpy as np
import pytest

from mixent.core.driver import OutsideDomainError
from mixent.mixtures.chart import MixtureChart

from ...mixtures.test_chart import make


def test_a_weight_is_out_of_range():
    problem, _, params = make()
    chart = MixtureChart(problem, params)
    vector = chart.vector(params)
    vector[0] = -2000.0
    vector[0] = np.inf
    with pytest.raises(OutsideDomainError, match="a weight is out of range"):
        chart.params(vector)
