"""`mixent report`: a page about a model and what it says of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, session, shown
from mixent.cli.data import check_output, names_of, need_columns, read_for, sequence_ids, weight_column
from mixent.cli.parsing import refuse_idle
from mixent.cli.predict import model_columns


def report(
    ctx: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file written by `mixent fit`, `novelty` or `fuse`.", show_default=False
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page: .html.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help="Table the model is asked about: .csv, .tsv (also .gz) or .parquet. A fusion needs none.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels, to score what the model says."),
    ] = None,
    weight: opt.Weight = None,
    sequence: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Of a model of sequences: column that says of which sequence a step is."),
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="Heading of the page.")] = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Write a page about a model: what it says of a table, how good that is, and why.

    One HTML file that needs nothing else. With --target its decisions are scored; rows that it was fitted to flatter
    it, so give it others, or see `mixent evaluate`. A novelty detector and a fusion have pages of their own.

    \b
    Examples:
      mixent report iris.mixent new.csv --target species -o page.html
      mixent report detector.mixent new.csv -o page.html
      mixent report fusion.mixent -o page.html
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load

        check_output(output, [path for path in (model, data) if path is not None], (".html", ".htm"))
        fitted = load(model)
        told = {"title": title or _title(model, data), "commands": ctx.obj or ""}
        given = {"--target": target, "--weight": weight, "--sequence": sequence}
        if hasattr(fitted, "rule_"):
            _fusion(fitted, model, data, output, given, told)
        elif data is None:
            raise typer.BadParameter(f"DATA is needed: {model} holds a {type(fitted).__name__}; name a table")
        else:
            _rows(screen, fitted, model, data, output, given, told)
        screen.say(f"Wrote [bold]{shown(output)}[/] ({output.stat().st_size / 1000:.0f} kB); open it in a browser")


def _title(model: Path, data: Path | None) -> str:
    return model.name if data is None else f"{model.name} on {data.name}"


def _fusion(fuser: Any, model: Path, data: Path | None, output: Path, given: dict[str, Any], told: dict) -> None:
    """The page of a fusion; with a table, of what it says of these answers too."""
    from mixent.report import model_report

    for name in ("--weight", "--sequence"):
        refuse_idle((given[name] is not None, f"{name} has no effect: {model} holds a fusion of sources"))
    if data is None:
        refuse_idle((given["--target"] is not None, "--target has no effect without DATA: it is a column of it"))
        model_report(output, fuser, **told)
        return
    from mixent.cli.answers import need_sources, read_wide

    layout = fuser._fitted_layout
    calibrations = dict(zip(layout.names, layout.calibrations))
    frame = read_wide(data, calibrations)
    if all(source.columns is None for source in layout.sources):
        need_sources(data, list(frame.columns), calibrations, "; one that was silent needs a blank column")
    y = _labels(frame, data, given["--target"], fuser.classes_, model)
    model_report(output, fuser, frame, y, **told)


def _rows(
    screen: Screen, fitted: Any, model: Path, data: Path, output: Path, given: dict[str, Any], told: dict
) -> None:
    """The page of any other model."""
    from mixent.report import model_report

    target, weight, sequence = given["--target"], given["--weight"], given["--sequence"]
    kind, classes = type(fitted).__name__, getattr(fitted, "classes_", None)
    refuse_idle(
        (target is not None and classes is None, f"--target has no effect: {model} holds a {kind}, without classes"),
        (weight is not None and target is None, "--weight has no effect without --target: it is for the scores"),
        (sequence is not None and getattr(fitted, "by_row_", True), f"--sequence has no effect: {model} takes rows"),
    )
    if sequence is None and not getattr(fitted, "by_row_", True):
        raise typer.BadParameter(f"--sequence is needed: {model} was fitted to a row for each step of a sequence")
    worded = target is not None and isinstance(fitted.classes_.tolist()[0], str)
    frame = read_for(fitted, data, [*([str(target)] if worded else []), *([sequence] if sequence else [])])
    need_columns(data, frame.columns, names_of([n for n in (target, weight, sequence) if n], frame.columns))
    X = model_columns(fitted, frame, data)
    y = _labels(frame, data, target, classes, model)
    weights = None if weight is None else weight_column(frame[weight], weight)
    groups = None if sequence is None else sequence_ids(frame[sequence], sequence)
    if groups is not None:
        y, weights = _of_sequences(groups, y, weights)
    screen.say(f"[bold]{shown(model)}[/]: {kind}, asked about {count(len(frame), 'row')} of {shown(data)}")
    model_report(output, fitted, X, y, sample_weight=weights, groups=groups, **told)


def _labels(frame: Any, data: Path, target: str | None, classes: Any, model: Path) -> Any:
    """The column of labels, which must be classes of the model."""
    if target is None:
        return None
    from mixent.data import split_target

    need_columns(data, frame.columns, [target])
    y = split_target(frame, target)[1]
    known = set(classes.tolist())
    strange = [value for value in dict.fromkeys(y.dropna().tolist()) if str(value).strip() and value not in known]
    if strange:
        from mixent.data import listed

        raise ValueError(
            f"{data}, column {target!r} (--target): {strange[0]!r} is no class of {model}; it knows "
            f"{listed([str(c) for c in classes])}"
        )
    return y


def _of_sequences(groups: Any, y: Any, weight: Any) -> tuple[Any, Any]:
    """Labels and weights of sequences, in the order in which these appear, from those of their steps."""
    import numpy as np
    import pandas as pd

    first = np.unique(pd.factorize(groups)[0], return_index=True)[1]
    return None if y is None else y.iloc[first].reset_index(drop=True), None if weight is None else weight[first]
