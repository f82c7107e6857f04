"""All tables in one go, and the page: ours beside the printed, nothing run twice, the same bytes again."""

import re
import time
from pathlib import Path

import numpy as np
import pytest
from benchmarks.tables import __main__ as program
from benchmarks.tables import crowds, everything, fusion_simulated
from benchmarks.tables.beside import Beside, against, noise, significance, std_error
from benchmarks.tables.data import SHARED
from benchmarks.tables.everything import QUICK, Quick, inputs_of, page_of, quick_settings
from benchmarks.tables.markdown import anchor, grid_lines, table_lines
from benchmarks.tables.page import CHAPTERS, PAGE, write_page
from benchmarks.tables.run import plan
from benchmarks.tables.store import Store, code_version, write_lines
from rich.table import Table as Grid

PIECE = {"accuracy": Quick(("iris",), ("mixent 1 VVV", "LR")), "inference": Quick(("zoo",), ("joint", "naive Bayes"))}


@pytest.fixture(scope="module")
def quick(data, tmp_path_factory):
    """A finished quick run of a piece of one table, and its page."""
    folder = tmp_path_factory.mktemp("quick")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(everything, "QUICK", PIECE)
        assert program.main(arguments(data, folder)) == 0
    return folder


def arguments(data, folder, *more):
    return ["--all", "--quick", "--quiet", "--data", str(data), "--results", str(folder), *more]


# --- a run ------------------------------------------------------------------------------------------------------------


def test_page_has_ours_beside_the_printed(quick):
    text = (quick / "tables.md").read_text()
    records = list(Store("inference", quick).load("zoo").values())
    errors = {m: 100 * np.mean([r["error"] for r in records if r["method"] == m]) for m in ("joint", "naive Bayes")}
    row = next(line for line in text.splitlines() if line.startswith("| zoo | 2 |"))
    cells = [rf"{errors[m]:.2f}\s±\s[\d.]+ \({printed}\)" for m, printed in (("joint", "0"), ("naive Bayes", "2.12"))]
    assert re.fullmatch(rf"\| zoo \| 2 \| {cells[0]} \| {cells[1]} \|", row)  # document 004 prints 0 and 2.12 %
    assert "**Against the print.** Of 2 numbers printed in Table 2.3" in text
    assert "one Gaussian against" not in text and "| iris | 2 |" in text
    assert f"`python -m benchmarks.tables --table inference`; 4 fits; source {code_version()} (4)" in text
    assert "Not run yet: `python -m benchmarks.tables --table trees`" in text


def test_page_is_the_same_again_and_nothing_is_run(quick, data, monkeypatch):
    monkeypatch.setattr("benchmarks.tables.run.score_fold", lambda *a, **k: pytest.fail("run again"))
    monkeypatch.setattr(everything, "QUICK", PIECE)
    before = (quick / "tables.md").read_bytes()
    assert program.main(arguments(data, quick)) == 0
    assert (quick / "tables.md").read_bytes() == before
    assert program.main(arguments(data, quick, "--show")) == 0
    assert (quick / "tables.md").read_bytes() == before


def test_a_table_that_cannot_run_does_not_stop_the_others(data, tmp_path, monkeypatch, capsys):
    pieces = {"accuracy": Quick(("crabs",), ("LR",)), "inference": Quick(("zoo",), ("naive Bayes",))}
    monkeypatch.setattr(everything, "QUICK", pieces)
    assert program.main(arguments(data, tmp_path)) == 1
    assert "there is no data set 'crabs'" in capsys.readouterr().err
    assert "| zoo | 2 |" in (tmp_path / "tables.md").read_text()


def test_a_page_of_nothing_is_not_written(data, tmp_path, capsys):
    page = tmp_path / "tables.md"
    page.write_text("numbers of before\n")
    assert program.main(arguments(data, tmp_path, "--show", "--page", str(page))) == 1
    assert "no records in" in capsys.readouterr().err and page.read_text() == "numbers of before\n"


