"""Probabilities that a source stated on labelled rows: their scale, and a test whether they are calibrated.

With p_tk the probability that the source states for class k on row t, and pi_k the class priors that it contains, the
log-likelihood ratios of the classes are

    a log(p_tk / pi_k) + b_k,

where the power a = 1 and the offsets b = 0 of calibrated probabilities are the center of the prior distribution.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2

from mixent.base.text import percent
from mixent.core.arrays import Array, log_sum_exp

MIN_PROBABILITY = 1e-12  # of a class by a source: zero would override all other sources
POWER_STD, OFFSET_STD = (0.5, 1.0), (0.1, 1.0)  # prior standard deviations of the power and of the offsets
P_CALIBRATED = 0.5  # prior probability that the probabilities are calibrated
FLAT_STD = 100.0  # of the fit of the test, whose power and offsets are finite for a source that is always correct
NEWTON_STEPS, NEWTON_TOL = 100, 1e-12
SIGNIFICANT = 0.01  # level of the test of stated probabilities


class Reliability(NamedTuple):
    """Test whether stated probabilities are calibrated, and the largest deviation.

    With a class as `subject`, `stated` is the mean probability of the class and `observed` its share of the rows; with
    None, they are the mean of the highest probability and the share of rows on which that class is right.
    """

    subject: Hashable | None
    stated: float
    observed: float
    p_value: float

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        stated, observed = percent(self.stated, 0), percent(self.observed, 0)
        if self.subject is None:
            return f"states {stated} on average and is right on {observed} of the calibration rows ({p})"
        return (
            f"states {stated} for class {self.subject} on average, which {observed} of the calibration rows have ({p})"
        )


class Rescaled(NamedTuple):
    """Power and offsets b_k - a log pi_k of log p_k, and the test of the probabilities as they are stated."""

    scale: Array  # (1 + K,)
    reliability: Reliability


def rescaled(values: Array, codes: np.ndarray, prior: Array, classes: tuple) -> Rescaled | None:
    """The scale of probabilities (n, K) with these class priors, from the classes of the rows.

    Classes without rows, or with a prior of zero, have an offset of b = 0. None if fewer than two classes are left.
    """
    counts = np.bincount(codes, minlength=len(classes))
    present = np.flatnonzero((counts > 0) & (prior > 0))
    if len(present) < 2:
        return None
    rows = np.isin(codes, present)
    stated = Stated.of(values[rows][:, present], np.searchsorted(present, codes[rows]), prior[present])
    x = stated.scale
    scale = np.concatenate([x[:1], -x[0] * np.log(np.where(prior > 0, prior, 1.0))])
    scale[1 + present] += x[1:]
    return Rescaled(scale, stated.reliability([classes[k] for k in present]))


def reliability_of_sums(sums: Array, classes: tuple) -> Reliability | None:
    """The test from the sums of stated probabilities (true class, class) alone; None where they show nothing.

    For calibrated probabilities, the sum over the rows of those of class k has the number of rows of class k as its
    expectation, with the covariance  sum_t p_tk ([k = l] - p_tl)  of the differences, and  sum_t p_tk p_tl  is the
    expected sum of class l over the rows of class k. Whether the source is overconfident in all classes alike is not
    visible.
    """
    observed, stated = sums.sum(axis=1), sums.sum(axis=0)
    covariance = np.diag((observed + stated) / 2) - (sums + sums.T) / 2
    variance = np.diag(covariance)
    if not (observed > 0).all() or not variance.all():
        return None
    difference = stated - observed
    statistic = float(difference @ np.linalg.pinv(covariance, rcond=1e-8, hermitian=True) @ difference)
    k = int(np.abs(difference / np.sqrt(variance)).argmax())
    n = observed.sum()
    return Reliability(classes[k], stated[k] / n, observed[k] / n, float(chi2.sf(statistic, len(classes) - 1)))


@dataclass(frozen=True)
class Stated:
    """Log-likelihood ratios as stated, and the classes of the rows."""

    ratio: Array  # (n, K) log(p / pi)
    truth: Array  # (n, K) one-hot

    @staticmethod
    def of(values: Array, codes: np.ndarray, prior: Array) -> Stated:
        return Stated(np.log(np.maximum(values, MIN_PROBABILITY)) - np.log(prior), np.eye(len(prior))[codes])

    @cached_property
    def center(self) -> Array:
        """(1 + K,) power and offsets of calibrated probabilities."""
        return np.array([1.0, *[0.0] * self.truth.shape[1]])

    def posterior(self, x: Array) -> tuple[float, Array]:
        """Log-likelihood of x = (a, b), and the posteriors (n, K), at the class shares of the rows."""
        joint = np.log(self.truth.mean(axis=0)) + x[0] * self.ratio + x[1:]
        joint -= log_sum_exp(joint, axis=1)[:, None]
        return float((joint * self.truth).sum()), np.exp(joint)

    @cached_property
    def scale(self) -> Array:
        """(1 + K,) posterior mean of (a, b), approximately.

        The prior is a mixture: the probabilities are calibrated, or a and b have normal distributions around these
        values with one of several standard deviations. Each part contributes its maximum of the posterior density,
        weighted by its evidence by Laplace's approximation.
        """
        parts = [(self.center, self.posterior(self.center)[0] + np.log(P_CALIBRATED))]
        pairs = [*product(POWER_STD, OFFSET_STD)]
        for stds in pairs:
            x, evidence = self.fitted(*stds)
            parts.append((x, evidence + np.log((1 - P_CALIBRATED) / len(pairs))))
        log_weight = np.array([evidence for _, evidence in parts])
        weight = np.exp(log_weight - log_weight.max())
        return weight @ np.stack([x for x, _ in parts]) / weight.sum()

    @cached_property
    def free(self) -> Array:
        """(1 + K,) maximum likelihood estimate of (a, b), by a flat prior."""
        return self.fitted(FLAT_STD, FLAT_STD, self.center)[0]

    def fitted(self, power_std: float, offset_std: float, start: Array | None = None) -> tuple[Array, float]:
        """x that maximizes  log-likelihood - |(x - center) / std|^2 / 2,  by Newton's method, and its log evidence.

        The objective is concave, and no step decreases it.
        """
        precision = 1.0 / np.array([power_std, *[offset_std] * self.truth.shape[1]]) ** 2

        def objective(x: Array) -> tuple[float, Array]:
            value, q = self.posterior(x)
            return value - 0.5 * float(precision @ (x - self.center) ** 2), q

        x = max(self.center, self.free, key=lambda x: objective(x)[0]) if start is None else start
        value, q = objective(x)
        for _ in range(NEWTON_STEPS):
            residual = self.truth - q
            gradient = np.array([(residual * self.ratio).sum(), *residual.sum(axis=0)]) - precision * (x - self.center)
            step = np.linalg.solve(self.information(q) + np.diag(precision), gradient)
            attempt = objective(x + step)
            while attempt[0] < value and gradient @ step > NEWTON_TOL:
                step = step / 2
                attempt = objective(x + step)
            if attempt[0] < value:  # by rounding
                break
            x, (value, q) = x + step, attempt
            if gradient @ step < NEWTON_TOL:
                break
        determinant = np.linalg.slogdet(self.information(q) + np.diag(precision))[1]
        return x, value + 0.5 * float(np.log(precision).sum() - determinant)

    def information(self, q: Array) -> Array:
        """(1 + K, 1 + K) Fisher information of (a, b) at posteriors q."""
        weighted = q * self.ratio
        mean = weighted.sum(axis=1)
        out = np.empty((1 + q.shape[1],) * 2)
        out[0, 0] = (weighted * self.ratio).sum() - mean @ mean
        out[0, 1:] = out[1:, 0] = (weighted - q * mean[:, None]).sum(axis=0)
        out[1:, 1:] = np.diag(q.sum(axis=0)) - q.T @ q
        return out

    def reliability(self, classes: list[Any]) -> Reliability:
        """Likelihood-ratio test of a = 1 and b = 0, with K degrees of freedom, at the class shares of the rows.

        The largest deviation is that with most standard errors, among those of the classes and that of the highest
        probability.
        """
        K = len(classes)
        value, q = self.posterior(self.center)
        best = self.posterior(self.free)[0]
        top = q.max(axis=1)
        right = self.truth[np.arange(len(q)), q.argmax(axis=1)]
        stated, observed = np.column_stack([q, top]), np.column_stack([self.truth, right])
        error = np.sqrt(np.maximum((stated * (1 - stated)).sum(axis=0), 1e-12))
        largest = int(np.abs((stated - observed).sum(axis=0) / error).argmax())
        subject = None if largest == K else classes[largest]
        p_value = float(chi2.sf(2 * max(best - value, 0.0), K))
        return Reliability(subject, float(stated[:, largest].mean()), float(observed[:, largest].mean()), p_value)
