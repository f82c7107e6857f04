"""The tables of document 004's chapters 4 and 6: do they run, and is what is measured what they say?"""

import json

import numpy as np
import pandas as pd
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables import fusion_sources as sources
from benchmarks.tables.data import Dataset
from benchmarks.tables.fusion import FUSION, MAKE, Asked, missing_prior, names_of, prior_error
from benchmarks.tables.fusion_cases import (
    AUTO,
    CASES,
    COPIES,
    EXT_I,
    EXT_I_004,
    EXTENDED,
    IT_004,
    LEVELS,
    N_SOURCES,
    TILDE,
    Case,
    batch,
    level_of,
    priors_of,
)
from benchmarks.tables.fusion_show import beside, f_cell, f_of, grids
from benchmarks.tables.fusion_sources import CategoricalBayes, drawn_columns, source_outputs
from benchmarks.tables.printed_fusion import (
    BATCH_PERCENT,
    SUBSPACES,
    TABLE_42,
    TABLE_43,
    TABLE_44,
    TABLE_45,
    TABLE_46,
    TABLE_47,
    TABLE_61,
)
from benchmarks.tables.store import Store, read_lines
from sklearn.naive_bayes import GaussianNB

from mixent import Calibration, Fuser
from mixent.evaluate.paired import five_by_two_f
from mixent.studies import prior_mismatch

COLUMNS = "abcdefg"
SHIFTED = {"4.2": TABLE_42, "4.3": TABLE_43, "4.4": TABLE_44, "6.1": TABLE_61}


def drawn(labels, n=120, seed=0):
    """Groups that overlap, in seven columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(len(labels), size=n)
    X = rng.standard_normal((n, len(COLUMNS))) + 0.5 * codes[:, None] * (np.arange(len(COLUMNS)) % 3)
    return X, np.array(labels)[codes]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Made-up rows under the names of sets of the table."""
    folder = tmp_path_factory.mktemp("fusion")
    entries = []
    for name, labels in {"pima": "01", "bupa": "12", "sonar": "MR", "segment": ["brickface", "sky", "path"]}.items():
        X, y = drawn(list(labels))
        entries.append(written(folder, name, X.round(6), y, "continuous"))
    X, y = drawn(["e", "p"], 300)
    entries.append(written(folder, "mushroom", np.array(["u", "v", "w"])[np.digitize(X, [0, 1])], y, "discrete"))
    (folder / "manifest.json").write_text(json.dumps({"datasets": entries}))
    return folder


def written(folder, name, X, y, kind):
    rows = [",".join([*map(str, x), c]) for x, c in zip(X, y)]
    (folder / f"{name}.csv").write_text("\n".join([",".join([*COLUMNS, "class"]), *rows]))
    return {"name": name, "file": f"{name}.csv", "features": [{"name": c, "kind": kind} for c in COLUMNS]}


