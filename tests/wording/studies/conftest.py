"""Fixtures of tests/studies which tests of wording use too."""

from ...studies.test_displays import curves

__all__ = ["curves"]
