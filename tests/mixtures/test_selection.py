"""What is chosen is the best of what was tried, whoever computes it, and what was tried can be looked at."""

from itertools import pairwise, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import mixent
from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.base.bounded_loss import fit_temperature
from mixent.core.driver import rounding
from mixent.mixtures import candidates, selection
from mixent.mixtures.fit_plan import QUICK
from mixent.options import Search

SELECTIONS = ("bic", "icl", "dic", "dic_robust", "cbic", "cv")
GROWTHS = ("restart", "incremental")
IRIS, SPECIES = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[SPECIES]
FEW = {"covariance": ["VVI"], "search__max_components": 3, "random_state": 0}


def alternating(n=60, gap=5.0, seed=0):
    """Two classes of two groups each, taking turns along a line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * n, 2))
    X[:, 0] += np.repeat(gap * np.arange(4), n)
    return X, np.repeat(["a", "b", "a", "b"], n)


def alike(n=200, gap=1.0, seed=0):
    """Two classes of one Gaussian each."""
    X, y = np.random.default_rng(seed).normal(size=(n, 2)), np.arange(n) % 2
    return X + gap * y[:, None], y


def overlapping(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(y), 2)) + 1.2 * rng.normal(size=(len(y), 1)).round() + np.c_[y, -y], y


def chosen(model):
    return [r for r in model.search_ if r["chosen"]]


@pytest.fixture
def choices(monkeypatch):
    """Every call of `choose`: options, score, per_class and what came of it."""
    seen, choose = [], selection.choose

    def watched(options, score, per_class):
        best = choose(options, score, per_class)
        seen.append(SimpleNamespace(options=options, score=score, per_class=per_class, best=best))
        return best

    monkeypatch.setattr(selection, "choose", watched)
    return seen


# --- the choice ------------------------------------------------------------------------------------------------------


def imaginary(keys, n_options=1):
    """Options of as many units as there are lists of keys."""
    by_unit = [dict.fromkeys(unit) for unit in keys]
    return [SimpleNamespace(units=by_unit, by_unit=by_unit) for _ in range(n_options)]


KEYS = [("VVI", 1), ("VVI", 2), ("VVI", 3), ("VVV", 1), ("VVV", 2)]


def test_of_a_criterion_that_adds_each_class_takes_its_least_and_all_together_the_least_sum():
    for seed in range(20):
        table = np.random.default_rng(seed).normal(size=(4, len(KEYS)))

        def total(combination, table=table):
            return sum(table[u, KEYS.index(key)] for u, key in enumerate(combination))

        options = imaginary([KEYS] * 4)
        assert selection.choose(options, total, True) == tuple(KEYS[i] for i in table.argmin(axis=1))
        assert selection.choose(options, total, False) == (KEYS[table.sum(axis=0).argmin()],) * 4


def test_taking_turns_ends_where_no_single_change_helps():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        table = {c: rng.normal() for c in product(KEYS, repeat=3)}
        best = selection.choose(imaginary([KEYS] * 3), table.get, True)
        same = min(table[(key,) * 3] for key in KEYS)
        assert table[best] <= same
        for u, key in product(range(3), KEYS):
            assert table[best] <= table[(*best[:u], key, *best[u + 1 :])]


def test_among_equals_the_smallest_of_the_classs_own_is_taken():
    options = imaginary([KEYS, KEYS[:1]])  # the second class has rows for one component only
    assert selection.choose(options, lambda c: -c[0][1], True) == (("VVI", 3), ("VVI", 1))
    assert selection.choose(options, lambda c: 0.0, True) == (("VVI", 1), ("VVI", 1))


@pytest.mark.parametrize("growth", GROWTHS)
def test_the_classes_choose_the_least_of_their_own_lines(growth):
    X, y = overlapping((70, 50, 90))
    model = MixtureClassifier("auto", ["VVI", "EEE"], search=Search("bic", 3, growth=growth, per_class=True))
    model.fit(X, y)
    for c, label in enumerate(model.classes_):
        lines = [r for r in model.search_ if r["class"] == label]
        (best,) = (r for r in lines if r["chosen"])
        assert best["bic"] == min(r["bic"] for r in lines) and len(lines) >= 4
        assert (model.n_components_[c], model.covariance_[c]) == (best["n_components"], best["covariance"])


def test_a_class_of_few_rows_has_one_line_chosen_and_no_more_components_than_its_rows_carry():
    X, y = alternating()
    X, y = np.r_[X, X[:7] + np.array([0, 40])], np.r_[y, ["c"] * 7]  # a third class with rows for one component
    for selection_, growth in product(("bic", "dic", "cv"), GROWTHS):
        options = {
            "search__criterion": selection_,
            "search__growth": growth,
            "search__max_components": 3,
            "random_state": 0,
            "search__cv": 3,
        }
        model = MixtureClassifier("auto", ["VVI"], search=Search(per_class=True)).set_params(**options).fit(X, y)
        assert model.n_components_[2] == 1
        if selection_ != "cv":
            assert [r["class"] for r in chosen(model)] == ["a", "b", "c"]
        same = MixtureClassifier("auto", ["VVI"]).set_params(**{**options, "search__growth": "incremental"}).fit(X, y)
        assert same.n_components_[2] == 1 and len(chosen(same)) == 1


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", ["cbic", "cv"])
def test_the_search_of_all_classes_together_ends_where_no_single_change_helps(choices, growth, name):
    X, y = overlapping((40, 30, 35))
    model = MixtureClassifier("auto", ["VVI", "VVV"], search=Search(name, 2, growth=growth, per_class=True))
    model.set_params(search__cv=2, random_state=0).fit(X, y)
    (seen,) = choices
    own = seen.score(seen.best)
    assert seen.per_class
    for u in range(3):
        for key in {key for options in seen.options for key in options.by_unit[u]}:
            assert own <= seen.score((*seen.best[:u], key, *seen.best[u + 1 :]))
    assert model.n_components_.tolist() == [count for _, count in seen.best]
    if name == "cv":
        (line,) = chosen(model)
        assert line == model.search_[0] and line["log_loss"] == own
        assert model.temperature_ == line["temperature"]
    else:
        assert [r["cbic"] for r in chosen(model)] == [own] * 3


@pytest.mark.parametrize("estimator", [MixtureClassifier, SharedMixtureClassifier])
@pytest.mark.parametrize("name", ["bic", "icl", "dic", "dic_robust", "cbic"])
def test_all_together_the_least_line_is_chosen(estimator, name):
    X, y = overlapping((70, 50, 60))
    model = estimator("auto", ["VVI", "EEE"], search=Search(name, 4), random_state=0).fit(X, y)
    (best,) = chosen(model)
    assert best[name] == min(r[name] for r in model.search_)
    assert np.unique(model.n_components_).tolist() == [best["n_components"]]


# --- folds -----------------------------------------------------------------------------------------------------------


def log_density(stage, X):
    params, center = stage.fitted.params, stage.fitted.problem.family.gaussian.center
    gaussian, weights = params.components.gaussian, params.weights.sum(axis=0) / params.weights.sum()
    pairs = zip(weights, gaussian.means + center, gaussian.full_covs())
    return logsumexp([np.log(w) + multivariate_normal.logpdf(X, m, C) for w, m, C in pairs], axis=0)


@pytest.mark.parametrize("per_class", [False, True])
def test_nested_takes_the_pick_with_the_least_error_on_rows_held_out(per_class):
    """The folds' picks from classifiers of their own; densities of the held-out rows from scipy."""
    X, y = overlapping((60, 50, 70), seed=7)
    folds = [(np.flatnonzero(np.arange(180) % 4 != f), np.flatnonzero(np.arange(180) % 4 == f)) for f in range(4)]
    # as loose as fits are that are only compared, so that the classifiers below are the same to the last bit
    options = {
        "covariance": ["VVI"],
        "search__criterion": "bic",
        "search__growth": "incremental",
        "search__per_class": per_class,
    }
    options |= {"search__max_components": 4, "tol": QUICK.tol, "max_iter": QUICK.max_passes, "random_state": 0}
    model = MixtureClassifier("auto", search=Search(nested=folds)).set_params(**options).fit(X, y)
    parts = [MixtureClassifier("auto").set_params(**options).fit(X[train], y[train]) for train, _ in folds]
    picks = set()
    for part in parts:
        counts = [r["n_components"] for r in chosen(part)]
        picks.add(tuple(counts) if per_class else tuple(counts * 3))
    prior = np.concatenate(
        [np.tile(np.log(np.bincount(y[train]) + 1e-3) - np.log(len(train) + 3e-3), (len(h), 1)) for train, h in folds]
    )
    rows = np.concatenate([held for _, held in folds])
    target, ones = np.eye(3)[y[rows]], np.ones(len(rows))
    errors = {}
    for pick in picks:
        density = np.concatenate(
            [
                np.stack([log_density(_up_to(part.path_[c], k), X[held]) for c, k in enumerate(pick)], axis=1)
                for part, (_, held) in zip(parts, folds)
            ]
        )
        temperature, _, _ = fit_temperature(density, prior, target, ones)
        errors[pick] = np.mean((prior + temperature * density).argmax(axis=1) != y[rows])
    assert len(picks) > 1
    lines = {tuple(np.broadcast_to(r["n_components"], 3).tolist()): r["error"] for r in model.search_}
    assert lines == pytest.approx(errors)
    (best,) = chosen(model)
    pick = tuple(np.broadcast_to(best["n_components"], 3).tolist())
    assert errors[pick] == min(errors.values()) and model.temperature_ == 1.0
    assert sum(pick) == min(sum(p) for p in picks if errors[p] == errors[pick])
    assert model.n_components_.tolist() == list(pick)


