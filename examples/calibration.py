"""
Calibration, before and after
=============================

"90 % sure" should be right in nine cases of ten. Scores of a margin classifier are no log-odds, and densities that take
columns for independent count the same evidence again and again. This example looks at both, before and after the
calibration that mixent does by default.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from mixent import MEDClassifier, MixtureClassifier
from mixent.displays import ReliabilityDisplay, UncertaintyDisplay
from mixent.evaluate import calibration_error, error_rate, log_loss
from mixent.options import Search

cells = load_breast_cancer()
y = np.where(cells.target == 0, "malignant", "benign")
X, new, label, truth = train_test_split(cells.data, y, train_size=200, stratify=y, random_state=0)


def measures(model: MEDClassifier | MixtureClassifier) -> tuple[float, float, float]:
    """Error, log-loss (nats) and calibration error of a fitted model on new rows."""
    proba, classes = model.predict_proba(new), model.classes_
    error = error_rate(truth, classes[proba.argmax(axis=1)])
    return error, log_loss(truth, proba, classes), calibration_error(truth, proba, classes)


# %%
# Scores that are no probabilities
# --------------------------------
# ``calibration=None`` takes the discriminant function for log-odds. ``"temperature"`` multiplies it by one number
# learned from rows held out; ``"affine"``, the default, has an offset for each class besides.

ways = (None, "temperature", "affine")
margins = {way: MEDClassifier("rbf", C=1, calibration=way, random_state=0).fit(X, label) for way in ways}
results = {way: measures(model) for way, model in margins.items()}
for way, (error, loss, off) in results.items():
    print(f"{way!s:12} error {error:.1%}, log-loss {loss:.3f} nats, calibration error {off:.1%}")

# %%
# Left, the raw scores are underconfident: rows with probability 70 % are nearly always right. Right, after calibration.

figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.4), layout="constrained")
for ax, way in zip(axes, (None, "affine")):
    ReliabilityDisplay.from_estimator(margins[way], new, truth, ax=ax)
    ax.set_title(f"calibration={way!r}", loc="left", fontsize="medium")
plt.show()

# %%
# Densities that are too sure
# ---------------------------
# Thirty strongly dependent columns, treated as independent: the posterior is 0 or 1, also where it is wrong. With a
# search (the default) mixent learns a temperature beside the structure, and the densities count for less.

naive = MixtureClassifier(1, "VVI", random_state=0).fit(X, label)
searched = MixtureClassifier("auto", ["VVI"], search=Search(max_components=2), random_state=0).fit(X, label)
density = {"fixed structure": measures(naive), "searched, with a temperature": measures(searched)}
for name, (error, loss, off) in density.items():
    print(f"{name:30} error {error:.1%}, log-loss {loss:.3f} nats, calibration error {off:.1%}")

figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.4), layout="constrained")
for ax, (name, model) in zip(axes, (("fixed structure", naive), ("searched, with a temperature", searched))):
    ReliabilityDisplay.from_estimator(model, new, truth, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
plt.show()

# %%
# Where are the errors?
# ---------------------
# 1 less the largest probability, row by row: errors should be where the model is in doubt.

UncertaintyDisplay.from_estimator(margins["affine"], new, truth)
plt.show()
