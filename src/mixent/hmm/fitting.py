"""From checked sequences to a fitted chain."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.executors import choose_executor
from mixent.core.arrays import Array, softmax_columns
from mixent.core.driver import Run, Stop
from mixent.core.executors import Executor
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Squarem
from mixent.core.starts import best_of
from mixent.families.gaussian.kernels import quadratic_pays
from mixent.families.gaussian.structures import get_structure
from mixent.hmm.init import (
    Start,
    emission_family,
    emission_prior,
    first_chain,
    first_components,
    guess_states,
    overall_covariance,
    with_given,
)
from mixent.hmm.options import HMMPrior
from mixent.hmm.problem import ChainParams, ChainProblem
from mixent.hmm.sequences import SequenceBlock, SequenceBlocks, Sequences
from mixent.mixtures.fitting import blocks
from mixent.mixtures.init import Summary, summarize


@dataclass(frozen=True)
class FittedChain:
    """A chain that has been fitted."""

    problem: ChainProblem
    params: ChainParams
    run: Run


@dataclass(frozen=True)
class Scale:
    """Location, scale and covariance of all steps, for the prior and the initialization."""

    summary: Summary
    target: Array  # (d, d) covariance


def measure(est: Any, sequences: Sequences, weight: Array | None, sizes: tuple[int, ...]) -> Scale:
    """Center, scale, frequencies and covariance of all steps."""
    steps = sequences.with_weights(weight)
    with choose_executor(est.n_jobs, steps.n_rows, 1) as executor:
        summary = summarize(blocks(steps, 1, True), sizes, executor)
        return Scale(summary, overall_covariance(steps, summary, executor))


def fit_chain(
    est: Any,
    sequences: Sequences,
    weight: Array | None,
    sizes: tuple[int, ...],
    scale: Scale | None,
    seed: int,
    given: dict[str, Array] | None = None,
    show: Progress | None = None,
) -> FittedChain:
    """Baum-Welch from the best of several starts; without a `scale` the table holds log-likelihoods of the states."""
    S = est.n_states
    n_matrices = matrices_of(est, sequences)
    with choose_executor(est.n_jobs, sequences.table.n_rows, S) as executor:
        if scale is None:
            smoothing = est._group("prior").transition_smoothing
            problem = ChainProblem(None, smoothing, smoothing)
            starts = [_first(est, problem, None, sequences, weight, n_matrices, None, executor)]
        else:
            problem, starts = _with_family(est, sequences, weight, sizes, scale, seed, n_matrices, executor)
        starts = [with_given(params, given or {}, problem.family) for params in starts]
        starts = [_by_step(params, n_matrices) for params in starts]
        source = blocks_of(problem, S, sequences, weight)
        _check_possible(problem, source, starts[0], executor)
        found = best_of(
            problem,
            source,
            starts,
            stop=Stop(est.tol, est.max_iter),
            executor=executor,
            observers=[] if show is None else [ShowProgress(show, est.max_iter)],
            propose=Squarem() if est.accelerate and S > 1 else None,
        ).run
    return FittedChain(problem, found.params, replace(found, last=None))


def matrices_of(est: Any, sequences: Sequences) -> int | None:
    """Transition matrices when every step has its own."""
    return int(sequences.lengths.max()) - 1 if est.transitions == "per_step" else None


def _with_family(
    est: Any,
    sequences: Sequences,
    weight: Array | None,
    sizes: tuple[int, ...],
    scale: Scale,
    seed: int,
    n_matrices: int | None,
    executor: Executor,
) -> tuple[ChainProblem, list[ChainParams]]:
    S, steps, summary = est.n_states, sequences.with_weights(weight), scale.summary
    method = est.init if isinstance(est.init, str) else "auto"
    guesses = [
        guess_states(sequences, steps, summary, sizes, S, est.topology, method, (seed, number))
        for number in range(est.n_init)
    ]
    options: HMMPrior = est._group("prior")
    rows = options.rows(len(summary.center))
    prior = emission_prior(guesses[0], steps, summary, scale.target, S, rows, executor)
    family = emission_family(S, get_structure(est.covariance).name, summary, sizes, prior, options.smoothing)
    problem = ChainProblem(family, options.transition_smoothing, options.transition_smoothing)
    first = [_first(est, problem, guess, sequences, weight, n_matrices, summary, executor) for guess in guesses]
    return problem, first


def _first(
    est: Any,
    problem: ChainProblem,
    guess: Start | None,
    sequences: Sequences,
    weight: Array | None,
    n_matrices: int | None,
    summary: Summary | None,
    executor: Executor,
) -> ChainParams:
    weight = np.ones(sequences.n_sequences) if weight is None else weight
    log_start, log_trans = first_chain(guess, sequences, weight, est.n_states, est.topology)
    components = None
    if guess is not None and problem.family is not None and summary is not None:
        steps = sequences.with_weights(weight)
        components = first_components(guess, steps, summary, problem.family, est.n_states, executor)
    return ChainParams(log_start, log_trans, components)


def _by_step(params: ChainParams, n_matrices: int | None) -> ChainParams:
    if n_matrices is None or params.log_trans.ndim == 3:
        return params
    return replace(params, log_trans=np.tile(params.log_trans, (n_matrices, 1, 1)))


def _check_possible(problem: ChainProblem, source: SequenceBlocks, params: ChainParams, executor: Executor) -> None:
    """Refuse a sequence that no path can have emitted: Baum-Welch cannot start from there."""
    ready = problem.prepare(params)
    if ready.chain.mixes and problem.family is not None:
        return
    log_lik = of_sequences(problem, params, source, executor)
    bad = np.flatnonzero(np.isneginf(log_lik) & (source.weight > 0))
    if len(bad):
        raise ValueError(
            f"sequence {bad[0]} is impossible: no path of states that the start allows can have emitted it; allow more "
            "transitions, or correct or remove it"
        )


def blocks_of(
    problem: ChainProblem, n_states: int, sequences: Sequences, weight: Array | None, block_rows: int | None = None
) -> SequenceBlocks:
    """Whole sequences in blocks whose temporaries stay in the cache."""
    d = sequences.table.X.shape[1]
    gaussian = None if problem.family is None else problem.family.gaussian
    width = 1 + 2 * d
    if gaussian is not None and not gaussian.axis_aligned:
        width = 1 + d + d * (d + 1) // 2 if quadratic_pays(n_states, d) else 2 * d
    return SequenceBlocks(sequences, weight, width + 4 * n_states, given=problem.family is None, block_rows=block_rows)


def of_sequences(problem: ChainProblem, params: ChainParams, source: SequenceBlocks, executor: Executor) -> Array:
    """Log-likelihood of each sequence, (n,)."""
    ready = problem.prepare(params)
    out = np.empty(source.sequences.n_sequences)

    def fill(block: Any) -> None:
        # a step at 1e200 overflows to density zero, and that is the right answer
        with np.errstate(over="ignore", invalid="ignore"):
            out[block.index] = problem.log_likelihood(ready, block)

    executor.map(fill, source)
    return out


def emissions_of(problem: ChainProblem, params: ChainParams, source: SequenceBlocks, executor: Executor) -> Array:
    """Log-likelihoods of the states at every step, (n_steps, S)."""
    ready = problem.prepare(params)
    sequences = source.sequences
    out = np.empty((int(sequences.lengths.sum()), params.n_states))

    def fill(block: SequenceBlock) -> None:
        lengths, layout = sequences.lengths[block.index], block.layout
        begins = np.repeat(sequences.begins[block.index] - (np.cumsum(lengths) - lengths), lengths)
        steps = (np.arange(lengths.sum()) + begins)[layout.rows]
        with np.errstate(over="ignore", invalid="ignore"):
            out[steps] = problem.log_emissions(ready, block).T

    executor.map(fill, source)  # type: ignore[arg-type]
    return out


def mixed_log_lik(log_joint: Array) -> Array:
    """log sum over classes of p(class, x), (n,), from (n, C)."""
    return softmax_columns(np.array(log_joint.T))
