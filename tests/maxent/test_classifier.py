"""The maximum entropy classifier as a user meets it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixent import MaxEntClassifier
from mixent.core.driver import Status
from mixent.maxent import forward_selection
from mixent.options import ComponentFeatures

SHARP = {"tol": 1e-14, "max_iter": 5000}


@parametrize_with_checks([MaxEntClassifier(), MaxEntClassifier("bins", prior_variance=1.0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def votes():
    """Discrete columns with gaps, three classes."""
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(3, size=n)
    color = np.array(["red", "green", "blue", "gray"])[(y + (rng.random(n) < 0.4) * rng.integers(1, 4, n)) % 4]
    shape = np.array(["round", "square"])[(rng.random(n) < 0.2 + 0.3 * y).astype(int)]
    size = np.array(["s", "m", "l"])[rng.integers(3, size=n)]
    X = pd.DataFrame({"color": color, "shape": shape, "size": size})
    return X, np.array(["no", "maybe", "yes"])[y]


@pytest.fixture(scope="module")
def mixed(votes):
    """The same with numbers beside them, and gaps everywhere."""
    X, y = votes
    rng = np.random.default_rng(1)
    number = np.select([y == "no", y == "maybe"], [-1.0, 0.5], 2.0) + rng.normal(size=len(y))
    X = X.assign(number=number, other=rng.normal(size=len(y)))
    holes = rng.random(X.shape) < 0.15
    return X.mask(holes), y


def test_hard_instances_are_logistic_regression_on_one_hot_columns(votes):
    X, y = votes
    ours = MaxEntClassifier(prior_variance=0.7, **SHARP).fit(X, y).predict_proba(X)
    encode = make_column_transformer((OneHotEncoder(), list(X.columns)))
    peer = make_pipeline(encode, LogisticRegression(C=0.7, tol=1e-12, max_iter=10_000)).fit(X, y)
    np.testing.assert_allclose(ours, peer.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("prior_variance", [None, 0.5])
def test_solvers_reach_the_same_optimum(votes, mixed, prior_variance):
    X, y = votes if prior_variance is None else mixed
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float)
    tols = {"auto": 0.0, "bohning": 1e-20, "iis": 1e-20, "lbfgs": 0.0}
    fitted = [
        MaxEntClassifier("bins", prior_variance=prior_variance, solver=s, tol=tol, max_iter=20_000).fit(X, y, weight)
        for s, tol in tols.items()
    ]
    for model in fitted[1:]:
        np.testing.assert_allclose(model.predict_proba(X), fitted[0].predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("features", ["union", "pooled", "class", "moments"])
def test_solvers_reach_the_same_optimum_of_hidden_components(mixed, features):
    X, y = mixed
    fitted = [
        MaxEntClassifier(features, prior_variance=0.5, solver=s, random_state=0, tol=tol, max_iter=20_000).fit(X, y)
        for s, tol in {"auto": 0.0, "bohning": 1e-20, "lbfgs": 0.0}.items()
    ]
    for model in fitted[1:]:
        np.testing.assert_allclose(model.predict_proba(X), fitted[0].predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("solver", ["auto", "bohning", "iis", "lbfgs"])
@pytest.mark.parametrize("features", ["union", "class", "bins"])
def test_no_accepted_step_lowers_the_objective(mixed, solver, features):
    X, y = mixed
    model = MaxEntClassifier(features, prior_variance=1.0, solver=solver, random_state=0)
    if solver == "iis" and features != "bins":
        model.set_params(features__means=False)
    model.fit(X, y)
    accepted = [s.objective for s in model.run_.trace if s.accepted]
    assert len(accepted) > 2 and min(np.diff(accepted)) >= -1e-9 * len(y)
    assert model.run_.status is Status.CONVERGED and model.converged_ and model.n_iter_ == model.run_.n_passes


def test_the_certificate_holds_what_is_left(mixed):
    X, y = mixed
    best = MaxEntClassifier(ComponentFeatures(means=False), prior_variance=1.0, random_state=0, **SHARP).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        early = [
            MaxEntClassifier(
                ComponentFeatures(means=False), prior_variance=1.0, random_state=0, solver=s, max_iter=m
            ).fit(X, y)
            for s in ("bohning", "iis", "lbfgs")
            for m in (2, 4, 8)
        ]
    for model in early:
        left = (best.run_.objective - model.run_.objective) / len(y)
        assert model.gain_ <= left + 1e-12 <= model.gap_ + 2e-12
    assert best.gap_ < 1e-9 and best.gain_ < 1e-12


def test_without_a_prior_every_constraint_is_met(votes):
    X, y = votes
    model = MaxEntClassifier(prior_variance=None, **SHARP).fit(X, y)
    table = model.constraints()
    assert np.abs(table.residuals).max() < 1e-7 and model.residual_ < 1e-7
    held = MaxEntClassifier(prior_variance=0.1).fit(X, y)
    # of all pmfs that meet the constraints it has the greatest entropy; those a prior leaves unmet make it greater
    assert 0 < model.entropy_ < held.entropy_ < np.log(3)
    post = held.predict_proba(X)
    np.testing.assert_allclose(held.entropy_, -(post * np.log(post)).sum(axis=1).mean())


def test_constraints_are_counts_of_the_table(votes):
    X, y = votes
    model = MaxEntClassifier(prior_variance=1.0).fit(X, y)
    frame = model.constraints().frame()
    seen = pd.crosstab(X["color"], y) / len(y)
    for (value, label), count in seen.stack().items():
        row = frame[(frame.feature == "color") & (frame.value == value) & (frame["class"] == label)]
        np.testing.assert_allclose(row.P_truth, count)
    strength = model.constraints().strength
    assert max(strength, key=strength.get) == "color" and min(strength, key=strength.get) == "size"
    assert model.n_parameters_ == (3 + 1 + 2 + 1) * 2


def test_a_missing_value_drops_out_of_its_row(mixed):
    X, y = mixed
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y)
    row = X.dropna().iloc[[0]]
    explanation = model.explain(row)
    ours, rival = (list(model.classes_).index(c[0]) for c in (explanation.label, explanation.rival))
    for i, name in enumerate(explanation.names):
        gone = row.assign(**{name: np.nan if name in ("number", "other") else None})
        without = model.predict_log_proba(gone)[0]
        usual = model.mean_logits_[i, ours] - model.mean_logits_[i, rival]  # explanations are against the average row
        np.testing.assert_allclose(
            without[ours] - without[rival], explanation.log_odds[0] - explanation.parts[0, i] - usual, atol=1e-12
        )
    empty = pd.DataFrame({c: [None] for c in X.columns}).astype({"number": float, "other": float})
    bias = np.exp(model.params_.bias)
    np.testing.assert_allclose(model.predict_proba(empty)[0], bias / bias.sum())


def test_unseen_values_count_as_missing_and_change_no_other_row(mixed):
    X, y = mixed
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y)
    strange, gone = X.iloc[:20].copy(), X.iloc[:20].copy()
    strange.loc[strange.index[3], "color"] = "ultraviolet"
    gone.loc[gone.index[3], "color"] = None
    with pytest.warns(UserWarning, match="ultraviolet"):
        after = model.predict_proba(strange)
    np.testing.assert_array_equal(after, model.predict_proba(gone))
    others = np.arange(20) != 3
    np.testing.assert_array_equal(after[others], model.predict_proba(X.iloc[:20])[others])
    far = X.iloc[:20].copy()
    far.loc[far.index[3], "number"] = 1e140
    assert np.isfinite(model.predict_proba(far)).all()


def test_explanations_add_up_exactly(mixed):
    X, y = mixed
    model = MaxEntClassifier(pairs=[("color", "number")], prior_variance=1.0, random_state=0).fit(X, y)
    explanation = model.explain(X)
    np.testing.assert_allclose(explanation.baseline + explanation.parts.sum(axis=1), explanation.log_odds, rtol=1e-12)
    log_p = model.predict_log_proba(X)
    top = np.sort(log_p, axis=1)
    np.testing.assert_allclose(explanation.log_odds, top[:, -1] - top[:, -2], atol=1e-9)
    assert explanation.names == model.feature_terms_ and "color & number" in explanation.names
    frame = explanation.frame()
    assert list(frame.columns[:4]) == ["label", "rival", "log_odds", "baseline"] and len(frame) == len(X)
    for_no = model.explain(X.iloc[:5], label="no")
    assert set(for_no.label) == {"no"} and "no" not in set(for_no.rival)
    with pytest.raises(ValueError, match="label"):
        model.explain(X, label="never")


def test_weight_two_is_the_row_twice(mixed):
    X, y = mixed
    weight = np.random.default_rng(3).integers(0, 4, len(y))
    once = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y, weight)
    again = np.repeat(np.arange(len(y)), weight)
    twice = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X.iloc[again], y[again])
    np.testing.assert_allclose(once.predict_proba(X), twice.predict_proba(X), rtol=1e-9)


def test_order_of_rows_columns_and_names_of_classes_do_not_matter(mixed):
    X, y = mixed
    ours = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y).predict_proba(X)
    rng = np.random.default_rng(4)
    rows, columns = rng.permutation(len(y)), rng.permutation(X.shape[1])
    moved = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X.iloc[rows, columns], y[rows])
    np.testing.assert_allclose(moved.predict_proba(X.iloc[:, columns]), ours, rtol=1e-7)
    renamed = MaxEntClassifier(prior_variance=1.0, random_state=0)
    renamed.fit(X, pd.Series(y).map({"no": "z", "maybe": "a", "yes": "b"}).to_numpy())
    np.testing.assert_allclose(renamed.predict_proba(X)[:, [0, 2, 1]], ours, rtol=1e-7)


def test_soft_labels_are_weighted_rows_and_absent_ones_take_no_part(votes):
    X, y = votes
    classes = np.unique(y)
    soft = np.random.default_rng(5).dirichlet([1.0, 1.0, 1.0], len(y))
    ours = MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X, pd.DataFrame(soft, columns=classes))
    many = pd.concat([X] * 3)
    rows = MaxEntClassifier(prior_variance=1.0, **SHARP).fit(many, np.repeat(classes, len(y)), soft.T.ravel())
    np.testing.assert_allclose(ours.predict_proba(X), rows.predict_proba(X), atol=1e-9)
    some = y.astype(object)
    some[::2] = None
    half = MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X, some)
    np.testing.assert_allclose(
        half.predict_proba(X),
        MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X[1::2], y[1::2]).predict_proba(X),
        atol=1e-9,
    )


def test_a_certain_pmf_is_a_category(votes):
    X, y = votes
    hard = MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X, y)
    pmf = pd.get_dummies(X["color"], prefix="p").astype(float)
    given = {"color": list(pmf.columns)}
    soft = MaxEntClassifier(probabilistic=given, prior_variance=1.0, **SHARP).fit(X.drop(columns="color").join(pmf), y)
    np.testing.assert_allclose(soft.predict_proba(X.drop(columns="color").join(pmf)), hard.predict_proba(X), atol=1e-9)
    gone = pmf.copy()
    gone.iloc[0] = np.nan
    np.testing.assert_allclose(
        soft.predict_proba(X.drop(columns="color").join(gone))[0],
        hard.predict_proba(X.assign(color=X["color"].where(X.index > 0)))[0],
        atol=1e-9,
    )


def test_an_uncertain_pmf_is_its_expectation(votes):
    """The logit of a probabilistic instance is the mean of those of its values (2.8)."""
    X, y = votes
    pmf = pd.get_dummies(X["color"], prefix="p").astype(float)
    model = MaxEntClassifier(probabilistic={"color": list(pmf.columns)}, prior_variance=1.0).fit(pmf, y)
    log_odds = model.predict_log_proba(pd.DataFrame(np.eye(4), columns=pmf.columns))
    log_odds -= log_odds[:, :1]
    p = np.array([0.1, 0.2, 0.3, 0.4])
    between = model.predict_log_proba(pd.DataFrame([p], columns=pmf.columns))[0]
    np.testing.assert_allclose(between - between[0], p @ log_odds, atol=1e-12)


def shapes(n, seed):
    """As Figure 2.1: two three-component mixtures with equal means and variances."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    apart = np.where(y == 0, 4.0, 2.0)
    wide = np.where(y == 0, 0.5, np.sqrt(0.25 + 2 / 3 * 12.0))
    return (apart * rng.integers(-1, 2, n) + wide * rng.normal(size=n))[:, None], y


