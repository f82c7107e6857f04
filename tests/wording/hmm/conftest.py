"""Fixtures of tests/hmm which tests of wording use too."""

from ...hmm.test_displays import numbers

__all__ = ["numbers"]
