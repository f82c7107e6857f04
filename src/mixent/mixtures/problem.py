"""One problem for every mixture: weights class x component, structures per group, label likelihoods.

    maximize  sum_n w_n log sum_ck l_nc W_ck f_k(x_n) + log prior(f) [ + sum_ck rows_ck log W_ck ]

W (C, K) is the joint weight of class and component, zero where a class may not use a component; l_n is the label
likelihood of row n: one-hot when the class is known, a distribution when uncertain, all ones when absent.
C = 1 is a plain mixture; a block of ones per class is a mixture per class; a full W shares components between classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array, log_sum_exp, safe_log, softmax_columns
from mixent.core.blocks import Block
from mixent.core.driver import Problem
from mixent.core.stats import Stats
from mixent.families.product import Components, ComponentStats, ProductFamily

STARVED = 1e-6  # a component with less than this share of the rows is starved


@dataclass(frozen=True)
class MixtureParams:
    weights: Array  # (C, K) joint p(class, component), sums to 1
    components: Components
    repairs: int = 0  # so far

    @property
    def n_components(self) -> int:
        return self.weights.shape[1]

    @property
    def live(self) -> np.ndarray:
        """(K,) not dropped."""
        return self.weights.sum(axis=0) > 0


@dataclass(frozen=True)
class MixtureStats(Stats):
    counts: Array  # (C, K) expected rows of each class in each component
    components: ComponentStats
    log_lik: float

    @property
    def signed_counts(self) -> Array:
        """(C, K) gradient of the data's part of the objective with respect to log W."""
        return self.counts


@dataclass(frozen=True)
class Ready:
    weights: Array  # (C, K)
    log_weights: Array  # (K,) summed over classes
    family: tuple
    own: tuple[Own, ...]  # per class, for rows known to belong to it


@dataclass(frozen=True)
class Own:
    """The components one class uses."""

    index: np.ndarray
    log_weights: Array
    family: tuple


