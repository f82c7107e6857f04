"""Classifiers combined by maximum entropy: what is maximized, what is held out, what abstains."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from joblib import parallel_config
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.estimator_checks import check_estimator

from mixent import (
    AdaBoostM1Classifier,
    MaxEntClassifier,
    MaxEntStackingClassifier,
    MixtureClassifier,
    WeightBoostClassifier,
)
from mixent.core.driver import Status, Stop
from mixent.core.executors import Serial
from mixent.data import DataWarning
from mixent.ensemble import OutputColumns
from mixent.ensemble.inputs import Inputs
from mixent.maxent.products import ProductLayout
from mixent.maxent.solvers import Sums, solve
from mixent.options import InputRegions

TEXT = np.array(["low", "mid", "top"])
TOLS = {"auto": 0.0, "bohning": 1e-18, "iis": 1e-18, "lbfgs": 0.0}  # per row: certified, or seen


def columns(n_bases=3, n_classes=3):
    """The classifiers, whose answers stand in the table."""
    return [(f"c{k}", [k * n_classes + i for i in range(n_classes)]) for k in range(n_bases)]


def stacked(n_bases=3, n_classes=3, **options):
    """A combination of these: nothing is trained, nothing is held out, nothing is chosen."""
    return MaxEntStackingClassifier(columns(n_bases, n_classes), **{"cv": "train", "prior_variance": 1.0, **options})


def splits(n, k=3):
    fold = np.arange(n) // 3 % k
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(k)]


def training(model, X, y, weight=None):
    """What the classifiers said of the training rows, each (n, V), and the folds."""
    given = model._open(X, y, weight, check_random_state(model.random_state))
    outputs, folds, _ = model._train(given, None)
    return outputs.values, folds


@pytest.fixture(scope="module")
def placed():
    """Two classifiers of two classes, the first right where x < 0, the second elsewhere; x last: (n, 5), (n,)."""
    rng = np.random.default_rng(0)
    y, x = rng.integers(2, size=160), np.where(rng.random(160) < 0.5, -4.0, 4.0) + rng.normal(size=160)
    trust = np.stack([x < 0, x > 0], axis=1) * 1.6 + 0.1
    margin = (2 * y - 1)[:, None] * trust + rng.normal(size=(160, 2))
    p = 1 / (1 + np.exp(-margin))
    return np.column_stack([1 - p[:, 0], p[:, 0], 1 - p[:, 1], p[:, 1], x]), y


# the same optimum as other programs


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_logistic_regression_on_what_the_classifiers_say(blobs, n_classes, weighted):
    """The prior is on multiplier times range, and scikit-learn's two-class form has half the penalty."""
    X, y = blobs[0][blobs[1] < n_classes], blobs[1][blobs[1] < n_classes]
    weight = 0.5 + (np.arange(len(y)) % 3) if weighted else None
    folds, bases = splits(len(y)), [GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)]
    model = MaxEntStackingClassifier(bases, cv=folds, random_state=0, tol=0.0).fit(X, TEXT[y], weight)
    fit = {} if weight is None else {"params": {"sample_weight": weight}}
    out = np.hstack([cross_val_predict(b, X, y, cv=folds, method="predict_proba", **fit) for b in bases])
    width = np.maximum(np.ptp(out, axis=0), 0.05)
    C = model.prior_variance_ * (2 if n_classes == 2 else 1)
    peer = LogisticRegression(C=C, tol=1e-12, max_iter=10_000).fit(out / width, y, weight)
    final = np.hstack([clone(b).fit(X, y, weight).predict_proba(X) for b in bases])
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(final / width), atol=1e-6)
    assert model.prior_variance_ in [t["prior_variance"] for t in model.prior_variances_tried_] and model.gap_ < 1e-9


def test_given_pmfs_are_probabilistic_instances(make_answers):
    """The same features in `MaxEntClassifier` have the same optimum."""
    X, y = make_answers()
    ours = stacked(tol=0.0).fit(X, y).predict_proba(X)
    peer = MaxEntClassifier(probabilistic=dict(columns()), prior_variance=1.0, tol=0.0).fit(X, y)
    np.testing.assert_allclose(ours, peer.predict_proba(X), atol=1e-9)


def test_one_cell_is_no_input_at_all(placed):
    X, y = placed
    plain = stacked(2, 2).fit(X, y)
    for kind in ("pooled", "union", "class"):
        one = stacked(2, 2, regions=InputRegions(kind, max_components=1), random_state=0).fit(X, y)
        if kind == "pooled":
            assert [len(c.names) for c in one.regions_] == [1, 1]
            np.testing.assert_array_equal(one.predict_proba(X), plain.predict_proba(X))
            assert one.n_parameters_ == plain.n_parameters_ and one.feature_terms_ == plain.feature_terms_
        else:
            assert [len(c.names) for c in one.regions_] == [2, 2]


@pytest.mark.parametrize("kind", [None, "union", "class", "pooled"])
@pytest.mark.parametrize("constraints", ["full", "diagonal"])
def test_solvers_reach_the_same_optimum_with_abstentions(placed, constraints, kind):
    X, y = placed
    X = X.copy()
    X[:30, :2] = X[100:140, 2:4] = np.nan
    result = {}
    for solver in ("auto", "bohning", "iis", "lbfgs"):
        options = {"constraints": constraints, "solver": solver, "tol": TOLS[solver]}
        more = {"regions": InputRegions(kind, max_components=2)} if kind else {}
        result[solver] = stacked(2, 2, random_state=0, max_iter=50_000, **options, **more).fit(X, y)
    best = result["auto"].run_.objective
    for solver, model in result.items():
        np.testing.assert_allclose(model.predict_proba(X), result["auto"].predict_proba(X), atol=2e-7, err_msg=solver)
        left = (best - model.run_.objective) / len(y)
        assert abs(left) < 1e-11 and left <= model.gap_ + 1e-12


@pytest.mark.parametrize("prior_variance", [None, 1.0])
@pytest.mark.parametrize("kind", [None, "union", "class"])
def test_iterative_scaling_never_falls(placed, kind, prior_variance):
    X, y = placed
    X = X.copy()
    X[:30, :2] = np.nan
    more = {"regions": InputRegions(kind, max_components=2)} if kind else {}
    model = stacked(2, 2, solver="iis", prior_variance=prior_variance, random_state=0, tol=1e-6, **more).fit(X, y)
    values = [step.objective for step in model.run_.trace if step.accepted]
    assert len(values) > 5 and (np.diff(values) >= -1e-10 * len(y)).all() and values[-1] > values[0]
    assert model.run_.status is Status.CONVERGED and model.converged_


