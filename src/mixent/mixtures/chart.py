"""Unconstrained coordinates of a mixture, for `core.lbfgs`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.families.charts import ComponentChart
from mixent.mixtures.problem import MixtureParams, MixtureProblem, MixtureStats


class MixtureChart:
    """Logits of the positive weights, then the coordinates of the components.

    A weight that is zero in `start` remains zero, and a dropped component does not change. With fixed class priors, the
    logits of each class are normalized separately.
    """

    def __init__(self, problem: MixtureProblem, start: MixtureParams) -> None:
        self.problem, self.start = problem, start
        self.used = start.weights > 0
        self.n_weights = int(self.used.sum())
        self.components = ComponentChart(problem.family, start.components, start.live)

    def vector(self, params: MixtureParams) -> Array:
        return np.concatenate([np.log(params.weights[self.used]), self.components.vector(params.components)])

    def params(self, vector: Array) -> MixtureParams:
        if not np.isfinite(vector[: self.n_weights]).all():
            raise OutsideDomainError("a weight is out of range")
        logits = np.full(self.used.shape, -np.inf)
        logits[self.used] = vector[: self.n_weights]
        top = logits.max(axis=self._over, keepdims=True)
        shares = self._normalized(np.exp(logits - np.where(np.isfinite(top), top, 0.0)))
        prior = 1.0 if self.problem.class_prior is None else self.problem.class_prior[:, None]
        # a share that underflows must not become zero, which would be a mask
        weights = np.where(self.used, np.maximum(prior * shares, 1e-300), 0.0)
        components = self.components.params(vector[self.n_weights :])
        params = replace(self.start, weights=weights, components=components)
        if (self.problem.family.degenerate(components) & self.start.live).any():
            raise OutsideDomainError("a component collapsed onto too few distinct rows")
        return params

    def gradient(self, params: MixtureParams, total: MixtureStats) -> Array:
        """Return the gradient of `problem.objective` at the coordinates `vector(params)`."""
        slope = total.signed_counts  # d objective / d log W
        if self.problem.weight_rows is not None:
            slope = slope + self.problem.weight_rows
        slope = np.where(self.used, slope, 0.0)
        slope = slope - self._normalized(params.weights) * slope.sum(axis=self._over, keepdims=True)
        return np.concatenate([slope[self.used], self.components.gradient(params.components, total.components)])

    @property
    def _over(self) -> tuple[int, ...]:
        """Axes of the softmax: all weights, or those of each class."""
        return (0, 1) if self.problem.class_prior is None else (1,)

    def _normalized(self, weights: Array) -> Array:
        return weights / np.maximum(weights.sum(axis=self._over, keepdims=True), 1e-300)
