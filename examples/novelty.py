"""
Novelty: rows unlike all others
===============================

A detector learns from typical rows alone and scores how typical a new row is. :class:`mixent.MEDNoveltyDetector`
asks of every training row to be about as probable as a typical one; ``objective="bayes"`` is the same model fitted as
usual. Here the typical rows are benign cells, and the malignant ones are never shown.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from mixent import MEDNoveltyDetector
from mixent.displays import LikelihoodsDisplay, RocCurvesDisplay

# %%
# Ten measurements of a cell, 357 benign samples. The first 200 are learned from.

cells = load_breast_cancer(as_frame=True)
X = cells.data.iloc[:, :10]
benign, malignant = X[cells.target == 1], X[cells.target == 0]
typical, held_out = benign.iloc[:200], benign.iloc[200:]
groups = {"benign": held_out, "malignant": malignant}  # all of them new

# %%
# Fit, score, decide
# ------------------
# ``score_samples`` is an expected log-probability in nats, low for rows that are not typical. The threshold ``offset_``
# is where about ``contamination`` of typical rows, 5 % by default, fall below.

detector = MEDNoveltyDetector("product").fit(typical)
flagged = {name: (detector.predict(rows) == -1).mean() for name, rows in groups.items()}
for name, share in flagged.items():
    print(f"{share:.1%} of {len(groups[name])} {name} samples are called novel")

# %%
# The level set makes the training rows more evenly probable than the usual fit does: rows at the edge count more than
# once, typical ones not at all.

LikelihoodsDisplay.from_estimator(detector)
plt.show()
print(f"{len(detector.support_)} of {len(typical)} rows count")

# %%
# How well are they distinguished?
# --------------------------------
# The curve has every threshold. ``"product"`` takes columns as independent, ``"tree"`` sums over all trees of
# columns, ``"gaussian"`` has all correlations. On these rows the usual fit does as well as the level set: a level
# set helps where the model is too simple for the rows. ``objective`` lets you compare, if you have some rows of the
# other kind.

rows = X.loc[[*held_out.index, *malignant.index]]
kind = ["typical"] * len(held_out) + ["novel"] * len(malignant)
models = {
    "product": detector,
    "tree": MEDNoveltyDetector("tree").fit(typical),
    "gaussian": MEDNoveltyDetector("gaussian").fit(typical),
    "product, usual fit": MEDNoveltyDetector("product", objective="bayes").fit(typical),
}
curves = RocCurvesDisplay.from_estimators(models, rows, kind, pos_label="typical")
plt.show()
area = {name: curve.auc for name, curve in curves.curves.items()}
print({name: round(value, 3) for name, value in area.items()})

# %%
# Rows with missing values
# ------------------------
# What is not known is not held against a row. With three cells in ten missing, no more of the benign samples are called
# novel, and fewer of the malignant ones: there is less to see.

rng = np.random.default_rng(0)
with_missing = {}
for name, whole in groups.items():
    with_missing[name] = (detector.predict(whole.mask(rng.random(whole.shape) < 0.3)) == -1).mean()
    print(f"{name}: {with_missing[name]:.1%} with missing values, {flagged[name]:.1%} without")
