"""Wording of families, structures."""

import pytest

from mixent.families.gaussian.structures import get_structure


@pytest.mark.parametrize(("wrong", "meant"), [("vvv", "VVV"), ("VVW", "VVV"), ("Diagonal", "VVI"), ("tied", "EEE")])
def test_unknown_name_suggests_a_close_one(wrong, meant):
    with pytest.raises(ValueError, match=f"one of EII, VII, .*; got '{wrong}'. Did you mean '{meant}'?"):
        get_structure(wrong)


@pytest.mark.parametrize("wrong", ["banana", None, 3])
def test_covariance_must_be_one_of_eii_to_vvv(wrong):
    with pytest.raises(ValueError, match="covariance must be one of EII, .* VVV; got"):
        get_structure(wrong)
