"""What is odd in a table is said, with what to do; a sound table gets no word."""

import numpy as np
import pandas as pd
import pytest

from mixent.comparison import data_problems


@pytest.fixture
def sound():
    rng = np.random.default_rng(0)
    y = np.array(["a", "b"])[rng.integers(2, size=200)]
    X = pd.DataFrame({"u": rng.normal(size=200) + (y == "b"), "v": rng.normal(size=200)})
    X["c"] = rng.choice(["x", "y", "z"], 200)
    return X, y


def test_a_sound_table_has_none(sound):
    assert data_problems(*sound) == []


def of(sound, change):
    X, y = sound[0].copy(), sound[1].copy()
    X, y = change(X, y) or (X, y)
    return data_problems(X, y)


def add(name, values):
    def change(X, y):
        X[name] = values(X, y)

    return change


RNG = np.random.default_rng(1)
CASES = {
    "constant": (add("k", lambda X, y: 3.0), "column 'k' is constant"),
    "same columns": (add("w", lambda X, y: X["u"]), "columns 'u' and 'w' are equal in every row; drop one"),
    "same categories": (add("d", lambda X, y: X["c"]), "columns 'c' and 'd' are equal in every row; drop one"),
    "codes": (add("k", lambda X, y: np.arange(len(y)) % 3), "column 'k' holds only a few whole numbers"),
    "leak by category": (
        add("k", lambda X, y: np.where(y == "a", "no", "yes")),
        "possible leak: column 'k' alone predicts 100.0 % of the classes; drop it unless it is known before the class",
    ),
    "leak by number": (
        add("k", lambda X, y: (y == "b") * 5 + RNG.random(len(y))),
        "possible leak: column 'k' alone predicts 100.0 % of the classes",
    ),
    "leak by number, but for a row": (
        add("k", lambda X, y: np.where(np.arange(len(y)) == 3, y == "a", y == "b") * 1.0),
        "possible leak: column 'k' alone predicts 99.5 % of the classes",
    ),
    "telling gaps": (
        add("k", lambda X, y: np.where((y == "a") & (RNG.random(len(y)) < 0.5), np.nan, RNG.normal(size=len(y)))),
        "column 'k' is missing far more often in some classes than in others",
    ),
    "telling gaps of categories": (
        add("k", lambda X, y: np.where((y == "a") & (RNG.random(len(y)) < 0.5), None, RNG.choice(["p", "q"], len(y)))),
        "column 'k' is missing far more often in some classes than in others",
    ),
    "copies": (
        lambda X, y: (pd.concat([X, X[:40]]), np.concatenate([y, y[:40]])),
        "80 of 240 rows have the same values as another row; if they are copies",
    ),
    "copies with another label": (
        lambda X, y: (pd.concat([X, X[:40]]), np.concatenate([y, np.where(y[:40] == "a", "b", "a")])),
        "80 of 240 rows have the same values as another row, 40 of them with another label, so the error of any model "
        "is at least 17 %",
    ),
    "rare": (lambda X, y: (X, np.where(np.arange(len(y)) < 4, "q", y)), "a class with fewer than 10 rows: q (4)"),
    "lopsided": (
        lambda X, y: (
            pd.concat([X] * 6).assign(v=np.arange(1200.5)[:1200] ** 1.1),
            np.array(["b"] * 1150 + ["a"] * 50),
        ),
        "class b has 1150 rows, class a only 50; use the balanced error or the log-loss rather than the error",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_odd_is_said(sound, case):
    change, message = CASES[case]
    result = of(sound, change)
    assert any(message in sentence for sentence in result), result


def test_a_column_that_takes_more_cuts_than_classes_is_no_leak(sound):
    X, _ = sound
    block = np.argsort(np.argsort(X["v"])) // 20 % 2  # ten stretches
    assert not [s for s in data_problems(X, np.array(["a", "b"])[block]) if "leak" in s]


def test_codes_that_were_named_are_no_problem(sound):
    X, y = sound
    X = X.assign(k=np.arange(len(y)) % 3)
    assert data_problems(X, y, categorical=["k", "c"]) == []
