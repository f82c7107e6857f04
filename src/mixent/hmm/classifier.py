"""Bayes classifier with a hidden Markov model for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import CapableTags, able, no
from mixent.base.classifier import Decision, ProbabilisticClassifier, share_right
from mixent.base.convergence import warn_unconverged
from mixent.base.priors import read_class_prior
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.driver import Run
from mixent.data import Labels, Origin, Table, keep_notes, read_labels, read_weights
from mixent.hmm.estimators import HiddenMarkovModel
from mixent.hmm.fitting import FittedChain, fit_chain, measure, mixed_log_lik
from mixent.hmm.model import SequenceModel, Steps
from mixent.hmm.options import HMMPrior, check_emissions, check_options
from mixent.hmm.sequences import Sequences, observed_steps


class HMMClassifier(ProbabilisticClassifier, SequenceModel):
    """Bayes classifier of sequences with a hidden Markov model for each class.

    Maximizes for every class c  sum_n w_n log p(x_n | model c) + log prior(model c)  over the sequences of the class,
    by EM (see `HiddenMarkovModel`). Each update maximizes a lower bound that touches the objective, so the objective
    never decreases. Then p(c | x) is proportional to p(c) p(x | model c) [1]_.

    Without `lengths` and `groups`, each row of X is a sequence. With `lengths` or `groups`, each row of X is a step,
    and y has a label per sequence.

    Parameters
    ----------
    n_states : int, default=2
        Number of hidden states of each class.
    covariance, topology, transitions
        See `HiddenMarkovModel`.
    emissions : "fitted" or "poisson", default="fitted"
        Distribution of the emissions, see `HiddenMarkovModel`.
    prior : "auto", float, None or HMMPrior, default="auto"
        Number of pseudo-rows of the prior, see `HiddenMarkovModel`; its scales and frequencies are computed from the
        sequences of all classes.
    class_prior : "empirical", (C,) array or dict of label -> probability, default="empirical"
        Class priors: the class frequencies of the training sequences, or these values.
    init : "auto" or "random", default="auto"
        Initialization, see `HiddenMarkovModel`.
    n_init, tol, max_iter, accelerate, categorical, random_state, n_jobs, progress
        See `HiddenMarkovModel`.

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    class_prior_ : (C,) array
        Class priors.
    models_ : list of HiddenMarkovModel
        Fitted model of each class.
    runs_ : list of Run
        Result of EM for each class: `status`, `trace` (one entry per pass), `objective`.
    converged_ : bool
        Whether EM has converged for all classes.
    n_iter_ : int
        Largest number of passes over the data of a class.
    variables_, by_row_, n_features_in_, feature_names_in_, notes_, schema_, varying_, constants_
        See `HiddenMarkovModel`.
    chains_ : tuple of FittedChain
        The optimization problem of each class, its solution and the run.

    See Also
    --------
    HiddenMarkovModel : Hidden Markov model without classes.
    MixtureClassifier : The corresponding classifier of independent rows.
    HMMStackingClassifier : Combination of classifiers by hidden Markov models of their outputs.

    References
    ----------
    .. [1] Rabiner, L. R. (1989). A tutorial on hidden Markov models and selected applications in speech recognition.
       Proceedings of the IEEE, 77(2), 257-286.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import HMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> increasing = np.sort(rng.normal(size=(30, 8)), axis=1)
    >>> X = np.concatenate([increasing, increasing[:, ::-1]])
    >>> y = np.repeat(["up", "down"], 30)
    >>> HMMClassifier(3).fit(X, y).score(X, y)
    1.0
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
        class_prior: Any = "empirical",
        init: str = "auto",
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
        self.class_prior = class_prior
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
        no_labels = no("every sequence needs a known label")
        return able(super().__sklearn_tags__(), soft_labels=no_labels, absent_labels=no_labels)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, groups: Any = None) -> Self:
        """Fit a model to the sequences of each class.

        Parameters
        ----------
        X : table
            A sequence per row; with `lengths` or `groups`, a step per row. NaN, None and null are missing values, text
            columns are categorical.
        y : (n,) labels
            Label of each sequence (with groups, in the order of the first row of each id).
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
        sequences, table = self._read_new(X, lengths, groups)
        labels = read_labels(y, sequences.n_sequences)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        weight = read_weights(sample_weight, sequences.n_sequences)
        codes = _known(labels)
        mass = np.bincount(codes, weight, len(labels.classes)).astype(float)
        if not mass.all():
            name = labels.classes.tolist()[int(mass.argmin())]
            raise ValueError(f"class {name!r} has no sequence with positive weight; add some, or leave the class out")
        _check_observed(sequences, codes, labels)
        prior = read_class_prior(self.class_prior, labels.classes)
        sequences = self._select_columns(sequences, weight)
        sizes = self.variables_.sizes
        scale = measure(self, sequences, weight, sizes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        chains = []
        with progress_bar(self.progress, "classes") as show:
            for c in range(len(labels.classes)):
                members = np.flatnonzero(codes == c)
                class_weight = None if weight is None else weight[members]
                chains.append(fit_chain(self, sequences.take(members), class_weight, sizes, scale, seed, None, show))
        self.chains_ = tuple(chains)
        self.classes_ = labels.classes
        self.class_prior_ = mass / mass.sum() if prior is None else prior
        for chain, name in zip(chains, labels.classes.tolist()):
            warn_unconverged(chain.run, f"{type(self).__name__} (class {name!r})")
        return self

    def _check_options(self) -> None:
        check_options(self)
        if isinstance(self.init, dict):
            raise ValueError("init must be 'auto' or 'random', since each class is initialized separately; got a dict")
        check_emissions(self, ("fitted", "poisson"))

    def _chains(self) -> tuple[FittedChain, ...]:
        return self.chains_

    @property
    def runs_(self) -> list[Run]:
        """Result of EM for each class."""
        return [chain.run for chain in self.chains_]

    @property
    def models_(self) -> list[HiddenMarkovModel]:
        """Fitted model of each class."""
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "class_prior"}
        models = []
        for chain in self.chains_:
            model = HiddenMarkovModel(**options)
            for name in ("schema_", "variables_", "by_row_", "varying_", "constants_", "n_features_in_"):
                setattr(model, name, getattr(self, name))
            if hasattr(self, "feature_names_in_"):
                model.feature_names_in_ = self.feature_names_in_
            model.chain_ = chain
            models.append(model)
        return models

    def _log_joint(self, X: Any) -> Array:
        steps = X if isinstance(X, Steps) else Steps(X)
        sequences = self._read(steps.X, steps.lengths, steps.groups)
        log_lik = np.stack([self._log_lik(chain, sequences) for chain in self.chains_], axis=1)
        return log_lik + np.log(self.class_prior_)

    def score_samples(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Return the log-likelihood of each sequence, summed over classes, in nats; -inf for an impossible sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n,) array.
        """
        check_is_fitted(self)
        return mixed_log_lik(self._log_joint(Steps(X, lengths, groups)))

    def predict(self, X: Any, *, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """Return the most probable class of each sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n,) array of class labels.
        """
        return super().predict(Steps(X, lengths, groups))

    def predict_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Return the class probabilities of each sequence.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n, C) array, columns in the order of `classes_`; rows sum to 1.
        """
        proba = np.exp(self.predict_log_proba(X, lengths=lengths, groups=groups))
        return proba / proba.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Return the log class probabilities of each sequence, in nats.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.

        Returns
        -------
        (n, C) array, columns in the order of `classes_`.
        """
        return super().predict_log_proba(X if isinstance(X, Steps) else Steps(X, lengths, groups))

    def decision(
        self, X: Any, costs: Any = None, *, reject: float | None = None, lengths: Any = None, groups: Any = None
    ) -> Decision:
        """Return the class with the lowest expected cost for each sequence, or reject it.

        Parameters
        ----------
        X, lengths, groups
            See `fit`.
        costs, reject
            `costs[i, j]` is the cost of predicting class i if the true class is j (default: 1 for any error);
            `reject` is the cost of a rejection.

        Returns
        -------
        Decision
            labels (None where rejected), expected_cost, rejected.
        """
        decision = super().decision(Steps(X, lengths, groups), costs, reject=reject)
        origin = Origin.of(X)
        return replace(decision, origin=origin if self.by_row_ else replace(origin, index=None))

    def adjust_priors(
        self, X: Any, *, tol: float = 1e-9, max_iter: int = 5000, lengths: Any = None, groups: Any = None
    ) -> Self:
        """Return a copy of this classifier with the class priors of an unlabelled batch, estimated by EM.

        Parameters
        ----------
        X, lengths, groups
            Unlabelled sequences, see `fit`.
        tol, max_iter
            Tolerance and maximum number of iterations of EM.

        Returns
        -------
        A copy with `class_prior_` of the batch; `prior_run_` is the result of EM.
        """
        return super().adjust_priors(Steps(X, lengths, groups), tol=tol, max_iter=max_iter)

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # so that a class that seems absent from the batch remains possible
        self.class_prior_ = prior / prior.sum()

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, groups: Any = None) -> float:
        """Share of sequences whose class is predicted rightly.

        Parameters
        ----------
        X, y, lengths, groups
            See `fit`.
        sample_weight : (n,) array, optional
            Of each sequence.

        Returns
        -------
        float
        """
        return share_right(y, self.predict(X, lengths=lengths, groups=groups), sample_weight)

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
        (X, labels)
            X (n, length) if the model was fitted with a sequence per row, otherwise a row per step, as `sample` of
            `HiddenMarkovModel`; and the class of each sequence.
        """
        length, rng = self._read_draw(n_sequences, length, random_state)
        label = np.sort(rng.choice(len(self.classes_), n_sequences, p=self.class_prior_))
        parts = [self._draw(self.chains_[c], int((label == c).sum()), length, rng)[:2] for c in np.unique(label)]
        X = np.concatenate([part[0] for part in parts])
        codes = None if parts[0][1] is None else np.concatenate([part[1] for part in parts])
        return self._as_table(X, codes, n_sequences), self.classes_[label]


def _check_observed(sequences: Sequences, codes: np.ndarray, labels: Labels) -> None:
    """Raise a ValueError if all values of a class are missing."""
    counts = np.bincount(codes[sequences.owner], observed_steps(sequences.table), len(labels.classes))
    if not counts.all():
        name = labels.classes.tolist()[int(counts.argmin())]
        raise ValueError(f"all values of class {name!r} are missing; leave the class out")


def _known(labels: Labels) -> np.ndarray:
    """Return the class of every sequence; raise a ValueError if one is unknown or uncertain."""
    if not labels.all_hard_and_known:
        got = "label probabilities" if labels.codes is None else f"no label for sequence {int(labels.codes.argmin())}"
        raise ValueError(f"HMMClassifier needs one known label per sequence; y has {got}")
    assert labels.codes is not None
    return labels.codes
