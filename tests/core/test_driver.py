from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import isnan

import numpy as np
import pytest

from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Halt, OutsideDomainError, Problem, Status, Stop, rounding, run
from mixent.core.executors import Serial
from mixent.core.observers import EarlyStop, ShowProgress
from mixent.core.proposals import Delayed, Squarem, SteadySquarem
from mixent.core.stats import Stats

SOURCE = ArrayBlocks(Block(np.zeros((4, 1))), 2)


@dataclass(frozen=True)
class Value(Stats):
    value: float


class Climb(Problem):
    """Maximizes -(x - 3)^2 over the rows; `rule(x, step)` is the update, true or broken."""

    def __init__(self, rule=lambda x, step: x + 0.5 * step * (3.0 - x), domain=lambda x: True, **options):
        self.rule, self.domain, self.passes = rule, domain, []
        vars(self).update(options)

    def prepare(self, x):
        self.passes.append(x)
        if not self.domain(x):
            raise OutsideDomainError(f"{x} is outside")
        return x

    def stats(self, x, block):
        return Value(-block.n_rows * (x - 3.0) ** 2)

    def objective(self, x, total):
        return total.value

    def update(self, x, total, step):
        return self.rule(x, step)


def climb(problem, start=0.0, **options):
    options.setdefault("stop", Stop(1e-12, 200))
    return run(problem, SOURCE, start, executor=Serial(), **options)


def check_trace(result, problem=None):
    """What every run promises."""
    accepted = [s for s in result.trace if s.accepted]
    for a, b in pairwise(accepted):
        if a.segment == b.segment:
            assert b.objective >= a.objective - rounding(a.objective, SOURCE.total_weight)
            assert b.gain == b.objective - a.objective
        else:
            assert b.kind == "repair" and isnan(b.gain)
    assert [s.n_pass for s in result.trace] == list(range(len(result.trace)))
    assert result.n_passes == len(result.trace) - 1  # the start is not counted
    assert all(a.seconds <= b.seconds for a, b in zip(result.trace, result.trace[1:]))
    if problem is not None:
        assert result.objective == -4 * (result.params - 3.0) ** 2


def strip(trace):
    return [replace(s, seconds=0.0, gain=0.0 if isnan(s.gain) else s.gain) for s in trace]


# --- the guard -------------------------------------------------------------------------------------------------------


def test_a_sound_update_converges_and_each_step_costs_one_pass():
    problem = Climb()
    result = climb(problem)
    check_trace(result, problem)
    assert result.status is Status.CONVERGED and result.status.ok
    assert result.params == pytest.approx(3.0, abs=1e-5)
    assert len(problem.passes) == result.n_passes + 1
    assert 0 <= result.trace[-1].gain <= 1e-12 * 4


def test_a_broken_update_is_caught_and_the_best_parameters_are_kept():
    problem = Climb(lambda x, step: x + 0.5 if x < 2 else x + 2.1)
    result = climb(problem)
    check_trace(result, problem)
    assert result.status is Status.DECREASED and not result.status.ok
    assert result.params == 2.0 == max(problem.passes[:-1])
    assert not result.trace[-1].accepted and result.trace[-1].gain < 0
    assert "by more than rounding error" in result.message


@pytest.mark.parametrize("fall", [1e-6, 1e-9, 1e-10])
def test_even_a_small_fall_is_not_convergence(fall):
    """The objective here is about -4; a fall of `fall` is beyond rounding, though far below tol."""
    result = climb(Climb(lambda x, step: x - fall / 8), start=2.0, stop=Stop(1e-3, 50))
    assert result.status is Status.DECREASED and result.params == 2.0


def test_a_fall_within_rounding_is_convergence():
    result = climb(Climb(lambda x, step: x - 1e-14), start=2.0)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_start_without_a_finite_objective(value):
    result = climb(Climb(), start=value)
    assert result.status is Status.NOT_FINITE and not result.status.ok
    assert "use a prior" in result.message
    assert result.last is None and result.n_passes == 0


def test_a_start_outside_the_domain_is_a_status_not_an_exception():
    result = climb(Climb(domain=lambda x: x > 5))
    assert result.status is Status.NOT_FINITE
    assert result.message == f"0.0 is outside; {Status.NOT_FINITE.value}"


