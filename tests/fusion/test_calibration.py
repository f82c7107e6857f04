"""What is known of a source: counts from anywhere, checked, kept as JSON."""

import json
from dataclasses import fields

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from mixent.fusion.calibration import Calibration
from mixent.fusion.scales import bin_names, line_pmf
from mixent.fusion.serialize import load_calibrations, save_calibrations

COUNTS = [[8.0, 2.0], [1.0, 9.0]]


def test_confusion_is_smoothed_and_sums_to_one():
    one = Calibration.from_counts(COUNTS, ["no", "yes"])
    assert one.symbols == ("no", "yes") and one.n_rows.tolist() == [10, 10]
    np.testing.assert_allclose(one.confusion, [[8.5 / 11, 2.5 / 11], [1.5 / 11, 9.5 / 11]], rtol=1e-12)
    np.testing.assert_allclose(Calibration.from_counts(COUNTS, ["no", "yes"], smoothing=0).confusion[0], [0.8, 0.2])
    np.testing.assert_allclose(one.class_prior, [0.5, 0.5])
    np.testing.assert_allclose(Calibration.from_counts(COUNTS, [0, 1], priors=[3, 1]).class_prior, [0.75, 0.25])


def test_rates_are_counts_over_their_rows():
    one = Calibration.from_rates([[0.8, 0.2], [0.1, 0.9]], [10, 20], ["no", "yes"])
    np.testing.assert_allclose(one.counts, [[8, 2], [2, 18]])
    np.testing.assert_allclose(Calibration.from_rates([[1, 0], [0, 1]], 5, [0, 1]).n_rows, [5, 5])


def test_predictions_are_counted_with_their_own_symbols():
    truth = ["no", "no", "yes", "yes", None, "yes"]
    said = ["no", "unsure", "yes", "no", "yes", None]
    one = Calibration.from_predictions(truth, said, calibration_set="clinic", copy_of="vendor")
    assert one.classes == ("no", "yes") and one.symbols == ("no", "unsure", "yes")
    assert one.counts.tolist() == [[1, 1, 0], [1, 0, 1]]
    assert one.calibration_set == "clinic" and one.copy_of == "vendor"
    wider = Calibration.from_predictions(truth, said, symbols=["yes", "no", "unsure", "other"])
    assert wider.counts.tolist() == [[0, 1, 1, 0], [1, 1, 0, 0]]


def test_probabilities_are_summed():
    said = np.array([[0.9, 0.1], [0.25, 0.75], [np.nan, np.nan]])
    one = Calibration.from_predictions([0, 1, 1], said)
    np.testing.assert_allclose(one.counts, [[0.9, 0.1], [0.25, 0.75]])


@pytest.mark.parametrize("hard", [False, True])
def test_a_classifier_is_calibrated_out_of_fold(hard):
    X, y = load_iris(return_X_y=True)
    noise = np.random.default_rng(0).integers(0, 3, 150)
    one = Calibration.from_cv(GaussianNB(), X, y, hard=hard)
    np.testing.assert_allclose(one.n_rows, 50)
    assert (np.diag(one.confusion) > 0.85).all() and (one.counts == np.round(one.counts)).all() == hard
    blind = Calibration.from_cv(GaussianNB(), X, noise, hard=True)
    assert np.diag(blind.confusion).mean() < 0.55  # on its training rows it would look better
    assert Calibration.from_cv(LinearSVC(), X, y).n_rows.tolist() == [50, 50, 50]


def test_scores_become_bins():
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, np.nan])
    one = Calibration.from_scores([0, 0, 0, 1, 0, 1, 1, 1], scores, edges=[0.35, 0.65])
    assert one.symbols == ("< 0.35", "0.35 to 0.65", ">= 0.65")
    assert one.counts.tolist() == [[3, 1, 0], [0, 1, 2]] and one.edges.tolist() == [0.35, 0.65]
    many = Calibration.from_scores(np.arange(100) % 2, np.arange(100.0), bins=4)
    assert many.counts.sum(axis=0).tolist() == [25, 25, 25, 25]
    assert bin_names(np.array([])) == ("any",)


def test_files_keep_everything(tmp_path):
    both = {
        "a": Calibration.from_counts(COUNTS, ["no", "yes"], priors=[0.3, 0.7], calibration_set="x", smoothing=1.0),
        "b": Calibration.from_scores([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], edges=[2.5], copy_of="a"),
    }
    save_calibrations(both, tmp_path / "c.json")
    for name, again in load_calibrations(tmp_path / "c.json").items():
        assert again.to_json() == both[name].to_json()
    (tmp_path / "hand.json").write_text(json.dumps({"v": {"classes": [0, 1], "counts": COUNTS}}))
    assert load_calibrations(tmp_path / "hand.json")["v"].symbols == (0, 1)


CELLED = np.arange(12.0).reshape(2, 3, 2)


