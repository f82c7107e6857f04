"""Tests of two methods on one data set, by cross-validation.

All scores are losses, so a difference score(a) - score(b) below 0 means that a is better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.base.delegation import check_classifier
from mixent.base.params import check_choice, check_number, check_positive
from mixent.base.result import Result
from mixent.evaluate.cross_validation import Progress, cross_validate
from mixent.evaluate.records import CrossValidation
from mixent.evaluate.scores import METRICS
from mixent.evaluate.text import better, digits_of, p_text, verdict, without_rounding, words_of


@dataclass(frozen=True, repr=False)
class FTest(Result):
    """What a 5x2cv F test found; `str()` is a sentence."""

    _title = "5x2cv F test"
    _shown = ("names", "metric", "mean", "p_value")

    f: float
    p_value: float  # of F(10, 5)
    differences: np.ndarray  # (5, 2) score(a) - score(b) in both folds of the five replications
    names: tuple[str, str] = ("a", "b")
    metric: str | None = None
    scores: tuple[float, float] | None = None  # mean of a and of b, where known

    @property
    def mean(self) -> float:
        """Mean of the ten differences: below 0, a is better."""
        return float(self.differences.mean())

    @property
    def t(self) -> float:
        """Dietterich's 5x2cv t = p_11 / sqrt(mean_i s_i^2), 5 degrees of freedom: it hangs on the first fold alone."""
        return ratio_of(float(self.differences[0, 0]), float(np.sqrt(_variances(self.differences).mean())))

    @property
    def t_p_value(self) -> float:
        """Two-sided p-value of `t`."""
        return two_sided_p(self.t, 5)

    def __str__(self) -> str:
        how = f"5x2cv F = {self.f:.2f}, p {p_text(self.p_value)}"
        return f"{better(self.mean, self.names, self.metric, self.scores)} {verdict(self.p_value, how)}"


@dataclass(frozen=True, repr=False)
class TTest(Result):
    """Mean difference of two methods with its interval; `str()` is a sentence."""

    _title = "Paired t test"
    _shown = ("names", "metric", "mean", "p_value")

    mean: float  # of score(a) - score(b): below 0, a is better
    std_error: float
    p_value: float  # two-sided
    interval: tuple[float, float]
    confidence: float
    differences: np.ndarray  # (J,)
    test_ratio: float  # test rows for each training row; 0: the differences are independent
    names: tuple[str, str] = ("a", "b")
    metric: str | None = None
    scores: tuple[float, float] | None = None

    @property
    def dof(self) -> int:
        """Degrees of freedom, J - 1."""
        return len(self.differences) - 1

    @property
    def t(self) -> float:
        """The mean in standard errors."""
        return ratio_of(self.mean, self.std_error)

    def __str__(self) -> str:
        _, factor, _, unit = words_of(self.metric)
        low, high = (f"{factor * end + 0.0:.{digits_of(self.interval, factor)}f}" for end in self.interval)
        kind = "corrected t test" if self.test_ratio else "paired t test"
        how = f"{kind}, {len(self.differences)} differences, p {p_text(self.p_value)}"
        return (
            f"{better(self.mean, self.names, self.metric, self.scores)} {verdict(self.p_value, how)} "
            f"{100 * self.confidence:g} % interval of {self.names[0]} - {self.names[1]}: {low} to {high}{unit}."
        )


