"""Every estimator predicts on fixed tables what it predicted when `golden/predictions.json` was written."""

import json

import numpy as np
import pytest

import mixent
from mixent.base.registry import entries

from .golden import predictions

STORED = json.loads(predictions.HERE.read_text())


@pytest.mark.parametrize("name", predictions.CASES)
@pytest.mark.filterwarnings("ignore")
def test_predictions_are_those_stored(name):
    np.testing.assert_allclose(predictions.predicted(name), STORED[name], rtol=1e-6, atol=1e-6)


def test_every_estimator_has_a_case():
    estimators = {entry.cls.__name__ for entry in entries()} & set(mixent.__all__)
    assert {name.split()[0] for name in predictions.CASES} == estimators and set(STORED) == set(predictions.CASES)
