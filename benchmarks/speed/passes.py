"""Seconds per pass, everyone interleaved; agreement of the log-likelihood; the cost of missing values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.speed.cases import Case, Start, make
from benchmarks.speed.peers import CORES, Method, mixent, scikit_learn, slow_peers
from benchmarks.speed.records import FASTER, SOURCE, Record, fastest

COMPARED = 5  # passes after which log-likelihoods are compared


def measure(case: Case, rounds: int, without: tuple[str, ...] = ()) -> Iterator[Record]:
    """Records of one case as they become known."""
    X, start = make(case)
    peers: dict[str, Method] = {"mixent": mixent}
    for threads in sorted({1, CORES}):
        peers[f"scikit-learn, {threads} thr."] = partial(scikit_learn, threads=threads)
    seconds = _interleave(X, start, peers, rounds, _n_passes(case))
    times = {name: fastest(s) for name, s in seconds.items()}
    ours = times["mixent"][0]
    best = min((name for name in times if name != "mixent"), key=lambda name: times[name][0])
    for name, (mean, sd, n) in times.items():
        yield Record(case.name, name, "seconds per pass", mean, sd, n)
    ratio = times[best][0] / ours
    yield Record(case.name, "mixent", FASTER, ratio, None, rounds, case.target, case.target and SOURCE, True)
    log_lik = mixent(X, start, COMPARED).log_lik
    theirs = scikit_learn(X, start, COMPARED, CORES).log_lik
    yield Record(case.name, "scikit-learn", "log-likelihood, relative difference", abs(theirs / log_lik - 1))
    for name, (method, fits) in slow_peers(without).items():
        if fits(case):
            yield from _slow(case, X, start, name, method, ours, log_lik)


def _n_passes(case: Case) -> tuple[int, int]:
    """Passes in a round: ours, theirs."""
    many = int(np.clip(2e9 / case.work, 4, 20))
    return 3 * many, many


def _interleave(
    X: np.ndarray, start: Start, peers: dict[str, Method], rounds: int, n_passes: tuple[int, int]
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, method in peers.items():
            seconds[name] += method(X, start, n_passes[name != "mixent"]).seconds
    return seconds


def _slow(
    case: Case, X: np.ndarray, start: Start, name: str, method: Method, ours: float, log_lik: float
) -> Iterator[Record]:
    result = method(X, start, COMPARED)
    mean = result.seconds[0]
    yield Record(case.name, name, "seconds per pass", mean, None, COMPARED - 1)
    yield Record(case.name, "mixent", f"times faster than {name}", mean / ours, None, COMPARED - 1)
    yield Record(case.name, name, "log-likelihood, relative difference", abs(result.log_lik / log_lik - 1))


def missing_values(case: Case, rounds: int, target: float | None = 20.0) -> Record:
    """A pass with 30 % of the cells missing at random, in units of a complete pass."""
    X, start = make(case)
    holed = X.copy()
    holed[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    whole: list[float] = []
    missing: list[float] = []
    for _ in range(rounds):
        # in tens, about as long as one with missing values: on a busy machine short spells are undisturbed more often
        whole += np.reshape(mixent(X, start, 31).seconds, (3, 10)).mean(axis=1).tolist()
        missing += mixent(holed, start, 4).seconds
    ratio = fastest(missing)[0] / fastest(whole)[0]
    name = f"{case.name}, 30 % missing"
    return Record(name, "mixent", "times a complete pass", ratio, None, len(missing), target, "issue 2")
