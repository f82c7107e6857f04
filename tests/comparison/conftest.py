"""Small tables and quick methods."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import mixent


def make_table(n=90, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    shift = np.arange(n) % 3
    X = pd.DataFrame({"u": rng.normal(size=n) + shift, "v": rng.normal(size=n) - shift})
    return X, y


def quick():
    """Three methods that take milliseconds."""
    return {
        "naive": GaussianNB(),
        "linear": LogisticRegression(),
        "shares of classes": mixent.TunedClassifier(LogisticRegression(C=1e-9)),
    }


@pytest.fixture(scope="session")
def table():
    return make_table()


@pytest.fixture(scope="session")
def found(table):
    """A comparison of quick methods."""
    return mixent.compare(*table, methods=quick(), baselines=False, n_jobs=1, folds=4)