def test_an_update_that_leaves_the_domain_keeps_the_last_sound_parameters():
    problem = Climb(domain=lambda x: x < 2)
    result = climb(problem)
    check_trace(result, problem)
    assert result.status is Status.NOT_FINITE
    assert result.params == 1.5 and "2.25 is outside" in result.message
    assert not result.trace[-1].accepted and result.notes == ()


def test_an_update_to_nan_is_not_accepted():
    result = climb(Climb(lambda x, step: float("nan")))
    assert result.status is Status.NOT_FINITE and result.params == 0.0 and result.objective == -36.0


def test_one_pass_is_one_update():
    """The evaluation of the start is not counted, as an iteration of scikit-learn is an update."""
    for passes in range(4):
        assert climb(Climb(), stop=Stop(0.0, passes)).params == 3.0 * (1 - 0.5**passes)


def test_max_passes_names_the_remedy():
    problem = Climb()
    result = climb(problem, stop=Stop(0.0, 5))
    assert result.status is Status.MAX_PASSES and result.n_passes == 5 == len(problem.passes) - 1
    assert "raise it" in result.message and "tol" in result.message


# --- step control ----------------------------------------------------------------------------------------------------


def overshoot(x, step):
    return x + 3.0 * step * (3.0 - x)  # ascends for step < 2/3 only


def test_steps_halve_until_they_ascend_and_recover():
    problem = Climb(overshoot, first_step=1.0, safe_step=0.1)
    result = climb(problem)
    check_trace(result, problem)
    assert result.status is Status.CONVERGED and result.params == pytest.approx(3.0, abs=1e-4)
    steps = [(s.step, s.accepted) for s in result.trace[1:]]
    assert steps[:2] == [(1.0, False), (0.5, True)]
    assert (0.75, False) in steps  # recovered, tried, halved again
    assert (0.375, True) in steps
    assert all(s.step <= 1.0 for s in result.trace)


def test_the_step_never_shrinks_below_the_safe_one_and_a_fall_there_is_a_status():
    tried = []

    def fall(x, step):
        tried.append(step)
        return x - step

    result = climb(Climb(fall, first_step=1.0, safe_step=0.1))
    assert result.status is Status.DECREASED and result.params == 0.0
    assert tried == [1.0, 0.5, 0.25, 0.125, 0.1]


def test_a_step_out_of_the_domain_is_halved_too():
    problem = Climb(overshoot, domain=lambda x: abs(x) < 4, first_step=1.0, safe_step=0.1)
    result = climb(problem)
    assert result.status is Status.CONVERGED
    assert any("outside" in s.note and not s.accepted for s in result.trace)
    assert result.notes == ()  # a rejected trial is no news to the user


# --- repair ----------------------------------------------------------------------------------------------------------


class Mend(Climb):
    """From x > 2 the update goes to 100, and repair brings it back to -1, `times` times."""

    def __init__(self, times=1, to=-1.0, **options):
        super().__init__(**options)
        self.times, self.to = times, to

    def update(self, x, total, step):
        return 100.0 if x > 2 and self.times > 0 else super().update(x, total, step)

    def repair(self, x, total):
        if x != 100.0:
            return None
        self.times -= 1
        return self.to, "it had run away; brought back"


def test_a_repair_opens_a_segment_and_is_told():
    problem = Mend(times=2)
    result = climb(problem)
    check_trace(result, problem)
    assert result.status is Status.CONVERGED
    assert result.notes == ("it had run away; brought back",) * 2
    assert result.trace[-1].segment == 2
    assert [s.kind for s in result.trace].count("repair") == 2
    assert 100.0 not in problem.passes  # mended before a pass is spent on it


def test_a_repair_clears_the_memory_of_the_proposal():
    seen = []

    def remember(problem, memory, params, plain):
        seen.append((params, memory))
        return None, (memory or 0) + 1

    climb(Mend(), propose=remember)
    memory = [m for _, m in seen]
    again = [params for params, _ in seen].index(-1.0)  # the first step after the repair
    assert memory[0] is None and memory[again] is None
    assert memory[1:again] == list(range(1, again)) and memory[again + 1] == 1


def test_repairs_for_ever_end_at_max_passes():
    result = climb(Mend(times=10**9), stop=Stop(1e-9, 30))
    assert result.status is Status.MAX_PASSES and result.n_passes == 30


