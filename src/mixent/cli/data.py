"""Tables in: one reader for all commands, with the checks and hints that a person at a command line needs."""

from __future__ import annotations

import difflib
import re
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixent.base.text import count, percent
from mixent.cli.console import Screen, current_screen, shown
from mixent.cli.options import READ_AS
from mixent.cli.parsing import column_names, names_in

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from mixent.data import Table
    from mixent.data.schema import Input

MANY_CLASSES = 30  # different numbers, beyond which a target is hardly a class
NOT_FEATURES, IDENTIFIERS = "not_features", "identifiers"  # entries of the header of a model file
MOST_NAMED, MOST_TYPED = 3, 40  # columns in a hint


@dataclass(frozen=True)
class Data:
    """A table ready to be fitted."""

    X: pd.DataFrame
    y: pd.Series | None
    weight: np.ndarray | None  # (n,)
    notes: list[str]  # problems of the table
    categorical: list[str] = field(default_factory=list)  # columns given by --categorical
    groups: np.ndarray | None = None  # (n,): the group of each row, or the sequence, of which y and weight are then
    about: dict[str, list[str]] = field(default_factory=dict)  # columns that `mixent predict` needs to know, by role

    def of_steps(self, values: np.ndarray) -> np.ndarray:
        """Values of sequences, in the order in which these appear, at each of their steps."""
        import pandas as pd

        return values if self.groups is None else values[pd.factorize(self.groups)[0]]


@dataclass(frozen=True)
class Roles:
    """What columns are for, as the options give them."""

    target: str | None  # labels
    ignore: Sequence[str] = ()  # left out
    categorical: Sequence[str] = ()  # codes, which are read as they are written
    weight: str | None = None  # of the rows
    sequence: str | None = None  # names the sequence each row is a step of
    group: str | None = None  # rows of the same value are kept in the same fold

    @property
    def single(self) -> list[str]:
        """Columns with a role of their own."""
        return [name for name in (self.target, self.weight, self.sequence, self.group) if name is not None]

    @property
    def as_written(self) -> list[str]:
        """Columns that are read as text whatever they hold."""
        return [*self.categorical, *names_in(self.categorical), *([] if self.sequence is None else [self.sequence])]

    def within(self, columns: Iterable[str]) -> Roles:
        """The same, with lists such as A,B taken apart where no column is called so."""
        columns = list(columns)
        ignore, categorical = names_of(self.ignore, columns), names_of(self.categorical, columns)
        return replace(self, ignore=ignore, categorical=categorical)

    def check(self) -> None:
        """Refuse a target that has another role too."""
        others: dict[str, Sequence[str | None]] = {"--ignore": self.ignore, "--categorical": self.categorical}
        others |= {"--weight": [self.weight], "--sequence": [self.sequence], "--group": [self.group]}
        for option, names in others.items():
            if self.target is not None and self.target in names:
                raise ValueError(f"{self.target!r} is the --target and cannot be given to {option} too")


# --- reading ----------------------------------------------------------------------------------------------------------


def read_table(path: Path, text: Iterable[str] = (), *, is_data: bool = True) -> pd.DataFrame:
    """Read a file into a DataFrame whose columns are named by text; print how it is written where that is not plain.

    Parameters
    ----------
    path : file
    text : columns of a text file that hold codes, not numbers
    is_data : whether it is the DATA of the command, to which `--sep`, `--decimal` and `--encoding` refer
    """
    from mixent.data import read_frame, text_format

    written = text_format(path, **(READ_AS.get() if is_data else {}))
    plain = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else ","
    if written is not None and (differences := written.differences(plain)):
        current_screen().print(f"Read {shown(path)} as {shown(differences)}")
    frame = read_frame(path, text=list(text), **({} if written is None else asdict(written)))
    frame.columns = [str(name) for name in frame.columns]
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise ValueError(f"{path}: the column name {repeated[0]!r} appears more than once; rename")
    return frame


def read_as_written(path: Path) -> pd.DataFrame | None:
    """The cells of DATA as they are written; None where they have types."""
    from mixent.data import read_cells

    return read_cells(path, **READ_AS.get())