def test_a_step_of_iterative_scaling_is_the_printed_one(placed):
    """(3.2) with N features: d gamma = (1/N) ln P_g / P_m, where the class term counts as a feature."""
    X, y = placed
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        model = stacked(2, 2, prior_variance=None, solver="iis", max_iter=1).fit(X, y)
    u, shares = X[:, :4], np.bincount(y) / len(y)
    truth = u.T @ np.eye(2)[y]
    uniform = u.sum(axis=0)[:, None] * shares
    first = np.log(truth / uniform) / 3
    # one step from the class shares, and the last ones on the class term alone
    np.testing.assert_allclose(model.params_.cells, first, rtol=1e-6)


@pytest.mark.parametrize("kind", [None, "union"])
def test_the_certificate_holds_what_is_left(placed, kind):
    X, y = placed
    more = {"regions": InputRegions(kind, max_components=2), "random_state": 0} if kind else {}
    best = stacked(2, 2, tol=0.0, **more).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        early = [stacked(2, 2, solver=s, max_iter=m, **more).fit(X, y) for s in ("bohning", "iis") for m in (1, 2, 4)]
    for model in early:
        left = (best.run_.objective - model.run_.objective) / len(y)
        assert left > 1e-8
        assert model.gain_ <= left + 1e-12 <= model.gap_ + 2e-12
    assert best.gap_ < 1e-9


def test_the_objective_is_the_one_in_the_docstring(placed):
    X, y = placed
    model = stacked(2, 2, regions=InputRegions("pooled", max_components=2), prior_variance=0.7, random_state=0).fit(
        X, y
    )
    v = model.regions_[0].pmf(Inputs(X))
    phi = np.hstack([X[:, :4], *((X[:, a : a + 2, None] * v[:, None]).reshape(len(y), -1) for a in (0, 2))])
    logits = model.params_.bias + phi @ model.params_.cells
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits, axis=1), rtol=1e-9)
    width = np.maximum(np.ptp(phi, axis=0), 0.05)[:, None]
    value = log_softmax(logits, axis=1)[np.arange(len(y)), y].sum()
    value -= ((width * model.params_.cells) ** 2).sum() / (2 * 0.7)
    assert model.run_.objective == pytest.approx(value, rel=1e-9)
    post = softmax(logits, axis=1)
    assert model.entropy_ == pytest.approx(-(post * np.log(post)).sum(axis=1).mean(), rel=1e-9)


def test_the_place_of_a_row_decides_whom_to_believe(placed):
    X, y = placed
    blind, seeing = (
        stacked(2, 2, regions=regions, random_state=0).fit(X, y).predict_log_proba(X)[np.arange(160), y].mean()
        for regions in (None, "union")
    )
    assert seeing > blind + 0.03


# constraints


def measured(X, post, places, cells=None):
    """(C, labels[, cells]): mean over rows of P[c] P[C_i = l] P[M = m]."""
    u = X[:, places]
    if cells is None:
        return np.einsum("nc,nl->cl", post, u) / len(X)
    return np.einsum("nc,nl,nk->clk", post, u, cells) / len(X)


@pytest.mark.parametrize("kind", ["pooled", "union"])
def test_without_a_prior_all_constraints_are_met(placed, kind):
    X, y = placed
    model = stacked(
        2, 2, regions=InputRegions(kind, max_components=2), prior_variance=None, random_state=0, tol=0.0
    ).fit(X, y)
    post, truth, cells = model.predict_proba(X), np.eye(2)[y], model.regions_[0].pmf(Inputs(X))
    assert cells.shape[1] >= 2
    for _, places in columns(2, 2):
        for inside in (None, cells):
            off = measured(X, post, places, inside) - measured(X, truth, places, inside)
            assert np.abs(off).max() <= 1e-6
    assert model.residual_ <= 1e-6 and np.abs(model.constraint_table().residuals).max() <= 1e-6


@pytest.mark.parametrize("solver", ["bohning", "iis", "lbfgs"])
def test_pairwise_constraints_are_met_by_every_solver(make_answers, solver):
    X, y = make_answers()
    model = stacked(prior_variance=None, solver=solver, tol=TOLS[solver], max_iter=50_000).fit(X, TEXT[y])
    post = model.predict_proba(X)
    for _, places in columns():
        np.testing.assert_allclose(measured(X, post, places), measured(X, np.eye(3)[y], places), atol=1e-6)


def test_diagonal_constraints_meet_the_diagonal_ones_only(make_answers):
    X, y = make_answers()
    model = stacked(prior_variance=None, constraints="diagonal", tol=0.0).fit(X, y)
    post, off_diagonal = model.predict_proba(X), 0.0
    for _, places in columns():
        off = np.abs(measured(X, post, places) - measured(X, np.eye(3)[y], places))
        assert np.diagonal(off).max() <= 1e-6
        off_diagonal = max(off_diagonal, off.max())
    assert off_diagonal > 1e-3 and model.residual_ <= 1e-6
    kept = model.params_.cells.reshape(3, 3, 3)
    assert (kept[:, ~np.eye(3, dtype=bool)] == 0).all() and (kept[:, np.eye(3, dtype=bool)] != 0).all()


def test_the_pairwise_constraints_follow_from_the_ternary_ones(placed):
    X, y = placed
    model = stacked(
        2, 2, regions=InputRegions("pooled", max_components=2), prior_variance=None, random_state=0, tol=0.0
    ).fit(X, y)
    table = model._read(X)
    crossed = [(t.first, t.second) for t in model.layout_.terms[2:]]
    layout = ProductLayout.crossing((), crossed)
    rows = layout.rows(table, np.eye(2)[y], None)
    with Serial() as workers:
        solved = solve(layout.cells, Sums.of(layout.cells, rows, workers), None, "auto", Stop(0.0, 2000), workers)
    post = np.exp(solved.problem.log_posterior(solved.run.params, rows)).T
    np.testing.assert_allclose(model.predict_proba(X), post, atol=1e-6)


def test_diagonal_for_two_classes_is_the_printed_rule(make_answers):
    """(3.5), with a class term: P[1] ~ exp(b_1 + sum_j gamma_j1 P[C_j = 1]), P[0] likewise."""
    X, y = make_answers(n_classes=2)
    p, T = X.reshape(len(y), 3, 2), len(y)
    width = np.maximum(np.ptp(p, axis=0), 0.05)  # (classifiers, classes)

    def logits(theta):
        return np.r_[0.0, theta[:1]] + np.einsum("njc,jc->nc", p, theta[1:].reshape(3, 2))

    def loss(theta):
        penalty = ((width * theta[1:].reshape(3, 2)) ** 2).sum() / 2
        return -log_softmax(logits(theta), axis=1)[np.arange(T), y].sum() + penalty

    best = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-7})
    model = stacked(3, 2, constraints="diagonal", tol=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), softmax(logits(best.x), axis=1), atol=1e-6)


