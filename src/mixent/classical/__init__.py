"""Two classical classifiers (document 003): Parzen windows and the kernel Fisher discriminant."""

from mixent.base.kernels import RBF, Polynomial
from mixent.classical.kernel_fisher import KernelFisherClassifier
from mixent.classical.parzen import ParzenClassifier

__all__ = ["RBF", "KernelFisherClassifier", "ParzenClassifier", "Polynomial"]
