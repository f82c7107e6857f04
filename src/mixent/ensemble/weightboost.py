"""WeightBoost: boosting with an input-dependent regularizer (Jin, Liu, Si, Carbonell and Hauptmann, ICML 2003)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_expit

from mixent.base.delegation import aligned_proba, features_for
from mixent.base.params import check_positive
from mixent.core.arrays import Array
from mixent.data import Table
from mixent.ensemble.base_estimators import HALF, TINY, Trainer
from mixent.ensemble.boosting import FAINT, BaseBoosting, Rows, log_odds, run_stages


@dataclass(frozen=True)
class BinaryBoosting:
    """One class against another, or against all others: H(x) is positive for it."""

    estimators: list  # M fitted stages
    labels: np.ndarray  # (2,) what the stages call the others, and the class
    share: float  # of the class in the training weight
    alphas: Array  # (M,)
    errors: Array  # (M,) weighted errors W- / (W+ + W-)
    bound: Array  # (M,) mean of exp(-y H) over the training rows after each stage
    stopped: str | None
    beta: float

    def with_models(self, convert: Callable[[Any, str], Any]) -> BinaryBoosting:
        """A copy with other stages."""
        return replace(self, estimators=[convert(stage, "") for stage in self.estimators])

    def staged(self, X: Any) -> Iterator[Array]:
        """H after every stage, (n,)."""
        height: Any = 0.0
        for stage, alpha in zip(self.estimators, self.alphas):
            height = risen(height, alpha, self.signs(stage, X), self.beta)
            yield height

    def height(self, X: Any) -> Array:
        """H, (n,)."""
        *_, last = self.staged(X)
        return last

    def signs(self, stage: Any, X: Any) -> Array:
        """(n,) decisions as +-1."""
        return np.where(stage.predict(features_for(stage, X)) == self.labels[1], 1.0, -1.0)


def risen(height: Array, alpha: float, signs: Array, beta: float) -> Array:
    """H + alpha e^{-|beta H|} h: a stage counts for less where the ones before are sure."""
    return height + alpha * np.exp(-np.abs(beta * height)) * signs


def train(
    trainer: Trainer, rows: Rows, positive: np.ndarray, labels: np.ndarray, n_stages: int, beta: float, show: Any
) -> BinaryBoosting:
    """Boost the rows `positive` (n,) bool against the others."""
    signs = np.where(positive, 1.0, -1.0)
    height = np.zeros(len(signs))
    stages: list[tuple[Any, float, float, float]] = []  # classifier, alpha, e, mean exp(-y H)

    def take(stage: Any, wrong: np.ndarray, error: float, weight: Array) -> Array:
        nonlocal height
        alpha = FAINT if error >= HALF else log_odds(max(error, rows.least_error)) / 2
        height = risen(height, alpha, np.where(wrong, -signs, signs), beta)
        losses = rows.weight * np.exp(-signs * height)
        stages.append((stage, alpha, error, float(losses.sum())))
        weight = losses * np.exp(-np.abs(beta * height))
        return np.maximum(weight / weight.sum(), TINY)

    stopped = run_stages(trainer, labels[positive.astype(int)], rows.weight, n_stages, rows.least_error, show, take)
    estimators, alphas, errors, bound = zip(*stages)
    share = float(rows.weight[positive].sum())
    numbers = np.array(alphas), np.array(errors), np.array(bound)
    return BinaryBoosting(list(estimators), labels, share, *numbers, stopped, beta)


class WeightBoostClassifier(BaseBoosting):
    """WeightBoost: boosting in which a stage counts for less where the ones before it are sure.

    With y = +-1, H_0 = 0 and v the shares of `sample_weight`, stage T trains a base h_T with weights

        w_t  proportional to  v_t exp(-y_t H(x_t) - |beta H(x_t)|),   H = H_{T-1},

    and with W+ and W- the weight it gets right and wrong

        alpha_T = 1/2 ln(W+ / W-),   H_T = H_{T-1} + alpha_T e^{-|beta H_{T-1}|} h_T.

    Rows far from the boundary, outliers among them, have less influence on the next stage, and the new stage has the
    least weight where the others agree. beta = 0 is AdaBoost, with H = F.

    Maximizes stage by stage  - log sum_t v_t exp(-y_t H(x_t)),  by a bound: with 0 <= s = e^{-|beta H|} <= 1, exp being
    convex, exp(-a y h s) <= s exp(-a y h) + 1 - s. Summed with v_t exp(-y_t H), alpha_T makes the right side least,
    and the sum falls by at least (sqrt W+ - sqrt W-)^2, the w taken without normalizing: the value never falls.
    The sum bounds the training error (`bound_`).

    More than two classes: each against all others, and the largest H_c decides. Boosting ends early as in
    `AdaBoostM1Classifier`: where a stage errs on half of the weight or more (it is left out, the first one kept alone
    with a warning), and where it makes no error.

    Probabilities are 1 / (1 + exp(-2 H)), for more classes normalized over them.

    Parameters
    ----------
    estimator : classifier, optional
        The base. Default: `MixtureClassifier(1, "VVI")`, Gaussian naive Bayes that takes categories, missing values and
        weights.
    n_estimators : int
        Most stages, of each class where there are more than two.
    beta : float
        Strength of the regularizer, >= 0. The default had the least mean error of 0, 0.5, 1 and 2 over fourteen
        tables with naive Bayes; the best differs from table to table, and larger ones are less over-confident.
    resample, random_state, progress
        See `AdaBoostM1Classifier`.

    Attributes
    ----------
    binary_boostings_ : tuple of BinaryBoosting
        One for two classes, where the second class is positive; else one for each class, against all others.
    estimators_ : list of M fitted classifiers
    alphas_, errors_ : (M,) arrays
        Weight and weighted error W- / (W+ + W-) of each stage. With W- = 0, alpha is as if half a row were wrong.
    bound_ : (M,) array
        Weighted mean of exp(-y H) after each stage; the training error is never above it, and it never rises.
    stopped_ : str or None
        Why it ended before `n_estimators` stages.
        With more than two classes, each of these five is a list with an entry for each class.
    classes_, class_prior_
        Class labels and their share of the training weight.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent.ensemble import WeightBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = WeightBoostClassifier(n_estimators=10).fit(X, y)
    >>> bool(1 - model.score(X, y) <= model.bound_[-1] < model.bound_[0])
    True
    """

    binary_boostings_: tuple[BinaryBoosting, ...]

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        beta: float = 0.5,
        resample: str | bool = "auto",
        random_state: Any = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.beta = beta
        self.resample = resample
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        check_positive("beta", self.beta, zero=True)

    def _boost(self, rows: Rows, trainer: Trainer, n_stages: int, show: Any) -> None:
        beta = float(self.beta)
        if len(rows.classes) == 2:
            told = None if show is None else lambda m, text: show(m + 1, n_stages, text)
            self.binary_boostings_ = (train(trainer, rows, rows.codes == 1, rows.classes, n_stages, beta, told),)
            return
        every = []
        for c, name in enumerate(rows.classes.tolist()):
            told = None if show is None else _told(show, c, len(rows.classes), n_stages, name)
            every.append(train(trainer, rows, rows.codes == c, np.array([0, 1]), n_stages, beta, told))
        self.binary_boostings_ = tuple(every)

    def _first_errors(self) -> list[float]:
        return [float(one.errors[0]) for one in self.binary_boostings_]

    def _of_each(self, name: str) -> Any:
        found = [getattr(one, name) for one in self.binary_boostings_]
        return found[0] if len(found) == 1 else found

    @property
    def estimators_(self) -> list:
        """Fitted stages."""
        return self._of_each("estimators")

    @property
    def alphas_(self) -> Any:
        """Weights of the stages."""
        return self._of_each("alphas")

    @property
    def errors_(self) -> Any:
        """Weighted errors of the stages."""
        return self._of_each("errors")

    @property
    def bound_(self) -> Any:
        """Weighted mean of exp(-y H) after each stage."""
        return self._of_each("bound")

    @property
    def stopped_(self) -> Any:
        """Why it ended before `n_estimators` stages; None where it did not."""
        return self._of_each("stopped")

    def _staged_joint(self, X: Table) -> Iterator[Array]:
        runs = [one.staged(X) for one in self.binary_boostings_]
        heights = [next(run) for run in runs]
        for _ in range(max(len(one.estimators) for one in self.binary_boostings_)):
            yield _joint_of(heights)
            heights = [next(run, last) for run, last in zip(runs, heights)]  # one that has ended stays where it is

    def _joint(self, X: Table) -> Array:
        return _joint_of([one.height(X) for one in self.binary_boostings_])

    def stage_proba(self, X: Any) -> Array:
        """The output of every stage.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (M, n, C) array, columns in the order of `classes_`: the stage's probabilities, or one-hot decisions where it
        has none. With more than two classes, the outputs of the C bases of a stage for their own class, divided by
        their sum; 1 / C each where that is 0. A class whose boosting has ended earlier is given its share of the
        training weight, which does not depend on the row.
        """
        table = self._read(X)
        if len(self.binary_boostings_) == 1:
            return np.stack([aligned_proba(stage, table, self.classes_, decisions=True) for stage in self.estimators_])
        said = [
            [aligned_proba(stage, table, c.labels, decisions=True)[:, 1] for stage in c.estimators]
            for c in self.binary_boostings_
        ]
        n_rows, n_stages = len(said[0][0]), max(map(len, said))
        proba = np.empty((n_stages, n_rows, len(said)))
        for c, (own, one) in enumerate(zip(said, self.binary_boostings_)):
            proba[: len(own), :, c] = own
            proba[len(own) :, :, c] = one.share
        sums = proba.sum(axis=2, keepdims=True)
        return np.divide(proba, sums, out=np.full_like(proba, 1 / len(said)), where=sums > 0)


def _joint_of(heights: list[Array]) -> Array:
    """log p(class, x) up to a constant: -H and H of two classes, else log 1 / (1 + exp(-2 H)) of each."""
    if len(heights) == 1:
        return np.column_stack([-heights[0], heights[0]])
    return log_expit(2 * np.column_stack(heights))


def _told(show: Any, c: int, n_classes: int, n_stages: int, name: Any) -> Callable[[int, str], None]:
    return lambda m, text: show(c * n_stages + m + 1, n_classes * n_stages, f"{name!r}, {text}")
