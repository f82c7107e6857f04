"""An arc round a core: two classes that no straight line parts, as in Figures 5 and 6 of document 001.

A linear discriminant fails; one in the space of a cubic kernel does not. Gaussians fitted to each class by maximum
likelihood describe the rows, an arc that is no Gaussian among them; those of maximum entropy discrimination are moved
to where they part the classes.

    python examples/arc.py [FOLDER]      (about 20 s; the picture goes to FOLDER, or to a temporary folder)

Prints errors on the training rows and on 5000 new ones, mean and standard error over 20 training tables of 120 rows,
and draws the four boundaries for the first table. Needs matplotlib.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mixent import MEDClassifier, MEDGaussianClassifier, MixtureClassifier
from mixent.evaluate import BoundaryDisplay

N_ROWS, N_TEST = 120, 5000
SEEDS = range(20)
TEST_SEED = 10_000


def make_rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """As many rows of the arc as of the core."""
    rng = np.random.default_rng(seed)
    turn = rng.uniform(0.05, 0.95, n // 2) * np.pi
    arc = 3 * np.c_[np.cos(turn), np.sin(turn)] + rng.normal(0, 0.45, (n // 2, 2))
    core = rng.normal([0, 0.6], [0.8, 0.6], (n - n // 2, 2))
    return np.r_[arc, core], np.repeat(["arc", "core"], [n // 2, n - n // 2])


def models(seed: int) -> dict[str, Any]:
    """The four of Figures 5 and 6."""
    return {
        "linear MED": MEDClassifier(c=5, random_state=seed),
        "MED, cubic kernel": MEDClassifier("poly", degree=3, c=5, random_state=seed),
        "Gaussians by maximum likelihood": MixtureClassifier(1, "VVV", random_state=seed),
        "MED Gaussians": MEDGaussianClassifier(c=5, random_state=seed),
    }


def measure(seeds: Iterable[int] | None = None) -> dict[str, np.ndarray]:
    """Of every model (tables, 2): training and test error."""
    new_X, new_y = make_rows(N_TEST, TEST_SEED)
    found: dict[str, list] = {}
    for seed in SEEDS if seeds is None else seeds:
        X, y = make_rows(N_ROWS, seed)
        for name, model in models(seed).items():
            model.fit(X, y)
            found.setdefault(name, []).append([1 - model.score(X, y), 1 - model.score(new_X, new_y)])
    return {name: np.array(errors) for name, errors in found.items()}


def show_table(found: dict[str, np.ndarray]) -> None:
    """Errors in per cent, mean and standard error."""
    n = len(next(iter(found.values())))
    print(f"Errors in %, mean ± standard error over {n} training tables of {N_ROWS} rows\n")
    print(f"{'':34}{'training':>14}{'test':>14}")
    for name, errors in found.items():
        spread = errors.std(axis=0, ddof=1) / np.sqrt(n)
        print(f"{name:34}" + "".join(f"{100 * m:8.2f} ± {100 * s:.2f}" for m, s in zip(errors.mean(axis=0), spread)))


def draw(path: Path) -> None:
    """The four boundaries."""
    import matplotlib.pyplot as plt

    X, y = make_rows(N_ROWS, SEEDS[0])
    figure, axes = plt.subplots(2, 2, figsize=(11, 8.2), layout="constrained", sharex=True, sharey=True)
    for ax, (name, model) in zip(axes.flat, models(SEEDS[0]).items()):
        BoundaryDisplay.from_estimator(model.fit(X, y), X, y).plot(ax)
        ax.set_title(name, loc="left", fontsize="medium")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(folder: Path) -> None:
    """Fit, print, draw."""
    show_table(measure())
    folder.mkdir(parents=True, exist_ok=True)
    draw(folder / "arc.png")
    print(f"\nPicture: {(folder / 'arc.png').resolve()}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="arc-")))
