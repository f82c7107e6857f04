"""Hidden Markov models and the classifier built on them."""

from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.estimators import HiddenMarkovModel

__all__ = ["HMMClassifier", "HiddenMarkovModel"]
