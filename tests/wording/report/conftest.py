"""Fixtures of tests/report which tests of wording use too."""

from ...report.conftest import read
from ...report.test_comparison import found
from ...report.test_fusion import fuser

__all__ = ["found", "fuser", "read"]
