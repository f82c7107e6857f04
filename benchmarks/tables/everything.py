"""All tables in one go: what is not done is run, then the page is written from the stores.

The quick mode has a few sets and methods of most tables, two folds each, in stores and on a page of their own; it shows
that everything runs, and its numbers mean little. Table "splice" is not in it: a fit with unlabelled rows takes long.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import discrimination as med
from benchmarks.tables import ensembles as boosted
from benchmarks.tables import incremental, inference, trees
from benchmarks.tables.fusion_cases import AUTO, IT_004
from benchmarks.tables.page import PAGE, write_page
from benchmarks.tables.section import Inputs
from benchmarks.tables.store import RESULTS
from benchmarks.tables.table import Setting, Table

FOLDS, REPEATS = 2, 1
RunOne = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Quick:
    """The piece of a table that the quick mode runs; None: all of what the table itself calls quick."""

    sets: tuple[str, ...]
    methods: tuple[str, ...] | None = None


QUICK: dict[str, Quick] = {
    "compare": Quick(("iris",), ("maximum entropy", "linear MED")),
    "waveform": Quick(("waveform_300",), ("3 shared: likelihood", "3 shared: conditional")),
    "discrimination": Quick(("crabs",), (med.LINEAR, med.MED_K0, med.ML_K0, med.SVM_LINEAR, med.LR)),
    "trees": Quick((trees.WITHOUT,), (trees.EVEN, trees.CHOW_LIU, trees.BAYES)),
    "novelty": Quick(("IE",)),
    "incremental": Quick(("iris",), (incremental.RESTART_BIC, incremental.GROWN_BIC)),
    "accuracy": Quick(("iris", "crabs"), ("mixent", "maxent", "QDA-reg", "GMM tuned", "LR")),
    "continuous": Quick(("bupa",), ("union", "class", "LR")),
    "mixed": Quick(("hepatitis",), ("union", "class", "LR")),
    "inference": Quick(("zoo",), (inference.JOINT, inference.BAYES)),
    "ensembles": Quick(("wine",), (boosted.ADA, boosted.SIME_004, boosted.LVME_004)),
    "fusion": Quick(("pima_1_2.57",), ("sum", "product", "ml-product", IT_004, AUTO)),
    "judges": Quick(("20-80",), ("auto", "majority", "product", "pool")),
    "votes": Quick(("independent, K=2, N=50", "5 copies, K=2, N=50")),
    "crowds": Quick(("bluebird",)),
}


def quick_settings(table: Table) -> Iterable[Setting]:
    piece = QUICK.get(table.name)
    known = {s.name: s for s in table.settings}
    return [known[name].planned(FOLDS, REPEATS) for name in piece.sets if name in known] if piece else []


def inputs_of(results: Path, quick: bool) -> Inputs:
    return Inputs(results, quick_settings if quick else lambda table: table.settings)


def arguments(name: str, args: argparse.Namespace) -> argparse.Namespace:
    """Those of one table."""
    text = vars(args) | {"table": name, "picture": None}
    if args.quick:
        piece = QUICK[name]
        text |= {"sets": list(piece.sets), "folds": FOLDS, "repeats": REPEATS, "quick": False}
        text |= {"methods": None if piece.methods is None else list(piece.methods)}
    return argparse.Namespace(**text)


def run_all(args: argparse.Namespace, names: Iterable[str], run_one: RunOne) -> int:
    """Run every table, then write the page; 1 if a table could not be run, after all the others."""
    wanted = [name for name in names if not args.quick or name in QUICK]
    status = {name: run_one(arguments(name, args)) for name in wanted} if not args.show else {}
    if not any((args.results / "raw").glob("*.jsonl")):
        print(
            f"error: no records in {args.results}, so {page_of(args)} is left as it is; run without --show",
            file=sys.stderr,
        )
        return 1
    path = write_page(page_of(args), inputs_of(args.results, args.quick))
    print(f"page in {path}")
    return max(status.values(), default=0)


def page_of(args: argparse.Namespace) -> Path:
    """The quick mode never writes over the page of the whole."""
    return args.page or (args.results / "tables.md" if args.quick else PAGE)


def results_of(given: Path | None, everything: bool, quick: bool) -> Path:
    """Where records are kept."""
    return given or (RESULTS / "quick" if everything and quick else RESULTS)
