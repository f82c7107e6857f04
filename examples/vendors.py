"""
Vendors' models on a shifted batch
==================================

Two programs look for the same illness. They were trained elsewhere, where many were ill; here few are, nobody has been
examined, and both see in part the same measurements. :class:`mixent.Fuser` finds the patients' probabilities and the
share of the ill together, from what each vendor can count on rows of its own.
"""

import matplotlib.pyplot as plt

from mixent import Calibration, Fuser
from mixent.datasets import simulate_vendors
from mixent.displays import PriorsDisplay, ReliabilityDisplay, TrustDisplay
from mixent.evaluate import error_rate, log_loss

# %%
# Three in ten were ill where the first was trained, five in ten at the second; here it is one in twenty. Each vendor
# tried its program on 400 patients of its own.

hospital = simulate_vendors(2000, prevalence=0.05, training_prevalence=(0.3, 0.5), n_calibration=400, random_state=6)
edges = [0.02, 0.1, 0.3, 0.6, 0.9]
vendors = {
    name: Calibration.from_scores(truth, proba[:, 1], edges=edges) for name, (truth, proba) in hospital.labelled.items()
}
answers = {name: proba[:, 1] for name, proba in hospital.answers.items()}  # P(ill) as each vendor states it

# %%
# How many are ill?
# -----------------
# The estimate has an interval that carries the error of the batch and of the vendors' own counts. The shares of the
# training lie far outside.

fuser = Fuser(vendors).fit(answers)
estimate = fuser.prior_estimate_
share = (hospital.truth == "ill").mean()
print(f"ill: {fuser.prior_[1]:.1%}, interval {estimate.low[1]:.1%} to {estimate.high[1]:.1%}; in truth {share:.1%}")
print(*fuser.warnings_, sep="\n")
PriorsDisplay.from_estimator(fuser)
plt.show()

# %%
# How much of each vendor's word counts?
# --------------------------------------
# The programs agree more than their own records explain, because they see some measurements in common. So each counts
# for less than one; nobody had to declare it.

print(f"method: {fuser.method_}; together worth {fuser.dependence_.n_effective:.2f} independent sources")
TrustDisplay.from_estimator(fuser)
plt.show()

# %%
# Who is ill?
# -----------
# Taken as they come, the vendors' probabilities call far too many ill. "Exact" knows the distribution of all
# measurements, which no fusion of two answers can.

mean = sum(hospital.answers.values()) / 2
predictions = {**hospital.answers, "mean of both": mean, "fused": fuser.posterior_, "exact": hospital.true_proba}
errors, losses = {}, {}
for name, proba in predictions.items():
    labels = hospital.classes[proba.argmax(axis=1)]
    errors[name], losses[name] = error_rate(hospital.truth, labels), log_loss(hospital.truth, proba, hospital.classes)
    n_ill = (labels == "ill").sum()
    print(f"{name:13}{n_ill:4} called ill, {errors[name]:5.1%} wrong, log-loss {losses[name]:.3f} nats")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10.2, 5.4), layout="constrained")
for ax, name in zip(axes, ("mean of both", "fused")):
    ReliabilityDisplay.from_predictions(hospital.truth, predictions[name], hospital.classes, ax=ax)
    ax.set_title(name, loc="left", fontsize="medium")
plt.show()
