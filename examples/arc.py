"""
An arc round a core: margins and kernels
========================================

Two classes that no straight line parts, as in Figures 5 and 6 of document 001. A linear discriminant fails; one in the
space of a cubic kernel does not. Gaussians fitted to each class by maximum likelihood describe the rows, an arc that is
no Gaussian among them; those of maximum entropy discrimination are moved to where they part the classes.

``python examples/arc.py --full`` repeats the table over 20 training tables instead of 3 (about 20 s).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from mixent import MEDClassifier, MEDGaussianClassifier, MixtureClassifier
from mixent.displays import BoundaryDisplay, MarginsDisplay, MultipliersDisplay
from mixent.options import Polynomial

N_ROWS, N_TEST = 120, 5000
SEEDS = range(20) if "--full" in sys.argv else range(3)
TEST_SEED = 10_000

# %%
# The rows and the four models
# ----------------------------


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
        "linear MED": MEDClassifier(C=5, random_state=seed),
        "MED, cubic kernel": MEDClassifier(Polynomial(3), C=5, random_state=seed),
        "Gaussians by maximum likelihood": MixtureClassifier(1, "VVV", random_state=seed),
        "MED Gaussians": MEDGaussianClassifier(C=5, random_state=seed),
    }


# %%
# Their boundaries
# ----------------
# The thick line is where the discriminant function is zero, the dotted lines where it keeps the margin that is asked
# for. Rows with a ring hold the boundary in place: without any other row it would be the same. Of the Gaussians, dashed
# ellipses are before discrimination and solid ones after.

X, y = make_rows(N_ROWS, SEEDS[0])
fitted = {name: model.fit(X, y) for name, model in models(SEEDS[0]).items()}
figure, axes = plt.subplots(2, 2, figsize=(11, 8.2), layout="constrained", sharex=True, sharey=True)
for ax, (name, model) in zip(axes.flat, fitted.items()):
    BoundaryDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
plt.show()

# %%
# Which rows determine the boundary
# ---------------------------------
# For the cubic kernel: the distribution of the margins, and the multiplier of each row. The optimum comes with a
# certificate, a bound on how far from it the fit can be.

cubic = fitted["MED, cubic kernel"]
print(
    f"{len(cubic.support_)} of {N_ROWS} rows have a multiplier; the fit is within {cubic.gap_:.0e} nats of the optimum"
)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
MarginsDisplay.from_estimator(cubic, X, y, ax=left)
MultipliersDisplay.from_estimator(cubic, ax=right)
plt.show()

# %%
# On new rows
# -----------
# Errors on the training rows and on 5000 new ones, mean and standard error over training tables.


def measure(seeds: Iterable[int] | None = None) -> dict[str, np.ndarray]:
    """Of every model (tables, 2): training and test error."""
    new_X, new_y = make_rows(N_TEST, TEST_SEED)
    errors_by_model: dict[str, list] = {}
    for seed in SEEDS if seeds is None else seeds:
        X, y = make_rows(N_ROWS, seed)
        for name, model in models(seed).items():
            model.fit(X, y)
            errors_by_model.setdefault(name, []).append([1 - model.score(X, y), 1 - model.score(new_X, new_y)])
    return {name: np.array(errors) for name, errors in errors_by_model.items()}


def show_table(results: dict[str, np.ndarray]) -> None:
    """Errors in per cent, mean and standard error."""
    n = len(next(iter(results.values())))
    print(f"Errors in %, mean ± standard error over {n} training tables of {N_ROWS} rows\n")
    print(f"{'':34}{'training':>14}{'test':>14}")
    for name, errors in results.items():
        spread = errors.std(axis=0, ddof=1) / np.sqrt(n)
        print(f"{name:34}" + "".join(f"{100 * m:8.2f} ± {100 * s:.2f}" for m, s in zip(errors.mean(axis=0), spread)))


results = measure()
show_table(results)