@pytest.mark.parametrize("options", [{"to": float("nan")}, {"domain": lambda x: x >= 0}])
def test_a_repair_that_fails_keeps_what_there_was(options):
    problem = Mend(**options)
    result = climb(problem)
    assert result.status is Status.NOT_FINITE
    assert result.params == problem.passes[-2] > 2
    check_trace(replace(result, trace=result.trace[:-1], n_passes=result.n_passes - 1), problem)


# --- proposals -------------------------------------------------------------------------------------------------------


class Fixed:
    """Always proposes the same."""

    def __init__(self, candidate):
        self.candidate = candidate

    def __call__(self, problem, memory, params, plain):
        return self.candidate, (memory or 0) + 1


@pytest.mark.parametrize("bad", [-50.0, 1e9, float("nan")])
def test_a_proposal_that_does_not_ascend_is_replaced_by_the_plain_update(bad):
    plain = climb(Climb())
    problem = Climb(domain=lambda x: x < 1e6)
    result = climb(problem, propose=Fixed(bad))
    check_trace(result, problem)
    assert result.status is Status.CONVERGED and result.params == plain.params
    assert [s.objective for s in result.trace if s.accepted] == [s.objective for s in plain.trace]
    assert {s.accepted for s in result.trace if s.kind == "proposal"} == {False}
    assert result.notes == ()


def test_a_proposal_that_ascends_is_taken_and_convergence_is_judged_on_a_plain_step():
    problem = Climb()
    result = climb(problem, propose=Fixed(3.0))
    check_trace(result, problem)
    assert result.params == 3.0
    assert [s.kind for s in result.trace[:2]] == ["start", "proposal"]

    class Once(Fixed):
        def __call__(self, problem, memory, params, plain):
            return (None, None) if memory else (self.candidate, True)

    # a proposal that gains next to nothing does not end the run
    result = climb(Climb(), propose=Once(1e-13))
    assert result.trace[1].kind == "proposal" and result.trace[1].accepted
    assert result.params == pytest.approx(3.0, abs=1e-5)


def same_params(a, b):
    first, second = a.components.gaussian, b.components.gaussian
    return (
        np.array_equal(a.weights, b.weights)
        and np.array_equal(first.means, second.means)
        and np.array_equal(first.covs, second.covs)
    )


@pytest.mark.parametrize("propose", [Squarem(), SteadySquarem()])
def test_squarem_finds_the_same_optimum_in_fewer_passes(make_mixture, propose):
    problem, source, params = make_mixture(seed=3, n=1000, d=2, K=2, gap=0.9)  # overlap: EM crawls
    stop = Stop(1e-10, 5000)
    plain = run(problem, source, params, stop=stop, executor=Serial())
    fast = run(problem, source, params, stop=stop, executor=Serial(), propose=propose)
    assert plain.status is fast.status is Status.CONVERGED
    assert fast.objective >= plain.objective - 1e-6 * source.total_weight
    assert fast.n_passes < 0.5 * plain.n_passes
    check_trace(fast)


class Packed(Climb):
    """A problem in two coordinates for Squarem: the second may vanish, or the vector may not exist."""

    lengths = iter(())

    def pack(self, x):
        n = next(self.lengths, 1)
        if n == 0:
            raise OutsideDomainError("nothing to pack")
        return None if n < 0 else np.full(n, x)

    def unpack(self, vector, like):
        return float(vector[0])


@pytest.mark.parametrize("lengths", [[2, 1], [2, 2, 1, 1], [1, 0], [0], [-1], [1, -1], [2, 2, 1, 2]])
def test_squarem_stands_back_where_vectors_cannot_be_compared(lengths):
    problem = Packed()
    problem.lengths = iter(lengths)
    result = climb(problem, propose=Squarem())
    assert result.status is Status.CONVERGED and result.params == pytest.approx(3.0, abs=1e-5)


def test_a_stretch_is_held_to_what_was_accepted():
    """Where every proposal overshoots, the most it may be shrinks; where all are taken, it grows."""
    problem = Packed(lambda x, step: x + 0.001 * (3.0 - x))
    memory, most = None, []
    for x in (0.0, 0.003, 0.1, 0.103, 0.2, 0.203):  # never where it was proposed to go
        _, memory = SteadySquarem()(problem, memory, x, x + 0.001 * (3.0 - x))
        most.append(memory[0])
    assert most == [4.0, 4.0, 1.5, 1.5, 1.5, 1.5]
    x, memory = 0.0, None
    for _ in range(3):
        _, memory = SteadySquarem()(problem, memory, x, x + 0.001 * (3.0 - x))
        x += 0.001 * (3.0 - x)
        bold, memory = SteadySquarem()(problem, memory, x, x + 0.001 * (3.0 - x))
        x = bold
    assert memory[0] == 4.0 * 4**2


