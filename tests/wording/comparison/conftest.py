"""Fixtures of tests/comparison which tests of wording use too."""

from ...comparison.conftest import table
from ...comparison.test_problems import sound

__all__ = ["sound", "table"]
