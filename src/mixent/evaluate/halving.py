"""Cross-validation within a time budget: all methods on few rows, the promising ones on more rows and folds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mixent.base.text import count
from mixent.evaluate.race import FOLDS, Race
from mixent.evaluate.runner import Runner, Split
from mixent.evaluate.scores import as_loss
from mixent.evaluate.text import WORDS, beside, short_score
from mixent.evaluate.workers import Limit, Task

SAMPLES = (500, 2_000, 8_000)  # training rows of the samples
MOST_TESTED = 2_000  # test rows of a sample
MOST_SAMPLED = 0.3  # of the training rows of a fold; a larger sample would hardly save time
EACH_CLASS = 5  # rows of a class that every sample has
FIRST = 0.65  # of the budget, for the first rung
NEXT = 0.5  # of the time left, for each of the others
OVER = 3.0  # times the predicted time after which a fit is ended
LEAST = 2.0  # seconds that any fit may take
CHEAP = 1.0  # seconds of all folds to come, below which a method is not stopped for lack of time
LONGEST = 30.0  # seconds of the only method that could finish, if the budget is shorter
MOST_REFIT = 0.25  # of the time left that is kept for the fit to all rows
REFIT = 1.3  # of the time of one fold: roughly the time of a fit to all rows


def samples_of(split: Split, codes: np.ndarray, rng: np.random.Generator) -> list[Split]:
    """Samples of a fold of increasing size, each a part of the next, with the classes in their proportions.

    Parameters
    ----------
    split : Split
    codes : (n,) positions of the classes; -1 without a label
    rng : random generator
    """
    train, test = _spread(split.train, codes, rng), _spread(split.test, codes, rng)[:MOST_TESTED]
    sizes = [size for size in SAMPLES if size < MOST_SAMPLED * len(train)]
    return [replace(split, train=np.sort(train[:size]), test=np.sort(test), sample=size) for size in sizes]


def _spread(rows: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows in an order of which any beginning has the classes in their proportions."""
    rows = rng.permutation(rows)
    key = np.empty(len(rows))
    for code in np.unique(codes[rows]):
        members = np.flatnonzero(codes[rows] == code)
        key[members] = (np.arange(len(members)) + 0.5) / len(members)
        key[members[:EACH_CLASS]] = -1.0
    return rows[np.argsort(key, kind="stable")]


