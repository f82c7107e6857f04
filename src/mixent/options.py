"""Objects for constructor parameters that belong together; each has short forms, such as `search="bic"`."""

from mixent.base.kernels import RBF, KernelFunction, Polynomial
from mixent.ensemble.options import InputRegions
from mixent.hmm.options import HMMPrior
from mixent.maxent.options import BinFeatures, ComponentFeatures, ForwardSelection, MomentFeatures
from mixent.med.options import GaussianPrior, LabelUpdates, Margin, Tables, Trees
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search

__all__ = [
    "RBF",
    "BinFeatures",
    "ComponentFeatures",
    "Conditional",
    "ForwardSelection",
    "GaussianPrior",
    "HMMPrior",
    "InputRegions",
    "KernelFunction",
    "LabelUpdates",
    "Margin",
    "MinimumError",
    "MixturePrior",
    "MomentFeatures",
    "Polynomial",
    "Search",
    "Tables",
    "Trees",
]