def _up_to(path, count):
    return max((s for s in path if s.n_components <= count), key=lambda s: s.n_components)


def test_of_picks_with_the_same_error_the_smallest_is_taken():
    X, y = overlapping((60, 50, 70), seed=5)
    options = {
        "search__criterion": "bic",
        "search__growth": "incremental",
        "search__per_class": True,
        "search__nested": 4,
        "search__max_components": 4,
    }
    model = (
        MixtureClassifier("auto", ["VVI"], random_state=0).set_params(**options).fit(X + 60 * y[:, None], y)
    )  # far apart
    sizes = [int(np.broadcast_to(r["n_components"], 3).sum()) for r in model.search_]
    assert len(set(sizes)) > 1 and all(r["error"] == 0 for r in model.search_)
    assert model.n_components_.sum() == min(sizes)


def test_nested_shared_components():
    model = SharedMixtureClassifier("auto", search=Search("bic", nested=3)).set_params(**FEW).fit(IRIS, SPECIES)
    (best,) = chosen(model)
    assert best["error"] == min(r["error"] for r in model.search_) and len(model.search_) <= 3
    assert model.n_components_ == best["n_components"] and best["folds"] == 3


@pytest.mark.parametrize("growth", GROWTHS)
def test_cv_of_a_plain_mixture_is_the_log_density_of_rows_held_out(growth):
    """Without a prior, which quick fits do not compute again after convergence (nor does growth)."""
    X, _ = alternating(20)
    folds = [(np.flatnonzero(np.arange(80) % 3 != f), np.flatnonzero(np.arange(80) % 3 == f)) for f in range(3)]
    prior = None if growth == "restart" else "auto"
    options = {"search__growth": growth, "prior": prior, "random_state": 0}
    options |= {"tol": QUICK.tol, "max_iter": QUICK.max_passes}
    model = GaussianMixture("auto", "EII", search=Search("cv", 4, cv=folds)).set_params(**options).fit(X)
    for record in model.search_:
        K = record["n_components"]
        fits = [GaussianMixture(K, "EII").set_params(**options).fit(X[train]) for train, _ in folds]
        held = sum(fit.score_samples(X[rows]).sum() for fit, (_, rows) in zip(fits, folds))
        assert record["cv"] == pytest.approx(-2 * held, rel=1e-9)
    (best,) = chosen(model)
    assert best["cv"] == min(r["cv"] for r in model.search_) and model.n_components_ == best["n_components"]


