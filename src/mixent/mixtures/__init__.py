"""Gaussian mixtures and the classifiers built on them."""

from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.shared import SharedMixtureClassifier

__all__ = [
    "GaussianMixture",
    "MixtureClassifier",
    "SharedMixtureClassifier",
]
