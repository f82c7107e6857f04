"""Wording of med, uncertain labels."""

import numpy as np
import pytest

from mixent import MEDClassifier


@pytest.mark.parametrize("y", [[0.0, 1.0, np.nan, 1.0], np.array([[1.0, 0.0], [0.0, 1.0], [0.4, 0.6], [0.0, 1.0]])])
def test_a_row_in_doubt_cannot_keep_a_certain_margin(y):
    with pytest.raises(ValueError, match="margin='fixed' requires that all labels are known, .*provide every label"):
        MEDClassifier(margin="fixed").fit(np.arange(4.0)[:, None], y)
