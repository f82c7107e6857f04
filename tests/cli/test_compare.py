"""`mixent compare`: one command from a table to a model and a page."""

import json

import pandas as pd
import pytest

from mixent import TunedClassifier, load, save
from mixent.cli.compare import read_time
from mixent.evaluate.journal import FORMAT

QUICK = ("compare", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")


@pytest.fixture
def table(stock):
    frame = pd.read_csv(stock / "data.csv")
    return frame.drop(columns=["id", "w", "class"]), frame["class"]


ALONE = (*QUICK, "--no-baselines", "--jobs", "1")


def test_a_model_and_a_page(mixent, tmp_path):
    result = mixent(*ALONE, "--method", "maximum entropy", "--scores", "scores.csv")
    assert result.exit_code == 0, result.output
    out = " ".join(result.stdout.split())
    assert "2-fold cross-validation, settings chosen inside" in out and "Take " in out and "* of mixent" in out
    assert max(map(len, result.stdout.splitlines())) <= 80
    model = load(tmp_path / "data-winner.mixent")
    assert list(model.classes_) == ["no", "yes"]
    page = (tmp_path / "data-comparison.html").read_text()
    assert "linear MED" in page and "mixent compare" in page
    assert set(pd.read_csv("scores.csv")["method"]) == {"linear MED", "maximum entropy"}
    assert not list(tmp_path.glob("*.jsonl"))
    again = mixent("predict", "data-winner.mixent", "{stock}/data.csv", "-o", "out.csv")
    assert again.exit_code == 0, again.output


def test_a_winner_of_scikit_learn_is_told_about_and_reported(mixent, table, tmp_path):
    from sklearn.linear_model import LogisticRegression

    model = TunedClassifier(LogisticRegression(), {"C": [0.1, 1.0]}, random_state=0).fit(*table)
    save(model, tmp_path / "w.mixent", foreign="skops")
    result = mixent("info", "w.mixent")
    chosen = f"C {model.best_params_['C']}, chosen among 2 by log-loss, {model.search_[0]['log_loss']:.3f} nats"
    assert result.exit_code == 0 and f"LogisticRegression of sklearn: {chosen}" in " ".join(result.stdout.split())
    assert mixent("info", "w.mixent", "--json").exit_code == 0
    assert mixent("report", "w.mixent", "{stock}/data.csv", "-o", "r.html").exit_code == 0
    save(TunedClassifier().fit(*table), tmp_path / "plain.mixent", foreign="skops")
    assert "LogisticRegression of sklearn" in mixent("info", "plain.mixent").stdout


def test_names_of_files_and_the_journal(mixent, tmp_path):
    more = ("-o", "m.mixent", "--no-page", "--journal", "j.jsonl", "--seed", "3")
    assert mixent(*ALONE, *more).exit_code == 0
    assert {p.name for p in tmp_path.iterdir()} == {"m.mixent", "j.jsonl"}
    lines = [json.loads(line) for line in (tmp_path / "j.jsonl").read_text().splitlines()]
    assert len(lines) == 1 + 2
    result = mixent(*ALONE, *more)
    assert result.exit_code == 0 and "Finished folds are read from j.jsonl; delete it to begin anew" in result.stdout


def test_stopped_it_says_how_to_go_on(mixent, tmp_path, monkeypatch):
    from mixent.comparison import compare

    monkeypatch.setitem(compare.__globals__, "score_fold", lambda *a: (_ for _ in ()).throw(KeyboardInterrupt()))
    result = mixent(*ALONE)
    assert result.exit_code == 130
    assert "finished folds are in data.compare.jsonl: the same command goes on from there" in result.stderr
    assert (tmp_path / "data.compare.jsonl").exists()


def test_only_a_journal_that_was_named_must_fit(mixent, tmp_path):
    other = json.dumps({"format": FORMAT, "fingerprint": "another"}) + "\n"
    (tmp_path / "data.compare.jsonl").write_text(other)
    result = mixent(*ALONE, "--no-page")
    assert result.exit_code == 0 and "of another table or other options: beginning anew" in result.stdout
    (tmp_path / "mine.jsonl").write_text(other)
    result = mixent(*ALONE, "--no-page", "--journal", "mine.jsonl")
    assert result.exit_code == 1 and "mine.jsonl is the journal of another comparison" in result.stderr


def test_names_are_left_out_and_said(mixent, stock, tmp_path):
    frame = pd.read_csv(stock / "data.csv").assign(who=lambda f: [f"P{i}" for i in range(len(f))])
    frame.to_csv(tmp_path / "named.csv", index=False)
    command = ("compare", "named.csv", "-t", "class", "--ignore", "id,w", "--method", "linear MED", "--folds", "2")
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page")
    assert "Left out: who: another text in every row; to keep it, name it in --categorical" in result.stdout
    assert "who" not in load(tmp_path / "named-winner.mixent").feature_names_in_
    assert mixent("predict", "named-winner.mixent", "named.csv", "-o", "out.csv").exit_code == 0
    result = mixent(*command, "--no-baselines", "--jobs", "1", "--no-page", "--categorical", "who")
    assert "Left out: who" not in result.stdout


def test_a_pipe_gets_a_line_now_and_then(mixent):
    lines = [line for line in mixent(*ALONE, "--no-page").stderr.splitlines() if " folds, " in line]
    assert lines == ["1 of 2 folds, 0 of 1 methods done", "2 of 2 folds, 1 of 1 methods done"]


def test_what_is_left_out_is_said(mixent):
    result = mixent(*QUICK, "--jobs", "1", "--budget", "1s", "--no-page")
    assert result.exit_code == 0, result.output
    assert "Left out: " in result.stdout and "the time budget" in " ".join(result.stdout.split())


def test_without_skops_it_is_said_before_the_work(mixent, monkeypatch):
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "skops" else found(name, *rest))
    result = mixent(*QUICK)
    assert result.exit_code != 0 and "the package skops is needed to save it" in " ".join(result.stderr.split())
    assert mixent(*ALONE, "--no-page").exit_code == 0


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), (" 2 H ", 7200)])
def test_times(text, seconds):
    assert read_time(text) == seconds


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--budget", "soon"), "--budget must be a time such as 90s, 10m or 2h; got 'soon'"),
        (("--budget", "0"), "--budget must be a time such as 90s, 10m or 2h"),
        (("--metric", "auc"), "--metric must be one of"),
        (("--report", "a.html", "--no-page"), "--report has no effect with --no-page; leave one of them out"),
        (("--report", "a.pdf"), "unknown kind of file '.pdf'"),
        (("--method", "magic"), "unknown method 'magic'"),
        (("--scores", "s.xls"), "unknown kind of file '.xls'"),
        (("-t", "nothing"), "has no column 'nothing'"),
    ],
)
def test_refused(mixent, more, message):
    result = mixent(*(a for a in ALONE if "-t" not in more or a not in ("-t", "class")), *more)
    assert result.exit_code != 0 and message in " ".join(result.stderr.split()).replace("│ ", "")
