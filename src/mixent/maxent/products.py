"""Cells that are products of two pmfs, without forming the products.

With a hundred classifiers of seven classes and forty regions of the input space, a row has 28 000 cells, but only 740
numbers determine them. With the first factor u (p, n), the second factor v (K, n) and multipliers gamma (p, K, C),

    logits_c = sum_k v_k (sum_i u_i gamma_ikc)      counts_ikc = sum_t u_it (v_kt w_ct)

are one matrix product each, with a matrix of K C columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import Table
from mixent.maxent.blocks import Rows
from mixent.maxent.cells import Cells, thin_product
from mixent.maxent.layout import NARROWEST, Layout
from mixent.maxent.terms import CrossedDense, Probabilistic


@dataclass(frozen=True)
class Product:
    """The outer product of two factors, given by their slices of `Rows.dense`."""

    first: slice
    second: slice

    @property
    def shape(self) -> tuple[int, int]:
        return self.first.stop - self.first.start, self.second.stop - self.second.start

    @property
    def n_cells(self) -> int:
        p, K = self.shape
        return p * K

    def logits(self, multipliers: Array, rows: Rows) -> Array:
        """(C, n) from multipliers (p K, C)."""
        p, K = self.shape
        wide = multipliers.reshape(p, -1).T @ rows.dense[self.first]  # (K C, n)
        return np.einsum("kcn,kn->cn", wide.reshape(K, multipliers.shape[1], -1), rows.dense[self.second])

    def expected(self, weights: Array, rows: Rows) -> Array:
        """(p K, C) from weights (C, n)."""
        wide = rows.dense[self.second][:, None] * weights[None]  # (K, C, n)
        return thin_product(rows.dense[self.first], wide.reshape(-1, rows.n_rows)).reshape(self.n_cells, -1)

    def dense(self, rows: Rows) -> Array:
        """(p K, n) the products as a dense matrix."""
        u, v = rows.dense[self.first], rows.dense[self.second]
        return (u[:, None] * v[None]).reshape(self.n_cells, -1)


@dataclass(frozen=True)
class ProductCells(Cells):
    """Cells that are all products of two factors."""

    products: tuple[Product, ...] = ()

    @staticmethod
    def of(products: Sequence[Product]) -> ProductCells:
        return ProductCells((), sum(product.n_cells for product in products), tuple(products))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The range of cells of each product."""
        stops = np.cumsum([product.n_cells for product in self.products]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *stops[:-1]], stops))

    def table_logits(self, table: Array, rows: Rows) -> Array:
        out = np.zeros((table.shape[1], rows.n_rows))
        for product, span in zip(self.products, self.spans):
            out += product.logits(table[span], rows)
        return out

    def expected(self, weights: Array, rows: Rows) -> Array:
        return np.concatenate([product.expected(weights, rows) for product in self.products])

    def gram(self, rows: Rows) -> Array:
        phi = np.concatenate([np.ones((1, rows.n_rows)), self.dense(rows)]) * np.sqrt(rows.weight)
        return phi @ phi.T

    def dense_sums(self, rows: Rows) -> Array:
        return sum(rows.dense[p.first].sum(axis=0) * rows.dense[p.second].sum(axis=0) for p in self.products)

    def dense_squares(self, rows: Rows) -> Array:
        square = rows.dense**2
        return sum(square[p.first].sum(axis=0) * square[p.second].sum(axis=0) for p in self.products)

    def dense(self, rows: Rows) -> Array:
        return np.concatenate([product.dense(rows) for product in self.products])


@dataclass(frozen=True)
class ProductLayout(Layout):
    """Probabilistic terms and products of two of them; only the factors of a row are stored, not the products.

    A single term is its product with the constant cell one, the last of `Rows.dense`.
    """

    @staticmethod
    def crossing(
        single: Sequence[Probabilistic], crossed: Sequence[tuple[Probabilistic, Probabilistic]]
    ) -> ProductLayout:
        """A layout of single terms, followed by products of pairs of terms."""
        return ProductLayout((), (*single, *(CrossedDense(a, b) for a, b in crossed)))

    @cached_property
    def _factors(self) -> tuple[tuple[Any, Any], ...]:
        """The two factors of each term; the second is None for a single term."""
        return tuple((t.first, t.second) if isinstance(t, CrossedDense) else (t, None) for t in self.dense)

    @cached_property
    def _slices(self) -> dict[Any, slice]:
        """The cells of each factor in `Rows.dense`; first factors come before second factors."""
        firsts, seconds = (dict.fromkeys(pair[side] for pair in self._factors) for side in (0, 1))
        factors = [*firsts, *(f for f in seconds if f is not None)]
        stops = np.cumsum([len(f.values) for f in factors]).tolist()
        slices = {f: slice(a, b) for f, a, b in zip(factors, [0, *stops[:-1]], stops)}
        return {**slices, None: slice(stops[-1], stops[-1] + 1)}

    @cached_property
    def _products(self) -> tuple[Product, ...]:
        """One product for each term."""
        return tuple(Product(self._slices[a], self._slices[b]) for a, b in self._factors)

    @cached_property
    def cells(self) -> ProductCells:
        """The cells; adjacent products with the same second factor are merged, for fewer and larger matrices."""
        merged: list[Product] = []
        for product in self._products:
            if merged and merged[-1].second == product.second and merged[-1].first.stop == product.first.start:
                product = Product(slice(merged.pop().first.start, product.first.stop), product.second)
            merged.append(product)
        return ProductCells.of(merged)

    def rows(self, table: Table, target: Array, weight: Array | None) -> Rows:
        factors = {factor: factor.cells(table) for factor in self._slices if factor is not None}
        rows = Layout((), ()).rows(table, target, weight)
        present = rows.sums + sum(factors[a].any(axis=0).astype(int) for a, _ in self._factors)
        dense = np.concatenate([*factors.values(), np.ones((1, table.n_rows))])
        return Rows(rows.packed, dense, rows.target, rows.weight, present)

    def widths(self, rows: Rows) -> Array:
        low, high = np.full(self.cells.n_cells, np.inf), np.full(self.cells.n_cells, -np.inf)
        spans = self.spans
        for block in _chunks(rows.part(rows.weight > 0), self.cells.n_cells):
            for product, span in zip(self._products, spans):
                dense = product.dense(block)
                dense = dense[:, block.dense[product.first].any(axis=0)]  # without missing outputs (zeros)
                if dense.size:
                    low[span] = np.minimum(low[span], dense.min(axis=1))
                    high[span] = np.maximum(high[span], dense.max(axis=1))
        with np.errstate(invalid="ignore"):
            return np.where(high >= low, np.maximum(high - low, NARROWEST), 1.0)

    def term_logits(self, multipliers: Array, rows: Rows) -> Array:
        products = zip(self._products, self.spans)
        return np.stack([product.logits(multipliers[span], rows) for product, span in products])


def _chunks(rows: Rows, width: int) -> list[Rows]:
    """Chunks of rows whose dense products fit in memory."""
    step = max(1, 2_000_000 // max(width, 1))
    return [rows.part(slice(a, a + step)) for a in range(0, rows.n_rows, step)]
