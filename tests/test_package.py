"""What is handed out: the wheel, the source archive and what both say of themselves.

Here the archives are built from the tree and read, and the wheel's own copy is run beside the libraries of this
environment (seconds). `test_package_installed.py` installs it into clean environments (`make test-slow`).
"""

import ast
import email
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import mixent

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
STANDARD = {*sys.stdlib_module_names, "mixent"}
FOREIGN = {"polars", "ipython"}  # named in the code but never needed: what a user brings, or runs mixent in


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source archive, built without a network by the back end pyproject.toml names."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_bytes(archive.read(f"mixent-{mixent.__version__}.dist-info/METADATA"))


def sources():
    """Every file of the package as it stands in the tree, as the wheel should name it."""
    files = (path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT / "src").as_posix() for path in files if "egg-info" not in path.as_posix()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    about = {name for name in names if ".dist-info/" in name}
    assert names - about == sources()
    assert "mixent/py.typed" in names
    assert {Path(name).name for name in about} == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}


def test_the_source_archive_can_be_tested_and_built_again(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    needed = {"pyproject.toml", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md"}
    assert needed | tests | {f"src/{name}" for name in sources()} <= names
    assert not {name for name in names if name.startswith((".venv", "dist/", ".git/")) or "__pycache__" in name}


def test_the_metadata_says_what_the_project_says(metadata):
    assert metadata["Name"] == "mixent" and metadata["Version"] == mixent.__version__ == PROJECT["version"]
    assert metadata["License-Expression"] == "BSD-3-Clause" and metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == PROJECT["requires-python"] == ">=3.11"
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata["Description-Content-Type"] == "text/markdown"
    needed = metadata.get_all("Requires-Dist")
    assert {one for one in needed if "extra ==" not in one} == {one.replace(" ", "") for one in PROJECT["dependencies"]}
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_all_asks_for_every_extra(metadata):
    extras = [one.split("; extra == ") for one in metadata.get_all("Requires-Dist") if "extra ==" in one]
    asked = {
        name: {one for one, extra in extras if extra.strip("'\"") == name}
        for _, name in extras
        for name in [name.strip("'\"")]
    }
    assert asked.pop("all") == set().union(*asked.values())


def test_everything_the_code_imports_is_asked_for():
    """Import names are read from the source; each belongs to Python, to mixent or to a stated dependency."""
    stated = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    known = {re.split(r"[\[<>=]", one)[0].lower() for one in stated} | {"sklearn"} | STANDARD | FOREIGN
    found = {}
    for path in (ROOT / "src").rglob("*.py"):
        for name in imported(path.read_text()):
            found.setdefault(name, path.name)
    assert not {name: where for name, where in found.items() if name.lower() not in known}


def imported(text):
    """First parts of the names of all modules a text imports, inside functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


WITHOUT_EXTRAS = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"polars", "pyarrow", "matplotlib", "skops"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""

IN_THE_WHEEL = """
import mixent, pathlib, sys
assert pathlib.Path(mixent.__file__).is_relative_to(sys.argv[1]), mixent.__file__
for name in mixent.__all__:
    getattr(mixent, name)
import numpy as np
X = [[0.0, 1.0], [0.2, 0.9], [3.0, 4.0], [3.1, 4.2], [0.1, 1.1], [2.9, 4.1]]
model = mixent.MixtureClassifier().fit(X, ["a", "a", "b", "b", "a", "b"])
mixent.save(model, "model.mixent")
again = mixent.load("model.mixent")
assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
print(*again.predict([[0.0, 1.0], [3.0, 4.0]]))
"""


def test_the_wheel_s_own_copy_works_outside_the_repository(wheel, tmp_path):
    place, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    environment = {**os.environ, "PYTHONPATH": str(place)}

    def python(*arguments):
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert python("-c", WITHOUT_EXTRAS + IN_THE_WHEEL, str(place)) == "a b"
    assert python("-m", "mixent", "--version") == f"mixent {mixent.__version__}"


def citation():
    """CITATION.cff as text values: one `key: value` a line, and a list of authors (YAML needs no library for that)."""
    text = (ROOT / "CITATION.cff").read_text()
    values = dict(re.findall(r"^([a-z-]+): *(\S.*)$", text, flags=re.MULTILINE))
    authors = re.search(r"^authors:\n((?:  .*\n)+)", text, flags=re.MULTILINE)
    return {key: value.strip('"') for key, value in values.items()}, authors[1].count("  - ")


def test_the_citation_has_what_the_format_requires():
    """Citation File Format 1.2.0: cff-version, message, title and authors; type and licence from its lists."""
    values, n_authors = citation()
    assert values["cff-version"] == "1.2.0" and values["type"] == "software" and n_authors >= 1
    assert values["message"] and values["title"].startswith("mixent")
    assert values["license"] == PROJECT["license"]
    known = {"abstract", "cff-version", "date-released", "keywords", "license", "message", "title", "type", "version"}
    assert set(values) <= known


def test_the_version_is_the_same_everywhere():
    values, _ = citation()
    version, date = re.search(r"^## (\S+) \((.*)\)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE).groups()
    assert version == mixent.__version__ == PROJECT["version"] == values["version"]
    if date == "unreleased":  # a date would say that it can be had
        assert "date-released" not in values
    else:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date) and values["date-released"] == date


def lowest():
    spec = importlib.util.spec_from_file_location("lowest", ROOT / ".ci" / "lowest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_dependency_has_a_lowest_version_that_is_tested():
    text = (ROOT / "pyproject.toml").read_text()
    floors = lowest().floors(text)
    stated = [*PROJECT["dependencies"], *(one for extra in PROJECT["optional-dependencies"].values() for one in extra)]
    assert {f"{name}>={version}" for name, version in floors.items() if name != "polars"} == {
        one.replace(" ", "") for one in stated if not one.startswith("mixent[")
    }
    with pytest.raises(ValueError, match="'numpy' in pyproject.toml"):
        lowest().floors(re.sub(r'"numpy>=[0-9.]+"', '"numpy"', text))
