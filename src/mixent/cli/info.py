"""`mixent info`: what is in a model file."""

from __future__ import annotations

from typing import Annotated

import typer

from mixent.cli import options as opt
from mixent.cli.console import session, shown


def info(
    model: opt.ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    debug: opt.Debug = False,
) -> None:
    """Describe the model in a file.

    Columns, classes, what was learned, and how the fit ended. Opening a file never runs anything in it.

    \b
    Examples:
      mixent info iris.mixent
      mixent info iris.mixent --json
    """  # noqa: D301  (typer needs the backspace itself)
    with session(debug=debug) as screen:
        from mixent import load
        from mixent.base.registry import entry_of
        from mixent.core.serialize import read_header

        header, fitted = read_header(model), load(model)
        about = {key: header.get(key) for key in ("class", "mixent_version")}
        document = entry_of(fitted).describe(fitted)
        if as_json:
            import json

            typer.echo(json.dumps({**about, **document.facts}, indent=2))
            return
        written = f"{about['class']}, written by mixent {about['mixent_version']}"
        screen.print(f"[bold]{shown(model)}[/]: {shown(written)}")
        screen.print()
        screen.text(document.text(screen.width))
