"""Classifiers combined by maximum entropy, with or without the input (document 004, sections 3.2.1 and 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import explain_table
from mixent.base.capabilities import able, yes
from mixent.base.executors import choose_executor
from mixent.base.explanation import Explanation
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_choice
from mixent.base.priors import read_class_prior
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.data import Table, listed
from mixent.ensemble.members import NamedMembers, Outputs
from mixent.ensemble.options import InputRegions, read_regions
from mixent.ensemble.regions import RegionMixture, column_positions, fit_regions
from mixent.ensemble.stacking import FOLDS, BaseStacking, FitInput
from mixent.families.gaussian.structures import get_structure
from mixent.maxent.features import Training, training_rows
from mixent.maxent.layout import Layout
from mixent.maxent.model import EntropyModel
from mixent.maxent.products import ProductLayout
from mixent.maxent.terms import Probabilistic
from mixent.warn import NotesTogether

CONSTRAINTS = ("full", "diagonal")


@dataclass(frozen=True)
class StackingFeatures:
    """The features of a stacking model: the outputs of each classifier, alone and paired with the input regions.

    P[C, C_i] follows from P[C, C_i, M_i]. Constraining it too changes only the shrinkage of the prior: towards equal
    weights of a classifier in all regions, rather than towards zero weights. A single region adds no constraint.
    """

    outputs: tuple[Probabilistic, ...]
    regions: tuple[Probabilistic, ...]  # of each classifier; empty without input regions
    seed: int

    def layout(self, rows: Training) -> Layout:
        """The layout, which does not depend on the rows: the features were computed out of fold.

        The folds that choose the variance of the prior therefore share classifiers, and its log-loss is slightly
        optimistic, as always when a stacking model is learned from the outputs of one round of folds.
        """
        pairs = [(output, region) for output, region in zip(self.outputs, self.regions) if len(region.values) > 1]
        return ProductLayout.crossing(self.outputs, pairs) if pairs else Layout.of(self.outputs)


class MaxEntStackingClassifier(EntropyModel, BaseStacking):
    """Stacking by maximum entropy: a conditional model of the class given the outputs of classifiers.

    Among all distributions P[class | outputs] that reproduce the training frequencies P[C, C_i] of every class with
    every label of every classifier i, the model is the one with the largest entropy [1]_ [2]_. Maximizes the dual
    objective

        sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 prior_variance),
        P[c | t] ~ exp(b_c + sum_i sum_l P[C_i = l | t] gamma_i(c, l)),

    which is multinomial logistic regression on the outputs of the classifiers. With `regions`, the frequencies
    P[C, C_i, M_i] are reproduced too: multipliers gamma_i(c, l, m), averaged over the regions m of the input space, are
    added to gamma_i(c, l), so the weight of a classifier depends on the input. A classifier that abstains contributes
    nothing. Solvers, prior and optimality certificates are those of `MaxEntClassifier`: a step is accepted only if it
    increases the objective, which therefore never falls.

    Parameters
    ----------
    estimators : list or ensemble
        Classifiers, as (name, classifier) or without names; a classifier whose outputs are columns of the table is
        given as (name, columns), see `OutputColumns` (the other classifiers do not use these columns); (name, "drop")
        is left out. Or one ensemble whose members are combined: `AdaBoostM1Classifier`, `WeightBoostClassifier`, or
        bagging, forests and AdaBoost of scikit-learn.
    regions : {"union", "class", "pooled"}, InputRegions or None, default=None
        Regions of the input space in which the classifiers are weighted differently: the components of a mixture of the
        columns, see `InputRegions`. [1]_ uses "class". None: the weights are the same everywhere.
    constraints : {"full", "diagonal"}, default="full"
        Constrain all of P[C, C_i], or only P[C = c, C_i = c].
    decisions : {"auto", "soft", "hard"}, default="auto"
        Outputs of the classifiers: probabilities if available, always probabilities, or labels only.
    inputs : dict, default=None
        Classifier name -> list of the columns that the classifier and its mixture of regions use. The other classifiers
        use all columns and share one mixture.
    prior_variance : "auto", float or None, default="auto"
        Variance of the Gaussian prior on the multipliers; see `MaxEntClassifier`.
    solver : {"auto", "bohning", "iis", "lbfgs"}, default="auto"
        Optimization algorithm; see `MaxEntClassifier`.
    class_prior : "empirical", array of shape (n_classes,) or dict of label -> probability, default="empirical"
        Class priors at prediction: training frequencies, or the given probabilities.
    cv : int, splitter, list of (train, test), "train" or "prefit", default=5
        Cross-validation folds of the outputs to which the model is fitted: those of held-out rows. "train": outputs
        on the training rows of the classifiers, as in [1]_ (overfitting classifiers then get too much weight);
        "prefit": outputs of classifiers that are already fitted.
    tol : float, default=1e-8
        Stop when the gain of a step is below this value, in nats per row; see `MaxEntClassifier`.
    max_iter : int, default=2000
        Maximum number of iterations (passes over the data).
    categorical : "auto" or list, default="auto"
        Columns that the mixtures of regions treat as categories, whatever their type.
    random_state : int, RandomState or None, default=None
        Seed of the folds, of the mixtures, and of classifiers whose own `random_state` is None.
    n_jobs : int or None, default=None
        Number of folds in which classifiers are trained in parallel; None: one. Also the number of threads of the
        solver.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class priors.
    base_names_ : tuple of str
        Names of the classifiers (or stages).
    base_classes_ : tuple of ndarray
        Labels of each classifier.
    base_errors_ : ndarray of shape (M,)
        Error of each classifier on the training rows; out of fold, unless `cv` is "train" or "prefit".
    members_ : Members
        The classifiers as given, with their names and input columns.
    fitted_ : list of classifiers, or an ensemble
        The classifiers, trained on all rows.
    estimators_ : list of classifiers
        The same as a list, for an ensemble its members.
    named_estimators_ : Bunch
        Name -> fitted classifier.
    regions_ : tuple of RegionMixture
        The mixture of regions of each classifier, which several classifiers may share; empty without `regions`.
    layout_ : Layout
        The features; `feature_terms_` lists their names.
    params_ : Multipliers
        Lagrange multipliers, in nats: bias (C,) of the classes and cells (S, C) of the labels.
    run_ : Run
        Status, number of passes and trace of the optimizer.
    gap_ : float or None
        Upper bound on the remaining gain of the objective per row, in nats; None without a prior.
    gain_ : float or None
        Lower bound on the remaining gain of the objective per row, in nats.
    residual_ : float
        Largest |P_model - P_truth| over all constraints.
    truth_ : ndarray of shape (S + 1, n_classes)
        Training frequencies of each class (first row) and of each cell with each class.
    expected_ : ndarray of shape (S + 1, n_classes)
        The same probabilities under the model.
    entropy_ : float
        Conditional entropy H(class | outputs) of the model over the training rows, in nats.
    mean_logits_ : ndarray of shape (n_terms, n_classes)
        Mean contribution of each feature to the logits, over the training rows.
    strengths_ : ndarray of shape (n_terms,)
        Standard deviation over the training rows of the contribution of each feature to the log-odds, in nats.
    prior_variance_ : float or None
        Variance of the prior.
    prior_variances_tried_ : list of dict
        Cross-validated log-loss of each variance tried.
    background_ : Background or None
        The training rows, at most 50, with which `explain` compares a row; None if only the classifiers could read the
        table.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    HMMStackingClassifier : Combines classifiers by hidden Markov models of their sequence.
    MaxEntClassifier : Maximum entropy classification of tables.
    Fuser : Combines classifiers without common labelled rows.
    sklearn.ensemble.StackingClassifier : Stacking with any final classifier.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Sections 3.2.1 and 3.2.2
       (document 004).
    .. [2] Miller, D. J. and Pal, S. (2005). An extension of iterative scaling for joint decision-level and
       feature-level fusion in ensemble classification. IEEE Workshop on Machine Learning for Signal Processing.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from mixent import MaxEntStackingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MaxEntStackingClassifier([GaussianNB(), DecisionTreeClassifier()], random_state=0).fit(X, y)
    >>> model.base_names_
    ('gaussiannb', 'decisiontreeclassifier')
    >>> model.score(X, y) > 0.95
    True
    """

    _groups = {"regions": read_regions}

    def __init__(
        self,
        estimators: Any,
        *,
        regions: str | InputRegions | None = None,
        constraints: str = "full",
        decisions: str = "auto",
        inputs: dict | None = None,
        prior_variance: str | float | None = "auto",
        solver: str = "auto",
        class_prior: Any = "empirical",
        cv: Any = FOLDS,
        tol: float = 1e-8,
        max_iter: int = 2000,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimators = estimators
        self.regions = regions
        self.constraints = constraints
        self.decisions = decisions
        self.inputs = inputs
        self.prior_variance = prior_variance
        self.solver = solver
        self.class_prior = class_prior
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    _explained_by = "classifier"
    _absent_value = "abstains"

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), explanations=yes("by column, model-agnostic; or by classifier"))

    def explain(self, X: Any, label: Any = None, rival: Any = None, *, by: str = "column") -> Explanation:
        """Contribution of each column, or of each classifier, to the log-odds of one class against another.

        By column: Shapley values, the mean change of the log-odds when the value of a column replaces that of a
        training row, over `background_` (at most 50 training rows) and over orders of the columns. By classifier: the
        terms of the maximum entropy model relative to the average training row.

        Parameters
        ----------
        X : table of n rows
        label : class label, optional
            The class to explain (default: the most probable class of each row).
        rival : class label, optional
            The class it is compared with (default: the most probable other class of each row).
        by : {"column", "classifier"}, default="column"

        Returns
        -------
        Explanation
            The log-odds in nats, those of the average row, and the contribution of each column or classifier relative
            to it, which add up exactly.
        """
        check_choice("by", by, ("column", "classifier"))
        if by == "column":
            return explain_table(self, X, label, rival)
        return super().explain(X, label, rival)

    @classmethod
    def from_boosting(cls, boosting: Any, **options: Any) -> Self:
        """Create a model that combines the stages of an ensemble by maximum entropy rather than by its votes.

        Parameters
        ----------
        boosting : ensemble
            `AdaBoostM1Classifier`, `WeightBoostClassifier`, or bagging, forests and AdaBoost of scikit-learn. With
            cv="prefit", a fitted ensemble is used unchanged. Boosting on the rows of a fold yields other stages than
            boosting on all rows: with simple base classifiers, which hardly overfit, cv="train" can be more accurate.
        **options
            Parameters of the constructor.

        Returns
        -------
        The unfitted model.
        """
        return cls(boosting, **options)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the classifiers, then the maximum entropy model of their outputs.

        Parameters
        ----------
        X : table of n rows
            It is passed to the classifiers unchanged.
        y : (n,) labels
            Unlabelled rows (None, NaN or "") are left out. With cv="prefit" also (n, C) label probabilities.
        sample_weight : (n,) array, optional
            A classifier that does not support weights is trained without them, with a warning.

        Returns
        -------
        self
        """
        self._check()
        rng = check_random_state(self.random_state)
        given = self._open(X, y, sample_weight, rng)
        given_prior = read_class_prior(self.class_prior, given.labels.classes)
        self.classes_ = given.labels.classes
        with progress_bar(self.progress, "stacking") as show:
            outputs, folds, used = self._train(given, show)
            self.regions_ = self._fit_regions(given, outputs.names)
            regions = self._training_regions(given, folds)
            table, plan = self._table(outputs, regions), self._plan(outputs, given.seed)
            rows = training_rows(table, given.labels, given.weight)
            rows = rows.take(np.flatnonzero(used.counted))
            width = rows.table.X.shape[1] * (1 if self.regions_ == () else 4)
            with choose_executor(self.n_jobs, rows.table.n_rows, width) as executor:
                solved = self._learn(plan, rows, executor, show)
        if given_prior is not None:
            self._set_class_prior(given_prior)
        self._warn(solved)
        return self

    def _check(self) -> None:
        self._check_stacking()
        self._check_solving()
        check_choice("constraints", self.constraints, CONSTRAINTS)
        regions = self._group("regions")
        if regions is not None:
            regions.check()

    def _prior_folds(self) -> Any:
        return self.cv if self._own_folds and isinstance(self.cv, (int, np.integer)) else FOLDS

    def _fit_regions(self, given: FitInput, names: tuple[str, ...]) -> tuple[RegionMixture, ...]:
        """The mixture of regions of each classifier; the same object for classifiers with the same columns."""
        regions = self._group("regions")
        if regions is None:
            return ()
        columns = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        inputs = self.members_.inputs if isinstance(self.members_, NamedMembers) else {}
        outputs = set(column_positions(self.members_.used, columns, "estimators"))
        default = tuple(j for j in range(len(columns)) if j not in outputs)
        used = [column_positions(inputs[name], columns, "inputs") if name in inputs else default for name in names]
        if not all(used):
            raise ValueError(
                "regions require input columns, but all columns are outputs of classifiers; set regions=None"
            )
        mixtures = {part: self._mixture_of(regions, part, columns, given) for part in dict.fromkeys(used)}
        return tuple(mixtures[part] for part in used)

    def _mixture_of(
        self, regions: InputRegions, part: tuple[int, ...], columns: list[str], given: FitInput
    ) -> RegionMixture:
        """The mixture of some columns, fitted to the rows that are used."""
        categorical = self.categorical
        if not isinstance(categorical, str) and np.iterable(categorical):
            positions = column_positions(list(categorical), columns, "categorical")
            categorical = [i for i, j in enumerate(part) if j in positions] or "auto"
        options = {
            "max_components": int(regions.max_components),
            "covariance": get_structure(regions.covariance).name,
            "categorical": categorical,
            "random_state": given.seed,
            "n_jobs": self.n_jobs,
        }
        rows = np.flatnonzero(given.counted)
        present, codes = np.unique(given.codes[rows], return_inverse=True)
        weight = None if given.weight is None else given.weight[rows]
        y = given.labels.classes[present][codes]
        mixture = fit_regions(given.X.take(rows), y, weight, part, regions.kind, options)
        return RegionMixture(part, regions.kind, mixture, tuple(present.tolist()))

    def _training_regions(self, given: FitInput, folds: list[Fold]) -> list[Array]:
        """The regions of the training rows, out of fold like the outputs; one array for each different mixture."""
        if self._prefit:  # unlike the classifiers, the mixtures are fitted to these labels
            folds = label_folds(np.where(given.counted, given.codes, -1), given.counted, given.seed, FOLDS)
            folds = [(train[given.counted[train]], test) for train, test in folds]
        likelihood = given.labels.likelihood
        return [region.held_out(given.X, likelihood, given.weight, folds) for region in dict.fromkeys(self.regions_)]

    def _table(self, outputs: Outputs, regions: list[Array]) -> Table:
        """The outputs of the classifiers and the regions as one table."""
        return Table.of_numbers(np.concatenate([*outputs.values, *regions], axis=1))

    def _plan(self, outputs: Outputs, seed: int) -> StackingFeatures:
        classes, start = self.classes_.tolist(), 0
        terms = []
        for name, base_classes in zip(outputs.names, outputs.classes):
            labels = base_classes.tolist()
            label_class = tuple(classes.index(v) if v in classes else -1 for v in labels)
            value_class = label_class if self.constraints == "diagonal" else None
            if value_class is not None and max(value_class) < 0:
                raise ValueError(
                    f"constraints='diagonal' requires labels that are classes ({listed(classes)}); {name!r} has the "
                    f"labels {listed(labels)}; use constraints='full', or rename its labels"
                )
            terms.append(Probabilistic(name, tuple(range(start, start + len(labels))), tuple(labels), value_class))
            start += len(labels)
        by_mixture: dict[RegionMixture, Probabilistic] = {}
        for region in dict.fromkeys(self.regions_):
            columns = tuple(range(start, start + len(region.names)))
            component_class = region.component_class if region.kind == "class" else None
            value_class = None if component_class is None else tuple(component_class.tolist())
            by_mixture[region] = Probabilistic(f"input {len(by_mixture) + 1}", columns, region.names, value_class)
            start += len(region.names)
        return StackingFeatures(tuple(terms), tuple(by_mixture[region] for region in self.regions_), seed)

    @property
    def n_parameters_(self) -> int:
        """Number of identifiable multipliers of the labels in each region, of the regions, and of the classes.

        With constraints="diagonal" or regions="class", the number of multipliers that are not fixed at zero.
        """
        C, mask = len(self.classes_), self.layout_.mask(len(self.classes_))
        if mask is not None:
            return C - 1 + int(mask.sum())
        sizes = [len(region.names) for region in self.regions_] or [1] * len(self.base_classes_)
        n_labels = sum((len(labels) - 1) * size for labels, size in zip(self.base_classes_, sizes))
        n_regions = sum(len(region.names) - 1 for region in dict.fromkeys(self.regions_))
        return (C - 1) * (1 + n_labels + n_regions)

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        with NotesTogether():
            inputs = self._read_table(X, reset=False)
            outputs = self._outputs_of(inputs)
            return self._table(outputs, [region.pmf(inputs) for region in dict.fromkeys(self.regions_)])
