"""The files in tests/saved, one of each estimator, are read and predict what they did when they were written."""

import json

import numpy as np
import pytest

import mixent

from .saved import make
from .subjects import PUBLIC, SUBJECTS

ANSWERS = json.loads(make.ANSWERS.read_text())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_kept_file_predicts_as_it_did(name):
    path = make.HERE / f"{name}.mixent"
    assert path.exists(), "an estimator is new: run python tests/saved/make.py"
    model = mixent.load(path)
    np.testing.assert_allclose(make.kept_answers(SUBJECTS[name], model), ANSWERS[name], rtol=1e-9, atol=1e-12)
    assert type(model).__name__ == name and model.summary().sections
