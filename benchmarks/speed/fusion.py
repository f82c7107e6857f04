"""Fusion of a batch: from a Parquet file of a million items, of probabilities in memory, and of one item.

Beside it what one would write in numpy. Dawid and Skene's EM over the items, with the same start and the same prior,
as many passes as ours took: the same posteriors, since patterns with counts are the same items. Gradient descent of R
in the items' own logits, with (4.14) for the gradient and steps as document 004 takes them: its first passes, by the
second, and what R they reach. Both once: they take long, and always the same. What is ours is the whole fit, with the
reading of the answers, the intervals and the tests of dependence and drift.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.records import Record, fastest
from mixent import Calibration, Fuser
from mixent.data import read_frame
from mixent.datasets import simulate_votes

SECONDS, PASS, RATIO, MILLISECONDS = "seconds", "seconds per pass", "times faster than numpy", "milliseconds"
SAME, REACHED = "posteriors, largest difference", "R, nats per item"
WANTED = "asked for"
NUMPY = "numpy"
ACCURACY = (0.75, 0.85, 0.65, 0.8, 0.7)
LABELS = np.array(["no", "yes"])
SOFT_METHODS = ("auto", "ml-product", "min-divergence")
DESCENT = 20  # passes of gradient descent that are timed
STEP = 10.0  # of gradient descent, halved whenever R would rise: that of document 004, section 4.4


@dataclass(frozen=True)
class Setting:
    """Sizes; `hard` sources have two labels, `soft` ones probabilities. Targets: seconds, and milliseconds of one."""

    hard: tuple[int, int] = (1_000_000, 5)
    soft: tuple[int, int, int] = (200_000, 10, 5)
    targets: tuple[float, float, float] | None = (5.0, 3.0, 1.0)

    def target(self, which: int) -> tuple[float | None, str | None]:
        return (None, None) if self.targets is None else (self.targets[which], WANTED)


FULL = Setting()
QUICK = Setting((2_000, 5), (500, 4, 3), None)


def fusion(setting: Setting = FULL, rounds: int = 3) -> Iterator[Record]:
    yield from _hard(setting, rounds)
    yield from _soft(setting, rounds)


# --- labels -----------------------------------------------------------------------------------------------------------


def _hard(setting: Setting, rounds: int) -> Iterator[Record]:
    import pandas as pd

    n, J = setting.hard
    name = f"{n}x{J} hard"
    votes = simulate_votes(n, priors=(0.3, 0.7), n_sources=J, accuracy=ACCURACY[:J], random_state=0)
    sources = {s: Calibration.from_predictions(LABELS[t], LABELS[codes]) for s, (t, codes) in votes.labelled.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "votes.parquet"
        pd.DataFrame({s: LABELS[codes] for s, codes in votes.answers.items()}).to_parquet(path)
        seconds = [timed(lambda: Fuser(sources).fit(read_frame(path)).posterior_) for _ in range(rounds)]
    middle, sd, count = fastest(seconds)
    yield Record(f"{name}, Parquet", "auto", SECONDS, middle, sd, count, *setting.target(0))
    yield from _panel(name, sources, votes.answers, rounds)
    yield from _one(name, Fuser(sources).fit({s: LABELS[codes[:1000]] for s, codes in votes.answers.items()}), setting)


def _panel(name: str, sources: dict[str, Calibration], answers: dict[str, np.ndarray], rounds: int) -> Iterator[Record]:
    """Dawid and Skene: patterns against items, from codes in memory."""
    outputs = {s: LABELS[codes] for s, codes in answers.items()}
    codes = np.stack(list(answers.values()))  # (J, n)
    counts = np.stack([source.counts + source.smoothing for source in sources.values()])  # (J, K, V)
    fuser = Fuser(sources, method="dawid-skene")
    mine, sd, count = fastest([timed(lambda: fuser.fit(outputs)) for _ in range(rounds)])
    # the same start: near the composite estimate, with no class empty
    start = 0.9 * fuser.prior_estimate_.prior + 0.1 / len(fuser.classes_)
    passes = len(fuser.history_) - 1
    results: list[np.ndarray] = []
    plain = timed(lambda: results.append(dawid_skene(codes, counts, start, passes)))
    yield Record(name, "dawid-skene, whole fit", SECONDS, mine, sd, count)
    yield Record(name, f"{NUMPY}, {passes} passes", SECONDS, plain, None, 1)
    yield Record(name, "dawid-skene", RATIO, plain / mine, None, rounds)
    yield Record(name, "dawid-skene", SAME, float(np.abs(results[0] - fuser.posterior_).max()))


def dawid_skene(codes: np.ndarray, counts: np.ndarray, prior: np.ndarray, passes: int) -> np.ndarray:
    """(n, K) posteriors by EM over the items, from codes (J, n) and the calibrations' counts (J, K, V)."""
    J, K, V = counts.shape
    confusion = counts / counts.sum(axis=2, keepdims=True)
    for left in range(passes, -1, -1):
        joint = np.log(prior) + sum(np.log(confusion[j]).T[codes[j]] for j in range(J))
        post = np.exp(joint - joint.max(axis=1, keepdims=True))
        post /= post.sum(axis=1, keepdims=True)
        if left:
            prior = post.mean(axis=0)
            for j in range(J):
                seen = np.stack([np.bincount(codes[j], post[:, k], V) for k in range(K)]) + counts[j]
                confusion[j] = seen / seen.sum(axis=1, keepdims=True)
    return post


