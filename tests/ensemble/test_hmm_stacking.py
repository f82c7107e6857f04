"""Classifiers combined by hidden Markov models of their sequence."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_softmax
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from mixent import AdaBoostM1Classifier, HMMStackingClassifier
from mixent.base.bounded_loss import log_with_uniform
from mixent.core.driver import Status
from mixent.core.executors import Serial
from mixent.data import DataWarning
from mixent.ensemble.hmm_stacking import FLOOR, log_likelihoods

PLAIN = {"cv": "train", "calibration": None}  # as in the document: nothing is drawn, nothing is tempered


def said(n_stages=3, n_classes=2, n=80, seed=0, sure=1.0):
    """A table with what classifiers say, a pmf each, and the classes: (n, M C), (n,)."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    right = np.eye(n_classes)[y][:, None] * rng.uniform(0.5, 2.5, size=(1, n_stages, 1))
    logits = sure * (right + rng.normal(size=(n, n_stages, n_classes)))
    return np.exp(log_softmax(logits, axis=2)).reshape(n, -1), y


def columns(n_stages=3, n_classes=2):
    """The classifiers, whose answers stand in the table."""
    return [(f"c{k}", [k * n_classes + i for i in range(n_classes)]) for k in range(n_stages)]


def by_paths(start, trans, proba):
    """P[O] as the sum over all paths of decisions, for one row (M, C); trans (M - 1, C, C)."""
    n_stages, n_classes = proba.shape
    total = 0.0
    for path in itertools.product(range(n_classes), repeat=n_stages):
        value = start[path[0]] * proba[0, path[0]]
        for k in range(1, n_stages):
            value *= trans[k - 1, path[k - 1], path[k]] * proba[k, path[k]]
        total += value
    return total


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_classifier_is_a_mixture_over_its_decisions(n_classes):
    """P_c[O] = sum_i pi^c(i) P[C_1 = i]."""
    X, y = said(1, n_classes)
    for transitions in ("per_step", "shared"):
        model = HMMStackingClassifier(columns(1, n_classes), transitions=transitions, **PLAIN).fit(X, y)
        joint = model.class_prior_ * (X @ model.start_.T)
        np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("transitions", ["per_step", "shared"])
def test_probabilities_are_sums_over_all_paths(transitions, n_classes):
    X, y = said(3, n_classes)
    model = HMMStackingClassifier(columns(3, n_classes), transitions=transitions, **PLAIN).fit(X, y)
    trans = model.transitions_
    assert trans.shape == ((n_classes, 2, n_classes, n_classes) if transitions == "per_step" else (n_classes,) * 3)
    if transitions == "shared":
        trans = np.repeat(trans[:, None], 2, axis=1)
    rows = X[:10].reshape(10, 3, n_classes)
    lik = np.array([[by_paths(p, A, row) for p, A in zip(model.start_, trans)] for row in rows])
    np.testing.assert_allclose(log_likelihoods(model.chains_, np.log(rows), Serial()), np.log(lik), rtol=1e-12)
    joint = model.class_prior_ * lik
    np.testing.assert_allclose(model.predict_proba(X[:10]), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)


def forward(trans, proba):
    """(3.6) with the uniform start: alpha of every stage, rows (n, M, C)."""
    n_stages, n_classes = proba.shape[1:]
    alphas = [proba[:, 0] / n_classes]
    for k in range(n_stages - 1):
        alphas.append((alphas[k] @ trans[k]) * proba[:, k + 1])
    return alphas


def backward(trans, proba):
    """(3.7), which begins with beta = 1 at the last stage."""
    betas = [np.ones_like(proba[:, 0])]
    for k in reversed(range(proba.shape[1] - 1)):
        betas.insert(0, (proba[:, k + 1] * betas[0]) @ trans[k].T)
    return betas


