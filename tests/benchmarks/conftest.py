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
    """iris as it is, and 350 rows of three overlapping groups under the name of waveform."""
    folder = tmp_path_factory.mktemp("data")
    iris = load_iris()
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=350)
    sets = {"iris": (iris.data, iris.target), "waveform": (rng.standard_normal((350, 2)) + label[:, None], label)}
    entries = [write(folder, name, X, y) for name, (X, y) in sets.items()]
    (folder / "manifest.json").write_text(json.dumps({"datasets": entries}))
    return folder


def write(folder, name, X, y):
    """The CSV file; returns its entry in the manifest."""
    names = "abcd"[: X.shape[1]]
    rows = [",".join([*map(str, x), f"k{c}"]) for x, c in zip(X, y)]
    (folder / f"{name}.csv").write_text("\n".join([",".join([*names, "class"]), *rows]))
    features = [{"name": column, "kind": "continuous"} for column in names]
    return {"name": name, "file": f"{name}.csv", "features": features}