@dataclass
class Halving:
    """A policy: successive halving (Jamieson and Talwalkar 2016) over samples of the rows, then folds.

    Every method is tried on the first rung: one fold of a sample. The next rung is the largest sample, or the fold of
    all rows, that the two best methods can finish in the time left; rungs between are left out, since what counts is
    the score with all rows. The best methods go on to it, as many as half of the time left allows, and so on from fold
    to fold; methods whose remaining folds take less than a second always go on. Time that is left at the end goes to
    the others, first to those that were ended on the first rung. Methods are compared on the largest stage that the two
    best methods of the stage before have finished: what is too slow for more rows is not beaten by what is left.

    Parameters
    ----------
    race : Race
        What methods are compared by; it also stops those that are clearly behind after two folds of all rows.
    end : float
        When the time is over, on the clock `time.monotonic`.
    """

    race: Race
    end: float
    retried: set[str] = field(default_factory=set)
    used: list[int] = field(default_factory=lambda: [0])  # rungs, in increasing order

    def __call__(self, runner: Runner) -> None:
        """Run."""
        self.began, runner.end = time.monotonic(), self.end
        folds = [s for s, split in enumerate(runner.splits) if split.sample is None]
        self.n_samples = len(runner.splits) - len(folds)
        self.rungs = [*range(len(folds), len(runner.splits)), *folds]
        self._first(runner)
        while self._pass(runner) or self._again(runner):
            pass
        runner.stage = self._stage(runner)
        for name in runner.racing:
            if not all(self._scored(runner, name, split) for split in runner.stage):
                runner.dropped[name] = self._reason(runner, name)
                runner.late.append(name)

    def _first(self, runner: Runner) -> None:
        """Every method on the first rung; while others wait, none takes more than a share that grows with its cost."""
        until = self.began + FIRST * (self.end - self.began)
        cost = {name: method.cost for name, method in runner.methods.items()}
        shares: dict[str, float] = {}

        def limit(task: Task) -> float:
            waiting = [n for n in cost if n not in shares and not runner.outcomes[n] and n not in runner.dropped]
            left = until - time.monotonic()
            if task.model not in shares:
                running = [n for n in shares if not runner.outcomes[n] and n not in runner.dropped]
                total = sum(cost[n] for n in {*waiting, *running, task.model})
                share = max(left, 0.0) * runner.n_jobs * cost[task.model] / max(total, 1e-9)
                shares[task.model] = max(LEAST, min(2 * share, left))  # most need less
            return np.inf if left > 0 and not waiting else shares[task.model]

        mean = np.mean(list(cost.values()))  # cheap methods begin; of the others the longest, so that no process waits
        names = sorted(cost, key=lambda name: (cost[name] > mean, cost[name] if cost[name] <= mean else -cost[name]))
        self._perform(runner, names, 0, limit)
        for name in list(runner.late):  # any answer is better than none
            if not runner.some_worked:
                runner.late.remove(name)
                del runner.dropped[name]
                self._perform(runner, [name], 0, lambda task: max(LONGEST, self.end - self.began))

    def _again(self, runner: Runner) -> bool:
        """Give the methods that were ended on the first rung the time that is left, once; whether one has finished."""
        ended = [n for n in runner.late if not runner.outcomes[n] and n not in self.retried]
        names = sorted(ended, key=lambda name: -runner.methods[name].cost)[: runner.n_jobs]  # they had the least time
        left = self._left(runner)
        if not names or left < LEAST:
            return False
        for name in names:
            self.retried.add(name)
            runner.late.remove(name)
            del runner.dropped[name]
        self._perform(runner, names, 0, self._limits(dict.fromkeys(names, left), time.monotonic() + left))
        return any(map(runner.outcomes.__getitem__, names)) or self._again(runner)

    def _left(self, runner: Runner) -> float:
        """Seconds that are left but for the fit to all rows."""
        left = self.end - time.monotonic()
        return left - min(self._refit(runner), MOST_REFIT * left)

    def _pass(self, runner: Runner) -> bool:
        """Take methods from rung to rung; whether any could go on."""
        progress, i = False, 1
        while i < len(self.used) or self._climb(runner):
            rung, i = self.used[i], i + 1
            if rung >= self.n_samples + FOLDS:
                self.race.stop(runner, self.rungs[self.n_samples : self.n_samples + FOLDS])
            predicted = self._promoted(runner, rung)
            if predicted:
                names = self._order(runner, predicted, rung)
                self._perform(runner, names, rung, self._limits(predicted, time.monotonic() + self._left(runner)))
                progress = True
        return progress

    def _order(self, runner: Runner, predicted: Mapping[str, float], rung: int) -> list[str]:
        """The longest first, so that no process waits at the end; but one process begins with the cheap methods."""
        longest = sorted(predicted, key=predicted.__getitem__)[::-1]
        cheap = [name for name in longest if self._is_cheap(runner, name, rung)]
        others = [name for name in longest if name not in cheap]
        return [*others[: runner.n_jobs - 1], *cheap, *others[runner.n_jobs - 1 :]]

    def _limits(self, predicted: Mapping[str, float], until: float) -> Limit:
        """Several times what was predicted, but not beyond the time that is kept for the fit to all rows."""
        return lambda task: max(LEAST, OVER * predicted[task.model]) if time.monotonic() < until else -1.0

    def _climb(self, runner: Runner) -> bool:
        """Add the next rung: the highest, up to one fold of all rows, that the two best methods can finish."""
        last = self.used[-1]
        ready = [name for name in self._finished(runner, last) if not runner.methods[name].always]
        ready = sorted(ready, key=lambda name: self._score(runner, name, last))[:2]
        for rung in range(min(max(last + 1, self.n_samples), len(self.rungs) - 1), last, -1):
            needed = [self._needed(runner, name, rung) for name in ready]
            if ready and max(needed) <= (left := self._left(runner)) and sum(needed) <= left * runner.n_jobs:
                self.used.append(rung)
                return True
        return False

    def _before(self, rung: int) -> int:
        return self.used[self.used.index(rung) - 1]

    def _finished(self, runner: Runner, rung: int) -> list[str]:
        """Methods that go on and have a score on a rung."""
        return [name for name in runner.racing if self._scored(runner, name, self.rungs[rung])]

    def _perform(self, runner: Runner, names: list[str], rung: int, limit: Limit) -> None:
        runner.rung = self.rungs[rung]
        runner.perform([(name, self.rungs[rung]) for name in names], limit)

    def _promoted(self, runner: Runner, rung: int) -> dict[str, float]:
        """The methods that go on to a rung, with the seconds of each: the best, while there is time, and the cheap."""
        split, before = self.rungs[rung], self._before(rung)
        ready = [name for name in self._finished(runner, before) if split not in runner.outcomes[name]]
        ready.sort(key=lambda name: self._score(runner, name, before))
        left = self._left(runner)
        time_left = NEXT * left * runner.n_jobs
        chosen: dict[str, float] = {}
        for name in ready:
            needed = self._needed(runner, name, rung)
            enough = needed <= time_left or len(chosen) < 2 or self._is_cheap(runner, name, rung)
            if needed <= left and enough:
                chosen[name] = needed
                time_left -= needed
        return chosen if self._counts(runner, [*chosen, *self._finished(runner, rung)], before) else {}

    def _counts(self, runner: Runner, names: list[str], before: int) -> bool:
        """Whether these methods include the two best of a rung, of those that were not stopped as clearly behind."""
        real = [
            n for n in runner.methods if not runner.methods[n].always and self._scored(runner, n, self.rungs[before])
        ]
        real = [n for n in real if n in runner.late or n not in runner.dropped]
        best = sorted(real, key=lambda name: self._score(runner, name, before))[:2]
        return bool(best) and set(best) <= set(names)

    def _scored(self, runner: Runner, name: str, split: int) -> bool:
        outcome = runner.outcomes[name].get(split)
        return outcome is not None and not outcome.record["failed"]

    def _score(self, runner: Runner, name: str, rung: int) -> float:
        """Mean loss up to a rung: over the folds, or of the one sample."""
        splits = [self.rungs[rung]] if rung < self.n_samples else self.rungs[self.n_samples : rung + 1]
        records = [runner.outcomes[name][s].record for s in splits if self._scored(runner, name, s)]
        return float(np.mean([as_loss(record[self.race.metric], self.race.metric) for record in records]))

    def _needed(self, runner: Runner, name: str, rung: int) -> float:
        """Seconds of a method on a rung; none if the journal has it."""
        split = self.rungs[rung]
        known = runner.in_journal(name, split) is not None
        return 0.0 if known else self._predicted(runner, name, len(runner.splits[split].train))

    def _predicted(self, runner: Runner, name: str, n_rows: int) -> float:
        """Seconds with a number of training rows, from those known: a power of the number of rows."""
        done = [self.rungs[rung] for rung in self.used if self.rungs[rung] in runner.outcomes[name]]
        known = [(len(runner.splits[split].train), runner.seconds(name, split)) for split in done]
        n, seconds = known[-1]
        growth = runner.methods[name].growth
        if len(known) > 1 and known[-2][0] < n and min(seconds, known[-2][1]) > 0:
            growth = float(np.clip(np.log(seconds / known[-2][1]) / np.log(n / known[-2][0]), 0.0, 3.0))
        return seconds * max(n_rows / n, 1.0) ** growth

    def _is_cheap(self, runner: Runner, name: str, rung: int) -> bool:
        """Whether a method can finish from a rung on in less than a second."""
        return sum(self._needed(runner, name, r) for r in range(rung, len(self.rungs))) < CHEAP

    def _refit(self, runner: Runner) -> float:
        """Seconds to fit the method that is best so far to all rows."""
        for rung in self.used[::-1]:
            done = self._finished(runner, rung)
            if done:
                best = min(done, key=lambda name: self._score(runner, name, rung))
                return REFIT * self._predicted(runner, best, len(runner.splits[self.rungs[self.n_samples]].train))
        return 0.0

    def _stage(self, runner: Runner) -> list[int]:
        """The folds of all rows, or else the sample, up to the last rung that compares the best methods."""
        last = 0
        for rung in self.used[1:]:
            done = [n for n in runner.methods if self._scored(runner, n, self.rungs[rung])]
            if not self._counts(runner, done, last):
                break
            last = rung
        return self.rungs[self.n_samples : last + 1] if last >= self.n_samples else [self.rungs[last]]

    def _reason(self, runner: Runner, name: str) -> str:
        """How far a method came, and how it compared there."""
        reached = [r for r, split in enumerate(self.rungs) if self._scored(runner, name, split)]
        if not reached:
            failed = [o.record["failed"] for o in runner.finished(name)]
            return f"stopped after an error: {failed[0]}" if failed else "not begun: the time budget was over"
        rung, metric = reached[-1], self.race.metric
        scores = {n: self._score(runner, n, rung) for n in runner.methods if self._scored(runner, n, self.rungs[rung])}
        best = min(scores, key=scores.__getitem__)
        value, lowest = (float(as_loss(scores[n], metric)) for n in (name, best))
        n_folds = len(self.rungs) - self.n_samples
        where, what = f"{rung - self.n_samples + 1} of {count(n_folds, 'fold')}", "folds"
        if rung < self.n_samples:
            where, what = f"a sample of {len(runner.splits[self.rungs[rung]].train)} rows", "sample"
        score = f"{WORDS[metric][0]} {short_score(value, metric)}, the best there"
        if name != best:
            score = beside(value, lowest, best, metric, what)
        return f"stopped after {where} ({score}): the time budget did not allow for more"
