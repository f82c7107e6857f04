"""Gaussian mixtures and the classifiers built on them."""

from mixent.mixtures.bootstrap import MixtureBootstrap
from mixent.mixtures.category_probabilities import CategoryProbabilities
from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.conditional import ConditionalDistribution, ConditionalRow
from mixent.mixtures.likelihood_ratio import LikelihoodRatioTests, bootstrap_lrt
from mixent.mixtures.merging import ComponentMerging
from mixent.mixtures.shared import SharedMixtureClassifier

__all__ = [
    "CategoryProbabilities",
    "ComponentMerging",
    "ConditionalDistribution",
    "ConditionalRow",
    "GaussianMixture",
    "LikelihoodRatioTests",
    "MixtureBootstrap",
    "MixtureClassifier",
    "SharedMixtureClassifier",
    "bootstrap_lrt",
]
