"""Maximum entropy beside scikit-learn's multinomial logistic regression: seconds to a relative gap of 1e-6.

The same rows, the same Gaussian prior. Each side stops as early as its own rule allows: of its tolerances or numbers of
iterations the loosest is taken that comes within the gap of an optimum solved far more precisely, and only fits with
that one are timed, by turns. Ours counts everything from codes or pmfs on; theirs begins with the matrix made, for
one-hot columns the faster of a sparse and a dense one.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.speed.records import FASTER, SOURCE, Record, fastest
from mixent.core.driver import Stop
from mixent.core.executors import Threads
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells
from mixent.maxent.solvers import Sums, solve

GAP = 1e-6
VARIANCE = 1.0
N_CLASSES, N_VALUES = 5, 8
PASSES, SECONDS, REACHED = "passes", "seconds to a 1e-6 gap", "relative gap reached"


@dataclass(frozen=True)
class Setting:
    """Classes drawn from a log-linear model of some columns; the larger its multipliers, the less they overlap."""

    name: str
    soft: bool  # a pmf in each column instead of a value
    scale: float  # of the multipliers
    target: float | None = None
    rows: int = 100_000
    columns: int = 30

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes (n, m) or pmfs (n, m * values), and classes (n,)."""
        rng = np.random.default_rng(0)
        shape = (self.rows, self.columns)
        gamma = self.scale * rng.standard_normal((self.columns, N_VALUES, N_CLASSES))
        score = rng.gumbel(size=(self.rows, N_CLASSES))
        if self.soft:
            pmf = rng.dirichlet(np.ones(N_VALUES), shape).reshape(self.rows, -1)
            return pmf, (score + pmf @ gamma.reshape(-1, N_CLASSES)).argmax(axis=1)
        codes = rng.integers(N_VALUES, size=shape).astype(np.int32)
        for j, column in enumerate(codes.T):
            score += gamma[j, column]
        return codes, score.argmax(axis=1)


SETTINGS = (
    Setting("one-hot", False, 0.5, 2.0),
    Setting("one-hot, nearly separable", False, 3.0),
    Setting("dense soft", True, 1.0, 20.0),
)
QUICK = tuple(Setting(s.name, s.soft, s.scale, None, 600, 4) for s in SETTINGS)


@dataclass(frozen=True)
class Fit:
    """What one fit gave."""

    objective: float
    passes: int
    seconds: float


def maxent(settings: tuple[Setting, ...] = SETTINGS, rounds: int = 5) -> Iterator[Record]:
    for setting in settings:
        yield from _compare(setting, rounds)


def _compare(setting: Setting, rounds: int) -> Iterator[Record]:
    X, y = setting.draw()
    ours = {solver: partial(_mixent, setting, X, y, solver) for solver in ("auto", "bohning")}
    best = ours["auto"](1e-13).objective
    floor = best - GAP * abs(best)
    methods: dict[str, Callable[[], Fit]] = {}
    for solver, fit in ours.items():
        tol = next(t for t in 10.0 ** np.arange(-4, -14, -0.5) if fit(t).objective >= floor)
        methods[f"mixent, {solver}"] = partial(fit, tol)
    methods["scikit-learn"] = _peer(setting, X, y, floor)
    fits: dict[str, list[Fit]] = {name: [] for name in methods}  # the searches above have warmed everyone up
    for _ in range(rounds):
        for name, method in methods.items():
            fits[name].append(method())
    name = f"{setting.name} {setting.rows}x{setting.columns}x{N_VALUES}"
    times = {who: fastest([fit.seconds for fit in runs]) for who, runs in fits.items()}
    for who, runs in fits.items():
        yield Record(name, who, PASSES, runs[0].passes)
        yield Record(name, who, REACHED, (best - runs[0].objective) / abs(best))
        yield Record(name, who, SECONDS, *times[who])
    for solver in ours:
        ratio = times["scikit-learn"][0] / times[f"mixent, {solver}"][0]
        target = setting.target if solver == "auto" else None
        source = None if target is None else SOURCE
        yield Record(name, f"mixent, {solver}", FASTER, ratio, None, rounds, target, source, True)


def _mixent(setting: Setting, X: np.ndarray, y: np.ndarray, solver: str, tol: float) -> Fit:
    began = time.perf_counter()
    n = setting.rows
    cells = Cells((), X.shape[1]) if setting.soft else Cells((N_VALUES,) * setting.columns)
    codes, dense = (np.empty((n, 0), dtype=np.int32), X.T) if setting.soft else (X, np.empty((0, n)))
    target = np.equal(y, np.arange(N_CLASSES)[:, None]).astype(float)
    rows = Rows(cells.packed(codes), np.ascontiguousarray(dense), target, np.ones(n), np.full(n, setting.columns + 1))
    with Threads() as executor:
        sums = Sums.of(cells, rows, executor)
        result = solve(cells, sums, VARIANCE, solver, Stop(tol, 3000), executor)
    seconds = time.perf_counter() - began
    return Fit(result.run.objective, result.run.n_passes, seconds)


def _peer(setting: Setting, X: np.ndarray, y: np.ndarray, floor: float) -> Callable[[], Fit]:
    """scikit-learn with the fewest iterations that come within the gap, to a tenth, on the matrix it is faster with."""
    matrices = [X] if setting.soft else [_one_hot(X), _one_hot(X).toarray()]
    fit = partial(_scikit_learn, matrices[0], y)
    few, many = 10, 20
    while fit(many).objective < floor:
        few, many = many, 2 * many
        if many > 10_000:
            raise RuntimeError("scikit-learn does not come near the optimum: are the objectives the same?")
    while many - few > 0.1 * few:
        middle = (few + many) // 2
        few, many = (few, middle) if fit(middle).objective >= floor else (middle, many)
    quickest = min(matrices, key=lambda matrix: _scikit_learn(matrix, y, many).seconds)
    return partial(_scikit_learn, quickest, y, many)


def _scikit_learn(X: csr_matrix | np.ndarray, y: np.ndarray, n_iter: int) -> Fit:
    model = LogisticRegression(C=VARIANCE, solver="lbfgs", tol=1e-14, max_iter=n_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - began
    right = model.predict_log_proba(X)[np.arange(len(y)), y].sum()
    return Fit(float(right - 0.5 * (model.coef_**2).sum() / VARIANCE), int(model.n_iter_[0]), seconds)


def _one_hot(codes: np.ndarray) -> csr_matrix:
    n, m = codes.shape
    places = (codes + N_VALUES * np.arange(m, dtype=np.int32)).ravel()
    return csr_matrix((np.ones(n * m), places, np.arange(0, n * m + 1, m, dtype=np.int32)), shape=(n, m * N_VALUES))
