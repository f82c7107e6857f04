"""Mixtures of Gaussians and categoricals, and the Bayes classifiers built on them."""

from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture

__all__ = ["GaussianMixture", "MixtureClassifier"]
