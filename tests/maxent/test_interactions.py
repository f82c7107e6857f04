"""Pairs of columns that are found: ranking, cross-validation, certificate and explanations."""

import numpy as np
import pandas as pd
import pytest

import mixent
from mixent import MaxEntClassifier
from mixent.data import Table, read_labels
from mixent.maxent import interactions, pair_search
from mixent.maxent.binning import knots_of
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.features import training_rows
from mixent.maxent.interactions import Factors, pair_gains
from mixent.maxent.purified import margins_of, pairs_of, with_missing
from mixent.maxent.terms import Knots, Moments, is_pair
from mixent.options import ComponentFeatures


def labelled(logits, rng):
    return (logits + rng.logistic(size=len(logits)) > 0).astype(int)


def interacting(kind, n=600, n_noise=6, seed=0):
    """Standard normal columns, the first two with an interaction and no effect of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2 + n_noise))
    a, b = X[:, 0], X[:, 1]
    logits = {
        "xor": 3.0 * np.sign(a * b),
        "product": 2.5 * a * b,
        "threshold": 6.0 * ((a > 0.5) & (b > 0.5)) - 1.0,
    }[kind]
    return X, labelled(logits + (X[:, 2] if n_noise else 0.0), rng)


def additive(seed, n=400, d=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))).T
    return X, labelled(2.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] - X[:, 2] ** 2 + 1.0, rng)


def pairs(model):
    return {frozenset((t.first.name, t.second.name)) for t in model.layout_.terms if is_pair(t)}


def gains_of(X, y, weight=None, variance=0.1):
    """Gains of all pairs on all rows, at the class frequencies; two parts of the rows."""
    rows = training_rows(Table.of_numbers(X), read_labels(y, len(y)), weight)
    names = [f"x{j}" for j in range(X.shape[1])]
    axes, starts = Factors.of([Moments(names[j], j, 0.0, 1.0) for j in range(X.shape[1])], rows).axes(rows)
    w = rows.weights
    target = (rows.target * w[:, None]).T
    post = np.repeat(target.sum(axis=1, keepdims=True) / w.sum(), len(w), axis=1)
    parts = [np.arange(0, len(w), 2), np.arange(1, len(w), 2)]
    return pair_gains(axes, starts, target, post, w, parts, variance)


@pytest.mark.parametrize("kind", ["xor", "product", "threshold"])
@pytest.mark.parametrize("n_noise", [6, 60])
def test_the_interaction_has_the_largest_gain(kind, n_noise):
    gain = gains_of(*interacting(kind, n_noise=n_noise))[-1]
    assert gain.best(1, set(), clear=True) == [(0, 1)]
    assert len(gain.best(10_000, set(), clear=True)) <= 3  # 0.1 expected, and those with a column of the pair
    assert gain.best(1, {(0, 1)}, clear=False) != [(0, 1)]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_without_interactions_gains_are_zero_on_average_and_few_are_clear(n_classes):
    net, clear, n = [], 0, 12
    for seed in range(n):
        rng = np.random.default_rng(seed)
        gain = gains_of(rng.normal(size=(300, 20)), rng.integers(n_classes, size=300))[-1]
        net.append(gain.net[np.triu_indices(20, 1)].mean())
        clear += len(gain.best(1000, set(), clear=True))
    assert abs(np.mean(net)) < 3 * np.std(net, ddof=1) / np.sqrt(n)
    assert clear <= 5  # 1.2 expected in all tables


def test_gains_without_a_part_do_not_depend_on_its_labels():
    X, y = interacting("xor")
    other = y.copy()
    other[::2] = np.random.default_rng(0).permutation(other[::2])  # the same class frequencies
    first, second = gains_of(X, y), gains_of(X, other)
    np.testing.assert_allclose(first[0].net, second[0].net, rtol=1e-9, atol=1e-9)
    assert np.abs(first[1].net - second[1].net).max() > 1.0


def test_a_weight_of_two_is_the_row_twice():
    X, y = interacting("product", n=200)
    weight = 1.0 + (np.arange(len(y)) % 3 == 0)
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    for j in range(X.shape[1]):
        np.testing.assert_array_equal(knots_of(X[:, j], weight, 5), knots_of(X[twice, j], np.ones(len(twice)), 5))
    model = MaxEntClassifier(pairs=[("x0", "x1")], prior_variance=1.0)
    usual, repeated = model.fit(X, y, weight).predict_proba(X), model.fit(X[twice], y[twice]).predict_proba(X)
    np.testing.assert_allclose(usual, repeated, atol=2e-4)  # mixtures of columns have tolerances of their own


def test_knots_interpolate_and_sum_to_one():
    x = np.random.default_rng(0).exponential(size=200)
    knots = Knots("x", 0, knots_of(x, np.ones(200), 5))
    inside = np.clip(x, knots.knots[0], knots.knots[-1])
    np.testing.assert_allclose(knots.weights(x).T @ knots.knots, inside, rtol=1e-12)
    np.testing.assert_allclose(knots.weights(x).sum(axis=0), 1.0, rtol=1e-12)
    assert not knots.weights(np.array([np.nan])).any()
    zeros = np.where(np.arange(200) < 190, 0.0, x)
    assert len(knots_of(zeros, np.ones(200), 5)) == 5
    np.testing.assert_array_equal(knots_of(np.array([2.0, 1.0, 2.0, np.nan]), np.ones(4), 5), [1.0, 2.0])


@pytest.mark.parametrize("kind", ["xor", "product", "threshold"])
def test_a_pair_that_interacts_is_found(kind):
    X, y = interacting(kind, n=1000)
    train, test = slice(0, 600), slice(600, None)
    found = MaxEntClassifier(random_state=0).fit(X[train], y[train])
    without = MaxEntClassifier(pairs=None, random_state=0).fit(X[train], y[train])
    assert frozenset(("x0", "x1")) in pairs(found) and not pairs(without)
    losses = [-np.log(m.predict_proba(X[test])[np.arange(400), y[test]]).mean() for m in (found, without)]
    assert losses[0] < losses[1] - 0.02
    assert found.pairs_tried_[0]["pairs"] == 0 and without.pairs_tried_ == []
    assert found.pair_variance_ in [entry["prior_variance"] for entry in found.pairs_tried_]


def test_the_model_has_a_certificate_and_satisfies_its_constraints_up_to_the_prior():
    X, y = interacting("xor")
    model = MaxEntClassifier(random_state=0).fit(X, y)
    assert 0 <= model.gap_ < 1e-8
    place = next(i for i, term in enumerate(model.layout_.terms) if is_pair(term))
    span = model.layout_.spans[place]
    difference = (model.truth_ - model.expected_)[1:][span] * len(y)  # at the optimum: prior precision times multiplier
    widths = model.layout_.widths(model.layout_.rows(Table.of_numbers(X), np.eye(2)[y], None))[span]
    np.testing.assert_allclose(
        difference, model.params_.cells[span] * widths[:, None] ** 2 / model.pair_variance_, atol=1e-3
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_table_without_interactions_has_the_model_of_its_main_effects(seed):
    X, y = additive(seed)
    found = MaxEntClassifier(random_state=0).fit(X, y)
    without = MaxEntClassifier(pairs=None, random_state=0).fit(X, y)
    assert not pairs(found) and found.pair_variance_ is None and len(found.pairs_tried_) > 0
    np.testing.assert_array_equal(found.predict_proba(X), without.predict_proba(X))


def test_permuted_columns_have_the_permuted_pairs():
    X, y = interacting("product")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    usual = MaxEntClassifier(random_state=0).fit(frame, y)
    permuted = MaxEntClassifier(random_state=0).fit(frame[list("hbdacgef")], y)
    assert pairs(usual) == pairs(permuted) != set()
    np.testing.assert_allclose(usual.predict_proba(frame), permuted.predict_proba(frame[list("hbdacgef")]), atol=1e-6)


@pytest.fixture(scope="module")
def mixed():
    """A category that changes the effect of a number, values missing in both, three classes."""
    rng = np.random.default_rng(3)
    n = 600
    frame = pd.DataFrame({"dose": rng.normal(size=n), "drug": rng.choice(["a", "b", "c"], size=n)})
    frame["age"] = rng.normal(size=n)
    sign = frame["drug"].map({"a": 1.0, "b": -1.0, "c": 0.0})
    y = np.where(rng.random(n) < 0.15, 2, labelled(4.0 * sign * frame["dose"] + 0.5 * frame["age"], rng))
    return frame.mask(rng.random(frame.shape) < 0.1), np.array(["no", "yes", "other"])[y]


def test_a_category_and_a_number_are_found_as_a_pair(mixed):
    assert frozenset(("dose", "drug")) in pairs(MaxEntClassifier(random_state=0).fit(*mixed))


@pytest.mark.parametrize("features", ["union", "bins", "moments"])
def test_explanations_add_up_over_main_effects_and_pairs(mixed, features):
    X, y = mixed
    model = MaxEntClassifier(features, random_state=0).fit(X, y)
    why = model.explain(X, "yes", "no")
    assert pairs(model) and len(why.names) == len(model.layout_.terms)
    p = model.predict_proba(X)
    assert model.classes_.tolist() == ["no", "other", "yes"]
    np.testing.assert_allclose(why.baseline + why.parts.sum(axis=1), np.log(p[:, 2]) - np.log(p[:, 0]), atol=1e-10)
    np.testing.assert_allclose(why.parts.mean(axis=0), 0.0, atol=1e-10)  # relative to the average row


def test_what_is_left_of_a_pair_has_mean_zero_with_every_value_of_its_features(mixed):
    X, y = mixed
    model = MaxEntClassifier(random_state=0).fit(X, y)
    table = model._read(X)
    part = model._contributions(table, model._rows(table))
    for pair in pairs_of(model.layout_, model.params_, model.margins_):
        for side in (pair.term.first, pair.term.second):
            np.testing.assert_allclose(with_missing(side, table) @ part[pair.place].T / len(y), 0.0, atol=1e-10)


def test_an_additive_pair_belongs_to_its_features_entirely(mixed):
    X, y = mixed
    model = MaxEntClassifier("bins", pairs=[("dose", "drug")], prior_variance=1.0).fit(X, y)
    pair = pairs_of(model.layout_, model.params_)[0]
    K, L, C = pair.gamma.shape
    rng = np.random.default_rng(0)
    cells = model.params_.cells.copy()
    span = model.layout_.spans[pair.place]
    cells[span] = (rng.normal(size=(K, 1, C)) + rng.normal(size=(1, L, C))).reshape(-1, C)
    observed = X.dropna()
    table = model._read(observed)
    params = type(model.params_)(model.params_.bias, cells)
    margins = margins_of(model.layout_, params, table, np.ones(len(observed)))
    whole, first, second = pairs_of(model.layout_, params, margins)[0].parts(table)
    np.testing.assert_allclose(whole, first + second, atol=1e-10)


def test_pairs_given_or_a_given_variance_are_not_searched():
    X, y = interacting("xor", n=300)
    given = MaxEntClassifier(pairs=[("x2", "x3")], random_state=0).fit(X, y)
    assert pairs(given) == {frozenset(("x2", "x3"))} and given.pairs_tried_ == []
    assert not pairs(MaxEntClassifier(prior_variance=1.0).fit(X, y))


def test_found_pairs_are_in_the_file_and_in_the_description(tmp_path, mixed):
    X, y = mixed
    model = MaxEntClassifier(random_state=0).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert pairs(again) == pairs(model) and list(again.pairs_tried_) == list(model.pairs_tried_)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.explain(X).parts, model.explain(X).parts)
    display = mixent.displays.ConstraintsDisplay.from_estimator(model, n_features=20)
    maps = [c.surface for c in display.contributions if c.surface is not None]
    assert {frozenset(s.names) for s in maps} == pairs(model)
    assert len(display.plot().axes_) == len(model.layout_.terms)


def test_curves_of_main_effects_include_the_mean_over_partners(mixed):
    X, y = mixed
    model = MaxEntClassifier(random_state=0).fit(X, y)
    display = mixent.displays.ConstraintsDisplay.from_estimator(model, feature="dose")
    curve = display.contributions[0].curve
    x = curve.x[len(curve.x) // 3 :: 40]
    rows = pd.DataFrame({"dose": x, "drug": "a", "age": 0.0})
    part = model.explain(rows, "yes", "no").parts[:, list(model.explain(rows).names).index("dose")]
    at = np.searchsorted(curve.x, x)
    np.testing.assert_allclose(curve.logits[at, 2] - curve.logits[at, 0], part, atol=1e-10)


@pytest.mark.parametrize("seed", range(2))
def test_pairs_that_do_not_lower_the_log_loss_clearly_are_not_kept(seed, monkeypatch):
    X, y = additive(seed)
    monkeypatch.setattr(interactions, "FALSE", 10.0)  # many pairs look clear,
    monkeypatch.setattr(pair_search, "STEP", -100.0)  # and every batch is kept at first
    model = MaxEntClassifier(random_state=0).fit(X, y)
    assert len(model.pairs_tried_) > 2 and not pairs(model)
    monkeypatch.setattr(pair_search, "CLEAR", -100.0)
    assert pairs(model.fit(X, y))


def test_other_solvers_and_features_find_the_pair_too():
    X, y = interacting("xor")
    iis = MaxEntClassifier(ComponentFeatures(means=False), solver="iis", random_state=0, max_iter=300, tol=1e-6)
    for model in (iis, MaxEntClassifier(solver="bohning", random_state=0), MaxEntClassifier("class", random_state=0)):
        assert frozenset(("x0", "x1")) in pairs(model.fit(X, y))


def test_a_column_with_the_name_of_a_pair():
    X, y = interacting("xor")
    model = MaxEntClassifier(random_state=0).fit(pd.DataFrame(X[:, :4], columns=["a", "b", "a & b", "c"]), y)
    assert model.feature_terms_ == ("a", "b", "a & b", "c")


@pytest.mark.filterwarnings("ignore:class 2 has one row only:mixent.DataWarning")
def test_rows_that_are_not_held_out_and_rows_that_are_held_out_twice():
    X, y = interacting("xor")
    half = [(np.setdiff1d(np.arange(600), test), test) for test in (np.arange(0, 200), np.arange(200, 400))]
    assert frozenset(("x0", "x1")) in pairs(MaxEntClassifier(cv=half, random_state=0).fit(X, y))
    twice = MaxEntClassifier(cv=[*half, half[0]], random_state=0).fit(X, y)
    assert not pairs(twice) and twice.pairs_tried_ == []
    alone = np.where(np.arange(600) == 0, 2, y)
    assert frozenset(("x0", "x1")) in pairs(MaxEntClassifier(random_state=0).fit(X, alone))


def test_pairs_of_values_of_many_columns_are_counted_alike(monkeypatch):
    rng = np.random.default_rng(0)
    cells, n = Cells((3,) * 50), 300
    codes, weight = rng.integers(-1, 3, size=(n, 50)), rng.random(n)
    rows = Rows(cells.packed(codes), np.empty((0, n)), np.empty((2, n)), weight, np.ones(n))
    dense = cells.gram(rows)
    monkeypatch.setattr("mixent.maxent.cells.MANY", 1000)
    np.testing.assert_allclose(dense, cells.gram(rows), rtol=1e-12)
    hot = np.equal(codes[:, :, None], np.arange(3)).reshape(n, -1).astype(float)
    np.testing.assert_allclose(dense[1:, 1:], (hot * weight[:, None]).T @ hot, rtol=1e-12)
