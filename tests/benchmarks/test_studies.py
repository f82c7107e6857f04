"""The studies of dirty tables, of default accuracy and of fit times, on small tables."""

import json
from functools import partial

import numpy as np
import pytest
from benchmarks.stored_folds import load_store
from benchmarks.tables.data import load

from benchmarks import contamination, default_accuracy, fit_time, unlabelled
from mixent import MixtureClassifier

METHODS = ["maximum entropy", "logistic regression"]


@pytest.fixture
def options(data, tmp_path):
    """Arguments for a store with two quick methods."""
    return ["--data", str(data), "--out", str(tmp_path / "store.jsonl"), "--methods", *METHODS]


def test_bad_cells_are_gross_errors_in_numeric_cells(data):
    hepatitis = load("hepatitis", data, mixed=True)
    numbers = ["a", "b"]
    clean, dirty = hepatitis.X[numbers], contamination.bad_cells(hepatitis, 50)
    assert dirty["c"].equals(hepatitis.X["c"])
    dirty = dirty[numbers]
    assert (dirty.isna() == clean.isna()).all(axis=None)
    bad = (dirty != clean) & clean.notna()
    assert bad.sum().sum() == round(0.5 * clean.notna().sum().sum())
    distance = ((dirty - clean.mean()) / clean.std(ddof=0)).abs().to_numpy()[bad]
    assert distance.min() >= 10 and distance.max() <= 100


def test_higher_levels_have_the_errors_of_lower_ones(data):
    iris = load("iris", data, mixed=True)
    few, many = (contamination.bad_cells(iris, percent) for percent in (1, 5))
    bad = few != iris.X
    assert few.to_numpy()[bad].tolist() == many.to_numpy()[bad].tolist() and (few != many).any(axis=None)
    train = np.arange(100)
    few, many = (contamination.wrong_labels(iris, train, 0, percent) for percent in (1, 5))
    wrong = few != iris.y
    assert (few[wrong] == many[wrong]).all()


def test_wrong_labels_are_in_training_rows_only(data):
    iris = load("iris", data, mixed=True)
    train = np.flatnonzero(np.arange(150) % 3)
    wrong = np.flatnonzero(contamination.wrong_labels(iris, train, 0, 5) != iris.y)
    assert len(wrong) == 5 and set(wrong) <= set(train)
    other = np.flatnonzero(contamination.wrong_labels(iris, train, 1, 5) != iris.y)
    assert set(wrong) != set(other)


def test_quick_contamination_is_stored_and_resumed(options, tmp_path, capsys, monkeypatch):
    quick = ["--quick", "--sets", "iris", "hepatitis", *options]
    lines = contamination.main(quick)
    store = load_store(tmp_path / "store.jsonl")
    assert {key[:3] for key in store} == {(s, k, 5) for s in ("iris", "hepatitis") for k in ("cells", "labels")}
    assert len(store) == 8 and all(r["failed"] is None and r["cpu_seconds"] > 0 for r in store.values())
    row = next(line for line in lines if line.startswith("| maximum entropy"))
    errors = [r["error"] for r in store.values() if r["method"] == "maximum entropy" and r["kind"] == "cells"]
    assert f"| {100 * np.mean(errors):.1f} |" in row and row.endswith("| 2 | 2 |")
    assert "\n".join(lines) in capsys.readouterr().out
    monkeypatch.setattr("benchmarks.stored_folds.scored", None)  # nothing is left to be scored
    assert contamination.main(quick) == lines
    beside = contamination.main([*quick, "--beside", str(tmp_path / "store.jsonl")])
    before, after = (line for line in beside[:6] if line.startswith("| maximum entropy"))
    assert before.replace("before", "after") == after


