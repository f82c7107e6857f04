"""The base estimators of an ensemble: how they take weights, their outputs, how one is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from mixent.base.delegation import features_for, weight_argument
from mixent.core.arrays import Array
from mixent.data import take_rows

DRAWS = 10  # of the rows of one stage
HALF = 0.5 - 1e-9  # an error of one half, but for rounding
TINY = 1e-300  # least weight of a row: with none at all in a class many bases fail


def default_base() -> Any:
    """Gaussian naive Bayes that takes categories, missing values and weights, and that can be saved."""
    from mixent.mixtures.classifier import MixtureClassifier

    return MixtureClassifier(1, "VVI")


def read_base(estimator: Any) -> Any:
    """The user's base, or the default; refused if it is no classifier."""
    if estimator is None:
        return default_base()
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be a classifier; got the class {estimator.__name__}: call it to make one")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict") or is_regressor(estimator):
        raise TypeError(f"estimator must be a classifier, with fit and predict; got {type(estimator).__name__}")
    return estimator


@dataclass(frozen=True)
class Trainer:
    """Trains copies of one base on the same rows with changing weights.

    Parameters
    ----------
    base : classifier, not fitted
    X : table of n rows, as the base takes it
    total : float
        What the weights a base gets add up to: the weight of the training rows, since a base with a prior or a penalty
        counts them against it. At even weights a stage is the base trained by itself.
    argument : str or None
        Name under which the base takes weights; None: n rows are drawn with replacement, weights as probabilities.
    seeds : list of int
        One for each stage, the same whatever the classes: for the draw of rows, and for what is random in the base.
    random_names : tuple of str
        Parameters of the base that get the seed.
    """

    base: Any
    X: Any
    total: float
    argument: str | None
    seeds: list[int]
    random_names: tuple[str, ...]

    @classmethod
    def of(cls, base: Any, X: Any, total: float, n_stages: int, resample: Any, random_state: Any) -> Trainer:
        """Read `resample` ("auto", True or False) and draw the seeds."""
        argument = _resampling(resample, base)
        names = tuple(n for n in base.get_params() if n == "random_state" or n.endswith("__random_state"))
        seeds = _seeds(random_state, n_stages)
        return cls(base, features_for(base, X), total, argument, seeds, () if random_state is None else names)

    def stage(self, number: int, y: np.ndarray, weight: Array) -> tuple[Any, np.ndarray]:
        """A stage trained on labels y with weights that sum to one, and (n,) bool the rows it gets wrong.

        Where rows are drawn, that one errs on half of the weight or more may be due to the draw: then another is tried.
        """
        draws = 1 if self.argument is not None else DRAWS
        for draw in range(draws):
            stage = self._fit(number, y, weight, draw)
            wrong = stage.predict(self.X) != y
            if weight[wrong].sum() < HALF:
                break
        return stage, wrong

    def bootstrap(self, number: int, codes: np.ndarray, weight: Array) -> Array:
        """Weights of rows drawn with replacement, which sum to one; every row keeps a trace."""
        rng = np.random.default_rng((self.seeds[min(number, len(self.seeds) - 1)], 1))
        counts = np.bincount(drawn_rows(rng, codes, weight), minlength=len(weight)).astype(float)
        return np.maximum(counts / counts.sum(), TINY)

    def _fit(self, number: int, y: np.ndarray, weight: Array, draw: int) -> Any:
        stage = clone(self.base)
        if self.random_names:
            stage.set_params(**dict.fromkeys(self.random_names, self.seeds[number]))
        if self.argument is not None:
            return stage.fit(self.X, y, **{self.argument: weight * self.total})
        rows = drawn_rows(np.random.default_rng((self.seeds[number], draw)), y, weight)
        return stage.fit(take_rows(self.X, rows), y[rows])


def _resampling(resample: Any, base: Any) -> str | None:
    """The argument that takes weights, or None where rows are to be drawn instead."""
    if isinstance(resample, (bool, np.bool_)):
        argument = weight_argument(base)
        if not resample and argument is None:
            raise ValueError(
                f"resample=False needs a base whose fit takes sample_weight, and {type(base).__name__} takes none; "
                "set resample='auto', or choose another base"
            )
        return None if resample else argument
    if isinstance(resample, str) and resample == "auto":
        return weight_argument(base)
    raise ValueError(f"resample must be 'auto', True or False; got {resample!r}")


def _seeds(random_state: Any, n_stages: int) -> list[int]:
    from sklearn.utils import check_random_state

    return check_random_state(random_state).randint(2**31 - 1, size=n_stages).tolist()


def drawn_rows(rng: np.random.Generator, y: np.ndarray, weight: Array) -> np.ndarray:
    """n rows drawn with replacement, the weights as probabilities; at least one of a second class.

    Few bases can be trained on one class alone: a draw of a single class has its first row replaced by one of the rest.
    """
    sums = np.cumsum(weight)
    rows = np.searchsorted(sums, rng.random(len(weight)) * sums[-1], side="right")
    rows = np.minimum(rows, len(weight) - 1)  # rounding of the last sum
    others = np.flatnonzero(y != y[rows[0]])
    if not (y[rows] != y[rows[0]]).any():
        rows[0] = rng.choice(others, p=weight[others] / weight[others].sum())
    return rows
