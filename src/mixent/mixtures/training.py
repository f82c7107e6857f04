"""Discriminative training of a mixture, starting from its maximum likelihood solution.

For separable rows the conditional likelihood has its supremum at infinity. Training is therefore regularized towards
the initial solution by pseudo-rows of its components ("I-smoothing"): the objective has the penalty
rows x KL(initial component || component). Training may also stop early, when the score of held-out rows no longer
improves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks
from mixent.core.driver import Event, Halt, Observer, Run, Status, Stop, run
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Squarem
from mixent.core.starts import Runner
from mixent.families.product import Components
from mixent.mixtures.discriminative import ConditionalLikelihood, Criterion, DiscriminativeProblem, SmoothedError
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.options import Conditional, Likelihood, MinimumError
from mixent.mixtures.problem import MixtureParams, MixtureProblem

SHORT = 20  # passes of the short runs from several starts
PATIENCE = 10  # passes without improvement on the held-out rows
SMOOTHING = 0.01  # share of the weight of a class that is spread over all components


@dataclass(frozen=True)
class TrainingPlan:
    """Objective and algorithm of discriminative training, from the options of the estimator."""

    criterion: Criterion
    anchor_rows: float | None  # None: `default_anchor`
    solver: str
    validation: float | None

    @property
    def prior_share(self) -> float:
        """Share of the joint likelihood, and of its prior, in the objective."""
        return 1.0 - self.criterion.blend if isinstance(self.criterion, ConditionalLikelihood) else 0.0


def training_plan(training: Likelihood | Conditional | MinimumError) -> TrainingPlan | None:
    """Check the options of an estimator and return the plan; None for maximum likelihood."""
    if isinstance(training, Likelihood):
        return None
    training.check()
    criterion: Criterion
    if isinstance(training, Conditional):
        criterion = ConditionalLikelihood(float(training.blend))
    else:
        criterion = SmoothedError(float(training.sharpness))
    anchor = None if isinstance(training.anchor, str) else float(training.anchor)
    validation = None if training.validation is None else float(training.validation)
    return TrainingPlan(criterion, anchor, training.solver, validation)


@dataclass(frozen=True)
class TrainingStart:
    """A maximum likelihood solution and the problem of training from it."""

    problem: DiscriminativeProblem
    plain: MixtureProblem  # for predictions: without anchor and criterion
    params: MixtureParams

    def relative(self, objective: float) -> float:
        """Return the objective minus the log prior at the start, which is comparable between starts."""
        return objective - self.problem.log_prior(self.params)


Starts = Callable[[FitPlan], Sequence[Fitted]]  # maximum likelihood solutions of a plan


def train(plan: FitPlan, starts: Starts, training: TrainingPlan, show: Progress | None = None) -> Fitted:
    """Train from each maximum likelihood solution for a few passes, then continue from the best.

    With `validation`, some labelled rows are held out first to determine the number of passes after which their score
    is best; then all rows are used for training with this number of passes.
    """
    passes = plan.est.max_iter
    if training.validation is not None:
        passes = _passes_until_best(plan, starts, training)
    observers: list[Observer] = [] if show is None else [ShowProgress(show, passes)]
    solutions, part = starts(plan), _training_rows(plan, training)
    start = _best_start(part, solutions, training, passes)
    result = _solve(part, start, training, passes, observers)
    if training.validation is not None and result.status is Status.MAX_PASSES and passes < plan.est.max_iter:
        message = f"the score of held-out rows did not improve after {passes} passes"
        if passes == 0:
            message = "training did not improve the score of held-out rows; the initial parameters are returned"
        result = replace(result, status=Status.STOPPED, message=message)
    return Fitted(start.plain, result.params, replace(result, last=None))


def _training_rows(plan: FitPlan, training: TrainingPlan) -> FitPlan:
    """Return the plan of the rows in the objective: without a share of the joint likelihood, the labelled rows."""
    if training.prior_share > 0 or (plan.codes >= 0).all():
        return plan
    return plan.take(np.flatnonzero(plan.codes >= 0))


def _best_start(plan: FitPlan, starts: Sequence[Fitted], training: TrainingPlan, passes: int) -> TrainingStart:
    candidates = [TrainingStart(anchored(plan, start, training), start.problem, start.params) for start in starts]
    if len(candidates) == 1:
        return candidates[0]
    short = [_solve(plan, candidate, training, min(SHORT, passes)) for candidate in candidates]
    values = [candidate.relative(result.objective) for candidate, result in zip(candidates, short)]
    return candidates[int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))]


def _solve(
    plan: FitPlan, start: TrainingStart, training: TrainingPlan, passes: int, observers: Sequence[Observer] = ()
) -> Run:
    return plan.task(("train", start, training, passes), partial(_optimize, plan, start, training, passes, observers))


def _optimize(
    plan: FitPlan,
    start: TrainingStart,
    training: TrainingPlan,
    passes: int,
    observers: Sequence[Observer],
    runner: Runner,
) -> Run:
    problem, params = start.problem, start.params
    n_components = params.n_components
    source, stop = plan.source(problem.family, n_components), Stop(plan.est.tol, passes)
    with plan.executor(n_components) as executor:
        if training.solver == "lbfgs":
            from mixent.core.lbfgs import run_lbfgs  # imports scipy.optimize
            from mixent.mixtures.chart import MixtureChart

            chart = MixtureChart(problem, params)
            return run_lbfgs(problem, source, chart, params, stop=stop, executor=executor, observers=observers)
        options = {"stop": stop, "executor": executor, "observers": observers, "propose": Squarem()}
        return runner(problem, source, params, **options)


def _passes_until_best(plan: FitPlan, starts: Starts, training: TrainingPlan) -> int:
    """Return the number of passes after which held-out rows have the best score."""
    assert training.validation is not None
    held = _held_out(plan, training.validation)
    part, rest = plan.take(np.flatnonzero(~held)), plan.take(np.flatnonzero(held))
    if (part.class_rows() == 0).any():
        raise ValueError("validation leaves a class without training rows; hold out a smaller share")
    solutions, part = starts(part), _training_rows(part, training)
    start = _best_start(part, solutions, training, plan.est.max_iter)

    def passes(_: Runner) -> int:  # of `run` itself: the state of the observer is not recorded
        observer = _EarlyStop(start.problem, rest.source(start.problem.family, start.params.n_components), part)
        _optimize(part, start, training, plan.est.max_iter, [observer], run)
        return observer.best_pass

    return part.task(("passes", start, training, rest.content), passes)


def _held_out(plan: FitPlan, share: float) -> np.ndarray:
    """Return which rows to hold out, (n,): this share of the labelled rows of each class with positive weight."""
    rng = np.random.default_rng((plan.seed, 17))
    held = np.zeros(plan.table.n_rows, dtype=bool)
    for c in range(plan.n_classes):
        rows = rng.permutation(np.flatnonzero(plan.positive & (plan.codes == c)))
        held[rows[: round(share * len(rows))]] = True
    if not held.any():
        raise ValueError("validation holds out no row; hold out a larger share, or use more labelled rows")
    return held


def anchored(plan: FitPlan, start: Fitted, training: TrainingPlan) -> DiscriminativeProblem:
    """Return the problem of training from a maximum likelihood solution, with its pseudo-rows as an anchor."""
    rows = default_anchor(start) if training.anchor_rows is None else training.anchor_rows
    K = start.params.n_components
    family = start.problem.family.anchored(start.params.components, np.full(K, rows), training.prior_share)
    return DiscriminativeProblem(family, plan.class_prior, rows * K * start.params.weights, training.criterion)


def default_anchor(start: Fitted) -> float:
    """Return pseudo-rows per component: the geometric mean of columns + 2 and the free parameters of a component.

    This regularizes full covariances of few rows without preventing training.
    """
    family, K = start.problem.family, start.params.n_components
    columns = 0 if family.gaussian is None else family.gaussian.n_columns
    return float(np.sqrt((columns + 2.0) * max(family.n_free(K) / K, 1.0)))


class _EarlyStop:
    """Scores held-out rows after every pass, and stops when their score no longer improves."""

    def __init__(self, problem: DiscriminativeProblem, held: ArrayBlocks, plan: FitPlan) -> None:
        self.problem, self.held, self.plan = problem, held, plan
        self.best, self.best_pass = -np.inf, 0

    def __call__(self, event: Event) -> Halt | None:
        ready = self.problem.prepare(event.params)
        with self.plan.executor(1) as executor:
            score = executor.total(lambda block: self.problem.stats(ready, block), self.held).log_lik
        if score > self.best:
            self.best, self.best_pass = score, event.n_pass
        if event.n_pass - self.best_pass >= PATIENCE:
            return Halt("the score of held-out rows no longer improves")
        return None


# --- initial solutions -----------------------------------------------------------------------------------------------


def shared_starts(plan: FitPlan, candidate: Candidate, fitted: Fitted) -> Starts:
    """Return the maximum likelihood solutions with shared components, and with components divided among the classes.

    `fitted` is the former for `plan`. Shared components may not separate the classes; training is then better started
    from components that do.
    """

    def starts(part: FitPlan) -> list[Fitted]:
        n_init = plan.est.n_init
        shared = fitted if part is plan else part.fit(candidate, starts=part.parts(candidate, n_init))[0]
        alone = candidate.n_components < part.n_classes or part.start is not None
        return [shared] if alone else [shared, fit_separately(part, candidate)]

    return starts


def fit_separately(plan: FitPlan, candidate: Candidate) -> Fitted:
    """Return the solution with components divided among the classes, as parameters of the shared model."""
    counts, structures = plan.divided(candidate.n_components), candidate.structures * plan.n_classes
    divided = replace(candidate, counts=counts, structures=structures, shared=False, across=True)
    fitted, _ = plan.fit(divided)
    return replace(fitted, params=replace(fitted.params, weights=smoothed_weights(fitted.params.weights)))


def smoothed_weights(weights: Array) -> Array:
    """Spread a small share of the weight of each class over all components, since weights of zero remain zero."""
    classes, components = weights.sum(axis=1, keepdims=True), weights.sum(axis=0)
    return (1 - SMOOTHING) * weights + SMOOTHING * classes * components / np.sum(components)


def tempered(fitted: Fitted, temperature: float) -> Fitted:
    """Return a mixture with class densities proportional to p(x | class)^T, exactly for one component per class.

    N(m, C)^T is N(m, C / T) times |C|^((1 - T) / 2) and a constant; p^T of a table is a table times its sum. These
    factors are included in the weights, unless class priors are fixed.
    """
    if temperature == 1.0:
        return fitted
    components, log_factor = fitted.params.components, np.zeros(fitted.params.n_components)
    gaussian, tables, family = components.gaussian, components.categorical, fitted.problem.family.categorical
    if gaussian is not None:
        covs = gaussian.covs
        log_det = np.log(covs).sum(axis=1) if covs.ndim == 2 else np.linalg.slogdet(covs)[1]
        log_factor += 0.5 * (1 - temperature) * log_det
        gaussian = replace(gaussian, covs=covs / temperature)
    if tables is not None and family is not None:
        tables, log_sums = family.tempered(tables, temperature)
        log_factor += log_sums
    weights = fitted.params.weights * np.exp(log_factor - log_factor.max())
    prior = fitted.problem.class_prior
    weights = weights / weights.sum() if prior is None else prior[:, None] * weights / weights.sum(1, keepdims=True)
    params = replace(fitted.params, weights=weights, components=Components(gaussian, tables))
    return replace(fitted, params=params)
