import numpy as np
import pytest
import sklearn.metrics as reference
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import label_binarize

from mixent.data.labels import classes_of, encode
from mixent.evaluate import balanced_error, brier, calibration_error, error_rate, labelled_rows, log_loss, score_table
from mixent.evaluate.scores import METRICS, auc_of, reliability

CLASSES = np.array(["a", "b", "c"])


def case(seed=0, n=200, n_classes=3):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(n_classes, 0.7), n)
    y = CLASSES[[rng.choice(n_classes, p=p) for p in proba]]
    return y, proba, rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_equal_scikit_learns(weighted):
    y, proba, weight = case()
    weight = weight if weighted else None
    guess = CLASSES[proba.argmax(axis=1)]
    assert error_rate(y, guess, sample_weight=weight) == pytest.approx(
        1 - reference.accuracy_score(y, guess, sample_weight=weight), rel=1e-12
    )
    assert balanced_error(y, guess, sample_weight=weight) == pytest.approx(
        1 - reference.balanced_accuracy_score(y, guess, sample_weight=weight), rel=1e-12
    )
    assert log_loss(y, proba, sample_weight=weight) == pytest.approx(
        reference.log_loss(y, proba, sample_weight=weight), rel=1e-12
    )
    miss = np.sum((label_binarize(y, classes=CLASSES) - proba) ** 2, axis=1)
    assert brier(y, proba, sample_weight=weight) == pytest.approx(np.average(miss, weights=weight), rel=1e-12)


def test_score_table_holds_the_single_scores():
    y, proba, weight = case()
    table = score_table(y, proba, CLASSES, weight)
    assert tuple(table) == METRICS
    guess = CLASSES[proba.argmax(axis=1)]
    assert table["error"] == error_rate(y, guess, sample_weight=weight)
    assert table["balanced_error"] == pytest.approx(balanced_error(y, guess, sample_weight=weight), rel=1e-12)
    for name, score in (("log_loss", log_loss), ("brier", brier), ("calibration", calibration_error)):
        assert table[name] == score(y, proba, CLASSES, sample_weight=weight)


def test_weight_two_is_the_row_twice_and_zero_is_no_row():
    y, proba, weight = case()
    times = weight.astype(int)
    twice = score_table(np.repeat(y, times), np.repeat(proba, times, axis=0), CLASSES)
    assert score_table(y, proba, CLASSES, weight) == pytest.approx(twice, rel=1e-12)


def test_permuting_classes_or_rows_changes_nothing():
    y, proba, weight = case()
    expected = score_table(y, proba, CLASSES, weight)
    order, rows = [2, 0, 1], np.random.default_rng(1).permutation(len(y))
    assert score_table(y, proba[:, order], CLASSES[order], weight) == pytest.approx(expected, rel=1e-12)
    assert score_table(y[rows], proba[rows], CLASSES, weight[rows]) == pytest.approx(expected, rel=1e-12)


def test_log_loss_of_the_truth_is_the_entropy_and_the_least():
    p = np.array([0.5, 0.3, 0.2])
    y, weight = CLASSES, p  # the exact distribution as weights
    truth = log_loss(y, np.tile(p, (3, 1)), CLASSES, sample_weight=weight)
    assert truth == pytest.approx(-np.sum(p * np.log(p)), rel=1e-12)
    brier_truth = brier(y, np.tile(p, (3, 1)), CLASSES, sample_weight=weight)
    assert brier_truth == pytest.approx(1 - np.sum(p**2), rel=1e-12)
    for q in np.random.default_rng(0).dirichlet(np.ones(3), 50):
        other = np.tile(q, (3, 1))
        assert log_loss(y, other, CLASSES, sample_weight=weight) >= truth
        gap = brier(y, other, CLASSES, sample_weight=weight) - brier_truth
        assert gap == pytest.approx(np.sum((p - q) ** 2), abs=1e-12)  # reliability term of the decomposition


def test_bounds():
    sure = np.eye(3)
    assert score_table(CLASSES, sure, CLASSES) == dict.fromkeys(METRICS, 0.0)
    wrong = score_table(CLASSES, sure[[1, 2, 0]], CLASSES)
    assert wrong["error"] == wrong["balanced_error"] == wrong["calibration"] == 1
    assert wrong["brier"] == 2
    assert wrong["log_loss"] == pytest.approx(-np.log(1e-15))


