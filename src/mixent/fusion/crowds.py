"""Fusion of sources without calibrations, such as workers of a crowd: the model is chosen by predictive fit.

Candidates are the model of Dawid and Skene with an assumed accuracy, workers of equal accuracy, the one-coin model and
hierarchical confusion matrices (see `workers`), in this order. A fifth of the answers is held out and predicted from
the other answers to the same items, by  P[v_ij | others] = sum_k q_i(k) A_j(v_ij | k),  where q and A are estimated
without the answers held out, and so on for each fifth. A candidate replaces the one before it if the mean
log-probability is significantly higher.

Labels of items are held out in the same way. They are used to estimate the model if its predictions of held-out labels
are then better, by more than a standard error, than those of the same model estimated from the answers alone; another
candidate with labels must be significantly better. Otherwise, the labels do not change the posteriors
of other items: a few of them can move the classes of a crowd to others than those that most workers mean.

Errors of workers on difficult items are dependent, so that q is overconfident. The posteriors are raised to a power t,
at first the one with the best predictions of held-out answers. Held-out answers show how sure the consensus of the
workers is, but not that it may be wrong, so that t is multiplied by `CONSENSUS`, a constant chosen on simulated crowds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mixent.fusion.crowd_models import MODELS, Crowd, Model
from mixent.fusion.held_out import Folds

MIN_Z = 3.0  # of the gain of a candidate over the one before it
MIN_LABEL_Z = 1.0  # of the gain by labels with the same candidate
MIN_LABELS = 20.0  # labelled items; with fewer, the gain cannot be estimated
CONSENSUS = 0.7


@dataclass(frozen=True)
class Choice:
    """The chosen model, and the evidence."""

    name: str
    model: Model
    power: float  # of the posteriors
    evidence: Mapping[str, float]  # mean log-probability of a held-out answer by each candidate, in nats


def choose(crowd: Crowd, names: list[str]) -> Choice:
    """The candidate with the best predictions of held-out answers.

    Each candidate replaces the one before it if its predictions are significantly better. The order is that in which
    the classes can be exchanged by mistake: the common rates of the last one are only weakly tied to the classes.
    """
    folds = Folds.of(crowd)
    if not folds.usable:
        return Choice(names[0], MODELS[names[0]](crowd), CONSENSUS, dict.fromkeys(names, np.nan))
    held_out = {name: folds.held_out(MODELS[name]) for name in names}
    power = {name: predictions.best_power() for name, predictions in held_out.items()}
    log_prob = {name: predictions.log_prob(power[name]) for name, predictions in held_out.items()}
    evidence = {name: held_out[name].mean(values) for name, values in log_prob.items()}
    best = names[0]
    for name in names[1:]:
        gain = log_prob[name] - log_prob[best]
        if held_out[name].mean(gain) > MIN_Z * held_out[name].standard_error(gain):
            best = name
    return Choice(best, MODELS[best](crowd), CONSENSUS * power[best], evidence)


def choose_with_labels(crowd: Crowd, without: Choice) -> Choice:
    """The choice `without` labels, or a candidate with labels if it predicts held-out labels better."""
    folds = Folds.of(crowd)
    if not folds.usable or crowd.answers.weight @ (crowd.answers.labels >= 0) < MIN_LABELS:
        return without
    best, names = without, [without.name, *(name for name in without.evidence if name != without.name)]
    labels = folds.held_out(MODELS[without.name], labels=False).of_labels
    highest = labels.log_prob(without.power)
    for name in names:
        held_out = folds.held_out(MODELS[name])
        power = held_out.best_power()
        log_prob = held_out.of_labels.log_prob(CONSENSUS * power)
        gain = log_prob - highest
        z = MIN_LABEL_Z if name == without.name else MIN_Z
        if labels.mean(gain) > z * labels.standard_error(gain):
            evidence = {**without.evidence, name: held_out.mean(held_out.log_prob(power))}
            best, highest = Choice(name, MODELS[name](crowd), CONSENSUS * power, evidence), log_prob
    return best
