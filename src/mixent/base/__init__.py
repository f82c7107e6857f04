"""What all classifiers share."""

from mixent.base.classifier import Decision, ProbabilisticClassifier
from mixent.base.priors import shifted_priors

__all__ = ["Decision", "ProbabilisticClassifier", "shifted_priors"]
