"""Wording of hmm, baum welch."""

import numpy as np
import pytest

from mixent import HiddenMarkovModel

from ...hmm.test_baum_welch import RAW


def test_state_collapsed_onto_too_few_distinct_values():
    X = np.concatenate([np.zeros(40), np.random.default_rng(0).normal(size=40) + 5])[:, None]
    with pytest.warns(UserWarning, match="state 0 collapsed onto too few distinct values; re-seeded next to state 1"):
        HiddenMarkovModel(2, **RAW).fit(X, lengths=[20, 20, 40])
