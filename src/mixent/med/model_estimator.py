"""What classifiers by log-ratios of models share: the margin that is asked, and how it follows from the models."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from mixent.base.capabilities import able, yes
from mixent.base.params import check_choice, check_number, check_positive
from mixent.core.arrays import Array
from mixent.med.contests import Contests
from mixent.med.estimator import MEDBase, usual_margin
from mixent.med.margins import MARGINS, Margin, read_margin
from mixent.med.solving import Discriminant


class MEDOfModels(MEDBase):
    """Margins are in nats of a log-likelihood ratio; without discrimination the models themselves are the answer."""

    margin: str
    gamma: float | None
    alpha: float
    objective: str
    _bounds: tuple[float, float] = (-np.inf, np.inf)  # of a margin that is asked without a word of the user's

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self._asks():
            return tags
        return able(tags, absent_labels=yes("at most they help to describe the columns: no margin is asked of them"))

    def _check_asked(self, also: tuple[str, ...] = ()) -> None:
        """`also` names further options that only discrimination has."""
        check_choice("margin", self.margin, (*MARGINS, "fixed"))
        check_choice("objective", self.objective, ("margin", "likelihood"))
        if self.gamma is not None:
            check_positive("gamma", self.gamma)
        if not check_number(self.alpha) or not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must be a share, from 0 to 1; got {self.alpha!r}")
        if self.gamma is not None and self._given("alpha"):
            raise ValueError(f"alpha={self.alpha!r} has no effect with gamma={self.gamma!r}")
        if self.margin == "fixed" and not isinstance(self.c, str):
            raise ValueError(f"c={self.c!r} has no effect with margin='fixed'; leave it")
        if self.objective == "likelihood":
            for name in filter(self._given, ("c", "margin", "gamma", "alpha", "bias", *also)):
                raise ValueError(f"{name}={getattr(self, name)!r} has no effect with objective='likelihood'")

    def _given(self, name: str) -> bool:
        """Is the option other than the default?"""
        return bool(getattr(self, name) != inspect.signature(type(self)).parameters[name].default)

    def _needs_c(self) -> bool:
        return isinstance(self.c, str) and self.margin in MARGINS and self._asks()

    def _asks(self) -> bool:
        return self.objective == "margin"

    def _margin(self, c: float | None, discriminant: Discriminant, contests: Contests) -> Margin:
        at = self.gamma
        if at is None:
            usual = usual_margin(self._prior_margins(discriminant, contests), contests, float(self.alpha))
            at = min(max(usual, self._bounds[0]), self._bounds[1])
        return read_margin(self.margin, 1.0 if c is None else c, float(at))

    def _prior_margins(self, discriminant: Any, contests: Contests) -> Array:
        """(n, pairs) before discrimination."""
        return discriminant.prior_margins(contests)
