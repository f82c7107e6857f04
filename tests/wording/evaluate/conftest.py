"""Fixtures of tests/evaluate which tests of wording use too."""

from ...evaluate.test_roc_display import models

__all__ = ["models"]
