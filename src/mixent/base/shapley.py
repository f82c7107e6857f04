"""Shapley values: what each player contributes to the value of a game, over all coalitions or over sampled orders.

The contribution of player j is its mean gain v(S + j) - v(S), where S are the players before j in an order of all
players, averaged over all orders (Shapley 1953). The contributions add up to v(all) - v(none).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Protocol

import numpy as np

from mixent.core.arrays import Array

MOST = 2_000  # values of coalitions for each game, about


class Coalitions(Protocol):
    """Coalitions whose values determine the contributions.

    A game may be the mean of several worlds (background rows): v(S) = mean over w of v_w(S).
    """

    members: np.ndarray  # (M, d) bool
    world: np.ndarray  # (M,) int
    sampled: bool

    def contributions(self, values: Array) -> tuple[Array, Array]:
        """v(none), (n,), and the contributions of the players, (n, d), from the values of the coalitions, (n, M)."""


def coalitions(n_players: int, n_worlds: int) -> Coalitions:
    """The coalitions to evaluate: all if they are few, else those along sampled orders of the players."""
    if n_worlds * 2**n_players <= MOST or n_players == 1:
        return Enumerated(n_players, n_worlds)
    return Orders(n_players, n_worlds)


def _in_worlds(members: np.ndarray, n_worlds: int) -> tuple[np.ndarray, np.ndarray]:
    """Every coalition in every world."""
    return np.repeat(members, n_worlds, axis=0), np.tile(np.arange(n_worlds), len(members))


class Enumerated:
    """All coalitions: phi_j = sum over S without j of |S|! (d - |S| - 1)! / d! (v(S + j) - v(S))."""

    sampled = False

    def __init__(self, n_players: int, n_worlds: int) -> None:
        self.n_players, self.n_worlds = n_players, n_worlds
        self.sets = np.arange(2**n_players)[:, None] >> np.arange(n_players) & 1 == 1  # (2^d, d)
        self.members, self.world = _in_worlds(self.sets, n_worlds)

    def contributions(self, values: Array) -> tuple[Array, Array]:
        """See `Coalitions`."""
        d, mean = self.n_players, values.reshape(len(values), -1, self.n_worlds).mean(axis=2)  # (n, 2^d)
        weights = np.array([1 / (d * comb(d - 1, size)) for size in range(d)])
        phi = np.empty((len(values), d))
        for j in range(d):
            without = np.flatnonzero(~self.sets[:, j])
            gains = mean[:, without + (1 << j)] - mean[:, without]
            phi[:, j] = gains @ weights[self.sets[without].sum(axis=1)]
        return mean[:, 0], phi


class Orders:
    """Orders drawn with a fixed seed, each with its reverse (antithetic), equally many in every world.

    The gains along each order telescope, so that the contributions add up exactly whatever the orders.
    """

    sampled = True

    def __init__(self, n_players: int, n_worlds: int) -> None:
        repeats = max(1, MOST // (2 * (n_players - 1) * n_worlds))
        rng = np.random.RandomState(0)
        drawn = np.array([rng.permutation(n_players) for _ in range(repeats * n_worlds)])
        order = np.concatenate([drawn, drawn[:, ::-1]])  # (P, d)
        self.rank = np.argsort(order, axis=1)  # (P, d) place of each player
        self.n_players, self.n_worlds = n_players, n_worlds
        inner = self.rank[:, None, :] < np.arange(1, n_players)[:, None]  # (P, d - 1, d): the first 1, ..., d - 1
        ends = np.vstack([np.zeros((n_worlds, n_players), dtype=bool), np.ones((1, n_players), dtype=bool)])
        self.members = np.vstack([inner.reshape(-1, n_players), ends])
        self.of_order = np.tile(np.arange(n_worlds), 2 * repeats)  # (P,) world
        self.world = np.concatenate([np.repeat(self.of_order, n_players - 1), np.arange(n_worlds), [0]])

    def contributions(self, values: Array) -> tuple[Array, Array]:
        """See `Coalitions`."""
        n, d, n_worlds = len(values), self.n_players, self.n_worlds
        none, every = values[:, -n_worlds - 1 : -1], values[:, -1:]
        path = np.empty((n, len(self.rank), d + 1))
        path[:, :, 0], path[:, :, -1] = none[:, self.of_order], every
        path[:, :, 1:-1] = values[:, : -n_worlds - 1].reshape(n, -1, d - 1)
        gains = np.take_along_axis(np.diff(path, axis=2), np.broadcast_to(self.rank, (n, *self.rank.shape)), axis=2)
        return none.mean(axis=1), gains.mean(axis=1)


@dataclass(frozen=True)
class Games:
    """The games of n rows: player j of row i takes its cell from the row, or else from a background row (world)."""

    n_rows: int
    n_background: int  # rows 0, ..., n_background - 1 of the stacked rows; 0: cells are missing instead
    plan: Coalitions

    @classmethod
    def of(cls, n_rows: int, n_background: int, n_players: int) -> Games:
        """The games of n rows against the background."""
        return cls(n_rows, n_background, coalitions(n_players, max(n_background, 1)))

    def __len__(self) -> int:
        return self.n_rows * len(self.plan.world)

    def stacked(self, flat: np.ndarray) -> np.ndarray:
        """(N, d) the row, among background and rows, from which each cell of these evaluations comes; -1 is missing."""
        row, place = np.divmod(flat, len(self.plan.world))
        other = self.plan.world[place] if self.n_background else np.full(len(flat), -1)
        return np.where(self.plan.members[place], (self.n_background + row)[:, None], other[:, None])