def _one(name: str, fuser: Fuser, setting: Setting, times: int = 300) -> Iterator[Record]:
    """One new item, as a user would give it."""
    outputs = dict.fromkeys(fuser.sources, "yes")
    each = [1e3 * timed(lambda: fuser.fuse_one(outputs)) for _ in range(times)]
    middle, sd, count = fastest(each)
    yield Record(f"{name}, one new item", "fuse_one", MILLISECONDS, middle, sd, count, *setting.target(2))


# --- probabilities ----------------------------------------------------------------------------------------------------


def _soft(setting: Setting, rounds: int) -> Iterator[Record]:
    n, J, K = setting.soft
    name = f"{n}x{J} soft, {K} classes"
    sources, answers = soft_answers(n, J, K)
    for method in SOFT_METHODS:
        fuser = Fuser(sources, method=method)
        middle, sd, count = fastest([timed(lambda: fuser.fit(answers)) for _ in range(rounds)])  # noqa: B023
        yield Record(name, method, SECONDS, middle, sd, count, *setting.target(1))
    passes = len(fuser.history_)  # of "min-divergence", the last
    confusion, values = np.stack([source.confusion for source in sources.values()]), np.stack(list(answers.values()))
    results: list[float] = []
    plain = timed(lambda: results.append(descent(values, confusion, DESCENT))) / (DESCENT + 1)
    yield Record(name, f"min-divergence, {passes} passes", PASS, middle / passes, None, count)
    yield Record(name, f"{NUMPY}, {DESCENT} passes", PASS, plain, None, 1)
    yield Record(name, "min-divergence", RATIO, plain / (middle / passes), None, count)
    yield Record(name, "min-divergence", REACHED, -float(fuser.objective_))
    yield Record(name, NUMPY, REACHED, results[0] / n)


def soft_answers(n: int, J: int, K: int) -> tuple[dict[str, Calibration], dict[str, np.ndarray]]:
    """Probabilities of sources of rising quality, each calibrated on 2000 rows at equal priors."""
    rng = np.random.default_rng(0)
    prior = np.arange(K, 0, -1) / (K * (K + 1) / 2)
    truth, rows = rng.choice(K, n, p=prior), rng.integers(K, size=2000)

    def answers_of(classes: np.ndarray, strength: float) -> np.ndarray:
        value = rng.standard_normal((len(classes), K))
        value[np.arange(len(classes)), classes] += strength
        odds = np.exp(strength * value)  # exact at equal priors
        return odds / odds.sum(axis=1, keepdims=True)

    strengths = np.linspace(0.6, 1.2, J)
    names = [f"source {j + 1}" for j in range(J)]
    answers = {name: answers_of(truth, s) for name, s in zip(names, strengths)}
    return {name: Calibration.from_predictions(rows, answers_of(rows, s)) for name, s in zip(names, strengths)}, answers


def descent(outputs: np.ndarray, confusion: np.ndarray, passes: int, step: float = STEP) -> float:
    """R (4.13) that gradient descent in the items' logits reaches; `outputs` (J, n, V), `confusion` (J, K, V)."""
    logits, slope, q = np.zeros((outputs.shape[1], confusion.shape[1])), np.zeros(1), np.ones(1)
    least = np.inf
    for _ in range(passes + 1):
        tried = logits - step * q * (slope - (q * slope).sum(axis=-1, keepdims=True))
        new = np.exp(tried - tried.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        counts = np.stack([new.T @ output for output in outputs])  # (J, K, V)
        ratio = np.log(counts / counts.sum(axis=2, keepdims=True)) - np.log(confusion)
        value = float((counts * ratio).sum())
        if value > least:
            step /= 2
            continue
        logits, q, least = tried, new, value
        slope = sum(output @ r.T for output, r in zip(outputs, ratio))  # (4.14)
    return least


def timed(run: Callable[[], Any]) -> float:
    """Seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not converged
        began = time.perf_counter()
        run()
        return time.perf_counter() - began
