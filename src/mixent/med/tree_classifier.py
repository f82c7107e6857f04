"""Maximum entropy discrimination with distributions over trees (001, sections 3.3 to 3.5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able, no
from mixent.base.params import check_choice, check_count, check_positive
from mixent.core.arrays import Array
from mixent.data import Table, check_spread, read_features
from mixent.med.estimator import Trained
from mixent.med.exponential_family import Joint
from mixent.med.families import OneTree
from mixent.med.model_estimator import MEDOfModels
from mixent.med.solving import Search
from mixent.med.spanning import unpacked
from mixent.med.training_sets import Part, Space
from mixent.med.trees import TreeDiscriminant, TreeModel, TreeSpace

GRID = (0.1, 0.3, 1.0, 3.0)
TYPICAL = 0.3
LEAST = 2.0  # nats that are asked where classes overlap, and the quantile would ask for nothing


class MEDTreeClassifier(MEDOfModels):
    """Maximum entropy discrimination with distributions over trees: every class has all of them at once.

    A class's columns depend on each other along a tree (equation 27), and which tree is not decided: every spanning
    tree has a probability, and their n^(n-2) terms are summed exactly by the matrix-tree theorem. Of all distributions
    that keep the margins of the training labels, on average, takes that of least relative entropy to the prior.
    Maximises the dual

        J(l) = sum_k w_k u(l_k) - sum_s log Z_s(l) / Z_s(0),     log Z_s = log W_0 + log |Q(W_s)|      (32, 35, 66)

    over the multipliers l. Newton's method lowers the bound of which J is the dual; minus it never falls, and the
    difference of both is the gap. With objective="likelihood" no margin is asked: the tree of highest likelihood of
    each class, found by Chow and Liu's algorithm on the same tables.

    Parameters
    ----------
    parameters : "fixed" or "integrated"
        The tables of every edge are the class's marginals, smoothed; or they have Dirichlet distributions that are
        learned with the structure (appendix B).
    c : "auto" or float
        How much a row may say; "auto" chooses it by cross-validated log-loss.
    margin : "laplace", "exponential", "gaussian" or "fixed"
        Prior of the margins, about `gamma`; "fixed": every row keeps it for certain (section 3.7), and an error tells
        where that cannot be.
    gamma : float or None
        The margin, in nats of the log-likelihood ratio; None: what a share `alpha` of the rows does not reach before
        discrimination, but at least 2.
    alpha : float
        That share.
    objective : "margin" or "likelihood"
        Discrimination; or Chow and Liu's trees, a baseline.
    structure : "separate" or "shared"
        A tree per class; or the same for all classes, each with tables of its own: with objective="likelihood" that is
        tree-augmented naive Bayes.
    structure_prior : "uniform" or "posterior"
        All trees are equally probable to begin with; or as probable as the class's rows make them.
    n_components : int
        Trees of a class: more than one makes a mixture of trees, by the bound of section 4.1.
    continuous : "auto", "gaussian" or "quantised"
        Numbers: Gaussian marginals of pairs; or probabilities of the components of one mixture per column. "auto":
        whichever has the lower cross-validated log-loss; "gaussian" where there are no folds, "quantised" where it
        must be ("integrated", mixtures).
    ess : float
        Rows spread evenly over every table.
    bias : "flat" or float
        Prior of the log-ratio of the class priors: flat, or Gaussian with this variance about the training rows' own.
    relaxation : float
        Where labels are in doubt: the share of each label update that is taken.
    calibration : "temperature", "affine" or None
        How scores become probabilities; see MEDClassifier.
    cv : int, splitter or list of (train, test)
        Folds of c="auto" and of the calibration; a list counts labelled rows only.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Most passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds and the starts of mixtures.
    n_jobs : int or None
        Threads; None takes all cores.
    progress : bool or callable
        True shows a bar; a callable is told (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their shares among the labelled rows.
    edge_marginals_ : list of (n, n) arrays
        Probability that a tree of the class (of the component) has each edge.
    edge_weights_ : list of (n, n) arrays
        log W_uv, up to a constant; Figure 8 of the document. NaN with objective="likelihood".
    mutual_information_ : list of (n, n) arrays
        I_uv of the class's rows, nats; with parameters="fixed" only.
    trees_ : list of lists of (name, name)
        Edges of the most probable tree.
    column_names_ : tuple of str
        Names of the vertices.
    continuous_ : str or None
        How numbers were taken.
    joint_, model_
        The distributions, and what turns rows into scores.
    support_, multipliers_, pairs_, loo_estimate_, c_, c_tried_, objective_, gap_, run_, label_posterior_, margin_
        As for MEDClassifier; but the tables are made of all rows, and leaving one out moves them a little.

    Notes
    -----
    A missing value drops out: so do the edges that meet it, and the rest of the tree counts. With
    parameters="integrated" and in mixtures the column's overall shares stand for it.

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> X = [["a", "x", "k"], ["a", "y", "k"], ["b", "x", "m"], ["b", "y", "m"]] * 10
    >>> y = ["same", "other", "other", "same"] * 10  # the first two columns together tell
    >>> model = MEDTreeClassifier(c=1, random_state=0).fit(X, y)
    >>> model.score(X, y), model.edge_marginals_[0].shape
    (1.0, (3, 3))
    """

    def __init__(
        self,
        parameters: str = "fixed",
        *,
        c: str | float = "auto",
        margin: str = "laplace",
        gamma: float | None = None,
        alpha: float = 0.1,
        objective: str = "margin",
        structure: str = "separate",
        structure_prior: str = "uniform",
        n_components: int = 1,
        continuous: str = "auto",
        ess: float = 1.0,
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
        self.parameters = parameters
        self.c = c
        self.margin = margin
        self.gamma = gamma
        self.alpha = alpha
        self.objective = objective
        self.structure = structure
        self.structure_prior = structure_prior
        self.n_components = n_components
        self.continuous = continuous
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
        told = no("`trees_` and `edge_marginals_` say which columns depend on which")
        return able(tags, missing="a missing value drops out, and the edges that meet it", explanations=told)

    def _check(self) -> None:
        self._check_common()
        check_choice("parameters", self.parameters, ("fixed", "integrated"))
        check_choice("structure", self.structure, ("separate", "shared"))
        check_choice("structure_prior", self.structure_prior, ("uniform", "posterior"))
        check_choice("continuous", self.continuous, ("auto", "gaussian", "quantised"))
        check_count("n_components", self.n_components)
        check_positive("ess", self.ess)
        self._check_asked(also=("structure_prior",))
        self._check_together()

    def _check_together(self) -> None:
        if self.parameters == "integrated":
            for name, other in (("objective", "likelihood"), ("structure", "shared"), ("continuous", "gaussian")):
                if getattr(self, name) == other:
                    raise ValueError(f"{name}={other!r} needs parameters='fixed'; got parameters='integrated'")
        if self.n_components > 1:
            for name, other in (("structure", "shared"), ("continuous", "gaussian")):
                if getattr(self, name) == other:
                    raise ValueError(f"{name}={other!r} needs n_components=1; got n_components={self.n_components}")

    _patience = 1  # a larger c takes longer
    _bounds = (LEAST, np.inf)

    def _grid(self) -> tuple[float, ...]:
        return GRID

    # --- one fit ------------------------------------------------------------------------------------------------

    def _space(self, X: Any, y: Any, table: Table, part: Part, executor: Any) -> TreeSpace:
        check_spread(table)
        if self.n_components > 1 and part.uncertain:
            raise ValueError(
                "a mixture of trees needs to know the label of every row; give them all, or n_components=1"
            )
        continuous = ("quantised" if self._tables() else "gaussian") if self.continuous == "auto" else self.continuous
        return TreeSpace(
            table,
            self.parameters,
            self.objective,
            self.structure,
            self.structure_prior,
            continuous,
            self.n_components,
            float(self.ess),
            int(check_random_state(self.random_state).randint(2**31 - 1)),
        )

    def _tables(self) -> bool:
        """Must numbers be cells of tables?"""
        return self.parameters == "integrated" or self.n_components > 1

    def _fit_space(self, space: Any, part: Part, search: Search, show: Any, rounds: Any = None) -> Trained:
        rounds = self._folds(part)
        if self.continuous == "auto" and space.table.schema.continuous and rounds and not self._tables():
            if show is not None:
                show(0, 2, "kind of numbers")
            kinds = [space, replace(space, continuous="quantised", known={})]
            space = min(kinds, key=lambda kind: self._rough_loss(kind, part, rounds, search))
        self.continuous_ = space.continuous if space.table.schema.continuous else None
        return super()._fit_space(space, part, search, show, rounds)

    def _rough_loss(self, space: TreeSpace, part: Part, rounds: list, search: Search) -> float:
        """Held-out log-loss at a middling c."""
        c = TYPICAL if self._needs_c() else None if isinstance(self.c, str) else float(self.c)
        held = self._held_scores(space, part, rounds, c, space.for_folds(search), labelled_only=True)
        return self._stacked_loss(held, part)

    def _keep_function(self, space: Space, trained: Trained) -> None:
        assert isinstance(trained.discriminant, TreeDiscriminant)
        self.joint_: Joint = trained.solution.state
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
        return [getattr(part, "trees", part) for part in self.joint_.parts]  # a single tree is itself

    @property
    def edge_marginals_(self) -> list[Array]:
        """Probability that a tree has each edge, of each class (component)."""
        check_is_fitted(self)
        return self._matrices([one.mean for one in self._structures()])

    @property
    def edge_weights_(self) -> list[Array]:
        """log W_uv of each class (component)."""
        check_is_fitted(self)
        alone = [np.full_like(o.mean, np.nan) if isinstance(o, OneTree) else o.log_weights for o in self._structures()]
        return self._matrices(alone)

    @property
    def mutual_information_(self) -> list[Array]:
        """I_uv of each class (component), nats."""
        check_is_fitted(self)
        if self.model_.tables is None:
            raise AttributeError("mutual_information_ is that of known tables; parameters='integrated' has none")
        return self._matrices([one.gains / np.maximum(one.rows, 1e-300) for one in self.model_.tables])

    @property
    def trees_(self) -> list[list[tuple[str, str]]]:
        """Edges of the most probable tree, of each class (component)."""
        names = self.column_names_
        best = [one.edges if isinstance(one, OneTree) else one.best for one in self._structures()]
        return [[(names[u], names[v]) for u, v in edges] for edges in best]

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.model_.scores(self.joint_, read_features(self, X, reset=False))