def test_balanced_error_is_over_the_true_classes():
    assert balanced_error(["a", "a", "b", "b"], ["a", "a", "a", "c"]) == 0.5


def test_calibration_error_by_hand():
    # confidence 0.6 and 0.9, half right in each: |0.5 - 0.6| / 2 + |0.5 - 0.9| / 2
    p = np.repeat([0.6, 0.9], 4)
    y = np.tile([1, 0], 4)
    assert calibration_error(y, np.stack([1 - p, p], axis=1)) == pytest.approx(0.25)
    assert calibration_error(y, np.stack([1 - p, p], axis=1), n_bins=1) == pytest.approx(0.25)


def test_bins_have_equal_mass_and_ties_stay_together():
    p = np.linspace(0.01, 0.99, 100)
    bins = reliability(p, p > 0.5, n_bins=10)
    np.testing.assert_array_equal(bins.mass, np.full(10, 10))
    np.testing.assert_allclose(bins.predicted, p.reshape(10, 10).mean(axis=1))
    np.testing.assert_array_equal(bins.observed, [0] * 5 + [1] * 5)
    tied = reliability(np.full(30, 0.7), np.arange(30) % 2, n_bins=10)
    assert len(tied.mass) == 1 and tied.observed == 0.5


def test_wilson_band_contains_the_frequency_and_matches_a_known_value():
    bins = reliability(np.full(10, 0.5), np.arange(10) < 1, n_bins=1)
    low, high = bins.band()
    np.testing.assert_allclose([low[0], high[0]], [0.0179, 0.4042], atol=2e-4)  # Wilson, 1 of 10
    halved = reliability(np.full(10, 0.5), np.arange(10) < 1, n_bins=1, sample_weight=np.full(10, 7.0))
    assert halved.n_rows == pytest.approx(10)  # the scale of weights adds no rows


def test_calibrated_predictions_score_low():
    y, proba, _ = case(n=4000)
    assert calibration_error(y, proba, CLASSES) < 0.05


def test_labels_of_any_dtype():
    y = ["b", None, "a", float("nan"), " "]
    np.testing.assert_array_equal(labelled_rows(y), [True, False, True, False, False])
    np.testing.assert_array_equal(classes_of(y), ["a", "b"])
    np.testing.assert_array_equal(classes_of(np.array([2.0, np.nan, 1.0])), [1, 2])
    assert classes_of([3, None, 1]).dtype.kind == "i"
    np.testing.assert_array_equal(encode([1.0, 0.0], np.array([0, 1])), [1, 0])
    np.testing.assert_array_equal(encode(np.array([True, False]), [False, True]), [1, 0])


def test_pandas_and_polars_labels():
    import pandas as pd
    import polars as pl

    for y in (pd.Series(["a", None, "b"]), pd.Series(["a", pd.NA, "b"], dtype="string"), pl.Series(["a", None, "b"])):
        np.testing.assert_array_equal(labelled_rows(y), [True, False, True])
        np.testing.assert_array_equal(classes_of(y), ["a", "b"])


# --- area under the ROC curve -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_auc_is_that_of_scikit_learn(n_classes, weighted):
    rng = np.random.default_rng(0)
    true = np.r_[np.arange(n_classes), rng.integers(n_classes, size=80)]
    proba = rng.dirichlet(np.ones(n_classes), size=len(true)).round(2) + 0.001
    proba /= proba.sum(axis=1, keepdims=True)
    weight = rng.integers(0, 4, size=len(true)).astype(float) if weighted else np.ones(len(true))
    scores = proba[:, 1] if n_classes == 2 else proba
    theirs = roc_auc_score(true, scores, multi_class="ovr", average="macro", sample_weight=weight)
    assert auc_of(true, proba, weight) == pytest.approx(theirs, rel=1e-12)


def test_the_auc_of_one_class_is_not_defined():
    proba = np.array([[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]])
    assert np.isnan(auc_of(np.zeros(3, dtype=int), proba, np.ones(3)))
    assert np.isnan(auc_of(np.array([0, 0, 1]), proba, np.array([1.0, 1.0, 0.0])))


def test_the_auc_leaves_out_classes_without_rows():
    rng = np.random.default_rng(0)
    true, proba = rng.integers(2, size=30), rng.dirichlet(np.ones(3), size=30)
    areas = [roc_auc_score(true == c, proba[:, c]) for c in (0, 1)]
    assert auc_of(true, proba, np.ones(30)) == pytest.approx(np.mean(areas))
