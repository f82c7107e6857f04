"""The benchmark of crowd labels beside crowd-kit, on simulated answers."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import crowd_peers


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


def test_our_methods_beside_each_other(tmp_path, capsys):
    frame, truth = crowd_peers.simulated(40, 8, 5)
    frame = frame.rename(columns={"task": "item"})
    frame["class"] = frame["item"].map(truth).where(frame["item"] != "3", "")  # an item without a known class
    frame.to_csv(tmp_path / "crowd.csv", index=False)
    (tmp_path / "manifest.json").write_text(json.dumps({"datasets": [{"name": "crowd_toy", "file": "crowd.csv"}]}))
    assert len(crowd_peers.read_set("toy", tmp_path)[1]) == 39
    lines = crowd_peers.main(["--quick", "--sets", "toy", "--data", str(tmp_path)])
    assert capsys.readouterr().out.splitlines() == lines
    names = [f"mixent {name}" for name in crowd_peers.OURS]
    assert lines[2].strip("| ").split(" | ")[1:4] == names
    rows = [line.strip("| ").split(" | ") for line in lines[4:7]]
    assert [row[0] for row in rows] == ["toy", "simulated", "mean"]
    values = [[float(value) for value in row[1].split(" / ")[:2]] for row in rows]  # of auto
    assert values[2] == pytest.approx(np.mean(values[:2], axis=0), abs=0.06)
    assert min(values)[0] > 60  # of four classes
