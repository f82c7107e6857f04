"""Prior of hidden Markov models, and checks of their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.params import check_choice, check_count, check_flag, check_positive
from mixent.core.arrays import Array
from mixent.data import Schema
from mixent.families.gaussian.structures import get_structure
from mixent.hmm.init import TOPOLOGIES
from mixent.mixtures.given_start import read_covariances, read_numbers
from mixent.mixtures.options import MixturePrior

KEYS = ("start", "transitions", "means", "covariances", "tables")
FIXED = "fixed"  # key of `init` with the names of the parameters that are not trained
NOT_USED: dict[str, dict[str, Any]] = {  # parameters that are not used with some emissions, and their defaults
    "precomputed": {"covariance": "VVI", "categorical": "auto", "prior": "auto", "smoothing": 1.0},
    "poisson": {"covariance": "VVI", "prior": "auto"},
}


class HMMPrior(MixturePrior):
    """Prior of the states and transitions of a hidden Markov model, in pseudo-rows.

    A number, "auto" or None instead of this object is its `strength`.

    Parameters
    ----------
    strength : "auto", float or None, default="auto"
        Number of pseudo-rows that shrink the covariance of each state towards a common covariance within the states;
        "auto" is the number of numeric variables + 2. None is maximum likelihood.
    smoothing : float, default=1.0
        Number of pseudo-rows of the categorical variables of each state, with the frequencies of all steps; with
        Poisson emissions also the number of pseudo-events of each state, at the mean rate of all steps. 0 is maximum
        likelihood.
    transition_smoothing : float, default=1.0
        Number of pseudo-counts of the first state, and of the transitions from each state, divided evenly among the
        states that the topology allows. 0 is maximum likelihood.

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
        """Raise a ValueError for invalid values."""
        self.rows(0)
        check_positive("smoothing", self.smoothing, zero=True)
        check_positive("transition_smoothing", self.transition_smoothing, zero=True)


def check_options(est: Any) -> None:
    """Raise a ValueError for invalid values of the parameters of both estimators."""
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


def check_emissions(est: Any, choices: tuple[str, ...] = ("fitted", "poisson", "precomputed")) -> None:
    """Raise a ValueError for invalid `emissions` and `init`, and for parameters that are not used with them."""
    check_choice("emissions", est.emissions, choices)
    if isinstance(est.init, dict):
        unknown = [key for key in est.init if key not in (*KEYS, FIXED)]
        if unknown or not est.init:
            got = repr(unknown[0]) if unknown else "an empty dict"
            keys = ", ".join(map(repr, (*KEYS, FIXED)))
            raise ValueError(f"init as a dict must have some of the keys {keys}; got {got}")
        if est.n_init != 1:
            raise ValueError(f"n_init={est.n_init!r} is not used with init as a dict; leave it at 1")
        read_fixed(est.init)
    if est.emissions == "fitted":
        return
    prior = est._group("prior")
    values = {**vars(est), "prior": prior.strength, "smoothing": prior.smoothing}
    for name, default in NOT_USED[est.emissions].items():
        value = values[name]
        if not (isinstance(value, type(default)) and value == default):
            raise ValueError(f"{name}={value!r} is not used with emissions={est.emissions!r}; leave it at {default!r}")
    if est.emissions == "poisson":
        if isinstance(est.init, dict) and "covariances" in {*est.init, *read_fixed(est.init)}:
            raise ValueError("init: covariances are not used with emissions='poisson'; a variance equals its mean")
        return
    if est.n_init != 1 or (isinstance(est.init, str) and est.init != "auto"):
        name = "n_init" if est.n_init != 1 else "init"
        raise ValueError(
            f"{name}={getattr(est, name)!r} is not used with emissions='precomputed'; leave it at its default"
        )
    if isinstance(est.init, dict):
        of_emissions = {*est.init, *read_fixed(est.init)} - {"start", "transitions", FIXED}
        if of_emissions:
            name = sorted(of_emissions)[0]
            raise ValueError(f"init[{name!r}] is not used with emissions='precomputed'; leave it out")


