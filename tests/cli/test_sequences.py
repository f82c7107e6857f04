"""Models of sequences: a sequence in each row, or a row for each step (`--sequence`)."""

import numpy as np
import pandas as pd

import mixent as mx
from mixent.data import read_frame


def make_series(n=40, seed=0):
    """Sequences that rise or fall, one in each row; a row ends early."""
    rng = np.random.default_rng(seed)
    rising = np.sort(rng.normal(size=(n, 6)), axis=1)
    rising[n // 2 :] = rising[n // 2 :, ::-1]
    frame = pd.DataFrame(rising, columns=[f"t{i}" for i in range(6)])
    frame.loc[1, "t5"] = np.nan
    return frame.assign(way=np.repeat(["up", "down"], n // 2))


def make_steps(n=24, seed=0):
    """Sequences of different lengths, numbers and words at each step."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        speed = np.sort(rng.normal(size=rng.integers(4, 8)))[:: 1 if i % 2 else -1]
        for value in speed:
            color = "red" if value > rng.normal() else "blue"
            way = "up" if i % 2 else "down"
            rows.append({"id": f"{i:02}", "speed": value, "color": color, "w": 1.0 + i % 3, "way": way})
    return pd.DataFrame(rows)


ROWS = ("fit", "d.csv", "-t", "way", "-o", "m.mixent", "--model", "hmm")
STEPS = (*ROWS, "--sequence", "id")


def test_a_sequence_in_each_row_equals_the_library(mixent):
    frame = make_series()
    frame.to_csv("d.csv", index=False)
    assert mixent(*ROWS, "--set", "n_states=3", "--seed", "2").exit_code == 0
    X = frame.drop(columns="way")
    model = mx.HMMClassifier(3, random_state=2).fit(X, frame["way"])
    np.testing.assert_allclose(mx.load("m.mixent").predict_proba(X), model.predict_proba(X), rtol=1e-9)
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--density").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("o.csv")["log_density"], model.score_samples(X), rtol=1e-9)


def test_sequences_without_a_label_are_left_out(mixent):
    frame = make_series().assign(way=lambda f: f["way"].where(f.index % 5 > 0))
    frame.to_csv("d.csv", index=False)
    result = mixent(*ROWS)
    assert result.exit_code == 0
    known = frame.dropna(subset="way")
    model = mx.HMMClassifier(random_state=0).fit(known.drop(columns="way"), known["way"])
    X = frame.drop(columns="way")
    np.testing.assert_allclose(mx.load("m.mixent").predict_proba(X), model.predict_proba(X), rtol=1e-9)


def test_steps_equal_the_library(mixent):
    steps = make_steps().sample(frac=1, random_state=0).sort_values("speed", kind="stable")  # sequences interleave
    steps.to_csv("d.csv", index=False)
    result = mixent(*STEPS, "--weight", "w")
    assert result.exit_code == 0
    X = read_frame("d.csv", text=["id"])
    ends = X.drop_duplicates("id")
    model = mx.HMMClassifier(random_state=0)
    model.fit(X[["speed", "color"]], ends["way"], sample_weight=ends["w"], groups=X["id"])
    proba = model.predict_proba(X[["speed", "color"]], groups=X["id"])
    predict = ("predict", "m.mixent", "d.csv", "-o", "o.csv", "--sequence", "id", "--keep", "way")
    assert mixent(*predict, "--density").exit_code == 0
    found = read_frame("o.csv", text=["id"])
    assert found["id"].tolist() == ends["id"].tolist() and found["way"].tolist() == ends["way"].tolist()
    np.testing.assert_allclose(found[["p(down)", "p(up)"]].to_numpy(dtype=float), proba, rtol=1e-9)
    assert list(found) == ["id", "way", "predicted", "p(down)", "p(up)", "log_density"]
    assert mixent(*predict, "--reject", "0.2", "--adjust-priors").exit_code == 0
    assert len(pd.read_csv("o.csv")) == 24


def test_steps_of_sequences_without_a_label_are_left_out(mixent):
    steps = make_steps()
    some = steps.assign(way=steps["way"].where(steps["id"] > "03"))
    some.to_csv("d.csv", index=False)
    assert mixent(*STEPS, "--ignore", "w").exit_code == 0
    known = some.dropna(subset="way")
    model = mx.HMMClassifier(random_state=0)
    model.fit(known[["speed", "color"]], known.drop_duplicates("id")["way"], groups=known["id"])
    expected = model.predict_proba(steps[["speed", "color"]], groups=steps["id"])
    found = mx.load("m.mixent").predict_proba(steps[["speed", "color"]], groups=steps["id"])
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_density_of_sequences(mixent):
    steps = make_steps().drop(columns=["way", "w"])
    steps.to_csv("d.csv", index=False)
    fit = ("fit", "d.csv", "-o", "m.mixent", "--model", "hmm-density", "--sequence", "id")
    assert mixent(*fit).exit_code == 0
    assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv", "--sequence", "id").exit_code == 0
    expected = mx.load("m.mixent").score_samples(steps[["speed", "color"]], groups=steps["id"])
    np.testing.assert_allclose(pd.read_csv("o.csv")["log_density"], expected, rtol=1e-9)
