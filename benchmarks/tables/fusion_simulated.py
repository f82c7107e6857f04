"""Table "votes": simulated sources, independent, with copies, and with errors in common; what fusion makes of them.

Five sources of accuracies 0.65 to 0.85, each calibrated on 100 rows of its own at equal priors; the batch has other
priors. Copies are of the source of middle accuracy: they are not declared as copies, but they name the rows they were
calibrated on, which are the same. Errors in common: see `simulate_votes`; r is the probability of the common draw, so
that errors have the correlation r squared.

"auto" should be within one point of error of the better of the fixed product and the pool in every case. Of its fit:
how often the 95 % interval holds the priors that the items were drawn at (all classes, all repeats), and how often
sources that have nothing in common, or have not drifted, are called so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.data import NoDataError
from benchmarks.tables.store import Store, StoreJournal, code_version
from benchmarks.tables.summary import FIELDS
from mixent import Calibration, Fuser
from mixent.datasets import simulate_votes
from mixent.evaluate.runner import Method, Runner, Split

ACCURACY = (0.75, 0.85, 0.65, 0.8, 0.7)  # the first is the one that is copied
PRIORS = {2: (0.3, 0.7), 4: (0.4, 0.3, 0.2, 0.1)}
SIZES = (50, 300, 1000)
REPEATS = 60
METHODS = ("auto", "product", "ml-product", "pool", "min-divergence", "composite", "dawid-skene", "majority")
BETTER_OF = ("product", "pool")
POINT = 1.0  # of error, in %: how far auto may be from the better of these
SMALLEST = 1e-6
ALARM = 4.0  # standard errors of a pair
METRICS = ("error", "log_loss", "covered", "pair_alarms", "copies_found", "drift_05", "drift_01")
ROWS = {"calibration": 100}
NO_ROWS = np.empty(0, dtype=int)  # votes are drawn anew, not taken from a table


@dataclass(frozen=True)
class Case:
    """What the sources have in common, how many classes, how many items."""

    kind: str
    n_classes: int
    n_items: int
    n_copies: int = 0
    correlation: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.kind}, K={self.n_classes}, N={self.n_items}"

    @property
    def seed(self) -> list[int]:
        """Of its own: the same sources and items whatever they have in common."""
        return [self.n_classes, self.n_items]


KINDS: dict[str, dict[str, Any]] = {
    "independent": {},
    "5 copies": {"n_copies": 5},
    "20 copies": {"n_copies": 20},
    "r=0.5": {"correlation": 0.5},
    "r=0.8": {"correlation": 0.8},
}
CASES = tuple(Case(kind, K, n, **more) for kind, more in KINDS.items() for K in PRIORS for n in SIZES)
QUICK = tuple(case for case in CASES if case.n_items == 50 and case.n_classes == 2 and case.n_copies < 20)


# --- one batch --------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def drawn(case: Case, repeat: int) -> tuple[Any, dict[str, Calibration]]:
    """A batch, and the sources' calibrations."""
    seed = int(np.random.SeedSequence([*case.seed, repeat]).generate_state(1)[0])
    votes = simulate_votes(
        case.n_items,
        priors=PRIORS[case.n_classes],
        n_sources=len(ACCURACY),
        accuracy=ACCURACY,
        n_copies=case.n_copies,
        correlation=case.correlation,
        n_calibration=ROWS["calibration"],
        random_state=seed,
    )
    originals = {*votes.copy_of, *votes.copy_of.values()}
    symbols = list(range(case.n_classes))
    results = {
        name: Calibration.from_counts(
            np.eye(case.n_classes)[truth].T @ np.eye(case.n_classes)[predicted],
            classes=symbols,
            calibration_set="rows of source 1" if name in originals else None,
        )
        for name, (truth, predicted) in votes.labelled.items()
    }
    return votes, results


