"""Products of Gaussian and categorical distributions, for tables with mixed columns.

Within a component the two parts are independent; in the mixture they are not. Either part may be absent. In hidden
Markov models of counts, Poisson distributions take the place of Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.stats import Stats
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments
from mixent.families.poisson import Events, PoissonFamily, Poissons
from mixent.families.uniform import Uniform

FIRST_SHARE = 0.05  # initial weight of the uniform component in each class

if TYPE_CHECKING:  # Poisson distributions have the same interface, as far as hidden Markov models use it
    from mixent.families.gaussian.family import GaussianFamily as NumericFamily
    from mixent.families.gaussian.family import Gaussians as Numeric
    from mixent.families.gaussian.kernels import Moments as NumericStats
else:
    NumericFamily, Numeric, NumericStats = GaussianFamily | PoissonFamily, Gaussians | Poissons, Moments | Events


@dataclass(frozen=True)
class Components:
    """Parameters of K components over mixed columns."""

    gaussian: Numeric | None
    categorical: Categoricals | None

    @property
    def n_components(self) -> int:
        part = self.gaussian if self.gaussian is not None else self.categorical
        assert part is not None
        return part.n_components


@dataclass(frozen=True)
class ComponentStats(Stats):
    gaussian: NumericStats | None
    categorical: Counts | None


@dataclass(frozen=True)
class ProductFamily:
    """Product of the two families, with their interface; log densities, log priors and numbers of parameters add."""

    gaussian: NumericFamily | None
    categorical: CategoricalFamily | None

    @property
    def trained(self) -> ProductFamily:
        """The family of the components that have parameters."""
        return self

    def initial_weights(self, counts: Array) -> Array:
        """Return joint weights of class and component, from the rows (C, K) of each class and trained component."""
        return counts / counts.sum()

    def prepare(self, params: Components) -> tuple[Any, Any]:
        return self._parts("prepare", params)

    def restrict(self, ready: tuple[Any, Any], index: np.ndarray) -> tuple[Any, Any]:
        """Return the result of `prepare` for some components."""
        return self._parts("restrict", ready, index)

    def embed(self, stats: ComponentStats, index: np.ndarray, n_components: int) -> ComponentStats:
        """Return statistics of some components as statistics of all, zero for the others."""
        return ComponentStats(*self._parts("embed", stats, index, n_components))

    def open(self, ready: tuple[Any, Any], block: Block) -> ProductWork:
        works = [work for work in self._parts("open", ready, block) if work is not None]
        return ProductWork(works, self)

    def update(self, params: Components, stats: ComponentStats, live: np.ndarray | None = None) -> Components:
        return Components(*self._parts("update", params, stats, live))

    def with_expected_rows(self, params: Components, stats: ComponentStats, rows: Array) -> ComponentStats:
        return ComponentStats(*self._parts("with_expected_rows", params, stats, rows))

    def feasible(self, params: Components, stats: ComponentStats, live: np.ndarray | None = None) -> np.ndarray:
        return np.all([part for part in self._parts("feasible", params, stats, live) if part is not None], axis=0)

    def anchored(self, params: Components, rows: Array, factor: float) -> ProductFamily:
        return ProductFamily(*self._parts("anchored", params, rows, factor))

    def log_prior(self, params: Components, live: np.ndarray | None = None) -> float:
        return sum(part for part in self._parts("log_prior", params, live) if part is not None)

    def condition(self, params: Components) -> float:
        if self.gaussian is None or params.gaussian is None:
            return 1.0
        return self.gaussian.condition(params.gaussian)

    def degenerate(self, params: Components) -> np.ndarray:
        return np.any([part for part in self._parts("degenerate", params) if part is not None], axis=0)

    def group_of(self, n_components: int) -> np.ndarray:
        """Return the structure group of each component, (K,)."""
        return np.zeros(n_components, dtype=int) if self.gaussian is None else self.gaussian.group_of()

    def copied(self, params: Components, parent: int, child: int) -> Components:
        return Components(*self._parts("copied", params, parent, child))

    def split(self, params: Components, parent: int, child: int) -> Components:
        return Components(*self._parts("split", params, parent, child))

    def n_free(self, n_components: int) -> int:
        gaussian = self.gaussian.n_free() if self.gaussian else 0
        return gaussian + (self.categorical.n_free(n_components) if self.categorical else 0)

    def pack(self, params: Components) -> Array:
        return np.concatenate([part for part in self._parts("pack", params) if part is not None])

    def unpack(self, vector: Array, like: Components, mass: Array) -> Components | None:
        cut = len(vector) - (like.categorical.log_probs.size if like.categorical is not None else 0)
        parts = self._parts("unpack", (vector[:cut], vector[cut:]), like, mass)
        failed = any(family and part is None for family, part in zip((self.gaussian, self.categorical), parts))
        return None if failed else Components(*parts)

    def take(self, params: Components, index: np.ndarray) -> tuple[ProductFamily, Components]:
        return self._split_pairs(self._parts("take", params, index))

    def sample(self, params: Components, component: np.ndarray, rng: np.random.Generator) -> tuple[Array, Any]:
        """Sample continuous columns, (n, d), and codes, (n, m) or None."""
        X, codes = self._parts("sample", params, component, rng)
        return np.empty((len(component), 0)) if X is None else X, codes

    def expected(self, ready: tuple[Any, Any], block: Block, resp: Array) -> Array:
        """Return continuous columns with missing values replaced by expectations, under component probabilities."""
        return block.X if block.complete or self.gaussian is None else self.gaussian.expected(ready[0], block, resp)

    def likely_codes(self, params: Components, codes: np.ndarray, resp: Array) -> np.ndarray:
        """Replace missing codes by their most probable values under component probabilities (K, n)."""
        if self.categorical is None or params.categorical is None:
            return codes
        return self.categorical.expected(params.categorical, codes, resp)

    def marginal(
        self, params: Components, columns: np.ndarray, code_columns: np.ndarray
    ) -> tuple[ProductFamily, Components]:
        """Return the exact marginal over some continuous and some categorical columns."""
        used = ProductFamily(self.gaussian if len(columns) else None, self.categorical if len(code_columns) else None)
        return self._split_pairs(used._parts("marginal", params, (columns, code_columns)))

    def _parts(self, method: str, *args: Any) -> tuple[Any, Any]:
        """Call a method of both families; an argument with two parts is divided between them."""
        first, second = zip(*map(_both, args))
        return (
            self.gaussian and getattr(self.gaussian, method)(*first),
            self.categorical and getattr(self.categorical, method)(*second),
        )

    @staticmethod
    def _split_pairs(pairs: tuple[Any, Any]) -> tuple[ProductFamily, Components]:
        families, params = zip(*(pair or (None, None) for pair in pairs))
        return ProductFamily(*families), Components(*params)


@dataclass(frozen=True)
class ContaminatedFamily(ProductFamily):
    """Product of the two families, and a last component with a uniform density, for outliers.

    The last component has no parameters: it has a weight, a log density and responsibilities, but no statistics.
    """

    uniform: Uniform

    @property
    def trained(self) -> ProductFamily:
        return ProductFamily(self.gaussian, self.categorical)

    def initial_weights(self, counts: Array) -> Array:
        weights = super().initial_weights(counts)
        return np.column_stack([(1 - FIRST_SHARE) * weights, FIRST_SHARE * weights.sum(axis=1)])

    def restrict(self, ready: tuple[Any, Any], index: np.ndarray) -> tuple[Any, Any]:
        return super().restrict(ready, index[:-1])  # all classes use the last component

    def embed(self, stats: ComponentStats, index: np.ndarray, n_components: int) -> ComponentStats:
        return super().embed(stats, index[:-1], n_components - 1)

    def open(self, ready: tuple[Any, Any], block: Block) -> ContaminatedWork:
        return ContaminatedWork(super().open(ready, block).works, self, block)

    def update(self, params: Components, stats: ComponentStats, live: np.ndarray | None = None) -> Components:
        return super().update(params, stats, None if live is None else live[:-1])

    def log_prior(self, params: Components, live: np.ndarray | None = None) -> float:
        return super().log_prior(params, None if live is None else live[:-1])

    def degenerate(self, params: Components) -> np.ndarray:
        return np.append(super().degenerate(params), False)

    def group_of(self, n_components: int) -> np.ndarray:
        groups = super().group_of(n_components - 1)
        return np.append(groups, groups.max() + 1)

    def unpack(self, vector: Array, like: Components, mass: Array) -> Components | None:
        return super().unpack(vector, like, mass[:-1])

    def take(self, params: Components, index: np.ndarray) -> tuple[ProductFamily, Components]:
        family, components = super().take(params, index[:-1])
        return replace(self, gaussian=family.gaussian, categorical=family.categorical), components

    def sample(self, params: Components, component: np.ndarray, rng: np.random.Generator) -> tuple[Array, Any]:
        outlier = component == params.n_components
        X, codes = super().sample(params, np.where(outlier, 0, component), rng)
        X[outlier], outlier_codes = self.uniform.sample(int(outlier.sum()), rng)
        if codes is not None:
            codes[outlier] = outlier_codes
        return X, codes

    def expected(self, ready: tuple[Any, Any], block: Block, resp: Array) -> Array:
        inside = super().expected(ready, block, resp[:-1])  # about the center, which has the whole weight
        if block.complete or self.gaussian is None:
            return inside
        return inside + resp[-1][:, None] * (self.uniform.expected(block.X) - self.gaussian.center)

    def likely_codes(self, params: Components, codes: np.ndarray, resp: Array) -> np.ndarray:
        return super().likely_codes(params, codes, resp[:-1])  # a uniform distribution does not change the maximum

    def marginal(
        self, params: Components, columns: np.ndarray, code_columns: np.ndarray
    ) -> tuple[ProductFamily, Components]:
        family, components = super().marginal(params, columns, code_columns)
        uniform = self.uniform.marginal(columns, code_columns)
        return replace(self, gaussian=family.gaussian, categorical=family.categorical, uniform=uniform), components


def _both(value: Any) -> tuple[Any, Any]:
    if isinstance(value, (Components, ComponentStats)):
        return value.gaussian, value.categorical
    return value if isinstance(value, tuple) else (value, value)


class ProductWork:
    """A block with given parameters of both families."""

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


class ContaminatedWork(ProductWork):
    """A block with given parameters of both families, and the uniform component."""

    def __init__(self, works: list[Any], family: ContaminatedFamily, block: Block) -> None:
        super().__init__(works, family)
        self.uniform, self.block = family.uniform, block

    def log_prob(self) -> Array:
        return np.vstack([super().log_prob(), self.uniform.log_prob(self.block)])

    def moments(self, resp: Array) -> ComponentStats:
        return super().moments(resp[:-1])
