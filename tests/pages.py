"""Runs the code of a page of the documentation."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(page, capsys):
    """Names after the page's code, what it printed, the page, and how many pictures it drew."""
    pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    text = (ROOT / "docs" / page).read_text()
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, page, "exec"), names)
    drawn = len(pyplot.get_fignums())
    pyplot.close("all")
    return names, capsys.readouterr().out.splitlines(), text, drawn
