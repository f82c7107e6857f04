"""Tables in and out, with the checks a person at a command line needs."""

from __future__ import annotations

import difflib
import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mixent.base.text import count
from mixent.cli.console import Screen, shown

STDOUT = Path("-")
CALLS = ("(", "|", "!")  # what text has to hold to call anything, unless it begins with =


@dataclass(frozen=True)
class Data:
    """A table ready to be fitted."""

    X: Any  # DataFrame of features
    y: Any  # Series of labels, or None
    weight: Any  # (n,) array, or None
    notes: list[str]  # what a person should know about it; rows without a label are for the report to tell
    categorical: list[str] = field(default_factory=list)  # columns named so
    hints: list[str] = field(default_factory=list)  # what may have been meant otherwise
    groups: Any = None  # (n,) array: the sequence each row is a step of; y and weight are then of sequences

    def y_of_steps(self, values: Any) -> Any:
        """What sequences have, in the order in which they appear, at each of their steps."""
        import pandas as pd

        return values[pd.factorize(self.groups)[0]]


def read_table(path: Path, text: Iterable[str] = ()) -> Any:
    """Read a file into a DataFrame whose columns are named by text; a CSV's columns `text` hold codes, not numbers."""
    from mixent.data import read_frame

    frame = read_frame(path, text=list(text))
    frame.columns = [str(name) for name in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{path}: the column name {repeated[0]!r} appears more than once; rename")
    return frame


def read_for(fitted: Any, path: Path, text: Sequence[str] = ()) -> Any:
    """Read a table for a model: what were words or codes at fit, and the columns `text`, is read as it is written."""
    columns = schema_of(fitted).columns
    codes = {c.name: c for c in columns if c.kind == "categorical" and isinstance(c.categories[0], str)}
    frame = read_table(path, [*codes, *text])
    for name in codes.keys() & set(frame.columns):
        respell(frame, name, codes[name].categories)
    return frame


def respell(frame: Any, name: str, known: Iterable[Any]) -> None:
    """Codes of a column as they are known, where they are written otherwise: 1 for 1.0 and back."""
    known = set(known)
    other = {text: _respelt(text) for text in frame[name].dropna().unique() if isinstance(text, str)}
    other = {text: code for text, code in other.items() if text not in known and code in known}
    if other:
        frame[name] = frame[name].replace(other)


def schema_of(fitted: Any) -> Any:
    """Columns of a model; those of a stack are of the kind that its classifiers take them for."""
    if hasattr(fitted, "schema_"):
        return fitted.schema_
    from mixent.data import Column, Schema

    named = hasattr(fitted, "feature_names_in_")
    names = list(map(str, fitted.feature_names_in_)) if named else [f"x{j}" for j in range(fitted.n_features_in_)]
    inside = fitted.fitted_ if isinstance(fitted.fitted_, list) else [fitted.fitted_]
    known: dict[str, Any] = {}
    for base in inside:
        for column in _columns_of(base, names):
            known.setdefault(column.name, column)
    return Schema(tuple(known.get(name, Column(name, "continuous")) for name in names), named)


def _columns_of(base: Any, names: list[str]) -> Iterable[Any]:
    from mixent.data import Column

    if hasattr(base, "used"):  # answers of a black box
        places = [names[c] if isinstance(c, int) else str(c) for c in base.used]
        kind: tuple = ("categorical", tuple(base.classes_.tolist())) if len(places) == 1 else ("continuous",)
        return [Column(name, *kind) for name in places]
    steps = [step for _, step in getattr(base, "steps", [])]
    model = next((one for one in (base, *steps) if hasattr(one, "schema_")), None)
    if model is None:
        return schema_of(base).columns if hasattr(base, "fitted_") else []
    return model.schema_.columns


def _respelt(code: str) -> str:
    """1 for 1.0 and back: beside gaps, programs write whole numbers so."""
    whole = re.fullmatch(r"(-?\d+)\.0+", code)
    return whole[1] if whole else f"{code}.0"


def read_data(
    path: Path,
    target: str | None,
    *,
    ignore: Sequence[str],
    weight: str | None,
    categorical: Sequence[str],
    screen: Screen,
    models: Sequence[str] = ("mixture",),
    shares: Sequence[str] = (),
    text: Sequence[str] = (),
) -> Data:
    """Read a table, split it into features, labels and weights, and tell what was found in it for these models.

    Columns `shares` hold probabilities: whole numbers in them are no codes. Columns `text` are read as they are
    written.
    """
    from mixent.cli.hints import codes_in, number_for_class
    from mixent.data import split_target

    frame = read_table(path, [*categorical, *(part for name in categorical for part in parts(name)), *text])
    ignore, categorical = names_of(ignore, frame.columns), names_of(categorical, frame.columns)
    need_columns(
        path,
        frame.columns,
        [*([target] if target is not None else []), *ignore, *([weight] if weight is not None else [])],
    )
    for option, names in (("--ignore", ignore), ("--weight", [weight]), ("--categorical", categorical)):
        if target is not None and target in names:
            raise ValueError(f"{target!r} is the --target and cannot be given to {option} too")
    weights = None if weight is None else weight_column(frame[weight], weight)
    frame = frame.drop(columns=[*dict.fromkeys([*ignore, *([weight] if weight else [])])])
    if frame.shape[1] == 0:
        raise ValueError(f"{path}: no column is left to fit; ignore fewer")
    X, y = (frame, None) if target is None else split_target(frame, target)
    need_columns(path, X.columns, categorical)
    for hint in [] if y is None else number_for_class(y, str(target)):
        screen.say(shown(hint))
    table = _typed(X, categorical)
    notes = _describe(path, table, y, target, categorical, screen, models)
    return Data(X, y, weights, notes, categorical, codes_in(table, shares))


def gathered(path: Path, table: Data, name: str, target: str) -> Data:
    """A table of steps: the column `name` says of which sequence; each has one label, and one weight."""
    import numpy as np
    import pandas as pd

    need_columns(path, table.X.columns, [name])
    if table.X.shape[1] == 1:
        raise ValueError(f"{name!r} (--sequence) is the only column; the steps of a sequence need others")
    groups = sequence_ids(table.X[name], name)
    number, ids = pd.factorize(groups)
    first = np.unique(number, return_index=True)[1]
    for what, values in ((f"{target!r} (--target)", table.y), ("--weight", table.weight)):
        if values is None:
            continue
        codes = pd.factorize(values)[0]
        mixed = np.flatnonzero(codes != codes[first][number])
        if len(mixed):
            raise ValueError(
                f"row {mixed[0]}: all steps of a sequence have one label and one weight; {what} differs within "
                f"sequence {ids[number[mixed[0]]]!r} of {name!r}"
            )
    y = table.y.iloc[first].reset_index(drop=True)
    weight = None if table.weight is None else table.weight[first]
    named = [column for column in table.categorical if column != name]
    return replace(table, X=table.X.drop(columns=name), y=y, weight=weight, groups=groups, categorical=named)


def sequence_ids(column: Any, name: str) -> Any:
    """Which sequence each row is a step of."""
    import numpy as np

    gaps = np.flatnonzero(column.isna())
    if len(gaps):
        raise ValueError(
            f"column {name!r} (--sequence) must say of every row which sequence it is of; row {gaps[0]} is blank"
        )
    return column.astype(str).to_numpy(dtype=object)


def parts(text: str) -> list[str]:
    """Names in a list such as A,B."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_of(given: Sequence[str], columns: Iterable[str]) -> list[str]:
    """Column names from what was typed: a name, or several as A,B."""
    have = set(columns)
    found = [name for text in given for name in ([text] if text in have or "," not in text else parts(text))]
    return list(dict.fromkeys(found))


def _typed(X: Any, categorical: Sequence[str]) -> Any:
    from types import SimpleNamespace

    from mixent.data import read_features

    return read_features(SimpleNamespace(), X, reset=True, categorical=list(categorical) or "auto")


def need_columns(path: Path, have: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise, with close matches, when a column is not there."""
    have = list(have)
    missing = [name for name in dict.fromkeys(wanted) if name not in have]
    if not missing:
        return
    close = difflib.get_close_matches(missing[0], have, n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"the columns are {listed(have)}"
    plural = "columns" if len(missing) > 1 else "column"
    raise ValueError(f"{path} has no {plural} {listed(missing)}; {hint}")


def listed(names: Sequence[Any]) -> str:
    """Names in quotes, not too many."""
    from mixent.data import listed

    return listed(list(names))


def weight_column(column: Any, name: str) -> Any:
    """Row weights, checked; messages name the column."""
    from mixent.data import read_weights

    if column.dtype.kind not in "biuf":
        raise ValueError(f"column {name!r} (--weight) must hold numbers; row 0 holds {column.iloc[0]!r}")
    try:
        return read_weights(column.to_numpy(dtype=float, na_value=float("nan")), len(column))
    except ValueError as error:
        raise ValueError(f"column {name!r} (--weight): {error}") from error


def _describe(
    path: Path,
    table: Any,
    y: Any,
    target: str | None,
    categorical: Sequence[str],
    screen: Screen,
    models: Sequence[str],
) -> list[str]:
    """Say how large the table is, that labels are absent, and what is wrong with it; returns the problems."""
    import numpy as np

    from mixent.data import problems

    n_gaps = int(np.isnan(table.X).sum()) + (0 if table.codes is None else int((table.codes < 0).sum()))
    kinds: dict[str, int] = {}
    for column in table.schema.columns:
        kinds[column.kind] = kinds.get(column.kind, 0) + 1
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    missing = f", {n_gaps / (table.n_rows * len(table.schema.columns)):.1%} of the cells missing" if n_gaps else ""
    size = f"{count(table.n_rows, 'row')}, {count(len(table.schema.columns), 'column')}"
    screen.say(f"[bold]{shown(path)}[/]: {size} ({told}){missing}")
    notes = problems(table, categorical) + ([] if y is None else _label_problems(y, str(target)))
    for note in ([] if y is None else _absent_labels(y, str(target), models)) + notes:
        screen.warn(note)
    return notes


def _absent_labels(y: Any, target: str, models: Sequence[str]) -> list[str]:
    from mixent.data import read_labels

    absent = read_labels(y, len(y)).n_absent
    told = f"{absent} of {count(len(y), 'row')} have no label in {target!r}: they "
    cannot = [kind for kind in dict.fromkeys(models) if kind in ("maxent", "hmm", "stack", "boost", "weightboost")]
    if set(models) == set(cannot):
        told += f"take no part, since --model {' and '.join(cannot)} cannot learn from them"
    else:
        told += "are used as unlabelled rows" + (f", but not by --model {' and '.join(cannot)}" if cannot else "")
    return [told] if absent else []


def _label_problems(y: Any, target: str, few: int = 5) -> list[str]:
    from mixent.data import rare, read_labels

    labels = read_labels(y, len(y))
    notes = []
    if 2 * len(labels.classes) > len(y):
        notes.append(f"{target!r} has {len(labels.classes)} classes in {count(len(y), 'row')}: is it an identifier?")
    else:
        notes += [
            f"class {name!r} has only {count(n, 'row')}: add some, or merge it" for name, n in rare(labels, few).items()
        ]
    return notes


def check_output(path: Path, inputs: Sequence[Path], endings: Sequence[str] = ()) -> None:
    """Find out before the work, not after it, that a result cannot be written."""
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise ValueError(f"{path}: unknown kind of file {path.suffix!r}; use one of {', '.join(endings)}")
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give a file name")
    if path.exists() and not path.is_file():  # it would be replaced, not written to
        raise ValueError(f"cannot write {path}: it is a device or a pipe; give a file name")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {str(path.parent)!r}; create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: no permission")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"cannot write {path}: it is an input of this command; give another name")


def write_table(screen: Screen, frame: Any, output: Path, plain: Collection[str] = ()) -> None:
    """Write a table to a file, or to standard output as CSV; text in `plain` stays as it is, formulas are disarmed."""
    from mixent.data import write_frame

    if output != STDOUT:
        n_quoted = write_frame(frame, output, plain)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table.csv"
            n_quoted = write_frame(frame, path, plain)
            sys.stdout.flush()
            sys.stdout.buffer.write(path.read_bytes())
            sys.stdout.buffer.flush()
    if n_quoted:
        screen.say(f"{count(n_quoted, 'cell')} that a spreadsheet would run as a formula got a leading ' (see --help)")


def harmless(labels: Iterable[Any]) -> set[str]:
    """Class labels to be written as they are, even if they begin with + - or @: all that call nothing."""
    names = [str(label) for label in labels]
    return {name for name in names if name[:1] in ("+", "-", "@") and not any(sign in name for sign in CALLS)}
