"""Studies: scores under shifted class priors, scores by ensemble size, and verification."""

from mixent.studies.ensemble_size import SizeCurves, size_curves
from mixent.studies.prior_shift import (
    PriorShiftStudy,
    prior_mismatch,
    prior_shift_study,
    resample_priors,
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
    "PriorShiftStudy",
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
    "prior_shift_study",
    "resample_priors",
    "size_curves",
    "verification_rates",
    "verification_report",
    "with_copies",
    "without_class",
]
