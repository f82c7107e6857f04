"""The simulated grid of fusion: what is drawn, stored and shown."""

import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.fusion_grid import batches, load_store, main, measured, named_faults, quick_cells
from benchmarks.fusion_grid_tables import Scored, change_table, coverage_table, fault_table, near_table
from benchmarks.fusion_panels import (
    BATCHES,
    ITEMS,
    KINDS,
    Cell,
    cells,
    effective_number,
    panel,
    true_effective_number,
)

from benchmarks import fusion_grid

PLAIN = Cell(
    index=0,
    kind="hard",
    answers="hard",
    n_items=20_000,
    priors=(0.2, 0.3, 0.5),
    accuracy=(0.6, 0.8, 0.9),
    correlation=0.5,
    n_copies=0,
    n_rows=20_000,
    calibration_priors=(0.5, 0.25, 0.25),
    sharpness=1.0,
    n_levels=200,
    faulty=None,
)


def test_cells_fill_the_ranges_of_the_grid():
    assert len(cells()) == sum(KINDS.values()) >= 500
    values = {
        name: [getattr(cell, name) for cell in cells()] for name in ("n_sources", "n_classes", "n_items", "n_rows")
    }
    for name, (low, high) in {
        "n_sources": (2, 30),
        "n_classes": (2, 5),
        "n_items": (30, 3000),
        "n_rows": (20, 2000),
    }.items():
        assert low <= min(values[name]) <= 1.1 * low and 0.9 * high <= max(values[name]) <= high
    accuracies = [a for cell in cells() for a in cell.accuracy]
    assert 0.55 <= min(accuracies) < 0.57 and 0.93 < max(accuracies) <= 0.95
    assert min(c.correlation for c in cells()) == 0 and 0.75 < max(c.correlation for c in cells()) <= 0.8
    assert all(sum(cell.priors) == pytest.approx(1) and min(cell.priors) >= 0.0099 for cell in cells())
    assert all(cell.n_replicates >= BATCHES and cell.n_replicates * cell.n_items >= ITEMS for cell in cells())


def test_every_stratum_has_enough_cells():
    for has in (
        lambda c: c.n_sources >= 15,
        lambda c: min(c.priors) < 0.05,
        lambda c: c.n_copies > 0,
        lambda c: c.correlation == 0,
        *(lambda c, kind=kind: c.kind == kind for kind in KINDS),
    ):
        assert sum(map(has, cells())) >= 20


def test_clear_faults_are_in_panels_that_could_show_them():
    clear = [cell for cell in cells() if cell.kind.startswith("clear")]
    assert {cell.fault for cell in clear} == {"swapped", "random"}
    for cell in clear:
        assert cell.n_sources >= 4 and cell.n_items >= 300 and cell.n_rows >= 100 and cell.correlation <= 0.4
        assert np.delete(cell.accuracy, cell.faulty).mean() > 0.65


def test_the_same_batch_again_and_another_replicate():
    cell = quick_cells()[0]
    first, again, other = panel(cell, 3), panel(cell, 3), panel(cell, 4)
    assert (first.truth == again.truth).all() and (first.truth != other.truth).any()
    for name in cell.names:
        np.testing.assert_array_equal(first.answers[name], again.answers[name])
        np.testing.assert_array_equal(first.calibrations[name].counts, again.calibrations[name].counts)


@pytest.mark.parametrize("answers", ["hard", "ordinal"])
def test_accuracy_on_the_rows_is_that_of_the_cell(answers):
    """Balanced accuracy; of the best decision from 200 levels, for ordinal scores."""
    drawn = panel(replace(PLAIN, kind=answers, answers=answers), 0)
    for name, accuracy in zip(PLAIN.names, PLAIN.accuracy):
        rates = drawn.calibrations[name].confusion
        best = rates.max(axis=0).sum() / 3 if answers == "ordinal" else np.trace(rates) / 3
        assert best == pytest.approx(accuracy, abs=0.02)


