"""Pictures: each display is computed and drawn by `from_...`. Needs matplotlib (`pip install mixent[plot]`)."""

from mixent.base.displays import ConvergenceDisplay
from mixent.evaluate.displays.differences import CriticalDifferenceDisplay
from mixent.evaluate.displays.explanation import ExplanationDisplay
from mixent.evaluate.displays.methods import MethodScoresDisplay
from mixent.evaluate.displays.projection import ProjectionDisplay
from mixent.evaluate.displays.reliability import ReliabilityDisplay
from mixent.evaluate.displays.roc import RocCurvesDisplay
from mixent.evaluate.displays.uncertainty import UncertaintyDisplay
from mixent.fusion.displays import DependenceDisplay, PriorsDisplay, TrustDisplay
from mixent.fusion.drift_display import DriftDisplay
from mixent.hmm.displays import StatesDisplay
from mixent.maxent.displays import ConstraintsDisplay, PathDisplay
from mixent.med.displays import (
    BoundaryDisplay,
    EdgeWeightsDisplay,
    LikelihoodsDisplay,
    MarginsDisplay,
    MultipliersDisplay,
    TreeDisplay,
)
from mixent.mixtures.displays import (
    ComponentsDisplay,
    GrowthDisplay,
    MergingDisplay,
    RegionsDisplay,
    SelectionDisplay,
)
from mixent.studies.displays import EnsembleSizeDisplay, VerificationDisplay

__all__ = [
    "BoundaryDisplay",
    "ComponentsDisplay",
    "ConstraintsDisplay",
    "ConvergenceDisplay",
    "CriticalDifferenceDisplay",
    "DependenceDisplay",
    "DriftDisplay",
    "EdgeWeightsDisplay",
    "EnsembleSizeDisplay",
    "ExplanationDisplay",
    "GrowthDisplay",
    "LikelihoodsDisplay",
    "MarginsDisplay",
    "MergingDisplay",
    "MethodScoresDisplay",
    "MultipliersDisplay",
    "PathDisplay",
    "PriorsDisplay",
    "ProjectionDisplay",
    "RegionsDisplay",
    "ReliabilityDisplay",
    "RocCurvesDisplay",
    "SelectionDisplay",
    "StatesDisplay",
    "TreeDisplay",
    "TrustDisplay",
    "UncertaintyDisplay",
    "VerificationDisplay",
]