@pytest.fixture
def main(tables, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(sources, "STRUCTURES", "VVI")
    monkeypatch.setattr(sources, "MOST_CELLS", 2)

    def run(*given):
        where = ["--quiet", "--data", str(tables), "--results", str(tmp_path)]
        assert program.main(["--table", "fusion", *given, *where]) == 0
        return tmp_path

    return run


def test_every_kind_of_case_runs_and_stands_beside_the_printed(main, capsys):
    cases = ["pima_1_2.57", "segment_2.57", "mushroom_e_0.99", "sonar_R_1.3801_svm", "pima_without_1"]
    cases += ["pima_1_0.74_copies", "bupa_1_0.05_batches"]
    methods = {"sum", "majority", "ml-sum", IT_004, TILDE, EXT_I_004}
    results = main("--repeats", "1", "--sets", *cases, "--methods", *methods)
    shown = capsys.readouterr().out
    for text in ("Table 4.2", "Table 4.3", "Table 4.4", "Table 4.5", "Table 4.6", "Table 4.7", "Table 6.1", "Missing"):
        assert text in shown
    for text in ("(23.50)", "(17.82)", "(21.19 -> 21.21)", "(23.10)", "(39.62)", "(47.54)", "(9.37)", "(4.86)"):
        assert text in shown
    for name in cases:
        records = list(Store("fusion", results).load(name).values())
        assert len(records) == 2 * len(methods & set(names_of(CASES[name])))
        for r in records:
            assert r["failed"] is None and 0 <= r["error"] <= 1 and 0 <= r["prior_error"] <= 100
            assert all(
                (r[f"{what}_{k}"] is not None) == ("copies" in name) for k in COPIES for what in ("copies", "declared")
            )
            assert (r["batch_30"] is not None) == ("batches" in name)
            assert (r["missing_prior"] is not None) == ("without" in name)
    matches = {(r["set"], r["method"], r["metric"]): r for r in read_lines(results / "fusion.jsonl")}
    item = matches["pima_1_2.57", IT_004, "error"]
    assert item["printed"] == 17.82 and item["source"] == "document 004, table 4.3; 4.4: 18.31; 6.1: 21.2"
    assert matches["pima_without_1", TILDE, "missing_prior"]["printed"] == 0.51
    assert matches["bupa_1_0.05_batches", "ml-sum", "batch_10"]["printed"] == 46.89


def test_a_set_names_all_its_cases_and_one_method_is_done_again(main, capsys):
    results = main("--repeats", "1", "--sets", "pima", "--methods", "sum")
    names = [name for name, case in CASES.items() if case.data == "pima"]
    for name in names:
        assert len(Store("fusion", results).load(name)) == 2 * ("sum" in names_of(CASES[name]))
    main("--repeats", "1", "--sets", "pima_1_2.57", "--methods", AUTO)
    path = Store("fusion", results).path("pima_1_2.57")
    path.write_text(path.read_text().replace('"code": "', '"code": "older'))
    capsys.readouterr()
    main("--repeats", "1", "--sets", "pima_1_2.57", "--methods", AUTO, "--redo", AUTO)
    assert "2 folds are from another src/mixent" in capsys.readouterr().out  # those of "sum"
    again = Store("fusion", results).load("pima_1_2.57").values()
    assert {r["method"]: r["code"].startswith("older") for r in again} == {"sum": True, AUTO: False}


def test_an_unknown_set_is_refused(tables, tmp_path, capsys):
    where = ["--data", str(tables), "--results", str(tmp_path)]
    assert program.main(["--table", "fusion", "--sets", "pima_9", *where]) == 1
    assert "no set 'pima_9'" in capsys.readouterr().err


# --- batches ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.mismatch is not None], ids=lambda c: c.name)
def test_priors_have_the_mismatch_of_the_case(case):
    labels = [case.gains, "other"] if case.gains else ["k1", "k2", "k3", "k4"]
    y = np.repeat(labels, [30, 70] if case.gains else [10, 20, 30, 40])
    priors = priors_of(case, y)
    share = {label: np.mean(y == label) for label in priors}
    mismatch = N_SOURCES * prior_mismatch(list(share.values()), list(priors.values()))
    assert mismatch == pytest.approx(case.mismatch, rel=1e-6)
    if case.gains:
        assert priors[case.gains] > share[case.gains]


def test_diabetes_has_the_priors_of_the_document():
    y = np.repeat(["0", "1"], [500, 268])
    assert priors_of(Case("shift", "pima", "1", 2.58), y)["0"] == pytest.approx(0.2, abs=0.015)


def test_halves_are_drawn_again_at_these_priors_and_change_sides():
    X, y = drawn(["0", "1"], 400)
    data, case = Dataset("pima", X, y, None, ()), CASES["pima_1_2.57"]
    (train, test), (other_train, other_test) = (batch(data, seed, case) for seed in (4, 5))
    assert len(train) == len(test) == 200 and not set(train) & set(test)
    assert set(other_train) | set(train) == set(range(400)) and set(other_test) <= set(train)
    assert np.mean(y[test] == "1") == pytest.approx(priors_of(case, y)["1"], abs=0.003)
    same = batch(data, 4, CASES["pima_1_0.03"])[0]
    assert np.array_equal(same, train) and not np.array_equal(batch(data, 6, case)[0], train)
    left = batch(data, 4, CASES["pima_without_1"])[1]
    assert set(y[left]) == {"0"} and len(left) == len(set(left))


def test_a_split_of_its_own_is_kept():
    X, y = drawn(["k1", "k2", "k3"], 90)
    split = np.repeat(["train", "test"], [50, 40])
    case = CASES["satimage_0.97"]
    first, second = (batch(Dataset("satimage", X, y, split, ()), seed, case) for seed in (0, 1))
    assert first[0].tolist() == second[0].tolist() == list(range(50))
    assert min(first[1]) >= 50 and len(first[1]) == 40 and not np.array_equal(first[1], second[1])
    halved = batch(Dataset("segment", X, y, split, ()), 0, CASES["segment_0.03"])  # as the document does
    assert len(halved[0]) == 45 and max(halved[0]) >= 50


# --- sources ----------------------------------------------------------------------------------------------------------


def test_sources_see_their_columns_and_are_trained_once(monkeypatch):
    X, y = drawn(["0", "1"])
    entry = source_outputs("gaussian", (6, 3, 4, 5, 6), X, y)
    assert [len(own) for own in entry.columns] == [6, 3, 4, 5, 6] and entry.names == ("1", "2", "3", "4", "5")
    assert (
        source_outputs("gaussian", (6, 3, 4, 5, 6), X, y) is entry
        and source_outputs("gaussian", (6, 3, 4, 5, 6), X, y[::-1]) is not entry
    )
    new = X[:7] + 0.1
    for own, item in zip(entry.columns, entry.of(new)):
        assert np.allclose(item, GaussianNB().fit(X[:, own], y).predict_proba(new[:, own]))
    monkeypatch.setattr(GaussianNB, "predict_proba", None)
    assert entry.of(new).shape == (5, 7, 2)  # kept


def test_confusions_are_of_training_rows_or_out_of_fold():
    X, y = drawn(["0", "1"])
    item = source_outputs("gaussian", (5, 4), X, y)
    direct = Calibration.from_predictions(y, item.of(X)[0], ["0", "1"])
    assert np.allclose(item.calibrations(held=False)["1"].counts, direct.counts)
    model = item.calibrations(held=True)["1"]
    assert np.allclose(model.counts, Calibration.from_cv(GaussianNB(), X[:, item.columns[0]], y, cv=5).counts)
    assert np.allclose(model.class_prior, [np.mean(y == "0"), np.mean(y == "1")]) and model.calibration_set


def test_cells_are_responsibilities_of_each_sources_own_mixture():
    X, y = drawn(["0", "1"])
    item = source_outputs("gaussian", (5, 4), X, y)
    cells = item.cells_of(X)[1]
    assert np.allclose(cells, item.mixtures[1].predict_proba(X[:, item.columns[1]]))
    result = item.calibrations(held=False, cells=True)["2"]
    truth = y == "1"
    expected = np.einsum("nv,nl->vl", item.of(X)[1][truth], cells[truth])  # (6.2), of training rows
    assert np.allclose(result.counts[1], expected) and not result.context
    assert item.calibrations(held=True, cells=True, context=True)["2"].context


def test_machines_say_labels():
    X, y = drawn(["0", "1"])
    item = source_outputs("svm", (5, 4), X, y)
    assert set(item.answers(X)["1"]) == {"0", "1"} and set(np.unique(item.held)) == {0.0, 1.0}
    model = Asked("svm", (5, 4), "majority").fit(X, y)
    assert model.predict_proba(X).shape == (len(X), 2)
    alone = [np.mean(item.answers(X)[name] != y) for name in item.names]
    assert np.allclose(model.members_error(X, y), 100 * np.array(alone))


def test_categories_are_relative_frequencies_and_a_gap_is_one():
    X = pd.DataFrame({"a": ["u", "u", "v", None], "b": ["x", "y", "x", "x"]})
    model = CategoricalBayes().fit(X, np.array(["e", "e", "p", "p"]))
    new = pd.DataFrame({"a": ["u", None, "new"], "b": ["y", "x", "x"]})
    result = model.predict_proba(new)
    assert result[0, 0] == pytest.approx(1) and result[1, 1] == pytest.approx(1)
    assert result[2] == pytest.approx([1 / 3, 2 / 3], abs=1e-5)  # a category never seen says nothing


def test_drawn_columns_differ_and_are_not_more_than_there_are():
    first, second = drawn_columns(10, (4, 20), seed=1)
    assert len(set(first)) == 4 and second.tolist() == list(range(10))
    assert not np.array_equal(first, drawn_columns(10, (4,), seed=2)[0])


# --- fusion -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    X, y = drawn(["0", "1"], 200)
    new, truth = drawn(["0", "1"], 150, seed=1)
    model = Asked("gaussian", (5, 4, 3), "min-divergence", kind="copies").fit(X, y)
    return model, new, truth


def test_a_fusion_is_that_of_the_answers(fitted):
    model, new, truth = fitted
    direct = Fuser(model.sources, method="min-divergence").fit(model.outputs.answers(new))
    assert np.array_equal(model.predict_proba(new), direct.posterior_)
    share = [np.mean(truth == label) for label in "01"]
    assert prior_error(model, new, truth) == pytest.approx(50 * np.abs(direct.prior_ - share).sum())
    assert missing_prior(model, new, truth) is None
    only = truth == "0"
    model.predict_proba(new[only])
    assert missing_prior(model, new[only], truth[only]) == pytest.approx(model.fuser.posterior_[:, 1].mean())


def test_copies_are_of_the_second_weakest_and_declared_ones_do_no_harm(fitted):
    model, new, truth = fitted
    before = 100 * np.mean(model.classes_[model.predict_proba(new).argmax(axis=1)] != truth)
    name = sorted(model.outputs.names, key=lambda item: model.members_error(new, truth)[int(item) - 1])[-2]
    more = {f"{name} copy {i + 1}": model.sources[name] for i in range(5)}
    answers = model.outputs.answers(new)
    direct = Fuser({**model.sources, **more}, method="min-divergence").fit(
        {**answers, **dict.fromkeys(more, answers[name])}
    )
    assert model.copies_error(new, truth, 5, declared=False) == pytest.approx(100 * np.mean(direct.labels_ != truth))
    assert model.copies_error(new, truth, 5, declared=True) == pytest.approx(before)


def test_batches_are_fused_one_by_one(fitted):
    model, new, truth = fitted
    answers = model.outputs.answers(new)
    parts = [slice(0, 75), slice(75, 150)]
    fusers = [
        Fuser(model.sources, method="min-divergence").fit({n: a[part] for n, a in answers.items()}) for part in parts
    ]
    errors = [100 * np.mean(fuser.labels_ != truth[part]) for fuser, part in zip(fusers, parts)]
    assert model.batches_error(new, truth, 50) == pytest.approx(np.mean(errors))


# --- printed ----------------------------------------------------------------------------------------------------------


def test_printed_values_are_for_cases_and_methods_that_are_run():
    settings = {s.name: s for s in FUSION.settings}
    assert settings.keys() == CASES.keys() and set(SUBSPACES) == set(LEVELS)
    for name, method, metric in FUSION.printed:
        assert method in FUSION.methods_of(settings[name])
        assert metric in ("error", *FUSION.scores)
    assert {method for case in CASES.values() for method in names_of(case)} == set(MAKE)
    assert all(EXT_I in names_of(CASES[name]) for name in EXTENDED)
    assert (settings["satimage_0.97"].folds, settings["satimage_0.97"].repeats) == (10, 1)


@pytest.mark.parametrize(("number", "n_errors", "n_f"), [("4.2", 4, 4), ("4.3", 3, 2), ("4.4", 3, 2), ("6.1", 4, 0)])
def test_printed_rows_have_a_batch_of_about_their_mismatch(number, n_errors, n_f):
    for data, rows in SHIFTED[number].items():
        for m, gains, errors, statistics in rows:
            ours = CASES[level_of(data, gains, m)]
            assert abs(ours.mismatch - m) <= 0.075 and ours.gains == gains
            assert len(errors) == n_errors and len(statistics) == (0 if data == "satimage" else n_f)


def test_other_printed_tables_have_their_cases():
    kinds = {kind: {c.data for c in CASES.values() if c.kind == kind} for kind in ("copies", "svm", "batches")}
    assert kinds == {"copies": set(TABLE_45), "svm": set(TABLE_46), "batches": set(TABLE_47)}
    assert all(len(pairs) == len(COPIES) for by in TABLE_45.values() for pairs in by.values())
    assert all(len(values) == len(BATCH_PERCENT) for _, by in TABLE_47.values() for values in by.values())


def test_f_statistics_are_of_five_times_two_halves():
    rng = np.random.default_rng(0)
    errors = rng.random((2, 5, 2))
    records = {
        "pima_1_2.57": {
            method: [
                {"n_folds": 2, "repeat": i, "fold": j, "error": errors[m, i, j], "failed": None}
                for i in range(5)
                for j in range(2)
            ]
            for m, method in enumerate((IT_004, "sum"))
        }
    }
    result = f_of(records, "pima_1_2.57", (IT_004, "sum"))
    assert result.f == pytest.approx(five_by_two_f(errors[0] - errors[1]).f)
    assert f_cell(result, 8.31).endswith("(8.31)") and f_cell(None, None) == "-"
    records["pima_1_2.57"]["sum"][0]["n_folds"] = 10
    assert f_of(records, "pima_1_2.57", (IT_004, "sum")) is None


def test_cells_of_the_grids():
    assert beside(12.345, 12.0) == "12.35 (12.00)" or beside(12.345, 12.0) == "12.34 (12.00)"
    assert beside(float("nan")) == "-"
    assert all(grid.row_count == 0 for grid in grids({}))


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(sources, "KEPT", 2)
    for seed in range(4):
        source_outputs("gaussian", (3,), *drawn(["0", "1"], 40, seed))
    assert len(sources._RECENT) == 2
