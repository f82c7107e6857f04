"""Maximum entropy discrimination (document 001): margins, kernels, Gaussians, trees, labels in doubt."""

from mixent.med.bayes_net_classifier import MEDBayesNetClassifier
from mixent.med.classifier import MEDClassifier
from mixent.med.fisher import FisherKernel
from mixent.med.gaussian_classifier import MEDGaussianClassifier
from mixent.med.novelty import MEDNoveltyDetector
from mixent.med.tree_classifier import MEDTreeClassifier

__all__ = [
    "FisherKernel",
    "MEDBayesNetClassifier",
    "MEDClassifier",
    "MEDGaussianClassifier",
    "MEDNoveltyDetector",
    "MEDTreeClassifier",
]
