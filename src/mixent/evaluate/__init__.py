"""Scores, cross-validation on common folds, and tests of differences between methods."""

from mixent.base.folds import stratified_folds
from mixent.base.multiple_tests import holm
from mixent.data.labels import labelled_rows
from mixent.evaluate.bounds import ErrorReport, Quantity, bayes_error, error_bounds, error_report
from mixent.evaluate.cross_validation import cross_validate
from mixent.evaluate.multi_dataset import RankComparison, compare_over_sets
from mixent.evaluate.paired import FTest, TTest, corrected_t_test, five_by_two_f, five_by_two_f_test, ten_by_ten
from mixent.evaluate.paired_datasets import SetsTest, sign_test, signed_rank_test
from mixent.evaluate.paired_rows import RowTest, row_t_test
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import balanced_error, brier, calibration_error, error_rate, log_loss, score_table

__all__ = [
    "CrossValidation",
    "ErrorReport",
    "FTest",
    "Quantity",
    "RankComparison",
    "RowTest",
    "SetsTest",
    "TTest",
    "balanced_error",
    "bayes_error",
    "brier",
    "calibration_error",
    "compare_over_sets",
    "corrected_t_test",
    "cross_validate",
    "error_bounds",
    "error_rate",
    "error_report",
    "five_by_two_f",
    "five_by_two_f_test",
    "holm",
    "labelled_rows",
    "log_loss",
    "row_t_test",
    "score_table",
    "sign_test",
    "signed_rank_test",
    "stratified_folds",
    "ten_by_ten",
]
