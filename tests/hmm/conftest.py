import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")


def make_sequences(seed=0, n=25, d=2, S=3, longest=20, missing=0.0):
    """Steps (N, d) of a chain of S states, lengths, and the states."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=n)
    chain = 0.7 * np.eye(S) + 0.3 * rng.dirichlet(np.ones(S), size=S)
    states = np.empty(lengths.sum(), dtype=int)
    starts = set((np.cumsum(lengths) - lengths).tolist())
    for t in range(len(states)):
        states[t] = rng.integers(S) if t in starts else rng.choice(S, p=chain[states[t - 1]])
    centers = 2.0 * rng.normal(size=(S, d))
    roots = 0.4 * rng.normal(size=(S, d, d)) + np.eye(d)
    X = centers[states] + np.einsum("nij,nj->ni", roots[states], rng.normal(size=(len(states), d)))
    X[rng.random(X.shape) < missing] = np.nan
    return X, lengths, states


def make_mixed(seed=0, missing=0.0, **options):
    """A DataFrame of two numbers and two words per step, and lengths."""
    X, lengths, states = make_sequences(seed, **options)
    rng = np.random.default_rng(seed + 1)
    words = np.array(["red", "green", "blue"])[
        np.where(rng.random(len(X)) < 0.6, states % 3, rng.integers(3, size=len(X)))
    ]
    table = pd.DataFrame({"a": X[:, 0], "word": words, "b": X[:, 1], "big": rng.random(len(X)) < 0.2 + 0.3 * states})
    table = table.astype({"word": object, "big": object})
    return table.mask(rng.random(table.shape) < missing), lengths


@pytest.fixture
def sequences():
    return make_sequences


@pytest.fixture
def mixed():
    return make_mixed
