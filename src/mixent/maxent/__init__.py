"""Maximum entropy: classification and the inference of any column, on mixed tables and probabilistic instances."""

from mixent.maxent.classifier import MaxEntClassifier
from mixent.maxent.joint import MaxEntJoint
from mixent.maxent.options import BinFeatures, ComponentFeatures, ForwardSelection, MomentFeatures

__all__ = ["BinFeatures", "ComponentFeatures", "ForwardSelection", "MaxEntClassifier", "MaxEntJoint", "MomentFeatures"]
