"""Pictures of maximum entropy classifiers: the numbers drawn are the model's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from mixent import MaxEntClassifier, MixtureClassifier
from mixent.evaluate import ConstraintsDisplay, ExplanationDisplay, PathDisplay
from mixent.evaluate.cases import case_values, strongest

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
LONG = "a column whose name is a whole sentence ($ per _unit_)"


def drawn(display, ax=None, **options):
    assert display.plot(ax, **options) is display
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    return display.ax_


def frame(n=240, seed=0):
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.5
    towns = np.array([f"town {i} of the northern district, far away" for i in range(30)])
    table = pd.DataFrame(
        {
            LONG: rng.normal(size=n) + ill,
            "town": towns[(rng.integers(30, size=n) + 9 * ill) % 30],
            "flag": rng.random(n) < 0.3 + 0.3 * ill,
        }
    )
    table[["round", "square"]] = rng.dirichlet([1, 1], size=n)
    table.loc[::6, LONG] = np.nan
    return table, np.where(ill, "ill", "$healthy_ for all one knows")


@pytest.fixture(scope="module")
def iris():
    return MaxEntClassifier(prior=1.0, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), Y)


@pytest.fixture(scope="module")
def mixed():
    table, y = frame()
    model = MaxEntClassifier(
        "quantize", n_bins=3, probabilistic={"shape": ["round", "square"]}, pairs=[("flag", "shape")], prior=1.0
    )
    return model.fit(table, y), table, y


def test_features_are_ranked_by_strength(iris):
    display = ConstraintsDisplay.from_estimator(iris, n_features=3)
    strength = iris.constraints().strength
    assert [block.name for block in display.blocks] == sorted(strength, key=lambda name: -strength[name])[:3]
    assert display.n_features == 4
    ax = drawn(display)
    assert ax.get_title() == "3 of 4 features"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["setosa", "versicolor", "virginica"]


def test_every_dot_is_a_multiplier(iris):
    display, found = ConstraintsDisplay.from_estimator(iris), iris.constraints()
    ax = drawn(display)
    for block in display.blocks:
        mine = np.array(found.features) == block.name
        np.testing.assert_array_equal(block.multipliers, found.multipliers[mine])
        np.testing.assert_allclose(block.shares, found.truth[mine].sum(axis=1))
        assert block.values == [v for v, m in zip(found.values, mine) if m] and not block.n_left_out
    dots = [line for line in ax.lines if line.get_marker() in "o^s"]
    assert len(dots) == 3 * len(display.blocks)
    np.testing.assert_array_equal(dots[1].get_xdata(), display.blocks[0].multipliers[:, 1])
    assert len(ax.get_yticks()) == sum(len(block.values) for block in display.blocks)


def test_two_classes_have_one_dot_of_log_odds(mixed):
    model, *_ = mixed
    display = ConstraintsDisplay.from_estimator(model, "flag")
    ax = drawn(display)
    gamma = display.blocks[0].multipliers
    (dots,) = [c for c in ax.collections if len(c.get_offsets()) == 2 and c.get_sizes().size]
    np.testing.assert_allclose(dots.get_offsets()[:, 0], gamma[:, 1] - gamma[:, 0])
    said = [t.get_text() for t in ax.texts]
    assert "for ill →" in said and any(text.startswith("← for \\$healthy_") for text in said)


def test_many_values_are_cut_to_those_that_matter_and_counted(mixed):
    model, *_ = mixed
    display = ConstraintsDisplay.from_estimator(model, ["town", LONG])
    town = display.blocks[0]
    assert len(town.values) == 10 and town.n_left_out == 20
    assert town.values == sorted(town.values, key=model.constraints().values.index)  # in their own order
    ax = drawn(display)
    assert any("10 of 30 values" in t.get_text() for t in ax.texts)
    assert ax.figure.get_tightbbox().width <= ax.figure.get_figwidth() + 0.02  # nothing outside the picture


def test_many_classes_are_shades():
    rng = np.random.default_rng(0)
    y = np.array([f"class number {i}" for i in range(9)])[np.arange(180) % 9]
    table = pd.DataFrame({"letter": np.array(list("abcde"))[(np.arange(180) + rng.integers(2, size=180)) % 5]})
    display = ConstraintsDisplay.from_estimator(MaxEntClassifier(prior=1.0).fit(table, y))
    ax = drawn(display)
    np.testing.assert_array_equal(np.asarray(ax.collections[0].get_array()), display.blocks[0].multipliers)
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"class number {i}" for i in range(9)]


def test_a_class_s_own_components_say_nothing_of_the_others():
    model = MaxEntClassifier("class", prior=1.0, means=False).fit(X, Y)
    display = ConstraintsDisplay.from_estimator(model)
    for block in display.blocks:
        assert (np.isfinite(block.multipliers).sum(axis=1) == 1).all()
    mask = model.layout_.mask(3)
    assert ((display.model - display.truth)[mask == 0] == 0).all()  # no constraint there
    drawn(display)
    drawn(display, quantity="residuals")


def test_moments_have_no_shares():
    model = MaxEntClassifier("moments", prior=1.0).fit(X, Y)
    display = ConstraintsDisplay.from_estimator(model)
    assert all(np.isnan(block.shares).all() for block in display.blocks)
    assert "mean" in {t.get_text() for t in drawn(display).get_yticklabels()}


def test_a_value_that_never_occurs_says_so():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 20, categories=["a", "b", "never seen"])})
    display = ConstraintsDisplay.from_estimator(MaxEntClassifier(prior=1.0).fit(table, ["p", "q"] * 20))
    labels = [t.get_text().replace("\u00a0", " ") for t in drawn(display).get_yticklabels()]
    assert labels[0] == "a   50 %" and ("never seen   never" in labels or len(labels) == 2)


def test_residuals_are_the_model_less_the_data_and_the_largest_are_named(mixed):
    model, *_ = mixed
    display, found = ConstraintsDisplay.from_estimator(model), model.constraints()
    ax = drawn(display, quantity="residuals")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), found.residuals.ravel())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), found.truth.ravel())
    named = display.largest(3)
    sizes = np.sort(np.abs(found.residuals), axis=None)[::-1]
    np.testing.assert_allclose([abs(off) for *_, off in named], sizes[:3])
    assert abs(named[0][-1]) == pytest.approx(model.residual_, rel=1e-6) or model.residual_ > abs(named[0][-1])
    assert ax.texts[-1].get_text().startswith("met least:\n1")


def test_constraints_that_are_not_there(iris):
    with pytest.raises(ValueError, match="MixtureClassifier has no constraints; give a fitted MaxEntClassifier"):
        ConstraintsDisplay.from_estimator(MixtureClassifier(1).fit(X, Y))
    with pytest.raises(ValueError, match="feature names a feature 'z'; the model has "):
        ConstraintsDisplay.from_estimator(iris, ["a", "z"])
    with pytest.raises(ValueError, match="feature is empty"):
        ConstraintsDisplay.from_estimator(iris, [])
    with pytest.raises(ValueError, match="n_features must be a whole number >= 1; got 0"):
        ConstraintsDisplay.from_estimator(iris, n_features=0)
    with pytest.raises(ValueError, match="quantity must be one of 'multipliers', 'residuals'; got 'x'"):
        ConstraintsDisplay.from_estimator(iris).plot(quantity="x")


# why this row


def test_the_parts_of_columns_add_up_and_show_what_the_row_holds(mixed):
    model, table, _ = mixed
    for row in (0, 1, 7):
        display = ExplanationDisplay.from_estimator(model, table, row)
        found = model.explain(table.iloc[[row]])
        np.testing.assert_array_equal(display.parts, found.by_column[0])
        bars = display.bars()
        assert bars[0] == ("class term", found.prior[0])
        assert sum(size for _, size in bars) == pytest.approx(display.log_odds)
        p = model.predict_proba(table.iloc[[row]])[0]
        assert display.probability == p.max() and display.log_odds == pytest.approx(np.log(p.max() / p.min()))
        ax = drawn(display)
        assert ax.figure.get_tightbbox().width <= ax.figure.get_figwidth() + 0.02
    names = ExplanationDisplay.from_estimator(model, table, 0).names
    assert "flag = False" in names or "flag = True" in names
    assert any(name.startswith("a column whose name") and name.endswith(" = missing") for name in names)
    assert all(len(name) <= 46 for name in names)


def test_an_explanation_without_the_rows(iris):
    display = ExplanationDisplay.from_explanation(iris.explain(pd.DataFrame(X, columns=list("abcd"))), row=70)
    assert display.names == list("abcd") and display.probability is None
    assert "probability" not in drawn(display).get_title()
    mixture = MixtureClassifier(1).fit(X, Y)
    display = ExplanationDisplay.from_explanation(mixture.explain(X), row=3)
    assert display.names[0] == "component 0" and display.first == "class priors"


def test_what_a_row_holds():
    table, y = frame()
    options = {"probabilistic": {"shape": ["round", "square"]}, "prior": 1.0}
    row = pd.DataFrame({LONG: [1.23456], "town": ["never seen"], "flag": [True], "round": [1.0], "square": [0.0]})
    gap = row.assign(**{LONG: np.nan, "round": np.nan, "square": np.nan})
    bins = MaxEntClassifier("quantize", n_bins=2, pairs=[("flag", "shape")], **options).fit(table, y)
    found = dict(zip(bins.feature_terms_, case_values(bins, row)[0]))
    assert found["town"] == "missing" and found["flag"] == "True" and found["shape"] == "round"
    assert found[LONG].startswith("1.23456 (>= ") and found["flag & shape"] == "True, round"
    missing = dict(zip(bins.feature_terms_, case_values(bins, gap)[0]))
    assert missing[LONG] == "missing" and missing["shape"] == "missing"
    half = dict(zip(bins.feature_terms_, case_values(bins, row.assign(round=0.25, square=0.75))[0]))
    assert half["shape"] == "square (75 %)"
    wide = table.assign(other=table[LONG] * 2 + np.arange(240) % 5)
    group = MaxEntClassifier(groups=[[LONG, "other"]], max_components=1, random_state=0, **options).fit(wide, y)
    found = dict(zip(group.feature_terms_, case_values(group, row.assign(other=np.nan))[0]))
    assert found[f"{LONG} & other"] == "1.23456, missing"


def test_the_strongest_features_and_what_they_say(iris):
    found = iris.constraints()
    ranking = strongest(found, 2)
    assert [entry["strength"] for entry in ranking] == sorted(found.strength.values())[::-1][:2]
    loud = ranking[0]["loudest"]
    at = [
        i
        for i, (f, v) in enumerate(zip(found.features, found.values))
        if f == ranking[0]["feature"] and v == loud["value"]
    ]
    assert found.multipliers[at[0], found.classes.tolist().index(loud["class"])] == loud["multiplier"] > 0


# which features


def test_the_path_is_the_model_s(mixed):
    _, table, y = mixed
    for selection in ("bic", "validation"):
        model = MaxEntClassifier(
            "quantize", n_bins=3, pairs=None, select="forward", selection=selection, prior=1.0, random_state=0
        ).fit(table.drop(columns="town"), y)
        display = PathDisplay.from_estimator(model)
        assert display.names == [step.name for step in model.path_]
        np.testing.assert_array_equal(display.score, [step.score for step in model.path_])
        assert display.kept.sum() == len(model.feature_terms_)
        ax = drawn(display)
        assert ("BIC" if selection == "bic" else "held-out log-loss") in ax.get_xlabel()
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), display.score)
        assert len(ax.get_yticklabels()) == len(model.path_)
        ax = drawn(display, quantity="gain")
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], display.gain)


def test_a_path_of_which_nothing_was_kept_is_drawn():
    display = PathDisplay(["a", "b"], np.array([3.0, 4.0]), np.ones(2), np.ones(2), np.zeros(2, dtype=bool), "bic")
    ax = drawn(display)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["not kept"]


def test_no_path(iris):
    for model in (iris, MixtureClassifier(2, "VVI", growth="incremental").fit(X, Y)):
        with pytest.raises(ValueError, match="has no path of features: fit a MaxEntClassifier.select="):
            PathDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="quantity must be one of 'score', 'gain'; got 'x'"):
        PathDisplay(["a"], np.ones(1), np.ones(1), np.ones(1), np.ones(1, dtype=bool), "bic").plot(quantity="x")
