"""Maximum entropy discrimination on the command line: fit, evaluate, predict, info; what cannot be."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mixent as mx
from mixent.cli import app
from mixent.data import read_frame
from mixent.med import Margin, Polynomial

LEAVE = ("--ignore", "id,w")
FIT = ("fit", "{stock}/data.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model")
EVALUATE = ("evaluate", "{stock}/data.csv", "-t", "class", *LEAVE, "--folds", "2", "--no-baselines")
COLUMNS = ["size", "count", "colour"]


def said(result):
    """What came to the screen, on one line."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture(scope="session")
def discrimination(stock, tmp_path_factory):
    """A folder with med.mixent, rbf.mixent and gaussian.mixent."""
    folder = tmp_path_factory.mktemp("discrimination")
    for name, options in (
        ("med", ["--model", "med", "--c", "2"]),
        ("rbf", ["--model", "med", "--c", "2", "--kernel", "rbf", "--gamma", "0.4", "--bias", "3"]),
        ("gaussian", ["--model", "med-gaussian", "--c", "2"]),
    ):
        args = ["fit", str(stock / "data.csv"), *LEAVE, "-t", "class", *options, "-q"]
        result = CliRunner().invoke(app, [*args, "-o", str(folder / f"{name}.mixent")])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def table(stock):
    frame = read_frame(stock / "data.csv")
    return frame[COLUMNS], frame["class"]


# fit and info


def test_fit_says_kernel_choice_of_c_support_gap_and_calibration(mixent):
    text = said(mixent(*FIT, "med"))
    model = mx.load("m.mixent")
    assert type(model) is mx.MEDClassifier and model.progress is False
    assert "Fitted MEDClassifier" in text and "Linear discriminant in 7 encoded columns" in text
    best = min(entry["log_loss"] for entry in model.C_tried_)
    assert f"C {model.C_:g}, chosen among {len(model.C_tried_)} by cross-validation: log-loss {best:.3f} nats" in text
    share = f"{model.loo_estimate_:.1%} (their share: crude, as a rule far too high; see mixent evaluate)"
    assert f"{len(model.support_)} of 60 rows support the boundary; leave-one-out estimate of the error {share}" in text
    assert f"Margin prior {model.margin}, about 1; prior of the bias flat" in text
    assert f"Certificate: at most {model.gap_:.1g} nats from the optimum" in text
    assert (
        f"a softmax of {model.calibration_.slope:.3g} times the scores (temperature, fitted to rows held out)" in text
    )
    strongest = int(np.abs(model.coef_).argmax())
    speaks = "yes" if model.coef_[strongest] > 0 else "no"
    assert f"speaks for {model.feature_names_[strongest]} {abs(model.coef_[strongest]):.3f} {speaks}" in text
    by_class = [int(np.sum(model.label_posterior_[model.support_].argmax(axis=1) == s)) for s in (0, 1)]
    assert f"no 30 0.500 {by_class[0]} yes 30 0.500 {by_class[1]}" in text
    assert "Converged after" in text and "On the training rows" in text and "Wrote m.mixent" in text


def test_fit_equals_the_library(mixent, table):
    X, y = table
    options = ("--kernel", "poly", "--degree", "2", "--gamma", "0.5", "--c", "4", "--margin", "exponential")
    assert mixent(*FIT, "med", *options, "--bias", "2", "--calibration", "affine", "--seed", "3").exit_code == 0
    model = mx.MEDClassifier(
        Polynomial(2, 0.5), C=4.0, margin="exponential", bias=2.0, calibration="affine", random_state=3
    ).fit(X, y)
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))
    options = ("--kernel", "rbf", "--n-features", "3", "--c", "2", "--margin", "laplace", "--alpha", "0.3")
    assert mixent(*FIT, "med-gaussian", *options, "--prior", "4", "--calibration", "predictive").exit_code == 0
    model = mx.MEDGaussianClassifier(
        kernel="rbf",
        n_kernel_components=3,
        C=2.0,
        margin=Margin("laplace", quantile=0.3),
        calibration="predictive",
        random_state=0,
        prior=4.0,
    ).fit(X, y)
    np.testing.assert_array_equal(mx.load("m.mixent").predict_proba(X), model.predict_proba(X))


