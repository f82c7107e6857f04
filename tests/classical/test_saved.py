"""Classical classifiers in files: the same answers, bit for bit."""

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import KernelFisherClassifier, ParzenClassifier
from mixent.options import Polynomial

rng = np.random.default_rng(0)
y = np.array(["x", "y", "z"])[np.arange(45) % 3]
X = pd.DataFrame({"a": rng.normal(size=45) + np.arange(45) % 3, "b": rng.normal(size=45)})
X["color"] = np.array(["red", "blue", None], dtype=object)[rng.integers(3, size=45)]
X.loc[::7, "a"] = np.nan
MODELS = [
    ParzenClassifier(progress=lambda *args: None),
    ParzenClassifier(per_class=True),
    ParzenClassifier(0.5),
    KernelFisherClassifier(progress=lambda *args: None),
    KernelFisherClassifier("linear"),
    KernelFisherClassifier(Polynomial(gamma="auto", n_landmarks=10), random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: str(model).partition(" at 0x")[0])  # no addresses in names
def test_a_loaded_classifier_is_the_saved_one(model, tmp_path):
    model.fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert type(again) is type(model) and again.progress is False
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.loo_proba_, model.loo_proba_)
    mixent.save(again, tmp_path / "twice.mixent")
    assert (tmp_path / "twice.mixent").read_bytes() == (tmp_path / "m.mixent").read_bytes()
