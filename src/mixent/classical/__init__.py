"""Classical classifiers (document 003): Parzen windows and the kernel Fisher discriminant."""

from mixent.classical.kernel_fisher import KernelFisherClassifier
from mixent.classical.parzen import ParzenClassifier

__all__ = ["KernelFisherClassifier", "ParzenClassifier"]
