"""Peak memory of a fit beyond the data, in a process of its own: `python -m benchmarks.speed.memory METHOD n d K`."""

from __future__ import annotations

import resource
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

from benchmarks.speed.cases import Case
from benchmarks.speed.records import SOURCE, Record

ROOT = Path(__file__).parents[2]


def peaks(case: Case, target: float | None = 100.0) -> list[Record]:
    """Ours and scikit-learn's."""
    records = []
    for method in ("mixent", "scikit-learn"):
        sizes = map(str, (case.rows, case.columns, case.components))
        command = [sys.executable, "-m", "benchmarks.speed.memory", method, *sizes]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        wanted = (target, SOURCE) if method == "mixent" and target else (None, None)
        records.append(Record(case.name, method, "peak memory beyond the data, MB", float(printed), None, 1, *wanted))
    return records


def main(method: str, n_rows: int, n_columns: int, n_components: int) -> None:
    fit = (_mixent if method == "mixent" else _scikit_learn)(n_components)
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, n_columns))
    for start in range(0, n_rows, 10_000):  # in place: nothing large besides X ever lives
        part = X[start : start + 10_000]
        rng.standard_normal(out=part)
        part += 3.0 * rng.integers(n_components, size=(len(part), 1))
    before = peak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(X)
    print((peak() - before) / 1e6)


def _mixent(n_components: int):
    from mixent import GaussianMixture

    return GaussianMixture(n_components, prior=None, tol=0.0, max_iter=10, random_state=0).fit


def _scikit_learn(n_components: int):
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(n_components, init_params="k-means++", max_iter=5, random_state=0).fit


def peak() -> int:
    """Bytes: the most this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would begin with the parent's
        return 1024 * next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
