"""Densities and responsibilities of rows under a fitted mixture, computed block by block."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixent.base.executors import choose_executor
from mixent.core.arrays import Array, log_sum_exp, safe_log, softmax_columns
from mixent.core.blocks import Block
from mixent.mixtures.fitting import blocks
from mixent.mixtures.problem import MixtureParams, MixtureProblem, Ready

RowFunction = Callable[[Ready, Block], Array]  # (n,) or (n, width)


def each_row(
    problem: MixtureProblem,
    params: MixtureParams,
    table: Block,
    function: RowFunction,
    width: int | None,
    n_jobs: int | None,
) -> Array:
    """Apply a function to all rows, block by block, and return the results in the order of the rows."""
    gaussian = problem.family.gaussian
    source = blocks(table, params.n_components, gaussian is None or gaussian.axis_aligned)
    out = np.empty(table.n_rows if width is None else (table.n_rows, width))

    def fill(block: Block) -> None:
        # a value of 1e200 overflows to density zero, which is correct
        with np.errstate(over="ignore", invalid="ignore"):
            out[slice(None) if block.rows is None else block.rows] = function(ready, block)

    with choose_executor(n_jobs, table.n_rows, params.n_components) as executor:
        ready = problem.prepare(params)  # inside, so that the factors do not depend on the threads of BLAS
        executor.map(fill, source)
    return out


def log_density(problem: MixtureProblem, params: MixtureParams, table: Block, n_jobs: int | None) -> Array:
    """Return log p(x), (n,)."""
    return each_row(
        problem,
        params,
        table,
        lambda ready, block: log_sum_exp(problem.log_resp(ready, block), axis=0),
        None,
        n_jobs,
    )


def responsibilities(problem: MixtureProblem, params: MixtureParams, table: Block, n_jobs: int | None) -> Array:
    """Return p(component | x), (n, K), with a last column for noise if there is one."""
    return each_row(
        problem, params, table, lambda ready, block: block_resp(problem, ready, block).T, params.width, n_jobs
    )


def block_resp(problem: MixtureProblem, ready: Ready, block: Block) -> Array:
    """Return p(component | x), (K, n), given label likelihoods if the block has them.

    Where all densities underflow to zero, return the component weights.
    """
    log_weights = ready.log_weights[:, None]
    if block.label is not None:
        log_weights = safe_log(ready.weights.T @ block.label.T)
    joint = problem.log_components(ready, block)
    joint += log_weights
    underflow = ~np.isfinite(joint.max(axis=0))
    if underflow.any():
        joint[:, underflow] = np.broadcast_to(log_weights, joint.shape)[:, underflow]
    softmax_columns(joint)
    return joint


def entropy_of(resp: Array) -> Array:
    """Return the entropy of responsibilities (n, K), in nats, (n,)."""
    return -(resp * np.log(np.maximum(resp, 1e-300))).sum(axis=1)
