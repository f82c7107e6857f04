"""Raw records, a JSON line per (set, method, repeat, fold), written as they come: a stopped run goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import mixent
from mixent.evaluate.journal import Journal, Outcome

Key = tuple[str, str, int, int, int]  # set, method, folds, repeat, fold

RESULTS = Path(__file__).parents[1] / "results"


def key_of(record: dict) -> Key:
    return record["set"], record["method"], record["n_folds"], record["repeat"], record["fold"]


class Store:
    """The raw records of one table, a file per set."""

    def __init__(self, table: str, results: Path = RESULTS) -> None:
        self.table, self.results = table, results
        (results / "raw").mkdir(parents=True, exist_ok=True)

    def path(self, name: str) -> Path:
        return self.results / "raw" / f"{self.table}-{name}.jsonl"

    def load(self, name: str) -> dict[Key, dict]:
        """Finished records of a set; a line cut short by a kill counts as not finished."""
        return {key_of(r): r for r in read_lines(self.path(name))}

    def add(self, record: dict) -> None:
        path = self.path(record["set"])
        cut = path.exists() and path.stat().st_size and not path.read_bytes().endswith(b"\n")
        with path.open("a") as out:
            out.write("\n" * bool(cut) + json.dumps(record) + "\n")

    def forget(self, name: str, methods: Iterable[str], code: str) -> None:
        """Drop what some methods did on a set with another source than `code`."""
        records, gone = self.load(name).values(), set(methods)
        kept = [r for r in records if r["method"] not in gone or r["code"] == code]
        if len(kept) < len(records):
            write_lines(self.path(name), kept)

    def write_summary(self, records: list[dict], name: str) -> Path:
        """The result records, in place of those the file held for the same sets."""
        path = self.results / f"{name}.jsonl"
        new = {r["set"] for r in records}
        kept = [r for r in read_lines(path) if r["set"] not in new]
        write_lines(path, kept + records)
        return path


class StoreJournal(Journal):
    """The journal of the engine of cross-validation, over the raw records of one set.

    Parameters
    ----------
    store : Store
    name : str
        The set.
    n_folds : int
    log : callable(text), optional
        Called with a line about each new record.
    **more
        What every record has beside its scores.
    """

    keeps_failures: ClassVar[bool] = True

    def __init__(
        self, store: Store, name: str, n_folds: int = 1, log: Callable[[str], None] | None = None, **more: Any
    ) -> None:
        super().__init__()
        self.store, self.name, self.n_folds, self.log = store, name, n_folds, log
        self.more = more
        self.records = store.load(name)

    def get(self, method: str, settings: str, repeat: int, fold: int, sample: int | None = None) -> Outcome | None:
        """What is known of a fold."""
        record = self.records.get((self.name, method, self.n_folds, repeat, fold))
        return None if record is None else Outcome(record)

    def add(self, settings: str, outcome: Outcome) -> None:
        """Keep a fold, without scores that it has not."""
        place = {"table": self.store.table, "set": self.name, "n_folds": self.n_folds, "code": code_version()}
        record = {key: value for key, value in outcome.record.items() if value == value}
        self.store.add(place | self.more | record)
        if self.log is not None:
            result = record["failed"] or f"log-loss {record['log_loss']:.3f}, {record.get('fit_seconds', 0):.1f} s"
            where = f"repeat {record['repeat'] + 1}, fold {record['fold'] + 1} of {self.n_folds}"
            self.log(f"{self.name}, {record['method']}, {where}: {result}")


@cache
def code_version() -> str:
    """Changes when any source file of mixent does."""
    folder = Path(mixent.__file__).parent
    text = b"".join(path.read_bytes() for path in sorted(folder.rglob("*.py")))
    return hashlib.sha256(text).hexdigest()[:10]


def read_lines(path: Path) -> list[dict]:
    """Records of a file; none where there is no file. Lines that are no JSON are left out."""
    records = map(_parsed, path.read_text().splitlines()) if path.exists() else ()
    return [r for r in records if r is not None]


def write_lines(path: Path, records: list[dict]) -> None:
    beside = path.with_suffix(".new")
    beside.write_text("".join(json.dumps(r) + "\n" for r in records))
    beside.replace(path)


def _parsed(line: str) -> dict | None:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None
