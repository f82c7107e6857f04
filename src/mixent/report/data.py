"""The table: its columns with their values, its classes, its problems, and a fingerprint of all of it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Cell, Content, Number, Paragraph, Spark, Table
from mixent.base.text import count, readable
from mixent.data import Table as Rows
from mixent.data import problems, read_features
from mixent.data.labels import as_labels, classes_of, encode, labelled_rows

Categorical = str | Sequence[str | int]  # "auto", or names or places of columns that are categories
MOST_COLUMNS = 40  # in the table of columns
MOST_CLASSES = 30
BINS = 16  # of a small histogram
TOP = 3  # values of a category that are named
LONG = 24  # letters of a value


def read_table(X: Any, categorical: Categorical = "auto") -> Rows | None:
    """The rows as checked, typed columns, without those that hold nothing; None where X cannot be read as a table."""
    for rows in (X, without_empty(X)):
        try:
            names = [*column_names(rows), *range(np.shape(rows)[1])]
            wanted = categorical if isinstance(categorical, str) else [c for c in categorical if c in names]
            return read_features(SimpleNamespace(), rows, reset=True, categorical=wanted)
        except (TypeError, ValueError, IndexError):
            continue
    return None


def without_empty(X: Any) -> Any:
    """A DataFrame without the columns that hold nothing."""
    empty = empty_columns(X)
    if not empty:
        return X
    import narwhals as nw

    return nw.from_native(X, eager_only=True).drop(empty).to_native()


def with_categories(X: Any, categorical: Categorical) -> Any:
    """The rows with the columns of `categorical` typed as categories."""
    if isinstance(categorical, str) or (table := read_table(X, categorical)) is None:
        return X
    texts = {}
    for codes, j in zip(category_codes(table), table.schema.categorical):
        values = table.schema.columns[j].categories
        texts[j] = [None if code < 0 else str(values[code]) for code in codes]
    if not hasattr(X, "columns"):
        out = np.array(X, dtype=object)
        for j, column in texts.items():
            out[:, j] = [None if text is None else repr(text) for text in column]  # quoted: no number written as text
        return out
    import narwhals as nw

    frame = nw.from_native(without_empty(X), eager_only=True)
    how: Any = {"dtype": nw.Categorical(), "backend": frame.implementation}
    return frame.with_columns(*(nw.new_series(frame.columns[j], t, **how) for j, t in texts.items())).to_native()


def empty_columns(X: Any) -> list[str]:
    """Names of the columns of a DataFrame that hold nothing."""
    if not hasattr(X, "columns"):
        return []
    return [name for j, name in enumerate(X.columns) if not labelled_rows(_column(X, j)).any()]


def _column(X: Any, j: int) -> np.ndarray:
    from sklearn.utils import _safe_indexing

    return np.asarray(_safe_indexing(X, j, axis=1))


def column_names(X: Any) -> list[str]:
    """The names of a DataFrame's columns; of an array, their places."""
    return [str(c) for c in X.columns] if hasattr(X, "columns") else [f"column {j}" for j in range(np.shape(X)[1])]


def columns_section(X: Any, *, categorical: Categorical = "auto") -> list[Content]:
    """Rows, columns by kind, and the values of each."""
    table = read_table(X, categorical)
    if table is None:
        return []
    n_missing = int(np.isnan(table.X).sum()) + sum(int((codes < 0).sum()) for codes in category_codes(table))
    columns = table.schema.columns
    kinds = [f"{len(table.schema.continuous)} of numbers"] * bool(len(table.schema.continuous))
    kinds += [f"{len(table.schema.categorical)} of categories"] * bool(len(table.schema.categorical))
    share = f"{100 * n_missing / max(table.n_rows * len(columns), 1):.2g} % of the values are missing"
    missing = share if n_missing else "no missing values"
    text = f"{count(table.n_rows, 'row')} and {count(len(columns), 'column')} ({', '.join(kinds)}); {missing}."
    empty = empty_columns(X)
    text += f" Columns without any value are left out here: {', '.join(map(str, empty))}." if empty else ""
    return [Paragraph(text), columns_table(table)]


def problems_section(
    X: Any, messages: Sequence[str] | None, notes: Sequence[str] = (), *, categorical: Categorical = "auto"
) -> list[Content]:
    """Sentences on what may be wrong, and on what was done about it.

    Parameters
    ----------
    X : array or DataFrame
    messages : as `data_problems` lists them; None to look for them here
    notes : further sentences
    categorical : columns to treat as categories
    """
    table = read_table(X, categorical)
    if messages is None:
        messages = [] if table is None else problems(table)
    read = () if table is None else table.notes
    items = [_sentence(text) for text in dict.fromkeys([*messages, *read, *notes])]
    nothing = "No problems were found: no constant, empty or suspicious column, no tiny class."
    return [Bullets(items)] if items else [Paragraph(nothing)]


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def category_codes(table: Rows) -> list[np.ndarray]:
    """The codes of each categorical column."""
    return [] if table.codes is None else list(table.codes.T)


