"""Fixtures of tests/data which tests of wording use too."""

from ...data.test_features import mixed

__all__ = ["mixed"]
