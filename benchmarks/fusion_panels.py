"""The simulated panels of `benchmarks.fusion_grid`: a space-filling design of cells, and the answers of their sources.

Source j sees item i of class y as K utilities  u_k = d_j [k = y] + e_ijk,  with  e_ij = sqrt(r) g_i + sqrt(1 - r) h_ij
and standard normal g_i (common to all sources) and h_ij, so that r is the correlation of their errors within a class.

* A hard answer is the class of the largest utility; d_j gives it the accuracy of the source.
* Honest probabilities are those of Bayes' rule,  p_k proportional to prior_k exp(d_j u_k);  over-confident ones have
  exp(t d_j u_k)  with t > 1.
* An ordinal score is  z = d_j y + sqrt(r) g_i + sqrt(1 - r) h_ij,  cut at equal distances into levels 1, 2, ....

The calibration rows of a source are its own and at other class priors. Copies of the first source have its answers and
its rows; nothing declares them. With `shared_rows`, all sources were calibrated on the same items, undeclared as well.
A faulty source answers its calibration rows as the others do. In the batch, "swapped" answers are those of the next
class, "random" answers those to another item of the batch, so that the histogram is the same; for "shifted", the
utility of the first class has increased. Faults are "clear" where the other sources could show them: at least four
sources and 300 items, good sources that are not too dependent, and 100 calibration rows or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.stats import norm, qmc

from mixent import Calibration

SEED = 26
KINDS = {  # number of cells; a power of two fills the space evenly
    "hard": 128,
    "soft": 64,
    "over-confident": 64,
    "ordinal": 64,
    "shared rows": 64,
    "swapped": 64,
    "random": 64,
    "shifted": 32,
    "clear swapped": 32,
    "clear random": 32,
}
FAULTS = ("swapped", "random", "shifted")
ITEMS, BATCHES = 20_000, 20  # at least so many of every cell
FAULTY_ACCURACY = 0.85  # of a faulty source on its calibration rows
SHIFT = 1.2  # of the utility of the first class, in standard deviations
LEVELS = (5, 7, 10)
DIMENSIONS = 13
# of the unit cube, for clear faults: 4 or more good sources, 300 or more items, a correlation to .4, 100 or more rows
CLEAR = {0: (0.26, 1.0), 3: (0.45, 1.0), 5: (0.5, 1.0), 7: (0.0, 0.63), 8: (0.35, 1.0)}


@dataclass(frozen=True)
class Cell:
    """One situation of the grid."""

    index: int
    kind: str
    answers: str  # "hard", "soft", "over-confident" or "ordinal"
    n_items: int
    priors: tuple[float, ...]  # of the classes in the batch
    accuracy: tuple[float, ...]  # of the sources without copies
    correlation: float
    n_copies: int
    n_rows: int  # calibration rows of each source
    calibration_priors: tuple[float, ...]
    sharpness: float  # t; 1 for honest probabilities
    n_levels: int
    faulty: int | None  # source

    @property
    def fault(self) -> str | None:
        return fault_of(self.kind)

    @property
    def shared_rows(self) -> bool:
        return self.kind == "shared rows"

    @property
    def n_classes(self) -> int:
        return len(self.priors)

    @property
    def n_sources(self) -> int:
        return len(self.accuracy) + self.n_copies

    @property
    def n_replicates(self) -> int:
        return max(BATCHES, ceil(ITEMS / self.n_items))

    @property
    def names(self) -> list[str]:
        return [f"s{j + 1}" for j in range(self.n_sources)]

    def __str__(self) -> str:
        kind = f"{self.kind} {self.index}" + f", {self.answers}" * (self.kind != self.answers)
        accuracy = f"{min(self.accuracy):.2f}-{max(self.accuracy):.2f}"
        parts = [kind, f"J={self.n_sources}", f"K={self.n_classes}", f"N={self.n_items}"]
        parts += [f"accuracy {accuracy}", f"r={self.correlation:.2f}", f"rows {self.n_rows}"]
        parts += [f"copies {self.n_copies}"] * bool(self.n_copies) + [f"least share {min(self.priors):.3f}"]
        return ", ".join(parts)


@dataclass(frozen=True)
class Panel:
    """A batch of one cell and the calibrations of its sources."""

    truth: np.ndarray  # (n,) classes 0, 1, ..., K - 1
    answers: dict[str, np.ndarray]
    calibrations: dict[str, Calibration]


def fault_of(kind: str) -> str | None:
    """The fault of the cells of a kind."""
    return next((fault for fault in FAULTS if kind.endswith(fault)), None)


# --- design -----------------------------------------------------------------------------------------------------------


@cache
def cells() -> tuple[Cell, ...]:
    """All cells, the same in every run."""
    out: list[Cell] = []
    for stratum, (kind, n) in enumerate(KINDS.items()):
        points = qmc.Sobol(DIMENSIONS, rng=np.random.default_rng([SEED, stratum])).random(n)
        out += [_cell(len(out) + i, kind, point.tolist()) for i, point in enumerate(points)]
    return tuple(out)


def _cell(index: int, kind: str, u: list[float]) -> Cell:
    """The cell at a point of the unit cube."""
    rng = np.random.default_rng([SEED, index])
    if kind.startswith("clear"):
        for d, (low, high) in CLEAR.items():
            u[d] = low + (high - low) * u[d]
    n_sources, K = round(_log_between(2, 30, u[0])), 2 + int(4 * u[1])
    fault = fault_of(kind)
    is_special = fault is not None or kind == "shared rows"
    answers = ("hard" if u[12] < 0.75 else "soft") if is_special else kind
    # a third of the panels has copies, of at most half of the sources
    n_copies = 0 if is_special or u[2] > 1 / 3 else 1 + int(3 * u[2] * min(n_sources // 2, 6))
    n = n_sources - n_copies
    accuracy = np.clip(0.55 + 0.4 * u[3] + 0.25 * u[4] * (rng.permutation(n) - (n - 1) / 2) / max(n - 1, 1), 0.55, 0.95)
    faulty = None if fault is None else int(rng.integers(n))
    if faulty is not None:
        accuracy[faulty] = FAULTY_ACCURACY
    return Cell(
        index,
        kind,
        answers,
        n_items=round(_log_between(30, 3000, u[5])),
        priors=tuple(rng.permutation(_shares(K, _log_between(0.01, 1 / K, u[6]))).tolist()),
        accuracy=tuple(accuracy.round(4).tolist()),
        correlation=round(max(0.0, 1.1 * u[7] - 0.3), 3),  # independent given the class in a quarter of the cells
        n_copies=n_copies,
        n_rows=round(_log_between(20, 2000, u[8])),
        calibration_priors=tuple(rng.permutation(_shares(K, min(1.0, 0.5 + u[9]) / K)).tolist()),
        sharpness=2 + 2 * u[10] if answers == "over-confident" else 1.0,
        n_levels=LEVELS[int(len(LEVELS) * u[11])],
        faulty=faulty,
    )


def _log_between(low: float, high: float, u: float) -> float:
    return float(low * (high / low) ** u)


def _shares(K: int, least: float) -> np.ndarray:
    """(K,) shares in geometric progression with this smallest one."""

    def shares(step: float) -> np.ndarray:
        p = np.exp(-step * np.arange(K))
        return p / p.sum()

    return shares(brentq(lambda step: shares(step)[-1] - least, 0, 50) if least < 1 / K - 1e-9 else 0.0)


# --- answers ----------------------------------------------------------------------------------------------------------


def panel(cell: Cell, replicate: int) -> Panel:
    """A batch and the sources' calibrations; the same for the same cell and replicate."""
    batch, rows = (np.random.default_rng([SEED, cell.index, replicate, part]) for part in range(2))
    truth = batch.choice(cell.n_classes, cell.n_items, p=cell.priors)
    answers = _with_copies(cell, _faulty(cell, batch, _answers(cell, batch, truth, in_batch=True)))
    edges = np.cumsum(cell.calibration_priors)[:-1]
    shape = (cell.n_rows, 1 if cell.shared_rows else len(cell.accuracy))
    # systematic sampling, so that no class is without rows
    y = np.searchsorted(edges, (np.arange(cell.n_rows)[:, None] + rows.random(shape)) / cell.n_rows)
    labelled = _with_copies(cell, _answers(cell, rows, y if y.shape[1] > 1 else y[:, 0]))
    truths = _with_copies(cell, list(np.broadcast_to(y, (cell.n_rows, len(cell.accuracy))).T))
    calibrations = [calibrated(cell, *pair) for pair in zip(truths, labelled)]
    return Panel(truth, dict(zip(cell.names, answers)), dict(zip(cell.names, calibrations)))


