"""Wording of maxent, describe."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import MaxEntClassifier


@pytest.mark.parametrize("reason", ["a value never occurs with a class", "the classes look separable"])
def test_without_a_prior_a_missing_optimum_is_no_convergence(reason):
    rng = np.random.default_rng(1)
    votes = rng.integers(2, size=(200, 3))
    y = np.where(votes.sum(axis=1) > 1, "most", "few")
    mark = np.where(np.arange(200) == np.flatnonzero(y == "few")[0], "once", "often")
    rows = pd.DataFrame(np.array(["no", "yes"])[votes], columns=list("abc"))
    if "never" in reason:
        rows = pd.DataFrame({"a": rows["a"], "mark": mark})
    with pytest.warns(ConvergenceWarning):
        model = MaxEntClassifier(prior_variance=None).fit(rows, y)
    run = model.summary().facts["run"]
    assert run["status"] == "no optimum" and not run["ok"] and reason in run["message"]


@pytest.mark.parametrize("interacting", [True, False])
def test_pairs_that_were_found_are_described(interacting):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    score = X[:, 0] * X[:, 1] if interacting else X[:, 0]
    model = MaxEntClassifier(random_state=0).fit(X, (score + 0.3 * rng.normal(size=400) > 0).astype(int))
    text = str(model.summary())
    assert "Interactions" in text
    assert ("1 pair of columns found by cross-validation (x0 & x1): log-loss" in text) is interacting
    assert ("No pairs of columns were added: none lowers" in text) is not interacting
    assert model.summary().facts["pairs"]["found"] == (["x0 & x1"] if interacting else [])
    assert "Interactions" not in str(MaxEntClassifier(pairs=None, random_state=0).fit(X, X[:, 0] > 0).summary())
