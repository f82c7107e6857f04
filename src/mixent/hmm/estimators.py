"""Hidden Markov models without classes."""

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
from mixent.data import Column, Schema, Table, keep_notes, read_weights
from mixent.hmm.fitting import FittedChain, fit_chain, matrices_of, measure
from mixent.hmm.lattice import forward_backward, viterbi
from mixent.hmm.model import SequenceModel, read_log_emissions
from mixent.hmm.options import HMMPrior, check_emissions, check_options, read_fixed, read_start
from mixent.hmm.sequences import Sequences
from mixent.hmm.states import stationary


class HiddenMarkovModel(DensityMixin, SequenceModel):
    """Hidden Markov model fitted by maximum a posteriori EM (Baum-Welch), for sequences with missing values.

    Maximizes  sum_n w_n log sum_z p(z_0) b_z0(x_n0) prod_t A(z_t-1, z_t) b_zt(x_nt) + log prior(p, A, b),  where z are
    the paths of hidden states, p the probabilities of the first state, A the transition probabilities, b_z the
    distribution of the emissions in state z, and w_n the weight of sequence n. Each update maximizes a lower bound that
    touches the objective, so the objective never decreases [1]_ [2]_. `decode` is the Viterbi algorithm [3]_.

    Without `lengths` and `groups`, each row of X is a sequence, and its columns are the steps of one variable, numeric
    (a Gaussian or Poisson distribution per state) or categorical (a table of probabilities per state). With `lengths`
    or `groups`, each row of X is a step, and its columns are the variables of this step, numeric or categorical.
    Missing values are integrated out exactly. Steps of which all values are missing have no emission, so rows for
    sequences of different length may end with missing values.

    Parameters
    ----------
    n_states : int, default=2
        Number of hidden states.
    covariance : str, default="VVI"
        Covariance structure of the Gaussians of the states, see `GaussianMixture`.
    topology : "full" or "left-right", default="full"
        Whether all transitions are possible, or sequences begin in state 0 and never return to an earlier state.
    transitions : "shared" or "per_step", default="shared"
        One transition matrix for all steps, or one for each step, counted from the start of a sequence.
    emissions : "fitted", "poisson" or "precomputed", default="fitted"
        Distribution of the emissions: Gaussians of the numeric variables, Poisson distributions of the numeric
        variables, which are then counts, or none: with "precomputed", X (n_steps, n_states) has the log-likelihood of
        each state at each step, and only start and transition probabilities are estimated.
    prior : "auto", float, None or HMMPrior, default="auto"
        Number of pseudo-rows that shrink the covariance of each state towards a common covariance within the states,
        whose scale is estimated with the states; "auto" is the number of numeric variables + 2. None is maximum
        likelihood. An `HMMPrior` also has the smoothing of categorical variables and of transitions.
    init : "auto", "random" or dict, default="auto"
        Initialization: by k-means of the steps (segments of equal length with "left-right"), at random, or with these
        parameters: any of "start" (S,), "transitions" (S, S), "means" (S, d), "covariances" (S, d) or (S, d, d), and
        "tables", (S, values) or a dict of these by variable. Others are initialized as with "auto". The key "fixed" has
        the names of those that are not trained, for example {"transitions": A, "fixed": ["transitions"]}.
    n_init : int, default=1
        Number of initializations. Each is run for a few passes, and the best is continued. The first does not use
        random numbers, except for a small perturbation of the categorical distributions.
    tol : float, default=1e-5
        EM stops when the gain of a pass is below this value, in nats per step.
    max_iter : int, default=500
        Maximum number of iterations (passes over the data).
    accelerate : bool, default=True
        Whether to use SQUAREM extrapolation; an extrapolated step is accepted only if it increases the objective.
    categorical : "auto" or list, default="auto"
        Columns to treat as categorical, regardless of their type.
    random_state : int, RandomState or None, default=None
        Seed of the initialization.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result is identical to the last bit for any number.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    start_ : (S,) array
        Probabilities of the first state.
    transitions_ : (S, S) or (T - 1, S, S) array
        Transition probabilities; rows sum to 1.
    stationary_ : (S,) array
        Long-run share of time in each state; not available with transitions="per_step".
    means_ : (S, d) array
        Means of the numeric variables in each state; with emissions="poisson", the rates.
    covariances_ : (S, d, d) array
        Covariances of the numeric variables in each state.
    tables_ : dict of variable -> (S, values) array
        Probabilities of the values of each categorical variable in each state. With a sequence per row, the variable is
        called "value".
    log_likelihood_ : float
        Log-likelihood of the training sequences.
    n_parameters_ : int
        Number of free parameters.
    run_ : Run
        Result of EM: `status`, `trace` (one entry per pass), `objective`.
    converged_ : bool
        Whether EM has converged.
    n_iter_ : int
        Number of passes over the data.
    variables_ : Schema
        Names, types and categories of the variables of a step.
    by_row_ : bool
        Whether X has a sequence per row.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : (n_columns,) array
        Names of the columns, if X has names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.
    schema_ : Schema
        Names, types and categories of the columns.
    varying_ : (d',) array of int
        Numeric variables that vary. The others are left out of the density, since their likelihood would be infinite.
    constants_ : (d,) array
        Values of the constant numeric variables, NaN for the others.
    chain_ : FittedChain
        The optimization problem, its solution and the run.

    See Also
    --------
    HMMClassifier : Bayes classifier with a hidden Markov model for each class.
    GaussianMixture : The corresponding model of independent rows.
    FisherKernel : Kernel between sequences from the scores of a fitted model.

    References
    ----------
    .. [1] Baum, L. E., Petrie, T., Soules, G. and Weiss, N. (1970). A maximization technique occurring in the
       statistical analysis of probabilistic functions of Markov chains. Annals of Mathematical Statistics, 41(1),
       164-171.
    .. [2] Rabiner, L. R. (1989). A tutorial on hidden Markov models and selected applications in speech recognition.
       Proceedings of the IEEE, 77(2), 257-286.
    .. [3] Viterbi, A. J. (1967). Error bounds for convolutional codes and an asymptotically optimum decoding algorithm.
       IEEE Transactions on Information Theory, 13(2), 260-269.

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
            A sequence per row; with `lengths` or `groups`, a step per row. NaN, None and null are missing values, text
            columns are categorical.
        y : not used
        sample_weight : (n,) array, optional
            Weight of each sequence; a weight of 2 is equivalent to repeating the sequence.
        lengths : (n,) array of int, optional
            Number of rows of each sequence; the sequences are concatenated.
        groups : (n_steps,) array, optional
            Alternative to `lengths`: rows with the same id form a sequence, in their order.

        Returns
        -------
        self
        """
        self._check_options()
        sequences = self._read_fit(X, y, lengths, groups)
        weight = read_weights(sample_weight, sequences.n_sequences)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        scale, initial = None, None
        if self.emissions != "precomputed":
            read_fixed(self.init, self.variables_)
            sequences = self._select_columns(sequences, weight)
        if isinstance(self.init, dict):
            initial = read_start(self, self.variables_, self.varying_, matrices_of(self, sequences))
        if self.emissions != "precomputed":
            scale = measure(self, sequences, weight, self.variables_.sizes)
        with progress_bar(self.progress, "sequences") as show:
            self.chain_ = fit_chain(self, sequences, weight, self.variables_.sizes, scale, seed, initial, show)
        warn_unconverged(self.run_, type(self).__name__)
        return self

    def _check_options(self) -> None:
        check_options(self)
        check_emissions(self)

    def _read_fit(self, X: Any, y: Any, lengths: Any, groups: Any) -> Sequences:
        if self.emissions != "precomputed":
            sequences, table = self._read_new(X, lengths, groups)
            if self.by_row_:
                _check_unused(y, sequences.n_sequences)
            keep_notes(self, table, quiet=isinstance(X, Table))
            if self.n_states > len(sequences.table.X):
                raise ValueError(
                    f"n_states={self.n_states} needs at least as many steps; X has {len(sequences.table.X)}"
                )
            return sequences
        sequences = read_log_emissions(X, lengths, groups, self.n_states)
        self.by_row_, self.n_features_in_ = False, self.n_states
        self.notes_: list[str] = []
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
        """Result of EM: `status`, `trace`, `objective`."""
        return self.chain_.run

    @property
    def start_(self) -> Array:
        """(S,) probabilities of the first state."""
        return np.exp(self.chain_.params.log_start)

    @property
    def transitions_(self) -> Array:
        """(S, S) or (T - 1, S, S) transition probabilities."""
        return np.exp(self.chain_.params.log_trans)

    @property
    def stationary_(self) -> Array:
        """(S,) long-run share of time in each state; starting from `start_` if there are several such distributions."""
        if self.transitions_.ndim == 3:
            raise AttributeError("there is no stationary distribution with transitions='per_step'; use 'shared'")
        return stationary(self.start_, self.transitions_)

    @property
    def means_(self) -> Array:
        """(S, d) means of the numeric variables."""
        family, params = self.chain_.problem.family, self.chain_.params
        means = np.tile(self.constants_, (params.n_states, 1))
        if family is not None and family.gaussian is not None:
            means[:, self.varying_] = params.components.gaussian.means + family.gaussian.center
        return means

    @property
    def covariances_(self) -> Array:
        """(S, d, d) covariances of the numeric variables."""
        d, params = len(self.constants_), self.chain_.params
        covs = np.zeros((params.n_states, d, d))
        if params.components is not None and params.components.gaussian is not None:
            covs[:, self.varying_[:, None], self.varying_] = params.components.gaussian.full_covs()
        return covs

    @property
    def tables_(self) -> dict[str, Array]:
        """Probabilities (S, values) of the values of each categorical variable."""
        family, components = self.chain_.problem.family, self.chain_.params.components
        if family is None or family.categorical is None:
            return {}
        parts = np.split(np.exp(components.categorical.log_probs), family.categorical.starts[1:], axis=1)
        return {self.variables_.names[i]: part for i, part in zip(self.variables_.categorical, parts)}

    @property
    def log_likelihood_(self) -> float:
        """Log-likelihood of the training sequences, without the prior."""
        return self.run_.objective - self.chain_.problem.log_prior(self.chain_.params)

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters of the fitted model."""
        return self.chain_.problem.n_free(self.chain_.params)

    def score_samples(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Return the log-likelihood of each sequence, in nats; -inf for an impossible sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n,) array.
        """
        return self._log_lik(self._chain(), self._read(X, lengths, groups))

    def _chain(self) -> FittedChain:
        check_is_fitted(self)
        return self.chain_

    def score(self, X: Any, y: Any = None, *, lengths: Any = None, groups: Any = None) -> float:
        """Return the mean log-likelihood per sequence, in nats.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X, lengths=lengths, groups=groups).mean())

    def predict(self, X: Any, *, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """Return the most probable state at each step, given the whole sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n, T) array of int; (n_steps,) with lengths or groups.
        """
        return self.predict_proba(X, lengths=lengths, groups=groups).argmax(axis=-1)

    def predict_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Return the posterior probabilities of the states at each step, given the whole sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n, T, S) array; (n_steps, S) with lengths or groups. Zeros for an impossible sequence.
        """
        sequences = self._read(X, lengths, groups)
        log_emit, params = self._log_emit(self.chain_, sequences), self.chain_.params
        posterior = forward_backward(params.log_start, params.log_trans, log_emit, sequences.lengths)
        return self._in_table_order(sequences, posterior.states)

    def decode(
        self, X: Any, *, lengths: Any = None, groups: Any = None, return_log_prob: bool = False
    ) -> np.ndarray | tuple[np.ndarray, Array]:
        """Return the most probable path of states of each sequence (Viterbi algorithm).

        Parameters
        ----------
        X, lengths, groups
            See `fit`.
        return_log_prob : bool, default=False
            Whether to return log p(path, x) of each sequence, too, in nats; -inf for an impossible sequence.

        Returns
        -------
        path : (n, T) array of int; (n_steps,) with lengths or groups.
        log_prob : (n,) array
            Only if `return_log_prob` is True.
        """
        sequences = self._read(X, lengths, groups)
        log_emit, params = self._log_emit(self.chain_, sequences), self.chain_.params
        path, log_prob = viterbi(params.log_start, params.log_trans, log_emit, sequences.lengths)
        path = self._in_table_order(sequences, path)
        return (path, log_prob) if return_log_prob else path

    def _in_table_order(self, sequences: Sequences, values: Any) -> Any:
        """Return values of the steps in the layout of the user's table."""
        if self.by_row_:
            return values.reshape(sequences.n_sequences, self.n_features_in_, *values.shape[1:])
        return sequences.restored(values)

    def sample(self, n_sequences: int = 1, length: int | None = None, *, random_state: Any = None) -> tuple[Any, Any]:
        """Draw sequences from the fitted model.

        Parameters
        ----------
        n_sequences : int
            Number of sequences.
        length : int, optional
            Number of steps of each sequence; needed if the model was fitted with a row per step.
        random_state : int, RandomState or None
            None uses the `random_state` of the estimator.

        Returns
        -------
        (X, states)
            X (n, length) and states (n, length) if the model was fitted with a sequence per row; otherwise the
            concatenated sequences with a row per step, and states (n x length,). X is a DataFrame with the columns and
            of the library of the training table if that was one (and, with a sequence per row, has as many steps);
            otherwise an array.
        """
        if self._chain().problem.family is None:
            raise ValueError(
                "sample needs a model of the emissions; fit with emissions='fitted' instead of 'precomputed'"
            )
        length, rng = self._read_draw(n_sequences, length, random_state)
        X, codes, states = self._draw(self.chain_, n_sequences, length, rng)
        return self._as_table(X, codes, n_sequences), states if self.by_row_ else states.ravel()

    def bic(self, X: Any, *, lengths: Any = None, groups: Any = None) -> float:
        """Return the Bayesian information criterion on X, where each step is an observation; lower is better.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        float
        """
        sequences = self._read(X, lengths, groups)
        log_lik = self._log_lik(self.chain_, sequences).sum()
        return float(-2 * log_lik + self.n_parameters_ * np.log(sequences.lengths.sum()))

    def aic(self, X: Any, *, lengths: Any = None, groups: Any = None) -> float:
        """Return the Akaike information criterion on X; lower is better.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        float
        """
        return float(-2 * self.score_samples(X, lengths=lengths, groups=groups).sum() + 2 * self.n_parameters_)


def _check_unused(y: Any, n_rows: int) -> None:
    """Raise a ValueError if `y` seems to be the lengths of sequences, which is hmmlearn's second argument."""
    values = np.asarray([] if y is None else y)
    if values.ndim == 1 and values.dtype.kind in "iu" and len(values) < n_rows and values.sum() == n_rows:
        raise ValueError("y is not used, but looks like the lengths of sequences; pass them as lengths=")
