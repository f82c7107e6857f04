"""What both estimators share: how sequences are read, and likelihoods under a fitted chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, CapableTags, able, yes
from mixent.base.executors import choose_executor
from mixent.base.options import Estimator
from mixent.base.params import check_count
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Status
from mixent.data import Schema, check_spread, read_features, to_frame
from mixent.hmm.fitting import FittedChain, blocks_of, emissions_of, of_sequences
from mixent.hmm.sequences import (
    Sequences,
    from_rows,
    from_steps,
    in_columns,
    one_alphabet,
    read_lengths,
    step_schema,
    varying,
)


@dataclass(frozen=True)
class Steps:
    """A table and where its sequences are."""

    X: Any
    lengths: Any = None
    groups: Any = None


class SequenceModel(Estimator):
    """An estimator whose rows are sequences, or whose rows are steps of sequences.

    A variable that was constant in training carries no information and is left out of the density: `varying_` are the
    continuous variables that take part, `constants_` the values of the others.
    """

    schema_: Schema  # the columns of X
    variables_: Schema  # what is emitted at a step
    by_row_: bool  # a sequence per row
    varying_: np.ndarray
    constants_: Array

    def __sklearn_tags__(self) -> CapableTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="integrated out exactly",
            weights=yes("of whole sequences"),
            mixed=yes("with `lengths` or `groups`, where a row is a step; a sequence per row has one variable"),
            density=YES,
            sampling=YES,
            saved=YES,
        )

    def _chains(self) -> tuple[FittedChain, ...]:
        raise AttributeError(f"{type(self).__name__} must define _chains")

    @property
    def converged_(self) -> bool:
        """Did every search reach its tolerance?"""
        return all(chain.run.status is Status.CONVERGED for chain in self._chains())

    @property
    def n_iter_(self) -> int:
        """Passes over the data; of the class that took most."""
        return max(chain.run.n_passes for chain in self._chains())

    def _read_new(self, X: Any, lengths: Any, groups: Any) -> Sequences:
        """The sequences of `fit`."""
        table = read_features(self, X, reset=True, categorical=self.categorical)
        self.by_row_ = lengths is None and groups is None
        if self.by_row_:
            table = one_alphabet(table)
        check_spread(table)
        sequences = from_rows(table) if self.by_row_ else from_steps(table, lengths, groups)
        self.schema_ = table.schema
        self.variables_ = step_schema(table.schema) if self.by_row_ else table.schema
        return sequences

    def _settle_columns(self, sequences: Sequences, weight: Array | None) -> Sequences:
        self.varying_, self.constants_ = varying(sequences, weight)
        return in_columns(sequences, self.varying_)

    def _read(self, X: Any, lengths: Any = None, groups: Any = None) -> Sequences:
        """The sequences of any other method."""
        check_is_fitted(self)
        self._check_kind(lengths, groups)
        table = read_features(self, X, reset=False)
        sequences = from_rows(table) if self.by_row_ else from_steps(table, lengths, groups)
        self._check_steps(sequences)
        return in_columns(sequences, self.varying_)

    def _check_kind(self, lengths: Any, groups: Any) -> None:
        given = lengths is not None or groups is not None
        if given and self.by_row_:
            raise ValueError("this model was fitted to a sequence per row; lengths and groups have no effect")
        if not given and not self.by_row_:
            raise ValueError(
                "this model was fitted to a row per step: give lengths or groups to separate the sequences "
                "(lengths=[len(X)] for one sequence)"
            )

    def _check_steps(self, sequences: Sequences) -> None:
        """With a transition matrix for every step, there are no more steps than those."""
        for chain in self._chains():
            log_trans = chain.params.log_trans
            longest = int(sequences.lengths.max(initial=0))
            if log_trans.ndim == 3 and longest > len(log_trans) + 1:
                raise ValueError(
                    f"a sequence has {longest} steps, but with transitions='per_step' the model knows transitions of "
                    f"{len(log_trans) + 1} steps"
                )

    def _log_lik(self, chain: FittedChain, sequences: Sequences) -> Array:
        """(n,) of each sequence."""
        S = chain.params.n_states
        with choose_executor(self.n_jobs, sequences.table.n_rows, S) as executor:
            source = blocks_of(chain.problem, S, sequences, None)
            return of_sequences(chain.problem, chain.params, source, executor)

    def _log_emit(self, chain: FittedChain, sequences: Sequences) -> Array:
        """(n_steps, S)."""
        S = chain.params.n_states
        with choose_executor(self.n_jobs, sequences.table.n_rows, S) as executor:
            source = blocks_of(chain.problem, S, sequences, None)
            return emissions_of(chain.problem, chain.params, source, executor)

    def _draw(
        self, chain: FittedChain, n_sequences: int, length: int, rng: np.random.Generator
    ) -> tuple[Array, np.ndarray | None, np.ndarray]:
        """Steps (n x length, d), codes or None, and states (n, length)."""
        params = chain.params
        states = np.empty((n_sequences, length), dtype=np.intp)
        states[:, 0] = _choose(np.exp(params.log_start)[None].repeat(n_sequences, axis=0), rng)
        trans = np.exp(params.log_trans)
        for t in range(1, length):
            step = trans if trans.ndim == 2 else trans[t - 1]
            states[:, t] = _choose(step[states[:, t - 1]], rng)
        assert chain.problem.family is not None
        drawn, codes = chain.problem.family.sample(params.components, states.ravel(), rng)
        X = np.tile(self.constants_, (states.size, 1))
        X[:, self.varying_] = drawn
        return X, codes, states

    def _read_draw(self, n_sequences: Any, length: Any, random_state: Any) -> tuple[int, np.random.Generator]:
        """The length of what is drawn, and what draws it."""
        check_is_fitted(self)
        check_count("n_sequences", n_sequences)
        log_trans = self._chains()[0].params.log_trans
        if length is None:
            if not self.by_row_:
                raise ValueError("sample needs a length: this model was fitted to sequences of rows")
            length = self.n_features_in_
        check_count("length", length)
        if log_trans.ndim == 3 and length > len(log_trans) + 1:
            raise ValueError(
                f"length={length}, but with transitions='per_step' the model knows transitions of "
                f"{len(log_trans) + 1} steps"
            )
        seed = check_random_state(self.random_state if random_state is None else random_state)
        return int(length), np.random.default_rng(seed.randint(2**31 - 1))

    def _as_table(self, X: Array, codes: np.ndarray | None, n_sequences: int) -> Any:
        """What was drawn, laid out as the sequences of `fit` were."""
        if not self.by_row_:
            return X if codes is None else to_frame(self.schema_, X, codes)
        if codes is None:
            return X.reshape(n_sequences, -1)
        alphabet = np.array(self.variables_.columns[0].categories)
        return alphabet[codes.reshape(n_sequences, -1)]


def _choose(probabilities: Array, rng: np.random.Generator) -> np.ndarray:
    """One of the columns of each row (n, S) that sum to one."""
    cumulative = probabilities.cumsum(axis=1)[:, :-1]
    return (rng.random((len(probabilities), 1)) > cumulative).sum(axis=1)


def read_log_emissions(X: Any, lengths: Any, groups: Any, n_states: int) -> Sequences:
    """Log-likelihoods of the states at every step, given by the user; a step of NaN emits nothing."""
    if lengths is None and groups is None:
        raise ValueError("emissions='precomputed' has a row per step: give lengths or groups to separate the sequences")
    try:
        values = np.array(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"emissions='precomputed' needs log-likelihoods, a column per state; {error}") from error
    if values.ndim != 2 or values.shape[1] != n_states:
        raise ValueError(
            f"emissions='precomputed' needs a column of log-likelihoods for each of {n_states} states; "
            f"got shape {values.shape}"
        )
    gaps = np.isnan(values)
    values[gaps.all(axis=1)] = 0.0
    wrong = np.isnan(values) | (values == np.inf)
    if wrong.any():
        row = int(np.flatnonzero(wrong.any(axis=1))[0])
        raise ValueError(f"log-likelihoods must be numbers or -inf; row {row} holds {values[row][wrong[row]][0]}")
    found, rows = read_lengths(lengths, groups, len(values))
    return Sequences(Block(values if rows is None else values[rows]), found, rows)
