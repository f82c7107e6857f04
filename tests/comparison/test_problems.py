"""What is odd in a table is said, with what to do; a sound table gets no word."""

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent.comparison import data_problems
from mixent.comparison.data_problems import identifiers
from mixent.comparison.shape import read_table


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


def test_what_was_noted_in_reading_is_a_warning_and_no_problem(sound):
    X, y = sound
    with pytest.warns(mixent.DataWarning, match="'k'.*'only'") as caught:
        problems = data_problems(X.assign(k=3.0), np.where(np.arange(len(y)) == 0, "only", y))
    assert len(caught) == 1 and not any("'k'" in sentence for sentence in problems)


def test_a_column_that_takes_more_cuts_than_classes_is_no_leak(sound):
    X, _ = sound
    block = np.argsort(np.argsort(X["v"])) // 20 % 2  # ten stretches
    assert not [s for s in data_problems(X, np.array(["a", "b"])[block]) if "leak" in s]


def test_codes_that_were_named_are_no_problem(sound):
    X, y = sound
    X = X.assign(k=np.arange(len(y)) % 3)
    assert data_problems(X, y, categorical=["k", "c"]) == []


@pytest.mark.parametrize("copies", [0, 60])
def test_identifiers_are_found_among_copies_too(sound, copies):
    X, y = sound
    codes = np.random.default_rng(3).choice(9_000_000, len(y), replace=False) + 1_000_000
    frame = X.assign(number=np.random.default_rng(4).permutation(len(y)) + 17, code=codes)
    rows = np.r_[np.arange(len(y)), np.arange(copies)]
    table = read_table(frame.iloc[rows], "auto")
    assert identifiers(table) == ["number", "code"]


def test_measured_numbers_are_no_identifiers(sound):
    X, y = sound
    rng = np.random.default_rng(3)
    frame = X.assign(
        salary=np.round(rng.lognormal(11, 0.3, len(y)), -2).astype(int),
        grams=rng.normal(50_000, 2_000, len(y)).astype(int),
        year=1900 + rng.integers(100, size=len(y)),
        repeated=np.repeat(rng.integers(10**6, 10**7, size=len(y) // 2), 2),
    )
    assert identifiers(read_table(frame, "auto")) == []


def test_copies_are_found_beside_an_identifier(sound):
    X, y = sound
    twice = pd.concat([X, X[:40]]).assign(row=np.arange(len(X) + 40))
    assert any("80 of 240 rows" in sentence for sentence in data_problems(twice, np.r_[y, y[:40]]))


def test_a_large_table_is_sampled():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=30_000)
    X = pd.DataFrame({"u": rng.normal(size=30_000), "leak": y + 0.1 * rng.random(30_000)})
    assert any("'leak'" in sentence for sentence in data_problems(X, y))
