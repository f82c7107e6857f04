"""
Trees over columns: the edges that separate the classes
=======================================================

Where columns depend on each other, the dependence may be what separates the classes, and it need not be the dependence
that strikes the eye. :class:`mixent.MEDTreeClassifier` gives every tree over the columns a probability in each class
and trains these for the decision; Chow and Liu's trees are trained to describe the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from mixent import MEDTreeClassifier
from mixent.displays import EdgeWeightsDisplay, RocCurvesDisplay, TreeDisplay
from mixent.options import Margin

# %%
# Sites in a sequence
# -------------------
# Ten letters each. Neighbors are alike in both classes. Three pairs of letters far apart are alike in true sites and
# differ in false ones, but only in three rows of ten.

LETTERS = np.array(list("ACGT"))
FAR = [(1, 6), (3, 8), (0, 9)]


def make_sites(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Letters (n, 10) and labels."""
    rng = np.random.default_rng(seed)
    code = rng.integers(4, size=(n, 10))
    for v in range(1, 10):
        same = rng.random(n) < 0.8
        code[same, v] = code[same, v - 1]
    true = np.arange(n) % 2 == 0
    for u, v in FAR:
        hit = rng.random(n) < 0.3
        code[hit & true, v] = code[hit & true, u]
        other = hit & ~true
        code[other, v] = (code[other, u] + 1 + rng.integers(3, size=other.sum())) % 4
    return LETTERS[code], np.where(true, "true", "false")


X, y = make_sites(1000, seed=0)
new, truth = make_sites(2000, seed=1000)

# %%
# Two ways to learn a tree
# ------------------------

margin = MEDTreeClassifier(C=1, calibration=None, margin=Margin("laplace", target=2)).fit(X, y)
likely = MEDTreeClassifier(objective="likelihood", calibration=None).fit(X, y)
errors = {name: 1 - model.score(new, truth) for name, model in (("margins", margin), ("likelihood", likely))}
for name, error in errors.items():
    print(f"trees by {name}: {error:.1%} of {len(new)} new rows wrong")
for u, v in FAR:
    p, information = margin.edge_marginals_[1][u, v], margin.mutual_information_[1][u, v]
    print(f"edge {u} - {v} in true sites: probability {p:.2f}, mutual information {information:.2f} nats")
p, information = margin.edge_marginals_[1][0, 1], margin.mutual_information_[1][0, 1]
print(f"edge 0 - 1, neighbors:      probability {p:.2f}, mutual information {information:.2f} nats")

# %%
# The strongest dependence, and the one that separates
# ----------------------------------------------------
# Below the diagonal of each square is the mutual information of two columns: the dark band is the neighbors. Above it
# are the weights after training for the decision: the band has faded, and the far pairs stand out.

EdgeWeightsDisplay.from_estimator(margin)
plt.show()

# %%
# The most probable tree of true sites, by margins. The width of an edge is its probability.

TreeDisplay.from_estimator(margin, label="true")
plt.show()

# %%
RocCurvesDisplay.from_estimators({"trees by margins": margin, "trees by likelihood": likely}, new, truth)
plt.show()

# %%
# These rows were made to favor margins. Where classes differ in what strikes the eye, a likelihood tree is as good:
# compare both on rows that were held out.