@dataclass(frozen=True)
class MixtureProblem(Problem):
    """EM for the mixture: each update maximizes a lower bound that touches the objective, so it never falls."""

    family: ProductFamily
    class_prior: Array | None = None  # (C,) held fixed; None: learned
    weight_rows: Array | None = None  # (C, K) pseudo-rows of the weights: statistics kept from before, or an anchor

    def prepare(self, params: MixtureParams) -> Ready:
        weights = params.weights
        family = self.family.prepare(params.components)
        own = []
        for row in weights:
            index = np.flatnonzero(row > 0)
            part = family if len(index) == len(row) else self.family.restrict(family, index)
            own.append(Own(index, np.log(row[index]), part))
        return Ready(weights, safe_log(weights.sum(axis=0)), family, tuple(own))

    def stats(self, ready: Ready, block: Block) -> MixtureStats:
        if block.known is not None:
            return self._known_stats(ready.own[block.known], ready.weights.shape, block)
        work = self.family.open(ready.family, block)
        resp = work.log_prob()
        allowed = None if block.label is None else ready.weights.T @ block.label.T  # (K, n)
        resp += ready.log_weights[:, None] if allowed is None else safe_log(allowed)
        log_lik = _normalize(resp, block)
        counts = _class_counts(ready.weights, block.label, allowed, resp)
        return MixtureStats(counts, work.moments(resp), log_lik)

    def _known_stats(self, own: Own, shape: tuple[int, int], block: Block) -> MixtureStats:
        """Rows of one known class: the components of other classes have no part in them and are not evaluated."""
        work = self.family.open(own.family, block)
        resp = work.log_prob()
        resp += own.log_weights[:, None]
        log_lik = _normalize(resp, block)
        counts = np.zeros(shape)
        counts[block.known, own.index] = resp.sum(axis=1)
        moments = work.moments(resp)
        if len(own.index) < shape[1]:
            moments = self.family.embed(moments, own.index, shape[1])
        return MixtureStats(counts, moments, log_lik)

    def objective(self, params: MixtureParams, total: MixtureStats) -> float:
        return total.log_lik + self.log_prior(params)

    def log_prior(self, params: MixtureParams) -> float:
        value = self.family.log_prior(params.components, params.live)
        if self.weight_rows is not None:
            used = params.weights > 0
            value += float(self.weight_rows[used] @ np.log(params.weights[used]))
        return value

    def update(self, params: MixtureParams, total: MixtureStats, step: float = 1.0) -> MixtureParams:
        counts = total.counts
        if self.weight_rows is not None:  # of a component since dropped there are none
            counts = counts + np.where(params.weights > 0, self.weight_rows, 0.0)
        if self.class_prior is not None:
            rows = counts.sum(axis=1, keepdims=True)
            within = np.divide(
                counts, rows, out=params.weights / params.weights.sum(axis=1, keepdims=True), where=rows > 0
            )
            weights = self.class_prior[:, None] * within
        else:
            weights = counts / counts.sum()
        # zero is a mask; a component that merely starved keeps a trace, so that `repair` sees it
        weights = np.where(params.weights > 0, np.maximum(weights, 1e-300), 0.0)
        components = self.family.update(params.components, total.components, params.live)
        return replace(params, weights=weights, components=components)

    def repair(self, params: MixtureParams, total: MixtureStats) -> tuple[MixtureParams, str] | None:
        """Re-seed a starved or collapsed component beside the heaviest one; drop it when that has been tried enough."""
        mass = (total.counts if self.weight_rows is None else total.counts + self.weight_rows).sum(axis=0)
        live = params.live
        starved = mass < STARVED * mass.sum()
        bad = live & (self.family.broken(params.components) | starved)
        if not bad.any():
            return None
        child = int(np.flatnonzero(bad)[0])
        reason = "starved" if starved[child] else "collapsed onto too few distinct rows"
        parents = live & ~bad & self._alike(params, child)
        if parents.any() and params.repairs < params.n_components:
            return self._reseed(params, mass, child, parents, reason)
        if live.sum() > bad.sum() and (self._other_support(params, bad)):
            return self._drop(params, bad)
        return None  # nothing to fall back on: the driver's domain test ends the run

    def _reseed(
        self, params: MixtureParams, mass: Array, child: int, parents: np.ndarray, reason: str
    ) -> tuple[MixtureParams, str]:
        parent = int(np.where(parents, mass, -np.inf).argmax())
        weights = np.array(params.weights)
        weights[:, [parent, child]] = weights[:, [parent, child]].mean(axis=1, keepdims=True)
        components = self.family.split(params.components, parent, child)
        note = f"component {child} {reason}; re-seeded beside component {parent}"
        return replace(params, weights=weights, components=components, repairs=params.repairs + 1), note

    def _drop(self, params: MixtureParams, bad: np.ndarray) -> tuple[MixtureParams, str]:
        weights = np.where(bad, 0.0, params.weights)
        rows = weights.sum(axis=1, keepdims=True)
        weights = weights / rows * params.weights.sum(axis=1, keepdims=True)
        keep = int(np.flatnonzero(~bad & (weights.sum(axis=0) > 0))[0])
        components = params.components
        for child in np.flatnonzero(bad):  # weight 0, but its density must exist
            components = self.family.copied(components, keep, int(child))
        names = ", ".join(map(str, np.flatnonzero(bad)))
        note = f"component {names} starved or collapsed again after being re-seeded; dropped"
        return replace(params, weights=weights, components=components), note

    def _alike(self, params: MixtureParams, child: int) -> np.ndarray:
        """Components of the same classes and the same structure group."""
        used = params.weights > 0
        group = self.family.group_of(params.n_components)
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
        """Free parameters: densities, weights within classes, class priors unless held."""
        n_classes = len(params.weights)
        within = int((params.weights > 0).sum()) - n_classes
        return self.family.n_free(params.n_components) + within + (n_classes - 1 if self.class_prior is None else 0)

    # what predictions need ------------------------------------------------------------------------------------

    def log_components(self, ready: Ready, block: Block) -> Array:
        """log f_k(x_n), (K, n)."""
        return self.family.open(ready.family, block).log_prob()

    def log_joint(self, ready: Ready, block: Block) -> Array:
        """log p(class, x), (n, C): each class adds its own components in the log domain."""
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
        """log p(component, x), (K, n), classes summed out."""
        log_prob = self.log_components(ready, block)
        log_prob += ready.log_weights[:, None]
        return log_prob


def _normalize(log_joint: Array, block: Block) -> float:
    """Turn log p(k, x) into weighted responsibilities in place; return the weighted log-likelihood."""
    log_lik = softmax_columns(log_joint)
    if block.weight is None:
        return float(log_lik.sum())
    log_joint *= block.weight
    # weight zero is the row left out, whatever its density
    return float(np.where(block.weight > 0, log_lik, 0.0) @ block.weight)


def _class_counts(weights: Array, label: Array | None, allowed: Array | None, resp: Array) -> Array:
    """(C, K): sum_n r_nk p(c | k, label_n)."""
    if label is None or allowed is None:
        shares = weights / np.maximum(weights.sum(axis=0), 1e-300)
        return shares * resp.sum(axis=1)
    ratio = np.divide(resp, allowed, out=np.zeros_like(resp), where=allowed > 0)
    return weights * (ratio @ label).T
