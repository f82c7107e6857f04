"""Fit of a hidden Markov model to checked sequences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixent.base.executors import choose_executor
from mixent.core.arrays import Array, softmax_columns
from mixent.core.blocks import Block
from mixent.core.driver import Run, Stop
from mixent.core.executors import Executor
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Squarem
from mixent.core.starts import best_of, best_revised
from mixent.families.gaussian.family import GaussianFamily
from mixent.families.gaussian.kernels import quadratic_pays
from mixent.families.gaussian.structures import get_structure
from mixent.hmm.init import (
    InitialStates,
    emission_family,
    emission_prior,
    initial_chain,
    initial_components,
    initial_states,
    overall_covariance,
    poisson_family,
    with_initial,
)
from mixent.hmm.lattice import forward_backward
from mixent.hmm.options import read_fixed
from mixent.hmm.problem import ChainParams, ChainProblem
from mixent.hmm.sequences import SequenceBlock, SequenceBlocks, Sequences, observed_steps
from mixent.mixtures.fitting import blocks, rescaled
from mixent.mixtures.init import Summary, summarize
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class FittedChain(Short):
    """A fitted hidden Markov model: the problem, the parameters and the run."""

    problem: ChainProblem
    params: ChainParams
    run: Run


@dataclass(frozen=True)
class Scale:
    """Location, scale and covariance of all steps, for the prior and the initialization."""

    summary: Summary
    target: Array  # (d, d) covariance


def measure(est: Any, sequences: Sequences, weight: Array | None, sizes: tuple[int, ...]) -> Scale:
    """Return center, scale, frequencies and covariance of all steps."""
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
    initial: dict[str, Array] | None = None,
    show: Progress | None = None,
) -> FittedChain:
    """Run Baum-Welch from the best of several starts; with precomputed emissions, `scale` is None."""
    S = est.n_states
    n_matrices = matrices_of(est, sequences)
    with choose_executor(est.n_jobs, sequences.table.n_rows, S) as executor:
        if scale is None:
            smoothing = est._group("prior").transition_smoothing
            problem = ChainProblem(None, smoothing, smoothing, read_fixed(est.init))
            starts = [_initial_params(est, problem, None, sequences, weight, None, executor)]
        else:
            problem, starts = _with_family(est, sequences, weight, sizes, scale, seed, executor)
        starts = [with_initial(params, initial or {}, problem.family, problem.fixed) for params in starts]
        starts = [_by_step(params, n_matrices) for params in starts]
        source = blocks_of(problem, S, sequences, weight)
        _check_possible(problem, source, starts[0], executor)
        options: dict[str, Any] = {
            "executor": executor,
            "observers": [] if show is None else [ShowProgress(show, est.max_iter)],
            "propose": Squarem() if est.accelerate and S > 1 else None,
        }
        stop = Stop(est.tol, est.max_iter)
        if scale is None or S == 1 or "covariances" in problem.fixed or not _has_prior(problem):
            result = best_of(problem, source, starts, stop=stop, **options).run
        else:
            revise = partial(_rescaled, est, source, sizes, scale, executor)
            problem, runs = best_revised(problem, source, starts, revise, stop=stop, **options)
            result = runs.run
    return FittedChain(problem, result.params, replace(result, last=None))


def matrices_of(est: Any, sequences: Sequences) -> int | None:
    """Return the number of transition matrices if every step has one, else None."""
    return int(sequences.lengths.max()) - 1 if est.transitions == "per_step" else None


def _with_family(
    est: Any,
    sequences: Sequences,
    weight: Array | None,
    sizes: tuple[int, ...],
    scale: Scale,
    seed: int,
    executor: Executor,
) -> tuple[ChainProblem, list[ChainParams]]:
    """Return the problem with fitted emissions, and its starts."""
    S, steps, summary = est.n_states, sequences.with_weights(weight), scale.summary
    method = est.init if isinstance(est.init, str) else "auto"
    states = [
        initial_states(sequences, steps, summary, sizes, S, est.topology, method, (seed, number))
        for number in range(est.n_init)
    ]
    problem = _problem(est, states[0].label, steps, sizes, scale, executor)
    return problem, [_initial_params(est, problem, start, sequences, weight, summary, executor) for start in states]


def _problem(
    est: Any, label: np.ndarray, steps: Block, sizes: tuple[int, ...], scale: Scale, executor: Executor
) -> ChainProblem:
    """Return the problem with fitted emissions, and the prior of these states of the steps."""
    S, summary, options = est.n_states, scale.summary, est._group("prior")
    fixed = read_fixed(est.init)
    if est.emissions == "poisson":
        family = poisson_family(S, summary, sizes, options.smoothing)
    else:
        rows = options.rows(len(summary.center))
        prior = emission_prior(label, steps, summary, scale.target, S, rows, executor)
        family = emission_family(S, get_structure(est.covariance).name, summary, sizes, prior, options.smoothing)
        if family.gaussian is not None and "means" in fixed:
            family = replace(family, gaussian=replace(family.gaussian, fixed_means=True))
    return ChainProblem(family, options.transition_smoothing, options.transition_smoothing, fixed)


def _rescaled(
    est: Any,
    source: SequenceBlocks,
    sizes: tuple[int, ...],
    scale: Scale,
    executor: Executor,
    problem: ChainProblem,
    run: Run,
) -> ChainProblem | None:
    """Return the problem with the prior of the most probable states of the steps, None if it is about the same."""
    params, sequences = run.params, source.sequences
    log_emit = emissions_of(problem, params, source, executor)
    posterior = forward_backward(params.log_start, params.log_trans, log_emit, sequences.lengths).states
    steps = sequences.with_weights(source.weight)
    label = np.where(observed_steps(steps), posterior.argmax(axis=1), -1)
    other = _problem(est, label, steps, sizes, scale, executor)
    assert problem.family is not None and other.family is not None
    mass = steps.row_weights @ posterior
    return other if rescaled(problem.family, other.family, params.components, mass) else None


def _has_prior(problem: ChainProblem) -> bool:
    """Whether emissions are Gaussian with a prior of covariances, which depends on the states."""
    gaussian = None if problem.family is None else problem.family.gaussian
    return isinstance(gaussian, GaussianFamily) and gaussian.prior is not None


def _initial_params(
    est: Any,
    problem: ChainProblem,
    states: InitialStates | None,
    sequences: Sequences,
    weight: Array | None,
    summary: Summary | None,
    executor: Executor,
) -> ChainParams:
    weight = np.ones(sequences.n_sequences) if weight is None else weight
    log_start, log_trans = initial_chain(states, sequences, weight, est.n_states, est.topology)
    components = None
    if states is not None and problem.family is not None and summary is not None:
        steps = sequences.with_weights(weight)
        components = initial_components(states, steps, summary, problem.family, est.n_states, executor)
    return ChainParams(log_start, log_trans, components)


def _by_step(params: ChainParams, n_matrices: int | None) -> ChainParams:
    if n_matrices is None or params.log_trans.ndim == 3:
        return params
    return replace(params, log_trans=np.tile(params.log_trans, (n_matrices, 1, 1)))


def _check_possible(problem: ChainProblem, source: SequenceBlocks, params: ChainParams, executor: Executor) -> None:
    """Raise a ValueError for a sequence of probability zero, from which Baum-Welch cannot start."""
    ready = problem.prepare(params)
    if ready.chain.all_allowed and problem.family is not None:
        return
    log_lik = of_sequences(problem, params, source, executor)
    bad = np.flatnonzero(np.isneginf(log_lik) & (source.weight > 0))
    if len(bad):
        raise ValueError(
            f"sequence {bad[0]} has probability zero under the initial parameters; allow more transitions, or correct "
            "or remove the sequence"
        )


def blocks_of(
    problem: ChainProblem, n_states: int, sequences: Sequences, weight: Array | None, block_rows: int | None = None
) -> SequenceBlocks:
    """Return whole sequences in blocks whose temporary arrays fit the cache."""
    d = sequences.table.X.shape[1]
    gaussian = None if problem.family is None else problem.family.gaussian
    width = 1 + 2 * d
    if gaussian is not None and not gaussian.axis_aligned:
        width = 1 + d + d * (d + 1) // 2 if quadratic_pays(n_states, d) else 2 * d
    precomputed = problem.family is None
    return SequenceBlocks(sequences, weight, width + 4 * n_states, precomputed=precomputed, block_rows=block_rows)


def of_sequences(problem: ChainProblem, params: ChainParams, source: SequenceBlocks, executor: Executor) -> Array:
    """Return the log-likelihood of each sequence, (n,)."""
    ready = problem.prepare(params)
    out = np.empty(source.sequences.n_sequences)

    def fill(block: Any) -> None:
        # a value of 1e200 overflows to density zero, which is correct
        with np.errstate(over="ignore", invalid="ignore"):
            out[block.index] = problem.log_likelihood(ready, block)

    executor.map(fill, source)
    return out


def emissions_of(problem: ChainProblem, params: ChainParams, source: SequenceBlocks, executor: Executor) -> Array:
    """Return the log-likelihoods of the states at every step, (n_steps, S)."""
    ready = problem.prepare(params)
    sequences = source.sequences
    out = np.empty((int(sequences.lengths.sum()), params.n_states))

    def fill(block: SequenceBlock) -> None:
        lengths, layout = sequences.lengths[block.index], block.layout
        starts = np.repeat(sequences.starts[block.index] - (np.cumsum(lengths) - lengths), lengths)
        steps = (np.arange(lengths.sum()) + starts)[layout.rows]
        with np.errstate(over="ignore", invalid="ignore"):
            out[steps] = problem.log_emissions(ready, block).T

    executor.map(fill, source)  # type: ignore[arg-type]
    return out


def mixed_log_lik(log_joint: Array) -> Array:
    """Return the logarithm of the sum over classes of p(class, x), (n,), from log p(class, x) (n, C)."""
    return softmax_columns(np.array(log_joint.T))
