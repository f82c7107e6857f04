"""The estimator: rules that stand after the fit, streams, labels, sources of all kinds, and what it refuses."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from mixent.datasets import simulate_votes
from mixent.fusion import Calibration, Fuser, LongAnswers, Source, methods
from mixent.fusion.crowd_models import MODELS

from .panels import METHODS, SEARCHED, panel, taken

SUMS = ("sum", "majority", "ml-sum", "composite", "trimmed-mean")


def fused(drawn, method="auto", y=None, **options):
    return Fuser(drawn.sources, method=method, **options).fit(drawn.answers, y)


@pytest.mark.parametrize("kind", ["hard", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_the_rule_gives_the_fitted_posteriors_again(method, kind):
    drawn = panel(0, n=80, kind=kind, gaps=0.1)
    fuser = fused(drawn, method)
    np.testing.assert_allclose(fuser.predict_proba(drawn.answers), fuser.posterior_, atol=1e-12)
    assert (fuser.predict(drawn.answers) == fuser.labels_).all()
    assert (fuser.labels_ == fuser.classes_[fuser.posterior_.argmax(axis=1)]).all()
    for i in (0, 3, 41):
        one = {name: said[i] for name, said in drawn.answers.items()}
        np.testing.assert_allclose(list(fuser.fuse_one(one).values()), fuser.posterior_[i], atol=1e-12)
    assert list(fuser.fuse_one(one)) == ["a", "b", "c"]


def test_one_item_in_every_form():
    drawn = panel(1, n=60, J=2, kind="mixed")
    fuser = fused(drawn, "ml-product")
    proba = {"a": 0.2, "b": 0.3, "c": 0.5}
    forms = [proba, list(proba.values()), np.array(list(proba.values())), {"b": 0.3, "a": 0.2}]
    found = [fuser.fuse_one({"s0": "a", "s1": said}) for said in forms]
    for one in found[1:]:
        assert one == pytest.approx(found[0])
    table = {"s0": ["a"], "s1": [list(proba.values())]}
    np.testing.assert_allclose(list(found[0].values()), fuser.predict_proba(table)[0])
    np.testing.assert_allclose(list(fuser.fuse_one({"s0": None}).values()), fuser.prior_, rtol=1e-9)
    assert fuser.fuse_one({"s0": "a"}) == pytest.approx(fuser.fuse_one({"s0": "a", "s1": None}))


@pytest.mark.parametrize("method", [m for m in METHODS if m not in SUMS])
def test_explanations_sum_to_the_log_posterior(method):
    drawn = panel(2, n=50, kind="mixed", gaps=0.2)
    fuser = fused(drawn, method)
    parts = fuser.explain(drawn.answers)
    assert parts.shape == (50, 5, 3)
    np.testing.assert_allclose(parts.sum(axis=2), 0.0, atol=1e-9)
    log = parts.sum(axis=1) - parts.sum(axis=1).max(axis=1, keepdims=True)
    proba = np.exp(log)  # those of "min-divergence" can be zero
    np.testing.assert_allclose(proba / proba.sum(axis=1, keepdims=True), fuser.posterior_, atol=1e-8)
    silent = np.array([v is None for v in drawn.answers["s0"]])
    assert silent.any() and (parts[silent, 0] == 0).all()
    np.testing.assert_allclose(parts[:, 4] - parts[0, 4], 0.0, atol=1e-8)  # the priors add the same to every item


@pytest.mark.parametrize("method", SUMS)
def test_means_have_no_explanation(method):
    drawn = panel(2, n=50)
    with pytest.raises(ValueError, match=f"method '{method}' averages posteriors"):
        fused(drawn, method).explain(drawn.answers)


@pytest.mark.parametrize("method", METHODS)
def test_the_prior_follows_a_window(method):
    """On the batch it was learned from it stays; on a shifted window it is that of the window."""
    drawn = panel(3, n=600, K=2, J=4, prior=[0.7, 0.3], rows=300)
    later = panel(3, n=600, K=2, J=4, prior=[0.3, 0.7], rows=300)
    fuser = fused(drawn, method)
    before, estimate = fuser.prior_.copy(), fuser.prior_estimate_.prior
    fuser.update_prior(drawn.answers)
    np.testing.assert_allclose(fuser.prior_estimate_.prior, estimate, atol=1e-9)
    if method in ("ml-product", "min-divergence", "composite", "trimmed-mean", "dawid-skene"):
        np.testing.assert_allclose(fuser.prior_, before, atol=2e-3)
    fuser.update_prior(later.answers)
    assert abs(fuser.prior_estimate_.prior[1] - 0.7) < 0.1
    if method != "majority":  # there is no prior in votes
        assert abs(fuser.prior_[1] - 0.7) < 0.1
        wrong = np.mean(fuser.predict(later.answers) != later.truth)
        stale = np.mean(fused(drawn, method).predict(later.answers) != later.truth)
        assert wrong <= stale + 0.005
    assert fuser.n_items_ == 600


@pytest.mark.parametrize("kind", ["hard", "mixed"])
@pytest.mark.parametrize("method", METHODS)
def test_item_by_item_ends_where_one_fit_does(method, kind):
    drawn = panel(4, n=24, K=2, J=3, kind=kind, gaps=0.1)
    y = [t if i % 8 == 0 else None for i, t in enumerate(drawn.truth)]
    whole = fused(drawn, method, y)
    stream = Fuser(drawn.sources, method=method)
    for i in (slice(0, 10), *(slice(i, i + 1) for i in range(10, 24))):
        rows = list(range(24))[i]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            stream.partial_fit(taken(drawn.answers, rows), [y[r] for r in rows])
        assert stream.posterior_.shape == (len(rows), 2) and len(stream.labels_) == len(rows)
        assert stream.n_items_ == rows[-1] + 1
    atol = 1e-6 if whole.method_ in SEARCHED else 1e-9
    assert stream.method_ == whole.method_
    np.testing.assert_allclose(stream.predict_proba(drawn.answers), whole.predict_proba(drawn.answers), atol=atol)
    np.testing.assert_allclose(stream.posterior_, whole.posterior_[-1:], atol=atol)
    np.testing.assert_allclose(stream.prior_estimate_.low, whole.prior_estimate_.low, atol=1e-9)


def test_a_stream_may_begin_anywhere_and_weigh_its_items():
    drawn = panel(5, n=40, K=2, J=3)
    weight = np.where(np.arange(40) % 2, 2.0, 1.0)
    whole = Fuser(drawn.sources, method="ml-product").fit(drawn.answers, sample_weight=weight)
    stream = Fuser(drawn.sources, method="ml-product")
    for rows in (range(25), range(25, 40)):
        rows = list(rows)
        stream.partial_fit(taken(drawn.answers, rows), sample_weight=weight[rows])
    np.testing.assert_allclose(stream.prior_, whole.prior_, atol=1e-9)
    # a source that gave labels may give probabilities later
    soft = {**taken(drawn.answers, [0]), "s0": [[0.4, 0.6]]}
    stream.partial_fit(soft)
    assert stream.n_items_ == 41 and stream.posterior_.shape == (1, 2)


@pytest.mark.parametrize("method", METHODS)
def test_known_labels_are_kept_and_counted(method):
    drawn = panel(6, n=90, kind="mixed")
    y = [t if i % 3 == 0 else None for i, t in enumerate(drawn.truth)]
    fuser = fused(drawn, method, y)
    truth = np.searchsorted(["a", "b", "c"], drawn.truth.astype(str))
    np.testing.assert_array_equal(fuser.posterior_[::3], np.eye(3)[truth[::3]])
    before, after = drawn.sources["s0"].counts, fuser._fitted_layout.calibrations[0].counts
    added = np.zeros((3, 3))
    for i in range(0, 90, 3):
        added[truth[i], "abc".index(drawn.answers["s0"][i])] += 1
    np.testing.assert_allclose(after, before + added)
    blank = fused(drawn, method, [None] * 90)
    np.testing.assert_array_equal(blank.posterior_, fused(drawn, method).posterior_)
    # its probabilities keep the priors of its training
    np.testing.assert_allclose(fuser._fitted_layout.calibrations[1].class_prior, drawn.sources["s1"].class_prior)


def test_labels_of_a_class_that_a_source_never_met_teach_it():
    fewer = Calibration.from_counts([[40, 10, 0], [10, 40, 0]], ["a", "b"], ["a", "b", "c"])
    full = Calibration.from_counts(30 * np.eye(3) + 5, list("abc"))
    answers = {"x": list("abc") * 20, "y": list("abc") * 20}
    y = [v if i % 2 else None for i, v in enumerate(answers["y"])]
    fuser = Fuser({"x": fewer, "y": full}, method="ml-product").fit(answers, y)
    assert fuser._fitted_layout.n_rows[0].tolist() == [60, 60, 10]
    assert fuser.fuse_one({"x": "c"})["c"] > 0.6


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_class_unknown_to_one_source_is_decided_by_the_others(method, soft):
    """With no row of class c behind it, nothing the first source says moves the odds of c against the rest."""
    rng = np.random.default_rng(7)
    full = Calibration.from_counts(30 * np.eye(3) + 5, list("abc"))
    lacking = Calibration.from_counts([[40, 8, 2], [8, 40, 2], [0, 0, 0]], list("abc"))
    codes = rng.integers(0, 3, 90)
    x = np.where(codes == 2, 0, codes)
    said = np.array([[0.6, 0.39, 0.01], [0.39, 0.6, 0.01]])[x] if soft else list(np.array(["a", "b"])[x])
    votes = list(np.array(list("abc"))[codes])
    fuser = Fuser({"x": lacking, "y": full, "z": full}, method=method).fit({"x": said, "y": votes, "z": votes})
    assert np.isfinite(fuser.posterior_).all()
    assert (fuser.labels_ == np.array(votes)).all()


@pytest.mark.parametrize("method", METHODS)
def test_sources_that_differ_in_kind_fit_together(method):
    rng = np.random.default_rng(8)
    n, m = 150, 300
    truth, own = rng.integers(0, 2, n), rng.integers(0, 2, m)
    names = np.array(["no", "yes"])

    def score(t):
        return rng.normal(1.5 * t)

    def votes(t):
        return np.where(rng.random(len(t)) < 0.15, "unsure", names[np.where(rng.random(len(t)) < 0.8, t, 1 - t)])

    def pmf(t):
        p = 1 / (1 + np.exp(-rng.normal(2 * (2 * t - 1), 1.5)))
        return np.column_stack([1 - p, p])

    def cell(t):
        return np.where(rng.random(len(t)) < 0.5, "day", "night")

    sources = {
        "votes": Calibration.from_predictions(names[own], votes(own)),
        "pmf": Calibration.from_predictions(names[own], pmf(own)),
        "mended": Source(Calibration.from_predictions(names[own], pmf(own)), as_is=False),
        "bins": Calibration.from_scores(names[own], score(own), bins=5),
        "line": Calibration.from_scores(names[own], score(own), ratio=True),
        "cells": Calibration.from_predictions(names[own], votes(own), cells=cell(own)),
        "context": Calibration.from_predictions(names[own], votes(own), cells=cell(own), context=True),
        "silent": Calibration.from_predictions(names[own], votes(own)),
    }
    answers = {
        "votes": votes(truth),
        "pmf": pmf(truth),
        "mended": pmf(truth),
        "bins": score(truth),
        "line": score(truth),
        "cells": votes(truth),
        "cells@": cell(truth),
        "context": votes(truth),
        "context@": cell(truth),
    }
    fuser = Fuser(sources, method=method).fit(answers)
    assert np.mean(fuser.labels_ == names[truth]) > (0.6 if method == "ml-sum" else 0.9)  # which the document got wrong
    np.testing.assert_allclose(fuser.predict_proba(answers), fuser.posterior_, atol=1e-12)
    assert np.isnan(fuser.drift_["context"].p_value) and np.isnan(fuser.drift_["silent"].p_value)
    assert any("'silent'" in warning and "0\u00a0%" in warning for warning in fuser.warnings_)


@pytest.mark.parametrize("method", METHODS)
def test_one_source_alone(method):
    drawn = panel(9, n=60, K=2, J=1)
    fuser = fused(drawn, method)
    assert fuser.dependence_.n_effective == pytest.approx(1.0, rel=0.01) and np.isfinite(fuser.posterior_).all()
    assert (fuser.labels_ == np.array(drawn.answers["s0"])).mean() > 0.5


@pytest.mark.parametrize("method", METHODS)
def test_a_silent_source_changes_nothing(method):
    drawn = panel(10, n=60, K=3, J=3)
    more = {**drawn.sources, "quiet": drawn.sources["s1"]}
    plain = fused(drawn, method, class_prior="uniform")
    with_quiet = Fuser(more, method=method, class_prior="uniform").fit({**drawn.answers, "quiet": [None] * 60})
    atol = 1e-3 if plain.method_ in SEARCHED else 1e-4 if plain.method_ == "min-divergence" else 1e-9
    np.testing.assert_allclose(with_quiet.posterior_, plain.posterior_, atol=atol)


def test_crowds_without_calibration_teach_themselves():
    votes = simulate_votes(400, priors=(0.3, 0.7), n_sources=6, accuracy=(0.9, 0.8, 0.7, 0.65, 0.6, 0.6),
                           abstain=0.2, random_state=0)  # fmt: skip
    fuser = Fuser().fit(votes.answers)
    assert fuser.method_ in MODELS and fuser.classes_.tolist() == [0, 1]
    crowd = np.mean(fuser.labels_ == votes.truth)
    assert crowd > 0.87 and crowd >= np.mean(Fuser(method="majority").fit(votes.answers).labels_ == votes.truth)
    frame = pd.DataFrame(votes.answers)
    np.testing.assert_allclose(Fuser().fit(frame).posterior_, fuser.posterior_, atol=1e-12)
    values = {name: np.asarray(v, dtype=object) for name, v in votes.answers.items()}
    long = LongAnswers(np.arange(400), values)
    np.testing.assert_allclose(Fuser().fit(long).posterior_, fuser.posterior_, atol=1e-12)
    truth = [t if i % 4 == 0 else None for i, t in enumerate(votes.truth.tolist())]
    assert np.mean(Fuser().fit(votes.answers, truth).labels_ == votes.truth) > crowd
    unheard = Fuser().fit({"x": ["a", "b"] * 30, "y": ["a", "b"] * 30}, ["c"] + [None] * 59)
    assert unheard.classes_.tolist() == ["a", "b", "c"]


def test_the_class_prior_is_that_of_the_fixed_rules():
    drawn = panel(11, n=60, K=2, J=2)
    for given, wanted in (("uniform", [0.5, 0.5]), ([3, 1], [0.75, 0.25]), ("training", [0.5, 0.5])):
        assert fused(drawn, "product", class_prior=given).prior_.tolist() == wanted
    one = replace(drawn.sources["s0"], priors=[0.9, 0.1])
    assert Fuser({"s0": one}, method="sum").fit({"s0": ["a"]}).prior_.tolist() == [0.9, 0.1]


def test_what_the_objective_is():
    """Found methods have one and its history; formulas have none."""
    drawn = panel(12, n=60)
    for method in ("majority", "sum", "product"):
        fuser = fused(drawn, method)
        assert fuser.objective_ is None and fuser.history_ == () and fuser.gap_ is None
    for method in ("ml-product", "ml-sum", "composite", "trimmed-mean", "dawid-skene"):
        fuser = fused(drawn, method)
        values = [step.objective for step in fuser.history_ if step.accepted]
        assert (
            values[-1] / fuser.n_items_ == fuser.objective_ and (np.diff(values) >= -1e-9).all() and fuser.gap_ is None
        )


def test_trust_is_told_where_there_is_one():
    drawn = panel(13, n=60)
    assert fused(drawn, "product").trust_ == dict.fromkeys(drawn.sources, 1.0)
    assert set(fused(drawn, "pool").trust_) == set(drawn.sources)
    assert fused(drawn, "min-divergence").trust_ is None


@pytest.mark.parametrize("kind", ["hard", "mixed"])
def test_large_batches_go_through_threads_and_samples(kind, monkeypatch):
    """Threads change no bit that matters; trust learned from some of the items is near that of all."""
    drawn = panel(19, n=400, K=2, J=3, kind=kind)
    plain = {method: fused(drawn, method) for method in ("min-divergence", "pool")}
    monkeypatch.setattr(methods, "MIN_PATTERNS_FOR_THREADS", 1)
    np.testing.assert_allclose(
        fused(drawn, "min-divergence").posterior_, plain["min-divergence"].posterior_, atol=1e-12
    )
    monkeypatch.setattr(methods, "MAX_SAMPLE", 200)
    y = [None] * 399 + [drawn.truth[-1]]
    some = Fuser(drawn.sources, method="pool").fit(drawn.answers, y)
    assert some.posterior_.shape == (400, 2)
    np.testing.assert_allclose(list(some.trust_.values()), list(plain["pool"].trust_.values()), atol=0.5)


def test_dependence_among_very_many_sources_is_seen():
    """Most pairs are not tested one by one then; their z comes from the standard errors of those that are."""
    drawn = panel(20, n=400, K=2, J=70, rows=400)
    calm = Fuser(drawn.sources, method="product").fit(drawn.answers)
    assert calm.drift_ == {} and calm.dependence_.n_effective > 55
    off = ~np.eye(70, dtype=bool)
    assert np.isfinite(calm.dependence_.z[off]).all() and np.abs(calm.dependence_.z[off]).max() < 6
    same = {name: drawn.answers["s0"] if j < 60 else said for j, (name, said) in enumerate(drawn.answers.items())}
    tied = {name: drawn.sources["s0"] if j < 60 else one for j, (name, one) in enumerate(drawn.sources.items())}
    found = Fuser(tied).fit(same)
    assert found.method_ == "discounted" and found.dependence_.n_effective < 15
    assert (found.dependence_.z[:60, :60][~np.eye(60, dtype=bool)] > 4).all()


def test_it_can_be_copied_pickled_and_described():
    drawn = panel(14, n=60, kind="mixed")
    fuser = fused(drawn, "min-divergence", tol=1e-3)
    again = pickle.loads(pickle.dumps(fuser))
    np.testing.assert_array_equal(again.predict_proba(drawn.answers), fuser.posterior_)
    np.testing.assert_array_equal(copy.deepcopy(fuser).posterior_, fuser.posterior_)
    fresh = clone(fuser)
    assert fresh.get_params()["tol"] == 1e-3 and not hasattr(fresh, "posterior_")
    assert "method='min-divergence'" in repr(fuser)
    fresh.set_params(method="product", tol=1e-8)
    assert fresh.fit(drawn.answers).method_ == "product"
    with pytest.raises(ValueError, match="Invalid parameter 'methode'"):
        fresh.set_params(methode="min-divergence")


def test_a_second_fit_forgets_the_first():
    drawn, other = panel(15, n=60), panel(16, n=40)
    fuser = fused(drawn, "min-divergence")
    fuser.set_params(method="product", sources=other.sources).fit(other.answers)
    assert fuser.gap_ is None and fuser.history_ == () and fuser.posterior_.shape == (40, 3)
    np.testing.assert_array_equal(fuser.posterior_, fused(other, "product").posterior_)


def test_the_options_and_answers_are_not_touched():
    drawn = panel(17, n=40, kind="mixed", gaps=0.1)
    sources, answers = copy.deepcopy(drawn.sources), copy.deepcopy(drawn.answers)
    fuser = fused(drawn, "dawid-skene", [*drawn.truth[:5], *[None] * 35])
    assert fuser.sources is drawn.sources
    for name, one in sources.items():
        np.testing.assert_array_equal(drawn.sources[name].counts, one.counts)
    for name, said in answers.items():
        same = np.array_equal(drawn.answers[name], said, equal_nan=isinstance(said, np.ndarray))
        assert same


GOOD = panel(18, n=60, K=2, J=2)


@pytest.mark.parametrize("name", ["predict", "predict_proba", "fuse_one", "explain", "update_prior"])
def test_nothing_is_told_before_a_fit(name):
    with pytest.raises(NotFittedError):
        getattr(Fuser(GOOD.sources), name)({"s0": ["a"]})


RIGHT = 45.0 * np.eye(2) + 5


def say(words, **more):
    """Warnings of a fit, as one text."""
    options = {"method": "ml-product", **more}
    sources, answers = options.pop("sources"), options.pop("answers")
    found = Fuser(sources, **options).fit(answers).warnings_
    assert any(words in w for w in found), found
    return found


def pair(n=100, **more):
    """Two good sources on a calm batch."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 2
    sources = {f"s{j}": Calibration.from_counts(RIGHT, ["a", "b"], **more) for j in range(3)}
    answers = {name: np.array(["a", "b"])[np.where(rng.random(n) < 0.9, truth, 1 - truth)] for name in sources}
    return {"sources": sources, "answers": {name: v.tolist() for name, v in answers.items()}}


def test_a_calm_batch_has_no_warnings():
    calm = pair()
    assert Fuser(calm["sources"], method="ml-product").fit(calm["answers"]).warnings_ == []


def test_drift_in_a_cell_names_the_cell():
    big = pair(600)
    counts = np.stack([RIGHT, RIGHT], axis=2)
    celled = {**big["sources"], "s0": Calibration(("a", "b"), ("a", "b"), counts, cells=("l", "r"))}
    answers = {**big["answers"], "s0@": ["l"] * 600}
    say("in l', whereas its calibration", sources=celled, answers=answers)
