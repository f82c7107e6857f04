"""Tables "votes" and "crowds": simulated sources and workers, what is drawn, counted and shown."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables.crowds import ENOUGH, METHODS, Crowd, calibrated, read_crowd, scores
from benchmarks.tables.fusion_simulated import ACCURACY, CASES, KINDS, PRIORS, SIZES, Case, behind, diagnosed, drawn

from mixent import Fuser
from mixent.fusion import long_answers


def case_of(kind, n_classes=2, n_items=300):
    return next(c for c in CASES if (c.kind, c.n_classes, c.n_items) == (kind, n_classes, n_items))


def test_cases_are_all_kinds_classes_and_sizes():
    assert len({case.name for case in CASES}) == len(CASES) == len(KINDS) * len(PRIORS) * len(SIZES)


def test_copies_share_answers_and_calibration_rows_and_nobody_says_so():
    votes, sources = drawn(case_of("5 copies"), 0)
    assert len(sources) == len(ACCURACY) + 5
    copies = [name for name in sources if name in votes.copy_of]
    assert all((votes.answers[name] == votes.answers["source 1"]).all() for name in copies)
    assert all(source.copy_of is None for source in sources.values())
    assert {sources[name].calibration_set for name in ("source 1", *copies)} == {"rows of source 1"}
    assert all(
        source.calibration_set is None for name, source in sources.items() if name[-1] in "2345" and "copy" not in name
    )


def test_the_same_items_and_rows_with_and_without_copies():
    (plain, alone), (copied, with_copies) = (drawn(case_of(kind), 4) for kind in ("independent", "5 copies"))
    np.testing.assert_array_equal(plain.truth, copied.truth)
    for name, item in alone.items():
        np.testing.assert_array_equal(item.counts, with_copies[name].counts)
        assert item.counts.sum() == 100


def test_repeats_and_sizes_differ():
    draws = [drawn(case_of("independent", n_items=n), repeat)[0].truth[:50] for n in (50, 300) for repeat in (0, 1)]
    assert all((a != b).any() for i, a in enumerate(draws) for b in draws[:i])


def test_diagnoses_count_what_they_say():
    case = case_of("5 copies")
    votes, sources = drawn(case, 0)
    fuser = Fuser(sources).fit(votes.answers)
    result = diagnosed(fuser, votes, case)
    z = fuser.dependence_.z
    copies = [0, *range(len(ACCURACY), len(sources))]
    pairs = [(a, b) for a in range(len(z)) for b in range(a) if not {a, b} <= set(copies)]
    assert result["pair_alarms"] == pytest.approx(np.mean([abs(z[a, b]) > 4 for a, b in pairs]))
    assert result["copies_found"] > 0.5  # twins are seen at 300 items
    estimate = fuser.prior_estimate_
    assert result["covered"] == np.mean((estimate.low <= votes.priors) & (votes.priors <= estimate.high))
    assert result["drift_05"] == np.mean([item.p_value < 0.05 for item in fuser.drift_.values()])
    related = Case("r=0.5", 2, 300, correlation=0.5)
    assert diagnosed(fuser, votes, related)["pair_alarms"] is None  # there an alarm would be right


def test_behind_the_better_of_the_two():
    def records(error):
        return [{"error": error, "failed": None}]

    by = {"auto": records(0.12), "product": records(0.10), "pool": records(0.15), "min-divergence": records(0.01)}
    assert behind(by) == pytest.approx(2.0)


def test_table_votes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    given = ["--table", "votes", "--quiet", "--results", str(tmp_path), "--sets", "5 copies, K=2, N=50"]
    some = ["auto", "product", "pool"]
    assert program.main([*given, "--repeats", "2", "--methods", *some]) == 0
    printed = capsys.readouterr().out
    assert "auto more than 1 point behind the better of product and pool in" in printed and "copies found" in printed
    raw = tmp_path / "raw" / "votes-5 copies, K=2, N=50.jsonl"
    before = raw.read_text()
    assert len(before.splitlines()) == 2 * len(some)
    assert program.main([*given, "--repeats", "2", "--methods", *some]) == 0  # nothing is done twice
    assert raw.read_text() == before
    summary = [json.loads(line) for line in (tmp_path / "votes.jsonl").read_text().splitlines()]
    assert {r["metric"] for r in summary if r["method"] == "auto"} >= {"error", "log_loss", "covered", "drift_05"}
    assert program.main([*given[:-1], "nothing"]) == 1
    assert "table votes has no set 'nothing'" in capsys.readouterr().err


# --- crowds -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd_folder(tmp_path_factory):
    """60 items, 8 workers of whom the last one has few; one answers an item twice, one item has no class."""
    folder = tmp_path_factory.mktemp("crowds")
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=60)
    rows = [(i, w, truth[i] ^ (rng.random() < 0.2), truth[i]) for i in range(60) for w in range(8) if w < 7 or i < 4]
    frame = pd.DataFrame(rows, columns=["item", "worker", "label", "class"]).astype(int).astype(str)
    frame.loc[frame["item"] == "59", "class"] = ""
    again = frame.iloc[[0]].assign(label=str(1 - int(frame.loc[0, "label"])))
    pd.concat([frame, again]).to_csv(folder / "crowd_cf.csv", index=False)
    (folder / "manifest.json").write_text(json.dumps({"datasets": [{"name": "crowd_cf", "file": "crowd_cf.csv"}]}))
    return folder


def test_a_crowd_is_read_with_the_later_of_two_answers(crowd_folder):
    crowd = read_crowd("cf", crowd_folder)
    raw = pd.read_csv(crowd_folder / "crowd_cf.csv", dtype=str)
    assert crowd.answers.values["0"][0] == raw["label"].iloc[-1]
    assert crowd.truth[list(crowd.answers.items).index("59")] is None and crowd.labels == ["0", "1"]


def test_only_workers_of_enough_gold_items_are_calibrated(crowd_folder):
    crowd = read_crowd("cf", crowd_folder)
    gold = np.arange(20)
    result, n_calibrated = calibrated(crowd, gold)
    assert n_calibrated == 7 and ENOUGH <= 20
    outputs = crowd.answers.values["3"]
    counted = sum(outputs[i] == "1" and crowd.truth[i] == "0" for i in gold)
    assert result["3"].counts[0, 1] == pytest.approx(counted + 0.6)  # a guess is worth two rows
    assert result["7"].counts.sum() == pytest.approx(4.0)  # the guess alone


def test_scores_are_of_the_rows_asked_for():
    frame = pd.DataFrame({"item": list("abab"), "worker": list("ccdd"), "label": list("xyxy")})
    crowd = Crowd("some", long_answers(frame, source="worker", value="label"), np.array(["x", "x"], dtype=object))
    fuser = Fuser(None, method="majority").fit(crowd.answers)
    assert scores(fuser, crowd.truth, np.array([0]))["error"] == 0
    result = scores(fuser, crowd.truth, np.array([1]))
    assert result["error"] == 1 and result["log_loss"] == pytest.approx(-np.log(1e-6))


def test_table_crowds(crowd_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    given = ["--table", "crowds", "--quiet", "--data", str(crowd_folder), "--results", str(tmp_path), "--repeats", "2"]
    assert program.main([*given, "--sets", "cf"]) == 0
    printed = capsys.readouterr().out
    assert all(method in printed for method in METHODS)
    records = [json.loads(line) for line in (tmp_path / "crowds.jsonl").read_text().splitlines()]
    assert {r["method"] for r in records} == set(METHODS) and all(r["folds"] == 2 for r in records)
    assert all(r["mean"] < 25 for r in records if r["metric"] == "error")
    assert program.main([*given, "--sets", "dog"]) == 1
    assert "there is no data set 'crowd_dog'" in capsys.readouterr().err
