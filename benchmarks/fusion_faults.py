"""Study of faulty sources: how often a fault is named, with which kind, and how often a batch without fault is blamed.

`python -m benchmarks.fusion_faults` simulates panels with `simulate_votes`, one line for each setting and fault:
the share of batches with any fault reported (`alarm`), with source 1 named (`named`), with its kind right among these
(`kind`), with another source named (`other`), and with several sources of which one is wrong (`several`). `--what
null` runs the batches without a fault only, `--what power` the others. Half an hour on one core with `--batches 400`.
"""

from __future__ import annotations

import argparse
from dataclasses import astuple, dataclass

import numpy as np

from mixent.datasets import simulate_votes
from mixent.fusion import Calibration
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.faults import source_tests
from mixent.fusion.sources import Layout

LEVEL = 0.05
SHIFTED = 0.4  # share of the answers 0 that a shifted threshold turns into 1
KINDS = {"swapped": "swapped", "random": "random", "shifted": "shifted threshold"}


@dataclass(frozen=True)
class Setting:
    """A panel of sources; `accuracy` is that of all sources, or the range they are drawn from."""

    n_sources: int
    n_items: int
    n_rows: int  # of each calibration
    correlation: float
    prior: tuple[float, ...]
    accuracy: float | tuple[float, float]
    answers: str = "labels"  # or "probabilities"


EVEN, RARE, RANGE = (0.5, 0.5), (0.1, 0.9), (0.55, 0.9)
NULL = [
    Setting(*values, answers)  # type: ignore[arg-type]
    for answers in ("labels", "probabilities")
    for values in [
        (4, 300, 20, 0.0, EVEN, 0.85),
        (4, 300, 20, 0.8, EVEN, 0.85),
        (4, 300, 20, 0.0, RARE, RANGE),
        (8, 300, 20, 0.0, EVEN, RANGE),
        (15, 300, 20, 0.4, EVEN, RANGE),
        (4, 300, 100, 0.5, RARE, RANGE),
        (8, 1000, 100, 0.8, EVEN, RANGE),
        (8, 1000, 40, 0.0, (0.25,) * 4, (0.5, 0.9)),
        (3, 1000, 200, 0.5, (0.2, 0.3, 0.5), RANGE),
        (4, 300, 2000, 0.8, RARE, RANGE),
        (4, 3000, 2000, 0.0, (0.05, 0.95), RANGE),
        (2, 300, 100, 0.4, EVEN, 0.85),
    ]
]
POWER = [
    Setting(*values, answers)  # type: ignore[arg-type]
    for answers in ("labels", "probabilities")
    for values in [
        (4, 300, 200, 0.0, EVEN, 0.85),
        (4, 300, 200, 0.8, EVEN, 0.85),
        (4, 300, 200, 0.0, (0.2, 0.8), 0.85),
        (4, 300, 40, 0.0, EVEN, 0.85),
        (4, 300, 2000, 0.5, EVEN, (0.6, 0.9)),
        (6, 300, 200, 0.5, (1 / 3,) * 3, (0.6, 0.9)),
        (8, 1000, 100, 0.5, RARE, (0.65, 0.9)),
        (3, 300, 200, 0.0, EVEN, 0.85),
        (2, 300, 200, 0.0, EVEN, 0.85),
    ]
]


def probabilities(rng: np.random.Generator, codes: np.ndarray, K: int) -> np.ndarray:
    """(n, K) probabilities with the largest mean at these codes."""
    values = rng.gamma(0.7 + 4.0 * np.eye(K)[codes]) + 1e-9
    return values / values.sum(axis=1, keepdims=True)


def faulty(rng: np.random.Generator, answers: np.ndarray, fault: str | None, K: int) -> np.ndarray:
    """Answers with a fault: labels (n,) or probabilities (n, K)."""
    soft = answers.ndim == 2
    if fault == "swapped":
        return np.roll(answers, 1, axis=1) if soft else (answers + 1) % K
    if fault == "random":
        return rng.permutation(answers) if soft else rng.integers(0, K, len(answers))
    if fault == "shifted" and soft:
        tilted = answers * np.where(np.arange(K) == 1, 4.0, 1.0)
        return tilted / tilted.sum(axis=1, keepdims=True)
    if fault == "shifted":
        return np.where((answers == 0) & (rng.random(len(answers)) < SHIFTED), 1, answers)
    return answers


def drawn(rng: np.random.Generator, setting: Setting, fault: str | None) -> tuple[dict, dict, np.ndarray]:
    """Calibrations, answers and classes of a batch; source 1 has the fault, and is right in 85 % without it."""
    K, J = len(setting.prior), setting.n_sources
    accuracy = np.broadcast_to(setting.accuracy, J) if np.ndim(setting.accuracy) == 0 else None
    accuracy = rng.uniform(*setting.accuracy, J) if accuracy is None else accuracy.copy()  # type: ignore[misc]
    accuracy[0] = 0.85 if fault else accuracy[0]
    votes = simulate_votes(
        setting.n_items, priors=setting.prior, n_sources=J, accuracy=accuracy, correlation=setting.correlation,
        n_calibration=setting.n_rows, random_state=int(rng.integers(1 << 30)),
    )  # fmt: skip
    soft = setting.answers == "probabilities"
    sources, answers = {}, {}
    for name, (truth, labels) in votes.labelled.items():
        if len(set(truth)) < K:
            return drawn(rng, setting, fault)
        sources[name] = Calibration.from_predictions(
            truth, probabilities(rng, labels, K) if soft else labels, symbols=list(range(K))
        )
        values = probabilities(rng, votes.answers[name], K) if soft else votes.answers[name]
        answers[name] = faulty(rng, values, fault if name == "source 1" else None, K)
    return sources, answers, votes.truth


def rates(setting: Setting, fault: str | None, batches: int, seed: int = 0) -> dict[str, float]:
    """Shares of the batches, see the module."""
    rng = np.random.default_rng(seed)
    alarm = named = right = other = several = 0
    for _ in range(batches):
        sources, answers, _ = drawn(rng, setting, fault)
        layout = Layout.of(sources)
        faults = source_tests(Batch.of(layout, read_answers(layout, answers)), LEVEL).faults
        kinds = [result.kind for result in faults if result.sources == ("source 1",)]
        alarm += bool(faults)
        named += bool(kinds)
        right += bool(fault and kinds and kinds[0] == KINDS[fault])
        other += any(len(result.sources) == 1 and result.sources != ("source 1",) for result in faults)
        several += any(len(result.sources) > 1 for result in faults)
    counts = {"alarm": alarm, "named": named, "other": other, "several": several}
    return {name: n / batches for name, n in counts.items()} | {"kind": right / max(named, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=("null", "power", "all"), default="all")
    parser.add_argument("--batches", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cells = [(setting, None) for setting in NULL] if options.what != "power" else []
    cells += [(s, fault) for s in POWER for fault in KINDS] if options.what != "null" else []
    for setting, fault in cells:
        shares = rates(setting, fault, options.batches, options.seed)
        print(*astuple(setting), fault, *(f"{name} {share:.3f}" for name, share in shares.items()), flush=True)


if __name__ == "__main__":
    main()
