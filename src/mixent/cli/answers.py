"""Tables of answers, wide and long: which columns belong to which source."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mixent.cli.data import listed, need_columns, read_table, respell

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from sklearn.base import BaseEstimator

    from mixent.fusion import Calibration

MANY = 10  # different numbers from which on a column of numbers holds scores
ALONE = 0.5  # different values as a share of the rows, beyond which a column holds names
REPEATED = 0.2  # the same, for values that are no classes
FEW_ROWS = 20  # of so few, each may well be different


@dataclass(frozen=True)
class Given:
    """The answers of a source."""

    kind: str  # "labels", "probabilities", "scores" or "ordinal"
    values: np.ndarray  # (n,) labels or scores, or (n, V) probabilities
    symbols: tuple | None = None  # of probabilities, of ordinal words in increasing order, or of labels
    cells: np.ndarray | None = None  # (n,) labels or (n, L) probabilities of the cells
    cell_names: tuple | None = None
    assumed: str = ""  # what was recognized in numbers, as a sentence without the name of the source

    @property
    def answered(self) -> np.ndarray:
        """(n,) whether there is an answer."""
        import pandas as pd

        missing = pd.isna(self.values)
        return ~(missing.all(axis=1) if missing.ndim == 2 else missing)


@dataclass(frozen=True)
class Forms:
    """Forms of the answers of sources, as the options give them; those of others are recognized."""

    scores: Collection[str] = ()  # or "all": all numbers
    lines: Collection[str] = ()  # scores that are log-likelihood ratios on a line
    labels: Collection[str] = ()
    ordinal: Mapping[str, tuple] = field(default_factory=dict)  # words in increasing order; empty for numbers
    binned: bool = False  # whether --bins was given

    @property
    def names(self) -> set[str]:
        """Sources that are named."""
        return {*self.scores, *self.lines, *self.labels, *self.ordinal} - {ALL}


ALL = "all"


def wide_sources(
    frame: pd.DataFrame, columns: Sequence[str], classes: Sequence[Hashable], forms: Forms
) -> dict[str, Given]:
    """Sources by name from the columns of a wide table."""
    places, groups = {c: i for i, c in enumerate(columns)}, _groups(columns, classes)
    taken = {c for members in groups.values() for c in members}
    cells = {c for c in columns if "@" in c and c.rsplit("@", 1)[0] in {*columns, *groups}}
    plain = [c for c in columns if c not in taken and c not in cells]
    order = sorted([*groups, *plain], key=lambda name: places[groups[name][0] if name in groups else name])
    out = {}
    for name in order:
        if name in groups:
            given = Given("probabilities", _numbers(frame, groups[name]), _symbols(name, groups[name], classes))
        else:
            given = column_given(frame[name], name, classes, forms)
        out[name] = _with_cells(frame, name, given, [c for c in columns if c in cells and c.rsplit("@", 1)[0] == name])
    return out


def _groups(columns: Sequence[str], classes: Sequence[Hashable]) -> dict[str, list[str]]:
    """Columns `name:symbol` by name, where some symbol is a class."""
    names = {str(label) for label in classes}
    groups: dict[str, list[str]] = {}
    for column in columns:
        if ":" in column:
            groups.setdefault(column.rsplit(":", 1)[0], []).append(column)
    return {n: members for n, members in groups.items() if any(c.rsplit(":", 1)[1] in names for c in members)}


def _symbols(name: str, columns: list[str], classes: Sequence[Hashable]) -> tuple:
    known = {str(label): label for label in classes}
    symbols = [column.rsplit(":", 1)[1] for column in columns]
    absent = [text for text in known if text not in symbols]
    if absent:
        raise ValueError(
            f"columns {listed(columns)} hold probabilities of source {name!r}, but there is none of class "
            f"{absent[0]!r}; add {f'{name}:{absent[0]}'!r}"
        )
    return tuple(known.get(text, text) for text in symbols)


def _numbers(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    import numpy as np

    for column in columns:
        if frame[column].dtype.kind not in "biuf":
            raise ValueError(f"column {column!r} must hold probabilities; it holds {_first(frame[column])!r}")
    return np.column_stack([frame[c].to_numpy(dtype=float, na_value=float("nan")) for c in columns])


def _first(column: pd.Series) -> object:
    some = column.dropna()
    return some.iloc[0] if len(some) else None


def _with_cells(frame: pd.DataFrame, name: str, given: Given, columns: list[str]) -> Given:
    from dataclasses import replace

    if not columns:
        return given
    if columns == [f"{name}@"]:
        return replace(given, cells=as_objects(frame[columns[0]]))
    return replace(given, cells=_numbers(frame, columns), cell_names=tuple(c.rsplit("@", 1)[1] for c in columns))


def column_given(column: pd.Series, name: str, classes: Sequence[Hashable], forms: Forms) -> Given:
    """Labels, scores or ordinal answers of a column."""
    from mixent.fusion.reading import sorted_labels

    different = column.dropna().unique()
    if not len(different):
        raise ValueError(f"source {name!r} has no answers: its column is blank; leave it out by --ignore")
    numbers = column.dtype.kind in "iuf"
    if forms.ordinal.get(name):
        if numbers:
            raise ValueError(f"column {name!r} holds numbers, whose order is known; give --ordinal {name}")
        return Given("ordinal", as_objects(column), forms.ordinal[name])
    if numbers and name not in forms.labels:
        kind, assumed = _number_kind(different.astype(float), name, classes, forms)
        if kind != "labels":
            if name not in forms.names:
                _refuse_counter(column, name)
            return Given(kind, column.to_numpy(dtype=float, na_value=float("nan")), assumed=assumed)
    elif name in {*forms.scores, *forms.lines, *forms.ordinal} and not numbers:
        hint = f"; give its words in increasing order, as --ordinal {name}=low,high" if name in forms.ordinal else ""
        raise ValueError(f"column {name!r} must hold scores; it holds {_first(column)!r}{hint}")
    check_labels(column, name, classes)
    strange = [value for value in different if value not in set(classes)] if numbers else []
    if numbers and name in forms.labels:  # all symbols are named, so that the library has no doubt
        answers, known = set(different.tolist()), set(classes)
        return Given(
            "labels", as_objects(column), tuple(sorted_labels(answers | known if answers & known else answers))
        )
    assumed = f"labels, of which {', '.join(f'{v:g}' for v in strange)} is no class (--score)" if strange else ""
    return Given("labels", as_objects(column), assumed=assumed)


def _number_kind(different: np.ndarray, name: str, classes: Sequence[Hashable], forms: Forms) -> tuple[str, str]:
    """Kind of a column with these different numbers, and what was assumed."""
    from mixent.fusion.calibration import MAX_STEPS
    from mixent.fusion.reading import ordered_integers

    if name in forms.ordinal:
        return "ordinal", ""
    if name in forms.lines:
        return "scores", ""
    values, known = sorted(different.tolist()), _numbers_among(classes)
    whole = all(value.is_integer() for value in values)
    steps = whole and len(values) <= MAX_STEPS
    of_classes = set(values) <= known
    if name in forms.scores or (ALL in forms.scores and not of_classes):
        return ("ordinal" if steps and not forms.binned else "scores"), ""
    if of_classes or (whole and len(values) <= MANY and not ordered_integers(values, known)):
        return "labels", ""
    if steps:
        return "ordinal", f"ordered scores from {values[0]:g} to {values[-1]:g} (--label, if they are labels)"
    return "scores", "scores (--label, if they are labels)"


def looks_labelled(column: pd.Series, name: str, classes: Sequence[Hashable], forms: Forms) -> bool:
    """Whether a column of numbers holds labels."""
    different = column.dropna().unique().astype(float)
    return name in forms.labels or _number_kind(different, name, classes, forms)[0] == "labels"


def _numbers_among(labels: Sequence[Hashable]) -> set[float]:
    """Labels that are numbers, or written as numbers."""
    out = set()
    for label in labels:
        try:
            out.add(float(str(label)))
        except ValueError:
            continue
    return out


def check_labels(column: pd.Series, name: str, classes: Sequence[Hashable] | None = None) -> None:
    """Refuse a column of names: values that differ in most rows, or many values none of which is a class."""
    n, different = int(column.notna().sum()), int(column.nunique())
    strange = classes is not None and not set(column.dropna().unique()) & set(classes)
    most = max(MANY, REPEATED * n) if strange else ALONE * n
    if n >= FEW_ROWS and different > most:
        raise ValueError(
            f"column {name!r} holds {different} different values in {n} rows, which looks like a name of the items and "
            f"not like a source; name them by --item {name}, or leave it out by --ignore {name}"
        )


def _refuse_counter(column: pd.Series, name: str) -> None:
    """Refuse whole numbers that are different in every row."""
    values = column.dropna()
    if len(values) >= FEW_ROWS and values.is_unique and (values == values.round()).all():
        raise ValueError(
            f"column {name!r} holds {len(values)} different whole numbers in {len(values)} rows, which looks like an "
            f"identifier and not like a source; name the items by --item {name}, or leave it out by --ignore {name}; "
            f"if it is a score, give --score {name}"
        )


def as_objects(column: pd.Series) -> np.ndarray:
    """Values as Python has them; None where blank."""
    import numpy as np

    values = column.astype(object).to_numpy(copy=True)
    values[column.isna().to_numpy()] = None
    return np.asarray(values, dtype=object)


def as_text(column: pd.Series) -> pd.Series:
    """Values as they would be written, missing ones kept; older pandas would map 1 beside a missing one as 1.0."""
    return column.astype(object).map(str, na_action="ignore")


def of_items(frame: pd.DataFrame, item: str, column: str, option: str) -> pd.Series:
    """A column of a long table, one value for each item, in the order the items come."""
    import numpy as np
    import pandas as pd

    number, items = pd.factorize(frame[item])
    first = np.unique(number, return_index=True)[1]
    codes = pd.factorize(frame[column])[0]
    mixed = np.flatnonzero(codes != codes[first][number])
    if len(mixed):
        raise ValueError(
            f"row {mixed[0]}: column {column!r} ({option}) must be the same in all rows of an item; it differs within "
            f"{items[number[mixed[0]]]!r}"
        )
    return frame[column].iloc[first].reset_index(drop=True)


def worded(calibrations: Mapping[str, Calibration]) -> dict[str, tuple]:
    """Columns of a wide table that hold words, which are to be read as they are written, and the words."""
    out = {}
    for name, calibration in calibrations.items():
        numbers = calibration.edges is not None or calibration.line is not None
        if not numbers and any(isinstance(s, str) for s in calibration.symbols):
            out[name] = calibration.symbols
        if calibration.cells is not None and any(isinstance(c, str) for c in calibration.cells):
            out[f"{name}@"] = calibration.cells
    return out


def read_answers(fuser: BaseEstimator, path: Path) -> pd.DataFrame:
    """A wide table of answers for a fitted fusion."""
    layout = fuser._fitted_layout
    calibrations = dict(zip(layout.names, layout.calibrations))
    frame = read_wide(path, calibrations)
    if all(source.columns is None for source in layout.sources):
        need_sources(path, list(frame.columns), calibrations, "; one without answers needs a blank column")
    return frame


def read_wide(path: Path, calibrations: Mapping[str, Calibration], text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a wide table of answers; words of the calibrations, and columns `text`, as they are written."""
    words = worded(calibrations)
    frame = read_table(path, [*words, *text])
    for name in words.keys() & set(frame.columns):
        respell(frame, name, words[name])
    return frame


def need_sources(path: Path, columns: Sequence[str], calibrations: Mapping[str, Calibration], hint: str = "") -> None:
    """Every source needs its column, or its columns of probabilities."""
    for name, calibration in calibrations.items():
        if name not in columns and not all(f"{name}:{symbol}" in columns for symbol in calibration.symbols):
            try:
                need_columns(path, columns, [name])
            except ValueError as error:
                raise ValueError(
                    f"{error}, nor probabilities of this source in columns {name + ':...'!r}{hint}"
                ) from None
