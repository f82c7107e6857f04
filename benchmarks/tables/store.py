"""Raw records, a JSON line per (set, method, repeat, fold), written as they come: a stopped run goes on from there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

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
