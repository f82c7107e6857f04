"""
Two shapes: classes that moments cannot distinguish
===================================================

Each class has a density of three Gaussians. The densities are clearly different, but their means (0.02) and variances
(55.30) are equal, as in Figure 2.1 of document 004 (section 2.4). Constraints on means and second moments then carry
nothing about the class, and the maximum entropy posterior is 1/2 everywhere: half of all rows are wrong. The hidden
component of a mixture, as a probabilistic instance, locates a row on the axis, and the classifier comes close
to the Bayes error.

``python examples/shapes.py --full`` repeats the table over 10 training tables instead of 2 (about 10 s).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import trapezoid

from mixent import MaxEntClassifier
from mixent.displays import ConstraintsDisplay
from mixent.options import ComponentFeatures

MEAN, VARIANCE = 0.02, 55.30  # of both classes
N_ROWS = 3000
SEEDS = range(10) if "--full" in sys.argv else range(2)
KINDS = ("union", "class", "pooled", "bins", "moments")
GRID = np.linspace(-40.0, 40.0, 8001)
BLUE, ORANGE, INK = "#0072B2", "#D55E00", "#333333"

# %%
# The two classes
# ---------------
# Moved and stretched until mean and variance agree to the last digit. Their overlap, by quadrature, is the least error
# any classifier can make.


@dataclass(frozen=True)
class Shape:
    """A mixture of Gaussians with the common mean and variance."""

    weights: np.ndarray  # (3,)
    means: np.ndarray  # (3,)
    stds: np.ndarray  # (3,)

    @staticmethod
    def of(weights: tuple[float, ...], means: tuple[float, ...], stds: tuple[float, ...]) -> Shape:
        """Moved and stretched until mean and variance are the common ones."""
        p, m, s = np.array(weights), np.array(means), np.array(stds)
        scale = np.sqrt(VARIANCE / (p @ ((m - p @ m) ** 2 + s**2)))
        return Shape(p, MEAN + scale * (m - p @ m), scale * s)

    def density(self, x: np.ndarray) -> np.ndarray:
        """(n,)."""
        z = (x[:, None] - self.means) / self.stds
        return np.exp(-0.5 * z**2) @ (self.weights / (self.stds * np.sqrt(2 * np.pi)))

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """(n,)."""
        k = rng.choice(len(self.means), size=n, p=self.weights)
        return rng.normal(self.means[k], self.stds[k])


# picked among random ones for a Bayes error near 20 %, six components of the pooled rows by BIC (as in the document),
# and a pooled model near the Bayes error; with others BIC may merge components of two classes, and "pooled" fails
SHAPES = {
    "first": Shape.of((0.4, 0.35, 0.25), (-12.0, -3.0, 5.0), (0.75, 1.0, 3.0)),
    "second": Shape.of((0.2, 0.55, 0.25), (-10.0, -1.0, 12.0), (1.5, 3.0, 0.75)),
}


def bayes_error() -> float:
    """The least error any classifier can make, by quadrature; the classes are equally frequent."""
    first, second = (shape.density(GRID) for shape in SHAPES.values())
    return 0.5 * float(trapezoid(np.minimum(first, second), GRID))


first, second = (shape.density(GRID) for shape in SHAPES.values())
figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
for (name, shape), shade in zip(SHAPES.items(), (BLUE, ORANGE)):
    ax.plot(GRID, shape.density(GRID), color=shade, label=f"{name} class")
ax.set(ylabel="density", xlabel="a", xlim=(-20, 22))
ax.set_title(f"two classes of mean {MEAN} and variance {VARIANCE:.2f}", fontsize="medium", loc="left")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Constraints on hidden components
# --------------------------------
# ``features="union"`` fits a mixture to the column in each class; the feature is which of all these components a value
# belongs to. ``"moments"`` constrains means and second moments. Above: the fitted components, and the log-odds each
# adds for the second class. Below: the posteriors of both models beside the exact one.


def make_rows(n: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X (n, 1) and labels (n,), half of each class."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([shape.sample(n // 2, rng) for shape in SHAPES.values()])
    return x[:, None], np.repeat(list(SHAPES), n // 2)


def fit(kind: str, seed: int = 0) -> MaxEntClassifier:
    """A classifier with this kind of constraint on the column, and none on its means beside, as in the document."""
    features = ComponentFeatures(kind, means=False) if kind in ("union", "class", "pooled") else kind
    return MaxEntClassifier(features, prior_variance=10.0, random_state=0).fit(*make_rows(seed=seed))


def draw_components(ax: plt.Axes, model: MaxEntClassifier) -> None:
    """Responsibilities of the fitted components; how far each leans to a class is its multiplier's difference."""
    (term,) = model.layout_.dense
    constraints = model.constraints()
    odds = constraints.multipliers[:, 1] - constraints.multipliers[:, 0]
    owner = np.repeat(list(SHAPES), [len(mixture.means) for mixture in term.mixtures])
    joint = np.concatenate([m.log_joint(GRID) + np.log(p) for m, p in zip(term.mixtures, term.shares)])
    for k, log_density in enumerate(joint):
        shade = BLUE if owner[k] == "first" else ORANGE
        label = f"{constraints.values[k]}: {odds[k]:+.1f} nats".replace("-", "\N{MINUS SIGN}")
        ax.fill_between(GRID, np.exp(log_density), color=shade, alpha=0.25, lw=0)
        ax.plot(GRID, np.exp(log_density), color=shade, lw=1.2, ls=("-", "--", ":")[k % 3], label=label)
    ax.set(ylabel="weighted density")
    title = 'components of "union", and the log-odds each adds for the second class'
    ax.set_title(title, fontsize="medium", loc="left")


