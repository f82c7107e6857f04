"""Products of Gaussian and categorical distributions, for tables with mixed columns.

Within a component the two parts are independent; in the mixture they are not. Either part may be absent. In hidden
Markov models of counts, Poisson distributions take the place of Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.stats import Stats
from mixent.families.categorical import CategoricalFamily, Categoricals, Counts
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Moments
from mixent.families.poisson import Events, PoissonFamily, Poissons

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
