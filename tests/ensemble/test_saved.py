"""Ensembles in files: what is mixent's own is saved as it is, what is not is refused by name or goes through skops."""

import builtins
import copy
import io
import json
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mixent
from mixent import (
    AdaBoostM1Classifier,
    HMMStackingClassifier,
    MaxEntClassifier,
    MaxEntStackingClassifier,
    MEDClassifier,
    MixtureClassifier,
    WeightBoostClassifier,
)
from mixent.core.serialize import read_header
from mixent.ensemble import OutputColumns
from mixent.options import InputRegions
from mixent.persistence import SavedFileError


def make_table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes"])[np.arange(n) % 2]
    sure = 1 / (1 + np.exp(-rng.normal(size=n) - (y == "yes")))
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1.5 * (y == "yes"),
            "color": np.where(rng.random(n) < 0.7, np.where(y == "yes", "red", "blue"), "green"),
            "p_no": 1 - sure,
            "p_yes": sure,
            "said": np.where(rng.random(n) < 0.8, y, "unsure"),
        }
    )
    X.loc[::9, "size"] = np.nan
    X.loc[::7, "said"] = None
    return X, y


X, Y = make_table()
NUMBERS = X[["p_yes", "p_no"]].to_numpy()
NAIVE = MixtureClassifier(1, "VVI")
BASES = [
    ("mixture", NAIVE),
    ("entropy", MaxEntClassifier(prior_variance=1.0)),
    ("margin", MEDClassifier(C=1.0, cv=2)),
    ("boosted", AdaBoostM1Classifier(n_estimators=2)),
    ("vendor", ["p_no", "p_yes"]),
    ("panel", OutputColumns("said")),
]
OPTIONS = {"cv": 2, "random_state": 0}


def stack(bases, **options):
    return MaxEntStackingClassifier(bases, **OPTIONS, **{"prior_variance": 1.0, **options})


MODELS = {
    "boosting": AdaBoostM1Classifier(n_estimators=3),
    "boosting of margins": AdaBoostM1Classifier(MEDClassifier(C=1.0, cv=2), 2),
    "weighted boosting": WeightBoostClassifier(NAIVE, n_estimators=3, progress=lambda *told: None),
    "stack": stack(BASES),
    "stack of places": stack(BASES, regions=InputRegions(max_components=2)),
    "stack of places, class": stack(BASES[:2], regions=InputRegions("class", max_components=2), constraints="diagonal"),
    "stack of inputs": stack(BASES[:2], regions=InputRegions("pooled", max_components=2), inputs={"mixture": ["size"]}),
    "stack of a boosting": MaxEntStackingClassifier.from_boosting(AdaBoostM1Classifier(n_estimators=3), **OPTIONS),
    "stack of stacks": stack([("inner", stack(BASES[:2])), ("vendor", {"no": "p_no", "yes": "p_yes"})]),
    "chain": HMMStackingClassifier(BASES[:2], **OPTIONS),
    "chain of a boosting": HMMStackingClassifier(WeightBoostClassifier(n_estimators=3), **OPTIONS),
    "frozen": stack([("mixture", FrozenEstimator(MixtureClassifier(1, "VVI").fit(X, Y)))]),
}


@cache
def fitted(name):
    return MODELS[name].fit(X, Y)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.mixent"


def saved(model, path, **options):
    mixent.save(model, path, **options)
    return mixent.load(path)


@pytest.mark.parametrize("name", MODELS)
def test_an_ensemble_of_mixent_models_comes_back_whole(name, path):
    model = fitted(name)
    again = saved(model, path)
    assert type(again) is type(model) and again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert callable(model.progress) or model.progress is False
    assert again.progress is False
    mixent.save(again, path.with_name("twice"))
    assert path.with_name("twice").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["boosting", "stack of places", "chain"])
def test_it_can_be_fitted_again(name, path):
    model = fitted(name)
    again = saved(model, path).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_three_classes_and_what_else_a_model_can_do(path):
    y = np.where(np.arange(60) % 3 == 0, 2, Y == "yes").astype(int)
    for model in (WeightBoostClassifier(n_estimators=2), stack(BASES[:1])):
        model = model.fit(X, y).adjust_priors(X[y == 1])
        again = saved(model, path)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.classes_, [0, 1, 2])
    pd.testing.assert_frame_equal(again.explain(X).frame(), model.explain(X).frame())
    pd.testing.assert_frame_equal(again.constraint_table().frame(), model.constraint_table().frame())


def test_what_is_shared_is_written_once(path):
    boosting = AdaBoostM1Classifier(n_estimators=10).fit(X, Y)
    mixent.save(boosting, path)
    alone = path.stat().st_size
    model = MaxEntStackingClassifier(boosting, cv="prefit", prior_variance=1.0).fit(X, Y)
    again = saved(model, path)
    assert again.fitted_ is again.estimators is again.members_.ensemble
    assert path.stat().st_size < 1.3 * alone
    again = saved(fitted("stack of places"), path)
    assert len(set(map(id, again.regions_))) == 1 and again.members_.bases[0] is again.estimators[0][1]


# what is not mixent's own


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


