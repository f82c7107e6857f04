"""Wording of med, saved models2."""

import pytest

import mixent
from mixent import MEDBayesNetClassifier
from mixent.core import serialize
from mixent.persistence import SavedFileError
from mixent.persistence.files import known_classes

from ...med.test_saved_models2 import CLASSIFIERS, LABELS, OPTIONS, X, detector, fitted


def test_structure_of_this_model_is_a_function(tmp_path):
    def pairs(names):
        return [(names[0], names[1])]

    for structure in (pairs, {"yes": pairs, "no": "naive"}):
        model = MEDBayesNetClassifier(structure, **OPTIONS).fit(X, LABELS["two"])
        with pytest.raises(TypeError, match="structure of this model is a function, .*; set structure to the edges"):
            mixent.save(model, tmp_path / "m.mixent")


MARGINAL = {
    "schema_": "Schema",
    "calibration_": "Calibration",
    "margin_": "MarginPrior",
    "run_": "Run",
    "distribution_": "JointDistribution",
}


NEEDED = {
    "tree": MARGINAL | {"model_": "TreeModel"},
    "net": MARGINAL | {"model_": "NetModel", "training_prior_": "ndarray"},
    "product": {
        "schema_": "Schema",
        "model_": "NoveltyModel",
        "distribution_": "Distribution",
        "bayes_": "Distribution",
        "offset_": "float",
        "margin_": "MarginPrior or None",
        "run_": "Run",
    },
}


@pytest.mark.parametrize(("name", "part"), [(name, part) for name, parts in NEEDED.items() for part in parts])
def test_a_model_without_a_part_is_refused(name, part, tmp_path):
    model = fitted(name) if name in CLASSIFIERS else detector(name)[0]
    delattr(model, part)
    for _ in range(2):  # missing, then something else
        serialize.save(tmp_path / "m.mixent", model.set_params(progress=False), known_classes(), {})
        wrong = f"is missing or is not of type {NEEDED[name][part]}|is missing|does not hold numbers"
        with pytest.raises(SavedFileError, match=rf"\({part} ({wrong})\)"):
            mixent.load(tmp_path / "m.mixent")
        setattr(model, part, "something else")
