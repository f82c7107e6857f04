"""Wording of evaluate, bounds."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent import GaussianMixture, MixtureClassifier
from mixent.datasets import make_orchestra
from mixent.evaluate import bayes_error, error_bounds, error_report

from ...evaluate.test_bounds import CLASSES, case


def test_errors_on_labelled_rows():
    p, q, y, _ = case()
    report = error_bounds(y, q, CLASSES, true_proba=p)
    lines = str(report).splitlines()
    assert lines[0] == "Errors on 200 labelled rows; p is the truth, q the model"
    assert "upper bound on the excess error J - J*, never an error estimate" in lines[-2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [None, "z", "c"]}, "row 1 of y has the label 'z'"),
        ({"y": [None, "b"]}, "y has 2 rows, proba has 3"),
        ({"y": [None, None, None]}, "y holds no label"),
        ({"y": [], "proba": np.zeros((0, 3))}, "y holds no label"),
        ({"classes": [], "y": [None, "b", "c"]}, "proba has 3 columns for 0 classes"),
        ({"proba": np.eye(3)[:, :0]}, "proba has 0 columns for 3 classes"),
        ({"proba": np.eye(3)[:, :2]}, "pass classes= in the order of the columns"),
        ({"y": [None, "b", "c"], "proba": np.eye(3) * [1, 1, 2]}, "row 2 is"),
        (
            {"true_proba": np.eye(3)[:2]},
            r"shape of proba, \(3, 3\), with the same rows and classes; its shape is \(2, 3",
        ),
        ({"y": [None, "b", "c"], "true_proba": np.eye(3) * [1, 1, 2]}, "row of true_proba .* row 2 is"),
        ({"true_proba": np.eye(3) * np.nan}, "row of true_proba .* row 0 is"),
        ({"sample_weight": [1, 2]}, "one value per row"),
        ({"y": [None, "b", "c"], "sample_weight": [1, 0, 0]}, "every labelled row has sample_weight 0"),
    ],
)
def test_bad_input_says_what_to_do(change, message):
    given = {"y": CLASSES, "proba": np.eye(3), "classes": CLASSES} | change
    with pytest.raises(ValueError, match=message):
        error_bounds(**given)


def test_models_that_do_not_fit_say_what_is_missing():
    model = LogisticRegression()
    with pytest.raises(TypeError, match="LogisticRegression has no sample; .* or use error_report"):
        bayes_error(model)
    with pytest.raises(TypeError, match="SimpleNamespace has no predict_proba; bayes_error draws"):
        bayes_error(SimpleNamespace(sample=None))
    with pytest.raises(TypeError, match="LogisticRegression has no classes_; pass a fitted classifier"):
        error_report(model, [[0.0]], ["a"])
    with pytest.raises(TypeError, match="SimpleNamespace has no predict_proba; pass a fitted classifier"):
        error_report(SimpleNamespace(), [[0.0]], ["a"])
    mixture = GaussianMixture(1).fit(np.arange(10.0)[:, None])
    for n_samples in (1, 2.5, "many"):
        with pytest.raises(ValueError, match="n_samples must be a whole number of at least 2"):
            bayes_error(mixture, n_samples)


def test_class_probabilities_are_no_labels():
    rows = make_orchestra(50, random_state=0)
    model = MixtureClassifier(1, random_state=0).fit(rows.X, rows.y)
    with pytest.raises(ValueError, match=r"shape \(50, 2\), as class probabilities have.*pass them as true_proba"):
        error_report(model, rows.X, model.predict_proba(rows.X))
