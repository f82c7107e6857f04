"""The optimization problem of all mixtures, with joint weights of class and component and label likelihoods.

    maximize  sum_n w_n log sum_ck l_nc W_ck f_k(x_n) + log prior(f) [ + sum_ck rows_ck log W_ck ]

W (C, K) is the joint probability of class and component, zero where a class may not use a component; l_n is the label
likelihood of row n: one-hot if the class is known, a distribution if it is uncertain, all ones for an unlabelled row.
C = 1 is a mixture without classes; a block-diagonal W is a mixture per class; in a full W, classes share components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, softmax_columns, weighted_total
from mixent.core.blocks import Block
from mixent.core.driver import OutsideDomainError, Problem
from mixent.core.stats import Stats
from mixent.families.gaussian.family import SINGULAR
from mixent.families.product import Components, ComponentStats, ProductFamily
from mixent.show import Short

STARVED = 1e-6  # smallest share of the rows of a component


@dataclass(frozen=True, repr=False)
class MixtureParams(Short):
    """Weights and component parameters of a mixture."""

    weights: Array  # (C, K) joint p(class, component), sums to 1; (C, K + 1) if the family has a uniform component
    components: Components
    repairs: int = 0  # number of repairs so far

    @property
    def n_components(self) -> int:
        """Number of components with parameters."""
        return self.components.n_components

    @property
    def width(self) -> int:
        """Number of all components."""
        return self.weights.shape[1]

    @property
    def live(self) -> np.ndarray:
        """(width,) which components have not been dropped."""
        return self.weights.sum(axis=0) > 0


@dataclass(frozen=True)
class MixtureStats(Stats):
    counts: Array  # (C, K) expected rows of each class in each component
    components: ComponentStats
    log_lik: float

    @property
    def signed_counts(self) -> Array:
        """(C, K) gradient of the log-likelihood with respect to log W."""
        return self.counts


@dataclass(frozen=True)
class Ready:
    weights: Array  # (C, K)
    log_weights: Array  # (K,) summed over classes
    family: tuple
    by_class: tuple[ClassComponents, ...]  # for rows of known class


@dataclass(frozen=True)
class ClassComponents:
    """The components that a class uses."""

    index: np.ndarray
    log_weights: Array
    family: tuple


@dataclass(frozen=True, repr=False)
class MixtureProblem(Short, Problem):
    """EM for a mixture: each update maximizes a lower bound that touches the objective, which never decreases."""

    family: ProductFamily
    class_prior: Array | None = None  # (C,) fixed; None: estimated
    weight_rows: Array | None = None  # (C, K) pseudo-rows of the weights: statistics of earlier rows, or an anchor

    def prepare(self, params: MixtureParams) -> Ready:
        weights = params.weights
        family = self.family.prepare(params.components)
        by_class = []
        for row in weights:
            index = np.flatnonzero(row > 0)
            part = family if len(index) == len(row) else self.family.restrict(family, index)
            by_class.append(ClassComponents(index, np.log(row[index]), part))
        return Ready(weights, safe_log(weights.sum(axis=0)), family, tuple(by_class))

    def stats(self, ready: Ready, block: Block) -> MixtureStats:
        if block.known is not None:
            return self._known_stats(ready.by_class[block.known], ready.weights.shape, block)
        work = self.family.open(ready.family, block)
        resp = work.log_prob()
        allowed = None if block.label is None else ready.weights.T @ block.label.T  # (K, n)
        resp += ready.log_weights[:, None] if allowed is None else safe_log(allowed)
        log_lik = _normalize(resp, block)
        counts = _class_counts(ready.weights, block.label, allowed, resp)
        return MixtureStats(counts, work.moments(resp), log_lik)

    def _known_stats(self, used: ClassComponents, shape: tuple[int, int], block: Block) -> MixtureStats:
        """Return the statistics of rows of a known class; only the components of this class are evaluated."""
        work = self.family.open(used.family, block)
        resp = work.log_prob()
        resp += used.log_weights[:, None]
        log_lik = _normalize(resp, block)
        counts = np.zeros(shape)
        counts[block.known, used.index] = resp.sum(axis=1)
        moments = work.moments(resp)
        if len(used.index) < shape[1]:
            moments = self.family.embed(moments, used.index, shape[1])
        return MixtureStats(counts, moments, log_lik)

    def objective(self, params: MixtureParams, total: MixtureStats) -> float:
        if (self.family.degenerate(params.components) & params.live).any():  # rounding errors, or no maximum at all
            raise OutsideDomainError(f"the likelihood has no maximum: {SINGULAR}")
        return total.log_lik + self.log_prior(params)

    def condition(self, params: MixtureParams) -> float:
        return self.family.condition(params.components)

    def log_prior(self, params: MixtureParams) -> float:
        value = self.family.log_prior(params.components, params.live)
        if self.weight_rows is not None:
            used = params.weights > 0
            value += float(self.weight_rows[used] @ np.log(params.weights[used]))
        return value

    def update(self, params: MixtureParams, total: MixtureStats, step: float = 1.0) -> MixtureParams:
        counts = total.counts
        if self.weight_rows is not None:  # zero for a dropped component
            counts = counts + np.where(params.weights > 0, self.weight_rows, 0.0)
        if self.class_prior is not None:
            rows = counts.sum(axis=1, keepdims=True)
            within = np.divide(
                counts, rows, out=params.weights / params.weights.sum(axis=1, keepdims=True), where=rows > 0
            )
            weights = self.class_prior[:, None] * within
        else:
            weights = counts / counts.sum()
        # a weight of zero is a mask; a component without rows gets a tiny weight, so that `repair` finds it
        weights = np.where(params.weights > 0, np.maximum(weights, 1e-300), 0.0)
        components = self.family.update(params.components, total.components, params.live)
        return replace(params, weights=weights, components=components)

    def repair(self, params: MixtureParams, total: MixtureStats) -> tuple[MixtureParams, str] | None:
        """Re-seed a starved or degenerate component next to the heaviest one; drop it after several attempts."""
        mass = (total.counts if self.weight_rows is None else total.counts + self.weight_rows).sum(axis=0)
        trained = np.arange(params.width) < params.n_components
        live = params.live & trained
        starved = mass < STARVED * mass.sum()
        bad = live & (self.family.degenerate(params.components) | starved)
        if not bad.any():
            return None
        child = int(np.flatnonzero(bad)[0])
        reason = "starved" if starved[child] else "collapsed onto too few distinct rows"
        parents = live & ~bad & self._alike(params, child)
        if parents.any() and params.repairs < params.n_components:
            return self._reseed(params, mass, child, parents, reason)
        if live.sum() > bad.sum() and self._other_support(params, bad | ~trained):
            return self._drop(params, bad)
        return None  # no repair is possible: the driver's domain test ends the run

    def _reseed(
        self, params: MixtureParams, mass: Array, child: int, parents: np.ndarray, reason: str
    ) -> tuple[MixtureParams, str]:
        parent = int(np.where(parents, mass, -np.inf).argmax())
        weights = np.array(params.weights)
        weights[:, [parent, child]] = weights[:, [parent, child]].mean(axis=1, keepdims=True)
        components = self.family.split(params.components, parent, child)
        note = f"component {child} {reason}; re-seeded next to component {parent}"
        return replace(params, weights=weights, components=components, repairs=params.repairs + 1), note

    def _drop(self, params: MixtureParams, bad: np.ndarray) -> tuple[MixtureParams, str]:
        weights = np.where(bad, 0.0, params.weights)
        rows = weights.sum(axis=1, keepdims=True)
        weights = weights / rows * params.weights.sum(axis=1, keepdims=True)
        remaining = int(np.flatnonzero(~bad & (weights.sum(axis=0) > 0))[0])
        components = params.components
        for child in np.flatnonzero(bad):  # its weight is zero, but its density must be defined
            components = self.family.copied(components, remaining, int(child))
        names = ", ".join(map(str, np.flatnonzero(bad)))
        note = f"component {names} starved or collapsed again after being re-seeded; dropped"
        return replace(params, weights=weights, components=components), note

    def _alike(self, params: MixtureParams, child: int) -> np.ndarray:
        """Return which components have the same classes and the same structure group."""
        used = params.weights > 0
        group = self.family.group_of(params.width)
        return (used == used[:, [child]]).all(axis=0) & (group == group[child])

    @staticmethod
    def _other_support(params: MixtureParams, bad: np.ndarray) -> bool:
        return bool(((params.weights > 0) & ~bad).any(axis=1).all())

    def pack(self, params: MixtureParams) -> Array:
        used = params.weights > 0
        return np.concatenate([np.log(params.weights[used]), self.family.pack(params.components)])

    def unpack(self, vector: Array, like: MixtureParams) -> MixtureParams | None:
        used = like.weights > 0
        n = int(used.sum())
        if not np.isfinite(vector).all():
            return None
        weights = np.zeros_like(like.weights)
        weights[used] = np.exp(np.clip(vector[:n], -700, 0))
        if self.class_prior is not None:
            weights *= self.class_prior[:, None] / weights.sum(axis=1, keepdims=True)
        weights /= weights.sum()
        components = self.family.unpack(vector[n:], like.components, weights.sum(axis=0))
        return None if components is None else replace(like, weights=weights, components=components)

    def n_free(self, params: MixtureParams) -> int:
        """Return the number of free parameters: densities, weights within classes, class priors unless fixed."""
        n_classes = len(params.weights)
        within = int((params.weights > 0).sum()) - n_classes
        return self.family.n_free(params.n_components) + within + (n_classes - 1 if self.class_prior is None else 0)

    # predictions ----------------------------------------------------------------------------------------------

    def log_components(self, ready: Ready, block: Block) -> Array:
        """Return log f_k(x_n), (K, n)."""
        return self.family.open(ready.family, block).log_prob()

    def log_joint(self, ready: Ready, block: Block) -> Array:
        """Return log p(class, x), (n, C): the sum over the components of each class, in the log domain."""
        log_prob = self.log_components(ready, block)
        out = np.empty((block.n_rows, len(ready.weights)))
        for c, weights in enumerate(ready.weights):
            used = weights > 0
            if used.any():
                out[:, c] = log_sum_exp(log_prob[used] + np.log(weights[used])[:, None], axis=0)
            else:
                out[:, c] = -np.inf
        return out

    def log_resp(self, ready: Ready, block: Block) -> Array:
        """Return log p(component, x), (K, n), summed over classes."""
        log_prob = self.log_components(ready, block)
        log_prob += ready.log_weights[:, None]
        return log_prob


def _normalize(log_joint: Array, block: Block) -> float:
    """Replace log p(k, x) by weighted responsibilities in place and return the weighted log-likelihood."""
    log_lik = softmax_columns(log_joint)
    if block.weight is not None:
        log_joint *= block.weight
    return weighted_total(log_lik, block.weight)


def _class_counts(weights: Array, label: Array | None, allowed: Array | None, resp: Array) -> Array:
    """Return sum_n r_nk p(c | k, label_n), (C, K)."""
    if label is None or allowed is None:
        shares = weights / np.maximum(weights.sum(axis=0), 1e-300)
        return shares * resp.sum(axis=1)
    ratio = np.divide(resp, allowed, out=np.zeros_like(resp), where=allowed > 0)
    return weights * (ratio @ label).T
