"""The code in the README and the docs runs as printed."""

import re
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from mixent import GaussianMixture, MixtureClassifier

ROOT = Path(__file__).parent.parent


def python_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), flags=re.DOTALL)


def test_the_readme_example_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in python_blocks("README.md"):
        exec(block, names)
    assert (tmp_path / "model.mixent").exists()
    proba = names["model"].predict_proba(names["table"])
    assert proba.shape == (8, 2) and proba[0, 0] > 0.9 and proba[7, 1] > 0.9


def test_every_line_of_the_picture_page_draws():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    X, y = load_iris(return_X_y=True)
    names = {
        "X": X,
        "y": y,
        "model": MixtureClassifier(2, "VVI", random_state=0).fit(X, y),
        "mixture": GaussianMixture("auto", ["EEE", "VVV"], max_components=3, random_state=0).fit(X),
    }
    for block in python_blocks("docs/pictures.md"):
        exec(block, names)
    assert len(pyplot.get_fignums()) == 6
    pyplot.close("all")


def test_links_in_the_readme_lead_somewhere():
    for target in re.findall(r"\]\(([\w./-]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
