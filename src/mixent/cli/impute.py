"""`mixent impute`: a model and a table with missing values in, the table without them out, once or several times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixent.base.text import count, listing
from mixent.cli import options as opt
from mixent.cli.console import Screen, session, shown
from mixent.cli.data import listed, read_as_written
from mixent.cli.output import check_table_output, write_table
from mixent.cli.parsing import refuse
from mixent.cli.rows import Rows, class_labels, read_rows

if TYPE_CHECKING:
    import pandas as pd
    from sklearn.base import BaseEstimator

DRAW = "draw"  # the column that numbers the draws


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
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COL", help="Column of class labels, for classifiers: fill given the class."
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            metavar="N",
            min=1,
            help="Draw the missing values N times, for multiple imputation: the table is written N times, with a "
            "column draw (1 to N).",
            show_default=False,
        ),
    ] = None,
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fill the missing values of a table with what a model expects there.

    Numbers get their expected value, categories the most probable one, given the rest of the row. Known cells stay as
    they are (in a text file to the letter), and so do columns that the model does not have; columns of the model that
    the table lacks are added. With `--target`, a classifier fills a row given its class; with `--draws`, values are
    drawn from their distribution given the rest of the row. For joint models (without these options) and mixtures.

    \b
    Examples:
      mixent fit data.csv -o table.mixent --model joint
      mixent impute table.mixent data.csv -o filled.csv
      mixent impute mixture.mixent data.csv -o drawn.csv --target class --draws 20
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load

        check_table_output(output, [model, data])
        fitted = load(model)
        _check_imputes(fitted, model, target, draws)
        rows = read_rows(fitted, data, model, target=target)
        cells = None if output.suffix.lower() == ".parquet" else read_as_written(data)
        given = {}
        if target is not None:
            given["y"] = class_labels(rows.frame, data, target, fitted.classes_.tolist(), model)
        if draws is None:
            filled, missing = fill(fitted, fitted.impute(rows.X, **given), rows, cells)
        else:
            drawn = fitted.sample_conditional(rows.X, draws, random_state=seed, **given)
            filled, missing = _stacked([fill(fitted, table, rows, cells) for table in drawn], data)
        write_table(screen, filled, output, set() if cells is None else _texts(cells))
        _print_filled(screen, rows, missing, draws, [target])
        screen.wrote(output)


def _check_imputes(fitted: BaseEstimator, model: Path, target: str | None, draws: int | None) -> None:
    from mixent.base.capabilities import cells_of
    from mixent.base.registry import entry_of

    able = cells_of(fitted)
    if not able["imputation"].able:
        raise ValueError(
            f"{model} holds a {type(fitted).__name__}, which has no model of the columns to fill them from; fit "
            "one with `mixent fit --model joint`, or a mixture"
        )
    classifier = entry_of(fitted).task == "classification"
    refuse(
        (target is not None and not classifier, f"--target is only used with classifiers; {model} holds none"),
        (
            draws is not None and not able["sampling"].able,
            f"--draws is only used with mixtures; {model} holds a {type(fitted).__name__}",
        ),
    )


def _stacked(tables: list[tuple[pd.DataFrame, dict[str, int]]], data: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """All draws below each other, with a column `draw`."""
    import pandas as pd

    first, missing = tables[0]
    if DRAW in first.columns:
        raise ValueError(f"{data} has a column {DRAW!r}, which --draws would overwrite; rename it")
    stacked = pd.concat([table for table, _ in tables], ignore_index=True)
    stacked.insert(0, DRAW, [i + 1 for i in range(len(tables)) for _ in range(len(first))])
    return stacked, missing


def fill(
    fitted: BaseEstimator, imputed: Any, rows: Rows, cells: pd.DataFrame | None = None
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The table (or its cells as they are written) without missing values in the model's columns; how many each had."""
    import pandas as pd

    from mixent.data import missing_mask

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


def _print_filled(
    screen: Screen, rows: Rows, missing: dict[str, int], draws: int | None, known: Sequence[str | None]
) -> None:
    """How many cells were filled, and columns that were left as they are, except for the `known` ones."""
    total = sum(missing.values())
    counts = listing([f"{shown(name)}: {n}" for name, n in missing.items()])
    size = f"{count(len(rows.frame), 'row')}; filled {count(total, 'cell')}"
    times = "" if draws is None else f", drawn {count(draws, 'time')}"
    filled = f"{size} in {count(len(missing), 'column')} ({counts})" if total else f"{size}: none is missing"
    screen.print(f"{filled}{times}")
    left = [name for name in rows.frame if name not in (*rows.used, *known) and rows.frame[name].isna().any()]
    if left:
        screen.warn(f"columns the model does not have keep their missing values: {listed(left)}")


def _texts(cells: pd.DataFrame) -> set[str]:
    """All text of a file."""
    return {*cells.columns, *(text for name in cells.columns for text in cells[name].unique())}
