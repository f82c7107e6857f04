"""
Imputation, and prediction of any column
========================================

:class:`mixent.MaxEntJoint` is one model of a whole table. No column is the target until you ask: any column, or two
together, is predicted from whatever else the row has, and missing values are filled in jointly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import ConfusionMatrixDisplay

from mixent import MaxEntJoint

# %%
# A table with holes
# ------------------
# Six measurements of 178 wines and the cultivar they come from. One cell in five is taken out, and kept aside to see
# how well it is restored.

bunch = load_wine(as_frame=True)
columns = ["alcohol", "flavanoids", "color_intensity", "hue", "proline", "total_phenols"]
whole = bunch.data[columns].assign(cultivar=np.array(["first", "second", "third"])[bunch.target])
rng = np.random.default_rng(0)
hole = rng.random(whole.shape) < 0.2
table = whole.mask(hole)
print(table.head(5).to_string())

# %%
# Fill them
# ---------

joint = MaxEntJoint(prior_variance=1.0, random_state=0).fit(table)
filled = joint.impute(table)

by_model, by_mean = {}, {}
for j, name in enumerate(columns):
    gap, std = hole[:, j], whole[name].std()
    by_model[name] = np.sqrt(((filled[name] - whole[name])[gap] ** 2).mean()) / std
    by_mean[name] = np.sqrt(((table[name].mean() - whole[name])[gap] ** 2).mean()) / std
    print(f"{name:18} off by {by_model[name]:.2f} standard deviations; the column's mean by {by_mean[name]:.2f}")
lost = hole[:, -1]
restored = (filled["cultivar"] == whole["cultivar"])[lost].mean()
guessed = whole["cultivar"][lost].value_counts(normalize=True).iloc[0]
print(f"cultivar: {restored:.0%} of {lost.sum()} lost labels restored; the most frequent one fits {guessed:.0%}")

# %%
# A column that depends on others is restored well, an independent one less so.

figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.6), layout="constrained")
colors = dict(zip(("first", "second", "third"), ("#0072B2", "#D55E00", "#009E73")))
marks = dict(zip(colors, "o^s"))
for ax, name in zip(axes.flat, columns):
    gap = hole[:, columns.index(name)]
    for kind, shade in colors.items():
        some = gap & (whole["cultivar"] == kind).to_numpy()
        ax.scatter(whole[name][some], filled[name][some], s=22, color=shade, marker=marks[kind], label=kind)
    ends = [whole[name].min(), whole[name].max()]
    ax.plot(ends, ends, color="#333333", lw=1, ls="--")
    ax.set(title=name.replace("_", " "), xlabel="what was there", ylabel="what was filled in")
    ax.spines[["top", "right"]].set_visible(False)
axes[0, 0].legend(frameon=False, fontsize="small", title="cultivar")
plt.show()

# %%
# The labels that were lost, and what was filled in for them:

ConfusionMatrixDisplay.from_predictions(whole["cultivar"][lost], filled["cultivar"][lost], cmap="Blues")
plt.show()

# %%
# Any column from the others
# --------------------------
# ``accuracy_by_column`` predicts each column in turn from all others: for a number it returns the share of the variance
# explained, of a category how often it is wrong. (Most of these cells were seen in the fit: for an honest number
# give it other rows.)

accuracy = joint.accuracy_by_column(whole)
for name, quality in accuracy.items():
    print(f"{name:18}", f"{quality.r2:.0%} of the variance" if quality.error is None else f"{quality.error:.1%} wrong")

# %%
# Probabilities instead of a value, and two columns at once (of a number, the center of its most probable component):

some = table.iloc[[0, 70, 150]]
answers = joint.predict_proba(some, target="cultivar"), joint.predict(some, target=("cultivar", "proline"))
for proba, (cultivar, proline) in zip(*answers):
    text = ", ".join(f"{name} {p:.2f}" for name, p in zip(joint.values("cultivar"), proba))
    print(f"{text}; together: {cultivar}, proline about {proline:.0f}")
