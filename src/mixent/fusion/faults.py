"""Faults: sources whose answers no longer follow their calibration, found without labels.

Two tests of each source against the others (leave one out) are combined: of its histogram (`drift.drift`), and of its
agreement with the posteriors of the others (`agreement`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from mixent.base.multiple_tests import holm
from mixent.base.priors import floored
from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.fusion.agreement import NOT_TESTED, Agreement, Agreements
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import Marginals, all_marginals
from mixent.fusion.crowd_models import MIN_ROWS
from mixent.fusion.dependence import Dependence, dependence
from mixent.fusion.drift import Drift, drift
from mixent.fusion.rules import ml_product

MAX_SOURCES = 64  # that are tested; each test needs an estimate of the priors from all other sources
MAX_COST = 1e7  # sources squared times classes cubed, likewise
MAX_CANDIDATES = 4  # sources that a fault is searched in, those with the smallest p-values
SWAPPED, RANDOM, SHIFTED, CHANGED = "swapped", "random", "shifted threshold", "changed"
EM_STEPS = 200
NEGLIGIBLE = 0.2  # share of the deviance from the calibration that a simple kind may leave unexplained
MIN_PROBABILITY = 1e-12


@dataclass(frozen=True, repr=False)
class Fault(Result):
    """A source that contradicts the others, or several of which one does."""

    _title = "Fault of a source"
    _shown = ("sources", "test", "p_value", "kind")

    sources: tuple[str, ...]  # one source; several where the tests cannot determine which of them is wrong
    test: str  # "agreement" or "histogram", the test with the smaller p-value
    p_value: float  # of both tests combined, corrected for the number of sources (Holm)
    kind: str | None  # "swapped", "random", "shifted threshold" or "changed"; None for several sources

    def __str__(self) -> str:
        kind = self.kind or "one of them contradicts the others"
        return f"{' or '.join(self.sources)}: {kind} ({self.test} test, p = {self.p_value:.2g})."


@dataclass(frozen=True)
class SourceTests:
    """Both tests of every source, the faults found, and the rates of the faulty sources on the batch."""

    drift: dict[str, Drift]
    agreement: dict[str, Agreement]
    faults: tuple[Fault, ...] = ()
    rates: dict[str, Array] = field(default_factory=dict)  # source -> (S_j, K)


def source_tests(batch: Batch, level: float) -> SourceTests:
    """Tests of all sources on the unlabelled items; labelled items are part of the calibrations.

    The source without which the others contradict each other least is named and left out, and the others are tested
    again. Without tests if there are too many sources.
    """
    layout = batch.layout
    if layout.n_sources > MAX_SOURCES or layout.n_sources**2 * layout.n_classes**3 > MAX_COST:
        return SourceTests({}, {})
    unlabelled = np.flatnonzero(batch.labels < 0)
    marginals = all_marginals(batch if len(unlabelled) == batch.n_patterns else batch.part(unlabelled))
    marginals = replace(marginals, used=marginals.used & comparable(batch))
    panel = Panel(marginals)
    faults: list[Fault] = []
    rates: dict[str, Array] = {}
    used = marginals.used.copy()
    first = tests = panel.tests(used)
    while (rejected := tests.rejected(level)).size:
        suspects, rest = panel.suspects(used, tests, level)
        if rest is None:
            named = np.flatnonzero(marginals.used & ~used).tolist()
            if named and panel.agree(named, suspects, level):  # these may as well be right, and the others wrong
                suspects, faults, rates = sorted([*named, *suspects]), [], {}
            test, p = tests.result(int(rejected[0]))
            faults.append(Fault(tuple(layout.names[j] for j in suspects), test, p, None))
            break
        used = used & ~np.isin(np.arange(len(used)), suspects)
        posterior = panel.posterior(used)
        for j in suspects:
            kind, B = fault_kind(marginals.batch, j, posterior, float(batch.dispersion[j].mean()))
            faults.append(Fault((layout.names[j],), *tests.result(j), kind))
            rates[layout.names[j]] = B
        tests = rest
    return SourceTests(
        dict(zip(layout.names, first.drift)), dict(zip(layout.names, first.agreement)), tuple(faults), rates
    )


def comparable(batch: Batch) -> np.ndarray:
    """(J,) sources whose calibrations describe their answers.

    A calibration with fewer than MIN_ROWS rows is an assumption, and counts of labels do not describe probabilities.
    """
    out = batch.layout.n_rows.max(axis=1) >= MIN_ROWS
    out[batch.calibrated_on_labels] = False
    return out


def repaired(batch: Batch, tests: SourceTests) -> Batch:
    """The batch with other calibrations of faulty sources: their rates on the batch, or no vote if they are random.

    The rates have the rows of the calibration, or the items of the batch if these are fewer.
    """
    layout, sources, left_out = batch.layout, list(batch.layout.sources), []
    for fault in tests.faults:
        if fault.kind is None:
            continue
        j = layout.names.index(fault.sources[0])
        if fault.kind == RANDOM:
            left_out.append(j)
            continue
        source, calibration = layout.sources[j], layout.calibrations[j]
        n = np.minimum(layout.n_rows[j], max(float(batch.weight @ batch.answered[j]) / layout.n_classes, 1.0))
        counts = (tests.rates[layout.names[j]] * n).T.reshape(layout.n_classes, *calibration.counts.shape[1:])
        index = {label: k for k, label in enumerate(layout.classes.tolist())}
        prior = np.zeros(layout.n_classes)
        prior[[index[label] for label in calibration.classes]] = calibration.class_prior
        changes = {"counts": counts, "priors": prior, "scale": None, "reliability": None, "calibration_set": None}
        if calibration.line is None:  # a line has its own two classes
            changes["classes"] = tuple(layout.classes.tolist())
        sources[j] = replace(source, calibration=replace(calibration, **changes), as_is=False)
    relearned = tuple(j for j, source in enumerate(sources) if source is not layout.sources[j])
    repaired = replace(layout, sources=tuple(sources), left_out=tuple(left_out), relearned=relearned)
    return replace(batch, layout=repaired)


@dataclass(frozen=True)
class Round:
    """Tests of the sources that are not left out."""

    drift: list[Drift]
    agreement: list[Agreement]
    root: np.ndarray  # (J,) original of each copy

    @cached_property
    def p_values(self) -> Array:
        """(J,) of both tests combined (Bonferroni), NaN without a test."""
        both = np.array([(a.p_value, d.p_value) for a, d in zip(self.agreement, self.drift)])
        n_tests = np.isfinite(both).sum(axis=1)
        smallest = np.where(np.isfinite(both), both, 1.0).min(axis=1)
        return np.where(n_tests > 0, np.minimum(n_tests * smallest, 1.0), np.nan)

    @cached_property
    def adjusted(self) -> Array:
        """(J,) the same after Holm's correction for the number of groups of copies."""
        out, p = np.full(len(self.drift), np.nan), self.p_values
        tested = np.isfinite(p)
        groups = np.unique(self.root[tested])
        smallest = np.array([p[tested & (self.root == g)].min() for g in groups])
        for j in np.flatnonzero(tested):
            out[j] = holm(np.where(groups == self.root[j], p[j], smallest))[groups == self.root[j]][0]
        return out

    def rejected(self, level: float) -> np.ndarray:
        """Sources with a significant test, the smallest p-value first."""
        order = np.argsort(np.nan_to_num(self.p_values, nan=2.0), kind="stable")
        return order[np.nan_to_num(self.adjusted[order], nan=2.0) < level]

    def result(self, j: int) -> tuple[str, float]:
        """The test with the smaller p-value, and the combined p-value."""
        agree, histogram = self.agreement[j].p_value, self.drift[j].p_value
        return "histogram" if not agree <= histogram else "agreement", float(self.adjusted[j])


