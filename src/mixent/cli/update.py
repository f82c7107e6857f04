"""`mixent update`: a model learns from new rows, without the old ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import session, shown
from mixent.cli.data import check_output, need_columns, read_for, weight_column
from mixent.cli.predict import model_columns
from mixent.cli.summary import describe, show_model


def update(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file written by `mixent fit`.", show_default=False)
    ],
    data: opt.Data,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", metavar="COL", help="Column of class labels; not for clusters."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Model file to write; MODEL itself unless given."),
    ] = None,
    forgetting: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of what earlier rows left behind to forget first; unless given, as the model was made (0).",
        ),
    ] = None,
    weight: opt.Weight = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Let a model learn from new rows, without the rows it was fitted to.

    Columns, classes, components and structures stay as they are; everything else moves with the new rows. Models of
    objective likelihood only.

    \b
    Examples:
      mixent update iris.mixent new.csv --target species
      mixent update m.mixent week2.csv -t class -o m2.mixent --forgetting 0.1
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        from mixent import load, save
        from mixent.data import split_target
        from mixent.mixtures.options import by_likelihood, training_name

        if output is not None:
            check_output(output, [data])
        fitted = load(model)
        if not hasattr(type(fitted), "partial_fit"):
            raise ValueError(
                f"{model} holds a {type(fitted).__name__}, which cannot learn from new rows alone; "
                "fit it anew on all rows"
            )
        if hasattr(fitted, "rule_"):
            raise ValueError(f"{model} holds a fusion; fuse the new items with the old ones: mixent fuse")
        if hasattr(fitted, "classes_") and target is None:
            raise typer.BadParameter(f"--target is needed: {model} holds a classifier")
        if not hasattr(fitted, "classes_") and target is not None:
            raise typer.BadParameter(f"--target has no effect: {model} holds clusters")
        if not by_likelihood(getattr(fitted, "training", "likelihood")):
            raise ValueError(
                f"{model} was trained with --objective {training_name(fitted)} and kept no statistics to go on from; "
                "fit it anew on all rows, or use --objective likelihood"
            )
        worded = target is not None and isinstance(fitted.classes_.tolist()[0], str)
        frame = read_for(fitted, data, [str(target)] if worded else [])
        need_columns(data, frame.columns, [name for name in (target, weight) if name is not None])
        X = model_columns(fitted, frame, data)
        own = fitted.forgetting
        fitted.set_params(forgetting=own if forgetting is None else forgetting)
        y = None if target is None else split_target(frame, target)[1]
        try:
            fitted.partial_fit(X, y, sample_weight=None if weight is None else weight_column(frame[weight], weight))
        except ValueError as error:
            if y is None or not _strange(y, fitted.classes_):
                raise
            raise ValueError(
                f"{data}, column {target!r} (--target): {str(error).rstrip('.')}. Is it the column of the labels that "
                f"{model} knows?"
            ) from error
        fitted.set_params(forgetting=own)
        save(fitted, output or model)
        screen.say(f"Learned from {count(len(frame), 'row')} of [bold]{shown(data)}[/]")
        screen.say()
        show_model(screen, describe(fitted))
        screen.say(f"Wrote [bold]{shown(output or model)}[/]")


def _strange(y: Any, classes: Any) -> bool:
    """Does a column of labels hold what is no class of the model?"""
    return bool(set(y.dropna().tolist()) - set(classes.tolist()))