def test_cells_of_a_class_speak_for_it_alone(placed):
    X, y = placed
    model = stacked(2, 2, regions=InputRegions("class", max_components=2), random_state=0).fit(X, y)
    owner = model.regions_[0].component_class
    kept = model.params_.cells[4:].reshape(2, 2, len(owner), 2)  # classifier, label, cell, class
    for k, c in enumerate(owner):
        assert (kept[:, :, k, 1 - c] == 0).all() and (kept[:, :, k, c] != 0).any()
    assert (model.params_.cells[:4] != 0).all()
    union = stacked(2, 2, regions=InputRegions("union", max_components=2), random_state=0).fit(X, y)
    assert (union.params_.cells != 0).all()
    assert union.feature_terms_ == ("c0", "c1", "c0 & input 1", "c1 & input 1")


# abstentions


def test_an_abstention_drops_out_of_its_row(placed):
    X, y = placed
    for regions in (None, "union"):
        model = stacked(2, 2, regions=regions, random_state=0).fit(X, y)
        gone = X[:20].copy()
        gone[:, :2] = np.nan
        parts = model.layout_.term_logits(model.params_.cells, model._rows(model._read(X[:20])))
        without = [i for i, name in enumerate(model.feature_terms_) if not name.startswith("c0")]
        assert len(without) == len(parts) / 2
        expected = softmax(model.params_.bias[:, None] + parts[without].sum(axis=0), axis=0).T
        np.testing.assert_allclose(model.predict_proba(gone), expected, rtol=1e-12)
        gone[:, 2:4] = np.nan
        alone = softmax(model.params_.bias)
        np.testing.assert_allclose(model.predict_proba(gone), np.tile(alone, (20, 1)), rtol=1e-12)
        assert np.isnan(model.base_outputs(gone)["c0"]).all()


@pytest.mark.parametrize("regions", [None, "union"])
@pytest.mark.parametrize("prior_variance", ["auto", None, 1.0])
def test_one_that_always_abstains_changes_nothing(placed, prior_variance, regions):
    X, y = placed
    options = {
        "prior_variance": prior_variance,
        "random_state": 0,
        "regions": regions and InputRegions(max_components=2),
    }
    plain = stacked(2, 2, **options).fit(X, y)
    wide = np.column_stack([X, np.full((160, 2), np.nan)])
    silent = MaxEntStackingClassifier([*columns(2, 2), ("silent", [5, 6])], cv="train", **options).fit(wide, y)
    np.testing.assert_allclose(silent.predict_proba(wide), plain.predict_proba(X), atol=1e-9)
    assert np.isnan(silent.base_errors_[2]) and silent.constraint_table().strength["silent"] == 0
    np.testing.assert_allclose(silent.base_errors_[:2], plain.base_errors_)


def test_training_rows_on_which_one_abstains_teach_nothing_about_it(make_answers):
    """Its multipliers come from the rows it answered: all others constrain the rest alone."""
    X, y = make_answers(gaps=0.3)
    model = stacked(prior_variance=None, tol=0.0).fit(X, y)
    post, table = model.predict_proba(X), model.constraint_table()
    result = np.nan_to_num(X)
    np.testing.assert_allclose(table.truth, result.T @ np.eye(3)[y] / len(y), rtol=1e-12)
    np.testing.assert_allclose(table.model, result.T @ post / len(y), rtol=1e-9)
    assert np.abs(table.residuals).max() <= 1e-6
    for i, (_, places) in enumerate(columns()):
        answered = ~np.isnan(X[:, places[0]])
        wrong = X[answered][:, places].argmax(axis=1) != y[answered]
        assert model.base_errors_[i] == pytest.approx(wrong.mean())


# what is learned from


@pytest.mark.parametrize("decisions", ["auto", "hard"])
def test_outputs_to_learn_from_are_out_of_fold(blobs, decisions):
    X, y = blobs
    folds = splits(90)
    bases = [GaussianNB(), KNeighborsClassifier(1)]
    model = MaxEntStackingClassifier(bases, cv=folds, decisions=decisions, random_state=0)
    values, used = training(model, X, TEXT[y])
    assert [(a.tolist(), b.tolist()) for a, b in used] == [(a.tolist(), b.tolist()) for a, b in folds]
    for value, base in zip(values, bases):
        if decisions == "auto":
            out = cross_val_predict(base, X, y, cv=folds, method="predict_proba")
        else:
            out = np.eye(3)[cross_val_predict(base, X, y, cv=folds)]
        np.testing.assert_allclose(value, out, rtol=1e-12)
    errors = [np.mean(cross_val_predict(base, X, y, cv=folds) != y) for base in bases]
    np.testing.assert_allclose(model.base_errors_, errors)
    for fitted, base in zip(model.fitted_, bases):
        np.testing.assert_array_equal(fitted.predict(X), TEXT[clone(base).fit(X, y).predict(X)])
    inside = MaxEntStackingClassifier(bases, cv="train", decisions=decisions)
    values, used = training(inside, X, TEXT[y])
    assert used == [] and inside.base_errors_[1] == 0  # its nearest neighbor is itself
    np.testing.assert_array_equal(values[1], np.eye(3)[y])


def test_a_rows_own_label_does_not_reach_its_outputs(blobs):
    X, y = blobs
    row, flipped = 10, y.copy()
    flipped[row] = (y[row] + 1) % 3
    moved = {}
    for cv in (splits(90), "train"):
        model = MaxEntStackingClassifier([GaussianNB(), DecisionTreeClassifier(max_depth=3)], cv=cv, random_state=0)
        first, second = (training(model, X, labels)[0] for labels in (y, flipped))
        moved[str(cv)] = sum(np.abs(a[row] - b[row]).sum() for a, b in zip(first, second))
        assert any((a != b).any() for a, b in zip(first, second))
    assert moved.pop("train") > 1e-3 and list(moved.values()) == [0.0]


def test_the_cells_to_learn_from_are_out_of_fold_too(blobs):
    X, y = blobs
    folds = splits(90)
    model = MaxEntStackingClassifier(
        [GaussianNB()], regions=InputRegions(max_components=1), cv=folds, prior_variance=1.0, random_state=0
    )
    model.fit(X, y)
    held = model.regions_[0].held_out(Inputs(X), np.eye(3)[y], None, folds)
    out = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    ternary = np.einsum("nl,nk,nc->lkc", out, held, np.eye(3)[y]) / 90
    np.testing.assert_allclose(model.truth_[4:].reshape(3, 3, 3), ternary, rtol=1e-9)
    inside = np.einsum("nl,nk,nc->lkc", out, model.regions_[0].pmf(Inputs(X)), np.eye(3)[y]) / 90
    assert np.abs(inside - ternary).max() > 1e-3


