"""Answers of the sources to the items, read from wide tables, long tables, dicts or arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from mixent.core.arrays import Array
from mixent.data import listed
from mixent.data.frames import check_names, is_frame, unwrapped
from mixent.data.values import is_missing
from mixent.ensemble.pmfs import PMF, pmf
from mixent.fusion.calibration import Calibration
from mixent.fusion.reading import by_name
from mixent.fusion.scales import line_pmf
from mixent.fusion.sources import Layout, Source

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw
    from narwhals.stable.v1.typing import IntoDataFrame

FEW = 100  # symbols that are looked for one after the other
Column: TypeAlias = Any  # labels, scores or probabilities of one source: array, list, column of a frame, or dict


@dataclass(frozen=True)
class Answers:
    """For each source the symbol of every item, or a distribution over its symbols."""

    responses: tuple[np.ndarray, ...]  # (n,) codes, -1 without an answer; or (n, S_j) distributions, zero without
    n_items: int

    def part(self, rows: np.ndarray) -> Answers:
        """Some of the items."""
        responses = tuple(one[rows] for one in self.responses)
        return Answers(responses, len(responses[0]))

    def joined(self, other: Answers) -> Answers:
        """These items, then those of `other`."""
        responses = tuple(
            np.concatenate([a, b]) if a.ndim == b.ndim else np.concatenate([_dense(a, b), _dense(b, a)])
            for a, b in zip(self.responses, other.responses)
        )
        return Answers(responses, self.n_items + other.n_items)

    def answered(self) -> np.ndarray:
        """(J, n) whether the source answered the item."""
        return np.stack([one >= 0 if one.ndim == 1 else one.any(axis=1) for one in self.responses])


@dataclass(frozen=True)
class LongAnswers:
    """A long table as one column for each source, items in the order of their first rows; see `long_answers`."""

    items: np.ndarray
    values: dict[str, Column]  # source -> (n,) values, or symbol -> (n,) probabilities


AnswersLike: TypeAlias = Union[Answers, LongAnswers, Mapping[str, Column], "IntoDataFrame", ArrayLike]


def _dense(codes: np.ndarray, like: np.ndarray) -> Array:
    return codes if codes.ndim == 2 else np.eye(like.shape[1] + 1)[codes][:, : like.shape[1]]


def read_answers(layout: Layout, table: AnswersLike) -> Answers:
    """Codes and distributions, from any of the forms that users may give."""
    if isinstance(table, Answers):
        return table
    if isinstance(table, LongAnswers):
        return _from_mapping(layout, table.values, strict=False)
    if isinstance(table, Mapping):
        return _from_mapping(layout, table, strict=True)
    table = unwrapped(table)
    return _from_frame(layout, table) if is_frame(table) else _from_array(layout, table)


def long_answers(
    table: IntoDataFrame,
    *,
    item: str = "item",
    source: str = "source",
    value: str = "value",
    probability: str | None = None,
) -> LongAnswers:
    """Answers in a long table, with one row for each answer.

    Parameters
    ----------
    table : DataFrame
    item, source, value : str
        Its columns. An item without a row of a source has no answer of it.
    probability : str, optional
        Column with the probability of the symbol in `value`; a source may then have several rows for an item.

    Returns
    -------
    LongAnswers
        To be given to `Fuser.fit` and others; `items` names the items in the order of the posteriors.
    """
    import narwhals.stable.v1 as nw

    table = unwrapped(table)
    if not is_frame(table):
        raise ValueError(f"a long table must be a DataFrame; got {type(table).__name__}")
    frame = nw.from_native(table, eager_only=True)
    wanted = [item, source, value, *([] if probability is None else [probability])]
    absent = [name for name in wanted if name not in frame.columns]
    if absent:
        raise ValueError(f"the long table has no column {absent[0]!r}; its columns are {listed(frame.columns)}")
    items, row = _places(frame.get_column(item).to_list(), item)
    names, who = _places(frame.get_column(source).to_list(), source)
    values = frame.get_column(value).to_list()
    if probability is None:
        _refuse_twice(items, row, [str(n) for n in names], who)
        return LongAnswers(_objects(items), _turned(values, row, who, names, len(items)))
    amounts = np.array([np.nan if is_missing(p) else float(p) for p in frame.get_column(probability).to_list()])
    out: dict[str, Column] = {}
    for j, name in enumerate(names):
        mine = np.flatnonzero(who == j)
        out[str(name)] = _long_source(str(name), mine, row, values, amounts, items)
    return LongAnswers(_objects(items), out)


def _long_source(
    name: str, mine: np.ndarray, row: np.ndarray, values: list, amounts: Array, items: list
) -> np.ndarray | dict[Any, Array]:
    """Answers of one source: labels where it never gives a probability, otherwise symbol -> (n,) probabilities."""
    labels = np.isnan(amounts[mine]).all()
    if labels:
        _refuse_twice(items, row[mine], [name], np.zeros(len(mine), dtype=np.intp))
        column = np.full(len(items), None, dtype=object)
        column[row[mine]] = _objects([values[t] for t in mine])
        return column
    symbols = list(dict.fromkeys(values[t] for t in mine.tolist()))
    table = np.full((len(items), len(symbols)), np.nan)
    absent = np.ones(len(items), dtype=bool)
    absent[row[mine]] = False
    for t in mine.tolist():
        place = (row[t], symbols.index(values[t]))
        if not np.isnan(table[place]):
            raise ValueError(
                f"source {name!r} gives a probability of {values[t]!r} more than once for item {items[row[t]]!r}"
            )
        table[place] = amounts[t]
        absent[row[t]] |= np.isnan(amounts[t])
    table[absent] = np.nan  # symbols without a row share the rest, see `_pmf_of`
    return {symbol: table[:, v] for v, symbol in enumerate(symbols)}


def _places(values: list, column: str) -> tuple[list, np.ndarray]:
    """Distinct values in the order of their first rows, and the position of each row's value."""
    places: dict[Any, int] = {}
    codes = np.fromiter((places.setdefault(v, len(places)) for v in values), dtype=np.intp, count=len(values))
    blank = next((v for v in places if is_missing(v)), 0)
    if is_missing(blank):
        raise ValueError(f"column {column!r} of the long table is blank in row {values.index(blank)}")
    return list(places), codes


