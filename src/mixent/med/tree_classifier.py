"""Maximum entropy discrimination with distributions over trees (001, sections 3.3 to 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.background import column_values, explain_terms, read_explained
from mixent.base.capabilities import able, yes
from mixent.base.explanation import Explanation
from mixent.base.params import RandomState, check_choice, warn_unused
from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.data import Categorical, Table, TableLike, check_spread, read_features
from mixent.med.cross_validation import ALL, Choice, CrossValidation
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import SingleTree
from mixent.med.model_estimator import MEDModelBase
from mixent.med.options import LabelUpdates, Margin, Tables, Trees
from mixent.med.spanning_trees import unpacked
from mixent.med.training_sets import Subset, TrainedDiscriminant
from mixent.med.trees import TreeDiscriminant, TreeModel, TreeTrainingSet

GRID = (0.1, 0.3, 1.0, 3.0)
TYPICAL_C = 0.3
MIN_TARGET = 2.0  # nats; where classes overlap, the quantile of the margins is too low or negative


class MEDTreeClassifier(MEDModelBase):
    """Maximum entropy discrimination with distributions over dependency trees, averaged over all trees.

    In each class, the columns depend on each other along a tree ([1]_, equation 27). Every spanning tree has a
    probability, and the sums over all n^(n-2) trees are computed exactly by the matrix-tree theorem. Of all
    distributions under which every training row attains its required margin in expectation, the solution is the one
    closest to the prior (least relative entropy).  Maximizes the dual

        J(λ) = sum_k w_k u(λ_k) - sum_s log Z_s(λ) / Z_s(0),     log Z_s = log W_0 + log |Q(W_s)|      (32, 35, 66)

    over the multipliers λ. Newton's method minimizes the primal objective: its negative never decreases, and the
    difference between primal and dual is the duality gap. With objective="likelihood" the model of each class is its
    tree of maximum likelihood, found by the algorithm of Chow and Liu [2]_ with the same tables.

    Parameters
    ----------
    tables : "fixed", "integrated" or Tables
        Probability tables of the edges. "fixed": smoothed marginals of the class; "integrated": Dirichlet distributions
        that are learned with the structure ([1]_, appendix B). `Tables` also holds the prior of the tables and the
        model of continuous columns.
    C : "auto" or float
        Upper bound on each row's multiplier; "auto" chooses it by cross-validated log-loss.
        With margin="gaussian" there is no bound; 1 / C is the standard deviation of the prior.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, in nats of the log-likelihood ratio. Its mode is the 0.1 quantile of the margins before
        discrimination, but at least 2, unless a `Margin` sets another. "fixed" is the hard margin ([1]_, section 3.7):
        `fit` raises an error if some rows cannot have it.
    objective : "margin" or "likelihood"
        Training objective: margins, or maximum likelihood (Chow and Liu's trees), which is a baseline.
    trees : "separate", "shared" or Trees
        Whether the classes share the structure. Each class always has its own tables; with objective="likelihood",
        shared trees are tree-augmented naive Bayes [3]_. `Trees` also holds the prior over trees and the number of
        trees of each class (a mixture of trees [4]_).
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about the log-ratio of the
        training shares.
    relaxation : float or LabelUpdates
        Step size of the label updates with uncertain labels, above 0 and at most 1; a `LabelUpdates` also has the
        number of rounds and the class shares of the unlabelled rows.
    calibration : "affine", "temperature" or None
        Calibration of the probabilities; see MEDClassifier.
    cv : int, splitter or list of (train, test)
        Cross-validation folds for C="auto" and for the calibration. A list holds positions among the labelled rows.
    tol : float
        Tolerance: stop when the duality gap per row is below it, in nats.
    max_iter : int
        Maximum number of iterations.
    class_weight : None, "balanced" or dict
        Weights of the classes, which multiply `sample_weight`, also in the calibration: the probabilities are those for
        classes with these weighted shares (`class_prior_`). "balanced" gives all classes the same total weight; classes
        that a dict leaves out have weight 1. For a row with label probabilities, the expected weight of its class.
    categorical : "auto" or list
        Columns to treat as categorical whatever their type.
    random_state : int, RandomState or None
        Seed for cross-validation and the initialization of mixtures of trees.
    n_jobs : int or None
        Number of threads; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    edge_marginals_ : list of (n, n) arrays
        Probability that a tree contains each edge, for each class (or each of its trees).
    edge_weights_ : list of (n, n) arrays
        log W_uv of each class, up to a constant (Figure 8 of [1]_). NaN with objective="likelihood".
    mutual_information_ : list of (n, n) arrays
        Mutual information I_uv of the columns in each class, in nats; only with tables="fixed".
    trees_ : list of lists of (name, name)
        Edges of the most probable tree of each class.
    column_names_ : tuple of str
        Names of the columns, the vertices of the trees.
    continuous_ : str or None
        Model of continuous columns in use; None if there are none.
    distribution_ : JointDistribution
        Distributions over the trees of all classes, and the bias.
    model_ : TreeModel
        Columns and tables, which compute the scores.
    loo_estimate_ : float
        Share of support rows: the leave-one-out estimate of the error of Lemma 1 [1]_. A crude estimate; the tables are
        also fitted to all rows, so that removing any row changes the model slightly.
    C_tried_ : list of dict
        Values of `C` tried, with their cross-validated log-loss.
    gap_ : float or None
        Duality gap: an upper bound on the distance of `objective_` from its optimum.
    background_ : Background
        The training rows, at most 50, with which `explain` compares a row.
    class_prior_, support_, multipliers_, pairs_, C_, objective_, label_posterior_ : see MEDClassifier
    unlabelled_gain_, cv_error_, margin_, calibration_, run_, n_rows_, schema_, n_features_in_ : see MEDClassifier
    feature_names_in_, notes_ : see MEDClassifier

    See Also
    --------
    MEDBayesNetClassifier : Bayes nets of given structure.
    MEDClassifier : Linear and kernel discriminant functions.
    MaxEntClassifier : Maximum entropy (logistic) model of categories and mixture components.
    sklearn.naive_bayes.CategoricalNB : Naive Bayes for categories.

    Notes
    -----
    A missing value is left out together with its edges; the rest of the tree is used. With tables="integrated" and in
    mixtures of trees it is replaced by the overall shares of the column.

    References
    ----------
    .. [1] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Sections
       3.3 to 3.5 and 3.7, appendices A and B (document 001).
    .. [2] Chow, C. K. and Liu, C. N. (1968). Approximating discrete probability distributions with dependence trees.
       IEEE Transactions on Information Theory 14(3), 462-467.
    .. [3] Friedman, N., Geiger, D. and Goldszmidt, M. (1997). Bayesian network classifiers. Machine Learning 29,
       131-163.
    .. [4] Meila, M. and Jordan, M. I. (2000). Learning with mixtures of trees. Journal of Machine Learning Research 1,
       1-48.

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> X = [["a", "x", "k"], ["a", "y", "k"], ["b", "x", "m"], ["b", "y", "m"]] * 10
    >>> y = ["same", "other", "other", "same"] * 10  # the first two columns together determine y
    >>> model = MEDTreeClassifier(C=1, random_state=0).fit(X, y)
    >>> model.score(X, y), model.edge_marginals_[0].shape
    (1.0, (3, 3))
    """

    _groups = {"tables": Tables.read, "trees": Trees.read, **MEDModelBase._groups}

    def __init__(
        self,
        tables: Any = "fixed",
        *,
        C: str | float = "auto",
        margin: str | Margin = "laplace",
        objective: str = "margin",
        trees: Any = "separate",
        bias: str | float = "flat",
        relaxation: float | LabelUpdates = 0.5,
        calibration: str | None = "affine",
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        class_weight: Any = None,
        categorical: Categorical = "auto",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.tables = tables
        self.C = C
        self.margin = margin
        self.objective = objective
        self.trees = trees
        self.bias = bias
        self.relaxation = relaxation
        self.calibration = calibration
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # --- options ------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        explanations = yes("by column, model-agnostic; or by edge")
        return able(tags, missing="a missing value is left out, with its edges", explanations=explanations)

    def _check(self) -> None:
        self._check_common()
        tables, trees = self._group("tables"), self._group("trees")
        tables.check()
        trees.check()
        self._check_objective()
        if self.objective == "likelihood" and trees.structure_prior != "uniform":
            warn_unused(f"structure_prior={trees.structure_prior!r}", "objective='margin'")
        only_fixed = {"objective": (self.objective, "likelihood"), "trees": (trees.sharing, "shared")}
        only_single = {"trees": (trees.sharing, "shared"), "continuous": (tables.continuous, "gaussian")}
        if tables.kind == "integrated":
            _check_combination(only_fixed | only_single, "tables='fixed'", "tables='integrated'")
        if trees.n_trees > 1:
            _check_combination(only_single, "n_trees=1", f"n_trees={trees.n_trees}")

    _patience = 1  # fits with a larger C take longer
    _bounds = (MIN_TARGET, np.inf)
    _grid_values = GRID

    # --- one fit ------------------------------------------------------------------------------------------------

    def _training_set(
        self, X: TableLike, y: ArrayLike | None, table: Table, subset: Subset, executor: Executor
    ) -> TreeTrainingSet:
        check_spread(table)
        tables, trees = self._group("tables"), self._group("trees")
        if trees.n_trees > 1 and subset.uncertain:
            raise ValueError("a mixture of trees needs the label of every row; give them all, or set n_trees=1")
        default = "quantized" if self._needs_quantized() else "gaussian"
        return TreeTrainingSet(
            table,
            tables.kind,
            self.objective,
            trees.sharing,
            trees.structure_prior,
            default if tables.continuous == "auto" else tables.continuous,
            trees.n_trees,
            float(tables.ess),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
            whole=subset,
        )

    def _needs_quantized(self) -> bool:
        """Whether continuous columns must be quantized."""
        return self._group("tables").kind == "integrated" or self._group("trees").n_trees > 1

    def _choose(self, folds: CrossValidation) -> tuple[CrossValidation, Choice]:
        """Also choose the model of continuous columns."""
        training_set: Any = folds.training_set
        if (
            self._group("tables").continuous == "auto"
            and training_set.table.schema.continuous
            and folds.rounds
            and not self._needs_quantized()
        ):
            if folds.show is not None:
                folds.show(0, 2, "model of continuous columns")
            quantized = replace(training_set, continuous="quantized", cache={}, solutions={})
            folds = min((folds, replace(folds, training_set=quantized)), key=self._rough_loss)
        return super()._choose(folds)

    def _rough_loss(self, folds: CrossValidation) -> float:
        """Cross-validated log-loss for a typical value of C; of one round with uncertain labels, which take long."""
        C = TYPICAL_C if self._chooses_C() else self._given_C()
        uncertain = folds.subset.take(np.flatnonzero(folds.subset.labelled)).uncertain
        return folds.loss(folds.scores(C, slice(1) if uncertain else ALL))

    def _store_function(self, trained: TrainedDiscriminant) -> None:
        assert isinstance(trained.discriminant, TreeDiscriminant) and isinstance(trained.training_set, TreeTrainingSet)
        training_set = trained.training_set
        self.continuous_ = training_set.continuous if training_set.table.schema.continuous else None
        self.distribution_: JointDistribution = trained.solution.state
        self.model_: TreeModel = trained.discriminant.model

    # --- attributes and predictions -----------------------------------------------------------------------------

    @property
    def column_names_(self) -> tuple[str, ...]:
        """Names of the columns, the vertices of the trees."""
        check_is_fitted(self)
        return self.model_.columns.names

    def _matrices(self, edge_values: list[Array]) -> list[Array]:
        """Symmetric matrices of values of the edges."""
        return [unpacked(values, len(self.column_names_)) for values in edge_values]

    def _structures(self) -> list[Any]:
        """The tree, or distribution over trees, of each class (and component)."""
        return [getattr(part, "trees", part) for part in self.distribution_.parts]

    @property
    def edge_marginals_(self) -> list[Array]:
        """Probability that a tree contains each edge, for each class (and component)."""
        check_is_fitted(self)
        return self._matrices([structure.mean for structure in self._structures()])

    @property
    def edge_weights_(self) -> list[Array]:
        """log W_uv of each class (and component)."""
        check_is_fitted(self)
        log_weights = [
            np.full_like(structure.mean, np.nan) if isinstance(structure, SingleTree) else structure.log_weights
            for structure in self._structures()
        ]
        return self._matrices(log_weights)

    @property
    def mutual_information_(self) -> list[Array]:
        """Mutual information I_uv of each class (and component), in nats."""
        check_is_fitted(self)
        if self.model_.tables is None:
            raise AttributeError("mutual_information_ is only defined with tables='fixed'; got tables='integrated'")
        return self._matrices([tables.gains / np.maximum(tables.rows, 1e-300) for tables in self.model_.tables])

    @property
    def trees_(self) -> list[list[tuple[str, str]]]:
        """Edges of the most probable tree of each class (and component)."""
        names = self.column_names_
        trees = [
            structure.edges if isinstance(structure, SingleTree) else structure.best for structure in self._structures()
        ]
        return [[(names[u], names[v]) for u, v in edges] for edges in trees]

    def explain(self, X: TableLike, label: Any = None, rival: Any = None, *, by: str = "column") -> Explanation:
        """Contribution of each column, or of each edge, to the log-odds of one class against another.

        By column: Shapley values, the mean change of the log-odds when the value of a column replaces that of a
        training row, over `background_` (at most 50 training rows) and over orders of the columns. By edge: the terms
        of the model itself, relative to their means over `background_`: the log-probability of each column alone, and
        of each edge its probability times the log-ratio of the pair to both alone.

        Parameters
        ----------
        X : table of n rows
        label : class label, optional
            The class to explain (default: the most probable class of each row).
        rival : class label, optional
            The class it is compared with (default: the most probable other class of each row).
        by : {"column", "edge"}, default="column"
            "edge" needs fixed tables and one tree for each class.

        Returns
        -------
        Explanation
            The log-odds in nats, those of the average row, and the contribution of each column or edge relative to it,
            which add up exactly.
        """
        check_choice("by", by, ("column", "edge"))
        if by == "column":
            return super().explain(X, label, rival)
        check_is_fitted(self)
        if self.model_.tables is None or self.model_.is_mixture:
            raise ValueError("by='edge' needs tables='fixed' and n_trees=1; explain by column")
        table, rivals = read_explained(self, X, label, rival)
        log_proba = self._explained_log_proba(table)
        background: Any = self.background_
        average = self.model_.terms(self.distribution_, background.table).mean(axis=0)
        terms = self.calibration_.slope * (self.model_.terms(self.distribution_, table) - average)
        names, pairs = self.column_names_, list(combinations(range(len(self.column_names_)), 2))
        labels = [*names, *(f"{names[u]} – {names[v]}" for u, v in pairs)]
        owners = table.schema.owners

        def values() -> list[list[str]]:
            rows = [[row[owner] for owner in owners] for row in column_values(table)]
            return [[*row, *(f"{row[u]}, {row[v]}" for u, v in pairs)] for row in rows]

        return explain_terms(terms, log_proba, rivals, labels, "edge", values)

    def _scores(self, X: TableLike) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self.distribution_, read_features(self, X, reset=False))


def _check_combination(parameters: dict[str, tuple[str, str]], required: str, given: str) -> None:
    """Raise an error for parameters (name -> value, excluded value) with a value that another parameter excludes."""
    for name, (value, excluded) in parameters.items():
        if value == excluded:
            raise ValueError(f"{name}={value!r} needs {required}; got {given}")
