"""A section of the page: which records it needs, and what it makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.tables.run import plan
from benchmarks.tables.show import Found
from benchmarks.tables.store import Store
from benchmarks.tables.summary import planned_records
from benchmarks.tables.table import Setting, Table

NOT_RUN = "Not run yet:"  # begins the line of a section without records
Body = Callable[[Found], Iterable[str]]
Plan = Callable[[Table], Iterable[Setting]]  # the settings to read: all of a table, or those of the quick mode


@dataclass(frozen=True)
class Inputs:
    """Where records are, and which of them are meant."""

    results: Path
    settings: Plan

    def records_of(self, table: Table) -> Found:
        store = Store(table.name, self.results)
        return {s: planned_records(store, s, plan(s, list(table.methods_of(s)))) for s in self.settings(table)}


@dataclass(frozen=True)
class Section:
    """A heading, what the document did, and the tables."""

    title: str
    intro: str
    table: Table
    body: Body

    def lines(self, inputs: Inputs) -> list[str]:
        results = {s: by for s, by in inputs.records_of(self.table).items() if any(by.values())}
        lines = [f"### {self.title}", "", self.intro, ""]
        if not results:
            return [*lines, not_run(self.table.name), ""]
        files = [Store(self.table.name, inputs.results).path(s.name) for s in results]
        records = [r for by in results.values() for rs in by.values() for r in rs]
        return [*lines, *self.body(results), *provenance(self.table.name, records, files), ""]


def not_run(name: str) -> str:
    return f"{NOT_RUN} `{command(name)}`."


def command(name: str) -> str:
    return f"python -m benchmarks.tables --table {name}"


def provenance(name: str, records: list[dict], files: Iterable[Path]) -> list[str]:
    """The command, what is behind the numbers, and when it was made."""
    codes = Counter(r["code"] for r in records if r.get("code"))
    versions = ", ".join(f"{code} ({n})" for code, n in codes.most_common(4)) + ", others" * (len(codes) > 4)
    failed = sum(bool(r["failed"]) for r in records)
    text = f"`{command(name)}`; {len(records)} fits" + f", {failed} failed" * bool(failed)
    text += f"; source {versions}" if versions else ""
    return [f"<small>{text}; {dates(files)}.</small>"]


def dates(files: Iterable[Path]) -> str:
    """First and last day on which the files were written."""
    days = sorted(_day(path) for path in files if path.exists())
    if not days:
        return "no date"
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _day(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