def test_the_printed_recursions_with_the_printed_start():
    """(3.6) gives the probabilities, and one more pass of (3.6) to (3.10) changes nothing."""
    X, y = said(4, 2)
    model = HMMStackingClassifier(
        columns(4), transitions="per_step", start="uniform", transition_smoothing=0.0, tol=1e-13
    )
    model.set_params(max_iter=20_000, **PLAIN).fit(X, y)
    np.testing.assert_array_equal(model.start_, np.full((2, 2), 0.5))
    proba = X.reshape(-1, 4, 2)
    lik = np.stack([forward(A, proba)[-1].sum(axis=1) for A in model.transitions_], axis=1)
    joint = model.class_prior_ * lik
    np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    for c, trans in enumerate(model.transitions_):
        mine = proba[y == c]
        alphas, betas = forward(trans, mine), backward(trans, mine)
        whole = alphas[-1].sum(axis=1)
        assert model.runs_[c].objective == pytest.approx(np.log(whole).sum(), rel=1e-12)
        for k in range(3):
            ahead = mine[:, k + 1] * betas[k + 1]
            xi = alphas[k][:, :, None] * trans[k] * ahead[:, None] / whole[:, None, None]  # (3.8)
            gamma = alphas[k] * betas[k] / whole[:, None]  # (3.9)
            np.testing.assert_allclose(xi.sum(axis=0) / gamma.sum(axis=0)[:, None], trans[k], atol=1e-4)  # (3.10)


@pytest.mark.parametrize("start", ["learned", "uniform"])
@pytest.mark.parametrize("prior", [0.0, 1.0])
@pytest.mark.parametrize("transitions", ["per_step", "shared"])
def test_the_objective_never_falls(transitions, prior, start):
    X, y = said(6, 3, sure=2.0)
    options = {"transitions": transitions, "transition_smoothing": prior, "start": start}
    model = HMMStackingClassifier(columns(6, 3), **options, **PLAIN).fit(X, y)
    assert model.converged_ and model.n_iter_ == max(run.n_passes for run in model.runs_)
    for run, chain in zip(model.runs_, model.chains_):
        values = [step.objective for step in run.trace if step.accepted]
        assert len(values) > 2 and run.status is Status.CONVERGED
        assert (np.diff(values) >= -1e-9 * np.abs(values[0])).all()
        assert values[-1] > values[0]
        log_prior = chain.problem.log_prior(chain.params)
        assert (log_prior < 0) == (prior > 0)
    log_lik = log_likelihoods(model.chains_, np.log(X.reshape(-1, 6, 3)), Serial())
    for c, (run, chain) in enumerate(zip(model.runs_, model.chains_)):
        value = log_lik[y == c, c].sum() + chain.problem.log_prior(chain.params)
        assert run.objective == pytest.approx(value, rel=1e-12)


def test_a_learned_start_is_at_least_as_likely():
    X, y = said(3)
    runs = [
        HMMStackingClassifier(columns(), start=s, transition_smoothing=0.0, tol=1e-10, **PLAIN).fit(X, y).runs_
        for s in ("learned", "uniform")
    ]
    assert all(a.objective > b.objective for a, b in zip(*runs))


def test_weight_two_is_the_row_twice():
    X, y = load_iris(return_X_y=True)
    weight = 1 + (np.arange(150) % 3)
    bases = [("all", GaussianNB()), ("two", GaussianNB())]
    options = {"inputs": {"two": [0, 1]}, **PLAIN}
    weighted = HMMStackingClassifier(bases, **options).fit(X, y, weight)
    repeated = HMMStackingClassifier(bases, **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_log_proba(X), repeated.predict_log_proba(X), rtol=1e-6)
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_, rtol=1e-12)


