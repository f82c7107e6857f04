"""Maximum entropy models of mixed tables: classification, and prediction of any column from the others."""

from mixent.maxent.classifier import MaxEntClassifier
from mixent.maxent.joint import MaxEntJoint

__all__ = ["MaxEntClassifier", "MaxEntJoint"]
