"""A file of finished folds, a JSON line each, from which a stopped run is resumed."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from mixent.data import Table
from mixent.evaluate.samples import Samples

FORMAT = "mixent folds 1"
Place = tuple[str, str, int, int]  # method, its settings, repeat, fold


class OtherJournalError(ValueError):
    """A journal of other data or other folds."""


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
    def open(cls, path: Any, fingerprint: str) -> Journal:
        """Read a file, or begin it; that of other data or other folds is an error.

        Parameters
        ----------
        path : path, or None for a journal in memory
        fingerprint : str
            See `fingerprint`.
        """
        if path is None:
            return cls()
        path = Path(path)
        if not path.exists() or not path.stat().st_size:
            path.write_text(json.dumps({"format": FORMAT, "fingerprint": fingerprint}) + "\n")
            return cls(path)
        head, *lines = [_parsed(line) for line in path.read_text().splitlines()]
        if not isinstance(head, dict) or head.get("format") != FORMAT:
            raise ValueError(f"{path} is not a journal of cross-validation; name another file")
        if head["fingerprint"] != fingerprint:
            raise OtherJournalError(
                f"{path} is the journal of another comparison (other rows, labels, weights or folds); name another "
                "file, or delete it to begin anew"
            )
        if not path.read_bytes().endswith(b"\n"):  # the last line of a run that was killed
            with path.open("a") as out:
                out.write("\n")
        return cls(path, {_place(line): _outcome(line) for line in lines if line is not None})

    def get(self, method: str, settings: str, repeat: int, fold: int) -> Outcome | None:
        """What is known of a fold."""
        return self.done.get((method, settings, repeat, fold))

    def add(self, settings: str, outcome: Outcome) -> None:
        """Keep a fold."""
        proba = None if outcome.proba is None else outcome.proba.tolist()
        line = {"settings": settings, "record": outcome.record, "proba": proba}
        self.done[_place(line)] = outcome
        if self.path is not None:
            with self.path.open("a") as out:
                out.write(json.dumps(line) + "\n")


def fingerprint(samples: Samples, folds: np.ndarray) -> str:
    """Changes with any cell, label, weight or fold."""
    found = hashlib.sha256(_cells(samples.X))
    found.update(json.dumps([str(label) for label in samples.labels.values()]).encode())
    found.update(b"" if samples.weight is None else samples.weight.tobytes())
    found.update(np.asarray(folds, dtype=np.int64).tobytes())
    return found.hexdigest()[:16]


def _cells(X: Any) -> bytes:
    if not isinstance(X, Table):
        import joblib

        return joblib.hash(X).encode()
    schema = json.dumps(X.schema.to_json(), default=str).encode()
    codes = b"" if X.codes is None else np.ascontiguousarray(X.codes).tobytes()
    return schema + np.ascontiguousarray(X.X).tobytes() + codes


def settings_of(estimator: Any) -> str:
    """Changes with any option of an estimator, or of those inside it, and with the versions of the libraries."""
    import sklearn

    import mixent

    text = f"{type(estimator).__name__} {mixent.__version__} {sklearn.__version__} "
    return hashlib.sha256((text + _written(estimator.get_params(deep=True))).encode()).hexdigest()[:12]


def _written(value: Any) -> str:
    """A value in full, where its own text leaves some out."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, dict):
        return str(sorted((str(name), _written(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return str([_written(item) for item in value])
    if isinstance(value, BaseEstimator):
        return type(value).__name__  # its options stand beside it
    return repr(value)


def _place(line: dict[str, Any]) -> Place:
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
