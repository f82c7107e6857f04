"""Read a data set of ../shared/data by its manifest entry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


class NoDataError(Exception):
    """The data sets are not where they should be; the message states where that is."""


@dataclass(frozen=True)
class Dataset:
    """Features, labels and what is known about the columns."""

    name: str
    X: Any  # float array (n, d), or a pandas DataFrame when `mixed`
    y: np.ndarray  # (n,) of str
    split: np.ndarray | None  # (n,) "train" or "test", where the set comes with a split
    discrete: tuple[str, ...]  # categorical columns, when `mixed`


def load(name: str, folder: Path = SHARED, *, mixed: bool = False, discrete: bool = False) -> Dataset:
    """The set as numbers without incomplete rows; or, `mixed`, as a DataFrame with categories and missing values.

    `mixed` and `discrete`: every column is a category.
    """
    import pandas as pd

    entry = manifest(folder).get(name)
    if entry is None or not (folder / entry["file"]).exists():
        raise NoDataError(f"there is no data set {name!r} in {folder}; known: {', '.join(manifest(folder))}")
    frame = pd.read_csv(folder / entry["file"], dtype=str, keep_default_na=False, na_values=[""])
    kinds = {f["name"]: f["kind"] for f in entry["features"]}
    named = tuple(c for c, kind in kinds.items() if mixed and (discrete or kind != "continuous"))
    X = frame[list(kinds)].astype({c: "category" if c in named else float for c in kinds})
    keep = np.ones(len(X), dtype=bool) if mixed else X.notna().all(axis=1).to_numpy()
    split = frame["split"].to_numpy(dtype=str)[keep] if "split" in frame else None
    X = X if mixed else X.to_numpy()[keep]
    return Dataset(name, X, frame["class"].to_numpy(dtype=str)[keep], split, named)


def manifest(folder: Path) -> dict[str, dict]:
    """Entries of manifest.json by name."""
    path = folder / "manifest.json"
    if not path.exists():
        raise NoDataError(f"no data sets: {path} is absent. They are not part of mixent; pass their folder with --data")
    return {entry["name"]: entry for entry in json.loads(path.read_text())["datasets"]}
