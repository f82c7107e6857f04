"""Fusion of black-box classifiers on an unlabelled batch: no labels in common, priors that may have shifted."""

from mixent.fusion.agreement import Agreement
from mixent.fusion.answers import LongAnswers, long_answers
from mixent.fusion.batch_priors import PriorEstimate, PriorShiftTest
from mixent.fusion.calibration import Calibration
from mixent.fusion.dependence import Dependence
from mixent.fusion.drift import Drift
from mixent.fusion.estimator import Fuser
from mixent.fusion.faults import Fault
from mixent.fusion.serialize import load_calibrations, save_calibrations
from mixent.fusion.sources import Source

__all__ = [
    "Agreement",
    "Calibration",
    "Dependence",
    "Drift",
    "Fault",
    "Fuser",
    "LongAnswers",
    "PriorEstimate",
    "PriorShiftTest",
    "Source",
    "load_calibrations",
    "long_answers",
    "save_calibrations",
]
