"""Grouped parameters: short forms, nested names, clones."""

import pytest
from sklearn.base import clone

from mixent.base.options import Estimator, Options, one_of, option_classes


class Bins(Options):
    short_forms = {"bins": {}, "few": {"n_bins": 2}}

    def __init__(self, n_bins=8):
        self.n_bins = n_bins


class Mixture(Options):
    short_forms = {"mixture": {}}

    def __init__(self, max_components=6):
        self.max_components = max_components


class Search(Options):
    short_forms = {None: {}, "bic": {"criterion": "bic"}}

    def __init__(self, criterion="cv"):
        self.criterion = criterion


class Model(Estimator):
    _groups = {"features": one_of(Bins, Mixture), "search": Search.read, "stop": one_of(Search, optional=True)}

    def __init__(self, features="mixture", search=None, stop=None):
        self.features = features
        self.search = search
        self.stop = stop


def test_a_short_form_is_read_as_its_object():
    assert Model()._group("features").max_components == 6
    assert Model("few")._group("features").n_bins == 2
    own = Mixture(3)
    assert Model(own)._group("features") is own
    assert Model()._group("search").criterion == "cv" and Model(search="bic")._group("search").criterion == "bic"
    assert Model()._group("stop") is None


def test_the_classes_that_a_parameter_takes():
    assert option_classes(Model()) == {"features": (Bins, Mixture), "search": (Search,), "stop": (Search,)}


def test_nested_parameters_of_short_forms_are_seen_and_set():
    model = Model()
    assert model.get_params()["features__max_components"] == 6 and "stop__criterion" not in model.get_params()
    model.set_params(features__max_components=2, search__criterion="bic")
    assert model.features.max_components == 2 and model.search.criterion == "bic"
    model.set_params(features="bins", features__n_bins=4)
    assert model.features.n_bins == 4
    copy = clone(model).set_params(features__n_bins=5)
    assert copy.features.n_bins == 5 and model.features.n_bins == 4


def test_a_group_that_is_off_has_no_parameters():
    with pytest.raises(ValueError, match="stop is None"):
        Model().set_params(stop__wrong="bic")
    assert Model().set_params(stop="bic", stop__criterion="cv").stop.criterion == "cv"
