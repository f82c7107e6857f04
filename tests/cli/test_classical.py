"""Parzen windows and the kernel Fisher discriminant on the command line."""

import json

import numpy as np
import pytest

import mixent as mx
from mixent.data import read_frame

LEAVE = ("--ignore", "id,w")
FIT = ("fit", "{stock}/data.csv", "-t", "class", *LEAVE, "-o", "m.mixent", "--model")


def said(result):
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


@pytest.fixture
def table(stock):
    frame = read_frame(stock / "data.csv")
    return frame[["size", "count", "colour"]], frame["class"]


def test_parzen(mixent, table):
    text = said(mixent(*FIT, "parzen"))
    model, own = mx.load("m.mixent"), mx.ParzenClassifier().fit(*table)
    np.testing.assert_array_equal(model.predict_proba(table[0]), own.predict_proba(table[0]))
    told = f"60 Parzen windows; bandwidth {model.bandwidth_:.3g}, chosen among 25 by leaving each row out (conditional)"
    assert told in text and "Fitted ParzenClassifier" in text
    assert f"log-loss {model.loo_log_loss_:.3f} nats, error {model.loo_error_:.1%}" in text
    about = json.loads(mixent("info", "m.mixent", "--json").stdout)
    assert about["classical"]["bandwidth"] == model.bandwidth_ and about["left_out"]["error"] == model.loo_error_
    assert mixent("predict", "m.mixent", "{stock}/data.csv", "-o", "o.csv").exit_code == 0


def test_kernel_fisher(mixent, table):
    text = said(mixent(*FIT, "kernel-fisher", "--kernel", "poly", "--degree", "2", "--shrinkage", "0.1"))
    model, own = (
        mx.load("m.mixent"),
        mx.KernelFisherClassifier("poly", shrinkage=0.1).set_params(kernel__degree=2).fit(*table),
    )
    np.testing.assert_array_equal(model.predict_proba(table[0]), own.predict_proba(table[0]))
    told = f"1 Fisher discriminant: kernel poly, gamma {model.gamma_:.3g}, shrinkage 0.1, chosen among 8"
    assert told in text
    assert told in said(mixent("info", "m.mixent"))


def test_options_reach_the_library(mixent):
    assert mixent(*FIT, "parzen", "--objective", "likelihood", "--per-class", "-q").exit_code == 0
    model = mx.load("m.mixent")
    assert (model.criterion, model.per_class, model.bandwidth) == ("likelihood", True, "auto")
    assert "bandwidth 0.7, as given" in said(mixent(*FIT, "parzen", "--bandwidth", "0.7"))
    for gamma, wanted in (("auto", "auto"), ("scale", "scale"), ("0.3", 0.3)):
        assert mixent(*FIT, "kernel-fisher", "--gamma", gamma, "--shrinkage", "auto", "-q").exit_code == 0
        assert mx.load("m.mixent").get_params()["kernel__gamma"] == wanted


def test_a_table_in_which_no_class_has_two_rows(mixent, tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n1,p\n2,q\n4,r\n")
    text = said(mixent("fit", str(tmp_path / "d.csv"), "-t", "y", "-o", "m.mixent", "--model", "parzen"))
    assert "the usual one: no class has two rows to choose by" in text and "by all others" not in text


def test_evaluate_compares_them(mixent):
    more = ("--model", "parzen", "--model", "kernel-fisher", "--model", "med", "--kernel", "linear", "--c", "2")
    run = ("evaluate", "{stock}/data.csv", "-t", "class", *LEAVE, "--folds", "2", "--no-baselines", *more)
    text = said(mixent(*run))
    assert "mixent parzen" in text and "kernel-fisher" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("parzen", "--bandwidth", "wide"), "--bandwidth must be auto, or a number > 0; got 'wide'"),
        (("parzen", "--bandwidth", "1", "--per-class"), "--per-class has no effect with --bandwidth 1; it serves"),
        (("parzen", "--bandwidth", "1", "--objective", "likelihood"), "--objective has no effect with --bandwidth 1"),
        (("parzen", "--objective", "error"), "--objective must be one of conditional, likelihood; got 'error'"),
        (
            ("parzen", "--shrinkage", "1"),
            "--shrinkage has no effect with --model parzen; it serves --model kernel-fisher",
        ),
        (("kernel-fisher", "--bandwidth", "1"), "--bandwidth has no effect with --model kernel-fisher; it serves"),
        (("kernel-fisher", "--kernel", "fisher"), "--kernel must be one of rbf, linear, poly; got 'fisher'"),
        (("kernel-fisher", "--degree", "2"), "--degree has no effect with --kernel rbf; it serves --kernel poly"),
        (("kernel-fisher", "--kernel", "linear", "--gamma", "1"), "--gamma has no effect with --kernel linear"),
        (
            ("kernel-fisher", "--kernel", "linear", "--n-features", "9"),
            "--n-features has no effect with --kernel linear",
        ),
        (("kernel-fisher", "--gamma", "x"), "--gamma must be auto, or scale or a number > 0; got 'x'"),
        (("kernel-fisher", "--shrinkage", "0"), "--shrinkage must be auto, or a number > 0; got '0'"),
    ],
)
def test_refused(mixent, options, message):
    result = mixent(*FIT, *options)
    assert result.exit_code == 2 and message in " ".join(result.stderr.replace("│", " ").split()), result.stderr


@pytest.mark.parametrize("kind", ["parzen", "kernel-fisher"])
def test_clusters_have_no_classes(mixent, kind):
    result = mixent("fit", "{stock}/data.csv", "-o", "m.mixent", "--model", kind)
    assert result.exit_code == 2 and f"--model {kind} needs --target" in result.stderr
