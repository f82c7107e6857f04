"""Fixtures of tests/base which tests of wording use too."""

from ...base.test_decision import searched
from ...base.test_registry import majority

__all__ = ["majority", "searched"]
