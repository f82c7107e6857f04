"""How long `import mixent` takes beside what any scikit-learn estimator must import, and what it loads."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.speed.records import Record

ROOT = Path(__file__).parents[2]
UNWANTED = ("matplotlib", "pandas", "polars", "pyarrow", "narwhals", "rich", "typer")


def imports(repeats: int = 7) -> list[Record]:
    statements = "import mixent", "from mixent import GaussianMixture", "import sklearn.base, scipy.linalg"
    seconds: dict[str, list[float]] = {statement: [] for statement in statements}
    for _ in range(repeats):
        for statement, times in seconds.items():
            began = time.perf_counter()
            _python(statement)
            times.append(time.perf_counter() - began)
    ours, all_of_it, base = (min(times) for times in seconds.values())
    loaded = _python(f"import sys, mixent; print(sum(name in sys.modules for name in {UNWANTED}))")
    metric = "times sklearn.base, scipy.linalg"
    return [
        Record("import mixent", "mixent", metric, ours / base, None, repeats, 1.3, "issue 2"),
        Record(
            "import mixent", "mixent", "plot, frame or CLI libraries loaded", float(loaded), None, 1, 0.0, "issue 2"
        ),
        Record("import GaussianMixture", "mixent", metric, all_of_it / base, None, repeats),
    ]


def _python(statement: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", statement], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout
