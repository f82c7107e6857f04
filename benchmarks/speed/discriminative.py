"""A pass of training for the posterior (conditional likelihood, extended Baum-Welch) beside a pass of EM.

Both go over the same rows from the same start, by turns, in one thread. A row of known class meets all components in
training, in EM those of its class only: with a mixture per class training evaluates as many times more densities as
there are classes, and has no target.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.speed.cases import Case, Start, make, start_from
from benchmarks.speed.records import Record, fastest
from mixent.base.executors import choose_executor
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Stop, run
from mixent.core.executors import Executor
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.product import Components, ProductFamily
from mixent.mixtures.discriminative import DiscriminativeProblem
from mixent.mixtures.fitting import blocks
from mixent.mixtures.init import Summary, summarize
from mixent.mixtures.problem import MixtureParams, MixtureProblem

CASE = Case(50_000, 10, 8)
N_CLASSES = 3
TARGET = 2.5
N_PASSES = 12
RATIO = "times a pass of EM"


def discriminative(case: Case, rounds: int, target: float | None = TARGET) -> Iterator[Record]:
    X, start = make(case)
    codes = _classes(start)
    counts = np.stack([np.bincount(start.label[codes == c], minlength=case.components) for c in range(N_CLASSES)])
    apart = start_from(X, codes * case.components + start.label, N_CLASSES * case.components)
    owner = np.equal(np.arange(N_CLASSES)[:, None], np.repeat(np.arange(N_CLASSES), case.components))
    for structure in ("VVV", "VVI"):
        name = f"{case.name}, {N_CLASSES} classes, {structure}"
        together = counts / counts.sum()
        yield from _measure(name, "shared", X, codes, start, together, structure, rounds, target)
        yield from _measure(name, "per class", X, codes, apart, owner * apart.weights, structure, rounds, None)


def _classes(start: Start) -> np.ndarray:
    """Classes made of the same groups in different proportions: every third row is of another than its group's."""
    rng = np.random.default_rng(2)
    n = len(start.label)
    return np.where(rng.random(n) < 2 / 3, start.label % N_CLASSES, rng.integers(N_CLASSES, size=n))


def _measure(
    name: str,
    method: str,
    X: np.ndarray,
    codes: np.ndarray,
    start: Start,
    weights: np.ndarray,
    structure: str,
    rounds: int,
    target: float | None,
) -> Iterator[Record]:
    K = len(start.weights)
    seconds: dict[str, list[float]] = {"EM": [], "conditional": []}
    with choose_executor(1, len(X), K) as executor:
        summary = summarize(ArrayBlocks(Block(X)), (), executor)
        em, training, params = _problems(structure, summary, start, weights)
        met = int((weights > 0).sum(axis=1).max())  # components a row meets in EM
        axis_aligned = structure == "VVI"
        sources = {
            "EM": blocks(Block(X), met, axis_aligned, codes),
            "conditional": blocks(Block(X), K, axis_aligned, codes),
        }
        for _ in range(rounds):
            for kind, problem in (("EM", em), ("conditional", training)):
                seconds[kind] += _passes(problem, sources[kind], params, executor)
    for kind, times in seconds.items():
        yield Record(name, f"{method}, {kind}", "seconds per pass", *fastest(times))
    ratio = fastest(seconds["conditional"])[0] / fastest(seconds["EM"])[0]
    wanted = (target, "issue 3") if target else (None, None)
    yield Record(name, f"{method}, conditional", RATIO, ratio, None, rounds, *wanted)


def _problems(
    structure: str, summary: Summary, start: Start, weights: np.ndarray
) -> tuple[MixtureProblem, DiscriminativeProblem, MixtureParams]:
    """EM, training anchored where it starts, and that start."""
    K, d = start.means.shape
    family = ProductFamily(GaussianFamily((Group(structure, 0, K),), summary.center, summary.scale), None)
    covs = start.covs if structure == "VVV" else np.diagonal(start.covs, axis1=1, axis2=2).copy()
    components = Components(Gaussians(start.means - summary.center, covs, (None,)), None)
    params = MixtureParams(weights, components)
    rows = d + 2.0  # anchor="auto"
    anchored = family.anchored(components, np.full(K, rows), 0.0)
    return MixtureProblem(family), DiscriminativeProblem(anchored, None, rows * K * weights), params


def _passes(problem: MixtureProblem, source: ArrayBlocks, params: MixtureParams, executor: Executor) -> list[float]:
    """Seconds of each pass but the first, steps that had to be shortened included."""
    end = run(problem, source, params, stop=Stop(-np.inf, N_PASSES), executor=executor)
    assert end.n_passes == N_PASSES, end.message
    return np.diff([step.seconds for step in end.trace]).tolist()
