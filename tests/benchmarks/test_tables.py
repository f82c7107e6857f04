"""The runner of benchmarks/tables: one format, nothing run twice, a table a reader can follow."""

import numpy as np
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables.compare import difference
from benchmarks.tables.store import Store, read_lines, write_lines
from benchmarks.tables.summary import FIELDS

METHODS = ["mixent", "mixent 1 VVV", "LR"]


@pytest.fixture(scope="module")
def results(tmp_path_factory, data):
    """A finished small run."""
    folder = tmp_path_factory.mktemp("results")
    assert run(data, folder) == 0
    return folder


def run(data, results, *more):
    small = ["--sets", "iris", "--folds", "2", "--repeats", "1", "--quiet", "--methods", *METHODS]
    return program.main([*small, "--data", str(data), "--results", str(results), *more])


def test_result_format(results):
    records = read_lines(results / "accuracy.jsonl")
    assert {r["method"] for r in records} == set(METHODS)
    assert all(tuple(r) == FIELDS and r["set"] == "iris" and r["folds"] == 2 for r in records)
    ours = {r["metric"]: r for r in records if r["method"] == "mixent"}
    assert set(ours) == {"error", "log_loss", "brier", "fit_seconds"}
    assert (ours["error"]["printed"], ours["error"]["source"]) == (2.0, "document 002")
    assert 0 <= ours["error"]["mean"] < 10 and 0 < ours["log_loss"]["mean"] < 0.5


def test_finished_folds_are_not_run_again(data, results, monkeypatch):
    before = Store("accuracy", results).load("iris")
    monkeypatch.setattr("benchmarks.tables.run.score_fold", lambda *a, **k: pytest.fail("run again"))
    assert run(data, results) == 0
    assert Store("accuracy", results).load("iris") == before and len(before) == 2 * len(METHODS)


def test_a_run_cut_short_goes_on(data, results, tmp_path):
    whole = Store("accuracy", results).path("iris").read_text()
    (tmp_path / "raw").mkdir()
    Store("accuracy", tmp_path).path("iris").write_text(whole[:-40])  # killed while it wrote the last line
    assert run(data, tmp_path) == 0
    lost, again = (Store("accuracy", folder).load("iris") for folder in (results, tmp_path))
    assert set(again) == set(lost)
    assert all(again[key]["log_loss"] == lost[key]["log_loss"] for key in lost)


def test_redo_runs_what_it_names_where_the_source_was_another(data, results, monkeypatch, tmp_path):
    store = Store("accuracy", tmp_path)
    records = list(Store("accuracy", results).load("iris").values())
    write_lines(store.path("iris"), [r | {"code": "another" if r["fold"] else r["code"]} for r in records])
    record = {"n_train": 75, "n_test": 75, "failed": "ValueError: on purpose"}
    monkeypatch.setattr("benchmarks.tables.run.score_fold", lambda *a, **k: (record, None))
    assert run(data, tmp_path, "--redo", "LR") == 0
    failed = [(r["method"], r["fold"]) for r in store.load("iris").values() if r["failed"]]
    assert failed == [("LR", 1)]


def test_table_is_printed(data, results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert run(data, results, "--show") == 0
    shown = capsys.readouterr().out
    for text in (*METHODS, "iris", "2 (002)", "minus peer, same folds", "pass"):
        assert text in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [(["--data", "nowhere"], "manifest.json is absent"), (["--sets", "irsi"], "has no set 'irsi'; it has: breast_w")],
)
def test_bad_input_ends_in_one_line(data, tmp_path, capsys, more, message):
    assert run(data, tmp_path, *more) == 1
    text = capsys.readouterr().err
    assert message in text and text.count("\n") == 1


def test_difference_has_the_corrected_error():
    rng = np.random.default_rng(0)
    gaps = rng.normal(0.1, 0.02, size=10)
    size = {"repeat": 0, "n_train": 90, "n_test": 10, "failed": None}
    a = [size | {"fold": i, "log_loss": 1 + gap} for i, gap in enumerate(gaps)]
    b = [size | {"fold": i, "log_loss": 1.0} for i in range(10)][::-1]  # order of the records does not matter
    result = difference(a, b, "log_loss")
    assert result.mean == pytest.approx(gaps.mean())
    assert result.se == pytest.approx(np.sqrt((1 / 10 + 1 / 9) * gaps.var(ddof=1)))
    assert result.worse and not difference(b, a, "log_loss").worse