@pytest.mark.parametrize(("answers", "sharpness"), [("soft", 1.0), ("over-confident", 3.0)])
def test_honest_probabilities_are_those_of_the_classes(answers, sharpness):
    """E[(1[y = k] - p_k) p_k] is 0, and below 0 where the probabilities are over-confident."""
    cell = replace(PLAIN, kind=answers, answers=answers, sharpness=sharpness, calibration_priors=PLAIN.priors)
    drawn = panel(cell, 0)
    for name in cell.names:
        p = drawn.answers[name]
        excess = ((np.eye(3)[drawn.truth] - p) * p).mean(axis=0)
        assert (np.abs(excess) < 0.01).all() if sharpness == 1 else (excess < -0.01).all()


def test_a_fault_changes_the_batch_of_one_source_alone():
    plain = panel(PLAIN, 0)
    for kind in ("swapped", "random", "shifted"):
        drawn = panel(replace(PLAIN, kind=kind, faulty=1), 0)
        for name in PLAIN.names:
            assert (drawn.calibrations[name].counts == plain.calibrations[name].counts).all()
            assert (drawn.answers[name] == plain.answers[name]).all() == (name != "s2")
        given, before, truth = drawn.answers["s2"], plain.answers["s2"], plain.truth
        if kind == "swapped":
            assert ((given == before).sum() == 0) and (given == truth).mean() < 0.15
        elif kind == "random":
            assert (np.bincount(given) == np.bincount(before)).all()
            assert np.corrcoef(given == 0, truth == 0)[0, 1] == pytest.approx(0, abs=0.03)
        else:
            assert np.mean(given == 0) > np.mean(before == 0) + 0.05


def test_copies_and_shared_rows():
    copied = panel(replace(PLAIN, n_copies=2), 0)
    for name in ("s4", "s5"):
        assert (copied.answers[name] == copied.answers["s1"]).all()
        assert copied.calibrations[name] == copied.calibrations["s1"]
    shared = panel(replace(PLAIN, kind="shared rows"), 0)
    rows = [calibration.n_rows for calibration in shared.calibrations.values()]
    assert all((n == rows[0]).all() for n in rows)
    assert all(c.calibration_set is None and c.copy_of is None for c in shared.calibrations.values())


def test_effective_number_of_equal_correlations_and_of_copies():
    for c in (0.0, 0.3):
        assert effective_number(np.full((5, 5), c) + (1 - c) * np.eye(5)) == pytest.approx(5 / (1 + 4 * c), rel=1e-4)
    same = np.kron(np.eye(3), np.ones((2, 2)))
    assert effective_number(same) == pytest.approx(3, rel=1e-4)
    independent = replace(PLAIN, correlation=0.0)
    assert true_effective_number(independent) == pytest.approx(3, abs=0.1)
    assert true_effective_number(replace(independent, n_copies=2)) == pytest.approx(3, abs=0.1)
    assert true_effective_number(PLAIN) < 2.5


def test_named_faults_are_in_the_order_of_their_p_values():
    unclear = {"sources": ["a", "d"], "p_value": 0.01, "kind": None}
    shifted = {"sources": ["b"], "p_value": 0.001, "kind": "shifted threshold"}
    assert named_faults({"faults": [unclear, shifted]}) == [("b", "shifted"), ("a", "unclear"), ("d", "unclear")]


def record_of(cell, replicate, auto, best, named, low=0.0, high=1.0):
    """A record in which `auto` and one other method have these errors."""
    n = cell.n_classes
    facts = {"method": "best", "n_effective": 2.0, "warnings": 0, "faults": named}
    facts |= {"estimate": list(cell.priors), "low": [low] * n, "high": [high] * n}
    methods = {"auto": [auto, 0.3, 0.0], "best": [best, 0.2, 0.0], "majority": [best, 0.4, 0.0]}
    return {
        "cell": cell.index,
        "replicate": replicate,
        "methods": methods,
        "members": [[0.3] * cell.n_sources] * 2,
        "auto": facts,
    }


def test_differences_are_those_of_the_means_of_a_cell():
    scored = Scored(PLAIN, [record_of(PLAIN, 0, 0.10, 0.20, []), record_of(PLAIN, 1, 0.16, 0.02, [])])
    assert scored.best == ["best", "best"]
    assert scored.differences == pytest.approx([2.0, 0.1])  # not the mean of those to the best of each batch
    near = Scored(PLAIN, [record_of(PLAIN, 0, 0.10, 0.095, [])])
    first = near_table({"after": [scored, near]})[4]
    assert first.split("|")[3:8] == [" 2 ", " 50 ", " 0 ", " 0 ", " 1.25 "]


