"""Typical and unusual rows: which are selected, and what contributes to their predictions."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent as mx
from mixent.base.document import Heading, Table
from mixent.report.cases import cases_section, select_cases
from mixent.report.contributions import explanation_of, largest_parts

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


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("model", [mx.MixtureClassifier(1, covariance="VVV"), LogisticRegression(C=0.1, max_iter=500)])
def test_frames_have_the_same_contributions(kind, model):
    frame = kind(dict(zip(NAMES, X.T)))
    named, plain = clone(model).fit(frame, Y), clone(model).fit(X, Y)
    parts = largest_parts(explanation_of(named, frame, 70, 1, 2))
    expected = [nats for _, _, nats in largest_parts(explanation_of(plain, X, 70, 1, 2))]
    np.testing.assert_allclose([nats for _, _, nats in parts], expected, rtol=1e-7)
    assert {name for name, _, _ in parts} > set(NAMES)
    sizes = [abs(nats) for _, _, nats in parts]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (mx.MaxEntClassifier(random_state=0), "exact"),
        (mx.MixtureClassifier(1, covariance="VVV"), "Shapley values"),
        (mx.MEDTreeClassifier(random_state=0), "model-agnostic (Shapley values)"),
        (RandomForestClassifier(5, random_state=0), "model-agnostic (Shapley values)"),
        (make_pipeline(StandardScaler(), mx.MixtureClassifier(1)), "model-agnostic (Shapley values)"),
    ],
)
def test_contributions_add_up(model, method):
    model.fit(FRAME, Y)
    for row, ours, rival in ((3, 0, 1), (70, 1, 2), (133, 2, 1)):
        one = FRAME.iloc[[row]]
        least = 0.0 if hasattr(model, "explain") else 1e-6
        if isinstance(model, mx.MEDTreeClassifier):  # without the uniform share of its probabilities
            log_p = model.calibration_.slope * model.decision_function(one)[0]
        else:
            log_p = np.log(np.maximum(model.predict_proba(one)[0], least))
        why = explanation_of(model, FRAME, row, ours, rival)
        parts = largest_parts(why)
        assert why.method == method and {name for name, _, _ in parts} == {*NAMES, why.baseline_name}
        assert {name: value for name, value, _ in parts}["a"] == f"{X[row, 0]:.6g}"
        assert sum(nats for _, _, nats in parts) == pytest.approx(log_p[ours] - log_p[rival], rel=1e-6)


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