def test_hidden_components_tell_shapes_apart_where_moments_cannot():
    X, y = shapes(3000, 0)
    Xt, yt = shapes(3000, 1)
    union = MaxEntClassifier(random_state=0).fit(X, y)
    moments = MaxEntClassifier("moments", random_state=0).fit(X, y)
    assert 0.45 < 1 - moments.score(Xt, yt) < 0.55
    assert 0.1 < 1 - union.score(Xt, yt) < 0.25


def test_groups_see_what_single_columns_cannot():
    rng = np.random.default_rng(6)
    y = rng.integers(2, size=800)
    x = rng.normal(size=800)
    X = pd.DataFrame({"a": x, "b": np.where(y == 0, x, -x) + 0.3 * rng.normal(size=800), "c": rng.normal(size=800)})
    alone = MaxEntClassifier(random_state=0, prior_variance=1.0).fit(X, y)
    named = MaxEntClassifier(ComponentFeatures(groups=[["a", "b"]]), random_state=0, prior_variance=1.0).fit(X, y)
    fitted = MaxEntClassifier(ComponentFeatures(groups="auto"), random_state=0, prior_variance=1.0).fit(X, y)
    assert alone.score(X, y) < 0.65 < 0.85 < named.score(X, y)
    assert named.feature_terms_ == ("c", "a & b")
    np.testing.assert_array_equal(fitted.predict_proba(X), named.predict_proba(X))
    holes = X.mask(rng.random(X.shape) < 0.1)
    pooled = MaxEntClassifier(ComponentFeatures("pooled", groups=[["a", "b"]]), random_state=0, prior_variance=1.0).fit(
        X, y
    )
    assert pooled.score(holes, y) > 0.8
    # each class is one Gaussian here, and a class with one component tells nothing of itself
    own = MaxEntClassifier(ComponentFeatures("class", groups=[["a", "b"]]), random_state=0, prior_variance=1.0).fit(
        X, y
    )
    assert own.score(holes, y) < 0.6


