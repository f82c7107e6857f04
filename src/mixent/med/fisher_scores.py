"""Fisher scores of a fitted mixture:  U_x = gradient of log p(x | theta), row by row.

By Fisher's identity the score of p(x) = sum_k w_k f_k(x) is the expected score of the complete row, including its
component and missing values:  U_x = sum_k r_k(x) E[ grad log (w_k f_k(x)) | observed part of x, k ].

The kernel U^T F^-1 U is the same in any coordinates. They are chosen such that the information of rows with known
component is the identity. With y = L_k^-1 (x - m_k), L_k L_k^T = C_k, the coordinates and scores are, up to scale:

    mean          dm = L dt                  y
    covariance    dC = L G L^T               tr(G (y y^T - I)) / 2
    a table       d log p_v = B_v dt         B_v,  with  sum_v p_v B_v = 0  and  sum_v p_v B_v B_v^T = I

where the three letters of a covariance structure determine the symmetric matrices G: volume, G = I; shape, G diagonal
with trace 0; orientation, G_ij = S_ij (l_j - l_i) / sqrt(l_i l_j), S skew-symmetric, l the variances along the axes. An
Equal property has one coordinate for the group, in which the scores of the components add up.

The information F = E[U U^T] is then the identity for one component. For several it lies between 0 and the identity, and
its eigenvalues are the fractions of the complete-data information that remain when the components are unobserved.

For a hidden Markov model a row is a sequence, and the states are unobserved: first states, pairs of successive states
and emissions have the same kind of coordinates, with the posteriors of states and pairs, summed over the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.charts import GroupChart
from mixent.families.gaussian.family import GaussianFamily, Gaussians
from mixent.families.gaussian.kernels import Ready as GaussianReady
from mixent.families.gaussian.missing import Incomplete
from mixent.hmm.fitting import FittedChain
from mixent.hmm.lattice import sweep
from mixent.hmm.problem import Ready as ChainReady
from mixent.hmm.sequences import SequenceBlock
from mixent.mixtures.predict import block_resp
from mixent.mixtures.problem import MixtureParams, MixtureProblem, Ready

ConditionalCovariance = Callable[[int, Array], tuple[Array, Array | float]]


def contrasts(p: Array) -> Array:
    """B (v, v - 1) with  sum_v p_v B_v = 0  and  sum_v p_v B_v B_v^T = I:  each entry against all entries before it."""
    before = np.cumsum(p)[:-1]
    entry, total = p[1:], before + p[1:]
    B = np.triu(np.broadcast_to(-np.sqrt(entry / (before * total)), (len(p), len(p) - 1)))
    B[np.arange(1, len(p)), np.arange(len(p) - 1)] = np.sqrt(before / (entry * total))
    return B


class MixtureScores:
    """Fisher scores of a mixture: weights, means and covariances by group, category probabilities by column.

    A dropped component has no coordinates. The density of a row depends on the joint weights of class and component
    only through their sums over classes. With fixed class priors, probability can move only between components that
    share a class, or that are connected by components that do.
    """

    def __init__(self, problem: MixtureProblem, params: MixtureParams) -> None:
        self.problem = problem
        family, live = problem.family, params.live
        self.live = np.flatnonzero(live)
        self.weights = _weight_contrasts(params.weights, fixed_priors=problem.class_prior is not None)
        self.size = self.weights.shape[1]
        self.gaussian = self.categorical = None
        if family.gaussian is not None and params.components.gaussian is not None:
            self.gaussian = GaussianScores(family.gaussian, params.components.gaussian, live, self.size)
            self.size = self.gaussian.stop
        if family.categorical is not None and params.components.categorical is not None:
            self.categorical = TableScores(family.categorical, params.components.categorical, self.live, self.size)
            self.size = self.categorical.stop
        self.scale = self._scale(params.weights.sum(axis=0))

    @property
    def n_live(self) -> int:
        """Number of components that were not dropped."""
        return len(self.live)

    def _scale(self, mass: Array) -> Array:
        """(size,) scale at which the complete-data information  sum_k w_k E_k[score^2]  of each coordinate is 1."""
        information = np.zeros(self.size)
        information[: self.weights.shape[1]] = 1.0
        for part in (self.gaussian, self.categorical):
            if part is not None:
                part.add_information(information, mass)
        return np.divide(1.0, np.sqrt(information), out=np.zeros(self.size), where=information > 0)

    def rows(self, ready: Ready, block: Block) -> Array:
        """(n, size) scores of the rows of a block."""
        resp = np.array(block_resp(self.problem, ready, block))  # (K, n), out of the scratch buffers
        out = np.zeros((block.n_rows, self.size))
        out[:, : self.weights.shape[1]] = resp.T @ self.weights
        if self.gaussian is not None:
            self.gaussian.add(out, ready.family[0], block, resp)
        if self.categorical is not None:
            self.categorical.add(out, block, resp)
        out *= self.scale
        return out


def _weight_contrasts(joint: Array, *, fixed_priors: bool) -> Array:
    """(K, coordinates) contrasts of the component weights, from the joint weights of class and component (C, K)."""
    weights = joint.sum(axis=0)
    used = (joint > 0).astype(int)
    sets = connected_components(used.T @ used)[1] if fixed_priors else np.zeros(len(weights), dtype=int)
    parts = []
    for s in np.unique(sets[weights > 0]):
        index = np.flatnonzero((sets == s) & (weights > 0))
        part = np.zeros((len(weights), len(index) - 1))
        part[index] = contrasts(weights[index])
        parts.append(part)
    return np.concatenate(parts, axis=1)


class GaussianScores:
    """Scores of means and covariances, from the matrix L^-1 of each component and the positions of its coordinates."""

    def __init__(self, family: GaussianFamily, params: Gaussians, live: np.ndarray, start: int) -> None:
        d = self.d = family.n_columns
        self.upper = np.triu_indices(d, 1)
        factors = family.prepare(params).factors
        self.members: list[
            tuple
        ] = []  # component, frame L^-1, basis of the variances, factor of the covariances, positions
        for g, group in enumerate(family.groups):
            index = np.flatnonzero(live[group.span]) + group.start
            name = (
                group.model.name if len(index) > 1 else group.model.name.replace("E", "V")
            )  # a single component is equal to itself
            positions, start = _positions(name, d, len(index), start)
            any_axes = name[1] == name[2]  # shape and orientation vary together or not at all
            frames = (
                factors[index] if any_axes or not len(index) else GroupChart(family, params, g, index).first_factors
            )
            basis = np.full((d, 1), d**-0.5)
            if name[1] != "I":
                basis = np.hstack([basis, contrasts(np.ones(d))])
            self.members += [
                (k, frame, basis, None if name[2] == "I" else self._rotation(name, frame), position)
                for k, frame, position in zip(index.tolist(), frames, positions)
            ]
        self.stop = start

    def _rotation(self, name: str, frame: Array) -> Array:
        """G_ij of a rotation between axes i < j; any G_ij if shape and orientation vary together."""
        i, j = self.upper
        if name[1] == name[2]:
            return np.ones(len(i))
        log_std = -np.log(np.linalg.norm(frame, axis=1))
        return np.asarray(2.0 * np.sinh(log_std[j] - log_std[i]))

    def add_information(self, information: Array, mass: Array) -> None:
        """Add the complete-data information of each coordinate, for components with weights `mass` (K,)."""
        for k, _, basis, rotation, position in self.members:
            squares = [] if rotation is None else rotation**2
            information[position] += mass[k] * np.append(np.ones(self.d + basis.shape[1]), squares)

    def add(self, out: Array, ready: GaussianReady, block: Block, resp: Array) -> None:
        """Add these scores to the rows of `out` (n, ...), for responsibilities (K, n)."""
        z, conditional_covariance = _completed(ready, block)
        i, j = self.upper
        for k, frame, basis, rotation, position in self.members:
            y = z[k] * frame if frame.ndim == 1 else z[k] @ frame.T
            square, cross = conditional_covariance(k, frame)
            parts = [y, (y * y + square - 1.0) @ basis * 0.5**0.5]
            if rotation is not None:
                parts.append((y[:, i] * y[:, j] + cross) * rotation)
            out[:, position] += resp[k][:, None] * np.concatenate(parts, axis=1)


def _positions(name: str, d: int, n: int, start: int) -> tuple[np.ndarray, int]:
    """(n, ...) positions of the coordinates of each component, shared if Equal, and the first free position."""
    positions = []
    for letter, width in zip("V" + name, (d, 1, d - 1, d * (d - 1) // 2)):
        copies = {"I": 0, "E": min(n, 1), "V": n}[letter]
        block = start + np.arange(copies * width).reshape(copies, width)
        positions.append(np.broadcast_to(block, (n, width)) if copies else np.empty((n, 0), dtype=int))
        start += copies * width
    return np.concatenate(positions, axis=1), start


def _completed(ready: GaussianReady, block: Block) -> tuple[Array, ConditionalCovariance]:
    """x - m_k (K, n, d) with conditional means for missing values, and a function for the conditional covariances."""
    if not block.complete and not ready.axis_aligned:
        gapped = Incomplete(ready, block)
        gapped.log_prob()  # completes each row under each component
        return gapped.completed, partial(_conditional_covariance, gapped)
    z = (block.X - ready.center) - ready.means[:, None, :]
    missing = np.isnan(block.X)
    z[:, missing] = 0.0
    return z, lambda k, frame: (missing, 0.0)  # independent columns: the conditional variance in coordinates y is 1


def _conditional_covariance(gapped: Incomplete, k: int, frame: Array) -> tuple[Array, Array]:
    """Conditional variances (n, d) and covariances (n, d (d - 1) / 2) of missing values, in the coordinates y."""
    frame = np.diag(frame) if frame.ndim == 1 else frame
    (n_patterns, _), d = gapped.patterns.shape, len(frame)
    spread = np.zeros((n_patterns, gapped.width, gapped.width))
    rows = np.arange(n_patterns)[:, None, None]
    spread[rows, gapped.patterns[:, :, None], gapped.patterns[:, None, :]] = gapped.cond_cov[k]
    spread = frame @ spread[:, :d, :d] @ frame.T
    return np.diagonal(spread, axis1=1, axis2=2)[gapped.pattern], spread[:, *np.triu_indices(d, 1)][gapped.pattern]


class TableScores:
    """Scores of category probabilities: contrasts for each column and component, and zeros for a missing value."""

    def __init__(self, family: CategoricalFamily, params: Categoricals, live: np.ndarray, start: int) -> None:
        self.members: list[tuple] = []  # column, component, contrasts, positions
        for j, (first, size) in enumerate(zip(family.starts, family.sizes)):
            for k in live.tolist():
                table = np.zeros((size + 1, size - 1))  # code -1 selects the last row
                table[:-1] = contrasts(np.exp(params.log_probs[k, first : first + size]))
                self.members.append((j, k, table, slice(start, start + size - 1)))
                start += size - 1
        self.stop = start

    def add_information(self, information: Array, mass: Array) -> None:
        """Add the complete-data information of each coordinate, for components with weights `mass` (K,)."""
        for _, k, _, position in self.members:
            information[position] += mass[k]

    def add(self, out: Array, block: Block, resp: Array) -> None:
        """Write these scores into the rows of `out` (n, ...), for responsibilities (K, n)."""
        assert block.codes is not None
        for j, k, table, position in self.members:
            np.multiply(resp[k][:, None], table[block.codes[:, j]], out=out[:, position])


ABSENT = 1e-12  # a probability up to this value counts as zero and has no coordinate


class ChainScores:
    """Fisher scores of a hidden Markov model, for sequences of one length: first states, transitions, emissions."""

    def __init__(self, chain: FittedChain, length: int) -> None:
        self.problem, self.params = chain.problem, chain.params
        start, trans = np.exp(self.params.log_start), np.exp(self.params.log_trans)
        visits = _visits(start, trans, length)  # (length, S)
        mass, departures = visits.sum(axis=0), visits[:-1].sum(axis=0)
        live = mass > ABSENT
        self.n_live = int(live.sum())
        self.start = _row_contrasts(start)
        self.trans: list[tuple] = []  # state, contrasts, positions
        size = self.start.shape[1]
        for state in np.flatnonzero(live & (departures > ABSENT)).tolist():
            rows = _row_contrasts(trans[state])
            self.trans.append((state, rows, slice(size, size + rows.shape[1])))
            size += rows.shape[1]
        family, components = self.problem.family, self.params.components
        assert family is not None and components is not None
        self.gaussian = self.categorical = None
        if family.gaussian is not None and components.gaussian is not None:
            assert isinstance(family.gaussian, GaussianFamily)  # others are refused by `FisherKernel`
            self.gaussian = GaussianScores(family.gaussian, components.gaussian, live, size)
            size = self.gaussian.stop
        if family.categorical is not None and components.categorical is not None:
            self.categorical = TableScores(family.categorical, components.categorical, np.flatnonzero(live), size)
            size = self.categorical.stop
        self.size = size
        self.information = np.zeros(size)  # of each coordinate, for known states
        self.information[: self.start.shape[1]] = 1.0
        for state, _, position in self.trans:
            self.information[position] = departures[state]
        for part in (self.gaussian, self.categorical):
            if part is not None:
                part.add_information(self.information, mass)

    def rows(self, ready: ChainReady, block: SequenceBlock) -> tuple[Array, Array]:
        """Scores (n, size) and log-likelihoods (n,), in the order of `block.index`."""
        layout = block.layout
        n = len(layout.lengths)
        posterior = sweep(ready.chain, self.problem.log_emissions(ready, block), layout, pairs="sequence")
        assert posterior.pairs is not None
        out = np.zeros((n, self.size))  # in the order of the layout
        out[:, : self.start.shape[1]] = posterior.states[:, :n].T @ self.start
        for part in block.emitted:
            index = slice(None) if part.rows is None else part.rows
            resp = np.ascontiguousarray(posterior.states[:, index])
            steps = np.zeros((part.n_rows, self.size))
            if self.gaussian is not None:
                self.gaussian.add(steps, ready.family[0], part, resp)
            if self.categorical is not None:
                self.categorical.add(steps, part, resp)
            member = (np.ones(part.n_rows), (layout.rank[index], np.arange(part.n_rows)))
            out += sparse.csr_array(member, shape=(n, part.n_rows)) @ steps
        in_order = np.empty_like(out)
        in_order[layout.order] = out
        for state, rows, position in self.trans:
            in_order[:, position] = posterior.pairs[:, state] @ rows
        return in_order, posterior.log_lik


def _visits(start: Array, trans: Array, length: int) -> Array:
    """(length, S) prior probabilities of the states at each step."""
    out = [start]
    for _ in range(1, length):
        out.append(out[-1] @ trans)
    return np.array(out)


def _row_contrasts(p: Array) -> Array:
    """(S, coordinates) contrasts of probabilities, some of which may be zero."""
    index = np.flatnonzero(p > ABSENT)
    out = np.zeros((len(p), len(index) - 1))
    out[index] = contrasts(p[index])
    return out


class SequenceScores:
    """Fisher scores of sequences: those of the chain of each class, and of the class priors unless they are fixed."""

    def __init__(self, chains: tuple[FittedChain, ...], class_prior: Array, length: int, *, fixed_priors: bool) -> None:
        self.chains = [ChainScores(chain, length) for chain in chains]
        self.class_prior = class_prior
        self.priors = np.zeros((len(chains), 0)) if fixed_priors or len(chains) == 1 else contrasts(class_prior)
        self.n_live = sum(chain.n_live for chain in self.chains)
        of_chains = [p * chain.information for p, chain in zip(class_prior, self.chains)]
        information = np.concatenate([np.ones(self.priors.shape[1]), *of_chains])
        self.size = len(information)
        self.scale = np.divide(1.0, np.sqrt(information), out=np.zeros(self.size), where=information > 0)

    def rows(self, readies: list[ChainReady], block: SequenceBlock) -> Array:
        """(n, size) scores, in the order of `block.index`; NaN where the density of every class is zero."""
        by_class = [chain.rows(ready, block) for chain, ready in zip(self.chains, readies)]
        joint = np.stack([log_lik for _, log_lik in by_class]) + np.log(self.class_prior)[:, None]
        top = joint.max(axis=0)
        with np.errstate(invalid="ignore"):
            share = np.exp(joint - top)  # (C, n)
        share /= share.sum(axis=0)
        parts = [share.T @ self.priors, *(p[:, None] * scores for p, (scores, _) in zip(share, by_class))]
        return np.concatenate(parts, axis=1) * self.scale
