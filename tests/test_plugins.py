"""An estimator of another package, as docs/plugins.md writes it, is found through its entry point."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

ROOT = Path(__file__).parent.parent
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


def test_the_page_runs_in_one_go(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names = {}
    from mixent.base.registry import unregister

    try:
        for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
            exec(compile(block, "plugins.md", "exec"), names)
        np.testing.assert_array_equal(
            names["again"].predict_proba(names["X"]), names["model"].predict_proba(names["X"])
        )
        assert names["model"].score(names["X"], names["y"]) > 0.9
        check_estimator(names["SphereClassifier"]())
    finally:
        unregister(names["SphereClassifier"])


def test_the_entry_point_is_found(folder):
    code = "from mixent.base.registry import by_name; import mixent; print(by_name('spheres').title); print(mixent.capabilities().cells.keys())"
    title, cells = python(folder, "-c", code).splitlines()
    assert title == "Spherical Gaussians" and "SphereClassifier" in cells
