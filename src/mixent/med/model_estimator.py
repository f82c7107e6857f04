"""Base class of the classifiers by log-likelihood ratios of probability models: trees and Bayes nets."""

from __future__ import annotations

import inspect

from mixent.base.capabilities import able, yes
from mixent.base.params import check_choice, warn_unused
from mixent.med.estimator import MEDBase


class MEDModelBase(MEDBase):
    """Base class: margins are in nats of the log-likelihood ratio; objective="likelihood" trains without margins."""

    objective: str

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self._trains_margins():
            return tags
        return able(tags, absent_labels=yes("used only for the encoding of the columns"))

    def _check_objective(self) -> None:
        check_choice("objective", self.objective, ("margin", "likelihood"))
        if self.objective == "likelihood":
            for name in filter(self._is_set, ("C", "margin", "bias")):
                warn_unused(f"{name}={getattr(self, name)!r}", "objective='margin'")

    def _is_set(self, name: str) -> bool:
        """Whether the parameter differs from its default."""
        value, default = getattr(self, name), inspect.signature(type(self)).parameters[name].default
        if name in self._groups:
            read = self._groups[name]
            return bool(read(name, value).get_params() != read(name, default).get_params())
        return bool(value != default)

    def _trains_margins(self) -> bool:
        return self.objective == "margin"
