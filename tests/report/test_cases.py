"""Typical and unusual rows: which are selected, and what contributes to their predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent as mx
from mixent.base.document import Heading, Table
from mixent.report.cases import cases_section, select_cases
from mixent.report.contributions import (
    EXACT,
    MISSING,
    SWAPPED,
    contributions,
    swapped_values,
    with_values_of,
    without_values,
)

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(X, Y)


# --- which rows -----------------------------------------------------------------------------------------------------


def test_the_rows_are_what_they_are_called(mixture):
    proba = mixture.predict_proba(X)
    proba[5], proba[60] = [0.0, 0.1, 0.9], [0.34, 0.33, 0.33]  # surely wrong, and uncertain
    found = {case.why: case for case in select_cases(mixture, X, Y, proba)}
    error = found["The most confident error"]
    assert (error.row, error.predicted, error.label, error.probability) == (5, "virginica", "setosa", 0.9)
    assert found["The most uncertain row"].row == 60
    assert found["The row of lowest density"].row == mixture.score_samples(X).argmin()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    right = mixture.classes_[proba.argmax(axis=1)] == Y
    for c in mixture.classes_:
        distance = ((Z - Z[c == Y].mean(axis=0)) ** 2).sum(axis=1)
        row = found[f"A typical row of {c}"].row
        assert Y[row] == c and row == np.where(right & (c == Y), distance, np.inf).argmin()


def test_without_labels_typical_rows_are_those_of_predicted_classes(mixture):
    found = select_cases(mixture, X, None)
    assert [case.label for case in found] == [None] * len(found)
    assert {case.why for case in found} >= {f"A typical row of {c}" for c in mixture.classes_}
    assert not any("error" in case.why for case in found)


def test_rows_never_scored_are_not_shown(mixture):
    proba = np.full((150, 3), np.nan)
    proba[:20] = [0.9, 0.1, 0.0]
    assert all(case.row < 20 for case in select_cases(mixture, X, Y, proba) if "density" not in case.why)


def test_a_model_without_a_density_has_no_row_of_lowest_density():
    found = select_cases(RandomForestClassifier(5, random_state=0).fit(FRAME, Y), FRAME, Y)
    assert found and not any("density" in case.why for case in found)


# --- contributions --------------------------------------------------------------------------------------------------


def test_a_missing_value_is_integrated_out(mixture):
    found = without_values(mixture, X, 70, 1, 2)
    log_p = mixture.predict_log_proba(X[[70]])[0]
    for j in range(4):
        gap = X[[70]].copy()
        gap[0, j] = np.nan
        without = mixture.predict_log_proba(gap)[0]
        assert found[j] == pytest.approx((log_p[1] - log_p[2]) - (without[1] - without[2]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_have_the_same_contributions(kind):
    frame = kind(dict(zip(NAMES, X.T)))
    model = mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(frame, Y)
    plain = mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(X, Y)
    np.testing.assert_allclose(without_values(model, frame, 70, 1, 2), without_values(plain, X, 70, 1, 2), rtol=1e-7)
    values = np.asarray(with_values_of(frame, 7, np.array([1, 2, 3])))
    np.testing.assert_array_equal(values, with_values_of(X, 7, np.array([1, 2, 3])))
    parts, method = contributions(model, frame, 70, 1, 2)
    assert sorted(name for name, _, _ in parts) == NAMES and method == MISSING
    sizes = [abs(nats) for _, _, nats in parts]
    assert sizes == sorted(sizes, reverse=True)


def test_swapped_values_of_a_linear_model_give_its_terms():
    two = X[:100], Y[:100]
    model = LogisticRegression(C=0.1).fit(*two)
    found = swapped_values(model, two[0], 30, 1, 0)
    others = np.linspace(0, 99, 40).astype(int)
    np.testing.assert_allclose(found, model.coef_[0] * (X[30] - X[others].mean(axis=0)), rtol=1e-6)


def test_contributions_of_a_maximum_entropy_model_add_up():
    model = mx.MaxEntClassifier(random_state=0).fit(FRAME, Y)
    for row in (3, 20, 70, 77, 106, 133):
        log_p = model.predict_log_proba(FRAME.iloc[[row]])[0]
        for ours, rival in ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)):
            parts, method = contributions(model, FRAME, row, ours, rival)
            assert method == EXACT
            assert sum(nats for _, _, nats in parts) == pytest.approx(log_p[ours] - log_p[rival], rel=1e-6)
    parts, _ = contributions(model, FRAME, 70, 1, 2)
    assert {name for name, _, _ in parts} == {*NAMES, "average row"}
    assert {name: value for name, value, _ in parts}["a"] == f"{X[70, 0]:.6g}"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (mx.MEDTreeClassifier(random_state=0), MISSING),
        (RandomForestClassifier(5, random_state=0), SWAPPED),
        (make_pipeline(StandardScaler(), mx.MixtureClassifier(1)), SWAPPED),  # the scaler would fill the value in
    ],
)
def test_each_model_has_the_method_that_suits_it(model, expected):
    assert contributions(model.fit(X, Y), X, 70, 1, 2)[1] == expected


# --- the section ----------------------------------------------------------------------------------------------------


def test_every_case_has_a_heading_and_a_short_table():
    forest = RandomForestClassifier(5, random_state=0).fit(FRAME, Y)
    content = cases_section(forest, FRAME, Y)
    tables = [part for part in content if isinstance(part, Table)]
    assert len(tables) == sum(isinstance(part, Heading) for part in content) == len(select_cases(forest, FRAME, Y))
    assert all(1 <= len(table.rows) <= 8 for table in tables)


def test_a_model_of_many_columns_has_cases_without_contributions():
    wide = np.random.default_rng(0).normal(size=(30, 401))
    content = cases_section(RandomForestClassifier(2, random_state=0).fit(wide, Y[::5]), wide, Y[::5])
    assert content and not any(isinstance(part, Table) for part in content)
