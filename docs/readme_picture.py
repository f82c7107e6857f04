"""Draws the picture of the README: `python docs/readme_picture.py` (about a minute).

Left: test error on scikit-learn's wine data with 20 % of the cells deleted, against the number of labelled rows.
Right: error of five simulated classifiers combined, against the share of the rarer class in the batch; dashed: always
predict the other class.
Both are means over repetitions with fixed seeds, so that the picture is the same every time.
"""

import io
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mixent import Calibration, Fuser, MixtureClassifier
from mixent.datasets import simulate_votes

PICTURE = Path(__file__).parent / "_static" / "overview.png"
N_LABELLED = (12, 24, 48, 96)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
ACCURACY = (0.9, 0.85, 0.8, 0.75, 0.7)  # one source of each kind, and all shares are shown, good or bad
N_SPLITS, N_BATCHES = 20, 20
INK, BLUE, ORANGE, GRAY = "#333333", "#0072B2", "#D55E00", "#8a8a8a"


def few_labels() -> dict[str, list[float]]:
    """Mean test error in percent of three classifiers for each number of labelled rows."""
    wine = load_wine()
    errors = {"mixent: uses the unlabelled rows too": [], "logistic regression": [], "gradient boosting": []}
    for n in N_LABELLED:
        wrong = []
        for seed in range(N_SPLITS):
            deleted = np.random.default_rng(seed).random(wine.data.shape) < 0.2
            X = np.where(deleted, np.nan, wine.data)
            X, X_test, y, y_test = train_test_split(
                X, wine.target, test_size=60, stratify=wine.target, random_state=seed
            )
            known, _ = train_test_split(np.arange(len(y)), train_size=n, stratify=y, random_state=seed)
            partly = np.full(len(y), None, dtype=object)
            partly[known] = y[known]
            logistic = make_pipeline(
                SimpleImputer(), StandardScaler(), LogisticRegressionCV(cv=3, max_iter=2000, scoring="neg_log_loss")
            )
            boosting = HistGradientBoostingClassifier(min_samples_leaf=5, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of a parameter of logistic regression
                logistic.fit(X[known], y[known])
            models = (MixtureClassifier(1, random_state=0).fit(X, partly), logistic, boosting.fit(X[known], y[known]))
            wrong.append([(model.predict(X_test) != y_test).mean() for model in models])
        for values, mean in zip(errors.values(), np.mean(wrong, axis=0)):
            values.append(100 * mean)
    return errors


def shifted_priors() -> dict[str, list[float]]:
    """Mean error in percent of three combinations for each share of the rarer class."""
    methods = {"mixent: Fuser": "auto", "naive Bayes (product rule)": "product", "majority vote": "majority"}
    errors = {name: [] for name in methods}
    for share in SHARES:
        wrong = []
        for seed in range(N_BATCHES):
            votes = simulate_votes(
                1000,
                priors=(1 - share, share),
                accuracy=ACCURACY,
                correlation=0.5,
                n_calibration=200,
                random_state=seed,
            )
            sources = {name: Calibration.from_predictions(*rows) for name, rows in votes.labelled.items()}
            fits = (Fuser(sources, method=method).fit(votes.answers) for method in methods.values())
            wrong.append([(fit.labels_ != votes.truth).mean() for fit in fits])
        for values, mean in zip(errors.values(), np.mean(wrong, axis=0)):
            values.append(100 * mean)
    return errors


def draw(ax, x, errors, labels):
    """One line for each method, with its name beside it at the position that `labels` gives, in data units."""
    styles = ((BLUE, 2.8, "o"), (ORANGE, 1.7, "s"), (GRAY, 1.7, "^"))
    for (name, values), (color, width, marker), position in zip(errors.items(), styles, labels):
        ax.plot(x, values, color=color, lw=width, marker=marker, ms=5.5, clip_on=False, zorder=3)
        ax.text(*position, name, color=color, weight="bold" if "mixent" in name else "normal", va="center")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#b5b5b5")
    ax.tick_params(colors=INK, length=3)
    ax.grid(axis="y", color="#ececec", lw=0.8)
    ax.set_axisbelow(True)


def picture(left: dict[str, list[float]], right: dict[str, list[float]]) -> bytes:
    """The picture as a PNG file with few colors, so that it is small; the background is white in dark pages, too."""
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK})
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), layout="constrained", facecolor="white")
    figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12, wspace=0.07)
    title = {"loc": "left", "weight": "bold", "fontsize": 11.5, "pad": 14}
    draw(axes[0], N_LABELLED, left, [(13, 2.6), (12.8, 15.9), (18.5, 25.2)])
    axes[0].set(xscale="log", ylim=(0, 27), xlabel="Labelled rows, of 118", ylabel="Test error (%)")
    axes[0].set_xticks(N_LABELLED, N_LABELLED)
    axes[0].minorticks_off()
    axes[0].set_title("Few labels, 20 % of the cells missing", **title)
    draw(axes[1], [100 * share for share in SHARES], right, [(21.5, 6.6), (14, 10.0), (30, 12.2)])
    axes[1].plot([0, 13], [0, 13], color=GRAY, lw=1.2, ls="--", zorder=2)
    axes[1].text(4.2, 2.6, "always predict the frequent class", color=GRAY, va="center")
    axes[1].set(
        xlim=(0, 51), ylim=(0, 13), xlabel="Share of the rarer class (%); 50 % when calibrated", ylabel="Error (%)"
    )
    axes[1].set_yticks([0, 2, 4, 6, 8, 10, 12])
    axes[1].set_title("Five black boxes, no labels, shifted class shares", **title)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, format="png")
    plt.close(figure)
    small = io.BytesIO()
    Image.open(buffer).convert("RGB").quantize(48).save(small, format="png", optimize=True)
    return small.getvalue()


def main() -> None:
    """Compute the errors, print them and write the picture."""
    left, right = few_labels(), shifted_priors()
    for name, values in (left | right).items():
        print(f"{name:45}", *(f"{value:5.1f}" for value in values))
    PICTURE.write_bytes(picture(left, right))
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
