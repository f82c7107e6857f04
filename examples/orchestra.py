"""
The orchestra: components shared by all classes
===============================================

An orchestra of flutes, saxophones, clarinets and violins is to be parted into metal and wood by sound alone (document
000, section V). Most flutes are of metal, some are of wood; with clarinets it is the other way round. So each material
sounds like three instruments, and two of these sound in both. :class:`mixent.SharedMixtureClassifier` has one set of
components and learns how much of each belongs to which class; :class:`mixent.MixtureClassifier` learns a mixture for
each class alone, the shared groups twice, from part of the rows each.

``python examples/orchestra.py --full`` repeats the table over 10 training tables of 100 to 3000 rows (about 15 s).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from sklearn.base import clone

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.datasets import Orchestra, make_orchestra
from mixent.displays import ComponentsDisplay, RegionsDisplay
from mixent.evaluate import error_report, log_loss

FULL = "--full" in sys.argv
SIZES = (100, 300, 1000, 3000) if FULL else (100, 300, 1000)
SEEDS = range(10) if FULL else range(3)
N_TEST = 20_000
SHOWN_SIZE = 1000  # training rows of the maps
MODELS = {"shared, 4": SharedMixtureClassifier(4, n_init=4, random_state=0)} | {
    f"per class, {k} + {k}": MixtureClassifier(k, random_state=0) for k in (1, 2, 3, 4)
}

# %%
# Two maps
# --------
# The rows, the components and the learned boundary, with the exact one beside it.


def draw_map(ax: plt.Axes, model: Any, rows: Orchestra) -> None:
    """Regions, components, and the learned boundary beside the exact one."""
    display = RegionsDisplay.from_estimator(model, rows.X, rows.y, ax=ax)
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*display.grid)], axis=1)
    shape = (len(display.grid[1]), len(display.grid[0]))
    handles, labels = list(ax.get_legend().legend_handles), [text.get_text() for text in ax.get_legend().get_texts()]
    for name, proba, shade, dash in (
        ("learned boundary", model.predict_proba(mesh), "#000000", "-"),
        ("exact boundary", rows.posterior(mesh), "#CC79A7", (0, (4, 1.5))),
    ):
        ax.contour(*display.grid, proba[:, 0].reshape(shape), levels=[0.5], colors=shade, linestyles=[dash], zorder=4)
        handles.append(Line2D([], [], color=shade, ls=dash))
        labels.append(name)
    ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    ax.set(xlabel="first feature", ylabel="second feature")


rows = make_orchestra(SHOWN_SIZE, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(13.5, 4.8), layout="constrained", sharex=True, sharey=True)
for ax, (name, title) in zip(
    axes, (("shared, 4", "4 shared components"), ("per class, 3 + 3", "3 components for each class"))
):
    draw_map(ax, MODELS[name].fit(rows.X, rows.y), rows)
    ax.set_title(f"{title}, {SHOWN_SIZE} rows", loc="left", fontsize="medium")
plt.show()

# %%
# The classes of the components
# -----------------------------
# Two of them belong to both classes.

ComponentsDisplay.from_estimator(MODELS["shared, 4"])
plt.show()

# %%
# How near to the Bayes error?
# ----------------------------
# The error, the log-loss and the number of parameters over the number of training rows, mean and standard error over
# training tables. Errors are expectations under the exact p(class | x) of the test rows, so the noise of test labels is
# not in them. The shared model takes the best of four starts (``n_init=4``), the others have their default.


def measure(
    sizes: Sequence[int] | None = None, seeds: Sequence[int] | None = None
) -> dict[tuple[int, str], np.ndarray]:
    """(training rows, model): (seeds, 3) of error - Bayes error, log-loss and parameters, on the same test rows.

    Errors are expectations under the exact p(class | x) of the test rows, so the noise of test labels is not in them.
    """
    test = make_orchestra(N_TEST, random_state=999, return_posterior=True)
    rows, label = np.arange(N_TEST), np.searchsorted(test.classes, test.y)
    results: dict[tuple[int, str], list] = {}
    for size in sizes or SIZES:
        for seed in seeds or SEEDS:
            train = make_orchestra(size, random_state=seed)
            for name, model in MODELS.items():
                fitted = clone(model).fit(train.X, train.y)
                proba = fitted.predict_proba(test.X)
                excess = test.true_proba.max(axis=1) - test.true_proba[rows, proba.argmax(axis=1)]
                loss = -np.log(proba[rows, label])
                results.setdefault((size, name), []).append((excess.mean(), loss.mean(), fitted.n_parameters_))
    return {key: np.array(rows) for key, rows in results.items()}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean over the seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def show_table(results: dict[tuple[int, str], np.ndarray], bayes: float) -> None:
    """Print what was measured."""
    print(f"Exact Bayes error {100 * bayes:.2f} %. Mean and standard error over {len(SEEDS)} training tables:\n")
    print(f"{'rows':>5}  {'model':<17}{'parameters':>11}{'error %':>16}{'above Bayes %':>16}{'log-loss, nats':>19}")
    for (size, name), rows in results.items():
        excess, se = mean_and_error(100 * rows[:, 0])
        loss, loss_se = mean_and_error(rows[:, 1])
        cells = f"{100 * bayes + excess:.2f} ± {se:.2f}", f"{excess:.2f}", f"{loss:.4f} ± {loss_se:.4f}"
        print(f"{size:>5}  {name:<17}{rows[0, 2]:>11.0f}{cells[0]:>16}{cells[1]:>16}{cells[2]:>19}")


def draw_parameters(results: dict[tuple[int, str], np.ndarray], bayes: float) -> None:
    """Error against the number of parameters, a panel for each number of training rows."""
    sizes = list(dict.fromkeys(size for size, _ in results))
    figure, axes = plt.subplots(1, len(sizes), figsize=(3.4 * len(sizes), 3.6), layout="constrained", sharey=True)
    for ax, size in zip(np.atleast_1d(axes), sizes):
        for name, shade, mark in (("shared", "#D55E00", "D"), ("per class", "#0072B2", "o")):
            rows = [r for (s, n), r in results.items() if s == size and n.startswith(name)]
            values = np.array([mean_and_error(100 * (bayes + r[:, 0])) for r in rows])
            n_free = [r[0, 2] for r in rows]
            label = "4 shared components" if name == "shared" else "1, 2, 3, 4 components per class"
            ax.errorbar(n_free, *values.T, color=shade, marker=mark, ms=5, lw=1.3, capsize=3, label=label)
        ax.axhline(100 * bayes, color="#333333", ls="--", lw=1, label="exact Bayes error")
        ax.set(title=f"{size} training rows", xlabel="free parameters")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("error (%)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)


results = measure()
show_table(results, rows.bayes_error)
draw_parameters(results, rows.bayes_error)
plt.show()

# %%
# Training for the decision
# -------------------------
# ``training="conditional"`` trains p(class | x) instead of the joint density. It gains where densities are wrong for
# what parts the classes: here the components are restricted to be spherical, which the groups are not.

test = make_orchestra(N_TEST, random_state=999, return_posterior=True)
losses = {}
for objective in ("likelihood", "conditional"):
    round_ones = SharedMixtureClassifier(4, "EII", training=objective, random_state=0).fit(rows.X, rows.y)
    losses[objective] = log_loss(test.y, round_ones.predict_proba(test.X), round_ones.classes_)
    print(f"round components by {objective}: log-loss {losses[objective]:.3f} nats")

# %%
# What is known about the errors
# ------------------------------
# The shared model of 1000 rows in full: errors made and expected, overconfidence, and, as the truth is known here, the
# chain of bounds of Theorem 4.1.

print(error_report(MODELS["shared, 4"], test.X, test.y, true_proba=test.true_proba))
