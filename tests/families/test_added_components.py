"""One new component beside a frozen group: inside the structure, and nothing inside it is better."""

import numpy as np
import pytest
from scipy.linalg import expm

from mixent.families.gaussian.structures import COVARIANCES, Covariances, log_det_trace

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
every = pytest.mark.parametrize("name", NAMES)


def scatters(rng, P, d):
    mass = np.exp(rng.normal(3.0, 1.0, P))
    roots = rng.normal(size=(P, d + 2, d)) * np.exp(0.5 * rng.normal(size=(P, 1, d)))
    return mass, mass[:, None, None] * (np.swapaxes(roots, 1, 2) @ roots)


def matrices(covs):
    return covs if covs.ndim == 3 else covs[:, :, None] * np.eye(covs.shape[1])


def group_of(name, rng, K, d):
    return COVARIANCES[name].update(*scatters(rng, K, d))


def value(cov, mass, scatter):
    return log_det_trace(Covariances(cov[None]), np.array([mass]), scatter[None])


def parts(cov, axes=None):
    """Log volume, shape and axes of one matrix; along `axes` where they are given."""
    values, vectors = np.linalg.eigh(cov)
    if axes is not None:
        values, vectors = np.diagonal(axes.T @ cov @ axes), axes
    logs = np.log(values)
    return logs.mean(), logs - logs.mean(), vectors


def feasible(name, like, new, rng, size):
    """A matrix of the structure near `new`: the group's where Equal, moved at random where Variable."""
    group = matrices(like.covs)[0]
    d = len(group)
    common = {"I": np.eye(d), "E": like.axes if like.axes is not None else parts(group)[2], "V": None}[name[2]]
    volume, shape, axes = parts(new, common)
    if name[0] == "V":
        volume += size * rng.normal()
    else:
        volume = parts(group)[0]
    if name[1] == "V":
        move = size * rng.normal(size=d)
        shape = shape + move - move.mean()
    elif name[1] == "E":
        shape = parts(group, common)[1]
    if name[2] == "V":
        skew = size * rng.normal(size=(d, d))
        axes = axes @ expm(skew - skew.T)
    return (axes * np.exp(volume + shape)) @ axes.T


@every
@pytest.mark.parametrize("K", [1, 3])
def test_no_feasible_matrix_nearby_or_far_is_better(name, K):
    rng = np.random.default_rng(NAMES.index(name))
    for d in (1, 3):
        like = group_of(name, rng, K, d)
        mass, scatter = scatters(rng, 2, d)
        found = matrices(COVARIANCES[name].update_added(mass, scatter, like))
        for m, W, cov in zip(mass, scatter, found):
            best = value(cov, m, W)
            same = feasible(name, like, cov, rng, 0.0)
            np.testing.assert_allclose(cov, same, rtol=1e-9, atol=1e-9 * np.abs(cov).max())  # it is inside
            for size in (1e-3, 0.03, 0.3, 2.0):
                for _ in range(5):
                    assert value(feasible(name, like, cov, rng, size), m, W) <= best + 1e-9 * abs(best)


@every
def test_what_is_equal_is_the_groups_and_a_member_s_own_scatter_gives_it_back(name):
    """The group's M-step is a maximum over each member with the others held."""
    rng = np.random.default_rng(3)
    structure = COVARIANCES[name]
    mass, scatter = scatters(rng, 3, 3)
    like = structure.update(mass, scatter)
    beside = structure.update_added(mass, scatter, like)
    np.testing.assert_allclose(beside, like.covs, rtol=1e-5, atol=1e-5 * np.abs(like.covs).max())


@every
def test_several_at_once_are_one_by_one(name):
    rng = np.random.default_rng(4)
    like = group_of(name, rng, 2, 3)
    mass, scatter = scatters(rng, 4, 3)
    together = COVARIANCES[name].update_added(mass, scatter, like)
    for p in range(4):
        alone = COVARIANCES[name].update_added(mass[[p]], scatter[[p]], like)
        np.testing.assert_allclose(together[[p]], alone, rtol=1e-12, atol=1e-12 * np.abs(alone).max())


@pytest.mark.parametrize("name", ["EVE", "VVE"])
def test_the_groups_axes_hold_even_where_its_matrices_do_not_show_them(name):
    rng = np.random.default_rng(6)
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    found = COVARIANCES[name].update_added(*scatters(rng, 2, 3), Covariances(np.stack([2 * np.eye(3)] * 2), axes))
    turned = axes.T @ found @ axes
    np.testing.assert_allclose(turned, np.stack([np.diag(np.diagonal(t)) for t in turned]), atol=1e-12 * found.max())


@every
def test_a_flat_scatter_gives_finite_matrices(name):
    rng = np.random.default_rng(5)
    like = group_of(name, rng, 2, 3)
    mass, scatter = scatters(rng, 2, 3)
    scatter[0, 0] = scatter[0, :, 0] = 0.0
    scatter[1] = 0.0
    assert np.isfinite(COVARIANCES[name].update_added(mass, scatter, like)).all()