def test_a_plain_mixture_makes_its_own_folds_and_counts_weights():
    X, _ = alternating()
    model = GaussianMixture("auto", "EII", search=Search("cv", 5), random_state=0).fit(X)
    assert model.n_components_ == 4 and len(model.search_) == 5
    heavy = GaussianMixture("auto", "EII", search=Search("cv", 2), random_state=0)
    record, one = (heavy.fit(X, sample_weight=w).search_[0] for w in (np.full(240, 3.0), None))
    assert record["cv"] == pytest.approx(3 * one["cv"], rel=1e-2)


def test_few_rows_are_not_cut_into_folds():
    X, y = alternating(10)
    model = MixtureClassifier("auto", search=Search(per_class=True)).fit(X, y)
    assert model.search_ == [] and model.n_components_.tolist() == [1, 1]
    with pytest.warns(UserWarning, match="nested"):
        nested = MixtureClassifier("auto", search=Search("bic", nested=3), random_state=0).fit(X, y)
    plain = MixtureClassifier("auto", search="bic", random_state=0).fit(X, y)
    assert nested.search_ == plain.search_ != []
    assert SharedMixtureClassifier().fit(X, y).n_components_ == 2


def test_a_ladder_of_shared_components_ends_when_rows_held_out_have_lost_twice():
    X, y = alternating(30)
    model = SharedMixtureClassifier("auto", ["EII"], search=Search(max_components=32), random_state=0).fit(X, y)
    counts = [record["n_components"] for record in model.search_]
    assert 1 not in counts  # one component for all: all classes are alike
    assert max(counts) < 16  # of 16, for which each fold has rows
    assert model.n_components_ >= 4 and model.score(X, y) > 0.97


