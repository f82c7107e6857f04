"""Decisions of a fusion compared with a majority vote, and the contribution of each source to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.result import Result
from mixent.base.text import class_name, count
from mixent.fusion.answers import AnswersLike
from mixent.fusion.batch import Batch
from mixent.fusion.calibration import Calibration
from mixent.fusion.rules import majority
from mixent.show import Short

if TYPE_CHECKING:
    from mixent.fusion.estimator import Fuser

MAX_CASES = 12  # decisions that are explained
MAX_CONTRIBUTIONS = 5  # listed for each decision
MIN_NATS = 0.005  # smaller contributions are not listed


@dataclass(frozen=True, repr=False)
class Decisions(Short):
    """The predicted class and the class of the majority, for the patterns of a batch."""

    batch: Batch
    posterior: np.ndarray  # (P, K)
    predicted: np.ndarray  # (P,) index of the class
    majority: np.ndarray  # (P,) index of the class; -1 without a majority (a tie, or no vote)

    @property
    def changed(self) -> np.ndarray:
        """(P,) whether they differ; False without a majority."""
        return np.asarray((self.majority >= 0) & (self.majority != self.predicted))

    def n_items(self, patterns: np.ndarray) -> float:
        """Total weight of the items of the selected patterns (P,)."""
        return float(self.batch.weight @ patterns)


@dataclass(frozen=True, repr=False)
class Contribution(Result):
    """Contribution of a source, or of the class priors (source and answer None), to the log-odds, in nats."""

    _shown = ("source", "answer", "nats")

    source: str | None
    answer: str | None
    nats: float

    def __str__(self) -> str:
        nats = f"{round(self.nats, 1) + 0.0:+.1f}"  # + 0.0: not -0.0
        return f"class priors ({nats})" if self.source is None else f"{self.source} ({self.answer}, {nats})"


@dataclass(frozen=True, repr=False)
class Case(Result):
    """A pattern with different predicted and majority classes, with contributions to the log-odds of the two."""

    _shown = ("predicted", "majority", "probability", "n_items")

    pattern: int
    n_items: float
    majority: Any
    predicted: Any
    probability: float
    labelled: bool  # the class was given as a label
    contributions: tuple[Contribution, ...] | None  # the largest first; None where the posteriors are means

    def reasons(self, n: int = MAX_CONTRIBUTIONS) -> str:
        """The n largest contributions and the sum of the others: `A (ill, +2.1), class priors (-1.3)`."""
        if self.labelled:
            return "the label was given"
        if self.contributions is None:
            return "a mean of the sources' posteriors, without additive contributions"
        parts = [part for part in self.contributions if abs(part.nats) >= MIN_NATS]
        texts = [str(part) for part in parts[:n]]
        if len(parts) > n:
            rest = sum(part.nats for part in parts[n:])
            texts.append(f"{count(len(parts) - n, 'other')} ({round(rest, 1) + 0.0:+.1f})")
        return ", ".join(texts)

    def __str__(self) -> str:
        prediction = f"{class_name(self.predicted)}, {100 * self.probability:.1f}\u00a0%"
        return f"majority {class_name(self.majority)}, predicted {prediction}: {self.reasons()}"


def decisions(fuser: Fuser, answers: AnswersLike | None = None, y: ArrayLike | None = None) -> Decisions:
    """Decisions of a fitted `Fuser` and of a majority vote, on the batch of the fit or on other answers.

    Labelled items keep their class; `y` are labels of other answers, as for `Fuser.fit`.
    """
    if answers is None:
        first = fuser._batch
        batch = Batch(fuser._fitted_layout, first.answers, first.weight, first.labels, first.pattern_of)
    else:
        batch = fuser._new(answers, y)
    posterior = fuser.rule_.posterior(batch)
    labelled = np.flatnonzero(batch.labels >= 0)
    posterior[labelled] = np.eye(posterior.shape[1])[batch.labels[labelled]]
    votes = np.sort(shares := majority(batch.votes(), batch.layout.share).posterior, axis=1)
    clear = votes[:, -1] - votes[:, -2] > 1e-9
    return Decisions(batch, posterior, posterior.argmax(axis=1), np.where(clear, shares.argmax(axis=1), -1))


def changed_cases(fuser: Fuser, result: Decisions, max_cases: int = MAX_CASES) -> list[Case]:
    """Typical patterns whose predicted class is not that of the majority.

    Parameters
    ----------
    fuser : fitted Fuser
    result : Decisions
        Result of `decisions`.
    max_cases : int
        Maximum number of patterns.
    """
    rows = _typical(result, max_cases)
    if not len(rows):
        return []
    batch, classes = result.batch, fuser.classes_.tolist()
    try:
        parts = fuser.explain(batch.answers.part(rows))
    except ValueError:  # posteriors that are means
        parts = None
    cases = []
    for i, row in enumerate(rows.tolist()):
        k, m = int(result.predicted[row]), int(result.majority[row])
        contributions = None if parts is None else _contributions(batch, row, parts[i, :, k] - parts[i, :, m])
        probability, labelled = float(result.posterior[row, k]), bool(batch.labels[row] >= 0)
        cases.append(Case(row, float(batch.weight[row]), classes[m], classes[k], probability, labelled, contributions))
    return cases


def _typical(result: Decisions, max_cases: int) -> np.ndarray:
    """The most frequent patterns; where every item is a pattern, a sample from the most to the least certain."""
    rows = np.flatnonzero(result.changed)
    weight, p = result.batch.weight[rows], result.posterior[rows].max(axis=1)
    if len(rows) > max_cases and result.batch.pattern_of is None:
        order = np.argsort(-p, kind="stable")
        return rows[order[np.linspace(0, len(rows) - 1, max_cases).astype(int)]]
    return rows[np.lexsort((-p, -weight))[:max_cases]]


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
    """An answer as text: the symbol of a code, or the most probable symbol of a distribution with its probability."""
    n_cells = 1 if calibration.cells is None else len(calibration.cells)
    if np.ndim(answer):
        best = int(np.argmax(answer))
        return f"{calibration.symbols[best // n_cells]} {100 * answer[best]:.0f}\u00a0%"
    symbol = str(calibration.symbols[int(answer) // n_cells])
    return symbol if calibration.cells is None else f"{symbol} in {calibration.cells[int(answer) % n_cells]}"
