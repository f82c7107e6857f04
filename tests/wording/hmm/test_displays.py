"""Wording of hmm, displays."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from mixent import HiddenMarkovModel, HMMClassifier
from mixent.displays import StatesDisplay

from ...drawing import drawn_panels
from ...hmm.test_displays import LENGTHS, STATE, STEPS, X


def test_sequence_must_be_one_of_the_in_x(numbers):
    for wrong in (30, -31):
        with pytest.raises(
            ValueError, match=f"sequence must be an index of the 30 sequences in X, starting at 0; got {wrong}"
        ):
            StatesDisplay.from_estimator(numbers, X, wrong)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
@pytest.mark.parametrize("by", ["lengths", "groups"])
def test_variable_must_be_one_of_those_emitted_level_same_alarm(by):
    order = np.argsort(np.tile(np.arange(12), 30), kind="stable") if by == "groups" else np.arange(360)
    table = STEPS.iloc[order].reset_index(drop=True)
    where = {"lengths": LENGTHS} if by == "lengths" else {"groups": np.repeat(np.arange(30), 12)[order]}
    model = HiddenMarkovModel(2, random_state=0).fit(table, **where)
    with pytest.raises(ValueError, match="variable must be one of 'level', 'same', 'alarm'; got 'x'"):
        StatesDisplay.from_estimator(model, variable="x")


def test_what_has_no_states_says_so_and_a_display_is_a_line(numbers):
    classifier = HMMClassifier(2).fit(X, STATE[:, 0])
    with pytest.raises(ValueError, match="HMMClassifier has a model for each class; pass one of its models_"):
        StatesDisplay.from_estimator(classifier)
    drawn_panels(StatesDisplay.from_estimator(classifier.models_[0], X))
    with pytest.raises(ValueError, match="LogisticRegression has no transitions_; pass a fitted HiddenMarkovModel"):
        StatesDisplay.from_estimator(LogisticRegression())
    from matplotlib.figure import Figure

    display = StatesDisplay.from_estimator(numbers, X)
    assert len(repr(display)) < 400 and len(drawn_panels(display, Figure(figsize=(9, 3)).subplots())) == 3
