"""Unconstrained coordinates of components with mixed columns: those of the Gaussians, and logits of categories."""

from __future__ import annotations

import numpy as np

from mixent.core.arrays import Array
from mixent.core.driver import OutsideDomainError
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.gaussian.charts import GaussianChart
from mixent.families.product import Components, ComponentStats, ProductFamily


class CategoricalChart:
    """Logits of all tables of the live components; the other components do not change."""

    def __init__(self, family: CategoricalFamily, start: Categoricals, live: np.ndarray) -> None:
        self.family, self.start, self.live = family, start, np.asarray(live, dtype=bool)
        self.size = int(self.live.sum()) * sum(family.sizes)

    def vector(self, params: Categoricals) -> Array:
        return params.log_probs[self.live].ravel()

    def params(self, vector: Array) -> Categoricals:
        if not np.isfinite(vector).all():
            raise OutsideDomainError("a logit is not finite")
        logits = vector.reshape(-1, sum(self.family.sizes))
        starts, sizes = self.family.starts, self.family.sizes
        logits = logits - np.repeat(np.maximum.reduceat(logits, starts, axis=1), sizes, axis=1)
        sums = np.add.reduceat(np.exp(logits), starts, axis=1)
        log_probs = np.array(self.start.log_probs)
        log_probs[self.live] = logits - np.repeat(np.log(sums), sizes, axis=1)
        return Categoricals(log_probs)

    def gradient(self, params: Categoricals, stats: Counts) -> Array:
        """Return the gradient of  sum_kjv (counts + rows)_kjv log p_kjv:  counts minus expected counts."""
        counts = (stats.counts + self.family.rows)[self.live]
        sums = np.repeat(np.add.reduceat(counts, self.family.starts, axis=1), self.family.sizes, axis=1)
        return np.asarray(counts - np.exp(params.log_probs[self.live]) * sums).ravel()


class ComponentChart:
    """The coordinates of both parts, concatenated; either part may be absent."""

    def __init__(self, family: ProductFamily, start: Components, live: np.ndarray) -> None:
        self.gaussian = self.categorical = None
        if family.gaussian is not None:
            assert start.gaussian is not None
            self.gaussian = GaussianChart(family.gaussian, start.gaussian, live)
        if family.categorical is not None:
            assert start.categorical is not None
            self.categorical = CategoricalChart(family.categorical, start.categorical, live)

    def vector(self, params: Components) -> Array:
        return np.concatenate([chart.vector(part) for chart, part in self._pairs(params)])

    def params(self, vector: Array) -> Components:
        cut = 0 if self.gaussian is None else self.gaussian.size
        gaussian = None if self.gaussian is None else self.gaussian.params(vector[:cut])
        return Components(gaussian, None if self.categorical is None else self.categorical.params(vector[cut:]))

    def gradient(self, params: Components, stats: ComponentStats) -> Array:
        pairs = zip(self._pairs(params), self._pairs(stats))
        return np.concatenate([chart.gradient(part, part_stats) for (chart, part), (_, part_stats) in pairs])

    def _pairs(self, both: Components | ComponentStats) -> list[tuple]:
        pairs = (self.gaussian, both.gaussian), (self.categorical, both.categorical)
        return [pair for pair in pairs if pair[0] is not None]
