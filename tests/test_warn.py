"""Warnings point to the user's line; notes are errors where the user wants them to be."""

import warnings

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent
from mixent.warn import DataWarning, warn, warn_notes


def caught_of(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def test_a_warning_points_to_the_first_line_outside_the_library():
    (caught,) = caught_of(lambda: warn("unusual"))
    assert caught.filename == __file__ and caught.category is UserWarning


def test_a_warning_of_an_estimator_points_to_the_users_line_also_through_a_pipeline():
    X, y = [[0.0], [0.1], [1.0], [1.1]] * 5, [0, 1, 1, 0] * 5
    model = mixent.MaxEntClassifier(max_iter=1)
    caught = caught_of(lambda: model.fit(X, y)) + caught_of(lambda: make_pipeline(StandardScaler(), model).fit(X, y))
    assert len(caught) == 2 and {entry.filename for entry in caught} == {__file__}


def test_the_notes_of_one_call_are_one_warning():
    assert caught_of(lambda: warn_notes([])) == []
    (caught,) = caught_of(lambda: warn_notes(["first note", "second note"]))
    assert caught.category is DataWarning and str(caught.message) == "first note; second note"


def test_notes_are_errors_inside_a_strict_context_only():
    with mixent.config_context(strict=True):
        warn_notes([])
        with pytest.raises(ValueError, match="first note"):
            warn_notes(["first note"])
        with mixent.config_context(strict=False), pytest.warns(DataWarning):
            warn_notes(["first note"])
    with pytest.warns(DataWarning):
        warn_notes(["first note"])
    with pytest.raises(ValueError, match="strict"), mixent.config_context(strict="yes"):
        pass
