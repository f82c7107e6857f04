"""Which constraints to impose: greedy addition of features and of pairs of features (chapter 7's open question).

With counts G (truth) and E (expected under the model so far) of a candidate's cells with every class, adding it gains
about

    1/2 sum_c (G_c - E_c)^T (r p_c Phi^T W Phi + 1 / var)^-1 (G_c - E_c),

a Newton step in its own multipliers, with p_c the shares of the classes and r <= 1 what of their spread is left in the
rows, sum_c mean p_tc (1 - p_tc) / sum_c p_c (1 - p_c). For a discrete feature Phi^T W Phi is diagonal, and while r = 1
this is half of Pearson's statistic; for the products of a pair of features the diagonal is taken too. Only sums over
rows enter, and those of all pairs of features are one product of matrices per class.

What a candidate costs are its effective parameters, as in ridge regression: overlapping components are many cells and
few directions. With eigenvalues l_i of its centered Gram matrix in units of the prior, and s the mean of p_c (1 - p_c),
they are  (C - 1) sum_i s l_i / (s l_i + 1);  a pair's directions are products of its features'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import gram_matrix
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.solvers import Solved, Sums, solve
from mixent.maxent.terms import Term, crossable, crossed, pmf_values

PATIENCE = 3  # additions in a row that may fail to pay before the path ends
STOP = Stop(1e-6, 500)  # for models that are only compared
WIDEST = 2000  # cells whose pairs are all counted
NONE = 1e-6  # directions: a constant has none


@dataclass(frozen=True)
class SelectionStep:
    """One step of the path."""

    name: str  # the feature, or pair of features
    expected_gain: float  # log-likelihood (nats) expected from the counts
    gain: float  # what it was
    n_parameters: float  # effective ones of the model, this one included
    score: float  # BIC, or log-loss (nats) of the held-out rows: the least is best
    kept: bool  # in the model chosen
    criterion: str = "bic"  # of the score: "bic" or "validation"


@dataclass(frozen=True)
class Candidate:
    """A feature that may be added, and its expected gain."""

    term: Term
    gain: float
    n_parameters: float


@dataclass(frozen=True)
class Fit:
    """A model on the way."""

    terms: tuple[Term, ...]
    solved: Solved
    rows: Rows
    log_lik: float
    n_parameters: float
    score: float

    @property
    def layout(self) -> Layout:
        return Layout.of(self.terms)


@dataclass(frozen=True)
class PairCounts(Stats):
    """sum_t w_tc phi_t phi_t^T."""

    counts: Array  # (C, S, S)


def forward(
    terms: Iterable[Term],
    pairs: Any,  # (name, name) -> bool
    rows: Training,
    held: Training | None,
    variance: float | None,
    executor: Executor,
    show: Any = None,
) -> tuple[tuple[Term, ...], list[SelectionStep]]:
    """The terms kept, and the path: each step adds the candidate with the largest expected gain beyond its parameters.

    Parameters
    ----------
    terms : the single features
    pairs : function of two names
        May these two be crossed?
    rows : Training
    held : Training or None
        Rows to score each step by; None: by BIC.
    variance : float or None
        Of the Gaussian prior.
    """
    search = _Search(Layout.of(list(terms)), pairs, rows, held, variance, executor)
    path = [search.first()]
    steps: list[Candidate] = []
    waited = 0
    for fit, step in search.steps(path[0]):
        waited = 0 if fit.score < min(f.score for f in path) else waited + 1
        path.append(fit)
        steps.append(step)
        if show is not None:
            show(len(steps), len(search.layout.terms), f"added {step.term.name}")
        if waited >= PATIENCE:
            break
    best = int(np.argmin([fit.score for fit in path]))
    added = [
        SelectionStep(
            name=step.term.name,
            expected_gain=step.gain,
            gain=after.log_lik - before.log_lik,
            n_parameters=after.n_parameters,
            score=after.score,
            kept=i < best,
            criterion="bic" if held is None else "validation",
        )
        for i, (step, before, after) in enumerate(zip(steps, path, path[1:]))
    ]
    return path[best].terms, added


class _Search:
    def __init__(
        self,
        layout: Layout,
        pairs: Any,
        rows: Training,
        held: Training | None,
        variance: float | None,
        executor: Executor,
    ) -> None:
        self.layout, self.training, self.held = layout, rows, held
        self.variance, self.executor = variance, executor
        self.rows = self._rows(layout, rows)
        self.widths = layout.widths(self.rows)
        self.gram = gram_matrix(layout.cells, RowBlocks(self.rows), executor)
        self.directions = self._directions()
        terms = layout.terms
        able = [i for i, t in enumerate(terms) if crossable(t) and self.directions[i] > NONE]
        self.pairs = [(a, b) for b in able for a in able if a < b and pairs(terms[a].name, terms[b].name)]
        if self.pairs and layout.cells.n_cells > WIDEST:
            raise ValueError(
                f"select='forward' counts pairs of at most {WIDEST} cells, and there are {layout.cells.n_cells}; "
                "set pairs=None, or leave out columns with many values"
            )
        self.truth = self._counts(self.rows.target)
        self.pmfs = [slice(s.start, s.start + len(pmf_values(t))) for s, t in zip(layout.spans, terms)]

    def _rows(self, layout: Layout, rows: Training) -> Rows:
        return layout.rows(rows.table, rows.target, rows.weight)

    def _directions(self) -> list[float]:
        """How many directions each feature has that the prior leaves it."""
        total, sums, gram = self.gram[0, 0], self.gram[0, 1:], self.gram[1:, 1:]
        centered = gram - np.outer(sums, sums) / max(total, 1e-300)
        share = self.rows.target.sum(axis=1) / max(total, 1e-300)
        s = float(np.mean(share * (1 - share)))
        scale = 1.0 / self.widths if self.variance is None else np.sqrt(self.variance) / self.widths
        out = []
        for span in self.layout.spans:
            block = centered[span, span] * np.outer(scale[span], scale[span])
            each = s * np.maximum(np.linalg.eigvalsh(block), 0.0)
            if self.variance is None:
                out.append(float((each > 1e-8 * each.max(initial=0.0)).sum()))
            else:
                out.append(float((each / (each + 1.0)).sum()))
        return out

    def _counts(self, weighted: Array) -> tuple[Array, Array | None]:
        """Counts of every cell (S, C), and of every pair of cells (C, S, S)."""
        rows = replace(self.rows, target=weighted)
        singles = self.layout.cells.expected(weighted, rows)
        return singles, count_pairs(self.layout.cells, rows, self.executor) if self.pairs else None

    def first(self) -> Fit:
        """The class shares alone."""
        return self._fit((), 0, None)

    def steps(self, fit: Fit) -> Iterator[tuple[Fit, Candidate]]:
        """Add the most promising candidate, for ever."""
        while True:
            price = 0.5 * np.log(max(self.rows.weight.sum(), 2.0))
            candidates = self._candidates(fit)
            if not candidates:
                return
            best = max(candidates, key=lambda c: c.gain - price * c.n_parameters)
            fit = self._fit((*fit.terms, best.term), fit.n_parameters + best.n_parameters, fit)
            yield fit, best

    def _fit(self, terms: tuple[Term, ...], n_added: float, before: Fit | None) -> Fit:
        layout = Layout.of(terms)
        rows = self._rows(layout, self.training)
        C = rows.target.shape[0]
        mask = layout.mask(C)
        sums = Sums.of(layout.cells, rows, self.executor, gram=True)
        start = None if before is None else carried(before.layout, before.solved.run.params, layout)
        variance = None if self.variance is None else self.variance / layout.widths(rows) ** 2
        solved = solve(layout.cells, sums, variance, "auto", STOP, self.executor, mask, first=start)
        log_post = solved.problem.log_posterior(solved.run.params, rows)
        log_lik = float((rows.target * log_post).sum())
        n_parameters = n_added if before is not None else C - 1
        return Fit(terms, solved, rows, log_lik, n_parameters, self._score(layout, solved, log_lik, n_parameters))

    def _score(self, layout: Layout, solved: Solved, log_lik: float, n_parameters: float) -> float:
        if self.held is None:
            return float(-2 * log_lik + n_parameters * np.log(max(self.rows.weight.sum(), 2.0)))
        rows = self._rows(layout, self.held)
        log_post = solved.problem.log_posterior(solved.run.params, rows)
        return float(-(rows.target * log_post).sum() / rows.weight.sum())

    def _candidates(self, fit: Fit) -> list[Candidate]:
        post = np.exp(fit.solved.problem.log_posterior(fit.solved.run.params, fit.rows)) * self.rows.weight
        expected, expected_pairs = self._counts(post)
        total = max(float(self.rows.weight.sum()), 1e-300)
        share = post.sum(axis=1) / total
        left = 1 - float((post**2 / np.maximum(self.rows.weight, 1e-300)).sum()) / total  # sum_c mean p (1 - p)
        spread = share * left / max(1 - float(share @ share), 1e-300)  # r p_c
        truth, truth_pairs = self.truth
        terms, spans = self.layout.terms, self.layout.spans
        have = {term.name for term in fit.terms}
        C = truth.shape[1]
        free = self.directions
        out = [
            Candidate(term, self._single(span, truth[span] - expected[span], spread), free[i] * (C - 1))
            for i, (term, span) in enumerate(zip(terms, spans))
            if term.name not in have and free[i] > NONE
        ]
        for a, b in self.pairs:
            term = crossed(terms[a], terms[b])
            if term.name in have:
                continue
            assert truth_pairs is not None and expected_pairs is not None
            A, B = self.pmfs[a], self.pmfs[b]
            G, E = truth_pairs[:, A, B], expected_pairs[:, A, B]
            more = free[a] * free[b] + sum(free[i] for i in (a, b) if terms[i].name not in have)
            width = np.outer(self.widths[A], self.widths[B]).ravel()
            counts = G.sum(axis=0).ravel()
            gain = _promised((G - E).reshape(C, -1).T, counts[:, None] * spread + self._curb(width))
            out.append(Candidate(term, gain, more * (C - 1)))
        return out

    def _curb(self, widths: Array) -> Array:
        """(V, 1) the prior's precision."""
        return widths[:, None] ** 2 * (1e-9 if self.variance is None else 1.0 / self.variance)

    def _single(self, span: slice, off: Array, spread: Array) -> float:
        """The expected gain of a feature's cells (V, C)."""
        gram, curb = self.gram[1:, 1:][span, span], np.diag(self._curb(self.widths[span])[:, 0])
        moves = [np.linalg.lstsq(v * gram + curb, g, rcond=1e-12)[0] for v, g in zip(spread, off.T)]
        return 0.5 * sum(float(g @ move) for g, move in zip(off.T, moves))


def _promised(off: Array, curvature: Array) -> float:
    share = np.divide(off**2, curvature, out=np.zeros_like(off), where=curvature > 0)
    return 0.5 * float(share.sum())


def count_pairs(cells: Cells, rows: Rows, executor: Executor) -> Array:
    """(C, S, S) sum over rows of target times the products of all cells."""

    def count(block: Any) -> PairCounts:
        phi = cells.dense(block)
        return PairCounts(np.stack([(phi * weights) @ phi.T for weights in block.target]))

    return executor.total(count, RowBlocks(rows)).counts


def carried(old: Layout, params: Multipliers, new: Layout) -> Multipliers:
    """Multipliers of one model as the start of another with further terms."""
    cells = np.zeros((new.cells.n_cells, params.n_classes))
    spans = {term.name: span for term, span in zip(new.terms, new.spans)}
    for term, span in zip(old.terms, old.spans):
        cells[spans[term.name]] = params.cells[span]
    return Multipliers(params.bias, cells)
