"""The command line: `mixent compare`, `fit`, `predict`, `evaluate`, `explain`, `report` and others.

`compare` and `demo` say where to begin; `calibrate` and `fuse` are of fusion.
"""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import mixent
from mixent.cli.calibrate import calibrate
from mixent.cli.compare import compare
from mixent.cli.demo import demo
from mixent.cli.evaluate import evaluate
from mixent.cli.explain import explain
from mixent.cli.fit import fit
from mixent.cli.fuse import fuse
from mixent.cli.impute import impute
from mixent.cli.info import info
from mixent.cli.novelty import novelty
from mixent.cli.predict import predict
from mixent.cli.report import report
from mixent.cli.update import update

__all__ = ["app", "main"]


class Commands(TyperGroup):
    """Remembers what was typed, for reports that say how to get them again."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.obj = shlex.join(["mixent", *args])
        return super().parse_args(ctx, args)


class Once(TyperCommand):
    """A command that refuses an option of one value given twice: the last would win without a word."""

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
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (compare, fit, novelty, predict, evaluate, explain, impute, update, calibrate, fuse, report, info, demo):
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
      mixent demo                                     see what it does
      mixent compare data.csv --target class          which method for this table?
      mixent fit data.csv --target class -o model.mixent
      mixent predict model.mixent new.csv -o out.csv
      mixent evaluate data.csv --target class         how good is it, honestly?
      mixent explain model.mixent new.csv --row 0     why this class?
      mixent novelty data.csv -o detector.mixent      which rows are unlike the others?
      mixent impute model.mixent new.csv -o full.csv  fill the gaps
      mixent update model.mixent new.csv -t class     learn from new rows
      mixent calibrate labelled.csv -t truth -o vendors.json
      mixent fuse votes.csv -c vendors.json -o fused.csv
      mixent report model.mixent new.csv -o page.html
      mixent info model.mixent                        what is in this file?
    """  # noqa: D301  (typer needs the backspace itself)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± gets ?, not a traceback
    try:
        app(prog_name="mixent")
    except KeyboardInterrupt:  # before a command began, or after it ended
        sys.exit(130)
