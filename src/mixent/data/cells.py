"""Cells of a user's table as they are: by column, and rows of the cells of several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mixent.data.frames import is_frame
from mixent.data.schema import Schema


def raw_columns(given: Any, schema: Schema) -> list[list[Any] | None]:
    """The values of each used column, by name if the training table had names; None for one that is not there."""
    used = [i for i, column in enumerate(schema.inputs) if column.columns]
    if not is_frame(given):
        return np.asarray(given, dtype=object).T[used].tolist()
    import narwhals as nw  # no DataFrame library is imported until a DataFrame comes

    frame = nw.from_native(given, eager_only=True)
    if not schema.named:
        return [series.to_list() for i, series in enumerate(frame.iter_columns()) if i in used]
    known = {str(series.name): series for series in frame.iter_columns()}
    names = [column.name for column in schema.used]
    return [known[name].to_list() if name in known else None for name in names]


def mixed_frames(background: Any, X: Any) -> Callable[[np.ndarray], Any]:
    """Origin of each cell -> rows, in the same DataFrame library."""
    import narwhals as nw

    rows = nw.concat([nw.from_native(part, eager_only=True) for part in (background, X)])

    def mix(index: np.ndarray) -> Any:
        cells = [rows[:, j][index[:, j].tolist()].alias(name) for j, name in enumerate(rows.columns)]
        return rows[index[:, 0].tolist(), :].with_columns(*cells).to_native()

    return mix
