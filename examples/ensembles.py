"""
Stacking and boosting, compared with a test
===========================================

Several classifiers, none of them right everywhere. Votes throw away what each is good for;
:class:`mixent.MaxEntStackingClassifier` learns what every answer of every classifier is worth, out of fold. Is it
better than boosting, and can the difference be chance?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from mixent import AdaBoostM1Classifier, MaxEntStackingClassifier, MixtureClassifier
from mixent.displays import ConstraintsDisplay, EnsembleSizeDisplay, ReliabilityDisplay
from mixent.evaluate import five_by_two_f_test, log_loss
from mixent.studies import size_curves

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = X.iloc[:, :10], np.where(y == 0, "malignant", "benign")
rows, new, label, truth = train_test_split(X, y, train_size=300, stratify=y, random_state=0)

# %%
# Three classifiers, stacked
# --------------------------
# ``base_errors_`` are the errors of each, out of fold: what the combination was learned from.

parts = [
    ("naive Bayes", GaussianNB()),
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
    ("mixture", MixtureClassifier(1, "VVV")),
]
stack = MaxEntStackingClassifier(parts, random_state=0).fit(rows, label)
boost = AdaBoostM1Classifier(GaussianNB(), 20, random_state=0).fit(rows, label)
print("out of fold:", {name: f"{error:.1%}" for (name, _), error in zip(parts, stack.base_errors_)})
losses = {
    name: log_loss(truth, model.predict_proba(new), model.classes_)
    for name, model in (("stacked", stack), ("boosted", boost))
}
print("log-loss on new rows:", {name: round(loss, 3) for name, loss in losses.items()})

# %%
# What an answer is worth: nats for the log-odds of malignant, as each classifier's probability of it rises.

ConstraintsDisplay.from_estimator(stack)
plt.show()

# %%
# Votes are too sure of themselves. The stack's probabilities have the lower log-loss.

sure = boost.predict_proba(new).max(axis=1) > 0.99
right = (boost.predict(new) == truth)[sure].mean()
print(f"boosted: more than 99 % sure of {sure.sum()} rows, and right in {right:.1%} of them")

figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.4), layout="constrained")
for ax, (name, model) in zip(axes, (("stacked", stack), ("boosted", boost))):
    ReliabilityDisplay.from_estimator(model, new, truth, ax=ax)
    ax.set_title(f"{name}: log-loss {losses[name]:.3f} nats", loc="left", fontsize="medium")
plt.show()

# %%
# How large?
# ----------
# Boosted naive Bayes by votes, and the same stages combined by maximum entropy, on common folds.

curves = size_curves(
    {
        "votes": lambda size: AdaBoostM1Classifier(GaussianNB(), size, random_state=0),
        "maximum entropy": lambda size: MaxEntStackingClassifier(
            AdaBoostM1Classifier(GaussianNB(), size, random_state=0), prior_variance=1.0, random_state=0
        ),
    },
    rows,
    label,
    sizes=[1, 3, 6],
    folds=4,
)
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.0), layout="constrained")
for ax, metric in zip(axes, ("error", "log_loss")):
    EnsembleSizeDisplay.from_curves(curves, ax=ax, metric=metric, band=False)
plt.show()
print(curves.difference("maximum entropy", "votes", size=6, metric="log_loss"))

# %%
# Can it be chance?
# -----------------
# Folds share rows, and a plain t test of their differences finds whatever one likes. The 5x2cv F test halves the rows
# five times. Errors are few here, so that differences are noise; the log-loss looks at every row's probability.

tests = {
    metric: five_by_two_f_test(
        MaxEntStackingClassifier(parts, prior_variance=1.0, random_state=0),
        AdaBoostM1Classifier(GaussianNB(), 10, random_state=0),
        X,
        y,
        metric=metric,
    )
    for metric in ("error", "log_loss")
}
for test in tests.values():
    print(test)
