"""Wording of ensemble, saved."""

import builtins
import io
import json
import zipfile

import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mixent
from mixent import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntStackingClassifier,
    MEDClassifier,
    WeightBoostClassifier,
)
from mixent.persistence import SavedFileError

from ...ensemble.test_saved import FOREIGN, NAIVE, NUMBERS, OPTIONS, OwnClassifier, Y, fitted, stack


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            stack([("mixture", NAIVE), ("nb", GaussianNB())]),
            r"'nb' is a GaussianNB of scikit-learn, and a mixent file holds mixent's own models; take mixent bases, "
            r"give its answers as columns of the table \(OutputColumns\), or save\(model, path, foreign='skops'\)",
        ),
        (stack([GaussianNB()]), "'gaussiannb' is a GaussianNB of scikit-learn"),
        (stack([("pipe", make_pipeline(StandardScaler(), NAIVE))]), "'pipe' is a Pipeline of scikit-learn"),
        (stack([("frozen", FrozenEstimator(GaussianNB().fit(NUMBERS, Y)))]), "'frozen' is a GaussianNB"),
        (stack(BaggingClassifier(GaussianNB(), 2)), "the ensemble is a BaggingClassifier of scikit-learn"),
        (HMMStackingClassifier([("nb", GaussianNB())], **OPTIONS), "'nb' is a GaussianNB"),
        (
            AdaBoostM1Classifier(GaussianNB(), 2),
            r"the base of the model is a GaussianNB of scikit-learn, .*; take mixent bases, or save\(",
        ),
        (WeightBoostClassifier(GaussianNB(), 2), "the base of the model is a GaussianNB"),
        (stack([("ada", AdaBoostM1Classifier(GaussianNB(), 2))]), "the base of 'ada' is a GaussianNB"),
    ],
)
def test_a_foreign_base_is_refused_by_name(model, message, path):
    with pytest.raises(TypeError, match=message):
        mixent.save(model.fit(NUMBERS, Y), path)
    assert not path.exists()


def test_functions_inside_bases_are_refused_as_elsewhere(path):
    base = MEDClassifier(lambda a, b: a @ b.T, C=1.0, cv=2)
    with pytest.raises(TypeError, match="the kernel of this model is a function, and a mixent file holds no code"):
        mixent.save(stack([base]).fit(NUMBERS, Y), path)


def test_m_mixent_holds_a_model_of_another_library_that_needs(path):
    model = stack([("own", OwnClassifier())]).fit(NUMBERS, Y)
    mixent.save(model, path, foreign="skops")
    name = f"{OwnClassifier.__module__}.OwnClassifier"
    with pytest.raises(
        SavedFileError,
        match=rf"m.mixent holds a model of another library that needs {name}, which skops does not know to be "
        rf"harmless; if you trust the file, load\(path, trusted=\['{name}'\]\)",
    ):
        mixent.load(path)


@pytest.mark.parametrize("trusted", ["GaussianNB", [GaussianNB], [3]])
def test_trusted_is_a_list_of_names(trusted, path):
    with pytest.raises(TypeError, match="trusted must be a list of names of types; got "):
        mixent.load(path, trusted=trusted)


def test_foreign_is_a_word(path):
    with pytest.raises(ValueError, match="foreign must be 'skops' or None; got 'pickle'"):
        mixent.save(fitted("boosting"), path, foreign="pickle")


@pytest.mark.parametrize(
    "base",
    [make_pipeline(StandardScaler(), NAIVE), make_pipeline(FunctionTransformer(lambda X: X), GaussianNB())],
    ids=["a mixent model in a pipeline", "a function"],
)
def test_what_skops_cannot_read_again_is_not_written(base, path):
    model = stack([("pipe", base)]).fit(NUMBERS, Y)
    with pytest.raises(TypeError, match="skops cannot save a Pipeline of scikit-learn and read it again .*; a mixent "):
        mixent.save(model, path, foreign="skops")
    assert not path.exists()


def test_skops_is_for_estimators_alone(path):
    from sklearn.model_selection import StratifiedKFold

    model = MaxEntStackingClassifier([NAIVE], cv=StratifiedKFold(2), prior_variance=1.0).fit(NUMBERS, Y)
    with pytest.raises(TypeError, match=r"cv is a StratifiedKFold, which a mixent file cannot hold; set it to plain"):
        mixent.save(model, path, foreign="skops")


