"""Wording of hmm, describe."""

import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import HiddenMarkovModel, HMMClassifier
from mixent.base.document import Bullets

from ...hmm.test_describe import X, Y, blocks


def test_left_to_right_with_transitions_for_each_step():
    steps = HiddenMarkovModel(2, transitions="per_step", topology="left-right").fit(X)
    assert "left to right, with a transition matrix for each step" in str(steps.summary())


def test_down_did_not_converge_after_pass():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = HMMClassifier(3, max_iter=1, random_state=0).fit(X, Y)
    (bullets,) = blocks(model.summary(), Bullets)
    assert bullets.items[0].startswith("down: Did not converge after 1 pass")
