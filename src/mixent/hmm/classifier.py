"""A hidden Markov model per class."""

from __future__ import annotations

from collections.abc import Callable
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
from mixent.data import Labels, read_labels, read_weights
from mixent.hmm.estimators import HiddenMarkovModel
from mixent.hmm.fitting import FittedChain, fit_chain, measure, mixed_log_lik
from mixent.hmm.model import SequenceModel, Steps
from mixent.hmm.options import HMMPrior, check_options
from mixent.hmm.sequences import Sequences, seen_steps


class HMMClassifier(ProbabilisticClassifier, SequenceModel):
    """Bayes classifier of sequences: a hidden Markov model per class.

    Maximizes, for every class c,  sum_n w_n log p(x_n | model c) + log prior(model c)  over the sequences of the class,
    by Baum-Welch (see `HiddenMarkovModel`); each update maximizes a lower bound, so this value never falls. Then
    p(c | x) is proportional to p(c) p(x | model c).

    A 2-D X is a sequence per row; with `lengths` or `groups` it has a row per step, and y a label per sequence.

    Parameters
    ----------
    n_states : int
        States of each class.
    covariance, topology, transitions, prior
        See `HiddenMarkovModel`. What the prior shrinks towards is found from the sequences of all classes together.
    class_prior : "empirical" or (C,) array
        Class priors: shares of the training sequences, or these values.
    init : "auto" or "random"
        Where Baum-Welch starts, see `HiddenMarkovModel`.
    n_init, tol, max_iter, accelerate, categorical, random_state, n_jobs, progress
        See `HiddenMarkovModel`.

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    models_ : list of HiddenMarkovModel
        The fitted model of each class.
    runs_ : list of Run
        How Baum-Welch went, for each class.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import HMMClassifier
    >>> rng = np.random.default_rng(0)
    >>> rising = np.sort(rng.normal(size=(30, 8)), axis=1)
    >>> X = np.concatenate([rising, rising[:, ::-1]])
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
        known = no("one known label per sequence is asked for")
        return able(super().__sklearn_tags__(), soft_labels=known, absent_labels=known)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, groups: Any = None) -> Self:
        """Fit a model to the sequences of each class.

        Parameters
        ----------
        X : table
            A sequence per row; with `lengths` or `groups`, a step per row. NaN, None or null are missing, text columns
            are categories.
        y : (n,) labels
            Of each sequence (with groups, in the order in which their ids appear).
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
        if isinstance(self.init, dict):
            raise ValueError("init must be 'auto' or 'random': every class starts from its own sequences")
        sequences = self._read_new(X, lengths, groups)
        labels = read_labels(y, sequences.n_sequences)
        weight = read_weights(sample_weight, sequences.n_sequences)
        codes = _known(labels)
        mass = np.bincount(codes, weight, len(labels.classes)).astype(float)
        if not mass.all():
            name = labels.classes.tolist()[int(mass.argmin())]
            raise ValueError(f"class {name!r} has no sequence with a weight; give it some, or leave the class out")
        _check_seen(sequences, codes, labels)
        prior = read_class_prior(self.class_prior, len(labels.classes))
        sequences = self._settle_columns(sequences, weight)
        sizes = self.variables_.sizes
        scale = measure(self, sequences, weight, sizes)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        chains = []
        with progress_bar(self.progress, "classes") as show:
            for c in range(len(labels.classes)):
                mine = np.flatnonzero(codes == c)
                own = None if weight is None else weight[mine]
                chains.append(fit_chain(self, sequences.take(mine), own, sizes, scale, seed, None, show))
        self.chains_ = tuple(chains)
        self.classes_ = labels.classes
        self.class_prior_ = mass / mass.sum() if prior is None else prior
        for chain, name in zip(chains, labels.classes.tolist()):
            warn_unconverged(chain.run, f"{type(self).__name__} (class {name!r})")
        return self

    def _chains(self) -> tuple[FittedChain, ...]:
        return self.chains_

    @property
    def runs_(self) -> list[Run]:
        """How Baum-Welch went, for each class."""
        return [chain.run for chain in self.chains_]

    @property
    def models_(self) -> list[HiddenMarkovModel]:
        """The fitted model of each class."""
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
        """Log-likelihood of each sequence, its class summed out, in nats; -inf for an impossible one.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n,) array.
        """
        check_is_fitted(self)
        return mixed_log_lik(self._log_joint(Steps(X, lengths, groups)))

    def predict(self, X: Any, *, lengths: Any = None, groups: Any = None) -> np.ndarray:
        """The most probable class of each sequence.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n,) array of class labels.
        """
        return super().predict(Steps(X, lengths, groups))

    def predict_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Probabilities of the classes, for each sequence.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n, C) array, columns in the order of `classes_`; rows sum to 1.
        """
        proba = np.exp(self.predict_log_proba(X, lengths=lengths, groups=groups))
        return proba / proba.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X: Any, *, lengths: Any = None, groups: Any = None) -> Array:
        """Log probabilities of the classes, for each sequence, in nats.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.

        Returns
        -------
        (n, C) array, columns in the order of `classes_`.
        """
        given = X if isinstance(X, Steps) else Steps(X, lengths, groups)
        return super().predict_log_proba(given)

    def decision(
        self, X: Any, costs: Any = None, *, reject: float | None = None, lengths: Any = None, groups: Any = None
    ) -> Decision:
        """Choose the class of least expected cost for each sequence, or none.

        Parameters
        ----------
        X, lengths, groups
            As in `fit`.
        costs, reject
            `costs[i, j]` is the cost of predicting class i where the truth is class j (default: 1 for any error);
            `reject` is the cost of not deciding.

        Returns
        -------
        Decision
            labels (None where rejected), expected_cost, rejected.
        """
        return super().decision(Steps(X, lengths, groups), costs, reject=reject)

    def adjust_priors(
        self, X: Any, *, tol: float = 1e-9, max_iter: int = 5000, lengths: Any = None, groups: Any = None
    ) -> Self:
        """A copy of this classifier for a batch whose class priors have shifted.

        Parameters
        ----------
        X, lengths, groups
            Sequences without labels, as in `fit`.
        tol, max_iter
            When EM stops.

        Returns
        -------
        A copy with `class_prior_` of the batch; `prior_run_` holds how EM ended.
        """
        return super().adjust_priors(Steps(X, lengths, groups), tol=tol, max_iter=max_iter)

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # a class the batch seems to lack stays possible
        self.class_prior_ = prior / prior.sum()

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None, groups: Any = None) -> float:
        """Share of sequences whose class is predicted rightly.

        Parameters
        ----------
        X, y, lengths, groups
            As in `fit`.
        sample_weight : (n,) array, optional
            Of each sequence.

        Returns
        -------
        float
        """
        return share_right(y, self.predict(X, lengths=lengths, groups=groups), sample_weight)

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
        (X, labels)
            X (n, length) when the model was fitted to a sequence per row, otherwise a row per step; and the class of
            each sequence.
        """
        length, rng = self._read_draw(n_sequences, length, random_state)
        label = np.sort(rng.choice(len(self.classes_), n_sequences, p=self.class_prior_))
        parts = [self._draw(self.chains_[c], int((label == c).sum()), length, rng)[:2] for c in np.unique(label)]
        X = np.concatenate([part[0] for part in parts])
        codes = None if parts[0][1] is None else np.concatenate([part[1] for part in parts])
        return self._as_table(X, codes, n_sequences), self.classes_[label]


def _check_seen(sequences: Sequences, codes: np.ndarray, labels: Labels) -> None:
    """Has every class a step at which something was seen?"""
    seen = np.bincount(codes[sequences.owner], seen_steps(sequences.table), len(labels.classes))
    if not seen.all():
        name = labels.classes.tolist()[int(seen.argmin())]
        raise ValueError(f"class {name!r} has no values: all of its steps are missing; leave the class out")


def _known(labels: Labels) -> np.ndarray:
    """The class of every sequence."""
    if not labels.all_hard_and_known:
        where = "label probabilities" if labels.codes is None else f"no label for sequence {int(labels.codes.argmin())}"
        raise ValueError(f"HMMClassifier needs one known label per sequence; y has {where}")
    assert labels.codes is not None
    return labels.codes
