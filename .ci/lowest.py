"""Print the lowest version of every dependency that pyproject.toml promises to work with, one `name==version` a line.

`make test-lowest` installs exactly these: the floors stand in one place, and a floor nobody tests is only a hope.
Tools that only test (pytest, ruff, mypy, ...) are left out: users never meet them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
FLOOR = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)>=(?P<version>[0-9.]+)$")
COMPANIONS = {  # of the same years: newer ones warn about, or refuse, how the lowest versions call them
    "click": "<8.3",  # typer 0.16
    "pyparsing": "<3.3",  # matplotlib 3.8
    "pytest": "<9",  # older scikit-learn: its `parametrize_with_checks`
}
READ_IN_TESTS = {"polars"}  # of the development group: a DataFrame that users bring


def floors(text: str) -> dict[str, str]:
    """Name -> lowest version, of what mixent and its extras need; a dependency without a floor is refused."""
    content = tomllib.loads(text)
    project = content["project"]
    own = re.compile(rf"{project['name']}\[.*\]$")
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    wanted += [
        one for one in content["dependency-groups"]["dev"] if isinstance(one, str) and name_of(one) in READ_IN_TESTS
    ]
    found = {}
    for requirement in wanted:
        if own.match(requirement):
            continue
        match = FLOOR.match(requirement.replace(" ", ""))
        if match is None:
            raise ValueError(f"{requirement!r} in pyproject.toml has no plain floor; write it as name>=version")
        found[match["name"]] = match["version"]
    return found


def name_of(requirement: str) -> str:
    """The name of a requirement, without its extras and versions."""
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0]


if __name__ == "__main__":
    lowest = {name: f"=={version}" for name, version in floors(PROJECT.read_text()).items()}
    sys.stdout.write("".join(f"{name}{version}\n" for name, version in {**lowest, **COMPANIONS}.items()))
