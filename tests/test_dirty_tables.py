"""Ordinary dirty tables are read as if they had been cleaned by hand, and a note tells what was done."""

import warnings

import numpy as np
import pandas as pd
import pytest
from tests.dirty import DIRT, pairs
from tests.subjects import SUBJECTS, TABLE, Y, same

import mixent
from mixent import DataWarning, MaxEntClassifier, compare

OTHERS = ("Fuser", "stack of fitted ones")  # one reads answers, the members of the other were fitted to other columns
MODELS = {name: one for name, one in SUBJECTS.items() if isinstance(one.X, pd.DataFrame) and name not in OTHERS}
SOME = [list(DIRT)[start::3] for start in range(3)]  # seven kinds at once
TRAIN = np.arange(len(TABLE))[::-1]  # in another order, so that rows are not tied to their positions


def tables(*names):
    """The dirty table, and the same one cleaned by hand."""
    dirty, clean = TABLE, TABLE
    for name in names:
        dirty, clean = dirty.assign(**DIRT[name].dirty), clean.assign(**DIRT[name].clean)
    return dirty, clean


def caught_of(call):
    """What a call returns, and the notes it issues."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", DataWarning)
        result = call()
    return result, [str(entry.message) for entry in caught if entry.category is DataWarning]


def check(subject, *names):
    """Fit and predict a dirty table: notes, and the answers of the clean one."""
    dirty, clean = tables(*names)
    absent = [column for name in names for column in DIRT[name].absent]
    model, notes = caught_of(lambda: subject.fit(dirty.iloc[TRAIN], Y[TRAIN]))
    expected = [DIRT[name].note for name in names if DIRT[name].note and not DIRT[name].absent]
    assert len(notes) == bool(expected)  # one warning for a call
    assert len(names) > 2 or all(any(f"'{word}'" in note for note in model.notes_) for word in expected)
    answers, notes = caught_of(lambda: subject.said(model, dirty.drop(columns=absent)))
    assert all(f"'{column}'" in "".join(notes) for column in absent)
    by_hand, _ = caught_of(lambda: subject.fit(clean.iloc[TRAIN], Y[TRAIN]))
    same(answers, subject.said(by_hand, clean.assign(**dict.fromkeys(absent, np.nan))), atol=1e-10)


@pytest.mark.parametrize("name", DIRT)
def test_a_dirty_column_is_read_as_if_cleaned_by_hand(name):
    check(SUBJECTS["MaxEntClassifier"], name)


@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_takes_seven_kinds_of_dirt_at_once(model):
    check(MODELS[model], *SOME[list(MODELS).index(model) % len(SOME)])


@pytest.mark.parametrize("pair", pairs(), ids=" and ".join)
def test_every_estimator_takes_pairs_of_dirt(pair):
    """Each pair in two estimators, so that every estimator takes some; all pairs in all of them are a slow test."""
    names, place = list(MODELS), pairs().index(pair)
    for model in (names[2 * place % len(names)], names[(2 * place + 1) % len(names)]):
        check(MODELS[model], *pair)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_every_estimator_takes_every_kind_and_every_pair(model):
    for names in [*((name,) for name in DIRT), *pairs(len(DIRT) * (len(DIRT) - 1) // 2)]:
        check(MODELS[model], *names)


def compared(table):
    methods = {"maximum entropy": MaxEntClassifier(prior_variance=1.0), "mixture": mixent.MixtureClassifier(1, "VVI")}
    return compare(table, Y, methods=methods, baselines=False, folds=2, n_jobs=1)


def test_compare_takes_all_dirt_at_once_and_scores_it_as_if_cleaned_by_hand():
    dirty, clean = tables(*DIRT)
    (comparison, notes), (by_hand, _) = caught_of(lambda: compared(dirty)), caught_of(lambda: compared(clean))
    assert len(notes) == 1 and "'money'" in notes[0]
    for record, other in zip(comparison.cv.records, by_hand.cv.records, strict=True):
        assert record["log_loss"] == pytest.approx(other["log_loss"], abs=1e-6)  # as far as the fits have converged
    predicted, _ = caught_of(lambda: comparison.winner.predict(dirty))
    assert predicted.tolist() == by_hand.winner.predict(clean).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("pair", pairs(), ids=" and ".join)
def test_compare_takes_pairs_of_dirt(pair):
    dirty, clean = tables(*pair)
    (comparison, _), (by_hand, _) = caught_of(lambda: compared(dirty)), caught_of(lambda: compared(clean))
    for record, other in zip(comparison.cv.records, by_hand.cv.records, strict=True):
        assert record["log_loss"] == pytest.approx(other["log_loss"], abs=1e-9)


@pytest.mark.parametrize("name", [name for name, dirt in DIRT.items() if dirt.note and not dirt.absent])
def test_a_note_is_an_error_where_the_user_wants_it(name):
    with mixent.config_context(strict=True), pytest.raises(ValueError, match=DIRT[name].note):
        SUBJECTS["MaxEntClassifier"].fit(tables(name)[0], Y)
