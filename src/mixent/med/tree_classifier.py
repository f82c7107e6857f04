"""Maximum entropy discrimination with distributions over trees (001, sections 3.3 to 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able, no
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.estimator import Trained
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import SingleTree
from mixent.med.model_estimator import MEDOfModels
from mixent.med.options import Tables, Trees
from mixent.med.solving import Search
from mixent.med.spanning_trees import unpacked
from mixent.med.training_sets import Subset, TrainingSet
from mixent.med.trees import TreeDiscriminant, TreeModel, TreeTrainingSet

GRID = (0.1, 0.3, 1.0, 3.0)
TYPICAL = 0.3
LEAST = 2.0  # nats that are asked where classes overlap, and the quantile would ask for nothing


class MEDTreeClassifier(MEDOfModels):
    """Maximum entropy discrimination with distributions over trees, averaged over all trees of the columns.

    The columns of a class depend on each other along a tree (equation 27). Every spanning tree has a probability, and
    their n^(n-2) terms are summed exactly by the matrix-tree theorem. The fit is the distribution that keeps the
    margins of the training labels on average, with the least relative entropy to the prior.  Maximizes the dual

        J(l) = sum_k w_k u(l_k) - sum_s log Z_s(l) / Z_s(0),     log Z_s = log W_0 + log |Q(W_s)|      (32, 35, 66)

    over the multipliers l. Newton's method minimizes the primal objective: its negative never falls, and the difference
    of both is the duality gap. With objective="likelihood" there are no margins: the model is the tree of highest
    likelihood of each class, found by Chow and Liu's algorithm on the same tables.

    Parameters
    ----------
    tables : "fixed", "integrated" or Tables
        The tables of every edge are the class's marginals, smoothed; or they have Dirichlet distributions that are
        learned with the structure (appendix B). `Tables` also holds the prior of the tables and how numbers enter them.
    C : "auto" or float
        Upper bound on each row's multiplier; "auto" chooses it by cross-validated log-loss.
    margin : "laplace", "exponential", "gaussian", "fixed" or Margin
        Prior of the margins, in nats of the log-likelihood ratio, about the quantile 0.1 of the margins before
        discrimination but at least 2, or as a `Margin` has it. "fixed": every row keeps the margin for certain (section
        3.7), and rows that cannot are an error.
    objective : "margin" or "likelihood"
        Discrimination; or Chow and Liu's trees, a baseline.
    trees : "separate", "shared" or Trees
        Trees of its own for every class; or the same for all classes, each with tables of its own: with
        objective="likelihood" that is tree-augmented naive Bayes. `Trees` also holds the prior of the trees and their
        number per class (a mixture of trees).
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about that of the
        training rows.
    relaxation : float
        With uncertain labels, the share of each label update that is applied.
    calibration : "temperature", "affine" or None
        How scores become probabilities; see MEDClassifier.
    cv : int, splitter or list of (train, test)
        Folds for C="auto" and for the calibration; a list holds positions among the labelled rows.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Maximum number of passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds and the starts of mixtures.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    edge_marginals_ : list of (n, n) arrays
        Probability that a tree of the class (of each of its trees) has each edge.
    edge_weights_ : list of (n, n) arrays
        log W_uv, up to a constant; Figure 8 of the document. NaN with objective="likelihood".
    mutual_information_ : list of (n, n) arrays
        I_uv of the class's rows, nats; with tables="fixed" only.
    trees_ : list of lists of (name, name)
        Edges of the most probable tree.
    column_names_ : tuple of str
        Names of the vertices.
    continuous_ : str or None
        How numbers entered the tables.
    joint_, model_
        The distributions, and the model that computes scores.
    support_, multipliers_, pairs_, loo_estimate_, C_, C_tried_, objective_, gap_, run_, label_posterior_, margin_
        As for MEDClassifier; but the tables, too, are fitted to all rows, and removing one changes them a little.

    Notes
    -----
    A missing value is left out together with its edges; the rest of the tree is used. With tables="integrated" and in
    mixtures it is replaced by the column's overall shares.

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> X = [["a", "x", "k"], ["a", "y", "k"], ["b", "x", "m"], ["b", "y", "m"]] * 10
    >>> y = ["same", "other", "other", "same"] * 10  # the first two columns together determine y
    >>> model = MEDTreeClassifier(C=1, random_state=0).fit(X, y)
    >>> model.score(X, y), model.edge_marginals_[0].shape
    (1.0, (3, 3))
    """

    _groups = {"tables": Tables.read, "trees": Trees.read, **MEDOfModels._groups}

    def __init__(
        self,
        tables: Any = "fixed",
        *,
        C: str | float = "auto",
        margin: Any = "laplace",
        objective: str = "margin",
        trees: Any = "separate",
        bias: str | float = "flat",
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
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    # --- options ------------------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        told = no("see `trees_` and `edge_marginals_` for the dependencies of columns")
        return able(tags, missing="a missing value is left out, with its edges", explanations=told)

    def _check(self) -> None:
        self._check_common()
        tables, trees = self._group("tables"), self._group("trees")
        tables.check()
        trees.check()
        self._check_objective()
        if self.objective == "likelihood" and trees.structure_prior != "uniform":
            raise ValueError(f"structure_prior={trees.structure_prior!r} is only used with objective='margin'")
        only_fixed = {"objective": (self.objective, "likelihood"), "trees": (trees.sharing, "shared")}
        only_single = {"trees": (trees.sharing, "shared"), "continuous": (tables.continuous, "gaussian")}
        if tables.kind == "integrated":
            _refuse(only_fixed | only_single, "tables='fixed'", "tables='integrated'")
        if trees.n_trees > 1:
            _refuse(only_single, "n_trees=1", f"n_trees={trees.n_trees}")

    _patience = 1  # a larger C takes longer
    _bounds = (LEAST, np.inf)

    def _grid(self) -> tuple[float, ...]:
        return GRID

    # --- one fit ------------------------------------------------------------------------------------------------

    def _training_set(self, X: Any, y: Any, table: Table, subset: Subset, executor: Any) -> TreeTrainingSet:
        check_spread(table)
        tables, trees = self._group("tables"), self._group("trees")
        if trees.n_trees > 1 and subset.uncertain:
            raise ValueError("a mixture of trees needs the label of every row; give them all, or set n_trees=1")
        usual = "quantized" if self._needs_cells() else "gaussian"
        return TreeTrainingSet(
            table,
            tables.kind,
            self.objective,
            trees.sharing,
            trees.structure_prior,
            usual if tables.continuous == "auto" else tables.continuous,
            trees.n_trees,
            float(tables.ess),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _needs_cells(self) -> bool:
        """Must numbers be cells of tables?"""
        return self._group("tables").kind == "integrated" or self._group("trees").n_trees > 1

    def _fit_training_set(
        self, training_set: Any, subset: Subset, search: Search, show: Any, rounds: Any = None
    ) -> Trained:
        rounds = self._folds(subset)
        if (
            self._group("tables").continuous == "auto"
            and training_set.table.schema.continuous
            and rounds
            and not self._needs_cells()
        ):
            if show is not None:
                show(0, 2, "kind of numbers")
            kinds = [training_set, replace(training_set, continuous="quantized", known={})]
            training_set = min(kinds, key=lambda kind: self._rough_loss(kind, subset, rounds, search))
        self.continuous_ = training_set.continuous if training_set.table.schema.continuous else None
        return super()._fit_training_set(training_set, subset, search, show, rounds)

    def _rough_loss(self, training_set: TreeTrainingSet, subset: Subset, rounds: list, search: Search) -> float:
        """Held-out log-loss at a middling C."""
        c = TYPICAL if self._needs_c() else None if isinstance(self.C, str) else float(self.C)
        held = self._held_scores(training_set, subset, rounds, c, training_set.for_folds(search), labelled_only=True)
        return self._stacked_loss(held, subset)

    def _keep_function(self, training_set: TrainingSet, trained: Trained) -> None:
        assert isinstance(trained.discriminant, TreeDiscriminant)
        self.distribution_: JointDistribution = trained.solution.state
        self.model_: TreeModel = trained.discriminant.model

    # --- what was found -----------------------------------------------------------------------------------------

    @property
    def column_names_(self) -> tuple[str, ...]:
        """Names of the vertices."""
        check_is_fitted(self)
        return self.model_.columns.names

    def _matrices(self, edges: list[Array]) -> list[Array]:
        return [unpacked(one, len(self.column_names_)) for one in edges]

    def _structures(self) -> list[Any]:
        return [getattr(part, "trees", part) for part in self.distribution_.parts]  # a single tree is itself

    @property
    def edge_marginals_(self) -> list[Array]:
        """Probability that a tree has each edge, of each class (component)."""
        check_is_fitted(self)
        return self._matrices([one.mean for one in self._structures()])

    @property
    def edge_weights_(self) -> list[Array]:
        """log W_uv of each class (component)."""
        check_is_fitted(self)
        alone = [
            np.full_like(o.mean, np.nan) if isinstance(o, SingleTree) else o.log_weights for o in self._structures()
        ]
        return self._matrices(alone)

    @property
    def mutual_information_(self) -> list[Array]:
        """I_uv of each class (component), nats."""
        check_is_fitted(self)
        if self.model_.tables is None:
            raise AttributeError("mutual_information_ is that of known tables; tables='integrated' has none")
        return self._matrices([one.gains / np.maximum(one.rows, 1e-300) for one in self.model_.tables])

    @property
    def trees_(self) -> list[list[tuple[str, str]]]:
        """Edges of the most probable tree, of each class (component)."""
        names = self.column_names_
        best = [one.edges if isinstance(one, SingleTree) else one.best for one in self._structures()]
        return [[(names[u], names[v]) for u, v in edges] for edges in best]

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self.distribution_, read_features(self, X, reset=False))


def _refuse(options: dict[str, tuple[str, str]], needs: str, given: str) -> None:
    """Options (name -> value, the value that is refused) that do not go together with another."""
    for name, (value, refused) in options.items():
        if value == refused:
            raise ValueError(f"{name}={value!r} needs {needs}; got {given}")
