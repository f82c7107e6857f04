"""docs/compatibility.md has the counts and sentences of the tests in this folder."""

import ast
import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parent


def page_module():
    path = FOLDER.parent.parent / "docs" / "compatibility_page.py"
    spec = importlib.util.spec_from_file_location("compatibility_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date():
    module = page_module()
    assert module.PAGE.read_text(encoding="utf-8") == module.text(), "run: python docs/compatibility_page.py"


def test_every_file_is_a_peer_and_every_test_has_a_kind():
    module = page_module()
    names = {path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py")} - {"page"}
    assert names <= set(module.PEERS)
    for name in names:
        for node in ast.parse((FOLDER / f"test_{name}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                kind = node.name.split("_")[1]
                assert kind in module.KINDS, node.name
                assert kind == "covered" or ast.get_docstring(node), node.name


def test_no_test_imports_another_package_than_scikit_learn():
    own = {"mixent", "numpy", "pandas", "pytest", "scipy", "sklearn"}
    for path in FOLDER.glob("test_*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        modules += [node.module for node in nodes if isinstance(node, ast.ImportFrom)]
        outside = {name.split(".")[0] for name in modules} - own
        assert not outside & {"hmmlearn", "stepmix", "crowdkit", "quapy"}, path.name
