"""Base classifiers of a boosting ensemble: checks, and training with weights or by resampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor

from mixent.base.delegation import features_for, weight_argument
from mixent.core.arrays import Array
from mixent.data import take_rows

DRAWS = 10  # most draws of the rows of one stage
HALF = 0.5 - 1e-9  # an error of one half, up to rounding
TINY = 1e-300  # least weight of a row: many classifiers fail if all weights of a class are zero


def default_base() -> Any:
    """A Gaussian naive Bayes classifier that supports categories, missing values and weights, and can be saved."""
    from mixent.mixtures.classifier import MixtureClassifier

    return MixtureClassifier(1, "VVI")


def read_base(estimator: Any) -> Any:
    """The given base classifier, or the default; an error if it is not a classifier."""
    if estimator is None:
        return default_base()
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance of a classifier; got the class {estimator.__name__}")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict") or is_regressor(estimator):
        raise TypeError(f"estimator must be a classifier with fit and predict; got {type(estimator).__name__}")
    return estimator


@dataclass(frozen=True)
class Trainer:
    """Trains copies of a base classifier on the same rows with changing weights.

    Parameters
    ----------
    base : classifier, not fitted
    X : table of n rows, in the form that the base classifier expects
    total : float
        Sum of the weights passed to the base classifier: the total weight of the training rows, because a prior or
        penalty is relative to it. With equal weights, a stage equals the base classifier trained alone.
    argument : str or None
        Name of the `fit` argument for weights; None: n rows are drawn with replacement, with the weights as
        probabilities.
    seeds : list of int
        Seed of each stage, for the draw of rows and for the base classifier; the same for all classes.
    random_names : tuple of str
        Parameters of the base classifier that receive the seed.
    """

    base: Any
    X: Any
    total: float
    argument: str | None
    seeds: list[int]
    random_names: tuple[str, ...]

    @classmethod
    def of(cls, base: Any, X: Any, total: float, n_stages: int, resample: Any, random_state: Any) -> Trainer:
        """Check `resample` ("auto", True or False) and draw the seeds."""
        argument = _resampling(resample, base)
        names = tuple(n for n in base.get_params() if n == "random_state" or n.endswith("__random_state"))
        seeds = _seeds(random_state, n_stages)
        return cls(base, features_for(base, X), total, argument, seeds, () if random_state is None else names)

    def stage(self, number: int, y: np.ndarray, weight: Array) -> tuple[Any, np.ndarray]:
        """A stage trained on labels y with weights that sum to one, and (n,) bool: the rows it misclassifies.

        With resampling, an error of one half or more can be due to the draw; rows are then drawn again.
        """
        draws = 1 if self.argument is not None else DRAWS
        for draw in range(draws):
            stage = self._fit(number, y, weight, draw)
            wrong = stage.predict(self.X) != y
            if weight[wrong].sum() < HALF:
                break
        return stage, wrong

    def bootstrap(self, number: int, codes: np.ndarray, weight: Array) -> Array:
        """Weights of a bootstrap sample of the rows, which sum to one; every row keeps a tiny weight."""
        rng = np.random.default_rng((self.seeds[min(number, len(self.seeds) - 1)], 1))
        counts = np.bincount(drawn_rows(rng, codes, weight), minlength=len(weight)).astype(float)
        return np.maximum(counts / counts.sum(), TINY)

    def _fit(self, number: int, y: np.ndarray, weight: Array, draw: int) -> Any:
        stage = clone(self.base)
        if self.random_names:
            stage.set_params(**dict.fromkeys(self.random_names, self.seeds[number]))
        if self.argument is not None:
            stage.fit(self.X, y, **{self.argument: weight * self.total})
        else:
            rows = drawn_rows(np.random.default_rng((self.seeds[number], draw)), y, weight)
            stage.fit(take_rows(self.X, rows), y[rows])
        return stage


def _resampling(resample: Any, base: Any) -> str | None:
    """Name of the `fit` argument for weights, or None for resampling."""
    if isinstance(resample, (bool, np.bool_)):
        argument = weight_argument(base)
        if not resample and argument is None:
            raise ValueError(
                f"resample=False requires a base classifier with sample_weight, which {type(base).__name__} does not "
                "support; set resample='auto', or choose another base classifier"
            )
        return None if resample else argument
    if isinstance(resample, str) and resample == "auto":
        return weight_argument(base)
    raise ValueError(f"resample must be 'auto', True or False; got {resample!r}")


def _seeds(random_state: Any, n_stages: int) -> list[int]:
    from sklearn.utils import check_random_state

    return check_random_state(random_state).randint(2**31 - 1, size=n_stages).tolist()


def drawn_rows(rng: np.random.Generator, y: np.ndarray, weight: Array) -> np.ndarray:
    """n rows drawn with replacement, with the weights as probabilities, from at least two classes.

    Few classifiers can be trained on a single class: if all drawn rows have the same class, the first is replaced by a
    row of another class.
    """
    sums = np.cumsum(weight)
    rows = np.searchsorted(sums, rng.random(len(weight)) * sums[-1], side="right")
    rows = np.minimum(rows, len(weight) - 1)  # the last sum is subject to rounding
    others = np.flatnonzero(y != y[rows[0]])
    if not (y[rows] != y[rows[0]]).any():
        rows[0] = rng.choice(others, p=weight[others] / weight[others].sum())
    return rows
