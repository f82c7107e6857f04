"""Novelty detection on the command line: `mixent novelty`, then predict, explain, info; what cannot be."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.data import read_frame
from mixent.med import Margin

LEAVE = ("--ignore", "id,w,class")
NOVELTY = ("novelty", "{stock}/data.csv", *LEAVE, "-o", "d.mixent")
COLUMNS = ["size", "count", "colour"]
ODD = pd.DataFrame({"size": [0.5, 40.0, None], "count": [5.0, 5.0, 5.0], "colour": ["blue", "red", "violet"]})


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(scope="session")
def detector(stock, tmp_path_factory):
    """The path of a detector."""
    path = tmp_path_factory.mktemp("novelty") / "d.mixent"
    result = CliRunner().invoke(app, ["novelty", str(stock / "data.csv"), *LEAVE, "-q", "-o", str(path)])
    assert result.exit_code == 0 and not result.stdout, result.output
    return path


@pytest.fixture
def rows(stock):
    return read_frame(stock / "data.csv")[COLUMNS]


# novelty


def test_it_says_what_is_typical_and_which_rows_are_not(mixent, rows):
    text = said(mixent(*NOVELTY))
    model = mx.load("d.mixent")
    assert type(model) is mx.MEDNoveltyDetector and model.progress is False
    assert "Fitted MEDNoveltyDetector" in text and "3 columns, numbers jointly Gaussian" in text
    told = f"Every row is to be as probable as {model.level_:.4g} nats, the 0.5 quantile under the Bayesian fit"
    assert f"{told} (margin prior exponential, C 1)" in text
    most = model.multipliers_.max()
    assert f"{len(model.support_)} of 60 training rows count, at most {most:.3g} times; the others are typical" in text
    below = int((model.scores_ < model.offset_).sum())
    assert f"Threshold {model.offset_:.4g} nats: {below} of 60 training rows lie below (contamination 0.05)" in text
    lowest = int(model.scores_.argmin())
    assert f"{lowest} {model.scores_[lowest]:.2f} " in text.split("numbered from 0:")[1]
    assert "Wrote d.mixent" in text and "No --target" not in text


@pytest.mark.parametrize(
    ("options", "library"),
    [
        (("--model", "product", "--contamination", "0.2", "--prior", "3"), ("product", 0.2, {"ess": 3.0})),
        (("--model", "tree", "--margin", "laplace", "--alpha", "0.3", "--c", "2"), None),
        (("--model", "mixture", "-k", "2"), ("mixture", 0.05, {"n_hidden": 2})),
        (("--objective", "bayes"), ("auto", 0.05, {"objective": "bayes"})),
    ],
)
def test_it_equals_the_library(mixent, rows, options, library):
    assert mixent(*NOVELTY, *options).exit_code == 0
    kind, share, more = library or ("tree", 0.05, {"margin": Margin("laplace", quantile=0.3), "C": 2.0})
    model = mx.MEDNoveltyDetector(kind, contamination=share, **more).fit(rows)
    again = mx.load("d.mixent")
    np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
    assert again.offset_ == model.offset_


def test_models_in_words(mixent):
    assert "All trees over 3 columns, with Dirichlet tables" in said(mixent(*NOVELTY, "--model", "tree"))
    assert "3 columns, columns independent of each other" in said(mixent(*NOVELTY, "--model", "product"))
    text = said(mixent(*NOVELTY, "--model", "mixture", "-k", "2"))
    assert "A mixture of 2 components over 3 columns, numbers jointly Gaussian" in text
    text = said(mixent(*NOVELTY, "--objective", "bayes"))
    assert "Bayesian fit: every row counts once" in text and "Every row is to be" not in text


def test_rows_that_are_sequences(mixent):
    X = np.sort(np.random.default_rng(0).normal(size=(40, 5)), axis=1)
    X[7] = X[7, ::-1]
    pd.DataFrame(X, columns=list("abcde")).to_csv("s.csv", index=False)
    text = said(mixent("novelty", "s.csv", "-o", "d.mixent", "--model", "hmm", "--states", "3"))
    assert "A hidden Markov model of 3 states; 5 steps in a row" in text
    assert mx.load("d.mixent").scores_.argmin() == 7 and "numbered from 0: row score" in text


def test_weights_and_codes(mixent, rows):
    options = ("--ignore", "id,class", "--weight", "w", "--categorical", "count")
    assert mixent("novelty", "{stock}/data.csv", *options, "-o", "d.mixent").exit_code == 0
    assert mx.load("d.mixent").schema_.columns[1].kind == "categorical"


def test_the_report(mixent):
    text = said(mixent(*NOVELTY, "--report", "n.html"))
    page = Path("n.html").read_text(encoding="utf-8")
    assert "Wrote n.html; open it in a browser" in text
    assert "Novelty in data.csv" in page and page.count("<figure") == 2 and "mixent novelty " in page


# predict, explain, info


def test_predict_scores_rows(mixent, detector, rows):
    text = said(mixent("predict", detector, "{stock}/data.csv", "-o", "o.csv", "--keep", "id"))
    found, model = pd.read_csv("o.csv"), mx.load(detector)
    assert list(found) == ["id", "score", "decision", "outlier"]
    np.testing.assert_allclose(found["score"], model.score_samples(rows), rtol=1e-12)
    np.testing.assert_allclose(found["decision"], model.decision_function(rows), rtol=1e-9, atol=1e-12)
    assert (found["outlier"] == (model.predict(rows) < 0)).all()
    n = int(found["outlier"].sum())
    assert f"60 rows; {n} outliers (score below {model.offset_:.4g}); scores " in text and "Wrote o.csv" in text


def test_predict_says_which_column(mixent, detector):
    ODD.to_csv("new.csv", index=False)
    assert mixent("predict", detector, "new.csv", "-o", "o.csv", "--explain").exit_code == 0
    found = pd.read_csv("o.csv")
    assert found["outlier"].tolist() == [False, True, True]
    assert found["feature"].tolist()[1:] == ["size", "colour"]
    np.testing.assert_allclose(found["feature_part"], mx.load(detector).contributions(ODD).min(axis=1), rtol=1e-9)
    assert mixent("predict", detector, "new.csv", "-o", "-").stdout.startswith("score,decision,outlier\n")


def test_parts_are_what_a_value_adds(detector):
    model = mx.load(detector)
    parts = model.contributions(ODD)
    for j, name in enumerate(COLUMNS):
        gone = ODD.assign(**{name: None if name == "colour" else np.nan})
        np.testing.assert_allclose(
            parts[:, j], model.score_samples(ODD) - model.score_samples(gone), rtol=1e-9, atol=1e-12
        )
    assert parts[2, 0] == 0.0  # it was missing


def test_explain(mixent, detector):
    ODD.to_csv("new.csv", index=False)
    text = said(mixent("explain", detector, "new.csv", "--row", "1"))
    assert "Row 1: an outlier, score " in text and "below the threshold column nats value size -" in text.replace(
        "adds ", ""
    )
    assert "Row 0: typical" in said(mixent("explain", detector, "new.csv"))
    text = said(mixent("explain", detector, "{stock}/data.csv"))
    assert "Choose a row with --row to see what each column adds, or write all with -o." in text
    assert mixent("explain", detector, "new.csv", "-o", "why.csv").exit_code == 0
    why = pd.read_csv("why.csv")
    assert list(why) == ["row", "score", "outlier", "column", "value", "part"] and len(why) == 9
    assert why[why["row"] == 1]["part"].is_monotonic_increasing
    assert mixent("explain", detector, "new.csv", "-o", "why.json").exit_code == 0
    assert len(json.loads(Path("why.json").read_text(encoding="utf-8"))) == 9
    assert mixent("explain", detector, "new.csv", "-o", "-").stdout.startswith("row,score,outlier,column,value,part\n")


def test_info(mixent, detector):
    model = mx.load(detector)
    text = said(mixent("info", detector))
    assert "MEDNoveltyDetector, written by mixent" in text and "blue, green, red" in text
    assert "Threshold" in text and "Converged after" in text
    about = json.loads(mixent("info", detector, "--json").stdout)
    assert about["model"] == "gaussian" and about["threshold"] == {"value": model.offset_, "contamination": 0.05}
    assert about["level"] == {"value": model.level_, "quantile": 0.5} and about["gap"] == model.gap_
    assert about["counted"]["rows"] == len(model.support_) and about["scores"]["rows"] == 60


# what cannot be


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "forest"], "--model must be one of auto, product, tree, gaussian, mixture, hmm; got 'forest'"),
        (["-k", "2"], "--components has no effect with --model auto; it serves --model mixture"),
        (["--model", "hmm", "-k", "2"], "--components has no effect with --model hmm; it serves --model mixture"),
        (["--model", "mixture", "--states", "2"], "--states has no effect with --model mixture; it serves --model hmm"),
        (["--objective", "likelihood"], "--objective must be one of margin, bayes; got 'likelihood'"),
        (["--objective", "bayes", "--c", "2"], "--c has no effect with --objective bayes; it serves"),
        (["--objective", "bayes", "--alpha", "0.2"], "--alpha has no effect with --objective bayes; it serves"),
        (["--objective", "bayes", "--margin", "laplace"], "--margin has no effect with --objective bayes; it serves"),
        (["--margin", "fixed"], "--margin must be one of exponential, laplace, gaussian; got 'fixed'"),
        (["--c", "0"], "--c must be a number > 0; got '0'"),
        (["--c", "auto"], "--c must be a number > 0; got 'auto'"),
        (["--prior", "none"], "--prior none cannot be: a table needs some rows"),
        (["--prior", "-1"], "--prior must be auto, or none or a number > 0; got '-1'"),
        (["--contamination", "0.7"], "Invalid value for '--contamination'"),
        (["--alpha", "2"], "Invalid value for '--alpha'"),
        (["--target", "class"], "No such option: --target"),
    ],
)
def test_options_without_effect_or_sense(fails, options, message):
    assert message in fails(*NOVELTY, *options, status=2)


def test_outputs_are_checked_before_the_work(fails):
    assert "unknown kind of file '.pdf'; use one of .html" in fails(*NOVELTY, "--report", "r.pdf")
    assert "no folder 'no'; create it" in fails(*NOVELTY[:-1], "no/d.mixent")
    assert not Path("d.mixent").exists()


@pytest.mark.parametrize(
    "options",
    [["--density"], ["--adjust-priors"], ["--reject", "0.1"], ["--costs", "c.csv"], ["--no-proba"], ["-t", "size"]],
)
def test_what_a_detector_cannot_be_asked(fails, detector, options):
    line = fails("predict", detector, "{stock}/data.csv", "-o", "o.csv", *options, status=2)
    name = {"-t": "--target"}.get(options[0], options[0])
    assert f"{name} has no effect: " in line and "holds a novelty detector, which writes a score for each row" in line


def test_other_commands_refuse_a_detector(fails, detector):
    data = "{stock}/data.csv"
    assert "--label has no effect: " in fails("explain", detector, data, "--label", "yes", status=2)
    assert "which has no model of the columns" in fails("impute", detector, data, "-o", "o.csv")
    assert "cannot learn from new rows alone" in fails("update", detector, data)


def test_a_column_of_the_output_is_not_kept_twice(mixent, fails, detector):
    ODD.assign(score=1).to_csv("new.csv", index=False)
    line = fails("predict", detector, "new.csv", "-o", "o.csv", "--keep-all")
    assert "has a column 'score' too, as the output has" in line
    assert "no column 'z'" in fails("predict", detector, "new.csv", "-o", "o.csv", "--keep", "z")
    assert "no column 'count'" in fails("predict", detector, _without(ODD, "count"), "-o", "o.csv")


def _without(frame, name):
    frame.drop(columns=name).to_csv("less.csv", index=False)
    return "less.csv"


def test_help(mixent):
    page = " ".join(mixent("novelty", "--help").stdout.replace("│", " ").split())
    assert "mixent predict detector.mixent new.csv -o scored.csv" in page
    assert "mixent novelty" in mixent("--help").stdout
