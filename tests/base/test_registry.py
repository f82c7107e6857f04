"""An estimator states what the surfaces need once; every surface reads it from the registry."""

import inspect

import numpy as np
import pytest
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import mixent
from mixent.base import registry
from mixent.base.describe import document
from mixent.base.options import Estimator
from mixent.base.registry import by_name, entries, register, unregister
from mixent.persistence.files import known_classes


class Majority(ClassifierMixin, Estimator):
    """Answers the most frequent class."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        check_is_fitted(self)
        return np.tile(self.share_, (len(X), 1))


@pytest.fixture
def majority():
    register(
        "majority",
        task="classification",
        title="Most frequent class",
        describe=lambda model: document(model, f"Answers {model.classes_[model.share_.argmax()]}."),
        state={"classes_": np.ndarray, "share_": np.ndarray},
    )(Majority)
    yield Majority
    unregister(Majority)


def test_every_public_estimator_is_registered_and_listed():
    listed = {entry.cls.__name__ for entry in entries() if entry.listed}
    public = {name for name in mixent.__all__ if inspect.isclass(v := getattr(mixent, name)) and hasattr(v, "fit")}
    assert listed == public


def test_names_are_unique_and_made_of_words():
    names = [entry.name for entry in entries()]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and name == name.lower() for name in names)


def test_every_entry_is_complete():
    for entry in entries():
        assert entry.title[0].isupper() and not entry.title.endswith(".")
        assert entry.state and callable(entry.describe)
        assert type(entry.make()) is entry.cls


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.name)
def test_a_model_that_is_not_fitted_has_no_summary(entry):
    with pytest.raises(NotFittedError):
        entry.make().summary()


def test_a_registered_estimator_can_be_saved_and_loaded(majority, tmp_path):
    model = majority().fit(np.zeros((3, 1)), ["a", "b", "b"])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.predict_proba([[0]]), model.predict_proba([[0]]))
    assert str(again.summary()).splitlines()[-1] == "Answers b."


def test_a_class_of_the_same_name_does_not_take_the_name_of_a_model():
    other = type("ParzenClassifier", (Majority,), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match="'parzen'"):
        register("parzen", task="classification", title="Other", describe=str)(other)
    assert by_name("parzen").cls is mixent.ParzenClassifier


def test_two_classes_of_one_package_cannot_have_one_name_in_files(majority):
    """Refused when the second is registered; the models that are known can still be saved and loaded."""
    package = Majority.__module__.partition(".")[0]
    other = type("Majority", (Majority,), {"__module__": f"{package}.other"})
    with pytest.raises(ValueError, match="Majority"):
        register("other", task="classification", title="Other", describe=str)(other)
    part = type("Majority", (), {"__module__": f"{package}.parts"})
    third = type("Third", (Majority,), {"__module__": f"{package}.other"})
    with pytest.raises(ValueError, match="Majority"):
        register("third", task="classification", title="Third", describe=str, parts=(part,))(third)
    assert not {"other", "third"} & {entry.name for entry in entries()} and majority in known_classes().values()


def test_one_estimator_adapts_classifiers_of_other_libraries():
    assert [entry.cls for entry in entries() if entry.adapter] == [mixent.TunedClassifier]


def test_names_in_files_are_of_one_class_each():
    classes = known_classes()
    parts = {cls for entry in entries() for cls in (entry.cls, *entry.parts)}
    assert len(set(classes.values())) == len(classes) and parts <= set(classes.values())


def test_a_broken_plug_in_stops_nobody(monkeypatch):
    class Point:
        value = "somewhere:Model"

        def load(self):
            raise ImportError("no such thing")

    monkeypatch.setattr(registry, "_loaded", set(registry.BUILT_IN))
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    with pytest.warns(RuntimeWarning, match="somewhere:Model"):
        assert len(entries()) > 20
