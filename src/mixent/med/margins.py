"""Margin priors (001, equations 9 and 15): the potentials of the dual problem, and the losses of its own dual.

A prior P0(γ) on a row's margin adds to the dual objective J(λ) the potential

    u(λ) = -log int P0(γ) exp(-λ γ) d γ,      0 <= λ < upper.

It is concave, and u'(λ) is the mean of the margin under the solution. Its conjugate is the loss of a row whose
discriminant function has the margin m,

    loss(m) = max_{λ >= 0} u(λ) - λ m,       multiplier(m) = the maximizing λ = -loss'(m),

so that  min_F  D(F || prior) + sum_k w_k loss(m_k(F))  is the dual of J(λ). The difference between the two values
is the duality gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array

LARGEST = 1e150  # shortfall of a margin in units of the prior's width; its square is finite


class MarginPrior(ABC):
    """Potential, mean and loss of a prior of the margins; all take numbers or arrays."""

    target: float  # mode of the prior: the required margin

    @property
    def upper(self) -> float:
        """Upper bound on the multipliers, which are smaller."""
        return float("inf")

    @property
    def largest(self) -> float:
        """The largest number below that bound, for multipliers that would reach it by rounding."""
        return float(np.nextafter(self.upper, 0.0))

    @abstractmethod
    def potential(self, multiplier: Any) -> Any:
        """u(λ)."""

    @abstractmethod
    def mean(self, multiplier: Any) -> Any:
        """u'(λ), the expected margin."""

    @abstractmethod
    def curvature(self, multiplier: Any) -> Any:
        """-u''(λ), the variance of the margin."""

    @abstractmethod
    def multiplier(self, margin: Array) -> Array:
        """The λ that maximizes u(λ) - λ m; zero where the margin m is at least the expected one."""

    def loss(self, margin: Array) -> Array:
        """max u(λ) - λ m."""
        lam = self.multiplier(margin)
        return self.potential(lam) - lam * margin

    def regular_mean(self, multiplier: Array) -> tuple[Array, Array]:
        """u'(λ) without its singular part -1 / (upper - λ), and minus the derivative of the rest."""
        return self.mean(multiplier), self.curvature(multiplier)

    def increasing(self, first: float, factor: float) -> list[MarginPrior]:
        """The prior itself, after the same with smaller C if it has one; see `ScaledMargin`."""
        return [self]

    def loss_curvature(self, multiplier: Array) -> Array:
        """loss''(m) at the margin m whose multiplier is λ; zero where λ is zero."""
        return np.where(multiplier > 0, 1.0 / self.curvature(multiplier), 0.0)


@dataclass(frozen=True)
class ScaledMargin(MarginPrior):
    """A prior whose width is proportional to 1 / C."""

    C: float
    target: float = 1.0

    def increasing(self, first: float, factor: float) -> list[MarginPrior]:
        """The same prior for values of C that increase by `factor`, from at most `first` to its own."""
        bounds = [self.C]
        while bounds[-1] > first:
            bounds.append(bounds[-1] / factor)
        return [replace(self, C=C) for C in reversed(bounds)]


@dataclass(frozen=True)
class Exponential(ScaledMargin):
    """P0(γ) = C exp(-C (target - γ)), γ <= target:   u(λ) = target λ + log(1 - λ / C).

    A margin below the mean of the prior, target - 1/C, costs about C times its shortfall.

    Parameters
    ----------
    C : float
        Upper bound on the multipliers.
    target : float
        Largest margin that the prior allows.
    """

    @property
    def upper(self) -> float:
        return self.C

    def potential(self, multiplier: Any) -> Any:
        with np.errstate(divide="ignore"):  # -inf where a multiplier reaches C by rounding
            return self.target * multiplier + np.log1p(-multiplier / self.C)

    def mean(self, multiplier: Any) -> Any:
        return self.target - 1.0 / (self.C - multiplier)

    def curvature(self, multiplier: Any) -> Any:
        return 1.0 / (self.C - multiplier) ** 2

    def multiplier(self, margin: Array) -> Array:
        beyond = self._beyond(margin)
        return np.minimum(self.C * (beyond / (1.0 + beyond)), self.largest)  # no cancellation near zero

    def loss(self, margin: Array) -> Array:
        # as a function of the shortfall: 1 - λ / C would lose precision where λ is close to C
        beyond = self._beyond(margin)
        return beyond - np.log1p(beyond)

    def _beyond(self, margin: Array) -> Array:
        """The shortfall from the mean of the prior, in units of its width 1 / C."""
        return np.minimum(np.maximum(self.C * (self.mean(0.0) - margin), 0.0), LARGEST)  # np.clip takes longer

    def regular_mean(self, multiplier: Array) -> tuple[Array, Array]:
        return self.target + 0.0 * multiplier, 0.0 * multiplier

    def loss_curvature(self, multiplier: Array) -> Array:
        return np.where(multiplier > 0, (self.C - multiplier) ** 2, 0.0)