def read_fixed(init: Any, variables: Schema | None = None) -> tuple[str, ...]:
    """Return the names of the parameters that are not trained, in the order of `KEYS`.

    Parameters
    ----------
    init : "auto", "random" or dict
    variables : Schema, optional
        The variables of a step, which must have these parameters.
    """
    names = init.get(FIXED, ()) if isinstance(init, dict) else ()
    names = tuple(names) if isinstance(names, (list, tuple)) else (names,)
    unknown = [name for name in names if name not in KEYS]
    if unknown:
        allowed = ", ".join(map(repr, KEYS))
        raise ValueError(f"init: fixed must be a list of some of {allowed}; got {unknown[0]!r}")
    if variables is not None:
        without = [] if variables.continuous else ["means", "covariances"]
        without += [] if variables.categorical else ["tables"]
        absent = [name for name in names if name in without]
        if absent:
            kind = "categorical" if absent[0] == "tables" else "numeric"
            raise ValueError(f"init: fixed has {absent[0]!r}, but no variable is {kind}; leave it out")
    return tuple(name for name in KEYS if name in names)


def read_start(est: Any, variables: Schema, varying: np.ndarray, n_matrices: int | None) -> dict[str, Array]:
    """Check the initial parameters of the user and return them as arrays.

    Parameters
    ----------
    est : HiddenMarkovModel with a dict as `init`
    variables : Schema
        The variables of a step.
    varying : (d',) array of int
        The numeric variables that vary, to which means and covariances are restricted.
    n_matrices : int or None
        Number of transition matrices if every step has one.
    """
    initial: dict[str, Array] = {}
    init, topology = est.init, est.topology
    S, d = est.n_states, len(variables.continuous)
    if "start" in init:
        initial["start"] = _shares("start", init["start"], ((S,),))
    if "transitions" in init:
        shapes = ((S, S),) if n_matrices is None else ((S, S), (n_matrices, S, S))
        initial["transitions"] = _shares("transitions", init["transitions"], shapes)
    if topology == "left-right":
        invalid_start = "start" in initial and initial["start"][1:].any()
        if invalid_start or ("transitions" in initial and np.tril(initial["transitions"], -1).any()):
            raise ValueError(
                f"init: {'start' if invalid_start else 'transitions'} must agree with topology='left-right': sequences "
                "begin in state 0, and there are no transitions to earlier states"
            )
    for name in ("means", "covariances"):
        if name in init and d == 0:
            raise ValueError(f"init has {name}, but no variable is numeric")
    if "means" in init:
        means = initial["means"] = read_numbers("means", init["means"], (S, d))[:, varying]
        if est.emissions == "poisson" and (means <= 0).any():
            raise ValueError(f"init: means must be > 0 with emissions='poisson'; got {means[means <= 0][0]:.3g}")
    if "covariances" in init:
        initial["covariances"] = read_covariances("covariances", init["covariances"], S, d, varying)
    if "tables" in init:
        initial["tables"] = _tables(init["tables"], S, variables)
    return initial


def _tables(tables: Any, n_states: int, variables: Schema) -> Array:
    names = [variables.names[i] for i in variables.categorical]
    if not names:
        raise ValueError("init has tables, but no variable is categorical")
    if not isinstance(tables, dict):
        if len(names) > 1:
            raise ValueError(f"init: tables must be a dict with an entry for each of {', '.join(map(repr, names))}")
        tables = {names[0]: tables}
    if set(tables) != set(names):
        raise ValueError(
            f"init: tables must have the keys {', '.join(map(repr, names))}; got {', '.join(map(repr, tables))}"
        )
    parts = [_shares("tables", tables[name], ((n_states, size),)) for name, size in zip(names, variables.sizes)]
    return np.concatenate(parts, axis=1)


def _shares(name: str, value: Any, shapes: tuple[tuple[int, ...], ...]) -> Array:
    array = read_numbers(name, value, *shapes)
    if (array < 0).any() or not np.allclose(array.sum(axis=-1), 1.0, rtol=0, atol=1e-6):
        raise ValueError(f"init: {name} must be probabilities that sum to 1 along the last axis")
    return array / array.sum(axis=-1, keepdims=True)
