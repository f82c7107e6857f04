"""Maximum entropy discrimination with Bayes nets (001, section 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able, no
from mixent.base.params import check_positive
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.bayes_net import NetDiscriminant, NetModel, NetTrainingSet
from mixent.med.estimator import CALIBRATIONS, Trained
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import Dirichlets
from mixent.med.model_estimator import MEDOfModels
from mixent.med.net_structure import check_structure, read_structure
from mixent.med.training_sets import Subset, TrainingSet

GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LEAST, ENOUGH = 0.1, 2.0  # nats: to be right is asked at least; classes that are apart already need no more


class MEDBayesNetClassifier(MEDOfModels):
    """Maximum entropy discrimination with Bayes nets: every class has one, of known structure and unknown tables.

    Given its parents' values a column has a table's row of probabilities (section 3.6), and each such row a Dirichlet
    distribution. The prior is the posterior of the class's own rows and of `ess` rows spread evenly over every table
    (BDeu: ess / (r q) for each of r values and q configurations of the parents). The fit is the distribution that keeps
    the margins of the training labels on average, with the least relative entropy to the prior. Maximizes the dual

        J(l) = sum_k w_k u(l_k) - sum_s log Z_s(l) / Z_s(0),
        log Z_s = sum_v sum_q ( sum_r log Gamma(N_vqr) - log Gamma(sum_r N_vqr) ),

    over the multipliers l, where row t adds w_t^s = [y_t = s](1 + sum_y l_ty) - [y_t != s] l_ts to one cell of each
    table of class s; every count N stays positive. Newton's method minimizes the primal objective: its negative
    never falls, and the difference of both is the duality gap. Scores are expected log-probabilities,
    sum_v digamma(N_vqr) - digamma(sum_r N_vqr), and a bias.

    Parameters
    ----------
    structure : "naive", list of (parent, child), callable or dict
        Edges between columns, by name or position. "naive": none, so that a column depends on the class alone. A
        callable is given the list of column names and returns edges. A dict {class label: any of these} has a
        structure for each class. For trees that are learned see MEDTreeClassifier.
    C : "auto" or float
        Upper bound on each row's multiplier; "auto" chooses it by cross-validated log-loss.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, in nats of the log-likelihood ratio, about the quantile 0.1 of the margins before
        discrimination but from 0.1 to 2 (rows shall be classified correctly, and classes that are well separated stay
        as they are), or as a `Margin` has it. "fixed": every row keeps the margin for certain (section 3.7), and rows
        that cannot are an error.
    objective : "margin" or "likelihood"
        Discrimination; or the prior as it is, a Bayes net learned from each class's rows alone: a baseline. With
        structure="naive" that is naive Bayes.
    ess : float
        Equivalent sample size of the prior: rows spread evenly over every table.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about the training rows' own.
        A flat bias is determined by the rows with a multiplier, and noisy where these are few, however small C is; with
        a variance a small C gives what objective="likelihood" does.
    relaxation : float
        With uncertain labels, the share of each label update that is applied.
    calibration : "temperature", "affine", "predictive" or None
        How scores become probabilities; see MEDClassifier. "predictive": Bayes' rule with each class's predictive
        probabilities N_vqr / sum_r N_vqr and the training shares, whatever the bias; `predict` follows the
        probabilities, and `decision_function` stays the expected log-ratio.
    cv : int, splitter or list of (train, test)
        Folds for C="auto" and for the calibration; a list holds positions among the labelled rows.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Maximum number of passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    edges_ : list of lists of (parent, child)
        Names, of each class.
    tables_ : list of dicts
        Of each class: a column's expected probabilities. Axes are its parents, in the order of the columns, and last
        its own values; values are those of `schema_.columns[...].categories`, or a number's components, rising.
    counts_ : list of dicts
        The Dirichlet distributions' parameters N, in the same shape.
    column_names_ : tuple of str
        Names of the columns.
    joint_, model_
        The distributions, and the model that computes scores.
    support_, multipliers_, pairs_, loo_estimate_, C_, C_tried_, objective_, gap_, run_, label_posterior_, margin_
        As for MEDClassifier; but the prior, too, is fitted to all rows, and removing one changes it a little.

    Notes
    -----
    The document assumes complete rows. Where a value or one of its parents is missing, that table is left out for the
    row; for a column without children that is exact.

    A number becomes the probabilities of the components of one mixture (the union of the classes' own): a row that is
    partly in several values counts in each by its share, and with several numbers in a table by their product.

    Examples
    --------
    >>> from mixent import MEDBayesNetClassifier
    >>> X = [["a", "x", "k"], ["a", "y", "k"], ["b", "x", "m"], ["b", "y", "m"]] * 10
    >>> y = ["same", "other", "other", "same"] * 10  # the first two columns together determine y
    >>> model = MEDBayesNetClassifier([(0, 1)], C=1, random_state=0).fit(X, y)
    >>> model.score(X, y), model.edges_[0], model.tables_[0]["x1"].shape
    (1.0, [('x0', 'x1')], (2, 2))
    """

    _bounds = (LEAST, ENOUGH)

    def __init__(
        self,
        structure: Any = "naive",
        *,
        C: str | float = "auto",
        margin: Any = "laplace",
        objective: str = "margin",
        ess: float = 1.0,
        bias: str | float = 1.0,
        relaxation: float = 0.5,
        calibration: str | None = "temperature",
        cv: Any = 5,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Any = "auto",
        random_state: Any = None,
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
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # --- options ------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        told = no("see `tables_` for the probabilities of every column")
        return able(tags, missing="a missing value is left out, with the tables of its children", explanations=told)

    def _check(self) -> None:
        self._check_common()
        check_structure(self.structure)
        check_positive("ess", self.ess)
        self._check_objective()

    def _calibrations(self) -> tuple[str, ...]:
        return (*CALIBRATIONS, "predictive")

    def _grid(self) -> tuple[float, ...]:
        return GRID

    # --- one fit ------------------------------------------------------------------------------------------------

    def _training_set(self, X: Any, y: Any, table: Table, subset: Subset, executor: Any) -> NetTrainingSet:
        check_spread(table)
        return NetTrainingSet(
            table,
            read_structure(self.structure, table.schema.names, self.classes_.tolist()),
            float(self.ess),
            self.objective == "likelihood",
            self.calibration == "predictive",
        )

    def _keep_function(self, training_set: TrainingSet, trained: Trained) -> None:
        assert isinstance(trained.discriminant, NetDiscriminant)
        self.distribution_: JointDistribution = trained.solution.state
        self.model_: NetModel = trained.discriminant.model
        self.shares_ = self.class_prior_.copy()  # of the training rows

    # --- what was found -----------------------------------------------------------------------------------------

    @property
    def column_names_(self) -> tuple[str, ...]:
        """Names of the columns."""
        check_is_fitted(self)
        return self.model_.columns.names

    @property
    def edges_(self) -> list[list[tuple[str, str]]]:
        """(parent, child) of each class."""
        names = self.column_names_
        return [
            [(names[u], names[v]) for v, above in enumerate(net.parents) for u in above] for net in self.model_.nets
        ]

    def _laid_out(self, lines: list[Array]) -> list[dict[str, Array]]:
        return [dict(zip(self.column_names_, net.tables(line))) for net, line in zip(self.model_.nets, lines)]

    @property
    def counts_(self) -> list[dict[str, Array]]:
        """Parameters of the Dirichlet distributions, of each class and column."""
        check_is_fitted(self)
        return self._laid_out([one.T.copy() for one in self.distribution_.parts])

    @property
    def tables_(self) -> list[dict[str, Array]]:
        """Expected probabilities, of each class and column."""
        check_is_fitted(self)
        return self._laid_out(
            [np.exp(one.log_predictive) for one in self.distribution_.parts if isinstance(one, Dirichlets)]
        )

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self.distribution_, read_features(self, X, reset=False))

    def _log_joint(self, X: Any) -> Array:
        if self.calibration != "predictive":
            return super()._log_joint(X)
        table = read_features(self, X, reset=False)
        return self.calibration_(self.model_.predictive_scores(self.distribution_, table, self.shares_))
