"""Wording of med, encoding."""

import pytest

from ...med.test_encoding import encoded, frame


def test_standard_deviations_of_unscaled_columns_are_reported():
    far = frame().assign(age=1e10 * frame()["age"])
    with pytest.raises(
        ValueError,
        match=r"column 'age' has a standard deviation of 1\.12e\+11, column 'size' one of 1\.7: .*set standardize=True",
    ):
        encoded(standardize=False, data=far)
