"""The parameter `outliers` of mixtures: how rows far from all components are modeled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mixent.base.params import check_choice
from mixent.families.gaussian.family import GaussianFamily
from mixent.families.student import StudentFamily, Students

ISOLATED = (0.2, 0.1, 0.0)  # EM is started from all of these partitions


@dataclass(frozen=True)
class Outliers:
    """Distributions that an option stands for."""

    numeric: type[GaussianFamily]  # family of the numeric columns
    uniform: bool  # whether there is a component with a uniform density
    isolated: tuple[float, ...]  # shares of the rows, the most isolated ones, without which the rows are clustered
    revised: bool  # whether the prior is estimated again from the rows of the components, which exclude outliers

    @property
    def none(self) -> bool:
        """Whether all components are Gaussian, so that one of them has a closed-form solution."""
        return self == OUTLIERS[None]


OUTLIERS = {
    None: Outliers(GaussianFamily, False, (0.0,), True),
    "noise": Outliers(GaussianFamily, True, ISOLATED, True),
    "t": Outliers(StudentFamily, False, ISOLATED, False),
}
NAMES = tuple(name for name in OUTLIERS if name is not None)


def check_outliers(value: str | None) -> None:
    """Raise a ValueError unless it is one of the options."""
    if value is not None:
        check_choice("outliers", value, NAMES, also="None")


def check_gaussian(est: Any, name: str) -> None:
    """Raise a ValueError unless all components are Gaussian, for the method or function `name`."""
    if est.outliers is not None:
        raise ValueError(f"{name} needs a model fitted with outliers=None; got outliers={est.outliers!r}")
    params = getattr(est, "params_", None)  # of a fit with another value of the parameter
    if params is not None and (params.width > params.n_components or isinstance(params.components.gaussian, Students)):
        raise ValueError(f"{name} needs a model fitted with outliers=None; fit it again")


def keeps_statistics(est: Any) -> bool:
    """Whether the estimator has `partial_fit`, as scikit-learn's `available_if` requires."""
    if est.outliers == "t":
        raise AttributeError("partial_fit is only available with outliers=None or 'noise'; got 't'")
    return True