def test_squarem_is_exact_on_a_linear_iteration():
    """x -> x + 0.05 (3 - x) is one geometric series: the extrapolation lands on its limit."""
    problem = Packed(lambda x, step: x + 0.05 * (3.0 - x))
    result = climb(problem, propose=Squarem())
    assert result.params == pytest.approx(3.0, abs=1e-9) and result.n_passes <= 6


def test_a_delayed_proposal_comes_after_plain_steps(make_mixture):
    problem, source, params = make_mixture(seed=1, n=300)
    options = {"executor": Serial(), "stop": Stop(0.0, 25)}
    plain = run(problem, source, params, **options)
    delayed = run(problem, source, params, propose=Delayed(Squarem(), 6), **options)
    assert strip(delayed.trace[:8]) == strip(plain.trace[:8])  # the start, six plain steps and the first of a pair
    assert any(step.kind == "proposal" for step in delayed.trace[8:10])


# --- stop and resume -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("propose", [None, Squarem(), SteadySquarem(), Delayed(Squarem(), 3)])
@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 6, 7, 8, 13])
def test_stop_and_resume_is_one_long_run(make_mixture, cut, propose):
    problem, source, params = make_mixture(seed=1, n=300, gaps=0.1)
    options = {"executor": Serial(), "propose": propose}
    whole = run(problem, source, params, stop=Stop(0.0, 25), **options)
    part = run(problem, source, params, stop=Stop(0.0, cut), **options)
    assert part.status is Status.MAX_PASSES and part.last.total is None
    result = run(problem, source, resume=part.last, stop=Stop(0.0, 25), **options)
    assert same_params(result.params, whole.params) and result.objective == whole.objective
    assert strip(result.trace) == strip(whole.trace)


class Reckless(Squarem):
    """Every second proposal is nonsense, so that runs are cut between a rejected proposal and its plain update."""

    def __call__(self, problem, memory, params, plain):
        bold, memory = super().__call__(problem, memory, params, plain)
        return (problem.pack(params)[0] * 0 - 40.0 if bold is not None else None), memory


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_run_cut_within_a_step_resumes_exactly(cut):
    def problem():
        return Packed(overshoot, first_step=1.0, safe_step=0.1)

    whole = climb(problem(), propose=Reckless(), stop=Stop(0.0, 20))
    part = climb(problem(), propose=Reckless(), stop=Stop(0.0, cut))
    assert any(not s.accepted and s.kind == kind for s in whole.trace[:12] for kind in ("proposal", "plain"))
    result = climb(problem(), None, resume=part.last, propose=Reckless(), stop=Stop(0.0, 20))
    assert strip(result.trace) == strip(whole.trace) and result.params == whole.params


def test_a_run_resumes_from_any_event_an_observer_saw(make_mixture):
    problem, source, params = make_mixture(seed=2, n=200)
    events = []
    options = {"executor": Serial(), "propose": Squarem(), "stop": Stop(0.0, 15)}
    whole = run(problem, source, params, observers=[events.append], **options)
    for event in events[:-1]:
        for state in (event, replace(event, total=None)):
            result = run(problem, source, resume=state, **options)
            assert same_params(result.params, whole.params)
            assert strip(result.trace) == strip(whole.trace)
    assert all(a.trace[-1].seconds <= b.trace[-1].seconds for a, b in pairwise(events))


def test_the_objective_returned_is_that_of_the_parameters_returned(make_mixture):
    for seed in range(3):
        problem, source, params = make_mixture(seed=seed, n=200, gaps=0.1 * seed)
        for max_passes in (1, 2, 7, 500):
            result = run(problem, source, params, stop=Stop(1e-7, max_passes), propose=Squarem())
            ready = problem.prepare(result.params)
            with Serial() as workers:
                total = workers.total(partial(problem.stats, ready), source)
            assert problem.objective(result.params, total) == result.objective


# --- observers -------------------------------------------------------------------------------------------------------


