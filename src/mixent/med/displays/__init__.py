"""Displays of estimators by maximum entropy discrimination."""

from mixent.med.displays.boundary import BoundaryDisplay
from mixent.med.displays.edges import EdgeWeightsDisplay
from mixent.med.displays.likelihoods import LikelihoodsDisplay
from mixent.med.displays.margins import MarginsDisplay
from mixent.med.displays.multipliers import MultipliersDisplay
from mixent.med.displays.trees import TreeDisplay

__all__ = [
    "BoundaryDisplay",
    "EdgeWeightsDisplay",
    "LikelihoodsDisplay",
    "MarginsDisplay",
    "MultipliersDisplay",
    "TreeDisplay",
]
