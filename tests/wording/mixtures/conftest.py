"""Fixtures of tests/mixtures which tests of wording use too."""

from ...mixtures.conftest import draw, same
from ...mixtures.test_explain import fitted
from ...mixtures.test_hard_cases import duplicated
from ...mixtures.test_sklearn import estimator, table
from ...mixtures.test_tables import model

__all__ = ["draw", "duplicated", "estimator", "fitted", "model", "same", "table"]
