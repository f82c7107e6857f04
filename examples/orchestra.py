"""The orchestra: classes made of the same hidden groups need shared components, not a mixture each.

An orchestra of flutes, saxophones, clarinets and violins is to be parted into metal and wood by sound alone (document
000, section V). Most flutes are of metal, some are of wood; with clarinets it is the other way round. So each material
sounds like three instruments, and two of these sound in both. `SharedMixtureClassifier` has one set of components and
learns how much of each belongs to which class; `MixtureClassifier` learns a mixture for each class alone, the shared
groups twice, from part of the rows each.

    python examples/orchestra.py [FOLDER]      (about 15 s; pictures go to FOLDER, or to a temporary folder)

Prints the test error, the log-loss and the number of parameters of each model over the number of training rows, mean
and standard error over 10 training tables, beside the exact Bayes error. The shared model takes the best of four starts
(n_init=4), the others have their default. Needs matplotlib.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.datasets import Orchestra, make_orchestra
from mixent.evaluate import ComponentsDisplay, RegionsDisplay, error_report

SIZES = (100, 300, 1000, 3000)
SEEDS = range(10)
N_TEST = 20_000
SHOWN_SIZE = 1000  # training rows of the maps
MODELS = {"shared, 4": SharedMixtureClassifier(4, n_init=4, random_state=0)} | {
    f"per class, {k} + {k}": MixtureClassifier(k, random_state=0) for k in (1, 2, 3, 4)
}


def measure(sizes: Any = None, seeds: Any = None) -> dict[tuple[int, str], np.ndarray]:
    """(training rows, model): (seeds, 3) of error - Bayes error, log-loss and parameters, on the same test rows.

    Errors are expectations under the exact p(class | x) of the test rows, so the noise of test labels is not in them.
    """
    test = make_orchestra(N_TEST, random_state=999, return_posterior=True)
    rows, label = np.arange(N_TEST), np.searchsorted(test.classes, test.y)
    found: dict[tuple[int, str], list] = {}
    for size in sizes or SIZES:
        for seed in seeds or SEEDS:
            train = make_orchestra(size, random_state=seed)
            for name, model in MODELS.items():
                proba = model.fit(train.X, train.y).predict_proba(test.X)
                excess = test.true_proba.max(axis=1) - test.true_proba[rows, proba.argmax(axis=1)]
                loss = -np.log(proba[rows, label])
                found.setdefault((size, name), []).append((excess.mean(), loss.mean(), model.n_parameters_))
    return {key: np.array(rows) for key, rows in found.items()}


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean over the seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def show_table(found: dict[tuple[int, str], np.ndarray], bayes: float) -> None:
    """Print what was measured."""
    print(f"Exact Bayes error {100 * bayes:.2f} %. Mean and standard error over {len(SEEDS)} training tables:\n")
    print(f"{'rows':>5}  {'model':<17}{'parameters':>11}{'error %':>16}{'above Bayes %':>16}{'log-loss, nats':>19}")
    for (size, name), rows in found.items():
        excess, se = mean_and_error(100 * rows[:, 0])
        loss, loss_se = mean_and_error(rows[:, 1])
        cells = f"{100 * bayes + excess:.2f} ± {se:.2f}", f"{excess:.2f}", f"{loss:.4f} ± {loss_se:.4f}"
        print(f"{size:>5}  {name:<17}{rows[0, 2]:>11.0f}{cells[0]:>16}{cells[1]:>16}{cells[2]:>19}")


def draw_parameters(found: dict[tuple[int, str], np.ndarray], bayes: float, path: Path) -> None:
    """Error against the number of parameters, a panel for each number of training rows."""
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys(size for size, _ in found))
    figure = Figure(figsize=(2.9 * len(sizes), 3.4), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(sizes), sharey=True))
    for ax, size in zip(axes, sizes):
        for name, shade, mark in (("shared", "#D55E00", "D"), ("per class", "#0072B2", "o")):
            rows = [r for (s, n), r in found.items() if s == size and n.startswith(name)]
            values = np.array([mean_and_error(100 * (bayes + r[:, 0])) for r in rows])
            n_free = [r[0, 2] for r in rows]
            label = "4 shared components" if name == "shared" else "1, 2, 3, 4 components per class"
            ax.errorbar(n_free, *values.T, color=shade, marker=mark, ms=5, lw=1.3, capsize=3, label=label)
        ax.axhline(100 * bayes, color="#333333", ls="--", lw=1, label="exact Bayes error")
        ax.set(title=f"{size} training rows", xlabel="free parameters")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("error (%)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(path, dpi=120)


def draw_map(model: Any, rows: Orchestra, title: str, path: Path) -> None:
    """The data, the components and the learned boundary, with the exact one beside it."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(7.6, 4.8), layout="constrained")
    ax = figure.subplots()
    display = RegionsDisplay.from_estimator(model, rows.X, rows.y).plot(ax)
    mesh = np.stack([axis.ravel() for axis in np.meshgrid(*display.grid)], axis=1)
    shape = (len(display.grid[1]), len(display.grid[0]))
    lines = {"learned boundary": (model.predict_proba(mesh), "#000000", "-")}
    lines["exact boundary"] = (rows.posterior(mesh), "#CC79A7", (0, (4, 1.5)))
    handles, labels = list(ax.get_legend().legend_handles), [text.get_text() for text in ax.get_legend().get_texts()]
    for name, (proba, shade, dash) in lines.items():
        ax.contour(*display.grid, proba[:, 0].reshape(shape), levels=[0.5], colors=shade, linestyles=[dash], zorder=4)
        handles.append(Line2D([], [], color=shade, ls=dash))
        labels.append(name)
    ax.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small")
    ax.set(title=title, xlabel="first feature", ylabel="second feature")
    figure.savefig(path, dpi=120)


def draw_components(model: Any, path: Path) -> None:
    """Which component speaks for which class."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 2.8), layout="constrained")
    ComponentsDisplay.from_estimator(model).plot(figure.subplots())
    figure.savefig(path, dpi=120)


def main(folder: Path) -> None:
    """Measure, print, draw."""
    rows = make_orchestra(SHOWN_SIZE, random_state=0)
    found = measure()
    show_table(found, rows.bayes_error)
    folder.mkdir(parents=True, exist_ok=True)
    draw_parameters(found, rows.bayes_error, folder / "parameters.png")
    for name, title, file in (
        ("shared, 4", "4 shared components", "shared.png"),
        ("per class, 3 + 3", "3 components for each class", "per_class.png"),
    ):
        draw_map(MODELS[name].fit(rows.X, rows.y), rows, f"{title}, {SHOWN_SIZE} rows", folder / file)
    draw_components(MODELS["shared, 4"], folder / "components.png")
    test = make_orchestra(N_TEST, random_state=999, return_posterior=True)
    print(f"\nThe shared model of {SHOWN_SIZE} rows, in full:")
    print(error_report(MODELS["shared, 4"], test.X, test.y, true_proba=test.true_proba))
    print(f"\nPictures in {folder.resolve()}: " + ", ".join(sorted(path.name for path in folder.glob("*.png"))))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="orchestra-")))
