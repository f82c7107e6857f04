"""Shapley values: the definition by orders, efficiency, symmetry, players without influence, sampled orders."""

from itertools import permutations

import numpy as np
import pytest

from mixent.base import shapley
from mixent.base.shapley import Enumerated, Games, Orders, coalitions


def any_game(d, n_worlds=1, seed=0):
    """(world, coalition) -> value, without any structure."""
    table = np.random.default_rng(seed).normal(size=(n_worlds, 2**d))
    return lambda members, world: table[world, members @ (1 << np.arange(d))]


def played(plan, game):
    baseline, phi = plan.contributions(game(plan.members, plan.world)[None])
    return baseline[0], phi[0]


@pytest.mark.parametrize(("d", "n_worlds"), [(1, 1), (1, 3), (2, 1), (3, 2), (4, 3)])
def test_enumeration_is_the_mean_gain_over_all_orders(d, n_worlds):
    game = any_game(d, n_worlds)
    expected = np.zeros(d)
    orders = list(permutations(range(d)))
    for order in orders:
        known = np.zeros((n_worlds, d), dtype=bool)
        for j in order:
            before = game(known, np.arange(n_worlds)).mean()
            known[:, j] = True
            expected[j] += (game(known, np.arange(n_worlds)).mean() - before) / len(orders)
    baseline, phi = played(Enumerated(d, n_worlds), game)
    np.testing.assert_allclose(phi, expected, rtol=1e-12, atol=1e-12)
    assert baseline == pytest.approx(game(np.zeros((n_worlds, d), dtype=bool), np.arange(n_worlds)).mean())


@pytest.mark.parametrize("kind", [Enumerated, Orders])
@pytest.mark.parametrize(("d", "n_worlds"), [(2, 1), (5, 3), (9, 2)])
def test_contributions_add_up(kind, d, n_worlds):
    def game(members, world):
        return np.where(members.all(axis=1), 3.0, any_game(d, n_worlds)(members, world))  # the row itself has no world

    worlds = np.arange(n_worlds)
    baseline, phi = played(kind(d, n_worlds), game)
    assert baseline == pytest.approx(game(np.zeros((n_worlds, d), dtype=bool), worlds).mean(), rel=1e-12)
    assert baseline + phi.sum() == pytest.approx(3.0, rel=1e-12)


@pytest.mark.parametrize("kind", [Enumerated, Orders])
def test_a_player_without_influence_contributes_nothing_and_equal_players_the_same(kind):
    def game(members, world):
        return np.exp(members[:, 0] + members[:, 1]) * (1 + members[:, 3])

    _, phi = played(kind(4, 2), game)
    assert phi[2] == 0
    assert phi[3] > 0
    if kind is Enumerated:
        assert phi[0] == pytest.approx(phi[1], rel=1e-12)


def test_orders_with_their_reverses_are_exact_for_pairs_of_players():
    """v(S) = sum of terms of players and of pairs: an order and its reverse divide every pair equally."""
    d = 8
    rng = np.random.default_rng(0)
    pairs = np.triu(rng.normal(size=(d, d)))

    def game(members, world):
        return np.einsum("ni,ij,nj->n", members, pairs, members)

    expected = np.diag(pairs) + 0.5 * (np.triu(pairs, 1).sum(axis=0) + np.triu(pairs, 1).sum(axis=1))
    np.testing.assert_allclose(played(Orders(d, 1), game)[1], expected, rtol=1e-9)
    np.testing.assert_allclose(played(Enumerated(d, 1), game)[1], expected, rtol=1e-9)


def test_sampled_orders_approach_all_orders(monkeypatch):
    game = any_game(6)
    _, exact = played(Enumerated(6, 1), game)
    monkeypatch.setattr(shapley, "MOST", 200_000)
    np.testing.assert_allclose(played(Orders(6, 1), game)[1], exact, atol=0.02)


def test_the_work_is_bounded():
    for d in range(1, 41):
        for n_worlds in (1, 50):
            plan = coalitions(d, n_worlds)
            assert len(plan.world) <= max(shapley.MOST + n_worlds + 1, 2 * n_worlds * d)
            assert plan.sampled == (n_worlds * 2**d > shapley.MOST)
            assert np.bincount(plan.world[~plan.members.any(axis=1)]).tolist() == [1] * n_worlds


def test_cells_come_from_the_row_or_from_the_world():
    games = Games.of(3, 2, 2)
    origin = games.stacked(np.arange(len(games))).reshape(3, -1, 2)
    for row in range(3):
        np.testing.assert_array_equal(origin[row] == 2 + row, games.plan.members)
        others = np.broadcast_to(games.plan.world[:, None], games.plan.members.shape)
        np.testing.assert_array_equal(origin[row][~games.plan.members], others[~games.plan.members])
    missing = Games.of(1, 0, 2).stacked(np.arange(4))
    np.testing.assert_array_equal(missing, [[-1, -1], [0, -1], [-1, 0], [0, 0]])