@dataclass(frozen=True)
class Panel:
    """The sources that are tested."""

    marginals: Marginals

    @cached_property
    def dependence(self) -> Dependence:
        """The dependence of the sources in use, which the others do not influence."""
        marginals = self.marginals
        left_out = tuple(np.flatnonzero(~marginals.used).tolist())
        batch = replace(marginals.batch, layout=replace(marginals.layout, left_out=left_out))
        return dependence(Marginals(batch, marginals.used))

    @cached_property
    def as_labels(self) -> Batch:
        """The batch with probabilities as uncertain labels, whose evidence has the known errors of confusion matrices.

        Stated probabilities depend on their scale, which is estimated from few rows, and may be overconfident.
        """
        batch = self.marginals.batch
        sources = tuple(replace(source, as_is=False) for source in batch.layout.sources)
        return replace(batch, layout=replace(batch.layout, sources=sources))

    def tests(self, used: np.ndarray) -> Round:
        """Tests of the sources in `used` against the others of them."""
        marginals, J = Marginals(self.marginals.batch, used), len(used)
        none = Drift(np.empty(0), np.empty(0), np.nan, np.nan)
        if not used.any() or not marginals.batch.n_patterns:
            return Round([none] * J, [NOT_TESTED] * J, self.marginals.layout.root)
        agreements = Agreements(Marginals(self.as_labels, used), self.dependence)
        return Round(
            [drift(marginals, j, self.dependence.correlation) if used[j] else none for j in range(J)],
            [agreements.test(j) if used[j] else NOT_TESTED for j in range(J)],
            self.marginals.layout.root,
        )

    def suspects(self, used: np.ndarray, tests: Round, level: float) -> tuple[list[int], Round | None]:
        """The source without which the others contradict each other least, with its copies, and the tests of these.

        Several sources and None where the tests cannot determine which is wrong: if the others would not be a
        majority, or are consistent without either of several.
        """
        root = self.marginals.layout.root
        rejected, tested = tests.rejected(level), np.flatnonzero(used & np.isfinite(tests.p_values))
        first = np.unique(root[rejected], return_index=True)[1]
        candidates = rejected[np.sort(first)][:MAX_CANDIDATES].tolist()  # one of each group of copies
        n_left, n_all = len(np.unique(root[tested])) - 1, len(np.unique(root[self.marginals.used]))
        if 2 * n_left <= n_all:
            return (sorted(candidates) if len(candidates) > 1 else tested.tolist()), None
        rests = [self.tests(used & (root != root[j])) for j in candidates]
        consistent = [j for j, rest in zip(candidates, rests) if not rest.rejected(level).size]
        if len(consistent) > 1:
            return sorted(consistent), None
        best = int(np.argmax([np.nanmin(rest.p_values, initial=1.0) for rest in rests]))
        return [j for j in rejected.tolist() if root[j] == root[candidates[best]]], rests[best]

    def agree(self, named: list[int], suspects: list[int], level: float) -> bool:
        """Whether the named sources are consistent with each other and with one of the suspects."""
        sources = np.arange(len(self.marginals.used))
        groups = (np.isin(sources, [*named, j]) for j in suspects)
        return any(not self.tests(group).rejected(level).size for group in groups)

    def posterior(self, used: np.ndarray) -> Array:
        """(P, K) posteriors of the sources in `used` alone, by the product rule."""
        batch = self.marginals.batch
        ratio = batch.product(batch.layout.share * used)
        return ml_product(
            ratio, batch.weight, floored(Marginals(batch, used).interior_prior), labels=batch.labels
        ).posterior


