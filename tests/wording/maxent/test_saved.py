"""Wording of maxent, saved."""

import pytest

import mixent
from mixent import MaxEntClassifier, MaxEntJoint
from mixent.core import serialize
from mixent.options import ComponentFeatures
from mixent.persistence.files import known_classes

from ...maxent.test_saved import PAIRS, X, Y


def test_a_damaged_model_inside_a_model_is_refused(tmp_path):
    from dataclasses import replace

    model = MaxEntClassifier(ComponentFeatures(groups=PAIRS, max_components=1), prior_variance=1.0, random_state=0).fit(
        X, Y
    )
    group = model.layout_.dense[-1]
    whole = model.layout_
    model.layout_ = replace(whole, dense=(*whole.dense[:-1], replace(group, mixture=None)))
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(mixent.persistence.SavedFileError, match="a group of columns has no mixture"):
        mixent.load(tmp_path / "m.mixent")
    del group.mixture.params_
    model.layout_ = whole
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(mixent.persistence.SavedFileError, match=r"damaged \(params_ is missing"):
        mixent.load(tmp_path / "m.mixent")


def test_a_joint_model_without_a_part_is_refused(tmp_path):
    model = MaxEntJoint(prior_variance=1.0).fit(X[["color", "flag"]])
    model.terms_ = None
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(mixent.persistence.SavedFileError, match="terms_ is missing"):
        mixent.load(tmp_path / "m.mixent")


def test_a_mixture_in_the_place_of_a_maximum_entropy_model_is_refused(tmp_path):
    """Each kind of model has its own parts."""
    model = mixent.MixtureClassifier(1).fit(X[["size", "color"]], Y)
    model.params_ = MaxEntClassifier("bins", prior_variance=1.0).fit(X, Y).params_
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(mixent.persistence.SavedFileError, match="params_ is missing or is not of type MixtureParams"):
        mixent.load(tmp_path / "m.mixent")
