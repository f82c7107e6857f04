"""The command line: `mixent compare`, `models`, `fit`, `predict`, `explain`, `report` and others."""

from __future__ import annotations

import io
import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import mixent
from mixent.cli.calibrate import calibrate
from mixent.cli.compare import compare
from mixent.cli.console import WIDEST
from mixent.cli.demo import demo
from mixent.cli.explain import explain
from mixent.cli.fit import fit
from mixent.cli.fuse import fuse
from mixent.cli.impute import impute
from mixent.cli.info import info
from mixent.cli.models import models
from mixent.cli.novelty import novelty
from mixent.cli.predict import predict
from mixent.cli.report import report
from mixent.cli.update import update

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """Keeps what was typed, for reports that show the command that made them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = shlex.join(["mixent", *args])
        return super().parse_args(ctx, args)


class Once(TyperCommand):
    """A command that refuses an option of one value given twice, of which only the last would be used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            given = self.make_parser(ctx).parse_args(args=list(args))[2]
            for option in self.params:
                several = option.multiple or getattr(option, "is_flag", False)
                single = option.param_type_name == "option" and not several
                if single and given.count(option) > 1:
                    name = max(option.opts, key=len)
                    raise typer.BadParameter(
                        f"{name} was given {given.count(option)} times and takes one value; "
                        "to compare several, run the command once for each",
                        ctx=ctx,
                    )
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # one line is enough; --debug shows the plain traceback
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)
COMMANDS = (compare, models, fit, novelty, predict, explain, impute, update, calibrate, fuse, report, info, demo)
for command in COMMANDS:
    app.command(cls=Once)(command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mixent {mixent.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Probabilistic classification of mixed, incomplete, weighted and partly labelled tables.

    \b
    Examples:
      mixent demo                                     a comparison on bundled data
      mixent compare data.csv --target class          which method for this table, and how good is it?
      mixent models                                   the models; with a name, its parameters
      mixent fit data.csv --target class -o model.mixent
      mixent predict model.mixent new.csv -o out.csv
      mixent explain model.mixent new.csv --row 0     why this class?
      mixent novelty data.csv -o detector.mixent      which rows are unusual?
      mixent impute model.mixent new.csv -o full.csv  fill missing values
      mixent update model.mixent new.csv -t class     update a model with new rows
      mixent calibrate labelled.csv -t truth -o vendors.json
      mixent fuse votes.csv -c vendors.json -o fused.csv
      mixent report model.mixent new.csv -o page.html
      mixent info model.mixent                        what is in this file?
    """  # noqa: D301  (typer needs the backspace itself)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± gets ?, not a traceback
    try:
        app(prog_name="mixent")
    except KeyboardInterrupt:  # before a command began, or after it ended
        sys.exit(130)
