"""Small tables in the form of ../shared/data."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no installed package


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """iris as it is, and made-up rows under the names of other sets.

    waveform: 350 rows of three overlapping groups; hepatitis: two columns and a category, with gaps; zoo: categories.
    """
    folder = tmp_path_factory.mktemp("data")
    iris = load_iris()
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=350)
    waveform = rng.standard_normal((350, 2)) + label[:, None]
    two = label[:120] % 2
    mixed = np.column_stack([waveform[:120].round(3).astype(str), np.array(["u", "v"])[two ^ (rng.random(120) < 0.2)]])
    mixed[rng.random(mixed.shape) < 0.1] = ""
    codes = (label[:90, None] + (rng.random((90, 3)) < 0.2)) % 3
    entries = [
        write(folder, "iris", iris.data, iris.target),
        write(folder, "waveform", waveform, label),
        write(folder, "hepatitis", mixed, two, discrete="c"),
        write(folder, "zoo", codes, label[:90], discrete="ab"),  # the last column is a number, taken as a category
    ]
    (folder / "manifest.json").write_text(json.dumps({"datasets": entries}))
    return folder


def write(folder, name, X, y, discrete=""):
    """The CSV file; returns its entry in the manifest."""
    names = "abcd"[: X.shape[1]]
    rows = [",".join([*map(str, x), f"k{c}"]) for x, c in zip(X, y)]
    (folder / f"{name}.csv").write_text("\n".join([",".join([*names, "class"]), *rows]))
    features = [{"name": column, "kind": "discrete" if column in discrete else "continuous"} for column in names]
    return {"name": name, "file": f"{name}.csv", "features": features}


@pytest.fixture
def run(data, tmp_path, monkeypatch):
    """Run the program on these tables; returns the folder with its results."""
    from benchmarks.tables import __main__ as program

    monkeypatch.setenv("COLUMNS", "300")

    def main(*given):
        assert program.main([*given, "--quiet", "--data", str(data), "--results", str(tmp_path)]) == 0
        return tmp_path

    return main
