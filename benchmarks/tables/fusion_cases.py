"""The batches of table "fusion": sets, priors that have the printed mismatch, and what is asked of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from sklearn.model_selection import StratifiedKFold

from benchmarks.tables.data import Dataset
from benchmarks.tables.printed_fusion import MISSING, TABLE_46, TABLE_61
from mixent.core.arrays import Array
from mixent.studies import prior_mismatch, resample_priors, without_class

N_SOURCES = 5
SPLIT = "satimage"  # keeps the split it came with; segment has one too, but the document halves it
COPIES = (1, 2, 5, 20)
IT, IT_004, POOL, AUTO = "min-divergence", "min-divergence, 004", "pool", "auto"
EXT_I, EXT_I_004, EXT_II, EXT_II_004 = "ext I", "ext I, 004", "ext II", "ext II, 004"
TILDE, TILDE_004 = "min-divergence R~", "min-divergence R~, 004"
# set: class that gains: mismatches; printed ones near each other are one
LEVELS: dict[str, dict[str | None, tuple[float, ...]]] = {
    "satimage": {None: (0.31, 0.53, 0.97, 1.68)},
    "vehicle": {None: (0.01, 1.27, 2.7)},
    "segment": {None: (0.03, 1.3, 1.8, 2.57)},
    "bupa": {"1": (0.05, 0.55, 0.83, 1.74, 2.43, 3.54), "2": (0.55, 1.7)},
    "pima": {"1": (0.03, 0.36, 0.74, 1.42, 2.57)},
    "mushroom": {"e": (0.0015, 0.36, 0.99, 2.36)},
    "sonar": {"R": (0.04, 0.6, 1.35, 1.94), "M": (0.18, 0.32, 0.9, 1.37)},
    "ionosphere": {"b": (0.03, 0.26, 1.23)},
}
REDUNDANT = {"pima": ("1", 0.74), "ionosphere": ("b", 0.26)}
BATCHED = {"bupa": ("1", 0.05), "pima": ("1", 0.03)}


# --- cases ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A batch of a set: which priors it has and what is asked of it."""

    kind: str  # "shift", "svm", "missing", "copies" or "batches"
    data: str
    gains: str | None = None
    mismatch: float | None = None  # None: a class is left out

    @property
    def name(self) -> str:
        if self.kind == "missing":
            return f"{self.data}_without_{self.gains}"
        level = "_".join([*([] if self.gains is None else [self.gains]), f"{self.mismatch:g}"])
        return f"{self.data}_{level}" + f"_{self.kind}" * (self.kind != "shift")


def level_of(data: str, gains: str | None, mismatch: float) -> str:
    """Name of the case that stands beside a printed row."""
    levels = LEVELS[data][gains]
    return Case("shift", data, gains, min(levels, key=lambda m: abs(m - mismatch))).name


def all_cases() -> list[Case]:
    results = [Case("shift", data, gains, m) for data, by in LEVELS.items() for gains, ms in by.items() for m in ms]
    results += [Case("copies", data, *at) for data, at in REDUNDANT.items()]
    results += [Case("svm", data, gains, m) for data, rows in TABLE_46.items() for m, gains, *_ in rows]
    results += [Case("missing", data, label) for data, (label, *_) in MISSING.items()]
    return results + [Case("batches", data, *at) for data, at in BATCHED.items()]


CASES = {case.name: case for case in all_cases()}
EXTENDED = {level_of(data, gains, m) for data, rows in TABLE_61.items() for m, gains, *_ in rows}


# --- priors -----------------------------------------------------------------------------------------------------------


def priors_of(case: Case, y: np.ndarray) -> dict[str, float]:
    """The batch's priors, by label: those of the set tilted until the index M is that of the case."""
    wanted = case.mismatch
    assert wanted is not None
    classes, counts = np.unique(y, return_counts=True)
    share = counts / counts.sum()
    ranks = _ranks(case, classes)

    def excess(tilt: float) -> float:
        return N_SOURCES * prior_mismatch(share, tilted(share, ranks, tilt)) - wanted

    tilt = brentq(excess, 0.0, 50.0, xtol=1e-12)
    return dict(zip(classes.tolist(), tilted(share, ranks, tilt).tolist()))


def tilted(share: Array, ranks: Array, tilt: float) -> Array:
    """p_k ~ share_k exp(t r_k)."""
    result = share * np.exp(tilt * ranks)
    return result / result.sum()


def _ranks(case: Case, classes: np.ndarray) -> Array:
    """Between -1 and 1: the class that gains is the last, or an order drawn once for the set."""
    if case.gains is not None:
        return np.where(classes == case.gains, 1.0, -1.0)
    order = np.random.default_rng(sorted(LEVELS).index(case.data)).permutation(len(classes))
    return np.linspace(-1, 1, len(classes))[order]


def batch(data: Dataset, seed: int, case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Training rows, and test rows drawn with replacement; `seed` is 2 x replication + half."""
    if case.data == SPLIT and data.split is not None:
        train, test = (np.flatnonzero(data.split == part) for part in ("train", "test"))
    else:
        halves = StratifiedKFold(2, shuffle=True, random_state=seed // 2)
        train, test = list(halves.split(data.y, data.y))[seed % 2]
    if case.mismatch is None:
        return train, test[without_class(data.y[test], case.gains)]
    return train, test[resample_priors(data.y[test], priors_of(case, data.y), random_state=seed)]