def test_pairs_see_what_single_features_cannot():
    rng = np.random.default_rng(7)
    a, b = rng.integers(2, size=(2, 600))
    X = pd.DataFrame({"a": np.array(["x", "y"])[a], "b": np.array(["x", "y"])[b], "c": rng.normal(size=600)})
    y = np.where(rng.random(600) < 0.1, 1 - (a ^ b), a ^ b)
    assert MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y).score(X, y) < 0.6
    assert MaxEntClassifier(prior_variance=1.0, pairs=[("a", "b")], random_state=0).fit(X, y).score(X, y) > 0.85
    fitted = MaxEntClassifier(selection="bic", random_state=0).fit(X, y)
    assert fitted.feature_terms_ == ("a & b",) and fitted.score(X, y) > 0.85
    assert fitted.path_[0].name == "a & b" and fitted.path_[0].kept and not fitted.path_[-1].kept
    with_numbers = MaxEntClassifier(prior_variance=1.0, pairs=[("a", "c")], random_state=0).fit(X, y)
    assert "a & c" in with_numbers.feature_terms_


@pytest.mark.parametrize("selection", ["bic", "validation"])
def test_forward_selection_keeps_what_matters(mixed, selection):
    X, y = mixed
    model = MaxEntClassifier(selection=selection, random_state=0).fit(X, y)
    kept = [step.name for step in model.path_ if step.kept]
    assert set(kept[:2]) == {"color", "number"} and set(model.feature_terms_) == set(kept)
    if selection == "bic":  # what a fifth of the rows says is less certain
        assert "other" not in kept and "size" not in kept
    scores = [step.score for step in model.path_]
    assert int(np.argmin(scores)) == len(kept) - 1
    for step in model.path_:
        promised = step.expected_gain
        assert 0.6 * promised - 1 <= step.gain  # counts promise what the fit then gives
        assert step.gain <= 1.7 * promised + 3 or not step.kept


