"""`mixent impute`: a model and a table with missing values in, the table without them out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.base.text import count, listing
from mixent.cli import options as opt
from mixent.cli.console import Screen, session, shown
from mixent.cli.data import listed, read_as_written
from mixent.cli.output import check_table_output, write_table
from mixent.cli.rows import Rows, read_rows

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator


@opt.reads_table
def impute(
    model: opt.ModelFile,
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
    """Fill the missing values of a table with what a model expects there.

    Numbers get their expected value, categories the most probable one, given the rest of the row. Known cells stay as
    they are (in a text file to the letter), and so do columns that the model does not have; columns of the model that
    the table lacks are added. For joint models and
    mixtures.

    \b
    Examples:
      mixent fit data.csv -o table.mixent --model joint
      mixent impute table.mixent data.csv -o filled.csv
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load

        check_table_output(output, [model, data])
        fitted = load(model)
        _check_imputes(fitted, model)
        rows = read_rows(fitted, data, model)
        cells = None if output.suffix.lower() == ".parquet" else read_as_written(data)
        filled, missing = fill(fitted, rows, cells)
        write_table(screen, filled, output, set() if cells is None else _texts(cells))
        _print_filled(screen, fitted, rows, missing)
        screen.wrote(output)


def _check_imputes(fitted: BaseEstimator, model: Path) -> None:
    from mixent.base.capabilities import cells_of

    if not cells_of(fitted)["imputation"].able:
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which has no model of the columns to fill them from; fit "
            "one with `mixent fit --model joint`, or a mixture"
        )


def fill(fitted: BaseEstimator, rows: Rows, cells: pd.DataFrame | None = None) -> tuple[pd.DataFrame, dict[str, int]]:
    """The table (or its cells as they are written) without missing values in the model's columns; how many each had."""
    import pandas as pd

    from mixent.data import missing_mask

    imputed = fitted.impute(rows.X)
    expected = imputed if hasattr(imputed, "columns") else pd.DataFrame(imputed, columns=fitted.schema_.input_names)
    known = rows.frame if cells is None else cells
    filled, missing = known.copy(), {}
    for name in rows.used:
        if name not in rows.frame.columns:
            filled[name], missing[name] = _written(expected[name]).to_numpy(), len(rows.frame)
            continue
        absent = missing_mask(rows.frame[name].astype(object).to_numpy())
        if absent.any():
            missing[name] = int(absent.sum())
            values = known[name].astype(object).to_numpy(copy=True)
            values[absent] = _written(expected[name]).to_numpy()[absent]
            filled[name] = pd.Series(values, index=rows.frame.index, dtype=object).infer_objects()
    return filled, missing


def _written(column: pd.Series) -> pd.Series:
    """Values as they are written: dates without the time of day."""
    return column.dt.strftime("%Y-%m-%d") if column.dtype.kind == "M" else column.astype(object)


def _print_filled(screen: Screen, fitted: BaseEstimator, rows: Rows, missing: dict[str, int]) -> None:
    """How many cells were filled, and columns that were left as they are."""
    total = sum(missing.values())
    counts = listing([f"{shown(name)}: {n}" for name, n in missing.items()])
    size = f"{count(len(rows.frame), 'row')}; filled {count(total, 'cell')}"
    screen.print(f"{size} in {count(len(missing), 'column')} ({counts})" if total else f"{size}: none is missing")
    left = [name for name in rows.frame if name not in rows.used and rows.frame[name].isna().any()]
    if left:
        screen.warn(f"columns the model does not have keep their missing values: {listed(left)}")


def _texts(cells: pd.DataFrame) -> set[str]:
    """All text of a file."""
    return {*cells.columns, *(text for name in cells.columns for text in cells[name].unique())}