def test_words_that_stand_for_none(mixent):
    text = said(mixent(*FIT, "med", "--calibration", "none", "--c", "2", "--gamma", "scale", "--kernel", "rbf"))
    model = mx.load("m.mixent")
    assert model.calibration is None and "Probabilities: a softmax of the scores as they are" in text
    assert "C 2, as given" in text and f"Kernel rbf, gamma {model.kernel_.gamma:.3g}" in text
    assert mixent(*FIT, "med", "--bias", "flat", "--c", "auto", "-q").exit_code == 0
    assert (mx.load("m.mixent").bias, mx.load("m.mixent").C) == ("flat", "auto")
    pd.DataFrame({"a": np.arange(30.0) % 7, "b": np.arange(30.0) % 5, "y": list("pqr") * 10}).to_csv(
        "d.csv", index=False
    )
    fit = ("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "med-gaussian", "--c", "1", "-q")
    assert mixent(*fit, "--prior", "none").exit_code == 0
    assert mx.load("m.mixent").prior == 0


def test_gaussians_say_their_margin(mixent):
    text = said(mixent(*FIT, "med-gaussian", "--c", "2", "--calibration", "affine"))
    model = mx.load("m.mixent")
    assert "Gaussians of 7 encoded columns" in text
    told = f"about {model.margin_.at:.3g}, the 0.1 quantile of the margins before discrimination"
    assert f"Margin prior {model.margin}, {told}" in text
    no, yes = model.calibration_.offset
    assert f"(affine, fitted to rows held out); moved by no: {no:+.2f}, yes: {yes:+.2f}" in text
    assert "(their share: crude, the prior too is of these rows; see" in text


def test_gaussians_that_nobody_asks_anything_of(mixent):
    text = said(mixent(*FIT, "med-gaussian", "--c", "0.1", "--alpha", "0"))
    assert len(mx.load("m.mixent").support_) == 0
    assert "No row asks for more than the margins the prior gives: discrimination changed nothing" in text


def test_a_margin_that_is_certain(mixent):
    pd.DataFrame({"x": np.arange(20.0), "y": ["p"] * 10 + ["q"] * 10}).to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "med", "--margin", "fixed"))
    assert "Every row keeps a margin of 1; prior of the bias flat" in text and " c " not in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert about["c"] == {"value": None, "how": "none", "tried": []}


def test_too_few_labels_to_choose_and_calibrate(mixent):
    pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": ["p", None, None, "q"]}).to_csv("d.csv", index=False)
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", "--model", "med"))
    assert "the usual one: too few labelled rows to choose" in text
    assert "as they are: too few labelled rows to calibrate" in text


def test_a_fisher_kernel(mixent, table):
    text = said(mixent(*FIT, "med", "--kernel", "fisher", "--c", "2", "--categorical", "count", "--jobs", "1"))
    model = mx.load("m.mixent")
    assert f"components: {model.map_.rank_} features" in text and "Fisher kernel of a mixture of" in text
    assert model.kernel.model.categorical == model.categorical == ["count"]
    assert mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv").exit_code == 0


def test_rows_without_a_label_take_part(mixent, stock):
    frame = pd.read_csv(stock / "data.csv")
    frame.loc[::6, "class"] = None
    frame.to_csv("d.csv", index=False)
    for kind in ("med", "med-gaussian"):
        result = mixent("fit", "d.csv", *FIT[2:], kind, "--c", "2")
        assert "10 of 60 rows have no label in 'class': they are used as unlabelled rows" in result.stderr
        text, model = said(result), mx.load("m.mixent")
        sure = int((model.label_posterior_[::6].max(axis=1) >= 0.9).sum())
        assert f"10 rows without a certain label took part; {sure} now have one at least 90% certain" in text
        assert "nats from the optimum for these labels" in text
        assert mixent("predict", "m.mixent", "d.csv", "-o", "o.csv").exit_code == 0
        assert pd.read_csv("o.csv")["predicted"].notna().all()
    result = mixent(
        "evaluate", "d.csv", *EVALUATE[2:], "--model", "med", "--c", "2", "--report", "r.html", "-o", "s.csv"
    )
    assert result.exit_code == 0 and not pd.read_csv("s.csv")["labelled_only"].any()
    page = Path("r.html").read_text(encoding="utf-8")
    assert "Margins of 50 labelled training rows" in page
    assert "10 rows without a label: always in training, never scored." in page


def test_weights(mixent):
    options = ("--model", "med", "--c", "2", "-o", "m.mixent")
    result = mixent("fit", "{stock}/data.csv", "-t", "class", "--ignore", "id", "--weight", "w", *options)
    assert result.exit_code == 0


def test_info(mixent, discrimination):
    model = mx.load(discrimination / "rbf.mixent")
    text = said(mixent("info", discrimination / "rbf.mixent"))
    assert "MEDClassifier, written by mixent" in text and "blue, green, red" in text
    assert "Kernel rbf, gamma 0.4" in text and "prior of the bias of variance 3" in text
    assert "free parameter" not in text and "Converged after" in text
    about = json.loads(mixent("info", discrimination / "rbf.mixent", "--json").stdout)
    assert about["class"] == "MEDClassifier" and about["run"]["ok"] and about["gap"] == model.gap_
    assert about["kernel"]["name"] == "rbf" and about["kernel"]["gamma"] == 0.4
    assert about["c"] == {"value": 2.0, "how": "given", "tried": []} and about["bias"] == 3.0
    support = {"rows": len(model.support_), "of": 60, "leave_one_out": model.loo_estimate_}
    assert about["support"] == support and sum(c["support"] for c in about["classes"]) == len(model.support_)
    assert about["calibration"]["slope"] == model.calibration_.slope and "strongest" not in about
    assert "in_doubt" not in about
    about = json.loads(mixent("info", discrimination / "med.mixent", "--json").stdout)
    assert about["strongest"][0]["size"] == np.abs(mx.load(discrimination / "med.mixent").coef_).max()