def test_weight_zero_is_the_row_left_out():
    """Even if it is all of a class."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["b", "a", "c"])[y]
    some = HMMStackingClassifier([GaussianNB()], **PLAIN).fit(X, names, (y < 2).astype(float))
    two = HMMStackingClassifier([GaussianNB()], **PLAIN).fit(X[y < 2], names[y < 2])
    assert some.classes_.tolist() == ["a", "b"]
    np.testing.assert_allclose(some.predict_log_proba(X[:5]), two.predict_log_proba(X[:5]), rtol=1e-9)
    absent = np.where(y < 2, names, None)
    blank = HMMStackingClassifier([GaussianNB()], **PLAIN).fit(X, absent)
    np.testing.assert_allclose(blank.predict_log_proba(X[:5]), two.predict_log_proba(X[:5]), rtol=1e-9)
    few = HMMStackingClassifier([GaussianNB()], **PLAIN).fit(X, np.where((y < 2) & (np.arange(150) < 60), names, None))
    np.testing.assert_allclose(few.class_prior_, [1 / 6, 5 / 6], rtol=1e-12)


def test_permuting_class_names_permutes_the_answer():
    X, y = load_iris(return_X_y=True)
    bases = [GaussianNB(), DecisionTreeClassifier(max_depth=1, random_state=0)]
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    straight = HMMStackingClassifier(bases, cv=folds).fit(X, np.array(["a", "b", "c"])[y])
    turned = HMMStackingClassifier(bases, cv=folds).fit(X, np.array(["c", "a", "b"])[y])
    order = [2, 0, 1]  # "a", "b", "c" are now these
    np.testing.assert_allclose(straight.predict_proba(X), turned.predict_proba(X)[:, order], rtol=1e-6, atol=1e-12)
    assert turned.temperature_ == pytest.approx(straight.temperature_, rel=1e-6)
    np.testing.assert_allclose(straight.start_, turned.start_[order][:, order], rtol=1e-6)


def test_rows_in_any_order_give_the_same_chains():
    X, y = said(4)
    turned = np.random.default_rng(5).permutation(len(y))
    one, other = (HMMStackingClassifier(columns(4), **PLAIN).fit(X[i], y[i]) for i in (np.arange(len(y)), turned))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-9)


def test_one_who_abstains_is_summed_out():
    """The chain goes on through it: the two transitions around it compose to one."""
    X, y = said(4)
    holes = X.copy()
    holes[:, 2:4] = np.nan
    model = HMMStackingClassifier(columns(4), transitions="per_step", **PLAIN).fit(X, y)
    through = np.stack([[A[0] @ A[1], A[2]] for A in model.transitions_])
    rows = np.delete(X, [2, 3], axis=1).reshape(-1, 3, 2)
    lik = np.array([[by_paths(p, A, row) for p, A in zip(model.start_, through)] for row in rows])
    joint = model.class_prior_ * lik
    np.testing.assert_allclose(model.predict_proba(holes), joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 8), np.nan))[0], model.class_prior_, rtol=1e-12)


def test_one_who_says_nothing_changes_nothing():
    X, y = said(3)
    silent = np.concatenate([X, np.full((len(X), 2), np.nan)], axis=1)
    silent[0, -2:] = 0.5  # which says nothing either
    options = {"transitions": "per_step", "tol": 1e-11, "max_iter": 5000, **PLAIN}
    without = HMMStackingClassifier(columns(3), **options).fit(X, y)
    beside = HMMStackingClassifier(columns(4), **options).fit(silent, y)
    np.testing.assert_allclose(without.predict_proba(X), beside.predict_proba(silent), rtol=1e-4)
    np.testing.assert_allclose(beside.transitions_[:, -1], 0.5, rtol=1e-9)  # nothing is known of what follows


def test_certain_probabilities_are_hard_decisions():
    X, y = said(4)
    sharp = np.eye(2)[X.reshape(-1, 4, 2).argmax(axis=2)].reshape(len(X), -1)
    hard = HMMStackingClassifier(columns(4), decisions="hard", **PLAIN).fit(X, y)
    certain = HMMStackingClassifier(columns(4), **PLAIN).fit(sharp, y)
    np.testing.assert_array_equal(hard.predict_proba(X), certain.predict_proba(sharp))
    labels = pd.DataFrame({f"c{k}": sharp[:, 2 * k + 1].astype(int).astype(object) for k in range(4)})
    named = HMMStackingClassifier(list(labels), **PLAIN)
    named.set_params(estimators=[(name, name) for name in labels]).fit(labels, y)
    np.testing.assert_array_equal(hard.predict_proba(X), named.predict_proba(labels))


def test_hard_decisions_are_counted_markov_chains():
    """Up to the floor, states are seen: start and transitions are shares of counts."""
    X, y = said(3, n=400)
    model = HMMStackingClassifier(
        columns(3), transitions="per_step", decisions="hard", transition_smoothing=0.0, tol=1e-12
    )
    model.set_params(**PLAIN).fit(X, y)
    seen = X.reshape(-1, 3, 2).argmax(axis=2)
    for c in range(2):
        mine = seen[y == c]
        np.testing.assert_allclose(model.start_[c], np.bincount(mine[:, 0]) / len(mine), atol=1e-4)
        for k in range(2):
            pairs = np.zeros((2, 2))
            np.add.at(pairs, (mine[:, k], mine[:, k + 1]), 1)
            np.testing.assert_allclose(model.transitions_[c, k], pairs / pairs.sum(axis=1, keepdims=True), atol=1e-4)


def test_one_who_is_certain_and_wrong_makes_nothing_impossible():
    X = np.tile([[1.0, 0.0], [0.0, 1.0]], (10, 1))
    y = np.tile([0, 1], 10)
    model = HMMStackingClassifier(columns(1), transition_smoothing=0.0, **PLAIN).fit(X, y)
    strange = np.array([[1.0, 0.0]])
    log_proba = model.predict_log_proba(strange)
    assert np.isfinite(log_proba).all() and log_proba[0, 1] == pytest.approx(np.log(FLOOR), rel=1e-3)


def test_the_temperature_softens_what_repeats_itself():
    """Thirty who look at one number through noise count as thirty, until rows held out are asked."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=800)
    number = y - 0.5 + rng.normal(size=800)
    logits = number[:, None] + 2 * rng.normal(size=(800, 30))
    X = expit(np.stack([-logits, logits], axis=2)).reshape(800, -1)
    many, new, y, truth = X[:400], X[400:], y[:400], y[400:]
    options = {"estimators": columns(30), "cv": "prefit", "random_state": 0}
    plain = HMMStackingClassifier(calibration=None, **options).fit(many, y)
    soft = HMMStackingClassifier(**options).fit(many, y)
    assert plain.temperature_ == 1.0 and soft.temperature_ < 0.5
    assert log_loss(truth, soft.predict_proba(new)) < log_loss(truth, plain.predict_proba(new))
    ratio = np.diff(soft.predict_log_proba(new)) - np.diff(np.log(soft.class_prior_))
    whole = np.diff(plain.predict_log_proba(new)) - np.diff(np.log(plain.class_prior_))
    np.testing.assert_allclose(ratio, soft.temperature_ * whole, rtol=1e-6, atol=1e-9)


