"""Gaussian mixtures and the classifiers built on them."""

from mixent.mixtures.category_probabilities import CategoryProbabilities
from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.conditional import ConditionalDistribution, ConditionalRow
from mixent.mixtures.shared import SharedMixtureClassifier

__all__ = [
    "CategoryProbabilities",
    "ConditionalDistribution",
    "ConditionalRow",
    "GaussianMixture",
    "MixtureClassifier",
    "SharedMixtureClassifier",
]
