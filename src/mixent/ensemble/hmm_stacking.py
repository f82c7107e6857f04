"""Classifiers combined by hidden Markov models of their sequence of decisions (document 004, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from mixent.base.bounded_loss import fit_temperature
from mixent.base.convergence import warn_unconverged
from mixent.base.delegation import aligned
from mixent.base.executors import choose_executor
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_calibration, check_choice, check_count, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Run, Status, Stop, run
from mixent.core.executors import Executor
from mixent.core.observers import ShowProgress
from mixent.core.proposals import Squarem
from mixent.ensemble.members import Outputs
from mixent.ensemble.stacking import FOLDS, BaseStacking, FitInput
from mixent.hmm.fitting import FittedChain, blocks_of, of_sequences
from mixent.hmm.problem import ChainParams, ChainProblem, ChainStats
from mixent.hmm.sequences import Sequences

TRANSITIONS = ("shared", "per_step")
STARTS = ("learned", "uniform")
CALIBRATIONS = ("temperature",)
FLOOR = 1e-6  # least probability of a decision: a classifier that is certain and wrong must not make a row impossible


@dataclass(frozen=True)
class UniformStart(ChainProblem):
    """Baum-Welch with fixed start probabilities."""

    def update(self, params: ChainParams, total: ChainStats, step: float = 1.0) -> ChainParams:
        """Update the transitions only; the lower bound is a sum of terms for the start and for the transitions."""
        return replace(super().update(params, total, step), log_start=params.log_start)


@dataclass(frozen=True)
class ChainFit:
    """Options for fitting a Markov chain to the rows of a class."""

    per_step: bool
    learned: bool  # whether the start probabilities are learned
    prior: float
    stop: Stop

    def init(self, n_stages: int, n_states: int) -> ChainParams:
        """Initialization: all paths equally probable. Emissions differ between states, so it is not a fixed point."""
        even = np.full((n_states, n_states), -np.log(n_states))
        trans = np.tile(even, (n_stages - 1, 1, 1)) if self.per_step else even
        return ChainParams(even[0].copy(), trans, None)

    def problem(self) -> ChainProblem:
        """The objective."""
        return ChainProblem(None, self.prior if self.learned else 0.0, self.prior)

    def __call__(self, log_emit: Array, weight: Array, executor: Executor, show: Any = None) -> FittedChain:
        """Fit by Baum-Welch to log-likelihoods (n, M, C); each row is a sequence of M steps."""
        problem, (_, n_stages, n_states) = self.problem(), log_emit.shape
        done = run(
            problem if self.learned else UniformStart(None, 0.0, self.prior),
            blocks_of(problem, n_states, as_sequences(log_emit), weight),
            self.init(n_stages, n_states),
            stop=self.stop,
            executor=executor,
            observers=[] if show is None else [ShowProgress(show, self.stop.max_passes)],
            propose=Squarem(),
        )
        return FittedChain(problem, done.params, replace(done, last=None))


def as_sequences(log_emit: Array) -> Sequences:
    """Rows (n, M, C) as sequences of M steps."""
    n, n_stages, n_states = log_emit.shape
    return Sequences(Block(log_emit.reshape(n * n_stages, n_states)), np.full(n, n_stages))


def log_emissions(values: Sequence[Array]) -> Array:
    """(n, M, C) log P[C_k = i | row], floored; 0 where a classifier abstains."""
    proba = np.stack(values, axis=1)
    return np.where(np.isnan(proba), 0.0, np.log(np.maximum(proba, FLOOR)))


def log_likelihoods(chains: Sequence[FittedChain], log_emit: Array, executor: Executor) -> Array:
    """(n, classes) log P_c[O] of every row under the chain of every class."""
    sequences, n_states = as_sequences(log_emit), log_emit.shape[2]
    source = blocks_of(chains[0].problem, n_states, sequences, None)
    return np.stack([of_sequences(chain.problem, chain.params, source, executor) for chain in chains], axis=1)


@dataclass(frozen=True)
class TrainingRows:
    """The outputs of the classifiers for the training rows, and the weights of the rows in each class."""

    log_emit: Array  # (n, M, C)
    mass: Array  # (n, C) weight of the row in each class; 0 for rows that are not used
    given: FitInput

    @property
    def shares(self) -> Array:
        """(C,) weighted class frequencies."""
        total = self.mass.sum(axis=0)
        return total / total.sum()

    def chains(self, fit: ChainFit, rows: np.ndarray, executor: Executor, show: Any = None) -> list[FittedChain]:
        """The chain of every class, fitted to these rows."""
        chains = []
        for mass in self.mass.T:
            class_rows = rows[mass[rows] > 0]
            class_rows = class_rows if len(class_rows) else rows[:1]  # of weight 0: the initial chain is returned
            chains.append(fit(self.log_emit[class_rows], mass[class_rows], executor, show))
        return chains

    def temperature(self, fit: ChainFit, folds: list[Fold], executor: Executor, show: Any = None) -> float:
        """The temperature with the lowest log-loss on held-out rows."""
        given = self.given
        if not folds:
            folds = label_folds(given.codes, given.counted, given.seed, FOLDS)
            folds = [(train[given.counted[train]], test) for train, test in folds]
        if not folds:  # no class has two rows
            return 1.0
        log_lik = []
        for train, test in folds:
            chains = self.chains(fit, train, executor, show)
            log_lik.append(log_likelihoods(chains, self.log_emit[test], executor))
        held_out = np.concatenate([test for _, test in folds])
        weight = self.mass[held_out].sum(axis=1)
        target = self.mass[held_out] / weight[:, None]
        return float(fit_temperature(np.concatenate(log_lik), np.log(self.shares), target, weight)[0])


def class_mass(given: FitInput) -> Array:
    """(n, C) weight of each row in each class, divided by the label probabilities if y holds them."""
    likelihood = given.labels.likelihood
    mass = likelihood / likelihood.sum(axis=1, keepdims=True)
    mass[~given.counted] = 0.0
    return mass if given.weight is None else mass * given.weight[:, None]


class HMMStackingClassifier(BaseStacking):
    """Stacking by hidden Markov models: one model per class of the sequence of the classifiers' decisions.

    The M classifiers, such as the stages of boosting, are the steps of a sequence, and the C possible decisions are its
    states [1]_: q_k is the decision of classifier k, and its output P[C_k = i | row] is the likelihood of q_k = i. With
    start probabilities pi^c and transition probabilities A^(c,k), the likelihood of a row in class c is

        P_c[O] = sum_q pi^c(q_1) P[C_1 = q_1 | row] prod_k A^(c,k)(q_k, q_k+1) P[C_k+1 = q_k+1 | row],

    and P[c | row] ~ P[c] P_c[O]^T with a temperature T. Maximizes, for every class c,

        sum_t w_t log P_c[O_t] + log prior(pi^c, A^c)

    over the rows of the class, by the Baum-Welch algorithm [2]_ in the log domain. Each update maximizes a lower bound
    that touches the objective, so this value never falls. Initially all paths are equally probable; the fit is
    deterministic.

    Unlike a vote, the chain models the dependence between successive stages. It ignores longer dependences, so with
    many stages P_c[O] becomes overconfident; the temperature T corrects this on average.

    The model of [1]_ is obtained with transitions="per_step", start="uniform", transition_smoothing=0,
    calibration=None, cv="train" and equal `class_prior`.

    Parameters
    ----------
    estimators : list or ensemble
        Classifiers in the order of the sequence, or one ensemble whose stages are combined; see
        `MaxEntStackingClassifier`. Their labels must be classes.
    transitions : {"shared", "per_step"}, default="shared"
        One matrix A^c for all steps, or a matrix A^(c,k) for each step as in [1]_. The latter has (M - 1) C (C - 1)
        parameters in each class, for which there are rarely enough rows.
    start : {"learned", "uniform"}, default="learned"
        Learned start probabilities pi^c, or 1 / C as in [1]_, which ignores how the first decision depends on the
        class.
    transition_smoothing : float, default=1.0
        Pseudo-counts of the start probabilities and of each row of a transition matrix, spread evenly over the
        decisions. 0 is maximum likelihood, as in [1]_.
    calibration : "temperature" or None, default="temperature"
        Calibration of the probabilities. "temperature": T <= 1 minimizes the log-loss of held-out rows, with chains
        fitted to the other rows in each fold of `cv` (in 5 folds with cv="train", where no outputs on held-out rows are
        available, and with "prefit"). None: T = 1, as in [1]_.
    decisions : {"auto", "soft", "hard"}, default="auto"
        Outputs of the classifiers: probabilities if available, always probabilities, or labels only. Probabilities
        below 1e-6 are raised to 1e-6, so that no row becomes impossible. A classifier that abstains is skipped.
    inputs : dict, default=None
        Classifier name -> list of the columns it uses. The other classifiers use all columns.
    class_prior : "empirical", array of shape (n_classes,) or dict of label -> probability, default="empirical"
        Class priors: training frequencies, or the given probabilities.
    cv : int, splitter, list of (train, test), "train" or "prefit", default=5
        Cross-validation folds of the outputs to which the chains are fitted: those of held-out rows. "train": outputs
        on the training rows of the classifiers, as in [1]_ (overfitting classifiers then get too much weight);
        "prefit": outputs of classifiers that are already fitted.
    tol : float, default=1e-5
        Stop when the gain of a pass is below this value, in nats per row and classifier.
    max_iter : int, default=500
        Maximum number of iterations (passes over the data).
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of classifiers whose own `random_state` is None.
    n_jobs : int or None, default=None
        Number of folds in which classifiers are trained in parallel; None: one. Also the number of threads of
        Baum-Welch.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class priors.
    base_names_ : tuple of str
        Names of the classifiers (or stages).
    base_classes_ : tuple of ndarray
        Labels of each classifier.
    base_errors_ : ndarray of shape (M,)
        Error of each classifier on the training rows; out of fold, unless `cv` is "train" or "prefit".
    members_ : Members
        The classifiers as given, with their names and input columns.
    fitted_ : list of classifiers, or an ensemble
        The classifiers, trained on all rows.
    estimators_ : list of classifiers
        The same as a list, for an ensemble its members.
    named_estimators_ : Bunch
        Name -> fitted classifier.
    chains_ : tuple of FittedChain
        The hidden Markov model of each class.
    runs_ : list of Run
        Status, number of passes and trace of Baum-Welch for each class.
    start_ : ndarray of shape (n_classes, n_classes)
        Start probabilities pi^c; the first axis is the class.
    transitions_ : ndarray of shape (n_classes, n_classes, n_classes) or (n_classes, M - 1, n_classes, n_classes)
        Transition probabilities A^c, or A^(c,k) for each step; the first axis is the class.
    temperature_ : float
        Temperature T. 1 leaves P_c[O] unchanged; smaller values correct overconfidence.
    background_ : Background or None
        The training rows, at most 50, with which `explain` compares a row; None if only the classifiers could read the
        table.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    MaxEntStackingClassifier : Combines classifiers by maximum entropy; their labels need not be classes.
    AdaBoostM1Classifier : Boosting, whose stages can be combined.
    HMMClassifier : Classification of sequences by hidden Markov models.
    sklearn.ensemble.StackingClassifier : Stacking with any final classifier.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Section 3.3 (document 004).
    .. [2] Rabiner, L. and Juang, B. H. (1993). Fundamentals of Speech Recognition. Prentice Hall.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from mixent import AdaBoostM1Classifier, HMMStackingClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = HMMStackingClassifier(AdaBoostM1Classifier(GaussianNB(), 5), random_state=0).fit(X, y)
    >>> model.transitions_.shape
    (2, 2, 2)
    >>> model.score(X, y) > 0.94
    True
    """

    chains_: tuple[FittedChain, ...]
    temperature_: float

    def __init__(
        self,
        estimators: Any,
        *,
        transitions: str = "shared",
        start: str = "learned",
        transition_smoothing: float = 1.0,
        calibration: str | None = "temperature",
        decisions: str = "auto",
        inputs: dict | None = None,
        class_prior: Any = "empirical",
        cv: Any = FOLDS,
        tol: float = 1e-5,
        max_iter: int = 500,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimators = estimators
        self.transitions = transitions
        self.start = start
        self.transition_smoothing = transition_smoothing
        self.calibration = calibration
        self.decisions = decisions
        self.inputs = inputs
        self.class_prior = class_prior
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the classifiers, then a hidden Markov model for each class.

        Parameters
        ----------
        X : table of n rows
            It is passed to the classifiers unchanged.
        y : (n,) labels
            Unlabelled rows (None, NaN or "") are left out. With cv="prefit" also (n, C) label probabilities: a row
            counts for every class by its probability.
        sample_weight : (n,) array, optional
            A classifier that does not support weights is trained without them, with a warning.

        Returns
        -------
        self
        """
        fit = self._check()
        given = self._open(X, y, sample_weight, check_random_state(self.random_state))
        given_prior = read_class_prior(self.class_prior, given.labels.classes)
        with progress_bar(self.progress, "stacking") as show:
            outputs, folds, given = self._train(given, show)
            self.classes_ = given.labels.classes
            self._check_base_classes()
            log_emit = self._emissions(outputs)
            rows = TrainingRows(log_emit, class_mass(given), given)
            with choose_executor(self.n_jobs, log_emit.shape[0] * log_emit.shape[1], len(self.classes_)) as executor:
                self.chains_ = tuple(rows.chains(fit, np.flatnonzero(given.counted), executor, show))
                self.temperature_ = 1.0 if self.calibration is None else rows.temperature(fit, folds, executor, show)
        self.class_prior_ = rows.shares if given_prior is None else given_prior
        for chain, name in zip(self.chains_, self.classes_.tolist()):
            warn_unconverged(chain.run, f"{type(self).__name__} (class {name!r})")
        return self

    def _check(self) -> ChainFit:
        self._check_stacking()
        check_choice("transitions", self.transitions, TRANSITIONS)
        check_choice("start", self.start, STARTS)
        check_calibration(self.calibration, CALIBRATIONS)
        prior = check_positive("transition_smoothing", self.transition_smoothing, zero=True)
        stop = Stop(check_positive("tol", self.tol, zero=True), check_count("max_iter", self.max_iter))
        return ChainFit(self.transitions == "per_step", self.start == "learned", prior, stop)

    def _check_base_classes(self) -> None:
        classes = self.classes_.tolist()
        for name, labels in zip(self.base_names_, self.base_classes_):
            unknown = [label for label in labels.tolist() if label not in classes]
            if unknown:
                raise ValueError(
                    f"the labels of {name!r} must be among the classes {classes}; got {unknown[0]!r}; leave this "
                    "classifier out, or use MaxEntStackingClassifier, which combines any labels"
                )

    def _emissions(self, outputs: Outputs) -> Array:
        """(n, M, C) log-likelihoods of the decisions."""
        return log_emissions([aligned(v, c, self.classes_) for v, c in zip(outputs.values, self.base_classes_)])

    def _log_joint(self, X: Any) -> Array:
        log_emit = self._emissions(self._outputs(X))
        with choose_executor(self.n_jobs, log_emit.shape[0] * log_emit.shape[1], len(self.classes_)) as executor:
            log_lik = log_likelihoods(self.chains_, log_emit, executor)
        return np.log(self.class_prior_) + self.temperature_ * log_lik

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = floored(prior)

    @property
    def runs_(self) -> list[Run]:
        """Status, number of passes and trace of Baum-Welch for each class."""
        return [chain.run for chain in self.chains_]

    @property
    def converged_(self) -> bool:
        """Whether Baum-Welch converged for every class."""
        return all(chain.run.status is Status.CONVERGED for chain in self.chains_)

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows; the largest over the classes."""
        return max(1, *(chain.run.n_passes for chain in self.chains_))

    @property
    def start_(self) -> Array:
        """(C, C) probabilities of the first decision in each class."""
        return np.exp([chain.params.log_start for chain in self.chains_])

    @property
    def transitions_(self) -> Array:
        """(C, C, C), or (C, M - 1, C, C) if per step: transition probabilities in each class."""
        return np.exp([chain.params.log_trans for chain in self.chains_])
