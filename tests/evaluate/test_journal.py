"""A journal returns a fold only to the run, the data and the method that wrote it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mixent
from mixent.base.folds import assign_folds
from mixent.evaluate import cross_validate
from mixent.evaluate.journal import OtherJournalError, fingerprint, settings_of
from mixent.evaluate.samples import read_samples
from mixent.options import Search
from mixent.studies import size_curves

X, Y = load_iris(return_X_y=True)


def grid(n_components):
    return GridSearchCV(mixent.MixtureClassifier(), {"search": [Search("bic", n_components)]})


def frozen(n_rows, C=1.0):
    return FrozenEstimator(make_pipeline(StandardScaler(), LogisticRegression(C=C)).fit(X[:n_rows], Y[:n_rows]))


def unpicklable(n_rows):
    model = make_pipeline(FunctionTransformer(lambda rows: rows), GaussianNB())
    return FrozenEstimator(model.fit(X[:n_rows], Y[:n_rows]))


def test_settings_see_every_number_of_an_array():
    prior = np.full(2000, 1 / 2000)
    other = prior.copy()
    other[1000] += 1e-10
    for one, two in ((prior, other), ([prior], [other]), (prior.astype(object), other.astype(object))):
        assert settings_of(GaussianNB(priors=one)) != settings_of(GaussianNB(priors=two))
        assert settings_of(GaussianNB(priors=one)) == settings_of(GaussianNB(priors=one))


PAIRS = [
    (mixent.TunedClassifier(LogisticRegression()), mixent.TunedClassifier(LogisticRegression(C=2.0))),
    (
        mixent.MaxEntStackingClassifier([LogisticRegression(C=1e-4)]),
        mixent.MaxEntStackingClassifier([LogisticRegression(C=100)]),
    ),
    (VotingClassifier([("a", LogisticRegression(C=1))]), VotingClassifier([("a", LogisticRegression(C=2))])),
    (grid(2), grid(8)),
    (frozen(120), frozen(150)),
    (mixent.MaxEntStackingClassifier([frozen(120)]), mixent.MaxEntStackingClassifier([frozen(150)])),
    (GaussianProcessClassifier(RBF(1.0)), GaussianProcessClassifier(RBF(1.0001))),  # their texts are the same
]


@pytest.mark.parametrize(("one", "two"), PAIRS, ids=lambda model: type(model).__name__)
def test_settings_see_what_is_inside(one, two):
    assert settings_of(one) != settings_of(two)
    assert settings_of(one) == settings_of(clone(one)) and settings_of(two) == settings_of(clone(two))


def test_models_that_learned_the_same_have_the_same_settings():
    assert settings_of(frozen(120)) == settings_of(frozen(120))
    assert settings_of(FrozenEstimator(GaussianNB().fit(X, Y))) != settings_of(FrozenEstimator(GaussianNB()))


def test_a_model_that_cannot_be_pickled_equals_itself_alone():
    one, two = unpicklable(120), unpicklable(150)
    assert settings_of(one) == settings_of(one) != settings_of(two)


def test_classes_of_one_name_in_other_modules_differ():
    other = type("GaussianNB", (GaussianNB,), {"__module__": "elsewhere"})
    assert settings_of(GaussianNB()) != settings_of(other())


def test_a_journal_of_another_function_is_refused(tmp_path):
    path, methods = tmp_path / "folds.jsonl", {"f": RandomForestClassifier(5, random_state=0)}
    size_curves(methods, X, Y, sizes=[5], folds=3, journal=path)
    with pytest.raises(OtherJournalError, match="another function"):
        cross_validate(methods, X, Y, folds=3, journal=path)
    with pytest.raises(OtherJournalError, match="another function"):
        mixent.compare(X, Y, methods=methods, baselines=False, folds=3, n_jobs=1, journal=path)


@pytest.mark.parametrize("rows", [X, X.tolist(), pd.DataFrame(X, columns=list("abcd"))], ids=["array", "list", "frame"])
def test_a_method_may_be_added(rows, tmp_path):
    path, methods = tmp_path / "folds.jsonl", {"nb": GaussianNB()}
    first = cross_validate(methods, rows, Y, folds=3, journal=path)
    more = cross_validate(methods | {"mixture": mixent.MixtureClassifier(1)}, rows, Y, folds=3, journal=path)
    assert [record for record in more.records if record["method"] == "nb"] == first.records  # seconds, too
    assert cross_validate(methods, rows, Y, folds=3, journal=path).records == first.records


def test_rows_that_are_no_table_have_a_fingerprint():
    def of(texts):
        samples = read_samples(texts, [0, 1] * 3)
        return fingerprint(samples, assign_folds(samples.labels, folds=2, repeats=1, random_state=0))

    texts = ["a b", "c", "a", "c d", "b", "d"]
    assert of(texts) == of(list(texts)) != of([*texts[:-1], "e"])


def test_a_fingerprint_sees_the_type_of_labels():
    def of(y):
        samples = read_samples(X[:6], y)
        return fingerprint(samples, np.array([[0, 0, 1, 1, 2, 2]]))

    numbers = np.array([0, 1] * 3)
    assert of(numbers) == of(numbers.tolist()) == of(numbers.astype(np.int32))
    assert of(numbers) != of(numbers.astype(str))