def measured(case: Case, method: str, draw: Split) -> tuple[dict[str, Any], None]:
    """The scores of a method on one draw of votes."""
    votes, calibrations = drawn(case, draw.repeat)
    fuser = Fuser(calibrations, method=method).fit(votes.answers)
    record = {"failed": None, **scores(fuser, votes.truth)}
    if method == "auto":
        record |= diagnosed(fuser, votes, case) | {"taken": fuser.method_}
    return record, None


def scores(fuser: Fuser, truth: np.ndarray) -> dict[str, float]:
    chosen = fuser.posterior_[np.arange(len(truth)), truth]  # classes are 0, 1, ...
    loss = float(-np.log(np.clip(chosen, SMALLEST, 1)).mean())
    return {"error": float(np.mean(fuser.labels_ != truth)), "log_loss": loss}


def diagnosed(fuser: Fuser, votes: Any, case: Case) -> dict[str, float | None]:
    """Shares of intervals that hold the priors, of pairs and sources with an alarm; None where there are none."""
    estimate, z = fuser.prior_estimate_, np.abs(fuser.dependence_.z)
    inside = (estimate.low <= votes.priors) & (votes.priors <= estimate.high)
    root = np.array([votes.copy_of.get(name, name) for name in votes.answers])
    same = root[:, None] == root
    upper = np.triu(np.ones_like(same), 1)
    drifts = np.array([drift.p_value for drift in fuser.drift_.values()])
    drifts = drifts[np.isfinite(drifts)]
    return {
        "covered": float(inside.mean()),
        "pair_alarms": _share(z[upper & ~same] > ALARM) if case.correlation == 0 else None,
        "copies_found": _share(z[upper & same] > ALARM),
        "drift_05": _share(drifts < 0.05),
        "drift_01": _share(drifts < 0.01),
    }


def _share(values: np.ndarray) -> float | None:
    return float(values.mean()) if values.size else None


# --- all of them ------------------------------------------------------------------------------------------------------


def votes(args: argparse.Namespace) -> int:
    """The program: measure what is not done yet, print the tables, write the records."""
    store, console = Store("votes", args.results), Console()
    try:
        cases = chosen(args)
    except NoDataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    repeats = args.repeats or (2 if args.quick else REPEATS)
    results = {case: _one_case(case, repeats, args, store) for case in cases}
    records = [r for case, by in results.items() for r in _summary(case, by)]
    path = store.write_summary(records, "votes" + "-quick" * args.quick)
    show(results, console)
    console.print(f"{len(records)} records in {path}", markup=False, highlight=False)
    return 0


def chosen(args: argparse.Namespace) -> tuple[Case, ...]:
    if args.sets is None:
        return QUICK if args.quick else CASES
    known = {case.name: case for case in CASES}
    unknown = [name for name in args.sets if name not in known]
    if unknown:
        raise NoDataError(f"table votes has no set {unknown[0]!r}; it has: {'; '.join(known)}")
    return tuple(known[name] for name in args.sets)


def _one_case(case: Case, repeats: int, args: argparse.Namespace, store: Store) -> dict[str, list[dict]]:
    wanted = [m for m in METHODS if args.methods is None or m in args.methods]
    if not args.show:
        store.forget(case.name, METHODS if "all" in args.redo else args.redo, code_version())
        size = {"n_train": ROWS["calibration"], "n_test": case.n_items}
        draws = [Split(repeat, 0, NO_ROWS, NO_ROWS) for repeat in range(repeats)]
        methods = {method: Method(method) for method in wanted}
        Runner(methods, partial(measured, case), draws, StoreJournal(store, case.name, **size)).run()
        if not args.quiet:
            print(f"{case.name}: {repeats} repeats", file=sys.stderr, flush=True)
    return stored(store, case, repeats)


def stored(store: Store, case: Case, repeats: int = REPEATS) -> dict[str, list[dict]]:
    """Records of a case by method, those that were run."""
    by: dict[str, list[dict]] = {method: [] for method in METHODS}
    for record in store.load(case.name).values():
        if record["method"] in by and record["repeat"] < repeats:
            by[record["method"]].append(record)
    return {method: sorted(records, key=lambda r: r["repeat"]) for method, records in by.items() if records}


