"""Correlations of pairs of sources, shrunk towards their common mean by empirical Bayes.

The estimated correlation r of a pair has the standard error s. Either all sources are independent given the class, or
the true correlations c of the pairs come from one population,

    c ~ (1 - OUTLIERS) N(m, v^2) + OUTLIERS U(0, 1),    m ~ U(0, 1),   v ~ U(0, MAX_SPREAD),

the second with the prior probability DEPENDENT: the errors of sources are rarely independent, and few calibration rows
or items give no evidence of it. A pair with weak evidence then has the typical correlation of the panel instead of
zero, a pair far from the others keeps its own, and a discount needs evidence that outweighs its cost: with independent
sources the posterior mass is on zero. Errors of pairs have a common part (the class priors, rows of calibrations),
which is that of their mean; only the rest is relevant for the differences between pairs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from mixent.core.arrays import Array, log_sum_exp

DEPENDENT = 0.75  # prior probability that the sources are dependent; chosen by simulation
OUTLIERS = 0.02  # prior probability of a pair that is unlike the others
MAX_SPREAD = 0.5  # of the true correlations of the other pairs
N_SPREADS = 26
SMALLEST = 1e-12  # mass between 0 and 1
MIN_OWN = 0.1  # least share of the variance of a pair that is not common to all pairs


def shrunk(r: Array, std: Array, weight: Array, mean: float, mean_std: float) -> tuple[Array, float]:
    """Posterior means (n,) of the correlations of pairs, and that of a further pair.

    `r` (n,) are estimates with standard errors `std` and weights, less than one for pairs of copies; `mean` is their
    weighted mean, with the standard error `mean_std`.
    """
    n_pairs = float(weight.sum())
    n_sources = (1.0 + np.sqrt(1.0 + 8.0 * n_pairs)) / 2.0
    own = std**2 * max(1.0 - mean_std**2 * n_pairs / float(weight @ std**2), MIN_OWN)
    deviation = r - mean
    spread = np.linspace(0.0, MAX_SPREAD, N_SPREADS)[:, None]
    usual = norm.logpdf(deviation, scale=np.sqrt(spread**2 + own)) + np.log1p(-OUTLIERS)  # (T, n)
    outlier = np.log(OUTLIERS) + _log_mass(r, std)
    both = np.logaddexp(usual, outlier)
    # the pairs share the errors of the sources, and are evidence of as many independent ones
    evidence = weight * min(1.0, n_sources / n_pairs)
    log_lik = both @ evidence
    log_factor = float(log_sum_exp(log_lik, axis=0)) - np.log(N_SPREADS)
    log_factor -= float(norm.logpdf(deviation, scale=np.sqrt(own)) @ evidence)
    log_factor += float(_log_mass(np.array(mean), np.array(mean_std)) - norm.logpdf(mean, scale=mean_std))
    dependent = float(expit(logit(DEPENDENT) + log_factor))
    typical = float(_truncated_mean(np.array(mean), np.array(mean_std)))
    kept = spread**2 / (spread**2 + own)
    share = np.exp(usual - both)  # probability that the pair is like the others
    values = share * (typical + kept * deviation) + (1 - share) * _truncated_mean(r, std)
    posterior = np.exp(log_lik - log_sum_exp(log_lik, axis=0))
    return dependent * np.clip(posterior @ values, 0.0, 1.0), dependent * typical


def _log_mass(mean: Array, std: Array) -> Array:
    """Logarithm of the mass of a normal distribution between 0 and 1: the density of  U(0, 1) + N(0, std^2)."""
    return np.log(np.maximum(ndtr((1.0 - mean) / std) - ndtr(-mean / std), SMALLEST))


def _truncated_mean(mean: Array, std: Array) -> Array:
    """Mean of a normal distribution that is truncated to 0 to 1."""
    density = np.exp(-0.5 * (mean / std) ** 2) - np.exp(-0.5 * ((1.0 - mean) / std) ** 2)
    truncated = mean + std * density / np.sqrt(2 * np.pi) * np.exp(-_log_mass(mean, std))
    return np.clip(truncated, 0.0, 1.0)
