"""An estimator of another package, as docs/plugins.md writes it, is found through its entry point."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

from mixent.base.registry import unregister

from .pages import ROOT, blocks, commands, python_blocks

PAGE = (ROOT / "docs" / "plugins.md").read_text()
MODULE = re.search(r"```python\n# spheres.py\n(.*?)```", PAGE, flags=re.DOTALL).group(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The package as pip would have installed it, and a table."""
    path = tmp_path_factory.mktemp("installed")
    (path / "spheres.py").write_text(MODULE)
    about = path / "mixent_spheres-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mixent-spheres\nVersion: 0.1\n")
    group, line = re.search(r'\[project.entry-points."(.*)"\]\n(.*)\n', PAGE).groups()
    (about / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    X, y = load_iris(return_X_y=True)
    rows = [",".join(["a", "b", "c", "d", "class"])] + [",".join(map(str, [*x, f"kind{c}"])) for x, c in zip(X, y)]
    (path / "iris.csv").write_text("\n".join(rows) + "\n")
    return path


def python(folder, *arguments):
    paths = os.pathsep.join([str(folder), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_runs_in_one_go(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    try:
        for block in python_blocks("docs/plugins.md"):
            exec(compile(block, "plugins.md", "exec"), names)
        X, model = names["X"], names["model"]
        np.testing.assert_array_equal(names["again"].predict_proba(X), model.predict_proba(X))
        assert model.score(X, names["y"]) > 0.9 and "variance 0.15" in str(model.summary())
    finally:
        unregister(names["SphereClassifier"])


def test_the_entry_point_is_found(folder):
    code = "import mixent; from mixent.plugins import entries; print(entries()[-1].title, *mixent.capabilities().cells)"
    title = python(folder, "-c", code)
    assert title.startswith("Spherical Gaussians ") and title.split()[-1] == "SphereClassifier"


def test_it_passes_the_checks_of_scikit_learn(folder):
    code = (
        "from sklearn.utils.estimator_checks import check_estimator; import spheres; "
        "print(len(check_estimator(spheres.SphereClassifier())))"
    )
    assert int(python(folder, "-c", code)) > 40


@pytest.mark.slow
def test_the_commands_of_the_page_run(folder):
    quick = ["--no-baselines", "--folds", "2", "--no-page", "--jobs", "1"]
    (folder / "data.csv").write_text((folder / "iris.csv").read_text())
    printed = ""
    for _, code in blocks("docs/plugins.md", "sh"):
        for words in commands(code):
            printed += python(folder, "-m", *words, *(quick if words[1] == "compare" else ()))
    assert "shrinkage" in printed and "linear MED" in printed
    assert "spheres" in python(folder, "-m", "mixent", "models")
    assert "SphereClassifier" in python(folder, "-m", "mixent", "info", "model.mixent")
    python(folder, "-m", "mixent", "predict", "model.mixent", "iris.csv", "-o", "out.csv")
    assert len((folder / "out.csv").read_text().splitlines()) == 151
