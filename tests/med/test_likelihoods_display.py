"""Histograms of training log-probabilities: all rows are in them, level and threshold are the model's."""

import numpy as np
import pytest

from mixent import MEDNoveltyDetector
from mixent.displays import LikelihoodsDisplay

from ..drawing import drawn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
LETTERS = np.array(list("ACGT"))[np.minimum(RNG.geometric(0.5, size=(150, 6)) - 1, 3)]


@pytest.mark.parametrize(("model", "rows"), [("product", LETTERS), ("gaussian", X)])
def test_all_rows_are_counted_and_the_lines_are_the_models(model, rows):
    fitted = MEDNoveltyDetector(model).fit(rows)
    display = LikelihoodsDisplay.from_estimator(fitted)
    np.testing.assert_array_equal(display.scores, fitted.scores_)
    np.testing.assert_array_equal(display.others, fitted.bayes_scores_)
    assert display.n_outliers == (fitted.predict(rows) == -1).sum()
    ax = drawn(display)
    bars = [patch for patch in ax.patches if hasattr(patch, "get_height")]
    assert sum(bar.get_height() for bar in bars) == pytest.approx(100)
    counted = np.histogram(fitted.scores_, [bars[0].get_x(), *(b.get_x() + b.get_width() for b in bars)])[0]
    assert counted.sum() >= 0.99 * len(rows)
    assert sorted(line.get_xdata()[0] for line in ax.lines) == [fitted.offset_, fitted.level_]
    low, high = ax.get_xlim()
    assert low < fitted.offset_ < fitted.level_ < high
    labels = [t.get_text() for t in ax.get_legend().get_texts()]
    assert labels == [
        "Level set",
        "Bayesian fit",
        f"Level l: {fitted.level_:.3g}",
        f"Threshold: {fitted.offset_:.3g} ({display.n_outliers} of {len(rows)} rows below)",
    ]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Log-probability (nats)", "Rows (%)")


def test_the_level_set_has_the_shorter_tail():
    display = LikelihoodsDisplay.from_estimator(MEDNoveltyDetector("product").fit(LETTERS))
    assert display.scores.min() > display.others.min() and np.ptp(display.scores) < np.ptp(display.others)


def test_the_bayesian_fit_alone_has_one_histogram_and_no_level():
    display = LikelihoodsDisplay.from_estimator(MEDNoveltyDetector(objective="bayes").fit(X))
    assert display.others is None
    ax = drawn(display)
    assert len(ax.lines) == 1 and next(t.get_text() for t in ax.get_legend().get_texts()) == "Bayesian fit"


def test_other_rows_are_compared_with_the_training_rows():
    model = MEDNoveltyDetector("gaussian").fit(X)
    display = LikelihoodsDisplay.from_estimator(model, X[:50] + 3)
    np.testing.assert_array_equal(display.scores, model.score_samples(X[:50] + 3))
    np.testing.assert_array_equal(display.others, model.scores_)
    ax = drawn(display)
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts[:2] == ["These rows", "Training rows"] and len(ax.lines) == 1
    assert f"({display.n_outliers} of 50 rows below)" in texts[2]


def test_rows_that_are_all_alike_are_drawn():
    ax = drawn(LikelihoodsDisplay(np.full(10, -3.0), np.full(10, -3.0), -3.0, -3.0))
    low, high = ax.get_xlim()
    assert low < -3.0 < high
    assert all(line.get_xdata()[0] == -3.0 for line in ax.lines) and len(ax.lines) == 2


def test_rows_far_out_stand_at_the_edge():
    scores = np.concatenate([[-1000.0], np.linspace(-3, -2, 3999)])
    ax = drawn(LikelihoodsDisplay(scores, None, -3.0, -2.5))
    assert sum(patch.get_height() for patch in ax.patches) == pytest.approx(100) and ax.get_xlim()[0] > -10
