"""Wording of comparison, candidates."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mixent import compare
from mixent.comparison import candidates
from mixent.comparison.candidates import recipes
from mixent.comparison.shape import read_table, shape_of
from mixent.data import read_labels

from ...comparison.test_candidates import SHAPE

ALWAYS = {"mixture", "shared mixture", "maximum entropy", "linear MED", "stack", "logistic regression"}


ALWAYS |= {"gradient boosting", "random forest", "naive Bayes"}


def left_out(**changes):
    made, skipped = candidates(replace(SHAPE, **changes))
    assert set(made) | set(skipped) == set(recipes()) and not set(made) & set(skipped) and set(made) >= ALWAYS
    return skipped


@pytest.mark.parametrize(
    ("changes", "names", "why"),
    [
        ({}, {"tree MED"}, "fewer than half of the columns are categorical"),
        ({"n_numbers": 0, "n_categories": 4}, {"Gaussian MED"}, "the table has no numeric column"),
        ({"n_bits": 80}, {"Gaussian MED", "tree MED"}, "it is slow with more than 60 one-hot encoded columns"),
        (
            {"n_labelled": 20_000},
            {
                *("Gaussian MED", "tree MED", "Parzen window", "kernel Fisher", "RBF MED", "RBF SVM"),
                "k nearest neighbors",
            },
            "it compares all pairs of rows, and there are more than 10000 rows",
        ),
        (
            {"n_classes": 12},
            {"Gaussian MED", "tree MED", "RBF MED"},
            "it is slow with more than 2000 margin constraints",
        ),
        ({"smallest_class": 4}, {"tree MED", "RBF SVM"}, "a class has fewer than 6 rows, too few for Platt"),
        ({"weighted": True}, {"tree MED", "k nearest neighbors"}, "it does not support weights"),
        ({"n_categories": 120, "n_numbers": 1}, {"tree MED"}, "there are more than 100 columns"),
    ],
)
def test_left_out_by_shape(changes, names, why):
    skipped = left_out(**changes)
    assert set(skipped) == names and any(reason.startswith(why) for reason in skipped.values())


def test_rows_columns_numeric_categorical_classes_rows_without_a_label():
    X = pd.DataFrame({"u": [1.0, np.nan, 3.0, 4.0], "c": ["a", "b", None, "a"]})
    shape = shape_of(read_table(X, "auto"), read_labels(["x", "y", None, "y"], 4), weighted=True)
    assert str(shape) == (
        "4 rows, 2 columns (1 numeric, 1 categorical), 2 classes, 1 rows without a label, 25 % of the cells "
        "missing, weighted"
    )


def test_naive_bayes_is_described_as_the_comparison_lists_it(table):
    """It is no method of mixent in the table and on the page, nor a class of another library."""
    comparison = compare(*table, methods=["naive Bayes"], baselines=False, folds=2, n_jobs=1)
    assert comparison.candidates["naive Bayes"].kind == "scikit-learn"
    text = str(comparison.winner.summary())
    assert text.startswith("Tuned classifier on encoded columns")
    assert "MixedNaiveBayes (GaussianNB and CategoricalNB of scikit-learn) on encoded columns." in " ".join(
        text.split()
    )
