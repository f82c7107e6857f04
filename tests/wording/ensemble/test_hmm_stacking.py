"""Wording of ensemble, hmm stacking."""

import pandas as pd
import pytest

from mixent import HMMStackingClassifier

from ...ensemble.test_hmm_stacking import PLAIN, columns, said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"transitions": "own"}, "transitions must be one of 'shared', 'per_step'; got 'own'"),
        ({"start": None}, "start must be one of 'learned', 'uniform'; got None"),
        ({"calibration": "affine"}, "calibration must be one of 'temperature', or None; got 'affine'"),
        ({"transition_smoothing": -1}, "transition_smoothing must be a number >= 0; got -1"),
        ({"tol": "small"}, "tol must be a number >= 0; got 'small'"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
        ({"decisions": "firm"}, "decisions must be one of 'auto', 'soft', 'hard'; got 'firm'"),
        ({"cv": "none"}, "cv must be a whole number >= 2, .* or 'prefit' .*; got 'none'"),
        ({"class_prior": [1.0]}, "class_prior must be 'empirical' or 2 positive numbers, one per class"),
    ],
)
def test_options(options, message):
    X, y = said(2)
    with pytest.raises(ValueError, match=message):
        HMMStackingClassifier(columns(2), **options).fit(X, y)


def test_labels_that_are_no_class_are_refused_by_name():
    X = pd.DataFrame({"judge": ["yes", "no", "unsure", "yes"] * 3, "clerk": ["yes", "no", "no", "yes"] * 3})
    y = ["yes", "no", "no", "yes"] * 3
    bases = [("the clerk", "clerk"), ("the judge", "judge")]
    message = r"the labels of 'the judge' must be among the classes \['no', 'yes'\]; got 'unsure'; leave this"
    with pytest.raises(ValueError, match=message):
        HMMStackingClassifier(bases, cv="train").fit(X, y)
    assert HMMStackingClassifier(bases[:1], cv="train").fit(X, y).score(X, y) == 1.0


def test_a_search_that_does_not_end_is_told():
    X, y = said(3)
    with pytest.warns(
        UserWarning, match=r"HMMStackingClassifier \(class [01]\) did not converge: max_iter was reached"
    ):
        HMMStackingClassifier(columns(3), max_iter=1, tol=0.0, **PLAIN).fit(X, y)
