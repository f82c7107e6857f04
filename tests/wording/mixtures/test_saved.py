"""Wording of mixtures, saved."""

import pytest

import mixent


def test_only_mixent_models_are_saved(tmp_path):
    with pytest.raises(
        TypeError,
        match="save takes a mixent estimator .GaussianMixture, MixtureClassifier, .*, MaxEntJoint, .*Fuser.; got dict",
    ):
        mixent.save({}, tmp_path / "m.mixent")
    assert not (tmp_path / "m.mixent").exists()