def test_a_line_cut_short_is_scored_again(options, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.stored_folds.score_fold", lambda *given: ({"failed": "not run"}, None))
    asked, path = ["--sets", "iris", "--folds", "2", *options], tmp_path / "store.jsonl"
    default_accuracy.main(asked)
    path.write_text(path.read_text()[:-20])
    assert len(load_store(path)) == 3
    default_accuracy.main(asked)
    assert len(load_store(path)) == 4


def test_the_full_study_has_clean_tables_and_all_levels(data):
    trials = list(contamination.trials_of(load("iris", data, mixed=True), contamination.LEVELS, 3, 1))
    conditions = [(t.place["kind"], t.place["level"]) for t in trials]
    assert conditions[0] == contamination.CLEAN and len(set(conditions)) == len(conditions) == 7
    assert all(t.split is not None and t.split.fold == 1 for t in trials)


def test_default_accuracy_before_and_after(options, tmp_path):
    lines = default_accuracy.main(["--sets", "iris", "hepatitis", "--folds", "2", *options])
    store = load_store(tmp_path / "store.jsonl")
    assert len(store) == 8 and {key[3] for key in store} == {2}
    by_set = [[r["log_loss"] for r in store.values() if r["set"] == s and r["method"] == METHODS[0]] for s in ("iris",)]
    assert f"{np.mean(by_set):.3f}" in next(line for line in lines if line.startswith("| iris"))
    worse = tmp_path / "worse.jsonl"
    text = (tmp_path / "store.jsonl").read_text()
    worse.write_text(text.replace('"error": 0.', '"error": 1.'))
    shown = default_accuracy.main(["--show", *options, "--beside", str(worse)])
    mean = next(line for line in shown if line.startswith("| mean of 2 sets"))
    assert "-100.000" in mean and "+0.000" in mean


def test_the_mark_of_a_peer(options, tmp_path, monkeypatch):
    """At most 1.5 times its log-loss, or .02 above it."""
    scores = {"failed": None, "error": 0.1, "log_loss": 0.3, "n_train": 10, "n_test": 10}
    monkeypatch.setattr("benchmarks.stored_folds.score_fold", lambda *given: (scores, None))
    asked = ["--sets", "iris", "hepatitis", "--folds", "2", *options]
    default_accuracy.main(asked)
    path, losses = tmp_path / "store.jsonl", {"iris": (0.034, 0.01), "hepatitis": (0.29, 0.2)}
    records = [r | {"log_loss": losses[r["set"]][METHODS.index(r["method"])]} for r in load_store(path).values()]
    records[-1]["failed"] = "ValueError: too few"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    lines = default_accuracy.main([*asked, "--show", "--peer", METHODS[1]])
    lines = lines[lines.index(f"Log-loss, beside {METHODS[1]}") :]
    assert [line for line in lines if line.startswith("| iris")] == ["| iris | 0.034 (0.010) missed |"]
    assert [line for line in lines if line.startswith("| hepatitis")] == ["| hepatitis | 0.290 (0.200) |"]
    assert "| mean | 0.162 (0.105), 2 sets |" in lines and "| sets that miss the mark | 1 |" in lines


def test_a_fit_over_the_limit_is_ended_and_its_other_folds_are_skipped(options, tmp_path, monkeypatch):
    def endless(*given):
        try:
            while True:
                pass
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}, None

    monkeypatch.setattr("benchmarks.stored_folds.score_fold", endless)
    asked, path = ["--sets", "iris", "--folds", "2", "--limit", "0.05", *options], tmp_path / "store.jsonl"
    lines = default_accuracy.main(asked)
    assert [key[4:] for key in load_store(path)] == [(0, METHODS[0]), (0, METHODS[1])]
    assert sum("TooLongError: more than 0.05 processor seconds" in line for line in lines) == 2
    monkeypatch.setattr("benchmarks.stored_folds.scored", None)  # nothing is left to be scored
    assert default_accuracy.main(asked) == lines


def test_a_fit_that_failed_is_listed(options, monkeypatch):
    monkeypatch.setattr("benchmarks.stored_folds.score_fold", lambda *given: ({"failed": "ValueError: too few"}, None))
    lines = default_accuracy.main(["--sets", "iris", "--folds", "2", *options])
    assert sum("too few" in line for line in lines) == 4 and not any(line.startswith("| iris") for line in lines)


def test_fit_times_beside_boosting(data, capsys, monkeypatch):
    monkeypatch.setattr(fit_time, "MixtureClassifier", partial(MixtureClassifier, 1, "EEE"))  # for speed
    sets = ["iris", "hepatitis"]
    timings = fit_time.main(["--data", str(data), "--rounds", "1", "--jobs", "1", "--sets", *sets])
    assert [t.name for t in timings] == sets and all(t.mixture > 0 and t.boosting > 0 for t in timings)
    assert "| iris | 150 |" in capsys.readouterr().out


def test_goals_of_fit_times():
    timings = [fit_time.Timing("a", 10, 2.0, 1.0), fit_time.Timing("b", 10, 9.0, 0.5)]
    *_, mean, longest = fit_time.lines_of(timings)
    assert "6.00" in mean and "missed" in mean and "9.00 s on b" in longest and "missed" in longest
    *_, mean, longest = fit_time.lines_of(timings[:1])
    assert mean.endswith("reached.") and longest.endswith("reached.")


@pytest.mark.parametrize("shares", ["random", "shifted"])
def test_labelled_unlabelled_and_test_rows_are_disjoint(shares):
    y = np.repeat([0, 1, 2], [50, 30, 20])
    parts = unlabelled.split_rows(y, shares, 6, np.random.default_rng(0))
    assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) and len(parts[0]) == 18
    assert set(y[parts[0]]) == {0, 1, 2}
    others = np.bincount(y[np.concatenate(parts[1:])])
    assert others.tolist() == [44, 6, 4] if shares == "shifted" else others.sum() == 82


def test_quick_unlabelled_is_stored_and_resumed(data, tmp_path, monkeypatch):
    monkeypatch.setattr(unlabelled, "MEDClassifier", partial(unlabelled.MEDClassifier, C=1.0, cv=2))  # for speed
    quick = ["--quick", "--sets", "iris", "--data", str(data), "--out", str(tmp_path / "store.jsonl")]
    lines = unlabelled.main(quick)
    records = unlabelled.read_lines(tmp_path / "store.jsonl")
    assert [record["method"] for record in records] == list(unlabelled.METHODS)
    row = next(line for line in lines if line.startswith("| iris | 1 |"))
    assert f"| {100 * records[0]['error']:.1f} / {records[0]['log_loss']:.3f} |" in row
    monkeypatch.setattr(unlabelled, "scored", None)  # nothing is left to be scored
    assert unlabelled.main(quick) == lines


def test_changes_above_the_goal_are_marked():
    records = [
        {
            "set": "a",
            "shares": "random",
            "per_class": 6,
            "split": split,
            "method": method,
            "error": 0.1,
            "log_loss": 0.2,
        }
        | ({"error": 0.13} if method == "rbf with" else {"log_loss": 0.15} if method == "linear with" else {})
        for split in range(3)
        for method in unlabelled.METHODS
    ]
    lines = unlabelled.table(records, "random", 6)
    row = next(line for line in lines if line.startswith("| a |")).replace("\N{NO-BREAK SPACE}", " ")
    assert "| +0.0 ± 0.0 | -0.050 ± 0.000 |" in row and "| +3.0 ± 0.0 ! | +0.000 ± 0.000 |" in row
