"""Fixtures of tests/fusion which tests of wording use too."""

from ...fusion.test_displays import fuser

__all__ = ["fuser"]
