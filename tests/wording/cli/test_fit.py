"""Wording of cli, fit."""

import pandas as pd
import pytest

from mixent.base.registry import entries
from mixent.cli.console import Screen

from ...cli.test_fit import FIT, ONE

CLASSIFIERS = [e for e in entries() if e.task == "classification" and e.listed]


@pytest.mark.parametrize("entry", CLASSIFIERS, ids=lambda entry: entry.name)
def test_what_is_done_with_rows_without_a_label_is_what_the_capability_table_states(entry, stock):
    from mixent.base.capabilities import LEFT_OUT, cells_of
    from mixent.cli.data import Roles, read_data
    from mixent.cli.fit import absent_labels

    table = read_data(stock / "some.csv", Roles("class", ignore=["id,w"]), screen=Screen(True))
    cell = cells_of(entry.make())["absent_labels"]
    note = cell.note if cell.able else LEFT_OUT.note
    assert note and absent_labels(table, "class", entry.make()) == f"10 of 60 rows have no label in 'class': {note}"


def test_it_is_printed(mixent):
    result = mixent("fit", "{stock}/some.csv", *FIT[2:], "--model", "parzen")
    assert "10 of 60 rows have no label in 'class': rows without a label are left out" in result.stderr
    assert "no label" not in mixent(*FIT, "--model", "parzen").stderr


def test_rare_classes_and_identifiers_are_questioned(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"])
    frame.loc[59, "class"] = "maybe"
    frame.to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", *ONE)
    assert "a class with fewer than 10 rows: maybe (1)" in result.stderr
    result = mixent("fit", "{stock}/data.csv", "-t", "id", "-o", "m.mixent", *ONE, "--set", "covariance=EII")
    assert "is it an identifier?" in result.stderr


def test_problems_of_the_table_are_yellow_lines(mixent, stock):
    pd.read_csv(stock / "data.csv").assign(one=1).to_csv("d.csv", index=False)
    lines = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", *ONE).stderr.splitlines()
    assert lines == [  # the second is a note of the fit as well, and printed once
        "Warning: column 'id' looks like a row number; drop it with --ignore id",
        "Warning: constant; kept, but can be dropped: column 'one'",
    ]


def test_a_word_among_numbers_is_reported_unless_the_column_is_listed(mixent, stock):
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).astype({"size": object})
    frame.loc[1, "size"] = "abc"
    frame.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-t", "class", "-o", "m.mixent", *ONE)
    assert "column 'size' has values that are not numbers ('abc'), in 1 of 60 rows" in mixent(*fit).stderr
    assert "not numbers" not in mixent(*fit, "--categorical", "size,color").stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["-t", "class", "--model", "joint"],
            "--target is only used with classifiers; joint is a joint model of all columns",
        ),
        (["-t", "class", "--model", "novelty"], "--target is only used with classifiers"),
        (["--model", "med"], "--model med is a classifier and needs --target"),
        (["--model", "fuser"], "--model fuser is fitted by `mixent fuse`"),
        (["-t", "class", "--sequence", "id"], "--sequence is only used with models of sequences (hmm-density, hmm)"),
        (["-t", "class", "--set", "n_compnents=2"], "did you mean 'n_components'?"),
        (["-t", "class", "--set", "checkpoint=c"], "--set checkpoint is not used: --resume sets it"),
        (
            ["-t", "class", "--model", "med", "--resume"],
            "--resume is only used with gaussian-mixture, mixture, shared-mixture; got --model med",
        ),
    ],
)
def test_models_and_options_that_do_not_go_together(fails, options, message):
    assert message in fails("fit", "{stock}/data.csv", "-o", "m.mixent", *options, status=2)


def test_a_fit_that_was_interrupted_names_its_checkpoint(mixent, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mixent.core.checkpoint.Checkpoint.task", interrupted)
    result = mixent(*FIT, *ONE, "--resume")
    assert result.exit_code == 130
    assert "The state of the fit is in m.mixent.checkpoint: run the same command again to resume" in " ".join(
        result.output.split()
    )
    assert "Resuming from m.mixent.checkpoint" in mixent(*FIT, *ONE, "--resume").output
