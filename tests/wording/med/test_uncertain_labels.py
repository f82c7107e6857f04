"""Wording of med, uncertain labels."""

import numpy as np
import pytest

from mixent.med.functions import LinearDiscriminant
from mixent.med.margins import Fixed
from mixent.med.uncertain_labels import solve_uncertain_labels

from ...med.test_uncertain_labels import SEARCH, draw


def test_a_row_in_doubt_cannot_keep_a_certain_margin():
    X, _, prior, weight = draw()
    with pytest.raises(ValueError, match="margin='fixed' requires that all labels are known, .*provide every label"):
        solve_uncertain_labels(
            LinearDiscriminant(X, 2, np.inf), Fixed(1.0), prior, weight, SEARCH, relaxation=1.0, tol=1e-8, max_rounds=9
        )
