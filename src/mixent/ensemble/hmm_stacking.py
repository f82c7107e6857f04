"""Classifiers combined by hidden Markov models of their sequence (document 004, section 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from mixent.base.convergence import warn_unconverged
from mixent.base.delegation import aligned
from mixent.base.executors import choose_executor
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_calibration, check_choice, check_count, check_positive
from mixent.base.priors import floored, read_class_prior
from mixent.base.progress import progress_bar
from mixent.base.temperature import fit_temperature
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
FLOOR = 1e-6  # least probability of a decision: a classifier that is certain and wrong makes no row impossible


@dataclass(frozen=True)
class UniformStart(ChainProblem):
    """Baum-Welch in which every first state stays as likely as at the start."""

    def update(self, params: ChainParams, total: ChainStats, step: float = 1.0) -> ChainParams:
        """Transitions alone; the lower bound is a sum of a part for the start and a part for them."""
        return replace(super().update(params, total, step), log_start=params.log_start)


@dataclass(frozen=True)
class ChainFit:
    """How a chain is fitted to the rows of a class."""

    per_step: bool
    learned: bool  # the start
    prior: float
    stop: Stop

    def first(self, n_stages: int, n_states: int) -> ChainParams:
        """All paths equally probable. Emissions differ from state to state, so Baum-Welch moves on from here."""
        even = np.full((n_states, n_states), -np.log(n_states))
        trans = np.tile(even, (n_stages - 1, 1, 1)) if self.per_step else even
        return ChainParams(even[0].copy(), trans, None)

    def problem(self) -> ChainProblem:
        """What is maximized."""
        return ChainProblem(None, self.prior if self.learned else 0.0, self.prior)

    def __call__(self, log_emit: Array, weight: Array, executor: Executor, show: Any = None) -> FittedChain:
        """Baum-Welch on rows (n, M, C) of log-likelihoods, a row being a sequence of M steps."""
        problem, (_, n_stages, n_states) = self.problem(), log_emit.shape
        found = run(
            problem if self.learned else UniformStart(None, 0.0, self.prior),
            blocks_of(problem, n_states, as_sequences(log_emit), weight),
            self.first(n_stages, n_states),
            stop=self.stop,
            executor=executor,
            observers=[] if show is None else [ShowProgress(show, self.stop.max_passes)],
            propose=Squarem(),
        )
        return FittedChain(problem, found.params, replace(found, last=None))


def as_sequences(log_emit: Array) -> Sequences:
    """Rows (n, M, C) as sequences of M steps."""
    n, n_stages, n_states = log_emit.shape
    return Sequences(Block(log_emit.reshape(n * n_stages, n_states)), np.full(n, n_stages))


def log_emissions(values: Sequence[Array]) -> Array:
    """(n, M, C) log P[C_k = i | row], floored; 0 where a classifier abstains."""
    said = np.stack(values, axis=1)
    return np.where(np.isnan(said), 0.0, np.log(np.maximum(said, FLOOR)))


def log_likelihoods(chains: Sequence[FittedChain], log_emit: Array, executor: Executor) -> Array:
    """log P_c[O] of every row under the chain of every class, (n, classes)."""
    sequences, n_states = as_sequences(log_emit), log_emit.shape[2]
    source = blocks_of(chains[0].problem, n_states, sequences, None)
    return np.stack([of_sequences(chain.problem, chain.params, source, executor) for chain in chains], axis=1)


@dataclass(frozen=True)
class TrainingRows:
    """The outputs of the classifiers for the training rows, and the classes of these."""

    log_emit: Array  # (n, M, C)
    mass: Array  # (n, C) weight of the row in each class; 0 throughout if it does not count
    given: FitInput

    @property
    def shares(self) -> Array:
        """(C,) of the classes in the training weight."""
        total = self.mass.sum(axis=0)
        return total / total.sum()

    def chains(self, fit: ChainFit, rows: np.ndarray, executor: Executor, show: Any = None) -> list[FittedChain]:
        """The chain of every class, from these rows."""
        found = []
        for mass in self.mass.T:
            mine = rows[mass[rows] > 0]
            mine = mine if len(mine) else rows[:1]  # of weight 0: a class without rows keeps its start
            found.append(fit(self.log_emit[mine], mass[mine], executor, show))
        return found

    def temperature(self, fit: ChainFit, folds: list[Fold], executor: Executor, show: Any = None) -> float:
        """T of least log-loss on rows that the chains have not seen."""
        given = self.given
        if not folds:
            folds = label_folds(given.codes, given.counted, given.seed, FOLDS)
            folds = [(train[given.counted[train]], held) for train, held in folds]
        if not folds:  # no class has two rows
            return 1.0
        parts = [log_likelihoods(self.chains(fit, t, executor, show), self.log_emit[h], executor) for t, h in folds]
        held = np.concatenate([h for _, h in folds])
        weight = self.mass[held].sum(axis=1)
        target = self.mass[held] / weight[:, None]
        return fit_temperature(np.concatenate(parts), np.log(self.shares), target, weight)[0]


def class_mass(given: FitInput) -> Array:
    """(n, C) weight of each row in each class: all of it in its own, or shares where y holds probabilities."""
    likelihood = given.labels.likelihood
    mass = likelihood / likelihood.sum(axis=1, keepdims=True)
    mass[~given.counted] = 0.0
    return mass if given.weight is None else mass * given.weight[:, None]


class HMMStackingClassifier(BaseStacking):
    """Classifiers combined by a hidden Markov model per class of the sequence of their decisions.

    The M classifiers, such as the stages of a boosting, are the steps of a sequence, and the C decisions its states:
    q_k is what classifier k decides, and P[C_k = i | row], its output, is the likelihood of q_k = i. The row is

        P_c[O] = sum_q pi^c(q_1) P[C_1 = q_1 | row] prod_k A^(c,k)(q_k, q_k+1) P[C_k+1 = q_k+1 | row]

    in class c, and P[c | row] ~ P[c] P_c[O]^T. Maximizes, for every class c,

        sum_t w_t log P_c[O_t] + log prior(pi^c, A^c)

    over the rows of the class by Baum-Welch, (3.6) to (3.10) in the log domain; each update maximizes a lower bound
    that touches it, so this value never falls. All paths are alike at the start, and nothing is drawn at random.

    Unlike a vote, the chain knows that stages repeat one another; yet what it knows goes one step back, and over many
    stages P_c[O] grows much too sure. The temperature T, one number, makes up for that on average.

    As the document has it: transitions="per_step", start="uniform", transition_smoothing=0, calibration=None,
    cv="train", and equal `class_prior`.

    Parameters
    ----------
    estimators : list, or an ensemble
        Classifiers in the order of the sequence, or one ensemble whose stages they are, see
        `MaxEntStackingClassifier`. Their labels must be the classes.
    transitions : "shared" or "per_step"
        One matrix A^c for all steps, or A^(c,k) for each, as in the document: (M - 1) C (C - 1) numbers in each class,
        for which there are seldom rows enough.
    start : "learned" or "uniform"
        pi^c, or 1 / C as the document prints it, which ignores how the first decision depends on the class.
    transition_smoothing : float
        Pseudo-rows of the start, and of each row of a transition matrix, spread evenly over the decisions. 0 is
        maximum likelihood, as in the document.
    calibration : "temperature" or None
        "temperature": T <= 1 of least log-loss on rows held out, chains fitted to the others in each fold of `cv` (of 5
        with cv="train", where outputs on unseen rows are not known, and with "prefit").
        None: T = 1, as in the document.
    decisions : "auto", "soft" or "hard"
        Outputs of the classifiers: probabilities where they have them, always, or never (the label alone). A
        probability below 1e-6 counts as 1e-6: a classifier that is certain and wrong makes no row impossible. One that
        abstains is skipped, and the chain goes on through it.
    inputs : dict or None
        Name -> list of columns: what a classifier sees of the table. The others see all columns.
    class_prior : "empirical" or (C,) array
        Class priors: shares of the training rows, or these values.
    cv : int, splitter, list of (train, test), "train" or "prefit"
        Where the outputs to learn from come from: out of fold; "train": from the rows the classifiers were trained on,
        as in the document (classifiers that overfit get too much weight); "prefit": the classifiers are fitted, none is
        trained.
    tol : float
        Stop when a pass gains less than this per row and classifier, in nats.
    max_iter : int
        Most passes over the rows.
    random_state : int, RandomState or None
        For folds, and for classifiers without a seed of their own.
    n_jobs : int or None
        None trains the classifiers one fold after another; a number, so many folds at once. Threads of Baum-Welch too.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    base_names_, alphabets_
        Names of the classifiers (or stages), and the labels each of them gives.
    base_errors_ : (M,) array
        Share of the training rows each had wrong: out of fold, unless `cv` is "train" or "prefit".
    fitted_ : list of classifiers, or an ensemble
        Trained on all rows.
    chains_ : tuple of FittedChain
        One for each class.
    runs_ : list of Run
        How Baum-Welch went, for each class.
    start_, transitions_
        pi^c, (C, C), and A^c, (C, C, C), or (C, M - 1, C, C) if per step; the first axis is the class.
    temperature_ : float
        T. 1 is P_c[O] as it is; the smaller, the more it was over-confident.

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
        """Train the classifiers, then a chain for each class.

        Parameters
        ----------
        X : table of n rows
            The classifiers get it as it is.
        y : (n,) labels
            Rows without a label (None, NaN or "") are left out. With cv="prefit" also (n, C) label probabilities: a
            row counts for every class by its share.
        sample_weight : (n,) array, optional
            Counts. A classifier that takes none is trained without, with a warning.

        Returns
        -------
        self
        """
        fit = self._check()
        given = self._open(X, y, sample_weight, check_random_state(self.random_state))
        held_prior = read_class_prior(self.class_prior, len(given.labels.classes))
        with progress_bar(self.progress, "stacking") as show:
            found, folds, given = self._train(given, show)
            self.classes_ = given.labels.classes
            self._check_alphabets()
            log_emit = self._emissions(found)
            rows = TrainingRows(log_emit, class_mass(given), given)
            with choose_executor(self.n_jobs, log_emit.shape[0] * log_emit.shape[1], len(self.classes_)) as executor:
                self.chains_ = tuple(rows.chains(fit, np.flatnonzero(given.counted), executor, show))
                self.temperature_ = 1.0 if self.calibration is None else rows.temperature(fit, folds, executor, show)
        self.class_prior_ = rows.shares if held_prior is None else held_prior
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

    def _check_alphabets(self) -> None:
        classes = self.classes_.tolist()
        for name, alphabet in zip(self.base_names_, self.alphabets_):
            strange = [label for label in alphabet.tolist() if label not in classes]
            if strange:
                raise ValueError(
                    f"the labels of {name!r} must be among the classes {classes}, which are the states of the chains; "
                    f"it has {strange[0]!r}: leave it out, or take MaxEntStackingClassifier, which combines any labels"
                )

    def _emissions(self, found: Outputs) -> Array:
        """(n, M, C) over the classes."""
        return log_emissions([aligned(v, a, self.classes_) for v, a in zip(found.values, self.alphabets_)])

    def _log_joint(self, X: Any) -> Array:
        log_emit = self._emissions(self._outputs(X))
        with choose_executor(self.n_jobs, log_emit.shape[0] * log_emit.shape[1], len(self.classes_)) as executor:
            log_lik = log_likelihoods(self.chains_, log_emit, executor)
        return np.log(self.class_prior_) + self.temperature_ * log_lik

    def _set_class_prior(self, prior: Array) -> None:
        self.class_prior_ = floored(prior)

    @property
    def runs_(self) -> list[Run]:
        """How Baum-Welch went, for each class."""
        return [chain.run for chain in self.chains_]

    @property
    def converged_(self) -> bool:
        """Did every search reach its tolerance?"""
        return all(chain.run.status is Status.CONVERGED for chain in self.chains_)

    @property
    def n_iter_(self) -> int:
        """Passes over the rows; of the class that took most."""
        return max(chain.run.n_passes for chain in self.chains_)

    @property
    def start_(self) -> Array:
        """(C, C) probabilities of the first decision, in each class."""
        return np.exp([chain.params.log_start for chain in self.chains_])

    @property
    def transitions_(self) -> Array:
        """(C, C, C), or (C, M - 1, C, C) if per step: what follows each decision, in each class."""
        return np.exp([chain.params.log_trans for chain in self.chains_])
