"""The same start and number of iterations as hmmlearn: the same numbers."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from mixent import HiddenMarkovModel
from mixent.options import HMMPrior

GOLDEN = Path(__file__).parent.parent / "golden"
EXPECTED = json.loads((GOLDEN / "hmmlearn.json").read_text())


@pytest.fixture(scope="module")
def cases():
    spec = importlib.util.spec_from_file_location("hmmlearn_numbers", GOLDEN / "hmmlearn_numbers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.cases()


@pytest.mark.parametrize("name", ["categorical", "diag", "full", "poisson"])
def test_baum_welch_is_that_of_hmmlearn(cases, name):
    lengths, data = cases
    X, start = data[name]
    X = X[:, None] if X.ndim == 1 else X
    expected, n_iter = EXPECTED["models"][name], EXPECTED["n_iter"]
    model = HiddenMarkovModel(
        3,
        "VVV" if name == "full" else "VVI",
        emissions="poisson" if name == "poisson" else "fitted",
        prior=HMMPrior("auto" if name == "poisson" else None, smoothing=0.0, transition_smoothing=0.0),
        init=start,
        accelerate=False,
        tol=0.0,
        max_iter=n_iter,
        categorical=[0] if name == "categorical" else "auto",
    )
    with pytest.warns(UserWarning, match="max_iter"):
        model.fit(X, lengths=lengths)
    history = [step.objective for step in model.run_.trace]
    np.testing.assert_allclose(history[:n_iter], expected["history"], rtol=1e-10)
    close = {"rtol": 1e-8, "atol": 1e-12}
    np.testing.assert_allclose(model.start_, expected["start"], **close)
    np.testing.assert_allclose(model.transitions_, expected["transitions"], **close)
    if name == "categorical":
        np.testing.assert_allclose(model.tables_["x0"], expected["tables"], **close)
    else:
        np.testing.assert_allclose(model.means_, expected["means"], **close)
        if name != "poisson":
            np.testing.assert_allclose(model.covariances_, expected["covariances"], **close)
    np.testing.assert_allclose(model.score_samples(X, lengths=lengths), expected["score_samples"], **close)
    np.testing.assert_allclose(model.predict_proba(X, lengths=lengths), expected["posteriors"], rtol=1e-8, atol=1e-10)
    path, log_prob = model.decode(X, lengths=lengths, return_log_prob=True)
    np.testing.assert_array_equal(path, expected["path"])
    assert log_prob.sum() == pytest.approx(expected["path_log_prob"], rel=1e-10)
    np.testing.assert_allclose(model.stationary_, expected["stationary"], rtol=1e-8)
