"""The tables on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.table import Table as Grid

from benchmarks.tables.compare import difference, mean_sd
from benchmarks.tables.table import Setting, Table

Found = Mapping[Setting, Mapping[str, list[dict]]]  # raw records by setting and method


def show(table: Table, result: Found, code: str, console: Console) -> None:
    for mixed in (False, True):
        some = {s: by for s, by in result.items() if s.mixed == mixed and any(by.values())}
        if some:
            console.print(_means(table, some, "with categories and missing values" if mixed else "numeric"))
            for method in (table.ours, *table.compared):
                if any(by[method] for by in some.values()):
                    console.print(_differences(method, some))
    print_notes(table, result, code, console)


def _means(table: Table, result: Found, title: str) -> Grid:
    methods = _methods_in(result)
    grid = Grid("set", "folds", *methods, "printed", "s / fit", *table.marks)
    grid.title = f"{table.name}, {title}: error % / log-loss"
    for setting, by in result.items():
        folds = mean_sd(by[table.ours], "error")[2]
        seconds = mean_sd(by[table.ours], "fit_seconds")[0]
        marks = [mark(by) for mark in table.marks.values()]
        cells = [_cell(by.get(m, [])) for m in methods]
        grid.add_row(setting.name, str(folds), *cells, table.remarks.get(setting.name, ""), f"{seconds:.2f}", *marks)
    return grid


def _methods_in(result: Found) -> list[str]:
    """Those that were run on some set, in the table's order."""
    return list(dict.fromkeys(m for by in result.values() for m, records in by.items() if records))


def _cell(records: list[dict]) -> str:
    error, _, folds = mean_sd(records, "error")
    if not folds:
        return "failed" if records else "-"
    failed = len(records) - folds
    return f"{error:.1f} / {mean_sd(records, 'log_loss')[0]:.3f}" + f" ({failed} failed)" * bool(failed)


def _differences(method: str, result: Found) -> Grid:
    peers = [m for m in _methods_in(result) if m != method]
    columns = [f"{peer}: {metric}" for peer in peers for metric in ("error", "log-loss")]
    grid = Grid("set", *columns)
    grid.title = f"{method} minus peer, same folds: mean ± corrected s.e., * worse beyond noise"
    for setting, by in result.items():
        differences = [difference(by[method], by.get(p, []), metric) for p in peers for metric in ("error", "log_loss")]
        grid.add_row(
            setting.name, *(f"{gap}{'*' if gap.worse else ''}" if gap.mean == gap.mean else "-" for gap in differences)
        )
    return grid


def print_notes(table: Table, result: Found, code: str, console: Console) -> None:
    """What a reader of the table should know: failures, warnings of ours, results of an older source."""
    for line in _remarks(table, result, code):
        console.print(line, markup=False, highlight=False)


def _remarks(table: Table, result: Found, code: str) -> Iterable[str]:
    for setting, by in result.items():
        for method, records in by.items():
            failed = [r["failed"] for r in records if r["failed"]]
            if failed:
                yield f"{setting.name}, {method}: {len(failed)} folds failed: {failed[0]}"
            warned = [r["warned"] for r in records if r.get("warned")]
            if warned and table.is_ours(method):
                yield f"{setting.name}, {method}: {len(warned)} folds warned: {warned[0]}"
    stored = [r for by in result.values() for method, records in by.items() if table.is_ours(method) for r in records]
    old = Counter(r["method"] for r in stored if r["code"] != code)
    if old:
        named = " ".join(f"'{method}'" if " " in method else method for method in old) if table.peers else "all"
        yield f"{old.total()} folds are from another src/mixent; run them again with --redo {named}"
