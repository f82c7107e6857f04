"""Where in the input space a row lies: the hidden component of a mixture, a probabilistic instance (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mixent.base.executors import choose_executor
from mixent.base.folds import Fold
from mixent.core.arrays import Array, softmax_columns
from mixent.core.blocks import Block
from mixent.data import listed
from mixent.ensemble.inputs import Inputs
from mixent.mixtures import GaussianMixture, MixtureClassifier
from mixent.mixtures.fitting import blocks
from mixent.mixtures.model import select_columns
from mixent.mixtures.options import Search
from mixent.mixtures.predict import block_resp, each_row
from mixent.mixtures.problem import MixtureParams, Ready


@dataclass(frozen=True)
class RegionMixture:
    """The components of a mixture of some columns.

    kind "pooled": one mixture of all rows. "union": a mixture per class, responsibilities over all classes' components
    together. "class": responsibilities within each class's own mixture; a cell then has a multiplier for its own class
    only.
    """

    columns: tuple[int, ...]  # positions in X
    kind: str
    mixture: Any  # GaussianMixture ("pooled") or MixtureClassifier
    classes: tuple[int, ...]  # positions of the mixture's classes among all: one may have no row to learn from

    def with_models(self, convert: Callable[[Any, str], Any]) -> RegionMixture:
        """A copy with another mixture."""
        return replace(self, mixture=convert(self.mixture, ""))

    @property
    def owner(self) -> np.ndarray | None:
        """(K,) position among all classes of the one each component was learned from."""
        return None if self.kind == "pooled" else np.array(self.classes)[self.mixture.component_class_]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the cells."""
        if self.owner is None:
            return tuple(f"region {k + 1}" for k in range(self.mixture.params_.n_components))
        of = self.mixture.classes_[self.mixture.component_class_]
        return tuple(f"region {k + 1} (of {label})" for k, label in enumerate(of))

    def pmf(self, X: Inputs) -> Array:
        """(n, K) P[M = k | a]."""
        table = self.mixture._read(X.read_by(self.mixture, self.columns))
        return self._cells(self.mixture.params_, self.mixture._block(table))

    def held_out(self, X: Inputs, likelihood: Array, weight: Array | None, folds: Sequence[Fold]) -> Array:
        """(n, K) of each row as if its fold had not been seen; rows of no fold as they are.

        Statistics are additive: those of the other folds, at the components found, give components that keep their
        places. In that one step a row's own label loses most of its hold: how many components there are, and where, has
        still seen it.
        """
        mixture, problem = self.mixture, self.mixture.problem_
        table = mixture._read(X.read_by(mixture, self.columns))
        out = self._cells(mixture.params_, mixture._block(table))
        label = None if self.kind == "pooled" else likelihood[:, self.classes]
        gaussian = problem.family.gaussian
        aligned = gaussian is None or gaussian.axis_aligned
        K = mixture.params_.n_components
        for train, held in folds:
            part = select_columns(
                table.take(train),
                mixture.varying_,
                None if label is None else label[train],
                None if weight is None else weight[train],
            )
            with choose_executor(mixture.n_jobs, len(train), K) as executor:
                count = partial(problem.stats, problem.prepare(mixture.params_))
                params = problem.update(mixture.params_, executor.total(count, blocks(part, K, aligned)))
            out[held] = self._cells(params, mixture._block(table.take(held)))
        return out

    def _cells(self, params: MixtureParams, block: Block) -> Array:
        problem, K = self.mixture.problem_, params.n_components
        owner = self.owner if self.kind == "class" else None

        def cells(ready: Ready, part: Block) -> Array:
            if owner is None:
                return block_resp(problem, ready, part).T
            log_joint = problem.log_components(ready, part) + np.log(params.weights.sum(axis=0))[:, None]
            for c in np.unique(owner):
                mine = log_joint[owner == c]
                softmax_columns(mine)
                log_joint[owner == c] = mine
            return log_joint.T

        return each_row(problem, params, block, cells, K, self.mixture.n_jobs)


def fit_regions(
    X: Inputs, y: np.ndarray, weight: Array | None, columns: tuple[int, ...], kind: str, options: dict[str, Any]
) -> Any:
    """The fitted mixture of these columns; the number of components by BIC."""
    common = dict(options)
    covariance, most = common.pop("covariance"), common.pop("max_components")
    part = X.read(columns)
    if kind == "pooled":
        pooled = GaussianMixture("auto", [covariance], search=Search("bic", most), **common)
        return pooled.fit(part, sample_weight=weight)
    search = Search("bic", most, per_class=True)
    return MixtureClassifier("auto", [covariance], search=search, **common).fit(part, y, weight)


def place_columns(columns: Sequence[Any], names: Sequence[str], option: str) -> tuple[int, ...]:
    """Positions of columns named or numbered by the user."""
    names, out = list(names), []
    for column in columns:
        at = names.index(column) if isinstance(column, str) and column in names else column
        if isinstance(at, (bool, str)) or not isinstance(at, (int, np.integer)) or not 0 <= at < len(names):
            raise ValueError(f"{option} names a column {column!r} that X does not have; columns are {listed(names)}")
        out.append(int(at))
    return tuple(out)
