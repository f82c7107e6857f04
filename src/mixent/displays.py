"""Pictures: each display computes in `from_...` and draws in `plot`. Needs matplotlib (`pip install mixent[plot]`)."""

from mixent.base.displays import ConvergenceDisplay
from mixent.evaluate.displays.boundary import BoundaryDisplay
from mixent.evaluate.displays.calibration import CalibrationDisplay
from mixent.evaluate.displays.confusion import ConfusionDisplay
from mixent.evaluate.displays.differences import CriticalDifferenceDisplay
from mixent.evaluate.displays.explanation import ExplanationDisplay
from mixent.evaluate.displays.methods import DifferencesDisplay
from mixent.evaluate.displays.projection import ProjectionDisplay
from mixent.evaluate.displays.roc import RocDisplay
from mixent.evaluate.displays.uncertainty import UncertaintyDisplay
from mixent.fusion.displays import DependenceDisplay, PriorsDisplay, TrustDisplay
from mixent.hmm.displays import StatesDisplay
from mixent.maxent.displays import ConstraintsDisplay, PathDisplay
from mixent.med.displays import (
    EdgeWeightsDisplay,
    LikelihoodsDisplay,
    MarginsDisplay,
    MultipliersDisplay,
    TreeDisplay,
)
from mixent.mixtures.displays import ComponentsDisplay, GrowthDisplay, RegionsDisplay, SelectionDisplay
from mixent.studies.displays.det import DetDisplay
from mixent.studies.displays.ensemble_size import SizeCurveDisplay

__all__ = [
    "BoundaryDisplay",
    "CalibrationDisplay",
    "ComponentsDisplay",
    "ConfusionDisplay",
    "ConstraintsDisplay",
    "ConvergenceDisplay",
    "CriticalDifferenceDisplay",
    "DependenceDisplay",
    "DetDisplay",
    "DifferencesDisplay",
    "EdgeWeightsDisplay",
    "ExplanationDisplay",
    "GrowthDisplay",
    "LikelihoodsDisplay",
    "MarginsDisplay",
    "MultipliersDisplay",
    "PathDisplay",
    "PriorsDisplay",
    "ProjectionDisplay",
    "RegionsDisplay",
    "RocDisplay",
    "SelectionDisplay",
    "SizeCurveDisplay",
    "StatesDisplay",
    "TreeDisplay",
    "TrustDisplay",
    "UncertaintyDisplay",
]
