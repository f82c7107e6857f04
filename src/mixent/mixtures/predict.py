"""A mixture applied to rows: densities and responsibilities, block by block, in the rows' own order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mixent.base.executors import choose_executor
from mixent.core.arrays import Array, log_sum_exp, softmax_columns
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
    """Apply a function to all rows, block by block, and return the answers in the rows' own order."""
    gaussian = problem.family.gaussian
    source = blocks(table, params.n_components, gaussian is None or gaussian.axis_aligned)
    out = np.empty(table.n_rows if width is None else (table.n_rows, width))

    def fill(block: Block) -> None:
        # a row at 1e200 overflows to density zero, and that is the right answer
        with np.errstate(over="ignore", invalid="ignore"):
            out[slice(None) if block.rows is None else block.rows] = function(ready, block)

    with choose_executor(n_jobs, table.n_rows, params.n_components) as executor:
        ready = problem.prepare(params)  # inside: factors too must not depend on the threads of BLAS
        executor.map(fill, source)
    return out


def log_density(problem: MixtureProblem, params: MixtureParams, table: Block, n_jobs: int | None) -> Array:
    """log p(x), (n,)."""
    return each_row(
        problem,
        params,
        table,
        lambda ready, block: log_sum_exp(problem.log_resp(ready, block), axis=0),
        None,
        n_jobs,
    )


def responsibilities(problem: MixtureProblem, params: MixtureParams, table: Block, n_jobs: int | None) -> Array:
    """p(component | x), (n, K)."""
    return each_row(
        problem, params, table, lambda ready, block: block_resp(problem, ready, block).T, params.n_components, n_jobs
    )


def block_resp(problem: MixtureProblem, ready: Ready, block: Block) -> Array:
    """p(component | x), (K, n); a row so far out that no component has a density left falls back on the weights."""
    joint = problem.log_resp(ready, block)
    lost = ~np.isfinite(joint.max(axis=0))
    if lost.any():
        joint[:, lost] = ready.log_weights[:, None]
    softmax_columns(joint)
    return joint


def entropy_of(resp: Array) -> Array:
    """(n,) entropy of responsibilities (n, K), in nats."""
    return -(resp * np.log(np.maximum(resp, 1e-300))).sum(axis=1)