def fault_kind(batch: Batch, j: int, posterior: Array, dispersion: float = 1.0) -> tuple[str, Array]:
    """The kind of a fault of source j by BIC, and its rates (S_j, K), from posteriors (P, K) of the other sources.

    With B the rates of a kind and s the answers, the log-likelihood is  sum_iv w_i s_i(v) log sum_k q_i(k) B(v | k),
    divided by the `dispersion` of probabilities.

    * "swapped": B is A with its answers permuted (bins of a score: in reverse order).
    * "random": B does not depend on the class.
    * "shifted threshold": B(v | k) ~ A(v | k) b(v): other shares of the answers, the same odds ratios.
    * "changed": any B.
    """
    answered = batch.answered[j]
    q, weight = posterior[answered], batch.weight[answered]
    responses, here = batch.answers.responses[j], batch.layout.slices[j]
    s = responses[answered] if responses.ndim == 2 else np.eye(here.stop - here.start)[responses[answered]]
    A = batch.layout.confusion[here]
    data = _Answers(s, q, weight / dispersion)
    free = data.maximum(A)
    V, K = A.shape
    kinds = {
        SWAPPED: (data.permuted(A, batch.layout.calibrations[j].edges is not None), 0),
        RANDOM: (np.repeat(data.histogram[:, None], K, axis=1), V - 1),
        SHIFTED: (data.tilted(A), V - 1),
    }
    log_n = np.log(max(float(weight.sum()), 2.0))
    cost = {kind: -2 * data.log_lik(B) + n_free * log_n for kind, (B, n_free) in kinds.items()}
    kind = min(cost, key=cost.__getitem__)
    B, best = kinds[kind][0], data.log_lik(free)
    # posteriors of dependent sources are overconfident, and then no simple kind fits exactly
    near = best - data.log_lik(B) <= NEGLIGIBLE * (best - data.log_lik(A))
    return (kind, B) if near or cost[kind] <= -2 * best + K * (V - 1) * log_n else (CHANGED, free)