# --- the same for everyone -------------------------------------------------------------------------------------------


def fitted(model):
    return [model.weights_, model.means_, model.covariances_]


@pytest.mark.parametrize("name", ["bic", "cv"])
def test_the_same_seed_gives_the_same_model(name):
    X, y = overlapping((70, 50, 60))
    for estimator, growth in product((MixtureClassifier, SharedMixtureClassifier), GROWTHS):
        options = {**FEW, "search__criterion": name, "search__growth": growth, "search__cv": 2, "random_state": 5}
        a, b = (estimator("auto").set_params(**options).fit(X, y) for _ in range(2))
        assert a.search_ == b.search_
        for one, other in zip(fitted(a), fitted(b)):
            np.testing.assert_array_equal(one, other)


def test_other_processes_change_no_bit(monkeypatch):
    X, y = overlapping((70, 50, 60))
    estimators = [
        MixtureClassifier("auto", ["VVI", "EEE"], search=Search("dic", 3, growth="incremental")),
        MixtureClassifier("auto", ["VVI"], search=Search(max_components=3, cv=2, per_class=True)),
        SharedMixtureClassifier("auto", ["VVI", "VVV"], search=Search(max_components=4, cv=2)),
        GaussianMixture("auto", ["VVI", "EEE"], search=Search(max_components=3, growth="incremental")),
    ]
    alone = [e.set_params(n_jobs=1, random_state=0).fit(X, y) for e in estimators]
    monkeypatch.setattr(candidates, "SERIAL", 0.0)
    for one in alone:
        search, before = one.search_, fitted(one)
        told = []
        other = one.set_params(n_jobs=2, progress=lambda done, total, text, told=told: told.append((done, total)))
        other.fit(X, y)
        assert other.search_ == search and 1 <= told[0][0] <= 2  # both structures at once
        for a, b in zip(before, fitted(other)):
            np.testing.assert_array_equal(a, b)


def test_little_work_stays_in_this_process(monkeypatch):
    calls = []
    monkeypatch.setattr("joblib.Parallel", lambda *a, **k: calls.append(a))
    assert candidates.map_tasks(lambda t: t + 1, [1, 2, 3], 2, None, str) == [2, 3, 4]
    monkeypatch.setattr(candidates, "SERIAL", 0.0)
    assert candidates.map_tasks(lambda t: t + 1, [1], 2, None, str) == [2]  # nothing to share
    assert candidates.map_tasks(lambda t: t + 1, [1, 2], 1, None, str) == [2, 3] and not calls


# --- the truth -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", ["bic", "icl"])
def test_two_groups_in_each_class_are_found(name, growth):
    for seed in range(2):
        X, y = alternating(seed=seed)
        options = {"search__criterion": name, "search__growth": growth, "search__max_components": 4, "random_state": 0}
        for per_class in (False, True):
            model = (
                MixtureClassifier("auto", ["VVV"], search=Search(per_class=per_class)).set_params(**options).fit(X, y)
            )
            assert model.n_components_.tolist() == [2, 2]
        shared = (
            SharedMixtureClassifier("auto", ["VVV"]).set_params(**{**options, "search__max_components": 6}).fit(X, y)
        )
        assert shared.n_components_ == 4


