"""Writes the CSV inputs of mclust.R: for each set NAME.csv (rows x columns) and NAME_z.csv (one-hot start, rows x K).

Those of mclust_noise.R are named "noisy"; the last column of the start is noise.

python tests/golden/make_inputs.py FOLDER

The tables of `table_inputs` are read from ../shared/data (see its manifest.json for sources and licences).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris, load_wine

SEED = 20240501  # of the synthetic set
TABLES = Path(__file__).parents[3] / "shared" / "data"
CLASSES = {"crabs": ["sp", "class"], "new_thyroid": ["class"], "wine": ["class"]}  # columns that define the classes


def synthetic():
    """300 x 3 in three groups: two share a shape and an orientation, the third is rounder; volumes differ."""
    rng = np.random.default_rng(SEED)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    sizes = (90, 120, 90)
    scales = np.array([[2.0, 1.0, 0.4], [3.0, 1.5, 0.6], [1.0, 0.9, 0.8]])
    means = np.array([[0.0, 0.0, 0.0], [4.0, 1.0, -1.0], [-1.0, 4.0, 2.0]])
    turns = (turn, turn, np.eye(3))
    groups = [m + (rng.normal(size=(n, 3)) * s) @ Q.T for n, m, s, Q in zip(sizes, means, scales, turns)]
    return np.concatenate(groups).round(6)


def crossed():
    """600 x 2: two crossing narrow groups, an L of two narrow groups, and two round groups, one inside the other."""
    rng = np.random.default_rng(SEED + 1)
    means = np.array([[0.0, 0.0], [0.0, 0.0], [8.0, 0.0], [6.2, 2.0], [2.0, 7.0], [2.0, 7.0]])
    scales = np.array([[2.0, 0.3], [0.3, 2.0], [2.0, 0.3], [0.3, 1.2], [0.4, 0.4], [1.5, 1.5]])
    return np.concatenate([m + s * rng.normal(size=(100, 2)) for m, s in zip(means, scales)]).round(6)


def quantile_start(X, n_components):
    """One-hot: equal-sized groups along the first principal component of the standardized columns."""
    Z = (X - X.mean(0)) / X.std(0)
    axis = np.linalg.svd(Z, full_matrices=False)[2][0]
    axis = axis * np.sign(axis[np.abs(axis).argmax()])  # svd leaves the sign open
    order = np.argsort(Z @ axis, kind="stable")
    z = np.zeros((len(X), n_components))
    z[order, np.arange(len(X)) * n_components // len(X)] = 1.0
    return z


def inputs():
    """{name: (X, z)}."""
    wine = load_wine().data
    sets = {"iris": load_iris().data, "wine": (wine - wine.mean(0)) / wine.std(0), "synthetic": synthetic()}
    return {name: (X, quantile_start(X, 3)) for name, X in sets.items()}


def cluster_inputs():
    """{name: (X, z)} of mclust_clusters.R."""
    X = synthetic()
    return {"synthetic": (X, quantile_start(X, 3)), "crossed": (crossed(), np.eye(6)[np.repeat(np.arange(6), 100)])}


def table_inputs(name):
    """(X, starts): the numeric columns as they are; partitions into classes, and into groups of equal size."""
    table = pd.read_csv(TABLES / f"{name}.csv")
    X = table.drop(columns=[*CLASSES[name], "index"], errors="ignore").to_numpy(dtype=float)
    label = table.groupby(CLASSES[name]).ngroup().to_numpy()
    classes = np.eye(label.max() + 1)[label]
    return X, {"classes": classes, "groups": quantile_start(X, classes.shape[1])}


def noisy():
    """The synthetic set with 30 uniform rows in a box that is 1.5 times as wide, and its start."""
    X = synthetic()
    middle, width = (X.min(0) + X.max(0)) / 2, np.ptp(X, axis=0)
    outliers = (middle + 1.5 * width * (np.random.default_rng(SEED + 1).random((30, 3)) - 0.5)).round(6)
    z = np.zeros((330, 4))
    z[:300, :3] = quantile_start(X, 3)
    z[300:, 3] = 1.0
    return np.concatenate([X, outliers]), z


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sets = inputs() | cluster_inputs() | {"noisy": noisy()}
    for name in CLASSES:
        X, starts = table_inputs(name)
        sets |= {f"{name}_{start}": (X, z) for start, z in starts.items()}
    for name, (X, z) in sets.items():
        np.savetxt(folder / f"{name}.csv", X, delimiter=",", fmt="%.17g")
        np.savetxt(folder / f"{name}_z.csv", z, delimiter=",", fmt="%d")


if __name__ == "__main__":
    main(sys.argv[1])
