"""What growth costs and brings beside restarts: densities evaluated and log-likelihood at every number of components.

Maximum likelihood without a prior, the same rows; means over seeds. Growth to K goes through 1 ... K - 1, restarts go
to K at once: where K is to be chosen, they too must visit all, which "1..K" adds up. Growth: 16 candidates go through
partial EM at each stage, the best two through full EM. Restarts: each of `n_init` runs some passes, the best runs on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.speed.records import Record
from benchmarks.tables.data import SHARED, load
from mixent import GaussianMixture
from mixent.options import Search

MOST = 8
SEEDS = 3
GROWN, ONCE, TEN = "grown", "restart, n_init=1", "restart, n_init=10"
LOG_LIK, COST, COST_ALL = "log-likelihood per row", "rows x components, K", "rows x components, 1..K"


def generated(n_rows: int = 2000, n_columns: int = 5, n_components: int = 6) -> np.ndarray:
    """Rows of a mixture of overlapping Gaussians of different shapes and weights."""
    rng = np.random.default_rng(0)
    label = rng.choice(n_components, size=n_rows, p=rng.dirichlet(np.full(n_components, 4.0)))
    means = 2.5 * rng.standard_normal((n_components, n_columns))
    shapes = rng.standard_normal((n_components, n_columns, n_columns)) / np.sqrt(n_columns)
    shapes += 0.5 * np.eye(n_columns)
    return means[label] + np.einsum("nij,nj->ni", shapes[label], rng.standard_normal((n_rows, n_columns)))


def growth(folder: Path = SHARED, quick: bool = False) -> Iterator[Record]:
    most, seeds = (3, 1) if quick else (MOST, SEEDS)
    sets = {"generated": generated(300) if quick else generated()}
    if not quick:
        sets["waveform"] = load("waveform", folder).X
    for name, X in sets.items():
        for structure in ("VVV", "VVI"):
            yield from _compare(f"{name} {len(X)}x{X.shape[1]}, {structure}", X, structure, most, seeds)


def _compare(name: str, X: np.ndarray, structure: str, most: int, seeds: int) -> Iterator[Record]:
    results = {
        GROWN: [_grown(X, structure, most, seed) for seed in range(seeds)],
        ONCE: [_restarted(X, structure, most, seed, 1) for seed in range(seeds)],
        TEN: [_restarted(X, structure, most, seed, 10) for seed in range(seeds)],
    }
    for method, runs in results.items():
        log_lik, cost = np.moveaxis(np.array(runs), 2, 0)  # each (seeds, K)
        upto = cost.cumsum(axis=1)
        at = upto if method == GROWN else cost
        for metric, values in ((LOG_LIK, log_lik / len(X)), (COST, at), (COST_ALL, upto)):
            for k, column in enumerate(values.T, start=1):
                sd = float(column.std(ddof=1)) if seeds > 1 else None
                yield Record(f"{name}, K={k}", method, metric, float(column.mean()), sd, seeds)


def _grown(X: np.ndarray, structure: str, most: int, seed: int) -> list[tuple[float, float]]:
    """(log-likelihood, rows x components) of each stage."""
    model = GaussianMixture(
        most, structure, search=Search(growth="incremental"), prior=None, random_state=seed, n_jobs=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    return [(stage.log_likelihood, stage.evaluations) for stage in model.path_]


def _restarted(X: np.ndarray, structure: str, most: int, seed: int, n_init: int) -> list[tuple[float, float]]:
    options = {"n_init": n_init, "prior": None, "random_state": seed, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = GaussianMixture("auto", structure, search=Search(max_components=most), **options).fit(X)
    lines = sorted(model.search_, key=lambda line: line["n_components"])
    assert [line["n_components"] for line in lines] == list(range(1, most + 1))
    return [(line["log_likelihood"], line["evaluations"]) for line in lines]


def layout(records: Iterable[Record]) -> str:
    """A table for each set: a line for each K."""
    by = {(r.set, r.method, r.metric): r for r in records}
    lines: list[str] = []
    last = ""
    for name in dict.fromkeys(r[0] for r in by):
        title, k = name.rsplit(", K=", 1)
        if title != last:
            lines += ["", f"{title}: log-likelihood per row (sd over seeds); millions of rows x components", HEAD]
            last = title
        liks = (by[name, method, LOG_LIK] for method in (GROWN, ONCE, TEN))
        costs = [by[name, *key].mean / 1e6 for key in COSTS]
        values = [f"{r.mean:9.4f} ({r.sd or 0:.4f})" for r in liks] + [f"{cost:9.2f}" for cost in costs]
        lines.append(f"{k:>2} " + " ".join(values))
    return "\n".join(lines)


COSTS = ((GROWN, COST), (ONCE, COST), (TEN, COST), (ONCE, COST_ALL), (TEN, COST_ALL))
HEAD = " K " + " ".join(
    [f"{title:>18}" for title in ("grown", "n_init=1", "n_init=10")]
    + [f"{title:>9}" for title in ("grown", "init 1", "init 10", "1, 1..K", "10, 1..K")]
)
