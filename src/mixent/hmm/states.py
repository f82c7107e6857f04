"""Properties of the states of a fitted hidden Markov model: frequencies, transitions, emissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.core.arrays import Array

if TYPE_CHECKING:
    from mixent.hmm.estimators import HiddenMarkovModel

DOUBLINGS = 60  # squarings of the transition matrix, after which it has converged


def states_of(model: HiddenMarkovModel) -> list[dict[str, Any]]:
    """Return the start probability, shares of the steps, self-transition probability and emissions of each state.

    `share` is the expected share of the steps if X has a sequence per row, otherwise the stationary probability.
    """
    transitions, start = model.transitions_, model.start_
    shared = transitions.ndim == 2  # one matrix for all steps
    long_run = stationary(start, transitions) if shared else None
    share = shares_of_steps(start, transitions, model.n_features_in_) if model.by_row_ else long_run
    emissions = _emissions(model)
    return [
        {
            "state": s,
            "first": float(start[s]),
            "stationary": None if long_run is None else float(long_run[s]),
            "share": None if share is None else float(share[s]),
            "stays": float(transitions[s, s]) if shared else None,
            "emits": emissions[s],
        }
        for s in range(len(start))
    ]


def stationary(start: Array, transitions: Array) -> Array:
    """Return the long-run share of time in each state, (S,), given the start probabilities."""
    step = 0.5 * (transitions + np.eye(len(start)))  # same stationary distribution, without periodicity
    for _ in range(DOUBLINGS):
        step = step @ step
        step /= step.sum(axis=1, keepdims=True)
    return start @ step


def shares_of_steps(start: Array, transitions: Array, length: int) -> Array:
    """Return the expected share of steps in each state, (S,); transitions are (S, S) or (length - 1, S, S)."""
    marginal, total = start, start.copy()
    for t in range(length - 1):
        marginal = marginal @ (transitions if transitions.ndim == 2 else transitions[t])
        total = total + marginal
    return total / length


def _emissions(model: HiddenMarkovModel) -> list[dict[str, Any]]:
    """Return for each state means and standard deviations, or probabilities of categories; empty if precomputed."""
    out: list[dict[str, Any]] = [{} for _ in model.start_]
    if model.emissions == "precomputed":
        return out
    variables = model.variables_
    means, deviations = model.means_, np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    for j, position in enumerate(variables.continuous):
        for s, emits in enumerate(out):
            emits[variables.names[position]] = {"mean": float(means[s, j]), "sd": float(deviations[s, j])}
    for name, table in model.tables_.items():
        values = variables.columns[variables.names.index(name)].categories
        for s, emits in enumerate(out):
            emits[name] = {str(value): float(p) for value, p in zip(values, table[s])}
    return out
