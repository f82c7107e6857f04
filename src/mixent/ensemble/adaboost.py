"""AdaBoost.M1 (Freund and Schapire 1996), as document 004 prints it in section 3.1.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mixent.base.delegation import aligned_proba, features_for, places
from mixent.base.params import check_flag
from mixent.core.arrays import Array
from mixent.data import Table
from mixent.ensemble.base_estimators import HALF, TINY, Trainer
from mixent.ensemble.boosting import FAINT, BaseBoosting, Rows, log_odds, run_stages


class AdaBoostM1Classifier(BaseBoosting):
    """AdaBoost.M1: classifiers trained in turn, each on the rows that the last ones got wrong.

    Stage m is a base G_m trained with weights w. With e its share of the weight that it gets wrong,

        alpha_m = ln((1 - e) / e),   w_t <- w_t exp(alpha_m [G_m(x_t) != y_t]),  normalized,

    and the decision is argmax_c s_c,  s_c = sum_m alpha_m [G_m(x) = c].

    Maximizes stage by stage, with two classes, y = +-1 and F = 1/2 sum_m alpha_m G_m,

        - log sum_t v_t exp(-y_t F(x_t)),

    v the shares of `sample_weight`: given G_m this alpha_m is the best, and adds -log(2 sqrt(e (1 - e))) > 0, so the
    value never falls. With more classes the same product of 2 sqrt(e (1 - e)) bounds the training error (`bound_`).
    After each update G_m errs on just half of the weight.

    Boosting ends early where e >= 1/2 (more classes ask for the same half) and that stage is left out, and where e = 0,
    for there is nothing left to learn from. A first stage with e >= 1/2 is kept, alone, with a warning.

    The probabilities are the logistic link of Friedman, Hastie and Tibshirani (2000): 1 / (1 + exp(-2 F)) for two
    classes, the softmax of the votes s_c for more. They grow over-confident with the number of stages, as the votes
    add up without bound; `MaxEntStackingClassifier.from_boosting` is the way to calibrated ones.

    Parameters
    ----------
    estimator : classifier, optional
        The base. Default: `MixtureClassifier(1, "VVI")`, Gaussian naive Bayes that takes categories, missing values and
        weights.
    n_estimators : int
        Most stages.
    resample : "auto", True or False
        Whether a stage is trained on n rows drawn with the weights as probabilities, instead of on all rows with their
        weights; errors are of all rows either way. "auto": only if the base takes no `sample_weight`. Which rows are
        drawn depends on their order; where the stage then errs on half of the weight or more, they are drawn again, up
        to ten times, before boosting ends.
    restart : bool
        Instead of ending early, begin anew: the weights become those of a bootstrap of the rows (Bauer and Kohavi
        1999). The stage that errs on half of the weight is left out, the one without an error is kept. More stages for
        a combination to choose from; the exponential loss is no guide any more.
    random_state : int, RandomState or None
        For the draw, and for every stage whose base has a `random_state`; None leaves the latter as the base has it.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    estimators_ : list of M fitted classifiers
    alphas_ : (M,) array
        ln((1 - e) / e). With e = 0, as if half a row were wrong; for a first stage with e >= 1/2, what makes its
        probabilities right on average, ln((C - 1)(1 - e) / e), or next to nothing where that is not positive.
    errors_ : (M,) array
        e of each stage.
    bound_ : (M,) array
        Running product of 2 sqrt(e (1 - e)): the weighted training error is never above it, and it never rises. NaN
        from the first restart on.
    restarts_ : list of int
        Positions of the stages that began anew.
    stopped_ : str or None
        Why it ended before `n_estimators` stages.
    classes_, class_prior_
        Class labels and their share of the training weight.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent.ensemble import AdaBoostM1Classifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostM1Classifier(n_estimators=10).fit(X, y)
    >>> model.score(X, y) > model.estimators_[0].score(X, y)
    True
    >>> bool(1 - model.score(X, y) <= model.bound_[-1])
    True
    """

    estimators_: list
    alphas_: Array  # (M,)
    errors_: Array  # (M,)
    bound_: Array  # (M,)
    stopped_: str | None
    restarts_: list

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 50,
        *,
        resample: str | bool = "auto",
        restart: bool = False,
        random_state: Any = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.resample = resample
        self.restart = restart
        self.random_state = random_state
        self.progress = progress

    def _check(self) -> None:
        check_flag("restart", self.restart)

    def _boost(self, rows: Rows, trainer: Trainer, n_stages: int, show: Any) -> None:
        stages: list[tuple[Any, float, float]] = []  # classifier, alpha, e
        anew: list[int] = []

        def take(stage: Any, wrong: np.ndarray, error: float, weight: Array) -> Array:
            alpha = _vote(max(error, rows.least_error), len(rows.classes))
            stages.append((stage, alpha, error))
            return _moved(weight, wrong, alpha)

        def fresh(number: int) -> Array:
            anew.append(number)
            return trainer.bootstrap(number, rows.codes, rows.weight)

        told = None if show is None else lambda number, text: show(number + 1, n_stages, text)
        y = rows.classes[rows.codes]
        again = fresh if self.restart else None
        self.stopped_ = run_stages(trainer, y, rows.weight, n_stages, rows.least_error, told, take, again)
        estimators, alphas, errors = zip(*stages)
        self.estimators_ = list(estimators)
        self.alphas_, self.errors_ = np.array(alphas), np.array(errors)
        self.restarts_ = [number for number in anew if number < len(stages)]
        self.bound_ = _bound(self.alphas_, self.errors_)
        self.bound_[min(self.restarts_, default=len(stages)) :] = np.nan

    def _first_errors(self) -> list[float]:
        return [float(self.errors_[0])]

    def _instead(self) -> str:
        return ", or WeightBoostClassifier, which has two classes at a time" if len(self.classes_) > 2 else ""

    def _staged_joint(self, X: Table) -> Iterator[Array]:
        """The votes s_c, (n, C), in one array that grows."""
        rows = np.arange(X.n_rows)
        votes = np.zeros((len(rows), len(self.classes_)))
        for stage, alpha in zip(self.estimators_, self.alphas_):
            votes[rows, places(stage.predict(features_for(stage, X)), self.classes_)] += alpha
            yield votes

    def _joint(self, X: Table) -> Array:
        *_, votes = self._staged_joint(X)
        return votes

    def stage_proba(self, X: Any) -> Array:
        """The output of every stage.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (M, n, C) array: the stage's probabilities (0 for a class it was not shown), or one-hot decisions where it has
        none. Columns in the order of `classes_`.
        """
        table = self._read(X)
        return np.stack([aligned_proba(stage, table, self.classes_, decisions=True) for stage in self.estimators_])


def _vote(error: float, n_classes: int) -> float:
    """alpha: as printed; of a first stage with e >= 1/2, what makes its own probabilities right."""
    if error < HALF:
        return log_odds(error)
    return max(log_odds(error) + float(np.log(n_classes - 1)), FAINT) if error < 1 else FAINT


def _moved(weight: Array, wrong: np.ndarray, alpha: float) -> Array:
    """Weights after a stage, normalized: half of them on what it got wrong."""
    weight = np.where(wrong, weight * np.exp(alpha), weight)
    return np.maximum(weight / weight.sum(), TINY)


def _bound(alphas: Array, errors: Array) -> Array:
    """(M,) product of what each stage multiplies the exponential loss by: 2 sqrt(e (1 - e)) at the printed alpha."""
    factor = (1 - errors) * np.exp(-alphas / 2) + errors * np.exp(alphas / 2)
    return np.cumprod(np.where(errors < HALF, factor, 1.0)).astype(float)
