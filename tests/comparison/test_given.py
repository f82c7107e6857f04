"""A comparison takes the name of the class column, and classifiers as they are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mixent
from mixent.base.recipes import Setting
from mixent.comparison.given import given_candidate
from mixent.comparison.shape import read_table, shape_of
from mixent.data import read_labels

from .conftest import make_table

QUICK = {"baselines": False, "n_jobs": 1, "folds": 2, "refit": False}
X, Y = make_table()
MIXED = X.assign(shade=np.where(X["u"] > 0.5, "dark", "light"))


def setting_of(X):
    return Setting(shape_of(read_table(X, "auto"), read_labels(Y, len(Y))), "auto", 0)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.from_pandas])
def test_the_class_may_be_the_name_of_a_column(library):
    whole = library(X.assign(kind=Y))
    by_name, by_values = (
        mixent.compare(*given, methods=["naive Bayes"], **QUICK) for given in ((whole, "kind"), (X, Y))
    )
    np.testing.assert_array_equal(by_name.cv.proba["naive Bayes"], by_values.cv.proba["naive Bayes"])
    assert list(by_name.data[0].columns) == ["u", "v"]


def test_names_and_classifiers_mix_in_a_list():
    comparison = mixent.compare(X, Y, methods=["naive Bayes", LogisticRegression(), LogisticRegression(C=9.0)], **QUICK)
    assert set(comparison.cv.methods) == {"naive Bayes", "LogisticRegression", "LogisticRegression 2"}
    assert comparison.options["methods"] == "own" and not comparison.cv.failures


def test_classifiers_of_scikit_learn_get_numbers_where_they_need_them():
    gappy = X.mask(X > 1.5)
    pipeline = make_pipeline(make_column_transformer((OneHotEncoder(), ["shade"])), GaussianNB())
    for classifier, encodings in {
        LogisticRegression(): {"complete": None, "gappy": "bits", "mixed": "bits"},
        RandomForestClassifier(): {"complete": None, "gappy": None, "mixed": "codes"},
        pipeline: {"complete": None, "gappy": None, "mixed": None},
        mixent.MaxEntClassifier(): {"complete": None, "gappy": None, "mixed": None},
    }.items():
        for table, encoding in zip((X, gappy, MIXED), encodings.values()):
            given = given_candidate("name", classifier, setting_of(table)).estimator
            if encoding is None:
                assert given is classifier
            else:
                assert given.estimator is classifier and given.encoding == encoding


def test_a_comparison_of_classifiers_on_a_table_with_categories():
    comparison = mixent.compare(MIXED, Y, methods=[LogisticRegression(), RandomForestClassifier(5)], **QUICK)
    assert not comparison.cv.failures and set(comparison.ranking()) == {"LogisticRegression", "RandomForestClassifier"}
    encoded = mixent.TunedClassifier(LogisticRegression())
    same = mixent.compare(MIXED, Y, methods={"LogisticRegression": encoded}, **QUICK)
    np.testing.assert_array_equal(comparison.cv.proba["LogisticRegression"], same.cv.proba["LogisticRegression"])
