"""A file of finished folds, a JSON line each, from which a stopped run is resumed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from mixent.base.fingerprint import written
from mixent.core.writing import append_line, write_text
from mixent.data import Table, read_features
from mixent.data.labels import label_value
from mixent.evaluate.samples import Samples

FORMAT = "mixent folds 1"
Place = tuple[str, str, int, int, int | None]  # method, its settings, repeat, fold, rows of a sample


class OtherJournalError(ValueError):
    """A journal of another kind of run, other data or other folds."""


@dataclass(frozen=True)
class Outcome:
    """One method in one fold."""

    record: dict[str, Any]  # with method, repeat, fold and failed (None, or the error)
    proba: np.ndarray | None = None  # (n_test, C), of the first repeat, where nothing failed


@dataclass
class Journal:
    """The finished folds, in memory and (with a path) on disk; folds that failed are run again."""

    keeps_failures: ClassVar[bool] = False
    path: Path | None = None
    done: dict[Place, Outcome] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Any, kind: str, fingerprint: str) -> Journal:
        """Read a file, or begin it; that of another kind of run, other data or other folds is an error.

        Parameters
        ----------
        path : path, or None for a journal in memory
        kind : str
            The function that runs the folds: records of different functions have different fields.
        fingerprint : str
            See `fingerprint`.
        """
        if path is None:
            return cls()
        path = Path(path)
        if not path.exists() or not path.stat().st_size:
            write_text(path, json.dumps({"format": FORMAT, "kind": kind, "fingerprint": fingerprint}) + "\n")
            return cls(path)
        head, *lines = [_parsed(line) for line in path.read_text().splitlines()]
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError(f"{path} is not a journal of cross-validation; name another file")
        if (head.get("kind"), head["fingerprint"]) != (kind, fingerprint):
            raise OtherJournalError(
                f"{path} is the journal of another comparison (another function, other rows, labels, weights or "
                "folds); name another file, or delete it to begin anew"
            )
        if not path.read_bytes().endswith(b"\n"):  # the last line of a run that was killed
            append_line(path, "")
        return cls(path, {_place(line): _outcome(line) for line in lines if line is not None})

    def get(self, method: str, settings: str, repeat: int, fold: int, sample: int | None = None) -> Outcome | None:
        """What is known of a fold, or of a sample of its training rows."""
        return self.done.get((method, settings, repeat, fold, sample))

    def add(self, settings: str, outcome: Outcome) -> None:
        """Keep a fold."""
        proba = None if outcome.proba is None else outcome.proba.tolist()
        line = {"settings": settings, "record": outcome.record, "proba": proba}
        self.done[_place(line)] = outcome
        if self.path is not None:
            append_line(self.path, json.dumps(line))


def fingerprint(samples: Samples, folds: np.ndarray) -> str:
    """Changes with any cell, label, weight or fold."""
    weight = b"" if samples.weight is None else samples.weight.tobytes()
    return fingerprint_of_labels(samples.labels.values(), folds, _cells(samples.X) + weight)


def fingerprint_of_labels(y: np.ndarray, folds: np.ndarray, more: bytes = b"") -> str:
    """Changes with any label or its type, with the folds and with `more`.

    Parameters
    ----------
    y : (n,) labels
    folds : array of int
        Folds of the rows, or rows of the folds.
    more : bytes
        Whatever else the results depend on.
    """
    labels = [(type(value).__name__, str(value)) for value in map(label_value, y)]
    digest = hashlib.sha256(more)
    digest.update(json.dumps([labels, np.shape(folds)]).encode())
    digest.update(np.asarray(folds, dtype=np.int64).tobytes())
    return digest.hexdigest()[:16]


def _cells(X: Any) -> bytes:
    """The rows as a Table, whether or not a method takes one; rows that are no table, as they are."""
    try:
        table = X if isinstance(X, Table) else read_features(SimpleNamespace(), X, reset=True)
    except (TypeError, ValueError):
        import joblib

        return joblib.hash(X).encode()
    schema = json.dumps(table.schema.to_json(), default=str).encode()
    codes = b"" if table.codes is None else np.ascontiguousarray(table.codes).tobytes()
    return schema + np.ascontiguousarray(table.X).tobytes() + codes


def settings_of(estimator: Any) -> str:
    """Changes with any option of an estimator, or of those inside it, and with the versions of the libraries."""
    import sklearn

    import mixent

    text = f"{mixent.__version__} {sklearn.__version__} {written(estimator)}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _place(line: dict[str, Any]) -> Place:
    record = line["record"]
    return record["method"], line["settings"], record["repeat"], record["fold"], record.get("sample")


def _outcome(line: dict[str, Any]) -> Outcome:
    proba = line["proba"]
    return Outcome(line["record"], None if proba is None else np.array(proba, dtype=float))


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None  # cut short: that fold is done again
