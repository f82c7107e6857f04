"""The one engine of cross-validation: several methods on common folds, several at a time, resumed from a journal."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from mixent.base.text import count
from mixent.evaluate.journal import Journal, Outcome
from mixent.evaluate.workers import Ended, Here, Task, Work, Workers

LEAST_LIMIT = 60.0  # seconds that any fold may take where the limit is "auto"
MULTIPLE = 10.0  # of the median time of the methods: what a fold may take, if that is more
MOST_FAILURES = 2  # folds in which a method fails before it is given up


@dataclass(frozen=True)
class Split:
    """Training and test rows of one fold, or of a sample of its rows."""

    repeat: int
    fold: int
    train: np.ndarray
    test: np.ndarray
    sample: int | None = None  # number of training rows drawn from those of the fold; None: all


def splits_of(folds: np.ndarray) -> list[Split]:
    """Every fold of every repeat.

    Parameters
    ----------
    folds : (repeats, n) array of int
        The fold in which each row is tested; -1: never.
    """
    return [
        Split(repeat, fold, np.flatnonzero(tested != fold), np.flatnonzero(tested == fold))
        for repeat, tested in enumerate(folds)
        for fold in range(int(folds.max()) + 1)
    ]


Trial = Callable[[Any, Split], tuple[dict[str, Any], np.ndarray | None]]
"""(model, split) -> a record with `failed` (None, or the error) and, optionally, probabilities of the test rows."""


@dataclass(frozen=True)
class Method:
    """A method to be tried.

    Parameters
    ----------
    model : what the trial is given
    settings : str
        Changes with the options of the model: under this the journal keeps its folds.
    cost : float
        Roughly, relative to the other methods; the cheap ones begin.
    growth : float
        Exponent of the time in the number of rows, for predictions while it is not known.
    always : bool
        Whether it is run in every fold, however far it is behind.
    """

    model: Any
    settings: str = ""
    cost: float = 1.0
    growth: float = 0.8
    always: bool = False


@dataclass(frozen=True)
class Quiet:
    """A trial whose warnings are kept in the record (`warned`: the first of them, or None) and not shown."""

    trial: Trial

    def __call__(self, model: Any, split: Split) -> tuple[dict[str, Any], np.ndarray | None]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            record, proba = self.trial(model, split)
        return {**record, "warned": str(caught[0].message)[:300] if caught else None}, proba


def unwatched(runner: Runner) -> None:
    """Show no progress."""


def run_all(runner: Runner) -> None:
    """Every method in every fold."""
    runner.perform((name, split) for split in range(len(runner.splits)) for name in runner.methods)


@dataclass
class Runner:
    """Runs methods in folds, in processes that can be ended, and keeps what they return.

    With one process and no limit, everything runs in this process.

    Parameters
    ----------
    methods : dict of name to Method
    trial : see `Trial`
    splits : list of Split
    journal : Journal
        Folds found there are not run again.
    n_jobs : int
        Processes.
    policy : callable(runner)
        Decides which methods run in which splits, by calls of `perform`.
    limit : float, "auto" or None
        Seconds that a fold may take: a method that takes longer is ended and left out. "auto": ten times the median of
        the methods, at least 60 s, as soon as half of them have finished.
    give_up : bool
        Whether a method that fails in two folds is not tried in the others.
    watch : callable(runner)
        Called at the beginning and after every fold.
    """

    methods: Mapping[str, Method]
    trial: Trial
    splits: Sequence[Split]
    journal: Journal = field(default_factory=Journal)
    n_jobs: int = 1
    policy: Callable[[Runner], None] = run_all
    limit: float | Literal["auto"] | None = None
    give_up: bool = False
    watch: Callable[[Runner], None] = unwatched
    outcomes: dict[str, dict[int, Outcome]] = field(init=False)  # name: position of the split: outcome
    dropped: dict[str, str] = field(default_factory=dict, init=False)  # name: reason
    late: list[str] = field(default_factory=list, init=False)  # dropped for lack of time
    planned: set[tuple[str, int]] = field(default_factory=set, init=False)  # that will run, or have run
    stage: list[int] = field(init=False)  # positions of the splits on which methods are compared
    end: float = field(default=np.inf, init=False)  # of the clock `time.monotonic`; see `deadline`
    latest: Outcome | None = field(default=None, init=False)
    rung: int | None = field(default=None, init=False)  # the split that runs now, where a policy takes one at a time
    refitted: str = field(default="", init=False)  # the method that is fitted to all rows, in the end

    def __post_init__(self) -> None:
        self.outcomes = {name: {} for name in self.methods}
        self.stage = [s for s, split in enumerate(self.splits) if split.sample is None]

    def run(self) -> list[dict[str, Any]]:
        """Run by the policy; the records of all folds that were finished, method by method."""
        with self.processes() as self.workers:
            self.watch(self)
            self.policy(self)
        return [outcome.record for name in self.methods for outcome in self.finished(name)]

    def processes(self) -> Here | Workers:
        """What runs the tasks."""
        work = Work({"trial": self.trial}, {n: m.model for n, m in self.methods.items()}, self.splits)
        alone = self.n_jobs == 1 and self.limit is None
        return Here(work) if alone else Workers(work, self.n_jobs)

    @property
    def racing(self) -> list[str]:
        """Methods that go on."""
        return [name for name in self.methods if name not in self.dropped and not self.given_up(name)]

    @property
    def some_worked(self) -> bool:
        """Whether any method has finished a fold without an error."""
        return any(not o.record["failed"] for done in self.outcomes.values() for o in done.values())

    @property
    def deadline(self) -> float:
        """When everything is ended: at `end`, but not before something has been finished."""
        return self.end if self.some_worked else np.inf

    def given_up(self, name: str) -> bool:
        """Whether a method has failed too often."""
        return self.give_up and sum(bool(o.record["failed"]) for o in self.outcomes[name].values()) >= MOST_FAILURES

    def finished(self, name: str) -> list[Outcome]:
        """Outcomes of a method, in the order of the splits."""
        return [self.outcomes[name][split] for split in sorted(self.outcomes[name])]

    @property
    def n_done(self) -> int:
        """Folds finished, of all methods."""
        return sum(map(len, self.outcomes.values()))

    @property
    def n_total(self) -> int:
        """Folds finished, and those to finish of the methods that go on; before the first plan, all folds."""
        if not self.planned:
            return len(self.methods) * sum(split.sample is None for split in self.splits)
        racing = set(self.racing)
        return self.n_done + sum(name in racing and split not in self.outcomes[name] for name, split in self.planned)

    @property
    def seconds_left(self) -> float:
        """Roughly, of the folds that are planned; NaN while nothing is known."""
        racing, known = set(self.racing), {name: self.seconds(name) for name in self.methods}
        if not any(known.values()):
            return float("nan")
        typical = float(np.mean([t for t in known.values() if t]))
        missing = [known[n] or typical for n, s in self.planned if n in racing and s not in self.outcomes[n]]
        longest = max(missing, default=0.0)
        return max(sum(missing) / self.n_jobs, longest)

    def seconds(self, name: str, split: int | None = None) -> float:
        """Mean time of a fold (of one that was run in full, where there is one); 0 while unknown."""
        done = self.outcomes[name]
        times = [_seconds(done[s]) for s in done if split in (None, s) and self.splits[s].sample is None]
        times = times or [_seconds(done[s]) for s in done if split in (None, s)]
        return float(np.mean([t for t in times if np.isfinite(t)] or [0.0]))

    def perform(self, jobs: Iterable[tuple[str, int]], limit: Callable[[Task], float] | None = None) -> None:
        """Run methods in splits that are not in the journal, in this order; those left out meanwhile are not begun.

        Parameters
        ----------
        jobs : pairs of the name of a method and the position of a split
        limit : callable(task) -> seconds, optional
            In place of `self.limit`.
        """
        jobs = list(jobs)
        self.planned |= set(jobs)
        missing = [Task(name, split) for name, split in jobs if not self._known(name, split)]
        allowed = partial(self._allowed, limit or self._limit)
        for task, result in self.workers.run(self._begun(missing), allowed):
            self._take(task, result)

    def _begun(self, tasks: list[Task]) -> Iterator[Task]:
        for task in tasks:
            if task.model in self.racing and time.monotonic() < self.deadline:
                yield task

    def _known(self, name: str, split: int) -> bool:
        """Whether the fold is done, here or in the journal; then it is taken from there."""
        if split in self.outcomes[name]:
            return True
        known = self.in_journal(name, split)
        if known is not None:
            self._keep(name, split, known)
        return known is not None

    def in_journal(self, name: str, split: int) -> Outcome | None:
        """What the journal has of a fold."""
        place = self.splits[split]
        return self.journal.get(name, self.methods[name].settings, place.repeat, place.fold, place.sample)

    def _keep(self, name: str, split: int, outcome: Outcome) -> None:
        self.outcomes[name][split] = outcome
        self.latest = outcome
        self.watch(self)

    def _take(self, task: Task, result: Any) -> None:
        name, split = task.model, self.splits[task.data]
        place = {"method": name, "repeat": split.repeat, "fold": split.fold}
        if split.sample is not None:
            place["sample"] = split.sample
        if isinstance(result, Ended) and result.overran:
            budget = ", to keep the time budget" if np.isfinite(self.end) else ""
            self.drop(name, f"a fit was ended after {result.seconds:.1f} s{budget}")
            self.late.append(name)
            return
        if isinstance(result, Ended):
            result = {**_unscored(split), "failed": f"ChildProcessError: {result.reason}"}, None
            self.dropped[name] = f"stopped: {result[0]['failed'].partition(': ')[2]}"
        record, proba = result
        outcome = Outcome(place | record, proba if split.repeat == 0 else None)
        if not record["failed"] or self.journal.keeps_failures:  # what failed for lack of memory may work later
            self.journal.add(self.methods[name].settings, outcome)
        self._keep(name, task.data, outcome)

    def drop(self, name: str, reason: str, scores: str = "") -> None:
        """Stop a method, with what it has finished, and its scores there, in the reason."""
        done = [self.splits[split].sample for split in self.outcomes[name]]
        total = sum(split.sample is None for split in self.splits)
        where = f"{done.count(None)} of {count(total, 'fold')}"
        if done and None not in done:
            where = f"a sample of {max(size for size in done if size is not None)} rows"
        self.dropped[name] = f"stopped after {where}{scores and f' ({scores})'}: {reason}"
        self.watch(self)

    def _allowed(self, limit: Callable[[Task], float], task: Task) -> float:
        """Seconds for a task: none when the time is over."""
        return -1.0 if time.monotonic() > self.deadline else limit(task)

    def _limit(self, task: Task) -> float:
        if self.limit != "auto":
            return np.inf if self.limit is None else self.limit
        times = [t for name in self.methods if (t := self.seconds(name))]
        return np.inf if 2 * len(times) < len(self.methods) else max(LEAST_LIMIT, MULTIPLE * float(np.median(times)))


def _seconds(outcome: Outcome) -> float:
    return float(outcome.record.get("fit_seconds", 0.0) + outcome.record.get("predict_seconds", 0.0))


def _unscored(split: Split) -> dict[str, Any]:
    from mixent.evaluate.records import TIMED

    sizes = {"n_train": len(split.train), "n_test": len(split.test), "labelled_only": False, "warned": None}
    return {**dict.fromkeys(TIMED, float("nan")), **sizes}