def test_quick_mode_keeps_away_from_the_page_and_the_stores_of_the_whole():
    whole, small = program.read_arguments(["--all"]), program.read_arguments(["--all", "--quick"])
    assert page_of(whole) == PAGE and page_of(small) == small.results / "tables.md"
    assert small.results.parent == whole.results
    asked = program.read_arguments(["--all", "--quick", "--page", "x.md", "--results", "y"])
    assert (page_of(asked), asked.results) == (Path("x.md"), Path("y"))


def test_pieces_of_the_quick_mode_exist():
    for name, piece in QUICK.items():
        assert name in program.TABLES or name in program.PROGRAMS
        if name in program.TABLES:
            settings = list(quick_settings(program.TABLES[name]))
            assert [s.name for s in settings] == list(piece.sets)
            for setting in settings:
                assert set(piece.methods or ()) <= set(program.TABLES[name].methods_of(setting))


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason=f"the data sets are not in {SHARED}")
def test_quick_mode_of_all_tables(tmp_path):
    began = time.process_time()
    assert program.main(["--all", "--quick", "--quiet", "--jobs", "1", "--results", str(tmp_path)]) == 0
    assert time.process_time() - began < 180
    text = (tmp_path / "tables.md").read_text()
    assert re.findall(r"Not run yet: .*--table (\w+)", text) == ["splice"]
    assert text.count("Against the print") >= 6


# --- every section ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The page of made-up records of every table, all sets and methods; errors of "sum" on one set are known."""
    folder = tmp_path_factory.mktemp("full")
    rng = np.random.default_rng(0)
    for table in program.TABLES.values():
        store = Store(table.name, folder)
        metrics = [*table.measures, *table.scores, "error", "log_loss", "brier", "fit_seconds"]
        for setting in table.settings:
            keys = plan(setting, list(table.methods_of(setting)))
            write_lines(store.path(setting.name), [made_up(key, metrics, rng) for key in keys])
    for name, sets, methods in (
        ("votes", [case.name for case in fusion_simulated.CASES], fusion_simulated.METHODS),
        ("crowds", crowds.SETS, crowds.METHODS),
    ):
        metrics = ["error", "log_loss", "covered", "n_calibrated"]
        for set in sets:
            keys = [(set, method, 1, repeat, 0) for method in methods for repeat in range(3)]
            write_lines(Store(name, folder).path(set), [made_up(key, metrics, rng) for key in keys])
    return write_page(folder / "tables.md", inputs_of(folder, quick=False)).read_text()


def made_up(key, metrics, rng):
    name, method, n_folds, repeat, fold = key
    place = {"set": name, "method": method, "n_folds": n_folds, "repeat": repeat, "fold": fold, "code": "made up"}
    size = {"n_train": 90, "n_test": 10, "failed": None, "warned": None}
    scores = {metric: float(rng.uniform(0.1, 0.4)) for metric in metrics}
    if (name, method) == ("pima_1_2.57", "sum"):
        scores["error"] = 0.3333
    rows = {"rows": {m: rng.uniform(size=20).tolist() for m in ("error", "log_loss", "brier")}} if n_folds == 1 else {}
    return place | size | scores | rows


def test_every_section_is_written(full):
    assert re.findall(r"Not run yet: .*--table (\w+)", full) == ["compare"]
    for name in [*program.TABLES, "votes", "crowds"]:
        assert f"<small>`python -m benchmarks.tables --table {name}`; " in full
    assert not re.search(r"\bnan\b", full)


