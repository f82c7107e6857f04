"""Wording of med, encoding."""

import pytest

from ...med.test_encoding import encoded, frame


def test_column_age_varies_by_e_column_size_by():
    far = frame().assign(age=1e10 * frame()["age"])
    with pytest.raises(
        ValueError, match=r"column 'age' varies by 1\.12e\+11, column 'size' by 1\.7: .*set standardize=True"
    ):
        encoded(standardize=False, data=far)
