"""Forward selection of the constraints: greedy addition of features and of pairs of features.

Let G be the counts of a candidate's cells with each class in the data, and E their expectations under the current
model. Adding the candidate gains approximately

    1/2 sum_c (G_c - E_c)^T (r p_c Phi^T W Phi + 1 / var)^-1 (G_c - E_c),

the gain of a Newton step in its multipliers. Here p_c are the class frequencies and r <= 1 is the remaining share of
their variance, sum_c mean p_tc (1 - p_tc) / sum_c p_c (1 - p_c). For a discrete feature, Phi^T W Phi is diagonal, and
with r = 1 this is half of Pearson's chi-squared statistic; for a pair of features the diagonal is used as well. Only
sums over rows are needed; those of all pairs of features are one matrix product per class.

A candidate is penalized for its effective number of parameters, as in ridge regression: overlapping components have
many cells but few degrees of freedom. With the eigenvalues l_i of its centered Gram matrix in units of the prior, and s
the mean of p_c (1 - p_c), it is (C - 1) sum_i s l_i / (s l_i + 1); for a pair, the product of those of its features.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.core.driver import Stop
from mixent.core.executors import Executor
from mixent.core.stats import Stats
from mixent.maxent.blocks import RowBlocks, Rows
from mixent.maxent.cells import Cells
from mixent.maxent.curvature import gram_matrix
from mixent.maxent.features import Training
from mixent.maxent.layout import Layout, cell_variances, extend_multipliers
from mixent.maxent.solvers import Solved, Sums, solve
from mixent.maxent.terms import Term, crossable, crossed, pmf_values

PATIENCE = 3  # consecutive steps without improvement before the search stops
STOP = Stop(1e-6, 500)  # for models that are only compared
WIDEST = 2000  # most cells for which all pairs are counted
NONE = 1e-6  # degrees of freedom of a constant feature, up to rounding


@dataclass(frozen=True, repr=False)
class SelectionStep(Result):
    """One step of forward selection."""

    _title = "Step of the selection"
    _shown = ("name", "gain", "score", "kept")

    name: str  # the added feature, or pair of features
    expected_gain: float  # predicted gain of the log-likelihood, nats
    gain: float  # actual gain of the log-likelihood, nats
    n_parameters: float  # effective number of parameters of the model after this step
    score: float  # BIC, or log-loss (nats) of the held-out rows; lower is better
    kept: bool  # whether the selected model contains it
    criterion: str = "bic"  # of the score: "bic" or "validation"


@dataclass(frozen=True)
class Candidate:
    """A feature that can be added, and its expected gain."""

    term: Term
    gain: float
    n_parameters: float


@dataclass(frozen=True)
class Fit:
    """A model on the selection path."""

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
    """Counts of pairs of cells with each class, sum_t w_tc phi_t phi_t^T."""

    counts: Array  # (C, S, S)


def forward(
    terms: Iterable[Term],
    pairs: Any,  # (name, name) -> bool
    rows: Training,
    validation: Training | None,
    variance: float | None,
    executor: Executor,
    show: Any = None,
) -> tuple[tuple[Term, ...], list[SelectionStep]]:
    """The selected terms and the path; each step adds the candidate with the largest penalized expected gain.

    Parameters
    ----------
    terms : iterable of Term
        The features, without pairs.
    pairs : callable
        Function of two names that returns whether the pair is a candidate.
    rows : Training
    validation : Training or None
        Held-out rows whose log-loss scores each step; None: BIC.
    variance : float or None
        Variance of the Gaussian prior.
    """
    search = _Search(Layout.of(list(terms)), pairs, rows, validation, variance, executor)
    path = [search.first()]
    steps: list[Candidate] = []
    n_worse = 0
    for fit, step in search.steps(path[0]):
        n_worse = 0 if fit.score < min(f.score for f in path) else n_worse + 1
        path.append(fit)
        steps.append(step)
        if show is not None:
            show(len(steps), len(search.layout.terms), f"added {step.term.name}")
        if n_worse >= PATIENCE:
            break
    best = int(np.argmin([fit.score for fit in path]))
    records = [
        SelectionStep(
            name=step.term.name,
            expected_gain=step.gain,
            gain=after.log_lik - before.log_lik,
            n_parameters=after.n_parameters,
            score=after.score,
            kept=i < best,
            criterion="bic" if validation is None else "validation",
        )
        for i, (step, before, after) in enumerate(zip(steps, path, path[1:]))
    ]
    return path[best].terms, records


class _Search:
    def __init__(
        self,
        layout: Layout,
        pairs: Any,
        rows: Training,
        validation: Training | None,
        variance: float | None,
        executor: Executor,
    ) -> None:
        self.layout, self.training, self.validation = layout, rows, validation
        self.variance, self.executor = variance, executor
        self.rows = self._rows(layout, rows)
        self.widths = layout.widths(self.rows)
        self.gram = gram_matrix(layout.cells, RowBlocks(self.rows), executor)
        self.dof = self._degrees_of_freedom()
        terms = layout.terms
        able = [i for i, t in enumerate(terms) if crossable(t) and self.dof[i] > NONE]
        self.pairs = [(a, b) for b in able for a in able if a < b and pairs(terms[a].name, terms[b].name)]
        if self.pairs and layout.cells.n_cells > WIDEST:
            raise ValueError(
                f"selection counts pairs of at most {WIDEST} values, but the features have {layout.cells.n_cells}; "
                "set pairs=None, or leave out columns with many values"
            )
        self.truth = self._counts(self.rows.target)
        self.pmfs = [slice(s.start, s.start + len(pmf_values(t))) for s, t in zip(layout.spans, terms)]

    def _rows(self, layout: Layout, rows: Training) -> Rows:
        return layout.rows(rows.table, rows.target, rows.weight)

    def _degrees_of_freedom(self) -> list[float]:
        """Effective degrees of freedom of each feature under the prior."""
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
        """Counts of all cells (S, C), and of all pairs of cells (C, S, S)."""
        rows = replace(self.rows, target=weighted)
        singles = self.layout.cells.expected(weighted, rows)
        return singles, count_pairs(self.layout.cells, rows, self.executor) if self.pairs else None

    def first(self) -> Fit:
        """The model without features."""
        return self._fit((), 0, None)

    def steps(self, fit: Fit) -> Iterator[tuple[Fit, Candidate]]:
        """Add the best candidate, as long as there are candidates."""
        while True:
            penalty = 0.5 * np.log(max(self.rows.weight.sum(), 2.0))
            candidates = self._candidates(fit)
            if not candidates:
                return
            best = max(candidates, key=lambda c: c.gain - penalty * c.n_parameters)
            fit = self._fit((*fit.terms, best.term), fit.n_parameters + best.n_parameters, fit)
            yield fit, best

    def _fit(self, terms: tuple[Term, ...], n_effective: float, before: Fit | None) -> Fit:
        layout = Layout.of(terms)
        rows = self._rows(layout, self.training)
        C = rows.target.shape[0]
        mask = layout.mask(C)
        sums = Sums.of(layout.cells, rows, self.executor, gram=True)
        start = None if before is None else extend_multipliers(before.layout, before.solved.run.params, layout)
        variance = cell_variances(layout, rows, self.variance)
        solved = solve(layout.cells, sums, variance, "auto", STOP, self.executor, mask, init=start)
        log_post = solved.problem.log_posterior(solved.run.params, rows)
        log_lik = float((rows.target * log_post).sum())
        n_parameters = n_effective if before is not None else C - 1
        return Fit(terms, solved, rows, log_lik, n_parameters, self._score(layout, solved, log_lik, n_parameters))

    def _score(self, layout: Layout, solved: Solved, log_lik: float, n_parameters: float) -> float:
        if self.validation is None:
            return float(-2 * log_lik + n_parameters * np.log(max(self.rows.weight.sum(), 2.0)))
        rows = self._rows(layout, self.validation)
        log_post = solved.problem.log_posterior(solved.run.params, rows)
        return float(-(rows.target * log_post).sum() / rows.weight.sum())

    def _candidates(self, fit: Fit) -> list[Candidate]:
        post = np.exp(fit.solved.problem.log_posterior(fit.solved.run.params, fit.rows)) * self.rows.weight
        expected, expected_pairs = self._counts(post)
        total = max(float(self.rows.weight.sum()), 1e-300)
        share = post.sum(axis=1) / total
        variance = 1 - float((post**2 / np.maximum(self.rows.weight, 1e-300)).sum()) / total  # sum_c mean p (1 - p)
        scale = share * variance / max(1 - float(share @ share), 1e-300)  # r p_c
        truth, truth_pairs = self.truth
        terms, spans = self.layout.terms, self.layout.spans
        included = {term.name for term in fit.terms}
        C = truth.shape[1]
        dof = self.dof
        out = [
            Candidate(term, self._single_gain(span, truth[span] - expected[span], scale), dof[i] * (C - 1))
            for i, (term, span) in enumerate(zip(terms, spans))
            if term.name not in included and dof[i] > NONE
        ]
        for a, b in self.pairs:
            term = crossed(terms[a], terms[b])
            if term.name in included:
                continue
            assert truth_pairs is not None and expected_pairs is not None
            A, B = self.pmfs[a], self.pmfs[b]
            G, E = truth_pairs[:, A, B], expected_pairs[:, A, B]
            added_dof = dof[a] * dof[b] + sum(dof[i] for i in (a, b) if terms[i].name not in included)
            width = np.outer(self.widths[A], self.widths[B]).ravel()
            counts = G.sum(axis=0).ravel()
            gain = _diagonal_gain((G - E).reshape(C, -1).T, counts[:, None] * scale + self._precision(width))
            out.append(Candidate(term, gain, added_dof * (C - 1)))
        return out

    def _precision(self, widths: Array) -> Array:
        """(V, 1) precision of the prior."""
        return widths[:, None] ** 2 * (1e-9 if self.variance is None else 1.0 / self.variance)

    def _single_gain(self, span: slice, residual: Array, scale: Array) -> float:
        """Expected gain of a feature with the residuals (V, C) of its cells."""
        gram, precision = self.gram[1:, 1:][span, span], np.diag(self._precision(self.widths[span])[:, 0])
        steps = [np.linalg.lstsq(v * gram + precision, g, rcond=1e-12)[0] for v, g in zip(scale, residual.T)]
        return 0.5 * sum(float(g @ step) for g, step in zip(residual.T, steps))


def _diagonal_gain(residual: Array, curvature: Array) -> float:
    """1/2 sum residual^2 / curvature."""
    each = np.divide(residual**2, curvature, out=np.zeros_like(residual), where=curvature > 0)
    return 0.5 * float(each.sum())


def count_pairs(cells: Cells, rows: Rows, executor: Executor) -> Array:
    """(C, S, S) sums over rows of the target times the products of all pairs of cells."""

    def count(block: Any) -> PairCounts:
        phi = cells.dense(block)
        return PairCounts(np.stack([(phi * weights) @ phi.T for weights in block.target]))

    return executor.total(count, RowBlocks(rows)).counts