def test_priors_can_be_chosen_given_and_left_out(mixed):
    X, y = mixed
    model = MaxEntClassifier(random_state=0).fit(X, y)
    tried = {entry["prior_variance"]: entry["log_loss"] for entry in model.prior_variances_tried_}
    assert model.prior_variance_ == min(tried, key=tried.get)
    few = MaxEntClassifier(random_state=0).fit(X[:20], y[:20])
    assert few.prior_variances_tried_ == [] and few.prior_variance_ == 0.3
    assert MaxEntClassifier(prior_variance=2.0).fit(X, y).prior_variance_ == 2.0 and model.gap_ is not None


def test_without_a_prior_what_runs_away_is_said(votes):
    X, y = votes
    lonely = X.assign(mark=np.where(np.arange(len(y)) == np.flatnonzero(y == "no")[0], "once", "often"))
    with pytest.warns(ConvergenceWarning, match="prior_variance"):
        model = MaxEntClassifier(prior_variance=None).fit(lonely, y)
    assert model.gap_ is None and np.isfinite(model.predict_proba(lonely)).all()
    votes = np.random.default_rng(8).integers(2, size=(200, 3))
    apart = pd.DataFrame(votes.astype(str), columns=["a", "b", "c"])
    few = MaxEntClassifier(prior_variance=None, max_iter=400, categorical=["a", "b", "c"])
    with pytest.warns(ConvergenceWarning, match="look separable"):
        few.fit(apart, np.where(votes.sum(axis=1) > 1, "most", "few"))


