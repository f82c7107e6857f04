"""Wording of ensemble, regions."""

import pytest
from sklearn.naive_bayes import GaussianNB

from mixent import MaxEntStackingClassifier
from mixent.ensemble.regions import column_positions


def test_inputs_names_a_column_that_x_does_not_have():
    names = ["a", "b", "c"]
    for bad in ("d", -1, 3, 1.0, True, None):
        with pytest.raises(ValueError, match=f"inputs: X has no column {bad!r}; its columns are 'a', 'b'"):
            column_positions([bad], names, "inputs")


def test_max_components_is_a_parameter_of_inputregions():
    with pytest.raises(ValueError, match="max_components is a parameter of InputRegions; set regions="):
        MaxEntStackingClassifier([GaussianNB()]).set_params(regions__max_components=1)
