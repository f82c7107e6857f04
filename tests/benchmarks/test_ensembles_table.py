"""The tables of document 004's chapter 3: do they run, and is what is measured what they say?"""

import json

import numpy as np
import pytest
from benchmarks.speed.__main__ import main as speed
from benchmarks.speed.ensembles import MINUTES, RATIO, DrawnBayes
from benchmarks.tables import __main__ as program
from benchmarks.tables import ensembles_combiners as combiners
from benchmarks.tables.ensembles import (
    ADA,
    ENSEMBLES_TABLE,
    FOR_F,
    HMM,
    HMM_004,
    IDB,
    LVME,
    LVME_POOLED,
    MLP,
    RIVALS,
    SIME,
    SIME_004,
    SKLEARN,
    STACKING,
    SVM,
    agreement,
    f_test,
    verdict,
)
from benchmarks.tables.ensembles_combiners import (
    Peer,
    Votes,
    adaboost,
    flat,
    hmm,
    lvme,
    sime,
    stage_outputs,
    weightboost,
)
from benchmarks.tables.printed import ENSEMBLES, F_TESTS, HMM_BOOSTING
from benchmarks.tables.printed import MINUTES as PRINTED_MINUTES
from benchmarks.tables.store import Store, read_lines
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import GaussianNB

from mixent import HMMStackingClassifier, MaxEntStackingClassifier
from mixent.evaluate.paired import five_by_two_f

DOCUMENT = {"cv": "train", "start": "uniform", "transition_smoothing": 0.0, "calibration": None, "tol": 1e-4}


def drawn(n_classes, n=72):
    """Groups that overlap and are no Gaussians."""
    rng = np.random.default_rng(n_classes)
    y = rng.integers(n_classes, size=n)
    X = rng.standard_normal((n, 3)) + y[:, None]
    X[:, 1] = np.abs(X[:, 1] - y) + 0.3 * rng.standard_normal(n)
    return X, np.array([f"k{c}" for c in y])


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensembles")
    entries = []
    for name, n_classes in (("wine", 3), ("pima", 2), ("bupa", 2)):
        X, y = drawn(n_classes)
        rows = [",".join([*map(str, x), c]) for x, c in zip(X, y)]
        (folder / f"{name}.csv").write_text("\n".join(["a,b,c,class", *rows]))
        features = [{"name": c, "kind": "continuous"} for c in "abc"]
        entries.append({"name": name, "file": f"{name}.csv", "features": features})
    (folder / "manifest.json").write_text(json.dumps({"datasets": entries}))
    return folder


