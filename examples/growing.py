"""
Growing a mixture, and knowing when to stop
===========================================

How many components? Too few miss what is there, too many fit noise. A mixture can grow by one component at a time, and
a criterion decides where to stop: BIC and the robust DIC from the training rows, cross-validation from held-out ones.
"""

import matplotlib.pyplot as plt

from mixent import MixtureClassifier, SharedMixtureClassifier
from mixent.datasets import make_orchestra
from mixent.displays import GrowthDisplay, RegionsDisplay, SelectionDisplay
from mixent.evaluate import log_loss
from mixent.options import Search

# %%
# The orchestra: two classes made of four hidden groups, three in each class. So four shared components are right, or
# three and three.

rows = make_orchestra(600, random_state=0)
test = make_orchestra(20_000, random_state=99, return_posterior=True)
bayes_loss = log_loss(test.y, test.true_proba, test.classes)

# %%
# One component after the other
# -----------------------------
# ``Search(growth="incremental")`` fits candidates for a new component with all else frozen, adds the best, and
# continues EM. No lucky start is needed. The likelihood rises with every component, as it must; BIC has a minimum.

grown = SharedMixtureClassifier("auto", "VVV", search=Search("bic", 8, growth="incremental"), random_state=0).fit(
    rows.X, rows.y
)
for stage in grown.path_:
    print(f"{stage.n_components} components: log-likelihood {stage.log_likelihood:9.2f} nats")
figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8), layout="constrained")
growth = GrowthDisplay.from_estimator(grown, ax=left, quantity="log_likelihood")
growth.plot(right)
plt.show()

# %%
# What was kept: the four groups, losses from the classes' labels alone.

RegionsDisplay.from_estimator(grown, rows.X, rows.y)
plt.show()

# %%
# Three criteria
# --------------
# With a mixture for each class the classes may choose apart. BIC is the quickest. The robust DIC also looks at the
# density a class gives to the other's rows. Cross-validated log-loss, the default, asks what a user asks.

figure, axes = plt.subplots(1, 3, figsize=(14.5, 4.4), layout="constrained")
losses = {}
for ax, criterion in zip(axes, ("bic", "dic_robust", "cv")):
    search = Search(criterion, 5, per_class=criterion != "cv")
    model = MixtureClassifier("auto", "VVV", search=search, random_state=0)
    model.fit(rows.X, rows.y)
    losses[criterion] = log_loss(test.y, model.predict_proba(test.X), model.classes_)
    SelectionDisplay.from_estimator(model, ax=ax)
    ax.set_title(f"{criterion}: log-loss on new rows {losses[criterion]:.3f}", loc="left", fontsize="medium")
plt.show()

# %%
# On new rows, beside the best possible log-loss and the shared components that grew above:

losses["shared, grown by BIC"] = log_loss(test.y, grown.predict_proba(test.X), grown.classes_)
for name, loss in losses.items():
    print(f"{name:22}{loss:.3f} nats")
print(f"{'exact posterior':22}{bayes_loss:.3f} nats")
