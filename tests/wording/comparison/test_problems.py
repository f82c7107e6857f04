"""Wording of comparison, problems."""

import numpy as np

from mixent import TunedClassifier, compare
from mixent.comparison import data_problems


def test_a_leak_stands_beside_the_recommendation(sound):
    X, y = sound
    comparison = compare(
        X.assign(k=(y == "b") + X["v"] / 100), y, methods={"n": TunedClassifier()}, baselines=False, n_jobs=1
    )
    assert "Check first: possible leak: column 'k' alone predicts 100.0 % of the classes" in str(
        comparison.recommendation
    )


def test_gaps_by_chance_tell_nothing(sound):
    X, y = sound
    X = X.mask(np.random.default_rng(5).random(X.shape) < 0.2)
    assert not [s for s in data_problems(X, y) if "missing in some classes" in s]


def test_how_to_drop_a_row_number(sound):
    """In Python; the command line has an option for it. Arrays have no names."""
    X, y = sound
    X = X.assign(**{"the row": range(len(X))})
    text = "column 'the row' looks like a row number; drop it with df.drop(columns=['the row'])"
    assert text in data_problems(X, y)
    assert "column 'x0' looks like a row number; drop it" in data_problems(np.arange(len(X))[:, None], y)
