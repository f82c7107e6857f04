"""From a mixture fitted by likelihood to one trained for its posterior.

The conditional likelihood has its supremum at infinity on separable rows, so training is held to the likelihood
solution it starts from by pseudo-rows that look as that solution does ("I-smoothing"): the objective pays
rows x KL(component there || component here) for leaving it. Training may also stop early, when held-out rows gain
nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mixent.core.arrays import Array
from mixent.core.blocks import ArrayBlocks
from mixent.core.driver import Event, Halt, Observer, Run, Status, Stop, run
from mixent.core.observers import Progress, ShowProgress
from mixent.core.proposals import Squarem
from mixent.families.product import Components
from mixent.mixtures.discriminative import ConditionalLikelihood, Criterion, DiscriminativeProblem, SmoothedError
from mixent.mixtures.fit_plan import Candidate, Job
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.options import Conditional, Likelihood, MinimumError
from mixent.mixtures.problem import MixtureParams, MixtureProblem

SHORT = 20  # passes before the best of several starts goes on
PATIENCE = 10  # passes without gain on the held-out rows
LENT = 0.01  # of its weight a class lends to the components of others, where they were learned apart


@dataclass(frozen=True)
class Plan:
    """What is to be trained for, and how: read once from the estimator's options."""

    criterion: Criterion
    anchor_rows: float | None  # None: see `default_anchor`
    solver: str
    validation: float | None

    @property
    def prior_share(self) -> float:
        """How much of the likelihood, and with it of its prior, is in the objective."""
        return 1.0 - self.criterion.blend if isinstance(self.criterion, ConditionalLikelihood) else 0.0


def read_plan(training: Likelihood | Conditional | MinimumError) -> Plan | None:
    """The options of an estimator, checked; None for plain likelihood."""
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
    return Plan(criterion, anchor, training.solver, validation)


@dataclass(frozen=True)
class Begun:
    """A likelihood solution and the problem anchored at it."""

    problem: DiscriminativeProblem
    plain: MixtureProblem  # what predicts afterwards: neither anchor nor criterion
    params: MixtureParams

    def merit(self, objective: float) -> float:
        """The objective with the parts of prior and anchor counted from zero at the start: comparable among starts."""
        return objective - self.problem.log_prior(self.params)


Starts = Callable[[Job], Sequence[Fitted]]  # likelihood solutions of a job


def train(job: Job, starts: Starts, training: Plan, show: Progress | None = None) -> Fitted:
    """Train from each likelihood solution for a while, then on from the best.

    With `validation`, part of the labelled rows is held out first, to learn after how many passes they gain nothing
    more; the training proper then takes all rows and as many passes.
    """
    passes = job.est.max_iter
    if training.validation is not None:
        passes = _passes_until_best(job, starts, training)
    observers: list[Observer] = [] if show is None else [ShowProgress(show, passes)]
    found, part = starts(job), _counted(job, training)
    begun = _best_start(part, found, training, passes)
    done = _solve(part, begun, training, passes, observers)
    if training.validation is not None and done.status is Status.MAX_PASSES and passes < job.est.max_iter:
        enough = f"held-out rows gained nothing more after {passes} passes"
        if passes == 1:
            enough = "held-out rows gained nothing from training; this is where it started"
        done = replace(done, status=Status.STOPPED, message=enough)
    return Fitted(begun.plain, done.params, replace(done, last=None))


def _counted(job: Job, training: Plan) -> Job:
    """The rows that count: without a share of the likelihood, those with a label."""
    if training.prior_share > 0 or (job.codes >= 0).all():
        return job
    return job.take(np.flatnonzero(job.codes >= 0))


def _best_start(job: Job, starts: Sequence[Fitted], training: Plan, passes: int) -> Begun:
    begun = [Begun(anchored(job, start, training), start.problem, start.params) for start in starts]
    if len(begun) == 1:
        return begun[0]
    short = [_solve(job, b, training, min(SHORT, passes)) for b in begun]
    merits = [b.merit(r.objective) for b, r in zip(begun, short)]
    return begun[int(np.argmax(np.where(np.isfinite(merits), merits, -np.inf)))]


def _solve(job: Job, begun: Begun, training: Plan, passes: int, observers: Sequence[Observer] = ()) -> Run:
    problem, start = begun.problem, begun.params
    n_components = start.n_components
    source, stop = job.source(problem.family, n_components), Stop(job.est.tol, passes)
    with job.executor(n_components) as executor:
        if training.solver == "lbfgs":
            from mixent.core.lbfgs import run_lbfgs  # imports scipy.optimize
            from mixent.mixtures.chart import MixtureChart

            chart = MixtureChart(problem, start)
            return run_lbfgs(problem, source, chart, start, stop=stop, executor=executor, observers=observers)
        propose = Squarem() if job.est.accelerate else None
        return run(problem, source, start, stop=stop, executor=executor, observers=observers, propose=propose)


