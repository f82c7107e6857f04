"""
A table with categories and missing values
==========================================

Numbers, words, and cells that nobody filled in: :class:`mixent.MixtureClassifier` takes the table as it is. A missing
cell is not guessed but integrated out, so that a row contributes exactly what is known of it. This example fits, scores
and reads such a model, and compares it with the habit of filling missing values first.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import ConfusionMatrixDisplay

from mixent import MixtureClassifier
from mixent.displays import RegionsDisplay, ReliabilityDisplay
from mixent.evaluate import error_rate, log_loss
from mixent.options import Search

# %%
# The rows
# --------
# Patients of a clinic: age (years) and blood pressure (mmHg) rise together, and in the ill the pressure is low for the
# age. Neither number is informative alone. A third of the pressures and a fifth of the answers were never written down.


def make_patients(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows with missing values, and their labels."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.4
    age = rng.normal(np.where(ill, 58, 50), 14)
    pressure = 85 + 0.8 * age + rng.normal(np.where(ill, -18, 0), 8)
    pain = np.where(rng.random(n) < 0.6, np.where(ill ^ (rng.random(n) < 0.15), "chest", "none"), "other")
    smoker = np.where(rng.random(n) < np.where(ill, 0.5, 0.25), "yes", "no")
    table = pd.DataFrame({"age": age.round(), "pressure": pressure.round(), "pain": pain, "smoker": smoker})
    for column, share in {"age": 0.1, "pressure": 0.35, "pain": 0.2, "smoker": 0.2}.items():
        table.loc[rng.random(n) < share, column] = None
    return table, np.where(ill, "ill", "well")


table, label = make_patients(600, seed=0)
new, truth = make_patients(3000, seed=1)
print(table.head(6).to_string())
empty, full = table.isna().to_numpy().mean(), table.notna().all(axis=1).mean()
print(f"{empty:.0%} of the cells are empty, {full:.0%} of the rows are full")

# %%
# Fit and score
# -------------
# The model is the table's joint distribution in each class; how many components and which covariance structure is
# chosen by cross-validated log-loss. ``run_.message`` states how the fit ended.

model = MixtureClassifier(search=Search(max_components=2), random_state=0).fit(table, label)
print(model.run_.message)


def scores(fitted: MixtureClassifier, rows: pd.DataFrame) -> tuple[float, float]:
    """Error and log-loss (nats) on rows that were not fitted."""
    proba = fitted.predict_proba(rows)
    return error_rate(truth, fitted.classes_[proba.argmax(axis=1)]), log_loss(truth, proba, fitted.classes_)


def fill(rows: pd.DataFrame) -> pd.DataFrame:
    """The habit: the mean for a number, the most frequent word for a category."""
    numbers = {name: table[name].mean() for name in ("age", "pressure")}
    return rows.fillna(numbers | {name: table[name].mode()[0] for name in ("pain", "smoker")})


filled = MixtureClassifier(search=Search(max_components=2), random_state=0).fit(fill(table), label)
as_it_is, after_filling = scores(model, new), scores(filled, fill(new))
print(f"integrated out: error {as_it_is[0]:.1%}, log-loss {as_it_is[1]:.3f} nats")
print(f"filled first:   error {after_filling[0]:.1%}, log-loss {after_filling[1]:.3f} nats")

# %%
# A filled gap is believed like a measurement: an old patient with the mean pressure looks ill. On 3000 new rows the
# table as it is gives the lower log-loss, and its probabilities can be taken at their word.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 5.0), layout="constrained")
ReliabilityDisplay.from_estimator(model, new, truth, ax=left)
ConfusionMatrixDisplay.from_estimator(model, new, truth, ax=right, cmap="Blues", colorbar=False)
plt.show()

# %%
# Two numbers of four columns
# ---------------------------
# The map shows age and pressure with pain and smoking integrated out, exactly, by the same rule as missing values.

display = RegionsDisplay.from_estimator(model, table, label, columns=("age", "pressure"))
display.ax_.set(xlabel="age (years)", ylabel="pressure (mmHg)")
plt.show()

# %%
# One patient, of whom less and less is known
# -------------------------------------------
# Every cell that disappears takes its evidence along, and no more. With nothing left the answer is the share of the
# ill.

patient = pd.DataFrame({"age": [66.0], "pressure": [124.0], "pain": ["chest"], "smoker": ["no"]})
known, p_ill = ["everything"], [model.predict_proba(patient)[0, 0]]
for column in ("pain", "pressure", "smoker", "age"):
    patient[column] = None if column in ("pain", "smoker") else np.nan
    known.append(f"no {column}")
    p_ill.append(model.predict_proba(patient)[0, 0])
for what, p in zip(known, p_ill):
    print(f"{what:12} P(ill) = {p:.2f}")

figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.plot(known, p_ill, "o-", color="#0072B2")
ax.axhline(model.class_prior_[0], color="#333333", ls="--", lw=1, label="share of the ill in the table")
ax.set(ylabel="P(ill | what is known)", ylim=(0, 1), xlabel="cells removed one after the other")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