def read_data(path: Path, roles: Roles, *, screen: Screen, named: Iterable[str] = ()) -> Data:
    """Read a table and split it into features, labels and weights; print its size, problems and hints.

    Parameters
    ----------
    path : file
    roles : of its columns
    screen : where to print
    named : columns that the settings of the model name; they hold what was asked for, and get no hint
    """
    from mixent.data.checks import flagged

    frame = read_table(path, roles.as_written)
    roles = roles.within(frame.columns)
    need_columns(path, frame.columns, [*roles.single, *roles.ignore])
    roles.check()
    target, weight, sequence, categorical = roles.target, roles.weight, roles.sequence, list(roles.categorical)
    weights = None if weight is None else weight_column(frame[weight], weight)
    left_out = [*dict.fromkeys([*roles.ignore, *(name for name in (weight, roles.group) if name)])]
    X, y = _features(path, frame.drop(columns=left_out), target)
    need_columns(path, X.columns, categorical)
    table = _typed(X, categorical)
    _print_size(screen, path, table)
    for hint in [*_number_for_class(y, target), *_codes(table, {*named, *roles.single})]:
        screen.print(shown(hint))
    read = table.notes if sequence is None else ()  # the column of sequences is not a column of the model
    problems = _problems(table, roles, y)
    notes = [*problems, *_marked_labels(path, y, target), *read]  # what --strict refuses stands last
    for note in notes:
        screen.warn(note)
    if any("drop" in note and "--ignore" not in note for note in notes):
        screen.print("Hint: --ignore NAME drops a column")
    groups = None if roles.group is None else frame[roles.group].to_numpy()
    about = {NOT_FEATURES: [*roles.single, *roles.ignore], IDENTIFIERS: flagged(X.columns, problems)}
    data = Data(X, y, weights, notes, categorical, groups, about)
    return data if sequence is None else _gathered(data, sequence, target)


def _features(path: Path, frame: pd.DataFrame, target: str | None) -> tuple[pd.DataFrame, pd.Series | None]:
    from mixent.data import split_target

    if frame.shape[1] == 0:
        raise ValueError(f"{path}: no column is left to fit; ignore fewer")
    return (frame, None) if target is None else split_target(frame, target)


def _typed(X: pd.DataFrame, categorical: Sequence[str]) -> Table:
    from types import SimpleNamespace

    from mixent.data import read_features

    return read_features(SimpleNamespace(), X, reset=True, categorical=list(categorical) or "auto")


def _gathered(data: Data, name: str, target: str | None) -> Data:
    """A table of steps: the column `name` names the sequence; each has one label, and one weight."""
    import numpy as np
    import pandas as pd

    if data.X.shape[1] == 1:
        raise ValueError(f"{name!r} (--sequence) is the only column; the steps of a sequence need others")
    groups = sequence_ids(data.X[name], name)
    number, ids = pd.factorize(groups)
    first = np.unique(number, return_index=True)[1]
    for what, values in ((f"{target!r} (--target)", data.y), ("--weight", data.weight)):
        if values is None:
            continue
        codes = pd.factorize(values)[0]
        mixed = np.flatnonzero(codes != codes[first][number])
        if len(mixed):
            raise ValueError(
                f"row {mixed[0]}: all steps of a sequence have one label and one weight; {what} differs within "
                f"sequence {ids[number[mixed[0]]]!r} of {name!r}"
            )
    y = None if data.y is None else data.y.iloc[first].reset_index(drop=True)
    weight = None if data.weight is None else data.weight[first]
    kept = [column for column in data.categorical if column != name]
    return replace(data, X=data.X.drop(columns=name), y=y, weight=weight, groups=groups, categorical=kept)


def sequence_ids(column: pd.Series, name: str) -> np.ndarray:
    """The sequence each row is a step of."""
    import numpy as np

    blank = np.flatnonzero(column.isna())
    if len(blank):
        raise ValueError(f"column {name!r} (--sequence) must name the sequence of every row; row {blank[0]} is blank")
    return column.astype(str).to_numpy(dtype=object)


def weight_column(column: pd.Series, name: str) -> np.ndarray:
    """Row weights, checked; messages name the column."""
    from mixent.data import read_weights

    if column.dtype.kind not in "biuf":
        raise ValueError(f"column {name!r} (--weight) must hold numbers; row 0 holds {column.iloc[0]!r}")
    try:
        weights = read_weights(column.to_numpy(dtype=float, na_value=float("nan")), len(column))
    except ValueError as error:
        raise ValueError(f"column {name!r} (--weight): {error}") from error
    assert weights is not None
    return weights


def weights_in(frame: pd.DataFrame, path: Path, name: str | None) -> np.ndarray | None:
    """The column of row weights of a table, where one is named."""
    if name is None:
        return None
    need_columns(path, frame.columns, [name])
    return weight_column(frame[name], name)


# --- columns ----------------------------------------------------------------------------------------------------------


def names_of(given: Sequence[str], columns: Iterable[str]) -> list[str]:
    """Column names from what was typed: a name, or several as A,B."""
    have = set(columns)
    names = [name for text in given for name in ([text] if text in have or "," not in text else column_names(text))]
    return list(dict.fromkeys(names))


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


def listed(names: Sequence[Hashable]) -> str:
    """Names in quotes, not too many."""
    from mixent.data import listed

    return listed(list(names))


