"""
The Fisher kernel: margins for sequences
========================================

Two rows are alike if they would change a model in the same way. :class:`mixent.FisherKernel` turns a mixture or a
hidden Markov model, learned without labels, into features of that kind. So a classifier with margins can be used on
sequences: plenty of unlabelled ones teach what sequences look like, a few labels where the classes part.
"""

import matplotlib.pyplot as plt
import numpy as np

from mixent import FisherKernel, HiddenMarkovModel, HMMClassifier, MEDClassifier
from mixent.displays import MarginsDisplay, RocCurvesDisplay
from mixent.evaluate import error_rate

# %%
# Machines that change their level often, or seldom; a fifth of the steps was not recorded. 40 sequences have a label,
# 600 have none.


def make_sequences(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 30) levels with missing values, and labels."""
    rng = np.random.default_rng(seed)
    fast = rng.random(n) < 0.5
    change = rng.random((n, 30)) < np.where(fast, 0.4, 0.12)[:, None]
    states = (np.cumsum(change, axis=1) + rng.integers(2, size=(n, 1))) % 2
    X = 2.5 * states + rng.normal(size=states.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, np.where(fast, "fast", "slow")


X, y = make_sequences(40, seed=1)
unlabelled, _ = make_sequences(600, seed=100)
new, truth = make_sequences(1000, seed=101)

# %%
# One model of all sequences, without labels; its gradients are the features.

chain = HiddenMarkovModel(2).fit(unlabelled)
fisher = FisherKernel(chain, n_samples=2000, random_state=0).fit(unlabelled)
print(f"{fisher.rank_} features for sequences of {X.shape[1]} steps")

# %%
# The classifier
# --------------
# The same classifier with kernels of the 30 columns, and with the Fisher kernel. Beside them a hidden Markov model for
# each class, which is how these sequences were made: where such a model is right, it needs no kernel.

models = {
    "RBF kernel of the columns": MEDClassifier("rbf", C=1, calibration=None),
    "Fisher kernel": MEDClassifier(fisher, C=1, calibration=None),
    "hidden Markov model per class": HMMClassifier(2),
}
errors = {}
for name, model in models.items():
    errors[name] = error_rate(truth, model.fit(X, y).predict(new))
    print(f"{name:30} {errors[name]:.1%} of {len(new)} new sequences wrong")

# %%
RocCurvesDisplay.from_estimators(models, new, truth)
plt.show()

# %%
# The features
# ------------
# The two that differ most between the classes, in standard deviations. A straight line through this picture is a curved
# boundary among sequences.

features, kind = fisher.transform(new), truth == "fast"
gap = np.abs(features[kind].mean(axis=0) - features[~kind].mean(axis=0)) / features.std(axis=0)
first, second = np.argsort(gap)[:-3:-1]
figure, ax = plt.subplots(figsize=(6.0, 4.6), layout="constrained")
for name, shade, mark in (("fast", "#0072B2", "o"), ("slow", "#D55E00", "^")):
    some = np.flatnonzero(truth == name)[:250]
    ax.scatter(features[some, first], features[some, second], s=14, color=shade, marker=mark, alpha=0.7, label=name)
ax.set(xlabel=f"Fisher feature {first}", ylabel=f"Fisher feature {second}")
ax.set_title("250 new sequences of each class", loc="left", fontsize="medium")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# How many of the 40 labelled sequences keep which margin:

MarginsDisplay.from_estimator(models["Fisher kernel"], X, y)
plt.show()
