"""Mixtures of Gaussians and categoricals, without classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state

from mixent.base.capabilities import IGNORED, NOTHING, CapableTags, able
from mixent.base.convergence import warn_unconverged
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_share
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.starts import Starts
from mixent.data import Schema, check_spread, read_features, read_weights
from mixent.families.gaussian.structures import COVARIANCES, get_structure
from mixent.mixtures.fit_plan import Candidate, Job
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.init import Partition
from mixent.mixtures.model import MixtureModel, taking_part, varying_columns
from mixent.mixtures.options import MixturePrior, Search
from mixent.mixtures.predict import entropy_of
from mixent.mixtures.problem import MixtureParams, MixtureProblem

if TYPE_CHECKING:
    from mixent.mixtures.growth import Stage

STRUCTURES = tuple(name for name in COVARIANCES if name.isupper())


class GaussianMixture(DensityMixin, MixtureModel):
    """Mixture of Gaussians by maximum a posteriori EM, for mixed and incomplete tables.

    Maximizes  sum_n w_n log sum_k p_k N(x_n; m_k, C_k) prod_j q_kj(x_nj) + log prior(m, C, q).
    Each update maximizes a lower bound that touches it, so this value never falls.

    Missing values are integrated out exactly. Categorical columns are independent within a component.

    Parameters
    ----------
    n_components : int or "auto"
        "auto" tries several and keeps the best; see `search`.
    covariance : str, list of str, or "auto"
        One of the 14 structures of Celeux and Govaert: volume, shape and orientation Equal, Variable or Identity
        (EII VII EEI VEI EVI VVI EEE VEE EVE VVE EEV VEV EVV VVV), or scikit-learn's "spherical", "diag", "tied",
        "full". A list, or "auto" for all 14, is searched.
    prior : "auto", float, None or MixturePrior
        Pseudo-rows that shrink each covariance towards that within the parts of the first start; "auto" takes
        columns + 2. None is plain maximum likelihood. A `MixturePrior` also has the smoothing of category tables.
    search : None, "bic", "icl", "cv" or Search
        How components are found and, where n_components or covariance leave a choice, chosen: a criterion or a
        `Search`. Defaults: criterion "bic", up to 9 components.
    init : "kmeans++", "random" or (n, K) array
        Where EM starts: k-means on a sample, rows at random, or responsibilities.
    n_init : int
        Starts; each runs a few passes, the best runs on. All are kept in `starts_`.
    tol : float
        Stop when a pass gains less than this per row, in nats.
    max_iter : int
        Most passes over the data.
    accelerate : bool
        Extrapolate (SQUAREM); a step is kept only if the objective rises.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    warm_start : bool
        Start from the last fit. The prior is made anew; with the same `random_state` and rows it is the same.
    forgetting : float
        Share of what earlier batches left behind that each call of `partial_fit` forgets.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; None takes all cores. The number changes no bit of the result.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    weights_, means_, covariances_, category_probabilities_
        The components, by falling weight.
    run_ : Run
        How EM went: `status`, `trace`, `objective`.
    search_ : list of dict
        What "auto" tried: n_components, covariance, log_likelihood, n_free, bic, icl, aic (and cv), evaluations
        (rows x components), converged, chosen.
    starts_ : Starts or None
        Every start of the chosen fit; None when it was grown.
    path_ : list of Stage
        With incremental growth, every stage: n_components, log_likelihood, n_free, evaluations, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import GaussianMixture
    >>> X = np.array([[0.0, 0.1], [0.2, np.nan], [-0.1, 0.0], [5.0, 5.2], [5.1, 4.9], [np.nan, 5.0]])
    >>> model = GaussianMixture(2, "EII", random_state=0).fit(X)
    >>> model.predict(X).tolist() in ([0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0])
    True
    """

    _groups = {"prior": MixturePrior.read, "search": Search.reader("bic", 9)}

    def __init__(
        self,
        n_components: int | str = 1,
        covariance: str | list[str] = "VVV",
        *,
        prior: str | float | MixturePrior | None = "auto",
        search: str | Search | None = None,
        init: Any = "kmeans++",
        n_init: int = 1,
        tol: float = 1e-6,
        max_iter: int = 1000,
        accelerate: bool = True,
        categorical: Any = "auto",
        warm_start: bool = False,
        forgetting: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.prior = prior
        self.search = search
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.categorical = categorical
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def __sklearn_tags__(self) -> CapableTags:
        tags = super().__sklearn_tags__()
        return able(tags, soft_labels=IGNORED, absent_labels=IGNORED, explanations=NOTHING, shifted_priors=NOTHING)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : ignored
        sample_weight : (n,) array, optional
            Counts: weight two is the row twice. BIC takes their sum for the number of rows, so for "auto" scale them to
            sum to it.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more batch of rows, without the rows of earlier batches.

        The first call fits as `fit` does (or was a call of `fit`): it settles columns, components and the prior. Each
        later call runs EM on its batch with the expected statistics of all earlier rows as pseudo-rows, after
        forgetting the share `forgetting` of them.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        check_share("forgetting", self.forgetting)
        if not hasattr(self, "params_"):
            return self._fit(X, sample_weight)
        self._check_kept()
        table = read_features(self, X, reset=False)
        weight = read_weights(sample_weight, table.n_rows)
        job = Job(self, taking_part(table, self.varying_, weight=weight), table.schema.sizes, 0)
        self._absorb(job)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        counts, names = self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        weight = read_weights(sample_weight, table.n_rows)
        varying, constants = varying_columns(table.X, weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        job = Job(self, taking_part(table, varying, weight=weight), table.schema.sizes, seed)
        if counts[-1] > table.n_rows:
            if self.n_components == "auto":
                counts = [k for k in counts if k <= table.n_rows]
            else:
                raise ValueError(f"n_components={counts[-1]} needs at least as many rows; X has {table.n_rows}")
        with progress_bar(self.progress, "mixture") as show:
            found, starts, records, path = self._search(job, counts, names, table.schema, varying, show)
        self._keep(found, starts, table.schema, job)
        self.varying_, self.constants_, self.search_, self.path_ = varying, constants, records, path
        warn_unconverged(found.run, type(self).__name__, searched=self.n_components == "auto")
        return self

    def _search(
        self, job: Job, counts: list[int], names: list[str], schema: Schema, varying: np.ndarray, show: Any
    ) -> tuple[Fitted, Starts | None, list[dict], list[Stage]]:
        """The best fit, the starts of a single fit, the records of a search, and the stages of growth."""
        if len(counts) * len(names) > 1:
            from mixent.mixtures.clustering_search import search  # loaded when used

            return search(job, counts, names, show)
        if job.search.grown:
            from mixent.mixtures.clustering_search import keep_by
            from mixent.mixtures.growth import grow

            path = list(grow(job, plain_candidate(job, 1, names[0]), counts[0], by=keep_by(job), show=show))
            return path[-1].fitted, None, [], path
        candidate = plain_candidate(job, counts[0], names[0])
        partitions = starts_of(job, counts[0])
        problem = job.problem(candidate, partitions[0])
        again = self.warm_start and hasattr(self, "params_")
        warm = _continued(self, problem, schema, varying, counts[0]) if again else None
        found, starts = job.fit(candidate, show, starts=partitions, warm=warm)
        return found, starts, [], []

    def _check(self) -> tuple[list[int], list[str]]:
        """The numbers of components and structures to try."""
        search = self._group("search")
        search.check(type(self).__name__, ("bic", "icl", "cv"), ("per_class", "nested", "dic_weight"))
        if self.n_components == "auto":
            counts = list(range(1, search.max_components + 1))
        else:
            counts = [check_count("n_components", self.n_components, also="'auto'")]
        if isinstance(self.covariance, str) or not np.iterable(self.covariance):
            single = self.covariance != "auto"
            names = [get_structure(self.covariance, also="'auto'").name] if single else list(STRUCTURES)
        else:
            names = [get_structure(name).name for name in self.covariance]
        if not names:
            raise ValueError("covariance is an empty list; name at least one structure")
        check_share("forgetting", self.forgetting)
        for name in ("accelerate", "warm_start"):
            check_flag(name, getattr(self, name))
        if search.grown and (self.warm_start or not isinstance(self.init, str)):
            what = "warm_start=True" if self.warm_start else "init as responsibilities"
            raise ValueError(f"{what} is only used with growth='restart'; got growth='incremental'")
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        self._group("prior").check()
        if isinstance(self.init, str):
            check_choice("init", self.init, ("kmeans++", "random"))
        elif len(counts) > 1:
            raise ValueError("init as responsibilities has a column per component: give n_components as a number")
        return counts, names

    def _keep(self, found: Fitted, starts: Starts | None, schema: Schema, job: Job) -> None:
        self.problem_, self.params_, self.schema_ = found.problem, found.params, schema
        self.kept_ = found.kept
        self.run_ = replace(found.run, last=None)
        self.starts_ = starts
        self.n_components_ = found.params.n_components
        gaussian = found.problem.family.gaussian
        self.covariance_ = gaussian.groups[0].structure if gaussian is not None else None
        self.lower_bound_ = found.run.objective / max(job.total_weight, 1e-300)

    @property
    def weights_(self) -> Array:
        """(K,) component weights."""
        return self.params_.weights.sum(axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable component of each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array of int.
        """
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Component responsibilities.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, K) array, rows sum to 1.
        """
        return self._responsibilities(self._read(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit, then the most probable component of each row.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        (n,) array of int.
        """
        return self.fit(X, y, sample_weight).predict(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density per row, in nats.

        Parameters
        ----------
        X : table of n rows
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def bic(self, X: Any) -> float:
        """Bayesian information criterion of the model on X; lower is better."""
        log_density = self.score_samples(X)
        return float(-2 * log_density.sum() + self.n_parameters_ * np.log(len(log_density)))

    def aic(self, X: Any) -> float:
        """Akaike information criterion of the model on X; lower is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.n_parameters_)

    def icl(self, X: Any) -> float:
        """BIC plus twice the entropy of the responsibilities: prefers separated components; lower is better."""
        table = self._read(X)
        return self.bic(table) + 2 * entropy_of(self.predict_proba(table)).sum()


def plain_candidate(job: Job, n_components: int, name: str) -> Candidate:
    """A mixture of all rows."""
    return Candidate((n_components,), (name,), False, job.default_rows(), local=True)


def starts_of(job: Job, n_components: int) -> list[Partition]:
    """Partitions for EM to start from, or the responsibilities given by the user."""
    est = job.est
    if not isinstance(est.init, str):
        resp = read_responsibilities(est.init, job.table.n_rows, n_components)
        return [Partition(np.arange(job.table.n_rows), resp)]
    return [job.partition((n_components,), number) for number in range(est.n_init)]


def read_responsibilities(init: Any, n_rows: int, n_components: int) -> Array:
    """A starting matrix given by the user."""
    try:
        resp = np.asarray(init, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be 'kmeans++', 'random' or a table of responsibilities; {error}") from error
    if resp.shape != (n_rows, n_components):
        raise ValueError(
            f"init must be 'kmeans++', 'random' or responsibilities of shape ({n_rows}, {n_components}); "
            f"got {resp.shape}"
        )
    sums = resp.sum(axis=1, keepdims=True)
    if not np.isfinite(resp).all() or (resp < 0).any() or (sums <= 0).any():
        raise ValueError("init responsibilities must be finite, >= 0, with a positive sum in every row")
    return resp / sums


def _continued(
    before: GaussianMixture, problem: MixtureProblem, schema: Schema, varying: np.ndarray, n_components: int
) -> MixtureParams | None:
    """The parameters of an earlier fit as a start of this problem; None when they do not fit it."""
    params, old, new = before.params_, before.problem_.family.gaussian, problem.family.gaussian
    same_columns = before.schema_.columns == schema.columns and np.array_equal(before.varying_, varying)
    if not same_columns or params.n_components != n_components:
        return None
    if old is None or new is None or params.components.gaussian is None:
        return params
    if old.groups != new.groups:
        return None
    means = params.components.gaussian.means + (old.center - new.center)  # about the center of the new rows
    gaussian = replace(params.components.gaussian, means=means)
    return replace(params, components=replace(params.components, gaussian=gaussian))
