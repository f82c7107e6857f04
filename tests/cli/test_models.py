"""`mixent models`: what the registry and the docstrings hold."""

import inspect

import pytest

from mixent.base.options import option_classes
from mixent.base.registry import entries
from mixent.cli.parameters import Parameter, documented_parameters, parameters
from mixent.cli.settings import OPTIONS

LISTED = [entry for entry in entries() if entry.listed]


def test_every_model_is_listed_with_its_task(mixent, majority):
    result = mixent("models")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.startswith("  ")}
    assert list(lines) == [entry.name for entry in entries() if entry.listed] and "majority" in lines
    for entry in entries():
        if entry.listed:
            assert entry.task in lines[entry.name] and entry.title in lines[entry.name]


def test_parameters_of_a_model(mixent, majority):
    result = mixent("models", "majority")
    assert result.exit_code == 0, result.output
    assert parameters(majority(), OPTIONS) == [
        Parameter("strength", "1.0", "float or None", "Pseudo-rows of each class."),
        Parameter("search", "'few'", '"few", "many", "all", Few, All or None', "What is tried."),
        Parameter("search.most", "2", "int", "Most candidates."),
        Parameter("search.order", "'up'", '"up" or "down"', "Which comes first."),
    ]
    for text in ("strength", "search.most", "float or None", "Pseudo-rows of each class."):
        assert text in result.stdout
    assert "share_" not in result.stdout and "random_state" not in result.stdout


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: entry.name)
def test_every_parameter_is_listed_and_explained(entry):
    found = {p.name: p for p in parameters(entry.make(), OPTIONS)}
    wanted = {name for name in inspect.signature(entry.cls).parameters if name not in OPTIONS}
    assert {name for name in found if "." not in name} == wanted
    groups = option_classes(entry.make())
    nested = {f"{g}.{n}" for g, classes in groups.items() for c in classes for n in inspect.signature(c).parameters}
    assert {name for name in found if "." in name} == nested
    assert [name for name, p in found.items() if not p.meaning] == []


# --- docstrings -------------------------------------------------------------------------------------------------------


class Above:
    """Explains.

    Parameters
    ----------
    tol : float
        When to stop.
        Small.

    Returns
    -------
    x : not a parameter
    """


class Below(Above):
    """Refers.

    Parameters
    ----------
    a, b : int
        Two at once.
    tol, other
        See `Above`.
    """


def test_sections_references_and_several_names():
    assert documented_parameters(Above) == {"tol": ("float", "    When to stop.     Small. ")}
    found = documented_parameters(Below)
    assert found["a"] == found["b"] and found["a"][0] == "int" and found["tol"] == documented_parameters(Above)["tol"]
    assert found["other"] == ("", "    See `Above`.")
    assert documented_parameters(int) == {}
