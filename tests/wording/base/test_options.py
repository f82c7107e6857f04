"""Wording of base, options."""

import pytest

from ...base.test_options import Model


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"features": "x"}, "features must be one of 'bins', 'few', 'mixture', or a Bins or a Mixture; got 'x'"),
        ({"features": None}, "features must be one of 'bins', 'few', 'mixture', or a Bins or a Mixture; got None"),
        ({"search": 3}, "search must be one of None, 'bic', or a Search; got 3"),
    ],
)
def test_unknown_values_are_refused_with_what_is_allowed(wrong, message):
    model = Model(**wrong)
    model.get_params()  # a wrong value does not stop a clone; `fit` refuses it
    with pytest.raises(ValueError, match=f"^{message.replace('?', '[?]')}$"):
        model._group(next(iter(wrong)))


def test_stop_is_none_which_has_no_parameters():
    with pytest.raises(ValueError, match="stop is None, which has no parameters; set stop too"):
        Model().set_params(stop__wrong="bic")


def test_a_parameter_of_another_class_names_what_to_set_too():
    with pytest.raises(ValueError, match=r"^n_bins is a parameter of Bins; set features='bins' or features='few' too$"):
        Model().set_params(features__n_bins=3)
    with pytest.raises(ValueError, match=r"^criterion is a parameter of Search; set stop='bic' too$"):
        Model().set_params(stop__criterion="bic")
    with pytest.raises(ValueError, match="Invalid parameter 'wrong'"):
        Model().set_params(features__wrong=3)
