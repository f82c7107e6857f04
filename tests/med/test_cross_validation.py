"""Cross-validation within a fit: where the search for C ends."""

from types import SimpleNamespace

import numpy as np
import pytest

from mixent import MEDClassifier
from mixent.med.classifier import GRIDS
from mixent.med.cross_validation import CrossValidation
from mixent.med.training_sets import Subset

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


def test_the_search_for_C_ends_where_the_loss_rises_twice_in_a_row():
    X, y = rows(1.0)
    model = MEDClassifier(random_state=0).fit(X, y)
    losses = [entry["log_loss"] for entry in model.C_tried_]
    assert len(losses) < len(GRID) and losses[-3] < losses[-2] < losses[-1]
    assert all(not a < b < c for a, b, c in zip(losses[:-1], losses[1:-1], losses[2:-1]))  # not before
    assert model.C_tried_[int(np.argmin(losses))]["C"] == model.C_


class Losses(CrossValidation):
    """Given losses in place of those of held-out rows."""

    def scores(self, C, rounds=None, states=None, fold_prior=None):
        states["fold"] = SimpleNamespace(attains_margins=False)
        return [self.train[C]]

    def loss(self, held_out):
        return held_out[0]


@pytest.mark.parametrize(
    ("losses", "n_tried", "best"),
    [
        ([0.24, 0.27, 0.26, 0.06, 0.05, 0.06, 0.07, 0.01], 7, 4),  # a rise of one value, then a rise of two
        ([0.24, 0.20, 0.21, 0.205, 0.206, 0.01], 5, 1),  # three values without improvement
        ([0.24, 0.20, 0.21, 0.22, 0.01], 4, 1),
        ([0.24, 0.20, 0.10], 3, 2),
    ],
)
def test_where_the_search_for_C_ends(losses, n_tried, best):
    grid = tuple(range(1, len(losses) + 1))
    subset = Subset(np.arange(2), np.eye(2), np.ones(2, bool), np.ones(2), False)
    choice = Losses(dict(zip(grid, losses)), None, subset, [[None]], None, None).choose_C(grid, 3)
    assert [entry["log_loss"] for entry in choice.tried] == losses[:n_tried]
    assert grid[best] == choice.C and choice.held_out == [losses[best]]
