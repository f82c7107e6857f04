"""Maximum entropy: classification and the inference of any column, on mixed tables and probabilistic instances."""

from mixent.maxent.classifier import MaxEntClassifier
from mixent.maxent.joint import MaxEntJoint

__all__ = ["MaxEntClassifier", "MaxEntJoint"]
