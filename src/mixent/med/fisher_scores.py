"""Fisher scores of a fitted mixture:  U_x = gradient of log p(x | theta), row by row.

By Fisher's identity the score of p(x) = sum_k w_k f_k(x) is the expected score of the complete row, component and
missing cells included:  U_x = sum_k r_k(x) E[ grad log (w_k f_k(x)) | observed part of x, k ].

The kernel U^T F^-1 U is the same in any coordinates, so they are chosen such that rows whose component is known would
tell of all of them equally well, and of each independently. With y = L_k^-1 (x - m_k), L_k L_k^T = C_k, up to a unit:

    mean          dm = L dt                  y
    covariance    dC = L G L^T               tr(G (y y^T - I)) / 2
    a table       d log p_v = B_v dt         B_v,  with  sum_v p_v B_v = 0  and  sum_v p_v B_v B_v^T = I

where the symmetric G that keep a structure are those of its three letters: volume G = I; shape G diagonal, without a
trace; orientation G_ij = S_ij (l_j - l_i) / sqrt(l_i l_j), S skew, l the variances along the axes. What is Equal has
one coordinate for the group and the components' scores add.

So the information F = E[U U^T] is the identity for one component; for several it lies between 0 and the identity, and
its eigenvalues are the shares of what could be known that remain when components are not seen.

Of a hidden Markov model a row is a sequence, and what is not seen are its states: first states, pairs of successive
states and emissions have the same coordinates, under the posteriors of states and pairs, summed over the steps.
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
from mixent.families.gaussian.missing import Gapped
from mixent.hmm.fitting import FittedChain
from mixent.hmm.lattice import sweep
from mixent.hmm.problem import Ready as ChainReady
from mixent.hmm.sequences import SequenceBlock
from mixent.mixtures.predict import block_resp
from mixent.mixtures.problem import MixtureParams, MixtureProblem, Ready

Unseen = Callable[[int, Array], tuple[Array, Array | float]]


def contrasts(p: Array) -> Array:
    """B (v, v - 1) with  sum_v p_v B_v = 0  and  sum_v p_v B_v B_v^T = I:  each entry against all before it."""
    before = np.cumsum(p)[:-1]
    own, upto = p[1:], before + p[1:]
    B = np.triu(np.broadcast_to(-np.sqrt(own / (before * upto)), (len(p), len(p) - 1)))
    B[np.arange(1, len(p)), np.arange(len(p) - 1)] = np.sqrt(before / (own * upto))
    return B


class MixtureScores:
    """Coordinates of a mixture: weights, means and covariances group by group, tables column by column.

    A component that was dropped has none. Of the joint weights of class and component, W, the density of a row knows
    only the sums over classes; with class priors held, these sums move only among components that share a class, or
    are linked by components that do.
    """

    def __init__(self, problem: MixtureProblem, params: MixtureParams) -> None:
        self.problem = problem
        family, live = problem.family, params.live
        self.live = np.flatnonzero(live)
        self.weights = _weight_contrasts(params.weights, held=problem.class_prior is not None)
        self.size = self.weights.shape[1]
        self.gaussian = self.categorical = None
        if family.gaussian is not None and params.components.gaussian is not None:
            self.gaussian = GaussianScores(family.gaussian, params.components.gaussian, live, self.size)
            self.size = self.gaussian.stop
        if family.categorical is not None and params.components.categorical is not None:
            self.categorical = TableScores(family.categorical, params.components.categorical, self.live, self.size)
            self.size = self.categorical.stop
        self.unit = self._unit(params.weights.sum(axis=0))

    @property
    def n_live(self) -> int:
        """Components that were not dropped."""
        return len(self.live)

    def _unit(self, mass: Array) -> Array:
        """(size,) that makes one of what is known of each coordinate when components are: sum_k w_k E_k[score^2]."""
        known = np.zeros(self.size)
        known[: self.weights.shape[1]] = 1.0
        for part in (self.gaussian, self.categorical):
            if part is not None:
                part.add_known(known, mass)
        return np.divide(1.0, np.sqrt(known), out=np.zeros(self.size), where=known > 0)

    def rows(self, ready: Ready, block: Block) -> Array:
        """(n, size)."""
        resp = np.array(block_resp(self.problem, ready, block))  # (K, n), out of the scratch buffers
        out = np.zeros((block.n_rows, self.size))
        out[:, : self.weights.shape[1]] = resp.T @ self.weights
        if self.gaussian is not None:
            self.gaussian.add(out, ready.family[0], block, resp)
        if self.categorical is not None:
            self.categorical.add(out, block, resp)
        out *= self.unit
        return out


def _weight_contrasts(joint: Array, *, held: bool) -> Array:
    """(K, coordinates) of the components' weights, from those of class and component (C, K)."""
    weights = joint.sum(axis=0)
    used = (joint > 0).astype(int)
    sets = connected_components(used.T @ used)[1] if held else np.zeros(len(weights), dtype=int)
    parts = []
    for s in np.unique(sets[weights > 0]):
        index = np.flatnonzero((sets == s) & (weights > 0))
        part = np.zeros((len(weights), len(index) - 1))
        part[index] = contrasts(weights[index])
        parts.append(part)
    return np.concatenate(parts, axis=1)


