"""The tables of document 002 and of training for the posterior: do they run, and say what was measured?"""

import numpy as np
import pytest
from benchmarks.tables.compare import difference
from benchmarks.tables.counted import counting
from benchmarks.tables.data import Dataset
from benchmarks.tables.incremental import GROWN_DIC, INCREMENTAL, RESTART_BIC
from benchmarks.tables.run import folds_of
from benchmarks.tables.store import Store, read_lines
from benchmarks.tables.table import Setting
from scipy.stats import ttest_rel

from mixent import GaussianMixture
from mixent.options import Search

TRAINED = ["1 per class: likelihood", "1 per class: conditional"]


def test_table_incremental(run, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.incremental.MOST", 3)  # for speed
    methods = ["--methods", RESTART_BIC, GROWN_DIC]
    results = run("--table", "incremental", "--sets", "iris", "--folds", "2", *methods)
    shown = capsys.readouterr().out
    for text in (RESTART_BIC, GROWN_DIC, "98.0 (4.6)", "42.0 (22.7)", "DIC - BIC, grown"):  # theirs beside ours
        assert text in shown
    for record in Store("incremental", results).load("iris").values():
        K = record["n_components"]
        assert record["failed"] is None and 3 <= K <= 9
        assert record["n_means_variances"] == 2 * 4 * K
        assert record["n_parameters"] == 2 * 4 * K + (K - 3) + (3 - 1)  # weights within classes, class priors
        assert record["evaluations"] > record["n_train"]
    matches = {(r["method"], r["metric"]): r for r in read_lines(results / "incremental.jsonl")}
    assert matches[GROWN_DIC, "n_means_variances"]["printed"] == 42.0
    assert matches[GROWN_DIC, "error"]["printed"] == 2.0


def test_printed_tables_of_002():
    printed = INCREMENTAL.printed
    assert printed["zoo", GROWN_DIC, "n_means_variances"].value == 7 * 2 * 16
    assert printed["heart_statlog", RESTART_BIC, "error"] == printed["heart_cleveland", RESTART_BIC, "error"]
    assert not any(name == "glass" for name, _, _ in printed)
    assert len(printed) == 2 * 5 * 7 and all(p.sd is not None for p in printed.values())


def test_table_waveform(run, capsys):
    results = run("--table", "waveform", "--sets", "waveform_300", "--folds", "3", "--methods", *TRAINED)
    shown = capsys.readouterr().out
    assert "waveform_300" in shown and "early stop" not in shown  # what was not run is not shown
    records = Store("waveform", results).load("waveform_300").values()
    assert len(records) == 6 and {(r["n_train"], r["n_test"]) for r in records} == {(300, 50)}
    by = {method: [r for r in records if r["method"] == method] for method in TRAINED}
    gap = difference(*by.values(), "log_loss")
    assert f"{-gap.mean:+.4f} ± {gap.se:.4f}" in shown


def test_random_splits_follow_their_seeds():
    data = Dataset("a", np.zeros((50, 1)), np.zeros(50, dtype=str), None, ())
    splits = folds_of(Setting("a", folds=4, train_rows=20), data, 0)
    for seed, (train, test) in enumerate(splits):
        order = np.random.default_rng(seed).permutation(50)
        assert np.array_equal(train, order[:20]) and np.array_equal(test, order[20:])
    assert len(splits) == 4


def test_p_value_is_that_of_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal([[0.3], [0.1]], 0.2, size=(2, 10))
    size = {"repeat": 0, "n_train": 90, "n_test": 10, "failed": None}
    first, second = ([size | {"fold": i, "log_loss": x} for i, x in enumerate(values)] for values in (a, b))
    plain, corrected = (difference(first, second, "log_loss", corrected=c) for c in (False, True))
    assert plain.p_value == pytest.approx(ttest_rel(a, b).pvalue)
    assert corrected.p_value > plain.p_value
    assert difference(first, first, "log_loss").p_value == 1


def test_evaluations_are_counted():
    X = np.random.default_rng(0).standard_normal((100, 2))
    with counting() as result:
        model = GaussianMixture(3, "VVI", search=Search(growth="incremental"), random_state=0, n_jobs=1).fit(X)
    assert sum(result) >= sum(stage.evaluations for stage in model.path_)  # EM, and what old mixtures say of the rows
    n_before = len(result)
    model.score_samples(X)
    assert len(result) == n_before  # only inside
