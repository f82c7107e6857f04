"""Wording of cli, novelty."""

from pathlib import Path

import pytest

import mixent as mx

from ...cli.test_novelty import NOVELTY, ODD, said


def test_wrote_n_html(mixent):
    text = said(mixent(*NOVELTY, "--report", "n.html"))
    assert "Wrote n.html; open it in a browser" in text


def test_below_the_threshold_column_nats_value_size(mixent, detector):
    ODD.to_csv("new.csv", index=False)
    text = said(mixent("explain", detector, "new.csv", "--row", "1"))
    assert "below the threshold column nats value size -" in text.replace("adds ", "")
    assert "Row 0: typical" in said(mixent("explain", detector, "new.csv"))
    text = said(mixent("explain", detector, "{stock}/data.csv"))
    assert "Choose a row with --row to see what each column adds, or write all with -o." in text


def test_info(mixent, detector):
    model = mx.load(detector)
    text = said(mixent("info", detector))
    assert "MEDNoveltyDetector, written by mixent" in text and " ".join(model.summary().text(80).split()) in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--set", "densty=tree"], "unknown parameter 'densty' of novelty; did you mean 'density'?"),
    ],
)
def test_options_that_do_not_exist(fails, options, message):
    assert message in fails(*NOVELTY, *options, status=2)


def test_outputs_are_checked_before_the_work(fails):
    assert "unknown kind of file '.pdf'; use one of .html" in fails(*NOVELTY, "--report", "r.pdf")
    assert "folder 'no' does not exist; create it" in fails(*NOVELTY[:-1], "no/d.mixent")
    assert not Path("d.mixent").exists()


@pytest.mark.parametrize(
    "options",
    [["--density"], ["--adjust-priors"], ["--reject", "0.1"], ["--costs", "c.csv"], ["--no-proba"], ["-t", "size"]],
)
def test_what_a_detector_cannot_be_asked(fails, detector, options):
    line = fails("predict", detector, "{stock}/data.csv", "-o", "o.csv", *options, status=2)
    name = {"-t": "--target"}.get(options[0], options[0])
    assert f"{name} is only used with models for " in line


def test_other_commands_refuse_a_detector(fails, detector):
    data = "{stock}/data.csv"
    assert "--label is not used: " in fails("explain", detector, data, "--label", "yes", status=2)
    assert "which has no model of the columns" in fails("impute", detector, data, "-o", "o.csv")
    assert "cannot be updated" in fails("update", detector, data)


def test_a_column_of_the_output_is_not_kept_twice(mixent, fails, detector):
    ODD.assign(score=1).to_csv("new.csv", index=False)
    line = fails("predict", detector, "new.csv", "-o", "o.csv", "--keep-all")
    assert "has a column 'score' too, as the output has" in line
    assert "no column 'z'" in fails("predict", detector, "new.csv", "-o", "o.csv", "--keep", "z")
    ODD.drop(columns="count").to_csv("less.csv", index=False)
    lacking = mixent("predict", detector, "less.csv", "-o", "o.csv").stderr
    assert "X lacks the column 'count' of fit, so that all its values are missing" in lacking


def test_help(mixent):
    page = " ".join(mixent("novelty", "--help").stdout.replace("│", " ").split())
    assert "mixent predict detector.mixent new.csv -o scored.csv" in page
    assert "mixent novelty" in mixent("--help").stdout
