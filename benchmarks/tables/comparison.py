"""Table "compare": `mixent.compare` on every feature table of the manifest, our families beside scikit-learn's.

Five folds, once, the same for all methods; tables as they are, with categories and missing values; which methods run is
left to `compare` and the shape of the table. A stopped run goes on from the journal of the set; a finished set is not
run again. What is kept of a set: its records in the one raw format, and a sheet with the recommendation of `compare`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.tables.data import Dataset, NoDataError, load, manifest
from benchmarks.tables.store import Store, code_version, write_lines

NAME, FOLDS, REPEATS = "compare", 5, 1
LONG, FEWER = 2_000, 3  # rows from which there are fewer folds
N_SETS = 25  # feature tables of the manifest
QUICK = ("iris", "hepatitis")
NOT_TABLES = ("crowd_", "llmbar_")  # answers of people and of judges
KEPT = ("n_train", "n_test", "error", "balanced_error", "log_loss", "brier", "calibration")
TIMES = ("fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Sheet:
    """The recommendation of `compare` on a set, beside the scores."""

    set: str
    n_rows: int
    n_columns: int
    n_classes: int
    recommended: str | None
    estimate: dict[str, float] | None  # value, low, high of the winner, corrected for having been chosen
    kinds: dict[str, str]  # by method: "mixent", "classical" or "scikit-learn"
    skipped: dict[str, str]
    folds: int
    repeats: int
    seconds: float
    code: str
    budget: float | None = None
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Compared:
    """A set's sheet and its raw records by method."""

    sheet: Sheet
    by_method: Mapping[str, list[dict]]

    def methods(self, *kinds: str) -> list[str]:
        """Those of some kinds (none: of all) that worked in every fold."""
        wanted = self.sheet.folds * self.sheet.repeats
        sound = [m for m, rs in self.by_method.items() if len(rs) == wanted and not any(r["failed"] for r in rs)]
        return [m for m in sound if not kinds or self.sheet.kinds[m] in kinds]


# --- running ----------------------------------------------------------------------------------------------------------


def names_of(folder: Path) -> list[str]:
    """Sets that are tables of features."""
    return [name for name in manifest(folder) if not name.startswith(NOT_TABLES)]


def run_set(data: Dataset, args: argparse.Namespace, store: Store) -> None:
    """Compare, and keep what came of it."""
    import mixent

    folds = args.folds or (FEWER if len(data.y) > LONG else FOLDS)
    repeats = args.repeats or REPEATS
    journal = journal_path(store, data.name)
    journal.parent.mkdir(parents=True, exist_ok=True)
    options = {} if args.methods is None else {"methods": args.methods}
    began = time.perf_counter()
    result = mixent.compare(
        data.X,
        data.y,
        folds=folds,
        repeats=repeats,
        budget=args.budget,
        n_jobs=args.jobs,
        random_state=0,
        journal=journal,
        progress=not args.quiet,
        refit=False,
        **options,
    )
    sheet = sheet_of(data, result, folds, repeats, time.perf_counter() - began, args.budget)
    write_lines(store.path(data.name), [kept_record(data.name, r, folds) for r in result.cv.records])
    sheet_path(store, data.name).write_text(json.dumps(asdict(sheet), indent=1) + "\n")


def sheet_of(
    data: Dataset, result: Any, folds: int, repeats: int, seconds: float, budget: float | None = None
) -> Sheet:
    estimate = None if result.estimate is None else {k: float(getattr(result.estimate, k)) for k in ESTIMATE}
    return Sheet(
        set=data.name,
        n_rows=len(data.y),
        n_columns=int(data.X.shape[1]),
        n_classes=len(set(data.y.tolist())),
        recommended=result.recommended,
        estimate=estimate,
        kinds={name: candidate.kind for name, candidate in result.candidates.items()},
        skipped=dict(result.skipped),
        folds=folds,
        repeats=repeats,
        seconds=round(seconds, 1),
        code=code_version(),
        budget=budget,
        problems=list(result.problems),
    )


ESTIMATE = ("value", "low", "high")


def kept_record(name: str, record: Mapping[str, Any], folds: int) -> dict:
    """A record of `compare` in the one raw format; scores of folds that failed are absent."""
    where = {"table": NAME, "set": name, "method": record["method"], "n_folds": folds}
    place = {"repeat": record["repeat"], "fold": record["fold"], "code": code_version(), "warned": None}
    scores = {key: _plain(record.get(key)) for key in (*KEPT, *TIMES)}
    return where | place | scores | {"failed": record["failed"]}


def _plain(value: Any) -> float | None:
    """JSON has no NaN."""
    return None if value is None or value != value else round(float(value), 6)


# --- reading ----------------------------------------------------------------------------------------------------------


def journal_path(store: Store, name: str) -> Path:
    return store.results / NAME / f"{name}.jsonl"


def sheet_path(store: Store, name: str) -> Path:
    return store.results / NAME / f"{name}.json"


def read_set(store: Store, name: str) -> Compared | None:
    """None where the set has not been finished."""
    path = sheet_path(store, name)
    if not path.exists():
        return None
    sheet = Sheet(**json.loads(path.read_text()))
    by: dict[str, list[dict]] = {}
    for record in store.load(name).values():
        by.setdefault(record["method"], []).append(record)
    return Compared(sheet, by)


def read_sets(store: Store, names: Iterable[str] | None = None) -> dict[str, Compared]:
    """All finished sets, in the order of their names' first appearance on disk or as given."""
    given = sorted(p.stem for p in (store.results / NAME).glob("*.json")) if names is None else names
    results = {name: read_set(store, name) for name in given}
    return {name: run for name, run in results.items() if run is not None}


# --- the program ------------------------------------------------------------------------------------------------------


def chosen(args: argparse.Namespace) -> list[str]:
    known = names_of(args.data)
    names = args.sets or ([name for name in QUICK if name in known] if args.quick else known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise NoDataError(f"table {NAME} has no set {unknown[0]!r}; it has: {', '.join(known)}")
    return names


def comparisons(args: argparse.Namespace) -> int:
    """The program: compare on the sets that are not done, print the tables."""
    from benchmarks.tables.comparison_show import lines  # which reads what is kept here

    store = Store(NAME, args.results)
    try:
        names = chosen(args)
        for name in names if not args.show else ():
            _one_set(name, args, store)
    except NoDataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    console = Console()
    for line in lines(read_sets(store, names), args.results):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    return 0


def _one_set(name: str, args: argparse.Namespace, store: Store) -> None:
    before = read_set(store, name)
    again = "all" in args.redo and before is not None and before.sheet.code != code_version()
    if before is not None and not again and args.methods is None:
        return
    if again:
        journal_path(store, name).unlink(missing_ok=True)
    began = time.perf_counter()
    run_set(load(name, args.data, mixed=True), args, store)
    if not args.quiet:
        print(f"{name}: compared in {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
