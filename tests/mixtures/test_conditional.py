"""Distributions of missing values given the observed ones, draws from them, and imputation within a class."""

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier

NAMES = ("VVI", "VVV")


def table(n=240, seed=0, missing=0.25):
    """Numbers, an integer column, categories and booleans of three classes, with missing values; the class of a row."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    u = 2.0 * y + rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "u": u,
            "kind": np.where(rng.random(n) < 0.6, np.array(["x", "y", "z"])[y], "x"),
            "v": 0.5 * u + rng.normal(size=n) * (1 + y),
            "count": np.rint(5 + 3 * y + 2 * rng.normal(size=n)).astype(int),
            "new": rng.random(n) < 0.2 + 0.3 * (y == 1),
        },
        index=np.arange(n) + 1000,
    ).astype({"count": "Int64", "new": "boolean"})
    gaps = rng.random(frame.shape) < missing
    gaps[:5] = False  # complete rows
    gaps[5] = True  # a row without values
    return frame.mask(pd.DataFrame(gaps, columns=frame.columns, index=frame.index)), np.array(["a", "b", "c"])[y]


MODELS = {
    "mixture": GaussianMixture(3, random_state=0),
    "per class": MixtureClassifier(2, random_state=0),
    "shared": SharedMixtureClassifier(4, random_state=0),
}


@cache
def fitted(kind, name="VVV"):
    X, y = table()
    return clone(MODELS[kind]).set_params(covariance=name).fit(X, y)


@pytest.fixture(params=[(kind, name) for name in NAMES for kind in MODELS], ids=" ".join)
def model(request):
    return fitted(*request.param)


classifiers = pytest.mark.parametrize("kind", ["per class", "shared"])


def test_the_density_is_that_of_all_values_divided_by_that_of_the_observed_ones(model):
    X, _ = table()
    distribution = model.conditional(X)
    for filled in distribution.sample(3, random_state=0):
        joint, observed = model.score_samples(filled), model.score_samples(X)
        np.testing.assert_allclose(distribution.log_density(filled), joint - observed, rtol=1e-9, atol=1e-9)
    assert np.abs(distribution.log_density(filled)[:5]).max() < 1e-12  # nothing is missing


def test_means_and_most_probable_values_are_imputed(model):
    X, _ = table()
    distribution, filled = model.conditional(X), model.impute(X)
    np.testing.assert_allclose(distribution.mean()[["u", "v"]], filled[["u", "v"]], rtol=1e-9)
    np.testing.assert_array_equal(np.rint(distribution.mean()["count"]), filled["count"].astype(float))
    likely = distribution.probabilities("kind")
    assert (np.array(likely.categories)[np.asarray(likely).argmax(axis=1)] == filled["kind"]).all()
    np.testing.assert_allclose(np.asarray(likely).sum(axis=1), 1.0)


def test_a_row_has_the_moments_of_its_mixture(model):
    X, _ = table()
    distribution = model.conditional(X)
    mean, std = distribution.mean().to_numpy(), distribution.std().to_numpy()
    for i, row in enumerate(distribution):
        missing = np.flatnonzero(X.iloc[i][["u", "v", "count"]].isna())
        assert row.columns == tuple(np.array(["u", "v", "count"])[missing])
        assert set(row.category_probabilities) == {c for c in ("kind", "new") if pd.isna(X.iloc[i][c])}
        np.testing.assert_allclose(row.mean(), mean[i, missing], rtol=1e-9)
        np.testing.assert_allclose(row.std(), std[i, missing], rtol=1e-9)
        second = sum(w * (c + np.outer(m, m)) for w, m, c in zip(row.weights, row.means, row.covariances)) - np.outer(
            row.mean(), row.mean()
        )
        np.testing.assert_allclose(row.cov(), second, rtol=1e-9, atol=1e-9)
    assert (std[~X[["u", "v", "count"]].isna().to_numpy()] == 0).all()


def test_an_empty_row_has_the_distribution_of_the_model():
    model, (X, _) = fitted("mixture"), table()
    row = model.conditional(X)[5]
    np.testing.assert_allclose(row.weights, model.weights_, rtol=1e-9)
    np.testing.assert_allclose(row.means, model.means_, rtol=1e-9)
    np.testing.assert_allclose(row.covariances, model.covariances_, rtol=1e-9)
    for name, probabilities in model.category_probabilities_.items():
        np.testing.assert_array_equal(row.category_probabilities[name], probabilities)


def test_quantiles_are_those_of_the_mixture():
    model, (X, _) = fitted("per class"), table()
    distribution = model.conditional(X)
    q = [0.05, 0.5, 0.95]
    values = distribution.quantile(q, "v")
    for i in np.flatnonzero(X["v"].isna())[:20]:
        row = distribution[i]
        j = row.columns.index("v")
        cdf = norm.cdf(values[i][:, None], row.means[:, j], np.sqrt(row.covariances[:, j, j])) @ row.weights
        np.testing.assert_allclose(cdf, q, rtol=1e-9)
    seen = X["v"].notna().to_numpy()
    np.testing.assert_array_equal(values[seen], np.tile(X["v"][seen].to_numpy()[:, None], 3))
    np.testing.assert_allclose(distribution.interval("v"), values[:, [0, 2]], rtol=1e-12)
    np.testing.assert_array_equal(distribution.quantile(0.5, 2), values[:, 1])  # by position


def test_the_density_of_one_missing_value_integrates_to_one():
    X = np.array([[0.3, np.nan], [np.nan, -1.0]])
    rng = np.random.default_rng(0)
    model = GaussianMixture(2, random_state=0).fit(
        np.concatenate([rng.normal(size=(50, 2)), 4 + rng.normal(size=(50, 2))])
    )
    distribution = model.conditional(X)

    def density(v, row):
        filled = np.where(np.isnan(X), v, X)
        return np.exp(distribution.log_density(filled)[row])

    for row in (0, 1):
        assert quad(density, -20, 20, args=(row,), points=[0, 4])[0] == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_draws_are_tables_like_the_rows(library):
    X, _ = table()
    model = fitted("mixture")
    rows = X
    if library == "polars":
        rows = pl.DataFrame({name: [None if pd.isna(v) else v for v in X[name].tolist()] for name in X})
    if library == "array":
        rows = X[["u", "v"]].to_numpy()
        model = GaussianMixture(3, random_state=0).fit(rows)
    drawn = model.sample_conditional(rows, 4, random_state=1)
    assert len(drawn) == 4 and all(type(t) is type(rows) for t in drawn)
    for one in drawn:
        if library == "array":
            assert not np.isnan(one).any()
            np.testing.assert_array_equal(one[~np.isnan(rows)], rows[~np.isnan(rows)])
            continue
        assert list(one.columns) == list(rows.columns)
        if library == "polars":
            assert one.schema == rows.schema and one.null_count().sum_horizontal()[0] == 0
            continue
        assert (one.index == X.index).all() and not one.isna().any().any()
        assert one["count"].dtype.kind == "i" and set(one["kind"]) <= {"x", "y", "z"}
        for name in X:
            seen = X[name].notna()
            assert one[name][seen].tolist() == X[name][seen].tolist()
    again = model.sample_conditional(rows, 4, random_state=1)
    assert all(np.array_equal(a, b) if library == "array" else a.equals(b) for a, b in zip(drawn, again))
    assert not (np.array_equal(drawn[0], drawn[1]) if library == "array" else drawn[0].equals(drawn[1]))


def test_moments_of_many_draws_are_the_exact_ones(model):
    X, S = table()[0].iloc[5:25], 4000
    distribution = model.conditional(X)
    (drawn,) = model.sample_conditional(pd.concat([X] * S), random_state=0)  # every row S times
    numbers = drawn[["u", "v"]].to_numpy(float).reshape(S, 20, 2)
    mean, std = (part()[["u", "v"]].to_numpy() for part in (distribution.mean, distribution.std))
    assert (np.abs(numbers.mean(axis=0) - mean) <= 5 * std / np.sqrt(S) + 1e-12).all()
    np.testing.assert_allclose(numbers.std(axis=0), std, rtol=0.12, atol=1e-12)
    both = distribution[0]  # an empty row
    pair = [both.columns.index(name) for name in ("u", "v")]
    np.testing.assert_allclose(np.cov(numbers[:, 0].T), both.cov()[np.ix_(pair, pair)], rtol=0.1, atol=0.3)
    kinds = drawn["kind"].to_numpy(str).reshape(S, 20)
    exact = distribution.probabilities("kind")
    for value in exact.categories:
        share, p = (kinds == value).mean(axis=0), exact[value]
        assert (np.abs(share - p) <= 5 * np.sqrt(p * (1 - p) / S) + 1e-9).all()


# --- given the class --------------------------------------------------------------------------------------------------


@classifiers
def test_given_the_class_only_its_components_count(kind):
    X, y = table()
    model = fitted(kind)
    codes = np.searchsorted(model.classes_, y)
    expected = model._log_components(model._read(X)).T + np.log(np.maximum(model.weights_[codes], 1e-300))
    expected = np.exp(expected - np.logaddexp.reduce(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(model.conditional(X, y).weights, expected, rtol=1e-9, atol=1e-12)
    filled = model.impute(X, y)
    np.testing.assert_allclose(model.conditional(X, y).mean()["u"], filled["u"], rtol=1e-9)
    missing = X["u"].isna().to_numpy()
    assert np.abs(filled["u"] - 2 * codes)[missing].mean() < np.abs(model.impute(X)["u"] - 2 * codes)[missing].mean()


@classifiers
def test_a_row_without_a_label_is_imputed_from_all_classes(kind):
    X, y = table()
    model = fitted(kind)
    some = np.where(np.arange(len(y)) % 2 == 0, y, None)
    known, unknown = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    pd.testing.assert_frame_equal(model.impute(X, some)[known], model.impute(X, y)[known])
    pd.testing.assert_frame_equal(model.impute(X, some)[unknown], model.impute(X)[unknown])
    pd.testing.assert_frame_equal(model.impute(X, [None] * len(y)), model.impute(X))
    soft = pd.DataFrame(np.eye(3)[np.searchsorted(model.classes_, y)], columns=["a", "b", "c"])
    pd.testing.assert_frame_equal(model.impute(X, soft), model.impute(X, y))


@classifiers
def test_classes_average_to_the_whole(kind):
    """p(x_m | x_o) is the average of p(x_m | x_o, class) with weights p(class | x_o)."""
    X, _ = table()
    model = fitted(kind)
    proba = model.predict_proba(X)
    parts = [model.conditional(X, [c] * len(X)).mean().to_numpy() for c in model.classes_]
    whole = sum(p[:, None] * part for p, part in zip(proba.T, parts))
    np.testing.assert_allclose(whole, model.conditional(X).mean(), rtol=1e-9)


@classifiers
def test_draws_given_the_class_have_its_mean(kind):
    X, y = table()
    model = fitted(kind)
    (drawn,) = model.sample_conditional(pd.concat([X] * 300), y=np.tile(y, 300), random_state=0)
    exact = model.conditional(X, y)
    mean, std = exact.mean()["u"], exact.std()["u"]
    found = drawn["u"].to_numpy().reshape(300, -1).mean(axis=0)
    assert (np.abs(found - mean) <= 5 * std / np.sqrt(300) + 1e-12).all()


# --- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_column_has_its_value():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), np.full(60, 4.0), rng.normal(size=60)])
    X[0, 1] = X[1, 1] = X[1, 2] = np.nan
    model = GaussianMixture(2, random_state=0).fit(X)
    distribution = model.conditional(X[:3])
    np.testing.assert_array_equal(distribution.mean()[:, 1], 4.0)
    np.testing.assert_array_equal(distribution.std()[:, 1], 0.0)
    np.testing.assert_array_equal(distribution.quantile(0.3, 1), 4.0)
    row = distribution[1]
    assert row.columns == ("x1", "x2") and (row.covariances[:, 0] == 0).all()
    (filled,) = distribution.sample(random_state=0)
    assert filled[0, 1] == filled[1, 1] == 4.0
    np.testing.assert_allclose(
        distribution.log_density(filled),
        model.score_samples(filled) - model.score_samples(X[:3]),
        rtol=1e-9,
        atol=1e-12,
    )


def test_categories_only():
    X = table()[0][["kind", "new"]]
    model = GaussianMixture(2, random_state=0).fit(X)
    distribution = model.conditional(X)
    (filled,) = distribution.sample(random_state=0)
    np.testing.assert_allclose(
        distribution.log_density(filled), model.score_samples(filled) - model.score_samples(X), rtol=1e-9, atol=1e-12
    )
    assert distribution.mean().shape == (240, 0) and not filled.isna().any().any()


def test_a_value_far_away_leaves_the_others_finite():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = GaussianMixture(2, random_state=0).fit(X)
    far = np.array([[1e140, np.nan, 0.0], [np.nan, 1e6, np.nan]])
    assert np.isfinite(model.conditional(far).mean()).all()
    assert np.isfinite(model.sample_conditional(far, random_state=0)[0]).all()


def test_the_same_seed_as_the_estimator_by_default():
    X, _ = table()
    model = fitted("mixture", "VVI")
    assert model.sample_conditional(X)[0].equals(model.sample_conditional(X, random_state=0)[0])


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_dates_are_days_and_come_back_as_dates(library):
    rng = np.random.default_rng(0)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 80), unit="D")
    frame = pd.DataFrame({"day": day, "x": rng.normal(size=80)})
    frame.loc[[0, 3], "day"], frame.loc[[1, 3], "x"] = pd.NaT, np.nan
    rows = {"pandas": lambda: frame, "polars": lambda: pl.from_pandas(frame)}
    rows["pyarrow"] = lambda: pl.from_pandas(frame).to_arrow()
    X = rows[library]()
    model = GaussianMixture(2, random_state=0).fit(X)
    distribution = model.conditional(X)
    (filled,) = distribution.sample(random_state=0)
    np.testing.assert_allclose(
        distribution.log_density(filled)[1], (model.score_samples(filled) - model.score_samples(X))[1], rtol=1e-9
    )
    middle = distribution.quantile(0.5, "day")
    np.testing.assert_array_equal(middle[1:3], (day[1:3] - pd.Timestamp("1970-01-01")).days)
    np.testing.assert_array_equal(middle, distribution.quantile(0.5, 0))
    assert type(filled) is type(X) and type(distribution.mean()) is type(X)
    if library == "pandas":
        assert filled["day"].dtype == frame["day"].dtype and not filled.isna().any().any()


def test_draws_have_the_conditional_covariance():
    rng = np.random.default_rng(0)
    root = np.array([[1.0, 0.0, 0.0], [3.0, 0.5, 0.0], [-2.0, 1.0, 0.3]])
    model = GaussianMixture(1, "VVV", prior=None).fit(rng.normal(size=(500, 3)) @ root.T)
    rows = np.tile([0.7, np.nan, np.nan], (40_000, 1))
    (drawn,) = model.sample_conditional(rows, random_state=0)
    exact = model.conditional(rows[:1])[0]
    scale = np.sqrt(np.outer(exact.std(), exact.std()) / len(rows)).max()
    C = model.covariances_[0]
    np.testing.assert_allclose(exact.cov(), C[1:, 1:] - np.outer(C[1:, 0], C[0, 1:]) / C[0, 0], rtol=1e-9)
    np.testing.assert_allclose(np.cov(drawn[:, 1:].T), exact.cov(), atol=0.02)
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), exact.mean(), atol=5 * scale)
