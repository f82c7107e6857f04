"""Whole fits by maximum entropy discrimination beside searches of scikit-learn: seconds, by turns, one thread each.

Fits with defaults choose C in five folds and calibrate. Beside them stand a search over seven values of C in five folds
around `LogisticRegression`, and one over the same values as ours, in five folds, around `SVC` with Platt scaling. On
digits the first is run twice: on the columns as they are, and standardized, with which it takes fewer steps. The second
has gamma="scale" on both sides; "rbf, default" also chooses gamma, on our side only. All tables but digits and splice
are simulated.

The large case (`--large`) takes minutes: 100 000 rows with an RBF kernel, at the C that a sample of the rows gave, with
the gap of the whole problem and the memory that the process has taken.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.speed.med import GAP_RELATIVE, GAP_ROW, SECONDS
from benchmarks.speed.memory import peak
from benchmarks.speed.records import Record
from benchmarks.tables.data import load
from mixent import MEDClassifier, MEDGaussianClassifier, MEDTreeClassifier
from mixent.options import RBF

TIMES = "times the peer's seconds"
SOURCE = "asked for in the same run"
FOLDS = 5
PENALTIES = tuple(np.logspace(-3, 3, 7))
BOUNDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)  # C="auto" of `MEDClassifier`
SOYBEAN = (92, 91, 91, 88, 44, 44, *[20] * 9, 16, 15, 14, 8)  # rows of each class of that table, 683 in all
SPLICE_ROWS = 2_233  # 70 %
LARGE, SAMPLE, LARGE_SECONDS = 100_000, 5_000, 1_200.0
LARGE_COLUMNS = 20
MEMORY = "peak memory of the process, GB"

Draw = Callable[[], tuple[Any, np.ndarray]]


@dataclass(frozen=True)
class DefaultFit:
    """A table, our classifier and a peer, and the marks: seconds, and times the peer's."""

    name: str
    draw: Draw
    ours: Callable[[], Any]
    peer: str  # a name in `PEERS`
    seconds: float | None = None
    times: float | None = None


# --- tables -----------------------------------------------------------------------------------------------------------


def digits(rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:rows], y[:rows]


