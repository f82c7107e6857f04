"""Hidden Markov models, without classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import IGNORED, NOTHING, CapableTags, able
from mixent.base.convergence import warn_unconverged
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.driver import Run
from mixent.data import Column, Schema, read_weights
from mixent.hmm.fitting import FittedChain, fit_chain, matrices_of, measure
from mixent.hmm.lattice import forward_backward, viterbi
from mixent.hmm.model import SequenceModel, read_log_emissions
from mixent.hmm.options import HMMPrior, check_emissions, check_options, read_start
from mixent.hmm.sequences import Sequences


class HiddenMarkovModel(DensityMixin, SequenceModel):
    """Hidden Markov model by maximum a posteriori Baum-Welch, for mixed and incomplete sequences.

    Maximizes  sum_n w_n log sum_z p(z_0) b_z0(x_n0) prod_t A(z_t-1, z_t) b_zt(x_nt) + log prior(p, A, b).
    Each update maximizes a lower bound that touches it, so this value never falls.

    A 2-D X is a sequence per row: its columns are the steps of one variable, numbers (a Gaussian per state) or
    categories (a table per state over one alphabet of all columns). With `lengths` or `groups` X has a row per step and
    its columns are the variables emitted there, mixed as they come. Missing values are integrated out exactly; a step
    wholly missing emits nothing, so rows of sequences of different lengths may end in missing values.

    Parameters
    ----------
    n_states : int
        Number of hidden states.
    covariance : str
        Covariance structure of the states' Gaussians (see `GaussianMixture`).
    topology : "full" or "left-right"
        Whether any state may follow any other, or sequences begin in state 0 and never go back.
    transitions : "shared" or "per_step"
        One transition matrix, or one for every step, counted from the start of a sequence.
    emissions : "fitted" or "precomputed"
        With "precomputed", X (n_steps, n_states) holds the log-likelihood of each state at each step, and only start
        and transitions are learned.
    prior : "auto", float, None or HMMPrior
        Pseudo-rows that shrink each state's covariance towards that within the parts of the first start; "auto" takes
        variables + 2. None is plain maximum likelihood. An `HMMPrior` also has the smoothing of category tables and of
        transitions.
    init : "auto", "random" or dict
        Where Baum-Welch starts: steps parted by k-means (equal segments of time when left-right), at random, or
        parameters: any of "start" (S,), "transitions" (S, S), "means" (S, d), "covariances" (S, d) or (S, d, d), and
        "tables", (S, values) or a dict of these by variable. What is left out comes from "auto".
    n_init : int
        Starts; each runs a few passes, the best runs on. The first draws nothing at random (of categories,
        only how the states' tables differ a little).
    tol : float
        Stop when a pass gains less than this per step, in nats.
    max_iter : int
        Most passes over the data.
    accelerate : bool
        Extrapolate (SQUAREM); a step is kept only if the objective rises.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None takes all cores. The number changes no bit of the result.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    start_ : (S,) array
        Probabilities of the first state.
    transitions_ : (S, S) or (T - 1, S, S) array
        What follows each state.
    means_, covariances_, tables_
        What the states emit: (S, d), (S, d, d), and for each categorical variable (S, values). The variable of
        sequences that are rows is called "value".
    log_likelihood_ : float
        Of the training sequences.
    run_ : Run
        How Baum-Welch went: `status`, `trace`, `objective`.
    variables_ : Schema
        What is emitted at a step.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import HiddenMarkovModel
    >>> X = np.array([[0.1, 0.0, 5.1, 4.9], [0.2, -0.1, 0.1, 5.0], [0.0, 5.2, 5.0, np.nan]])
    >>> model = HiddenMarkovModel(2, topology="left-right").fit(X)
    >>> model.decode(X).tolist()
    [[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1]]
    """

    _groups = {"prior": HMMPrior.read}

    def __init__(
        self,
        n_states: int = 2,
        covariance: str = "VVI",
        *,
        topology: str = "full",
        transitions: str = "shared",
        emissions: str = "fitted",
        prior: str | float | HMMPrior | None = "auto",
        init: Any = "auto",
        n_init: int = 1,
        tol: float = 1e-5,
        max_iter: int = 500,
        accelerate: bool = True,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_states = n_states
        self.covariance = covariance
        self.topology = topology
        self.transitions = transitions
        self.emissions = emissions
        self.prior = prior
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> CapableTags:
        tags = super().__sklearn_tags__()
        return able(tags, soft_labels=IGNORED, absent_labels=IGNORED, explanations=NOTHING, shifted_priors=NOTHING)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, lengths: Any = None, groups: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : table
            A sequence per row; with `lengths` or `groups`, a step per row. NaN, None or null are missing, text columns
            are categories.
        y : ignored
        sample_weight : (n,) array, optional
            Of each sequence. Counts: weight two is the sequence twice.
        lengths : (n,) whole numbers, optional
            Rows of each sequence, one sequence after the other.
        groups : (n_steps,) array, optional
            Instead of lengths: rows with the same id are a sequence, in their order.

        Returns
        -------
        self
        """
        check_options(self)
        check_emissions(self)
        sequences = self._read_fit(X, lengths, groups)
        weight = read_weights(sample_weight, sequences.n_sequences)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scale, given = None, None
        if isinstance(self.init, dict):
            given = read_start(self.init, self.n_states, self.variables_, self.topology, matrices_of(self, sequences))
        if self.emissions == "fitted":
            sequences = self._settle_columns(sequences, weight)
            if given:
                given = _of_varying(given, self.varying_)
            scale = measure(self, sequences, weight, self.variables_.sizes)
        with progress_bar(self.progress, "sequences") as show:
            self.chain_ = fit_chain(self, sequences, weight, self.variables_.sizes, scale, seed, given, show)
        warn_unconverged(self.run_, type(self).__name__)
        return self

    def _read_fit(self, X: Any, lengths: Any, groups: Any) -> Sequences:
        if self.emissions == "fitted":
            sequences = self._read_new(X, lengths, groups)
            if self.n_states > len(sequences.table.X):
                raise ValueError(
                    f"n_states={self.n_states} needs at least as many steps; X has {len(sequences.table.X)}"
                )
            return sequences
        sequences = read_log_emissions(X, lengths, groups, self.n_states)
        self.by_row_, self.n_features_in_ = False, self.n_states
        columns = tuple(Column(f"state {s}", "continuous") for s in range(self.n_states))
        self.schema_ = self.variables_ = Schema(columns, False)
        self.varying_, self.constants_ = np.arange(self.n_states), np.full(self.n_states, np.nan)
        return sequences

    def _read(self, X: Any, lengths: Any = None, groups: Any = None) -> Sequences:
        check_is_fitted(self)
        if self.chain_.problem.family is not None:
            return super()._read(X, lengths, groups)
        sequences = read_log_emissions(X, lengths, groups, self.chain_.params.n_states)
        self._check_steps(sequences)
        return sequences

    def _chains(self) -> tuple[FittedChain, ...]:
        return (self.chain_,)

    @property
    def run_(self) -> Run:
        """How Baum-Welch went."""
        return self.chain_.run

    @property
    def start_(self) -> Array:
        """(S,) probabilities of the first state."""
        return np.exp(self.chain_.params.log_start)

    @property
    def transitions_(self) -> Array:
        """(S, S) or (T - 1, S, S): what follows each state."""
        return np.exp(self.chain_.params.log_trans)

    @property
    def means_(self) -> Array:
        """(S, d) means of the continuous variables."""
        family, params = self.chain_.problem.family, self.chain_.params
        means = np.tile(self.constants_, (params.n_states, 1))
        if family is not None and family.gaussian is not None:
            means[:, self.varying_] = params.components.gaussian.means + family.gaussian.center
        return means

    @property
    def covariances_(self) -> Array:
        """(S, d, d) covariances of the continuous variables."""
        d, params = len(self.constants_), self.chain_.params
        covs = np.zeros((params.n_states, d, d))
        if params.components is not None and params.components.gaussian is not None:
            covs[:, self.varying_[:, None], self.varying_] = params.components.gaussian.full_covs()
        return covs

    @property
    def tables_(self) -> dict[str, Array]:
        """For each categorical variable, (S, values) probabilities."""
        family, components = self.chain_.problem.family, self.chain_.params.components
        if family is None or family.categorical is None:
            return {}
        parts = np.split(np.exp(components.categorical.log_probs), family.categorical.starts[1:], axis=1)
        return {self.variables_.names[i]: part for i, part in zip(self.variables_.categorical, parts)}

    @property
    def log_likelihood_(self) -> float:
        """Of the training sequences, without the prior."""
        return self.run_.objective - self.chain_.problem.log_prior(self.chain_.params)

    @property
    def n_parameters_(self) -> int:
        """Free parameters of the fitted model."""
        return self.chain_.problem.n_free(self.chain_.params)

    def score_samples(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Log-likelihood of each sequence, in nats; -inf for an impossible one.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n,) array.
        """
        return self._log_lik(self._chain(), self._read(X, lengths, groups))

    def _chain(self) -> FittedChain:
        check_is_fitted(self)
        return self.chain_

    def score(self, X: Any, y: Any = None, *, lengths: Any = None, groups: Any = None) -> float:
        """Mean log-likelihood per sequence, in nats.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X, lengths=lengths, groups=groups).mean())

    def predict(self, X: Any, *, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """The most probable state at each step, given its whole sequence.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n, T) array of int; (n_steps,) with lengths or groups.
        """
        return self.predict_proba(X, lengths=lengths, groups=groups).argmax(axis=-1)

    def predict_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Probabilities of the states at each step, given its whole sequence.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n, T, S) array; (n_steps, S) with lengths or groups. Zeros throughout an impossible sequence.
        """
        sequences = self._read(X, lengths, groups)
        log_emit, params = self._log_emit(self.chain_, sequences), self.chain_.params
        found = forward_backward(params.log_start, params.log_trans, log_emit, sequences.lengths)
        return self._laid_out(sequences, found.states)

    def decode(self, X: Any, *, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """The most probable path of states of each sequence (Viterbi).

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n, T) array of int; (n_steps,) with lengths or groups.
        """
        sequences = self._read(X, lengths, groups)
        log_emit, params = self._log_emit(self.chain_, sequences), self.chain_.params
        path, _ = viterbi(params.log_start, params.log_trans, log_emit, sequences.lengths)
        return self._laid_out(sequences, path)

    def _laid_out(self, sequences: Sequences, values: Any) -> Any:
        """Values of the steps as the user's table has them."""
        if self.by_row_:
            return values.reshape(sequences.n_sequences, self.n_features_in_, *values.shape[1:])
        return sequences.restored(values)

    def sample(self, n_sequences: int = 1, length: int | None = None, *, random_state: Any = None) -> tuple[Any, Any]:
        """Draw sequences from the model.

        Parameters
        ----------
        n_sequences : int
        length : int, optional
            Steps of each; needed when the model was fitted to a row per step.
        random_state : int, RandomState or None
            None takes the estimator's own.

        Returns
        -------
        (X, states)
            X (n, length) and states (n, length) when the model was fitted to a sequence per row; otherwise a row per
            step, one sequence after the other (a DataFrame when there are categories), and states (n x length,).
        """
        if self._chain().problem.family is None:
            raise ValueError("with emissions='precomputed' the model does not know what states emit, and draws nothing")
        length, rng = self._read_draw(n_sequences, length, random_state)
        X, codes, states = self._draw(self.chain_, n_sequences, length, rng)
        return self._as_table(X, codes, n_sequences), states if self.by_row_ else states.ravel()

    def bic(self, X: Any, *, lengths: Any = None, groups: Any = None) -> float:
        """Bayesian information criterion on X, with steps for observations; lower is better.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        float
        """
        sequences = self._read(X, lengths, groups)
        log_lik = self._log_lik(self.chain_, sequences).sum()
        return float(-2 * log_lik + self.n_parameters_ * np.log(sequences.lengths.sum()))

    def aic(self, X: Any, *, lengths: Any = None, groups: Any = None) -> float:
        """Akaike information criterion on X; lower is better.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        float
        """
        return float(-2 * self.score_samples(X, lengths=lengths, groups=groups).sum() + 2 * self.n_parameters_)


def _of_varying(given: dict[str, Array], varying: np.ndarray) -> dict[str, Array]:
    """Starting parameters of the variables that take part."""
    given = dict(given)
    if "means" in given:
        given["means"] = given["means"][:, varying]
    if "covariances" in given:
        covs = given["covariances"]
        given["covariances"] = covs[:, varying] if covs.ndim == 2 else covs[:, varying[:, None], varying]
    return given
