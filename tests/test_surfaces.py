"""Surfaces read the registry: they name no model and do not guess what a model is from its attributes."""

import ast
from pathlib import Path

import pytest

import mixent
from mixent.base.registry import entries

SOURCE = Path(mixent.__file__).parent
SURFACES = ("cli", "comparison", "evaluate", "overview.py", "persistence", "report", "studies")  # folders or files
MODELS = ("model", "estimator", "est", "fitted", "winner", "fuser", "classifier", "detector")  # what holds a model


def files():
    found = [file for name in SURFACES for file in sorted((SOURCE / name).rglob("*.py")) or [SOURCE / name]]
    found.remove(SOURCE / "persistence" / "foreign_checks.py")  # looks into models of scikit-learn, on purpose
    return [file.relative_to(SOURCE).as_posix() for file in found]


def identifier(node):
    """The last name of an expression: `model` of `model`, `self.model` and `page.model`."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def named_models(tree):
    """Names of registered estimators that the code uses; text is not looked at."""
    classes = {entry.cls.__name__ for entry in entries()}
    names = {identifier(node) for node in ast.walk(tree)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return sorted(names & classes)


def probes(tree):
    """Calls such as hasattr(model, "x") and getattr(anything, "x_", None)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and identifier(node.func) in ("hasattr", "getattr") and len(node.args) > 1:
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            fitted = str(name).endswith("_") and not str(name).startswith("_")
            if identifier(node.args[0]) in MODELS or fitted:
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("name", files())
def test_a_surface_names_and_probes_no_model(name):
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    assert named_models(tree) == [] and probes(tree) == []


def test_the_guard_sees_what_it_should():
    tree = ast.parse(
        "from mixent import Fuser\nif hasattr(self.model, 'x') or getattr(a, 'run_', None): mx.MaxEntJoint()"
    )
    assert named_models(tree) == ["Fuser", "MaxEntJoint"]
    assert probes(tree) == ["hasattr(self.model, 'x')", "getattr(a, 'run_', None)"]
