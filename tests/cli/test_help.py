"""Help of the commands: short, with examples, and quick."""

import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

from mixent.cli import app
from mixent.cli.compare import chosen_methods
from mixent.cli.parsing import column_names, read_settings
from mixent.cli.settings import DEFAULTS, make_estimator

COMMANDS = get_command(app).commands


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_on_a_screen_and_has_examples(mixent, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    page = mixent(command, "--help")
    assert page.exit_code == 0 and f"mixent {command}" in page.stdout.split("Examples:")[1]
    lines = page.stdout.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 110


def examples(name):
    """Arguments of the examples in the help of a command, without remarks at the end of the line."""
    for line in COMMANDS[name].help.splitlines():
        if line.strip().startswith(f"mixent {name} "):
            yield shlex.split(line.split("  (")[0])[2:]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_models_and_parameters_of_the_examples_exist(name):
    parameters = COMMANDS[name].params
    known = {option for parameter in parameters for option in [*parameter.opts, *parameter.secondary_opts]}
    for words in examples(name):
        assert {word for word in words if word.startswith("-") and word != "-"} <= known
        after = [(word, words[i + 1]) for i, word in enumerate(words[:-1])]
        settings = read_settings([value for option, value in after if option == "--set"])
        classes = "--target" in words or "-t" in words
        model = {"novelty": "novelty"}.get(name, DEFAULTS[classes])
        if name in ("fit", "novelty", "update"):
            make_estimator(next((value for option, value in after if option == "--model"), model), settings, {})
        if name == "compare":
            methods = [part for option, value in after if option == "--method" for part in column_names(value)]
            chosen_methods(methods, settings, 0)


def test_a_command_starts_without_numpy():
    heavy = ("numpy", "pandas", "sklearn", "scipy", "matplotlib")
    code = f"import sys, mixent.cli; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_version(mixent):
    import mixent as mx

    assert mixent("--version").stdout == f"mixent {mx.__version__}\n"