def test_the_temperature_is_of_rows_the_chains_have_not_seen():
    X, y = said(4, n=120, sure=3.0)
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    model = HMMStackingClassifier(columns(4), cv=folds).fit(X, y)
    parts, truth = [], []
    for train, held in folds:
        one = HMMStackingClassifier(columns(4), **PLAIN).fit(X[train], y[train])
        parts.append(one.predict_log_proba(X[held]) - np.log(one.class_prior_))
        truth.append(y[held])
    density, truth = np.concatenate(parts), np.concatenate(truth)

    def loss(t):
        joint = log_with_uniform(log_softmax(np.log(model.class_prior_) + t * density, axis=1))
        return -joint[np.arange(len(truth)), truth].mean()

    assert 0.02 < model.temperature_ < 1
    assert loss(model.temperature_) <= min(map(loss, np.linspace(0.02, 1, 500))) + 1e-6


def test_too_few_rows_to_hold_out_leave_the_temperature_at_one():
    X, y = np.array([[0.9, 0.1], [0.2, 0.8]]), [0, 1]
    model = HMMStackingClassifier(columns(1), cv="train").fit(X, y)
    assert model.temperature_ == 1.0 and model.predict(X).tolist() == [0, 1]


def test_a_class_of_one_row():
    """It is never held out, so nothing is said of it and its chain stays as it began."""
    X, y = said(3, 3, n=60)
    keep = np.flatnonzero((y < 2) | (np.cumsum(y == 2) == 1) & (y == 2))
    with pytest.warns(DataWarning, match="one row"):
        model = HMMStackingClassifier(columns(3, 3), cv=4, random_state=0).fit(X[keep], y[keep])
    np.testing.assert_allclose(model.start_[2], 1 / 3)
    assert model.predict(X[keep]).shape == keep.shape


