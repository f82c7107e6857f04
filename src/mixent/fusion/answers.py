"""Answers of the sources to the items, read from wide tables, long tables, dicts or arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.result import Result
from mixent.base.text import count
from mixent.core.arrays import Array
from mixent.data import listed
from mixent.data.frames import check_names, is_frame, unwrapped
from mixent.data.values import is_missing
from mixent.ensemble.pmfs import PMF, pmf
from mixent.fusion.calibration import JEFFREYS, Calibration
from mixent.fusion.reading import by_name
from mixent.fusion.scales import line_pmf
from mixent.fusion.sources import Layout, Source
from mixent.show import Short
from mixent.warn import warn_notes

if TYPE_CHECKING:
    import narwhals.stable.v1 as nw
    from narwhals.stable.v1.typing import IntoDataFrame

UNKNOWN = ("ignore", "symbol", "error")  # what is done with an answer that is not among the symbols
MOST_NAMED = 3  # unforeseen answers in a sentence
FEW = 100  # symbols that are compared with a whole column one after the other
Column: TypeAlias = Any  # labels, scores or probabilities of one source: array, list, column of a frame, or dict


@dataclass(frozen=True, repr=False)
class Answers(Short):
    """For each source, the symbol of every item or a distribution over its symbols."""

    responses: tuple[np.ndarray, ...]  # (n,) codes, -1 without an answer; or (n, S_j) distributions, 0 without
    n_items: int

    def part(self, rows: np.ndarray) -> Answers:
        """Some of the items."""
        responses = tuple(values[rows] for values in self.responses)
        return Answers(responses, len(responses[0]))

    def joined(self, *others: Answers) -> Answers:
        """These items followed by those of the others."""
        parts = (self, *others)
        responses = tuple(map(_joined, zip(*(part.responses for part in parts))))
        return Answers(responses, sum(part.n_items for part in parts))

    def answered(self) -> np.ndarray:
        """(J, n) whether the source answered the item."""
        return np.stack([values >= 0 if values.ndim == 1 else values.any(axis=1) for values in self.responses])


@dataclass(frozen=True, repr=False)
class LongAnswers(Result):
    """A long table with one column for each source, items in the order of their first rows; see `long_answers`."""

    _title = "Answers of the sources"
    _shown = ("items", "values")

    items: np.ndarray  # (n,) names
    values: dict[str, Column]  # source -> (n,) values, or symbol -> (n,) probabilities


AnswersLike: TypeAlias = Union[Answers, LongAnswers, Mapping[str, Column], "IntoDataFrame", ArrayLike]


def _joined(responses: Sequence[np.ndarray]) -> np.ndarray:
    """Answers of one source, as distributions if some of the parts are."""
    widths = {values.shape[1] for values in responses if values.ndim == 2}
    return np.concatenate([_dense(values, width) for width in widths for values in responses] or list(responses))


def _dense(codes: np.ndarray, width: int) -> Array:
    """Codes as one-hot distributions over as many symbols."""
    return codes if codes.ndim == 2 else np.eye(width + 1)[codes][:, :width]


@dataclass
class Unforeseen:
    """Answers that are not among the symbols: source -> answer -> first item and number of items."""

    answers: dict[str, dict[Any, tuple[int, int]]] = field(default_factory=dict)

    def add(self, name: str, value: Any, item: int) -> bool:
        """Add one answer; whether it is the first of its value."""
        of_source = self.answers.setdefault(name, {})
        first, n = of_source.get(value, (item, 0))
        of_source[value] = (first, n + 1)
        return n == 0

    def notes(self, layout: Layout) -> list[str]:
        """A sentence for each source."""
        out = []
        for name, answers in self.answers.items():
            symbols = _alphabet(layout, name)
            n, first = sum(n for _, n in answers.values()), min(item for item, _ in answers.values())
            named = [*map(repr, list(answers)[:MOST_NAMED]), *["..."] * (len(answers) > MOST_NAMED)]
            hint = next(filter(None, (_hint(value, symbols, name) for value in answers)), "")
            are = "is" if n == 1 else "are"
            out.append(
                f"{count(n, 'answer')} of {name!r} ({', '.join(named)}), first for item {first}, {are} not among "
                f"{listed(symbols)} and {are} used as no answer{hint}"
            )
        return out

    def error(self, name: str, value: Any, symbols: tuple) -> ValueError:
        """An unforeseen answer of a source as an error."""
        item, _ = self.answers[name][value]
        return ValueError(
            f"the answers of {name!r} must be among {listed(symbols)}; got {value!r} for item {item}"
            f"{_hint(value, symbols, name)}; leave it blank if there is no answer"
        )


def _alphabet(layout: Layout, name: str) -> tuple:
    """Symbols of a source, or for "name@" its cells."""
    if name in layout.names:
        return layout.calibrations[layout.names.index(name)].symbols
    cells = layout.calibrations[layout.names.index(name.removesuffix("@"))].cells
    return () if cells is None else cells


def read_answers(layout: Layout, table: AnswersLike, unknown: str = "ignore") -> Answers:
    """Answers from any of the supported formats.

    An answer that is not among the symbols is no answer, with a note on the data, or with unknown="error" an error.
    """
    answers, unforeseen = _read(layout, table)
    if unforeseen.answers and unknown == "error":
        name, of_source = next(iter(unforeseen.answers.items()))
        raise unforeseen.error(name, next(iter(of_source)), _alphabet(layout, name))
    warn_notes(unforeseen.notes(layout))
    return answers


def with_symbols(layout: Layout, table: AnswersLike) -> Layout:
    """The layout in which the unforeseen answers of each source are further symbols, without calibration rows.

    Under the Dirichlet distribution of the rates, such an answer has the probability s / (n_k + V s) in class k.
    """
    unforeseen = _read(layout, table)[1].answers
    sources = [_extended(s, tuple(unforeseen.get(n, ()))) for n, s in zip(layout.names, layout.sources)]
    return Layout(layout.names, tuple(sources), layout.unanswered)


def _extended(source: Source, more: tuple) -> Source:
    calibration = source.calibration
    fixed = calibration.ordinal or calibration.line is not None or calibration.scale is not None
    if not more or fixed:  # a new symbol has no place in an order, and no probability
        return source
    counts = np.zeros((len(calibration.classes), len(more), *calibration.counts.shape[2:]))
    if not calibration.smoothing:  # without pseudo-counts a new symbol would be impossible
        counts[calibration.seen] = JEFFREYS
    counts = np.concatenate([calibration.counts, counts], axis=1)
    return replace(source, calibration=replace(calibration, symbols=(*calibration.symbols, *more), counts=counts))


def _read(layout: Layout, table: AnswersLike) -> tuple[Answers, Unforeseen]:
    unforeseen = Unforeseen()
    if isinstance(table, Answers):
        return table, unforeseen
    if isinstance(table, LongAnswers):
        return _from_mapping(layout, table.values, unforeseen, strict=False), unforeseen
    if isinstance(table, Mapping):
        return _from_mapping(layout, table, unforeseen, strict=True), unforeseen
    table = unwrapped(table)
    read = _from_frame if is_frame(table) else _from_array
    return read(layout, table, unforeseen), unforeseen


def long_answers(
    table: IntoDataFrame,
    *,
    item: str = "item",
    source: str = "source",
    value: str = "value",
    probability: str | None = None,
) -> LongAnswers:
    """Read answers from a long table, with one row for each answer.

    Parameters
    ----------
    table : DataFrame
    item, source, value : str
        Names of the columns with the item, the source and its answer. An item without a row of a
        source was not answered by it.
    probability : str, optional
        Name of the column with the probability of the symbol in `value`; a source may then have several rows for an
        item.

    Returns
    -------
    LongAnswers
        Answers for `Fuser.fit` and the other methods of `Fuser`; `items` are the names of the items in the order of
        the posteriors.

    See Also
    --------
    Fuser : Fusion of the answers.
    """
    import narwhals.stable.v1 as nw

    table = unwrapped(table)
    if not is_frame(table):
        raise ValueError(f"a long table must be a DataFrame; got {type(table).__name__}")
    frame = nw.from_native(table, eager_only=True)
    required = [item, source, value, *([] if probability is None else [probability])]
    absent = [name for name in required if name not in frame.columns]
    if absent:
        raise ValueError(f"the long table must have a column {absent[0]!r}; its columns are {listed(frame.columns)}")
    items, item_codes = _distinct(frame.get_column(item).to_list(), item)
    names, source_codes = _distinct(frame.get_column(source).to_list(), source)
    values = frame.get_column(value).to_list()
    if probability is None:
        _refuse_duplicates(items, item_codes, [str(n) for n in names], source_codes)
        return LongAnswers(_objects(items), _pivoted(values, item_codes, source_codes, names, len(items)))
    proba = np.array([np.nan if is_missing(p) else float(p) for p in frame.get_column(probability).to_list()])
    out: dict[str, Column] = {}
    for j, name in enumerate(names):
        rows = np.flatnonzero(source_codes == j)
        out[str(name)] = _long_source(str(name), rows, item_codes, values, proba, items)
    return LongAnswers(_objects(items), out)


def _long_source(
    name: str, rows: np.ndarray, item_codes: np.ndarray, values: list, proba: Array, items: list
) -> np.ndarray | dict[Any, Array]:
    """Answers of one source: labels if it has no probabilities, otherwise symbol -> (n,) probabilities."""
    if np.isnan(proba[rows]).all():
        _refuse_duplicates(items, item_codes[rows], [name], np.zeros(len(rows), dtype=np.intp))
        column = np.full(len(items), None, dtype=object)
        column[item_codes[rows]] = _objects([values[t] for t in rows])
        return column
    symbols = list(dict.fromkeys(values[t] for t in rows.tolist()))
    table = np.full((len(items), len(symbols)), np.nan)
    absent = np.ones(len(items), dtype=bool)
    absent[item_codes[rows]] = False
    for t in rows.tolist():
        cell = (item_codes[t], symbols.index(values[t]))
        if not np.isnan(table[cell]):
            raise ValueError(
                f"source {name!r} has more than one probability of {values[t]!r} for item {items[item_codes[t]]!r}; "
                "keep one of them"
            )
        table[cell] = proba[t]
        absent[item_codes[t]] |= np.isnan(proba[t])
    table[absent] = np.nan  # symbols without a row share the remaining probability, see `_pmf_of`
    return {symbol: table[:, v] for v, symbol in enumerate(symbols)}


def _distinct(values: list, column: str) -> tuple[list, np.ndarray]:
    """Distinct values in the order of their first rows, and the index of the value of each row."""
    index: dict[Any, int] = {}
    codes = np.fromiter((index.setdefault(v, len(index)) for v in values), dtype=np.intp, count=len(values))
    blank = next((v for v in index if is_missing(v)), 0)
    if is_missing(blank):
        raise ValueError(
            f"column {column!r} of the long table must not have blanks; row {values.index(blank)} is blank"
        )
    return list(index), codes


def _refuse_duplicates(items: list, item_codes: np.ndarray, names: list, source_codes: np.ndarray) -> None:
    pairs = np.sort(item_codes * len(names) + source_codes)
    duplicates = np.flatnonzero(pairs[1:] == pairs[:-1])
    if len(duplicates):
        i, j = divmod(int(pairs[duplicates[0]]), len(names))
        raise ValueError(f"source {names[j]!r} has more than one answer to item {items[i]!r}; keep one of them")


def _pivoted(values: list, item_codes: np.ndarray, source_codes: np.ndarray, names: list, n: int) -> dict[str, Column]:
    """The values as one column (n,) for each source."""
    objects = _objects(values)
    order = np.argsort(source_codes, kind="stable")
    ends = np.cumsum(np.bincount(source_codes, minlength=len(names)))
    out: dict[str, Column] = {}
    for name, rows in zip(names, np.split(order, ends[:-1])):
        column = np.full(n, None, dtype=object)
        column[item_codes[rows]] = objects[rows]
        out[str(name)] = column
    return out


def _objects(values: Sequence[Any]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _from_mapping(layout: Layout, table: Mapping[str, Column], unforeseen: Unforeseen, *, strict: bool) -> Answers:
    """Answers from a dict of source -> answers; sources that are not in the dict have no answers."""
    unknown = [name for name in table if name.removesuffix("@") not in layout.names]
    if unknown:
        raise ValueError(f"unknown source {unknown[0]!r}; choose one of {listed(layout.names)}")
    empty = [name for name, value in table.items() if isinstance(value, Mapping) and not value]
    if empty:
        raise ValueError(
            f"the answers of source {empty[0]!r} must be a dict of symbol -> probabilities; got an empty dict"
        )
    lengths = {name: _length(value) for name, value in table.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the answers of all sources must have the same length; got {lengths}")
    n = next(iter(lengths.values()), 0)
    if strict and not table:
        raise ValueError("the answers must contain at least one source; got an empty dict")
    responses = [
        read_source(layout, j, table.get(name), table.get(f"{name}@"), n, unforeseen)
        for j, name in enumerate(layout.names)
    ]
    return Answers(tuple(responses), n)


def _length(value: Column) -> int:
    if isinstance(value, Mapping):
        value = next(iter(value.values()))
    return len(value) if np.ndim(value) or (hasattr(value, "__len__") and not isinstance(value, str)) else 1


def _from_frame(layout: Layout, table: IntoDataFrame, unforeseen: Unforeseen) -> Answers:
    import narwhals.stable.v1 as nw

    frame = nw.from_native(table, eager_only=True)
    columns = {str(name): name for name in check_names(table)}
    responses = []
    for j, (name, source) in enumerate(zip(layout.names, layout.sources)):
        value = _wide_value(frame, columns, name, source)
        cells = _wide_cells(frame, columns, name, source)
        responses.append(read_source(layout, j, value, cells, len(frame), unforeseen))
    return Answers(tuple(responses), len(frame))


def _wide_value(frame: nw.DataFrame, columns: Mapping[str, str], name: str, source: Source) -> Column:
    symbols = source.calibration.symbols
    chosen = source.columns
    if chosen is None:
        split = [f"{name}:{symbol}" for symbol in symbols]
        chosen = name if name in columns or not all(c in columns for c in split) else split
    if isinstance(chosen, str):
        return frame.get_column(_checked_column(columns, chosen, name))
    by_symbol = dict(zip(symbols, chosen)) if not isinstance(chosen, Mapping) else chosen
    return {symbol: _floats(frame.get_column(_checked_column(columns, c, name)), c) for symbol, c in by_symbol.items()}


def _wide_cells(frame: nw.DataFrame, columns: Mapping[str, str], name: str, source: Source) -> Column:
    cells = source.calibration.cells
    if cells is None:
        return None
    chosen = source.cells
    if chosen is None:
        chosen = f"{name}@" if f"{name}@" in columns else [f"{name}@{cell}" for cell in cells]
    if isinstance(chosen, str):
        return frame.get_column(_checked_column(columns, chosen, name))
    return {cell: _floats(frame.get_column(_checked_column(columns, c, name)), c) for cell, c in zip(cells, chosen)}


def _checked_column(columns: Mapping[str, str], column: str, name: str) -> str:
    if str(column) not in columns:
        raise ValueError(
            f"the answers of source {name!r} must be in a column {column!r} (or probabilities in columns "
            f"'{name}:symbol'); the columns of the table are {listed(list(columns))}. For a source without answers, "
            "add a blank column"
        )
    return columns[str(column)]


def _floats(series: Column, column: str) -> Array:
    values = series.to_list() if hasattr(series, "to_list") else series
    try:
        return np.array([np.nan if is_missing(v) else v for v in values], dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {column!r} must contain numbers; {error}") from error


def _from_array(layout: Layout, table: ArrayLike, unforeseen: Unforeseen) -> Answers:
    rows = np.asarray(table, dtype=object)
    if rows.ndim != 2 or rows.shape[1] != layout.n_sources:
        raise ValueError(
            f"answers must be a dict or a table with a column for each of the {layout.n_sources} sources "
            f"{listed(layout.names)}; got shape {rows.shape}"
        )
    columns = {name: rows[:, j] for j, name in enumerate(layout.names)}
    return _from_mapping(layout, columns, unforeseen, strict=True)


def read_source(layout: Layout, j: int, value: Column, cells: Column, n: int, unforeseen: Unforeseen) -> np.ndarray:
    """Codes (n,) or distributions (n, S_j) of one source."""
    name, calibration = layout.names[j], layout.calibrations[j]
    if value is None:
        return np.full(n, -1)
    symbols = _symbols(name, calibration, value, n, unforeseen)
    if calibration.cells is None:
        if cells is not None:
            raise ValueError(
                f"the answers of source {name!r} have cells, but its calibration has none; leave out {name + '@'!r}"
            )
        return symbols
    if cells is None:
        raise ValueError(f"source {name!r} was calibrated with cells; add the cells of its answers as {name + '@'!r}")
    cell_codes = _coded(cells, calibration.cells, f"{name}@", n, unforeseen)
    return _joint_codes(symbols, cell_codes, len(calibration.symbols), len(calibration.cells))


def _symbols(name: str, calibration: Calibration, value: Column, n: int, unforeseen: Unforeseen) -> np.ndarray:
    """Codes (n,) of the symbols, or distributions (n, V) over them, without cells."""
    edges, line = calibration.edges, calibration.line
    if (edges is not None or line is not None) and not isinstance(value, Mapping) and np.ndim(value) < 2:
        scores = _floats(value if hasattr(value, "__len__") else [value], name)
        if np.isinf(scores).any() and line is not None:
            row = int(np.isinf(scores).argmax())
            raise ValueError(f"the scores of source {name!r} must be finite; row {row} has {scores[row]:g}")
        absent = np.isnan(scores)
        if edges is not None:
            return np.where(absent, -1, np.searchsorted(edges, scores, side="right"))
        assert line is not None
        return np.where(absent[:, None], 0.0, line_pmf(np.where(absent, 0.0, scores), line, calibration.class_prior))
    return _coded(value, calibration.symbols, name, n, unforeseen)


def _coded(value: Column, symbols: tuple, name: str, n: int, unforeseen: Unforeseen) -> np.ndarray:
    """(n,) indices of the symbols, or (n, V) distributions over them."""
    if isinstance(value, Mapping):
        return _pmf_of(value, symbols, name, n)
    if not hasattr(value, "__len__") or isinstance(value, str):
        value = [value]
    if (value.ndim if hasattr(value, "ndim") else np.ndim(value)) == 2:  # np.ndim would read a column of a frame
        table = np.asarray(by_name(value, symbols, name), dtype=float)
        if table.shape[1] != len(symbols):
            raise ValueError(
                f"{name!r} must have probabilities of its {len(symbols)} symbols {listed(symbols)}; "
                f"got {table.shape[1]} columns"
            )
        return np.nan_to_num(pmf(table, name))
    return _codes(value, symbols, name, unforeseen)


def _pmf_of(value: Mapping[Any, ArrayLike], symbols: tuple, name: str, n: int) -> Array:
    """(n, V) probabilities from a dict of symbol -> (n,); symbols that are not named share the rest equally."""
    unknown = [symbol for symbol in value if symbol not in symbols]
    if unknown:
        raise ValueError(
            f"{name!r} must have probabilities of its symbols {listed(symbols)}; got a probability of {unknown[0]!r}"
        )
    table = np.full((n, len(symbols)), np.nan)
    for symbol, p in value.items():
        table[:, symbols.index(symbol)] = np.asarray(p, dtype=float)
    unnamed = np.isnan(table)
    absent = unnamed.all(axis=1)
    rest = 1.0 - np.where(unnamed, 0.0, table).sum(axis=1)
    rest = np.where(np.abs(rest) < PMF, 0.0, rest) / np.maximum(unnamed.sum(axis=1), 1)
    table = np.where(unnamed, rest[:, None], table)
    table[absent] = np.nan
    return np.nan_to_num(pmf(table, name))


def _codes(value: Column, symbols: tuple, name: str, unforeseen: Unforeseen) -> np.ndarray:
    if _is_text(value) and len(symbols) <= FEW:
        codes = _text_codes(value, symbols)
        if (codes >= 0).all() or value.is_null().to_numpy()[codes < 0].all():
            return codes
    values = value.to_list() if hasattr(value, "to_list") else np.asarray(value, dtype=object).tolist()
    index = {symbol: v for v, symbol in enumerate(symbols)}
    codes = np.full(len(values), -1, dtype=np.int32)
    given = [i for i, value in enumerate(values) if value is not None]  # a worker answers few of the items
    try:
        codes[given] = np.fromiter(map(index.get, map(values.__getitem__, given), repeat(-1)), np.int32, len(given))
    except TypeError as error:
        raise ValueError(f"the answers of {name!r} must be labels; {error}") from error
    for i in (i for i in given if codes[i] < 0):
        if not is_missing(values[i]):
            new = unforeseen.add(name, values[i], i)
            if new and _form(values[i], symbols):  # a mistake in the form of all answers, not an unforeseen one
                raise unforeseen.error(name, values[i], symbols)
    return codes


def _is_text(value: Column) -> bool:
    """Whether it is a text column of a frame."""
    import narwhals.stable.v1 as nw

    return isinstance(value, nw.Series) and value.dtype == nw.String


def _text_codes(series: nw.Series, symbols: tuple) -> np.ndarray:
    """Indices of the symbols, -1 for other values; for few symbols, comparing columns is faster than a dict."""
    codes = np.full(len(series), -1, dtype=np.int32)
    for v, symbol in enumerate(symbols):
        if isinstance(symbol, str):
            codes[(series == symbol).fill_null(False).to_numpy()] = v
    return codes


def _form(value: Any, symbols: tuple) -> str:
    """What is wrong with the form of an answer, as a hint; empty for an answer that is only unforeseen."""
    if str(value) in {str(s) for s in symbols}:
        return f" (the answer is of type {type(value).__name__}, the symbols are of type {type(symbols[0]).__name__})"
    if isinstance(value, float) and 0 < value < 1:
        return " (pass probabilities as a table with a column for each symbol)"
    return ""


def _hint(value: Any, symbols: tuple, name: str) -> str:
    if form := _form(value, symbols):
        return form
    if isinstance(value, str):
        close = [s for s in symbols if isinstance(s, str) and _plain(s) == _plain(value)]
        return f" ({value!r} differs from {close[0]!r} only in case or blanks)" if close else ""
    if isinstance(value, (int, float)) and any(isinstance(s, (int, float)) for s in symbols):
        return f" (if the answers are scores, calibrate with `from_scores`, or `mixent calibrate --score {name}`)"
    return ""


def _plain(text: str) -> str:
    """Text without differences of case and blanks."""
    return "".join(text.split()).casefold()


def _joint_codes(symbols: np.ndarray, cells: np.ndarray, n_symbols: int, n_cells: int) -> np.ndarray:
    """Codes of pairs (symbol, cell), or distributions over the pairs."""
    if symbols.ndim == cells.ndim == 1:
        return np.where((symbols < 0) | (cells < 0), -1, symbols * n_cells + cells)
    symbol_proba = symbols if symbols.ndim == 2 else np.eye(n_symbols + 1)[symbols][:, :n_symbols]
    cell_proba = cells if cells.ndim == 2 else np.eye(n_cells + 1)[cells][:, :n_cells]
    return np.einsum("nv,nl->nvl", symbol_proba, cell_proba).reshape(len(symbol_proba), -1)
