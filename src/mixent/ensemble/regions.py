"""Regions of the input space: the hidden component of a mixture of the columns (document 004, section 3.2.2)."""

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
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class RegionMixture(Short):
    """The components of a mixture of some columns.

    kind "pooled": one mixture of all rows. "union": one mixture per class, with responsibilities over the components of
    all classes. "class": responsibilities within the mixture of each class, with multipliers for that class only.
    """

    columns: tuple[int, ...]  # positions in X
    kind: str
    mixture: Any  # GaussianMixture ("pooled") or MixtureClassifier
    classes: tuple[int, ...]  # positions of the mixture's classes among all classes; a class may have no rows

    def with_models(self, convert: Callable[[Any, str], Any]) -> RegionMixture:
        """A copy with another mixture."""
        return replace(self, mixture=convert(self.mixture, ""))

    @property
    def component_class(self) -> np.ndarray | None:
        """(K,) the class of each component, as its position among all classes; None for a pooled mixture."""
        return None if self.kind == "pooled" else np.array(self.classes)[self.mixture.component_class_]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the regions."""
        if self.component_class is None:
            return tuple(f"region {k + 1}" for k in range(self.mixture.params_.n_components))
        of = self.mixture.classes_[self.mixture.component_class_]
        return tuple(f"region {k + 1} (of {label})" for k, label in enumerate(of))

    def pmf(self, X: Inputs) -> Array:
        """(n, K) probabilities of the regions, P[M = k | x]."""
        table = self.mixture._read(X.read_by(self.mixture, self.columns))
        return self._cells(self.mixture.params_, self.mixture._block(table))

    def held_out(self, X: Inputs, likelihood: Array, weight: Array | None, folds: Sequence[Fold]) -> Array:
        """(n, K) probabilities of the regions, for each row from the other folds; rows without a fold as in `pmf`.

        The components of each fold are one EM step away from the fitted ones, with the statistics of the other folds,
        so they keep their order. This removes most of the influence of a row's own label; a small part remains in the
        number and the initial positions of the components.
        """
        mixture, problem = self.mixture, self.mixture.problem_
        table = mixture._read(X.read_by(mixture, self.columns))
        out = self._cells(mixture.params_, mixture._block(table))
        label = None if self.kind == "pooled" else likelihood[:, self.classes]
        gaussian = problem.family.gaussian
        aligned = gaussian is None or gaussian.axis_aligned
        K = mixture.params_.n_components
        for train, test in folds:
            part = select_columns(
                table.take(train),
                mixture.varying_,
                None if label is None else label[train],
                None if weight is None else weight[train],
            )
            with choose_executor(mixture.n_jobs, len(train), K) as executor:
                count = partial(problem.stats, problem.prepare(mixture.params_))
                params = problem.update(mixture.params_, executor.total(count, blocks(part, K, aligned)))
            out[test] = self._cells(params, mixture._block(table.take(test)))
        return out

    def _cells(self, params: MixtureParams, block: Block) -> Array:
        problem, K = self.mixture.problem_, params.n_components
        component_class = self.component_class if self.kind == "class" else None

        def cells(ready: Ready, part: Block) -> Array:
            if component_class is None:
                return block_resp(problem, ready, part).T
            log_joint = problem.log_components(ready, part) + np.log(params.weights.sum(axis=0))[:, None]
            for c in np.unique(component_class):
                within = log_joint[component_class == c]
                softmax_columns(within)
                log_joint[component_class == c] = within
            return log_joint.T

        return each_row(problem, params, block, cells, K, self.mixture.n_jobs)


def fit_regions(
    X: Inputs, y: np.ndarray, weight: Array | None, columns: tuple[int, ...], kind: str, options: dict[str, Any]
) -> Any:
    """The fitted mixture of these columns; BIC chooses the number of components."""
    common = dict(options)
    covariance, max_components = common.pop("covariance"), common.pop("max_components")
    part = X.read(columns)
    if kind == "pooled":
        pooled = GaussianMixture("auto", [covariance], search=Search("bic", max_components), **common)
        return pooled.fit(part, sample_weight=weight)
    search = Search("bic", max_components, per_class=True)
    return MixtureClassifier("auto", [covariance], search=search, **common).fit(part, y, weight)


def column_positions(columns: Sequence[Any], names: Sequence[str], option: str) -> tuple[int, ...]:
    """Positions of columns given by name or position."""
    names, out = list(names), []
    for column in columns:
        index = names.index(column) if isinstance(column, str) and column in names else column
        if isinstance(index, (bool, str)) or not isinstance(index, (int, np.integer)) or not 0 <= index < len(names):
            raise ValueError(f"{option}: X has no column {column!r}; its columns are {listed(names)}")
        out.append(int(index))
    return tuple(out)
