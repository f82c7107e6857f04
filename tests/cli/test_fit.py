"""`mixent fit`: the library's model in a file, and what is printed on the way."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mixent as mx
from mixent.cli.console import Screen
from mixent.data import read_frame

from .conftest import FEATURES

FIT = ("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id,w", "-o", "m.mixent")
ONE = ("--set", "n_components=1")


def text_of(result):
    """Standard output on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def same(model, X):
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))


def test_a_model_and_its_description(mixent):
    text = text_of(mixent(*FIT, *ONE))
    model = mx.load("m.mixent")
    assert model.classes_.tolist() == ["no", "yes"] and model.progress is False
    assert [c.kind for c in model.schema_.columns] == ["continuous", "integer", "categorical"]
    assert "60 rows, 3 columns" in text and "On the training rows: log-loss" in text and "Wrote m.mixent (" in text
    assert " ".join(model.summary().text(80).split()) in text


def test_fit_equals_the_library(mixent, stock):
    assert mixent(*FIT, "--set", "n_components=2", "--set", "covariance=VVI", "--seed", "5").exit_code == 0
    frame = read_frame(stock / "data.csv")
    model = mx.MixtureClassifier(2, "VVI", random_state=5).fit(frame[FEATURES], frame["class"])
    np.testing.assert_array_equal(
        mx.load("m.mixent").predict_proba(frame[FEATURES]), model.predict_proba(frame[FEATURES])
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("maxent", ["prior_variance=0.5", "pairs=color,size;count,color"]),
        ("kernel-fisher", ["kernel=poly", "shrinkage=0.1"]),
        ("parzen", ["bandwidth=0.7"]),
        ("med-bayes-net", ["structure=color,size;", "calibration=none"]),
    ],
)
def test_settings_reach_the_library(mixent, stock, name, settings):
    from mixent.cli.parsing import read_settings
    from mixent.cli.settings import make_estimator

    assert mixent(*FIT, "--model", name, *(part for text in settings for part in ("--set", text))).exit_code == 0
    frame = read_frame(stock / "data.csv")
    model = make_estimator(name, read_settings(settings), {"random_state": 0, "n_jobs": None})
    model.fit(frame[FEATURES], frame["class"])
    np.testing.assert_array_equal(
        mx.load("m.mixent").predict_proba(frame[FEATURES]), model.predict_proba(frame[FEATURES])
    )


def test_without_a_target_clusters_are_fitted(mixent):
    args = ("fit", "{stock}/data.csv", "--ignore", "id,w,class", "-o", "m.mixent", "--set", "n_components=2")
    assert mixent(*args, "--set", "covariance=VVI").exit_code == 0
    model = mx.load("m.mixent")
    assert isinstance(model, mx.GaussianMixture) and model.n_components_ == 2


def test_models_of_other_tasks(mixent, stock):
    rows = read_frame(stock / "data.csv")[["size", "count"]].dropna()
    rows.to_csv("rows.csv", index=False)
    for name, cls in (
        ("novelty", mx.MEDNoveltyDetector),
        ("hmm-density", mx.HiddenMarkovModel),
        ("joint", mx.MaxEntJoint),
    ):
        assert mixent("fit", "rows.csv", "-o", "m.mixent", "--model", name).exit_code == 0
        assert type(mx.load("m.mixent")) is cls
    assert mixent("predict", "m.mixent", "rows.csv", "-o", "o.csv").exit_code == 0