def test_folds_of_a_number_spread_every_class(blobs):
    X, y = blobs
    model = MaxEntStackingClassifier([GaussianNB()], cv=4, random_state=0, prior_variance=1.0)
    values, folds = training(model, X, y)
    assert len(folds) == 4 and np.sort(np.concatenate([held for _, held in folds])).tolist() == list(range(90))
    for train, held in folds:
        assert not set(train) & set(held) and np.ptp(np.bincount(y[held])) <= 1
        fitted = GaussianNB().fit(X[train], y[train])
        np.testing.assert_allclose(values[0][held], fitted.predict_proba(X[held]), rtol=1e-12)


def test_a_row_of_a_class_of_its_own_is_never_held_out(blobs):
    X, y = blobs
    labels = y.copy()
    labels[0] = 7
    model = MaxEntStackingClassifier([DecisionTreeClassifier(max_depth=2)], prior_variance=1.0, random_state=0)
    with pytest.warns(DataWarning, match="one row"):
        values, _ = training(model, X, labels)
    assert np.isnan(values[0][0]).all() and not np.isnan(values[0][1:]).any()
    with pytest.warns(DataWarning, match="one row"):
        assert values[0].shape == (90, 4) and model.fit(X, labels).classes_.tolist() == [0, 1, 2, 7]
    with pytest.raises(ValueError, match="held out"):
        MaxEntStackingClassifier([GaussianNB()]).fit(X[:3], y[:3])


def test_classes_of_folds_are_those_of_all_rows(blobs):
    """A fold whose training part lacks a class gives it nothing."""
    X, y = blobs
    folds = [(np.flatnonzero(y != c), np.flatnonzero(y == c)) for c in range(3)]
    model = MaxEntStackingClassifier([GaussianNB()], cv=folds, prior_variance=1.0)
    values, _ = training(model, X, TEXT[y])
    assert values[0].shape == (90, 3) and model.base_classes_[0].tolist() == TEXT.tolist()
    for c in range(3):
        assert (values[0][y == c, c] == 0).all()
        others = [k for k in range(3) if k != c]
        fitted = GaussianNB().fit(X[y != c], y[y != c])
        np.testing.assert_allclose(values[0][np.ix_(y == c, others)], fitted.predict_proba(X[y == c]), rtol=1e-12)
    assert model.base_errors_[0] == 1.0


# prefit, columns, decisions


def test_prefit_trains_nothing(blobs):
    X, y = blobs
    base = GaussianNB().fit(X[:60], y[:60])
    before = pickle.dumps(base)
    model = MaxEntStackingClassifier([("nb", base), ("knn", KNeighborsClassifier(5).fit(X[:60], y[:60]))], cv="prefit")
    model.set_params(prior_variance=1.0).fit(X[60:], y[60:])
    assert model.fitted_[0] is base and pickle.dumps(base) == before
    np.testing.assert_allclose(model.base_outputs(X)["nb"], base.predict_proba(X), rtol=1e-12)
    boosting = AdaBoostM1Classifier(GaussianNB(), n_estimators=3, random_state=0).fit(X, y)
    staged = MaxEntStackingClassifier.from_boosting(boosting, cv="prefit", prior_variance=1.0).fit(X, y)
    assert staged.fitted_ is boosting


def test_a_fitted_classifier_may_have_other_labels_than_y(blobs):
    X, y = blobs
    two = np.flatnonzero(y < 2)
    base = GaussianNB().fit(X, TEXT[y])
    for constraints in ("full", "diagonal"):
        model = MaxEntStackingClassifier([("nb", base)], cv="prefit", prior_variance=1.0, constraints=constraints)
        model.fit(X[two], TEXT[y[two]])
        assert model.base_classes_[0].tolist() == TEXT.tolist() and model.classes_.tolist() == ["low", "mid"]
        assert model.predict_proba(X).shape == (90, 2)
        zero = model.params_.cells == 0
        assert zero.tolist() == ([[False] * 2] * 3 if constraints == "full" else (np.eye(3)[:, :2] == 0).tolist())
    wrong = np.mean(base.predict(X[two]) != TEXT[y[two]])
    assert model.base_errors_[0] == pytest.approx(wrong)
    other = DecisionTreeClassifier(max_depth=2).fit(X, np.array(["up", "down"])[(X[:, 0] > 0).astype(int)])
    model = MaxEntStackingClassifier([other], cv="prefit", prior_variance=1.0)
    with pytest.warns(UserWarning, match="'decisiontreeclassifier'"):
        model.fit(X, y)
    assert np.isnan(model.base_errors_[0])


def test_a_label_speaks_for_the_class_of_its_name(blobs):
    """Not for the class at its place: this classifier knows no "low", and "never" is no class."""
    X, y = blobs
    base = GaussianNB().fit(X, np.array(["never", "mid", "top"])[y])
    model = MaxEntStackingClassifier([base], cv="prefit", prior_variance=1.0, constraints="diagonal").fit(X, TEXT[y])
    assert model.base_classes_[0].tolist() == ["mid", "never", "top"]
    assert (model.params_.cells != 0).tolist() == [[False, True, False], [False] * 3, [False, False, True]]
    unknown = (y == 0) | (base.predict(X) != TEXT[y])
    assert model.base_errors_[0] == pytest.approx(unknown.mean())


def test_label_probabilities_count_by_their_shares(make_answers):
    X, y = make_answers()
    rng = np.random.default_rng(0)
    shares = 0.6 * np.eye(3)[y] + 0.4 * rng.dirichlet(np.ones(3), len(y))
    soft = stacked(cv="prefit", tol=0.0).fit(X, shares)
    each = stacked(cv="prefit", tol=0.0).fit(np.repeat(X, 3, axis=0), np.tile(np.arange(3), len(y)), shares.ravel())
    np.testing.assert_allclose(soft.predict_proba(X), each.predict_proba(X), atol=1e-9)
    sure, known = (stacked(cv="prefit", tol=0.0).fit(X, labels) for labels in (np.eye(3)[y], y))
    np.testing.assert_allclose(sure.predict_proba(X), known.predict_proba(X), atol=1e-12)


def test_even_label_probabilities_are_labels_too(make_answers):
    X, y = make_answers()
    shares = np.eye(3)[y]
    shares[:40] = 1 / 3
    soft = stacked(cv="prefit", tol=0.0).fit(X, shares)
    each = stacked(cv="prefit", tol=0.0).fit(np.repeat(X, 3, axis=0), np.tile(np.arange(3), len(y)), shares.ravel())
    np.testing.assert_allclose(soft.predict_proba(X), each.predict_proba(X), atol=1e-9)


