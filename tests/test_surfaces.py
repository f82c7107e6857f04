"""Surfaces read the registry: they name no model and do not guess what a model is from its attributes."""

import ast
import re
from pathlib import Path

import pytest

import mixent
from mixent.base.registry import BUILT_IN, TASKS, entries, family_of

SOURCE = Path(mixent.__file__).parent
SURFACES = (  # folders or files
    "base/maps.py",
    "cli",
    "comparison",
    "evaluate",
    "overview.py",
    "persistence",
    "report",
    "studies",
)
MODELS = ("model", "estimator", "est", "fitted", "winner", "fuser", "classifier", "detector", "m", "base")
OF_EVERY_MODEL = {"feature_names_in_", "n_features_in_"}  # scikit-learn's names, which any estimator may have
CLASSES = {cls.__name__ for entry in entries() for cls in entry.cls.__mro__ if family_of(cls) in BUILT_IN}
NAMES = {entry.name for entry in entries()} - {*TASKS}  # on the command line


def files():
    found = [file for name in SURFACES for file in sorted((SOURCE / name).rglob("*.py")) or [SOURCE / name]]
    found.remove(SOURCE / "persistence" / "foreign_checks.py")  # looks into models of scikit-learn, on purpose
    return [file.relative_to(SOURCE).as_posix() for file in found]


def called(node, *names):
    """Whether an expression is a call of one of these functions with arguments."""
    return isinstance(node, ast.Call) and identifier(node.func) in names and len(node.args) > 0


def identifier(node):
    """The last name of an expression: `model` of `model`, `self.model`, `page.model` and `type(model)`."""
    while called(node, "type"):
        node = node.args[0]
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def texts(node):
    """Strings in an expression that is one, or a tuple, list or set of them."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)}


def is_fitted(name):
    """Whether a text is the name of an attribute that only some fitted models have."""
    return re.fullmatch(r"[A-Za-z]\w*[a-z0-9]_", name) is not None and name not in OF_EVERY_MODEL


def attributes_of_model(node):
    """Whether an expression is `vars(model)`, `dir(model)` or `model.__dict__`."""
    if called(node, "vars", "dir"):
        return identifier(node.args[0]) in MODELS
    return isinstance(node, ast.Attribute) and node.attr == "__dict__" and identifier(node.value) in MODELS


def named_models(tree):
    """Estimators that the code names: classes, and texts that it compares with or looks up; no other text."""
    names = {identifier(node) for node in ast.walk(tree)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    used = {text for node in ast.walk(tree) for part in compared_or_looked_up(node) for text in texts(part)}
    return sorted(names & CLASSES | used & (CLASSES | NAMES))


def compared_or_looked_up(node):
    """Sides of a comparison, arguments of a function that finds an entry by its name."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return node.args if called(node, "by_name", "model_entry") else []


def looked_up(node):
    """(what is looked into, expression of the name), for every way to ask for an attribute by its name."""
    if called(node, "hasattr", "getattr", "getattr_static") and len(node.args) > 1:
        yield node.args[0], node.args[1]
    if isinstance(node, ast.Call) and identifier(node.func) in ("get", "pop") and node.args:
        yield node.func.value, node.args[0]
    if isinstance(node, ast.Subscript):
        yield node.value, node.slice
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        yield node.comparators[0], node.left


def probes(tree):
    """Expressions such as hasattr(model, "x"), "x" in vars(model) and getattr(anything, "x_", None)."""
    found = []
    for node in ast.walk(tree):
        for holder, name in looked_up(node):
            asked = attributes_of_model(holder) or (isinstance(node, ast.Call) and identifier(holder) in MODELS)
            known = texts(name) <= OF_EVERY_MODEL if texts(name) else False
            if (asked and not known) or any(is_fitted(text) for text in texts(name)):
                found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("name", files())
def test_a_surface_names_and_probes_no_model(name):
    tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
    assert named_models(tree) == [] and probes(tree) == []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from mixent import Fuser", ["Fuser"]),
        ("mx.MaxEntJoint()", ["MaxEntJoint"]),
        ("type(model).__name__ == 'Fuser'", ["Fuser"]),
        ("type(model).__name__ in ('Fuser', 'X')", ["Fuser"]),
        ("entry.name == 'mixture'", ["mixture"]),
        ("'med' != entry.name", ["med"]),
        ("by_name('tuned').make()", ["tuned"]),
        ("isinstance(model, MixtureModel)", ["MixtureModel"]),
        ("entry.task == 'novelty' or print('mixture')", []),
    ],
)
def test_names_of_models_are_seen(code, names):
    assert named_models(ast.parse(code)) == names


@pytest.mark.parametrize(
    "code",
    [
        "hasattr(self.model, 'x')",
        "hasattr(m, 'x')",
        "hasattr(type(model), 'explain')",
        "getattr(model, name)",
        "getattr(a, 'run_', None)",
        "inspect.getattr_static(model, 'explain')",
        "'terms_' in vars(model)",
        "'x' in dir(model)",
        "'x' not in model.__dict__",
        "vars(model).get('run_')",
        "vars(model)['x']",
        "state.get('run_')",
        "'run_' in state",
    ],
)
def test_probes_are_seen(code):
    assert probes(ast.parse(code)) == [code]


@pytest.mark.parametrize(
    "code", ["getattr(est, 'feature_names_in_', None)", "hasattr(X, 'columns')", "vars(q)", "d['name']", "'n_' in text"]
)
def test_what_is_no_probe_passes(code):
    assert probes(ast.parse(code)) == []
