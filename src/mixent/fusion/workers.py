"""Confusion matrices of workers who label a few items each, shrunk to a common distribution.

The rates of worker j in class k have a Dirichlet prior with parameters  c M(. | k), where the common rates M and the
strength c are estimated from all workers (empirical Bayes). With c = infinity all workers have the same rates. With
tied rates (the "one-coin" model), a worker has one parameter, the probability of a correct answer in any class, and the
wrong classes are equally probable.

The posterior distribution of the rates is approximated by Dirichlet distributions with parameters a_j (variational
Bayes), so that the uncertainty about a worker with few answers enters the posteriors of the items:

    sum_i w_i log sum_k p_k exp(sum_j u_j E[log A_j(v_ij | k)]) - sum_j u_j KL(Dir(a_j) || Dir(c M)) + log prior(p, M)

is maximized. It is a lower bound on the log marginal likelihood, and each update maximizes a bound that touches it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from mixent.core.arrays import Array
from mixent.core.blocks import NumberedRows
from mixent.core.driver import Problem
from mixent.fusion.calibration import Calibration
from mixent.fusion.rules import ItemAnswers, LatentClassStats
from mixent.fusion.sources import Layout

COMMON_ROWS = 10.0  # rows of each class that the assumed accuracy adds to the estimate of the common rates
FIRST_STRENGTH, MIN_STRENGTH, MAX_STRENGTH = 4.0, 0.05, 1e3
MAX_LOG = 200.0  # of a parameter in an extrapolated step
COMMON_STEPS = 4  # of the common rates in each update
STRENGTH_FACTOR, STRENGTH_TOL = 8.0, 1e-3  # largest step of the strength, and the tolerance of its logarithm


@dataclass(frozen=True)
class Events:
    """The parameters behind the rates: events of a worker, and the same events of the common distribution.

    The rates of `size` symbols share an event equally. Parameters have the shape (R, C): R events, and a column for
    each class, or one column if the classes share their events.
    """

    of_rate: np.ndarray  # (S, K) position of the event of each rate in the flat parameters
    shape: tuple[int, int]  # (R, C)
    group: np.ndarray  # (R,) distribution of each event, numbered from zero
    common: np.ndarray  # (R,) its common event
    common_group: np.ndarray  # (R0,) distribution of each common event
    log_size: Array  # (R, 1)

    @staticmethod
    def full(layout: Layout) -> Events:
        """One event for each symbol and class."""
        S, K = layout.n_symbols, layout.n_classes
        common, common_group = _common_symbols(layout)
        group = np.unique(layout.group, return_inverse=True)[1]
        return Events(np.arange(S * K).reshape(S, K), (S, K), group, common, common_group, np.zeros((S, 1)))

    @staticmethod
    def one_coin(layout: Layout) -> Events:
        """Two events for each source, a correct and a wrong answer; all sources have the classes as symbols."""
        J, K = layout.n_sources, layout.n_classes
        classes = layout.classes.tolist()
        class_of = np.array([classes.index(symbol) for c in layout.calibrations for symbol in c.symbols])
        wrong = class_of[:, None] != np.arange(K)
        of_rate = 2 * layout.source_of[:, None] + wrong
        log_size = np.tile([[0.0], [np.log(K - 1)]], (J, 1))
        return Events(of_rate, (2 * J, 1), np.repeat(np.arange(J), 2), np.tile([0, 1], J), np.zeros(2, int), log_size)

    def pooled(self, counts: Array) -> Array:
        """(R, C) counts of the events, from those of the rates (S, K)."""
        if self.shape == counts.shape:
            return counts
        out = np.zeros(self.shape)
        np.add.at(out.ravel(), self.of_rate, counts)  # a view: the zeros are contiguous
        return out

    def spread(self, values: Array) -> Array:
        """(S, K) values of the rates, from those of their events (R, C)."""
        return values.ravel()[self.of_rate]

    def totals(self, values: Array) -> Array:
        """(R, C) sums over the distribution of each event."""
        return _sums(values, self.group)[self.group]

    def over_workers(self, values: Array) -> Array:
        """(R0, C) sums over all workers."""
        return _sums(values, self.common)

    def normalized(self, common: Array) -> Array:
        """(R0, C) common rates from common counts."""
        return common / _sums(common, self.common_group)[self.common_group]


def _sums(values: Array, group: np.ndarray) -> Array:
    out = np.zeros((int(group.max()) + 1, values.shape[1]))
    np.add.at(out, group, values)
    return out


def common_kinds(layout: Layout) -> np.ndarray:
    """(J,) number of the kind of each source: sources of a kind have the same classes, symbols and cells."""
    kinds: dict[Hashable, int] = {}
    return np.array([kinds.setdefault(_kind(c), len(kinds)) for c in layout.calibrations])


def _kind(calibration: Calibration) -> Hashable:
    edges = None if calibration.edges is None else tuple(calibration.edges)
    return calibration.classes, calibration.symbols, calibration.cells, calibration.context, edges, calibration.line


def _common_symbols(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Common symbol (S,) of each symbol, and the distribution of each common symbol."""
    kind = common_kinds(layout)
    common, start, first = np.empty(layout.n_symbols, dtype=int), 0, {}
    groups: list[np.ndarray] = []
    for here, j in zip(layout.slices, range(layout.n_sources)):
        if kind[j] not in first:
            first[kind[j]] = start
            own = layout.group[here] - layout.group[here].min()
            groups.append(own + (groups[-1].max() + 1 if groups else 0))
            start += layout.sizes[j]
        common[here] = first[kind[j]] + np.arange(layout.sizes[j])
    return common, np.concatenate(groups)


