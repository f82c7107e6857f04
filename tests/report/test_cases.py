"""Typical and odd rows: which are taken, and that the reasons are what they say."""

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
from mixent.base.document import Table
from mixent.report.cases import _how, _swapped, _with_values_of, _without, cases_section, parts_of_case, typical_and_odd
from mixent.report.certificates import certificates, certificates_in_words

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
NAMES = ["a", "b", "c", "d"]
FRAME = pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def mixture():
    return mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(X, Y)


def test_the_rows_taken_are_what_they_are_said_to_be(mixture):
    proba = mixture.predict_proba(X)
    proba[5], proba[60] = [0.0, 0.1, 0.9], [0.34, 0.33, 0.33]  # surely wrong, and in doubt
    found = {case.why: case for case in typical_and_odd(mixture, X, Y, proba)}
    assert found["The surest error"].row == 5 and found["The surest error"].said == "virginica"
    assert found["The surest error"].label == "setosa" and found["The surest error"].probability == 0.9
    assert found["The most doubtful row"].row == 60
    assert found["The row least like the others (lowest density)"].row == mixture.score_samples(X).argmin()
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    right = mixture.classes_[proba.argmax(axis=1)] == Y
    for c in mixture.classes_:
        far = ((Z - Z[c == Y].mean(axis=0)) ** 2).sum(axis=1)
        row = found[f"A typical row of {c}"].row
        assert Y[row] == c and row == np.where(right & (c == Y), far, np.inf).argmin()


def test_a_row_that_is_odd_twice_is_told_once(mixture):
    proba = np.eye(3)[CODES]
    low = int(mixture.score_samples(X).argmin())
    proba[low] = [0.2, 0.4, 0.4]
    found = [case for case in typical_and_odd(mixture, X, Y, proba) if case.row == low]
    assert len(found) == 1 and "; the row least like the others" in found[0].why


def test_without_labels_what_is_said_stands_for_them(mixture):
    found = typical_and_odd(mixture, X, None)
    assert [case.label for case in found] == [None] * len(found)
    assert {case.why for case in found} >= {f"A typical row of {c}" for c in mixture.classes_}
    assert not any("error" in case.why for case in found)


def test_rows_never_scored_are_not_shown(mixture):
    proba = np.full((150, 3), np.nan)
    proba[:20] = [0.9, 0.1, 0.0]
    assert all(case.row < 20 for case in typical_and_odd(mixture, X, Y, proba) if "density" not in case.why)


def test_a_value_left_out_is_integrated_out(mixture):
    found = _without(mixture, X, 70, 1, 2)
    log_p = mixture.predict_log_proba(X[[70]])[0]
    for j in range(4):
        gap = X[[70]].copy()
        gap[0, j] = np.nan
        without = mixture.predict_log_proba(gap)[0]
        assert found[j] == pytest.approx((log_p[1] - log_p[2]) - (without[1] - without[2]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_frames_have_the_same_parts(kind):
    frame = kind(dict(zip(NAMES, X.T)))
    model = mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(frame, Y)
    plain = mx.MixtureClassifier(1, covariance="VVV", random_state=0).fit(X, Y)
    np.testing.assert_allclose(_without(model, frame, 70, 1, 2), _without(plain, X, 70, 1, 2), rtol=1e-7)
    values = np.asarray(_with_values_of(frame, 7, np.array([1, 2, 3])))
    np.testing.assert_array_equal(values, _with_values_of(X, 7, np.array([1, 2, 3])))
    names = [name for name, _, _ in parts_of_case(model, frame, 70, 1, 2)]
    assert sorted(names) == NAMES


def test_of_a_linear_model_swapped_values_give_its_terms():
    two = X[:100], Y[:100]
    model = LogisticRegression(C=0.1).fit(*two)
    found = _swapped(model, two[0], 30, 1, 0)
    others = np.linspace(0, 99, 40).astype(int)
    np.testing.assert_allclose(found, model.coef_[0] * (X[30] - X[others].mean(axis=0)), rtol=1e-6)


def test_parts_of_a_maximum_entropy_model_add_up():
    model = mx.MaxEntClassifier(random_state=0).fit(FRAME, Y)
    for row in (3, 20, 70, 77, 106, 133):  # all pairs: strongest rivals or not, from either side
        log_p = model.predict_log_proba(FRAME.iloc[[row]])[0]
        for ours, rival in ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)):
            parts = parts_of_case(model, FRAME, row, ours, rival)
            assert sum(nats for _, _, nats in parts) == pytest.approx(log_p[ours] - log_p[rival], rel=1e-6)
    parts = parts_of_case(model, FRAME, 70, 1, 2)
    log_p = model.predict_log_proba(FRAME.iloc[[70]])[0]
    assert sum(nats for _, _, nats in parts) == pytest.approx(log_p[1] - log_p[2], rel=1e-6)
    assert {name for name, _, _ in parts} == {*NAMES, "average row"}
    third = parts_of_case(model, FRAME, 70, 1, 0)  # not its strongest rival
    assert sum(nats for _, _, nats in third) == pytest.approx(log_p[1] - log_p[0], rel=1e-6)
    assert {name: value for name, value, _ in parts}["a"] == f"{X[70, 0]:.6g}"


