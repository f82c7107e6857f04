"""Fixtures of tests/ensemble which tests of wording use too."""

from ...ensemble.conftest import blobs, make_answers
from ...ensemble.test_maxent_stacking import placed
from ...ensemble.test_saved import path

__all__ = ["blobs", "make_answers", "path", "placed"]
