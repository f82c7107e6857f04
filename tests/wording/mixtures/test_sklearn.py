"""Wording of mixtures, sklearn."""

import pytest
from sklearn.exceptions import NotFittedError

from mixent import MixtureClassifier, SharedMixtureClassifier


def test_feature_names(table):
    X, y = table
    model = MixtureClassifier(1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.predict(X.to_numpy())
    with pytest.raises(ValueError, match="X has 2 features, but"):
        MixtureClassifier(1, random_state=0).fit(X.to_numpy(), y).predict(X.to_numpy()[:, :2])


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "impute", "sample", "marginal"])
def test_an_unfitted_estimator_says_so(estimator, table, method):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(estimator, method)(1 if method == "sample" else table[0])


@pytest.mark.parametrize("method", ["predict_log_proba", "decision", "adjust_priors", "explain"])
def test_an_unfitted_classifier_says_so(table, method):
    for estimator in (MixtureClassifier(), SharedMixtureClassifier()):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            getattr(estimator, method)(table[0])