FOREIGN = {
    "stack": stack([("mixture", NAIVE), ("nb", GaussianNB()), ("pipe", make_pipeline(StandardScaler(), GaussianNB()))]),
    "bagging": stack(BaggingClassifier(GaussianNB(), 2)),
    "boosting": AdaBoostM1Classifier(GaussianNB(), 2),
    "weighted boosting": WeightBoostClassifier(GaussianNB(), 2),
    "places": stack([("nb", GaussianNB())], regions=InputRegions(max_components=2)),
    "chain": HMMStackingClassifier([("nb", GaussianNB()), ("mixture", NAIVE)], **OPTIONS),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_skops_takes_them(name, path):
    model = FOREIGN[name].fit(NUMBERS, Y)
    again = saved(model, path, foreign="skops")
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), model.predict_proba(NUMBERS))
    assert read_header(path)["n_foreign"] == sum(n.startswith("foreign/") for n in zipfile.ZipFile(path).namelist())


class OwnClassifier(ClassifierMixin, BaseEstimator):
    """A class that skops does not know."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X)[:, 0] > 0.5).astype(int)]


def test_types_of_other_libraries_are_read_only_where_the_user_trusts_them(path):
    model = stack([("own", OwnClassifier())]).fit(NUMBERS, Y)
    mixent.save(model, path, foreign="skops")
    name = f"{OwnClassifier.__module__}.OwnClassifier"
    with pytest.raises(
        SavedFileError,
        match=rf"m.mixent: holds a model of another library that needs {name}, which skops does not know to be "
        rf"harmless; if you trust the file, load\(path, trusted=\['{name}'\]\)",
    ):
        mixent.load(path)
    with pytest.raises(SavedFileError, match="OwnClassifier"):
        mixent.load(path, trusted=["another.Class"])
    again = mixent.load(path, trusted=[name])
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), model.predict_proba(NUMBERS))


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
    found = builtins.__import__
    monkeypatch.setattr(
        builtins,
        "__import__",
        lambda name, *rest: (_ for _ in ()).throw(ImportError()) if "skops" in name else found(name, *rest),
    )
    with pytest.raises(ImportError, match=r'skops is needed to save a GaussianNB .*: pip install "mixent\[skops\]"'):
        mixent.save(model, path.with_name("other"), foreign="skops")
    with pytest.raises(SavedFileError, match=r"holds a model of another library: the package skops is needed to read"):
        mixent.load(path)


# files that were changed


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
        ("boosting", dropped("estimators_"), "estimators_ is missing or no list"),
        ("boosting", put("estimators_", []), "a stage is missing or no classifier"),
        ("boosting", put("estimators_", [1, 2, 3]), "a stage is missing or no classifier"),
        ("boosting", lambda s: s["estimators_"].pop(), "a stage is missing or no classifier"),
        ("boosting", lambda s: s["estimators_"][0]["state"].pop("params_"), "params_ is missing"),
        ("boosting", put("predict", 3), "sets 'predict' of AdaBoostM1Classifier, which is not data"),
        ("weighted boosting", put("binary_boostings_", {"$tuple": [1]}), "binary_boostings_ holds no boosting"),
        ("weighted boosting", put("binary_boostings_", {"$tuple": []}), "binary_boostings_ holds no boosting"),
        ("stack", dropped("fitted_"), "fitted_ are not the classifiers that are combined"),
        ("stack", lambda s: s["fitted_"].pop(), "fitted_ are not the classifiers that are combined"),
        ("stack", lambda s: s["fitted_"].append(s["fitted_"].pop() and 3), "a classifier is missing or none"),
        ("stack", dropped("members_"), "members_ is missing or no Members"),
        ("stack", dropped("run_"), "run_ is missing or no Run"),
        ("stack of places", put("regions_", {"$tuple": [1]}), "regions_ have no mixture"),
        ("chain", dropped("chains_"), "chains_ is missing or no tuple"),
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


def test_models_within_models_are_looked_at_once(path):
    """Ever deeper stacks of the same one twice would take for ever otherwise."""
    whole = inner = stack(BASES[:2]).fit(X, Y)
    for _ in range(40):
        outer = copy.copy(whole)
        outer.fitted_ = [inner, inner]
        inner = outer
    again = saved(inner, path)
    assert again.fitted_[0] is again.fitted_[1] and path.stat().st_size < 1e6


def test_the_columns_of_a_stack_are_those_of_its_classifiers():
    from mixent.base.registry import entry_of

    frame = pd.DataFrame({"size": np.arange(40) % 7 + np.arange(40) % 2 + 0.5, "color": ["red", "blue"] * 20})
    inner = mixent.MaxEntStackingClassifier([mixent.MixtureClassifier(1)], cv=2, prior_variance=1.0)
    model = mixent.MaxEntStackingClassifier([("inner", inner)], cv=2, prior_variance=1.0).fit(frame, np.arange(40) % 2)
    assert [c.kind for c in entry_of(model).columns(model).columns] == ["continuous", "categorical"]
    numbers = np.column_stack([np.random.default_rng(0).normal(size=60), np.arange(60) % 2])
    model = mixent.MaxEntStackingClassifier([OutputColumns(1)], cv=2, prior_variance=1.0).fit(numbers, numbers[:, 1])
    assert [c.kind for c in entry_of(model).columns(model).columns] == ["continuous", "categorical"]
