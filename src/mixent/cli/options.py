"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.warn import config_context

ESCAPED = " Text that a spreadsheet would run as a formula (=... and the like) gets a leading '."
Data = Annotated[
    Path,
    typer.Argument(metavar="DATA", help="Table: .csv, .tsv, .txt (or .gz), .xlsx or .parquet.", show_default=False),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="Model file written by `mixent compare`, `fit`, `novelty` or `fuse`.", show_default=False
    ),
]
Target = Annotated[
    str,
    typer.Option("--target", "-t", metavar="COL", help="Column of class labels; blank cells are rows without a label."),
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set a parameter (see mixent models NAME); dots for grouped ones: search.max_components=8. The value is a "
        "word, a number, a list (a,b) or any Python literal. Repeatable.",
        show_default=False,
    ),
]
Sequence = Annotated[
    str | None,
    typer.Option(
        metavar="COL", help="For models of sequences: a row is a step, and this column names the sequence it is of."
    ),
]
Ignore = Annotated[
    list[str],
    typer.Option(
        "--ignore", metavar="COL", help="Column to leave out, or several: A,B. Repeatable.", show_default=False
    ),
]
Categorical = Annotated[
    list[str],
    typer.Option(
        "--categorical",
        metavar="COL",
        help="Column of numbers that are codes (01 is not 1), or several: A,B. Repeatable.",
        show_default=False,
    ),
]
LEFT_OUT = typer.Option(
    "--ignore",
    "--drop",
    metavar="NAME",
    help="Column, or source, to leave out, or several: A,B. Repeatable.",
    show_default=False,
)
Long = Annotated[
    str | None,
    typer.Option(
        "--long",
        metavar="COLS",
        help="The table is long, a row for each answer: its columns, as item,source,value; with a fourth, the "
        "probability the source gives to the value.",
    ),
]
Item = Annotated[str | None, typer.Option("--item", metavar="COL", help="Column that names the items.")]
Weight = Annotated[str | None, typer.Option("--weight", metavar="COL", help="Column of row weights.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Same seed, same result.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads or processes (default: all cores).")
]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page with pictures.")]
Sep = Annotated[str | None, typer.Option("--sep", metavar="CHAR", help="Column separator, or tab (default: detected).")]
Decimal = Annotated[str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal sign (default: detected).")]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="Text encoding (default: detected).")]
Strict = Annotated[bool, typer.Option("--strict", help="Notes on the data are errors.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# --- commands that read a table ---------------------------------------------------------------------------------------

READ_AS: ContextVar[dict[str, str | None]] = ContextVar("READ_AS", default={})  # sep, decimal, encoding, as given  # noqa: B039
READING = {"sep": Sep, "decimal": Decimal, "encoding": Encoding}


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """A command with `--sep`, `--decimal`, `--encoding` (of DATA) and `--strict`, which hold while it runs."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        token = READ_AS.set({name: given.pop(name) for name in READING})
        try:
            with config_context(strict=given.pop("strict")):
                command(**given)
        finally:
            READ_AS.reset(token)

    own = inspect.signature(command, eval_str=True)
    more = [_parameter(name, kind, None) for name, kind in READING.items()] + [_parameter("strict", Strict, False)]
    parameters = list(own.parameters.values())
    place = list(own.parameters).index("quiet")
    run.__signature__ = own.replace(parameters=[*parameters[:place], *more, *parameters[place:]])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in run.__signature__.parameters.values()}  # type: ignore[attr-defined]
    return run


def _parameter(name: str, kind: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
