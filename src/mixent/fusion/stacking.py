"""Logistic stacking of correlated sources without common labels (experimental).

With x_ij(k) the evidence of source j on item i for class k, logistic stacking of the scores  f_i(k) = b_k + sum_j t_j
x_ij(k)  maximizes the mean over the items of

    sum_k y_i(k) f_i(k) - log sum_k exp f_i(k),

where y_i are the labels. Only the first term has labels, and it is linear: it needs the class priors p, and one number
for each source,  c_j = E sum_k y(k) x_j(k).  Both are known without a common label, c_j from the posteriors of the
source alone at the priors of the batch, q_ij(k) ~ p_k exp x_ij(k), since the evidence is calibrated:

    c_j = mean_i sum_k q_ij(k) x_ij(k).

The sampling error of c has the covariance  S = diag(sum_k p_k^2 v_jk / n_jk) + H / n,  with v_jk the variance of the
score of class k within the class, n_jk the calibration rows and H the Hessian of the second term. The weights would
amplify it where sources are correlated. So they have a normal prior around a center m, the mean of the discounts of
`discounts` and of their average, which corresponds to a prior covariance  A = s^2 H H + SCALE_STD^2 (H m)(H m)^T  of c:
s is the spread of the weights, and m may be scaled as a whole. c is replaced by its posterior mean, averaged over the
spreads s with their evidence, the density of c under N(g, A + S), where g is the gradient of the second term at m.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array, log_sum_exp
from mixent.fusion.batch import Batch
from mixent.fusion.rules import posterior_of

SPREADS = (0.0, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)  # s, prior standard deviations of the weights
SCALE_STD = 0.7  # of a common factor of all weights
RIDGE = 0.1  # of the weights around their center, in units of the Hessian: keeps them finite for any c
JITTER = 1e-6  # of the Hessian, for sources with identical evidence
GRADIENT = 1e-7  # norm of the gradient at which the search ends
MAX_STEPS = 1000


@dataclass(frozen=True)
class Stacked:
    """Weights of the sources, and the maximum of the objective."""

    trust: Array  # (J,)
    objective: float  # nats per item
    gradient_norm: float  # largest component of the projected gradient


@dataclass(frozen=True)
class StackingProblem:
    """Mean log-likelihood of stacking, with known means instead of labels, and a normal prior of the weights.

    Maximizes, over weights t >= 0 and offsets b,

        sum_k p_k b_k + sum_j t_j c_j - sum_i w_i log sum_k exp f_i(k) - RIDGE (t - m)^T H (t - m) / 2,

    which is concave. The weights w of the items have the sum one.
    """

    scores: Array  # (G, n, K) x
    weight: Array  # (n,) w
    prior: Array  # (K,) p
    means: Array  # (G,) c
    center: Array  # (G,) m
    hessian: Array  # (G, G) H

    def value_and_gradient(self, params: Array) -> tuple[float, Array]:
        """The objective and its gradient with respect to the weights and the offsets of all classes but the first."""
        G = len(self.scores)
        trust, offset = params[:G], np.append(0.0, params[G:])
        logits = np.einsum("j,jnk->nk", trust, self.scores) + offset
        norm = log_sum_exp(logits, axis=1)
        mass = np.exp(logits - norm[:, None]) * self.weight[:, None]
        penalty = RIDGE * self.hessian @ (trust - self.center)
        value = self.prior @ offset + trust @ self.means - self.weight @ norm - 0.5 * penalty @ (trust - self.center)
        slope = self.means - np.einsum("nk,jnk->j", mass, self.scores) - penalty
        return float(value), np.concatenate([slope, (self.prior - mass.sum(axis=0))[1:]])

    def solve(self) -> Stacked:
        """The maximum, by L-BFGS with bounds."""
        from scipy.optimize import minimize

        def loss(params: Array) -> tuple[float, Array]:
            value, gradient = self.value_and_gradient(params)
            return -value, -gradient

        G, K = len(self.scores), len(self.prior)
        log_prior = np.log(self.prior)
        start = np.concatenate([self.center, log_prior[1:] - log_prior[0]])
        bounds = [(0.0, None)] * G + [(None, None)] * (K - 1)
        options = {"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": 0.0, "gtol": GRADIENT}
        solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
        value, gradient = self.value_and_gradient(solution)
        gradient[:G] = np.where(solution[:G] > 0, gradient[:G], np.maximum(gradient[:G], 0.0))
        return Stacked(solution[:G], value, float(np.abs(gradient).max()))


def stack(batch: Batch, discounts: Array, prior: Array) -> Stacked:
    """Weights (J,) of the sources of a batch, from their discounts and the class priors (K,) of the batch.

    Copies with the same original have one weight, divided equally. Weights with a larger sum than the discounts are
    scaled to that sum, because the maximum depends on the calibrations of all sources being right. Sources without
    evidence keep their discounts.
    """
    layout = batch.layout
    used, first, group = np.unique(layout.root, return_index=True, return_inverse=True)
    evidence = batch.product_evidence()
    evidence -= evidence.mean(axis=2, keepdims=True)
    scores = np.zeros((len(used), *evidence.shape[1:]))
    np.add.at(scores, group, layout.share[:, None, None] * evidence)
    trust = np.bincount(group, discounts, minlength=len(used)).astype(float)
    used = np.flatnonzero(np.abs(scores).max(axis=(1, 2), initial=0.0) > 0)
    if not len(used):
        return Stacked(discounts, 0.0, 0.0)
    stacked = _stack(scores[used], trust[used], prior, batch, layout.n_rows[first[used]])
    trust[used] = stacked.trust
    return replace(stacked, trust=trust[group] * layout.share)


def _stack(scores: Array, discounts: Array, prior: Array, batch: Batch, n_rows: Array) -> Stacked:
    """Weights (G,) of groups of copies with these scores (G, n, K)."""
    n = batch.weight.sum()
    weight = batch.weight / n
    means, variances = _own_means(scores, weight, prior, batch.labels)
    unlabelled = float(weight @ (batch.labels < 0))
    errors = unlabelled**2 * (prior**2 * variances / np.maximum(n_rows, 1.0)).sum(axis=1)
    center = 0.5 * (discounts + discounts.mean())
    slope, hessian = _curvature(scores, weight, prior, center)
    means = slope + shrunk_residual(means - slope, hessian, np.diag(errors) + hessian / n, center)
    stacked = StackingProblem(scores, weight, prior, means, center, hessian).solve()
    return replace(stacked, trust=stacked.trust * min(1.0, discounts.sum() / max(stacked.trust.sum(), 1e-300)))


def shrunk_residual(residual: Array, hessian: Array, noise: Array, center: Array) -> Array:
    """(G,) posterior mean of  c - g  for the observed residual, averaged over the spreads of the weights."""
    whole = hessian @ center
    evidence, values = [], []
    for spread in SPREADS:
        signal = spread**2 * hessian @ hessian + SCALE_STD**2 * np.outer(whole, whole)
        root = np.linalg.cholesky(signal + noise)
        white = np.linalg.solve(root, residual)
        evidence.append(-np.log(np.diag(root)).sum() - 0.5 * white @ white)
        values.append(signal @ np.linalg.solve(root.T, white))
    log_evidence = np.array(evidence)
    return np.exp(log_evidence - log_sum_exp(log_evidence, axis=0)) @ np.array(values)


def _own_means(scores: Array, weight: Array, prior: Array, labels: np.ndarray) -> tuple[Array, Array]:
    """(G,) c, and (G, K) the variance of the score of each class within the class.

    Labelled items have their class instead of the posteriors of the source.
    """
    labelled = np.flatnonzero(labels >= 0)
    means, variances = np.empty(len(scores)), np.empty((len(scores), len(prior)))
    for j, x in enumerate(scores):
        mass = posterior_of(x + np.log(prior))
        mass[labelled] = np.eye(len(prior))[labels[labelled]]
        mass *= weight[:, None]
        share = np.maximum(mass.sum(axis=0), 1e-300)
        mean = (mass * x).sum(axis=0) / share
        means[j] = (mass * x).sum()
        variances[j] = (mass * (x - mean) ** 2).sum(axis=0) / share
    return means, variances


def _curvature(scores: Array, weight: Array, prior: Array, trust: Array) -> tuple[Array, Array]:
    """Gradient (G,) and Hessian (G, G) of the mean log-normalizer at these weights, maximized over the offsets."""
    logits = np.einsum("j,jnk->nk", trust, scores)
    q = posterior_of(logits + _offsets(logits, weight, prior))
    mass = q * weight[:, None]
    flat = scores.reshape(len(scores), -1)
    expected = np.einsum("nk,jnk->jn", q, scores)
    hessian = (flat * mass.ravel()) @ flat.T - (expected * weight) @ expected.T
    cross = np.einsum("nk,jnk->jk", mass, scores) - expected @ mass
    of_offsets = np.diag(mass.sum(axis=0)) - q.T @ mass
    hessian -= cross @ np.linalg.pinv(of_offsets, rcond=1e-10, hermitian=True) @ cross.T
    hessian[np.diag_indices_from(hessian)] += JITTER * np.maximum(np.diag(hessian), JITTER)
    return flat @ mass.ravel(), hessian


def _offsets(logits: Array, weight: Array, prior: Array, tol: float = 1e-10, max_iter: int = 100) -> Array:
    """(K,) b at which the mean posterior is the prior, by Newton's method with steps of at most 3."""
    offset = np.log(prior)
    for _ in range(max_iter):
        q = posterior_of(logits + offset)
        residual = prior - weight @ q
        if np.abs(residual).max() < tol:
            break
        curvature = np.diag(weight @ q) - (q * weight[:, None]).T @ q
        offset = offset + np.clip(np.linalg.pinv(curvature, rcond=1e-10, hermitian=True) @ residual, -3.0, 3.0)
    return offset