class GaussianScores:
    """Means and covariances: of each component the frame L^-1, and where in the row its scores are added."""

    def __init__(self, family: GaussianFamily, params: Gaussians, live: np.ndarray, start: int) -> None:
        d = self.d = family.n_columns
        self.upper = np.triu_indices(d, 1)
        factors = family.prepare(params).factors
        self.members: list[tuple] = []  # component, frame, basis of the variances, factor of the covariances, where
        for g, group in enumerate(family.groups):
            index = np.flatnonzero(live[group.span]) + group.start
            name = group.model.name if len(index) > 1 else group.model.name.replace("E", "V")  # alone: equal to itself
            where, start = _places(name, d, len(index), start)
            free = name[1] == name[2]  # shape and orientation together, or neither: the axes do not matter
            frames = factors[index] if free or not len(index) else GroupChart(family, params, g, index).first_factors
            basis = np.full((d, 1), d**-0.5)
            if name[1] != "I":
                basis = np.hstack([basis, contrasts(np.ones(d))])
            self.members += [
                (k, frame, basis, None if name[2] == "I" else self._turning(name, frame), own)
                for k, frame, own in zip(index.tolist(), frames, where)
            ]
        self.stop = start

    def _turning(self, name: str, frame: Array) -> Array:
        """G_ij of a turn between axes i < j; where shape and orientation are free together, any G_ij will do."""
        i, j = self.upper
        if name[1] == name[2]:
            return np.ones(len(i))
        log_std = -np.log(np.linalg.norm(frame, axis=1))
        return np.asarray(2.0 * np.sinh(log_std[j] - log_std[i]))

    def add_known(self, known: Array, mass: Array) -> None:
        """Add what rows of the components, in shares `mass` (K,), would tell of each coordinate."""
        for k, _, basis, turning, where in self.members:
            known[where] += mass[k] * np.append(np.ones(self.d + basis.shape[1]), [] if turning is None else turning**2)

    def add(self, out: Array, ready: GaussianReady, block: Block, resp: Array) -> None:
        """Add these scores to rows (n, ...), under responsibilities (K, n)."""
        z, unseen = _completed(ready, block)
        i, j = self.upper
        for k, frame, basis, turning, where in self.members:
            y = z[k] * frame if frame.ndim == 1 else z[k] @ frame.T
            square, cross = unseen(k, frame)
            parts = [y, (y * y + square - 1.0) @ basis * 0.5**0.5]
            if turning is not None:
                parts.append((y[:, i] * y[:, j] + cross) * turning)
            out[:, where] += resp[k][:, None] * np.concatenate(parts, axis=1)