def calibrated(cell: Cell, y: np.ndarray, answers: np.ndarray) -> Calibration:
    """The calibration that a user would make of labelled rows, with the defaults of the library."""
    classes = list(range(cell.n_classes))
    if cell.answers == "ordinal":
        return Calibration.from_scores(y, answers)
    if answers.ndim == 2:
        return Calibration.from_predictions(y, answers, symbols=classes)
    counts = np.zeros((cell.n_classes, cell.n_classes))
    np.add.at(counts, (y, answers), 1)
    return Calibration.from_counts(counts, classes)


def _answers(cell: Cell, rng: np.random.Generator, y: np.ndarray, *, in_batch: bool = False) -> list[np.ndarray]:
    """Answers of the sources without copies to common items y (n,), or to items y (n, J) of each source."""
    J, K = len(cell.accuracy), cell.n_classes
    is_ordinal = cell.answers == "ordinal"
    own = rng.standard_normal((len(y), J, 1 if is_ordinal else K))
    if y.ndim == 1:
        common = rng.standard_normal((len(y), 1, own.shape[2]))
        own = np.sqrt(cell.correlation) * common + np.sqrt(1 - cell.correlation) * own
        y = np.broadcast_to(y[:, None], (len(y), J))
    if is_ordinal:
        d = np.array([_ordinal_distance(a, K) for a in cell.accuracy])
        cuts = np.linspace(-1, d * (K - 1) + 1, cell.n_levels - 1)  # (V - 1, J)
        z = d * y + own[:, :, 0]
        return list(1.0 + (z[None] >= cuts[:, None]).sum(axis=0).T)
    d = np.interp(cell.accuracy, *_accuracies(K))
    u = own + d[:, None] * (y[:, :, None] == np.arange(K))
    if in_batch and cell.fault == "shifted":
        u[:, cell.faulty, 0] += SHIFT
    if cell.answers == "hard":
        return list(u.argmax(axis=2).T)
    logits = np.log(cell.calibration_priors) + cell.sharpness * d[:, None] * u
    p = np.exp(logits - logits.max(axis=2, keepdims=True))
    return list((p / p.sum(axis=2, keepdims=True)).swapaxes(0, 1))


