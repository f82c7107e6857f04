"""Scores, cross-validation on common folds, and displays."""

from mixent.evaluate.bounds import ErrorReport, Quantity, bayes_error, error_bounds, error_report
from mixent.evaluate.displays import (
    BoundaryDisplay,
    CalibrationDisplay,
    ComponentsDisplay,
    ConfusionDisplay,
    ConstraintsDisplay,
    ConvergenceDisplay,
    ExplanationDisplay,
    GrowthDisplay,
    MarginsDisplay,
    MultipliersDisplay,
    PathDisplay,
    RegionsDisplay,
    SelectionDisplay,
    UncertaintyDisplay,
)
from mixent.evaluate.labels import labelled_rows
from mixent.evaluate.scores import balanced_error, brier, calibration_error, error_rate, log_loss, score_table
from mixent.evaluate.validate import CrossValidation, cross_validate, stratified_folds

__all__ = [
    "BoundaryDisplay",
    "CalibrationDisplay",
    "ComponentsDisplay",
    "ConfusionDisplay",
    "ConstraintsDisplay",
    "ConvergenceDisplay",
    "CrossValidation",
    "ErrorReport",
    "ExplanationDisplay",
    "GrowthDisplay",
    "MarginsDisplay",
    "MultipliersDisplay",
    "PathDisplay",
    "Quantity",
    "RegionsDisplay",
    "SelectionDisplay",
    "UncertaintyDisplay",
    "balanced_error",
    "bayes_error",
    "brier",
    "calibration_error",
    "cross_validate",
    "error_bounds",
    "error_rate",
    "error_report",
    "labelled_rows",
    "log_loss",
    "score_table",
    "stratified_folds",
]
