"""The loss of a row is bounded, and the temperature minimizes it."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from mixent.base.bounded_loss import UNIFORM_SHARE, fit_temperature, log_with_uniform, row_losses


def cases(n=80, n_classes=3, seed=0, spread=4.0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    target = np.eye(n_classes)[codes]
    return spread * rng.normal(size=(n, n_classes)) + 3 * target, np.log([0.5, 0.3, 0.2]), target


@pytest.mark.parametrize("soft", [False, True])
def test_row_losses_are_those_of_probabilities_with_a_share_of_the_uniform(soft):
    density, prior, target = cases()
    target = np.random.default_rng(1).random(target.shape) if soft else target
    joint = prior + 0.7 * density
    proba = np.exp(joint - logsumexp(joint, axis=1)[:, None])
    mixed = (1 - UNIFORM_SHARE) * proba + UNIFORM_SHARE / 3
    np.testing.assert_allclose(
        row_losses(density, prior, 0.7, target), -np.log((mixed * target).sum(axis=1)), rtol=1e-12
    )
    np.testing.assert_allclose(log_with_uniform(np.log(proba)), np.log(mixed), rtol=1e-12)


@pytest.mark.parametrize("wild", [-1e3, -1e300, -np.inf])
def test_the_loss_of_a_row_is_bounded(wild):
    density = np.array([[wild, 0.0, 0.0], [-np.inf, -np.inf, -np.inf]])
    losses = row_losses(density, np.log([0.2, 0.3, 0.5]), 1.0, np.eye(3)[[0, 0]])
    assert losses[0] == pytest.approx(np.log(3 / UNIFORM_SHARE))
    assert losses[1] == pytest.approx(-np.log((1 - UNIFORM_SHARE) * 0.2 + UNIFORM_SHARE / 3))  # the priors remain


def test_one_row_changes_the_mean_loss_by_at_most_its_share_of_the_bound():
    density, prior, target = cases()
    weight = np.ones(len(density))
    _, before, _ = fit_temperature(density, prior, target, weight)
    density[0] = [-1e200, 0.0, 1e200]
    _, after, _ = fit_temperature(density, prior, target, weight)
    assert after - before <= np.log(3 / UNIFORM_SHARE) / len(density)


@pytest.mark.parametrize("spread", [0.3, 4.0, 30.0])
def test_the_temperature_has_the_least_loss(spread):
    density, prior, target = cases(spread=spread)
    weight = np.random.default_rng(2).exponential(size=len(density))

    def loss(log_t):
        return np.average(row_losses(density, prior, np.exp(log_t), target), weights=weight)

    least = minimize_scalar(loss, bounds=(np.log(0.02), 0), method="bounded", options={"xatol": 1e-9}).fun
    temperature, found, raw = fit_temperature(density, prior, target, weight)
    assert raw == pytest.approx(loss(0.0), rel=1e-12)
    assert found == pytest.approx(min(least, raw), rel=1e-5)
    assert found == pytest.approx(loss(np.log(temperature)), rel=1e-12)


def test_several_models_at_once_are_as_one_at_a_time():
    models = [cases(spread=spread)[0] for spread in (0.5, 3.0, 20.0)]
    _, prior, target = cases()
    weight = np.ones(len(target))
    together = fit_temperature(np.stack(models), prior, target, weight)
    alone = [fit_temperature(model, prior, target, weight) for model in models]
    np.testing.assert_allclose(together, np.transpose(alone), rtol=1e-13)
