"""Base class of the classifiers by log-likelihood ratios of probability models: trees and Bayes nets."""

from __future__ import annotations

import inspect
from typing import Any

from mixent.base.capabilities import able, yes
from mixent.base.params import check_choice, warn_unused
from mixent.core.arrays import Array
from mixent.med.constraints import PairConstraints
from mixent.med.estimator import MEDBase
from mixent.med.model_training_sets import FIRST_C
from mixent.med.solving import Search
from mixent.med.training_sets import Subset, TrainedDiscriminant


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

    def _train(
        self,
        training_set: Any,
        subset: Subset,
        C: float | None,
        search: Search,
        start: Any = None,
        label_prior: Array | None = None,
    ) -> TrainedDiscriminant:
        """Train on a subset; a fold starts from the solution for all rows, where each start has the same solution."""
        discriminant, whole = training_set.discriminant(subset, self._bias_variance()), training_set.whole
        steep = C is None or C > FIRST_C  # then the multipliers of folds differ too much from those of all rows
        if whole is None or whole.uncertain or steep or not discriminant.convex or not self._trains_margins():
            start = None if steep and discriminant.convex else start
            return super()._train(training_set, subset, C, search, start, label_prior)
        solved = training_set.solved(subset)
        if len(subset.rows) == len(whole.rows):
            start = solved[C if C in solved else list(solved)[-1]][1] if solved else None
        else:
            if C not in training_set.solved(whole):
                self._train(training_set, whole, C, search)
            constraints = PairConstraints.of(subset.prior, subset.weight)
            margin = self._margin(C, discriminant, constraints)
            start = discriminant.at_multipliers(constraints, margin, *training_set.fold_start(subset, C))
        trained = super()._train(training_set, subset, C, search, start)
        solved[C] = trained.solution.multipliers, trained.solution.state
        return trained
