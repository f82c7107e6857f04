"""Errors of a joint model by column and by pair of columns, counted one prediction at a time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mixent.maxent.joint import MaxEntJoint

DISCRETE = ["a", "b", "c", "one"]


def table(n=120, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=n)
    X = pd.DataFrame(
        {
            "a": np.array(list("xyz"))[a],
            "b": np.array(list("pq"))[(a + (rng.random(n) < 0.2)) % 2],
            "size": a + 0.3 * rng.normal(size=n),
            "c": np.array(list("uvw"))[(a + rng.integers(0, 2, n)) % 3],
            "one": "same",
        }
    )
    return X.mask(rng.random(X.shape) < gaps)


@pytest.fixture(scope="module")
def model():
    return MaxEntJoint(prior_variance=1.0, random_state=0).fit(table(gaps=0.1))


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_errors_are_those_of_predict(model, gaps):
    X = table(90, seed=1, gaps=gaps)
    by_column, by_pair = {}, {}
    for name in DISCRETE:
        known = X[name].notna()
        by_column[name] = (model.predict(X, name)[known] != X[name][known]).mean()
    for first, second in combinations(DISCRETE, 2):
        known = X[first].notna() & X[second].notna()
        right = model.predict(X, (first, second))[known] == X.loc[known, [first, second]].to_numpy()
        by_pair[first, second] = 1 - right.all(axis=1).mean()
    scores = model.accuracy_by_column(X)
    assert {name: scores[name].error for name in DISCRETE} == pytest.approx(by_column)
    assert model.errors_by_pair(X) == pytest.approx(by_pair)
    assert by_column["one"] == 0.0 and 0 < np.mean(list(by_column.values())) < np.mean(list(by_pair.values())) < 1


def test_a_lone_discrete_column_has_no_pairs():
    X = table()[["size", "a"]]
    assert MaxEntJoint(prior_variance=1.0).fit(X).errors_by_pair(X) == {}