def test_a_failed_fit_counts_as_equal_probabilities():
    record = record_of(PLAIN, 0, 0.1, 0.1, [])
    record["methods"]["auto"] = None
    del record["auto"]
    scored = Scored(PLAIN, [record])
    np.testing.assert_allclose(scored.means["auto"], [100 * 2 / 3, np.log(3)])
    assert scored.autos == []


def test_changes_are_those_of_the_means_of_auto():
    other = replace(PLAIN, index=1)
    before = [Scored(cell, [record_of(cell, 0, 0.10, 0.1, [])]) for cell in (PLAIN, other)]
    after = [Scored(cell, [record_of(cell, 0, error, 0.1, [])]) for cell, error in ((other, 0.14), (PLAIN, 0.12))]
    lines = change_table(before, after)
    assert lines[4].split("|")[2:6] == [" 2 ", " +3.00\u00a0±\u00a01.00 ", " +0.0000\u00a0±\u00a00.0000 ", " 2 "]
    assert [line.split("|")[2:4] for line in lines[-3:-1]] == [[" 10.0 ", " 14.0 "], [" 10.0 ", " 12.0 "]]


def test_coverage_counts_the_intervals_that_hold_the_priors():
    """Of the priors .2, .3 and .5, an interval from .25 to .45 holds one, and misses one on either side."""
    lines = coverage_table([Scored(PLAIN, [record_of(PLAIN, 0, 0.1, 0.1, [], 0.25, 0.45)])])
    assert lines[4].split("|")[1:7] == [" all ", " 3 ", " 33.3 ", " 0.0 ", " 33.3 ", " 33.3 "]


def test_detection_needs_the_faulty_source_and_its_kind():
    cell = replace(PLAIN, kind="swapped", faulty=1)
    named = [[("s2", "swapped")], [("s1", "swapped"), ("s2", "random")], [("s1", "unclear")], []]
    lines = fault_table([Scored(cell, [record_of(cell, i, 0.1, 0.1, faults) for i, faults in enumerate(named)])])
    assert lines[4].split("|")[3:10] == [" 1 ", " 4 ", " 75.0 ", " 50.0 ", " 25.0 ", " 25.0 ", " 25.0 "]


def test_batches_have_all_cells_first_and_no_more_than_asked():
    small = quick_cells()
    order = batches(small, 3)
    assert {cell.index for cell, _ in order[: len(small)]} == {cell.index for cell in small}
    assert len(order) == len(set(order)) == 3 * len(small)


def test_a_record_has_all_methods_and_the_facts_of_auto():
    cell = quick_cells()[0]
    record = json.loads(json.dumps(measured(cell, 0)))
    assert set(record["methods"]) == set(fusion_grid.METHODS) and "failed" not in record
    assert len(record["auto"]["low"]) == cell.n_classes and len(record["members"][0]) == cell.n_sources
    drawn = panel(cell, 0)
    fuser = fusion_grid.Fuser(drawn.calibrations, method="discounted").fit(drawn.answers)
    assert record["methods"]["discounted"][0] == pytest.approx(np.mean(fuser.labels_ != drawn.truth), abs=1e-5)


def test_a_stopped_run_resumes(tmp_path, capsys):
    out = tmp_path / "grid.jsonl"
    given = ["--quick", "--kinds", "hard", "swapped", "--out", str(out)]
    main(given)
    lines = out.read_text().splitlines()
    assert len(lines) == 2 * fusion_grid.QUICK_REPLICATES
    out.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:50])  # killed while it wrote
    main(given)

    def without_seconds(store):
        return {key: {m: v[:2] for m, v in r["methods"].items()} for key, r in store.items()}

    whole = {(r["cell"], r["replicate"]): r for r in map(json.loads, lines)}
    assert without_seconds(load_store(out)) == without_seconds(whole)
    assert len(fusion_grid.read_lines(out)) == len(lines)  # nothing is done twice
    shown = main(["--show", *given, "--beside", str(out)])
    assert any("before" in line for line in shown) and any("after" in line for line in shown)
    assert "effective number of sources" in capsys.readouterr().out