def test_many_classes_and_columns_are_cut(mixent):
    rng = np.random.default_rng(0)
    y = np.arange(160) % 32
    frame = pd.DataFrame(rng.normal(size=(160, 10)) + y[:, None], columns=[f"x{j}" for j in range(10)])
    frame.assign(y=[f"k{i:02}" for i in y]).to_csv("d.csv", index=False)
    options = ("--model", "med", "--c", "1", "--calibration", "none")
    text = said(mixent("fit", "d.csv", "-t", "y", "-o", "m.mixent", *options))
    assert text.count("... and 2 more") == 2  # classes, columns


# predict


def test_predict(mixent, discrimination, table):
    for name in ("med", "rbf", "gaussian"):
        path = discrimination / f"{name}.mixent"
        assert mixent("predict", path, "{stock}/data.csv", "-o", "o.csv", "--keep", "id").exit_code == 0
        found, model = pd.read_csv("o.csv"), mx.load(path)
        np.testing.assert_allclose(found[["p(no)", "p(yes)"]], model.predict_proba(table[0]), rtol=1e-12)
        assert (found["predicted"] == model.predict(table[0])).all()
        result = mixent("predict", path, "{stock}/data.csv", "-o", "o.csv", "--reject", "0.1", "--adjust-priors")
        assert "Class priors of this table" in said(result)


# evaluate


def test_evaluate_compares_and_options_go_where_they_belong(mixent):
    models = ("--model", "med", "--model", "med-gaussian", "--model", "maxent", "--model", "mixture")
    options = ("-k", "1", "--latent", "pooled", "--prior", "2", "--c", "2", "--kernel", "linear", "--alpha", "0.2")
    text = said(mixent(*EVALUATE, *models, *options, "--calibration", "predictive", "-o", "s.csv"))
    told = "--prior 2: pseudo-rows of a mixture and of mixent med-gaussian, the variance of the multipliers of mixent"
    assert f"{told} maxent." in text
    scores = pd.read_csv("s.csv")
    assert set(scores["method"]) == {"mixent med", "mixent med-gaussian", "mixent maxent", "mixent mixture"}
    assert scores["failed"].isna().all() and (scores["error"] < 0.3).all()


def test_numbers_with_two_meanings_are_told(mixent):
    both = ("--model", "med", "--model", "med-gaussian", "--c", "2", "--kernel", "rbf", "--n-features", "4")
    text = said(mixent(*EVALUATE, *both))
    assert "--n-features 4: in place of the kernel, and components of the kernel's space." in text
    mixture = ("--model", "mixture", "-k", "1", "--objective", "conditional", "--alpha", "0.5")
    text = said(mixent(*EVALUATE, "--model", "med-gaussian", "--c", "2", *mixture))
    assert "--alpha 0.5: what a mixture is trained for, and the quantile of the margins mixent med-gaussian" in text


def test_a_certain_margin_is_for_one_of_them(mixent):
    frame = pd.DataFrame({"x": np.arange(40.0), "z": np.arange(40) % 7, "y": ["p"] * 20 + ["q"] * 20})
    frame.to_csv("d.csv", index=False)
    models = ("--model", "med", "--model", "med-gaussian", "--margin", "fixed", "--c", "2", "-o", "s.csv")
    assert mixent("evaluate", "d.csv", "-t", "y", "--folds", "2", "--no-baselines", *models).exit_code == 0
    assert pd.read_csv("s.csv")["failed"].isna().all()


# what cannot be


