"""Rows without a label: they do not fall into one class, and are used only if held-out rows gain by them."""

import time
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

from mixent import MEDClassifier, MEDTreeClassifier
from mixent.core.driver import Status
from mixent.med.cross_validation import CrossValidation
from mixent.med.functions import KernelDiscriminant
from mixent.med.margins import Laplace
from mixent.med.solving import Search
from mixent.med.training_sets import Subset
from mixent.med.uncertain_labels import solve_uncertain_labels
from mixent.options import LabelUpdates


def clouds(n, label_by, seed=0, n_labelled=20):
    """Two clouds side by side along the first column; the classes are the clouds, or lie across them (label_by=1)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 0] += np.where(rng.random(n) < 0.5, 2, -2)
    y = np.where(X[:, label_by] > 0, "b", "a").astype(object)
    partly = y.copy()
    partly[n_labelled:] = None
    return X, y, partly


@pytest.fixture(scope="module")
def cells():
    """Breast cancer: six labelled rows of each class, then 100 others."""
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    labelled = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:6] for c in (0, 1)])
    rows = np.r_[labelled, rng.permutation(np.setdiff1d(np.arange(len(y)), labelled))[:100]]
    return X[rows], y[rows]


def test_unlabelled_rows_no_longer_fall_into_one_class(cells):
    X, y = cells
    partly = y.astype(object)
    partly[12:] = None
    model = MEDClassifier("rbf", C=1.0, random_state=0).fit(X, partly)
    alone = MEDClassifier("rbf", C=1.0, random_state=0).fit(X[:12], y[:12])
    assert model.score(X[12:], y[12:]) >= alone.score(X[12:], y[12:]) - 0.02 > 0.9
    assert set(model.label_posterior_[12:].argmax(axis=1)) == {0, 1}
    # before: uniform priors, and no constraint on the shares
    Z = (X - model.encoder_.center) / model.encoder_.scale
    prior = np.where((np.arange(len(X)) < 12)[:, None], np.eye(2)[y], 0.5)
    run = solve_uncertain_labels(
        KernelDiscriminant(model.kernel_.gram(Z, Z), 2, np.inf),
        Laplace(1.0),
        prior,
        np.ones(len(X)),
        Search(),
        relaxation=0.5,
        tol=1e-5,
    )
    assert len(set(run.params.q[12:].argmax(axis=1))) == 1


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_unlabelled_rows_that_do_not_help_are_not_used(kernel):
    """The classifier is then that of the labelled rows alone, with their scaling and width of the kernel."""
    X, y, partly = clouds(120, label_by=1)
    options = {"kernel": kernel, "C": 0.3, "random_state": 0}
    model, alone = MEDClassifier(**options).fit(X, partly), MEDClassifier(**options).fit(X[:20], y[:20])
    assert model.unlabelled_gain_ < 0 and alone.unlabelled_gain_ is None
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=1e-6)
    assert not model.multipliers_[20:].any()
    predicted = model.predict_proba(X[20:])
    np.testing.assert_allclose(model.label_posterior_[20:], predicted, atol=0.1)  # with calibrations of other rounds


def test_unlabelled_rows_that_help_are_used_and_C_is_chosen_with_them():
    X, y, partly = clouds(80, label_by=0, seed=2, n_labelled=12)
    model = MEDClassifier(cv=3, random_state=0).fit(X, partly)
    alone = MEDClassifier(cv=3, random_state=0).fit(X[:12], y[:12])
    assert model.unlabelled_gain_ > 0 and model.multipliers_[12:].any()
    assert model.score(X[12:], y[12:]) > alone.score(X[12:], y[12:])
    tried = {entry["C"]: entry["log_loss"] for entry in model.C_tried_}
    assert min(tried, key=tried.get) == model.C_ and max(tried) <= 3
    by_labelled = {entry["C"]: entry["log_loss"] for entry in alone.C_tried_}
    assert all(abs(loss - by_labelled[C]) > 1e-6 for C, loss in tried.items())


def test_without_folds_unlabelled_rows_are_not_used():
    X, y, partly = clouds(60, label_by=0)
    partly[:] = None
    first = [int(np.flatnonzero(y == label)[0]) for label in "ab"]
    partly[first] = y[first]
    model = MEDClassifier(C=1.0, random_state=0).fit(X, partly)
    assert model.unlabelled_gain_ == 0.0 and set(model.support_) <= set(first)


def test_given_class_shares_are_imposed():
    X, _, partly = clouds(100, label_by=0, seed=16, n_labelled=12)
    updates = LabelUpdates(class_prior={"a": 0.4, "b": 0.6})
    model = MEDClassifier(C=1.0, relaxation=updates, random_state=0).fit(X, partly)
    assert model.unlabelled_gain_ > 0
    assert model.label_posterior_[12:, 1].mean() == pytest.approx(0.6, abs=0.01)


def test_label_updates_end_after_a_given_number_of_rounds():
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(25, 2)), pd.DataFrame(rng.dirichlet([1, 1, 1], 25), columns=list("abc"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MEDClassifier(C=3.0, calibration=None, relaxation=LabelUpdates(max_rounds=2)).fit(X, p)
    assert model.run_.n_passes == 2
    assert model.run_.status is Status.STOPPED and model.run_.message == "stopped after max_rounds=2 label updates"


@pytest.mark.parametrize(("n", "C"), [(25, 3.0), (25, 50.0), (100, 50.0)])
def test_uncertain_labels_end_in_seconds(n, C):
    rng = np.random.default_rng(0)
    X, p = rng.normal(size=(n, 2)), pd.DataFrame(rng.dirichlet([1, 1, 1], n), columns=list("abc"))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MEDClassifier("rbf", C=C, calibration=None, random_state=0).fit(X, p)
    assert time.process_time() - began < 5
    assert model.run_.n_passes <= 30 and not model.run_.status.failed


@pytest.mark.parametrize("known", ["constant", "missing"])
def test_columns_that_labelled_rows_do_not_determine_are_scaled_by_the_others(known):
    X, y, partly = clouds(160, label_by=0, n_labelled=30)
    X = np.column_stack([X, np.random.default_rng(1).normal(5000.0, 1000.0, size=160)])
    X[:30, 6] = 5000.0 if known == "constant" else np.nan
    model = MEDClassifier("rbf", C=1.0, random_state=0).fit(X, partly)
    assert model.score(X[30:], y[30:]) > 0.8
    assert np.ptp(model.predict_proba(X[30:])[:, 0]) > 0.5


def test_unlabelled_rows_that_are_not_used_do_not_choose_the_model_of_a_column():
    rng, y = np.random.default_rng(0), np.arange(200) % 2
    X = rng.exponential(size=(200, 3)) ** 1.5
    X[:, 0] *= np.where(y, 1.6, 1)
    partly = np.where(np.arange(200) < 40, np.where(y, "b", "a"), None)
    model = MEDTreeClassifier(C=1.0, random_state=0).fit(X, partly)
    alone = MEDTreeClassifier(C=1.0, random_state=0).fit(X[:40], partly[:40])
    assert model.unlabelled_gain_ < 0 and model.continuous_ == alone.continuous_


@pytest.mark.parametrize(("heavy", "positive"), [(1.0, True), (1e6, False)])
def test_a_gain_of_one_heavy_row_is_not_significant(heavy, positive):
    """All rows gain alike; with the weight of one row in all there is nothing to compare."""
    subset = Subset(np.arange(30), np.eye(2)[np.arange(30) % 2], np.ones(30, bool), np.r_[heavy, np.ones(29)], False)
    folds = CrossValidation(None, None, subset, [], None, "temperature")
    truth = np.where(np.arange(30)[:, None] % 2 == [0, 1], 1.0, -1.0)
    rng = np.random.default_rng(0)
    before, after = truth + 3.0 * rng.normal(size=(30, 2)), truth + 0.1 * rng.normal(size=(30, 2))
    before[0] = -truth[0]
    gain, bound = folds.gain([before], [after])
    assert gain > 0 and (bound > 0) is positive


def test_labelled_rows_with_the_weight_of_few_show_no_gain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) + 4.0 * (np.arange(60) % 2)[:, None]
    y = np.array(["a", "b"], dtype=object)[np.arange(60) % 2]
    y[20:] = None
    weight = np.where(np.arange(60) < 4, 1.0, 1e-6)
    model = MEDClassifier(C=1.0, random_state=0).fit(X, y, sample_weight=weight)
    assert model.unlabelled_gain_ == 0.0