@dataclass(frozen=True)
class _Answers:
    """Answers of a source, and the posteriors of the items by the other sources."""

    s: Array  # (n, V) shares of the symbols
    q: Array  # (n, K)
    weight: Array  # (n,)

    def log_lik(self, B: Array) -> float:
        expected = np.maximum(self.q @ B.T, MIN_PROBABILITY)
        return float(self.weight @ (self.s * np.log(expected)).sum(axis=1))

    @property
    def histogram(self) -> Array:
        return self.weight @ self.s / self.weight.sum()

    @cached_property
    def counts(self) -> Array:
        """(V, K) expected counts."""
        return (self.s * self.weight[:, None]).T @ self.q

    def permuted(self, A: Array, reverse: bool) -> Array:
        """A with its symbols permuted, by the assignment with the largest expected log-likelihood."""
        if reverse:
            return A[::-1]
        gain = self.counts @ np.log(A).T  # of each symbol as each other symbol
        order = linear_sum_assignment(-gain)[1]
        if (order == np.arange(len(A))).all():  # no answers are swapped: the best exchange of two
            own = np.diag(gain)
            exchange = gain + gain.T - own - own[:, None]
            np.fill_diagonal(exchange, -np.inf)
            i, j = np.unravel_index(exchange.argmax(), exchange.shape)
            order[[i, j]] = j, i
        return A[order]

    def tilted(self, A: Array) -> Array:
        """A(v | k) b(v), normalized, with the histogram of the batch."""
        b, share = np.ones(len(A)), self.weight @ self.q / self.weight.sum()
        for _ in range(EM_STEPS):
            B = A * b[:, None] / (b @ A)
            b *= np.maximum(self.histogram, MIN_PROBABILITY) / np.maximum(B @ share, MIN_PROBABILITY)
        return A * b[:, None] / (b @ A)

    def maximum(self, A: Array) -> Array:
        """The rates that maximize the log-likelihood, by EM."""
        B = 0.5 * A + 0.5 / len(A)
        for _ in range(EM_STEPS):
            ratio = self.weight[:, None] * self.s / np.maximum(self.q @ B.T, MIN_PROBABILITY)
            B = B * (ratio.T @ self.q)
            B /= np.maximum(B.sum(axis=0), MIN_PROBABILITY)
        return B
