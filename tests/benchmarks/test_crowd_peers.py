"""The benchmark of crowd labels beside crowd-kit, on simulated answers."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import crowd_peers, crowd_study, fusion_gold


def test_scores_of_perfect_and_of_equal_probabilities():
    frame, truth = crowd_peers.simulated(*crowd_peers.SMALL)
    labels = sorted(frame["label"].unique())
    right = pd.DataFrame(0.1, index=truth.index, columns=labels)
    for task, label in truth.items():
        right.loc[task, label] = 0.7
    accuracy, loss, _ = crowd_peers.scored(lambda _: right.sample(frac=1.0, random_state=0), frame, truth)
    assert accuracy == 100.0 and loss == pytest.approx(-np.log(0.7))  # whatever the order of the rows
    sure = (right > 0.5).astype(float)
    assert np.isnan(crowd_peers.scored(lambda _: sure, frame, truth)[1])  # labels have no log-loss


@pytest.fixture
def toy_folder(tmp_path):
    """A folder with one set, of 40 items, of which one has no known class."""
    frame, truth = crowd_peers.simulated(40, 8, 5)
    frame = frame.rename(columns={"task": "item"})
    frame["class"] = frame["item"].map(truth).where(frame["item"] != "3", "")
    frame.to_csv(tmp_path / "crowd.csv", index=False)
    (tmp_path / "manifest.json").write_text(json.dumps({"datasets": [{"name": "crowd_toy", "file": "crowd.csv"}]}))
    return tmp_path


def test_labels_of_some_items_beside_none(toy_folder, capsys):
    frame, truth = crowd_peers.read_set("toy", toy_folder)
    assert (fusion_gold.changes(frame, truth, 0.0, 1) == 0).all()  # no labels change nothing
    proba = pd.DataFrame(np.eye(4)[truth.astype(int)], index=truth.index, columns=list("0123"))
    assert fusion_gold.scores(proba.sample(frac=1.0, random_state=0), truth).tolist() == [100.0, 0.0]
    lines = fusion_gold.main(["--quick", "--sets", "toy", "--data", str(toy_folder)])
    assert lines[-1] in capsys.readouterr().out
    assert [cell.strip() for cell in lines[-1].split("|")][1] == "toy"


def test_our_methods_beside_each_other(toy_folder, capsys):
    assert len(crowd_peers.read_set("toy", toy_folder)[1]) == 39
    options = ["--quick", "--sets", "toy", "--data", str(toy_folder)]
    lines = crowd_peers.main(options)
    assert capsys.readouterr().out.splitlines() == lines
    names = [f"mixent {name}" for name in crowd_peers.OURS]
    assert lines[2].strip("| ").split(" | ")[1:5] == ["scored", *names]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[4:7]]
    assert [row[:2] for row in rows] == [["toy", "39 of 40"], ["mean", ""], ["simulated", "60 of 60"]]
    values = [[float(value) for value in row[2].split(" / ")[:2]] for row in rows]  # of auto
    assert values[0] == values[1] and min(values)[0] > 60  # of four classes
    assert len(crowd_peers.main([*options, "--methods", "mixent majority"])[2].split("|")) == 5


def test_means_leave_out_a_method_that_failed_on_a_set():
    failed = (np.nan, np.nan, np.nan)
    mean = crowd_peers.means({"a": {"x": (80.0, 0.5, 1.0), "y": failed}, "b": {"x": (90.0, 0.7, 3.0), "y": (1.0,) * 3}})
    assert mean["x"] == pytest.approx((85.0, 0.6, 2.0)) and np.isnan(mean["y"]).all()


def test_a_study_of_simulated_crowds(capsys):
    lines = crowd_study.main(["--quick"])
    assert capsys.readouterr().out.splitlines() == lines
    header, rows = lines[2], [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines[4:6]]
    assert "log-loss x0.7" in header and [row[:2] for row in rows] == [["0%", "2"], ["20%", "2"]]
    losses = np.array([[float(cell) for cell in row[2:]] for row in rows])
    assert (losses[1, :-3] > losses[0, :-3]).all()  # difficult items are more difficult for all methods
    assert lines[-2].startswith("hierarchical: ") and lines[-1].startswith("spread: ")


def test_difficult_items_and_rates_of_simulated_workers():
    setting = crowd_study.Setting(0.0, 5, "one-coin", 3, 20)
    answers, truth = crowd_study.simulated(setting, 0)
    given = np.stack(list(answers.values()), axis=1) != np.array(None)
    assert (given.sum(axis=1) == 5).all() and len(truth) == crowd_study.ITEMS
    rng = np.random.default_rng(0)
    for kind in crowd_study.KINDS:
        np.testing.assert_allclose(crowd_study._rates(kind, 3, 7, rng).sum(axis=2), 1.0)
