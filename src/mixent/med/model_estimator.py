"""What classifiers by log-ratios of models share: discrimination, or the models as they are."""

from __future__ import annotations

import inspect

from mixent.base.capabilities import able, yes
from mixent.base.params import check_choice
from mixent.med.estimator import MEDBase


class MEDOfModels(MEDBase):
    """Margins are in nats of a log-likelihood ratio; without discrimination the models themselves are the answer."""

    objective: str

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self._asks():
            return tags
        return able(tags, absent_labels=yes("used for the columns alone: they have no margin"))

    def _check_objective(self) -> None:
        check_choice("objective", self.objective, ("margin", "likelihood"))
        if self.objective == "likelihood":
            for name in filter(self._given, ("C", "margin", "bias")):
                raise ValueError(f"{name}={getattr(self, name)!r} is only used with objective='margin'")

    def _given(self, name: str) -> bool:
        """Is the parameter other than the default?"""
        value, default = getattr(self, name), inspect.signature(type(self)).parameters[name].default
        if name in self._groups:
            read = self._groups[name]
            return bool(read(name, value).get_params() != read(name, default).get_params())
        return bool(value != default)

    def _asks(self) -> bool:
        return self.objective == "margin"
