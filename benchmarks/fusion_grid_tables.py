"""The tables of `benchmarks.fusion_grid`, from the records of one store or of two.

The best method in hindsight is the one of `Fuser` with the lowest mean over the batches of a cell, by error and by
log-loss separately. A mean of few batches is low by chance: the tables state how many there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.fusion_panels import FAULTS, KINDS, Cell, fault_of, true_effective_number
from benchmarks.tables.markdown import table_lines

POINT, NATS = 1.0, 0.02  # how far `auto` may be from the best method
RARE = 0.05  # class shares of their own stratum
FACTOR = 1.5  # a fair estimate of the effective number of sources
WORST = 12  # cells that are listed
METRICS = ("error", "log-loss")  # error in %
Record = dict[str, Any]
Group = tuple[str, Callable[[Cell], bool]]

GROUPS: tuple[Group, ...] = (
    ("all cells", lambda cell: True),
    ("without a fault", lambda cell: cell.fault is None),
    *((kind, lambda cell, kind=kind: cell.kind == kind) for kind in KINDS),
    ("2 sources", lambda cell: cell.n_sources == 2),
    ("15 or more sources", lambda cell: cell.n_sources >= 15),
    ("independent", lambda cell: cell.correlation == 0 and not cell.n_copies),
    ("correlation above .4", lambda cell: cell.correlation > 0.4),
    ("copies", lambda cell: cell.n_copies > 0),
    ("fewer than 100 items", lambda cell: cell.n_items < 100),
    ("fewer than 100 rows", lambda cell: cell.n_rows < 100),
    ("a share below 5 %", lambda cell: min(cell.priors) < RARE),
)
PANELS: tuple[Group, ...] = (
    ("all", lambda cell: True),
    ("2 sources", lambda cell: cell.n_sources == 2),
    ("4+ sources, 300+ items", lambda cell: cell.n_sources >= 4 and cell.n_items >= 300),
    ("clear", lambda cell: cell.kind.startswith("clear")),
)


@dataclass(frozen=True)
class Scored:
    """The records of one cell."""

    cell: Cell
    records: list[Record]

    @cached_property
    def by_method(self) -> dict[str, np.ndarray]:
        """Method -> (batches, 2) errors in % and log-losses; a failed fit counts as equal probabilities."""
        K = self.cell.n_classes
        chance = [1 - 1 / K, np.log(K)]
        methods = self.records[0]["methods"]
        return {m: np.array([(r["methods"][m] or chance)[:2] for r in self.records]) * (100, 1) for m in methods}

    @cached_property
    def means(self) -> dict[str, np.ndarray]:
        return {method: values.mean(axis=0) for method, values in self.by_method.items()}

    @cached_property
    def members(self) -> np.ndarray:
        """(2, J) mean errors in % and log-losses of the sources alone."""
        return np.mean([r["members"] for r in self.records], axis=0) * [[100], [1]]

    @cached_property
    def best(self) -> list[str]:
        """The best method in hindsight, by error and by log-loss."""
        others = [method for method in self.means if method != "auto"]
        return [min(others, key=lambda method: self.means[method][i]) for i in range(2)]

    @cached_property
    def differences(self) -> list[float]:
        """Points and nats by which `auto` is behind the best method."""
        return [float(self.means["auto"][i] - self.means[best][i]) for i, best in enumerate(self.best)]

    @cached_property
    def behind_majority(self) -> float:
        """Points of error."""
        return float(self.means["auto"][0] - self.means["majority"][0])

    @property
    def autos(self) -> list[Record]:
        """The facts of `auto`."""
        return [r["auto"] for r in self.records if "auto" in r]

    def difference_error(self, i: int) -> float:
        """Standard error of a difference; NaN for one batch."""
        values = self.by_method["auto"][:, i] - self.by_method[self.best[i]][:, i]
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def report(chosen: Iterable[Cell], stores: Mapping[str, Mapping[tuple[int, int], Record]]) -> list[str]:
    """The lines of all tables; of the batches that all stores have."""
    common = set.intersection(*map(set, stores.values()))
    scored = {name: _scored(chosen, {key: store[key] for key in common}) for name, store in stores.items()}
    some = next(iter(scored.values()))
    if not some:
        return ["no batches yet"]
    n_items = [len(s.records) * s.cell.n_items for s in some]
    lines = [f"{len(some)} cells, {sum(len(s.records) for s in some)} batches, at least {min(n_items)} items of a cell"]
    for name, store in scored.items():
        seconds = sum(v[2] for s in store for r in s.records for v in r["methods"].values() if v)
        failed = sum("failed" in r for s in store for r in s.records)
        lines.append(f"{name}: {seconds / 3600:.2f} processor hours, {failed} batches with a failed method")
    lines += ["", *near_table(scored)]
    if len(scored) > 1:
        lines += change_table(*scored.values())
    for name, store in scored.items():
        for table in (method_table, worst_table, majority_table, coverage_table, effective_table, fault_table):
            lines += [f"({name})", "", *table(store)]
    return lines


def _scored(chosen: Iterable[Cell], records: Mapping[tuple[int, int], Record]) -> list[Scored]:
    by_cell: dict[int, list[Record]] = {}
    for key in sorted(records):
        by_cell.setdefault(key[0], []).append(records[key])
    return [Scored(cell, by_cell[cell.index]) for cell in chosen if cell.index in by_cell]


def near_table(scored: Mapping[str, Sequence[Scored]]) -> list[str]:
    """How near `auto` is to the best method in hindsight, by group of cells."""
    heads = ["within 1 point %", "within .02 nats %", "both %", "mean difference", "nats", "worst", "behind majority"]
    rows = []
    for name, belongs in GROUPS:
        groups = {code: [s for s in cells if belongs(s.cell)] for code, cells in scored.items()}
        rows += [[name, code, str(len(group)), *_near(group)] for code, group in groups.items() if group]
    title = "auto and the best method in hindsight; cells where it is more than a point behind majority"
    return [title, "", *table_lines(["cells", "code", "number", *heads], rows)]


def _near(group: Sequence[Scored]) -> list[str]:
    differences = np.array([s.differences for s in group])
    near = differences <= (POINT, NATS)
    shares = [f"{100 * x:.0f}" for x in (*near.mean(axis=0), near.all(axis=1).mean())]
    n_behind = sum(s.behind_majority > POINT for s in group)
    mean = differences.mean(axis=0)
    return [*shares, f"{mean[0]:.2f}", f"{mean[1]:.3f}", f"{differences[:, 0].max():.1f}", str(n_behind)]


def change_table(before: Sequence[Scored], after: Sequence[Scored]) -> list[str]:
    """Changes of the means of `auto` by group of cells, and the cells where its error has increased most."""
    earlier = {s.cell: s for s in before}
    pairs = [(earlier[s.cell], s) for s in after if s.cell in earlier]
    changes = np.array([new.means["auto"] - old.means["auto"] for old, new in pairs])
    rows = []
    for name, belongs in GROUPS:
        group = changes[[belongs(new.cell) for _, new in pairs]]
        if len(group) > 1:
            error = group.std(axis=0, ddof=1) / np.sqrt(len(group))
            means = [f"{m:+.{d}f} ± {e:.{d}f}" for m, e, d in zip(group.mean(axis=0), error, (2, 4))]
            rows.append([name, str(len(group)), *means, str((group[:, 0] > POINT).sum())])
    heads = ["cells", "number", "error, points ± s.e.", "log-loss ± s.e.", "worse by a point"]
    order = np.argsort(-changes[:, 0], kind="stable")[:WORST]
    worst = [
        [str(new.cell), *(f"{s.means['auto'][0]:.1f}" for s in (old, new)), _taken(old), _taken(new)]
        for old, new in (pairs[i] for i in order)
    ]
    of_cells = table_lines(["cell", "error before", "after", "auto took before", "after"], worst)
    return ["changes of auto", "", *table_lines(heads, rows), "largest increases of the error", "", *of_cells]


def method_table(scored: Sequence[Scored]) -> list[str]:
    """Every method: mean error and log-loss over the cells, how often it is best or near it, its seconds."""
    lowest = np.array([[s.means[best][i] for i, best in enumerate(s.best)] for s in scored])
    taken = Counter(a["method"] for s in scored for a in s.autos)
    rows = []
    for method in scored[0].records[0]["methods"]:
        means = np.array([s.means[method] for s in scored])
        near = means - lowest <= (POINT, NATS)
        n_best = [sum(s.best[i] == method for s in scored) for i in range(2)]
        seconds = [r["methods"][method][2] for s in scored for r in s.records if r["methods"][method]]
        rows.append([method, *_pair(means.mean(axis=0)), *(f"{100 * x:.0f}" for x in near.mean(axis=0))])
        rows[-1] += [*map(str, n_best), f"{100 * taken[method] / sum(taken.values()):.0f}", f"{np.mean(seconds):.3f}"]
    for name, of in (("average member", np.mean), ("best member", np.min)):
        means = np.array([of(s.members, axis=1) for s in scored])
        near = means - lowest <= (POINT, NATS)
        rows.append([name, *_pair(means.mean(axis=0)), *(f"{100 * x:.0f}" for x in near.mean(axis=0))])
    heads = [
        "method",
        "error %",
        "log-loss",
        "within 1 point %",
        "within .02 nats %",
        "lowest error",
        "lowest log-loss",
    ]
    return ["methods: means over the cells", "", *table_lines([*heads, "taken by auto %", "seconds"], rows)]


def _pair(means: np.ndarray) -> list[str]:
    return [f"{means[0]:.1f}", f"{means[1]:.3f}"]


def worst_table(scored: Sequence[Scored]) -> list[str]:
    """The cells with the largest differences, by error and by log-loss."""
    lines = []
    for i, metric in enumerate(METRICS):
        digits = (1, 3)[i]
        ordered = sorted(scored, key=lambda s: -s.differences[i])[:WORST]
        rows = [
            [
                str(s.cell),
                str(len(s.records)),
                *(f"{s.means[method][i]:.{digits}f}" for method in ("auto", s.best[i], "majority")),
                s.best[i],
                f"{s.differences[i]:+.{digits}f} ± {s.difference_error(i):.{digits}f}",
                _taken(s),
            ]
            for s in ordered
        ]
        heads = ["cell", "batches", "auto", "best", "majority", "best method", "difference ± s.e.", "auto took"]
        lines += [f"largest differences, {metric}", "", *table_lines(heads, rows)]
    return lines


def _taken(scored: Scored) -> str:
    counts = Counter(a["method"] for a in scored.autos)
    return ", ".join(f"{method} {n}" for method, n in counts.most_common())


def majority_table(scored: Sequence[Scored]) -> list[str]:
    """The cells where `auto` makes more errors than majority, by more than a point."""
    behind = sorted((s for s in scored if s.behind_majority > POINT), key=lambda s: -s.behind_majority)
    rows = [[str(s.cell), str(len(s.records)), f"{s.behind_majority:+.1f}", _taken(s)] for s in behind[:WORST]]
    title = f"auto more than a point behind majority in {len(behind)} of {len(scored)} cells"
    return [title, "", *table_lines(["cell", "batches", "points", "auto took"], rows)]


def coverage_table(scored: Sequence[Scored]) -> list[str]:
    """Coverage of the intervals of the class priors, without cells with a fault."""
    sound = [s for s in scored if s.cell.fault is None]
    groups: list[Group] = [(kind, lambda c, kind=kind: c.kind == kind) for kind in KINDS if not fault_of(kind)]
    groups += [("15 or more sources", lambda c: c.n_sources >= 15), ("copies", lambda c: c.n_copies > 0)]
    groups += [("2 classes", lambda c: c.n_classes == 2), ("3 or more classes", lambda c: c.n_classes > 2)]
    parts = [(name, [s for s in sound if belongs(s.cell)], 1.0) for name, belongs in groups]
    parts.insert(0, ("all", sound, 1.0))
    parts.append(("shares below 5 %", sound, RARE))
    rows = [[name, *_coverage(group, below)] for name, group, below in parts if group]
    heads = ["stratum", "intervals", "covered %", "s.e.", "too low %", "too high %", "mean width", "mean error"]
    return ["intervals of the class priors", "", *table_lines(heads, rows)]


def _coverage(group: Sequence[Scored], below: float) -> list[str]:
    """Number of intervals, coverage with its standard error over cells, misses on either side, width, error."""
    values = []
    for s in group:
        p = np.array(s.cell.priors)
        low, high, estimate = (
            np.array([a[name] for a in s.autos])[:, p < below] for name in ("low", "high", "estimate")
        )
        p = p[p < below]
        if len(p):
            # stored with four digits
            parts = ((high < p - 1e-4).mean(), (low > p + 1e-4).mean(), (high - low).mean(), abs(estimate - p).mean())
            values.append((low.size, *map(float, parts)))
    if not values:
        return ["0"]
    table = np.array(values)
    covered = 1 - table[:, 1] - table[:, 2]
    n, weight = table[:, 0].sum(), table[:, 0] / table[:, 0].sum()
    error = np.sqrt((weight**2 * (covered - weight @ covered) ** 2).sum())
    shares = (weight @ covered, error, weight @ table[:, 1], weight @ table[:, 2])
    return [f"{n:.0f}", *(f"{100 * x:.1f}" for x in shares), *(f"{weight @ table[:, i]:.3f}" for i in (3, 4))]


def effective_table(scored: Sequence[Scored]) -> list[str]:
    """The effective number of sources and its true value (see `true_effective_number`), without cells with a fault."""
    sound = [s for s in scored if s.cell.fault is None]
    groups: list[Group] = [
        ("all", lambda c: True),
        ("independent", lambda c: c.correlation == 0 and not c.n_copies),
        ("copies alone", lambda c: c.correlation == 0 and c.n_copies > 0),
        ("correlation to .3", lambda c: 0 < c.correlation <= 0.3),
        (".3 to .5", lambda c: 0.3 < c.correlation <= 0.5),
        ("above .5", lambda c: c.correlation > 0.5),
        ("15 or more sources", lambda c: c.n_sources >= 15),
        *((kind, lambda c, kind=kind: c.answers == kind) for kind in ("hard", "soft", "over-confident", "ordinal")),
    ]
    rows = []
    for name, belongs in groups:
        group = [s for s in sound if belongs(s.cell)]
        if group:
            rows.append([name, str(len(group)), *_effective(group)])
    heads = ["cells", "number", "truth", "n_effective", "median ratio", "10 %", "90 %", f"within factor {FACTOR} %"]
    return ["effective number of sources", "", *table_lines(heads, rows)]


def _effective(group: Sequence[Scored]) -> list[str]:
    truth = np.array([true_effective_number(s.cell) for s in group])
    estimate = np.array([np.mean([a["n_effective"] for a in s.autos]) for s in group])
    ratio = estimate / truth
    near = (np.maximum(ratio, 1 / ratio) <= FACTOR).mean()
    quantiles = np.quantile(ratio, (0.5, 0.1, 0.9))
    return [f"{truth.mean():.2f}", f"{estimate.mean():.2f}", *(f"{q:.2f}" for q in quantiles), f"{100 * near:.0f}"]


def fault_table(scored: Sequence[Scored]) -> list[str]:
    """How often the faulty source is named, and how often a source is named in a panel without fault."""
    rows = []
    for fault in FAULTS:
        for name, belongs in PANELS:
            group = [s for s in scored if s.cell.fault == fault and belongs(s.cell)]
            if group:
                rows.append([fault, name, str(len(group)), *_detected(group)])
    heads = [
        "fault",
        "panels",
        "cells",
        "batches",
        "any alarm %",
        "named %",
        "named first %",
        "another too %",
        "kind right %",
    ]
    alarms = [(kind, [s for s in scored if s.cell.kind == kind]) for kind in KINDS if not fault_of(kind)]
    alarms += [("independent", [s for s in scored if s.cell.fault is None and s.cell.correlation == 0])]
    alarms += [("copies", [s for s in scored if s.cell.n_copies > 0])]
    counts = [(kind, [bool(a["faults"]) for s in group for a in s.autos]) for kind, group in alarms]
    false = [[kind, str(len(named)), f"{100 * np.mean(named):.1f}"] for kind, named in counts if named]
    tables = [*table_lines(heads, rows), "without a fault", "", *table_lines(["kind", "batches", "any alarm %"], false)]
    return ["the faulty source; all shares are of all batches", "", *tables]


def _detected(group: Sequence[Scored]) -> list[str]:
    """Batches, and shares: any alarm, the faulty source named, named first, another one too, its kind right."""
    events = []
    for s in group:
        faulty = s.cell.names[int(s.cell.faulty or 0)]
        for a in s.autos:
            named = {name: kind for name, kind in a["faults"] if kind != "unclear"}
            first = next(iter(named), None) == faulty
            kind_right = named.get(faulty) == s.cell.fault
            events.append((bool(a["faults"]), faulty in named, first, bool(set(named) - {faulty}), kind_right))
    return [str(len(events)), *(f"{100 * x:.1f}" for x in np.mean(events, axis=0))]
