"""The states of a fitted hidden Markov model in plain values: how often, what follows, what they emit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.core.arrays import Array

if TYPE_CHECKING:
    from mixent.hmm.estimators import HiddenMarkovModel

DOUBLINGS = 60  # of the number of steps after which a chain is taken to have forgotten its start


def states_of(model: HiddenMarkovModel) -> list[dict[str, Any]]:
    """Of each state: its probability at the start, shares of the steps, probability to follow itself, emissions.

    `share` is that of the steps of a sequence where sequences are rows, otherwise the stationary one.
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
    """(S,) share of time in each state in the long run, from where sequences start."""
    step = 0.5 * (transitions + np.eye(len(start)))  # waiting changes no share, and damps states that alternate
    for _ in range(DOUBLINGS):
        step = step @ step
        step /= step.sum(axis=1, keepdims=True)
    return start @ step


def shares_of_steps(start: Array, transitions: Array, length: int) -> Array:
    """(S,) expected share of the steps of a sequence in each state; transitions (S, S) or (length - 1, S, S)."""
    now, total = start, start.copy()
    for t in range(length - 1):
        now = now @ (transitions if transitions.ndim == 2 else transitions[t])
        total = total + now
    return total / length


def _emissions(model: HiddenMarkovModel) -> list[dict[str, Any]]:
    """For each state, mean and standard deviation of numbers, probabilities of categories; empty where not fitted."""
    out: list[dict[str, Any]] = [{} for _ in model.start_]
    if model.emissions == "precomputed":
        return out
    variables = model.variables_
    means, deviations = model.means_, np.sqrt(np.diagonal(model.covariances_, axis1=1, axis2=2))
    for j, place in enumerate(variables.continuous):
        for s, emits in enumerate(out):
            emits[variables.names[place]] = {"mean": float(means[s, j]), "sd": float(deviations[s, j])}
    for name, table in model.tables_.items():
        values = variables.columns[variables.names.index(name)].categories
        for s, emits in enumerate(out):
            emits[name] = {str(value): float(p) for value, p in zip(values, table[s])}
    return out
