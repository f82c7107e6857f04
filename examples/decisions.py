"""
Shifted priors, costs, and a reject option
==========================================

A classifier was trained where half of the rows were of one class; now it is one in ten, errors have different prices,
and a person can look at doubtful cases. None of this needs training again: probabilities are corrected and decisions
taken from them.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from mixent import MixtureClassifier
from mixent.evaluate import error_rate, log_loss
from mixent.studies import resample_priors

# %%
# Five measurements of a cell. In training half of the samples are malignant; in the batch one in ten is, which is
# not known.

bunch = load_breast_cancer(as_frame=True)
X, y = bunch.data.iloc[:, [0, 1, 4, 8, 9]], np.where(bunch.target == 0, "malignant", "benign")
X_one, X_two, y_one, y_two = train_test_split(X, y, train_size=0.5, stratify=y, random_state=0)
even = resample_priors(y_one, {"malignant": 0.5, "benign": 0.5}, random_state=0)
rare = resample_priors(y_two, {"malignant": 0.1, "benign": 0.9}, size=600, random_state=0)
batch, truth = X_two.iloc[rare], y_two[rare]

model = MixtureClassifier(1, "EEE", random_state=0).fit(X_one.iloc[even], y_one[even])
shifted = model.adjust_priors(batch)  # a copy; the batch needs no labels
before, after = (log_loss(truth, m.predict_proba(batch), m.classes_) for m in (model, shifted))
share = dict(zip(shifted.classes_, shifted.class_prior_))["malignant"]
print(f"estimated share of malignant: {share:.1%}; in truth {(truth == 'malignant').mean():.1%}")
wrong = [error_rate(truth, m.predict(batch)) for m in (model, shifted)]
print(f"as trained: log-loss {before:.3f} nats, error {wrong[0]:.1%}")
print(f"adjusted:   log-loss {after:.3f} nats, error {wrong[1]:.1%}")

# %%
# The correction at every share
# -----------------------------
# The same model on batches of other shares: the estimate follows the truth, and so does the log-loss.

shares = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
estimates, losses = [], []
for true_share in shares:
    rows = resample_priors(y_two, {"malignant": true_share, "benign": 1 - true_share}, size=600, random_state=1)
    some = X_two.iloc[rows]
    follow = model.adjust_priors(some)
    estimates.append(follow.class_prior_[1])
    losses.append([log_loss(y_two[rows], m.predict_proba(some), m.classes_) for m in (model, follow)])
losses = np.array(losses)  # (shares, 2)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.0), layout="constrained")
left.plot([0, 1], [0, 1], color="#333333", lw=1, ls="--", label="true share")
left.plot(shares, estimates, "o", color="#0072B2", label="estimate, without labels")
left.axhline(0.5, color="#D55E00", lw=1.2, label="training")
left.set(xlabel="share of malignant in the batch", ylabel="share the model works with", xlim=(0, 0.9), ylim=(0, 0.9))
for values, name, shade, mark in zip(losses.T, ("as trained", "priors adjusted"), ("#D55E00", "#0072B2"), "os"):
    right.plot(shares, values, marker=mark, color=shade, label=name)
right.set(xlabel="share of malignant in the batch", ylabel="log-loss (nats)", ylim=(0, None))
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False)
plt.show()

# %%
# Costs
# -----
# A cancer missed is twenty times as dear as a false alarm. ``costs`` has the predicted class in its rows and the true
# one in its columns; a frame is read by name.

costs = pd.DataFrame({"malignant": {"malignant": 0.0, "benign": 20.0}, "benign": {"malignant": 1.0, "benign": 0.0}})


def mean_cost(labels: np.ndarray, reject: float = 0.0) -> float:
    """What these decisions cost in truth, per row."""
    return float(np.mean([reject if label is None else costs.loc[label, true] for label, true in zip(labels, truth)]))


plain, priced = shifted.predict(batch), shifted.decision(batch, costs=costs)
spent = {"most probable class": mean_cost(plain), "least expected cost": mean_cost(priced.labels)}
for name, labels in (("most probable class", plain), ("least expected cost", priced.labels)):
    missed = ((labels == "benign") & (truth == "malignant")).sum()
    alarms = ((labels == "malignant") & (truth == "benign")).sum()
    print(f"{name}: {missed} missed, {alarms} false alarms, cost {spent[name]:.3f} per row")

figure, axes = plt.subplots(1, 2, figsize=(10, 4.0), layout="constrained")
for ax, (name, labels) in zip(axes, (("most probable class", plain), ("least expected cost", priced.labels))):
    ConfusionMatrixDisplay.from_predictions(truth, labels, ax=ax, cmap="Blues", colorbar=False)
    ax.set_title(name, loc="left", fontsize="medium")
plt.show()

# %%
# The reject option
# -----------------
# If a second look costs 0.3, rows whose best decision is expected to cost more are put aside (label None). The dearer
# the second look, the fewer.

prices = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.0])
aside, total = [], []
for price in prices:
    decided = shifted.decision(batch, costs=costs, reject=price)
    aside.append(decided.rejected.mean())
    total.append(mean_cost(decided.labels, price))
    print(f"a second look at {price:.2f}: {aside[-1]:.1%} put aside, cost {total[-1]:.3f} per row")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(prices, 100 * np.array(aside), "o-", color="#0072B2")
left.set(xlabel="price of a second look", ylabel="rows put aside (%)", ylim=(0, None))
right.plot(prices, total, "o-", color="#0072B2", label="with second looks")
right.axhline(spent["least expected cost"], color="#333333", ls="--", lw=1, label="always decide")
right.axhline(spent["most probable class"], color="#D55E00", lw=1.2, label="most probable class")
right.set(xlabel="price of a second look", ylabel="cost per row", ylim=(0, None))
right.legend(frameon=False)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
