"""The paired t test of two methods on the rows of a cross-validation, and the interval of one method's mean loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mixent.base.params import check_choice, check_positive
from mixent.base.result import Result
from mixent.data import row_weights
from mixent.evaluate.paired import check_confidence, finite, ratio_of, two_sided_p
from mixent.evaluate.scores import METRICS
from mixent.evaluate.text import better, digits_of, p_text, verdict, words_of

BETWEEN = 0.1  # share of the variance over rows that is added for the variance between training sets


@dataclass(frozen=True, repr=False)
class RowTest(Result):
    """Mean difference of two methods over rows, with its interval; `str()` is a sentence."""

    _title = "Paired t test on rows"
    _shown = ("names", "metric", "mean", "p_value")

    mean: float  # of loss(a) - loss(b): below 0, a is better
    std_error: float
    p_value: float  # two-sided
    interval: tuple[float, float]
    confidence: float
    dof: float  # effective number of independent rows (groups), less 1
    n_rows: int  # on which both were scored
    names: tuple[str, str] = ("a", "b")
    metric: str | None = None
    scores: tuple[float, float] | None = None

    @property
    def t(self) -> float:
        """The mean in standard errors."""
        return ratio_of(self.mean, self.std_error)

    def __str__(self) -> str:
        _, factor, _, unit = words_of(self.metric)
        low, high = (f"{factor * end + 0.0:.{digits_of(self.interval, factor)}f}" for end in self.interval)
        how = f"paired t test on {self.n_rows} rows, p {p_text(self.p_value)}"
        return (
            f"{better(self.mean, self.names, self.metric, self.scores)} {verdict(self.p_value, how)} "
            f"{100 * self.confidence:g} % interval of {self.names[0]} - {self.names[1]}: {low} to {high}{unit}."
        )


def row_t_test(
    differences: Any,
    *,
    sample_weight: Any = None,
    groups: Any = None,
    bound: float = 0.0,
    mean: float | None = None,
    confidence: float = 0.95,
    names: tuple[str, str] = ("a", "b"),
    metric: str | None = None,
    scores: tuple[float, float] | None = None,
) -> RowTest:
    """t test and interval of the mean difference in loss of two methods, from the losses of all out-of-fold rows.

    The estimand is the difference in expected loss of the two *procedures*, averaged over training sets of this size
    and over rows. For the difference d_i in loss of row i, with the model whose training fold does not contain it,

        mean = sum_i d_i / n,    se^2 = (1.1 s^2 + d_max^2 / n) / n,    s^2 = sum_i (d_i - mean)^2 / (n - 1),

    and t = mean / se has n - 1 degrees of freedom. d_max = max_i |d_i|, but at least `bound`.

    *Why rows, and not folds.* Let h_i be the loss difference of row i at the expected fit and psi_j the (scaled)
    effect that row j in the training set has on the mean of all other rows. To first order, for folds of size m = n / K,

        mean = (1/n) sum_i (h_i + psi_i),    mean of fold k = const + (1/m) sum_{i in k} (h_i - psi_i / (K - 1)).

    So the variance sought is Var(h + psi) / n. The variance between folds estimates Var(h - psi / (K - 1)) / m: it has
    K - 1 degrees of freedom only, and it errs in the wrong direction where psi matters, because a row's effect as a
    training row enters with the opposite sign. No unbiased estimate of Var(h + psi) exists (Bengio and Grandvalet
    2004). For a method that minimizes the loss it is scored by, the gradient of the expected loss at the fit is 0, so
    is psi, and s^2 / n is right to first order (see also Bayle et al. 2020). Terms of higher order, such as the
    variance of the expected loss between training sets, are relatively of order 1 / n.

    *The correction* has two parts. s^2 is increased by a tenth, for the variance of the expected loss between training
    sets: it persists in large tables for methods that average over few rows (trees, nearest neighbors, kernels). And
    half an imagined row is added in each direction, with the largest difference seen. Its share of the variance,
    d_max^2 / (n s^2), is large where few rows decide (small tables, overconfident models with heavy-tailed losses,
    errors that differ in a few rows: there this is the adjusted interval of Agresti and Min 2005) and vanishes as n
    grows. Both were chosen by the simulations in the guide on comparing methods, which also lists where they fail:
    *errors* of methods whose decisions jump from one training set to the next (single trees, averages of few rows)
    are found different too often. Their log-losses are not, unless the method itself chooses between very different
    models, such as the single best split.

    With weights, rows are replaced by w_i d_i / mean(w) and n by the effective number (sum w)^2 / sum w^2; with groups
    (several rows of one patient), by the sums within each group. A row of weight 2 is equivalent to the row twice in
    one group.

    Parameters
    ----------
    differences : (n,) array
        loss(a) - loss(b) of every row, each predicted by models not fitted to it.
    sample_weight : (n,) array, optional
    groups : (n,) array, optional
        Rows with the same value are not independent of each other.
    bound : float, default=0
        Least value of d_max: 1 for errors, which differ by 1 or not at all.
    mean : float, optional
        The mean difference, where it is known better than from these rows, as over repeats of a cross-validation
        (default: the weighted mean of `differences`).
    confidence : float, default=0.95
        Of the interval.
    names, metric, scores
        For the sentence; see `five_by_two_f`.

    Returns
    -------
    RowTest

    Examples
    --------
    >>> import numpy as np
    >>> from mixent.evaluate import row_t_test
    >>> differences = np.tile([0.3, -0.1, 0.1], 50)
    >>> print(row_t_test(differences))
    b is better, by 0.10 on average. Significant at the 5 % level (paired t test on 150 rows, p < 0.001). 95 % interval of a - b: 0.07 to 0.13.
    """  # noqa: E501
    from scipy.special import stdtrit

    gap = finite(differences)
    if gap.ndim != 1 or len(gap) < 2:
        raise ValueError(f"differences must be a list of at least two numbers; got shape {gap.shape}")
    if metric is not None:
        check_choice("metric", metric, METRICS)
    spread = _spread(gap, row_weights(sample_weight, len(gap)), groups)
    largest = max(spread.largest, check_positive("bound", bound, zero=True) / spread.n_effective)
    se = float(np.sqrt((1 + BETWEEN) * spread.variance + largest**2))
    center, dof = spread.mean if mean is None else float(mean), spread.dof
    half = float(stdtrit(dof, 0.5 + check_confidence(confidence) / 2)) * se
    p_value, interval = two_sided_p(ratio_of(center, se), dof), (center - half, center + half)
    return RowTest(center, se, p_value, interval, confidence, dof, len(gap), names, metric, scores)


def loss_interval(
    losses: Any,
    *,
    weight: np.ndarray | None = None,
    groups: Any = None,
    upper: float = np.inf,
    mean: float | None = None,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Interval of the expected loss of one method, inside the range 0 to `upper` of the losses.

    A loss without upper bound has an interval on the log scale, mean * exp(+- t se / mean). One with an upper bound has
    Wilson's interval of the share b = mean / upper from n* = b (1 - b) / se^2 rows, which is the usual one for the
    share of errors. se is the standard error over independent rows (groups).

    Parameters
    ----------
    losses : (n,) array
        Of rows that the method was not fitted to.
    weight : (n,) array, optional
        Weights of the rows, which have been read.
    groups : see `row_t_test`
    upper : float, default=inf
        Largest possible loss: 1 for errors, 2 for the Brier score.
    mean : float, optional
        See `row_t_test`.
    confidence : float, default=0.95

    Returns
    -------
    (low, high)
    """
    from scipy.special import stdtrit

    losses = finite(losses)
    spread = _spread(losses, np.ones(len(losses)) if weight is None else weight, groups)
    center, se = spread.mean if mean is None else float(mean), float(np.sqrt(spread.variance))
    t = float(stdtrit(spread.dof, 0.5 + check_confidence(confidence) / 2))
    if np.isfinite(upper):
        share = min(max(center / upper, 0.0), 1.0)
        n = share * (1 - share) / (se / upper) ** 2 if se > 0 and 0 < share < 1 else spread.n_effective
        low, high = wilson(share, n, t)
        return upper * low, upper * high
    if center <= 0:
        return 0.0, t * se
    return center * float(np.exp(-t * se / center)), center * float(np.exp(t * se / center))


def wilson(share: float, n: float, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share observed in n rows."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(float(middle - half), 0.0), min(float(middle + half), 1.0)


class _Spread(NamedTuple):
    """A weighted mean of rows, its variance over independent groups, and the largest part of one group in it."""

    mean: float
    variance: float
    largest: float
    n_effective: float

    @property
    def dof(self) -> float:
        return max(self.n_effective - 1, 1.0)


def _spread(values: np.ndarray, weight: np.ndarray, groups: Any) -> _Spread:
    share = weight / weight.sum()
    group = np.arange(len(values)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    mass = np.bincount(group, share)
    n = 1 / float(mass @ mass)
    mean = float(share @ values)
    part, residual = np.bincount(group, share * values), np.bincount(group, share * (values - mean))
    variance = n / (n - 1) * float(residual @ residual) if n > 1 else 0.0
    return _Spread(mean, variance, float(np.abs(part).max()), n)
