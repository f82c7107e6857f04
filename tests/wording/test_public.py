"""Wording of public."""

import pytest

import mixent


def test_module_mixent_has_no_attribute_gaussian():
    with pytest.raises(AttributeError, match="module 'mixent' has no attribute 'Gaussian'"):
        mixent.Gaussian  # noqa: B018