def _faulty(cell: Cell, rng: np.random.Generator, answers: list[np.ndarray]) -> list[np.ndarray]:
    """The answers with those of the faulty source replaced."""
    if cell.faulty is None:
        return answers
    given = answers[cell.faulty]
    if cell.fault == "random":
        answers[cell.faulty] = rng.permutation(given)
    elif cell.fault == "swapped":
        answers[cell.faulty] = (given + 1) % cell.n_classes if given.ndim == 1 else np.roll(given, 1, axis=1)
    return answers


def _with_copies(cell: Cell, values: list[np.ndarray]) -> list[np.ndarray]:
    return values + cell.n_copies * values[:1]


@cache
def _accuracies(K: int) -> tuple[np.ndarray, np.ndarray]:
    """Accuracies of hard answers, and the distances d that give them."""
    d = np.linspace(0, 6, 601)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return norm.cdf(d[:, None] + nodes) ** (K - 1) @ weights / weights.sum(), d


def _ordinal_distance(accuracy: float, K: int) -> float:
    """Distance between adjacent classes at which the best thresholds are right so often, at equal priors."""
    return float(2 * norm.ppf((K * accuracy + K - 2) / (2 * (K - 1))))


# --- what the simulation knows ----------------------------------------------------------------------------------------


@cache
def true_effective_number(cell: Cell) -> float:
    """Effective number of independent sources, 1 / min w^T C w over weights w >= 0 with sum one.

    C is the correlation of the sources' answers within a class: of votes, stated probabilities, or scores, pooled over
    the classes at the priors of the batch, and measured on 20,000 items. J sources with the correlation c have
    J / (1 + (J - 1) c); copies count once.
    """
    rng = np.random.default_rng([SEED, cell.index])
    y = rng.choice(cell.n_classes, ITEMS, p=cell.priors)
    values = np.stack(_with_copies(cell, _answers(cell, rng, y)))
    scores = np.eye(cell.n_classes)[values] if cell.answers == "hard" else values.reshape(*values.shape[:2], -1)
    for k in range(cell.n_classes):
        scores[:, y == k] -= scores[:, y == k].mean(axis=1, keepdims=True)
    flat = scores.reshape(len(scores), -1)
    covariance = flat @ flat.T
    std = np.sqrt(np.diag(covariance))
    return effective_number(covariance / np.outer(std, std))


def effective_number(correlation: np.ndarray) -> float:
    """1 / min w^T C w over weights w >= 0 with sum one, from a correlation matrix C."""
    J = len(correlation)
    root = np.linalg.cholesky(correlation + 1e-6 * np.eye(J))
    weights, _ = nnls(root.T, np.linalg.solve(root, np.ones(J)))
    return float(weights.sum())


def member_proba(cell: Cell, calibration: Calibration, answers: np.ndarray) -> np.ndarray:
    """(n, K) posteriors of one source alone: as stated, or by its calibration at the priors of its rows."""
    if answers.ndim == 2:
        return answers
    codes: Any = answers if calibration.edges is None else np.searchsorted(calibration.edges, answers, side="right")
    p = calibration.confusion[:, codes].T * calibration.class_prior
    return p / p.sum(axis=1, keepdims=True)
