"""Reads and runs the code blocks of the documentation."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def blocks(page, *languages):
    """(language, code) of the blocks in these languages, in the order of the page; its path is relative to the root."""
    return [(name, code) for name, code in BLOCK.findall((ROOT / page).read_text()) if name in languages]


def python_blocks(page):
    """Code of the Python blocks of a page."""
    return [code for _, code in blocks(page, "python")]


def commands(code):
    """Arguments of every command in a shell block, the name of the program first."""
    return [words for line in code.splitlines() if (words := shlex.split(line, comments=True))]


def run(page, capsys):
    """Names after the page's code, its printed lines, the page, and the number of figures it drew."""
    pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    names = {}
    for block in python_blocks(f"docs/{page}"):
        exec(compile(block, page, "exec"), names)
    drawn = len(pyplot.get_fignums())
    pyplot.close("all")
    return names, capsys.readouterr().out.splitlines(), (ROOT / "docs" / page).read_text(), drawn


def run_command(words):
    """Run a `mixent` command in this process and return its output."""
    from typer.testing import CliRunner

    from mixent.cli import app

    assert words[0] == "mixent", words
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, f"{shlex.join(words)}: {result.output}"
    return result.output
