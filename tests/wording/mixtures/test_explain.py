"""Wording of mixtures, explain."""

import re

import numpy as np
import pytest

from mixent import MixtureClassifier, SharedMixtureClassifier

from ...mixtures.test_explain import every_model


def test_labels_that_are_no_class(fitted, draw):
    model, X = fitted["shared"]
    for label in ("d", 0, ["a"]):
        message = f"label must be one of the classes ['a', 'b', 'c']; got {label!r}"
        with pytest.raises(ValueError, match=re.escape(message)):
            model.explain(X, label)
    numbers, y = draw(n=60)
    found = MixtureClassifier(1).fit(numbers, y).explain(numbers, 2)
    assert (found.label == 2).all()


@pytest.mark.parametrize("n_rows", [0, -1, 1.5, "2", None, True])
def test_so_many_typical_rows_is_a_whole_number(fitted, n_rows):
    model, X = fitted["shared"]
    with pytest.raises(ValueError, match="n_rows must be a whole number >= 1; got"):
        model.typical_rows(X, n_rows)


@pytest.mark.parametrize("method", ["explain", "typical_rows"])
def test_an_unfitted_model_explains_nothing(method):
    from sklearn.exceptions import NotFittedError

    for model in (MixtureClassifier(1), SharedMixtureClassifier(2)):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(model, method)(np.ones((2, 3)))


@every_model
def test_rival_must_be_another_class_than_label(fitted, name):
    model, X = fitted[name]
    _log_proba, classes = model.predict_log_proba(X), model.classes_.tolist()
    with pytest.raises(ValueError, match="rival must be another class than label"):
        model.explain(X, classes[0], classes[0])
    with pytest.raises(ValueError, match="rival must be one of the classes"):
        model.explain(X, classes[0], "no such class")
