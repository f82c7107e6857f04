"""
Covariance structures, and which to take
========================================

A component of a Gaussian mixture has a volume, a shape and an orientation; each can be the same for all components or
not. Three letters: E equal, V variable, I identity (round, or along the axes). Fewer free numbers need fewer
rows. This example shows what the letters look like, and lets BIC choose.
"""

import matplotlib.pyplot as plt
import numpy as np

from mixent import GaussianMixture
from mixent.displays import RegionsDisplay, SelectionDisplay
from mixent.options import Search

# %%
# Rows with a known structure
# ---------------------------
# Three groups of the same shape, long and thin, of different volumes and turned differently: VEV in these letters.

rng = np.random.default_rng(0)
TURNS, VOLUMES, CENTERS = (0.2, 1.3, 2.4), (0.5, 1.0, 2.0), ((-4, 0), (0, 3), (4, -1))


def make_group(n: int, turn: float, volume: float, center: tuple[float, float]) -> np.ndarray:
    """Rows of one component, standard deviations 4 to 1."""
    axes = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return center + np.sqrt(volume) * (rng.normal(size=(n, 2)) * [1.4, 0.35]) @ axes


X = np.concatenate([make_group(100, *group) for group in zip(TURNS, VOLUMES, CENTERS)])

# %%
# What the letters mean
# ---------------------
# The same rows and three components under six structures. BIC has scikit-learn's sign: lower is better. It pays
# :math:`\log n` for each free number, so that the most flexible structure does not win by itself.

STRUCTURES = {
    "EII": "round, one size",
    "VVI": "along the axes",
    "EEE": "all alike",
    "EEV": "turned, one size",
    "VEV": "turned, own size",
    "VVV": "everything free",
}
figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained", sharex=True, sharey=True)
bic = {}
for ax, (letters, words) in zip(axes.flat, STRUCTURES.items()):
    mixture = GaussianMixture(3, letters, n_init=4, random_state=0).fit(X)
    bic[letters] = mixture.bic(X)
    RegionsDisplay.from_estimator(mixture, X, ax=ax)
    ax.set_title(f"{letters}: {words}, BIC {bic[letters]:.0f}", fontsize="medium", loc="left")
    ax.set(xlabel="first column", ylabel="second column")
    ax.label_outer()
plt.show()
print({letters: round(value) for letters, value in bic.items()})

# %%
# Let it choose
# -------------
# A list of structures and ``n_components="auto"`` fits all of them at every size and keeps the lowest BIC; ``search_``
# has the whole table and the picture draws it. It finds the three groups, and the structure they were drawn from.

chosen = GaussianMixture("auto", list(STRUCTURES), search=Search(max_components=5), n_init=2, random_state=0).fit(X)
best = next(entry for entry in chosen.search_ if entry["chosen"])
print(f"taken: {best['n_components']} components of structure {best['covariance']}, BIC {best['bic']:.0f}")
SelectionDisplay.from_estimator(chosen)
plt.show()
