"""Wording of cli, compare."""

import json
import re
import sys

import pandas as pd
import pytest
import typer

from mixent.base.text import one_line
from mixent.evaluate.journal import FORMAT

from ...cli.test_compare import ALONE, chosen


@pytest.mark.parametrize(
    ("names", "settings", "message"),
    [
        ([], ["C=1"], "--set needs --method"),
        (["mixture"], ["n_compnents=1"], "unknown parameter 'n_compnents' of mixture; did you mean 'n_components'"),
        (["med"], ["mixture.n_components=1"], "unknown parameter 'mixture.n_components' of med"),
        (["joint"], [], "--method takes classifiers; joint is a joint model of all columns"),
    ],
)
def test_methods_and_settings_that_are_refused(names, settings, message):
    with pytest.raises(typer.BadParameter, match=message):
        chosen(names, *settings)


def test_a_method_that_fails_is_reported(mixent, majority):
    more = ("--method", "majority,parzen", "--set", "strength=x", "--no-baselines", "--folds", "2", "--jobs", "1")
    result = mixent("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "--no-page", *more)
    assert result.exit_code == 0, result.output
    assert "Warning: majority failed: ValueError: strength must be a float; got 'x'" in result.stderr


def test_finished_folds_are_read_from_the_journal(mixent):
    more = ("--no-page", "--journal", "j.jsonl")
    mixent(*ALONE, *more)
    result = mixent(*ALONE, *more)
    assert "Finished folds are read from j.jsonl; delete it to start again" in result.stdout


def test_stopped_it_says_how_to_go_on(mixent, tmp_path, monkeypatch):
    from mixent.comparison import compare

    monkeypatch.setitem(compare.__globals__, "score_fold", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt()))
    result = mixent(*ALONE)
    assert result.exit_code == 130
    assert "finished folds are in data.compare.jsonl: run the same command again to resume" in result.stderr
    assert (tmp_path / "data.compare.jsonl").exists()


def test_only_a_journal_that_was_named_must_fit(mixent, tmp_path):
    other = json.dumps({"format": FORMAT, "fingerprint": "another"}) + "\n"
    (tmp_path / "data.compare.jsonl").write_text(other)
    result = mixent(*ALONE, "--no-page")
    assert result.exit_code == 0 and "of another table or other options: starting again" in result.stdout
    (tmp_path / "mine.jsonl").write_text(other)
    result = mixent(*ALONE, "--no-page", "--journal", "mine.jsonl")
    assert result.exit_code == 1 and "mine.jsonl is the journal of another comparison" in result.stderr


def test_text_that_differs_in_every_row_is_ignored(mixent, stock, tmp_path):
    frame = pd.read_csv(stock / "data.csv").assign(who=lambda f: [f"P{i}" for i in range(len(f))])
    frame.to_csv(tmp_path / "named.csv", index=False)
    command = ("compare", "named.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page")
    assert "like an identifier, is ignored unless listed in categorical=: column 'who'" in one_line(result.stderr)


def test_a_pipe_gets_a_line_now_and_then(mixent):
    lines = [line for line in mixent(*ALONE, "--no-page").stderr.splitlines() if " folds, " in line]
    lines = [re.sub(r", about \d+ s left$", "", line) for line in lines]  # where the machine is slow
    assert lines == ["1 of 2 folds, 0 of 1 methods done", "2 of 2 folds, 1 of 1 methods done"]


def test_without_skops_a_winner_of_scikit_learn_is_not_saved(mixent, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    result = mixent(*ALONE[:6], "--method", "naive Bayes", *ALONE[8:], "--no-page")
    assert result.exit_code == 0 and "Recommended: naive Bayes" in result.stdout
    assert "Warning: naive Bayes was not saved: the package skops is needed to save" in result.stderr
    assert 'pip install "mixent[skops]"' in result.stderr and "Next:" not in result.stdout
    assert not list(tmp_path.glob("*.mixent"))
    assert "Next:" in mixent(*ALONE, "--no-page").stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--budget", "soon"), "--budget must be a time such as 90s, 10m or 2h; got 'soon'"),
        (("--budget", "0"), "--budget must be a time such as 90s, 10m or 2h"),
        (("--metric", "lift"), "--metric must be one of"),
        (("--report", "a.html", "--no-page"), "--report is not used with --no-page; leave one of them out"),
        (("--report", "a.pdf"), "unknown kind of file '.pdf'"),
        (("--method", "magic"), "unknown method 'magic'"),
        (("--scores", "s.xls"), "unknown kind of file '.xls'"),
        (("-t", "nothing"), "has no column 'nothing'"),
    ],
)
def test_refused(mixent, more, message):
    result = mixent(*(a for a in ALONE if "-t" not in more or a not in ("-t", "class")), *more)
    assert result.exit_code != 0 and message in " ".join(result.stderr.split()).replace("│ ", "")
