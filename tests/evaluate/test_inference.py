"""The criteria of general inference are what they say, counted one prediction at a time."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mixent.evaluate.inference import criterion_1, criterion_2, criterion_3, inference_errors
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
    return MaxEntJoint(prior=1.0, random_state=0).fit(table(gaps=0.1))


@pytest.mark.parametrize("gaps", [0.0, 0.25])
def test_every_criterion_is_the_mean_of_errors_counted_by_predict(model, gaps):
    X = table(90, seed=1, gaps=gaps)
    by_column, by_pair = {}, {}
    for name in DISCRETE:
        known = X[name].notna()
        by_column[name] = (model.predict(X, name)[known] != X[name][known]).mean()
    for first, second in combinations(DISCRETE, 2):
        known = X[first].notna() & X[second].notna()
        right = model.predict(X, (first, second))[known] == X.loc[known, [first, second]].to_numpy()
        by_pair[first, second] = 1 - right.all(axis=1).mean()
    found = inference_errors(model, X, "c")
    assert found.by_column == pytest.approx(by_column) and found.by_pair == pytest.approx(by_pair)
    assert found.target == criterion_1(model, X, "c") == pytest.approx(by_column["c"])
    assert found.each == criterion_2(model, X) == pytest.approx(np.mean(list(by_column.values())))
    assert found.pairs == criterion_3(model, X) == pytest.approx(np.mean(list(by_pair.values())))
    assert criterion_1(model, X) == 0.0  # the last column: it never changes
    assert 0 < found.each < found.pairs < 1


def test_a_lone_discrete_column_has_no_pairs():
    X = table()[["size", "a"]]
    one = MaxEntJoint(prior=1.0).fit(X)
    found = inference_errors(one, X)
    assert np.isnan(found.pairs) and found.by_pair == {} and found.target == found.each
    with pytest.raises(ValueError, match="criterion 3 needs two discrete columns known in the same rows of X"):
        criterion_3(one, X)


def test_what_cannot_be_counted_is_named(model):
    X = table(20)
    with pytest.raises(ValueError, match="target 'size' is not a discrete column with known values in X; name one of"):
        criterion_1(model, X, "size")
    with pytest.raises(ValueError, match="target 'c' is not a discrete column with known values in X"):
        criterion_1(model, X.assign(c=None), "c")
    with pytest.raises(ValueError, match="no discrete column of X holds a value"):
        criterion_2(MaxEntJoint(prior=1.0).fit(X[["size"]]), X[["size"]])
    with pytest.raises(ValueError, match="target names a column 'd' the model does not have"):
        inference_errors(model, X, "d")
