"""Help of the commands: short, with examples, and quick."""

import subprocess
import sys

import pytest
from typer.main import get_command

from mixent.cli import app

COMMANDS = get_command(app).commands


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_on_a_screen_and_has_examples(mixent, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "100")
    page = mixent(command, "--help")
    assert page.exit_code == 0 and f"mixent {command}" in page.stdout.split("Examples:")[1]
    lines = page.stdout.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 110


def test_every_option_of_an_example_exists():
    for name, command in COMMANDS.items():
        known = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
        for line in command.help.splitlines():
            if line.strip().startswith(f"mixent {name} "):
                used = [word for word in line.split("(")[0].split() if word.startswith("-") and word != "-"]
                assert set(used) <= known, line


def test_a_command_starts_without_numpy():
    heavy = ("numpy", "pandas", "sklearn", "scipy", "matplotlib")
    code = f"import sys, mixent.cli; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_predictions_and_decisions_are_explained(mixent):
    text = " ".join(mixent("predict", "--help").stdout.split())
    assert "is the most probable class" in text and "whose expected cost is lowest" in text


def test_version(mixent):
    import mixent as mx

    assert mixent("--version").stdout == f"mixent {mx.__version__}\n"
