"""Minimum divergence by first- and second-order steps: passes, time and posteriors by the gap asked for.

    python -m benchmarks.divergence [--seeds 5] [--sizes 300 3000 20000]

Random panels of five sources with three classes: hard answers (labels) and soft ones (probabilities). The reference
is the result of second-order steps with a gap of 3e-11 nats per item. Columns: passes, seconds, largest and mean
difference of a posterior from the reference, error and log-loss (probabilities of at least 1e-6), and the error and
log-loss of the rule on as many new items; all are means over the seeds.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from mixent.core.driver import Stop, run
from mixent.core.executors import Serial
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.newton import second_order
from mixent.fusion.problem import MinDivergence, Rule
from mixent.fusion.sources import Layout
from mixent.maxent.blocks import RowBlocks

K, J, N_CALIBRATION = 3, 5, 200
RUNS = ((False, 1e-4, 5000), (False, 1e-6, 2000), *((True, 10.0**-d, 300) for d in (4, 6, 7, 8, 9)))
REFERENCE = (True, 3e-11, 300)


def drawn(rng: np.random.Generator, table: np.ndarray, truth: np.ndarray, soft: bool) -> np.ndarray:
    """Labels (n,), or probabilities (n, K) about such labels."""
    labels = (rng.random((len(truth), 1)) > np.cumsum(table, axis=1)[truth, :-1]).sum(axis=1)
    if not soft:
        return labels
    values = rng.gamma(0.7 + 4.0 * np.eye(K)[labels]) + 1e-9
    return values / values.sum(axis=1, keepdims=True)


def batches(seed: int, n: int, soft: bool) -> tuple[list[Batch], list[np.ndarray]]:
    """Two batches of the same sources, and their labels."""
    rng = np.random.default_rng(seed)
    tables = [0.35 * rng.dirichlet(np.full(K, 5.0), K) + 0.65 * np.eye(K) for _ in range(J)]
    own = np.repeat(np.arange(K), N_CALIBRATION // K)
    sources = {
        f"s{j}": Calibration.from_predictions(own, drawn(rng, table, own, soft), symbols=range(K))
        for j, table in enumerate(tables)
    }
    layout = Layout.of(sources)
    truths = [rng.choice(K, n, p=rng.dirichlet(np.full(K, 4.0)))] * 2
    out = []
    for truth in truths:
        answers = {name: drawn(rng, table, truth, soft) for name, table in zip(sources, tables)}
        out.append(Batch.of(layout, read_answers(layout, answers)))
    return out, truths


def posterior(problem: MinDivergence, params: Rule, batch: Batch) -> np.ndarray:
    return batch.items(np.exp(problem.log_posterior(params, batch.rows)).T)


def scores(proba: np.ndarray, truth: np.ndarray) -> list[float]:
    own = np.maximum(proba[np.arange(len(truth)), truth], 1e-6)
    return [100 * float((proba.argmax(axis=1) != truth).mean()), -float(np.log(own).mean())]


def measured(seed: int, n: int, soft: bool) -> list[list[float]]:
    """One row for each run."""
    (batch, new), (truth, new_truth) = batches(seed, n, soft)
    plain = batch.divergence_problem()
    fast, rows, reference, out = second_order(plain, batch.n_patterns), RowBlocks(batch.rows), None, []
    for second, tol, max_passes in (REFERENCE, *RUNS):
        problem, start = fast if second else plain, Rule.uniform(*plain.confusion.shape)
        began = time.perf_counter()
        done = run(problem, rows, start, stop=Stop(-np.inf, max_passes, gap=tol), executor=Serial())
        seconds = time.perf_counter() - began
        proba = posterior(problem, done.params, batch)
        if reference is None:
            reference = proba
            continue
        difference = np.abs(proba - reference).max(axis=1)
        of_new = scores(posterior(problem, done.params, new), new_truth)
        row = [done.n_passes, seconds, difference.max(), difference.mean(), *scores(proba, truth), *of_new]
        out.append([float(value) for value in row])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[300, 3000, 20_000])
    args = parser.parse_args()
    for soft in (False, True):
        for n in args.sizes:
            means = np.mean([measured(seed, n, soft) for seed in range(args.seeds)], axis=0)
            print(f"{'soft' if soft else 'hard'} answers, {n} items")
            for (second, tol, _), row in zip(RUNS, means):
                print(
                    f"  {'second' if second else 'first'}-order, tol {tol:.0e}: {row[0]:.0f} passes, {row[1]:.2f} s, "
                    f"largest {row[2]:.4f}, mean {row[3]:.6f}; error {row[4]:.1f}, log-loss {row[5]:.2f}; "
                    f"new items {row[6]:.1f}, {row[7]:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