def test_hard_decisions_are_votes(make_answers):
    X, y = make_answers()
    votes = pd.DataFrame({f"v{k}": TEXT[X[:, 3 * k : 3 * k + 3].argmax(axis=1)] for k in range(3)})
    hard = stacked(decisions="hard", tol=0.0).fit(X, TEXT[y])
    voted = MaxEntStackingClassifier([(f"c{k}", f"v{k}") for k in range(3)], cv="train", prior_variance=1.0, tol=0.0)
    voted.fit(votes, TEXT[y])
    peer = MaxEntClassifier(prior_variance=1.0, tol=0.0).fit(votes, TEXT[y])
    np.testing.assert_allclose(hard.predict_proba(X), peer.predict_proba(votes), atol=1e-9)
    np.testing.assert_allclose(voted.predict_proba(votes), peer.predict_proba(votes), atol=1e-9)
    assert set(np.unique(hard.base_outputs(X)["c0"])) == {0.0, 1.0}


def test_unsure_is_a_label_like_others_and_a_blank_is_none(make_answers):
    X, y = make_answers()
    result = TEXT[X[:, :3].argmax(axis=1)].astype(object)
    result[X[:, :3].max(axis=1) < 0.5] = "unsure"
    result[:9] = None
    votes = pd.DataFrame({"p": X[:, 3], "q": X[:, 4], "r": X[:, 5], "vote": result})
    bases = [("vote", OutputColumns("vote")), ("soft", {"top": "r", "low": "p", "mid": "q"})]
    model = MaxEntStackingClassifier(bases, cv=splits(120), prior_variance=1.0).fit(votes, TEXT[y])
    assert model.base_classes_[0].tolist() == ["low", "mid", "top", "unsure"]
    out = model.base_outputs(votes)
    assert np.isnan(out["vote"][:9]).all() and (out["vote"][9:].sum(axis=1) == 1).all()
    np.testing.assert_allclose(out["soft"], X[:, 3:6], rtol=1e-12)
    frame = model.constraint_table().frame()
    row = frame[(frame.feature == "vote") & (frame.value == "unsure") & (frame["class"] == "mid")]
    np.testing.assert_allclose(row.P_truth, np.mean((result == "unsure") & (y == 1)))
    new = votes.assign(vote="never seen")
    np.testing.assert_allclose(model.predict_proba(new), model.predict_proba(votes.assign(vote=None)))


def test_columns_have_nothing_to_learn_from_a_fold(make_answers):
    """What was said was said: it is the same in and out of fold, whatever labels the fold's other rows have."""
    X, y = make_answers()
    folds = [(np.flatnonzero(y != c), np.flatnonzero(y == c)) for c in range(3)]
    out, inside = (stacked(cv=cv, tol=0.0).fit(X, y) for cv in (folds, "train"))
    np.testing.assert_allclose(out.predict_proba(X), inside.predict_proba(X), atol=1e-9)


def test_prefit_columns_stay_as_they_are(make_answers):
    X, y = make_answers(n_bases=1)
    box = OutputColumns([0, 1, 2]).fit(X, TEXT[y])
    model = MaxEntStackingClassifier([("c", box)], cv="prefit", prior_variance=1.0).fit(X, TEXT[y])
    assert box.classes_.tolist() == model.base_classes_[0].tolist() == TEXT.tolist()


def test_only_some_classifiers_have_probabilities(blobs):
    X, y = blobs
    bases = [("nb", GaussianNB()), ("ridge", RidgeClassifier())]
    model = MaxEntStackingClassifier(bases, prior_variance=1.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.base_outputs(X)["ridge"], np.eye(3)[model.fitted_[1].predict(X)])
    with pytest.raises(ValueError, match="decisions='soft'"):
        MaxEntStackingClassifier(bases, decisions="soft").fit(X, y)


# stages


@pytest.mark.parametrize("names", [np.arange(1, 4), TEXT])
@pytest.mark.parametrize(
    "ensemble",
    [
        AdaBoostM1Classifier(DecisionTreeClassifier(max_depth=1), n_estimators=3),
        WeightBoostClassifier(GaussianNB(), n_estimators=3),
        BaggingClassifier(GaussianNB(), n_estimators=3, max_features=1),
        RandomForestClassifier(3, max_depth=2),
        AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=3),
    ],
    ids=lambda e: type(e).__name__,
)
def test_stages_of_an_ensemble(blobs, ensemble, names):
    X, y = blobs
    model = MaxEntStackingClassifier.from_boosting(ensemble, prior_variance=1.0, random_state=0, cv=splits(90))
    plain = clone(model).fit(X, y)
    model.fit(X, names[y])
    word = "stage" if hasattr(ensemble, "stage_proba") else "member"
    assert model.base_names_ == tuple(f"{word} {m + 1}" for m in range(len(model.base_classes_)))
    assert len(model.base_names_) >= 2 and model.classes_.tolist() == names.tolist()
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    assert model.score(X, names[y]) > 0.55 and not hasattr(ensemble, "classes_")
    assert (model.base_errors_ < 0.67).all()


class Growing(ClassifierMixin, BaseEstimator):
    """As many stages as it had rows, by the dozen; each says the same."""

    def __init__(self, n_estimators=1):
        self.n_estimators = n_estimators

    def fit(self, X, y):
        self.inner_ = GaussianNB().fit(X, y)
        self.classes_, self.n_stages_ = self.inner_.classes_, len(X) // 12
        return self

    def predict(self, X):
        return self.inner_.predict(X)

    def stage_proba(self, X):
        return [self.inner_.predict_proba(X)] * self.n_stages_


def test_a_stage_that_a_fold_lacks_abstains(blobs):
    X, y = blobs
    folds = [(np.arange(60), np.arange(60, 90)), (np.arange(24, 90), np.arange(24))]  # of 5 stages each; 7 in the end
    model = MaxEntStackingClassifier(Growing(), cv=folds, prior_variance=1.0).fit(X, y)
    values, _ = training(model, X, y)
    assert len(values) == 7 == len(model.base_names_)
    for m, value in enumerate(values):
        seen = np.r_[0:24, 60:90] if m < 5 else []
        assert np.isfinite(value).all(axis=1).nonzero()[0].tolist() == list(seen)
    assert np.isnan(model.base_errors_[5:]).all()
    with pytest.warns(UserWarning, match="sample_weight"):
        model.fit(X, y, np.ones(90))


# input spaces


