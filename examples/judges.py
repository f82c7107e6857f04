"""
A panel of judges that repeat each other
========================================

Language models judge which of two answers is better. Some are of one family and err together; one has been changed
since it was tried out. A vote counts them all alike. This panel is simulated, so that the truth is known.
"""

import matplotlib.pyplot as plt
import numpy as np

from mixent import Calibration, Fuser
from mixent.displays import DependenceDisplay, TrustDisplay
from mixent.evaluate import error_rate, log_loss

# %%
# The panel
# ---------
# Seven judges: four of family A, whose errors have a common cause, and three others. Each was tried on 150 items of its
# own, half of which had the first answer better. In the batch it is one in four.

FIRST, SECOND = "first", "second"
ACCURACY = {"A1": 0.72, "A2": 0.70, "A3": 0.72, "A4": 0.70, "B": 0.85, "C": 0.80, "D": 0.75}


def make_verdicts(n: int, share: float, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The better answer, and the verdict of each judge."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < share, FIRST, SECOND)
    common = rng.random(n)
    verdicts = {}
    for name, accuracy in ACCURACY.items():
        luck = np.where(name.startswith("A") & (rng.random(n) < 0.85), common, rng.random(n))
        verdicts[name] = np.where(luck < accuracy, truth, np.where(truth == FIRST, SECOND, FIRST))
    return truth, verdicts


panel = {}
for seed, name in enumerate(ACCURACY):
    own_truth, own = make_verdicts(150, share=0.5, seed=1000 + seed)
    panel[name] = Calibration.from_predictions(own_truth, own[name])
truth, verdicts = make_verdicts(600, share=0.25, seed=0)

# %%
# Who repeats whom?
# -----------------
# The fusion has no labels, but it can see that some agree more than their records explain. Above the diagonal: by how
# many standard errors; below: the correlation within a class.

fuser = Fuser(panel).fit(verdicts)
print(f"{len(panel)} judges are worth about {fuser.dependence_.n_effective:.1f} independent ones")
DependenceDisplay.from_estimator(fuser)
plt.show()

# %%
# Judges that repeat each other share their weight.

TrustDisplay.from_estimator(fuser)
plt.show()

# %%
# What it is worth
# ----------------

errors, losses = {}, {}
for method in ("majority", "product", "ml-product", "auto"):
    fuser = Fuser(panel, method=method).fit(verdicts)
    errors[method] = error_rate(truth, fuser.labels_)
    losses[method] = log_loss(truth, np.maximum(fuser.posterior_, 1e-6), fuser.classes_)
    print(f"{method:12}{errors[method]:6.1%} wrong, log-loss {losses[method]:.2f} nats")

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.4), layout="constrained")
for ax, values, unit in ((left, errors, "error (%)"), (right, losses, "log-loss (nats)")):
    heights = [100 * value if ax is left else value for value in values.values()]
    bars = ax.barh(list(values), heights, color=["#9a9a9a"] * 3 + ["#0072B2"])
    ax.bar_label(bars, fmt="%.1f" if ax is left else "%.2f", padding=3)
    ax.set(xlabel=unit, xlim=(0, 1.15 * max(heights)))
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A judge that has changed
# ------------------------
# Judge C gets a new version that answers "first" in half of the cases where it would have answered "second". Each judge
# is tested against all others: how often does it answer "first", and how often should it? One that has drifted makes
# others look off, too. So leave out the loudest, and look again.

rng = np.random.default_rng(7)
changed = dict(verdicts, C=np.where(rng.random(len(truth)) < 0.5, FIRST, verdicts["C"]))
alarm = Fuser(panel).fit(changed)
p_values = {name: test.p_value for name, test in alarm.drift_.items()}
print({name: f"{p:.1e}" for name, p in p_values.items()})
print(*alarm.warnings_, sep="\n")
loudest = min(p_values, key=p_values.get)
rest = {name: calibration for name, calibration in panel.items() if name != loudest}
again = Fuser(rest).fit({name: changed[name] for name in rest})
p_without = {name: test.p_value for name, test in again.drift_.items()}
print(f"without {loudest}:", {name: f"{p:.2f}" for name, p in p_without.items()})

figure, ax = plt.subplots(figsize=(6.4, 3.0), layout="constrained")
strength = [-np.log10(max(p, 1e-30)) for p in p_values.values()]
ax.bar(list(p_values), strength, color=["#D55E00" if name == loudest else "#9a9a9a" for name in p_values])
ax.axhline(-np.log10(0.05 / len(p_values)), color="#333333", ls="--", lw=1, label="5 % over all judges")
ax.set(xlabel="judge", ylabel="evidence of drift, −log₁₀ p")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
