"""The Baum-Welch algorithm: EM for a chain of hidden states with any emission family.

    maximize  sum_n w_n log sum_z  p(z_0) b_{z_0}(x_n0)  prod_{t>0} A(z_{t-1}, z_t) b_{z_t}(x_nt)
              + sum_s a_s log p(s) + sum_rs a_rs log A(r, s) + log prior(b)

The statistics are expected counts of first states and of pairs of successive states, and those of the family under the
state posteriors; they are additive over sequences. The update maximizes a lower bound that touches the objective, which
never decreases. A probability of zero in p or A remains zero. Instead of a family, log b may be given for every step
and state. Parameters that are fixed are left out of the maximization.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array, safe_log
from mixent.core.blocks import Block
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.families.poisson import Poissons
from mixent.families.product import Components, ComponentStats, ProductFamily
from mixent.hmm.lattice import Chain, sweep, sweep_forward
from mixent.hmm.sequences import SequenceBlock


@dataclass(frozen=True)
class ChainParams:
    log_start: Array  # (S,)
    log_trans: Array  # (S, S), or (T - 1, S, S) with a matrix for every step
    components: Any  # Components; None with precomputed emissions
    repairs: int = 0  # number of repairs so far

    @property
    def n_states(self) -> int:
        return len(self.log_start)


@dataclass(frozen=True)
class ChainStats(Stats):
    start: Array  # (S,) expected first states
    trans: Array  # (S, S) or (T - 1, S, S) expected pairs
    components: Any  # ComponentStats, or None
    log_lik: float


@dataclass(frozen=True)
class Ready:
    chain: Chain
    family: Any


@dataclass(frozen=True)
class ChainProblem(Problem):
    """Objective and update of a hidden Markov model."""

    family: ProductFamily | None
    start_rows: float = 0.0  # pseudo-counts of the first state, divided evenly among the possible states
    trans_rows: float = 0.0  # pseudo-counts of the transitions from each state, likewise
    fixed: tuple[str, ...] = ()  # parameters that are not changed: "start", "transitions", "means", ...

    def prepare(self, params: ChainParams) -> Ready:
        family = None if self.family is None else self.family.prepare(params.components)
        return Ready(Chain(params.log_start, params.log_trans), family)

    def stats(self, ready: Ready, block: Any) -> ChainStats:
        log_emit, works = self._open(ready, block)
        chain, layout = ready.chain, block.layout
        result = sweep(chain, log_emit, layout, block.weight, pairs="step" if chain.by_step else "sum")
        assert result.pairs is not None
        resp = result.states
        by_rank = block.weight[layout.order]
        if not (by_rank == 1.0).all():
            resp *= by_rank[layout.rank]
        n = len(layout.lengths)
        components = None
        for rows, work in works:
            part = resp if isinstance(rows, slice) else np.ascontiguousarray(resp[:, rows])
            moments = work.moments(part)
            components = moments if components is None else components + moments
        if components is None and self.family is not None:
            components = self._empty_stats(ready)
        # a sequence of weight zero is excluded, even if its likelihood is zero
        log_lik = float(np.where(block.weight > 0, result.log_lik, 0.0) @ block.weight)
        return ChainStats(resp[:, :n].sum(axis=1), result.pairs, components, log_lik)

    def _open(self, ready: Ready, block: SequenceBlock) -> tuple[Array, list[tuple[Any, Any]]]:
        """Return the log-likelihoods of the states (S, N) by position, and the work objects of the family."""
        if block.log_emit is not None:
            return block.log_emit, []
        assert self.family is not None
        works = []
        log_emit = None
        for part in block.emitted:
            work = self.family.open(ready.family, part)
            log_prob = work.log_prob()
            all_steps = isinstance(part.rows, slice) or part.rows is None
            if all_steps:
                log_emit = log_prob
            else:
                if log_emit is None:
                    log_emit = np.zeros((ready.chain.n_states, block.n_rows))
                log_emit[:, part.rows] = log_prob
            works.append((slice(None) if all_steps else part.rows, work))
        if log_emit is None:  # all values are missing
            log_emit = np.zeros((ready.chain.n_states, block.n_rows))
        return log_emit, works

    def _empty_stats(self, ready: Ready) -> ComponentStats:
        """Return the statistics of an empty block."""
        family = self.family
        assert family is not None
        d = family.gaussian.n_columns if family.gaussian is not None else 0
        codes = np.empty((0, len(family.categorical.sizes)), np.int32) if family.categorical is not None else None
        work = family.open(ready.family, Block(np.empty((0, d)), codes))
        work.log_prob()
        return work.moments(np.empty((ready.chain.n_states, 0)))

    def objective(self, params: ChainParams, total: ChainStats) -> float:
        return total.log_lik + self.log_prior(params)

    def condition(self, params: ChainParams) -> float:
        return 1.0 if self.family is None else self.family.condition(params.components)

    def log_prior(self, params: ChainParams) -> float:
        value = _dirichlet(params.log_start, self.start_rows) + _dirichlet(params.log_trans, self.trans_rows)
        if self.family is not None:
            value += self.family.log_prior(params.components)
        return value

    def update(self, params: ChainParams, total: ChainStats, step: float = 1.0) -> ChainParams:
        log_start = _shares(total.start, params.log_start, self.start_rows)
        log_trans = _shares(total.trans, params.log_trans, self.trans_rows)
        components = params.components
        if self.family is not None:
            components = self.family.update(components, total.components)
        updated = replace(params, log_start=log_start, log_trans=log_trans, components=components)
        return self._with_fixed(params, updated)

    def _with_fixed(self, before: ChainParams, after: ChainParams) -> ChainParams:
        """Return the parameters after a step, with the fixed ones as before."""
        if not self.fixed:
            return after
        log_start = before.log_start if "start" in self.fixed else after.log_start
        log_trans = before.log_trans if "transitions" in self.fixed else after.log_trans
        components = after.components
        if components is not None:
            gaussian, categorical = components.gaussian, components.categorical
            if "covariances" in self.fixed:
                gaussian = replace(before.components.gaussian, means=gaussian.means)
            if "means" in self.fixed:
                gaussian = _with_means(gaussian, before.components.gaussian)
            if "tables" in self.fixed:
                categorical = before.components.categorical
            components = Components(gaussian, categorical)
        return replace(after, log_start=log_start, log_trans=log_trans, components=components)

    def repair(self, params: ChainParams, total: ChainStats) -> tuple[ChainParams, str] | None:
        """Re-seed a state with degenerate emissions next to the most frequent state."""
        if self.family is None:
            return None
        bad = self.family.degenerate(params.components)
        if not bad.any() or bad.all():
            return None
        child = int(np.flatnonzero(bad)[0])
        pairs = total.trans if total.trans.ndim == 2 else total.trans.sum(axis=0)
        visits = np.where(bad, -np.inf, total.start + pairs.sum(axis=0))
        parent = int(visits.argmax())
        if params.repairs < params.n_states:
            components = self.family.split(params.components, parent, child)
            action = f"re-seeded next to state {parent}"
        else:
            components = self.family.copied(params.components, parent, child)
            action = f"replaced by a copy of state {parent}"
        note = f"state {child} collapsed onto too few distinct values; {action}"
        repaired = replace(params, components=components, repairs=params.repairs + 1)
        return self._with_fixed(params, repaired), note

    def pack(self, params: ChainParams) -> Array:
        logs = [part[part > -np.inf] for part in (params.log_start, params.log_trans)]
        tail = [] if self.family is None else [self.family.pack(params.components)]
        return np.concatenate([*logs, *tail])

    def unpack(self, vector: Array, like: ChainParams) -> ChainParams | None:
        if not np.isfinite(vector).all():
            return None
        parts, offset = [], 0
        for part in (like.log_start, like.log_trans):
            allowed = part > -np.inf
            logs = np.full_like(part, -np.inf)
            logs[allowed] = vector[offset : offset + int(allowed.sum())]
            offset += int(allowed.sum())
            logs -= np.where(np.isneginf(top := logs.max(axis=-1, keepdims=True)), 0.0, top)
            table = np.where(allowed, np.maximum(np.exp(logs), 1e-300), 0.0)
            parts.append(safe_log(table / np.maximum(table.sum(axis=-1, keepdims=True), 1e-300)))
        components = like.components
        if self.family is not None:
            components = self.family.unpack(vector[offset:], like.components, np.ones(like.n_states))
            if components is None:
                return None
        return self._with_fixed(like, replace(like, log_start=parts[0], log_trans=parts[1], components=components))

    def n_free(self, params: ChainParams) -> int:
        """Return the number of free parameters, without the fixed ones: emissions, first states, transitions."""
        n = 0 if self.family is None else self._n_free_emissions(self.family, params.n_states)
        for name, part in (("start", params.log_start[None]), ("transitions", params.log_trans)):
            if name not in self.fixed:
                allowed = (part > -np.inf).sum(axis=-1)
                n += int(np.maximum(allowed - 1, 0).sum())
        return n

    def _n_free_emissions(self, family: ProductFamily, n_states: int) -> int:
        counts = {"tables": 0 if family.categorical is None else family.categorical.n_free(n_states)}
        if family.gaussian is not None:
            counts["means"] = n_states * family.gaussian.n_columns
            counts["covariances"] = family.gaussian.n_free() - counts["means"]
        return sum(count for name, count in counts.items() if name not in self.fixed)

    # predictions ----------------------------------------------------------------------------------------------

    def log_emissions(self, ready: Ready, block: SequenceBlock) -> Array:
        """Return log b_s(x) by position, (S, N)."""
        return _possible(np.array(self._open(ready, block)[0]))

    def log_likelihood(self, ready: Ready, block: SequenceBlock) -> Array:
        """Return the log-likelihood of each sequence of the block, (n,)."""
        return sweep_forward(ready.chain, _possible(self._open(ready, block)[0]), block.layout)


def _with_means(numeric: Any, before: Any) -> Any:
    """Return Gaussians with the means of `before`; Poisson distributions have no other parameters."""
    return before if isinstance(before, Poissons) else replace(numeric, means=before.means)


def _possible(log_emit: Array) -> Array:
    """Replace NaN, from values so extreme that their density overflows, by -inf."""
    overflow = np.isnan(log_emit)
    if overflow.any():
        log_emit[overflow] = -np.inf
    return log_emit


def _shares(counts: Array, log_probs: Array, rows: float) -> Array:
    """Maximize  sum (counts + rows / allowed) log p  over each row of p; rows without counts do not change."""
    allowed = log_probs > -np.inf
    spread = rows / np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    counts = np.where(allowed, counts + spread, 0.0)
    total = counts.sum(axis=-1, keepdims=True)
    table = np.divide(counts, total, out=np.exp(log_probs), where=total > 0)
    return safe_log(table)


def _dirichlet(log_probs: Array, rows: float) -> float:
    """Return the sum of pseudo-counts times log p over the possible entries."""
    if rows == 0:
        return 0.0
    allowed = log_probs > -np.inf
    spread = rows / np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    return float((spread * np.where(allowed, log_probs, 0.0)).sum())