def respell(frame: pd.DataFrame, name: str, known: Iterable[Hashable]) -> None:
    """Codes of a column as they are known, where they are written otherwise: 1 for 1.0 and back."""
    known = set(known)
    other = {text: _respelled(text) for text in frame[name].dropna().unique() if isinstance(text, str)}
    other = {text: code for text, code in other.items() if text not in known and code in known}
    if other:
        frame[name] = frame[name].replace(other)


def _respelled(code: str) -> str:
    """1 for 1.0 and back: beside missing values, programs write whole numbers so."""
    whole = re.fullmatch(r"(-?\d+)\.0+", code)
    return whole[1] if whole else f"{code}.0"


# --- size, problems, hints --------------------------------------------------------------------------------------------


def _print_size(screen: Screen, path: Path, table: Table) -> None:
    """Rows, columns of each kind, and the share of missing cells."""
    inputs = table.schema.inputs
    kinds = Counter(_kind(table, given) for given in inputs)
    n_missing = sum(_n_missing(table, given.columns[0]) for given in inputs if given.columns)
    share = f", {percent(n_missing / (table.n_rows * len(inputs)), 1)} of the cells missing" if n_missing else ""
    listing = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    size = f"{count(table.n_rows, 'row')}, {count(len(inputs), 'column')} ({listing}){share}"
    screen.print(f"[bold]{shown(path)}[/]: {size}")


def _kind(table: Table, given: Input) -> str:
    """What a column of the file is."""
    from mixent.data.dates import DateText

    if isinstance(given.format, DateText):
        return "date"
    return table.schema.columns[given.columns[0]].kind if given.columns else "ignored"


def _n_missing(table: Table, column: int) -> int:
    import numpy as np

    if column in table.schema.continuous:
        return int(np.isnan(table.X[:, table.schema.continuous.index(column)]).sum())
    return int((table.column_codes(table.schema.categorical.index(column)) < 0).sum())


def _problems(table: Table, roles: Roles, y: pd.Series | None) -> list[str]:
    """Problems of the columns, of the rows and of the classes."""
    from mixent.comparison.data_problems import table_problems
    from mixent.data import problems, read_labels

    notes = problems(table, roles.categorical)
    if y is None or roles.sequence is not None:
        return notes
    labels = read_labels(y, len(y))
    if not len(labels.classes):
        return notes
    if 2 * len(labels.classes) > len(y):
        size = f"{len(labels.classes)} classes in {count(len(y), 'row')}"
        return [*notes, f"{roles.target!r} has {size}: is it an identifier?"]
    return table_problems(table, labels, list(roles.categorical))


def _marked_labels(path: Path, y: pd.Series | None, target: str | None) -> list[str]:
    """Words in the target that are missing values, but may be meant as a class: None, NA and the like."""
    if y is None or not y.isna().any() or (cells := read_as_written(path)) is None:
        return []
    words = sorted({cell for cell in cells.loc[y.isna().to_numpy(), target].str.strip().unique() if cell.isalpha()})
    if not words:
        return []
    which = " and ".join(map(repr, words))
    return [f"{which} in {target!r} is read as no label; if it is a class, write it otherwise"]


def _number_for_class(y: pd.Series | None, target: str | None) -> list[str]:
    """A target with many different numbers may not be a class."""
    n = 0 if y is None or y.dtype.kind not in "iuf" else y.nunique()
    if n <= MANY_CLASSES:
        return []
    return [
        f"Hint: the target {target!r} holds {n} different numbers and looks like a number, not a class; to predict a "
        "number use `mixent fit --model joint`, else cut it into ranges"
    ]


def _codes(table: Table, known: set[str]) -> list[str]:
    """Numbers that look like codes: which columns, which values, and what to type."""
    from mixent.data import few_numbers

    alike: dict[tuple[int, ...], list[str]] = {}
    for name, values in few_numbers(table).items():
        if name not in known:
            alike.setdefault(tuple(values), []).append(name)
    if not alike:
        return []
    held = []
    for numbers, names in list(alike.items())[:MOST_NAMED]:
        columns = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        held.append(f"{columns} {'holds' if len(names) == 1 else 'hold'} only {', '.join(map(str, numbers))}")
    held += ["..."] * (len(alike) > MOST_NAMED)
    names = [name for each in alike.values() for name in each]
    these = "it holds" if len(names) == 1 else "these are"
    return [f"Hint: {'; '.join(held)}: add {_typed_option(names)} if {these} codes"]


def _typed_option(names: list[str]) -> str:
    plain = [name for name in names if "," not in name]
    apart = [name for name in names if "," in name]
    texts = [",".join(plain[:MOST_TYPED])] * bool(plain) + apart[: MOST_TYPED - len(plain)]
    more = " ..." if len(names) > MOST_TYPED else ""
    return " ".join(f"--categorical {shlex.quote(text)}" for text in texts) + more