def rings(rows: int, n_classes: int, columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Rows around the origin, in classes of equal size by their noisy distance from it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    height = (X**2).sum(axis=1) + 0.5 * rng.standard_normal(rows)
    return X, np.searchsorted(np.quantile(height, np.arange(1, n_classes) / n_classes), height)


def gaussians(rows: int, columns: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """A Gaussian with its own mean and covariance for each class."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % n_classes
    mix = np.eye(columns) + 0.5 * rng.standard_normal((n_classes, columns, columns)) / np.sqrt(columns)
    shift = 0.15 * rng.standard_normal((n_classes, columns))
    return np.einsum("td,tde->te", rng.standard_normal((rows, columns)), mix[y]) + shift[y], y


def diseases(sizes: tuple[int, ...] = SOYBEAN, columns: int = 35) -> tuple[Any, np.ndarray]:
    """Categories with two to seven values and a tenth of the cells missing, after the soybean table."""
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(sizes)), sizes)
    values = 2 + np.arange(columns) % 6
    usual = rng.integers(values, size=(len(sizes), columns))[y]
    codes = np.where(rng.random(usual.shape) < 0.6, usual, rng.integers(values, size=usual.shape))
    cells = np.where(rng.random(codes.shape) < 0.1, None, np.array(list("abcdefg"), dtype=object)[codes])
    return pd.DataFrame(cells, columns=[f"x{j}" for j in range(columns)]), y


def chains(rows: int, columns: int) -> tuple[Any, np.ndarray]:
    """Pairs of values, each like the one before in the first class and the one before that in the second."""
    import pandas as pd

    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    codes = rng.integers(2, size=(rows, columns))
    for j in range(2, columns):
        codes[:, j] = np.where(rng.random(rows) < 0.6, codes[np.arange(rows), j - 1 - y], codes[:, j])
    return pd.DataFrame(np.array(["a", "b"], dtype=object)[codes], columns=[f"x{j}" for j in range(columns)]), y


def splice(folder: Path) -> tuple[Any, np.ndarray]:
    data = load("splice", folder, mixed=True)
    chosen = np.random.default_rng(0).permutation(len(data.y))[:SPLICE_ROWS]
    return data.X.iloc[chosen], data.y[chosen]


# --- classifiers ------------------------------------------------------------------------------------------------------


def logistic() -> GridSearchCV:
    return GridSearchCV(LogisticRegression(max_iter=2000), {"C": PENALTIES}, cv=FOLDS, scoring="neg_log_loss")


def machine() -> GridSearchCV:
    platt = CalibratedClassifierCV(SVC(), cv=FOLDS, ensemble=False)
    return GridSearchCV(platt, {"estimator__C": BOUNDS}, cv=FOLDS, scoring="neg_log_loss")


PEERS: dict[str, Callable[[], Any]] = {
    "LogisticRegression, 7 C": logistic,
    "LogisticRegression, 7 C, scaled": lambda: make_pipeline(StandardScaler(), logistic()),
    "LogisticRegression, 7 C, one-hot": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), logistic()),
    "SVC, 9 C, Platt": lambda: make_pipeline(StandardScaler(), machine()),
    "QDA": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
}
PLAIN, SCALED, CATEGORIES, MACHINE, QDA = PEERS
COMMON = {"random_state": 0, "n_jobs": 1}


def default_fits(folder: Path) -> tuple[DefaultFit, ...]:
    linear, rbf = partial(MEDClassifier, **COMMON), partial(MEDClassifier, RBF("scale"), **COMMON)
    gaussian, trees = partial(MEDGaussianClassifier, **COMMON), partial(MEDTreeClassifier, **COMMON)
    at_one_c = partial(gaussian, C=1.0, calibration=None)
    return (
        DefaultFit("linear, digits 1797x64, 10 classes", digits, linear, PLAIN, times=1.0),
        DefaultFit("linear, digits 1797x64, scaled peer", digits, linear, SCALED),
        DefaultFit("rbf, 900x5, 3 classes", partial(rings, 900, 3), rbf, MACHINE, times=3.0),
        DefaultFit("rbf, digits 900x64, 10 classes", partial(digits, 900), rbf, MACHINE, times=3.0),
        DefaultFit(
            "rbf, default, 900x5, 3 classes", partial(rings, 900, 3), partial(MEDClassifier, "rbf", **COMMON), MACHINE
        ),
        DefaultFit("Gaussians, 1000x60, C=1", partial(gaussians, 1000, 60), at_one_c, QDA, seconds=1.0),
        DefaultFit("Gaussians, 1000x60", partial(gaussians, 1000, 60), gaussian, QDA),
        DefaultFit("linear, 683x35 categories, 19 classes", diseases, linear, CATEGORIES, seconds=5.0),
        DefaultFit("trees, splice 2233x60", partial(splice, folder), trees, CATEGORIES, seconds=5.0),
        DefaultFit("trees, 500x250", partial(chains, 500, 250), trees, CATEGORIES, seconds=10.0),
    )


def quick_defaults() -> tuple[DefaultFit, ...]:
    linear, name = partial(MEDClassifier, **COMMON), "linear, 60x4 categories, 3 classes"
    return (DefaultFit(name, partial(diseases, (30, 20, 10), 4), linear, CATEGORIES),)


# --- measuring --------------------------------------------------------------------------------------------------------


def med_defaults(some: tuple[DefaultFit, ...], rounds: int) -> Iterator[Record]:
    """Seconds of both sides, and the ratio of fits that ran one after the other."""
    for fit in some:
        X, y = fit.draw()
        seconds = np.array([[timed(make(), X, y) for make in (fit.ours, PEERS[fit.peer])] for _ in range(rounds)])
        ours, theirs = np.median(seconds, axis=0)
        yield _judged(fit.name, "mixent", SECONDS, ours, rounds, fit.seconds)
        yield Record(fit.name, fit.peer, SECONDS, theirs, None, rounds)
        ratio = float(np.median(seconds[:, 0] / seconds[:, 1]))
        yield _judged(fit.name, "mixent", TIMES, ratio, rounds, fit.times)


def _judged(name: str, method: str, metric: str, value: float, rounds: int, mark: float | None) -> Record:
    return Record(name, method, metric, float(value), None, rounds, mark, None if mark is None else SOURCE)


def timed(model: Any, X: Any, y: np.ndarray) -> float:
    """Seconds of a fit in one thread."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of logistic regression with hardly any penalty
        began = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - began


def med_large(rows: int = LARGE, sample: int = SAMPLE) -> Iterator[Record]:
    """One fit of many rows with an RBF kernel, in all threads, and its certificate."""
    name = f"rbf {rows}x{LARGE_COLUMNS}"
    X, y = rings(rows, 2, LARGE_COLUMNS)
    began = time.perf_counter()
    chosen = MEDClassifier("rbf", random_state=0).fit(X[:sample], y[:sample])
    yield Record(name, f"mixent, {sample} rows", "seconds to choose C", time.perf_counter() - began)
    yield Record(name, f"mixent, {sample} rows", "C", chosen.C_)
    yield Record(name, f"mixent, {sample} rows", "gamma", chosen.kernel_.gamma)
    model = MEDClassifier(chosen.kernel_, C=chosen.C_, calibration=None, random_state=0)
    began = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - began
    yield _judged(name, "mixent", SECONDS, seconds, 1, LARGE_SECONDS)
    yield Record(name, "mixent", GAP_ROW, model.gap_ / rows)
    yield Record(name, "mixent", GAP_RELATIVE, model.gap_ / abs(model.objective_))
    yield Record(name, "mixent", MEMORY, peak() / 1e9)
