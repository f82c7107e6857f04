"""Gaussian mixtures without classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from mixent.base.capabilities import IGNORED, NOTHING, CapableTags, able
from mixent.base.convergence import warn_unconverged
from mixent.base.params import check_count, check_flag, check_positive, check_share
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array, weighted_total
from mixent.core.starts import Starts
from mixent.data import Schema, Table, check_spread, keep_notes, read_features, read_weights
from mixent.families.gaussian.structures import COVARIANCES, get_structure
from mixent.mixtures.fit_plan import Candidate, FitPlan
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.given_start import check_init, read_start
from mixent.mixtures.model import MixtureModel, select_columns, varying_columns
from mixent.mixtures.options import MixturePrior, Search
from mixent.mixtures.outliers import check_outliers, keeps_statistics
from mixent.mixtures.predict import entropy_of
from mixent.mixtures.problem import MixtureParams, MixtureProblem

if TYPE_CHECKING:
    from mixent.mixtures.bootstrap import MixtureBootstrap
    from mixent.mixtures.growth import Stage
    from mixent.mixtures.merging import ComponentMerging

STRUCTURES = tuple(COVARIANCES)


class GaussianMixture(DensityMixin, MixtureModel):
    """Gaussian mixture model fitted by maximum a posteriori EM, for tables with categories and missing values.

    Maximizes  sum_n w_n log sum_k p_k N(x_n; m_k, C_k) prod_j q_kj(x_nj) + log prior(m, C, q),  where x_n are the
    numeric and x_nj the categorical columns of row n, w_n its weight, and q_kj the probabilities of the values of
    categorical column j in component k. Each EM update maximizes a lower bound that touches the objective, so the
    objective never decreases [1]_.

    Missing values are integrated out exactly. Categorical columns are independent within a component. EM is accelerated
    by extrapolation [3]_; a step is accepted only if it increases the objective.

    Parameters
    ----------
    n_components : int or "auto", default=1
        Number of components. "auto" selects it, see `search`.
    covariance : str, list of str, or "auto", default="VVV"
        One of the 14 covariance structures of Celeux and Govaert [2]_, whose letters stand for volume, shape and
        orientation: Equal, Variable or Identity (EII VII EEI VEI EVI VVI EEE VEE EVE VVE EEV VEV EVV VVV).
        scikit-learn's "spherical", "diag", "tied" and "full" are VII, VVI, EEE and VVV. From a list, or with "auto"
        from all 14, the best structure is selected.
    prior : "auto", float, None or MixturePrior, default="auto"
        Number of pseudo-rows that shrink each covariance towards a common covariance within the components; "auto" is
        the number of numeric columns + 2 (compare [4]_), None is maximum likelihood. A `MixturePrior` also has the
        smoothing of categorical columns.
    search : None, "bic", "icl", "cv" or Search, default=None
        How components are found and, if there is a choice, how their number and structure are selected: a criterion or
        a `Search`. The default criterion is "bic", with up to 9 components.
    outliers : None, "noise" or "t", default=None
        How rows far from all components are modeled. "noise" adds a component with a uniform density over the range of
        the numeric columns and over the categories, and a weight that is estimated [6]_. With "t", components are
        multivariate t distributions with estimated degrees of freedom [7]_, between 1 and 200.
    init : "kmeans++", "random", (n, K) array or dict, default="kmeans++"
        Initialization of EM: k-means on a sample of the rows, randomly drawn rows as centers, responsibilities, or a
        dict of initial parameters with one or more of "weights" (K,), "means" (K, d), and "covariances" or "precisions"
        (K, d, d) or their diagonals (K, d). With means, each row starts in the component of the nearest mean. Other
        parameters are estimated from the initial components.
    n_init : int, default=1
        Number of initializations. Each is run for a few passes, and the best is continued; see `starts_`.
    tol : float, default=1e-6
        EM stops when the gain of a pass is below this value, in nats per row.
    max_iter : int, default=1000
        Maximum number of iterations (passes over the data).
    categorical : "auto" or list, default="auto"
        Columns to treat as categorical, regardless of their type.
    warm_start : bool, default=False
        Whether to start from the result of the previous fit. The prior is computed from the new rows.
    forgetting : float, default=0.0
        Share by which each call of `partial_fit` reduces the weight of earlier rows.
    checkpoint : str, Path or None, default=None
        File in which `fit` records its state every few seconds, and from which the same `fit` resumes after it was
        interrupted. It does not change the result, and is removed after the fit.
    random_state : int, RandomState or None, default=None
        Seed of the initialization.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result is identical to the last bit for any number.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    weights_ : (K,) array
        Weights of the components, in decreasing order. Together with `noise_weight_` they sum to 1.
    noise_weight_ : float
        Weight of the noise component; 0 without noise.
    means_ : (K, d) array
        Means of the numeric columns.
    covariances_ : (K, d, d) array
        Covariances of the numeric columns. With outliers="t" they are scale matrices: with df degrees of freedom, the
        covariance is the scale matrix times df / (df - 2).
    degrees_of_freedom_ : (K,) array
        Degrees of freedom of the components; infinite for Gaussians.
    precisions_ : (K, d, d) array
        Inverses of the covariances; constant columns have an infinite precision.
    category_probabilities_ : dict of column -> CategoryProbabilities
        Probabilities of the values of each categorical column: a (K, values) table whose columns are named by the
        values, such as ``category_probabilities_["color"]["red"]``; `numpy.asarray` returns the array.
    n_components_ : int
        Number of components.
    covariance_ : str or None
        Covariance structure; None without numeric columns.
    n_parameters_ : int
        Number of free parameters.
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the gain of an iteration fell below `tol`.
    lower_bound_ : float
        Objective per unit of weight after the last iteration: the mean log density plus the log prior.
    lower_bounds_ : list of float
        Objective per unit of weight after each iteration. It can decrease only where the prior was computed again, or
        a component was repaired.
    run_ : Run
        Result of EM: `status`, `trace` (one entry per pass), `objective`.
    search_ : list of dict
        The models tried: n_components, covariance, log_likelihood, n_free, bic, icl, aic (and cv), evaluations (rows
        x components), converged, chosen. Empty without a search.
    starts_ : Starts or None
        The short runs from all initializations; None with incremental growth.
    path_ : list of Stage
        The stages of incremental growth [5]_: n_components, log_likelihood, n_free, evaluations, fitted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : (n_columns,) array
        Names of the columns, if X has names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.
    schema_ : Schema
        Names, types and categories of the columns.
    varying_ : (d',) array of int
        Numeric columns that vary. The others are left out of the density, since their likelihood would be infinite.
    constants_ : (d,) array
        Values of the constant numeric columns, NaN for the others.
    problem_, params_ : MixtureProblem, MixtureParams
        The optimization problem and its solution.
    statistics_ : PastStatistics or None
        Expected sufficient statistics of the training rows, from which `partial_fit` continues.

    See Also
    --------
    MixtureClassifier : Bayes classifier with a mixture for each class.
    HiddenMarkovModel : The corresponding model of sequences.
    sklearn.mixture.GaussianMixture : Four covariance structures, numeric columns without missing values.

    References
    ----------
    .. [1] Dempster, A. P., Laird, N. M. and Rubin, D. B. (1977). Maximum likelihood from incomplete data via the EM
       algorithm. Journal of the Royal Statistical Society, Series B, 39(1), 1-38.
    .. [2] Celeux, G. and Govaert, G. (1995). Gaussian parsimonious clustering models. Pattern Recognition, 28(5),
       781-793.
    .. [3] Varadhan, R. and Roland, C. (2008). Simple and globally convergent methods for accelerating the convergence
       of any EM algorithm. Scandinavian Journal of Statistics, 35(2), 335-353.
    .. [4] Fraley, C. and Raftery, A. E. (2007). Bayesian regularization for normal mixture estimation and model-based
       clustering. Journal of Classification, 24(2), 155-181.
    .. [5] Mansjur, D. S. and Juang, B. H. Incremental learning of mixture models for simultaneous estimation of class
       distribution and inter-class decision boundaries. Section 3, incremental growth (document 002).
    .. [6] Banfield, J. D. and Raftery, A. E. (1993). Model-based Gaussian and non-Gaussian clustering. Biometrics,
       49(3), 803-821.
    .. [7] Peel, D. and McLachlan, G. J. (2000). Robust mixture modelling using the t distribution. Statistics and
       Computing, 10(4), 339-348.

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
        outliers: str | None = None,
        init: Any = "kmeans++",
        n_init: int = 1,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Any = "auto",
        warm_start: bool = False,
        forgetting: float = 0.0,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.prior = prior
        self.search = search
        self.outliers = outliers
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.warm_start = warm_start
        self.forgetting = forgetting
        self.checkpoint = checkpoint
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
            Array or DataFrame; NaN, None and null are missing values, text columns are categorical.
        y : ignored
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row. BIC uses the sum of the weights as the number of rows, so
            with "auto" the weights should sum to the number of rows.

        Returns
        -------
        self
        """
        return self._fit(X, sample_weight)

    @available_if(keeps_statistics)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the mixture with a batch of rows; the rows of earlier batches are not needed.

        The first call fits the mixture like `fit` (a call of `fit` also counts as the first call). It determines the
        columns, components and prior. Each later call runs EM on its batch, with the expected statistics of all earlier
        rows, multiplied by 1 - `forgetting`, as pseudo-rows.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`.

        Returns
        -------
        self
        """
        check_share("forgetting", self.forgetting)
        if not hasattr(self, "params_"):
            return self._fit(X, sample_weight)
        self._check_statistics()
        table = read_features(self, X, reset=False)
        weight = read_weights(sample_weight, table.n_rows)
        plan = FitPlan(self, select_columns(table, self.varying_, weight=weight), table.schema.sizes, 0)
        self._update(plan)
        return self

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        counts, names = self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        keep_notes(self, table, quiet=isinstance(X, Table))
        check_spread(table)
        weight = read_weights(sample_weight, table.n_rows)
        varying, constants = varying_columns(table.X, weight)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        plan = FitPlan(self, select_columns(table, varying, weight=weight), table.schema.sizes, seed)
        if counts[-1] > table.n_rows:
            if self.n_components == "auto":
                counts = [k for k in counts if k <= table.n_rows]
            else:
                raise ValueError(f"n_components={counts[-1]} needs at least as many rows; X has {table.n_rows}")
        with progress_bar(self.progress, "mixture") as show, self._recorded(plan):
            fitted, starts, records, path = self._search(plan, counts, names, table.schema, varying, show)
        self._set_fitted(fitted, starts, table.schema, plan)
        self.varying_, self.constants_, self.search_, self.path_ = varying, constants, records, path
        warn_unconverged(fitted.run, type(self).__name__, searched=self.n_components == "auto")
        return self

    def _search(
        self, plan: FitPlan, counts: list[int], names: list[str], schema: Schema, varying: np.ndarray, show: Any
    ) -> tuple[Fitted, Starts | None, list[dict], list[Stage]]:
        """Return the best fit, the starts of a single fit, the records of a search, and the stages of growth."""
        plan.start = read_start(self.init, plan.table.n_rows, counts[0], len(schema.continuous), varying)
        if len(counts) * len(names) > 1:
            from mixent.mixtures.clustering_search import search  # loaded when used

            return search(plan, counts, names, show)
        if plan.search.grown:
            from mixent.mixtures.clustering_search import growth_rule
            from mixent.mixtures.growth import grow

            path = list(grow(plan, plain_candidate(plan, 1, names[0]), counts[0], by=growth_rule(plan), show=show))
            return path[-1].fitted, None, [], path
        candidate = plain_candidate(plan, counts[0], names[0])
        partitions = plan.parts(candidate, self.n_init)
        problem = plan.problem(candidate, partitions[0])
        again = self.warm_start and hasattr(self, "params_")
        warm = _continued(self, problem, schema, varying, counts[0]) if again else None
        before = self.problem_ if warm is not None else None
        fitted, starts = plan.fit(candidate, show, starts=partitions, warm=warm, before=before)
        return fitted, starts, [], []

    def _check(self) -> tuple[list[int], list[str]]:
        """Check the parameters; return the numbers of components and the structures to try."""
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
        check_flag("warm_start", self.warm_start)
        check_outliers(self.outliers)
        if search.grown and self.warm_start:
            raise ValueError("warm_start=True is only used with growth='restart'; got growth='incremental'")
        check_count("n_init", self.n_init)
        check_count("max_iter", self.max_iter)
        check_positive("tol", self.tol, zero=True)
        self._group("prior").check()
        check_init(
            self.init, searched=len(counts) > 1, grown=search.grown, also="a dict of parameters or responsibilities"
        )
        by_clusters = isinstance(self.init, str) or (isinstance(self.init, dict) and "means" not in self.init)
        if self.n_init != 1 and not by_clusters:
            raise ValueError(
                f"n_init={self.n_init!r} is not used with initial means or responsibilities; leave it at 1"
            )
        return counts, names

    def _set_fitted(self, fitted: Fitted, starts: Starts | None, schema: Schema, plan: FitPlan) -> None:
        self.problem_, self.params_, self.schema_ = fitted.problem, fitted.params, schema
        self.statistics_ = fitted.statistics
        self.run_ = replace(fitted.run, last=None)
        self.starts_ = starts
        self.n_components_ = fitted.params.n_components
        gaussian = fitted.problem.family.gaussian
        self.covariance_ = gaussian.groups[0].structure if gaussian is not None else None
        weight = max(plan.total_weight, 1e-300)
        self.lower_bound_ = fitted.run.objective / weight
        self.lower_bounds_ = [objective / weight for objective in fitted.run.objectives]

    @property
    def weights_(self) -> Array:
        """(K,) component weights."""
        return self.params_.weights.sum(axis=0)[: self.params_.n_components]

    @property
    def noise_weight_(self) -> float:
        """Weight of the noise component."""
        return float(self.params_.weights[:, self.params_.n_components :].sum())

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable component of each row; -1 for noise.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array of int.
        """
        return self._component_label(self.predict_proba(X).argmax(axis=1))

    def _component_label(self, component: np.ndarray) -> np.ndarray:
        """Return -1 for the noise component, else the number of the component."""
        return np.where(component < self.params_.n_components, component, -1)

    def _sample_label(self, label: np.ndarray, component: np.ndarray) -> np.ndarray:
        return self._component_label(component)

    def predict_proba(self, X: Any) -> Array:
        """Return the responsibilities p(component | x) of each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, K) array, rows sum to 1; with outliers="noise" (n, K + 1), the last column is noise.
        """
        return self._responsibilities(self._read(X))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit the mixture and return the most probable component of each row.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`.

        Returns
        -------
        (n,) array of int.
        """
        return self.fit(X, y, sample_weight).predict(X)

    def bootstrap(
        self,
        X: Any,
        sample_weight: Any = None,
        *,
        n_resamples: int = 999,
        method: str = "weights",
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> MixtureBootstrap:
        """Return standard errors and intervals of the parameters, by the bootstrap.

        Each resample changes the weights of the rows at random and runs EM from the fitted parameters on, with the same
        prior and number of components. The components of a resample are matched with the fitted ones by the
        responsibilities of the rows. The intervals do not include the uncertainty of the number of components.

        Parameters
        ----------
        X : table of n rows
            The training rows.
        sample_weight : (n,) array, optional
            The weights of the training rows.
        n_resamples : int
            Number of resamples.
        method : "weights" or "rows"
            "weights" gives every row a random weight (weighted likelihood bootstrap [1]_): no row is left out, so that
            small components keep their rows. "rows" draws rows with replacement.
        confidence : float
            Probability of the percentile intervals.
        random_state : int, RandomState or None
            None uses the `random_state` of the estimator.

        Returns
        -------
        MixtureBootstrap
            `weights`, `means`, `covariances` and `category_probabilities`, each with `estimate`, `std_error`, `low`,
            `high` and `samples`; `records` and `frame()` list all parameters.

        References
        ----------
        .. [1] O'Hagan, A., Murphy, T. B., Scrucca, L. and Gormley, I. C. (2019). Investigation of parameter
           uncertainty in clustering using a Gaussian mixture model via jackknife, bootstrap and weighted likelihood
           bootstrap. Computational Statistics, 34(4), 1779-1813.
        """
        from mixent.mixtures.bootstrap import bootstrap  # loaded when used

        return bootstrap(self, X, sample_weight, n_resamples, method, confidence, random_state)

    def merge_components(self, X: Any, sample_weight: Any = None) -> ComponentMerging:
        """Return clusters of merged components: a cluster that is not Gaussian may need several components.

        From the fitted components on, the two clusters are merged whose merging decreases the entropy of the cluster
        probabilities of the rows most, until one cluster is left [1]_. The density does not change.

        Parameters
        ----------
        X : table of n rows
            The training rows.
        sample_weight : (n,) array, optional
            The weights of the training rows.

        Returns
        -------
        ComponentMerging
            The entropy and the components of every number of clusters, a suggested number `n_clusters`, and
            `predict(X)` and `predict_proba(X)` of the merged clusters.

        References
        ----------
        .. [1] Baudry, J.-P., Raftery, A. E., Celeux, G., Lo, K. and Gottardo, R. (2010). Combining mixture components
           for clustering. Journal of Computational and Graphical Statistics, 19(2), 332-353.
        """
        from mixent.mixtures.merging import merge_components  # loaded when used

        return merge_components(self, X, sample_weight)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log density per row, in nats.

        Parameters
        ----------
        X : table of n rows
        y : ignored
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        float
        """
        log_lik, n_rows = self._log_likelihood(self._read(X), sample_weight)
        return log_lik / n_rows

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion of the model on X; lower is better.

        Parameters
        ----------
        X : table of n rows
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row; the number of rows is the sum of the weights.

        Returns
        -------
        float
        """
        log_lik, n_rows = self._log_likelihood(self._read(X), sample_weight)
        return float(-2 * log_lik + self.n_parameters_ * np.log(n_rows))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Akaike information criterion of the model on X; lower is better.

        Parameters
        ----------
        X, sample_weight
            See `bic`.

        Returns
        -------
        float
        """
        return -2 * self._log_likelihood(self._read(X), sample_weight)[0] + 2 * self.n_parameters_

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Return BIC plus twice the entropy of the responsibilities, which favors separated components.

        Lower is better.

        Parameters
        ----------
        X, sample_weight
            See `bic`.

        Returns
        -------
        float
        """
        table = self._read(X)
        entropy, _ = self._total(entropy_of(self.predict_proba(table)), sample_weight)
        return self.bic(table, sample_weight) + 2 * entropy

    def _log_likelihood(self, table: Table, sample_weight: Any) -> tuple[float, float]:
        """Return the log-likelihood and the number of rows."""
        return self._total(self._log_density(table), sample_weight)

    @staticmethod
    def _total(values: Array, sample_weight: Any) -> tuple[float, float]:
        """Return the sum of the values of all rows, and the number of rows, which is the sum of the weights."""
        weight = read_weights(sample_weight, len(values))
        return weighted_total(values, weight), float(len(values) if weight is None else weight.sum())


def plain_candidate(plan: FitPlan, n_components: int, name: str) -> Candidate:
    """Return the candidate of a mixture without classes."""
    return Candidate((n_components,), (name,), False, plan.default_rows())


def _continued(
    before: GaussianMixture, problem: MixtureProblem, schema: Schema, varying: np.ndarray, n_components: int
) -> MixtureParams | None:
    """Return the parameters of an earlier fit as a start of this problem; None if they are not compatible."""
    params, old, new = before.params_, before.problem_.family.gaussian, problem.family.gaussian
    same_columns = before.schema_.columns == schema.columns and np.array_equal(before.varying_, varying)
    same_family = type(problem.family) is type(before.problem_.family) and type(new) is type(old)
    if not same_columns or not same_family or params.n_components != n_components:
        return None
    if old is None or new is None or params.components.gaussian is None:
        return params
    if old.groups != new.groups:
        return None
    means = params.components.gaussian.means + (old.center - new.center)  # relative to the center of the new rows
    gaussian = replace(params.components.gaussian, means=means)
    return replace(params, components=replace(params.components, gaussian=gaussian))
