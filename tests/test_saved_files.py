"""The files in tests/saved, one of each estimator, are read and predict what they did when they were written."""

import json
import zipfile

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


def changed(source, target, change):
    """A copy of a file whose model, as JSON, was changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "header.json":
                header = json.loads(data)
                change(header["model"]["state"])
                data = json.dumps(header).encode()
            new.writestr(item.filename, data)
    return target


def test_a_parameter_that_is_newer_than_the_file_has_its_default(tmp_path):
    path = changed(make.HERE / "MixtureClassifier.mixent", tmp_path / "m.mixent", lambda state: state.pop("training"))
    assert mixent.load(path).training == "likelihood"
