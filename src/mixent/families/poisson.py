"""Columns of counts: Poisson distributions, independent within each component, with a gamma prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammaln

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.stats import Stats

LOG_RANGE = 650.0  # of the rates, so that they and their sums are finite and positive


@dataclass(frozen=True)
class Poissons:
    """Parameters of K components; with `means` and `full_covs` in the place of Gaussians in a product."""

    rates: Array  # (K, d) > 0

    @property
    def n_components(self) -> int:
        return len(self.rates)

    @property
    def means(self) -> Array:
        """(K, d)."""
        return self.rates

    def full_covs(self) -> Array:
        """(K, d, d): variances are equal to means."""
        return self.rates[:, :, None] * np.eye(self.rates.shape[1])


@dataclass(frozen=True)
class Events(Stats):
    """Expected numbers of rows and events of each component."""

    mass: Array  # (K, d) rows in which the column is observed
    events: Array  # (K, d)


@dataclass(frozen=True)
class PoissonFamily:
    """Maximizes  sum_nk r_nk sum_j [x_nj log l_kj - l_kj - log x_nj!] + events sum_kj [log l_kj - l_kj / mean_j].

    The prior is that of `events` pseudo-events at the mean rate of all rows: the update is (events of k + events) /
    (rows of k + events / mean). A missing value is left out of the sum, which gives the exact marginal.
    """

    n_components: int
    mean: Array  # (d,) mean of each column, > 0
    events: float = 0.0  # pseudo-events of the prior

    @property
    def n_columns(self) -> int:
        return len(self.mean)

    @property
    def center(self) -> Array:
        """(d,) origin of the means."""
        return np.zeros_like(self.mean)

    @property
    def axis_aligned(self) -> bool:
        return True

    def prepare(self, params: Poissons) -> Array:
        return params.rates

    def restrict(self, ready: Array, index: np.ndarray) -> Array:
        return ready[index]

    def open(self, ready: Array, block: Block) -> PoissonWork:
        return PoissonWork(ready, block)

    def embed(self, stats: Events, index: np.ndarray, n_components: int) -> Events:
        mass, events = np.zeros((2, n_components, stats.mass.shape[1]))
        mass[index], events[index] = stats.mass, stats.events
        return Events(mass, events)

    def update(self, params: Poissons, stats: Events, live: np.ndarray | None = None) -> Poissons:
        """Return the MAP update; a column without observed values in a component does not change."""
        mass, events = stats.mass + self.events / self.mean, stats.events + self.events
        rates = np.divide(events, mass, out=np.array(params.rates), where=mass > 0)
        return Poissons(np.maximum(rates, np.exp(-LOG_RANGE)))

    def log_prior(self, params: Poissons, live: np.ndarray | None = None) -> float:
        each = self.events * (np.log(params.rates) - params.rates / self.mean).sum(axis=1)
        return float(each.sum() if live is None else each @ live)

    def condition(self, params: Poissons) -> float:
        return 1.0

    def degenerate(self, params: Poissons) -> np.ndarray:
        return np.zeros(params.n_components, dtype=bool)  # the likelihood is bounded

    def copied(self, params: Poissons, parent: int, child: int) -> Poissons:
        """Copy the rates of `parent` to `child`."""
        rates = np.array(params.rates)
        rates[child] = rates[parent]
        return Poissons(rates)

    def n_free(self) -> int:
        return self.n_components * self.n_columns

    def pack(self, params: Poissons) -> Array:
        return np.log(params.rates).ravel()

    def unpack(self, vector: Array, like: Poissons, mass: Array) -> Poissons | None:
        if not np.isfinite(vector).all() or np.abs(vector).max() > LOG_RANGE:
            return None
        return Poissons(np.exp(vector).reshape(like.rates.shape))

    def take(self, params: Poissons, index: np.ndarray) -> tuple[PoissonFamily, Poissons]:
        return replace(self, n_components=len(index)), Poissons(params.rates[index])

    def sample(self, params: Poissons, component: np.ndarray, rng: np.random.Generator) -> Array:
        """Sample a row for each entry of `component`, (n,)."""
        return rng.poisson(params.rates[component]).astype(float)

    def marginal(self, params: Poissons, columns: np.ndarray) -> tuple[PoissonFamily, Poissons]:
        return replace(self, mean=self.mean[columns]), Poissons(params.rates[:, columns])


class PoissonWork:
    """A block with given rates."""

    def __init__(self, rates: Array, block: Block) -> None:
        self.rates = rates
        self.observed = ~np.isnan(block.X)
        self.counts = np.where(self.observed, block.X, 0.0)

    def log_prob(self) -> Array:
        log_prob: Array = np.log(self.rates) @ self.counts.T - self.rates @ self.observed.T
        log_prob -= gammaln(self.counts + 1).sum(axis=1)
        return log_prob

    def moments(self, resp: Array) -> Events:
        return Events(resp @ self.observed, resp @ self.counts)
