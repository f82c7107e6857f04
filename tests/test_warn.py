"""Warnings point to the user's line; notes are errors where the user wants them to be."""

import pickle
import re
import warnings
from copy import deepcopy
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent
from mixent.warn import Caught, DataWarning, NotesError, results_of, warn, warn_notes

from . import subjects
from .subjects import PUBLIC, SUBJECTS, TABLE, Y


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


def test_an_error_of_notes_can_be_pickled():
    error = pickle.loads(pickle.dumps(NotesError("first note", "second note")))
    assert error.args == ("first note", "second note") and str(error).startswith("first note; second note")


def test_only_one_module_issues_warnings():
    source = Path(mixent.__file__).parent
    found = [
        path for path in source.rglob("*.py") if re.search(r"\bwarnings\.warn\(", path.read_text(encoding="utf-8"))
    ]
    assert found == [source / "warn.py"]


def hasty(name):
    """An estimator that cannot converge, and whose parts cannot."""
    model = deepcopy(SUBJECTS[name].model)
    changed = {option: 1 for option in model.get_params() if option.split("__")[-1] == "max_iter"}
    single = [option for option, value in model.get_params().items() if option.endswith("n_components") and value == 1]
    changed |= dict.fromkeys(single, 2)  # one component is fitted in one update
    if isinstance(getattr(model, "estimators", None), list):
        changed["estimators"] = [mixent.MixtureClassifier(2, "VVI", max_iter=1), mixent.MixtureClassifier(1, "VVI")]
    return model.set_params(**changed)


SILENT = {  # which fit without iterating, and warn of nothing
    "ParzenClassifier",
    "KernelFisherClassifier",
    "AdaBoostM1Classifier",
    "WeightBoostClassifier",
    "TunedClassifier",
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_warning_of_fit_points_to_the_users_line(name):
    one = SUBJECTS[name]
    caught = caught_of(lambda: hasty(name).fit(one.X, Y if one.takes_y else None))
    assert {entry.filename for entry in caught} == (set() if name in SILENT else {__file__})


@pytest.mark.parametrize("name", [name for name in PUBLIC if SUBJECTS[name].X is TABLE])
def test_warnings_of_unseen_categories_point_to_the_users_line(name):
    one, new = SUBJECTS[name], TABLE.assign(color="violet")
    caught = caught_of(lambda: one.said(one.usual, new))
    assert {entry.filename for entry in caught} <= {subjects.__file__}


def test_warnings_that_were_caught_are_issued_once_and_point_to_the_users_line():
    def noisy(value):
        warn("unusual")
        return value

    outcomes = [Caught(noisy)(value) for value in (1, 2)]
    (caught,) = caught_of(lambda: outcomes.append(results_of(outcomes)))
    assert outcomes[-1] == [1, 2] and caught.filename == __file__ and str(caught.message) == "unusual"


@pytest.mark.slow
def test_warnings_of_other_processes_are_issued_once_and_point_to_the_users_line(capfd):
    model = hasty("HMMStackingClassifier").set_params(n_jobs=2, max_iter=200)
    caught = caught_of(lambda: model.fit(TABLE, Y))
    assert {entry.filename for entry in caught} == {__file__}
    assert len({str(entry.message) for entry in caught}) == 1 and len(caught) == 2  # in folds, and on all rows
    assert capfd.readouterr().err == ""


def test_a_data_warning_holds_its_notes():
    with pytest.warns(DataWarning, match="^one; two$") as caught:
        warn_notes(["one", "two"])
    assert caught[0].message.notes == ("one", "two")
    copy = pickle.loads(pickle.dumps(caught[0].message))  # as it comes from another process
    assert str(copy) == "one; two"