@pytest.mark.parametrize("growth", GROWTHS)
def test_held_out_rows_ask_for_the_groups_there_are(growth):
    """Log-loss is next to nothing once all groups are there, so more may win by a hair; fewer may not."""
    X, y = alternating()
    options = {"search__growth": growth, "search__max_components": 4, "random_state": 0}
    model = MixtureClassifier("auto", ["VVV"], search=Search(per_class=True)).set_params(**options).fit(X, y)
    assert (model.n_components_ >= 2).all() and model.search_[0]["error"] < 0.05
    lines = {tuple(np.broadcast_to(r["n_components"], 2).tolist()): r["log_loss"] for r in model.search_}
    assert lines[1, 1] > 4 * lines[2, 2]
    if growth == "incremental":  # a single start by k-means may miss the groups of a fold
        assert lines[2, 2] < model.search_[0]["log_loss"] + 0.01
    shared = SharedMixtureClassifier("auto", ["VVV"]).set_params(**options).fit(X, y)
    assert shared.n_components_ == 4


@pytest.mark.parametrize("growth", GROWTHS)
def test_dic_overfits_where_bic_does_not(growth):
    """Its known fault: no penalty for classes of equal size, and no bound. The truth is one Gaussian per class."""
    X, y = alike()
    options = {"search__growth": growth, "search__max_components": 6, "random_state": 0}
    dic, bic, cbic = (
        MixtureClassifier("auto", ["VVV"], search=name).set_params(**options).fit(X, y).n_components_
        for name in ("dic", "bic", "cbic")
    )
    assert bic.tolist() == cbic.tolist() == [1, 1] and (dic >= 4).all()


# --- what can be looked at -------------------------------------------------------------------------------------------


def check_path(stages, weight):
    assert [s.n_components for s in stages] == list(range(1, len(stages) + 1))
    for a, b in pairwise(stages):
        assert b.log_likelihood >= a.log_likelihood - rounding(a.log_likelihood, weight)
    assert all(s.evaluations > 0 and s.converged for s in stages)


def test_the_path_of_growth_can_be_looked_at():
    options = {
        **FEW,
        "search__growth": "incremental",
        "search__criterion": "bic",
        "search__max_components": 4,
        "prior": None,
    }
    model = MixtureClassifier("auto", search=Search(per_class=True)).set_params(**options).fit(IRIS, SPECIES)
    assert len(model.path_) == 3
    for c, stages in enumerate(model.path_):
        check_path(stages, 50)
        lines = [r for r in model.search_ if r["class"] == model.classes_[c]]
        assert [r["log_likelihood"] for r in lines] == [s.log_likelihood for s in stages]
        assert [r["evaluations"] for r in lines] == [s.evaluations for s in stages]
        assert stages[-1].n_components >= model.n_components_[c]
    shared = SharedMixtureClassifier("auto").set_params(**options).fit(IRIS, SPECIES)
    check_path(shared.path_, 150)
    mixture = GaussianMixture("auto").set_params(**options).fit(IRIS)
    check_path(mixture.path_, 150)
    fixed = MixtureClassifier(
        {"setosa": 1, "versicolor": 2, "virginica": 3}, "VVI", search=Search(growth="incremental"), prior=None
    )
    fixed.fit(IRIS, SPECIES)
    for count, stages in zip((1, 2, 3), fixed.path_):
        check_path(stages, 50)
        assert len(stages) == count
    three = SharedMixtureClassifier(3, "VVI", search=Search(growth="incremental"), prior=None).fit(IRIS, SPECIES)
    check_path(three.path_, 150)
    assert len(three.path_) == 3 and MixtureClassifier(2, "VVI").fit(IRIS, SPECIES).path_ == []


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize("name", SELECTIONS)
def test_every_way_to_choose_fits_iris(name, growth):
    pd = pytest.importorskip("pandas")
    options = {**FEW, "search__criterion": name, "search__growth": growth, "search__cv": 2}
    for estimator in (
        MixtureClassifier("auto").set_params(**options),
        MixtureClassifier("auto", search=Search(per_class=True)).set_params(**options),
        SharedMixtureClassifier("auto").set_params(**options),
        MixtureClassifier("auto", search=Search(nested=2)).set_params(**options) if name != "cv" else None,
    ):
        if estimator is None:
            continue
        model = estimator.fit(IRIS, SPECIES)
        assert model.score(IRIS, SPECIES) > 0.9
        apart = "class" in model.search_[0]
        assert len(chosen(model)) == (3 if apart else 1)
        assert apart == (model._group("search").per_class and name != "cv")
        frame = pd.DataFrame(model.search_)
        assert len(frame) == len(model.search_) and {"n_components", "covariance", "chosen"} <= set(frame)
        key = "log_loss" if name == "cv" else ("error" if model._group("search").nested else name)
        assert np.isfinite(frame[key].astype(float)).all()
        assert bool(model.path_) == (growth == "incremental")