def _summary(case: Case, by: Mapping[str, list[dict]]) -> Iterator[dict]:
    for method, records in by.items():
        for metric in METRICS:
            mean, sd, n = mean_sd(records, metric)
            if n:
                values = (case.name, method, metric, round(mean, 6), round(sd, 6) if n > 1 else None, n, None, None)
                yield dict(zip(FIELDS, values))


# --- view -------------------------------------------------------------------------------------------------------------


def show(results: Mapping[Case, Mapping[str, list[dict]]], console: Console) -> None:
    results = {case: by for case, by in results.items() if by}
    console.print(_grid(results, "error", "error %", 1))
    console.print(_grid(results, "log_loss", "log-loss", 3))
    console.print(_diagnoses(results))
    differences = {case: behind(by) for case, by in results.items() if {"auto", *BETTER_OF} <= set(by)}
    far = {case.name: gap for case, gap in differences.items() if gap > POINT}
    words = "; ".join(f"{name} ({gap:+.2f})" for name, gap in far.items()) or "none"
    better = " and ".join(BETTER_OF)
    text = f"auto more than {POINT:g} point behind the better of {better} in {len(far)} of {len(differences)}"
    console.print(f"{text}: {words}", markup=False, highlight=False)


def behind(by: Mapping[str, list[dict]]) -> float:
    """Points of error by which auto is behind the better of product and pool."""
    return mean_sd(by["auto"], "error")[0] - min(mean_sd(by[m], "error")[0] for m in BETTER_OF)


def _grid(results: Mapping[Case, Mapping[str, list[dict]]], metric: str, title: str, digits: int) -> Grid:
    grid = Grid("sources", "K", "N", *METHODS, "auto - better of two", "s.e.", "auto took")
    grid.title = f"simulated votes: {title}"
    for case, by in results.items():
        means = [mean_sd(by.get(m, []), metric)[0] for m in METHODS]
        cells = [f"{mean:.{digits}f}" if mean == mean else "" for mean in means]
        grid.add_row(*_head(case), *cells, *_behind(by, metric, digits + 1), _taken(by.get("auto", [])))
    return grid


def _behind(by: Mapping[str, list[dict]], metric: str, digits: int) -> list[str]:
    if not {"auto", *BETTER_OF} <= set(by):
        return ["", ""]
    best = min(BETTER_OF, key=lambda m: mean_sd(by[m], metric)[0])
    gap = difference(by["auto"], by[best], metric, corrected=False)
    far = "*" if metric == "error" and gap.mean > POINT else ""
    return [f"{gap.mean:+.{digits}f}{far} ({best})", f"{gap.se:.{digits}f}"]


def _taken(records: list[dict]) -> str:
    names = [r["taken"] for r in records if r.get("taken")]
    return ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names), key=names.count, reverse=True))


def _diagnoses(results: Mapping[Case, Mapping[str, list[dict]]]) -> Grid:
    heads = ("covered %", "s.e.", f"|z| > {ALARM:g}, unrelated %", "copies found %", "drift p < .05, %", "p < .01, %")
    grid = Grid("sources", "K", "N", *heads)
    grid.title = "95 % intervals of the priors, and alarms"
    for case, by in results.items():
        records = by.get("auto", [])
        mean, sd, n = mean_sd(records, "covered")
        spread = f"{100 * sd / np.sqrt(n):.1f}" if n > 1 else ""
        cells = [f"{100 * mean:.1f}" if n else "", spread]
        cells += [_percent(records, m) for m in ("pair_alarms", "copies_found", "drift_05", "drift_01")]
        grid.add_row(*_head(case), *cells)
    return grid


def _head(case: Case) -> tuple[str, str, str]:
    return case.kind, str(case.n_classes), str(case.n_items)


def _percent(records: list[dict], metric: str) -> str:
    mean, _, n = mean_sd(records, metric)
    return f"{100 * mean:.1f}" if n else ""
