"""Margin priors (001, equations 9 and 15): potentials of the dual, and losses of its dual.

A prior P0(g) on a row's margin gives the dual the potential

    u(l) = -log int P0(g) exp(-l g) dg,      0 <= l < upper,

concave, with u'(l) the margin's mean under the solution. Maximized over the multiplier it is a loss of the margin m
that the discriminant function keeps,

    loss(m) = max_{l >= 0} u(l) - l m,       multiplier(m) = the l that does = -loss'(m),

so that  min_F  D(F || prior) + sum_k w_k loss(m_k(F))  is the dual's dual, and the difference of the two a gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mixent.core.arrays import Array


class MarginPrior(ABC):
    """Potential, mean and loss of a prior of the margins; of numbers and arrays alike."""

    target: float  # where the prior has its mode: the margin that is wanted

    @property
    def upper(self) -> float:
        """Multipliers stay below this."""
        return float("inf")

    @abstractmethod
    def potential(self, multiplier: Any) -> Any:
        """u(l)."""

    @abstractmethod
    def mean(self, multiplier: Any) -> Any:
        """u'(l): the expected margin."""

    @abstractmethod
    def curvature(self, multiplier: Any) -> Any:
        """-u''(l): the margin's variance."""

    @abstractmethod
    def multiplier(self, margin: Array) -> Array:
        """The l that maximizes u(l) - l m; zero where the row does not speak."""

    def loss(self, margin: Array) -> Array:
        """max u(l) - l m."""
        best = self.multiplier(margin)
        return self.potential(best) - best * margin

    def apart(self, multiplier: Array) -> tuple[Array, Array]:
        """u'(l) without the part -1 / (upper - l) that keeps l from its bound, and minus its slope."""
        return self.mean(multiplier), self.curvature(multiplier)

    def loss_curvature(self, multiplier: Array) -> Array:
        """loss''(m) where the multiplier is l; zero where the row does not speak."""
        return np.where(multiplier > 0, 1.0 / self.curvature(multiplier), 0.0)


@dataclass(frozen=True)
class Exponential(MarginPrior):
    """P0(g) = c exp(-c (at - g)), g <= at:   u(l) = at l + log(1 - l / c).

    A margin short of at - 1/c, its mean, costs about c times what is lacking.

    Parameters
    ----------
    c : float
        Bound of the multipliers.
    at : float
        Largest margin the prior allows.
    """

    C: float
    target: float = 1.0

    @property
    def upper(self) -> float:
        return self.C

    def potential(self, multiplier: Any) -> Any:
        return self.target * multiplier + np.log1p(-multiplier / self.C)

    def mean(self, multiplier: Any) -> Any:
        return self.target - 1.0 / (self.C - multiplier)

    def curvature(self, multiplier: Any) -> Any:
        return 1.0 / (self.C - multiplier) ** 2

    def multiplier(self, margin: Array) -> Array:
        lacking = np.maximum(self.target - margin, 1.0 / self.C)
        return np.where(self.target - margin > 1.0 / self.C, np.maximum(self.C - 1.0 / lacking, 0.0), 0.0)

    def loss(self, margin: Array) -> Array:
        # in what is lacking: 1 - l/c would lose its digits where l is next to c
        lacking = np.maximum(self.target - margin, 1.0 / self.C)
        return np.where(self.target - margin > 1.0 / self.C, self.C * lacking - 1.0 - np.log(self.C * lacking), 0.0)

    def apart(self, multiplier: Array) -> tuple[Array, Array]:
        return self.target + 0.0 * multiplier, 0.0 * multiplier

    def loss_curvature(self, multiplier: Array) -> Array:
        return np.where(multiplier > 0, (self.C - multiplier) ** 2, 0.0)