def columns_table(table: Rows) -> Table:
    """A row for each column: kind, values, share of missing values, and a small histogram."""
    rows: list[list[Cell]] = []
    numbers = dict(zip(table.schema.continuous, table.X.T))
    codes = dict(zip(table.schema.categorical, category_codes(table)))
    for j, column in enumerate(table.schema.columns[:MOST_COLUMNS]):
        cells = _number_cells(numbers[j]) if j in numbers else _category_cells(codes[j], column.categories)
        rows.append([called(table, j), *cells])
    n = len(table.schema.columns)
    some = f" (the first {MOST_COLUMNS} of {n})" if n > MOST_COLUMNS else ""
    caption = (
        f"Columns{some}: of numbers the range, mean and standard deviation; of categories the most frequent values"
    )
    return Table(caption, ["column", "kind", "values", "missing (%)", "distribution"], rows)


def called(table: Rows, j: int) -> str:
    """The name of a column on a page: of an array by its place."""
    return str(table.schema.names[j]) if table.schema.named else f"column {j}"


def _number_cells(values: np.ndarray) -> list[Cell]:
    seen = values[np.isfinite(values)]
    empty = Number(f"{100 * (1 - len(seen) / max(len(values), 1)):.1f}")
    low, high = float(seen.min()), float(seen.max())
    if low == high:
        return ["number", f"always {readable(low)}", empty, ""]
    text = f"{readable(low)} to {readable(high)}; {readable(seen.mean(), 3)} ± {readable(seen.std(), 3)}"
    few = np.unique(seen)
    shares = np.histogram(seen, bins=BINS, range=(low, high))[0] / len(seen)
    if len(few) <= BINS:  # whole numbers fall between bins
        shares = np.array([np.mean(seen == value) for value in few])
    return ["number", text, empty, Spark(shares.tolist(), f"histogram from {readable(low)} to {readable(high)}")]


def _category_cells(codes: np.ndarray, categories: Sequence[Any]) -> list[Cell]:
    seen = codes[codes >= 0]
    empty = Number(f"{100 * (1 - len(seen) / max(len(codes), 1)):.1f}")
    counts = np.bincount(seen, minlength=len(categories))
    order = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > 0]
    text = ", ".join(f"{_short(categories[c])} {100 * counts[c] / len(seen):.0f} %" for c in order[:TOP])
    text += f" and {len(order) - TOP} more" if len(order) > TOP else ""
    shares = (counts[order[:BINS]] / len(seen)).tolist()
    return ["category", text, empty, Spark(shares, f"shares of {count(len(order), 'value')}, most frequent first")]


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def classes_table(y: Any) -> Table:
    """Labelled rows of each class, the largest first."""
    y = as_labels(y)
    classes, known = classes_of(y), labelled_rows(y)
    counts = np.bincount(encode(y[known], classes), minlength=len(classes))
    order = np.argsort(-counts, kind="stable")
    some = f" (the {MOST_CLASSES} largest of {len(classes)})" if len(classes) > MOST_CLASSES else ""
    rows: list = [
        [str(classes[c]), int(counts[c]), Number(f"{100 * counts[c] / counts.sum():.1f}")] for c in order[:MOST_CLASSES]
    ]
    return Table(f"Labelled rows of each class{some}", ["class", "rows", "share (%)"], rows)


def fingerprint(X: Any, y: Any = None) -> str:
    """Sixteen letters that change with any value, name or order of a table: SHA-256 of its columns, one by one.

    Numbers enter as float64, all else as text, missing values as nothing: a DataFrame and the CSV it was read from
    agree.
    """
    import hashlib

    digest = hashlib.sha256()
    names = column_names(X) if hasattr(X, "columns") else None
    for j in range(np.shape(X)[1]):
        digest.update(f"{j if names is None else names[j]}\n".encode())
        digest.update(_bytes(_column(X, j)))
    if y is not None:
        digest.update(b"y\n" + _bytes(as_labels(y)))
    return digest.hexdigest()[:16]


def _bytes(values: np.ndarray) -> bytes:
    if values.dtype.kind in "biuf":
        numbers = values.astype(float) + 0.0  # not -0.0
        return np.where(np.isnan(numbers), np.nan, numbers).tobytes()
    return "\0".join("" if _is_missing(v) else str(v) for v in values.tolist()).encode()


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
