"""Calibration, ROC curves, confusion and scores of labelled rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from mixent.base.document import Figure
from mixent.evaluate import cross_validate, error_bounds, log_loss
from mixent.evaluate.row_losses import score_interval
from mixent.report import results, scores
from mixent.report.results import Predictions, out_of_fold

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
METHODS = {"LDA": LinearDiscriminantAnalysis(), "naive <b>Bayes": GaussianNB(), "blind": DummyClassifier()}


@pytest.fixture(scope="module")
def cv():
    return cross_validate(METHODS, X, Y)


@pytest.fixture(scope="module")
def best(cv):
    return out_of_fold(cv, "LDA")


def test_predictions_of_rows_not_used_for_fitting(cv, best):
    np.testing.assert_array_equal(best.proba, cv.proba["LDA"])
    np.testing.assert_array_equal(best.wrong, cv.classes[cv.proba["LDA"].argmax(axis=1)] != Y)


def test_labels_that_are_numbers_are_one_class_whatever_their_type():
    given = Predictions("m", np.array([0.0, 1.0]), np.eye(2), np.array([0, 1]))
    assert not given.wrong.any()


def test_every_section_has_a_figure(cv):
    sections = results.result_sections([out_of_fold(cv, name) for name in cv.methods], "Mistakes")
    assert [section.title for section in sections] == ["Calibration", "ROC curves", "Mistakes"]
    for section in sections:
        figures = [block for block in section.content if isinstance(block, Figure)]
        assert figures and all(figure.alt and "<img" in figure.html() for figure in figures)


def test_two_classes_have_a_curve_for_each_method():
    y = np.where(CODES == 2, "yes", "no")
    cv = cross_validate({"LDA": METHODS["LDA"], "bayes": GaussianNB()}, X, y)
    every = [out_of_fold(cv, name) for name in cv.methods]
    (figure,) = results.roc(every)
    expected = roc_auc_score(y == "yes", every[1].proba[:, 1])
    assert f"bayes {expected:.3f}" in figure.alt and "LDA" in figure.alt


def test_many_classes_show_the_hardest():
    rng = np.random.default_rng(0)
    y, proba = np.arange(60) % 15, rng.dirichlet(np.ones(15), size=60)
    (figure,) = results.roc([Predictions("m", y, proba, np.arange(15))])
    assert figure.alt.count(",") == results.MOST_CLASSES - 1
    one = Predictions("m", np.zeros(5, dtype=int), proba[:5], np.arange(15))
    assert results.roc([one]) == []


def test_frequent_errors_and_recall():
    classes, proba = np.array([1, 2]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    counts = results.confusion_counts(Predictions("m", np.array([1, 1, 2]), proba, classes))
    assert counts.tolist() == [[1, 1], [0, 1]]
    rows = [[getattr(cell, "text", cell) for cell in row] for row in results.by_class(counts, classes).rows]
    assert rows == [["class 1", "2", "50.0", "100.0"], ["class 2", "1", "100.0", "50.0"]]
    assert results.by_class(np.array([[2, 0], [0, 0]]), classes).rows[1][2:] == [None, None]


def test_errors_count_rows_where_scores_are_weighted(best):
    weighted = Predictions("LDA", best.y, best.proba, best.classes, np.linspace(0.5, 1.5, 150))
    n_wrong = int(weighted.wrong.sum())
    assert f"{n_wrong} of 150 rows" in next(b for b in results.errors(weighted) if isinstance(b, Figure)).alt


# --- scores ---------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_library(best):
    table, observed, *_ = scores.scored(best)
    values = {heading: cell.text for heading, cell in table.rows}
    assert values["log-loss (nats)"] == f"{log_loss(best.y, best.proba, best.classes):.3f}"
    assert observed.rows[0][0] == "LDA"


def test_observed_and_expected_errors_are_those_of_the_library(cv):
    table, meanings, _ = scores.bounds(cv)
    assert [row[0] for row in table.rows] == cv.ranking()
    for method, *cells in table.rows:
        q = error_bounds(cv.y, cv.proba[method], cv.classes).quantities
        expected = [f"{factor * q[name].value:.{digits}f}" for name, (_, factor, digits) in scores.BOUNDS.items()]
        assert [cell.text.split(" ± ")[0] for cell in cells] == expected
    assert len(meanings.items) == len(scores.BOUNDS)


def test_the_best_of_each_column_is_marked(cv):
    table = scores.methods_table(cv)
    for place, (metric, (heading, factor, digits)) in enumerate(scores.SCALES.items(), start=1):
        assert table.header[place] == heading
        among = [m for m in cv.methods if m != "blind" or metric != "calibration"]
        best = (max if metric == "auc" else min)(cv.values(m, metric).mean() for m in among)
        marked = [row[place].text for row in table.rows if row[place].best]
        assert marked and all(text.split(" (")[0] == f"{factor * best:.{digits}f}" for text in marked)


def test_the_class_frequencies_are_not_the_best_calibrated(cv):
    """Constant probabilities are calibrated by construction."""
    table = scores.methods_table(cv)
    place = list(table.header).index("calibration error (%)")
    lowest = min(cv.methods, key=lambda m: cv.values(m, "calibration").mean())
    assert lowest == "blind" and "blind" not in [row[0] for row in table.rows if row[place].best]


@pytest.mark.parametrize("metric", ["error", "log_loss", "brier"])
def test_intervals_in_the_table_are_those_of_the_rows_and_stay_in_range(cv, metric):
    table, scale = scores.methods_table(cv, metric=metric), scores.SCALES[metric]
    place = list(table.header).index(scale.heading)
    for row in table.rows:
        low, high = score_interval(cv, row[0], metric)
        assert row[place].text.endswith(f" ({scale.text(low)} to {scale.text(high)})") and low >= 0


def test_a_method_with_fewer_folds_says_so_and_is_not_the_best(cv):
    part = np.where((cv.folds[0] < 2)[:, None], cv.proba["LDA"], np.nan)
    records = [r for r in cv.records if r["method"] != "LDA" or r["fold"] < 2]
    table = scores.methods_table(replace(cv, records=records, proba=cv.proba | {"LDA": part}))
    assert table.rows[-1][0] == "LDA (2 of 5 folds)" and not any(cell.best for cell in table.rows[-1][1:])
