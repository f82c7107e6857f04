"""The section of a model of all columns: how well each is told by the others."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Paragraph, Table
from mixent.base.text import count
from mixent.report.data import read_table

MOST = 40  # columns


def joint_section(name: str, model: Any, X: Any) -> list[Content]:
    """What a fitted `MaxEntJoint` says of each column, given the others."""
    schema, table = model.schema_, read_table(X)
    text = (
        f"{name}: one model of {count(len(schema.columns), 'column')}, of greatest entropy among those that reproduce "
        "how often values occur together. Any column can be predicted from the others."
    )
    rows: list = []
    for column in schema.columns[:MOST] if table is not None else ():
        found = _told(model, X, table, column)
        if found is not None:
            rows.append([str(column.name), column.kind, *found])
    if not rows:
        return [Paragraph(text)]
    caption = (
        "Each column predicted from the others, on these rows: of categories the share of wrong predictions, beside "
        "that of always saying the most frequent value; of numbers the root mean square error, beside the standard "
        "deviation. Rows the model was fitted to flatter it"
    )
    return [Paragraph(text), Table(caption, ["column", "kind", "off by", "without the others"], rows)]


def _told(model: Any, X: Any, table: Any, column: Any) -> list[Number] | None:
    """(off, off without the others) as cells; None where the column is constant or empty."""
    names = [str(n) for n in table.schema.names]
    j = names.index(str(column.name)) if str(column.name) in names else None
    if j is None:
        return None
    guess = np.asarray(model.predict(X, target=column.name))
    if column.kind == "continuous":
        if j not in list(table.schema.continuous):
            return None
        values = table.X[:, list(table.schema.continuous).index(j)]
        seen = np.isfinite(values)
        if not seen.any() or np.ptp(values[seen]) == 0:
            return None
        off = np.sqrt(np.mean((np.asarray(guess, dtype=float)[seen] - values[seen]) ** 2))
        return [Number(f"{off:.3g}"), Number(f"{values[seen].std():.3g}")]
    from sklearn.utils import _safe_indexing

    from mixent.base.labels import labelled_rows

    values = np.asarray(_safe_indexing(X, j, axis=1), dtype=object)
    seen = labelled_rows(values)
    if not seen.any():
        return None
    told = [str(v) for v in values[seen]]
    wrong = np.mean([str(a) != b for a, b in zip(guess[seen], told)])
    rare = 1 - max(told.count(v) for v in set(told)) / len(told)
    return [Number(f"{100 * wrong:.1f} %"), Number(f"{100 * rare:.1f} %")]
