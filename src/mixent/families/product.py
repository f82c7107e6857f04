"""Gaussian columns times categorical columns: mixed tables in one likelihood.

Within a component the two parts are independent; across components they are not, which is what a mixture is for.
Either part may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.stats import Stats
from mixent.families.categorical import Categoricals, CategoricalFamily, Counts
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments


@dataclass(frozen=True)
class Components:
    """Parameters of K components over mixed columns."""

    gaussian: Gaussians | None
    categorical: Categoricals | None

    @property
    def n_components(self) -> int:
        part = self.gaussian if self.gaussian is not None else self.categorical
        assert part is not None
        return part.n_components


@dataclass(frozen=True)
class ComponentStats(Stats):
    gaussian: Moments | None
    categorical: Counts | None


@dataclass(frozen=True)
class ProductFamily:
    """The same interface as its parts; log densities, priors and free parameters add."""

    gaussian: GaussianFamily | None
    categorical: CategoricalFamily | None

    def prepare(self, params: Components) -> tuple[Any, Any]:
        return self._parts("prepare", params)

    def restrict(self, ready: tuple[Any, Any], index: np.ndarray) -> tuple[Any, Any]:
        """What `prepare` made, for some components only."""
        first, second = (f and f.restrict(part, index) for f, part in zip((self.gaussian, self.categorical), ready))
        return first, second

    def embed(self, stats: ComponentStats, index: np.ndarray, n_components: int) -> ComponentStats:
        """Statistics of some components as statistics of all."""
        parts = ((self.gaussian, stats.gaussian), (self.categorical, stats.categorical))
        return ComponentStats(*(family and family.embed(part, index, n_components) for family, part in parts))

    def open(self, ready: tuple[Any, Any], block: Block) -> ProductWork:
        works = [
            family.open(part, block) for family, part in zip((self.gaussian, self.categorical), ready) if family is not None
        ]
        return ProductWork(works, self)

    def update(self, params: Components, stats: ComponentStats) -> Components:
        return Components(
            self.gaussian and self.gaussian.update(params.gaussian, stats.gaussian),
            self.categorical and self.categorical.update(params.categorical, stats.categorical),
        )

    def log_prior(self, params: Components) -> float:
        return sum(part for part in self._parts("log_prior", params) if part is not None)

    def broken(self, params: Components) -> np.ndarray:
        return np.any([part for part in self._parts("broken", params) if part is not None], axis=0)

    def split(self, params: Components, parent: int, child: int) -> Components:
        return Components(*self._parts("split", params, parent, child))

    def n_free(self, n_components: int) -> int:
        gaussian = self.gaussian.n_free() if self.gaussian else 0
        return gaussian + (self.categorical.n_free(n_components) if self.categorical else 0)

    def pack(self, params: Components) -> Array:
        return np.concatenate([part for part in self._parts("pack", params) if part is not None])

    def unpack(self, vector: Array, like: Components, mass: Array) -> Components | None:
        cut = len(vector) - (like.categorical.log_probs.size if like.categorical is not None else 0)
        gaussian = self.gaussian and self.gaussian.unpack(vector[:cut], like.gaussian, mass)
        categorical = self.categorical and self.categorical.unpack(vector[cut:], like.categorical)
        failed = (self.gaussian and gaussian is None) or (self.categorical and categorical is None)
        return None if failed else Components(gaussian, categorical)

    def take(self, params: Components, index: np.ndarray) -> tuple[ProductFamily, Components]:
        return self._split_pairs(self._parts("take", params, index))

    def sample(self, params: Components, component: np.ndarray, rng: np.random.Generator) -> tuple[Array, Any]:
        """Continuous columns (n, d) and codes (n, m) or None."""
        X, codes = self._parts("sample", params, component, rng)
        return np.empty((len(component), 0)) if X is None else X, codes

    def marginal(
        self, params: Components, columns: np.ndarray, code_columns: np.ndarray
    ) -> tuple[ProductFamily, Components]:
        """Exact marginal over some continuous and some categorical columns."""
        gaussian = self.gaussian.marginal(params.gaussian, columns) if self.gaussian and len(columns) else None
        some = self.categorical and len(code_columns)
        categorical = self.categorical.marginal(params.categorical, code_columns) if some else None
        return self._split_pairs((gaussian, categorical))

    def _parts(self, method: str, params: Components, *args: Any) -> tuple[Any, Any]:
        pairs = ((self.gaussian, params.gaussian), (self.categorical, params.categorical))
        first, second = (family and getattr(family, method)(part, *args) for family, part in pairs)
        return first, second

    @staticmethod
    def _split_pairs(pairs: tuple[Any, Any]) -> tuple[ProductFamily, Components]:
        families, params = zip(*(pair or (None, None) for pair in pairs))
        return ProductFamily(*families), Components(*params)


class ProductWork:
    """One block: both parts opened."""

    def __init__(self, works: list[Any], family: ProductFamily) -> None:
        self.works, self.family = works, family

    def log_prob(self) -> Array:
        out: Array = self.works[0].log_prob()
        for work in self.works[1:]:
            out += work.log_prob()
        return out

    def moments(self, resp: Array) -> ComponentStats:
        parts = [work.moments(resp) for work in self.works]
        gaussian = parts[0] if self.family.gaussian is not None else None
        return ComponentStats(gaussian, parts[-1] if self.family.categorical is not None else None)


def with_prior(family: ProductFamily, **parts: Any) -> ProductFamily:
    """The same family with another Gaussian prior."""
    return replace(family, gaussian=family.gaussian and replace(family.gaussian, **parts))
