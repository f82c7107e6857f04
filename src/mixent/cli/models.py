"""`mixent models`: the models by family, or the parameters of one."""

from __future__ import annotations

from itertools import groupby
from typing import Annotated

import typer

from mixent.cli import options as opt
from mixent.cli.console import session, shown


def models(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Model whose parameters to list.", show_default=False)
    ] = None,
    debug: opt.Debug = False,
) -> None:
    """List the models, or the parameters of one.

    The names are those of `--model`; parameters are set with `--set name=value`.

    \b
    Examples:
      mixent models
      mixent models med-tree
    """  # noqa: D301  (typer needs the backspace itself)
    with session(debug=debug) as screen:
        from mixent.base.document import Table
        from mixent.cli.parameters import parameters
        from mixent.cli.settings import OPTIONS, model_entry
        from mixent.cli.settings import models as known

        if name is None:
            names = max(len(entry.name) for entry in known().values())
            for family, entries in groupby(known().values(), key=lambda entry: entry.family):
                screen.print(f"[bold]{shown(family)}[/]")
                for entry in entries:
                    screen.text(f"  {entry.name:<{names}}  {entry.task:<14}  {entry.title}")
            screen.print()
            screen.print("Parameters of one:  mixent models NAME")
            return
        entry = model_entry(name)
        screen.print(f"[bold]{shown(entry.name)}[/]: {shown(entry.title)} ({entry.task})")
        screen.print(shown(f"In Python: {entry.cls.__module__.partition('.')[0]}.{entry.cls.__name__}"))
        screen.print()
        rows = [
            [p.name, p.default, ". ".join(part for part in (p.values, p.meaning) if part)]
            for p in parameters(entry.make(), OPTIONS)
        ]
        table = Table("", ["parameter", "default", "allowed values, and what it is"], rows)
        screen.text("\n".join(table.lines(screen.width, most=len(rows))))
