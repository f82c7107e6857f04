"""Wording of med, uncertain labels."""

import numpy as np
import pytest

from mixent import MEDClassifier

KNOWN = np.eye(2)[np.arange(20) % 2]
UNLABELLED = np.where(np.arange(20) == 4, None, np.where(KNOWN[:, 0] == 1, "a", "b"))
IN_DOUBT = np.where(np.arange(20)[:, None] == 4, 0.5 * KNOWN + 0.25, KNOWN)


@pytest.mark.parametrize("y", [UNLABELLED, IN_DOUBT], ids=["unlabelled", "in doubt"])
def test_a_row_in_doubt_cannot_keep_a_certain_margin(y):
    with pytest.raises(ValueError, match="margin='fixed' requires that all labels are known, .*provide every label"):
        MEDClassifier(margin="fixed").fit(np.arange(20.0)[:, None], y)
