"""The command line: measure, print as it comes, write the records."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.speed.accuracy import accuracy
from benchmarks.speed.cases import CASES, MEMORY, MISSING, QUICK, Case
from benchmarks.speed.discriminative import CASE, discriminative
from benchmarks.speed.ensembles import QUICK as ENSEMBLES_QUICK
from benchmarks.speed.ensembles import SETTINGS as ENSEMBLES
from benchmarks.speed.ensembles import ensembles
from benchmarks.speed.fusion import FULL as FUSION
from benchmarks.speed.fusion import QUICK as FUSION_QUICK
from benchmarks.speed.fusion import fusion
from benchmarks.speed.growth import growth, layout
from benchmarks.speed.imports import imports
from benchmarks.speed.maxent import QUICK as MAXENT_QUICK
from benchmarks.speed.maxent import maxent
from benchmarks.speed.med import QUICK as MED_QUICK
from benchmarks.speed.med import med
from benchmarks.speed.med_defaults import default_fits, med_defaults, med_large, quick_defaults
from benchmarks.speed.memory import peaks
from benchmarks.speed.passes import measure, missing_values
from benchmarks.speed.records import HEAD, Record
from benchmarks.speed.trees import QUICK as TREES_QUICK
from benchmarks.speed.trees import SETTINGS as TREES
from benchmarks.speed.trees import trees
from benchmarks.tables.data import SHARED


def main(argv: Sequence[str] | None = None) -> list[Record]:
    options = _options(argv)
    if options.case == "growth":
        records = list(growth(options.data, options.quick))
        print(layout(records))
    else:
        records = _print_records(CASES_BY_NAME[options.case](options))
    if options.json is not None:
        options.json.write_text(json.dumps([record.as_dict() for record in records], indent=1) + "\n")
    return records


def _print_records(result: Iterable[Record]) -> list[Record]:
    """A line for each as it comes."""
    print(f"{HEAD}    (load {_load()} at the start)", flush=True)
    records: list[Record] = []
    for record in result:
        if records and record.set != records[-1].set:
            print()
        records.append(record)
        print(record.line(), flush=True)
    missed = sum(record.verdict == "missed" for record in records)
    wanted = sum(record.verdict != "" for record in records)
    print(f"\n{wanted - missed} of {wanted} targets met (load {_load()} at the end)")
    return records


def _training(options: argparse.Namespace) -> Iterator[Record]:
    return _untargeted(discriminative(Case(2_000, 3, 3), 1)) if options.quick else discriminative(CASE, options.rounds)


def _entropy(options: argparse.Namespace) -> Iterator[Record]:
    return maxent(MAXENT_QUICK, 1) if options.quick else maxent(rounds=options.rounds)


def _discrimination(options: argparse.Namespace) -> Iterator[Record]:
    if options.large:
        yield from med_large()
        return
    yield from med(MED_QUICK, 1) if options.quick else med(rounds=options.rounds)
    yield from med_defaults(quick_defaults() if options.quick else default_fits(options.data), options.rounds)


def _trees(options: argparse.Namespace) -> Iterator[Record]:
    return trees(options.data, TREES_QUICK if options.quick else TREES, options.rounds)


def _ensembles(options: argparse.Namespace) -> Iterator[Record]:
    return ensembles(options.data, ENSEMBLES_QUICK if options.quick else ENSEMBLES, options.rounds)


def _fusion(options: argparse.Namespace) -> Iterator[Record]:
    return fusion(FUSION_QUICK if options.quick else FUSION, options.rounds)


def _mixtures(options: argparse.Namespace) -> Iterator[Record]:
    without = tuple(options.without)
    for case in options.sizes or (QUICK if options.quick else CASES):
        yield from measure(case, options.rounds, without)
    if options.sizes:
        return
    yield missing_values(
        Case(2_000, 6, 3) if options.quick else MISSING, options.rounds, None if options.quick else 20.0
    )
    yield from _untargeted(peaks(Case(50_000, 10, 3))) if options.quick else peaks(MEMORY)
    yield from accuracy(2_000 if options.quick else 20_000)
    yield from _untargeted(imports(1)) if options.quick else imports()


CASES_BY_NAME = {
    "mixtures": _mixtures,
    "discriminative": _training,
    "maxent": _entropy,
    "med": _discrimination,
    "trees": _trees,
    "ensembles": _ensembles,
    "fusion": _fusion,
}


def _untargeted(records: Iterable[Record]) -> Iterator[Record]:
    """A smoke test judges nothing."""
    return (replace(record, printed=None, source=None) for record in records)


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description="Speed beside the peers, as ratios."
    )
    parser.add_argument("--case", choices=[*CASES_BY_NAME, "growth"], default="mixtures")
    parser.add_argument("--quick", action="store_true", help="small sizes, scikit-learn only: does it run?")
    parser.add_argument("--large", action="store_true", help="of med, 100 000 rows with a kernel only (minutes)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the records here")
    parser.add_argument("--rounds", type=int, help="interleaved rounds per size (default 5; quick 1)")
    parser.add_argument("--sizes", nargs="+", type=_size, metavar="NxDxK", help="only these sizes, and passes only")
    parser.add_argument("--without", nargs="+", default=[], choices=["pomegranate", "mclust"], help="leave peers out")
    parser.add_argument(
        "--data", type=Path, default=SHARED, help="folder of the data sets, for growth, med, trees and ensembles"
    )
    options = parser.parse_args(argv)
    if options.quick:
        options.without = ["pomegranate", "mclust"]
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def _size(text: str) -> Case:
    try:
        rows, columns, components = map(int, text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not rows x columns x components, such as 10000x5x5") from None
    known = {(c.rows, c.columns, c.components): c for c in CASES}
    return known.get((rows, columns, components), Case(rows, columns, components))


def _load() -> str:
    path = Path("/proc/loadavg")
    return path.read_text().split()[0] if path.exists() else "unknown"


if __name__ == "__main__":
    main()
    sys.exit(0)
