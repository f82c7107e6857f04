"""Table "compare": what is kept of `mixent.compare`, and what is made of it over the sets."""

from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables import comparison_show as view
from benchmarks.tables.comparison import N_SETS, Compared, Sheet, names_of, read_set
from benchmarks.tables.data import SHARED
from benchmarks.tables.everything import QUICK
from benchmarks.tables.printed import BEST, TODAY
from benchmarks.tables.store import Store

KINDS = {"mixture": "mixent", "stack": "mixent", "logistic regression": "scikit-learn", "naive Bayes": "scikit-learn"}


def record(method, fold, error, loss, failed=None):
    seconds = {"fit_seconds": 0.1, "predict_seconds": 0.01}
    scores = {"error": error, "balanced_error": error, "log_loss": loss, "brier": 0.1, "calibration": 0.05}
    return (
        {"method": method, "repeat": 0, "fold": fold, "n_train": 80, "n_test": 20, "failed": failed} | scores | seconds
    )


def compared(name, table, metric="log_loss", folds=5):
    """A set whose methods have these scores, (methods, folds); errors are the same."""
    by = {m: [record(m, f, v, v) for f, v in enumerate(values)] for m, values in table.items()}
    kinds = {m: KINDS.get(m, "mixent") for m in table}
    best = min(table, key=lambda m: np.mean(table[m]))
    sheet = Sheet(name, 100, 4, 2, best, None, kinds, {}, folds, 1, 1.0, "code")
    return Compared(sheet, by)


@pytest.fixture
def asked(monkeypatch):
    """`mixent.compare` as it answers, and what it was asked."""
    calls = []

    def compare(X, y, **options):
        calls.append((X, y, options))
        means = {"mixture": 0.1, "stack": 0.2, "logistic regression": 0.15, "naive Bayes": 0.3}
        records = [record(m, f, v, 2 * v) for m, v in means.items() for f in range(options["folds"])]
        records[-1] |= {"failed": "ValueError: no", "error": float("nan"), "log_loss": float("nan")}
        return SimpleNamespace(
            cv=SimpleNamespace(records=records),
            candidates={m: SimpleNamespace(kind=kind, from_mixent=kind == "mixent") for m, kind in KINDS.items()},
            skipped={"tree MED": "fewer than half of the columns are categorical"},
            recommended="mixture",
            estimate=SimpleNamespace(value=0.22, low=0.2, high=0.25),
            problems=[],
        )

    monkeypatch.setattr("mixent.compare", compare, raising=False)
    return calls


def run(data, results, *more):
    given = ["--table", "compare", "--quiet", "--data", str(data), "--results", str(results), "--sets", "hepatitis"]
    return program.main([*given, *more])


def test_what_is_kept_of_a_set(asked, data, tmp_path, capsys):
    assert run(data, tmp_path, "--budget", "60", "--jobs", "1") == 0
    X, y, options = asked[0]
    assert X["c"].dtype.kind not in "fi" and X["a"].isna().any()  # categories and missing values as they are
    assert len(y) == len(X) == 120
    assert (options["folds"], options["repeats"], options["budget"], options["n_jobs"]) == (5, 1, 60.0, 1)
    assert options["journal"] == tmp_path / "compare" / "hepatitis.jsonl" and options["refit"] is False
    kept = read_set(Store("compare", tmp_path), "hepatitis")
    assert kept.sheet.recommended == "mixture" and kept.sheet.kinds == KINDS and kept.sheet.n_rows == 120
    assert kept.methods("mixent") == ["mixture", "stack"]
    assert kept.methods("scikit-learn") == ["logistic regression"]  # the other failed in a fold
    assert "| hepatitis | 120 | mixture | 10.0 | logistic regression | 15.0 | -5.0" in capsys.readouterr().out


def test_a_finished_set_is_not_compared_again(asked, data, tmp_path, monkeypatch):
    for _ in range(2):
        assert run(data, tmp_path) == 0
    assert len(asked) == 1
    assert run(data, tmp_path, "--redo", "all") == 0 and len(asked) == 1  # the same source
    journal = tmp_path / "compare" / "hepatitis.jsonl"
    journal.write_text("old\n")
    monkeypatch.setattr("benchmarks.tables.comparison.code_version", lambda: "another")
    assert run(data, tmp_path, "--redo", "all") == 0
    assert len(asked) == 2 and not journal.exists()


def test_bad_sets_are_named(asked, data, tmp_path, capsys):
    assert run(data, tmp_path, "--sets", "irsi") == 1
    assert "table compare has no set 'irsi'; it has: iris" in capsys.readouterr().err


