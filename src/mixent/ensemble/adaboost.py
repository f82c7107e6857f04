"""AdaBoost.M1 (Freund and Schapire 1996; document 004, section 3.1.2)."""

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
    """AdaBoost.M1: a weighted vote of classifiers, each trained with more weight on the errors of the previous ones.

    Stage m is a base classifier G_m trained with weights w [1]_ [2]_. With e its weighted training error,

        alpha_m = ln((1 - e) / e),   w_t <- w_t exp(alpha_m [G_m(x_t) != y_t]),  normalized,

    and the prediction is argmax_c s_c,  s_c = sum_m alpha_m [G_m(x) = c].

    With two classes, y = +-1 and F = 1/2 sum_m alpha_m G_m, boosting minimizes the exponential loss stage by stage.
    Maximizes

        - log sum_t v_t exp(-y_t F(x_t)),

    where v is `sample_weight`, normalized. Given G_m, this alpha_m is optimal and increases the objective by
    -log(2 sqrt(e (1 - e))) > 0, so it never falls. With more classes, the product of 2 sqrt(e (1 - e)) bounds the
    training error (`bound_`). After each update, the weighted error of G_m is exactly one half.

    Boosting stops early at a stage with e >= 1/2 (for any number of classes), which is discarded, and at a stage with
    e = 0, since no errors are left. A first stage with e >= 1/2 is used alone, with a warning.

    The probabilities are given by the logistic link of [3]_: 1 / (1 + exp(-2 F)) for two classes, the softmax of the
    votes s_c for more. They become overconfident with many stages, because the votes grow without bound;
    `MaxEntStackingClassifier.from_boosting` combines the stages to calibrated probabilities.

    Parameters
    ----------
    estimator : classifier, default=None
        Classifier that is fitted in every stage (base classifier). None: `MixtureClassifier(1, "VVI")`, a Gaussian
        naive Bayes classifier that supports categories, missing values and weights.
    n_estimators : int, default=50
        Maximum number of stages.
    resample : "auto" or bool, default="auto"
        Whether a stage is trained on n rows drawn with the weights as probabilities, rather than on all rows with their
        weights; its error is computed on all rows in both cases. "auto": only if the base classifier does not support
        `sample_weight`. The drawn rows depend on the order of the rows. If the weighted error of the stage is then one
        half or more, rows are drawn again, up to ten times, before boosting stops.
    restart : bool, default=False
        Instead of stopping early, continue with the weights of a bootstrap sample of the rows [4]_. A stage with an
        error of one half or more is discarded, a stage without errors is kept. This yields more stages for
        `MaxEntStackingClassifier` to combine; the bound on the training error no longer holds.
    random_state : int, RandomState or None, default=None
        Seed of the draws, and of every stage whose base classifier has a `random_state`. None leaves the latter
        unchanged.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    estimators_ : list of classifiers
        The M fitted stages.
    alphas_ : ndarray of shape (M,)
        Weights of the votes, ln((1 - e) / e). A stage with e = 0 is treated as if half a row were wrong; for a first
        stage with e >= 1/2, ln((C - 1)(1 - e) / e), which calibrates its probabilities on average, or a tiny positive
        weight if that is not positive.
    errors_ : ndarray of shape (M,)
        Weighted training error e of each stage.
    bound_ : ndarray of shape (M,)
        Cumulative product of 2 sqrt(e (1 - e)), an upper bound on the weighted training error that never increases. NaN
        from the first restart on.
    restarts_ : list of int
        Positions of the stages at which boosting was restarted.
    stopped_ : str or None
        Why boosting stopped before `n_estimators` stages.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class frequencies of the training rows.
    prior_shift_ : ndarray of shape (n_classes,)
        Shift of the log-odds by `adjust_priors`.
    schema_ : Schema
        Names, types and categories of the columns.
    background_ : Background
        The training rows, at most 50, with which `explain` compares a row.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    WeightBoostClassifier : Boosting with an input-dependent regularizer.
    MaxEntStackingClassifier : Combines the stages by maximum entropy.
    HMMStackingClassifier : Combines the stages by hidden Markov models.
    sklearn.ensemble.AdaBoostClassifier : AdaBoost-SAMME of scikit-learn.

    References
    ----------
    .. [1] Freund, Y. and Schapire, R. E. (1996). Experiments with a new boosting algorithm. International Conference on
       Machine Learning.
    .. [2] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Section 3.1.2 (document 004).
    .. [3] Friedman, J., Hastie, T. and Tibshirani, R. (2000). Additive logistic regression: a statistical view of
       boosting. The Annals of Statistics, 28(2).
    .. [4] Bauer, E. and Kohavi, R. (1999). An empirical comparison of voting classification algorithms: bagging,
       boosting, and variants. Machine Learning, 36.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mixent import AdaBoostM1Classifier
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
        restarts: list[int] = []

        def add(stage: Any, wrong: np.ndarray, error: float, weight: Array) -> Array:
            alpha = _vote(max(error, rows.least_error), len(rows.classes))
            stages.append((stage, alpha, error))
            return _updated_weights(weight, wrong, alpha)

        def restart(number: int) -> Array:
            restarts.append(number)
            return trainer.bootstrap(number, rows.codes, rows.weight)

        progress = None if show is None else lambda number, text: show(number + 1, n_stages, text)
        y = rows.classes[rows.codes]
        again = restart if self.restart else None
        self.stopped_ = run_stages(trainer, y, rows.weight, n_stages, rows.least_error, progress, add, again)
        estimators, alphas, errors = zip(*stages)
        self.estimators_ = list(estimators)
        self.alphas_, self.errors_ = np.array(alphas), np.array(errors)
        self.restarts_ = [number for number in restarts if number < len(stages)]
        self.bound_ = _bound(self.alphas_, self.errors_)
        self.bound_[min(self.restarts_, default=len(stages)) :] = np.nan

    def _first_errors(self) -> list[float]:
        return [float(self.errors_[0])]

    def _alternative(self) -> str:
        return ", or WeightBoostClassifier, which separates one class at a time" if len(self.classes_) > 2 else ""

    def _staged_joint(self, X: Table) -> Iterator[Array]:
        """The votes s_c, (n, C), accumulated in one array."""
        rows = np.arange(X.n_rows)
        votes = np.zeros((len(rows), len(self.classes_)))
        for stage, alpha in zip(self.estimators_, self.alphas_):
            votes[rows, places(stage.predict(features_for(stage, X)), self.classes_)] += alpha
            yield votes

    def _joint(self, X: Table) -> Array:
        *_, votes = self._staged_joint(X)
        return votes

    def stage_proba(self, X: Any) -> Array:
        """Predictions of every stage.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (M, n, C) array: the probabilities of each stage (0 for a class that was not in its training rows), or one-hot
        labels if it has no probabilities. Columns in the order of `classes_`.
        """
        table = self._read(X)
        return np.stack([aligned_proba(stage, table, self.classes_, decisions=True) for stage in self.estimators_])


def _vote(error: float, n_classes: int) -> float:
    """alpha; for a first stage with e >= 1/2, the value that calibrates its probabilities on average."""
    if error < HALF:
        return log_odds(error)
    return max(log_odds(error) + float(np.log(n_classes - 1)), FAINT) if error < 1 else FAINT


def _updated_weights(weight: Array, wrong: np.ndarray, alpha: float) -> Array:
    """The normalized weights after a stage, half of them on its errors."""
    weight = np.where(wrong, weight * np.exp(alpha), weight)
    return np.maximum(weight / weight.sum(), TINY)


def _bound(alphas: Array, errors: Array) -> Array:
    """(M,) cumulative product of the factors by which each stage reduces the loss: 2 sqrt(e (1 - e)) at its alpha."""
    factor = (1 - errors) * np.exp(-alphas / 2) + errors * np.exp(alphas / 2)
    return np.cumprod(np.where(errors < HALF, factor, 1.0)).astype(float)
