"""Wording of evaluate, roc display."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from mixent.displays import RocCurvesDisplay

from ...evaluate.test_roc_display import IRIS, KIND, X, Y


def test_what_cannot_be_drawn_says_why(models):
    with pytest.raises(ValueError, match="y has 3 classes; pos_label must be one of .0, 1, 2."):
        RocCurvesDisplay.from_estimators({"bayes": GaussianNB().fit(IRIS, KIND)}, IRIS, KIND)
    with pytest.raises(ValueError, match="pos_label must be one of the labels in y, .0, 1, 2.; got 7"):
        RocCurvesDisplay.from_predictions(KIND, IRIS[:, 0], pos_label=7)
    with pytest.raises(ValueError, match="a ROC curve needs rows of two classes; all labels in y are 'versicolor'"):
        RocCurvesDisplay.from_estimators(models, X[:10], Y[:10])
    with pytest.raises(ValueError, match="'linear' has no class 1; it was fitted to"):
        RocCurvesDisplay.from_estimators(models, IRIS, KIND, pos_label=1)
    with pytest.raises(ValueError, match="models must be a dict of fitted models by name"):
        RocCurvesDisplay.from_estimators([models["linear"]], X, Y)
    with pytest.raises(TypeError, match="object has no score_samples; 'none' is neither a classifier nor a detector"):
        RocCurvesDisplay.from_estimators({"none": object()}, X, Y)
    with pytest.raises(ValueError, match="scores of 'a' must be one number per row, 100; got shape .3,."):
        RocCurvesDisplay.from_predictions(Y, {"a": [1, 2, 3]})
    with pytest.raises(ValueError, match="scores of 'scores' must be numbers; row 2 has none"):
        RocCurvesDisplay.from_predictions([0, 1, 1], [0.0, 1.0, np.nan])