def test_class_priors_are_moved_exactly(mixed):
    X, y = mixed
    model = MaxEntClassifier(prior_variance=1.0, random_state=0).fit(X, y)
    given = MaxEntClassifier(prior_variance=1.0, class_prior=[0.2, 0.3, 0.5], random_state=0).fit(X, y)
    moved = model.predict_proba(X) * np.array([0.2, 0.3, 0.5]) / model.class_prior_
    np.testing.assert_allclose(given.predict_proba(X), moved / moved.sum(axis=1, keepdims=True))
    rows = np.flatnonzero((y == "no") | (np.arange(len(y)) % 4 == 0))
    batch = model.adjust_priors(X.iloc[rows])
    true = np.mean(y[rows] == "no")
    assert abs(batch.class_prior_[1] - true) < abs(model.class_prior_[1] - true)


def test_threads_change_no_bit():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = np.tile(X, (12, 1)), np.tile(y, 12)
    one = MaxEntClassifier(
        prior_variance=1.0, n_jobs=1, random_state=0, features=ComponentFeatures(max_components=2)
    ).fit(X, y)
    two = MaxEntClassifier(
        prior_variance=1.0, n_jobs=2, random_state=0, features=ComponentFeatures(max_components=2)
    ).fit(X, y)
    np.testing.assert_array_equal(one.params_.cells, two.params_.cells)


def test_progress_is_told():
    X, y = load_iris(return_X_y=True)
    result = []
    MaxEntClassifier(random_state=0, selection="bic", progress=lambda *a: result.append(a)).fit(X, y)
    assert {text.split()[0] for _, _, text in result} >= {"added", "prior", "objective"}


def test_a_row_in_which_nothing_is_known_changes_no_prior(mixed):
    """A gap is no value of zero: the range of a cell is that over the rows that have it."""
    X, y = mixed
    pmf = np.random.default_rng(9).uniform(0.4, 0.6, len(y)) + 0.05 * (y == "no")
    X = X.assign(p=pmf, q=1 - pmf)
    model = MaxEntClassifier(probabilistic={"f": ["p", "q"]}, prior_variance=1.0, random_state=0).fit(X, y)
    more = X.reindex(range(len(X) + 1))
    widths = [
        model.layout_.widths(model.layout_.rows(model._read(table), np.ones((len(table), 3)), None))
        for table in (X, more)
    ]
    np.testing.assert_array_equal(*widths)
    given = model.layout_.spans[[t.name for t in model.layout_.terms].index("f")]
    np.testing.assert_allclose(widths[0][given], np.ptp(pmf))