def test_a_class_that_a_split_never_trains_on():
    """Its chain says as little as at the start; the temperature is found all the same."""
    X, y = said(3, 3, n=60)
    first = np.flatnonzero(y == 2)
    others = np.flatnonzero(y < 2)
    half = np.array_split(others, 2)
    folds = [(half[0], np.concatenate([first, half[1]])), (np.concatenate([first, half[1]]), half[0])]
    bases = [(name, dict(enumerate(places))) for name, places in columns(3, 3)]
    model = HMMStackingClassifier(bases, cv=folds).fit(X, y)
    assert 0 < model.temperature_ <= 1 and model.score(X, y) > 0.6


def test_given_class_priors_move_the_odds():
    X, y = said(3)
    even, other = (HMMStackingClassifier(columns(3), class_prior=p, **PLAIN).fit(X, y) for p in ([1, 1], [0.2, 0.6]))
    np.testing.assert_allclose(other.class_prior_, [0.25, 0.75], rtol=1e-12)
    moved = np.diff(other.predict_log_proba(X)) - np.diff(even.predict_log_proba(X))
    np.testing.assert_allclose(moved, np.log(3), rtol=1e-9)


def test_label_probabilities_count_by_their_shares():
    X, y = said(3)
    options = {"estimators": columns(3), "cv": "prefit", "calibration": None}
    sure = HMMStackingClassifier(**options).fit(X, np.eye(2)[y])
    known = HMMStackingClassifier(**options).fit(X, y)
    np.testing.assert_allclose(sure.predict_proba(X), known.predict_proba(X), rtol=1e-12)
    shares = 0.7 * np.eye(2)[y] + 0.15
    soft = HMMStackingClassifier(**options).fit(X, shares)
    both = HMMStackingClassifier(**options).fit(np.repeat(X, 2, axis=0), np.tile([0, 1], len(y)), shares.ravel())
    np.testing.assert_allclose(soft.predict_proba(X), both.predict_proba(np.repeat(X, 2, axis=0))[::2], rtol=1e-9)


def test_stages_of_a_boosting():
    X, y = load_breast_cancer(return_X_y=True)
    names = np.array(["malignant", "benign"])[y]
    result = []
    boosting = AdaBoostM1Classifier(DecisionTreeClassifier(max_depth=1, random_state=0), 8)
    model = HMMStackingClassifier(boosting, random_state=0, progress=lambda *what: result.append(what)).fit(X, names)
    assert model.base_names_ == tuple(f"stage {k}" for k in range(1, 9))
    assert len(model.chains_) == 2 and model.score(X, names) > 0.93
    assert model.score(X, names) > 1 - model.base_errors_.min()
    assert any("fold" in text for *_, text in result) and any("objective" in text for *_, text in result)
    joint = model.predict_proba(X)
    moved = model.adjust_priors(X[names == "benign"])
    assert moved.class_prior_[0] > 0.9 > model.class_prior_[0]
    np.testing.assert_array_equal(model.predict_proba(X), joint)


def test_threads_change_no_bit():
    X, y = said(10, 3, n=3000)
    one, two = (HMMStackingClassifier(columns(10, 3), cv="train", n_jobs=k, random_state=0).fit(X, y) for k in (1, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes():
    bases = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0)), ("bayes", GaussianNB())]
    results = check_estimator(HMMStackingClassifier(bases), on_fail=None)
    assert len(results) >= 62
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}
