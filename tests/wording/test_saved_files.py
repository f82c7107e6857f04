"""Wording of saved files."""

import numpy as np
import pytest

import mixent
from mixent.persistence import SavedFileError

from ..saved import make
from ..test_saved_files import changed


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
