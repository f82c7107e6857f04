"""Base class of the Bayes classifiers with mixtures: `fit`, `partial_fit`, explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from mixent.base.background import column_values, mixed, play
from mixent.base.bounded_loss import log_with_uniform
from mixent.base.capabilities import CapableTags, able, no, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.convergence import warn_unconverged
from mixent.base.explanation import EXACT, MARGINAL, Explanation, Rivals, shapley_name
from mixent.base.params import check_choice, check_count, check_positive, check_share
from mixent.base.priors import read_class_prior
from mixent.base.progress import progress_bar
from mixent.base.shapley import Games
from mixent.base.text import count
from mixent.core.arrays import Array
from mixent.core.observers import Progress
from mixent.data import (
    Labels,
    Schema,
    Table,
    check_spread,
    classes_of,
    keep_notes,
    read_features,
    read_labels,
    read_weights,
)
from mixent.families.gaussian.structures import get_structure
from mixent.mixtures.conditional import ConditionalDistribution
from mixent.mixtures.explain import explain_rows
from mixent.mixtures.fit_plan import Candidate, FitPlan, Outcome
from mixent.mixtures.given_start import check_init, read_start, within_classes
from mixent.mixtures.model import MixtureModel, select_columns, varying_columns
from mixent.mixtures.online import with_past
from mixent.mixtures.options import by_likelihood, training_name
from mixent.mixtures.outliers import check_gaussian, check_outliers, keeps_statistics
from mixent.warn import warn_notes

if TYPE_CHECKING:
    from mixent.mixtures.training import TrainingPlan


def _keeps_statistics(est: Any) -> bool:
    """Whether the estimator has `partial_fit`, as scikit-learn's `available_if` requires."""
    if not by_likelihood(est.training):
        raise AttributeError(f"partial_fit is only available with training='likelihood'; got {est.training!r}")
    return keeps_statistics(est)


