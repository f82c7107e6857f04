"""
A biometric gate
================

A face matcher and a voice matcher look at the same visitor, each with scores on its own scale. Impostors are many and
clients few. What counts is the price of the two kinds of error, which a DET curve shows for every threshold; what is
needed to choose one is a score that means something: a log-likelihood ratio.
"""

import matplotlib.pyplot as plt

from mixent import Calibration, Fuser
from mixent.datasets import simulate_verification
from mixent.displays import VerificationDisplay
from mixent.studies import llr_of_posterior, verification_report

# %%
# Scores on scales of their own, and labelled ones to learn from. The simulation knows the exact likelihood ratio.

gate = simulate_verification(400, 40_000, development=(600, 20_000), correlation=0.3, random_state=0)
known, new = gate.development, gate.evaluation
for name, scores in new.scores.items():
    print(f"{name}: scores from {scores.min():.2f} to {scores.max():.2f}")

# %%
# From scores to likelihood ratios
# --------------------------------
# ``ratio=True`` puts each system's scores on a line of log-likelihood ratios. The product rule takes the two for
# independent; ``"discounted"`` gives each a weight, because the same face and voice have a bad day together.

lines = {name: Calibration.from_scores(known.truth, scores, ratio=True) for name, scores in known.scores.items()}
llr = {"exact": new.llr}
for method in ("ml-product", "discounted"):
    fuser = Fuser(lines, method=method).fit(new.scores)
    llr[method] = llr_of_posterior(fuser.posterior_[:, 0], fuser.prior_[0])
    low, high = fuser.prior_estimate_.low[0], fuser.prior_estimate_.high[0]
    print(f"{method}: {fuser.prior_[0]:.2%} of the claims are true, interval {low:.2%} to {high:.2%}")

# %%
# The curve
# ---------
# Both axes are normal deviates, so that rare errors have room. The two systems together are worth far more than either.

VerificationDisplay.from_predictions(new.truth, {**llr, **new.scores}, target="client")
plt.show()

# %%
# At one threshold, with a price
# ------------------------------
# Where an impostor inside costs as much as ten clients sent home, only the threshold moves; no search is needed.

prior = 400 / 40_400  # the true share of clients
reports = {}
for cost in (1, 10):
    for name, values in llr.items():
        report = verification_report(new.truth, values, target="client", prior=prior, cost_false_alarm=cost)
        reports[name, cost] = report
        print(
            f"an impostor costs {cost:2}, {name:10}: {report.false_accepts:2} impostors in, "
            f"{report.false_rejects:2} clients out, cost {report.normalized_dcf:.3f} of sending all away"
        )

# %%
# The squares are these thresholds at equal costs: best for the share of clients, if the scores are what they claim
# to be.

VerificationDisplay.from_predictions(
    new.truth, {"exact": llr["exact"], "discounted": llr["discounted"]}, target="client", prior=prior
)
plt.show()