def test_an_observer_sees_every_accepted_pass_and_only_those():
    seen = []
    result = climb(Climb(overshoot, first_step=1.0, safe_step=0.1), observers=[seen.append])
    accepted = [s for s in result.trace if s.accepted]
    assert [e.n_pass for e in seen] == [s.n_pass for s in accepted]
    assert [e.objective for e in seen] == [s.objective for s in accepted]
    assert all(e.total.value == e.objective for e in seen)


def test_halt_stops_at_once_and_may_name_the_parameters():
    result = climb(Climb(), observers=[lambda e: Halt("enough") if e.n_pass == 4 else None])
    assert (result.status, result.message, result.n_passes) == (Status.STOPPED, "enough", 4)
    assert result.status.ok
    check_trace(result, Climb())
    problem = Climb()
    result = climb(problem, observers=[lambda e: Halt("take this", 2.0) if e.n_pass == 4 else None])
    assert result.params == 2.0 and result.objective == -4.0  # its own objective, not that of pass 4
    assert result.last.params != 2.0  # but the run goes on from where it was
    rest = climb(Climb(), None, resume=result.last)
    assert strip(rest.trace) == strip(climb(Climb()).trace)
    assert climb(Climb(), observers=[lambda e: Halt("at once")]).n_passes == 0


def test_early_stop_returns_the_best_on_held_out_rows():
    stopper = EarlyStop(lambda x: -((x - 2.3) ** 2), patience=3)
    result = climb(Climb(lambda x, step: x + 0.1 * (3.0 - x)), observers=[stopper])
    path = [3.0 * (1 - 0.9**i) for i in range(60)]
    best = min(range(60), key=lambda i: abs(path[i] - 2.3))
    assert result.status is Status.STOPPED and "not improved for 3 passes" in result.message
    assert result.params == pytest.approx(path[best]) and result.n_passes == best + 3
    check_trace(result, Climb())


def test_progress_is_shown_after_every_accepted_pass():
    shown = []
    climb(Climb(), observers=[ShowProgress(lambda *args: shown.append(args), 200)], stop=Stop(0.0, 4))
    assert [(done, total) for done, total, _ in shown] == [(0, 200), (1, 200), (2, 200), (3, 200), (4, 200)]
    assert shown[0][2] == "objective -36"


# --- the gap ---------------------------------------------------------------------------------------------------------


class Certified(Climb):
    def gap(self, x, total):
        return -total.value  # the maximum is 0


class Gaining(Climb):
    """Says what its next step gains at least; `off` makes it lie."""

    off = 0.0

    def certified_gain(self, x, total):
        return 0.75 * 4 * (x - 3.0) ** 2 - self.off  # half of the way is gained three quarters of the height


def test_a_certified_gain_ends_the_run_and_not_before():
    result = climb(Gaining(), stop=Stop(-np.inf, 200, gain=1e-3))
    assert result.status is Status.CONVERGED and "gain" in result.message
    before = result.trace[-2]
    assert -result.objective * 0.75 <= 1e-3 * 4 < -before.objective * 0.75
    lying = climb(Gaining(off=1.0), stop=Stop(-np.inf, 30, gain=1e-3))  # below zero it certifies nothing
    assert lying.status is Status.MAX_PASSES


def test_a_certified_gap_ends_the_run_and_not_before():
    problem = Certified()
    result = climb(problem, stop=Stop(0.0, 200, gap=1e-3))
    assert result.status is Status.CONVERGED and "gap" in result.message
    assert -result.objective <= 4e-3 < -[s.objective for s in result.trace][-2]
    assert climb(Climb(), stop=Stop(1e-12, 200, gap=1e-3)).message == Status.CONVERGED.value  # none known: by gain
    assert climb(Certified(), start=3.0, stop=Stop(0.0, 200, gap=0.0)).n_passes == 0


def test_rounding_grows_with_the_weight_the_objective_and_the_condition():
    assert rounding(0.0, 1.0) == pytest.approx(1e-11, rel=1e-4)
    assert rounding(-5.0, 3.0) == rounding(5.0, 3.0) == pytest.approx(3e-11 + 5e-12, rel=1e-4)
    assert rounding(0.0, 1.0, 1e6) - rounding(0.0, 1.0, 0.0) == pytest.approx(1e6 * np.finfo(float).eps)
