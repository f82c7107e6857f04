"""Wording of med, multipliers display."""

import pytest
from sklearn.linear_model import LogisticRegression

from mixent import MEDBayesNetClassifier, MEDNoveltyDetector, MEDTreeClassifier
from mixent.displays import MultipliersDisplay

from ...med.test_multipliers_display import X, Y


def test_needs_a_fitted_medclassifier_got_logisticregression():
    with pytest.raises(TypeError, match="needs a fitted MEDClassifier, .* got LogisticRegression"):
        MultipliersDisplay.from_estimator(LogisticRegression())


@pytest.mark.parametrize(
    "model",
    [
        MEDTreeClassifier(objective="likelihood", calibration=None),
        MEDBayesNetClassifier("naive", objective="likelihood", calibration=None),
        MEDNoveltyDetector(objective="bayes"),
    ],
)
def test_what_asks_for_no_margin_has_no_multipliers(model):
    with pytest.raises(ValueError, match="needs a model trained with margins; fit it with objective='margin'"):
        MultipliersDisplay.from_estimator(model.fit(X, Y))
