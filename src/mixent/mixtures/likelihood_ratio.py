"""Tests of the number of components by the bootstrapped likelihood ratio (McLachlan 1987)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from mixent.base.document import Content, Number, Paragraph, Table
from mixent.base.params import check_count, check_number
from mixent.base.progress import progress_bar
from mixent.base.result import Records, Result
from mixent.base.text import count, percent, readable
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.data import Schema, check_spread, read_features, read_weights
from mixent.mixtures.candidates import map_tasks
from mixent.mixtures.clustering import GaussianMixture, plain_candidate
from mixent.mixtures.clustering_search import growth_rule
from mixent.mixtures.fit_plan import FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import grow
from mixent.mixtures.model import select_columns, varying_columns
from mixent.mixtures.outliers import check_gaussian
from mixent.mixtures.predict import log_density

if TYPE_CHECKING:
    from mixent.mixtures.clustering import GaussianMixture

N_INIT = 5  # least number of initializations: a local maximum of the fit with k components would be rejected


@dataclass(frozen=True, repr=False)
class LikelihoodRatioTests(Result):
    """Tests of k against k + 1 components, for k = 1, 2, ... until one does not reject."""

    _title = "Bootstrap likelihood ratio tests of the number of components"
    _shown = ("n_components", "covariance", "level", "n_resamples")

    n_components: int  # selected: the first number that is not rejected, or `max_components`
    tests: Records  # n_components, log_likelihood, statistic, p_value of each test, and n_failed
    samples: list[Array] = field(repr=False)  # statistics under the null hypothesis of each test
    covariance: str | None
    level: float
    n_resamples: int

    @property
    def rejected_all(self) -> bool:
        """Whether every test rejected, so that there may be more components than were tried."""
        return bool(self.tests) and self.tests[-1]["p_value"] <= self.level

    def frame(self) -> Any:
        """The tests as a pandas DataFrame."""
        return self.tests.frame()

    def _content(self) -> Sequence[Content]:
        structure = f", covariance structure {self.covariance}" if self.covariance else ""
        lead = f"Selected: {count(self.n_components, 'component')}{structure}, at the {percent(self.level)} level."
        if self.rejected_all:
            lead += " Every test rejects; raise max_components."
        rows: list[list[Any]] = [
            [
                f"{t['n_components']} against {t['n_components'] + 1}",
                Number(readable(t["statistic"])),
                Number(readable(t["p_value"], 3)),
            ]
            for t in self.tests
        ]
        caption = f"Statistic: 2 x difference of the log-likelihoods; p-values from {self.n_resamples} samples each"
        return [Paragraph(lead), Table(caption, ["components", "statistic", "p-value"], rows)]


def bootstrap_lrt(
    estimator: GaussianMixture,
    X: Any,
    sample_weight: Any = None,
    *,
    max_components: int = 9,
    n_resamples: int = 99,
    level: float = 0.05,
    random_state: Any = None,
) -> LikelihoodRatioTests:
    """Test k against k + 1 components for k = 1, 2, ..., and select the first k that is not rejected.

    The statistic is 2 (L_{k+1} - L_k), where L_k is the log-likelihood of the fit with k components. Its distribution
    under the null hypothesis is not chi-squared, because the parameters of a superfluous component are not identified;
    it is simulated [1]_. Each of `n_resamples` tables is drawn from the fit with k components and fitted with k and
    k + 1 components in the same way as X, and

        p = (1 + number of tables with a statistic at least as large) / (n_resamples + 1).

    The fits are those of `estimator`. With its default prior they maximize the posterior density: L is then the
    log-likelihood, without the log prior, at these estimates, so the statistic is not the maximum of the likelihood
    ratio, and can be negative. The test is approximately valid nevertheless, since the tables are fitted in the same
    way; with `prior=None` it is the usual likelihood ratio, which can have spurious maxima with few rows. Each fit
    has at least 5 initializations (more with `n_init`), since a local maximum of the fit with k components can be
    rejected although k components are enough.

    Parameters
    ----------
    estimator : GaussianMixture
        Its parameters are used for all fits, with one covariance structure; `n_components` is not used.
    X : table of n rows
        The missing values of X are also missing in the tables that are drawn: values must be missing completely at
        random.
    sample_weight : (n,) array of whole numbers, optional
        How often each row is repeated.
    max_components : int
        Largest number of components.
    n_resamples : int
        Number of tables drawn for each test.
    level : float
        Significance level of each test.
    random_state : int, RandomState or None
        None uses the `random_state` of the estimator.

    Returns
    -------
    LikelihoodRatioTests
        `n_components`, the selected number, and `tests`, with the statistic and the p-value of each test.

    References
    ----------
    .. [1] McLachlan, G. J. (1987). On bootstrapping the likelihood ratio test statistic for the number of components
       in a normal mixture. Journal of the Royal Statistical Society, Series C, 36(3), 318-324.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import GaussianMixture
    >>> from mixent.mixtures import bootstrap_lrt
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (40, 2)), rng.normal(5, 1, (40, 2))])
    >>> bootstrap_lrt(GaussianMixture(covariance="EII", random_state=0), X, n_resamples=19).n_components
    2
    """
    if not isinstance(estimator, GaussianMixture):
        raise ValueError(f"estimator must be a GaussianMixture; got {type(estimator).__name__}")
    check_gaussian(estimator, "bootstrap_lrt")
    _check_options(max_components, n_resamples, level)
    plan, name, schema = _plan(estimator, X, sample_weight, random_state)
    tests, samples = Records(), []
    null, selected = _fit(plan, 1, name), 1
    with progress_bar(estimator.progress, "tests") as show:
        for k in range(1, min(max_components, plan.table.n_rows)):
            alternative = _fit(plan, k + 1, name)
            record, values = _test(Simulation(plan, null, k, name), alternative, n_resamples, show)
            tests.append(record)
            samples.append(values)
            if record["p_value"] > level:
                break
            null, selected = alternative, k + 1
    structure = name if schema.continuous else None
    return LikelihoodRatioTests(selected, tests, samples, structure, float(level), n_resamples)


def _check_options(max_components: int, n_resamples: int, level: float) -> None:
    check_count("n_resamples", n_resamples)
    if check_count("max_components", max_components) < 2:
        raise ValueError(f"max_components must be at least 2; got {max_components!r}")
    if not check_number(level) or not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, such as 0.05; got {level!r}")
    least = int(np.ceil(1 / level - 1e-9)) - 1
    if n_resamples < least:
        raise ValueError(f"n_resamples={n_resamples} cannot reject at level {level:g}; use at least {least}")


def _plan(estimator: GaussianMixture, X: Any, sample_weight: Any, random_state: Any) -> tuple[FitPlan, str, Schema]:
    """Check the estimator and read the table; return the plan of the fits, the structure and the schema."""
    est = clone(estimator).set_params(n_components=1)
    if not isinstance(est.init, str):
        raise ValueError("init must be 'kmeans++' or 'random' for tests of the number of components")
    _, names = est._check()
    if len(names) > 1:
        raise ValueError(f"covariance must be one structure for these tests, such as 'VVV'; got {est.covariance!r}")
    table = read_features(est, X, reset=True, categorical=est.categorical)
    check_spread(table)
    weight = read_weights(sample_weight, table.n_rows)
    varying, _ = varying_columns(table.X, weight)
    block = select_columns(table, varying)
    if weight is not None:
        if (weight != np.round(weight)).any():
            i = int(np.argmax(weight != np.round(weight)))
            raise ValueError(
                f"sample_weight must be whole numbers, since tables of that many rows are drawn; row {i} has "
                f"{weight[i]:g}"
            )
        block = replace(block.take(np.repeat(np.arange(table.n_rows), weight.astype(int))), rows=None)
    seed = check_random_state(est.random_state if random_state is None else random_state).randint(2**31 - 1)
    return FitPlan(est, block, table.schema.sizes, int(seed)), names[0], table.schema


@dataclass(frozen=True)
class Simulation:
    """Draws tables from a mixture of k components and returns their statistics."""

    plan: FitPlan
    null: Fitted
    n_components: int
    name: str

    def statistic(self, number: int) -> float | None:
        """Return 2 (L_{k+1} - L_k) of a table; None if a fit failed."""
        k, plan = self.n_components, self.plan
        rng = np.random.default_rng((plan.seed, k, number))
        drawn = drawn_like(plan.table, self.null, rng)
        own = FitPlan(_alone(plan.est), drawn, plan.sizes, int(rng.integers(2**31 - 1)))
        fits = [_fit(own, count, self.name) for count in (k, k + 1)]
        if any(fit.run.status.failed for fit in fits):
            return None
        return 2 * (_log_lik(fits[1], drawn) - _log_lik(fits[0], drawn))


def drawn_like(table: Block, fitted: Fitted, rng: np.random.Generator) -> Block:
    """Return rows drawn from a mixture, as many as in `table` and with the same values missing."""
    weights = fitted.params.weights[0]
    component = rng.choice(len(weights), table.n_rows, p=weights / weights.sum())
    X, codes = fitted.problem.family.sample(fitted.params.components, component, rng)
    X[np.isnan(table.X)] = np.nan
    if table.codes is not None:
        codes[table.codes < 0] = -1
    return Block(X, codes)


def _alone(est: GaussianMixture) -> GaussianMixture:
    """Return the estimator with one thread and without progress, for a process of its own."""
    return clone(est).set_params(n_jobs=1, progress=False)


def _test(simulation: Simulation, alternative: Fitted, n_resamples: int, show: Any) -> tuple[dict[str, Any], Array]:
    """Return the record of the test of k against k + 1 components, and the statistics under the null hypothesis."""
    plan, k = simulation.plan, simulation.n_components
    log_lik = _log_lik(simulation.null, plan.table)
    statistic = 2 * (_log_lik(alternative, plan.table) - log_lik)
    tasks = [(simulation, b) for b in range(n_resamples)]
    drawn = map_tasks(_simulated, tasks, plan.est.n_jobs, show, partial(_progress_text, k))
    values = np.array([value for value in drawn if value is not None])
    n_failed = n_resamples - len(values)  # they count against a rejection
    record = {
        "n_components": k,
        "log_likelihood": log_lik,
        "statistic": statistic,
        "p_value": float((1 + n_failed + np.sum(values >= statistic)) / (1 + n_resamples)),
        "n_failed": n_failed,
    }
    return record, values


def _progress_text(n_components: int, value: Any) -> str:
    return f"{n_components} against {n_components + 1} components"


def _simulated(task: tuple[Simulation, int]) -> float | None:
    simulation, number = task
    return simulation.statistic(number)


def _fit(plan: FitPlan, n_components: int, name: str) -> Fitted:
    candidate = plain_candidate(plan, n_components, name)
    if plan.search.grown:
        return list(grow(plan, plain_candidate(plan, 1, name), n_components, by=growth_rule(plan)))[-1].fitted
    n_init = max(plan.est.n_init, N_INIT if n_components > 1 else 1)
    return plan.fit(candidate, starts=plan.parts(candidate, n_init))[0]


def _log_lik(fitted: Fitted, table: Block) -> float:
    return float(log_density(fitted.problem, fitted.params, table, 1).sum())
