"""Mixed tables: categories and gaps, from pandas and polars."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mixent import GaussianMixture, MixtureClassifier
from mixent.options import Search


@pytest.fixture(scope="module")
def mixed():
    """Two classes that differ in size, color and count; a fifth of the cells is empty."""
    rng = np.random.default_rng(0)
    n = 300
    y = rng.integers(2, size=n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + 2.0 * y,
            "color": np.where(rng.random(n) < np.where(y, 0.8, 0.3), "red", rng.choice(["blue", "green"], size=n)),
            "weight": rng.normal(size=n) * np.where(y, 2.0, 0.5),
            "new": rng.random(n) < 0.5,
        }
    )
    gaps = rng.random((n, 4)) < 0.2
    frame["new"] = frame["new"].astype("boolean")
    return frame.mask(pd.DataFrame(gaps, columns=frame.columns)), y


@pytest.fixture(scope="module")
def model(mixed):
    return MixtureClassifier(1, "VVV").fit(*mixed)


def test_the_columns_are_typed_and_named(model):
    assert model.feature_names_in_.tolist() == ["size", "color", "weight", "new"]
    assert [c.kind for c in model.schema_.columns] == ["continuous", "categorical", "continuous", "boolean"]
    assert model.means_.shape == (2, 2) and set(model.category_probabilities_) == {"color", "new"}
    assert model.category_probabilities_["color"].shape == (2, 3)
    colors = model.category_probabilities_["color"]
    np.testing.assert_allclose(np.sum(colors, axis=1), 1.0)
    assert colors.categories == ("blue", "green", "red") and len(colors) == 2
    np.testing.assert_array_equal(colors["red"], np.asarray(colors)[:, 2])
    assert colors.frame().columns.tolist() == ["blue", "green", "red"] and colors.frame().index.name == "component"
    np.testing.assert_array_equal(colors.frame(), colors)
    assert model.category_probabilities_["new"].categories == (False, True)


def test_category_tables_are_smoothed_shares(mixed, model):
    """(count + smoothing x frequency) / (total + smoothing), gaps left out."""
    frame, y = mixed
    seen = frame["color"].notna()
    counts = [[np.sum((frame["color"] == v) & (y == c)) for v in ("blue", "green", "red")] for c in (0, 1)]
    overall = np.array([np.sum(frame["color"][seen] == v) for v in ("blue", "green", "red")]) + 0.5
    counts, share = np.array(counts), overall / overall.sum()
    expected = (counts + share) / (counts.sum(axis=1, keepdims=True) + 1.0)
    np.testing.assert_allclose(model.category_probabilities_["color"], expected, rtol=1e-9)


def test_posteriors_are_products_of_the_parts(mixed, model, brute_force):
    frame, _ = mixed
    X = frame[["size", "weight"]].to_numpy(float)
    joint = brute_force(X, model.class_prior_, model.means_, model.covariances_)
    for name, values in (("color", ["blue", "green", "red"]), ("new", [False, True])):
        for j, v in enumerate(values):
            rows = (frame[name] == v).fillna(False).to_numpy(bool)
            joint[rows] += np.log(model.category_probabilities_[name][:, j])
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None])
    np.testing.assert_allclose(model.predict_proba(frame), expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.score_samples(frame), np.logaddexp.reduce(joint, axis=1), rtol=1e-9, atol=1e-12)


def test_pandas_polars_and_pyarrow_are_the_same_table(mixed, model, same):
    frame, y = mixed
    other = pl.DataFrame({name: [None if pd.isna(v) else v for v in frame[name].tolist()] for name in frame})
    for table in (other, other.to_arrow()):
        again = MixtureClassifier(1, "VVV").fit(table, pl.Series(y) if table is other else y)
        same(model, again, 0)
        np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(frame))


def test_the_order_of_the_columns_does_not_matter(mixed, model):
    frame, y = mixed
    turned = frame[["new", "weight", "color", "size"]]
    np.testing.assert_allclose(
        MixtureClassifier(1, "VVV").fit(turned, y).predict_proba(turned),
        model.predict_proba(frame),
        rtol=1e-8,
        atol=1e-12,
    )


def test_impute_fills_every_gap_and_keeps_what_was_seen(mixed, model):
    frame, _ = mixed
    filled = model.impute(frame)
    assert isinstance(filled, pd.DataFrame) and filled.columns.tolist() == frame.columns.tolist()
    assert not filled.isna().any().any()
    for name in frame.columns:
        seen = frame[name].notna().to_numpy()
        assert filled[name][seen].tolist() == frame[name][seen].tolist()
    row = np.flatnonzero(frame["color"].isna())[0]
    share = model._responsibilities(model._read(frame))[row] @ model.category_probabilities_["color"]
    assert filled["color"][row] == ["blue", "green", "red"][share.argmax()]


def test_imputed_whole_numbers_are_whole():
    frame = pd.DataFrame({"a": [1, 2, 3, 4, 5, 6, None], "b": [2.0, 4.1, 6.2, 7.9, 10.0, 12.1, 14.0]}).astype(
        {"a": "Int64"}
    )
    filled = GaussianMixture(1, prior=None).fit(frame).impute(frame)
    assert filled["a"].tolist()[:6] == [1, 2, 3, 4, 5, 6] and filled["a"].tolist()[6] == 7
    assert filled["a"].dtype.kind == "i"


def test_samples_of_a_mixed_model_are_a_frame_like_the_training_one(mixed, model):
    frame, _ = mixed
    sample, label = model.sample(3000, random_state=0)
    assert sample.columns.tolist() == frame.columns.tolist()
    assert set(sample["color"]) == {"blue", "green", "red"} and set(label) == {0, 1}
    red = [(sample["color"][label == c] == "red").mean() for c in (0, 1)]
    np.testing.assert_allclose(red, model.category_probabilities_["color"][:, 2], atol=0.04)
    again = MixtureClassifier(1, "VVV").fit(sample, label)
    np.testing.assert_allclose(again.means_, model.means_, atol=0.2)


def test_marginal_over_a_category_and_a_number(mixed, model):
    frame, _ = mixed
    part = model.marginal(["color", "size"])
    alone = frame.copy()
    alone["weight"], alone["new"] = np.nan, pd.array([pd.NA] * len(frame), dtype="boolean")
    np.testing.assert_allclose(
        part.predict_proba(frame[["color", "size"]]), model.predict_proba(alone), rtol=1e-8, atol=1e-12
    )
    assert part.feature_names_in_.tolist() == ["color", "size"]
    only = model.marginal(["new"])
    assert only.predict_proba(frame[["new"]]).shape == (300, 2)


def test_only_categories(mixed):
    frame, y = mixed
    table = frame[["color", "new"]]
    classifier = MixtureClassifier(1).fit(table, y)
    assert classifier.score(table, y) > 0.6
    assert classifier.means_.shape == (2, 0) and classifier.covariances_.shape == (2, 0, 0)
    mixture = GaussianMixture(2, random_state=0).fit(table)
    assert mixture.covariance_ is None and np.isfinite(mixture.score(table))
    np.testing.assert_allclose(mixture.predict_proba(table).sum(axis=1), 1.0)
    assert mixture.n_parameters_ == 1 + 2 * (2 + 1)
    classifier.marginal(["color"]).predict(frame[["color"]])
    assert MixtureClassifier(search=Search(max_components=2, cv=3), random_state=0).fit(table, y).score(table, y) > 0.6


def test_numbers_declared_categories(draw):
    X, label = draw()
    X[:, 2] = np.random.default_rng(0).integers(3, size=len(X))
    model = MixtureClassifier(1, "VVV", categorical=[2]).fit(X, label)
    assert model.means_.shape == (3, 2) and list(model.category_probabilities_) == ["x2"]


def test_an_unseen_category_is_a_gap_with_a_warning(mixed, model):
    frame, _ = mixed
    odd, gap = frame.iloc[:5].copy(), frame.iloc[:5].copy()
    odd["color"], gap["color"] = "violet", None
    with pytest.warns(UserWarning, match="not seen"):
        answer = model.predict_proba(odd)
    np.testing.assert_array_equal(answer, model.predict_proba(gap))


def test_categories_help_a_mixture_to_find_its_components():
    rng = np.random.default_rng(0)
    label = rng.integers(2, size=400)
    frame = pd.DataFrame(
        {f"c{j}": np.array(["u", "v"])[np.where(rng.random(400) < 0.9, label, 1 - label)] for j in range(6)}
    )
    mixture = GaussianMixture(2, n_init=3, random_state=0).fit(frame)
    found = mixture.predict(frame)
    assert max((found == label).mean(), (found != label).mean()) > 0.95
