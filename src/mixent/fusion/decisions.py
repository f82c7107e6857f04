"""The decisions of a fusion beside those of a majority vote, and what each source contributes to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.text import class_name, count
from mixent.fusion.answers import AnswersLike
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.rules import majority

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser

CASES = 12  # decisions that are explained
LARGEST = 5  # contributions of each
SLIGHT = 0.005  # nats


@dataclass(frozen=True)
class Decisions:
    """The patterns of a batch: the class decided, and the class most of the sources name."""

    batch: Batch
    posterior: np.ndarray  # (P, K)
    decided: np.ndarray  # (P,) class
    majority: np.ndarray  # (P,) class; -1 without a majority: a tie, or no vote

    @property
    def changed(self) -> np.ndarray:
        """(P,) whether they differ; a tie is not a majority."""
        return np.asarray((self.majority >= 0) & (self.majority != self.decided))

    def n_items(self, patterns: np.ndarray) -> float:
        """Total weight of the items in these patterns (P,)."""
        return float(self.batch.weight @ patterns)


@dataclass(frozen=True)
class Contribution:
    """What one source, or the class priors (source and answer None), add to the log-odds, in nats."""

    source: str | None
    answer: str | None
    nats: float

    def __str__(self) -> str:
        nats = f"{round(self.nats, 1) + 0.0:+.1f}"  # + 0.0: not -0.0
        return f"class priors ({nats})" if self.source is None else f"{self.source} ({self.answer}, {nats})"


@dataclass(frozen=True)
class Case:
    """A pattern decided against the majority, with the contributions to the log-odds of decision against majority."""

    pattern: int
    n_items: float
    majority: Any
    decided: Any
    probability: float
    known: bool  # the class was given as a label
    contributions: tuple[Contribution, ...] | None  # the largest first; None where the posteriors are means

    def reasons(self, most: int = LARGEST) -> str:
        """`A (ill, +2.1), B (healthy, -0.4), class priors (-1.3)`: the largest, then the sum of all others."""
        if self.known:
            return "its class is known"
        if self.contributions is None:
            return "a mean of the sources' posteriors, without additive contributions"
        large = [part for part in self.contributions if abs(part.nats) >= SLIGHT]
        texts = [str(part) for part in large[:most]]
        if len(large) > most:
            rest = sum(part.nats for part in large[most:])
            texts.append(f"{count(len(large) - most, 'other')} ({round(rest, 1) + 0.0:+.1f})")
        return ", ".join(texts)

    def __str__(self) -> str:
        decision = f"{class_name(self.decided)}, {100 * self.probability:.1f}\u00a0%"
        return f"majority {class_name(self.majority)}, decided {decision}: {self.reasons()}"


def decisions(fuser: Fuser, answers: AnswersLike | None = None) -> Decisions:
    """Decisions of a fitted `Fuser` and of a majority vote, on the batch it was fitted to or on other answers."""
    if answers is None:
        first = fuser._batch
        batch = Batch(fuser._fitted_layout, first.answers, first.weight, first.known, first.pattern_of)
    else:
        batch = fuser._new(answers)
    posterior = fuser.rule_.posterior(batch)
    known = np.flatnonzero(batch.known >= 0)
    posterior[known] = np.eye(posterior.shape[1])[batch.known[known]]
    votes = np.sort(shares := majority(batch.votes(), batch.layout.share).posterior, axis=1)
    clear = votes[:, -1] - votes[:, -2] > 1e-9
    return Decisions(batch, posterior, posterior.argmax(axis=1), np.where(clear, shares.argmax(axis=1), -1))


def changed_cases(fuser: Fuser, result: Decisions, most: int = CASES) -> list[Case]:
    """Typical patterns that were decided against the majority.

    Parameters
    ----------
    fuser : fitted Fuser
    result : of `decisions`
    most : int
        Number of cases.
    """
    rows = _typical(result, most)
    if not len(rows):
        return []
    batch, classes = result.batch, fuser.classes_.tolist()
    try:
        parts = fuser.explain(batch.answers.part(rows))
    except ValueError:  # posteriors that are means
        parts = None
    cases = []
    for i, row in enumerate(rows.tolist()):
        d, m = int(result.decided[row]), int(result.majority[row])
        each = None if parts is None else _contributions(batch, row, parts[i, :, d] - parts[i, :, m])
        probability, known = float(result.posterior[row, d]), bool(batch.known[row] >= 0)
        cases.append(Case(row, float(batch.weight[row]), classes[m], classes[d], probability, known, each))
    return cases


def _typical(result: Decisions, most: int) -> np.ndarray:
    """Patterns of most items; where every item is a pattern of its own, evenly from the surest to the least sure."""
    rows = np.flatnonzero(result.changed)
    weight, p = result.batch.weight[rows], result.posterior[rows].max(axis=1)
    if len(rows) > most and result.batch.pattern_of is None:
        order = np.argsort(-p, kind="stable")
        return rows[order[np.linspace(0, len(rows) - 1, most).astype(int)]]
    return rows[np.lexsort((-p, -weight))[:most]]


def _contributions(batch: Batch, row: int, nats: np.ndarray) -> tuple[Contribution, ...]:
    names, calibrations = batch.layout.names, batch.layout.calibrations
    parts = [
        Contribution(names[j], answer_text(calibrations[j], batch.answers.responses[j][row]), float(nats[j]))
        for j in range(len(names))
        if batch.answered[j, row]
    ]
    parts.append(Contribution(None, None, float(nats[-1])))
    return tuple(sorted(parts, key=lambda part: -abs(part.nats)))


def answer_text(calibration: Calibration, answer: Any) -> str:
    """An answer as text: of a code the symbol, of a pmf the most probable symbol."""
    n_cells = 1 if calibration.cells is None else len(calibration.cells)
    if np.ndim(answer):
        best = int(np.argmax(answer))
        return f"{calibration.symbols[best // n_cells]} {100 * answer[best]:.0f}\u00a0%"
    symbol = str(calibration.symbols[int(answer) // n_cells])
    return symbol if calibration.cells is None else f"{symbol} in {calibration.cells[int(answer) % n_cells]}"