@pytest.mark.parametrize(
    "text",
    [
        "33.33 (31.84)",  # table 4.3 of document 004: the sum of pima at M 2.57
        "33.33 (36.43)",  # table 6.1
        *(f"**Table {number}" for number in ("4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "6.1", "3.5")),
        *(f"printed in {what}, ours" for what in ("Table 1", "Table 2", "Table 2.1", "Table 2.2", "Table 4.6")),
        *("**Marks.** (a) passed on", "**Mark (d).**", "behind on"),
    ],
)
def test_what_sections_say(full, text):
    assert text in full


def test_a_section_without_records_stays_as_it_is(full, tmp_path):
    page = tmp_path / "tables.md"
    page.write_text(full)
    assert write_page(page, inputs_of(tmp_path, quick=False)).read_text() == full
    assert "Not run yet: `python -m benchmarks.tables --table trees`" in (
        write_page(tmp_path / "new.md", inputs_of(tmp_path, quick=False)).read_text()
    )


# --- words ------------------------------------------------------------------------------------------------------------


def folds_of(values, n_train=90, n_test=10, n_folds=10):
    size = {"repeat": 0, "n_train": n_train, "n_test": n_test, "n_folds": n_folds, "failed": None}
    return [size | {"fold": i, "log_loss": v, "error": v} for i, v in enumerate(values)]


def test_standard_errors_count_shared_rows():
    result = np.random.default_rng(0).normal(0.3, 0.1, 10)
    var = result.var(ddof=1)
    assert std_error(folds_of(result), "log_loss") == pytest.approx(np.sqrt(var * (1 / 10 + 1 / 9)))
    assert std_error(folds_of(result), "error") == pytest.approx(100 * np.sqrt(var * (1 / 10 + 1 / 9)))
    splits = folds_of(result, n_train=80, n_test=120)  # random splits: as many as one likes
    assert std_error(splits, "log_loss") == pytest.approx(np.sqrt(var / 10))
    assert noise(folds_of(result), "log_loss", None) == pytest.approx(2 * np.sqrt(var * (2 / 10 + 2 / 9)))
    assert noise(splits, "log_loss", 1) == pytest.approx(2 * np.sqrt(var * (1 / 10 + 1)))
    assert np.isnan(std_error(folds_of(result[:1]), "log_loss"))


def test_standard_error_of_one_split_is_over_its_rows():
    wrong = np.repeat([0.0, 1.0], [30, 10])
    record = folds_of([0.25], n_folds=1)[0] | {"rows": {"error": wrong.tolist()}}
    assert std_error([record], "error") == pytest.approx(100 * wrong.std(ddof=1) / np.sqrt(40))


@pytest.mark.parametrize(("gap", "word"), [(0.5, "within noise"), (-1.5, "better"), (1.5, "worse")])
def test_words_beside_the_print(gap, word):
    assert Beside("iris", gap, 1.0).word == word
    assert Beside("iris", gap, float("nan")).word == "within noise"  # one fold tells nothing
    text = against([Beside("iris", gap, 1.0)], "Table 1")
    assert text.startswith("Of 1 number printed in Table 1, ours are within noise in ")
    assert ("(iris)" in text) == (word != "within noise")


def test_same_folds_are_told_apart():
    rng = np.random.default_rng(1)
    low = rng.normal(0.3, 0.02, 10)
    first, second = folds_of(low), folds_of(low + 0.1 + rng.normal(0, 0.005, 10))
    assert significance(first, second, "error") == "better" and significance(second, first, "error") == "worse"
    assert significance(first, first, "error") == "within noise"
    assert significance(first, [], "error") is None


# --- Markdown ---------------------------------------------------------------------------------------------------------


def test_grids_become_markdown():
    grid = Grid("set", "a | b", "none")
    grid.title = "two"
    grid.add_row("iris", "1*", "")
    lines = grid_lines(grid)
    assert lines == ["*two*", "", "| set | a \\| b |", "| --- | ---: |", "| iris | 1\\* |", ""]
    assert grid_lines(Grid("set")) == []
    assert table_lines(["a", "b"], [["x"]])[2] == "| x |  |"
    marks = table_lines(["a", "b", "c"], [["x", "+1.0 ± 0.1", "y"], ["y", "–", "2"]])[1]
    assert marks == "| --- | ---: | --- |"  # numbers to the right


def test_the_page_is_well_formed():
    """The one in docs: every table has whole rows and is not too wide, every entry of the contents leads somewhere."""
    text = PAGE.read_text()
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")]
    assert max(cells) - 1 <= 14
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    heads = {anchor(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")}
    assert set(re.findall(r"\(#([^)]+)\)", text)) <= heads
    assert all(f"## {chapter}" in text for chapter in CHAPTERS)
    assert not re.search(r"\bnan\b", text)
