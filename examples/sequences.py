"""
Sequences: classes that differ in order only
============================================

Two machines alternate between a low and a high level. At every single step they look alike; one changes its level
often, the other seldom. A classifier of columns sees nothing. :class:`mixent.HMMClassifier` fits a hidden Markov model
to each class and compares how well they explain the sequence.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

from mixent import HiddenMarkovModel, HMMClassifier
from mixent.displays import ReliabilityDisplay, StatesDisplay

# %%
# A row is a sequence of 30 steps, with missing values where the sensor failed.

rng = np.random.default_rng(0)
fast = rng.random(600) < 0.5
change = rng.random((600, 30)) < np.where(fast, 0.4, 0.12)[:, None]
states = (np.cumsum(change, axis=1) + rng.integers(2, size=(600, 1))) % 2
X = 2.5 * states + rng.normal(size=states.shape)
y = np.where(fast, "fast", "slow")
incomplete = X.copy()
incomplete[rng.random(X.shape) < 0.2] = np.nan
train, test = slice(0, 200), slice(200, 600)

# %%
# Fit and score
# -------------
# Missing values are integrated out; the classifier of columns is given the full table, and is still no better than
# chance.

model = HMMClassifier(2).fit(incomplete[train], y[train])
columns = GaussianNB().fit(X[train], y[train])
accuracy = {
    "hidden Markov models, a fifth of the steps missing": model.score(incomplete[test], y[test]),
    "naive Bayes of the columns, nothing missing": columns.score(X[test], y[test]),
}
for name, share in accuracy.items():
    print(f"{name}: {share:.1%} right")

# %%
# What was learned
# ----------------
# The levels are the same in both classes, the probability of staying is not.

stay = {}
for kind, chain in zip(model.classes_, model.models_):
    stay[kind] = np.diag(chain.transitions_)
    print(kind, "levels", chain.means_.ravel().round(1), "probability of staying", stay[kind].round(2))

# %%
# One model of all rows shows hidden states: transitions, what each state emits, and one sequence with its most probable
# path.

hidden = HiddenMarkovModel(2).fit(incomplete)
StatesDisplay.from_estimator(hidden, incomplete, sequence=1)
plt.show()
path = hidden.decode(incomplete)
agree = (path == states).mean()
agree = max(agree, 1 - agree)  # which state is called 0 is chance
print(f"{agree:.1%} of all steps are given the state they had, also where nothing was measured")

# %%
# Are the probabilities right?
# ----------------------------

ReliabilityDisplay.from_estimator(model, incomplete[test], y[test])
plt.show()
