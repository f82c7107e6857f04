"""Cells that are products of two pmfs, never written out.

A hundred classifiers of seven classes beside forty cells of the input space are 28 000 cells a row, but only 740
numbers. With u (p, n) the first factor, v (K, n) the second and multipliers gamma (p, K, C),

    logits_c = sum_k v_k (sum_i u_i gamma_ikc)      counts_ikc = sum_t u_it (v_kt w_ct)

are one matrix product each, of a matrix K C wide.
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
    """Every one of some numbers of a row times every one of some others: where both stand in `Rows.dense`."""

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

    def written(self, rows: Rows) -> Array:
        """(p K, n)."""
        u, v = rows.dense[self.first], rows.dense[self.second]
        return (u[:, None] * v[None]).reshape(self.n_cells, -1)


@dataclass(frozen=True)
class ProductCells(Cells):
    """As `Cells`, where every cell is a product."""

    products: tuple[Product, ...] = ()

    @staticmethod
    def of(products: Sequence[Product]) -> ProductCells:
        return ProductCells((), sum(product.n_cells for product in products), tuple(products))

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """Where the cells of each product stand."""
        stops = np.cumsum([product.n_cells for product in self.products]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *stops[:-1]], stops))

    def looked_up(self, table: Array, rows: Rows) -> Array:
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
        return np.concatenate([product.written(rows) for product in self.products])


@dataclass(frozen=True)
class ProductLayout(Layout):
    """Probabilistic pmfs, and products of two of them; the factors of a row are held, not the products.

    A pmf that stands alone is its product with one cell that is always one, the last of `Rows.dense`.
    """

    @staticmethod
    def crossing(
        alone: Sequence[Probabilistic], crossed: Sequence[tuple[Probabilistic, Probabilistic]]
    ) -> ProductLayout:
        """Some pmfs alone, then the products of some pairs."""
        return ProductLayout((), (*alone, *(CrossedDense(a, b) for a, b in crossed)))

    @cached_property
    def _pairs(self) -> tuple[tuple[Any, Any], ...]:
        """The factors of each term; None where it stands alone."""
        return tuple((t.first, t.second) if isinstance(t, CrossedDense) else (t, None) for t in self.dense)

    @cached_property
    def _places(self) -> dict[Any, slice]:
        """Where the cells of each factor stand in `Rows.dense`; those that come first before all others."""
        firsts, seconds = (dict.fromkeys(pair[side] for pair in self._pairs) for side in (0, 1))
        factors = [*firsts, *(f for f in seconds if f is not None)]
        stops = np.cumsum([len(f.values) for f in factors]).tolist()
        places = {f: slice(a, b) for f, a, b in zip(factors, [0, *stops[:-1]], stops)}
        return {**places, None: slice(stops[-1], stops[-1] + 1)}

    @cached_property
    def _apart(self) -> tuple[Product, ...]:
        """One product for each term."""
        return tuple(Product(self._places[a], self._places[b]) for a, b in self._pairs)

    @cached_property
    def cells(self) -> ProductCells:
        """Neighbors with the same second factor are one product: fewer, larger matrices."""
        merged: list[Product] = []
        for product in self._apart:
            if merged and merged[-1].second == product.second and merged[-1].first.stop == product.first.start:
                product = Product(slice(merged.pop().first.start, product.first.stop), product.second)
            merged.append(product)
        return ProductCells.of(merged)

    def rows(self, table: Table, target: Array, weight: Array | None) -> Rows:
        factors = {factor: factor.cells(table) for factor in self._places if factor is not None}
        rows = Layout((), ()).rows(table, target, weight)
        present = rows.sums + sum(factors[a].any(axis=0).astype(int) for a, _ in self._pairs)
        dense = np.concatenate([*factors.values(), np.ones((1, table.n_rows))])
        return Rows(rows.packed, dense, rows.target, rows.weight, present)

    def widths(self, rows: Rows) -> Array:
        low, high = np.full(self.cells.n_cells, np.inf), np.full(self.cells.n_cells, -np.inf)
        spans = self.spans
        for block in _some_at_a_time(rows.part(rows.weight > 0), self.cells.n_cells):
            for product, span in zip(self._apart, spans):
                written = product.written(block)
                written = written[:, block.dense[product.first].any(axis=0)]  # a missing output is no output of zero
                if written.size:
                    low[span] = np.minimum(low[span], written.min(axis=1))
                    high[span] = np.maximum(high[span], written.max(axis=1))
        with np.errstate(invalid="ignore"):
            return np.where(high >= low, np.maximum(high - low, NARROWEST), 1.0)

    def parts(self, multipliers: Array, rows: Rows) -> Array:
        each = zip(self._apart, self.spans)
        return np.stack([product.logits(multipliers[span], rows) for product, span in each])


def _some_at_a_time(rows: Rows, width: int) -> list[Rows]:
    """Blocks of rows that may be written out."""
    step = max(1, 2_000_000 // max(width, 1))
    return [rows.part(slice(a, a + step)) for a in range(0, rows.n_rows, step)]
