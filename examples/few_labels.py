"""
Few labels, many rows
=====================

Labels are dear, rows are cheap. A mixture is a model of the rows, so rows without a label help to find the components,
and the few labels only have to assign them to classes. Pass the label column as it is: None where the class is
not known.
"""

import matplotlib.pyplot as plt
import numpy as np

from mixent import SharedMixtureClassifier
from mixent.datasets import make_orchestra
from mixent.displays import RegionsDisplay
from mixent.evaluate import log_loss

# %%
# A thousand rows, forty labels
# -----------------------------

rows = make_orchestra(1000, random_state=0)
test = make_orchestra(10_000, random_state=999, return_posterior=True)
bayes_loss = log_loss(test.y, test.true_proba, test.classes)
few = rows.y.astype(object)
few[40:] = None

alone = SharedMixtureClassifier(4, "VVV", random_state=0).fit(rows.X[:40], rows.y[:40])
helped = SharedMixtureClassifier(4, "VVV", random_state=0).fit(rows.X, few)

figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, model, title in ((axes[0], alone, "the 40 labelled rows alone"), (axes[1], helped, "all 1000 rows")):
    RegionsDisplay.from_estimator(model, rows.X, few, ax=ax)
    for kind, shade, mark in (("metal", "#0072B2", "o"), ("wood", "#D55E00", "^")):  # the labelled ones, large
        ax.scatter(*rows.X[:40][rows.y[:40] == kind].T, s=60, color=shade, marker=mark, edgecolor="white", zorder=5)
    ax.set_title(f"learned from {title}", loc="left", fontsize="medium")
    ax.set(xlabel="first feature", ylabel="second feature")
plt.show()

# %%
# How many labels is that worth?
# ------------------------------
# Log-loss on 10 000 new rows, mean and standard error over six training tables of 1000 rows, of which some are
# labelled.

N_LABELS, SEEDS = (20, 40, 80, 160, 320), range(6)


def loss_of(model: SharedMixtureClassifier) -> float:
    """On new rows, nats."""
    return log_loss(test.y, model.predict_proba(test.X), model.classes_)


losses = {"labelled rows alone": [], "and all other rows": []}
for n in N_LABELS:
    alone_n, helped_n = [], []
    for seed in SEEDS:
        table = make_orchestra(1000, random_state=seed)
        some = table.y.astype(object)
        some[n:] = None
        base = SharedMixtureClassifier(4, "VVV", n_init=1, random_state=0)
        alone_n.append(loss_of(base.fit(table.X[:n], table.y[:n])))
        helped_n.append(loss_of(base.fit(table.X, some)))
    losses["labelled rows alone"].append(alone_n)
    losses["and all other rows"].append(helped_n)
losses = {name: np.array(values) for name, values in losses.items()}  # (numbers of labels, seeds)

figure, ax = plt.subplots(figsize=(6.6, 4.0), layout="constrained")
for (name, values), shade, mark in zip(losses.items(), ("#D55E00", "#0072B2"), ("o", "s")):
    error = values.std(axis=1, ddof=1) / np.sqrt(len(SEEDS))
    ax.errorbar(N_LABELS, values.mean(axis=1), error, color=shade, marker=mark, capsize=3, label=name)
    print(f"{name:20}", *(f"{mean:.3f} ± {se:.3f}" for mean, se in zip(values.mean(axis=1), error)), sep="  ")
ax.axhline(bayes_loss, color="#333333", ls="--", lw=1, label="exact posterior")
ax.set(xscale="log", xlabel="labelled rows of 1000", ylabel="log-loss (nats)")
ax.set_xticks(N_LABELS, N_LABELS)
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# This works because the components are about right for these rows. Where they are not, rows without a label can move
# the model away from the boundary: compare on labelled rows that were held out, with
# :func:`mixent.evaluate.cross_validate`, which leaves rows without a label in every training part.