@dataclass(frozen=True)
class Laplace(ScaledMargin):
    """P0(γ) = C/2 exp(-C |target - γ|):   u(λ) = target λ + log(1 - (λ / C)^2).

    Parameters
    ----------
    C : float
        Upper bound on the multipliers.
    target : float
        Mean of the prior.
    """

    @property
    def upper(self) -> float:
        return self.C

    def potential(self, multiplier: Any) -> Any:
        with np.errstate(divide="ignore"):  # -inf where a multiplier reaches C by rounding
            return self.target * multiplier + np.log1p(-((multiplier / self.C) ** 2))

    def mean(self, multiplier: Any) -> Any:
        return self.target - 2.0 * multiplier / ((self.C - multiplier) * (self.C + multiplier))

    def curvature(self, multiplier: Any) -> Any:
        return 2.0 * (self.C**2 + multiplier**2) / ((self.C - multiplier) * (self.C + multiplier)) ** 2

    def multiplier(self, margin: Array) -> Array:
        shortfall = self._shortfall(margin)
        lam = self.C * (shortfall / (1.0 + np.sqrt(1.0 + shortfall * shortfall)))  # no cancellation near zero
        return np.minimum(lam, self.largest)

    def loss(self, margin: Array) -> Array:
        # as a function of the shortfall: 1 - (λ / C)^2 would lose precision where λ is close to C
        root = np.sqrt(1.0 + self._shortfall(margin) ** 2)
        return root - 1.0 + np.log(2.0 / (1.0 + root))

    def _shortfall(self, margin: Array) -> Array:
        """The shortfall from the mean of the prior, in units of its width 1 / C."""
        return np.minimum(np.maximum(self.C * (self.target - margin), 0.0), LARGEST)

    def regular_mean(self, multiplier: Array) -> tuple[Array, Array]:
        return self.target + 1.0 / (self.C + multiplier), 1.0 / (self.C + multiplier) ** 2

    def loss_curvature(self, multiplier: Array) -> Array:
        square = ((self.C - multiplier) * (self.C + multiplier)) ** 2
        return np.where(multiplier > 0, square / (2.0 * (self.C**2 + multiplier**2)), 0.0)


@dataclass(frozen=True)
class Gaussian(ScaledMargin):
    """P0(γ) = N(target, 1 / C^2):   u(λ) = target λ - λ^2 / (2 C^2).

    In the dual this adds a ridge 1 / C^2 to the diagonal of the kernel matrix.

    Parameters
    ----------
    C : float
        Inverse of the standard deviation of the prior.
    target : float
        Mean of the prior.
    """

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
    """The margin is exactly `target`:   u(λ) = target λ.

    There is a solution only if the margins of all rows can reach the target.

    Parameters
    ----------
    target : float
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
        raise NotImplementedError("a fixed margin has no finite loss; see `solving.method_of_multipliers`")


MARGINS: dict[str, Callable[[float, float], MarginPrior]] = {
    "exponential": Exponential,
    "laplace": Laplace,
    "gaussian": Gaussian,
}


def margin_prior(distribution: str, C: float | None, target: float = 1.0) -> MarginPrior:
    """The margin prior of this name, with the bound C on the multipliers, about the target."""
    if distribution == "fixed":
        return Fixed(target)
    return MARGINS[distribution](1.0 if C is None else float(C), target)


def check_some_margin(margin: MarginPrior) -> None:
    """Raise an error if the zero function already satisfies the expected margin."""
    if isinstance(margin, Exponential) and not margin.mean(0.0) > 0:
        raise ValueError(
            f"with C={margin.C!r} and margin='exponential' the expected margin is {margin.mean(0.0):.3g} "
            f"(target - 1/C), which the zero function already satisfies: every multiplier would be 0, and there would "
            f"be no classifier; set C > {1 / margin.target:.3g}, or margin='laplace' or 'gaussian'"
        )
