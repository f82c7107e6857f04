"""`mixent impute`: a model and a table with gaps in, the table without them out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import session, shown
from mixent.cli.data import check_output, listed, read_for, write_table
from mixent.cli.predict import model_columns

MOST_COLUMNS = 10


def impute(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by `mixent fit`.", show_default=False)
    ],
    data: opt.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: .csv, .tsv or .parquet. Known cells stay as they are; a category that a "
            "spreadsheet would run as a formula (=... and the like) is filled in with a leading '.",
            show_default=False,
        ),
    ],
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fill the gaps of a table with what a model expects there.

    Numbers get their expected value, categories the most probable one, given the rest of the row. What is known stays
    as it is (in a text file to the letter), and so do columns the model does not have. For models of --model joint and
    for mixtures.

    \b
    Examples:
      mixent fit data.csv -o table.mixent --model joint
      mixent impute table.mixent data.csv -o filled.csv
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load
        from mixent.data import read_cells
        from mixent.data.files import ENDINGS

        check_output(output, [model, data], ENDINGS)
        fitted = load(model)
        if not hasattr(fitted, "impute"):
            raise ValueError(
                f"{model} holds a {type(fitted).__name__}, which has no model of the columns to fill them from; "
                "fit one with --model joint, or a mixture"
            )
        frame = read_for(fitted, data)
        cells = None if output.suffix.lower() == ".parquet" else read_cells(data)
        filled, gaps = fill(fitted, frame, data, cells)
        write_table(screen, filled, output, set() if cells is None else _texts(cells))
        total = sum(gaps.values())
        told = [f"{shown(name)}: {n}" for name, n in list(gaps.items())[:MOST_COLUMNS]]
        told += ["..."] * (len(gaps) > MOST_COLUMNS)
        size = f"{count(len(frame), 'row')}; filled {count(total, 'cell')}"
        screen.say(f"{size} in {count(len(gaps), 'column')} ({', '.join(told)})" if total else f"{size}: no gaps")
        left = [name for name in frame.columns if name not in fitted.schema_.names and frame[name].isna().any()]
        if left:
            screen.warn(f"columns the model does not have keep their gaps: {listed(left)}")
        screen.say(f"Wrote [bold]{shown(output)}[/]")


def fill(fitted: Any, frame: Any, path: Path, cells: Any = None) -> tuple[Any, dict[str, int]]:
    """The table (or its cells as they are written) without gaps in the model's columns, and how many each had."""
    import pandas as pd

    from mixent.data import missing_mask

    expected = pd.DataFrame(fitted.impute(model_columns(fitted, frame, path)))
    expected.columns = list(fitted.schema_.names)
    known = frame if cells is None else cells
    out, gaps = known.copy(), {}
    for name in fitted.schema_.names:
        absent = missing_mask(frame[name].astype(object).to_numpy())
        if absent.any():
            gaps[name] = int(absent.sum())
            values = known[name].astype(object).to_numpy(copy=True)
            values[absent] = expected[name].astype(object).to_numpy()[absent]
            out[name] = pd.Series(values, index=frame.index, dtype=object).infer_objects()
    return out, gaps


def _texts(cells: Any) -> set[str]:
    """All that a file holds."""
    return {*cells.columns, *(text for name in cells.columns for text in cells[name].unique())}
