"""Bayes classifier with mixture components shared by all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from mixent.base.params import check_count
from mixent.core.observers import Progress
from mixent.data import Labels
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, FitPlan, Outcome
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search, read_training

if TYPE_CHECKING:
    from mixent.mixtures.training import TrainingPlan


class SharedMixtureClassifier(BayesMixture):
    """Bayes classifier with mixture components shared by all classes: p(x | class) = sum_k a_ck f_k(x).

    With joint weights W_ck = p_c a_ck, label likelihoods l_n (one-hot for a known label, all ones for an unlabelled
    row), a_n = log sum_ck l_nc W_ck f_k(x_n)  and  b_n = log sum_ck W_ck f_k(x_n).  Maximizes

    * training="likelihood":   sum_n w_n a_n + log prior(f)  by EM (Theorem 3.1 of [1]_);
    * training="conditional":  sum_n w_n [a_n - blend b_n] + (1 - blend) log prior(f) - penalty,  which for blend = 1 is
      the conditional log-likelihood sum log p(class | x) (Theorem 4.2 of [1]_), by extended Baum-Welch [2]_;
    * training="error":        - sum_n w_n / (1 + (p_n / (1 - p_n))^sharpness) - penalty  with p_n = p(label_n | x_n),
      a smoothed count of errors [3]_.

    The penalty regularizes training towards its initial solution [4]_: `anchor` pseudo-rows of each component times
    KL(initial component || component), and likewise for the weights. The initial solution is that of maximum
    likelihood, with shared components or with the components divided among the classes, whichever gives the higher
    objective. The objective never decreases.

    If classes consist of the same hidden groups in different proportions, this model needs fewer parameters than a
    mixture for each class. Missing values are integrated out exactly for every kind of training.

    Parameters
    ----------
    n_components : int or "auto", default="auto"
        Total number of components; "auto" selects it, see `search`.
    covariance : str, list or "auto", default="auto"
        Covariance structure (see `GaussianMixture`). With n_components="auto", the structure is selected from a list,
        or from VVI, EEE and VVV with "auto"; otherwise "auto" is "VVV".
    prior : "auto", float, None or MixturePrior, default="auto"
        Number of pseudo-rows that shrink each covariance towards a common covariance within the components; "auto" is
        the number of numeric columns + 2, None is maximum likelihood. A `MixturePrior` also has the smoothing of
        categorical columns.
    class_prior : "empirical", (C,) array or dict of label -> probability, default="empirical"
        Class priors: estimated with the other parameters, or fixed at these values.
    training : "likelihood", "conditional", "error", Conditional or MinimumError, default="likelihood"
        Objective of the training, see above. With "likelihood", the model also describes the distribution of the rows;
        the others give better decisions if the densities are not exactly Gaussian.
    search : None, str or Search, default=None
        How components are found and, with n_components="auto", selected: a criterion ("cv", "bic", "icl", "dic",
        "dic_robust", "cbic") or a `Search`. The default criterion is "cv", with up to 12 components.
    outliers : None, "noise" or "t", default=None
        How rows far from all components are modeled, see `GaussianMixture`. With "noise", each class has its own weight
        of the noise component. Only used with training="likelihood".
    init : "kmeans++", "random" or (n, K) array, default="kmeans++"
        Initialization of the clusters: k-means, randomly drawn rows as centers, or responsibilities.
    n_init : int, default=2
        Number of initializations: the first, third, ... cluster the rows of each class, the others all rows together.
        Each is run for a few passes, and the best is continued.
    tol : float, default=1e-5
        Training stops when the gain of a pass is below this value, in nats per row.
    max_iter : int, default=500
        Maximum number of iterations (passes over the data).
    categorical : "auto" or list, default="auto"
        Columns to treat as categorical, regardless of their type.
    forgetting : float, default=0.0
        Share by which each call of `partial_fit` reduces the weight of earlier rows.
    checkpoint : str, Path or None, default=None
        File in which `fit` records its state every few seconds, and from which the same `fit` resumes after it was
        interrupted. It does not change the result, and is removed after the fit.
    random_state : int, RandomState or None, default=None
        Seed of the initialization and of the folds.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result is identical to the last bit for any number.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    class_prior_ : (C,) array
        Class priors.
    weights_ : (C, K) array
        Joint weights of class and component.
    noise_weight_ : (C,) array
        Joint weights of class and noise; 0 without noise.
    class_given_component_ : (C, K) array
        p(class | component).
    component_class_ : (K,) array of int
        Index of the most probable class of each component.
    means_, covariances_, precisions_, degrees_of_freedom_, category_probabilities_
        Parameters of the components, see `GaussianMixture`.
    n_components_ : int
        Number of components.
    covariance_ : str
        Covariance structure.
    prior_rows_ : float or None
        Number of pseudo-rows of the prior.
    n_parameters_ : int
        Number of free parameters.
    temperature_ : float
        T in p(class | x) proportional to p(class) p(x | class)^T; less than 1 if "auto" found that the model is
        overconfident on held-out rows.
    uniform_share_ : float
        e in the probabilities (1 - e) p(class | x) + e / C that `predict_proba` returns: 0.001 with
        n_components="auto" and the criterion "cv", whose losses are bounded in the same way, else 0. `predict`,
        `decision_function`, `explain` and `adjust_priors` use p(class | x); `decision` uses `predict_proba`.
    run_ : Run
        Result of the optimization (of the discriminative training, if any): `status`, `trace`, `objective`.
    search_ : list of dict
        The models tried: n_components, covariance, the criteria or log_loss and error, and whether it was `chosen`.
    path_ : list of Stage
        The stages of incremental growth: n_components, log_likelihood, n_free, evaluations (rows x components), fitted.
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
        Expected sufficient statistics of the training rows, from which `partial_fit` continues; None after
        discriminative training.

    See Also
    --------
    MixtureClassifier : Bayes classifier with a mixture for each class.
    GaussianMixture : Mixture without classes.

    References
    ----------
    .. [1] Baras, A. S. and Baras, J. S. Context-dependent multi-class classification with unknown observation and class
       distributions with applications to bioinformatics. Sections III and IV (document 000).
    .. [2] Gopalakrishnan, P. S., Kanevsky, D., Nadas, A. and Nahamoo, D. (1991). An inequality for rational functions
       with applications to some statistical estimation problems. IEEE Transactions on Information Theory, 37(1),
       107-113.
    .. [3] Juang, B. H. and Katagiri, S. (1992). Discriminative learning for minimum error classification. IEEE
       Transactions on Signal Processing, 40(12), 3043-3054.
    .. [4] Povey, D. and Woodland, P. C. (2002). Minimum phone error and I-smoothing for improved discriminative
       training. IEEE International Conference on Acoustics, Speech, and Signal Processing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import SharedMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SharedMixtureClassifier(4, "EEE", training="conditional", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _groups = {"prior": MixturePrior.read, "training": read_training, "search": Search.reader("cv", 12)}
    _unused = ("per_class",)
    _shares_components = True

    def __init__(
        self,
        n_components: int | str = "auto",
        covariance: str | list = "auto",
        *,
        prior: str | float | MixturePrior | None = "auto",
        class_prior: Any = "empirical",
        training: str | Conditional | MinimumError = "likelihood",
        search: str | Search | None = None,
        outliers: str | None = None,
        init: Any = "kmeans++",
        n_init: int = 2,
        tol: float = 1e-5,
        max_iter: int = 500,
        categorical: Any = "auto",
        forgetting: float = 0.0,
        checkpoint: str | PathLike[str] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.prior = prior
        self.class_prior = class_prior
        self.training = training
        self.search = search
        self.outliers = outliers
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.forgetting = forgetting
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _check(self) -> None:
        super()._check()
        check_count("n_init", self.n_init)
        if isinstance(self.covariance, dict):
            raise ValueError("covariance must be one structure, since all classes share the components; got a dict")

    def _fit_plan(self, plan: FitPlan, labels: Labels, training: TrainingPlan | None, show: Progress | None) -> Outcome:
        from mixent.mixtures.selection import grown_shared, select_shared
        from mixent.mixtures.training import shared_starts, train

        if isinstance(self.n_components, str):
            outcome = select_shared(plan, self._structures(), show)
        elif self._group("search").grown:
            outcome = grown_shared(plan, self._candidate(plan), show)
        else:
            candidate = self._candidate(plan)
            self._start(plan, candidate)
            fitted, _ = plan.fit(candidate, None if training else show, starts=plan.parts(candidate, self.n_init))
            outcome = Outcome(fitted, candidate)
        if training is None:
            return outcome

        self._warn(outcome)
        starts = shared_starts(plan, outcome.candidate, outcome.fitted)
        # the models of the folds were trained, too, so the temperature is that of the trained model
        return replace(outcome, fitted=train(plan, starts, training, show))

    def _candidate(self, plan: FitPlan) -> Candidate:
        count = check_count("n_components", self.n_components, also="'auto'")
        if count > plan.table.n_rows:
            raise ValueError(f"n_components={count} needs at least as many rows; X has {plan.table.n_rows}")
        names = self._structures() or ["VVV"]
        if not isinstance(self.covariance, str):
            raise ValueError("a list of covariances needs n_components='auto'; set it, or pass one structure")
        from mixent.mixtures.search import shared_candidate

        return shared_candidate(plan, count, names[0])

    def _set_n_components(self) -> None:
        self.n_components_ = self.params_.n_components
