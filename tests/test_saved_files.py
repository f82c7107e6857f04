"""The files in tests/saved, one of each estimator, are read and predict what they did when they were written."""

import json
import zipfile

import numpy as np
import pytest

import mixent
from mixent.persistence import SavedFileError

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


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"short_forms": {"$dict": [["conditional", 1]]}}, "search holds a Search with other parameters than its own"),
        ({}, None),  # all parameters are newer
    ],
)
def test_option_objects_in_a_file_have_their_parameters_and_no_more(state, words, tmp_path):
    def change(model):
        model["search"] = {"$object": "mixtures.Search", "state": state}

    path = changed(make.HERE / "MixtureClassifier.mixent", tmp_path / "m.mixent", change)
    if words:
        with pytest.raises(SavedFileError, match=words):
            mixent.load(path)
    else:
        assert mixent.load(path).get_params()["search__dic_weight"] == 1.0


def test_a_fitted_kernel_without_its_width_is_damaged(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    model = mixent.MEDClassifier("rbf", C=1.0, calibration=None).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")

    def change(state):
        state["kernel_"]["state"] = {}

    changed(tmp_path / "m.mixent", tmp_path / "n.mixent", change)
    with pytest.raises(SavedFileError, match="kernel_ holds a RBF with other parameters"):
        mixent.load(tmp_path / "n.mixent")
