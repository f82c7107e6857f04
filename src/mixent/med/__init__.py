"""Maximum entropy discrimination (document 001): margins, kernels, Gaussians, uncertain labels."""

from mixent.med.classifier import MEDClassifier
from mixent.med.fisher import FisherKernel
from mixent.med.gaussian_classifier import MEDGaussianClassifier
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace

__all__ = ["Exponential", "FisherKernel", "Fixed", "Gaussian", "Laplace", "MEDClassifier", "MEDGaussianClassifier"]
