"""Hidden Markov models and the classifier built on them."""

from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.estimators import HiddenMarkovModel
from mixent.hmm.options import HMMPrior

__all__ = ["HMMClassifier", "HMMPrior", "HiddenMarkovModel"]
