"""Write docs/cli.md from the commands' own help: `python docs/cli_page.py`. A test fails when that is due."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_command

from mixent.base.registry import entries
from mixent.cli import app

PAGE = Path(__file__).parent / "cli.md"
HEAD = """# Command line

This page is written by `python docs/cli_page.py` from the help of the commands and the registered models. Bad input
ends in one line with what to do, and a non-zero exit code.

Tables are text (.csv, .tsv, .txt, also .gz), Excel (.xlsx, if openpyxl is installed) or Parquet. Separator, decimal
sign and encoding of text are detected and, where they are not plain, printed; `--sep`, `--decimal` and `--encoding`
overrule them ([which files can be read](faq.md#which-files-can-be-read)).

Notes on the data are warnings; with `--strict` they are errors, for scripts that must not go on with a doubtful table.
Notes state what was unusual when a table was read, and how it is read: columns without a name or with a repeated one,
and everything that [the page on data](data.md) calls a note (in Python, a `DataWarning`). All other warnings remain
warnings with `--strict`: advice on the contents of a table (possible leaks, row numbers, identifiers, equal columns or
rows, rare classes, rows without a label), columns with almost the name of a column of the model, and fits that did not
converge.
"""
MODELS = """## Models

Names for `--model` of `mixent fit` and `--method` of `mixent compare`. `mixent models NAME` lists the parameters of
one, which `--set` sets; dots stand for grouped parameters: `--set search.max_components=8`.
"""


def write() -> None:
    PAGE.write_text(text(), encoding="utf-8")


def text() -> str:
    """The whole page: an overview, then a section for each command."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    overview = ["| command | what it does |", "|---|---|"]
    overview += [f"| [`mixent {name}`](#mixent-{name}) | {_first(command)} |" for name, command in commands.items()]
    sections = [_section(name, command) for name, command in commands.items()]
    models = ["| model | task | what it is | in Python |", "|---|---|---|---|"]
    models += [f"| `{e.name}` | {e.task} | {e.title} | `{e.cls.__name__}` |" for e in entries() if e.listed]
    return "\n".join([HEAD, *overview, "", MODELS, *models, "", *sections])


def _section(name: str, command: Any) -> str:
    prose, examples = _parts(command)
    lines = [f"## mixent {name}", "", *prose]
    if examples:
        lines += ["```text", *examples, "```", ""]
    lines += ["| option | what it is |", "|---|---|"]
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            lines.append(f"| {_name(parameter)} | {_help(parameter)} |")
    return "\n".join([*lines, ""])


def _parts(command: Any) -> tuple[list[str], list[str]]:
    """Paragraphs of the command's help, and its examples, which stand after a backspace."""
    prose, examples = [], []
    for part in re.split(r"\n\s*\n", command.help.strip()):
        if part.lstrip().startswith("\b"):
            examples += [line.strip() for line in part.replace("\b", "").strip().splitlines()[1:]]
        else:
            prose += [_plain(part), ""]
    return prose, examples


def _first(command: Any) -> str:
    return _plain(re.split(r"\n\s*\n", command.help.strip())[0])


def _name(parameter: Any) -> str:
    words = (parameter.metavar or parameter.name.upper()).replace("|", "\\|")
    if parameter.param_type_name == "argument":
        return f"`{words}`"
    spelled = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return f"`{spelled}`" if parameter.is_flag else f"`{spelled} {words}`"


def _help(parameter: Any) -> str:
    text = _plain(parameter.help or "")
    if parameter.required:
        return f"{text} Required."
    default = getattr(parameter.default, "value", parameter.default)
    shown = isinstance(default, str | int | float) and default is not False and parameter.show_default is True
    return f"{text} Default: {'yes' if default is True else default}." if shown else text


def _plain(words: str) -> str:
    """In one line, with what Markdown would take for markup marked as text."""
    line = " ".join(words.split())
    line = re.sub(r"([|*<_])", r"\\\1", line)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", line)


if __name__ == "__main__":
    write()
