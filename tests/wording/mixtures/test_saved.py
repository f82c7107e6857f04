"""Wording of mixtures, saved."""

import numpy as np
import pytest

import mixent


def test_only_mixent_models_are_saved(tmp_path):
    with pytest.raises(
        TypeError,
        match="save takes a mixent estimator .GaussianMixture, MixtureClassifier, .*, MaxEntJoint, .*Fuser.; got dict",
    ):
        mixent.save({}, tmp_path / "m.mixent")
    assert not (tmp_path / "m.mixent").exists()


def test_parts_that_do_not_fit_the_columns_or_structures_are_described():
    from mixent.families.categorical import CategoricalFamily
    from mixent.families.gaussian.family import Group
    from mixent.mixtures.registration import all_categories, fitted_structure

    with pytest.raises(ValueError, match=r"sizes are \(2, 3\), and the columns have \(2, 4\) categories"):
        all_categories(CategoricalFamily((2, 3), np.ones(5)), {"categories": (2, 4)})
    with pytest.raises(ValueError, match="a group of components has structure 'XXX', 0 to 2"):
        fitted_structure(Group("XXX", 0, 2), {})
