"""`mixent info`: what is in a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import session, shown
from mixent.cli.summary import describe, show_columns, show_model


def info(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file written by `mixent fit`, `novelty` or `fuse`.", show_default=False
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Show what is in a model file.

    Columns, classes, components, and how the fit ended. Opening a file never runs anything in it.

    \b
    Examples:
      mixent info iris.mixent
      mixent info iris.mixent --json
    """  # noqa: D301  (typer needs the backspace itself)
    with session(debug=debug) as screen:
        from mixent import load
        from mixent.core.serialize import read_header

        header = read_header(model)
        about = {"class": header.get("class"), "mixent_version": header.get("mixent_version"), **describe(load(model))}
        if as_json:
            import json

            typer.echo(json.dumps(about, indent=2))
            return
        writer = f"mixent {about['mixent_version']}"
        screen.say(f"[bold]{shown(model)}[/]: {shown(about['class'])}, written by {shown(writer)}")
        screen.say()
        if "fusion" in about:
            screen.say(f"Fitted to {count(about['items'], 'item')} of {count(len(about['sources']), 'source')}")
        else:
            show_columns(screen, about)
        screen.say()
        show_model(screen, about)
        if "n_parameters" in about:
            screen.say(count(about["n_parameters"], "free parameter"))
