"""The tables of document 004: do they run, with its numbers beside ours and the differences of the folds shown?"""

from io import StringIO

import numpy as np
import pytest
from benchmarks.tables import peers
from benchmarks.tables.accuracy import ACCURACY, mark_c, mark_d
from benchmarks.tables.compare import difference
from benchmarks.tables.data import load
from benchmarks.tables.inference import BAYES, INFERENCE, JOINT, BayesInTurn, each_column, every_two
from benchmarks.tables.maxent import BEST, CONTINUOUS, METHODS, MIXED, SVM
from benchmarks.tables.show import show
from benchmarks.tables.store import Store, read_lines
from benchmarks.tables.table import Setting
from rich.console import Console
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from mixent import MaxEntClassifier

SMALL = ("--folds", "2", "--repeats", "1")


def by_method(results, table, name):
    matches = {}
    for record in Store(table, results).load(name).values():
        matches.setdefault(record["method"], []).append(record)
    return matches


def test_table_continuous(run, capsys):
    results = run("--table", "continuous", "--sets", "waveform", *SMALL, "--methods", "union", "class", "LR")
    shown = capsys.readouterr().out
    for text in ("16.57", BEST, "15", "Folds are stratified"):
        assert text in shown
    assert SVM not in shown.split("* Folds")[0]  # the document has none for waveform
    by = by_method(results, "continuous", "waveform")
    gap = difference(by["class"], by["union"], "log_loss")
    assert f"{gap.mean:+.3f} ± {gap.se:.3f}" in shown
    matches = {(r["method"], r["metric"]): r for r in read_lines(results / "continuous.jsonl")}
    assert matches["class", "error"]["printed"] == 16.57 and matches["union", "error"]["printed"] is None
    assert matches["union", "n_parameters"]["mean"] > 2 and matches["LR", "n_parameters"]["mean"] is None


def test_table_mixed(run):
    methods = ["union", "class, IIS", "quantize", "boosting"]
    results = run("--table", "mixed", "--sets", "hepatitis", *SMALL, "--methods", *methods)
    by = by_method(results, "mixed", "hepatitis")
    assert set(by) == set(methods)
    for method, records in by.items():
        assert all(r["failed"] is None for r in records), method
        assert np.mean([r["log_loss"] for r in records]) < np.log(2), method


def test_table_inference(run, capsys):
    results = run("--table", "inference", "--sets", "zoo", *SMALL, "--methods", JOINT, BAYES, "LR")
    shown = capsys.readouterr().out
    for text in ("17.92", "2.12", "3: every two"):
        assert text in shown
    by = by_method(results, "inference", "zoo")
    assert all(r["failed"] is None for records in by.values() for r in records)
    for r in by[JOINT]:
        assert 0 < r["criterion_2"] < r["criterion_3"] < 1  # two columns right at once are fewer
    matches = {(r["method"], r["metric"]): r for r in read_lines(results / "inference.jsonl")}
    percent = 100 * np.mean([r["criterion_3"] for r in by[JOINT]])
    assert matches[JOINT, "criterion_3"]["mean"] == pytest.approx(percent)
    assert matches[JOINT, "criterion_3"]["printed"] == 17.92


def test_naive_bayes_in_turn(data):
    result = load("zoo", data, mixed=True, discrete=True)
    model = BayesInTurn(result).fit(result.X[:60], result.y[:60])
    test, truth = result.X[60:], result.y[60:]
    wrong = model.predict_proba(test).argmax(axis=1) != np.searchsorted(model.classes_, truth)
    table = test.assign(**{"class": truth})
    assert model._error(table, ["class"]) == wrong.mean()
    assert model._error(table.assign(a=None), ["a", "b"]) is None  # nothing to predict
    assert 0 < each_column(model, test, truth) < every_two(model, test, truth) < 1
    assert each_column(model.model, test, truth) is None  # a model of the class only


def test_printed_tables_of_004():
    printed = CONTINUOUS.printed
    assert printed["pima", "class", "error"].value == 21.6
    assert printed["pima", "pooled", "error"].value == 30.83
    assert printed["segment", "class, groups", "error"].value == 0.95
    assert ("segment", BEST, "error") not in printed and ("waveform", SVM, "error") not in printed
    assert MIXED.printed["cmc", BEST, "error"].value == 43.0
    assert INFERENCE.printed["balance_scale", BAYES, "error"].value == 11.67
    for table in (CONTINUOUS, MIXED, INFERENCE):
        sets = {setting.name for setting in table.settings}
        methods = {*table.methods, BEST, SVM}
        assert sets == {name for name, _, _ in table.printed}
        assert {method for _, method, _ in table.printed} <= methods


