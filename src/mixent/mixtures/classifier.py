"""Bayes classifier with a mixture for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.params import check_count, check_flag
from mixent.core.observers import Progress
from mixent.data import Labels
from mixent.families.gaussian.structures import get_structure
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, FitPlan, Outcome
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search, read_training

if TYPE_CHECKING:
    from mixent.mixtures.training import TrainingPlan


class MixtureClassifier(BayesMixture):
    """Bayes classifier with a mixture for each class: p(class | x) is proportional to p(class) p(x | class).

    Maximizes  sum_n w_n log sum_c l_nc p_c sum_k a_ck f_ck(x_n) + log prior(f)  by EM, where l_n is the label
    likelihood of row n: one-hot for a known label, a distribution for an uncertain one, all ones for an unlabelled row
    (semi-supervised learning). Each update maximizes a lower bound that touches the objective, so the objective
    never decreases. The components are products of a Gaussian (numeric columns) and of independent categorical
    distributions; missing values are integrated out exactly.

    With one component per class this is quadratic discriminant analysis; with `covariance="EEE", across_classes=True`,
    linear discriminant analysis; with other structures, eigenvalue decomposition discriminant analysis [2]_; with
    several components, mixture discriminant analysis [1]_. With `training="conditional"` or `"error"`, the fitted
    mixtures are then trained to discriminate between the classes; see `SharedMixtureClassifier` for the objectives.

    Parameters
    ----------
    n_components : int, dict or "auto", default="auto"
        Number of components of each class, the same for all classes or by class label. "auto" selects numbers of
        components and covariance structure together, see `search`.
    covariance : str, dict, list or "auto", default="auto"
        Covariance structure (see `GaussianMixture`), the same for all classes or by class label. With
        n_components="auto", a list restricts the search; otherwise "auto" is "VVV".
    across_classes : bool, default=False
        Whether what is "equal" in the covariance structure is equal for all classes, or only within each class.
    prior : "auto", float, None or MixturePrior, default="auto"
        Number of pseudo-rows that shrink each covariance towards a common covariance within the components; "auto" is
        the number of numeric columns + 2, or is selected together with the components. None is maximum likelihood. A
        `MixturePrior` also has the smoothing of categorical columns.
    class_prior : "empirical", (C,) array or dict of label -> probability, default="empirical"
        Class priors: estimated with the other parameters, or fixed at these values.
    training : "likelihood", "conditional", "error", Conditional or MinimumError, default="likelihood"
        Objective of the training: the joint likelihood, the conditional likelihood of the labels (`Conditional`), or a
        smoothed error rate (`MinimumError`).
    search : None, str or Search, default=None
        How components are found and, with n_components="auto", selected: a criterion ("cv", "bic", "icl", "dic",
        "dic_robust", "cbic") or a `Search`. The default criterion is "cv", with up to 8 components for each class.
    outliers : None, "noise" or "t", default=None
        How rows far from all components are modeled, see `GaussianMixture`. With "noise", each class has its own weight
        of the noise component. Only used with training="likelihood".
    init : "kmeans++", "random" or (n, K) array, default="kmeans++"
        Initialization of the components of each class: k-means, randomly drawn rows as centers, or responsibilities
        with a column for each of the K components of all classes, in the order of `classes_`. Of a labelled row, only
        those for the components of its class are used.
    tol : float, default=1e-5
        EM stops when the gain of a pass is below this value, in nats per row.
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
    component_class_ : (K,) array of int
        Index of the class of each component.
    class_given_component_ : (C, K) array
        p(class | component).
    means_, covariances_, precisions_, degrees_of_freedom_, category_probabilities_
        Parameters of the components, see `GaussianMixture`.
    n_components_ : (C,) array of int
        Number of components of each class.
    covariance_ : list of str
        Covariance structure of each class.
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
        Result of the optimization: `status`, `trace` (one entry per pass), `objective`.
    search_ : list of dict
        The models tried: n_components, covariance, the criteria or log_loss and error, and whether it was `chosen`.
    path_ : list of lists of Stage
        For each class the stages of incremental growth [3]_: n_components, log_likelihood, n_free, evaluations (rows x
        components), fitted.
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
    SharedMixtureClassifier : Bayes classifier with components shared by all classes.
    GaussianMixture : Mixture without classes.
    MaxEntClassifier : Maximum entropy classifier with features of mixtures.
    sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis : One Gaussian per class.

    References
    ----------
    .. [1] Hastie, T. and Tibshirani, R. (1996). Discriminant analysis by Gaussian mixtures. Journal of the Royal
       Statistical Society, Series B, 58(1), 155-176.
    .. [2] Bensmail, H. and Celeux, G. (1996). Regularized Gaussian discriminant analysis through eigenvalue
       decomposition. Journal of the American Statistical Association, 91(436), 1743-1748.
    .. [3] Mansjur, D. S. and Juang, B. H. Incremental learning of mixture models for simultaneous estimation of class
       distribution and inter-class decision boundaries. Sections 2 and 3 (document 002).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureClassifier(n_components=1, covariance="VVV").fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    _groups = {"prior": MixturePrior.read, "training": read_training, "search": Search.reader("cv", 8)}

    def __init__(
        self,
        n_components: int | dict | str = "auto",
        covariance: str | dict | list = "auto",
        *,
        across_classes: bool = False,
        prior: str | float | MixturePrior | None = "auto",
        class_prior: Any = "empirical",
        training: str | Conditional | MinimumError = "likelihood",
        search: str | Search | None = None,
        outliers: str | None = None,
        init: Any = "kmeans++",
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
        self.across_classes = across_classes
        self.prior = prior
        self.class_prior = class_prior
        self.training = training
        self.search = search
        self.outliers = outliers
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.forgetting = forgetting
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _fit_plan(self, plan: FitPlan, labels: Labels, training: TrainingPlan | None, show: Progress | None) -> Outcome:
        from mixent.mixtures.selection import grown_classes, select_classes
        from mixent.mixtures.training import tempered, train

        if isinstance(self.n_components, str):
            outcome = select_classes(plan, self._structures(), show)
        elif self._group("search").grown:
            outcome = grown_classes(plan, self._candidate(labels.classes, plan), show)
        else:
            candidate = self._candidate(labels.classes, plan)
            self._start(plan, candidate)
            outcome = Outcome(plan.fit(candidate, None if training else show)[0], candidate)
        if training is None:
            return outcome

        self._warn(outcome)

        def starts(part: FitPlan) -> list[Fitted]:
            fitted = outcome.fitted if part is plan else part.fit(outcome.candidate)[0]
            return [tempered(fitted, outcome.temperature)]

        return replace(outcome, fitted=train(plan, starts, training, show), temperature=1.0)

    def _set_n_components(self) -> None:
        self.n_components_ = (self.weights_ > 0).sum(axis=1)

    def _check(self) -> None:
        super()._check()
        check_flag("across_classes", self.across_classes)

    def _check_classes(self, plan: FitPlan) -> None:
        missing = np.flatnonzero(plan.class_rows() == 0)
        if len(missing) == 0:
            return
        searched = isinstance(self.n_components, str)
        counts = () if searched else by_class("n_components", self.n_components, plan.classes, int)
        if searched or max(counts[c] for c in missing) > 1:
            raise ValueError(
                f"class {plan.classes.tolist()[missing[0]]!r} has no rows in the first batch, so that its components "
                "cannot be initialized; give rows of every class, or set n_components=1"
            )

    def _candidate(self, classes: np.ndarray, plan: FitPlan) -> Candidate:
        counts = by_class(
            "n_components", self.n_components, classes, lambda v: check_count("n_components", v, also="'auto'")
        )
        if max(counts) > plan.table.n_rows:
            raise ValueError(f"n_components={max(counts)} needs at least as many rows; X has {plan.table.n_rows}")
        covariance = "VVV" if isinstance(self.covariance, str) and self.covariance == "auto" else self.covariance
        if isinstance(covariance, list):
            raise ValueError("a list of covariances needs n_components='auto'; set it, or pass one structure")
        names = by_class("covariance", covariance, classes, lambda v: get_structure(v, also="'auto'").name)
        if self.across_classes and len(set(names)) > 1:
            raise ValueError("across_classes=True needs one covariance structure for all classes")
        return Candidate(counts, names, bool(self.across_classes), plan.default_rows())


def by_class(name: str, value: Any, classes: np.ndarray, read: Callable[[Any], Any]) -> tuple:
    """Return the value of each class: the same for all, or that of a dict."""
    if not isinstance(value, dict):
        return (read(value),) * len(classes)
    labels = classes.tolist()
    unknown = [k for k in value if k not in labels]
    missing = [c for c in labels if c not in value]
    if unknown or missing:
        problem = f"unknown class {unknown[0]!r}" if unknown else f"no entry for class {missing[0]!r}"
        raise ValueError(f"{name}: {problem}; the classes are {', '.join(map(repr, labels))}")
    return tuple(read(value[c]) for c in labels)
