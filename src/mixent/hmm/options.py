"""Checks of what a user asks of a hidden Markov model."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.params import check_choice, check_count, check_flag, check_positive
from mixent.core.arrays import Array
from mixent.data import Schema
from mixent.families.gaussian.structures import get_structure
from mixent.hmm.init import TOPOLOGIES
from mixent.mixtures.options import MixturePrior

KEYS = ("start", "transitions", "means", "covariances", "tables")
OF_EMISSIONS = {"covariance": "VVI", "categorical": "auto", "prior": "auto", "smoothing": 1.0}


class HMMPrior(MixturePrior):
    """Pseudo-rows that regularize the states and transitions of a hidden Markov model.

    A number, "auto" or None in place of this object stands for its `strength`.

    Parameters
    ----------
    strength : "auto", float or None
        Pseudo-rows that shrink each state's covariance towards that within the parts of the first start; "auto" takes
        variables + 2. None is plain maximum likelihood.
    smoothing : float
        Pseudo-rows of each state's category tables, spread as in the whole data. 0 is maximum likelihood.
    transition_smoothing : float
        Pseudo-counts of the first state, and of the state that follows each state, spread evenly over what the topology
        allows. 0 is maximum likelihood.

    Examples
    --------
    >>> from mixent import HiddenMarkovModel
    >>> from mixent.options import HMMPrior
    >>> model = HiddenMarkovModel(3, prior=HMMPrior(transition_smoothing=0.1))
    """

    def __init__(
        self, strength: str | float | None = "auto", smoothing: float = 1.0, transition_smoothing: float = 1.0
    ) -> None:
        super().__init__(strength, smoothing)
        self.transition_smoothing = transition_smoothing

    def check(self) -> None:
        """Refuse wrong values."""
        self.rows(0)
        check_positive("smoothing", self.smoothing, zero=True)
        check_positive("transition_smoothing", self.transition_smoothing, zero=True)


def check_options(est: Any) -> None:
    """Refuse wrong values of the parameters that both estimators have."""
    check_count("n_states", est.n_states)
    get_structure(est.covariance)
    check_choice("topology", est.topology, TOPOLOGIES)
    check_choice("transitions", est.transitions, ("shared", "per_step"))
    est._group("prior").check()
    check_count("n_init", est.n_init)
    check_count("max_iter", est.max_iter)
    check_positive("tol", est.tol, zero=True)
    check_flag("accelerate", est.accelerate)
    if isinstance(est.init, str) or not isinstance(est.init, dict):
        check_choice("init", est.init, ("auto", "random"))


def check_emissions(est: Any) -> None:
    """With log-likelihoods given, nothing about emissions is learned."""
    check_choice("emissions", est.emissions, ("fitted", "precomputed"))
    if isinstance(est.init, dict):
        unknown = [key for key in est.init if key not in KEYS]
        if unknown or not est.init:
            what = f"has {unknown[0]!r}" if unknown else "is empty"
            raise ValueError(f"init as a dict has some of the keys {', '.join(map(repr, KEYS))}; it {what}")
        if est.n_init != 1:
            raise ValueError(f"n_init={est.n_init!r} is not used with parameters given as init; leave it at 1")
    if est.emissions == "fitted":
        return
    prior = est._group("prior")
    given = {**vars(est), "prior": prior.strength, "smoothing": prior.smoothing}
    for name, default in OF_EMISSIONS.items():
        value = given[name]
        if not (isinstance(value, type(default)) and value == default):
            raise ValueError(f"{name}={value!r} is not used with emissions='precomputed'; leave it at {default!r}")
    if est.n_init != 1 or (isinstance(est.init, str) and est.init != "auto"):
        name = "n_init" if est.n_init != 1 else "init"
        raise ValueError(
            f"{name}={getattr(est, name)!r} is not used with emissions='precomputed'; leave it at its default"
        )
    if isinstance(est.init, dict) and set(est.init) - {"start", "transitions"}:
        name = sorted(set(est.init) - {"start", "transitions"})[0]
        raise ValueError(f"init gives {name!r}, which is not used with emissions='precomputed'; leave it out")


def read_start(init: Any, n_states: int, variables: Schema, topology: str, n_matrices: int | None) -> dict[str, Array]:
    """Starting parameters given by the user, as arrays of the right shapes.

    Parameters
    ----------
    init : dict
    n_states : int
    variables : Schema
        Of what is emitted.
    topology : str
    n_matrices : int or None
        Transition matrices when every step has its own.
    """
    given: dict[str, Array] = {}
    S, d = n_states, len(variables.continuous)
    if "start" in init:
        given["start"] = _shares("start", init["start"], ((S,),))
    if "transitions" in init:
        shapes = ((S, S),) if n_matrices is None else ((S, S), (n_matrices, S, S))
        given["transitions"] = _shares("transitions", init["transitions"], shapes)
    if topology == "left-right":
        back = "start" in given and given["start"][1:].any()
        if back or ("transitions" in given and np.tril(given["transitions"], -1).any()):
            raise ValueError(
                f"init: {'start' if back else 'transitions'} must keep to topology='left-right': the first state "
                "comes first, and no state is followed by an earlier one"
            )
    for name in ("means", "covariances"):
        if name in init and d == 0:
            raise ValueError(f"init gives {name}, but no variable is a number")
    if "means" in init:
        given["means"] = _numbers("means", init["means"], ((S, d),))
    if "covariances" in init:
        covs = _numbers("covariances", init["covariances"], ((S, d), (S, d, d)))
        least = covs.min() if covs.ndim == 2 else np.linalg.eigvalsh(covs).min()
        if least <= 0:
            raise ValueError(f"init: covariances must be positive (definite); the smallest eigenvalue is {least:.3g}")
        given["covariances"] = covs
    if "tables" in init:
        given["tables"] = _tables(init["tables"], S, variables)
    return given


def _tables(tables: Any, n_states: int, variables: Schema) -> Array:
    names = [variables.names[i] for i in variables.categorical]
    if not names:
        raise ValueError("init gives tables, but no variable is categorical")
    if not isinstance(tables, dict):
        if len(names) > 1:
            raise ValueError(f"init: tables must be a dict with an entry for each of {', '.join(map(repr, names))}")
        tables = {names[0]: tables}
    if set(tables) != set(names):
        raise ValueError(f"init: tables must be of {', '.join(map(repr, names))}; got {', '.join(map(repr, tables))}")
    parts = [_shares("tables", tables[name], ((n_states, size),)) for name, size in zip(names, variables.sizes)]
    return np.concatenate(parts, axis=1)


def _numbers(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> Array:
    wanted = " or ".join(map(str, shapes))
    try:
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init: {name} must be numbers of shape {wanted}; {error}") from error
    if found.shape not in shapes or not np.isfinite(found).all():
        raise ValueError(f"init: {name} must be finite numbers of shape {wanted}; got shape {found.shape}")
    return found


def _shares(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> Array:
    found = _numbers(name, value, shapes)
    if (found < 0).any() or not np.allclose(found.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
        raise ValueError(f"init: {name} must be probabilities that sum to 1 along the last axis")
    return found / found.sum(axis=-1, keepdims=True)