@pytest.mark.parametrize("kind", ["med", "med-gaussian"])
@pytest.mark.parametrize(
    "options",
    [
        ["--components", "2"],
        ["--covariance", "VVV"],
        ["--objective", "conditional"],
        ["--latent", "union"],
        ["--solver", "iis"],
        ["--select", "cv"],
        ["--max-components", "3"],
    ],
)
def test_options_of_other_models(fails, kind, options):
    assert f"{options[0]} has no effect with --model {kind}; it serves" in fails(*FIT, kind, *options, status=2)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("med", ["--prior", "2"], "--prior has no effect with --model med; it serves"),
        ("med", ["--alpha", "0.2"], "--alpha has no effect with --model med; it serves"),
        ("med", ["--kernel", "sigmoid"], "--kernel must be one of linear, poly, rbf, fisher; got 'sigmoid'"),
        ("med", ["--kernel", "precomputed"], "--kernel must be one of linear, poly, rbf, fisher"),
        ("med", ["--margin", "hinge"], "--margin must be one of exponential, laplace, gaussian, fixed; got 'hinge'"),
        ("med", ["--calibration", "predictive"], "--calibration must be one of temperature, affine, none; got"),
        ("med", ["--c", "0"], "--c must be auto, or a number > 0; got '0'"),
        ("med", ["--c", "much"], "--c must be auto, or a number > 0; got 'much'"),
        ("med", ["--margin", "exponential", "--c", "0.9"], "--c must be more than 1 with --margin exponential"),
        ("med", ["--margin", "fixed", "--c", "2"], "--c has no effect with --margin fixed"),
        ("med", ["--bias", "-1"], "--bias must be flat, or a number > 0; got '-1'"),
        ("med", ["--degree", "2"], "--degree has no effect with --kernel linear; it serves --kernel poly"),
        ("med", ["--kernel", "rbf", "--degree", "2"], "--degree has no effect with --kernel rbf; it serves"),
        ("med", ["--gamma", "1"], "--gamma has no effect with --kernel linear; it serves --kernel poly and rbf"),
        ("med", ["--kernel", "rbf", "--gamma", "0"], "--gamma must be scale, or a number > 0; got '0'"),
        ("med", ["--kernel", "fisher", "--n-features", "9"], "--n-features has no effect with --kernel fisher"),
        ("med", ["--kernel", "poly", "--degree", "0"], "Invalid value for '--degree'"),
        ("med-gaussian", ["--kernel", "linear"], "--kernel must be one of poly, rbf; got 'linear'"),
        ("med-gaussian", ["--margin", "fixed"], "--margin must be one of exponential, laplace, gaussian; got 'fixed'"),
        ("med-gaussian", ["--n-features", "4"], "--n-features has no effect without --kernel; it serves --kernel"),
        ("med-gaussian", ["--prior", "0"], "--prior must be auto, or none or a number > 0; got '0'"),
        ("mixture", ["--kernel", "rbf"], "--kernel has no effect with --model mixture; it serves --model med and"),
    ],
)
def test_options_without_effect_or_sense(fails, kind, options, message):
    assert message in fails(*FIT, kind, *options, status=2)


def test_classes_are_needed(fails):
    for kind in ("med", "med-gaussian"):
        line = fails("fit", "{stock}/data.csv", "-o", "m.mixent", "--model", kind, status=2)
        assert f"--model {kind} needs --target: clusters have no classes" in line


def test_rows_that_cannot_keep_a_margin(fails):
    line = fails(*FIT, "med", "--margin", "fixed", "--ignore", "size,colour")
    assert "no solution keeps the fixed margin 1 in every row" in line


def test_what_a_model_cannot_be_asked(fails, discrimination):
    data, med = "{stock}/data.csv", discrimination / "med.mixent"
    predict = ("predict", med, data, "-o", "o.csv")
    assert "holds a MEDClassifier, which has no density" in fails(*predict, "--density", status=2)
    assert "holds a MEDClassifier, which explains nothing" in fails(*predict, "--explain", status=2)
    assert "holds a MEDClassifier, which explains nothing; fit a mixture" in fails("explain", med, data)
    assert "MEDClassifier, which has no model of the columns" in fails("impute", med, data, "-o", "o.csv")
    assert "cannot learn from new rows alone; fit it anew" in fails("update", med, data, "-t", "class")


def test_a_file_that_holds_a_kernel(mixent, fails, table):
    kernel = mx.FisherKernel(mx.GaussianMixture(2, "EII", random_state=0), n_samples=300, random_state=0).fit(table[0])
    mx.save(kernel, "k.mixent")
    text = said(mixent("info", "k.mixent"))
    assert "FisherKernel, written by mixent" in text
    assert f"Fisher kernel of this mixture: {kernel.rank_} features." in text
    assert json.loads(mixent("info", "k.mixent", "--json").stdout)["fisher_features"] == kernel.rank_
    line = fails("predict", "k.mixent", "{stock}/data.csv", "-o", "o.csv")
    assert "k.mixent holds a FisherKernel, which predicts nothing by itself; fit a classifier with it" in line
    assert "which has no classes to explain" in fails("explain", "k.mixent", "{stock}/data.csv")


def test_help_names_the_models_and_their_options(mixent):
    for command in ("fit", "evaluate"):
        page = " ".join(mixent(command, "--help").stdout.replace("│", " ").split())
        assert "med: maximum entropy discrimination" in page and "--model med" in page.split("Examples:")[1]
        for option in ("--kernel", "--c", "--margin", "--bias", "--gamma", "--degree", "--calibration", "--n-features"):
            assert f"{option} " in page
