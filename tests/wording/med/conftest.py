"""Fixtures of tests/med which tests of wording use too."""

from ...med.conftest import curved
from ...med.test_describe import three
from ...med.test_gaussian_classifier import ring

__all__ = ["curved", "ring", "three"]
