"""The simulated grid of fusion: 608 panels of sources, every method of `Fuser`, and what `auto` makes of them.

    python -m benchmarks.fusion_grid                         20,000 items, 20 batches of a cell (4 hours of one core)
    python -m benchmarks.fusion_grid --replicates 4          at most 4 batches of a cell
    python -m benchmarks.fusion_grid --quick                 one small cell of each kind, 2 batches
    python -m benchmarks.fusion_grid --show --beside FILE    the tables, beside those of an older store

A stopped run resumes. `benchmarks.fusion_panels` describes the cells. Batches of all cells come in turn, more often
where they are small. A store is a file with a JSON line for each cell and replicate; the tables of two stores are of
the batches that both have. Delete a store after a change of the code or of the cells.

A line per batch has `methods`: name -> [error, log-loss, seconds], or None where the fit failed; `members`: errors and
log-losses of the sources alone; `auto`: method, effective number of sources, estimated priors with their intervals,
number of warnings, and the named sources with the kinds of their faults.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks.fusion_grid_tables import report
from benchmarks.fusion_panels import KINDS, Cell, Panel, cells, member_proba, panel
from benchmarks.tables.store import code_version, read_lines
from mixent import Fuser
from mixent.core.writing import append_line
from mixent.fusion.facts import fusion_facts
from mixent.fusion.methods import METHODS

SMALLEST = 1e-6  # a probability is at least this large in the log-loss
QUICK = {"n_sources": 8, "n_items": 500}  # at most, of the cells of --quick
QUICK_REPLICATES = 2
Record = dict[str, Any]
Key = tuple[int, int]  # cell, replicate


def measured(cell: Cell, replicate: int) -> Record:
    """The record of one batch: all methods, the sources alone, and the facts of `auto`."""
    drawn = panel(cell, replicate)
    methods: dict[str, list[float] | None] = {}
    record: Record = {"cell": cell.index, "replicate": replicate, "code": code_version(), "methods": methods}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for method in METHODS:
            fuser = Fuser(drawn.calibrations, method=method)
            began = time.process_time()
            try:
                fuser.fit(drawn.answers)
            except Exception as error:
                methods[method], record["failed"] = None, f"{method}: {type(error).__name__}: {error}"
                continue
            seconds = round(time.process_time() - began, 4)
            methods[method] = [*scores(fuser.posterior_, drawn.truth), seconds]
            if method == "auto":
                record["auto"] = facts_of(fuser)
    return record | {"members": member_scores(cell, drawn)}


def scores(proba: Any, truth: np.ndarray) -> list[float]:
    """Error and log-loss in nats; the classes are 0, 1, ...."""
    loss = -np.log(np.maximum(proba[np.arange(len(truth)), truth], SMALLEST)).mean()
    return [round(float(np.mean(proba.argmax(axis=1) != truth)), 5), round(float(loss), 5)]


def member_scores(cell: Cell, drawn: Panel) -> list[list[float]]:
    """Errors and log-losses of the sources alone."""
    pairs = zip(drawn.calibrations.values(), drawn.answers.values())
    return [list(values) for values in zip(*(scores(member_proba(cell, *pair), drawn.truth) for pair in pairs))]


def facts_of(fuser: Fuser) -> Record:
    """Results of `auto` on a batch."""
    facts = fusion_facts(fuser)
    return {
        "method": facts["method"],
        "n_effective": round(facts["effective_sources"], 3),
        **{name: [round(entry[name], 4) for entry in facts["classes"]] for name in ("estimate", "low", "high")},
        "warnings": len(facts["warnings"]),
        "faults": named_faults(facts),
    }


def named_faults(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Sources that are named as faulty, with the kind of fault, the most significant first.

    The kind is the first word of that of the fault: "swapped", "random", "shifted" or "changed"; or "unclear" where one
    of several sources is wrong and it is not known which.
    """
    faults = sorted(facts["faults"], key=lambda fault: fault["p_value"])
    kinds = [(fault["sources"], (fault["kind"] or "unclear").split()[0]) for fault in faults]
    return [(name, kind) for sources, kind in kinds for name in sources]


# --- run --------------------------------------------------------------------------------------------------------------


def load_store(path: Path) -> dict[Key, Record]:
    """The records of a store by cell and replicate; none where there is no file."""
    return {(record["cell"], record["replicate"]): record for record in read_lines(path)}


def batches(chosen: tuple[Cell, ...], replicates: int | None) -> list[tuple[Cell, int]]:
    """Cells and replicates, in an order in which every start has more of small batches than of large ones."""
    numbers = {cell: min(cell.n_replicates, replicates or cell.n_replicates) for cell in chosen}
    pairs = [(cell, replicate) for cell, n in numbers.items() for replicate in range(n)]
    return sorted(pairs, key=lambda pair: pair[1] / pair[0].n_replicates ** 0.5)


def run(chosen: tuple[Cell, ...], replicates: int | None, jobs: int, out: Path) -> None:
    """Measure every batch that the store does not have."""
    out.parent.mkdir(parents=True, exist_ok=True)
    done = load_store(out)
    if done and not out.read_bytes().endswith(b"\n"):  # the last line of a run that was killed
        append_line(out, "")
    left = (delayed(measured)(cell, i) for cell, i in batches(chosen, replicates) if (cell.index, i) not in done)
    for record in Parallel(jobs, return_as="generator_unordered")(left):
        append_line(out, json.dumps(record))


def quick_cells() -> tuple[Cell, ...]:
    """The first small cell of each kind."""
    small = [cell for cell in cells() if all(getattr(cell, name) <= most for name, most in QUICK.items())]
    return tuple(next(cell for cell in small if cell.kind == kind) for kind in KINDS)


def main(arguments: list[str] | None = None) -> list[str]:
    """Run what the store does not have; print and return the lines of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, help="at most so many batches of a cell")
    parser.add_argument("--kinds", nargs="*", choices=KINDS, help="default: all kinds of cells")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/fusion_grid.jsonl"), help="the store")
    parser.add_argument("--beside", type=Path, metavar="FILE", help="a store of the code before a change")
    parser.add_argument("--quick", action="store_true", help="one small cell of each kind, 2 batches")
    parser.add_argument("--show", action="store_true", help="run nothing; print the tables of the store")
    asked = parser.parse_args(arguments)
    chosen = tuple(c for c in (quick_cells() if asked.quick else cells()) if c.kind in (asked.kinds or KINDS))
    if not asked.show:
        run(chosen, QUICK_REPLICATES if asked.quick else asked.replicates, asked.jobs, asked.out)
    stores = {} if asked.beside is None else {"before": load_store(asked.beside)}
    lines = report(chosen, stores | {"after": load_store(asked.out)})
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