def test_without_skops(path, monkeypatch):
    model = FOREIGN["boosting"].fit(NUMBERS, Y)
    mixent.save(model, path, foreign="skops")
    result = builtins.__import__
    monkeypatch.setattr(
        builtins,
        "__import__",
        lambda name, *rest: (_ for _ in ()).throw(ImportError()) if "skops" in name else result(name, *rest),
    )
    with pytest.raises(ImportError, match=r'skops is needed to save a GaussianNB .*: pip install "mixent\[skops\]"'):
        mixent.save(model, path.with_name("other"), foreign="skops")
    with pytest.raises(SavedFileError, match=r"holds a model of another library: the package skops is needed to read"):
        mixent.load(path)


def altered(path, change, foreign=None):
    """The file with another header, or with other bytes for its first foreign part."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "header.json":
                tree = json.loads(content)
                change(tree["model"]["state"])
                content = json.dumps(tree)
            if name == "foreign/0" and foreign is not None:
                content = foreign
            new.writestr(name, content)
    path.write_bytes(buffer.getvalue())
    return path


def dropped(name):
    return lambda state: state.pop(name)


def put(name, value):
    return lambda state: state.update({name: value})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("boosting", dropped("estimators_"), "estimators_ is missing or is not of type list"),
        ("boosting", put("estimators_", []), "a stage is missing or is not a classifier"),
        ("boosting", put("estimators_", [1, 2, 3]), "a stage is missing or is not a classifier"),
        ("boosting", lambda s: s["estimators_"].pop(), "a stage is missing or is not a classifier"),
        ("boosting", lambda s: s["estimators_"][0]["state"].pop("params_"), "params_ is missing"),
        ("boosting", put("predict", 3), "sets 'predict' of AdaBoostM1Classifier, which is not data"),
        (
            "weighted boosting",
            put("binary_boostings_", {"$tuple": [1]}),
            "binary_boostings_ must hold BinaryBoosting objects",
        ),
        (
            "weighted boosting",
            put("binary_boostings_", {"$tuple": []}),
            "binary_boostings_ must hold BinaryBoosting objects",
        ),
        ("stack", dropped("fitted_"), "fitted_ does not hold the combined classifiers"),
        ("stack", lambda s: s["fitted_"].pop(), "fitted_ does not hold the combined classifiers"),
        (
            "stack",
            lambda s: s["fitted_"].append(s["fitted_"].pop() and 3),
            "a classifier is missing or is not a classifier",
        ),
        ("stack", dropped("members_"), "members_ is missing or is not of type Members"),
        ("stack", dropped("run_"), "run_ is missing or is not of type Run"),
        ("stack of places", put("regions_", {"$tuple": [1]}), "regions_ has no mixture"),
        ("chain", dropped("chains_"), "chains_ is missing"),
    ],
)
def test_a_damaged_ensemble_is_refused(name, change, message, path):
    mixent.save(fitted(name), path)
    with pytest.raises(SavedFileError, match=message):
        mixent.load(altered(path, change))


def skops_zip(schema):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as pack:
        pack.writestr("schema.json", json.dumps(schema))
    return buffer.getvalue()


CALL = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode", "__id__": 1, "content": "system"}


EVIL = {**CALL, "protocol": 2, "_skops_version": "0.11"}


@pytest.mark.parametrize(
    ("foreign", "message"),
    [
        (b"", "damaged|not a mixent file"),
        (b"no zip", "damaged|not a mixent file"),
        (skops_zip({}), "damaged"),
        (skops_zip(EVIL), "needs .*system, which skops does not know to be harmless|damaged"),
        (skops_zip(EVIL)[:-20], "damaged|not a mixent file"),
    ],
    ids=["empty", "no zip", "no node", "a call", "cut short"],  # a zip holds the time, and the names of tests may not
)
def test_changed_foreign_parts_are_refused(foreign, message, path):
    mixent.save(FOREIGN["boosting"].fit(NUMBERS, Y), path, foreign="skops")
    with pytest.raises(SavedFileError, match=message):
        mixent.load(altered(path, lambda state: None, foreign))
