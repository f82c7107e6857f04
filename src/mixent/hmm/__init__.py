"""Hidden Markov models, and a Bayes classifier of sequences."""

from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.estimators import HiddenMarkovModel

__all__ = ["HMMClassifier", "HiddenMarkovModel"]
