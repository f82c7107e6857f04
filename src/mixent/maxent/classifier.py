"""Maximum entropy classification of mixed tables."""

from __future__ import annotations

from collections.abc import Callable
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
from mixent.data import Table, check_spread, read_features, read_labels, read_weights
from mixent.maxent.constraints import Constraints
from mixent.maxent.feature_arguments import check_pmfs, read_groups, read_pairs, read_probabilistic
from mixent.maxent.features import FeaturePlan, Training, feature_names, training_rows
from mixent.maxent.forward_selection import SelectionStep, forward
from mixent.maxent.model import EntropyModel
from mixent.maxent.options import ForwardSelection, MomentFeatures, NumericFeatures, read_numeric, read_selection
from mixent.maxent.prior import USUAL
from mixent.maxent.terms import Crossed, CrossedDense, Term, given_of


class MaxEntClassifier(EntropyModel):
    """Maximum entropy classification from pairwise constraints, on discrete, continuous and probabilistic columns.

    Of all P[class | row] that reproduce the training counts of every class with every value of every feature, takes
    that of greatest entropy. What is solved is the dual (2.9), with a Gaussian prior.  Maximizes

        sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 prior_variance),
        P[c | t] ~ exp(b_c + sum_i gamma(c, f_ti)),

    over multipliers gamma, one for each constraint, and a class term b; q_t is the row's label distribution. A
    probabilistic feature takes part with the expectation over its values (2.8), a missing one drops out of its row's
    sum. A step is kept only if it raises the objective, which so never falls (those of "bohning" and "iis" maximize a
    lower bound that touches it, and always do); and as it is concave, all solvers reach the same optimum.

    Parameters
    ----------
    features : "union", "class", "pooled", "bins", "moments" or an object
        What numeric columns become. "union", "class" and "pooled" are a `ComponentFeatures`: the hidden component of a
        mixture; "bins" is a `BinFeatures`; "moments" a `MomentFeatures`: means and second moments.
    probabilistic : dict or None
        Features given as a pmf per row: name -> list of columns that hold the probabilities of its values.
    pairs : list of pairs of features, "auto" or None
        Pairs whose joint values are constrained with the class too. "auto": none, but all are candidates for
        `selection`.
    selection : "bic", "validation", ForwardSelection or None
        Add features, and pairs of them, one at a time, and stop by BIC or by the log-loss of held-out rows; see
        `path_`. None keeps all features.
    prior_variance : "auto", float or None
        Variance of the Gaussian prior on multipliers (of a cell that ranges less than from 0 to 1: on multiplier times
        range); "auto" chooses it by cross-validated log-loss; None is the plain dual, whose multipliers diverge where
        classes are separable or a value never occurs with a class.
    solver : "auto", "bohning", "iis" or "lbfgs"
        Fixed-curvature bound with acceleration, improved iterative scaling, or L-BFGS; "auto" takes Newton steps on
        small tables and L-BFGS on others.
    class_prior : "empirical" or (C,) array
        Class priors at prediction: those of the training rows, or these.
    cv : int, splitter or list of (train, test)
        Folds of prior_variance="auto".
    tol : float
        Stop when a step gains, or ("bohning", "iis") is only certain to gain, less than this per row, in nats.
    max_iter : int
        Most passes over the data, before a few that polish the class term.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds and held-out rows.
    n_jobs : int or None
        Threads; None takes all cores. The number changes no bit of the result.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    layout_ : Layout
        The features the columns became; `feature_terms_` names them.
    params_ : Multipliers
        bias (C,) and cells (S, C), nats.
    run_ : Run
        How solving went.
    gap_, gain_, residual_
        Upper bound of what is still to be gained per row (None without a prior), lower bound of it, and the largest
        |P_model - P_truth| over all constraints.
    entropy_ : float
        H(class | row) of the model over the training rows, nats (2.3).
    prior_variance_, prior_variances_tried_
        Variance of the prior in use, and the cross-validated log-loss of those tried. In each fold mixtures and bins
        are learned anew; groups and a selection are those of all rows.
    path_ : list of SelectionStep
        What `selection` added, in order.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MaxEntClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxEntClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.94
    True
    """

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
            None, NaN or "" for a row without a label. It is used for the distribution of the columns (their means, or
            the components of a pooled mixture), not for the classes.
        sample_weight : (n,) array, optional
            Counts: at a given prior, a weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        labels = read_labels(y, table.n_rows)
        held_prior = read_class_prior(self.class_prior, len(labels.classes))
        rows = training_rows(table, labels, read_weights(sample_weight, table.n_rows))
        plan = self._plan(rows)
        if self.solver == "iis" and plan.has_slopes(table.schema):
            raise ValueError(
                "solver='iis' needs features that are not negative; set features=ComponentFeatures(means=False), or "
                "choose another solver"
            )
        workers = choose_executor(self.n_jobs, table.n_rows, len(table.schema.columns))
        with progress_bar(self.progress, "maximum entropy") as show, workers as executor:
            plan, self.path_ = self._selected(plan, rows, executor, show)
            self.schema_, self.classes_ = table.schema, labels.classes
            found = self._learn(plan, rows, executor, show)
        if held_prior is not None:
            self._set_class_prior(held_prior)
        self._tell(found)
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
                "solver='iis' needs features that are not negative, and moments may be; choose another solver"
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
        """The plan with the features that were chosen, pairs among them, and the way there."""
        selection = self._group("selection")
        if selection is None:
            return plan, []
        named = {frozenset(pair) for pair in plan.pairs}
        every = isinstance(self.pairs, str)
        singles = replace(plan, pairs=())
        hold_out = selection.criterion == "validation"
        train, held = _held_out(rows, selection.validation, plan.seed) if hold_out else (rows, None)
        variance = USUAL if isinstance(self.prior_variance, str) else self.prior_variance
        terms, path = forward(
            singles.terms(train),
            lambda a, b: every or frozenset((a, b)) in named,
            train,
            held,
            variance,
            executor,
            show,
        )
        return replace(plan, pairs=_pairs_of(terms), kept=frozenset(term.name for term in terms)), path

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        table = read_features(self, X, reset=False)
        check_pmfs(given_of(self.layout_.dense), table)
        return table

    def constraints(self) -> Constraints:
        """Every constraint of every feature, as `constraint_table` gives it.

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
            missing="a missing value drops out of the row's sum",
            weights=YES,
            soft_labels=yes("read as target shares: a row counts for every class by its share"),
            absent_labels=yes("rows without a label are used for the distribution of the columns, not for the classes"),
            mixed=YES,
            explanations=yes("by column"),
        )


def _held_out(rows: Training, share: float, seed: int) -> tuple[Training, Training]:
    """A part of the labelled rows of each class to score by; the rest, and rows without a label, to learn from."""
    labelled = rows.target.any(axis=1) & (rows.weights > 0)
    codes = np.where(labelled, rows.target.argmax(axis=1), -1)
    rng = np.random.default_rng((seed, 3))
    held = np.zeros(len(codes), dtype=bool)
    for c in range(codes.max() + 1):
        mine = rng.permutation(np.flatnonzero(codes == c))
        held[mine[: round(share * len(mine))]] = True
    if not held.any() or not (labelled & ~held).any():
        raise ValueError(
            f"validation={share} of {labelled.sum()} labelled rows holds out none, or all; "
            f"give more rows, or another share"
        )
    return rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))


def _pairs_of(terms: tuple[Term, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((t.first.name, t.second.name) for t in terms if isinstance(t, (Crossed, CrossedDense)))
