"""Wording of cli, update."""

from pathlib import Path

import pandas as pd

import mixent as mx


def test_bad_updates_leave_the_model_alone(fails, mixent, model, stock):
    before = Path(model).read_bytes()
    frame = pd.read_csv(stock / "data.csv")
    frame.assign(**{"class": "maybe"}).to_csv("new.csv", index=False)
    data = "{stock}/data.csv"
    assert "--target is needed: m.mixent holds a classifier" in fails("update", model, data, status=2)
    line = fails("update", model, "new.csv", "-t", "class")
    assert "maybe" in line and "new.csv, column 'class' (--target)" in line
    assert line.endswith("its classes are 'no', 'yes'; add it with --new-classes")
    line = fails("update", model, data, "-t", "color")
    assert "data.csv, column 'color' (--target)" in line and "its classes are 'no', 'yes'" in line
    assert "has no column 'Class'; did you mean 'class'?" in fails("update", model, data, "-t", "Class")
    assert "(--weight) must hold numbers" in fails("update", model, data, "-t", "class", "--weight", "color")
    assert "forgetting must be a share" in fails("update", model, data, "-t", "class", "--set", "forgetting=1")
    frame[["class", "w"]].to_csv("short.csv", index=False)
    assert "has no columns 'size', 'count'" in fails("update", model, "short.csv", "-t", "class")
    assert Path(model).read_bytes() == before
    assert "it is an input" in fails("update", model, "new.csv", "-t", "class", "-o", "new.csv")
    clusters = "{stock}/clusters.mixent"
    assert "--target is only used with classifiers" in fails("update", clusters, data, "-t", "class", status=2)
    line = fails("update", clusters, data, "--new-classes", status=2)
    assert "--new-classes is only used with classifiers" in line


def test_new_classes_are_named(mixent, model, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.assign(**{"class": frame["class"].where(frame.index > 9, "maybe")}).to_csv("new.csv", index=False)
    assert "New class: 'maybe'" in mixent("update", model, "new.csv", "-t", "class", "--new-classes").stdout


def test_models_that_cannot_be_updated(fails):
    for name in ("maxent", "joint"):
        line = fails("update", f"{{stock}}/{name}.mixent", "{stock}/data.csv", "-o", "n.mixent")
        assert "which cannot be updated with new rows" in line


def test_a_trained_model_is_not_updated(fails, mixent):
    model = mx.MixtureClassifier(1).fit([[0.0], [1.0], [2.0], [3.5]], ["no", "no", "yes", "yes"])
    mx.save(model.set_params(training="conditional"), "m.mixent")
    line = fails("update", "m.mixent", "{stock}/data.csv", "-t", "class")
    assert 'cannot be updated with new rows (only with training="likelihood"); fit it again' in line