@dataclass(frozen=True)
class WorkerParams:
    """Class priors, Dirichlet parameters of the workers, and the distribution that these are shrunk to."""

    prior: Array  # (K,)
    counts: Array  # (R, C) a; not used if the strength is infinite
    common: Array  # (R0, C) M
    strength: float  # c


@dataclass(frozen=True)
class Hierarchical(Problem):
    """Maximizes the lower bound above; `given` are the counts of calibrations, which are data like the answers.

    The prior of the class priors has one pseudo-item, that of M has `COMMON_ROWS` rows with the `assumed` rates.
    """

    answers: ItemAnswers
    events: Events
    given: Array  # (S, K)
    assumed: Array  # (R0, C) rates
    share: Array  # (S,) u of its source
    strength: float | None = None  # None: estimated
    fixed_common: bool = False  # whether M stays at the assumed rates

    def start(self, prior: Array) -> WorkerParams:
        strength = FIRST_STRENGTH if self.strength is None else self.strength
        first = FIRST_STRENGTH if not 0 < strength < np.inf else strength
        return WorkerParams(prior, first * self.assumed[self.events.common], self.assumed, strength)

    def log_rates(self, params: WorkerParams) -> Array:
        """(S, K) E[log A]."""
        events = self.events
        if np.isinf(params.strength):
            return events.spread(np.log(params.common[events.common]) - events.log_size)
        a = params.counts
        return events.spread(digamma(a) - digamma(events.totals(a)) - events.log_size)

    def rates(self, params: WorkerParams) -> Array:
        """(S, K) E[A]."""
        events = self.events
        if np.isinf(params.strength):
            return events.spread(params.common[events.common] / np.exp(events.log_size))
        return events.spread(params.counts / events.totals(params.counts) / np.exp(events.log_size))

    def prepare(self, params: WorkerParams) -> tuple[Array, Array]:
        return self.share[:, None] * self.log_rates(params), np.log(params.prior)

    def stats(self, ready: tuple[Array, Array], block: NumberedRows) -> LatentClassStats:  # type: ignore[override]
        return self.answers.stats(*ready)

    def objective(self, params: WorkerParams, total: LatentClassStats) -> float:
        value = total.log_lik + float(np.log(params.prior).sum() / len(params.prior))
        value += COMMON_ROWS * float((self.assumed * np.log(params.common)).sum())
        value += float((self.share[:, None] * self.given * self.log_rates(params)).sum())
        return value if np.isinf(params.strength) else value - self._divergence(params)

    def _divergence(self, params: WorkerParams) -> float:
        """sum_j u_j KL(Dir(a_j) || Dir(c M))."""
        events, a = self.events, params.counts
        b = params.strength * params.common[events.common]
        a_total, b_total, n = events.totals(a), events.totals(b), events.totals(np.ones_like(a))
        each = gammaln(b) - gammaln(a) + (a - b) * (digamma(a) - digamma(a_total))
        each += (gammaln(a_total) - gammaln(b_total)) / n
        return float((self._event_share * each).sum())

    @property
    def _event_share(self) -> Array:
        """(R, 1) u."""
        share = np.empty(self.events.shape)
        share.ravel()[self.events.of_rate] = self.share[:, None]
        return share[:, :1]

    def update(self, params: WorkerParams, total: LatentClassStats, step: float) -> WorkerParams:
        events = self.events
        counts = events.pooled(total.counts + self.given)
        common, strength = self._common(params, counts)
        classes = total.classes + 1.0 / len(total.classes)
        if np.isinf(strength):
            return WorkerParams(classes / classes.sum(), params.counts, common, strength)
        return WorkerParams(classes / classes.sum(), strength * common[events.common] + counts, common, strength)

    def pack(self, params: WorkerParams) -> Array:
        parts = [params.prior, params.counts.ravel(), params.common.ravel(), np.array([params.strength])]
        return np.log(np.concatenate(parts))

    def unpack(self, vector: Array, like: WorkerParams) -> WorkerParams | None:
        values = np.exp(np.clip(vector, -MAX_LOG, MAX_LOG))
        ends = np.cumsum([len(like.prior), like.counts.size, like.common.size])
        prior, counts, common, strength = np.split(values, ends)
        return WorkerParams(
            prior / prior.sum(),
            counts.reshape(like.counts.shape),
            like.common if self.fixed_common else self.events.normalized(common.reshape(like.common.shape)),
            like.strength if self.strength is not None else float(np.clip(strength[0], MIN_STRENGTH, MAX_STRENGTH)),
        )

    def _common(self, params: WorkerParams, counts: Array) -> tuple[Array, float]:
        """M and c, without a decrease of  sum_j u_j log P[counts_j | c M] + log prior(M)  (Dirichlet-multinomial).

        The steps of M are those of Minka (2000), which maximize a bound  sum_v g_v log M_v; that of c is a search.
        """
        events, common, strength = self.events, params.common, params.strength
        weight = self._event_share
        for _ in range(0 if self.fixed_common else COMMON_STEPS):
            gain = weight * counts  # in the limit of infinite strength
            if np.isfinite(strength):
                b = strength * common[events.common]
                gain = weight * b * (digamma(counts + b) - digamma(b))
            common = events.normalized(events.over_workers(gain) + COMMON_ROWS * self.assumed)
        if self.strength is None:
            strength = self._best_strength(counts, common, strength)
        return common, strength

    def _best_strength(self, counts: Array, common: Array, strength: float) -> float:
        """The strength of the largest marginal likelihood of the counts, near the current one."""
        totals, weight, base = self.events.totals(counts), self._event_share, common[self.events.common]
        one_each = weight / self.events.totals(np.ones_like(counts))  # the total of a distribution is counted once

        def negative(log_strength: float) -> float:
            c = np.exp(log_strength)
            of_events = weight * (gammaln(counts + c * base) - gammaln(c * base))
            return -float((of_events - one_each * (gammaln(totals + c) - gammaln(c))).sum())

        low = np.log(max(strength / STRENGTH_FACTOR, MIN_STRENGTH))
        high = np.log(min(strength * STRENGTH_FACTOR, MAX_STRENGTH))
        best = minimize_scalar(negative, bounds=(low, high), options={"xatol": STRENGTH_TOL})
        return float(np.exp(best.x)) if best.fun <= negative(np.log(strength)) else strength


def assumed_rates(events: Events, confusion: Array) -> Array:
    """(R0, C) mean over the workers of the rates (S, K) of their calibrations."""
    pooled = events.pooled(confusion)
    return events.normalized(events.over_workers(pooled / events.totals(pooled)))
