"""Wording of studies, prior shift."""

import numpy as np
import pytest

from mixent.studies import prior_mismatch, prior_shift_study, resample_priors, with_copies, without_class

from ...studies.test_prior_shift import ON_TRUTH, Even, Y


@pytest.mark.parametrize(
    ("priors", "size", "message"),
    [
        ([0.5, 0.5], None, r"one number for each of the 3 classes \['a', 'b', 'c'\]; got 2"),
        ([0.5, 0.4, 0.3], None, r"priors must be >= 0 and sum to 1; got \[0.5, 0.4, 0.3\]"),
        ([1.5, -0.5, 0], None, "priors must be >= 0 and sum to 1"),
        ([np.nan, 0.5, 0.5], None, "priors must be >= 0 and sum to 1"),
        (0.5, None, "priors must hold one number per class; got 0.5"),
        ({}, None, r"priors must hold one number per class; got \[\]"),
        (
            {"a": 0.5, "z": 0.5},
            None,
            "priors has a frequency 0.5 of class 'z', which is not a label in y; the labels are ",
        ),
        ([0.2, 0.3, 0.5], 0, "size must be a whole number >= 1; got 0"),
    ],
)
def test_priors_that_cannot_be_met_say_why(priors, size, message):
    with pytest.raises(ValueError, match=message):
        resample_priors(Y, priors, size)


@pytest.mark.parametrize(
    ("sources", "test", "message"),
    [
        ([], [0.5, 0.5], "source_priors is empty; give one row with the training priors"),
        ([[0.5, 0.5], [0.2, 0.2]], [0.5, 0.5], r"row 1 of source_priors must be >= 0 and sum to 1; got \[0.2, 0.2\]"),
        ([[0.5, 0.5]], [0.5, 0.6], "test_priors must be >= 0 and sum to 1"),
        ([[0.5, 0.5], [0.2, 0.3, 0.5]], [0.5, 0.5], "row 1 of source_priors has 3 classes, but test_priors has 2"),
        ([[[0.5, 0.5]]], [0.5, 0.5], "row 0 of source_priors must hold one number per class"),
    ],
)
def test_priors_that_are_none_say_so(sources, test, message):
    with pytest.raises(ValueError, match=message):
        prior_mismatch(sources, test)


def test_label_must_be_one_of_the_labels_in_y():
    with pytest.raises(ValueError, match=r"label must be one of the labels in y, \['a', 'b', 'c'\]; got 'z'"):
        without_class(Y, "z")
    with pytest.raises(ValueError, match="all labels in y are 1; y must have rows of another class"):
        without_class([1, 1], 1)


def test_unknown_source_z():
    answers = {"x": np.arange(3), "y": np.ones((3, 2))}
    more = with_copies(answers, "x", 2)
    with pytest.raises(ValueError, match="unknown source 'z'; choose one of .'x', 'y'."):
        with_copies(answers, "z", 1)
    with pytest.raises(ValueError, match="a source named 'x copy 1' already exists"):
        with_copies(more, "x", 1)
    for k in (-1, 1.5, True):
        with pytest.raises(ValueError, match=f"k must be a whole number >= 0; got {k}"):
            with_copies(answers, "x", k)


def test_mean_over_batches_of_rows():
    uniform = {"even": lambda rows: np.full((len(rows), 3), 1 / 3), "right": lambda rows: ON_TRUTH[rows]}
    study = prior_shift_study(
        uniform, Y, [[0.2, 0.3, 0.5], [0.25, 0.75, 0]], n_repeats=2, source_priors=[[0.2, 0.3, 0.5]]
    )
    lines = str(study).splitlines()
    assert lines[0] == "Mean over 2 batches of 100 rows (standard error)"


def test_one_that_fails_does_not_lose_the_others():
    def broken(rows):
        raise ArithmeticError("no luck")

    study = prior_shift_study({"x": broken, "right": lambda rows: ON_TRUTH[rows]}, Y, [[0.2, 0.3, 0.5]], n_repeats=2)
    assert study.failures == {"x": "ArithmeticError: no luck"} and np.isnan(study.mean("x", "prior_error")).all()
    assert study.mean("right").tolist() == [0.0] and "x failed: ArithmeticError: no luck" in str(study)
    with pytest.raises(RuntimeError, match="every method failed on every batch. x: ArithmeticError: no luck"):
        prior_shift_study({"x": broken}, Y, [[0.2, 0.3, 0.5]])
    wrong = prior_shift_study(
        {"y": lambda rows: ON_TRUTH[rows, :2], "right": lambda rows: ON_TRUTH[rows]}, Y, [[1, 0, 0]]
    )
    assert "proba has 2 columns for 3 classes" in wrong.failures["y"]


def test_progress_is_told():
    result = []
    prior_shift_study(
        {"right": lambda rows: ON_TRUTH[rows]},
        Y,
        [[1, 0, 0], [0, 1, 0]],
        n_repeats=2,
        progress=lambda *step: result.append(step),
    )
    assert result[1] == (1, 4, "prior 1 of 2, batch 1 of 2") and result[-1] == (4, 4, "prior 2 of 2, batch 2 of 2")


def test_what_cannot_be_studied_says_why():
    right = {"right": lambda rows: ON_TRUTH[rows]}
    for methods in ({}, [len], {"x": 3}):
        with pytest.raises(ValueError, match="methods must be a dict, name -> callable of row numbers; got"):
            prior_shift_study(methods, Y, [[1, 0, 0]])
    with pytest.raises(ValueError, match="priors is empty; give at least one prior"):
        prior_shift_study(right, Y, [])
    with pytest.raises(ValueError, match="n_repeats must be a whole number >= 1; got 0"):
        prior_shift_study(right, Y, [[1, 0, 0]], n_repeats=0)
    with pytest.raises(ValueError, match="size must be a whole number >= 1; got -3"):
        prior_shift_study(right, Y, [[1, 0, 0]], size=-3)
    with pytest.raises(ValueError, match="row 0 of source_priors has 2 classes, but test_priors has 3"):
        prior_shift_study(right, Y, [[1, 0, 0]], source_priors=[[0.5, 0.5]])
    study = prior_shift_study(right, Y, [[1, 0, 0]], n_repeats=1)
    with pytest.raises(ValueError, match="unknown method 'x'; choose one of 'right'"):
        study.values("x")
    with pytest.raises(ValueError, match="metric must be one of 'error', .*'prior_error'; got 'luck'"):
        study.mean("right", "luck")


def test_a_journal_of_other_batches_is_refused(tmp_path):
    path, methods, prior = tmp_path / "batches.jsonl", {"even": Even()}, [0.2, 0.3, 0.5]
    prior_shift_study(methods, Y, [prior] * 2, n_repeats=3, journal=path)
    for y, n_priors, options in (
        (Y[::-1], 2, {"n_repeats": 3}),
        (Y, 3, {"n_repeats": 2}),  # the same batches, arranged otherwise
        (Y, 2, {"n_repeats": 3, "random_state": 1}),
        (Y, 2, {"n_repeats": 3, "size": 50}),
    ):
        with pytest.raises(ValueError, match="is the journal of another"):
            prior_shift_study(methods, y, [prior] * n_priors, **options, journal=path)
