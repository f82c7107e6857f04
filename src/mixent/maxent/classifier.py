"""Maximum entropy classification of mixed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, able, yes
from mixent.base.executors import choose_executor
from mixent.base.params import check_folds
from mixent.base.priors import read_class_prior
from mixent.base.progress import progress_bar
from mixent.base.result import RecordsAttribute
from mixent.core.arrays import Array
from mixent.core.stats import tree_sum
from mixent.data import Table, check_spread, keep_notes, read_features, read_labels, read_weights
from mixent.maxent.blocks import Rows
from mixent.maxent.constraints import Constraints, scatter_of
from mixent.maxent.feature_arguments import check_pmfs, read_groups, read_pairs, read_probabilistic
from mixent.maxent.features import FeaturePlan, Training, feature_names, training_rows
from mixent.maxent.forward_selection import SelectionStep, forward
from mixent.maxent.layout import Layout
from mixent.maxent.model import EntropyModel
from mixent.maxent.options import ForwardSelection, MomentFeatures, NumericFeatures, read_numeric, read_selection
from mixent.maxent.pair_search import find_pairs
from mixent.maxent.prior import DEFAULT_VARIANCE, VarianceChoice
from mixent.maxent.purified import margins_of, pairs_of, pure_logits
from mixent.maxent.terms import Crossed, CrossedDense, Term, given_of


class MaxEntClassifier(EntropyModel):
    """Conditional maximum entropy classifier for tables with discrete, continuous and probabilistic columns.

    Among all distributions P[class | row] that reproduce the training frequencies of every class with every value of
    every feature, the model is the one with the largest entropy [1]_ [2]_. It is found by solving the dual problem,
    with a Gaussian prior on the multipliers. Maximizes

        sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 prior_variance),
        P[c | t] ~ exp(b_c + sum_i gamma(c, f_ti)),

    over multipliers gamma, one for each constraint, and a bias b for each class; q_t is the label distribution of row
    t. A probabilistic feature contributes the expectation of gamma over its values; a missing value contributes
    nothing. The objective is concave, so all solvers reach the same optimum. A step is accepted only if it increases
    the objective, which therefore never falls; the steps of "bohning" and "iis" maximize a lower bound that touches the
    objective [3]_ [4]_, so they always increase it.

    Parameters
    ----------
    features : {"union", "class", "pooled", "bins", "moments"} or options object, default="union"
        How numeric columns are converted to features. "union", "class" and "pooled" are short for `ComponentFeatures`:
        the hidden component of a mixture; "bins" for `BinFeatures`; "moments" for `MomentFeatures`: means and second
        moments.
    probabilistic : dict, default=None
        Features given as a probability distribution per row: feature name -> list of the columns that hold the
        probabilities of its values.
    pairs : list of pairs of feature names, "auto" or None, default="auto"
        Pairs of features whose joint values are constrained with the class too. "auto": those that are found by
        `selection`, or without it, if prior_variance="auto" and there are at least 100 labelled rows, by
        cross-validated log-loss; see `pairs_tried_`.
    selection : {"bic", "validation"}, ForwardSelection or None, default=None
        Add features, and pairs of features, one at a time, and stop according to BIC or to the log-loss of held-out
        rows; see `path_`. None uses all features.
    prior_variance : "auto", float or None, default="auto"
        Variance of the Gaussian prior on the multipliers. For a cell whose values range over less than 0 to 1, the
        prior is on the multiplier times this range. "auto" chooses the variance by cross-validated log-loss. None: no
        prior; the multipliers then diverge where the classes are separable or a value never occurs with a class.
    solver : {"auto", "bohning", "iis", "lbfgs"}, default="auto"
        Optimization algorithm. "bohning": fixed bound on the curvature, with acceleration; "iis": improved iterative
        scaling; "lbfgs": L-BFGS; "auto": Newton's method for small tables and L-BFGS for others.
    class_prior : "empirical", array of shape (n_classes,) or dict of label -> probability, default="empirical"
        Class priors at prediction: those of the training rows, or the given probabilities.
    cv : int, splitter or list of (train, test), default=5
        Cross-validation folds that choose the variance and the pairs if prior_variance="auto".
    tol : float, default=1e-8
        Stop when the gain of a step is below this value, in nats per row; with "bohning" and "iis", when the guaranteed
        gain is.
    max_iter : int, default=2000
        Maximum number of iterations (passes over the data). A few more passes refine the class biases.
    categorical : "auto" or list, default="auto"
        Columns to treat as categories, whatever their type.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the held-out rows.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it.
    progress : bool or callable, default=False
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class priors.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had names.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.
    schema_ : Schema
        Names, types and categories of the columns.
    layout_ : Layout
        The features that the columns were converted to; `feature_terms_` lists their names.
    params_ : Multipliers
        Lagrange multipliers, in nats: bias (C,) of the classes and cells (S, C) of the values.
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
        Conditional entropy H(class | row) of the model over the training rows, in nats.
    mean_logits_ : ndarray of shape (n_terms, n_classes)
        Mean contribution of each feature to the logits, over the training rows.
    margins_ : list of Margins
        The additive part of the contribution of each pair, which belongs to the contributions of its two features.
    strengths_ : ndarray of shape (n_terms,)
        Standard deviation over the training rows of the contribution of each feature to the log-odds, in nats.
    prior_variance_ : float or None
        Variance of the prior.
    pair_variance_ : float or None
        Variance of the prior on the multipliers of pairs that were found; None without such pairs.
    pairs_tried_ : list of dict
        Cross-validated log-loss with each number of pairs tried, and the prior variance of their multipliers.
    prior_variances_tried_ : list of dict
        Cross-validated log-loss of each variance tried. Mixtures and bins are learned again in each fold; groups and
        the selected features are those of all rows.
    path_ : list of SelectionStep
        The features that `selection` added, in order.

    See Also
    --------
    MaxEntJoint : Predicts any column of a table from the others.
    MaxEntStackingClassifier : The same model for the outputs of other classifiers.
    MEDClassifier : Large-margin classification by maximum entropy discrimination.
    sklearn.linear_model.LogisticRegression : The same model for real-valued features.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum Entropy and Improved Iterative Scaling for Classification on Mixed Spaces, Ensemble
       Classification and Extensions. PhD thesis, The Pennsylvania State University. Sections 2.1 to 2.4 (document 004).
    .. [2] Berger, A. L., Della Pietra, S. and Della Pietra, V. J. (1996). A maximum entropy approach to natural
       language processing. Computational Linguistics, 22(1).
    .. [3] Della Pietra, S., Della Pietra, V. and Lafferty, J. (1997). Inducing features of random fields. IEEE
       Transactions on Pattern Analysis and Machine Intelligence, 19(4).
    .. [4] Böhning, D. (1992). Multinomial logistic regression algorithm. Annals of the Institute of Statistical
       Mathematics, 44(1).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MaxEntClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxEntClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.94
    True
    """

    path_ = RecordsAttribute()
    pairs_tried_ = RecordsAttribute(absent=())
    margins_ = RecordsAttribute(absent=())
    _groups = {"features": read_numeric, "selection": read_selection}

    def __init__(
        self,
        features: str | NumericFeatures = "union",
        *,
        probabilistic: dict | None = None,
        pairs: Any = "auto",
        selection: str | ForwardSelection | None = None,
        prior_variance: str | float | None = "auto",
        solver: str = "auto",
        class_prior: Any = "empirical",
        cv: Any = 5,
        tol: float = 1e-8,
        max_iter: int = 2000,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.features = features
        self.probabilistic = probabilistic
        self.pairs = pairs
        self.selection = selection
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : (n,) labels or (n, C) label probabilities
            None, NaN or "" for an unlabelled row. Unlabelled rows are used for the distribution of the columns (their
            means, or the components of a pooled mixture), not for the classes.
        sample_weight : (n,) array, optional
            With a given prior variance, a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        labels = read_labels(y, table.n_rows)
        keep_notes(self, table, labels, quiet=isinstance(X, Table))
        given_prior = read_class_prior(self.class_prior, labels.classes)
        rows = training_rows(table, labels, read_weights(sample_weight, table.n_rows))
        plan = self._plan(rows)
        if self.solver == "iis" and plan.has_slopes(table.schema):
            raise ValueError(
                "solver='iis' requires non-negative features; set features=ComponentFeatures(means=False), or choose "
                "another solver"
            )
        workers = choose_executor(self.n_jobs, table.n_rows, len(table.schema.columns))
        with progress_bar(self.progress, "maximum entropy") as show, workers as executor:
            plan, self.path_ = self._selected(plan, rows, executor, show)
            self.schema_, self.classes_ = table.schema, labels.classes
            self.pairs_tried_ = []
            self.pair_variance_: float | None = None
            solved = self._learn(plan, rows, executor, show)
        self._purify(rows)
        if given_prior is not None:
            self._set_class_prior(given_prior)
        self._warn(solved)
        return self

    def _check(self) -> None:
        numeric, selection = self._group("features"), self._group("selection")
        numeric.check()
        if selection is not None:
            selection.check()
        self._check_solving()
        check_folds("cv", self.cv)
        if isinstance(numeric, MomentFeatures) and self.solver == "iis":
            raise ValueError(
                "solver='iis' requires non-negative features, but moments can be negative; choose another solver"
            )

    def _plan(self, rows: Training) -> FeaturePlan:
        given = read_probabilistic(self.probabilistic, rows.table.schema)
        check_pmfs(given, rows.table)
        numeric = self._group("features")
        plan = FeaturePlan(
            numeric=numeric,
            given=given,
            groups=read_groups(getattr(numeric, "groups", None), rows, given),
            pairs=(),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            n_jobs=self.n_jobs,
        )
        return replace(plan, pairs=read_pairs(self.pairs, feature_names(plan, rows.table.schema)))

    def _selected(
        self, plan: FeaturePlan, rows: Training, executor: Any, show: Any
    ) -> tuple[FeaturePlan, list[SelectionStep]]:
        """The plan with the selected features and pairs of features, and the steps of the selection."""
        selection = self._group("selection")
        if selection is None:
            return plan, []
        given_pairs = {frozenset(pair) for pair in plan.pairs}
        all_pairs = isinstance(self.pairs, str)
        singles = replace(plan, pairs=())
        split = selection.criterion == "validation"
        train, validation = _validation_split(rows, selection.validation, plan.seed) if split else (rows, None)
        variance = DEFAULT_VARIANCE if isinstance(self.prior_variance, str) else self.prior_variance
        terms, path = forward(
            singles.terms(train),
            lambda a, b: all_pairs or frozenset((a, b)) in given_pairs,
            train,
            validation,
            variance,
            executor,
            show,
        )
        return replace(plan, pairs=_pairs_of(terms), selected=frozenset(term.name for term in terms)), path

    def _extend(self, choice: VarianceChoice, rows: Training, executor: Any, show: Any) -> float | None:
        """Add the pairs of columns that cross-validation finds, if pairs="auto"."""
        if not isinstance(self.pairs, str) or self.selection is not None:
            return None
        chosen = find_pairs(choice, self.layout_.terms, rows.table.n_rows, executor, show)
        self.pairs_tried_ = chosen.tried
        if chosen.terms:
            self.layout_, self.pair_variance_ = Layout.of([*self.layout_.terms, *chosen.terms]), chosen.variance
        return self.pair_variance_

    def _purify(self, rows: Training) -> None:
        """Store the margins of the pairs, and the means and strengths of the contributions without them."""
        weight = rows.weights * rows.target.any(axis=1)
        self.margins_ = margins_of(self.layout_, self.params_, rows.table, weight)
        if not self.margins_:
            return

        def parts() -> Iterator[tuple[Array, Array]]:  # computed twice rather than stored
            for where, chunk in self._each(rows.table):
                yield weight[where], self._contributions(rows.table.take(where), chunk)

        self.mean_logits_ = np.sum([logits @ w for w, logits in parts()], axis=0) / max(float(weight.sum()), 1e-300)
        self.strengths_ = tree_sum(scatter_of(logits, self.mean_logits_, w) for w, logits in parts()).strengths

    def _contributions(self, table: Table, rows: Rows) -> Array:
        pairs = pairs_of(self.layout_, self.params_, self.margins_)
        return pure_logits(pairs, super()._contributions(table, rows), table)

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        check_pmfs(given_of(self.layout_.dense), table)
        return table

    def constraints(self) -> Constraints:
        """The constraints of all features, as `constraint_table` returns them.

        Returns
        -------
        Constraints
        """
        return self.constraint_table()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="a missing value contributes nothing to the log-odds",
            weights=YES,
            soft_labels=yes("used as target probabilities: a row counts for every class by its probability"),
            absent_labels=yes("unlabelled rows are used for the distribution of the columns, not for the classes"),
            mixed=YES,
            explanations=yes("by column", exact=True),
        )


def _validation_split(rows: Training, share: float, seed: int) -> tuple[Training, Training]:
    """Split the rows into training and validation rows: a share of the labelled rows of each class is held out."""
    labelled = rows.target.any(axis=1) & (rows.weights > 0)
    codes = np.where(labelled, rows.target.argmax(axis=1), -1)
    rng = np.random.default_rng((seed, 3))
    held_out = np.zeros(len(codes), dtype=bool)
    for c in range(codes.max() + 1):
        class_rows = rng.permutation(np.flatnonzero(codes == c))
        held_out[class_rows[: round(share * len(class_rows))]] = True
    if not held_out.any() or not (labelled & ~held_out).any():
        raise ValueError(
            f"validation={share} of {labelled.sum()} labelled rows holds out none or all of them; "
            f"give more rows, or another share"
        )
    return rows.take(np.flatnonzero(~held_out)), rows.take(np.flatnonzero(held_out))


def _pairs_of(terms: tuple[Term, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((t.first.name, t.second.name) for t in terms if isinstance(t, (Crossed, CrossedDense)))