def _passes_until_best(job: Job, starts: Starts, training: Plan) -> int:
    """Passes after which rows held out score best."""
    assert training.validation is not None
    held = _held_out(job, training.validation)
    part, rest = job.take(np.flatnonzero(~held)), job.take(np.flatnonzero(held))
    if (part.class_rows() == 0).any():
        raise ValueError("validation leaves a class without rows to train on; hold out a smaller share")
    found, part = starts(part), _counted(part, training)
    begun = _best_start(part, found, training, job.est.max_iter)
    watch = _Watch(begun.problem, rest.source(begun.problem.family, begun.params.n_components), part)
    _solve(part, begun, training, job.est.max_iter, [watch])
    return watch.best_pass


def _held_out(job: Job, share: float) -> np.ndarray:
    """(n,) which rows to hold out: the share of each class's labelled rows that count, at least one row in all."""
    rng = np.random.default_rng((job.seed, 17))
    held = np.zeros(job.table.n_rows, dtype=bool)
    for c in range(job.n_classes):
        rows = rng.permutation(np.flatnonzero(job.counted & (job.codes == c)))
        held[rows[: round(share * len(rows))]] = True
    if not held.any():
        raise ValueError("validation holds out no row; hold out a larger share, or give more labelled rows")
    return held


def anchored(job: Job, start: Fitted, training: Plan) -> DiscriminativeProblem:
    """The problem of training from a likelihood solution, held to it by pseudo-rows."""
    rows = default_anchor(start) if training.anchor_rows is None else training.anchor_rows
    K = start.params.n_components
    family = start.problem.family.anchored(start.params.components, np.full(K, rows), training.prior_share)
    return DiscriminativeProblem(family, job.class_prior, rows * K * start.params.weights, training.criterion)


def default_anchor(start: Fitted) -> float:
    """Pseudo-rows per component: the geometric mean of columns + 2 and of its free parameters.

    Enough to hold rich covariances of few rows, not so much that nothing moves.
    """
    family, K = start.problem.family, start.params.n_components
    columns = 0 if family.gaussian is None else family.gaussian.n_columns
    return float(np.sqrt((columns + 2.0) * max(family.n_free(K) / K, 1.0)))


class _Watch:
    """Scores held-out rows after every pass, and stops when they gain nothing more."""

    def __init__(self, problem: DiscriminativeProblem, held: ArrayBlocks, job: Job) -> None:
        self.problem, self.held, self.job = problem, held, job
        self.best, self.best_pass = -np.inf, 1

    def __call__(self, event: Event) -> Halt | None:
        ready = self.problem.prepare(event.params)
        with self.job.executor(1) as executor:
            score = executor.total(lambda block: self.problem.stats(ready, block), self.held).log_lik
        if score > self.best:
            self.best, self.best_pass = score, event.n_pass
        return Halt("held-out rows gain nothing more") if event.n_pass - self.best_pass >= PATIENCE else None


# --- where training starts -------------------------------------------------------------------------------------------


def shared_starts(job: Job, candidate: Candidate, found: Fitted) -> Starts:
    """The likelihood solution of shared components, and that with the components divided among the classes.

    `found` is the former for `job` itself. Densities need not know of classes; where they do not, training starts
    better from components that do.
    """

    def starts(part: Job) -> list[Fitted]:
        n_init = job.est.n_init
        shared = found if part is job else part.fit(candidate, starts=part.parts(candidate, n_init))[0]
        return [shared] if candidate.n_components < part.n_classes else [shared, learned_apart(part, candidate)]

    return starts


def learned_apart(job: Job, candidate: Candidate) -> Fitted:
    """The likelihood solution with the components divided among the classes, as a point of the shared model."""
    counts, structures = job.divided(candidate.n_components), candidate.structures * job.n_classes
    own = replace(candidate, counts=counts, structures=structures, shared=False, across=True, local=False)
    found, _ = job.fit(own)
    return replace(found, params=replace(found.params, weights=lent(found.params.weights)))


def lent(weights: Array) -> Array:
    """Each class lends a little of its weight to all components: a weight of zero would stay so."""
    classes, components = weights.sum(axis=1, keepdims=True), weights.sum(axis=0)
    return (1 - LENT) * weights + LENT * classes * components / np.sum(components)


def softened(found: Fitted, temperature: float) -> Fitted:
    """The mixture whose classes have densities proportional to p(x | class)^T: exactly so for one component each.

    N(m, C)^T is N(m, C / T) times |C|^((1 - T) / 2) and a constant; p^T of a table is a table times its sum. The
    weights take up these factors, unless class priors are held.
    """
    if temperature == 1.0:
        return found
    components, log_factor = found.params.components, np.zeros(found.params.n_components)
    gaussian, tables, family = components.gaussian, components.categorical, found.problem.family.categorical
    if gaussian is not None:
        covs = gaussian.covs
        log_det = np.log(covs).sum(axis=1) if covs.ndim == 2 else np.linalg.slogdet(covs)[1]
        log_factor += 0.5 * (1 - temperature) * log_det
        gaussian = replace(gaussian, covs=covs / temperature)
    if tables is not None and family is not None:
        tables, log_sums = family.tempered(tables, temperature)
        log_factor += log_sums
    weights = found.params.weights * np.exp(log_factor - log_factor.max())
    held = found.problem.class_prior
    weights = weights / weights.sum() if held is None else held[:, None] * weights / weights.sum(1, keepdims=True)
    params = replace(found.params, weights=weights, components=Components(gaussian, tables))
    return replace(found, params=params)
