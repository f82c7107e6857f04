"""Maximum entropy discrimination beside libsvm: seconds to a solution, the same rows, the same c, one thread each.

The duals differ in the potential of the margins only: ours ends when the duality gap is 1e-6 nats a row, libsvm when
no two gradients contradict the optimum by more than 1e-6. "mixent" is the whole fit of the estimator (reading the
table, the kernel matrix, solving) with a margin prior, "solver" the solving alone, from features or the kernel matrix
on. Targets are of seconds by the clock; beside them stand those of the processor, which depend less on other use of
the machine. Labels are those of a noisy plane, or of a noisy sphere, whose inside is the one class.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.speed.records import FASTER, SOURCE, Record
from mixent import MEDClassifier
from mixent.core.executors import Serial
from mixent.med.constraints import PairConstraints
from mixent.med.functions import KernelDiscriminant, LinearDiscriminant
from mixent.med.margins import margin_prior
from mixent.med.solving import Discriminant, Search
from mixent.options import RBF

C, TOL, CACHE = 10.0, 1e-6, 2000  # MB of kernel libsvm may keep
MARGINS = ("exponential", "laplace")
SECONDS, SUPPORT, ERROR = "seconds to fit", "support vectors", "training error, first 2000 rows"
GAP_ROW, GAP_RELATIVE, SLOWER = "gap per row", "gap, relative", "times libsvm's seconds"
CPU = "libsvm's CPU seconds over ours"


@dataclass(frozen=True)
class Setting:
    """Rows with two classes, and how fast to be: `faster` times libsvm, or within `within` times its seconds."""

    kernel: str
    rows: int
    columns: int
    faster: float | None = None
    within: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kernel} {self.rows}x{self.columns} c={C:g}"

    @property
    def gamma(self) -> float:
        return 1.0 / self.columns

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows (n, d) with unit variances, and classes 0 and 1, about one in ten of which is noise."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((self.rows, self.columns))
        if self.kernel == "linear":
            height = X @ rng.standard_normal(self.columns)
        else:
            height = (X**2).sum(axis=1) - self.columns
        height = height / height.std() + 0.3 * rng.standard_normal(self.rows)
        return X, (height > np.median(height)).astype(int)


SETTINGS = (
    Setting("linear", 10_000, 20, faster=200.0),
    Setting("rbf", 2_000, 10, within=3.0),
    Setting("rbf", 10_000, 10, within=3.0),
)
QUICK = (Setting("linear", 300, 5), Setting("rbf", 200, 4))


@dataclass(frozen=True)
class Fit:
    """What one fit gave; None where a side does not report it."""

    seconds: float
    cpu: float  # seconds of the processor
    n_support: int
    gap: float | None = None  # nats
    objective: float | None = None
    error: float | None = None  # training rows it puts wrong, share


def med(settings: tuple[Setting, ...] = SETTINGS, rounds: int = 5) -> Iterator[Record]:
    with threadpool_limits(1):
        for setting in settings:
            yield from _compare(setting, rounds)


def _compare(setting: Setting, rounds: int) -> Iterator[Record]:
    X, y = setting.draw()
    methods: dict[str, Callable[[], Fit]] = {
        **{f"mixent, {margin}": partial(_mixent, setting, X, y, margin) for margin in MARGINS},
        **{f"solver, {margin}": partial(_solver, setting, X, y, margin) for margin in MARGINS},
        "libsvm": partial(_libsvm, setting, X, y),
    }
    _mixent(setting, X[:100], y[:100], MARGINS[0])  # imports and the like
    fits: dict[str, list[Fit]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, method in methods.items():
            fits[name].append(method())
    seconds = {name: np.array([fit.seconds for fit in runs]) for name, runs in fits.items()}
    for name, runs in fits.items():
        yield Record(setting.name, name, SECONDS, float(np.median(seconds[name])), float(seconds[name].std()), rounds)
        yield from _quality(setting, name, runs[0])
    cpu = {name: float(np.median([fit.cpu for fit in runs])) for name, runs in fits.items()}
    for name in list(methods)[:-1]:
        ratio = float(np.median(seconds["libsvm"] / seconds[name]))  # of fits that ran one after the other
        judged = name.startswith("mixent")
        if setting.within is None:
            yield _judged(setting, name, FASTER, ratio, rounds, setting.faster if judged else None, True)
        else:
            yield _judged(setting, name, SLOWER, 1.0 / ratio, rounds, setting.within if judged else None, False)
        yield Record(setting.name, name, CPU, cpu["libsvm"] / cpu[name], None, rounds)


def _judged(
    setting: Setting, method: str, metric: str, ratio: float, rounds: int, target: float | None, at_least: bool
) -> Record:
    source = None if target is None else SOURCE
    return Record(setting.name, method, metric, ratio, None, rounds, target, source, at_least)


def _quality(setting: Setting, name: str, fit: Fit) -> Iterator[Record]:
    yield Record(setting.name, name, SUPPORT, fit.n_support)
    if fit.error is not None:
        yield Record(setting.name, name, ERROR, fit.error)
    if fit.gap is not None and fit.objective is not None:
        yield Record(setting.name, name, GAP_ROW, fit.gap / setting.rows)
        yield Record(setting.name, name, GAP_RELATIVE, fit.gap / abs(fit.objective))


def _mixent(setting: Setting, X: np.ndarray, y: np.ndarray, margin: str) -> Fit:
    kernel = "linear" if setting.kernel == "linear" else RBF(setting.gamma)
    options = {"C": C, "margin": margin, "calibration": None, "standardize": False, "tol": TOL, "n_jobs": 1}
    model = MEDClassifier(kernel, **options)
    began, used = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    wrong = float(np.mean(model.predict(X[:2000]) != y[:2000]))
    return Fit(seconds, cpu, len(model.support_), model.gap_, model.objective_, wrong)


def _solver(setting: Setting, X: np.ndarray, y: np.ndarray, margin: str) -> Fit:
    """From features, or the kernel matrix, to multipliers."""
    discriminant: Discriminant
    if setting.kernel == "linear":
        discriminant = LinearDiscriminant(X, 2, np.inf)
    else:
        discriminant = KernelDiscriminant(RBF(setting.gamma).square(X, Serial()), 2, np.inf)
    began, used = time.perf_counter(), time.process_time()
    constraints = PairConstraints.of(np.eye(2)[y], np.ones(len(y)))
    result = discriminant.solve(constraints, margin_prior(margin, C), Search(TOL, 1000, Serial()))
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    return Fit(seconds, cpu, int(result.multipliers.any(axis=1).sum()), result.gap, result.dual)


def _libsvm(setting: Setting, X: np.ndarray, y: np.ndarray) -> Fit:
    model = SVC(C=C, kernel=setting.kernel, gamma=setting.gamma, tol=TOL, cache_size=CACHE)
    began, used = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    wrong = float(np.mean(model.predict(X[:2000]) != y[:2000]))
    return Fit(seconds, cpu, len(model.support_), error=wrong)
