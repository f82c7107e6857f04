"""The rule of budgets on measured methods: seconds and losses of tests/golden/budgets.json on a simulated clock."""

import json
from pathlib import Path

import numpy as np
import pytest

from mixent.comparison.candidates import recipes
from mixent.evaluate import halving as halving_module
from mixent.evaluate import runner as runner_module
from mixent.evaluate.halving import MOST_SAMPLED, Halving
from mixent.evaluate.race import Race
from mixent.evaluate.records import TIMED
from mixent.evaluate.runner import Method, Runner, Split
from mixent.evaluate.workers import Ended, Work

LINES = (Path(__file__).parents[1] / "golden" / "budgets.json").read_text().splitlines()
TABLES = {line["table"]: line["methods"] for line in map(json.loads, LINES)}
START = 1.5  # seconds of the start of a process
TICK = 0.1
CLOSE, CLOSE_ABSOLUTE = 0.05, 0.01


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


class SimulatedWorkers:
    """As `Workers`, with tasks that take the seconds they report on a simulated clock."""

    def __init__(self, work, n_workers, clock):
        self.work, self.clock = work, clock
        self.free, self.busy = [clock.now + START] * n_workers, [None] * n_workers

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def run(self, tasks, limit):
        while True:
            for i, task in enumerate(self.busy):
                task = next(tasks, None) if task is None else None
                if task is not None:
                    record, proba = self.work(task)
                    began = max(self.clock.now, self.free[i])
                    self.busy[i] = task, began, began + record["fit_seconds"], (record, proba)
            if not any(self.busy):
                return
            self.clock.now += TICK
            for i, (task, began, end, result) in [(i, b) for i, b in enumerate(self.busy) if b is not None]:
                seconds = self.clock.now - began
                if end <= self.clock.now:
                    self.busy[i], self.free[i] = None, self.clock.now
                    yield task, result
                elif seconds > 0 and seconds > limit(task):
                    self.busy[i], self.free[i] = None, self.clock.now + START
                    yield task, Ended("ended", seconds, overran=True)


def simulated(methods, trial, splits, budget, monkeypatch):
    """A run of two processes on a simulated clock; the runner and the clock."""
    clock, n_rows = Clock(), len(splits[0].train)
    monkeypatch.setattr(halving_module, "time", clock)
    monkeypatch.setattr(runner_module, "time", clock)
    race = Race(np.zeros(n_rows, dtype=int), np.ones(n_rows), "log_loss")
    runner = Runner(methods, trial, splits, policy=Halving(race, budget), n_jobs=2, limit=np.inf)
    work = Work({"trial": trial}, {name: name for name in methods}, splits)
    monkeypatch.setattr(Runner, "processes", lambda self: SimulatedWorkers(work, 2, clock))
    runner.run()
    return runner, clock


def replay(table, budget, slower, monkeypatch):
    """The recommended method, the seconds until then, and the losses of all methods with all rows."""
    measured = TABLES[table]
    n_rows = max(line[0] for line in measured["logistic regression"])
    sizes = {line[1] for line in measured["logistic regression"] if line[1] and line[1] < MOST_SAMPLED * n_rows}
    splits = [Split(0, fold, np.arange(n_rows), np.arange(9)) for fold in range(5)]
    splits += [Split(0, 0, np.arange(size), np.arange(9), size) for size in sorted(sizes)]

    def trial(name, split):
        known = {(line[1], line[2]): line[3:] for line in measured[name]}
        seconds, loss = known.get((split.sample, min(split.fold, 1)), known.get((None, 0), (1e3, 9.0)))
        record = {**dict.fromkeys(TIMED, loss), "fit_seconds": slower * seconds, "predict_seconds": 0.0}
        return {**record, "n_train": len(split.train), "n_test": 9, "labelled_only": False, "failed": None}, None

    known = recipes()
    methods = {n: Method(n, n, known[n].cost, known[n].growth, known[n].kind == "baseline") for n in measured}
    runner, clock = simulated(methods, trial, splits, budget, monkeypatch)
    there = [n for n in methods if all(split in runner.outcomes[n] for split in runner.stage)]
    scores = {n: np.mean([runner.outcomes[n][s].record["log_loss"] for s in runner.stage]) for n in there}
    losses = {n: np.mean([line[4] for line in lines if line[1] is None]) for n, lines in measured.items()}
    return min(scores, key=scores.get), clock.now, losses


@pytest.mark.parametrize("slower", [0.7, 0.85, 1.0, 1.2])
@pytest.mark.parametrize("table", TABLES)
def test_a_budget_of_30_seconds_recommends_what_is_best_with_all_rows(table, slower, monkeypatch):
    method, seconds, losses = replay(table, 30.0, slower, monkeypatch)
    best = min(losses.values())
    assert losses[method] - best <= max(CLOSE * best, CLOSE_ABSOLUTE)
    assert seconds <= 32.0


@pytest.mark.parametrize("table", TABLES)
def test_much_time_recommends_the_best(table, monkeypatch):
    method, _, losses = replay(table, 600.0, 1.0, monkeypatch)
    assert losses[method] == min(losses.values())


@pytest.mark.parametrize("budget", [1.0, 5.0, 10.0, 15.0])
@pytest.mark.parametrize("table", TABLES)
def test_a_short_budget_is_kept_and_gives_an_answer(table, budget, monkeypatch):
    method, seconds, losses = replay(table, budget, 1.0, monkeypatch)
    assert losses[method] < losses["most frequent class"] and seconds <= budget + 4.0


def crowded(seed, budget, monkeypatch):
    """Eight slow methods, whose times vary from fold to fold, and three that need 0.25 s for all folds."""
    rng = np.random.default_rng(seed)
    seconds = {f"m{i}": rng.uniform(1, 8) for i in range(8)}
    losses = {name: rng.uniform(0.2, 0.5) for name in (*seconds, "quick")} | {"cheap": 0.6, "worst": 0.7}
    seconds |= {"quick": 0.02, "cheap": 0.05, "worst": 0.05}
    factor = {(name, fold): np.exp(0.3 * rng.normal()) for name in seconds for fold in range(5)}

    def trial(name, split):
        record = {**dict.fromkeys(TIMED, losses[name]), "fit_seconds": seconds[name] * factor[name, split.fold]}
        record |= {"predict_seconds": 0.0, "n_train": 100, "n_test": 9, "labelled_only": False, "failed": None}
        return record, None

    splits = [Split(0, fold, np.arange(100), np.arange(9)) for fold in range(5)]
    return simulated({n: Method(n, n) for n in seconds}, trial, splits, budget, monkeypatch)


@pytest.mark.parametrize(("seed", "budget"), [(0, 60.0), (5, 30.0), (15, 40.0), (18, 40.0), (23, 30.0), (26, 60.0)])
def test_a_method_whose_folds_are_cheap_is_finished(seed, budget, monkeypatch):
    """In these runs, slower methods would use all of the time."""
    runner, clock = crowded(seed, budget, monkeypatch)
    assert runner.late and clock.now <= budget + 2.0 and len(runner.stage) >= 2
    assert all(split in runner.outcomes[name] for name in ("quick", "cheap", "worst") for split in runner.stage)