@dataclass(frozen=True)
class Laplace(MarginPrior):
    """P0(g) = c/2 exp(-c |at - g|):   u(l) = at l + log(1 - (l / c)^2).

    Parameters
    ----------
    c : float
        Bound of the multipliers.
    at : float
        The prior's mean.
    """

    C: float
    target: float = 1.0

    @property
    def upper(self) -> float:
        return self.C

    def potential(self, multiplier: Any) -> Any:
        return self.target * multiplier + np.log1p(-((multiplier / self.C) ** 2))

    def mean(self, multiplier: Any) -> Any:
        return self.target - 2.0 * multiplier / ((self.C - multiplier) * (self.C + multiplier))

    def curvature(self, multiplier: Any) -> Any:
        return 2.0 * (self.C**2 + multiplier**2) / ((self.C - multiplier) * (self.C + multiplier)) ** 2

    def multiplier(self, margin: Array) -> Array:
        lacking = np.maximum(self.target - margin, 0.0)
        return lacking * self.C**2 / (1.0 + np.hypot(1.0, lacking * self.C))  # no cancellation near zero

    def loss(self, margin: Array) -> Array:
        # in what is lacking: 1 - (l/c)^2 would lose its digits where l is next to c
        root = np.hypot(1.0, self.C * np.maximum(self.target - margin, 0.0))
        return root - 1.0 + np.log(2.0 / (1.0 + root))

    def apart(self, multiplier: Array) -> tuple[Array, Array]:
        return self.target + 1.0 / (self.C + multiplier), 1.0 / (self.C + multiplier) ** 2

    def loss_curvature(self, multiplier: Array) -> Array:
        square = ((self.C - multiplier) * (self.C + multiplier)) ** 2
        return np.where(multiplier > 0, square / (2.0 * (self.C**2 + multiplier**2)), 0.0)


@dataclass(frozen=True)
class Gaussian(MarginPrior):
    """P0(g) = N(at, 1 / c^2):   u(l) = at l - l^2 / (2 c^2): a ridge 1 / c^2 on the kernel's diagonal.

    Parameters
    ----------
    c : float
        One over the prior's standard deviation.
    at : float
        The prior's mean.
    """

    C: float
    target: float = 1.0

    def potential(self, multiplier: Any) -> Any:
        return self.target * multiplier - 0.5 * (multiplier / self.C) ** 2

    def mean(self, multiplier: Any) -> Any:
        return self.target - multiplier / self.C**2

    def curvature(self, multiplier: Any) -> Any:
        return 0.0 * multiplier + 1.0 / self.C**2

    def multiplier(self, margin: Array) -> Array:
        return self.C**2 * np.maximum(self.target - margin, 0.0)


@dataclass(frozen=True)
class Fixed(MarginPrior):
    """The margin is `at`, for certain:   u(l) = at l.  There is a solution only where all rows can keep it.

    Parameters
    ----------
    at : float
        The margin.
    """

    target: float = 1.0

    def potential(self, multiplier: Any) -> Any:
        return self.target * multiplier

    def mean(self, multiplier: Any) -> Any:
        return self.target + 0.0 * multiplier

    def curvature(self, multiplier: Any) -> Any:
        return 0.0 * multiplier

    def multiplier(self, margin: Array) -> Array:
        raise NotImplementedError("no loss stands for a margin that is certain; see `solving._by_multipliers`")


MARGINS: dict[str, Callable[[float, float], MarginPrior]] = {
    "exponential": Exponential,
    "laplace": Laplace,
    "gaussian": Gaussian,
}


def margin_prior(distribution: str, C: float | None, target: float = 1.0) -> MarginPrior:
    """The prior of this name, its multipliers bounded by C, about a margin."""
    if distribution == "fixed":
        return Fixed(target)
    return MARGINS[distribution](1.0 if C is None else float(C), target)


def check_some_margin(margin: MarginPrior) -> None:
    """Refuse a prior whose expected margin a discriminant function of zero already has."""
    if isinstance(margin, Exponential) and not margin.mean(0.0) > 0:
        raise ValueError(
            f"with C={margin.C!r} and margin='exponential' the expected margin is {margin.mean(0.0):.3g} "
            f"(target - 1/C), which a discriminant function of zero already has: every multiplier would be 0, and "
            f"there would be no classifier; take C > {1 / margin.target:.3g}, or margin='laplace' or 'gaussian'"
        )