@pytest.mark.skipif(not SHARED.exists(), reason=f"the data sets are not in {SHARED}")
def test_all_feature_tables_are_meant():
    names = names_of(SHARED)
    assert len(names) == N_SETS and "dna_statlog" in names and not any("crowd" in name for name in names)


def test_methods_are_called_as_compare_calls_them():
    from mixent.comparison.candidates import recipes

    known = {name: recipe.kind for name, recipe in recipes().items()}
    assert set(known.values()) == {view.OURS, view.THEIRS, view.CLASSICAL, "baseline"}
    assert known[view.LOGISTIC] == view.THEIRS and known[view.STACK] == view.OURS
    assert {known[name] for name in (*view.LIKE_LOGISTIC, *QUICK["compare"].methods)} == {view.OURS}


# --- sides ------------------------------------------------------------------------------------------------------------


def test_a_side_is_chosen_on_the_other_folds():
    table = np.random.default_rng(0).uniform(0.1, 0.5, size=(3, 5))
    item = compared("iris", dict(zip(("mixture", "stack", "third"), table)))
    names = ["mixture", "stack", "third"]
    brute = np.mean([table[np.delete(table, f, axis=1).mean(axis=1).argmin(), f] for f in range(5)])
    assert view.by_other_folds(item, names, "log_loss") == pytest.approx(brute)
    assert view.by_other_folds(item, names, "error") == pytest.approx(100 * brute)
    assert view.in_hindsight(item, names, "log_loss") == pytest.approx(table.mean(axis=1).min())
    assert view.by_other_folds(item, ["stack"], "log_loss") == pytest.approx(table[1].mean())  # no choice, no loss
    assert np.isnan(view.by_other_folds(item, [], "log_loss")) and np.isnan(view.in_hindsight(item, [], "error"))


def sets_of(n, ours, theirs):
    """n sets on which our mixture and logistic regression have these scores in all folds."""
    rng = np.random.default_rng(3)
    noise = rng.normal(0, 1e-3, size=(n, 5))
    return {
        f"set{i}": compared(
            f"set{i}",
            {
                "mixture": ours + noise[i],
                "stack": ours + 0.2 + noise[i],
                "logistic regression": theirs + noise[i] + rng.normal(0, 1e-3, 5),
                "naive Bayes": theirs + 0.3 + noise[i],
            },
        )
        for i in range(n)
    }


@pytest.mark.parametrize(("ours", "theirs", "won"), [(0.1, 0.2, (8, 0, 0)), (0.2, 0.1, (0, 0, 8))])
def test_wins_and_their_test(ours, theirs, won):
    lines = view.lines(sets_of(8, ours, theirs))
    row = next(line for line in lines if line.startswith("| all of ours | chosen on the other folds | log-loss"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert tuple(map(int, cells[3:6])) == won
    assert float(cells[8]) == pytest.approx(2 / 2**8, abs=5e-4)  # signed-rank, all one way
    beyond = next(line for line in lines if line.startswith("By log-loss, set by set"))
    assert f"better beyond noise on {won[0]}" in beyond and f"worse on {won[2]}" in beyond
    ranks = [line for line in lines if line.startswith(("| mixture |", "| logistic regression |"))]
    assert ranks[0].startswith("| mixture |" if won[0] else "| logistic regression |")


def test_marks():
    assert view.closed("glass", BEST["glass"][1]) == 1 and view.closed("glass", TODAY["glass"]) == 0
    halfway = (BEST["glass"][1] + TODAY["glass"]) / 2 - 0.1
    flat = np.full(5, halfway / 100)
    results = {"glass": compared("glass", {"mixture": flat, "logistic regression": flat / 1.6, "naive Bayes": flat})}
    text = "\n".join(view.mark_lines(results))
    assert "glass passed, 0.51 by the best of ours, 0.51 chosen on the other folds" in text
    assert "mixture 0 of 1 (missed: glass 1.60)" in text
    rng = np.random.default_rng(0)
    near, low = 0.4 + rng.normal(0, 0.01, 5), 0.3 + rng.normal(0, 0.001, 5)
    results = {"pima": compared("pima", {"maximum entropy": near, "logistic regression": low, "naive Bayes": low})}
    assert "pima maximum entropy worse (+" in "\n".join(view.mark_lines(results))
    results = {"pima": compared("pima", {"maximum entropy": low, "logistic regression": near, "naive Bayes": low})}
    assert "pima maximum entropy not worse (-" in "\n".join(view.mark_lines(results))


def test_nothing_run_is_said():
    assert view.lines({})[0] == "Not run yet: `python -m benchmarks.tables --table compare`."
