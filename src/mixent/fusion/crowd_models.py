"""Models of sources without calibrations: the candidates of `crowds.choose`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Whole
from mixent.core.driver import Run, Stop, run
from mixent.core.executors import Serial
from mixent.core.proposals import Delayed, Squarem
from mixent.fusion.rules import DawidSkene, DawidSkeneParams, ItemAnswers, dawid_skene
from mixent.fusion.sources import Layout
from mixent.fusion.workers import Events, Hierarchical, WorkerParams, assumed_rates, common_kinds

MIN_ROWS = 5.0  # calibration rows of a class; with fewer the confusion matrix counts as an assumption
TOL = 1e-7  # gain in nats per item at which a fit stops
PLAIN_STEPS = 10  # before steps are extrapolated


@dataclass(frozen=True)
class Model:
    """Estimates of a candidate."""

    weights: Array  # (S, K) of the answers in the log posteriors
    rates: Array  # (S, K) of an answer not seen before
    prior: Array  # (K,)
    run: Run


@dataclass(frozen=True)
class Crowd:
    """Answers of the sources, and what is known of them beforehand."""

    layout: Layout
    answers: ItemAnswers
    counts: Array  # (S, K) of the calibrations or of the assumed accuracy
    prior: Array  # (K,) initial class priors
    max_iter: int
    tol: float = TOL

    @property
    def share(self) -> Array:
        """(S,) u of the source of each symbol."""
        return self.layout.share[self.layout.source_of]

    @cached_property
    def rows(self) -> Array:
        """(S, K) rows of each class that the counts of the source are equivalent to."""
        return self.layout.group_sums(self.counts)

    @property
    def given(self) -> Array:
        """(S, K) calibration counts, without assumptions."""
        return np.where(self.rows.min(axis=1, keepdims=True) >= MIN_ROWS, self.counts, 0.0)


def dawid_skene_model(crowd: Crowd) -> Model:
    """Confusion matrices with the counts of the calibrations, or of the assumed accuracy, as Dirichlet priors."""
    problem = DawidSkene(crowd.answers, crowd.counts, crowd.layout.group, crowd.share)
    start = DawidSkeneParams(crowd.prior, crowd.layout.confusion)
    fit = dawid_skene(problem, start, tol=crowd.tol, max_iter=crowd.max_iter).run
    assert fit is not None
    weights, _ = problem.prepare(fit.params)
    return Model(weights, fit.params.confusion, fit.params.prior, fit)


def _worker_model(crowd: Crowd, events: Events, strength: float | None = None) -> Model:
    problem = Hierarchical(
        crowd.answers, events, crowd.given, assumed_rates(events, crowd.counts / crowd.rows), crowd.share, strength
    )
    fit: Run[WorkerParams] = run(
        problem,
        Whole(crowd.answers.weight),
        problem.start(crowd.prior),
        stop=Stop(crowd.tol, crowd.max_iter),
        executor=Serial(),
        propose=None if strength == np.inf else Delayed(Squarem(), PLAIN_STEPS),
    )
    weights, _ = problem.prepare(fit.params)
    return Model(weights, problem.rates(fit.params), fit.params.prior, fit)


def hierarchical_model(crowd: Crowd) -> Model:
    """Confusion matrices shrunk to common ones, by an estimated strength."""
    return _worker_model(crowd, Events.full(crowd.layout))


def one_coin_model(crowd: Crowd) -> Model:
    """An accuracy of each worker, shrunk to a common one."""
    return _worker_model(crowd, Events.one_coin(crowd.layout))


def equal_model(crowd: Crowd) -> Model:
    """The same accuracy of all workers, so that the votes are counted."""
    return _worker_model(crowd, Events.one_coin(crowd.layout), np.inf)


MODELS: dict[str, Callable[[Crowd], Model]] = {
    "dawid-skene": dawid_skene_model,
    "equal": equal_model,
    "one-coin": one_coin_model,
    "hierarchical": hierarchical_model,
}


COINS = ("equal", "one-coin")


def candidates(layout: Layout) -> list[str]:
    """Models that apply: events of one coin need sources whose symbols are the classes."""
    classes = set(layout.classes.tolist())
    same = bool((common_kinds(layout) == 0).all()) and layout.n_groups[0] == 1 and layout.calibrations[0].cells is None
    return [name for name in MODELS if (same and set(layout.calibrations[0].symbols) == classes) or name not in COINS]
