"""Maximum entropy discrimination with Bayesian networks (001, section 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able
from mixent.base.params import RandomState, check_positive
from mixent.core.arrays import Array
from mixent.core.executors import Executor
from mixent.data import Categorical, Table, TableLike, check_spread, read_features
from mixent.med.bayes_net import NetDiscriminant, NetModel, NetTrainingSet
from mixent.med.cross_validation import CALIBRATIONS
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import Dirichlets
from mixent.med.model_estimator import MEDModelBase
from mixent.med.net_structure import check_structure, read_structure
from mixent.med.options import LabelUpdates, Margin
from mixent.med.training_sets import Subset, TrainedDiscriminant

GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
MIN_TARGET, MAX_TARGET = 0.1, 2.0  # nats: rows are classified correctly; well separated classes need no more


class MEDBayesNetClassifier(MEDModelBase):
    """Maximum entropy discrimination with Bayesian networks of given structure.

    Each class has a Bayesian network. The conditional probability tables have Dirichlet distributions, one for each
    column and configuration of its parents ([1]_, section 3.6). The prior is the posterior given the rows of the class
    and a BDeu prior [2]_ of equivalent sample size `ess`: ess / (r q) for each of r values and q configurations of the
    parents. Of all distributions under which every training row attains its required margin in expectation, the
    solution is the one closest to this prior (least relative entropy).  Maximizes the dual

        J(λ) = sum_k w_k u(λ_k) - sum_s log Z_s(λ) / Z_s(0),
        log Z_s = sum_v sum_q ( sum_r log Gamma(N_vqr) - log Gamma(sum_r N_vqr) ),

    over the multipliers λ, where row t adds w_t^s = [y_t = s](1 + sum_y λ_ty) - [y_t != s] λ_ts to one cell of each
    table of class s, and every count N remains positive. Newton's method minimizes the primal objective: its negative
    never decreases, and the difference between primal and dual is the duality gap. Scores are expected
    log-probabilities, sum_v digamma(N_vqr) - digamma(sum_r N_vqr), plus a bias.

    Parameters
    ----------
    structure : "naive", list of (parent, child), callable or dict
        Edges between columns, by name or position. "naive": no edges, so that a column depends on the class alone. A
        callable takes the list of column names and returns edges. A dict {class label: any of these} has a structure
        for each class. For trees that are learned see MEDTreeClassifier.
    C : "auto" or float
        Upper bound on each row's multiplier; "auto" chooses it by cross-validated log-loss.
        With margin="gaussian" there is no bound; 1 / C is the standard deviation of the prior.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, in nats of the log-likelihood ratio. Its mode is the 0.1 quantile of the margins before
        discrimination, limited to the range from 0.1 (rows must be classified correctly) to 2 (well separated classes
        remain as they are), unless a `Margin` sets another. "fixed" is the hard margin ([1]_, section 3.7): `fit`
        raises an error if some rows cannot have it.
    objective : "margin" or "likelihood"
        Training objective: margins, or the prior as it is, a Bayesian network fitted to the rows of each class, which
        is a baseline. With structure="naive" the latter is naive Bayes.
    ess : float
        Equivalent sample size of the Dirichlet prior, spread evenly over the cells of every table.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about the log-ratio of the
        training shares. A flat bias is determined by the support rows, and is noisy if these are few, however small C
        is; with a Gaussian prior and a small C the model is that of objective="likelihood".
    relaxation : float or LabelUpdates
        Step size of the label updates with uncertain labels, above 0 and at most 1; a `LabelUpdates` also has the
        number of rounds and the class shares of the unlabelled rows.
    calibration : "affine", "temperature", "predictive" or None
        Calibration of the probabilities; see MEDClassifier. "predictive": Bayes' rule with the predictive probabilities
        N_vqr / sum_r N_vqr of each class and the training shares, whatever the bias.
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
        Seed for cross-validation.
    n_jobs : int or None
        Number of threads; None uses all cores.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_ : (C,) array
        Class labels.
    training_prior_ : (C,) array
        Class shares of the labelled training rows.
    edges_ : list of lists of (parent, child)
        Edges of each class, by column names.
    tables_ : list of dicts
        Expected conditional probabilities of each class, by column name. The axes of a table are the parents, in the
        order of the columns, and last the column. The values along an axis are those of
        `schema_.columns[...].categories`, or the mixture components of a number in increasing order.
    counts_ : list of dicts
        Parameters N of the Dirichlet distributions, in the same shape.
    column_names_ : tuple of str
        Names of the columns.
    distribution_ : JointDistribution
        Dirichlet distributions of all classes, and the bias.
    model_ : NetModel
        Columns and structures, which compute the scores.
    loo_estimate_ : float
        Share of support rows: the leave-one-out estimate of the error of Lemma 1 [1]_. A crude estimate; the prior is
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
    MEDTreeClassifier : Averages over all tree structures instead of a given one.
    MEDClassifier : Linear and kernel discriminant functions.
    sklearn.naive_bayes.CategoricalNB : Naive Bayes for categories.

    Notes
    -----
    Document 001 assumes complete rows. Where a value or one of its parents is missing, the table is left out for the
    row; for a column without children this is exact.

    A number is represented by its probabilities under the components of a mixture for its column, the union of the
    mixtures of the classes. A row counts for each component in proportion to these probabilities, and for the cells of
    a table with several numbers in proportion to their product.

    References
    ----------
    .. [1] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Sections
       3.6 and 3.7 (document 001).
    .. [2] Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of
       knowledge and statistical data. Machine Learning 20(3), 197-243.

    Examples
    --------
    >>> from mixent import MEDBayesNetClassifier
    >>> X = [["a", "x", "k"], ["a", "y", "k"], ["b", "x", "m"], ["b", "y", "m"]] * 10
    >>> y = ["same", "other", "other", "same"] * 10  # the first two columns together determine y
    >>> model = MEDBayesNetClassifier([(0, 1)], C=1, random_state=0).fit(X, y)
    >>> model.score(X, y), model.edges_[0], model.tables_[0]["x1"].shape
    (1.0, [('x0', 'x1')], (2, 2))
    """

    _bounds = (MIN_TARGET, MAX_TARGET)
    _grid_values = GRID
    _calibrations = (*CALIBRATIONS, "predictive")

    def __init__(
        self,
        structure: Any = "naive",
        *,
        C: str | float = "auto",
        margin: str | Margin = "laplace",
        objective: str = "margin",
        ess: float = 1.0,
        bias: str | float = 1.0,
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
        self.structure = structure
        self.C = C
        self.margin = margin
        self.objective = objective
        self.ess = ess
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
        missing = "a missing value is left out, with the tables of its children"
        return able(tags, missing=missing)

    def _check(self) -> None:
        self._check_common()
        check_structure(self.structure)
        check_positive("ess", self.ess)
        self._check_objective()

    # --- one fit ------------------------------------------------------------------------------------------------

    def _training_set(
        self, X: TableLike, y: ArrayLike | None, table: Table, subset: Subset, executor: Executor
    ) -> NetTrainingSet:
        check_spread(table)
        return NetTrainingSet(
            table,
            read_structure(self.structure, table.schema.names, self.classes_.tolist()),
            float(self.ess),
            self.objective == "likelihood",
            self.calibration == "predictive",
            whole=subset,
        )

    def _store_function(self, trained: TrainedDiscriminant) -> None:
        assert isinstance(trained.discriminant, NetDiscriminant)
        self.distribution_: JointDistribution = trained.solution.state
        self.model_: NetModel = trained.discriminant.model
        self.training_prior_ = self.class_prior_.copy()

    # --- attributes and predictions -----------------------------------------------------------------------------

    @property
    def column_names_(self) -> tuple[str, ...]:
        """Names of the columns."""
        check_is_fitted(self)
        return self.model_.columns.names

    @property
    def edges_(self) -> list[list[tuple[str, str]]]:
        """Edges (parent, child) of each class."""
        names = self.column_names_
        return [
            [(names[u], names[v]) for v, parents in enumerate(net.parents) for u in parents] for net in self.model_.nets
        ]

    def _as_tables(self, cells: list[Array]) -> list[dict[str, Array]]:
        """The cells of each class, as a table for each column."""
        return [dict(zip(self.column_names_, net.tables(values))) for net, values in zip(self.model_.nets, cells)]

    @property
    def counts_(self) -> list[dict[str, Array]]:
        """Parameters of the Dirichlet distributions of each class and column."""
        check_is_fitted(self)
        return self._as_tables([part.T.copy() for part in self.distribution_.parts])

    @property
    def tables_(self) -> list[dict[str, Array]]:
        """Expected conditional probabilities of each class and column."""
        check_is_fitted(self)
        parts = [part for part in self.distribution_.parts if isinstance(part, Dirichlets)]
        return self._as_tables([np.exp(part.log_predictive) for part in parts])

    def _scores(self, X: TableLike) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self.distribution_, read_features(self, X, reset=False))

    def _predictive_scores(self, X: TableLike) -> Array:
        table = read_features(self, X, reset=False)
        return self.model_.predictive_scores(self.distribution_, table, self.training_prior_)