def test_quiet_prints_nothing(mixent):
    result = mixent(*FIT, *ONE, "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_weights_are_used(mixent, stock):
    assert mixent(*FIT[:4], "--ignore", "id", "--weight", "w", "-o", "m.mixent", *ONE).exit_code == 0
    frame = pd.read_csv(stock / "data.csv")
    share = frame["w"][frame["class"] == "yes"].sum() / frame["w"].sum()
    model = mx.load("m.mixent")
    assert model.class_prior_[1] == pytest.approx(share) and "w" not in model.schema_.names


# --- problems of the table --------------------------------------------------------------------------------------------


def test_numbers_as_categories_and_as_classes(mixent):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": rng.integers(0, 3, 40), "x": rng.normal(size=40), "y": np.arange(40) % 2})
    frame.to_csv("d.csv", index=False)
    assert mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", *ONE, "--categorical", "zip").exit_code == 0
    model = mx.load("m.mixent")
    assert model.schema_.columns[0].kind == "categorical" and model.classes_.tolist() == [0, 1]


def test_markup_emoji_and_escapes_in_names_are_shown_as_they_are(mixent, stock):
    evil = "[bold red]x[/] :smile: \x1b[31m"
    frame = pd.read_csv(stock / "data.csv").drop(columns=["id", "w"]).rename(columns={"size": evil})
    frame = frame.assign(**{"[/]": 1}).replace({"yes": "[link=x]yes", "red": "[/nothing]"})
    frame.to_csv("d.csv", index=False)
    result = mixent("fit", "d.csv", "-t", "class", "-o", "m.mixent", *ONE)
    assert result.exit_code == 0, result.output
    assert "[link=x]yes" in result.stdout and "column '[/]'" in result.stderr
    result = mixent("info", "m.mixent")
    assert "[bold red]x[/] :smile: \\x1b[31m" in result.stdout and "[/nothing]" in result.stdout
    assert "\x1b" not in result.output


def test_parquet_and_gzip_in(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.to_parquet("d.parquet")
    frame.to_csv("d.tsv.gz", sep="\t", index=False)
    expected = mx.load(stock / "model.mixent").predict_proba(frame[FEATURES])
    for name in ("d.parquet", "d.tsv.gz"):
        assert mixent("fit", name, *FIT[2:], *ONE, "--set", "covariance=VVV").exit_code == 0
        np.testing.assert_allclose(mx.load("m.mixent").predict_proba(frame[FEATURES]), expected)


def test_a_joint_model_states_how_well_it_predicts_each_column(mixent, stock):
    text = text_of(mixent("fit", "{stock}/data.csv", "--ignore", "id,w", "-o", "j.mixent", "--model", "joint"))
    score = mx.load("j.mixent").accuracy_by_column(read_frame(stock / "data.csv")[[*FEATURES, "class"]])["class"]
    assert f"class {100 * score.error:.1f} %" in text


# --- progress ---------------------------------------------------------------------------------------------------------


def test_in_a_pipe_short_work_leaves_not_even_a_blank_line(capsys):
    with Screen(False).progress("Searching") as show:
        show(1, 2, "half")
    assert capsys.readouterr() == ("", "")


# --- what is refused --------------------------------------------------------------------------------------------------


def test_the_estimator_refuses_wrong_values_with_its_own_message(fails, stock):
    frame = read_frame(stock / "data.csv")
    for value in ("0", "two", "1.5"):
        with pytest.raises(ValueError, match="n_components must be") as caught:
            mx.MixtureClassifier(value if value == "two" else float(value) if "." in value else int(value)).fit(
                frame[FEATURES], frame["class"]
            )
        assert fails(*FIT, "--set", f"n_components={value}") == f"Error: {caught.value}"


def test_a_fit_resumes_from_the_checkpoint_beside_its_model(mixent, monkeypatch):
    from mixent.core.checkpoint import Checkpoint

    path, task = Path("m.mixent.checkpoint"), Checkpoint.task
    two = ("--set", "n_components=2", "--resume")

    def interrupted(self, key, compute):
        task(self, key, compute)
        raise KeyboardInterrupt

    mixent(*FIT, *two[:2])
    whole = mx.load("m.mixent")
    Path("m.mixent").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "task", interrupted)
        assert mixent(*FIT, *two).exit_code == 130
    assert path.exists() and not Path("m.mixent").exists()
    mixent(*FIT, *two)
    assert not path.exists()
    np.testing.assert_array_equal(mx.load("m.mixent").covariances_, whole.covariances_)
