"""Many mixtures fitted at once: candidates of a search in the training parts of folds.

A search compares many small mixtures of the same rows, and a pass of EM over few rows takes less time than the calls
that it consists of. Here the components of all mixtures are evaluated together, so that these calls are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log
from mixent.core.blocks import ArrayBlocks, Block
from mixent.core.driver import Problem, Stop, run
from mixent.core.executors import Executor
from mixent.core.starts import Runner
from mixent.core.stats import Stats
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.kernels import Moments
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.product import Components, ComponentStats, ProductFamily
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.init import Partition, membership_moments, one_hot

RULE = Stop(3e-3, 15)  # mean gain per row of all mixtures: they are only compared
SHARED_RULE = Stop(5e-4, 60)  # components that classes share converge more slowly


@dataclass(frozen=True)
class BatchParams:
    """Parameters of G mixtures with K components each."""

    weights: Array  # (G, C, K) joint p(class, component) of each mixture
    components: Components  # G K components, mixture by mixture


@dataclass(frozen=True)
class BatchStats(Stats):
    counts: Array  # (G, C, K)
    components: ComponentStats
    log_lik: Array  # (G,)


@dataclass(frozen=True)
class Ready:
    weights: Array  # (G, C, K)
    family: tuple
    by_class: tuple[tuple[np.ndarray, tuple], ...]  # the components of each class within a mixture, of all mixtures


@dataclass(frozen=True)
class BatchProblem(Problem):
    """EM for G mixtures with separate parameters; rows have a weight in each of them (zero if they are held out).

    Maximizes  sum_g { sum_n w_gn log sum_ck l_nc W_gck f_gk(x_n) + log prior(f_g) }.  Each update maximizes a lower
    bound that touches every term, so no term ever decreases.
    """

    family: ProductFamily  # of all G K components
    row_weights: Array  # (F, n) weights of the rows in each fold
    fold: np.ndarray  # (G,) the fold of each mixture

    def prepare(self, params: BatchParams) -> Ready:
        G, C, K = params.weights.shape
        family, by_class = self.family.prepare(params.components), []
        for c in range(C):
            used = np.flatnonzero((params.weights[:, c] > 0).any(axis=0))
            index = (K * np.arange(G)[:, None] + used).ravel()
            by_class.append((used, family if len(used) == K else self.family.restrict(family, index)))
        return Ready(params.weights, family, tuple(by_class))

    def stats(self, ready: Ready, block: Block) -> BatchStats:
        G, C, K = ready.weights.shape
        rows = slice(None) if block.rows is None else block.rows
        row_weights = self.row_weights[:, rows][self.fold]  # (G, n)
        known = block.known
        used, family = (np.arange(K), ready.family) if known is None else ready.by_class[known]
        work = self.family.open(family, block)
        resp = work.log_prob()
        by_mixture = resp.reshape(G, len(used), -1)
        if known is not None:
            by_mixture += safe_log(ready.weights[:, known, used])[:, :, None]
            log_lik = _softmax(by_mixture, row_weights)
            counts = np.zeros((G, C, K))
            counts[:, known, used] = by_mixture.sum(axis=2)
        else:
            label = np.ones((block.n_rows, C)) if block.label is None else block.label
            allowed = np.swapaxes(ready.weights, 1, 2) @ label.T  # (G, K, n)
            by_mixture += safe_log(allowed)
            log_lik = _softmax(by_mixture, row_weights)
            ratio = np.divide(by_mixture, allowed, out=np.zeros_like(allowed), where=allowed > 0)
            counts = ready.weights * np.swapaxes(ratio @ label, 1, 2)
        moments = work.moments(resp)
        if len(used) < K:
            index = (K * np.arange(G)[:, None] + used).ravel()
            moments = self.family.embed(moments, index, G * K)
        return BatchStats(counts, moments, log_lik)

    def objective(self, params: BatchParams, total: BatchStats) -> float:
        return float(total.log_lik.sum()) + self.family.log_prior(params.components)

    def each(self, params: BatchParams, total: BatchStats) -> Array:
        """Return the objective of each mixture, (G,)."""
        G, _, K = params.weights.shape
        return total.log_lik + [
            self.family.log_prior(params.components, live) for live in np.repeat(np.eye(G), K, axis=1)
        ]

    def update(self, params: BatchParams, total: BatchStats, step: float = 1.0) -> BatchParams:
        weights = total.counts / total.counts.sum(axis=(1, 2), keepdims=True)
        weights = np.where(params.weights > 0, np.maximum(weights, 1e-300), 0.0)
        return BatchParams(weights, self.family.update(params.components, total.components))

    def class_densities(self, params: BatchParams, mixtures: np.ndarray, table: Block) -> Array:
        """Return log p(x | class) under some of the mixtures, (m, n, C)."""
        _, C, K = params.weights.shape
        index = (K * mixtures[:, None] + np.arange(K)).ravel()
        family = self.family
        if family.gaussian is not None:  # noise is only used in training
            family = replace(family, gaussian=replace(family.gaussian, noise=None))
        ready = family.restrict(family.prepare(params.components), index)
        within = params.weights[mixtures] / params.weights[mixtures].sum(axis=2, keepdims=True)
        out = np.empty((len(mixtures), table.n_rows, C))
        for block in _each(ArrayBlocks(replace(table, rows=None))):
            log_f = family.open(ready, block).log_prob().reshape(len(mixtures), K, -1)
            rows = slice(None) if block.rows is None else block.rows
            for c in range(C):
                used = np.flatnonzero((within[:, c] > 0).any(axis=0))
                out[:, rows, c] = log_sum_exp(log_f[:, used] + safe_log(within[:, c, used])[:, :, None], axis=1)
        return out


def _each(source: ArrayBlocks) -> Sequence[Block]:
    return [source[i] for i in range(len(source))]


def _softmax(log_joint: Array, row_weights: Array) -> Array:
    """Replace log p(k, x), (G, K, n), by weighted responsibilities in place; return the weighted log-likelihoods."""
    top = log_joint.max(axis=1)
    possible = top > -np.inf
    if not possible.all():
        top = np.where(possible, top, 0.0)
    log_joint -= top[:, None]
    np.exp(log_joint, out=log_joint)
    mass = log_joint.sum(axis=1)
    log_joint *= np.divide(row_weights, mass, out=np.zeros_like(mass), where=mass > 0)[:, None]
    used = row_weights > 0
    return np.asarray((np.where(used, safe_log(np.where(used, mass, 1.0)) + top, 0.0) * row_weights).sum(axis=1))


class FoldPart:
    """The training rows of a fold, and what all candidates with the same numbers of components have in common."""

    def __init__(self, plan: FitPlan, train: np.ndarray, held: np.ndarray) -> None:
        self.train, self.held = train, held
        self.plan = plan.take(train).with_learned_priors()
        self.weight = np.zeros(plan.table.n_rows)
        self.weight[train] = plan.table.row_weights[train]
        self._starts: dict[tuple, list[Partition]] = {}
        self._covariances: dict[tuple, Array] = {}

    def starts(self, candidate: Candidate, n_starts: int) -> list[Partition]:
        """Return initial partitions of the training rows."""
        if candidate.counts not in self._starts:
            self._starts[candidate.counts] = self.plan.parts(candidate, n_starts)
        return self._starts[candidate.counts]

    def prior(self, candidate: Candidate, n_starts: int) -> Prior:
        """Return the prior of a candidate."""
        key = (candidate.counts, candidate.target, candidate.target == "components" and candidate.prior_rows)
        if key not in self._covariances:
            self._covariances[key] = self.plan.prior_covariance(candidate, self.starts(candidate, n_starts)[0])
        assert candidate.prior_rows is not None
        return Prior.of_covariances(candidate.prior_rows, self._covariances[key], self.plan.total_weight)


HeldOutDensities = dict[Candidate, list[tuple[Array, Array]]]  # log p(x | class) (n, C) and log p(class) (C,), by fold


class Batch:
    """Candidates with the same numbers of components, each fitted to the training rows of some folds.

    Parameters
    ----------
    plan : FitPlan
        Of all rows.
    parts : the folds
    candidates : with the same `counts`, with a prior, and all with axis-aligned covariances or all without
    n_starts : int
        Number of initializations of each mixture, of which that with the highest objective is used.
    """

    def __init__(
        self, plan: FitPlan, parts: Sequence[FoldPart], candidates: Sequence[Candidate], n_starts: int = 1
    ) -> None:
        self.plan, self.parts, self.n_starts = plan, parts, n_starts
        self.candidates = sorted(candidates, key=lambda c: c.structures)  # equal structures are adjacent
        self.K = self.candidates[0].n_components
        # of each mixture: its fold and its number among all starts of all folds
        self.fold = np.tile(np.repeat(np.arange(len(parts)), n_starts), len(candidates))
        self.start = np.tile(np.arange(len(parts) * n_starts), len(candidates))

    @property
    def mixtures(self) -> list[tuple[Candidate, FoldPart]]:
        folds = self.fold[: len(self.parts) * self.n_starts]
        return [(candidate, self.parts[f]) for candidate in self.candidates for f in folds]

    @cached_property
    def axis_aligned(self) -> bool:
        return COVARIANCES[self.candidates[0].structures[0]].axis_aligned

    def held_out(self, runner: Runner = run) -> HeldOutDensities:
        """Fit all mixtures by `runner`; return log p(x | class) and log p(class) of the held-out rows."""
        plan, n_components = self.plan, len(self.fold) * max(self.candidates[0].counts)
        with plan.executor(n_components) as executor:
            problem = self._problem()
            params = self._initial(problem.family)
            if self._iterated:
                source = plan.source(problem.family, n_components)
                weight = float(problem.row_weights.sum(axis=1)[self.fold].sum())
                rule = SHARED_RULE if self.candidates[0].shared else RULE
                stop = replace(rule, tol=rule.tol * weight / plan.total_weight)
                result = runner(problem, source, params, stop=stop, executor=executor)
                params = result.params
                chosen = self._chosen(problem, params, source, executor)
            else:
                chosen = np.arange(len(self.fold))
            return self._densities(problem, params, chosen.reshape(len(self.candidates), len(self.parts)))

    def _chosen(
        self, problem: BatchProblem, params: BatchParams, source: ArrayBlocks, executor: Executor
    ) -> np.ndarray:
        """Return the start with the highest objective of each candidate in each fold, as positions of mixtures."""
        if self.n_starts == 1:
            return np.arange(len(self.fold))
        ready = problem.prepare(params)
        total = executor.total(lambda block: problem.stats(ready, block), source)
        objectives = problem.each(params, total).reshape(-1, self.n_starts)
        return self.n_starts * np.arange(len(objectives)) + objectives.argmax(axis=1)

    def _densities(self, problem: BatchProblem, params: BatchParams, chosen: np.ndarray) -> HeldOutDensities:
        out: HeldOutDensities = {candidate: [] for candidate in self.candidates}
        for f, part in enumerate(self.parts):
            table = self.plan.table.take(part.held)
            densities = problem.class_densities(params, chosen[:, f], Block(table.X, table.codes))
            log_prior = np.log(params.weights[chosen[:, f]].sum(axis=2))
            for candidate, density, prior in zip(self.candidates, densities, log_prior):
                out[candidate].append((density, prior))
        return out

    @property
    def _iterated(self) -> bool:
        """Whether EM is needed: with one component per class and complete, labelled rows, one M-step is the maximum."""
        plan, candidate = self.plan, self.candidates[0]
        complete = not bool(np.isnan(plan.table.X.sum())) and plan.table.label is None and (plan.codes >= 0).all()
        closed = all(name[1:] != "VE" for c in self.candidates for name in c.structures)  # these have an inner loop
        sampled = any(
            len(start.rows) < part.plan.class_rows().sum()
            for part in self.parts
            for start in part.starts(candidate, self.n_starts)
        )
        return candidate.shared or candidate.is_mixture or sampled or not complete or not closed

    def _problem(self) -> BatchProblem:
        plan = self.plan
        gaussian = categorical = None
        if len(plan.summary.center):
            gaussian = GaussianFamily(self._groups(), plan.summary.center, plan.summary.scale)
            priors = [c.expand(self.K, self.axis_aligned) for c in self._priors()]
            prior = Prior(
                *(np.concatenate([getattr(p, name) for p in priors]) for name in ("rows", "cov", "mean", "mean_rows"))
            )
            noise = [np.tile(c.noise * part.plan.summary.scale**2, (self.K, 1)) for c, part in self.mixtures]
            noisy = any(candidate.noise for candidate in self.candidates)
            gaussian = replace(gaussian, prior=prior, noise=np.concatenate(noise) if noisy else None)
        if plan.sizes:
            smoothing = plan.prior_options.smoothing
            rows = [np.tile(smoothing * part.plan.summary.frequencies, (self.K, 1)) for _, part in self.mixtures]
            categorical = CategoricalFamily(plan.sizes, np.concatenate(rows))
        weights = np.stack([part.weight for part in self.parts])
        return BatchProblem(ProductFamily(gaussian, categorical), weights, self.fold)

    def _priors(self) -> list[Prior]:
        return [part.prior(candidate, self.n_starts) for candidate, part in self.mixtures]

    def _groups(self) -> tuple[Group, ...]:
        """Return the groups of components with a common structure; those without common parameters are one group."""
        groups: list[Group] = []
        for g, (candidate, _) in enumerate(self.mixtures):
            for group in candidate.groups:
                start, stop = g * self.K + group.start, g * self.K + group.stop
                if groups and groups[-1].structure == group.structure and "E" not in group.structure:
                    start = groups.pop().start
                groups.append(Group(group.structure, start, stop))
        return tuple(groups)

    def _initial(self, family: ProductFamily) -> BatchParams:
        """Return the M-step from the partitions of each fold, whose moments all candidates share."""
        plan, K, candidate = self.plan, self.K, self.candidates[0]
        starts = [(part, start) for part in self.parts for start in part.starts(candidate, self.n_starts)]
        label = np.full((len(starts), plan.table.n_rows), -1)
        for s, (part, start) in enumerate(starts):
            label[s, part.train[start.rows]] = start.resp.argmax(axis=1)
        counts = np.stack([part.plan.initial_counts(candidate, start) for part, start in starts])
        flat_family, flat = self._flat(len(starts))

        def members(rows: slice | np.ndarray) -> Array:
            return np.concatenate([one_hot(each[rows], K) for each in label], axis=1)

        with plan.executor(len(starts) * K) as executor:
            source = ArrayBlocks(replace(plan.table, label=None))
            moments = membership_moments(flat_family, flat, source, members, executor)
        index = (K * self.start[:, None] + np.arange(K)).ravel()
        components = family.update(_taken(flat, index, family), _taken_stats(moments, index))
        weights = counts / counts.sum(axis=(1, 2), keepdims=True)
        return BatchParams(weights[self.start], components)

    def _flat(self, n_starts: int) -> tuple[ProductFamily, Components]:
        """Return components with the means, variances and frequencies of the training rows, for all starts."""
        plan, repeats = self.plan, self.K * self.n_starts
        center, gaussian, categorical = plan.summary.center, None, None
        gaussians = categoricals = None
        if len(center):
            means = np.repeat([part.plan.summary.center - center for part in self.parts], repeats, axis=0)
            variances = np.repeat([part.plan.summary.scale**2 for part in self.parts], repeats, axis=0)
            structure = "VVI" if self.axis_aligned else "VVV"
            gaussian = GaussianFamily((Group(structure, 0, n_starts * self.K),), center, plan.summary.scale)
            covs = variances if self.axis_aligned else variances[:, :, None] * np.eye(len(center))
            gaussians = Gaussians(means, covs, (None,))
        if plan.sizes:
            frequencies = np.repeat([part.plan.summary.frequencies for part in self.parts], repeats, axis=0)
            categorical = CategoricalFamily(plan.sizes, frequencies)
            categoricals = Categoricals(np.log(frequencies))
        return ProductFamily(gaussian, categorical), Components(gaussians, categoricals)


def _taken(flat: Components, index: np.ndarray, family: ProductFamily) -> Components:
    gaussian, categorical = flat.gaussian, flat.categorical
    if gaussian is not None and family.gaussian is not None:
        axes = (None,) * len(family.gaussian.groups)
        gaussian = Gaussians(gaussian.means[index], gaussian.covs[index], axes)
    return Components(gaussian, categorical and Categoricals(categorical.log_probs[index]))


def _taken_stats(stats: ComponentStats, index: np.ndarray) -> ComponentStats:
    moments, counts = stats.gaussian, stats.categorical
    if moments is not None:
        moments = Moments(moments.mass[index], moments.first[index], moments.second[index], moments.about)
    return ComponentStats(moments, counts and Counts(counts.counts[index]))