def test_cells_are_part_of_the_answer_or_its_circumstances():
    one = Calibration(("no", "yes"), ("no", "unsure", "yes"), CELLED, cells=("left", "right"))
    counts = CELLED + 0.25  # the pseudo-count of a symbol is shared among its cells
    np.testing.assert_allclose(one.confusion, counts / counts.sum(axis=(1, 2), keepdims=True))
    assert one.n_rows.tolist() == [15, 51]
    context = Calibration(one.classes, one.symbols, CELLED, cells=one.cells, context=True)
    np.testing.assert_allclose(context.confusion, counts / counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(context.confusion.sum(axis=1), 1.0)
    np.testing.assert_allclose(one.confusion.sum(axis=(1, 2)), 1.0)


@pytest.mark.parametrize("context", [False, True])
def test_a_class_without_rows_has_what_is_said_of_the_others(context):
    counts = np.concatenate([CELLED, np.zeros((1, 3, 2))])
    one = Calibration(("a", "b", "c"), (0, 1, 2), counts, cells=(0, 1), context=context)
    pooled = CELLED.sum(axis=0) + 0.25
    np.testing.assert_allclose(one.confusion[2], pooled / pooled.sum(axis=0 if context else None))
    assert one.seen.tolist() == [True, True, False]


def test_cells_are_counted_with_the_predictions():
    truth, said = ["no", "no", "yes", "yes", "yes"], ["no", "yes", "yes", "yes", "no"]
    where = ["l", "r", "r", None, "l"]
    one = Calibration.from_predictions(truth, said, cells=where, context=True)
    assert one.cells == ("l", "r") and one.context
    assert one.counts.tolist() == [[[1, 0], [0, 1]], [[1, 0], [0, 1]]]  # a row without a cell is left out
    soft = Calibration.from_predictions(truth, said, cells=np.array([[0.5, 0.5]] * 4 + [[1.0, 0.0]]))
    assert soft.cells == (0, 1) and soft.counts[1].tolist() == [[1, 0], [1, 1]]
    pmfs = np.array([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5], [0.5, 0.5], [0, 1]])
    both = Calibration.from_predictions(truth, pmfs, cells=np.array([[0.5, 0.5]] * 4 + [[1.0, 0.0]]))
    np.testing.assert_allclose(both.counts, [[[0.6, 0.6], [0.4, 0.4]], [[0.5, 0.5], [1.5, 0.5]]])
    with pytest.raises(ValueError, match="cells"):
        Calibration.from_predictions(truth, said, cells=where[:4])


def test_a_guess_is_right_more_often_than_not():
    one = Calibration.guess(["a", "b", "c"])
    np.testing.assert_allclose(one.confusion, np.full((3, 3), 0.15) + 0.55 * np.eye(3))
    np.testing.assert_allclose(one.n_rows, 2.0)
    np.testing.assert_allclose(Calibration.guess([0, 1], 0.9, 10).counts, [[9, 1], [1, 9]])
    for options in ((0.3,), (1.0,), (0.9, 0)):
        with pytest.raises(ValueError, match="accuracy"):
            Calibration.guess(["a", "b", "c"], *options)


def test_scores_on_a_line_are_log_likelihood_ratios():
    """Normal scores of equal variance: the ratio is (mu1 - mu0) x - (mu1^2 - mu0^2) / 2, whatever the class shares."""
    rng = np.random.default_rng(0)
    truth = np.repeat(["client", "impostor"], [3000, 9000])
    scores = rng.normal(np.where(truth == "client", 2.0, 0.0))
    one = Calibration.from_scores(truth, scores, ratio=True)
    assert one.line == pytest.approx((-2.0, 2.0), abs=0.15)
    assert one.symbols == one.classes == ("client", "impostor")
    np.testing.assert_allclose(one.class_prior, [0.25, 0.75])
    pmf = line_pmf(scores, one.line, one.class_prior)
    np.testing.assert_allclose(one.counts[0], pmf[truth == "client"].sum(axis=0))
    shifted = Calibration.from_scores(truth, scores, ratio=True, priors=[0.5, 0.5])
    assert shifted.line == one.line and shifted.class_prior.tolist() == [0.5, 0.5]
    blank = Calibration.from_scores([*truth, None, "client"], [*scores, 1.0, np.nan], ratio=True)
    assert blank.line == one.line
    with pytest.raises(ValueError, match="ratio=True"):
        Calibration.from_scores([0, 1, 2], [1.0, 2, 3], ratio=True)
    with pytest.raises(ValueError, match="ratio=True"):
        Calibration.from_scores([0, 1], [1.0, np.nan], ratio=True)


FULL = {
    "plain": Calibration.from_counts(COUNTS, ["no", "yes"], priors=[0.3, 0.7], calibration_set="x", copy_of="y"),
    "symbols": Calibration.from_counts(CELLED[:, :, 0] + 1, [1, 2], ["no", "unsure", "yes"], smoothing=2.0),
    "edges": Calibration.from_scores([0, 1, 0, 1], [1.0, 2.0, 3.0, 4.0], edges=[2.5]),
    "line": Calibration((0, 1), (0, 1), COUNTS, line=(1.5, -2.0)),
    "cells": Calibration((0, 1), (0, 1, 2), CELLED, cells=("l", "r")),
    "context": Calibration((False, True), (0, 1, 2), CELLED, cells=(1, 2), context=True),
    "guess": Calibration.guess(["a", "b"]),
}


@pytest.mark.parametrize("kind", FULL)
def test_every_field_goes_through_json(kind, tmp_path):
    one = FULL[kind]
    again = Calibration.from_json(json.loads(json.dumps(one.to_json())))
    for field in fields(Calibration):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(one, field.name), field.name)
    save_calibrations({kind: one}, tmp_path / "c.json")
    np.testing.assert_array_equal(load_calibrations(tmp_path / "c.json")[kind].confusion, one.confusion)