def test_even_soft_labels_are_labels(votes):
    X, y = votes
    soft = np.eye(3)[np.unique(y, return_inverse=True)[1]]
    soft[::2] = 1 / 3
    even = MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X, soft)
    nearly = soft.copy()
    nearly[::2] += np.array([1e-9, 0.0, -1e-9])
    np.testing.assert_allclose(
        even.predict_proba(X), MaxEntClassifier(prior_variance=1.0, **SHARP).fit(X, nearly).predict_proba(X), atol=1e-7
    )


def test_strength_is_the_deviation_of_the_log_odds():
    X, y = load_breast_cancer(return_X_y=True)
    for features in ("union", "moments"):
        model = MaxEntClassifier(features, prior_variance=1.0, random_state=0).fit(X, y)
        explanation = model.explain(X, label=1)
        np.testing.assert_allclose(list(model.constraints().strength.values()), explanation.parts.std(axis=0))
        np.testing.assert_allclose(explanation.parts.mean(axis=0), 0.0, atol=1e-9)


def test_parameters_are_counted_by_what_can_be_identified():
    X, y = load_iris(return_X_y=True)
    x, two = X[:, [2]], y[y > 0]
    assert MaxEntClassifier("moments", prior_variance=1.0).fit(x[y > 0], two).n_parameters_ == 3
    one = MaxEntClassifier(ComponentFeatures("pooled", max_components=1), prior_variance=1.0).fit(x[y > 0], two)
    assert one.n_parameters_ == 2  # the class term and a slope: a single component says nothing
    own = MaxEntClassifier(ComponentFeatures("class", max_components=1, means=False), prior_variance=1.0).fit(x, y)
    assert own.n_parameters_ == 2


def test_unlabelled_rows_take_nothing_from_the_choice_of_the_prior(votes):
    X, y = votes
    many = pd.concat([X[:90]] + [X] * 60, ignore_index=True)
    some = np.full(len(many), None, dtype=object)
    some[:90] = y[:90]
    assert MaxEntClassifier(random_state=0).fit(many, some).prior_variances_tried_


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_constant_column_is_no_trouble(mixed):
    X, y = mixed
    once = np.zeros(len(y))
    once[5] = 1.0
    X = X.assign(still=1.0, once=once)
    groups = [ComponentFeatures(groups=[["number", name]]) for name in ("still", "once")]
    for options in ({}, {"features": groups[0]}, {"features": groups[1]}, {"selection": "bic"}):
        model = MaxEntClassifier(prior_variance=1.0, random_state=0, **options).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all() and "still" not in model.feature_terms_


@pytest.mark.parametrize("solver", ["auto", "bohning", "lbfgs"])
def test_a_prior_so_wide_that_it_is_none(votes, solver):
    X, y = votes
    wide = MaxEntClassifier(prior_variance=1e15, solver=solver, random_state=0).fit(X, y)
    none = MaxEntClassifier(prior_variance=None, solver=solver, random_state=0).fit(X, y)
    np.testing.assert_allclose(wide.predict_proba(X), none.predict_proba(X), atol=1e-3)


def test_iterative_scaling_ends_at_the_optimum_with_many_features():
    X, y = load_breast_cancer(return_X_y=True)
    features = ComponentFeatures(means=False, max_components=2)
    options = {"features": features, "prior_variance": 1.0, "random_state": 0}
    best = MaxEntClassifier(**options).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        slow = MaxEntClassifier(**options, solver="iis", max_iter=60).fit(X, y)
    left = (best.run_.objective - slow.run_.objective) / len(y)
    assert 0 <= slow.gain_ <= left <= slow.gap_


def test_borders_that_differ_in_a_late_digit_have_different_names():
    x = 2e6 + np.arange(200.0)
    model = MaxEntClassifier("bins", prior_variance=1.0).fit(x[:, None], np.arange(200) % 2)
    values = model.constraints().values
    assert len(set(values)) == len(values) == 8


def test_pairs_of_too_many_cells_are_refused(votes, monkeypatch):
    X, y = votes
    monkeypatch.setattr(forward_selection, "WIDEST", 5)
    with pytest.raises(ValueError, match="5 values"):
        MaxEntClassifier(selection="bic").fit(X, y)
    assert MaxEntClassifier(selection="bic", pairs=None).fit(X, y).path_
