"""Simulated data with known true distributions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils import check_random_state

from mixent.show import Short
from mixent.simulated import simulate_vendors, simulate_verification, simulate_votes

__all__ = ["Orchestra", "make_orchestra", "simulate_vendors", "simulate_verification", "simulate_votes"]

INSTRUMENTS = np.array(["flute", "saxophone", "clarinet", "violin"])
MATERIALS = np.array(["metal", "wood"])
P_METAL = np.array([0.7, 1.0, 0.3, 0.0])  # p(metal | instrument): some flutes are of wood, some clarinets of metal
WEIGHTS = np.stack([P_METAL, 1 - P_METAL]) / len(INSTRUMENTS)  # (C, K) joint p(material, instrument)
CORNERS = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]) / 2  # classes not linearly separable
STD = np.array([[1.0, 0.5], [0.8, 0.8], [1.0, 0.6], [0.9, 0.5]])  # (K, 2) along the axes of each group
ANGLE = np.array([0.4, 0.0, -0.5, 1.2])  # (K,) of the first axis, radians


@dataclass(frozen=True, eq=False, repr=False)
class Orchestra(Short):
    """Rows of `make_orchestra`, and the distribution they were drawn from."""

    _shown = ("X", "y", "instruments")

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) "metal" or "wood"
    instrument: np.ndarray  # (n,) hidden group
    means: np.ndarray  # (K, 2) in the first two features
    covariances: np.ndarray  # (K, 2, 2)
    true_proba: np.ndarray | None = None  # (n, C) posterior(X), with return_posterior=True
    classes: np.ndarray = field(default_factory=MATERIALS.copy)  # (C,)
    instruments: np.ndarray = field(default_factory=INSTRUMENTS.copy)  # (K,)
    weights: np.ndarray = field(default_factory=WEIGHTS.copy)  # (C, K) joint p(class, instrument)

    def posterior(self, X: Any) -> np.ndarray:
        """Exact posteriors p(class | x) of the rows of `X` (n, d), with columns in the order of `classes`."""
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.X.shape[1]:
            raise ValueError(f"X must have {self.X.shape[1]} columns, as in `make_orchestra`; got shape {X.shape}")
        return softmax(self._log_joint(X[:, :2]), axis=1)

    @cached_property
    def bayes_error(self) -> float:
        """Bayes error E[1 - max_c p(c | x)], with an absolute error of about 1e-5.

        It is computed by the trapezoid rule in the standardized coordinates of each group, x = m_k + L_k z, so that the
        precision does not depend on the separation. The noise features have the same distribution in both classes and
        integrate to 1.
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
        """(n, C) log p(class, x) of the first two features."""
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
    """Simulate two classes that share four hidden groups, after the orchestra example of Baras and Baras (section V).

    Flutes, saxophones, clarinets and violins are equally frequent, and the features of each instrument are normal. The
    class is the material of the instrument, with p(metal | flute, saxophone, clarinet, violin) = 0.7, 1, 0.3, 0.
    Therefore

        p(x | class) = sum_k a_ck N(x; m_k, C_k),    metal: a = 0.35, 0.5, 0.15, 0,  wood: a = 0.15, 0, 0.35, 0.5.

    This is a model with 4 shared components, whereas a separate mixture for each class needs 3 components per class.
    Whatever the separation of the groups, the Bayes error is at least 0.15, because the features do not depend on the
    material of a flute or a clarinet.

    Parameters
    ----------
    n_rows : int, default=1000
        Number of rows.
    separation : float, default=2.5
        Distance between neighboring group means; the standard deviations of the groups are 0.5 to 1.
    n_features : int, default=2
        Number of features, at least 2. Only the first two are informative; the others are standard normal noise.
    random_state : int, RandomState or None
        Seed.
    return_posterior : bool, default=False
        Whether `true_proba` contains the exact posteriors p(class | x) of the rows.

    Returns
    -------
    Orchestra
        `X` (n, d), `y`, `instrument`, the exact posteriors by the method `posterior(X)`, and `bayes_error`.

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
        description = "a whole number" if kind is Integral else "a finite number"
        raise ValueError(f"{name} must be {description} of at least {least}; got {value!r}")