@pytest.mark.parametrize("options", METHODS.values(), ids=METHODS)
def test_options_are_taken(options):
    X, y = np.random.default_rng(0).standard_normal((40, 2)), np.arange(40) % 2
    model = MaxEntClassifier(**({"prior_variance": 1.0, "tol": 0.01} | options))
    if "features__max_components" in model.get_params():
        model = clone(model).set_params(features__max_components=1)
    model.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_peers_are_told_from_ours():
    assert {m for m in CONTINUOUS.methods if CONTINUOUS.is_ours(m)} == set(METHODS)
    assert {m for m in ACCURACY.methods if ACCURACY.is_ours(m)} == {"mixent", "mixent 1 VVV", "maxent"}


def test_numbers_are_read_as_categories_where_asked(data):
    plain, discrete = (load("zoo", data, mixed=True, discrete=d) for d in (False, True))
    assert plain.discrete == ("a", "b") and discrete.discrete == ("a", "b", "c")
    assert plain.X["c"].dtype == float and set(discrete.X["c"]) == {"0", "1", "2"}


@pytest.mark.parametrize("make", [peers.boosting, peers.linear_svm, peers.naive_bayes, peers.logistic])
def test_peers_take_gaps_and_unseen_values(data, make):
    name, discrete = ("zoo", True) if make is peers.naive_bayes else ("hepatitis", False)
    result = load(name, data, mixed=True, discrete=discrete)
    train, test = result.X[:60], result.X[60:].astype({result.discrete[0]: object})
    test.loc[test.index[0], result.discrete[0]] = "never seen"
    test.loc[test.index[1], result.discrete[0]] = None
    model = make(result).fit(train, result.y[:60])
    assert np.allclose(model.predict_proba(test).sum(axis=1), 1)
    assert accuracy_score(result.y[60:], model.predict(test)) > 0.6


def test_boosting_where_a_class_has_one_row():
    X, y = np.arange(30.0)[:, None], np.repeat(["a", "b", "c"], [15, 14, 1])
    assert peers.StoppedBoosting().fit(X, y).n_iter_ == 100  # nothing to stop by


def test_a_peer_where_its_mark_is():
    names = {s.name for s in ACCURACY.settings if "linear SVM" in ACCURACY.methods_of(s)}
    hearts = ("heart_statlog", "heart_cleveland")
    assert names == {"pima", *hearts, *(f"{name}_mixed" for name in hearts)}
    by = {"mixent": records([0.1, 0.2]), "LR": records([0.1, 0.1]), "maxent": records([0.2, 0.2]), "GMM BIC": []}
    console = Console(width=300, record=True, file=StringIO())
    show(ACCURACY, {Setting("bupa"): by, Setting("pima"): by | {"linear SVM": records([0.1, 0.3])}}, "", console)
    shown = console.export_text()
    assert "mixent minus peer" in shown and "maxent minus peer" in shown and "GMM BIC" not in shown


def records(errors, name="bupa"):
    size = {
        "set": name,
        "method": "",
        "code": "",
        "fit_seconds": 0.0,
        "repeat": 0,
        "n_train": 90,
        "n_test": 10,
        "failed": None,
    }
    return [size | {"fold": i, "error": e, "log_loss": e} for i, e in enumerate(errors)]


def test_mark_of_the_gap():
    by = {"maxent": records([0.30, 0.31]), "QDA-reg": records([0.34, 0.36]), "GMM tuned": records([0.40, 0.40])}
    assert mark_c("maxent")(by) == f"pass {(35 - 30.5) / (35 - 26.1):.2f}"  # the best peer on bupa has 26.1
    assert mark_c("maxent")({"maxent": records([0.33, 0.33], "bupa")}) == f"miss {(34.8 - 33) / (34.8 - 26.1):.2f}"
    assert mark_c("maxent")({"maxent": records([0.1, 0.1], "iris")}) == "-"
    assert mark_c("maxent")({"maxent": []}) == "-"


def test_mark_of_linear_methods():
    noise = np.random.default_rng(0).normal(0, 0.01, size=(3, 10))
    svm, same = records(0.15 + noise[0], "heart_statlog_mixed"), records(0.15 + noise[1], "heart_statlog_mixed")
    worse = records(0.25 + noise[2], "heart_statlog_mixed")
    assert mark_d({"maxent": same, "LR": svm, "linear SVM": svm}) == "pass"
    assert mark_d({"maxent": worse, "LR": svm, "linear SVM": svm}) == "miss"
    assert mark_d({"maxent": same, "LR": svm, "linear SVM": []}) == "-"