def test_a_classifier_sees_its_inputs_only_and_has_cells_of_its_own(blobs):
    X, y = blobs
    X = np.column_stack([X, np.random.default_rng(0).normal(size=90)])
    bases = [("a", GaussianNB()), ("b", GaussianNB()), ("c", GaussianNB()), ("d", GaussianNB())]
    inputs = {"b": [1], "d": [1]}
    model = MaxEntStackingClassifier(
        bases, inputs=inputs, regions=InputRegions(max_components=1), prior_variance=1.0, random_state=0
    )
    model.fit(X, y)
    assert [m.n_features_in_ for m in model.fitted_] == [3, 1, 3, 1]
    assert model.regions_[0] is model.regions_[2] and model.regions_[1] is model.regions_[3]
    assert [cells.columns for cells in model.regions_] == [(0, 1, 2), (1,), (0, 1, 2), (1,)]
    assert model.feature_terms_[4:] == ("a & input 1", "b & input 2", "c & input 1", "d & input 2")
    moved = X.copy()
    moved[:, [0, 2]] += 5.0
    out, after = model.base_outputs(X), model.base_outputs(moved)
    np.testing.assert_array_equal(out["b"], after["b"])
    np.testing.assert_array_equal(model.regions_[1].pmf(Inputs(X)), model.regions_[1].pmf(Inputs(moved)))
    assert (out["a"] != after["a"]).any()
    named = pd.DataFrame(X, columns=["p", "q", "r"])
    by_name = clone(model).set_params(inputs={"b": ["q"], "d": ["q"]}).fit(named, y)
    np.testing.assert_allclose(by_name.predict_proba(named), model.predict_proba(X), rtol=1e-9)


# tables, weights, names


