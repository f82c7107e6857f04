"""The one engine of cross-validation: several methods on common folds, several at a time, resumed from a journal."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.text import count
from mixent.evaluate.journal import Journal, Outcome

REFIT = 1.3  # of the time of one fold: roughly the time of a refit on all rows


@dataclass(frozen=True)
class Split:
    """Training and test rows of one fold."""

    repeat: int
    fold: int
    train: np.ndarray
    test: np.ndarray


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
        Roughly, relative to the other methods; a time budget begins with the cheap ones.
    """

    model: Any
    settings: str = ""
    cost: float = 1.0


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


@dataclass
class Runner:
    """Runs round by round: a round is one fold of every method that is still in the race.

    After each round, with a budget, the methods that take longest are left out until the rest fits into what is left.
    A fit that has begun is not interrupted, and the quickest method goes on whatever the budget.

    Parameters
    ----------
    methods : dict of name to Method
    trial : see `Trial`
    splits : list of Split
    journal : Journal
        Folds found there are not run again.
    n_jobs : int
        Processes.
    budget : float, optional
        Seconds.
    give_up : bool
        Whether a method that fails in one fold is not tried in the others.
    watch : callable(runner)
        Called at the beginning and after every fold.
    """

    methods: Mapping[str, Method]
    trial: Trial
    splits: Sequence[Split]
    journal: Journal = field(default_factory=Journal)
    n_jobs: int = 1
    budget: float | None = None
    give_up: bool = False
    watch: Callable[[Runner], None] = unwatched
    outcomes: dict[str, list[Outcome]] = field(init=False)
    dropped: dict[str, str] = field(default_factory=dict, init=False)  # name: reason
    latest: Outcome | None = field(default=None, init=False)
    began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self.outcomes = {name: [] for name in self.methods}

    @property
    def racing(self) -> list[str]:
        """Methods that go on."""
        return [name for name in self.methods if name not in self.dropped and not (self.give_up and self.failed(name))]

    def failed(self, name: str) -> bool:
        """Whether a method failed in a fold."""
        return any(outcome.record["failed"] for outcome in self.outcomes[name])

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
        """Folds to finish, of the methods that go on."""
        return sum(len(self.splits) if n in self.racing else len(self.outcomes[n]) for n in self.methods)

    def seconds(self, name: str) -> float:
        """Mean time of a fold."""
        times = [o.record.get("fit_seconds", 0.0) + o.record.get("predict_seconds", 0.0) for o in self.outcomes[name]]
        return float(np.mean([t for t in times if np.isfinite(t)] or [0.0]))

    def run(self) -> list[dict[str, Any]]:
        """Run all rounds; the records of the methods that were not left out, method by method."""
        self.watch(self)
        with _Pool(self.n_jobs) as pool:
            for number, split in enumerate(self.splits):
                missing = [name for name in self.racing if not self._known(name, split)]
                for names in self._turns(number, missing):
                    self._try(pool, number, [_Job(name, split, self._deadline(name)) for name in names])
                self._drop(number + 1)
        return [o.record for name in self.methods if name not in self.dropped for o in self.finished(name)]

    def finished(self, name: str) -> list[Outcome]:
        """Outcomes of a method, in the order of the splits."""
        return sorted(self.outcomes[name], key=lambda o: (o.record["repeat"], o.record["fold"]))

    def _known(self, name: str, split: Split) -> bool:
        """Whether the fold is in the journal; then it is taken from there."""
        known = self.journal.get(name, self.methods[name].settings, split.repeat, split.fold)
        if known is not None:
            self._keep(name, known)
        return known is not None

    def _keep(self, name: str, outcome: Outcome) -> None:
        self.outcomes[name].append(outcome)
        self.latest = outcome
        self.watch(self)

    def _turns(self, number: int, missing: list[str]) -> Iterator[list[str]]:
        """Methods that run together: the longest first, so that no process waits; of unknown length the cheapest first.

        With a budget, a method begins only while those that have begun can still finish.
        """
        if number or self.budget is None:
            yield sorted(missing, key=self.seconds, reverse=True) if self.n_jobs > 1 else missing
            return
        order = sorted(missing, key=lambda name: self.methods[name].cost)
        for start in range(0, len(order), self.n_jobs):
            names = order[start : start + self.n_jobs]
            begun = [name for name in self.racing if self.outcomes[name]]
            sound = [name for name in begun if self._needed([name], 1) <= self.left]
            longest = max(map(self.seconds, begun), default=0.0)  # the next will hardly be quicker
            if sound and self._needed(sound, 1) + longest > self.left:
                self.dropped |= dict.fromkeys(names, "not begun: the time budget was needed for quicker methods")
            else:
                yield names

    def _try(self, pool: _Pool, number: int, jobs: list[_Job]) -> None:
        for job, result in pool(self.trial, self.methods, jobs):
            if result is None:
                self.dropped[job.name] = f"stopped after {count(number, 'fold')}: the time budget was spent"
                self.watch(self)
                continue
            split, (record, proba) = job.split, result
            record = {"method": job.name, "repeat": split.repeat, "fold": split.fold, **record}
            outcome = Outcome(record, proba if split.repeat == 0 else None)
            if not record["failed"] or self.journal.keeps_failures:  # what failed for lack of memory may work later
                self.journal.add(self.methods[job.name].settings, outcome)
            self._keep(job.name, outcome)

    def _deadline(self, name: str) -> float | None:
        if self.budget is not None and self.outcomes[name] and name != min(self.racing, key=self.seconds):
            return time.time() + self.left
        return None

    def _drop(self, n_done: int) -> None:
        """Leave out the longest until the rest fits."""
        while n_done < len(self.splits) and len(self.racing) > 1 and self._needed(self.racing, n_done) > self.left:
            slow = max(self.racing, key=self.seconds)
            self.dropped[slow] = (
                f"stopped after {count(n_done, 'fold')} of {len(self.splits)}: at {self.seconds(slow):.1f} s for each "
                "it would not fit into the time budget"
            )

    def _needed(self, names: list[str], n_done: int) -> float:
        """Seconds that the folds to come will take, but for those in the journal, and the refit."""
        if self.budget is None:
            return 0.0
        times = []
        for name in names:
            settings = self.methods[name].settings
            known = [self.journal.get(name, settings, s.repeat, s.fold) for s in self.splits[n_done:]]
            times.append(self.seconds(name) * known.count(None))
        return max(sum(times) / self.n_jobs, max(times)) + REFIT * max(map(self.seconds, names))


