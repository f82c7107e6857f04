"""Racing stops methods that are clearly behind, and hardly ever the one that would have won."""

import numpy as np
import pytest

from mixent.evaluate.race import clearly_behind

N_FOLDS = 5


def tables(rng, gaps, n_rows, spread):
    """Losses of methods in the rows of five folds, (m, 5, n_rows): skewed, correlated, other in every training set."""
    hard = rng.gamma(0.5, 1.0, size=(1, N_FOLDS, n_rows))
    own = rng.gamma(0.5, 0.4, size=(len(gaps), N_FOLDS, n_rows))
    training = spread * rng.normal(size=(len(gaps), N_FOLDS, 1))
    return hard + own + training + np.asarray(gaps)[:, None, None]


def stopped(losses):
    first = losses[:, :2]
    folds = np.repeat([0, 1], first.shape[2])
    return clearly_behind(first.reshape(len(losses), -1), folds, np.ones(len(folds)), 0.25)


@pytest.mark.parametrize("n_rows", [12, 30, 400])
@pytest.mark.parametrize("gaps", [np.zeros(12), np.linspace(0, 0.2, 12)], ids=["equal", "unequal"])
def test_the_eventual_best_is_hardly_ever_stopped(gaps, n_rows):
    rng, lost = np.random.default_rng(0), 0
    for _ in range(400):
        losses = tables(rng, gaps, n_rows, spread=0.02)
        lost += stopped(losses)[losses.mean(axis=(1, 2)).argmin()]
    assert lost <= 1


def test_what_is_far_behind_is_stopped():
    rng = np.random.default_rng(0)
    found = [stopped(tables(rng, [0.0, 0.02, 0.5], 100, spread=0.01)) for _ in range(100)]
    assert np.mean(found, axis=0).tolist() == pytest.approx([0.0, 0.0, 1.0], abs=0.02)


def test_a_method_must_be_behind_in_every_fold():
    losses = np.zeros((2, 40)) + 0.1
    losses[1, :20] = 5.0
    losses[1, 20:] = 0.09
    assert not clearly_behind(losses, np.repeat([0, 1], 20), np.ones(40), 0.25).any()
    losses[1, 20:] = 4.0
    assert clearly_behind(losses, np.repeat([0, 1], 20), np.ones(40), 0.25).tolist() == [False, True]


def test_a_weight_of_two_is_the_row_twice():
    rng = np.random.default_rng(1)
    losses = tables(rng, [0.0, 0.08, 0.1, 0.12], 50, 0.0)[:, :2].reshape(4, -1)
    folds, weight = np.repeat([0, 1], 50), np.where(np.arange(100) % 3 == 0, 3.0, 1.0)
    scaled = clearly_behind(losses, folds, 7 * weight, 0.25)
    np.testing.assert_array_equal(clearly_behind(losses, folds, weight, 0.25), scaled)
