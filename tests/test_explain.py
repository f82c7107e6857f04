"""`explain` by column: every classifier, every method of `compare`, any classifier of another library."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mixent
from mixent import MEDClassifier, MEDTreeClassifier, MixtureClassifier, TunedClassifier
from mixent.base import background
from mixent.base.background import N_BACKGROUND, Background
from mixent.base.capabilities import cells_of
from mixent.base.recipes import Setting
from mixent.base.registry import entries
from mixent.comparison.candidates import recipes
from mixent.comparison.shape import read_table, shape_of
from mixent.data import Table, read_features, read_labels
from mixent.options import Tables

from .subjects import FOUND, SUBJECTS, N, without_uniform

N_ROWS = 80
rng = np.random.default_rng(0)
TABLE = pd.DataFrame(rng.normal(size=(N_ROWS, 3)), columns=["size", "age", "width"])
TABLE["color"] = rng.choice(["red", "green", "blue"], N_ROWS)
LABEL = np.where(TABLE["size"] + TABLE["age"] * TABLE["width"] + (TABLE["color"] == "red") > 0.5, "yes", "no")
TABLE.loc[::7, "age"] = np.nan
TABLE.loc[::9, "color"] = None
COLUMNS = TABLE.columns.tolist()


def adds_up(model, why, X, least=0.0):
    """The baseline and the parts give the log-odds of the predicted probabilities, without their uniform share."""
    log_proba = np.log(np.maximum(without_uniform(model, model.predict_proba(X)), least))
    place = {label: c for c, label in enumerate(model.classes_.tolist())}
    ours, rival = ([place[label] for label in labels.tolist()] for labels in (why.label, why.rival))
    expected = log_proba[np.arange(len(ours)), ours] - log_proba[np.arange(len(ours)), rival]
    np.testing.assert_allclose(why.baseline + why.parts.sum(axis=1), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(why.log_odds, expected, rtol=1e-9, atol=1e-9)


# --- every classifier -------------------------------------------------------------------------------------------------


def test_every_classifier_of_rows_explains_by_column():
    """Hidden Markov models classify sequences, and predictions given as columns have nothing to explain."""
    able = {
        e.name for e in entries() if e.task == "classification" and "column" in cells_of(e.make())["explanations"].note
    }
    assert {e.name for e in entries() if e.task == "classification"} - able == {"hmm", "output-columns"}


EXPLAINED = [n for n in SUBJECTS if is_classifier(SUBJECTS[n].model) and FOUND[n]["explanations"].able]


@pytest.mark.parametrize("name", EXPLAINED)
def test_every_column_of_every_row_has_a_contribution(name, tmp_path):
    subject = SUBJECTS[name]
    fitted, X = subject.usual, subject.X
    why = fitted.explain(X)
    adds_up(fitted, why, X, least=1e-6 if isinstance(fitted, TunedClassifier) else 0.0)
    assert why.by == "column" and why.parts.shape == (N, len(why.names)) and len(why.values()) == N
    some = fitted.explain(X[:3] if isinstance(X, np.ndarray) else X.head(3))
    np.testing.assert_allclose(some.parts, why.parts[:3], rtol=1e-9, atol=1e-9)  # alone or among others
    foreign = "skops" if "skops" in FOUND[name]["saved"].note else None
    mixent.save(fitted, tmp_path / "m.mixent", foreign=foreign)
    np.testing.assert_array_equal(mixent.load(tmp_path / "m.mixent").explain(X).parts, why.parts)


SLOW = {"mixture", "shared mixture", "stack", "RBF MED", "Gaussian MED", "tree MED"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in recipes()])
def test_every_method_of_compare_explains_a_table_with_gaps(name):
    model = recipes()[name].make(Setting(shape_of(read_table(TABLE, "auto"), read_labels(LABEL, N_ROWS)), "auto", 0))
    if "grid" in model.get_params():
        model.set_params(grid=None)  # the search of settings plays no part here
    model.fit(TABLE, LABEL)
    rows = TABLE.iloc[:10]
    why = model.explain(rows)
    adds_up(model, why, rows, least=1e-6 if isinstance(model, TunedClassifier) else 0.0)
    assert sorted(why.names) == sorted(COLUMNS) and why.by == "column"
    texts = np.array(why.values())[:, [why.names.index(column) for column in COLUMNS]]
    np.testing.assert_array_equal(texts == "missing", rows.isna().to_numpy())
    np.testing.assert_array_equal(texts[1], [f"{x:.6g}" for x in rows.iloc[1, :3]] + [rows["color"][1]])
    one = model.explain(rows.iloc[[3]], label="no", rival="yes")
    assert one.label[0] == "no" and one.rival[0] == "yes"


# --- properties -------------------------------------------------------------------------------------------------------


class Formula(ClassifierMixin, BaseEstimator):
    """Log-odds by a formula."""

    def __init__(self, formula=None):
        self.formula = formula

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-self.formula(np.asarray(X, dtype=float))))
        return np.column_stack([1 - p, p])


WIDE = rng.normal(size=(60, 8))
SIDES = np.arange(60) % 2


def formula(text):
    return Formula(text).fit(WIDE, SIDES)


def test_a_column_that_the_model_ignores_contributes_nothing():
    model = formula(lambda X: X[:, 0] * X[:, 3] + np.sin(X[:, 5]))
    for X in (WIDE, pd.DataFrame(WIDE), pl.DataFrame(WIDE)):
        why = mixent.explain(model, X[:4], X, label=1)
        assert why.method == "model-agnostic (sampled Shapley values)"
        assert (why.parts[:, [1, 2, 4, 6, 7]] == 0).all() and (why.parts[:, [0, 3, 5]] != 0).all()
        adds_up(model, why, X[:4])


def test_columns_that_enter_alike_contribute_equally():
    model = Formula(lambda X: np.tanh(X[:, 0] + X[:, 1]) * X[:, 2])
    half = WIDE[:25, :4]
    both = np.vstack([half, half[:, [1, 0, 2, 3]]])  # the two columns are exchangeable
    rows = half[:5].copy()
    rows[:, 1] = rows[:, 0]
    parts = mixent.explain(model.fit(both, SIDES[:50]), rows, both, label=1).parts
    np.testing.assert_allclose(parts[:, 0], parts[:, 1], rtol=1e-9)
    assert (np.abs(parts[:, :3]) > 1e-6).all() and (parts[:, 3] == 0).all()


def test_of_a_linear_model_the_contributions_are_its_terms():
    """Whatever the orders: coefficient times distance from the mean of the background."""
    linear = LogisticRegression().fit(WIDE, SIDES)
    chosen = np.linspace(0, 59, N_BACKGROUND).astype(int)
    why = mixent.explain(linear, WIDE[:6], WIDE, label=1)
    np.testing.assert_allclose(why.parts, linear.coef_ * (WIDE[:6] - WIDE[chosen].mean(axis=0)), rtol=1e-9, atol=1e-9)
    average = linear.decision_function(WIDE[chosen]).mean()
    np.testing.assert_allclose(why.baseline, [average] * 6, rtol=1e-9)
    tuned = TunedClassifier(LogisticRegression()).fit(WIDE, SIDES)
    coef = tuned.model_.coef_ / tuned.columns_.scale
    expected = coef * (WIDE[:6] - tuned.background_.X.mean(axis=0))
    np.testing.assert_allclose(tuned.explain(WIDE[:6], 1).parts, expected, rtol=1e-9, atol=1e-9)
    for calibration in ("affine", None):
        med = MEDClassifier("linear", C=1.0, calibration=calibration, random_state=0).fit(WIDE, SIDES)
        expected = med.calibration_.slope * med.coef_ * (WIDE[:6] - med.background_.X.mean(axis=0))
        why = med.explain(WIDE[:6], 1)
        np.testing.assert_allclose(why.parts, expected, rtol=1e-9, atol=1e-9)
        assert why.method == "exact"


@pytest.mark.parametrize("n_classes", [2, 3])
def test_exact_contributions_are_the_shapley_values(n_classes, monkeypatch):
    """Of a linear discriminant of numbers and categories, with missing values."""
    label = np.where(LABEL == "no", "no", np.where(TABLE["width"] > 0, "wide", "yes")) if n_classes == 3 else LABEL
    model = MEDClassifier(C=1.0, random_state=0).fit(TABLE, label)
    exact = model.explain(TABLE[:12])
    monkeypatch.setattr(MEDClassifier, "_column_terms", lambda self, table: None)
    shapley = model.explain(TABLE[:12])
    assert exact.method == "exact" and shapley.method == "model-agnostic (Shapley values)"
    np.testing.assert_allclose(exact.parts, shapley.parts, atol=1e-9)
    np.testing.assert_allclose(exact.baseline, shapley.baseline, atol=1e-9)


@pytest.mark.parametrize("trees", ["separate", "shared"])
def test_the_terms_of_trees_add_up_by_edge(trees):
    model = MEDTreeClassifier(Tables(continuous="gaussian"), C=1.0, cv=2, trees=trees, random_state=0).fit(TABLE, LABEL)
    why = model.explain(TABLE[:9], by="edge")
    adds_up(model, why, TABLE[:9])
    assert why.by == "edge" and why.method == "exact" and why.parts.shape == (9, 4 + 6)
    assert why.names[:5] == (*COLUMNS, "size – age") and len(set(why.names)) == 10
    texts = why.values()
    assert texts[0][1] == "missing" and texts[0][4] == f"{texts[0][0]}, missing"
    changed = TABLE[:9].assign(color="green")  # only the terms of this column change
    both = model.explain(changed, "yes", "no", by="edge").parts - model.explain(TABLE[:9], "yes", "no", by="edge").parts
    touched = np.array(["color" in name for name in why.names])
    np.testing.assert_allclose(both[:, ~touched], 0, atol=1e-12)
    assert (np.abs(both[:, touched]).max(axis=0) > 1e-6).all()
    log_odds = np.diff(model._explained_log_proba(model.background_.table))[:, 0]
    baseline = model.explain(TABLE[:9], "yes", "no", by="edge").baseline  # of the average row, whatever the row
    np.testing.assert_allclose(baseline, np.full(9, log_odds.mean()), rtol=1e-9)
    np.testing.assert_allclose(model.explain(TABLE[:9]).log_odds, why.log_odds, atol=1e-9)


def test_contributions_do_not_depend_on_blocks(monkeypatch):
    model = TunedClassifier(RandomForestClassifier(5, random_state=0)).fit(WIDE, SIDES)
    parts = model.explain(WIDE[:5]).parts
    monkeypatch.setattr(background, "CELLS", 1000)
    np.testing.assert_array_equal(model.explain(WIDE[:5]).parts, parts)


def test_any_label_and_rival():
    model = MEDClassifier("linear", C=1.0, calibration=None).fit(WIDE, np.arange(60) % 3)
    log_proba = model.predict_log_proba(WIDE[:9])
    for label, rival in ((0, 1), (2, 0)):
        why = model.explain(WIDE[:9], label, rival)
        np.testing.assert_allclose(why.log_odds, log_proba[:, label] - log_proba[:, rival], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.explain(WIDE[:9], rival, label).parts, -why.parts, rtol=1e-9, atol=1e-9)
    against = model.explain(WIDE[:9], rival=1)
    assert (against.label != 1).all() and (against.rival == 1).all()
    with pytest.raises(ValueError, match="rival"):
        model.explain(WIDE, 1, 1)


# --- the background ---------------------------------------------------------------------------------------------------


def test_the_background_has_few_rows_of_positive_weight_in_proportion():
    table = Table.of_numbers(np.arange(300.0)[:, None])
    assert Background.of(table).X[:, 0].tolist() == np.arange(2, 300, 6).tolist()
    few = Background.of(table.take(np.arange(7)))
    assert few.X[:, 0].tolist() == list(range(7))
    weight = np.zeros(300)
    weight[10:20], weight[50:120] = 3.0, 1.0
    chosen = Background.of(table, weight).X[:, 0]
    assert set(chosen) <= {*range(10, 20), *range(50, 120)}
    assert ((chosen < 20).sum(), len(chosen)) == (15, 50)


def test_mixed_rows_are_the_user_s_rows_for_other_libraries():
    holder = type("Holder", (), {})()
    table = read_features(holder, TABLE, reset=True)
    index = np.tile(np.arange(N_ROWS)[:, None], 4)
    index[5] = -1
    again = background.mixed(index, table).given
    expected = TABLE.copy()
    expected.iloc[5] = np.nan
    pd.testing.assert_frame_equal(again.isna(), expected.isna())
    assert again["color"].dropna().tolist() == expected["color"].dropna().tolist()
    np.testing.assert_array_equal(again["size"], expected["size"])
    plain = background.mixed(index[:, :3], read_features(holder, TABLE.iloc[:, :3].to_numpy(), reset=True)).given
    np.testing.assert_array_equal(plain, expected.iloc[:, :3])


def test_values_are_those_of_the_user_s_table():
    model = mixent.ParzenClassifier().fit(TABLE, LABEL)
    row = TABLE.iloc[[1]].assign(size=1234567.0, color="purple")
    with pytest.warns(UserWarning, match="purple"):
        assert model.explain(row).values()[0][0::3] == ["1.23457e+06", "purple"]
    assert model.explain(pl.from_pandas(TABLE.iloc[[0]])).values()[0][1] == "missing"


# --- other libraries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, np.asarray])
def test_a_pipeline_of_another_library(kind):
    X = kind(pd.DataFrame(WIDE[:, :4], columns=list("abcd")).to_dict("list") if kind is pl.DataFrame else WIDE[:, :4])
    model = make_pipeline(StandardScaler(), MixtureClassifier(1)).fit(X, SIDES)
    why = mixent.explain(model, X[:5], X)
    adds_up(model, why, X[:5], least=1e-6)
    assert why.names == (
        tuple("abcd")
        if kind is pl.DataFrame
        else tuple(map(str, range(4)))
        if kind is pd.DataFrame
        else ("x0", "x1", "x2", "x3")
    )


def test_a_model_with_its_own_explanation_needs_no_background():
    model = clone(SUBJECTS["MaxEntClassifier"].model).fit(TABLE, LABEL)
    np.testing.assert_array_equal(mixent.explain(model, TABLE).parts, model.explain(TABLE).parts)
    with pytest.raises(ValueError, match="background"):
        mixent.explain(LogisticRegression().fit(WIDE, SIDES), WIDE)


def test_a_kernel_matrix_has_no_columns_to_explain():
    kernel = WIDE @ WIDE.T
    model = MEDClassifier("precomputed", C=1.0).fit(kernel, SIDES)
    assert not hasattr(model, "explain") and model.background_ is None


# --- columns that become several --------------------------------------------------------------------------------------

WITH_NAMES = [n for n in EXPLAINED if isinstance(SUBJECTS[n].X, pd.DataFrame) and n != "stack of fitted ones"]


@pytest.mark.filterwarnings("ignore::mixent.DataWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", WITH_NAMES)
def test_a_date_has_one_contribution(name):
    """And so have numbers with a frequent word."""
    subject = SUBJECTS[name]
    days = pd.Timestamp("2024-01-15") + pd.to_timedelta(30 * subject.X["height"], unit="D").dt.round("D")
    limit = np.where(np.arange(N) % 20 == 3, "<0.1", subject.X["height"].round(2).astype(str))
    X = subject.X.assign(day=days, limit=limit)
    fitted = subject.fit(X)
    why = fitted.explain(X.head(4))
    adds_up(fitted, why, X.head(4), least=1e-6 if isinstance(fitted, TunedClassifier) else 0.0)
    assert sorted(why.names) == sorted(X.columns)
    texts = np.array(why.values())[:, [why.names.index(name) for name in ("day", "limit")]]
    assert texts[:, 1].tolist() == limit[:4].tolist() and all(str(day.date()) in t for day, t in zip(days, texts[:, 0]))


def test_terms_of_one_column_are_added():
    """Of a date given as a column for each of its parts, the contributions add up to that of the date."""
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2024-01-15") + pd.to_timedelta(rng.integers(0, 300, N_ROWS), unit="D")
    frame = TABLE.assign(day=days)
    options = {"features": "moments", "prior_variance": 1.0, "tol": 1e-13}
    model = mixent.MaxEntClassifier(**options).fit(frame, LABEL)
    table = read_features(model, frame, reset=False)
    parts = pd.DataFrame(table.X, columns=[table.schema.names[j] for j in table.schema.continuous])
    parts = parts.astype({"day (days)": int}).assign(color=TABLE["color"])
    apart = mixent.MaxEntClassifier(**options).fit(parts, LABEL)
    why, several = model.explain(frame), apart.explain(parts)
    total = several.parts[:, [name.startswith("day") for name in several.names]].sum(axis=1)
    np.testing.assert_allclose(why.parts[:, why.names.index("day")], total, atol=1e-9)
    assert len(several.names) == len(why.names) + 4
