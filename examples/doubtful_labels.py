"""
Labels in doubt, and rows that count
====================================

Labels come from tired people, from rules of thumb, from two readers who disagree. If it is known how doubtful a label
is, state it: instead of a column of labels pass a frame with the probability of each class. The model reads it as a
likelihood: the doubt is about the label, not about the row.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mixent import MixtureClassifier
from mixent.datasets import make_orchestra
from mixent.displays import RegionsDisplay, ReliabilityDisplay
from mixent.evaluate import calibration_error, log_loss

# %%
# Three readers of different care
# -------------------------------
# Each row was labelled by one reader. The first is right in 98 % of the cases, the second in 80 %, the third in 60 %.
# Nobody marked which labels are wrong; it is only known who wrote them.

rng = np.random.default_rng(0)
rows = make_orchestra(900, random_state=0)
test = make_orchestra(10_000, random_state=999)
CARE = np.array([0.98, 0.80, 0.60])
reader = rng.integers(3, size=len(rows.y))
right = rng.random(len(rows.y)) < CARE[reader]
labels = np.where(right, rows.y, np.where(rows.y == "metal", "wood", "metal"))
print(f"{(labels != rows.y).mean():.0%} of the labels are wrong")

# %%
# Three ways to use them
# ----------------------

p_metal = np.where(labels == "metal", CARE[reader], 1 - CARE[reader])
doubt = pd.DataFrame({"metal": p_metal, "wood": 1 - p_metal})
careful = reader == 0

ways = {
    "as if certain": (rows.X, labels),
    "the careful reader alone": (rows.X[careful], labels[careful]),
    "with their doubt": (rows.X, doubt),
}
models, losses, off = {}, {}, {}
for name, (X, y) in ways.items():
    models[name] = MixtureClassifier(3, "VVV", random_state=0).fit(X, y)
    proba = models[name].predict_proba(test.X)
    losses[name] = log_loss(test.y, proba, models[name].classes_)
    off[name] = calibration_error(test.y, proba, models[name].classes_)
    print(f"{name:26} log-loss {losses[name]:.3f} nats, calibration error {off[name]:.1%}")

# %%
# Taken as certain, wrong labels become overlap of the classes, and the model is too timid; the careful reader alone has
# seen a third of the rows. With the doubt beside the label every row is used for what it is worth.

figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.4), layout="constrained")
for ax, name in zip(axes, ("as if certain", "with their doubt")):
    ReliabilityDisplay.from_estimator(models[name], test.X, test.y, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
plt.show()

# %%
RegionsDisplay.from_estimator(models["with their doubt"], rows.X, labels)
plt.title("boundary learned from labels of which many are wrong", loc="left", fontsize="medium")
plt.show()

# %%
# Weights are counts
# ------------------
# A row that stands for three is given weight 3, and the fit is the same as with the row three times.

count = rng.integers(1, 4, size=len(rows.y))
weighted = MixtureClassifier(1, "VVV", random_state=0).fit(rows.X, labels, sample_weight=count)
repeated = MixtureClassifier(1, "VVV", random_state=0).fit(np.repeat(rows.X, count, axis=0), np.repeat(labels, count))
apart = np.abs(weighted.predict_proba(test.X) - repeated.predict_proba(test.X)).max()
print(f"largest difference of two probabilities: {apart:.0e}")
