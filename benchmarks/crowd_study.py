"""Simulated crowds with shared errors: which models are chosen, and the constant in the power of the posteriors.

    python -m benchmarks.crowd_study            144 crowds
    python -m benchmarks.crowd_study --quick    4 crowds

A share of the items is difficult: such an item looks like another class to a worker with a probability of its own,
which is uniform between 0 and 1, so that the errors of the workers are dependent, and the consensus may be wrong.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.tables.markdown import table_lines
from mixent import Fuser
from mixent.fusion.crowds import CONSENSUS

DIFFICULT = (0.0, 0.1, 0.2, 0.3)  # shares of the items
N_LABELS = (3, 8, 20)  # answers to each item
KINDS = ("one-coin", "hierarchical", "spread")  # the rates of the workers
N_CLASSES = (2, 4)
FACTORS = (1.0, 0.85, 0.7, 0.6, 0.5)
ITEMS = 400
N_WORKERS = (40, 300)
SMALLEST = 1e-6


class Setting(NamedTuple):
    """A simulated crowd."""

    difficult: float
    n_labels: int
    kind: str
    n_classes: int
    n_workers: int


def simulated(setting: Setting, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Answers of the workers, None without one, and the classes."""
    rng = np.random.default_rng([seed, setting.n_labels, setting.n_classes, KINDS.index(setting.kind)])
    K, J = setting.n_classes, setting.n_workers
    truth = rng.choice(K, ITEMS, p=rng.dirichlet(np.full(K, 5.0)))
    looks = np.where(rng.random(ITEMS) < setting.difficult, rng.random(ITEMS), 0.0)
    other = (truth + rng.integers(1, K, ITEMS)) % K
    rates = _rates(setting.kind, K, J, rng)
    votes = np.full((ITEMS, J), None, dtype=object)
    for i in range(ITEMS):
        for j in rng.choice(J, setting.n_labels, replace=False):
            apparent = other[i] if rng.random() < looks[i] else truth[i]
            votes[i, j] = int(rng.choice(K, p=rates[j, apparent]))
    return {f"w{j}": votes[:, j] for j in range(J)}, truth


def _rates(kind: str, K: int, J: int, rng: np.random.Generator) -> np.ndarray:
    """(J, K, K) rates: an accuracy of each worker; matrices near a common one; or a mean accuracy of 65 % and noise."""
    if kind == "one-coin":
        accuracy = rng.uniform(1 / K + 0.1, 0.95, J)
        return np.stack([np.full((K, K), (1 - a) / (K - 1)) + (a - (1 - a) / (K - 1)) * np.eye(K) for a in accuracy])
    common = np.full((K, K), 0.35 / (K - 1)) + (0.65 - 0.35 / (K - 1)) * np.eye(K)
    strength = 3.0 if kind == "spread" else 10.0
    if kind == "hierarchical":
        common = np.stack([rng.dirichlet(8 * row) for row in common])
    return np.stack([[rng.dirichlet(strength * row + 0.05) for row in common] for _ in range(J)])


def log_loss(posterior: np.ndarray, truth: np.ndarray) -> float:
    return float(-np.log(np.clip(posterior[np.arange(len(truth)), truth], SMALLEST, 1.0)).mean())


def tempered(posterior: np.ndarray, power: float) -> np.ndarray:
    out = np.maximum(posterior, 1e-300) ** power
    return out / out.sum(axis=1, keepdims=True)


class Outcome(NamedTuple):
    """Log-losses at each constant and of majority, errors of auto, Dawid-Skene and majority, and the chosen model."""

    losses: list[float]
    errors: tuple[float, float, float]
    chosen: str


def measured(setting: Setting, seed: int) -> Outcome:
    answers, truth = simulated(setting, seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        auto, plain, votes = (Fuser(method=m).fit(answers) for m in ("auto", "dawid-skene", "majority"))
    losses = [log_loss(tempered(auto.posterior_, factor / CONSENSUS), truth) for factor in FACTORS]
    errors = [100 * float(np.mean(fit.labels_ != truth)) for fit in (auto, plain, votes)]
    losses += [log_loss(fit.posterior_, truth) for fit in (plain, votes)]
    return Outcome(losses, tuple(errors), auto.method_)


def settings(quick: bool) -> Iterator[Setting]:
    if quick:
        return (Setting(d, 8, k, 2, 40) for d, k in product((0.0, 0.2), KINDS[:2]))
    return (Setting(*values) for values in product(DIFFICULT, N_LABELS, KINDS, N_CLASSES, N_WORKERS))


def main(arguments: list[str] | None = None) -> list[str]:
    """Measure, and print and return the lines of the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few crowds")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    outcomes = {setting: measured(setting, asked.seed) for setting in settings(asked.quick)}
    lines = ["means over the crowds of each share of difficult items", ""]
    heads = ["difficult", "crowds", *(f"log-loss x{f}" for f in FACTORS), "Dawid-Skene", "majority"]
    heads += ["error % auto", "Dawid-Skene", "majority"]
    rows = []
    for share in sorted({setting.difficult for setting in outcomes}):
        some = [outcome for setting, outcome in outcomes.items() if setting.difficult == share]
        loss, error = (np.mean([getattr(o, field) for o in some], axis=0) for field in ("losses", "errors"))
        rows.append([f"{share:.0%}", str(len(some)), *(f"{x:.3f}" for x in loss), *(f"{x:.1f}" for x in error)])
    lines += [*table_lines(heads, rows), "models chosen, by the rates of the workers", ""]
    kinds = {kind: Counter(o.chosen for s, o in outcomes.items() if s.kind == kind) for kind in KINDS}
    lines += [
        f"{kind}: " + ", ".join(f"{name} {n}" for name, n in counts.most_common()) for kind, counts in kinds.items()
    ]
    print("\n".join(lines))
    return lines


if __name__ == "__main__":
    main()