@pytest.mark.parametrize("kind", [None, "union", "class", "pooled"])
@pytest.mark.parametrize("cv", ["train", "groups"])
def test_weight_two_is_the_row_twice_and_weight_zero_is_no_row(blobs, cv, kind):
    X, y = blobs
    weight = np.arange(90) % 4 % 3  # 0 1 2 0
    weight[3::4] = 1
    times, kept = np.repeat(np.arange(90), weight), np.flatnonzero(weight)
    fold = np.arange(90) // 4 % 3

    def model(rows):
        given = "train"
        if cv == "groups":
            given = [(np.flatnonzero(fold[rows] != f), np.flatnonzero(fold[rows] == f)) for f in range(3)]
        more = {"regions": InputRegions(kind, max_components=1)} if kind else {}
        bases = [GaussianNB(), ("one", GaussianNB())]
        return MaxEntStackingClassifier(
            bases, inputs={"one": [0]}, cv=given, prior_variance=1.0, random_state=0, tol=0.0, **more
        )

    weighted = model(np.arange(90)).fit(X, y, weight)
    dropped = model(kept).fit(X[kept], y[kept], weight[kept])
    twice = model(times).fit(X[times], y[times])
    np.testing.assert_allclose(weighted.predict_proba(X), dropped.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(weighted.predict_proba(X), twice.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(weighted.base_errors_, twice.base_errors_, rtol=1e-12)
    np.testing.assert_allclose(weighted.class_prior_, twice.class_prior_, rtol=1e-12)


def test_a_row_without_weight_is_not_there_even_for_one_that_takes_none(blobs):
    X, y = blobs
    weight = (np.arange(90) % 4 > 0).astype(float)
    kept = np.flatnonzero(weight)
    model = MaxEntStackingClassifier([KNeighborsClassifier(3)], cv="train", prior_variance=1.0)
    with pytest.warns(UserWarning, match="support sample_weight"):
        ours = clone(model).fit(X, y, weight)
    np.testing.assert_allclose(ours.predict_proba(X), model.fit(X[kept], y[kept]).predict_proba(X), rtol=1e-9)


def test_rows_without_a_label_are_left_out(blobs):
    X, y = blobs
    labels = TEXT[y].astype(object)
    labels[::7] = None
    known = np.flatnonzero(np.arange(90) % 7)
    for regions in (None, "union"):
        more = {"regions": InputRegions(max_components=1)} if regions else {}
        model = MaxEntStackingClassifier(
            [GaussianNB()], prior_variance=1.0, cv=splits(len(known)), random_state=0, **more
        )
        ours = clone(model).fit(X, labels)
        np.testing.assert_allclose(
            ours.predict_proba(X), model.fit(X[known], TEXT[y[known]]).predict_proba(X), rtol=1e-9
        )
        np.testing.assert_allclose(ours.base_errors_, model.base_errors_)


@pytest.mark.parametrize("regions", [None, "union"])
def test_order_of_rows_and_names_of_classes_change_nothing(blobs, regions):
    X, y = blobs
    order, fold = np.random.default_rng(0).permutation(90), np.arange(90) // 3 % 3
    more = {"regions": InputRegions(max_components=2)} if regions else {}

    def model(fold):
        cv = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]
        return MaxEntStackingClassifier([GaussianNB()], cv=cv, prior_variance=1.0, random_state=0, tol=0.0, **more)

    plain = model(fold).fit(X, y)
    moved = model(fold[order]).fit(X[order], y[order])
    np.testing.assert_allclose(moved.predict_proba(X), plain.predict_proba(X), atol=1e-7)
    turned = model(fold).fit(X, np.array(["c", "a", "b"])[y])  # the classes in another order
    np.testing.assert_allclose(turned.predict_proba(X)[:, [2, 0, 1]], plain.predict_proba(X), atol=1e-7)


def test_frames_of_any_kind(frame):
    X, y = frame
    bases = [("mixture", MixtureClassifier(1)), ("maxent", MaxEntClassifier("bins", prior_variance=1.0))]
    options = {"regions": InputRegions(max_components=1), "prior_variance": 1.0, "random_state": 0, "cv": 3}
    model = MaxEntStackingClassifier(bases, inputs={"maxent": ["kind", "b"]}, **options).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all() and model.score(X, y) > 0.6
    assert model.regions_[0].mixture.schema_.categorical == (2,) and model.regions_[1].columns == (2, 1)
    other = pl.DataFrame({name: [None if pd.isna(v) else v for v in X[name]] for name in X})
    again = clone(model).fit(other, y)
    np.testing.assert_allclose(again.predict_proba(other), model.predict_proba(X), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b", "a", "kind"]])
    coded = X.assign(kind=X["kind"].map({"x": 0.0, "y": 1.0, "z": 2.0}))
    fitted = clone(model).set_params(categorical=["kind"]).fit(coded, y)
    assert fitted.regions_[0].mixture.schema_.categorical == (2,)
    assert clone(model).fit(coded, y).regions_[0].mixture.schema_.categorical == ()


def test_lists_of_lists(blobs):
    X, y = blobs
    model = MaxEntStackingClassifier([GaussianNB()], prior_variance=1.0, cv=3, random_state=0)
    plain = clone(model).fit(X, TEXT[y])
    np.testing.assert_array_equal(model.fit(X.tolist(), TEXT[y].tolist()).predict(X.tolist()), plain.predict(X))


def test_lists_of_lists_have_cells_too(blobs):
    X, y = blobs
    model = MaxEntStackingClassifier(
        [GaussianNB()], prior_variance=1.0, cv=3, random_state=0, regions=InputRegions(max_components=1)
    )
    plain = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.fit(X.tolist(), y.tolist()).predict(X.tolist()), plain.predict(X))


@pytest.mark.parametrize("kind", ["union", "class"])
def test_a_class_whose_rows_all_have_no_weight(blobs, kind):
    X, y = blobs
    kept, options = (
        np.flatnonzero(y > 0),
        {"prior_variance": 1.0, "random_state": 0, "regions": InputRegions(kind, max_components=1)},
    )
    fold = np.arange(90) // 3 % 3
    cv, within = ([(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)] for f in (fold, fold[kept]))
    model = MaxEntStackingClassifier([GaussianNB()], cv=cv, **options).fit(X, y, (y > 0).astype(float))
    two = MaxEntStackingClassifier([GaussianNB()], cv=within, **options).fit(X[kept], y[kept])
    assert model.classes_.tolist() == [1, 2]
    np.testing.assert_allclose(model.predict_proba(X), two.predict_proba(X), atol=1e-9)


def test_splits_are_of_the_labelled_rows_whatever_their_weight(blobs):
    X, y = blobs
    weight = (np.arange(90) % 5 > 0).astype(float)
    kept = np.flatnonzero(weight)
    place = np.full(90, -1)
    place[kept] = np.arange(len(kept))
    within = [tuple(place[part][weight[part] > 0] for part in fold) for fold in splits(90)]
    model = MaxEntStackingClassifier([GaussianNB()], prior_variance=1.0, cv=splits(90), random_state=0)
    ours = model.fit(X, y, weight).predict_proba(X)
    theirs = MaxEntStackingClassifier([GaussianNB()], prior_variance=1.0, cv=within, random_state=0).fit(
        X[kept], y[kept]
    )
    np.testing.assert_allclose(ours, theirs.predict_proba(X), rtol=1e-9)


# what it can tell


@pytest.mark.parametrize("regions", [None, "union"])
def test_an_explanation_adds_up_exactly(placed, regions):
    X, y = placed
    X = X.copy()
    X[:10, :2] = np.nan
    model = stacked(2, 2, regions=regions, random_state=0).fit(X, TEXT[y])
    explanation = model.explain(X, by="classifier")
    log_post = model.predict_log_proba(X)
    rows = np.arange(len(y))
    ours, rival = (np.searchsorted(model.classes_, names) for names in (explanation.label, explanation.rival))
    np.testing.assert_allclose(explanation.log_odds, log_post[rows, ours] - log_post[rows, rival], atol=1e-12)
    np.testing.assert_allclose(explanation.baseline + explanation.parts.sum(axis=1), explanation.log_odds, atol=1e-12)
    assert explanation.names == model.feature_terms_ and explanation.frame().shape == (
        len(y),
        4 + len(explanation.names),
    )
    # parts are against the average training row: without a prior's pull these vanish on average
    one = model.explain(X, "low", by="classifier").parts
    np.testing.assert_allclose(one.mean(axis=0), 0.0, atol=1e-12)
    with pytest.raises(ValueError, match="label"):
        model.explain(X, "no")


def test_constraints_as_a_table(placed):
    X, y = placed
    model = stacked(2, 2, regions=InputRegions("pooled", max_components=2), random_state=0).fit(X, TEXT[y])
    frame, cells = model.constraint_table().frame(), model.regions_[0].pmf(Inputs(X))
    assert len(frame) == 2 * (4 + 4 * cells.shape[1])
    post = model.predict_proba(X)
    mine = frame[(frame.feature == "c1 & input 1") & (frame["class"] == "low")]
    row = mine[mine.value == "mid & region 2"].iloc[0]
    product = X[:, 3] * cells[:, 1]
    assert row.P_truth == pytest.approx(np.mean(product * (y == 0)), rel=1e-9)
    assert row.P_model == pytest.approx(np.mean(product * post[:, 0]), rel=1e-9)
    assert row.residual == row.P_model - row.P_truth
    assert set(model.constraint_table().strength) == set(model.feature_terms_)
    parts = model.layout_.term_logits(model.params_.cells, model._rows(model._read(X)))
    odds = parts[0, 1] - parts[0, 0]
    assert model.constraint_table().strength["c0"] == pytest.approx(odds.std(), rel=1e-9)


def test_strength_is_the_spread_of_the_log_odds_over_pairs_of_classes(make_answers):
    X, y = make_answers()
    for constraints in ("full", "diagonal"):
        model = stacked(constraints=constraints).fit(X, y)
        parts = model.layout_.term_logits(model.params_.cells, model._rows(model._read(X)))
        for name, part in zip(model.feature_terms_, parts):
            spread = [(part[a] - part[b]).var() for a in range(3) for b in range(a)]
            assert model.constraint_table().strength[name] == pytest.approx(np.sqrt(np.mean(spread)), rel=1e-9)


def test_class_priors_are_moved_by_their_ratio(make_answers):
    X, y = make_answers()
    plain = stacked().fit(X, y)
    np.testing.assert_allclose(plain.class_prior_, np.bincount(y) / len(y), rtol=1e-12)
    given = stacked(class_prior=[0.2, 0.3, 0.5]).fit(X, y)
    expected = plain.predict_proba(X) * np.array([0.2, 0.3, 0.5]) / plain.class_prior_
    np.testing.assert_allclose(given.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)
    np.testing.assert_allclose(given.class_prior_, [0.2, 0.3, 0.5], rtol=1e-12)
    batch = X[(y == 0) | (np.arange(120) % 6 == 0)]
    moved = plain.adjust_priors(batch)
    assert moved.class_prior_[0] > plain.class_prior_[0] + 0.1
    expected = plain.predict_proba(X) * moved.class_prior_ / plain.class_prior_
    np.testing.assert_allclose(moved.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_free_parameters_are_those_that_can_be_told_apart(make_answers):
    X, y = make_answers()
    model = stacked().fit(X, y)
    design = np.column_stack([np.ones(120), X])
    assert model.n_parameters_ == 2 * np.linalg.matrix_rank(design) == 2 * 7


def test_free_parameters_beside_cells_are_those_that_can_be_told_apart(placed):
    X, y = placed
    for kind in ("pooled", "union"):
        model = stacked(2, 2, regions=InputRegions(kind, max_components=2), random_state=0).fit(X, y)
        rows = model._rows(model._read(X))
        design = np.column_stack([np.ones(160), model.layout_.cells.dense(rows).T])
        assert model.n_parameters_ == np.linalg.matrix_rank(design)


def test_it_can_be_copied_stored_and_shown(placed):
    X, y = placed
    model = stacked(2, 2, regions=InputRegions(max_components=2), random_state=0)
    assert repr(clone(model)) == repr(model)
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert "estimators" in model.get_params() and "MaxEntStackingClassifier" in repr(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        model.base_outputs(X)
    assert fitted.fit(X, y) is fitted and fitted.n_features_in_ == 5


def test_gaps_are_taken_if_all_classifiers_take_them():
    def takes(*bases):
        return get_tags(MaxEntStackingClassifier(list(bases))).input_tags.allow_nan

    assert takes(MixtureClassifier(1), ("said", [0, 1])) and not takes(MixtureClassifier(1), ("nb", GaussianNB()))
    assert get_tags(MaxEntStackingClassifier(RandomForestClassifier())).input_tags.allow_nan
    assert not get_tags(MaxEntStackingClassifier(AdaBoostClassifier(GaussianNB()))).input_tags.allow_nan


def test_threads_change_no_bit(make_answers):
    X, y = make_answers(n=3000, n_bases=4)
    proba = [stacked(4, n_jobs=n).fit(X, y).predict_proba(X) for n in (1, 2)]
    np.testing.assert_array_equal(*proba)
    few = (X[:300], y[:300])
    bases = [GaussianNB(), DecisionTreeClassifier(max_depth=2)]
    with parallel_config(backend="threading"):
        trained = [
            MaxEntStackingClassifier(bases, n_jobs=n, random_state=0, prior_variance=1.0, cv=3).fit(*few)
            for n in (1, 2)
        ]
    np.testing.assert_array_equal(*(m.predict_proba(few[0]) for m in trained))


def test_the_seed_decides_all_that_is_random(blobs):
    X, y = blobs
    loose, fixed = DecisionTreeClassifier(splitter="random", max_depth=3), GaussianNB()
    for base, cv in ((loose, splits(90)), (fixed, 3)):  # of the classifiers, of the folds
        one, again, other = (
            MaxEntStackingClassifier([base], random_state=seed, cv=cv, prior_variance=1.0).fit(X, y).predict_proba(X)
            for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(one, again)
        assert np.abs(one - other).max() > 1e-6
    cells = [
        MaxEntStackingClassifier([fixed], random_state=3, regions="union", prior_variance=1.0).fit(X, y)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in cells))


def test_progress_is_told(blobs):
    result = []
    MaxEntStackingClassifier([GaussianNB()], cv=3, progress=lambda *what: result.append(what), random_state=0).fit(
        *blobs
    )
    texts = [text for *_, text in result]
    assert {f"classifiers, fold {k} of 3" for k in (1, 2, 3)} <= set(texts)
    assert any(text.startswith("prior variance, fold 1 of 3") for text in texts)


# refusals


def test_a_classifier_that_takes_no_weights_is_trained_without(blobs):
    X, y = blobs
    weight = 1.0 + np.arange(90) % 2
    bases = [("knn", KNeighborsClassifier(3)), ("said", OutputColumns(2))]
    wide = np.column_stack([X, y])
    with pytest.warns(UserWarning, match="sample_weight") as caught:
        model = MaxEntStackingClassifier(bases, inputs={"knn": [0, 1]}, cv=3, prior_variance=1.0).fit(wide, y, weight)
    assert len(caught) == 1
    np.testing.assert_array_equal(model.fitted_[0].predict(X), KNeighborsClassifier(3).fit(X, y).predict(X))
    fitted = KNeighborsClassifier(3).fit(X, y)
    MaxEntStackingClassifier([fitted], cv="prefit", prior_variance=1.0).fit(
        X, y, weight
    )  # nothing is trained: no warning


# scikit-learn

TREE = DecisionTreeClassifier(max_depth=2)
BOTH = [GaussianNB(), TREE]
MIXENT = [MixtureClassifier(1), MaxEntClassifier("bins", prior_variance=1.0)]
FEW = {"prior_variance": 1.0, "cv": 2}
CHECKED = {
    "plain": ({"estimators": BOTH, **FEW}, 62),
    "diagonal": ({"estimators": BOTH, "constraints": "diagonal", "decisions": "hard", **FEW}, 62),
    "boosting": ({"estimators": AdaBoostM1Classifier(n_estimators=2), **FEW}, 61),
    "class": ({"estimators": [GaussianNB()], "regions": InputRegions("class", max_components=1), **FEW}, 62),
    "default": ({"estimators": BOTH}, 62),
    "union": ({"estimators": BOTH, "regions": InputRegions(max_components=2), **FEW}, 62),
    "mixent": ({"estimators": MIXENT, "regions": InputRegions("pooled", max_components=1), **FEW}, 61),
}
LONG = ("default", "union", "mixent")
MARKS = {name: [pytest.mark.slow] * (name in LONG) for name in CHECKED}


@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
@pytest.mark.parametrize("kind", [pytest.param(name, marks=marks) for name, marks in MARKS.items()])
def test_every_check_of_scikit_learn_passes(kind):
    options, n_checks = CHECKED[kind]
    results = check_estimator(MaxEntStackingClassifier(**options), on_fail=None)
    assert len(results) >= n_checks
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_rows_that_no_split_holds_out_take_no_part(blobs):
    X, y = blobs
    fold = np.arange(90) // 3 % 3
    some = [(np.flatnonzero(fold != 0), np.flatnonzero(fold == 0))]
    model = MaxEntStackingClassifier([GaussianNB()], cv=some, prior_variance=1.0, random_state=0).fit(X, y)
    base = GaussianNB().fit(X[fold != 0], y[fold != 0])
    by_hand = MaxEntClassifier(probabilistic={"p": [0, 1, 2]}, prior_variance=1.0)
    by_hand.fit(base.predict_proba(X[fold == 0]), y[fold == 0])
    np.testing.assert_allclose(model.params_.cells, by_hand.params_.cells, atol=1e-7)
    without = [(train, held[y[held] > 0]) for train, held in some]
    with pytest.raises(ValueError, match="class 0"):
        MaxEntStackingClassifier([GaussianNB()], cv=without).fit(X, y)


def test_options_of_named_classifiers_are_options(blobs):
    X, y = blobs
    bases = [("nb", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0)), GaussianNB(), ("v", 0)]
    model = MaxEntStackingClassifier(bases)
    assert model.get_params()["tree__max_depth"] is None and "tree" not in model.get_params(deep=False)
    assert model.set_params(tree__max_depth=2, prior_variance=1.0) is model
    assert bases[1][1].max_depth == 2 and model.prior_variance == 1.0
    other = GaussianNB(var_smoothing=0.1)
    model.set_params(nb=other)
    assert model.estimators[0] == ("nb", other) and model.estimators[2:] == bases[2:]
    with pytest.raises(ValueError, match="Invalid parameter 'bush'"):
        model.set_params(bush__max_depth=2)
    search = GridSearchCV(
        MaxEntStackingClassifier(bases[:2], prior_variance=1.0, random_state=0), {"tree__max_depth": [1, 3]}, cv=3
    ).fit(X, y)
    assert search.best_params_["tree__max_depth"] in (1, 3)
    staged = MaxEntStackingClassifier(AdaBoostM1Classifier(GaussianNB()))
    assert staged.set_params(estimators__n_estimators=3).estimators.n_estimators == 3