@pytest.mark.parametrize("name", ["bic", "dic"])
def test_candidates_kept_by_the_criterion(name):
    options = {
        **FEW,
        "search__criterion": name,
        "search__growth": "incremental",
        "search__grow_by": "criterion",
        "search__max_components": 2,
    }
    for estimator in (MixtureClassifier, SharedMixtureClassifier):
        plain = estimator("auto").set_params(**{**options, "search__grow_by": "likelihood"}).fit(IRIS[:, 2:], SPECIES)
        model = estimator("auto").set_params(**options).fit(IRIS[:, 2:], SPECIES)
        assert model.search_[-1][name] <= plain.search_[-1][name] + 1e-6  # of all candidates, not of the best two


def test_a_saved_model_keeps_what_was_tried(tmp_path):
    options = {**FEW, "search__growth": "incremental", "search__max_components": 2}
    for estimator in (
        MixtureClassifier("auto", search=Search("dic", per_class=True)).set_params(**options),
        SharedMixtureClassifier("auto", search="cbic").set_params(**options),
        GaussianMixture("auto", search="icl").set_params(**options),
    ):
        model = estimator.fit(IRIS, SPECIES)
        mixent.save(model, tmp_path / "m.mixent")
        again = mixent.load(tmp_path / "m.mixent")
        assert again.search_ == model.search_ and len(again.path_) == len(model.path_) > 0
        both = [np.ravel(m.path_ if isinstance(m.path_[0], list) else [m.path_]) for m in (model, again)]
        for a, b in zip(*both):
            for name in ("n_components", "covariance", "log_likelihood", "n_free", "evaluations", "candidates"):
                assert getattr(a, name) == getattr(b, name)
            np.testing.assert_array_equal(a.fitted.params.weights, b.fitted.params.weights)


# --- messages --------------------------------------------------------------------------------------------------------


def test_every_fold_of_the_nested_protocol_is_used(choices):
    X, y = alternating(1300)
    MixtureClassifier("auto", "EII", search=Search("bic", 1, nested=5), random_state=0).fit(X, y)
    assert len(choices) == 5  # the choice of each fold


def test_shared_components_are_delivered_as_the_folds_saw_them():
    """Trained, and softened by the temperature found for trained ones."""
    X, y = alternating(30)
    model = SharedMixtureClassifier(
        "auto", ["VVI"], training="conditional", search=Search(max_components=3), random_state=0
    ).fit(X, y)
    (chosen,) = [record for record in model.search_ if record["chosen"]]
    assert model.temperature_ == chosen["temperature"]


def test_growth_to_a_given_size_searches_structures_at_that_size():
    options = {"search__growth": "incremental", "search__criterion": "cv", "random_state": 0}
    model = GaussianMixture(3, ["EII", "VVI"]).set_params(**options).fit(IRIS)
    assert [r["n_components"] for r in model.search_] == [3, 3] and model.n_components_ == 3
    assert [stage.n_components for stage in model.path_] == [1, 2, 3]
    lines = {
        r["n_components"]: r
        for r in GaussianMixture("auto", "EII", search=Search(max_components=3)).set_params(**options).fit(IRIS).search_
    }
    (same,) = [r for r in model.search_ if r["covariance"] == "EII"]
    assert same["cv"] == pytest.approx(lines[3]["cv"], rel=1e-12)
