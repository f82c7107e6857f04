"""Base class of the estimators of sequences: input of sequences, likelihoods, samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
from mixent.data import Schema, Table, check_spread, drawn_rows, read_features
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

SINGLE_STEPS = (
    "every row is a sequence of one step, so that transitions cannot be estimated; if the rows are the steps of one "
    "sequence, pass lengths=[n_rows]"
)


@dataclass(frozen=True)
class Steps:
    """A table with the lengths or groups of its sequences."""

    X: Any
    lengths: Any = None
    groups: Any = None


class SequenceModel(Estimator):
    """Base class of estimators of sequences, with a sequence or a step per row.

    A variable that is constant in the training sequences carries no information and is left out of the density:
    `varying_` are the other numeric variables, `constants_` the values of the constant ones.
    """

    emissions: str  # distribution of the emissions
    schema_: Schema  # the columns of X
    variables_: Schema  # the variables of a step
    by_row_: bool  # whether X has a sequence per row
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
            mixed=yes("with `lengths` or `groups`, i.e. a step per row; with a sequence per row there is one variable"),
            density=YES,
            sampling=YES,
            saved=YES,
        )

    def _chains(self) -> tuple[FittedChain, ...]:
        raise AttributeError(f"{type(self).__name__} must define _chains")

    @property
    def converged_(self) -> bool:
        """Whether EM has converged (for all classes)."""
        return all(chain.run.status is Status.CONVERGED for chain in self._chains())

    @property
    def n_iter_(self) -> int:
        """Number of passes over the data (the largest of all classes)."""
        return max(1, *(chain.run.n_passes for chain in self._chains()))

    def _read_new(self, X: Any, lengths: Any, groups: Any) -> tuple[Sequences, Table]:
        """Return the sequences of `fit`, and the table they come from."""
        table = given = read_features(self, X, reset=True, categorical=self.categorical)
        self.by_row_ = lengths is None and groups is None
        if self.by_row_:
            table = one_alphabet(table)
            if len(table.schema.columns) == 1 and table.n_rows > 1:
                given = replace(given, notes=(*given.notes, SINGLE_STEPS))
        check_spread(table)
        sequences = from_rows(table) if self.by_row_ else from_steps(table, lengths, groups)
        self._check_counts(sequences)
        self.schema_ = table.schema
        self.variables_ = step_schema(table.schema) if self.by_row_ else table.schema
        return sequences, given

    def _select_columns(self, sequences: Sequences, weight: Array | None) -> Sequences:
        self.varying_, self.constants_ = varying(sequences, weight)
        return in_columns(sequences, self.varying_)

    def _read(self, X: Any, lengths: Any = None, groups: Any = None) -> Sequences:
        """Return the sequences of methods other than `fit`."""
        check_is_fitted(self)
        self._check_kind(lengths, groups)
        table = read_features(self, X, reset=False)
        sequences = from_rows(table) if self.by_row_ else from_steps(table, lengths, groups)
        self._check_steps(sequences)
        self._check_counts(sequences)
        return in_columns(sequences, self.varying_)

    def _check_counts(self, sequences: Sequences) -> None:
        """Check that numeric variables are counts if their distributions are Poisson distributions."""
        X = sequences.table.X
        if self.emissions == "poisson" and not (np.isnan(X) | ((X >= 0) & (np.floor(X) == X))).all():
            bad = X[~np.isnan(X) & ((X < 0) | (np.floor(X) != X))][0]
            raise ValueError(
                f"emissions='poisson' needs counts, whole numbers >= 0; got {bad:g}; use emissions='fitted' for other "
                "numbers"
            )

    def _check_kind(self, lengths: Any, groups: Any) -> None:
        by_step = lengths is not None or groups is not None
        if by_step and self.by_row_:
            raise ValueError("this model was fitted with a sequence per row; leave out lengths and groups")
        if not by_step and not self.by_row_:
            raise ValueError(
                "this model was fitted with a row per step; pass lengths or groups to separate the sequences "
                "(lengths=[len(X)] for a single sequence)"
            )

    def _check_steps(self, sequences: Sequences) -> None:
        """Check that with a transition matrix for every step, sequences are not longer than in training."""
        for chain in self._chains():
            log_trans = chain.params.log_trans
            longest = int(sequences.lengths.max(initial=0))
            if log_trans.ndim == 3 and longest > len(log_trans) + 1:
                raise ValueError(
                    f"with transitions='per_step', sequences must have at most the {len(log_trans) + 1} steps of the "
                    f"training sequences; got a sequence of {longest} steps"
                )

    def _log_lik(self, chain: FittedChain, sequences: Sequences) -> Array:
        """Return the log-likelihood of each sequence, (n,)."""
        S = chain.params.n_states
        with choose_executor(self.n_jobs, sequences.table.n_rows, S) as executor:
            source = blocks_of(chain.problem, S, sequences, None)
            return of_sequences(chain.problem, chain.params, source, executor)

    def _log_emit(self, chain: FittedChain, sequences: Sequences) -> Array:
        """Return the log-likelihood of each state at each step, (n_steps, S)."""
        S = chain.params.n_states
        with choose_executor(self.n_jobs, sequences.table.n_rows, S) as executor:
            source = blocks_of(chain.problem, S, sequences, None)
            return emissions_of(chain.problem, chain.params, source, executor)

    def _draw(
        self, chain: FittedChain, n_sequences: int, length: int, rng: np.random.Generator
    ) -> tuple[Array, np.ndarray | None, np.ndarray]:
        """Sample steps (n x length, d), codes or None, and states (n, length)."""
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
        """Check the parameters of `sample`; return the length and a random generator."""
        check_is_fitted(self)
        check_count("n_sequences", n_sequences)
        log_trans = self._chains()[0].params.log_trans
        if length is None:
            if not self.by_row_:
                raise ValueError("sample needs length, since this model was fitted with a row per step")
            length = self.n_features_in_
        check_count("length", length)
        if log_trans.ndim == 3 and length > len(log_trans) + 1:
            raise ValueError(
                f"with transitions='per_step', length must be at most the {len(log_trans) + 1} steps of the training "
                f"sequences; got {length}"
            )
        seed = check_random_state(self.random_state if random_state is None else random_state)
        return int(length), np.random.default_rng(seed.randint(2**31 - 1))

    def _as_table(self, X: Array, codes: np.ndarray | None, n_sequences: int) -> Any:
        """Return sampled sequences in the layout of the sequences of `fit`."""
        if not self.by_row_:
            return drawn_rows(self.schema_, X, codes)
        variable = self.variables_.columns[0]
        X, codes = X.reshape(n_sequences, -1), None if codes is None else codes.reshape(n_sequences, -1)
        if self.schema_.library and (X if codes is None else codes).shape[1] == self.n_features_in_:
            steps = tuple(replace(variable, name=name) for name in self.schema_.names)
            return drawn_rows(replace(self.schema_, columns=steps), X, codes)
        return X if codes is None else np.array(variable.categories)[codes]


def _choose(probabilities: Array, rng: np.random.Generator) -> np.ndarray:
    """Sample a column for each row of probabilities (n, S)."""
    cumulative = probabilities.cumsum(axis=1)[:, :-1]
    return (rng.random((len(probabilities), 1)) > cumulative).sum(axis=1)


def read_log_emissions(X: Any, lengths: Any, groups: Any, n_states: int) -> Sequences:
    """Check precomputed log-likelihoods of the states at each step; a row of NaN is a step without emission."""
    if lengths is None and groups is None:
        raise ValueError("emissions='precomputed' has a row per step; pass lengths or groups to separate the sequences")
    try:
        values = np.array(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"emissions='precomputed' needs log-likelihoods, a column per state; {error}") from error
    if values.ndim != 2 or values.shape[1] != n_states:
        raise ValueError(
            f"emissions='precomputed' needs a column of log-likelihoods for each of {n_states} states; "
            f"got shape {values.shape}"
        )
    values[np.isnan(values).all(axis=1)] = 0.0
    invalid = np.isnan(values) | (values == np.inf)
    if invalid.any():
        row = int(np.flatnonzero(invalid.any(axis=1))[0])
        raise ValueError(f"log-likelihoods must be finite or -inf; row {row} has {values[row][invalid[row]][0]}")
    counts, rows = read_lengths(lengths, groups, len(values))
    return Sequences(Block(values if rows is None else values[rows]), counts, rows)