def test_how_the_parts_were_made_is_told(mixture):
    forest = RandomForestClassifier(5, random_state=0).fit(FRAME, Y)
    assert "no explanation of its own" in _how(forest) and "were missing" in _how(mixture)
    pipeline = make_pipeline(StandardScaler(), mx.MixtureClassifier(1)).fit(X, Y)
    assert "no explanation of its own" in _how(pipeline)  # gaps would not come through the scaler as they are
    content = cases_section("forest", forest, FRAME, Y)
    tables = [part for part in content if isinstance(part, Table)]
    assert tables and all(len(table.rows) <= 8 for table in tables)
    assert not any("score_samples" in part.html() for part in content)


def test_a_model_of_many_columns_has_cases_without_parts():
    wide = np.random.default_rng(0).normal(size=(30, 401))
    forest = RandomForestClassifier(2, random_state=0).fit(wide, Y[::5])
    content = cases_section("forest", forest, wide, Y[::5])
    assert content and not any(isinstance(part, Table) for part in content)


def test_certificates_say_how_fits_ended(mixture):
    told = certificates_in_words(mixture)
    assert told == [f"Converged: the gain per row fell below tol ({mixture.run_.n_passes} passes)"]
    few = mx.MaxEntClassifier(max_iter=1)
    with pytest.warns(Warning, match="max_iter"):
        few.fit(X, Y)
    assert "Max_iter was reached first; raise it" in certificates_in_words(few)[0]
    full = mx.MaxEntClassifier().fit(X, Y)
    assert any(f"at most {full.gap_:.1g} nats per row from its optimum" in text for text in certificates_in_words(full))
    chains = mx.HMMClassifier(1, random_state=0).fit(X, Y)
    assert [text.split(": ")[0] for text in certificates_in_words(chains)] == ["setosa", "versicolor", "virginica"]
    stack = mx.MaxEntStackingClassifier([("one", mx.MixtureClassifier(1)), ("two", LogisticRegression(C=0.1))]).fit(
        X, Y
    )
    assert any(text.startswith("one: converged") for text in certificates_in_words(stack))
    assert any(text.startswith("two: it stopped by its own rule") for text in certificates_in_words(stack))


def test_certificates_of_other_libraries():
    from sklearn.neighbors import KNeighborsClassifier

    fitted = LogisticRegression(C=0.1).fit(X, Y)
    assert certificates_in_words(fitted) == [
        f"It stopped by its own rule after {fitted.n_iter_[0]} of at most 100 iterations; it gives no certificate"
    ]
    fitted.max_iter = int(fitted.n_iter_[0])
    assert "it may not have converged; raise max_iter" in certificates_in_words(fitted)[0]
    fitted.max_iter = -1
    assert certificates_in_words(fitted)[0].endswith("iterations; it gives no certificate")
    assert "says nothing of how its fit ended" in certificates("knn", KNeighborsClassifier().fit(X, Y))[0].text


def test_the_number_of_trees_is_no_limit_that_was_reached():
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC

    class Mine(LogisticRegression):
        pass

    trees = HistGradientBoostingClassifier(max_iter=3).fit(X, Y)
    assert certificates_in_words(trees) == ["It made 3 iterations; it gives no certificate"]
    for model in (Mine(max_iter=2), SVC(max_iter=2), MLPClassifier(max_iter=2, random_state=0)):
        with pytest.warns(ConvergenceWarning):
            model.fit(X, Y)
        assert certificates_in_words(model)[0].startswith("It made all 2 iterations it was allowed")
