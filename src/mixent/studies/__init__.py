"""Studies around the estimators: verification, shifts of the class priors, and the size of an ensemble."""

from mixent.studies.ensemble_size import SizeCurves, size_curves
from mixent.studies.prior_shift import (
    ShiftStudy,
    prior_mismatch,
    resample_priors,
    shift_study,
    with_copies,
    without_class,
)
from mixent.studies.verification import (
    VerificationRates,
    VerificationReport,
    bayes_threshold,
    cllr,
    detection_cost,
    eer,
    llr_of_posterior,
    min_cllr,
    min_dcf,
    verification_rates,
    verification_report,
)

__all__ = [
    "ShiftStudy",
    "SizeCurves",
    "VerificationRates",
    "VerificationReport",
    "bayes_threshold",
    "cllr",
    "detection_cost",
    "eer",
    "llr_of_posterior",
    "min_cllr",
    "min_dcf",
    "prior_mismatch",
    "resample_priors",
    "shift_study",
    "size_curves",
    "verification_rates",
    "verification_report",
    "with_copies",
    "without_class",
]
