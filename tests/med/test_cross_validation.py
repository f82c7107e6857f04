"""Cross-validation within a fit: where the search for C ends."""

import numpy as np
import pytest

from mixent import MEDClassifier
from mixent.med.classifier import GRIDS

GRID = GRIDS["laplace"]


def rows(distance, n=120, seed=0):
    """Two clouds of rows at this distance, in their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + distance * (y[:, None] - 0.5) * np.array([1.0, -1.0, 0.0, 0.0]), y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_search_for_C_ends_where_all_margins_are_attained_and_a_larger_C_changes_little(kernel):
    X, y = rows(9.0)
    model = MEDClassifier(kernel, random_state=0).fit(X, y)
    tried = [entry["C"] for entry in model.C_tried_]
    last = MEDClassifier(kernel, C=tried[-1], random_state=0).fit(X, y)
    largest = MEDClassifier(kernel, C=GRID[-1], random_state=0).fit(X, y)
    assert len(tried) < len(GRID) and tried[-1] < 0.2 * GRID[-1]
    scores = [m.decision_function(X) for m in (last, largest)]
    assert np.corrcoef(*scores)[0, 1] > 0.999
    assert np.abs(scores[0] / scores[1] - 1).max() < 0.3
    # margins: the expected ones are within the tolerance of the target
    shortfall = last.margin_.target - last.margin_.mean(last.multipliers_.max())
    assert shortfall <= 0.15 * last.margin_.target


def test_the_search_for_C_ends_after_two_values_that_bring_nothing():
    X, y = rows(1.0)
    model = MEDClassifier(random_state=0).fit(X, y)
    losses = [entry["log_loss"] for entry in model.C_tried_]
    assert len(losses) < len(GRID) and int(np.argmin(losses)) == len(losses) - 3
    assert model.C_tried_[len(losses) - 3]["C"] == model.C_