def _places(name: str, d: int, n: int, start: int) -> tuple[np.ndarray, int]:
    """(n, ...) positions of each component's coordinates, and where the next begin: one set if Equal, n if Variable."""
    places = []
    for letter, width in zip("V" + name, (d, 1, d - 1, d * (d - 1) // 2)):
        copies = {"I": 0, "E": min(n, 1), "V": n}[letter]
        block = start + np.arange(copies * width).reshape(copies, width)
        places.append(np.broadcast_to(block, (n, width)) if copies else np.empty((n, 0), dtype=int))
        start += copies * width
    return np.concatenate(places, axis=1), start


def _completed(ready: GaussianReady, block: Block) -> tuple[Array, Unseen]:
    """x - m_k (K, n, d), each gap at its expectation given the row; and the covariance of the gaps given the row."""
    if not block.complete and not ready.axis_aligned:
        gapped = Gapped(ready, block)
        gapped.log_prob()  # completes each row under each component
        return gapped.completed, partial(_unseen, gapped)
    z = (block.X - ready.center) - ready.means[:, None, :]
    gaps = np.isnan(block.X)
    z[:, gaps] = 0.0
    return z, lambda k, frame: (gaps, 0.0)  # a column of its own: all of its variance, one in the frame


def _unseen(gapped: Gapped, k: int, frame: Array) -> tuple[Array, Array]:
    """Conditional variances (n, d) and covariances (n, d (d - 1) / 2), in the frame."""
    frame = np.diag(frame) if frame.ndim == 1 else frame
    (n_patterns, _), d = gapped.patterns.shape, len(frame)
    spread = np.zeros((n_patterns, gapped.width, gapped.width))
    rows = np.arange(n_patterns)[:, None, None]
    spread[rows, gapped.patterns[:, :, None], gapped.patterns[:, None, :]] = gapped.cond_cov[k]
    spread = frame @ spread[:, :d, :d] @ frame.T
    return np.diagonal(spread, axis1=1, axis2=2)[gapped.pattern], spread[:, *np.triu_indices(d, 1)][gapped.pattern]


class TableScores:
    """Category probabilities: of each column and component its contrasts, with a row of zeros for a missing value."""

    def __init__(self, family: CategoricalFamily, params: Categoricals, live: np.ndarray, start: int) -> None:
        self.members: list[tuple] = []  # column, component, contrasts, where
        for j, (first, size) in enumerate(zip(family.starts, family.sizes)):
            for k in live.tolist():
                table = np.zeros((size + 1, size - 1))  # code -1 finds the last row
                table[:-1] = contrasts(np.exp(params.log_probs[k, first : first + size]))
                self.members.append((j, k, table, slice(start, start + size - 1)))
                start += size - 1
        self.stop = start

    def add_known(self, known: Array, mass: Array) -> None:
        """Add what rows of the components, in shares `mass` (K,), would tell of each coordinate."""
        for _, k, _, where in self.members:
            known[where] += mass[k]

    def add(self, out: Array, block: Block, resp: Array) -> None:
        """Write these scores into rows (n, ...), under responsibilities (K, n)."""
        assert block.codes is not None
        for j, k, table, where in self.members:
            np.multiply(resp[k][:, None], table[block.codes[:, j]], out=out[:, where])


ABSENT = 1e-12  # a probability up to this is none: nothing can be known of it


class ChainScores:
    """Coordinates of a hidden Markov model, for sequences of one length: first states, transitions, emissions."""

    def __init__(self, chain: FittedChain, length: int) -> None:
        self.problem, self.params = chain.problem, chain.params
        start, trans = np.exp(self.params.log_start), np.exp(self.params.log_trans)
        visits = _visits(start, trans, length)  # (length, S)
        mass, left = visits.sum(axis=0), visits[:-1].sum(axis=0)
        live = mass > ABSENT
        self.n_live = int(live.sum())
        self.start = _row_contrasts(start)
        self.trans: list[tuple] = []  # state, contrasts, where
        at = self.start.shape[1]
        for state in np.flatnonzero(live & (left > ABSENT)).tolist():
            rows = _row_contrasts(trans[state])
            self.trans.append((state, rows, slice(at, at + rows.shape[1])))
            at += rows.shape[1]
        family, components = self.problem.family, self.params.components
        assert family is not None and components is not None
        self.gaussian = self.categorical = None
        if family.gaussian is not None and components.gaussian is not None:
            self.gaussian = GaussianScores(family.gaussian, components.gaussian, live, at)
            at = self.gaussian.stop
        if family.categorical is not None and components.categorical is not None:
            self.categorical = TableScores(family.categorical, components.categorical, np.flatnonzero(live), at)
            at = self.categorical.stop
        self.size = at
        self.known = np.zeros(at)  # of each coordinate, when states are seen
        self.known[: self.start.shape[1]] = 1.0
        for state, _, where in self.trans:
            self.known[where] = left[state]
        for part in (self.gaussian, self.categorical):
            if part is not None:
                part.add_known(self.known, mass)

    def rows(self, ready: ChainReady, block: SequenceBlock) -> tuple[Array, Array]:
        """Scores (n, size) and log-likelihoods (n,), in the order of `block.index`."""
        layout = block.layout
        n = len(layout.lengths)
        found = sweep(ready.chain, self.problem.log_emissions(ready, block), layout, pairs="sequence")
        assert found.pairs is not None
        out = np.zeros((n, self.size))  # by place first
        out[:, : self.start.shape[1]] = found.states[:, :n].T @ self.start
        for part in block.emitted:
            at = slice(None) if part.rows is None else part.rows
            resp = np.ascontiguousarray(found.states[:, at])
            steps = np.zeros((part.n_rows, self.size))
            if self.gaussian is not None:
                self.gaussian.add(steps, ready.family[0], part, resp)
            if self.categorical is not None:
                self.categorical.add(steps, part, resp)
            member = (np.ones(part.n_rows), (layout.place[at], np.arange(part.n_rows)))
            out += sparse.csr_array(member, shape=(n, part.n_rows)) @ steps
        in_order = np.empty_like(out)
        in_order[layout.order] = out
        for state, rows, where in self.trans:
            in_order[:, where] = found.pairs[:, state] @ rows
        return in_order, found.log_lik


def _visits(start: Array, trans: Array, length: int) -> Array:
    """(length, S) probabilities of the states at each step, before anything is seen."""
    out = [start]
    for _ in range(1, length):
        out.append(out[-1] @ trans)
    return np.array(out)


def _row_contrasts(p: Array) -> Array:
    """(S, coordinates) of probabilities of which some may be zero."""
    index = np.flatnonzero(p > ABSENT)
    out = np.zeros((len(p), len(index) - 1))
    out[index] = contrasts(p[index])
    return out


class SequenceScores:
    """Coordinates of sequences: those of each class's chain, and of the class priors unless they are held."""

    def __init__(self, chains: tuple[FittedChain, ...], class_prior: Array, length: int, *, held: bool) -> None:
        self.chains = [ChainScores(chain, length) for chain in chains]
        self.class_prior = class_prior
        self.priors = np.zeros((len(chains), 0)) if held or len(chains) == 1 else contrasts(class_prior)
        self.n_live = sum(chain.n_live for chain in self.chains)
        known = [np.ones(self.priors.shape[1]), *(p * chain.known for p, chain in zip(class_prior, self.chains))]
        together = np.concatenate(known)
        self.size = len(together)
        self.unit = np.divide(1.0, np.sqrt(together), out=np.zeros(self.size), where=together > 0)

    def rows(self, readies: list[ChainReady], block: SequenceBlock) -> Array:
        """(n, size), in the order of `block.index`; NaN where no class has a density."""
        found = [chain.rows(ready, block) for chain, ready in zip(self.chains, readies)]
        joint = np.stack([log_lik for _, log_lik in found]) + np.log(self.class_prior)[:, None]
        top = joint.max(axis=0)
        with np.errstate(invalid="ignore"):
            share = np.exp(joint - top)  # (C, n)
        share /= share.sum(axis=0)
        parts = [share.T @ self.priors, *(p[:, None] * scores for p, (scores, _) in zip(share, found))]
        return np.concatenate(parts, axis=1) * self.unit
