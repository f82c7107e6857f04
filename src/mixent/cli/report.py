"""`mixent report`: a page about a model and its predictions for a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import session, shown
from mixent.cli.data import weights_in
from mixent.cli.output import PAGE, check_output
from mixent.cli.parsing import refuse
from mixent.cli.rows import class_labels, read_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@opt.reads_table
def report(
    ctx: typer.Context,
    model: opt.ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page: .html.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="Table to predict: .csv, .tsv, .txt (or .gz), .xlsx or .parquet. A fusion needs none.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels, to score the predictions."),
    ] = None,
    weight: opt.Weight = None,
    sequence: opt.Sequence = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write a page about a model: its predictions for a table, how good they are, and why.

    One HTML file that needs nothing else. With --target the predictions are scored; scores on the rows that the model
    was fitted to are too good, so use others, or see `mixent compare`.

    \b
    Examples:
      mixent report iris.mixent new.csv --target species -o page.html
      mixent report detector.mixent new.csv -o page.html
      mixent report fusion.mixent -o page.html
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load
        from mixent.base.registry import entry_of

        check_output(output, [path for path in (model, data) if path is not None], PAGE)
        fitted = load(model)
        task = entry_of(fitted).task
        heading = title or (model.name if data is None else f"{model.name} on {data.name}")
        page = {"title": heading, "commands": ctx.obj or ""}
        _check_options(task, model, target, weight, sequence)
        if task == "fusion":
            _of_fusion(fitted, model, data, output, target, page)
        elif data is None:
            raise typer.BadParameter(f"DATA is needed: {model} holds a {type(fitted).__name__}; name a table")
        else:
            n_rows = _of_rows(fitted, model, data, output, target, weight, sequence, page)
            screen.print(f"[bold]{shown(model)}[/] on {count(n_rows, 'row')} of {shown(data)}")
        screen.wrote(output, f" ({output.stat().st_size / 1000:.0f} kB); open it in a browser")


def _check_options(task: str, model: Path, target: str | None, weight: str | None, sequence: str | None) -> None:
    """Refuse options that the model has no use for."""
    if task == "fusion":
        refuse(
            (weight is not None, f"--weight is not used: {model} holds a fusion"),
            (sequence is not None, f"--sequence is not used: {model} holds a fusion"),
        )
        return
    classes = task == "classification"
    refuse(
        (target is not None and not classes, f"--target is only used with classifiers; {model} holds none"),
        (weight is not None and target is None, "--weight is only used with --target, for the scores"),
    )


def _of_fusion(
    fuser: BaseEstimator, model: Path, data: Path | None, output: Path, target: str | None, page: dict
) -> None:
    """The page of a fusion; with a table, also of its predictions for these answers."""
    from mixent.cli.answers import read_answers
    from mixent.report import model_report

    if data is None:
        refuse((target is not None, "--target is only used with DATA: it is a column of it"))
        model_report(output, fuser, **page)
        return
    frame = read_answers(fuser, data)
    y = None if target is None else class_labels(frame, data, target, fuser.classes_.tolist(), model)
    model_report(output, fuser, frame, y, **page)


def _of_rows(
    fitted: BaseEstimator,
    model: Path,
    data: Path,
    output: Path,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    page: dict,
) -> int:
    """The page of any other model; returns the number of rows."""
    from mixent.report import model_report

    rows = read_rows(fitted, data, model, target=target, sequence=sequence)
    rows.note_extra([weight])
    weights = weights_in(rows.frame, data, weight)
    y = None if target is None else class_labels(rows.frame, data, target, fitted.classes_.tolist(), model)
    if y is not None:
        y = y.iloc[rows.first_steps].reset_index(drop=True)
    if weights is not None:
        weights = weights[rows.first_steps]
    model_report(output, fitted, rows.X, y, sample_weight=weights, groups=rows.groups, **page)
    return len(rows.frame)