@dataclass(frozen=True)
class _Job:
    """One method in one fold."""

    name: str
    split: Split
    deadline: float | None  # of the clock: it does not begin later


def _run(number: int, trial: Trial, model: Any, job: _Job) -> tuple[int, Any]:
    """The result, with the number of the job; None when the time is over before it begins."""
    late = job.deadline is not None and time.time() > job.deadline
    return number, None if late else trial(model, job.split)


class _Pool:
    """Runs jobs in processes, or one after the other in this one; yields them as they are done."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs
        self.parallel: Any = None

    def __enter__(self) -> _Pool:
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

    def __call__(
        self, trial: Trial, methods: Mapping[str, Method], jobs: list[_Job]
    ) -> Iterator[tuple[_Job, tuple[dict[str, Any], np.ndarray | None] | None]]:
        if self.parallel is None:
            yield from ((job, _run(0, trial, methods[job.name].model, job)[1]) for job in jobs)
            return
        from joblib import delayed

        tasks = (delayed(_run)(i, trial, methods[job.name].model, job) for i, job in enumerate(jobs))
        results = self.parallel(tasks)
        try:
            for i, result in results:
                yield jobs[i], result
        finally:  # after Ctrl-C, joblib would warn that running tasks are cancelled, as they should be
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                results.close()