def _refuse_twice(items: list, row: np.ndarray, names: list, who: np.ndarray) -> None:
    pairs = row * len(names) + who
    order = np.sort(pairs)
    twice = np.flatnonzero(order[1:] == order[:-1])
    if len(twice):
        i, j = divmod(int(order[twice[0]]), len(names))
        raise ValueError(f"source {names[j]!r} answers item {items[i]!r} more than once; keep one answer of each")


def _turned(values: list, row: np.ndarray, who: np.ndarray, names: list, n: int) -> dict[str, Column]:
    objects = _objects(values)
    order = np.argsort(who, kind="stable")
    ends = np.cumsum(np.bincount(who, minlength=len(names)))
    out: dict[str, Column] = {}
    for name, rows in zip(names, np.split(order, ends[:-1])):
        column = np.full(n, None, dtype=object)
        column[row[rows]] = objects[rows]
        out[str(name)] = column
    return out


def _objects(values: Sequence[Any]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _from_mapping(layout: Layout, table: Mapping[str, Column], strict: bool) -> Answers:
    """A dict of source -> answers; sources that are not named have none."""
    strange = [name for name in table if name.removesuffix("@") not in layout.names]
    if strange:
        raise ValueError(f"unknown source {strange[0]!r}; choose one of {listed(layout.names)}")
    empty = [name for name, value in table.items() if isinstance(value, Mapping) and not value]
    if empty:
        raise ValueError(f"source {empty[0]!r} has an empty dict; give the probabilities of its symbols")
    lengths = {name: _length(value) for name, value in table.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"all sources must have answers to the same items; the lengths are {lengths}")
    n = next(iter(lengths.values()), 0)
    if strict and not table:
        raise ValueError("the dict of answers is empty; give the answers of at least one source")
    responses = [
        read_source(layout, j, table.get(name), table.get(f"{name}@"), n) for j, name in enumerate(layout.names)
    ]
    return Answers(tuple(responses), n)


def _length(value: Column) -> int:
    if isinstance(value, Mapping):
        value = next(iter(value.values()))
    return len(value) if np.ndim(value) or (hasattr(value, "__len__") and not isinstance(value, str)) else 1


def _from_frame(layout: Layout, table: IntoDataFrame) -> Answers:
    import narwhals.stable.v1 as nw

    frame = nw.from_native(table, eager_only=True)
    columns = {str(name): name for name in check_names(table)}
    responses = []
    for j, (name, source) in enumerate(zip(layout.names, layout.sources)):
        value = _wide_value(frame, columns, name, source)
        cells = _wide_cells(frame, columns, name, source)
        responses.append(read_source(layout, j, value, cells, len(frame)))
    return Answers(tuple(responses), len(frame))


def _wide_value(frame: nw.DataFrame, columns: Mapping[str, str], name: str, source: Source) -> Column:
    symbols = source.calibration.symbols
    wanted = source.columns
    if wanted is None:
        split = [f"{name}:{symbol}" for symbol in symbols]
        wanted = name if name in columns or not all(c in columns for c in split) else split
    if isinstance(wanted, str):
        return frame.get_column(_known(columns, wanted, name))
    named = dict(zip(symbols, wanted)) if not isinstance(wanted, Mapping) else wanted
    return {symbol: _floats(frame.get_column(_known(columns, c, name)), c) for symbol, c in named.items()}


def _wide_cells(frame: nw.DataFrame, columns: Mapping[str, str], name: str, source: Source) -> Column:
    cells = source.calibration.cells
    if cells is None:
        return None
    wanted = source.cells
    if wanted is None:
        wanted = f"{name}@" if f"{name}@" in columns else [f"{name}@{cell}" for cell in cells]
    if isinstance(wanted, str):
        return frame.get_column(_known(columns, wanted, name))
    return {cell: _floats(frame.get_column(_known(columns, c, name)), c) for cell, c in zip(cells, wanted)}


def _known(columns: Mapping[str, str], column: str, name: str) -> str:
    if str(column) not in columns:
        raise ValueError(
            f"the table has no column {column!r} with the answers of source {name!r} (nor probabilities in columns "
            f"'{name}:symbol'); its columns are {listed(list(columns))}. A source without answers needs a blank column"
        )
    return columns[str(column)]


def _floats(series: Column, column: str) -> Array:
    values = series.to_list() if hasattr(series, "to_list") else series
    try:
        return np.array([np.nan if is_missing(v) else v for v in values], dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {column!r} must hold numbers; {error}") from error


def _from_array(layout: Layout, table: ArrayLike) -> Answers:
    rows = np.asarray(table, dtype=object)
    if rows.ndim != 2 or rows.shape[1] != layout.n_sources:
        raise ValueError(
            f"answers must be a table with a column for each of the {layout.n_sources} sources "
            f"{listed(layout.names)}, or a dict; got shape {rows.shape}"
        )
    return _from_mapping(layout, {name: rows[:, j] for j, name in enumerate(layout.names)}, strict=True)


def read_source(layout: Layout, j: int, value: Column, cells: Column, n: int) -> np.ndarray:
    """Codes (n,) or distributions (n, S_j) of one source."""
    name, one = layout.names[j], layout.calibrations[j]
    if value is None:
        return np.full(n, -1)
    symbols = _symbols(name, one, value, n)
    if one.cells is None:
        if cells is not None:
            raise ValueError(f"the answers of source {name!r} have cells, but its calibration has none")
        return symbols
    if cells is None:
        raise ValueError(f"source {name!r} was calibrated with cells; give them with its answers, as {name + '@'!r}")
    where = _coded(cells, one.cells, f"the cells of {name!r}", n)
    return _together(symbols, where, len(one.symbols), len(one.cells))


def _symbols(name: str, one: Calibration, value: Column, n: int) -> np.ndarray:
    if (one.edges is not None or one.line is not None) and not isinstance(value, Mapping) and np.ndim(value) < 2:
        scores = _floats(value if hasattr(value, "__len__") else [value], name)
        if np.isinf(scores).any() and one.line is not None:
            raise ValueError(f"the scores of {name!r} must be finite; row {int(np.isinf(scores).argmax())} is not")
        absent = np.isnan(scores)
        if one.edges is not None:
            return np.where(absent, -1, np.searchsorted(one.edges, scores, side="right"))
        assert one.line is not None
        return np.where(absent[:, None], 0.0, line_pmf(np.where(absent, 0.0, scores), one.line, one.class_prior))
    return _coded(value, one.symbols, name, n)


def _coded(value: Column, symbols: tuple, name: str, n: int) -> np.ndarray:
    """(n,) positions among the symbols, or (n, V) distributions over them."""
    if isinstance(value, Mapping):
        return _pmf_of(value, symbols, name, n)
    if not hasattr(value, "__len__") or isinstance(value, str):
        value = [value]
    if (value.ndim if hasattr(value, "ndim") else np.ndim(value)) == 2:  # np.ndim would read a column of a frame
        table = np.asarray(by_name(value, symbols, name), dtype=float)
        if table.shape[1] != len(symbols):
            raise ValueError(
                f"{name!r} gives {table.shape[1]} probabilities for {len(symbols)} symbols {listed(symbols)}"
            )
        return np.nan_to_num(pmf(table, name))
    return _codes(value, symbols, name)


def _pmf_of(value: Mapping[Any, ArrayLike], symbols: tuple, name: str, n: int) -> Array:
    strange = [symbol for symbol in value if symbol not in symbols]
    if strange:
        raise ValueError(
            f"{name!r} has a probability of {strange[0]!r}, which is none of its symbols {listed(symbols)}"
        )
    table = np.full((n, len(symbols)), np.nan)
    for symbol, p in value.items():
        table[:, symbols.index(symbol)] = np.asarray(p, dtype=float)
    unnamed = np.isnan(table)
    absent = unnamed.all(axis=1)
    rest = 1.0 - np.where(unnamed, 0.0, table).sum(axis=1)
    rest = np.where(np.abs(rest) < PMF, 0.0, rest) / np.maximum(unnamed.sum(axis=1), 1)
    table = np.where(unnamed, rest[:, None], table)  # symbols that are not named share the rest
    table[absent] = np.nan
    return np.nan_to_num(pmf(table, name))


def _codes(value: Column, symbols: tuple, name: str) -> np.ndarray:
    if _is_text(value) and len(symbols) <= FEW:
        codes = _text_codes(value, symbols)
        if (codes >= 0).all() or value.is_null().to_numpy()[codes < 0].all():
            return codes
    values = value.to_list() if hasattr(value, "to_list") else np.asarray(value, dtype=object).tolist()
    places = {symbol: v for v, symbol in enumerate(symbols)}
    try:
        codes = np.fromiter(map(places.get, values, repeat(-1)), dtype=np.int32, count=len(values))
    except TypeError as error:
        raise ValueError(f"the answers of {name!r} must be labels; {error}") from error
    for i in np.flatnonzero(codes < 0).tolist():
        if not is_missing(values[i]):
            raise ValueError(
                f"{name!r} answers {values[i]!r} to item {i}, which is none of its symbols {listed(symbols)}"
                f"{_hint(values[i], symbols)}; leave it blank where there is no answer"
            )
    return codes


def _is_text(value: Column) -> bool:
    """Whether it is a text column of a frame."""
    import narwhals.stable.v1 as nw

    return isinstance(value, nw.Series) and value.dtype == nw.String


def _text_codes(series: nw.Series, symbols: tuple) -> np.ndarray:
    """Positions among a few symbols, -1 for other values; comparing columns is faster than looking up values."""
    codes = np.full(len(series), -1, dtype=np.int32)
    for v, symbol in enumerate(symbols):
        if isinstance(symbol, str):
            codes[(series == symbol).fill_null(False).to_numpy()] = v
    return codes


def _hint(value: Any, symbols: tuple) -> str:
    same = str(value) in {str(s) for s in symbols}
    if same:
        return f" (the answer is {type(value).__name__}, the symbols are {type(symbols[0]).__name__})"
    if isinstance(value, float) and 0 < value < 1:
        return " (give probabilities as a table with a column for each symbol)"
    return ""


def _together(symbols: np.ndarray, where: np.ndarray, n_symbols: int, n_cells: int) -> np.ndarray:
    """Symbol and cell as one symbol."""
    if symbols.ndim == where.ndim == 1:
        return np.where((symbols < 0) | (where < 0), -1, symbols * n_cells + where)
    soft = symbols if symbols.ndim == 2 else np.eye(n_symbols + 1)[symbols][:, :n_symbols]
    cell = where if where.ndim == 2 else np.eye(n_cells + 1)[where][:, :n_cells]
    return np.einsum("nv,nl->nvl", soft, cell).reshape(len(soft), -1)