class BayesMixture(ProbabilisticClassifier, MixtureModel):
    """Bayes classifier with joint weights of class and component, W (C, K), and component densities.

    A subclass defines `_fit_plan(plan, labels, training, show) -> Outcome`.
    """

    _unused: ClassVar[tuple[str, ...]] = ()  # parameters of `Search` that the estimator does not use
    uniform_share_: float = 0.0  # of the uniform distribution in the probabilities
    _shares_components: ClassVar[bool] = False  # whether every class may use every component
    covariance_: Any

    def __sklearn_tags__(self) -> CapableTags:
        tags = super().__sklearn_tags__()
        if not by_likelihood(self.training):
            tags = able(tags, batches=no('with training="likelihood"'))
        return able(
            tags,
            soft_labels=yes("used as likelihoods of the true label"),
            absent_labels=yes("unlabelled rows contribute to the densities"),
            explanations=yes("by column or component"),
        )

    def _fit_plan(self, plan: FitPlan, labels: Labels, training: TrainingPlan | None, show: Progress | None) -> Outcome:
        raise AttributeError(f"{type(self).__name__} must define _fit_plan")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None and null are missing values, text columns are categorical.
        y : (n,) labels or (n, C) label probabilities
            None, NaN or "" for an unlabelled row.
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, None)

    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        from mixent.mixtures.training import training_plan  # loaded when used

        self._check()
        training = training_plan(self._group("training"))
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        labels = read_labels(y, table.n_rows, classes=classes)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        weight = read_weights(sample_weight, table.n_rows)
        columns = varying_columns(table.X, weight)
        plan = self._make_plan(table, columns[0], labels, weight)
        if classes is not None:
            self._check_classes(plan)
        with progress_bar(self.progress, "classifier") as show, self._recorded(plan):
            outcome = self._fit_plan(plan, labels, training, show)
        self._set_fitted(outcome, labels, table.schema)
        self.varying_, self.constants_ = columns
        self._warn(outcome)
        return self

    def _warn(self, outcome: Outcome) -> None:
        warn_unconverged(outcome.fitted.run, type(self).__name__, searched=isinstance(self.n_components, str))

    @available_if(_keeps_statistics)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the classifier with a batch of rows; the rows of earlier batches are not needed.

        The first call fits the classifier like `fit` (a call of `fit` also counts as the first call). It determines the
        columns, components and prior, and should have enough rows. Each later call runs EM on its batch, with the
        expected statistics of all earlier rows as pseudo-rows; the log-likelihood of the batch plus the expected
        log-likelihood of the earlier rows never decreases. The statistics of earlier rows are multiplied by
        1 - `forgetting` in each call.

        A later batch may have labels of a new class, with a note (`DataWarning`) unless `classes` announces it. The
        class is added, with one component of its own that is initialized from its rows in the batch and has the prior
        of the fitted model. Where classes share components, all classes may use the new one.

        Parameters
        ----------
        X, y, sample_weight
            See `fit`.
        classes : list of all class labels, optional
            Needed in the first call if its rows do not contain all classes. In later calls it may have new classes. A
            class without rows needs a single component, or shared ones; its probability is practically 0 until it has
            rows (e / C with `uniform_share_` e).

        Returns
        -------
        self
        """
        check_share("forgetting", self.forgetting)
        if not hasattr(self, "params_"):
            return self._fit(X, y, sample_weight, classes)
        self._check_statistics()
        table = read_features(self, X, reset=False)
        labels = read_labels(y, table.n_rows, classes=self._known_classes(y, classes), some=False)
        weight = read_weights(sample_weight, table.n_rows)
        new = self._check_new_classes(labels, announced=classes is not None)
        plan = self._make_plan(table, self.varying_, labels, weight, some=False)
        if len(new):
            self._add_classes(plan, new)
        self._update(plan)
        self.class_prior_ = self.params_.weights.sum(axis=1)
        return self

    def _known_classes(self, y: Any, classes: Any) -> np.ndarray:
        """Return the classes of the model and those that are new: in `classes` if given, else in y."""
        if classes is not None:
            if not np.isin(self.classes_, known := np.unique(classes)).all():
                raise ValueError(
                    f"classes must include those of the model, {self.classes_.tolist()}; got {list(classes)!r}"
                )
            return known
        try:
            present = classes_of(y)
        except ValueError:  # label probabilities, or no labels; `read_labels` checks them
            return self.classes_
        numbers = present.dtype.kind in "iuf" and self.classes_.dtype.kind in "iuf"
        alike = numbers or present.dtype.kind == self.classes_.dtype.kind
        return np.union1d(self.classes_, present) if alike else self.classes_  # labels of another type are an error

    def _check_new_classes(self, labels: Labels, *, announced: bool) -> np.ndarray:
        """Return the positions of new classes, with a note on them unless they were announced."""
        new = np.flatnonzero(~np.isin(labels.classes, self.classes_))
        if not len(new):
            return new
        names = labels.classes[new].tolist()
        check_gaussian(self, "a new class in partial_fit")
        if self.problem_.class_prior is not None:
            raise ValueError(
                f"class_prior has no entry for the new class {names[0]!r}; fit again on all rows, with priors of all "
                "classes"
            )
        if not announced:
            counts = labels.likelihood[labels.known][:, new].sum(axis=0)
            texts = [f"{name!r} ({count(int(n), 'row')})" for name, n in zip(names, counts)]
            warn_notes([f"y has labels of a new class, which is added to the classes: {', '.join(texts)}"])
        return new

    def _add_classes(self, plan: FitPlan, new: np.ndarray) -> None:
        """Add classes and their components to the fitted model, before EM on the rows of the plan."""
        from mixent.mixtures.new_classes import Places, extend, initialize, new_structure  # loaded when used

        own = new[plan.class_rows()[new] > 0] if self._shares_components else new
        places = Places.of(self.params_.weights, self.classes_, plan.classes, own, self._shares_components)
        extended = extend(self.problem_, self.params_, self.statistics_, places, self._shares_components)
        past = extended.statistics.times(1.0 - self.forgetting)
        params = initialize(with_past(extended.problem, past), extended.params, plan, places, self._shares_components)
        if not self._shares_components:
            gaussian, names = self.problem_.family.gaussian, self.covariance_
            structure = names[0] if gaussian is None else new_structure(gaussian)
            self.covariance_ = [structure if c < 0 else names[c] for c in places.classes.tolist()]
        self.problem_, self.params_, self.statistics_ = extended.problem, params, extended.statistics
        self.classes_, self.search_ = plan.classes, []  # the search was one without these classes
        self._set_n_components()

    def _set_n_components(self) -> None:
        """Set `n_components_` from the fitted weights."""

    def _check(self) -> None:
        if isinstance(self.n_components, str):
            if self.n_components != "auto":
                check_count("n_components", self.n_components, also="'auto'")
            if isinstance(self.covariance, dict):
                raise ValueError("covariance by class needs n_components by class or as a number, not 'auto'")
            self._structures()
        check_count("max_iter", self.max_iter)
        check_outliers(self.outliers)
        if self.outliers is not None and not by_likelihood(self.training):
            raise ValueError(
                f"outliers={self.outliers!r} is only used with training='likelihood'; got {training_name(self)!r}"
            )
        check_positive("tol", self.tol, zero=True)
        check_share("forgetting", self.forgetting)
        self._group("prior").check()
        search = self._group("search")
        search.check(type(self).__name__, unused=self._unused)
        if isinstance(self.init, Mapping):
            raise ValueError("init must be 'kmeans++', 'random' or responsibilities of shape (n, K); got a dict")
        check_init(self.init, searched=isinstance(self.n_components, str), grown=search.grown)
        if not isinstance(self.n_components, str):
            search.check_idle(self.n_components, "cv")

    def _check_classes(self, plan: FitPlan) -> None:
        """Check that every class has the rows that it needs in the first batch."""

    def _structures(self) -> list[str] | None:
        if isinstance(self.covariance, str) or not np.iterable(self.covariance):
            return None if self.covariance == "auto" else [get_structure(self.covariance, also="'auto'").name]
        names = [get_structure(name).name for name in self.covariance]
        if not names:
            raise ValueError("covariance is an empty list; name at least one structure")
        return names

    def _make_plan(
        self, table: Table, varying: np.ndarray, labels: Labels, weight: Array | None, *, some: bool = True
    ) -> FitPlan:
        """Return the plan of these rows and labels; with `some`, at least one row must be labelled."""
        soft = None if labels.codes is not None else labels.likelihood
        codes = labels.codes if labels.codes is not None else labels.likelihood.argmax(axis=1)
        unlabelled = np.ptp(labels.likelihood, axis=1) == 0  # all ones, or equal probabilities
        codes = np.where(unlabelled, -1, codes)
        if some and unlabelled.all():
            raise ValueError("y has no row with a label that favors a class; label some rows of each class")
        if some and weight is not None and not weight[~unlabelled].any():
            raise ValueError("every labelled row has sample_weight 0; give some labelled rows of each class a weight")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        block = select_columns(table, varying, soft, weight)
        prior = read_class_prior(self.class_prior, labels.classes)
        return FitPlan(self, block, table.schema.sizes, seed, codes, labels.classes, prior)

    def _start(self, plan: FitPlan, candidate: Candidate) -> None:
        """Start the plan from the responsibilities passed as `init`, if any."""
        start = read_start(self.init, plan.table.n_rows, candidate.n_components, 0, np.empty(0, dtype=int))
        plan.start = within_classes(start, plan.codes, candidate.mask(plan.n_classes), plan.classes)

    def _set_fitted(self, outcome: Outcome, labels: Labels, schema: Schema) -> None:
        fitted, candidate = outcome.fitted, outcome.candidate
        self.problem_, self.params_, self.schema_ = fitted.problem, fitted.params, schema
        self.statistics_ = fitted.statistics
        self.run_ = replace(fitted.run, last=None)
        self.classes_ = labels.classes
        self.class_prior_ = fitted.params.weights.sum(axis=1)
        self.covariance_ = candidate.structures[0] if candidate.shared else list(candidate.structures)
        self.prior_rows_ = candidate.prior_rows
        self.search_, self.temperature_, self.path_ = outcome.records, outcome.temperature, outcome.path
        self.uniform_share_ = outcome.uniform_share
        self._set_n_components()

    def decision_function(self, X: Any) -> Array:
        """Return the log-odds of the second class, or with more than two classes log p(class | x), in nats.

        They are those of the model, without the share of the uniform distribution that `predict_proba` has.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array for two classes, else (n, C) array with columns in the order of `classes_`.
        """
        log_proba = self._log_posterior(X)
        return log_proba[:, 1] - log_proba[:, 0] if len(self.classes_) == 2 else log_proba

    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes.

        With components selected by cross-validation they are (1 - e) p(class | x) + e / C, see `uniform_share_`.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C) array, columns in the order of `classes_`; rows sum to 1.
        """
        return super().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`, in nats.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, C) array, columns in the order of `classes_`.
        """
        log_proba = self._log_posterior(X)
        return log_with_uniform(log_proba, self.uniform_share_) if self.uniform_share_ else log_proba

    def _log_joint(self, X: Any) -> Array:
        """Return log p(class) + T log p(x | class): the temperature applies to the densities, not to the priors."""
        joint = self._each(self._read(X), self.problem_.log_joint, len(self.classes_))
        if self.temperature_ == 1.0:
            return joint
        log_prior = np.log(self.class_prior_)
        return log_prior + self.temperature_ * (joint - log_prior)

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # so that a class that seems absent from the batch remains possible
        prior = prior / prior.sum()
        within = self.params_.weights / self.params_.weights.sum(axis=1, keepdims=True)
        self.params_ = replace(self.params_, weights=prior[:, None] * within)
        if self.problem_.class_prior is not None:
            self.problem_ = replace(self.problem_, class_prior=prior)
        if self.statistics_ is not None:  # `partial_fit` continues with these priors
            self.statistics_ = self.statistics_.with_priors(prior)
        self.class_prior_ = prior

    def _sample_label(self, label: np.ndarray, component: np.ndarray) -> np.ndarray:
        return self.classes_[label]

    def impute(self, X: Any, y: Any = None) -> Any:
        """Replace missing values by their conditional expectations (numeric) or most probable values (categorical).

        Observed values are returned unchanged; missing values of integer columns are replaced by integers.

        Parameters
        ----------
        X : table of n rows
        y : (n,) labels or (n, C) label probabilities, optional
            With labels, missing values are those expected in the class of the row. None, NaN or "" for a row without a
            label, which is imputed from all classes.

        Returns
        -------
        A DataFrame like X (same library, index, columns and types), or an array if X is one (of objects if there are
        categories).
        """
        return self._imputed(X, y)

    def conditional(self, X: Any, y: Any = None) -> ConditionalDistribution:
        """Return the exact distribution of the missing values of each row, given its observed values.

        It is a mixture: of Gaussians in the missing numeric columns, and of independent categorical distributions in
        the missing categorical columns. Its weights are those of the densities, without `temperature_`.

        Parameters
        ----------
        X : table of n rows
        y : (n,) labels or (n, C) label probabilities, optional
            With labels, the distribution is also given the class of the row; None, NaN or "" for a row without a label.

        Returns
        -------
        ConditionalDistribution
            With the methods `mean`, `std`, `quantile`, `interval`, `probabilities`, `log_density` and `sample`.
        """
        return self._conditional(X, y)

    def sample_conditional(self, X: Any, n_samples: int = 1, *, y: Any = None, random_state: Any = None) -> list[Any]:
        """Draw the missing values of X from their distribution given the observed values, for multiple imputation.

        Parameters
        ----------
        X : table of n rows
        n_samples : int
            Number of tables.
        y : (n,) labels or (n, C) label probabilities, optional
            With labels, missing values are drawn given the class of the row. If the completed tables are used to study
            the relation of X and y, pass y: otherwise the relation is weakened.
        random_state : int, RandomState or None
            None uses the `random_state` of the estimator.

        Returns
        -------
        list of `n_samples` tables
            Each like X (same library, index, columns and types) without missing values. Observed values are unchanged;
            integer columns have integers.
        """
        return self._sample_conditional(X, n_samples, random_state, y)

    def _label_likelihood(self, y: Any, n_rows: int) -> Array | None:
        return None if y is None else read_labels(y, n_rows, classes=self.classes_, some=False).likelihood

    @property
    def weights_(self) -> Array:
        """(C, K) joint weights of class and component."""
        return self.params_.weights[:, : self.params_.n_components]

    @property
    def noise_weight_(self) -> Array:
        """(C,) joint weights of class and noise."""
        return self.params_.weights[:, self.params_.n_components :].sum(axis=1)

    @property
    def component_class_(self) -> np.ndarray:
        """(K,) index of the class of each component, or of its most probable class."""
        return self.weights_.argmax(axis=0)

    @property
    def class_given_component_(self) -> Array:
        """(C, K) p(class | component); columns sum to 1."""
        return self.weights_ / self.weights_.sum(axis=0)

    def explain(self, X: Any, label: Any = None, rival: Any = None, *, by: str = "column") -> Explanation:
        """Return the contribution of each column, or of each component, to the log-odds of one class against another.

        By column: Shapley values of v(S), the log-odds given the values of the columns S, with the other columns
        integrated out; v(none) are the log-odds of the class priors. All sets S if there are at most 10 columns, else
        those along orders of the columns drawn with a fixed seed. A missing value contributes 0.

        Parameters
        ----------
        X : table of n rows
        label : class label, optional
            The class to explain (default: the most probable class of each row).
        rival : class label, optional
            The class to compare with (default: the most probable other class of each row).
        by : {"column", "component"}, default="column"

        Returns
        -------
        Explanation
            The log-odds in nats, and the contributions of the class priors and of each column or component, which add
            up exactly.
        """
        check_choice("by", by, ("column", "component"))
        table = self._read(X)
        rivals = Rivals.of(self._finite_joint(table), self.classes_, label, rival, X)
        return self._explain_columns(table, rivals) if by == "column" else self._explain_components(table, rivals)

    def _explain_columns(self, table: Table, rivals: Rivals) -> Explanation:
        names = [given.name for given in table.schema.used]
        games = Games.of(table.n_rows, 0, len(names))
        baseline, parts = play(games, lambda index: self._finite_joint(mixed(index, table)), rivals)
        method, values = shapley_name(MARGINAL, games.plan.sampled), partial(column_values, table)
        return rivals.explanation(baseline, parts, names, "column", "class priors", method, values)

    def _explain_components(self, table: Table, rivals: Rivals) -> Explanation:
        prior, parts = explain_rows(
            self._log_components(table),
            self.params_.weights,
            self.class_prior_,
            self.temperature_,
            rivals.ours,
            rivals.theirs,
        )
        K = self.params_.n_components
        names = [f"component {k}" for k in range(K)] + ["noise"] * (parts.shape[1] - K)
        owners = self._owners(table.n_rows)
        return rivals.explanation(prior, parts, names, "component", "class priors", EXACT, owners)

    def _owners(self, n_rows: int) -> Callable[[], list[list[str]]]:
        """Return the most probable class of each component as text, the same for every row."""
        shares = (self.params_.weights / self.params_.weights.sum(axis=0)).T
        texts = [f"{self.classes_[share.argmax()]} ({100 * share.max():.0f} %)" for share in shares]
        return lambda: [texts] * n_rows
