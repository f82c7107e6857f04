"""Standard errors and intervals of the parameters of a mixture, by the bootstrap.

Resample b gives row n the weight w*_n and maximizes

    sum_n w*_n log sum_k p_k f_k(x_n) + log prior(f)

from the fitted parameters on, with the same prior. With row weights w of sum N (by default ones), w* is

    method="weights"   N Dirichlet(w)           weighted likelihood bootstrap: every row has a positive random weight
    method="rows"      Multinomial(N, w / N)    nonparametric bootstrap: N rows drawn with replacement

Both treat a weight of 2 as a repeated row: the sum of two exponential variables is a gamma variable of shape 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from mixent.base.document import Content, Number, Paragraph, Table
from mixent.base.executors import choose_executor
from mixent.base.params import check_choice, check_count, check_number
from mixent.base.progress import progress_bar
from mixent.base.result import Records, Result
from mixent.base.text import readable
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.core.driver import Stop, run
from mixent.core.proposals import Squarem
from mixent.data import Schema, read_weights
from mixent.mixtures.fitting import blocks
from mixent.mixtures.outliers import check_gaussian
from mixent.mixtures.predict import responsibilities
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.show import Short

if TYPE_CHECKING:
    from mixent.mixtures.clustering import GaussianMixture

METHODS = ("weights", "rows")


@dataclass(frozen=True, repr=False)
class BootstrapEstimate(Short):
    """Estimates of some parameters, with standard errors and percentile intervals from B resamples.

    All arrays have the shape of the estimate, such as (K, d) for the means of K components.
    """

    _shown = ("estimate", "std_error", "low", "high")

    estimate: Array  # of the fitted model
    samples: Array  # (B, ...) of the resamples
    confidence: float

    @property
    def std_error(self) -> Array:
        """Standard deviation over the resamples."""
        return self.samples.std(axis=0, ddof=1)

    @property
    def low(self) -> Array:
        """Lower ends of the percentile intervals."""
        return self._quantile(0.5 - 0.5 * self.confidence)

    @property
    def high(self) -> Array:
        """Upper ends of the percentile intervals."""
        return self._quantile(0.5 + 0.5 * self.confidence)

    def _quantile(self, share: float) -> Array:
        # order statistic share (B + 1): numpy's default leaves 3.5 % instead of 2.5 % outside with 99 resamples
        return np.quantile(self.samples, share, axis=0, method="weibull")


@dataclass(frozen=True, repr=False)
class MixtureBootstrap(Result):
    """Bootstrap standard errors and percentile intervals of the parameters of a mixture.

    `records` lists all parameters; `weights`, `means`, `covariances` and each entry of `category_probabilities` have
    the arrays `estimate`, `std_error`, `low`, `high` and `samples`.
    """

    _title = "Bootstrap of a mixture"
    _shown = ("method", "n_resamples", "n_failed", "confidence")

    weights: BootstrapEstimate  # (K,)
    means: BootstrapEstimate  # (K, d)
    covariances: BootstrapEstimate  # (K, d, d)
    category_probabilities: dict[str, BootstrapEstimate]  # (K, values) of each categorical column
    method: str
    n_resamples: int  # on which the estimates are based
    n_failed: int  # resamples left out, in which a component lost all its rows
    n_unconverged: int  # resamples that reached max_iter
    confidence: float
    schema: Schema = field(repr=False)

    @property
    def records(self) -> Records:
        """All parameters: parameter, component, estimate, std_error, low, high."""
        return Records(self._records())

    def frame(self) -> Any:
        """The records as a pandas DataFrame."""
        return self.records.frame()

    def _records(self) -> Iterator[dict[str, Any]]:
        names = [str(self.schema.names[i]) for i in self.schema.continuous]
        yield from _entries("weight", self.weights, ())
        for j, name in enumerate(names):
            yield from _entries(f"mean of {name}", self.means, (j,))
        for column, estimate in self.category_probabilities.items():
            values = self.schema.columns[list(self.schema.names).index(column)].categories
            for v, value in enumerate(values):
                yield from _entries(f"probability of {column} = {value}", estimate, (v,))
        for j, name in enumerate(names):
            yield from _entries(f"variance of {name}", self.covariances, (j, j))
            for i, other in enumerate(names[:j]):
                yield from _entries(f"covariance of {other} and {name}", self.covariances, (i, j))

    def _content(self) -> Sequence[Content]:
        how = "random weights of the rows" if self.method == "weights" else "rows drawn with replacement"
        lead = f"{self.n_resamples} resamples ({how}), {100 * self.confidence:g} % percentile intervals."
        if self.n_failed:
            lead += f" {self.n_failed} more were left out, because a component lost its rows."
        if self.n_unconverged:
            lead += f" {self.n_unconverged} did not converge; raise max_iter."
        rows: list[list[Any]] = [
            [
                r["parameter"],
                r["component"],
                *(Number(readable(r[key])) for key in ("estimate", "std_error")),
                _range(r),
            ]
            for r in self._records()
        ]
        header = ["parameter", "component", "estimate", "standard error", "interval"]
        return [Paragraph(lead), Table("", header, rows)]


def _entries(name: str, of: BootstrapEstimate, where: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    error, low, high = of.std_error, of.low, of.high
    for k in range(len(of.estimate)):
        at = (k, *where)
        yield {
            "parameter": name,
            "component": k,
            "estimate": float(of.estimate[at]),
            "std_error": float(error[at]),
            "low": float(low[at]),
            "high": float(high[at]),
        }


def _range(record: dict[str, Any]) -> Number:
    return Number(f"{readable(record['low'])} to {readable(record['high'])}")


@dataclass(frozen=True)
class Refit:
    """A fitted mixture and its rows, to be fitted again with other weights of the rows."""

    problem: MixtureProblem
    params: MixtureParams
    table: Block  # with the weights of the user
    resp: Array  # (n, K) responsibilities of the fitted mixture
    method: str
    stop: Stop

    def __call__(self, seed: int) -> tuple[MixtureParams, bool] | None:
        """Return the parameters of a resample in the order of the fitted components, and whether EM converged.

        None if a component lost its rows: its parameters then are those of another one.
        """
        weight = resampled_weights(self.table.row_weights, self.method, np.random.default_rng(seed))
        used = np.flatnonzero(weight > 0)
        block = replace(self.table, weight=weight)
        block = block if len(used) == len(weight) else replace(block.take(used), rows=None)
        gaussian, K = self.problem.family.gaussian, self.params.n_components
        source = blocks(block, K, gaussian is None or gaussian.axis_aligned)
        propose = Squarem() if K > 1 else None
        with choose_executor(1, block.n_rows, K) as executor:
            result = run(self.problem, source, self.params, stop=self.stop, executor=executor, propose=propose)
        params: MixtureParams = result.params
        if result.status.failed or params.repairs > self.params.repairs or not params.live.all():
            return None
        return self.matched(params), result.status.ok

    def matched(self, params: MixtureParams) -> MixtureParams:
        """Return the parameters in the order in which the responsibilities agree best with the fitted ones."""
        if params.n_components == 1:
            return params
        from scipy.optimize import linear_sum_assignment  # takes long to import

        weighted = self.resp if self.table.weight is None else self.resp * self.table.weight[:, None]
        agreement = weighted.T @ responsibilities(self.problem, params, self.table, 1)
        order = linear_sum_assignment(agreement, maximize=True)[1]
        _, components = self.problem.family.take(params.components, order)
        return replace(params, weights=params.weights[:, order], components=components)


def resampled_weights(weight: Array, method: str, rng: np.random.Generator) -> Array:
    """Return random weights of the rows whose expectation is `weight` (n,), with the same sum."""
    total = weight.sum()
    if method == "weights":
        drawn: Array = rng.standard_gamma(weight)
    else:
        drawn = rng.multinomial(max(round(total), 1), weight / total).astype(float)
    return drawn * (total / drawn.sum())


def _refit(task: tuple[Refit, int]) -> tuple[MixtureParams, bool] | None:
    refit, seed = task
    return refit(seed)


def bootstrap(
    model: GaussianMixture,
    X: Any,
    sample_weight: Any,
    n_resamples: int,
    method: str,
    confidence: float,
    random_state: Any,
) -> MixtureBootstrap:
    """Return the bootstrap of a fitted mixture; see `GaussianMixture.bootstrap`."""
    from mixent.mixtures.candidates import map_tasks

    check_gaussian(model, "bootstrap")
    check_choice("method", method, METHODS)
    if check_count("n_resamples", n_resamples) < 2:
        raise ValueError(f"n_resamples must be at least 2 for a standard error; got {n_resamples!r}")
    if not check_number(confidence) or not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, such as 0.95; got {confidence!r}")
    table = model._read(X)
    weight = read_weights(sample_weight, table.n_rows)
    refit = Refit(
        model.problem_,
        model.params_,
        replace(model._block(table), weight=weight),
        model._responsibilities(table),
        method,
        Stop(model.tol, model.max_iter),
    )
    seeds = check_random_state(model.random_state if random_state is None else random_state)
    tasks = [(refit, int(seed)) for seed in seeds.randint(2**31 - 1, size=n_resamples)]
    with progress_bar(model.progress, "bootstrap") as show:
        results = map_tasks(_refit, tasks, model.n_jobs, show, lambda _: "resamples")
    done = [result for result in results if result is not None]
    if len(done) < 2:
        raise ValueError(
            f"a component lost its rows in {n_resamples - len(done)} of {n_resamples} resamples; use fewer components, "
            "a prior, or method='weights'"
        )
    models = [_with_params(model, params) for params, _ in done]

    def estimate(value: Any) -> BootstrapEstimate:
        return BootstrapEstimate(value(model), np.stack([value(other) for other in models]), float(confidence))

    probabilities = {c: estimate(lambda m, c=c: m.category_probabilities_[c]) for c in model.category_probabilities_}
    return MixtureBootstrap(
        estimate(lambda m: m.weights_),
        estimate(lambda m: m.means_),
        estimate(lambda m: m.covariances_),
        probabilities,
        method,
        len(done),
        n_resamples - len(done),
        sum(not ok for _, ok in done),
        float(confidence),
        model.schema_,
    )


def _with_params(model: GaussianMixture, params: MixtureParams) -> GaussianMixture:
    other = copy(model)
    other.params_ = params
    return other
