"""Cells of a user's table as they are: by column, and rows of the cells of several rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mixent.data.frames import is_frame
from mixent.data.schema import Schema


def raw_columns(given: Any, schema: Schema) -> list[list[Any] | None]:
    """The values of each column, by name if the training table had names; None for a column that is not there."""
    if not is_frame(given):
        return np.asarray(given, dtype=object).T.tolist()
    import narwhals as nw  # no DataFrame library is imported until a DataFrame comes

    frame = nw.from_native(given, eager_only=True)
    if not schema.named:
        return [series.to_list() for series in frame.iter_columns()]
    known = {str(series.name): series for series in frame.iter_columns()}
    return [known[name].to_list() if name in known else None for name in schema.names]


def mixed_frames(background: Any, X: Any) -> Callable[[np.ndarray], Any]:
    """Origin of each cell -> rows, in the same DataFrame library."""
    import narwhals as nw

    rows = nw.concat([nw.from_native(part, eager_only=True) for part in (background, X)])

    def mix(index: np.ndarray) -> Any:
        cells = [rows[:, j][index[:, j].tolist()].alias(name) for j, name in enumerate(rows.columns)]
        return rows[index[:, 0].tolist(), :].with_columns(*cells).to_native()

    return mix
