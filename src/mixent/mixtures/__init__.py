"""Gaussian mixtures and the classifiers built on them."""

from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search
from mixent.mixtures.shared import SharedMixtureClassifier

__all__ = [
    "Conditional",
    "GaussianMixture",
    "MinimumError",
    "MixtureClassifier",
    "MixturePrior",
    "Search",
    "SharedMixtureClassifier",
]
