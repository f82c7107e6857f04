"""Wording of cli, sequences."""

import pytest

from ...cli.test_sequences import ROWS, STEPS, make_series, make_steps


def test_of_rows_have_no_label_in_way(mixent):
    frame = make_series().assign(way=lambda f: f["way"].where(f.index % 5 > 0))
    frame.to_csv("d.csv", index=False)
    result = mixent(*ROWS)
    assert "8 of 40 rows have no label in 'way': rows without" in result.stderr


def test_sequences_rows_with_the_same_id(mixent):
    steps = make_steps().sample(frac=1, random_state=0).sort_values("speed", kind="stable")
    steps.to_csv("d.csv", index=False)
    result = mixent(*STEPS, "--weight", "w")
    assert "24 sequences: rows with the same id" in result.stdout


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, ["--sequence", "idd"], "d.csv has no column 'idd'; did you mean 'id'?"),
        ({}, ["--sequence", "id", "--ignore", "w,speed,color"], "'id' (--sequence) is the only column"),
        ({}, ["--sequence", "way"], "cannot be given to --sequence too"),
        ({"way": (2, "up")}, ["--sequence", "id"], "row 2: all steps of a sequence have one label and one weight"),
        ({"w": (1, 9.0)}, ["--sequence", "id", "--weight", "w"], "--weight differs within sequence '00' of 'id'"),
        ({"id": (4, None)}, ["--sequence", "id"], "must name the sequence of every row; row 4 is blank"),
    ],
)
def test_steps_that_are_refused(fails, change, options, message):
    steps = make_steps()
    for column, (row, value) in change.items():
        steps.loc[row, column] = value
    steps.to_csv("d.csv", index=False)
    assert message in fails(*ROWS, *options)


def test_a_model_of_steps_needs_the_sequence_and_others_refuse_it(mixent, fails):
    make_steps().to_csv("d.csv", index=False)
    assert mixent(*STEPS, "--ignore", "w", "-q").exit_code == 0
    predict = ("predict", "m.mixent", "d.csv", "-o", "o.csv")
    assert "--sequence is needed" in fails(*predict, status=2)
    assert "--keep-all is not used with --sequence" in fails(*predict, "--sequence", "id", "--keep-all", status=2)
    make_series().to_csv("d.csv", index=False)
    assert mixent(*ROWS, "-q").exit_code == 0
    assert "--sequence is not used" in fails(*predict, "--sequence", "t0", status=2)