models = {kind: fit(kind) for kind in ("union", "moments")}
figure, (above, below) = plt.subplots(2, 1, figsize=(8.4, 6.0), layout="constrained", sharex=True)
draw_components(above, models["union"])
below.plot(GRID, second / (first + second), color=INK, lw=3, alpha=0.3, label="exact")
for kind, shade, dash in (("union", "#009E73", "-"), ("moments", "#CC79A7", (0, (4, 1.5)))):
    below.plot(GRID, models[kind].predict_proba(GRID[:, None])[:, 1], color=shade, ls=dash, label=f'"{kind}"')
below.set_title("probability of the second class", fontsize="medium", loc="left")
below.set(ylabel="P[second class | a]", xlabel="a", ylim=(-0.03, 1.03), xlim=(-20, 22))
for ax in (above, below):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))
plt.show()

# %%
# The same as mixent draws it: what the column adds to the log-odds at each of its values.

ConstraintsDisplay.from_estimator(models["union"])
plt.show()

# %%
# Every kind of constraint
# ------------------------
# Errors on the training rows and on as many new ones, beside the exact Bayes error.


def measure(kinds: Sequence[str] = KINDS, seeds: Sequence[int] = SEEDS) -> dict[str, np.ndarray]:
    """Kind: (seeds, 3) of the error on the training rows, on as many new rows, and the values the column became."""
    results = {}
    for kind in kinds:
        rows = []
        for seed in seeds:
            model = fit(kind, seed)
            errors = [1 - model.score(*make_rows(seed=number)) for number in (seed, 1000 + seed)]
            rows.append((*errors, len(model.constraints().values)))
        results[kind] = np.array(rows)
    return results


def show_table(results: dict[str, np.ndarray]) -> None:
    """Print what was measured."""
    n = len(next(iter(results.values())))
    print(f"Exact Bayes error {100 * bayes_error():.2f} %. {N_ROWS} training rows, {N_ROWS} test rows;")
    print(f"mean and standard error over {n} training tables:\n")
    print(f"{'features':<10}{'values':>8}{'training error %':>20}{'test error %':>18}")
    for kind, rows in results.items():
        mean, error = 100 * rows.mean(axis=0), 100 * rows.std(axis=0, ddof=1) / np.sqrt(n)
        cells = [f"{mean[i]:.2f} ± {error[i]:.2f}" for i in (0, 1)]
        print(f"{kind:<10}{rows[:, 2].mean():>8.1f}{cells[0]:>20}{cells[1]:>18}")


results = measure()
show_table(results)
