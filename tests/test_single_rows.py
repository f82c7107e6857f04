"""A row alone has the same prediction as in its batch, for every estimator and method that predicts row by row."""

import numpy as np
import pytest

from .subjects import FOUND, SUBJECTS

METHODS = ("predict_proba", "predict_log_proba", "decision_function", "score_samples", "transform")
CASES = [(name, method) for name in SUBJECTS for method in METHODS if hasattr(SUBJECTS[name].model, method)]


def one_row(X, i):
    return X.iloc[i : i + 1] if hasattr(X, "iloc") else X[i : i + 1]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize(("name", "method"), CASES)
def test_a_row_alone_has_the_prediction_of_its_batch(name, method, missing):
    subject = SUBJECTS[name]
    fitted = subject.usual
    X = subject.gappy if missing and FOUND[name]["missing"].able else subject.X
    predict = getattr(fitted, method)
    together = np.asarray(predict(X), dtype=float)
    for i in range(0, len(X), 25):
        alone = np.asarray(predict(one_row(X, i)), dtype=float)[0]
        np.testing.assert_allclose(alone, together[i], rtol=1e-9)
