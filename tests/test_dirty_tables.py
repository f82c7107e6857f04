"""Ordinary dirty tables are read as if they had been cleaned by hand, and a note tells what was done.

Both fits stop after a few iterations: the same numbers in give the same numbers out, converged or not.
"""

import warnings
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from tests import subjects
from tests.dirty import DIRT, pairs
from tests.subjects import SUBJECTS, same

import mixent
from mixent import (
    AdaBoostM1Classifier,
    DataWarning,
    HMMStackingClassifier,
    MaxEntClassifier,
    MaxEntStackingClassifier,
    MixtureClassifier,
    TunedClassifier,
    compare,
)
from mixent.data import kinds

OTHERS = ("Fuser", "stack of fitted ones")  # one reads answers, the members of the other were fitted to other columns
CHEAP = {
    "SharedMixtureClassifier": {"n_components": 2, "n_init": 1},
    "MaxEntClassifier": {"features": "moments"},
    "MaxEntJoint": {"max_components": 2},
    "FisherKernel": {"n_samples": 100},
    "ParzenClassifier": {"bandwidth": 0.5},
    "KernelFisherClassifier": {"kernel": "linear", "shrinkage": 0.1},
    "AdaBoostM1Classifier": {"n_estimators": 1},
    "WeightBoostClassifier": {"n_estimators": 1},
    "MaxEntStackingClassifier": {"estimators": [MixtureClassifier(1, "VVI")]},
    "HMMStackingClassifier": {"estimators": [MixtureClassifier(1, "VVI")], "calibration": None},
}
TABLE = subjects.TABLE[["height", "color"]]
Y = np.where(subjects.CLASS > 0, "oak", "ash")
SOME = [list(DIRT)[start::3] for start in range(3)]  # eight kinds at once
EVERY_PAIR = pairs(len(DIRT) * (len(DIRT) - 1) // 2)
TRAIN = np.arange(len(TABLE))[::-1]  # in another order, so that rows are not tied to their positions


def cheap(name, subject):
    """The same estimator with few iterations."""
    model = deepcopy(subject.model)
    for part in (model.set_params(**CHEAP.get(name, {})), *(getattr(model, "estimators", None) or ())):
        part.set_params(**{option: 2 for option in part.get_params() if option.split("__")[-1] == "max_iter"})
    return replace(subject, model=model)


MODELS = {
    name: cheap(name, subject)
    for name, subject in SUBJECTS.items()
    if isinstance(subject.X, pd.DataFrame) and name not in OTHERS
}


@pytest.fixture(autouse=True)
def few_categories(monkeypatch):
    """Rare categories are pooled beyond six, and not beyond a thousand."""
    monkeypatch.setattr(kinds, "MOST_CATEGORIES", 6)


def tables(*names):
    """The dirty table, and the same one cleaned by hand."""
    dirty, clean = TABLE, TABLE
    for name in names:
        dirty, clean = dirty.assign(**DIRT[name].dirty), clean.assign(**DIRT[name].clean)
    return dirty, clean


def caught_of(call):
    """What a call returns, and the notes it issues, in one warning that points to the caller."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        result = call()
    caught = [entry for entry in caught if entry.category is DataWarning]
    assert len(caught) <= 1 and all(Path(entry.filename).parent == Path(__file__).parent for entry in caught), caught
    return result, [note for entry in caught for note in entry.message.notes]


def named(words, notes):
    """Whether each of the columns is in quotes in a note."""
    return all(any(f"'{word}'" in note for note in notes) for word in words)


def noted(names):
    """The columns that a note at `fit` names."""
    return [DIRT[name].note for name in names if DIRT[name].note and not DIRT[name].absent]


@cache
def by_hand(model, names):
    """Answers to the table cleaned by hand."""
    subject, clean = MODELS[model], tables(*names)[1]
    absent = [column for name in names for column in DIRT[name].absent]
    fitted, _ = caught_of(lambda: subject.fit(clean.iloc[TRAIN], Y[TRAIN]))
    return caught_of(lambda: subject.said(fitted, clean.assign(**dict.fromkeys(absent, np.nan))))[0]


def check(model, *names):
    """Fit and predict a dirty table: notes, and the answers of the clean one."""
    subject, dirty = MODELS[model], tables(*names)[0]
    absent = [column for name in names for column in DIRT[name].absent]
    fitted, notes = caught_of(lambda: subject.fit(dirty.iloc[TRAIN], Y[TRAIN]))
    assert bool(notes) == bool(noted(names)) and named(noted(names), notes) and notes == fitted.notes_, names
    answers, notes = caught_of(lambda: subject.said(fitted, dirty.drop(columns=absent)))
    assert named(absent, notes), names
    same(answers, by_hand(model, tuple(name for name in names if DIRT[name].clean)), atol=1e-10)


def test_every_kind_of_dirt_is_in_some_pair():
    assert {name for pair in pairs() for name in pair} == set(DIRT)


@pytest.mark.parametrize("name", DIRT)
def test_a_dirty_column_is_read_as_if_cleaned_by_hand(name):
    check("MaxEntClassifier", name)


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_takes_pairs_of_dirt(model):
    for pair in pairs():
        check(model, *pair)


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_takes_eight_kinds_of_dirt_at_once(model):
    check(model, *SOME[list(MODELS).index(model) % len(SOME)])


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_takes_every_kind_and_every_pair(model):
    for names in [*((name,) for name in DIRT), *SOME, *EVERY_PAIR]:
        check(model, *names)


@pytest.mark.parametrize("labels", [np.append(["elm"], Y[1:]), np.r_[-1, (Y[1:] == "oak") + 0]], ids=["one row", "-1"])
@pytest.mark.parametrize("model", [name for name, subject in MODELS.items() if subject.takes_y])
def test_every_classifier_keeps_a_class_of_one_row(model, labels):
    fitted, notes = caught_of(lambda: MODELS[model].fit(TABLE, labels))
    assert notes == fitted.notes_ == list(mixent.data.read_labels(labels, len(labels)).notes)
    assert len(fitted.classes_) == 3 and len(notes) == 1 + (labels.dtype.kind == "i")


# --- compare ----------------------------------------------------------------------------------------------------------


def compared(table):
    methods = {"mixture": MixtureClassifier(1, "VVI", max_iter=2)}
    return compare(table, Y, methods=methods, baselines=False, folds=2, n_jobs=1, refit=False)


@cache
def scores_by_hand(names):
    return caught_of(lambda: compared(tables(*names)[1]))[0].cv.records


def check_comparison(*names):
    """Compare methods on a dirty table: notes, and the scores of the clean one."""
    comparison, notes = caught_of(lambda: compared(tables(*names)[0]))
    assert bool(notes) == bool(noted(names)) and named(noted(names), notes), names
    expected = scores_by_hand(tuple(name for name in names if DIRT[name].clean))
    for record, other in zip(comparison.cv.records, expected, strict=True):
        assert record["log_loss"] == pytest.approx(other["log_loss"], abs=1e-9), names


@pytest.mark.parametrize("names", SOME, ids=["first", "second", "third"])
def test_compare_takes_eight_kinds_of_dirt_at_once(names):
    check_comparison(*names)


def test_compare_takes_pairs_of_dirt():
    for pair in pairs():
        check_comparison(*pair)


@pytest.mark.slow
def test_compare_takes_every_kind_and_every_pair():
    for names in [*((name,) for name in DIRT), *EVERY_PAIR]:
        check_comparison(*names)


def test_compare_takes_all_dirt_at_once_and_recommends_as_if_cleaned_by_hand():
    methods = {"maximum entropy": MaxEntClassifier(prior_variance=1.0), "mixture": MixtureClassifier(1, "VVI")}
    options = {"methods": methods, "baselines": False, "folds": 2, "n_jobs": 1}
    dirty, clean = tables(*DIRT)
    first, second = (caught_of(lambda X=X: compare(X, Y, **options))[0] for X in (dirty, clean))
    assert first.recommended == second.recommended
    predicted, _ = caught_of(lambda: first.winner.predict(dirty))
    assert predicted.tolist() == second.winner.predict(clean).tolist()


@pytest.mark.parametrize("name", [name for name, dirt in DIRT.items() if dirt.note and not dirt.absent])
def test_a_note_is_an_error_where_the_user_wants_it(name):
    with mixent.config_context(strict=True), pytest.raises(ValueError, match=DIRT[name].note):
        MODELS["MaxEntClassifier"].fit(tables(name)[0], Y)


# --- one warning for a call -------------------------------------------------------------------------------------------

NEW = subjects.TABLE.assign(extra=1.0, height=["big", *subjects.TABLE.height[1:]], color="pink").drop(columns="age")
MEMBERS = [("whole", MaxEntClassifier(prior_variance=1.0, features="moments")), ("part", MixtureClassifier(1, "VVI"))]
COMPOSITES = {
    "stack of other columns": MaxEntStackingClassifier(MEMBERS, cv=2, inputs={"part": ["height"]}, prior_variance=1.0),
    "stack with regions": MaxEntStackingClassifier(MEMBERS, cv=2, regions="class", prior_variance=1.0),
    "stack of boosting": MaxEntStackingClassifier(AdaBoostM1Classifier(n_estimators=2), cv=2, prior_variance=1.0),
    "stack of tuned": HMMStackingClassifier([TunedClassifier(GaussianNB()), MEMBERS[0]], cv=2),
    "stack of stacks": MaxEntStackingClassifier([HMMStackingClassifier(MEMBERS, cv=2), MEMBERS[0]], cv=2),
    "boosting of tuned": AdaBoostM1Classifier(TunedClassifier(GaussianNB()), n_estimators=2),
}
EVERY = {name: subject.model for name, subject in MODELS.items()} | COMPOSITES
METHODS = ("predict", "predict_proba", "score_samples", "transform", "impute", "base_outputs", "stage_proba", "explain")


@pytest.mark.parametrize("model", EVERY)
def test_new_rows_give_one_warning_for_a_call(model):
    fitted, notes = caught_of(lambda: deepcopy(EVERY[model]).fit(subjects.TABLE, Y))
    words = ["extra", "age", "big", *["pink"] * (model != "MEDNoveltyDetector")]  # to which another value is new
    assert not notes
    for method in METHODS:
        if hasattr(fitted, method):
            _, notes = caught_of(lambda method=method: getattr(fitted, method)(NEW))
            assert named(words, notes) and len(set(notes)) == len(notes) == len(words), method
