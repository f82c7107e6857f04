"""Pictures of maximum entropy classifiers: the numbers drawn are the model's."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from mixent import MaxEntClassifier, MixtureClassifier
from mixent.base.text import class_name
from mixent.displays import ConstraintsDisplay, ExplanationDisplay, PathDisplay
from mixent.maxent.contributions import (
    Contribution,
    Curve,
    evidence,
    feature_contributions,
    strongest_features,
    strongest_value,
)
from mixent.options import BinFeatures, ComponentFeatures

from ..drawing import drawn

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
LONG = "a column whose name is a whole sentence ($ per _unit_)"


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
    return MaxEntClassifier(prior_variance=1.0, random_state=0).fit(pd.DataFrame(X, columns=list("abcd")), Y)


@pytest.fixture(scope="module")
def mixed():
    table, y = frame()
    model = MaxEntClassifier(
        BinFeatures(n_bins=3),
        probabilistic={"shape": ["round", "square"]},
        pairs=[("flag", "shape")],
        prior_variance=1.0,
    )
    return model.fit(table, y), table, y


def test_features_are_ranked_by_strength(iris):
    display = ConstraintsDisplay.from_estimator(iris, n_features=3)
    strength = iris.constraints().strength
    ranking = sorted(strength, key=lambda name: -strength[name])[:3]
    assert (
        [block.name for block in display.blocks]
        == [contribution.name for contribution in display.contributions]
        == ranking
    )
    assert display.n_features == 4
    drawn(display)
    assert "3 of 4 features" in {t.get_text() for panel in display.axes_ for t in panel.texts}
    names = [t.get_text() for t in display.axes_[1].get_legend().get_texts()]
    assert names == ["setosa", "versicolor", "virginica"]


@pytest.mark.parametrize("features", ["union", "class", "pooled", "bins", "moments"])
def test_a_curve_is_the_part_that_explain_gives(features):
    table = pd.DataFrame(X, columns=list("abcd"))
    table.loc[::5, "c"] = np.nan
    for y in (Y, np.where(CODES == 0, "setosa", "other")):
        model = MaxEntClassifier(features, prior_variance=1.0, random_state=0).fit(table, y)
        contribution = {c.name: c for c in feature_contributions(model)}["c"]
        inside = np.linspace(1.5, 6.5, 57)
        rows = pd.DataFrame({"a": 6.0, "b": 3.0, "c": [*inside, np.nan], "d": 1.0})
        for c, label in enumerate(model.classes_):
            why = model.explain(rows, label=label)
            rival = [model.classes_.tolist().index(r) for r in why.rival]
            mine = why.parts[:, why.names.index("c")]
            given = np.append(
                [
                    np.interp(
                        x, contribution.curve.x, contribution.curve.logits[:, c] - contribution.curve.logits[:, r]
                    )
                    for x, r in zip(inside, rival)
                ],
                contribution.missing_logits[c] - contribution.missing_logits[rival[-1]],
            )
            np.testing.assert_allclose(given, mine, atol=0.02 if features != "bins" else 1e-9)
        if features != "moments":
            assert contribution.missing_share == pytest.approx(0.2)
            assert contribution.curve.mass.sum() == pytest.approx(1 if features != "bins" else 0.8)


def test_two_classes_have_one_curve_of_log_odds():
    table, y = frame()
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(table[[LONG, "flag"]], y)
    display = ConstraintsDisplay.from_estimator(model)
    drawn(display)
    for panel, contribution in zip(display.axes_, display.contributions):
        if contribution.curve is None:
            continue
        lines = {line.get_label(): line for line in panel.lines}
        np.testing.assert_array_equal(
            lines["log-odds"].get_ydata(), contribution.curve.logits[:, 1] - contribution.curve.logits[:, 0]
        )
        np.testing.assert_array_equal(lines["log-odds"].get_xdata(), contribution.curve.x)
        texts = [t.get_text() for t in panel.texts]
        assert "for ill" in texts and any(t.startswith("for \\$healthy_") for t in texts)
        assert any(t.startswith("missing") and t.endswith("17 %") for t in texts)
        (gap,) = [line for line in panel.lines if line.get_marker() == "o"]
        assert gap.get_ydata()[0] == contribution.missing_logits[1] - contribution.missing_logits[0]
    box = display.figure_.get_tightbbox()
    assert box.width <= display.figure_.get_figwidth() + 0.02  # nothing outside the picture


@pytest.mark.parametrize("features", ["union", "bins", "moments"])
def test_many_classes_have_a_curve_each_less_their_mean(features):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 10
    table = pd.DataFrame(
        {"x": y + rng.normal(size=400), "letter": np.array(list("abcde"))[(y + rng.integers(2, size=400)) % 5]}
    )
    model = MaxEntClassifier(features, prior_variance=1.0, random_state=0).fit(table, y)
    display = ConstraintsDisplay.from_estimator(model)
    drawn(display)
    panels = {c.name: (panel, c) for panel, c in zip(display.axes_, display.contributions)}
    panel, contribution = panels["x"]
    lines = np.array([line.get_ydata() for line in panel.lines if line.get_label().startswith("class ")])
    assert lines.shape == (10, len(contribution.curve.x))
    np.testing.assert_allclose(lines.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(
        lines[3] - lines[7], contribution.curve.logits[:, 3] - contribution.curve.logits[:, 7], atol=1e-12
    )
    panel, contribution = panels["letter"]
    np.testing.assert_allclose(np.asarray(panel.collections[0].get_array()), evidence(contribution.logits))
    assert len(display.axes_[1].get_legend().get_texts()) == 10


def test_a_dot_is_the_part_of_a_value_and_missing_has_one(mixed):
    model, table, y = mixed
    display = ConstraintsDisplay.from_estimator(model, "flag")
    ax = drawn(display)
    assert display.axes_ == [ax]
    (dots,) = [c for c in ax.collections if len(c.get_offsets()) == 2 and c.get_sizes().size]
    why = model.explain(table.iloc[:2].assign(flag=[False, True]), label="ill")
    np.testing.assert_allclose(dots.get_offsets()[:, 0], why.parts[:, why.names.index("flag")])
    gaps = table.assign(flag=table["flag"].astype(object).where(np.arange(240) % 4 > 0))
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(gaps[["flag"]], y)
    display = ConstraintsDisplay.from_estimator(model)
    labels = [t.get_text().replace("\u00a0", " ") for t in drawn(display).get_yticklabels()]
    assert labels[-1] == "missing   25 %" and len(labels) == 3


def test_the_average_row_is_moved_by_nothing(mixed):
    """Parts are against the average training row."""
    model, *_ = mixed
    for contribution in feature_contributions(model):
        total = contribution.shares @ contribution.logits + contribution.missing_share * contribution.missing_logits
        np.testing.assert_allclose(total, 0, atol=1e-12)


def test_panels_share_their_nats_but_for_one_that_would_flatten_the_others():
    def one(name, height):
        x = np.array([0.0, 1.0])
        curve = Curve(x, np.array([[0.0, 0.0], [0.0, height]]), np.array([0.5, 0.5]))
        return Contribution(name, 1.0, ("v",), np.ones(1), np.zeros((1, 2)), np.zeros(2), 0.0, curve)

    contributions = [one(name, height) for name, height in (("a", 2.0), ("b", 1.0), ("c", -1.0), ("d", 50.0))]
    table = np.zeros((1, 2))
    display = ConstraintsDisplay(contributions, [None] * 4, np.array(["p", "q"]), [], table, table, 4)
    drawn(display)
    limits = [panel.get_ylim() for panel in display.axes_]
    assert limits[0] == limits[1] == limits[2] and limits[0][0] < -1 and 2 < limits[0][1] < 3
    assert limits[3][1] > 50


def test_without_features_there_are_words():
    model = MaxEntClassifier(selection="bic", prior_variance=1.0).fit(
        pd.DataFrame({"x": ["a", "b"] * 20}), [*"ppqq"] * 10
    )
    assert not model.feature_terms_
    display = ConstraintsDisplay.from_estimator(model)
    for quantity in ("contributions", "multipliers", "residuals"):
        assert drawn(display, quantity=quantity).texts[0].get_text().startswith("The model has no features")
    assert display.largest() == [] and strongest_features(model) == []
    ax = drawn(PathDisplay.from_estimator(model))
    assert ax.get_title(loc="left") == "No feature was selected"


def test_several_features_are_drawn_where_the_axes_are(iris):
    plt = pytest.importorskip("matplotlib.pyplot")
    figure, (left, right) = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
    display = ConstraintsDisplay.from_estimator(iris, n_features=2)
    drawn(display, right)
    assert display.ax_ is right and all(p.get_position().x0 > left.get_position().x1 for p in display.axes_)
    free = figure.add_axes([0, 0, 0.5, 0.5])
    with pytest.raises(ValueError, match="2 features"):
        display.plot(free)
    drawn(ConstraintsDisplay.from_estimator(iris, "a"), free)


def test_displays_show_themselves_in_a_line(iris, mixed):
    model, table, _ = mixed
    display = ConstraintsDisplay.from_estimator(model)
    for thing in (
        display,
        display.contributions[0],
        display.blocks[0],
        ExplanationDisplay.from_estimator(model, table, 0),
    ):
        assert len(repr(thing)) <= 120 and "array(" not in repr(thing) and "\n" not in repr(thing)
    assert "n_features=5" in repr(display)


def test_every_dot_is_a_multiplier(iris):
    display, constraints = ConstraintsDisplay.from_estimator(iris), iris.constraints()
    ax = drawn(display, quantity="multipliers")
    for block in display.blocks:
        mine = np.array(constraints.features) == block.name
        np.testing.assert_array_equal(block.multipliers, constraints.multipliers[mine])
        assert block.values[-1] == "slope" and np.isnan(block.shares[-1])  # no share of the rows
        np.testing.assert_allclose(block.shares[:-1], constraints.truth[mine].sum(axis=1)[:-1])
        assert block.values == [v for v, m in zip(constraints.values, mine) if m] and not block.n_omitted
    dots = [line for line in ax.lines if line.get_marker() in "o^s"]
    assert len(dots) == 3 * len(display.blocks)
    np.testing.assert_array_equal(dots[1].get_xdata(), display.blocks[0].multipliers[:, 1])
    assert len(ax.get_yticks()) == sum(len(block.values) for block in display.blocks)


def test_two_classes_have_one_dot_of_log_odds(mixed):
    model, *_ = mixed
    display = ConstraintsDisplay.from_estimator(model, "flag")
    ax = drawn(display, quantity="multipliers")
    gamma = display.blocks[0].multipliers
    (dots,) = [c for c in ax.collections if len(c.get_offsets()) == 2 and c.get_sizes().size]
    np.testing.assert_allclose(dots.get_offsets()[:, 0], gamma[:, 1] - gamma[:, 0])
    texts = [t.get_text() for t in ax.texts]
    assert "for ill →" in texts and any(text.startswith("← for \\$healthy_") for text in texts)


@pytest.mark.parametrize("quantity", ["contributions", "multipliers"])
def test_many_values_are_cut_to_those_that_matter_and_counted(mixed, quantity):
    model, *_ = mixed
    display = ConstraintsDisplay.from_estimator(model, ["town", LONG])
    town = display.blocks[0]
    assert len(town.values) == 10 and town.n_omitted == 20
    assert town.values == sorted(town.values, key=model.constraints().values.index)  # in their own order
    ax = drawn(display, quantity=quantity)
    panel = display.axes_[0] if quantity == "contributions" else ax
    texts = [t.get_text() for t in panel.texts] + [panel.get_title(loc=side) for side in ("left", "right")]
    assert any("10 of 30 values" in text for text in texts)
    assert ax.figure.get_tightbbox().width <= ax.figure.get_figwidth() + 0.02  # nothing outside the picture


def test_many_classes_are_shades():
    rng = np.random.default_rng(0)
    y = np.array([f"class number {i}" for i in range(9)])[np.arange(180) % 9]
    table = pd.DataFrame({"letter": np.array(list("abcde"))[(np.arange(180) + rng.integers(2, size=180)) % 5]})
    display = ConstraintsDisplay.from_estimator(MaxEntClassifier(prior_variance=1.0).fit(table, y))
    ax = drawn(display, quantity="multipliers")
    np.testing.assert_array_equal(np.asarray(ax.collections[0].get_array()), display.blocks[0].multipliers)
    assert [t.get_text() for t in ax.get_xticklabels()] == [f"class number {i}" for i in range(9)]
    drawn(display)


def test_a_class_s_own_components_say_nothing_of_the_others():
    model = MaxEntClassifier(ComponentFeatures("class", means=False), prior_variance=1.0).fit(X, Y)
    display = ConstraintsDisplay.from_estimator(model)
    for block in display.blocks:
        assert (np.isfinite(block.multipliers).sum(axis=1) == 1).all()
    mask = model.layout_.mask(3)
    assert ((display.model - display.truth)[mask == 0] == 0).all()  # no constraint there
    for quantity in ("contributions", "multipliers", "residuals"):
        drawn(display, quantity=quantity)


def test_moments_have_no_shares():
    model = MaxEntClassifier("moments", prior_variance=1.0).fit(X, Y)
    display = ConstraintsDisplay.from_estimator(model)
    assert all(np.isnan(block.shares).all() for block in display.blocks)
    assert "mean" in {t.get_text() for t in drawn(display, quantity="multipliers").get_yticklabels()}
    drawn(display)
    assert not any(panel.collections for panel in display.axes_)  # nothing is known of where the rows are


def test_a_value_that_never_occurs_says_so():
    table = pd.DataFrame({"c": pd.Categorical(["a", "b"] * 20, categories=["a", "b", "never seen"])})
    display = ConstraintsDisplay.from_estimator(MaxEntClassifier(prior_variance=1.0).fit(table, ["p", "q"] * 20))
    labels = [t.get_text().replace("\u00a0", " ") for t in drawn(display).get_yticklabels()]
    assert labels[0] == "a   50 %" and ("never seen   never" in labels or len(labels) == 2)


def test_residuals_are_the_model_less_the_data_and_the_largest_are_named(mixed):
    model, *_ = mixed
    display, constraints = ConstraintsDisplay.from_estimator(model), model.constraints()
    ax = drawn(display, quantity="residuals")
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), constraints.residuals.ravel())
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), constraints.truth.ravel())
    named = display.largest(3)
    sizes = np.sort(np.abs(constraints.residuals), axis=None)[::-1]
    np.testing.assert_allclose([abs(off) for *_, off in named], sizes[:3])
    assert abs(named[0][-1]) == pytest.approx(model.residual_, rel=1e-6) or model.residual_ > abs(named[0][-1])
    assert ax.texts[-1].get_text().startswith("Largest residuals:\n1")


# why this row


def test_the_parts_of_columns_add_up_and_show_what_the_row_holds(mixed):
    model, table, _ = mixed
    for row in (0, 1, 7):
        display = ExplanationDisplay.from_estimator(model, table, row)
        explanation = model.explain(table.iloc[[row]])
        np.testing.assert_array_equal(display.parts, explanation.parts[0])
        bars = display.bars()
        assert bars[0] == ("average row", explanation.baseline[0])
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
    display = ExplanationDisplay.from_explanation(mixture.explain(X, by="component"), row=3)
    assert display.names[0] == "component 0" and display.baseline_name == "class priors"


@pytest.mark.filterwarnings("ignore:column 'town' has values not seen")
def test_what_a_row_holds():
    table, y = frame()
    options = {"probabilistic": {"shape": ["round", "square"]}, "prior_variance": 1.0}
    row = pd.DataFrame({LONG: [1.23456], "town": ["never seen"], "flag": [True], "round": [1.0], "square": [0.0]})
    gap = row.assign(**{LONG: np.nan, "round": np.nan, "square": np.nan})
    bins = MaxEntClassifier(BinFeatures(n_bins=2), pairs=[("flag", "shape")], **options).fit(table, y)
    explanation = dict(zip(bins.feature_terms_, bins.explain(row).values()[0]))
    assert explanation["town"] == "missing" and explanation["flag"] == "True" and explanation["shape"] == "round"
    assert explanation[LONG].startswith("1.23456 (>= ") and explanation["flag & shape"] == "True, round"
    missing = dict(zip(bins.feature_terms_, bins.explain(gap).values()[0]))
    assert missing[LONG] == "missing" and missing["shape"] == "missing"
    half = dict(zip(bins.feature_terms_, bins.explain(row.assign(round=0.25, square=0.75)).values()[0]))
    assert half["shape"] == "square (75 %)"
    wide = table.assign(other=table[LONG] * 2 + np.arange(240) % 5)
    group = MaxEntClassifier(
        ComponentFeatures(groups=[[LONG, "other"]], max_components=1), random_state=0, **options
    ).fit(wide, y)
    explanation = dict(zip(group.feature_terms_, group.explain(row.assign(other=np.nan)).values()[0]))
    assert explanation[f"{LONG} & other"] == "1.23456, missing"


def test_the_strongest_value_of_a_column_is_a_range():
    def strongest(y, mass=None):
        x = np.linspace(0, 100, 101)
        parts = np.stack([np.zeros(101), y(x)], axis=1)
        curve = Curve(x, parts, np.full(101, 1 / 101) if mass is None else mass)
        zeros = np.zeros((1, 2)), np.zeros(2)
        return strongest_value(Contribution("x", 1.0, ("v",), np.ones(1), *zeros, 0.0, curve))

    assert strongest(lambda x: np.where(x > 60, 2.0, -0.1)) == ("above 61", 1, pytest.approx(2.0))
    assert strongest(lambda x: np.where(x < 30, -2.0, 0.1)) == ("below 29", 0, pytest.approx(2.0))
    assert strongest(lambda x: np.where(abs(x - 50) <= 10, 3.0, -0.5))[:2] == ("40 to 60", 1)
    few = np.where(np.arange(101) < 95, 1 / 95, 1e-9)  # where almost no row lies, evidence does not count
    high = strongest(lambda x: np.where(x < 40, -1.0, np.where(x > 98, 50.0, 0.2)), few / few.sum())
    assert high[:2] == ("below 39", 0) and strongest(np.zeros_like)[0] == "any"
    hill = strongest(lambda x: np.maximum(4 - abs(x - 50) / 5, -0.1))
    assert hill[:2] == ("40 to 60", 1) and 2 < hill[2] < 4  # down to half its height, and the mean of that
    narrow = strongest(lambda x: np.where(abs(x - 50) <= 1, 2.5, np.where(x < 40, -2.0, 0.1)))
    assert narrow[:2] == ("below 39", 0)


def test_evidence_for_many_classes_is_less_their_mean():
    parts = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(evidence(parts), parts - parts.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(evidence(parts[:, :2])[:, 1], parts[:, 1] - parts[:, 0])


@pytest.mark.parametrize("label", ["-", "+", "?", "__"])
def test_a_sign_is_called_a_class(label):
    assert class_name(label) == f"class {label}"


def test_strong_features_say_what_their_components_add_up_to():
    rng = np.random.default_rng(0)
    ill = rng.random(800) < 0.4
    table = pd.DataFrame(
        {
            "age": np.where(ill, rng.normal(60, 9, 800), rng.normal(45, 15, 800)),
            "flag": rng.random(800) < 0.2 + 0.4 * ill,
        }
    )
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(table, np.where(ill, "+", "-"))
    ranking = strongest_features(model)
    assert [entry["strength"] for entry in ranking] == sorted(model.constraints().strength.values())[::-1]
    result = {entry["feature"]: entry for entry in ranking}
    assert result["age"]["class"] == "-" and result["age"]["value"].startswith("below ")
    assert (result["flag"]["value"], result["flag"]["class"]) == ("True", "+")
    why = model.explain(table.assign(flag=True), label="+")
    assert result["flag"]["nats"] == pytest.approx(why.parts[0, why.names.index("flag")])
    assert result["age"]["strength"] == pytest.approx(why.parts[:, why.names.index("age")].std(), rel=1e-6)


# which features


def test_the_path_is_the_model_s(mixed):
    _, table, y = mixed
    for selection in ("bic", "validation"):
        model = MaxEntClassifier(
            BinFeatures(n_bins=3), pairs=None, selection=selection, prior_variance=1.0, random_state=0
        ).fit(table.drop(columns="town"), y)
        display = PathDisplay.from_estimator(model)
        assert display.names == [step.name for step in model.path_]
        np.testing.assert_array_equal(display.score, [step.score for step in model.path_])
        assert display.kept.sum() == len(model.feature_terms_)
        ax = drawn(display)
        assert ("BIC" if selection == "bic" else "Held-out log-loss") in ax.get_xlabel()
        np.testing.assert_array_equal(ax.lines[0].get_xdata(), display.score)
        assert len(ax.get_yticklabels()) == len(model.path_) + (selection == "bic")
        if selection == "bic":  # of the class shares alone
            p = np.unique(y, return_counts=True)[1] / len(y)
            assert display.start == pytest.approx(-2 * len(y) * p @ np.log(p) + np.log(len(y)))
        else:
            assert display.start is None
        ax = drawn(display, quantity="gain")
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], display.gain)


def test_a_path_of_which_nothing_was_kept_is_drawn():
    display = PathDisplay(["a", "b"], np.array([3.0, 4.0]), np.ones(2), np.ones(2), np.zeros(2, dtype=bool), "bic")
    ax = drawn(display)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["not kept"]
