"""Fixtures of tests/maxent which tests of wording use too."""

from ...maxent.test_classifier import mixed, votes
from ...maxent.test_displays import iris
from ...maxent.test_joint import fitted

__all__ = ["fitted", "iris", "mixed", "votes"]
