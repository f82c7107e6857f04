"""Ensembles in files: what is mixent's own is saved as it is, what is not is refused by name or goes through skops."""

import copy
import time
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
from sklearn.preprocessing import StandardScaler

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


@pytest.mark.parametrize("cls", [MaxEntStackingClassifier, HMMStackingClassifier])
def test_a_stack_with_a_classifier_that_abstains(cls, path):
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    frame = pd.DataFrame(rng.normal(size=(90, 2)) + y[:, None], columns=["a", "b"])
    frame["p0"] = rng.random(90)
    frame["p1"] = 1 - frame["p0"]
    frame.loc[::3, ["p0", "p1"]] = np.nan
    model = cls([("own", MixtureClassifier(1)), ("other", ["p0", "p1"])], cv=3, random_state=0).fit(frame, y)
    assert np.isnan(model.transform(frame)).any()
    again = saved(model, path)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))


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
        match="another library",
    ):
        mixent.load(path)
    with pytest.raises(SavedFileError, match="OwnClassifier"):
        mixent.load(path, trusted=["another.Class"])
    again = mixent.load(path, trusted=[name])
    np.testing.assert_array_equal(again.predict_proba(NUMBERS), model.predict_proba(NUMBERS))


# files that were changed


def nested(whole, depth, hold):
    """A model that holds itself several times, and so on: a small file that would answer for ever."""
    inner = whole
    for _ in range(depth):
        outer = copy.copy(whole)
        hold(outer, inner)
        inner = outer
    return inner


@pytest.mark.parametrize("depth", [9, 25])
@pytest.mark.parametrize("kind", ["stack", "boosting"])
def test_models_that_would_take_exponential_time_are_refused(path, kind, depth):
    if kind == "stack":
        whole, held = stack(BASES[:2]).fit(X, Y), "fitted_"
    else:
        whole, held = mixent.AdaBoostM1Classifier(n_estimators=3, random_state=0).fit(X, Y), "estimators_"
    n = len(getattr(whole, held))
    assert n > 1
    mixent.save(nested(whole, depth, lambda outer, inner: setattr(outer, held, [inner] * n)), path)
    assert path.stat().st_size < 1e6
    start = time.perf_counter()
    with pytest.raises(SavedFileError, match="nested|exponential"):
        mixent.load(path)
    assert time.perf_counter() - start < 2.0


def test_models_within_models_are_read(path):
    """Three deep, the same one twice in each; shared objects stay shared."""
    whole = stack(BASES[:2]).fit(X, Y)
    model = nested(whole, 3, lambda outer, inner: setattr(outer, "fitted_", [inner, inner]))
    again = saved(model, path)
    assert again.fitted_[0] is again.fitted_[1]


def test_the_columns_of_a_stack_are_those_of_its_classifiers():
    from mixent.base.registry import entry_of

    frame = pd.DataFrame({"size": np.arange(40) % 7 + np.arange(40) % 2 + 0.5, "color": ["red", "blue"] * 20})
    inner = mixent.MaxEntStackingClassifier([mixent.MixtureClassifier(1)], cv=2, prior_variance=1.0)
    model = mixent.MaxEntStackingClassifier([("inner", inner)], cv=2, prior_variance=1.0).fit(frame, np.arange(40) % 2)
    assert [c.kind for c in entry_of(model).columns(model).columns] == ["continuous", "categorical"]
    numbers = np.column_stack([np.random.default_rng(0).normal(size=60), np.arange(60) % 2])
    model = mixent.MaxEntStackingClassifier([OutputColumns(1)], cv=2, prior_variance=1.0).fit(numbers, numbers[:, 1])
    assert [c.kind for c in entry_of(model).columns(model).columns] == ["continuous", "categorical"]
