"""A file of finished folds, a JSON line each: a comparison that was stopped goes on from there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "mixent comparison 1"


class OtherJournalError(ValueError):
    """A journal of other data or other folds."""


@dataclass(frozen=True)
class Outcome:
    """One method in one fold."""

    record: dict[str, Any]
    proba: np.ndarray | None  # (n_test, C), where the fold is of the first repeat and nothing failed


@dataclass
class Journal:
    """What has been done, in memory and (with a path) on disk."""

    path: Path | None = None
    done: dict[tuple[str, str, int, int], Outcome] = field(default_factory=dict)  # name, settings, repeat, fold

    @classmethod
    def open(cls, path: Any, fingerprint: str) -> Journal:
        """Read a file, or begin it; one of other data or other folds is an error."""
        if path is None:
            return cls()
        path = Path(path)
        if not path.exists() or not path.stat().st_size:
            path.write_text(json.dumps({"format": FORMAT, "fingerprint": fingerprint}) + "\n")
            return cls(path)
        head, *lines = [_parsed(line) for line in path.read_text().splitlines()]
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError(f"{path} is no journal of a comparison; name another file")
        if head["fingerprint"] != fingerprint:
            raise OtherJournalError(
                f"{path} is the journal of another comparison (other rows, labels, weights or folds); name another "
                "file, or delete it to begin anew"
            )
        if not path.read_bytes().endswith(b"\n"):  # the last line of a run that was killed
            with path.open("a") as out:
                out.write("\n")
        return cls(path, {_key(line): _outcome(line) for line in lines if line is not None})

    def get(self, name: str, settings: str, repeat: int, fold: int) -> Outcome | None:
        """What is known of a fold."""
        return self.done.get((name, settings, repeat, fold))

    def add(self, settings: str, outcome: Outcome) -> None:
        """Keep a fold."""
        record = outcome.record
        proba = None if outcome.proba is None else outcome.proba.tolist()
        line = {"settings": settings, "record": record, "proba": proba}
        self.done[_key(line)] = outcome
        if self.path is not None:
            with self.path.open("a") as out:
                out.write(json.dumps(line) + "\n")


def settings_of(estimator: Any) -> str:
    """Changes with any option of an estimator, or of those inside it, and with the versions of the libraries."""
    import sklearn

    import mixent

    text = f"{type(estimator).__name__} {mixent.__version__} {sklearn.__version__} "
    return hashlib.sha256((text + _spelt(estimator.get_params(deep=True))).encode()).hexdigest()[:12]


def _spelt(value: Any) -> str:
    """A value in full, where its own text leaves some out."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, dict):
        return str(sorted((str(name), _spelt(one)) for name, one in value.items()))
    if isinstance(value, list | tuple):
        return str([_spelt(one) for one in value])
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value).__name__  # its options stand beside it
    return repr(value)


def _key(line: dict[str, Any]) -> tuple[str, str, int, int]:
    record = line["record"]
    return record["method"], line["settings"], record["repeat"], record["fold"]


def _outcome(line: dict[str, Any]) -> Outcome:
    proba = line["proba"]
    return Outcome(line["record"], None if proba is None else np.array(proba, dtype=float))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None  # cut short: that fold is done again
