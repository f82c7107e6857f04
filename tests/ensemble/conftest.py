"""Tables that several tests of combined classifiers share."""

import numpy as np
import pandas as pd
import pytest


def answers(n=120, n_classes=3, n_bases=3, seed=0, gaps=0.0):
    """What classifiers say, (n, bases x classes), as probabilities, and the classes, which overlap."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    logits = rng.normal(size=(n, n_bases, n_classes)) + np.eye(n_classes)[y][:, None]
    proba = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    proba[rng.random((n, n_bases)) < gaps] = np.nan
    return proba.reshape(n, -1), y


@pytest.fixture(scope="session")
def make_answers():
    return answers


@pytest.fixture(scope="session")
def blobs():
    """Numbers of three classes that overlap, 90 rows of two columns."""
    rng = np.random.default_rng(1)
    y = np.arange(90) % 3
    centers = np.array([[0.0, 0.0], [1.5, 0.5], [0.5, 1.8]])
    return centers[y] + rng.normal(size=(90, 2)), y


@pytest.fixture(scope="session")
def frame(blobs):
    """The same as a frame with a category and gaps, and text labels."""
    X, y = blobs
    rng = np.random.default_rng(2)
    kind = np.array(["x", "y", "z"], dtype=object)[(y + (rng.random(90) < 0.4)) % 3]
    X = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": kind})
    X.loc[rng.random(90) < 0.1, "a"] = np.nan
    X.loc[rng.random(90) < 0.1, "kind"] = None
    return X, np.array(["no", "maybe", "yes"])[y]
