"""The folds of all methods, several at a time, within a time budget."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.comparison.journal import Journal, Outcome, settings_of
from mixent.comparison.recipes import Candidate
from mixent.evaluate.validate import FoldData, score_fold

REFIT = 1.3  # of the time of one fold: what the refit on all rows takes, roughly


@dataclass(frozen=True)
class Job:
    """One method in one fold."""

    name: str
    estimator: Any
    repeat: int
    fold: int
    train: np.ndarray
    test: np.ndarray
    deadline: float | None  # of the clock: it does not begin later


@dataclass
class Runner:
    """Goes round by round: a round is one fold of every method still in the race.

    After each round, with a budget, the methods that take longest are left out until the rest fits into what is left.
    A fit that has begun is not interrupted, and the quickest method goes on whatever the budget: something is found.
    """

    candidates: dict[str, Candidate]
    data: FoldData
    folds: np.ndarray  # (repeats, n)
    journal: Journal
    n_jobs: int
    budget: float | None  # seconds
    watch: Callable[[Runner], None]  # told after every fold
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)  # name: why, in words
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.outcomes = {name: [] for name in self.candidates}
        self.settings = {name: settings_of(c.estimator) for name, c in self.candidates.items()}
        n_folds = int(self.folds.max()) + 1
        self.rounds = [(r, f) for r in range(len(self.folds)) for f in range(n_folds)]

    @property
    def racing(self) -> list[str]:
        """Methods that have neither been left out nor failed: one that fails in a fold cannot be ranked."""
        return [name for name in self.candidates if name not in self.dropped and not self.failed(name)]

    def failed(self, name: str) -> bool:
        """Did it fail in a fold?"""
        return any(o.record["failed"] for o in self.outcomes[name])

    @property
    def left(self) -> float:
        """Seconds of the budget."""
        return np.inf if self.budget is None else self.budget - (time.monotonic() - self.began)

    @property
    def n_done(self) -> int:
        """Folds finished, of all methods."""
        return sum(map(len, self.outcomes.values()))

    @property
    def n_total(self) -> int:
        """Folds to finish, of the methods still in the race."""
        return sum(len(self.rounds) if n in self.racing else len(self.outcomes[n]) for n in self.candidates)

    def seconds(self, name: str) -> float:
        """Mean of a fold."""
        found = [o.record["fit_seconds"] + o.record["predict_seconds"] for o in self.outcomes[name]]
        return float(np.mean(found)) if found else 0.0

    def run(self) -> None:
        """All rounds."""
        with _pool(self.n_jobs) as pool:
            for number, (repeat, fold) in enumerate(self.rounds):
                todo = [name for name in self.racing if not self._known(name, repeat, fold)]
                self.watch(self)
                for names in self._turns(number, todo):
                    self._folds(pool, number, [self._job(name, repeat, fold) for name in names])
                self._drop(number + 1)

    def _known(self, name: str, repeat: int, fold: int) -> bool:
        """Is the fold in the journal? Then it is taken from there."""
        known = self.journal.get(name, self.settings[name], repeat, fold)
        if known is not None:
            self.outcomes[name].append(known)
        return known is not None

    def _turns(self, number: int, todo: list[str]) -> Iterator[list[str]]:
        """Who is fitted together: the longest first, so that no process waits; of unknown length, the cheapest first.

        With a budget, a method begins only while those that have begun can still finish.
        """
        if number or self.budget is None:
            yield sorted(todo, key=self.seconds, reverse=True)
            return
        order = sorted(todo, key=lambda name: self.candidates[name].cost)
        for start in range(0, len(order), self.n_jobs):
            names = order[start : start + self.n_jobs]
            begun = [name for name in self.racing if self.outcomes[name]]
            sound = [name for name in begun if self._needed([name], 1) <= self.left]
            longest = max(map(self.seconds, begun), default=0.0)  # the next will hardly be quicker
            if sound and self._needed(sound, 1) + longest > self.left:
                self.dropped |= dict.fromkeys(names, "not begun: the time budget was needed for quicker methods")
            else:
                yield names

    def _folds(self, pool: _pool, number: int, jobs: list[Job]) -> None:
        """Fit, and keep what comes."""
        for job, outcome in pool(jobs, self.data):
            if outcome is None:
                self.dropped[job.name] = f"stopped after {_count(number)}: the time budget was spent"
            else:
                self.outcomes[job.name].append(outcome)
                if not outcome.record["failed"]:  # what failed for want of memory may work another day
                    self.journal.add(self.settings[job.name], outcome)
            self.watch(self)

    def _job(self, name: str, repeat: int, fold: int) -> Job:
        place = self.folds[repeat]
        train, test = np.flatnonzero(place != fold), np.flatnonzero(place == fold)
        deadline = None
        if self.budget is not None and self.outcomes[name] and name != min(self.racing, key=self.seconds):
            deadline = time.time() + self.left
        return Job(name, self.candidates[name].estimator, repeat, fold, train, test, deadline)

    def _drop(self, n_done: int) -> None:
        """Leave out the longest until the rest fits."""
        while n_done < len(self.rounds) and len(self.racing) > 1 and self._needed(self.racing, n_done) > self.left:
            slow = max(self.racing, key=self.seconds)
            self.dropped[slow] = (
                f"stopped after {_count(n_done)} of {len(self.rounds)}: at {self.seconds(slow):.1f} s for each it "
                "would not fit into the time budget"
            )

    def _needed(self, names: list[str], n_done: int) -> float:
        """Seconds that the folds to come will take, but for those in the journal, and the refit."""
        times = []
        for name in names:
            known = (self.journal.get(name, self.settings[name], *place) for place in self.rounds[n_done:])
            times.append(self.seconds(name) * sum(one is None for one in known))
        return max(sum(times) / self.n_jobs, max(times)) + REFIT * max(map(self.seconds, names))


def _count(n: int) -> str:
    return f"{n} fold{'s' * (n != 1)}"


def run_job(job: Job, data: FoldData) -> Outcome | None:
    """Fit and score; None when the time is over before it begins."""
    if job.deadline is not None and time.time() > job.deadline:
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores, proba = score_fold(job.estimator, data, job.train, job.test)
    warned = str(caught[0].message)[:300] if caught else None
    record = {"method": job.name, "repeat": job.repeat, "fold": job.fold, **scores, "warned": warned}
    return Outcome(record, proba if job.repeat == 0 else None)


def _numbered(i: int, job: Job, data: FoldData) -> tuple[int, Outcome | None]:
    return i, run_job(job, data)


class _pool:  # noqa: N801  (used as a function)
    """Runs jobs in processes, or one after the other in this one; yields them as they are done."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.parallel: Any = None

    def __enter__(self) -> _pool:
        if self.n_jobs > 1:
            from joblib import Parallel, parallel_config

            self.config = parallel_config(backend="loky", inner_max_num_threads=1)
            self.config.__enter__()
            self.parallel = Parallel(n_jobs=self.n_jobs, return_as="generator_unordered", batch_size=1).__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.parallel is not None:
            self.parallel.__exit__(*error)
            self.config.__exit__(*error)

    def __call__(self, jobs: list[Job], data: FoldData) -> Iterator[tuple[Job, Outcome | None]]:
        if self.parallel is None:
            yield from ((job, run_job(job, data)) for job in jobs)
            return
        from joblib import delayed

        for i, outcome in self.parallel(delayed(_numbered)(i, job, data) for i, job in enumerate(jobs)):
            yield jobs[i], outcome