@pytest.fixture
def main(tables, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.ensembles.SIZES", (10, 20))
    monkeypatch.setenv("COLUMNS", "300")

    def run(*given):
        where = ["--quiet", "--data", str(tables), "--results", str(tmp_path)]
        assert program.main(["--table", "ensembles", *given, *where]) == 0
        return tmp_path

    return run


def test_errors_stand_beside_the_printed_at_every_size(main, capsys):
    methods = [ADA, SKLEARN, MLP, SVM, STACKING, SIME, LVME, LVME_POOLED, HMM, IDB]
    results = main("--sets", "pima", "--folds", "2", "--repeats", "1", "--methods", *methods)
    main("--sets", "wine", "--folds", "2", "--repeats", "1", "--methods", ADA, LVME, HMM)
    shown = capsys.readouterr().out
    for text in (*methods, "24.04", "21.99", "22.65", "1.78", "minus Ada", "LvME ahead", "noise"):
        assert text in shown
    records = list(Store("ensembles", results).load("pima").values())
    assert len(records) == 2 * len(methods)
    for r in records:
        assert r["failed"] is None and r["warned"] is None and r["stages"] >= 2
        assert 0 <= r["error_10"] <= 100 and r["error_20"] == pytest.approx(100 * r["error"]) and r["error_50"] is None
        assert (r["cells"] is not None) == (r["method"] in (LVME, LVME_POOLED))
        assert (r["mixture_error"] is not None) == (r["method"] == LVME) == (r["mixture_log_loss"] is not None)
        assert (r["agreement"] is not None) == (r["method"] in (ADA, IDB))
    matches = {(r["set"], r["method"], r["metric"]): r for r in read_lines(results / "ensembles.jsonl")}
    assert (
        matches["pima", SIME, "error_10"]["printed"] == 22.42 and matches["wine", LVME, "error_100"]["printed"] == 1.67
    )
    assert matches["pima", HMM, "error_100"]["source"] == "document 004, table 3.7"
    assert ("wine", HMM, "error_100") not in matches  # chains are for two classes


def test_f_statistics_stand_above_the_printed(main, capsys):
    results = main("--sets", "pima_5x2", "--methods", ADA, SVM, SIME_004)
    shown = capsys.readouterr().out
    by = {m: [] for m in (ADA, SVM, SIME_004)}
    for r in Store("ensembles", results).load("pima_5x2").values():
        by[r["method"]].append(r)
        assert r["error_10"] is None and r["error_20"] == pytest.approx(100 * r["error"])  # the largest size alone
    for rival in (ADA, SVM):
        gaps = np.zeros((5, 2))
        for first, second in zip(by[SIME_004], by[rival]):
            gaps[first["repeat"], first["fold"]] = 100 * (first["error"] - second["error"])
        tested = f_test(by[SIME_004], by[rival][::-1])
        assert (tested.f, tested.mean) == pytest.approx((five_by_two_f(gaps).f, gaps.mean()))
        assert str(tested) in shown
    assert f_test(by[SIME_004], by[ADA][1:]) is None
    for text in ("SiME, printed", "3.43", "10.80"):
        assert text in shown


@pytest.mark.parametrize(("n_classes", "held"), [(2, True), (3, False)])
def test_columns_of_a_long_boosting_are_the_classifier_of_a_short_one(n_classes, held):
    X, y = drawn(n_classes)
    new, cv = X[::3] + 0.1, 5 if held else "train"
    for make, regions in ((sime, None), (lvme, "union")):
        result = make(adaboost, held=held, sizes=(2, 5)).fit(X, y)
        for size in (2, 5):
            direct = MaxEntStackingClassifier.from_boosting(adaboost(size), regions=regions, cv=cv, random_state=0)
            assert np.array_equal(direct.fit(X, y).predict_proba(new), result.at(size, new))
    options = {} if held else DOCUMENT
    chain = HMMStackingClassifier(adaboost(5), random_state=0, **options).fit(X, y)
    assert np.array_equal(chain.predict_proba(new), hmm(adaboost, held=held, sizes=(5,)).fit(X, y).predict_proba(new))


@pytest.mark.parametrize("boost", [adaboost, weightboost])
def test_votes_at_a_size_are_those_of_a_boosting_of_that_size(boost):
    X, y = drawn(3)
    result = Votes(boost, sizes=(3, 8)).fit(X, y)
    for size in (3, 8):
        assert np.allclose(boost(size).fit(X, y).predict_proba(X), result.at(size, X), rtol=1e-12)
    assert result.error(3, X, y) == pytest.approx(100 * np.mean(boost(3).fit(X, y).predict(X) != y))
    assert result.error(5, X, y) is None


def test_scikit_learns_boosting_is_read_at_a_size():
    X, y = drawn(3)
    result = Peer(sizes=(2, 5)).fit(X, y)
    for size in (2, 5):
        direct = AdaBoostClassifier(GaussianNB(), n_estimators=size, random_state=0).fit(X, y)
        assert np.allclose(direct.predict_proba(X), result.at(size, X))


def test_a_prior_is_chosen_at_the_largest_size_and_at_small_ones(monkeypatch):
    monkeypatch.setattr(combiners, "OWN_PRIOR", 3)
    X, y = drawn(2)
    models = sime(adaboost, held=False, sizes=(3, 5, 8)).fit(X, y).models
    assert {m: bool(model.prior_variances_tried_) for m, model in models.items()} == {8: True, 5: False, 3: True}
    assert models[5].prior_variance_ == models[8].prior_variance_


def test_rows_are_boosted_and_described_once(monkeypatch):
    calls = []
    learn = combiners.fit_regions
    monkeypatch.setattr(combiners, "fit_regions", lambda *given: calls.append(1) or learn(*given))
    X, y = drawn(2)
    X = X + 1e-3  # rows no other test has
    first, second = (lvme(adaboost, held=held, sizes=(3, 6)).fit(X, y) for held in (False, True))
    assert first.outputs is second.outputs and len(calls) == 1
    assert lvme(adaboost, held=False, sizes=(3,), regions="class").fit(X, y).cells.kind == "class" and len(calls) == 2
    assert stage_outputs(adaboost, X, y[::-1], 6) is not first.outputs


def test_stages_that_no_inner_fold_reached_are_left_out():
    X, y = drawn(2)
    X = X - 1e-3
    known = stage_outputs(adaboost, X, y, 5)
    known.held[3:] = np.nan
    model = lvme(adaboost, held=True, sizes=(5,)).fit(X, y)
    assert model.models[5].base_names_ == ("stage 1", "stage 2", "stage 3")
    assert np.array_equal(model.predict_proba(X), lvme(adaboost, held=True, sizes=(3, 5)).fit(X, y).at(3, X))


def test_outputs_are_columns_as_stackingclassifier_has_them():
    proba = np.array([[[0.2, 0.8]], [[np.nan, np.nan]], [[0.6, 0.4]]])  # three stages, one row
    assert flat(proba).tolist() == [[0.8, 0.5, 0.4]]
    three = np.full((2, 4, 3), 1 / 3)
    assert flat(three).shape == (4, 6)


def test_agreement_is_that_of_pairs_of_stages():
    X, y = drawn(3)
    model = Votes(adaboost, sizes=(7,)).fit(X, y)
    said_ = model.outputs.of(X).argmax(axis=2)
    pairs = [np.mean(a == b) for i, a in enumerate(said_) for b in said_[:i]]
    assert agreement(model, X, y) == pytest.approx(100 * np.mean(pairs))


def test_printed_values_are_for_sets_and_methods_that_are_run():
    settings = {s.name: s for s in ENSEMBLES_TABLE.settings}
    for name, method, metric in ENSEMBLES_TABLE.printed:
        assert method in ENSEMBLES_TABLE.methods_of(settings[name]) and metric.startswith("error_")
    assert set(ENSEMBLES) <= set(settings) and settings["satimage"].folds == 1
    for name, by_method in F_TESTS.items():
        assert set(ENSEMBLES_TABLE.methods_of(settings[f"{name}_5x2"])) == set(FOR_F) >= set(RIVALS)
        assert all(len(values) == len(RIVALS) for values in by_method.values())
    assert HMM_BOOSTING.keys() == {n for n in settings if HMM_004 in ENSEMBLES_TABLE.methods_of(settings[n])}


@pytest.mark.parametrize(
    ("mean", "p", "text"),
    [(-1.0, 0.01, "yes, beyond noise"), (0.5, 0.4, "no, within noise"), (float("nan"), float("nan"), "")],
)
def test_who_is_ahead(mean, p, text):
    assert verdict(mean, p) == text


def test_combiners_are_timed_beside_the_printed_and_stackingclassifier(tables):
    records = speed(["--case", "ensembles", "--quick", "--data", str(tables)])
    results = {(r.set, r.method, r.metric): r.mean for r in records}
    stages, bases = dict.fromkeys(r.set for r in records)
    for method, minutes in PRINTED_MINUTES["bupa"].items():
        assert results[stages, method, MINUTES] > 0 and results[stages, f"{method}, printed", MINUTES] == minutes
    peer = results[bases, "StackingClassifier", MINUTES]
    for method in ("SiME", "LvME"):
        assert results[bases, method, RATIO] == pytest.approx(results[bases, method, MINUTES] / peer)
    assert not any(r.verdict for r in records)  # a smoke test judges nothing


def test_bases_differ_by_their_draw():
    X, y = drawn(2)
    a, b, again = (DrawnBayes(seed).fit(X, y).theta_ for seed in (0, 1, 0))
    assert np.array_equal(a, again) and not np.allclose(a, b)
