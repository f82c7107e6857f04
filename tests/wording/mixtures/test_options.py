"""Wording of mixtures, options."""

import pytest
from sklearn.base import clone

from mixent import MixtureClassifier


def test_sharpness_is_a_parameter_of_minimumerror():
    model = MixtureClassifier(search="bic", training="conditional")
    other = clone(model).set_params(search__per_class=True, training__blend=0.5, prior__smoothing=0.5)
    with pytest.raises(ValueError, match="sharpness is a parameter of MinimumError; set training='error' too"):
        other.set_params(training__sharpness=2.0)
