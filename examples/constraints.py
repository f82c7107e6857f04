"""
Constraints in words, and why this row
======================================

:class:`mixent.MaxEntClassifier` reproduces how often each class occurs with each value of each column, and assumes
nothing else: of all such models it is the one of greatest entropy. What it has learned can be read column by column,
and every decision is a sum whose parts have names.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from mixent import MaxEntClassifier
from mixent.displays import ConstraintsDisplay, ExplanationDisplay
from mixent.evaluate import error_rate, log_loss

# %%
# Diabetes, fast and slow
# -----------------------
# 442 patients of scikit-learn's diabetes data: age, sex, body mass index, blood pressure and six blood values. The
# class is whether the disease progressed more than in half of the patients within a year. The coded column is made
# words (the data do not state which sex is which), and one patient in eight has no pressure on record.

bunch = load_diabetes(as_frame=True, scaled=False)
names = {"bmi": "body mass index", "bp": "pressure", "s3": "HDL", "s5": "log triglycerides", "s6": "glucose"}
table = bunch.data.rename(columns=names)[["age", "sex", *names.values()]]
table["sex"] = np.where(table["sex"] == 1, "first", "second")
table.loc[::8, "pressure"] = None
label = np.where(bunch.target > bunch.target.median(), "fast", "slow")
rows, new, y, truth = train_test_split(table, label, train_size=300, stratify=label, random_state=0)

model = MaxEntClassifier(random_state=0).fit(rows, y)
proba = model.predict_proba(new)
error, loss = error_rate(truth, model.predict(new)), log_loss(truth, proba, model.classes_)
print(f"{len(new)} new patients: error {error:.1%}, log-loss {loss:.3f} nats")
print(f"The fit is at most {model.gap_:.0e} nats per row below its optimum.")

# %%
# The contribution of each column
# -------------------------------
# ``strength`` is how far a column moves the log-odds: the standard deviation, over the rows, of what it adds.

constraints = model.constraints()
for name, strength in sorted(constraints.strength.items(), key=lambda item: -item[1]):
    print(f"{name:18}{strength:5.2f} nats")

# %%
# In the picture, each panel is a column: above zero its value is evidence for slow progress, below zero for fast. The
# gray hill shows where the rows are, the point at the right the contribution of a missing value. Words have dots.

ConstraintsDisplay.from_estimator(model, n_features=6)
plt.show()

# %%
# The table behind it, for the column of words: share of the rows with this class and this value, in the data and in the
# model.

frame = constraints.frame()
print(frame[frame["feature"] == "sex"].round(3).to_string(index=False))

# %%
# Why this patient?
# -----------------
# The parts add up to the log-odds exactly. First the surest answer, then one that hangs in the balance.

why = model.explain(new)
surest, closest = int(why.log_odds.argmax()), int(np.abs(why.log_odds).argmin())
print(f"parts add up to within {np.abs(why.baseline + why.parts.sum(axis=1) - why.log_odds).max():.0e} nats")
for row in (surest, closest):
    ExplanationDisplay.from_estimator(model, new, row=row)
plt.show()
