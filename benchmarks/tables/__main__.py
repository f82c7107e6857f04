"""`python -m benchmarks.tables`: run what is not done yet, write and print the table; `--all`: every table, a page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.tables.accuracy import ACCURACY
from benchmarks.tables.comparison import comparisons
from benchmarks.tables.crowds import crowds
from benchmarks.tables.data import SHARED, NoDataError, load
from benchmarks.tables.discrimination import DISCRIMINATION
from benchmarks.tables.ensembles import ENSEMBLES_TABLE
from benchmarks.tables.everything import results_of, run_all
from benchmarks.tables.fusion import FUSION
from benchmarks.tables.fusion_simulated import votes
from benchmarks.tables.incremental import INCREMENTAL
from benchmarks.tables.inference import INFERENCE
from benchmarks.tables.judges import JUDGES_TABLE
from benchmarks.tables.maxent import CONTINUOUS, MIXED
from benchmarks.tables.novelty import NOVELTY
from benchmarks.tables.run import plan, run_setting
from benchmarks.tables.show import show
from benchmarks.tables.splice import SPLICE
from benchmarks.tables.store import Store, code_version
from benchmarks.tables.summary import planned_records, summarize
from benchmarks.tables.table import Setting, Table
from benchmarks.tables.trees import TREES
from benchmarks.tables.waveform import WAVEFORM

ALL = (
    *(ACCURACY, INCREMENTAL, WAVEFORM, CONTINUOUS, MIXED, INFERENCE, DISCRIMINATION, SPLICE, TREES, NOVELTY),
    ENSEMBLES_TABLE,
    FUSION,
    JUDGES_TABLE,
)
TABLES = {table.name: table for table in ALL}
PROGRAMS = {"votes": votes, "crowds": crowds, "compare": comparisons}  # which run in ways of their own


def read_arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--table", choices=[*TABLES, *PROGRAMS], default="accuracy")
    parser.add_argument("--all", action="store_true", help="every table, then the page; with --show only the page")
    parser.add_argument("--page", type=Path, metavar="FILE", help="of --all; docs/tables.md, or not there if --quick")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="only these data sets, or cases of them")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="run only these (all stored ones are shown)")
    parser.add_argument("--repeats", type=int, help="of the folds, for every set")
    parser.add_argument("--folds", type=int, help="for every set without a split of its own")
    parser.add_argument("--quick", action="store_true", help="a few small sets, few folds, once")
    parser.add_argument(
        "--redo", nargs="+", metavar="METHOD", default=[], help="run these (or all) again if src/mixent has changed"
    )
    parser.add_argument("--show", action="store_true", help="run nothing, show what is there")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the curves of a table that has some")
    parser.add_argument("--data", type=Path, default=SHARED, help="folder with manifest.json and the CSV files")
    parser.add_argument("--results", type=Path, help="folder of the records; --all --quick has one of its own")
    parser.add_argument("--budget", type=float, metavar="SECONDS", help="of table compare, for every set")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes of table compare; default: all cores")
    parser.add_argument("--quiet", action="store_true", help="no line per fold")
    args = parser.parse_args(given)
    args.results = results_of(args.results, args.all, args.quick)
    return args


def settings_of(table: Table, args: argparse.Namespace) -> list[Setting]:
    names = args.sets or (table.quick if args.quick else [s.name for s in table.settings])
    known = {s.name: s for s in table.settings}
    of_data = {name: [s.name for s in table.settings if s.dataset == name] for name in names}
    unknown = [name for name in names if name not in known and not of_data[name]]
    if unknown:
        raise NoDataError(f"table {table.name} has no set {unknown[0]!r}; it has: {', '.join(known)}")
    names = [setting for name in names for setting in ([name] if name in known else of_data[name])]
    folds = args.folds or (5 if args.quick else None)
    repeats = args.repeats or (1 if args.quick else None)
    return [known[name].planned(folds, repeats) for name in names]


def main(given: list[str] | None = None) -> int:
    args = read_arguments(given)
    return run_all(args, [*TABLES, *PROGRAMS], run_table) if args.all else run_table(args)


def run_table(args: argparse.Namespace) -> int:
    """One table: run, write its records, print it."""
    if args.table in PROGRAMS:
        return PROGRAMS[args.table](args)
    table, store, console = TABLES[args.table], Store(args.table, args.results), Console()
    if args.picture is not None and table.picture is None:
        print(f"error: table {table.name} has no picture", file=sys.stderr)
        return 1
    try:
        results = {s: _one_set(table, s, args, store) for s in settings_of(table, args)}
    except NoDataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    records = [r for setting, by_method in results.items() for r in summarize(table, setting, by_method)]
    path = store.write_summary(records, table.name + "-quick" * args.quick)
    (table.view or show)(table, results, code_version(), console)
    console.print(f"{len(records)} records in {path}", markup=False, highlight=False)
    if args.picture is not None and table.picture is not None:
        table.picture(results, args.picture)
        console.print(f"picture in {args.picture}", markup=False, highlight=False)
    return 0


def _one_set(table: Table, setting: Setting, args: argparse.Namespace, store: Store) -> dict[str, list[dict]]:
    methods = list(table.methods_of(setting))
    keys = plan(setting, methods)
    if not args.show:
        store.forget(setting.name, methods if "all" in args.redo else args.redo, code_version())
        wanted = [method for method in methods if args.methods is None or method in args.methods]
        data = load(setting.dataset, args.data, mixed=setting.mixed, discrete=setting.discrete)
        run_setting(table, setting, wanted, data, store, (lambda text: None) if args.quiet else _print_line)
    return planned_records(store, setting, keys)


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
