"""What is known of a source: counts from anywhere, checked, kept as JSON."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from mixent.fusion.calibration import Calibration, bin_names
from mixent.fusion.saved import load_calibrations, save_calibrations

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "no"}, "classes must be a list of labels; got 'no'"),
        ({"classes": [0, 0]}, r"classes must differ; got \[0, 0\]"),
        ({"classes": [0], "counts": [[1, 2]]}, r"a calibration needs at least two classes; got \[0\]"),
        ({"counts": [[1, 2]]}, r"counts must be finite numbers of shape \(2, 2\); got shape \(1, 2\)"),
        ({"counts": [["a", 2], [1, 2]]}, r"counts must be numbers of shape \(2, 2\); could not convert"),
        ({"counts": [[1, -2], [1, 2]]}, "counts must be >= 0; of class 0 it said 1 -2 times"),
        ({"priors": [1, -1]}, r"priors must be >= 0, and not all zero; got \[1.0, -1.0\]"),
        ({"edges": [1.0, 2.0]}, r"edges must be finite numbers of shape \(1,\); got shape \(2,\)"),
        ({"symbols": ["a", "b"], "edges": [np.nan]}, r"edges must be finite numbers of shape \(1,\)"),
        ({"copy_of": 3}, "copy_of must be a name, or None; got 3"),
        ({"calibration_set": ""}, "calibration_set must be a name, or None; got ''"),
        ({"smoothing": -1}, "smoothing must be a number >= 0; got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Calibration(**{"classes": [0, 1], "symbols": [0, 1], "counts": COUNTS, **options})


def test_messages_of_the_constructors(tmp_path):
    with pytest.raises(ValueError, match=r"edges must rise; got \[2.0, 1.0\]"):
        Calibration((0, 1), ("a", "b", "c"), np.ones((2, 3)), edges=[2, 1])
    with pytest.raises(ValueError, match=r"rates must be >= 0 and sum to 1 in each class; 'yes' has \[0.1, 0.8\]"):
        Calibration.from_rates([[0.8, 0.2], [0.1, 0.8]], 10, ["no", "yes"])
    with pytest.raises(ValueError, match="n_rows must be numbers >= 0; got -1"):
        Calibration.from_rates([[1, 0], [0, 1]], -1, [0, 1])
    with pytest.raises(ValueError, match="the source said 'maybe', which is none of the symbols 'no', 'yes'"):
        Calibration.from_predictions(["no", "yes"], ["no", "maybe"], symbols=["no", "yes"])
    with pytest.raises(ValueError, match="3 columns of probabilities for 2 symbols"):
        Calibration.from_predictions([0, 1], np.full((2, 3), 1 / 3))
    with pytest.raises(ValueError, match="truth must be labels; it holds probabilities"):
        Calibration.from_predictions([[0.5, 0.5], [0.1, 0.9]], [0, 1])
    with pytest.raises(ValueError, match="y must be labels; it holds probabilities"):
        Calibration.from_cv(GaussianNB(), np.eye(2), [[0.5, 0.5], [0.1, 0.9]])
    with pytest.raises(ValueError, match="scores hold no number"):
        Calibration.from_scores([0, 1], [np.nan, np.nan])
    for text, message in [
        ("{", "is no JSON file"),
        ("[]", "must hold an object, source -> calibration; it holds a list"),
        ('{"a": 3}', "source 'a': a calibration is a JSON object; got int"),
        ('{"a": {"classes": [0, 1]}}', "source 'a': a calibration needs the field 'counts'"),
        (
            '{"a": {"rate": 1}}',
            "source 'a': a calibration has no field 'rate'; it has 'calibration_set', 'cells', 'classes'",
        ),
    ]:
        (tmp_path / "c.json").write_text(text)
        with pytest.raises(ValueError, match=message):
            load_calibrations(tmp_path / "c.json")