def five_by_two_f_test(
    a: Any,
    b: Any,
    X: Any,
    y: Any,
    *,
    random_state: Any = 0,
    metric: str = "error",
    sample_weight: Any = None,
    names: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> FTest:
    """Whether two classifiers differ on one data set: the combined 5x2cv F test (Alpaydin 1999).

    Five times the rows are halved at random, class by class, and both methods are fitted to each half and scored on the
    other; see `five_by_two_f` for the statistic. The test is about the methods trained on *half* of these rows.

    Parameters
    ----------
    a, b : classifiers with `predict_proba`, not fitted
    X : array or DataFrame (n, d)
    y : (n,) labels
        Rows without a label are always in training and never scored.
    random_state : int or RandomState
        Halves the rows.
    metric : {"error", "balanced_error", "log_loss", "brier", "calibration"}
    sample_weight : (n,) weights for fitting and scoring, optional
    names : (str, str), optional
        Names to show (default: the names of their classes).
    progress : callable(done, total, text), optional

    Returns
    -------
    FTest

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from mixent.evaluate import five_by_two_f_test
    >>> X, y = load_iris(return_X_y=True)
    >>> found = five_by_two_f_test(GaussianNB(), DecisionTreeClassifier(random_state=0), X, y)
    >>> print(found)
    GaussianNB has the lower error: 4.53 % against 7.33 %. Not significant at the 5 % level (5x2cv F = 1.36, p = 0.39).
    """
    cv, labels = _both(a, b, X, y, 2, 5, random_state, metric, sample_weight, names, progress)
    gap, scores = _gap(cv, labels, metric)
    return five_by_two_f(gap.reshape(5, 2), names=labels, metric=metric, scores=scores)


def five_by_two_f(
    differences: Any,
    *,
    names: tuple[str, str] = ("a", "b"),
    metric: str | None = None,
    scores: tuple[float, float] | None = None,
) -> FTest:
    """The combined 5x2cv F test from the ten differences (Alpaydin 1999).

    f = sum_ij p_ij^2 / (2 sum_i s_i^2),    s_i^2 = (p_i1 - p_i2)^2 / 2,

    for the difference p_ij of the two methods in fold j of replication i, compared with F(10, 5), whose 95 % point is
    4.74. That would be exact if both sums were independent; for independent normal p_ij f is 1/2 + F(5, 5) / 2, and
    beyond 4.74 in 1.75 % of the cases. Differences of real folds are correlated: methods that are equally good
    differed significantly in 3 to 5 % of the cases with 200 rows and more, in 5 to 8 % with 100, in 7 to 11 % with 60.

    Ten zeros have f = 0 and p = 1; where the two folds of every replication agree exactly but are not 0, f is infinite
    and p = 0.

    Parameters
    ----------
    differences : (5, 2) array
        score(a) - score(b), lower scores being better; its scale does not matter.
    names : (str, str)
    metric : str, optional
        What the scores are, for the sentence: one of those of `five_by_two_f_test`.
    scores : (float, float), optional
        Mean scores of a and b, for the sentence.

    Returns
    -------
    FTest
    """
    from scipy.special import fdtrc

    p = finite(differences)
    if p.shape != (5, 2):
        raise ValueError(
            f"differences must have shape (5, 2), a row for each replication; got {p.shape}. For other repeated "
            "cross-validations see corrected_t_test"
        )
    if metric is not None:
        check_choice("metric", metric, METRICS)
    unit = p / (np.abs(p).max() or 1.0)  # f has no unit: squares of tiny differences must not vanish
    f = ratio_of(float((unit**2).sum()), float(2 * _variances(unit).sum()))
    return FTest(f, float(fdtrc(10, 5, f)), p, names, metric, scores)


def ten_by_ten(
    a: Any,
    b: Any,
    X: Any,
    y: Any,
    *,
    random_state: Any = 0,
    metric: str = "error",
    confidence: float = 0.95,
    sample_weight: Any = None,
    names: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> TTest:
    """Difference of two classifiers on one data set by ten times ten-fold cross-validation, with its interval.

    The hundred differences share rows: see `corrected_t_test`. It takes a hundred fits of each method, on nine tenths
    of the rows, where `five_by_two_f_test` takes ten on half.

    Parameters
    ----------
    a, b : classifiers with `predict_proba`, not fitted
    X : array or DataFrame (n, d)
    y : (n,) labels
    random_state : int or RandomState
    metric : {"error", "balanced_error", "log_loss", "brier", "calibration"}
    confidence : float
        Of the interval.
    sample_weight : (n,) weights for fitting and scoring, optional
    names : (str, str), optional
    progress : callable(done, total, text), optional

    Returns
    -------
    TTest
    """
    check_confidence(confidence)
    cv, labels = _both(a, b, X, y, 10, 10, random_state, metric, sample_weight, names, progress)
    gap, scores = _gap(cv, labels, metric)
    ratio = float(np.mean([r["n_test"] / r["n_train"] for r in cv.records]))
    return corrected_t_test(gap, ratio, confidence=confidence, names=labels, metric=metric, scores=scores)


def corrected_t_test(
    differences: Any,
    test_ratio: float,
    *,
    confidence: float = 0.95,
    names: tuple[str, str] = ("a", "b"),
    metric: str | None = None,
    scores: tuple[float, float] | None = None,
) -> TTest:
    """t test and interval of the mean of J differences that share training rows (Nadeau and Bengio 2003).

    se^2 = (1 / J + test_ratio) s^2,    t = mean / se with J - 1 degrees of freedom,

    s^2 being the variance of the differences. The plain 1 / J takes them for independent; in a repeated
    cross-validation they are not, and repeating makes the plain interval as narrow as one likes around a value that is
    still that of one sample.

    Parameters
    ----------
    differences : (J,) array
        score(a) - score(b) of every fold of every repeat, or of every data set.
    test_ratio : float
        Test rows for each training row: 1/9 for ten folds, 1 for two. 0 means that the differences are independent, as
        those of data sets without common rows: the plain paired t test.
    confidence : float
        Of the interval.
    names, metric, scores
        For the sentence; see `five_by_two_f`.

    Returns
    -------
    TTest

    Examples
    --------
    >>> from mixent.evaluate import corrected_t_test
    >>> found = corrected_t_test([0.02, 0.01, 0.03, 0.0, 0.02, 0.01, 0.04, 0.02, 0.0, 0.01], 1 / 9)
    >>> print(found)
    b is better, by 0.016 on average. Significant at the 5 % level (corrected t test, 10 differences, p = 0.022). 95 % interval of a - b: 0.003 to 0.029.
    """  # noqa: E501
    from scipy.special import stdtrit

    gap = finite(differences)
    if gap.ndim != 1 or len(gap) < 2:
        raise ValueError(f"differences must be a list of at least two numbers; got shape {gap.shape}")
    test_ratio = check_positive("test_ratio", test_ratio, zero=True)
    if metric is not None:
        check_choice("metric", metric, METRICS)
    mean, se = float(gap.mean()), float(np.sqrt((1 / len(gap) + test_ratio) * gap.var(ddof=1)))
    half = float(stdtrit(len(gap) - 1, 0.5 + check_confidence(confidence) / 2)) * se
    p_value = two_sided_p(ratio_of(mean, se), len(gap) - 1)
    return TTest(mean, se, p_value, (mean - half, mean + half), confidence, gap, test_ratio, names, metric, scores)


def _both(
    a: Any,
    b: Any,
    X: Any,
    y: Any,
    folds: int,
    repeats: int,
    random_state: Any,
    metric: str,
    sample_weight: Any,
    names: tuple[str, str] | None,
    progress: Progress | None,
) -> tuple[CrossValidation, tuple[str, str]]:
    """Both methods cross-validated on common folds; one that fails anywhere is an error."""
    check_choice("metric", metric, METRICS)
    labels = _names(a, b) if names is None else _two_names(names)
    cv = cross_validate(
        dict(zip(labels, (a, b))),
        X,
        y,
        folds=folds,
        repeats=repeats,
        random_state=random_state,
        sample_weight=sample_weight,
        progress=progress,
    )
    for name, message in cv.failures.items():
        times = sum(bool(r["failed"]) for r in cv.records if r["method"] == name)
        raise RuntimeError(
            f"{name} failed in {times} of {folds * repeats} folds, so there is no test. First: {message}"
        )
    return cv, labels


def _gap(cv: CrossValidation, names: tuple[str, str], metric: str) -> tuple[np.ndarray, tuple[float, float]]:
    first, second = (cv.values(name, metric) for name in names)
    return without_rounding(first - second, first, second), (float(first.mean()), float(second.mean()))


def _names(a: Any, b: Any) -> tuple[str, str]:
    """Names of the classes, of a pipeline that of its last step."""
    from sklearn.pipeline import Pipeline  # takes long to import

    for letter, est in zip("ab", (a, b)):
        check_classifier(letter, est)
    first, second = (type(est[-1] if isinstance(est, Pipeline) else est).__name__ for est in (a, b))
    return (first, second) if first != second else (f"{first} a", f"{second} b")


def _two_names(names: Any) -> tuple[str, str]:
    if isinstance(names, str) or len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names must be two different names, of a and of b; got {names!r}")
    return str(names[0]), str(names[1])


def finite(differences: Any) -> np.ndarray:
    gap = np.asarray(differences, dtype=float)
    if not np.isfinite(gap).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(gap))[0])
        raise ValueError(f"differences must be finite numbers; that at {place} is {gap[place]}")
    return gap


def _variances(p: np.ndarray) -> np.ndarray:
    """s_i^2 of each replication."""
    return (p[:, 0] - p[:, 1]) ** 2 / 2


def ratio_of(above: float, below: float) -> float:
    """above / below; where both are 0, 0."""
    if below == 0:
        return float(np.sign(above)) * np.inf if above else 0.0
    return above / below


def two_sided_p(t: float, dof: float) -> float:
    from scipy.special import stdtr

    return float(2 * stdtr(dof, -abs(t))) if np.isfinite(t) else 0.0


def check_confidence(value: Any) -> float:
    if check_number(value) and 0 < value < 1:
        return float(value)
    raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {value!r}")
