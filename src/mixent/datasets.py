"""Simulated tables whose truth is known exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from mixent.simulated import simulate_vendors, simulate_verification, simulate_votes

__all__ = ["Orchestra", "make_orchestra", "simulate_vendors", "simulate_verification", "simulate_votes"]

INSTRUMENTS = np.array(["flute", "saxophone", "clarinet", "violin"])
MATERIALS = np.array(["metal", "wood"])
P_METAL = np.array([0.7, 1.0, 0.3, 0.0])  # p(metal | instrument): some flutes are of wood, some clarinets of metal
WEIGHTS = np.stack([P_METAL, 1 - P_METAL]) / len(INSTRUMENTS)  # (C, K) joint p(material, instrument)
CORNERS = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]) / 2  # no line parts metal from wood
STD = np.array([[1.0, 0.5], [0.8, 0.8], [1.0, 0.6], [0.9, 0.5]])  # (K, 2) along the axes of each group
ANGLE = np.array([0.4, 0.0, -0.5, 1.2])  # (K,) of the first axis, radians


@dataclass(frozen=True, eq=False)
class Orchestra:
    """Rows of `make_orchestra` and the distribution they come from."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) "metal" or "wood"
    instrument: np.ndarray  # (n,) the hidden group
    means: np.ndarray  # (K, 2) in the first two features
    covariances: np.ndarray  # (K, 2, 2)
    true_proba: np.ndarray | None = None  # (n, C) posterior(X), if it was asked for
    classes: np.ndarray = field(default_factory=MATERIALS.copy)  # (C,)
    instruments: np.ndarray = field(default_factory=INSTRUMENTS.copy)  # (K,)
    weights: np.ndarray = field(default_factory=WEIGHTS.copy)  # (C, K) joint p(class, instrument)

    def posterior(self, X: Any) -> np.ndarray:
        """The exact p(class | x) of the rows of `X` (n, d), columns in the order of `classes`."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.X.shape[1]:
            raise ValueError(f"X must have {self.X.shape[1]} columns, as the rows drawn; its shape is {X.shape}")
        return softmax(self._log_joint(X[:, :2]), axis=1)

    @cached_property
    def bayes_error(self) -> float:
        """The exact Bayes error E[1 - max_c p(c | x)], right to about 1e-5.

        By the trapezoid rule in each group's own coordinates, x = m_k + L_k z, so that any separation is as exact; the
        further features are the same for both classes and integrate to 1.
        """
        step = np.linspace(-8.0, 8.0, 301)
        z = np.stack(np.meshgrid(step, step), axis=-1).reshape(-1, 2)
        normal = np.exp(-np.einsum("ni,ni->n", z, z) / 2)
        normal /= normal.sum()
        error = 0.0
        for share, mean, root in zip(self.weights.sum(axis=0), self.means, np.linalg.cholesky(self.covariances)):
            error += share * (normal @ softmax(self._log_joint(mean + z @ root.T), axis=1).min(axis=1))
        return float(error)

    def _log_joint(self, plane: np.ndarray) -> np.ndarray:
        """log p(class, x), (n, C), of the first two features."""
        inner = np.linalg.inv(np.linalg.cholesky(self.covariances))  # (K, 2, 2)
        z = np.einsum("kij,nkj->nki", inner, plane[:, None, :] - self.means)
        scale = np.log(np.linalg.det(inner) / (2 * np.pi))
        log_density = scale - np.einsum("nki,nki->nk", z, z) / 2
        return logsumexp(log_density[:, None, :], axis=2, b=self.weights)


def make_orchestra(
    n_rows: int = 1000,
    *,
    separation: float = 2.5,
    n_features: int = 2,
    random_state: Any = None,
    return_posterior: bool = False,
) -> Orchestra:
    """Rows of the orchestra of document 000, section V: two classes made of the same four hidden groups.

    Flutes, saxophones, clarinets and violins are equally frequent, and each sounds its own way. The class is what it
    is made of: p(metal | flute, saxophone, clarinet, violin) = 0.7, 1, 0.3, 0. So

        p(x | class) = sum_k a_ck N(x; m_k, C_k),    metal: a = 0.35, 0.5, 0.15, 0,  wood: a = 0.15, 0, 0.35, 0.5:

    the shared-component model with 4 components, where a mixture per class needs 3 for each. However far apart the
    groups are, the Bayes error stays above 0.15, for the material of a flute or a clarinet cannot be heard.

    Parameters
    ----------
    n_rows : int
    separation : float
        Distance between neighboring centers; the groups' standard deviations are 0.5 to 1.
    n_features : int
        At least 2. Only the first two tell anything; the others are standard normal noise.
    random_state : int, RandomState or None
    return_posterior : bool
        Whether `true_proba` holds the exact p(class | x) of the rows.

    Returns
    -------
    Orchestra
        With X (n, d), y, instrument, the method `posterior(X)` and the number `bayes_error`, both exact.

    Examples
    --------
    >>> from mixent.datasets import make_orchestra
    >>> rows = make_orchestra(5, random_state=0, return_posterior=True)
    >>> rows.X.shape, rows.true_proba.shape
    ((5, 2), (5, 2))
    >>> sorted(set(rows.y.tolist()))
    ['metal', 'wood']
    >>> round(rows.bayes_error, 3)
    0.202
    """
    _check("n_rows", n_rows, Integral, 1)
    _check("n_features", n_features, Integral, 2)
    _check("separation", separation, Real, 0)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    means = separation * CORNERS
    axes = np.stack([[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]).transpose(2, 0, 1)
    spread = axes * STD[:, None, :]  # (K, 2, 2): x = m + spread z
    label, group = np.divmod(rng.choice(WEIGHTS.size, n_rows, p=WEIGHTS.ravel()), len(INSTRUMENTS))
    X = rng.standard_normal((n_rows, n_features))
    X[:, :2] = means[group] + np.einsum("nij,nj->ni", spread[group], X[:, :2])
    truth = spread @ spread.transpose(0, 2, 1)
    rows = Orchestra(X, MATERIALS[label], INSTRUMENTS[group], means, truth)
    return replace(rows, true_proba=rows.posterior(X)) if return_posterior else rows


def _check(name: str, value: Any, kind: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < np.inf:
        what = "a whole number" if kind is Integral else "a finite number"
        raise ValueError(f"{name} must be {what} of at least {least}; got {value!r}")
