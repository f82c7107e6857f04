"""L-BFGS keeps what `run` promises: passes, history, observers, statuses."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from mixent.core import lbfgs
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Halt, OutsideDomainError, Problem, Status, Stop, rounding, run
from mixent.core.executors import Serial, Threads
from mixent.core.lbfgs import NO_ASCENT, run_lbfgs
from mixent.core.observers import EarlyStop
from mixent.core.stats import Stats
from mixent.mixtures.chart import MixtureChart

SOURCE = ArrayBlocks(Block(np.zeros((4, 1))), 2)
TIGHT = Stop(1e-13, 500)


@dataclass(frozen=True)
class Value(Stats):
    value: float
    slope: np.ndarray


class Valley(Problem):
    """Maximizes  -sum_i (x_i - 3)^2 - bend (x_1 - x_0^2 / 3)^2  on every row, inside `domain`."""

    def __init__(self, bend=0.0, domain=lambda x: True, beyond=None):
        self.bend, self.domain, self.beyond, self.passes = bend, domain, beyond, []

    def prepare(self, x):
        self.passes.append(x)
        if not self.domain(x) and self.beyond is None:
            raise OutsideDomainError("too far")
        return x

    def stats(self, x, block):
        value, slope = -((x - 3) ** 2).sum(), -2 * (x - 3)
        if self.bend:
            off = x[1] - x[0] ** 2 / 3
            value = value - self.bend * off**2
            slope = slope - 2 * self.bend * off * np.array([-2 * x[0] / 3, 1.0])
        if not self.domain(x):
            value = self.beyond
        return Value(block.n_rows * value, block.n_rows * slope)

    def objective(self, x, total):
        return float(total.value)

    def update(self, x, total, step):
        return x + 0.25 * (3 - x)


@dataclass
class Plain:
    """The parameters are the vector; the gradient times `factor`, true or not."""

    factor: float = 1.0
    edge: float = np.inf

    def vector(self, x):
        if x.max() > self.edge:
            raise OutsideDomainError("off the chart")
        return x.copy()

    def params(self, vector):
        return self.vector(vector)

    def gradient(self, x, total):
        return self.factor * total.slope


def climb(problem, start=(0.0,), chart=None, **options):
    options.setdefault("stop", TIGHT)
    result = run_lbfgs(problem, SOURCE, chart or Plain(), np.array(start), executor=Serial(), **options)
    check(result)
    return result


def check(result, weight=4.0):
    """What every ascent promises."""
    accepted = [s for s in result.trace if s.accepted]
    for a, b in pairwise(accepted):
        assert b.objective >= a.objective - rounding(a.objective, weight)
        assert b.gain == b.objective - a.objective
    assert [s.n_pass for s in result.trace] == list(range(result.n_passes + 1))
    assert [s.kind for s in result.trace] == ["start"] + ["line"] * result.n_passes
    assert all(a.seconds <= b.seconds for a, b in pairwise(result.trace))


def test_it_climbs_and_every_evaluation_is_a_pass():
    problem = Valley(bend=100.0)
    result = climb(problem, (-2.0, 4.0))
    assert result.status is Status.CONVERGED and result.message == Status.CONVERGED.value
    np.testing.assert_allclose(result.params, 3.0, atol=1e-5)
    assert len(problem.passes) == result.n_passes + 1  # with the start
    assert any(not s.accepted for s in result.trace)
    assert result.objective == max(s.objective for s in result.trace if s.accepted)
    np.testing.assert_array_equal(
        result.params, problem.passes[[s.accepted for s in result.trace][::-1].index(True) * -1 - 1]
    )


def test_the_gain_of_one_iteration_decides():
    gains = {}
    for tol in (1e-1, 1e-4, 1e-9):
        result = climb(Valley(bend=100.0), (-2.0, 4.0), stop=Stop(tol, 500))
        gains[tol] = [s.gain for s in result.trace if s.accepted][1:]
        assert result.status is Status.CONVERGED
        assert gains[tol][-1] <= 4 * tol < min(gains[tol][:-1])
    assert len(gains[1e-1]) < len(gains[1e-4]) < len(gains[1e-9])


def test_max_passes_counts_every_evaluation():
    for passes in range(1, 20):
        problem = Valley(bend=100.0)
        result = climb(problem, (-2.0, 4.0), stop=Stop(0.0, passes))
        assert result.status is Status.MAX_PASSES and result.n_passes == passes == len(problem.passes) - 1
        assert result.objective == Valley(bend=100.0).stats(result.params, SOURCE.table).value
        assert result.last.objective == result.objective and result.last.trace[-1].accepted


def test_a_start_at_the_top_has_converged():
    assert climb(Valley(), (3.0,)).n_passes == 0
    near = climb(Valley(), (3.0 + 1e-9,))
    assert near.status is Status.CONVERGED and near.objective >= -4e-18


def test_a_rise_below_rounding_that_nobody_sees_is_convergence():
    """Every other point seems lower than the start by rounding; from here the true gain would be 4e-12."""

    class Blurred(Valley):
        def objective(self, x, total):
            return super().objective(x, total) - (4e-11 if len(self.passes) > 1 else 0.0)

    result = climb(Blurred(), (3.0 + 1e-6,), stop=Stop(0.0, 100))
    assert result.status is Status.CONVERGED and result.params[0] == 3.0 + 1e-6 and result.n_passes > 0


# --- the edge of the domain ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beyond", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("edge", [3.001, 3.1, 3.5])
def test_steps_over_the_edge_are_shortened(edge, beyond):
    """The first step has length one, and ends outside."""
    result = climb(Valley(domain=lambda x: x[0] < edge, beyond=beyond), (2.6,))
    assert result.status is Status.CONVERGED and result.params[0] == pytest.approx(3.0, abs=1e-5)
    outside = [s for s in result.trace if not np.isfinite(s.objective)]
    assert outside and not any(s.accepted for s in outside)
    assert len(outside) < 8


def test_the_edge_of_the_chart_is_an_edge_too():
    result = climb(Valley(), (2.6,), Plain(edge=3.2))
    assert result.status is Status.CONVERGED and result.params[0] == pytest.approx(3.0, abs=1e-5)
    assert "off the chart" in {s.note for s in result.trace}


@pytest.mark.parametrize("beyond", [None, np.nan])
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 0.0])
@pytest.mark.parametrize("start", [0.0, 2.0])
def test_an_objective_that_rises_towards_the_edge_has_no_optimum(beyond, tol, start):
    result = climb(Valley(domain=lambda x: x[0] <= 2, beyond=beyond), (start,), stop=Stop(tol, 500))
    assert result.status is Status.NOT_FINITE and 1.9 < result.params[0] <= 2
    reason = "too far" if beyond is None else "the objective is not finite"
    assert result.message.startswith(reason) and result.message.endswith(Status.NOT_FINITE.value)
    assert result.message.count("too far") <= 1
    assert result.n_passes < 200


@pytest.mark.parametrize("chart", [Plain(), Plain(edge=-1.0)])
def test_a_start_outside_is_a_status(chart):
    domain = (lambda x: True) if chart.edge < 0 else (lambda x: x[0] > 5)
    result = climb(Valley(domain=domain), (0.0,), chart)
    assert result.status is Status.NOT_FINITE and result.n_passes == 0 and result.params[0] == 0.0
    assert result.message.split("; ")[0] in ("too far", "off the chart")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_start_without_a_finite_objective_or_gradient(value):
    result = climb(Valley(domain=lambda x: False, beyond=value))
    assert result.status is Status.NOT_FINITE and result.message == Status.NOT_FINITE.value


# --- broken problems -------------------------------------------------------------------------------------------------


def test_a_false_gradient_is_caught_and_the_best_parameters_are_kept():
    result = climb(Valley(), (0.0, 1.0), Plain(-1.0))
    assert result.status is Status.DECREASED and result.message == NO_ASCENT
    assert result.params.tolist() == [0.0, 1.0] and result.objective == -52.0


def test_a_fall_is_never_accepted(monkeypatch):
    def reckless(value, x, callback, **options):
        for step in (1.0, 2.0, -1.0):
            x = x + step
            value(x)
            callback(x)

    monkeypatch.setattr(lbfgs, "minimize", reckless)
    result = climb(Valley())
    assert result.status is Status.DECREASED and result.params[0] == 3.0
    assert [s.accepted for s in result.trace] == [True, True, True, False]


def test_a_line_search_that_gives_up_before_the_edge_is_no_optimum(monkeypatch):
    def timid(value, x, **options):
        for step in (5.0, 0.1):
            value(x + step)

    monkeypatch.setattr(lbfgs, "minimize", timid)
    result = climb(Valley(domain=lambda x: x[0] < 2))
    assert result.status is Status.NOT_FINITE and result.message == f"too far; {Status.NOT_FINITE.value}"
    assert climb(Valley(domain=lambda x: x[0] != 5, beyond=-1e9)).status is Status.DECREASED  # no edge: a poor search


# --- observers -------------------------------------------------------------------------------------------------------


def test_observers_see_accepted_passes_and_only_those():
    seen = []
    result = climb(Valley(bend=100.0), (-2.0, 4.0), observers=[seen.append])
    accepted = [s for s in result.trace if s.accepted]
    assert [(e.n_pass, e.objective) for e in seen] == [(s.n_pass, s.objective) for s in accepted]
    assert all(e.total.value == e.objective == e.trace[-1].objective and e.trace[-1].accepted for e in seen)


def test_halt_stops_at_once_and_may_name_the_parameters():
    options = {"start": (-2.0, 4.0)}
    result = climb(Valley(bend=100.0), **options, observers=[lambda e: Halt("enough") if len(e.trace) > 5 else None])
    assert (result.status, result.message) == (Status.STOPPED, "enough") and result.trace[-1].accepted
    named = np.array([3.0, 2.0])
    result = climb(Valley(bend=0.0), **options, observers=[lambda e: Halt("take this", named)])
    assert result.params is named and result.objective == -4.0 and result.n_passes == 0
    assert result.last.params.tolist() == [-2.0, 4.0]


def test_early_stop_returns_the_best_on_held_out_rows():
    stopper = EarlyStop(lambda x: -abs(x[0] - 1.0), patience=2)
    result = climb(Valley(bend=100.0), (-2.0, 4.0), observers=[stopper])
    assert result.status is Status.STOPPED and result.params is stopper.best
    assert result.objective == Valley(bend=100.0).stats(result.params, SOURCE.table).value


def test_a_certified_gap_ends_it():
    problem = Valley(bend=100.0)
    problem.gap = lambda x, total: -total.value  # the maximum is 0
    result = climb(problem, (-2.0, 4.0), stop=Stop(0.0, 500, gap=1e-2))
    assert result.status is Status.CONVERGED and "gap" in result.message
    accepted = [s.objective for s in result.trace if s.accepted]
    assert -accepted[-1] <= 4e-2 < -accepted[-2]


# --- a mixture -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_the_same_optimum_as_em_from_the_same_start(make_mixture, gaps):
    problem, source, params = make_mixture(seed=3, n=300, d=3, K=2, gap=1.6, gaps=gaps)
    em = run(problem, source, params, stop=Stop(1e-11, 5000), executor=Serial())
    result = run_lbfgs(
        problem, source, MixtureChart(problem, params), params, stop=Stop(1e-11, 5000), executor=Serial()
    )
    check(result, source.total_weight)
    assert em.status is result.status is Status.CONVERGED
    assert result.objective == pytest.approx(em.objective, abs=1e-6 * source.total_weight)
    with Serial() as workers:
        total = workers.total(partial(problem.stats, problem.prepare(result.params)), source)
    assert problem.objective(result.params, total) == result.objective


def test_threads_change_no_bit_and_memory_is_used(make_mixture):
    problem, source, params = make_mixture(seed=3, n=400, d=2, K=2, gap=0.9)
    chart = MixtureChart(problem, params)
    one, four = (
        run_lbfgs(problem, source, chart, params, stop=Stop(1e-9, 500), executor=executor)
        for executor in (Serial(), Threads(4))
    )
    assert [replace(s, seconds=0, gain=0) for s in one.trace] == [replace(s, seconds=0, gain=0) for s in four.trace]
    short = run_lbfgs(problem, source, chart, params, stop=Stop(1e-9, 500), executor=Serial(), memory=1)
    assert short.n_passes > one.n_passes


def test_em_goes_on_from_where_it_ended(make_mixture):
    problem, source, params = make_mixture(seed=1, n=300)
    part = run_lbfgs(problem, source, MixtureChart(problem, params), params, stop=Stop(0.0, 12), executor=Serial())
    rest = run(problem, source, resume=part.last, stop=Stop(1e-9, 500), executor=Serial())
    assert rest.status is Status.CONVERGED and rest.trace[: len(part.last.trace)] == part.last.trace
    assert rest.objective > part.objective
