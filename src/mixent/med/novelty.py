"""Novelty detection by level sets of probability models (001, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import IGNORED, NOTHING, YES, able, no, yes
from mixent.base.convergence import FittedByRun
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_number, check_positive, warn_unused
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.core.observers import Progress
from mixent.data import Categorical, Table, TableLike, check_spread, keep_notes, read_features, read_weights
from mixent.hmm.sequences import one_alphabet
from mixent.med.families import Distribution
from mixent.med.margins import MARGINS
from mixent.med.novelty_models import NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees
from mixent.med.novelty_problem import NoveltyProblem, deal_weights, row_scores
from mixent.med.options import Margin
from mixent.med.solving import Search
from mixent.med.training_sets import in_batches
from mixent.med.tree_columns import MAX_CELLS, MAX_VERTICES
from mixent.warn import warn

DENSITIES = ("auto", "product", "tree", "gaussian", "mixture", "hmm")
HIDDEN = ("mixture", "hmm")  # densities with components or states
MOST_COLUMNS = 100  # continuous columns of a joint Gaussian
FOLDS = 10  # of cross-validation, for the threshold
QUANTILE = 0.5  # default level: this quantile of the training rows' log-probabilities


class MEDNoveltyDetector(FittedByRun, OutlierMixin, Estimator):
    """Novelty detection by maximum entropy: a density under which all training rows are about equally probable.

    Of all distributions over the parameters of a density under which every training row attains its required
    log-probability in expectation, the solution is the one closest to the prior (least relative entropy; [1]_, section
    4). Maximum likelihood, in
    contrast, also increases the probability of rows that are already typical. The margins have a prior with its mode at
    the level `l`, a quantile of the training rows' log-probabilities under the Bayesian fit.  Maximizes the dual

        J(λ) = sum_t w_t [ l λ_t + log(1 - λ_t / C) ] - log Z(λ),    0 <= λ_t < C                    (equation 45)

    for margin="exponential", where log Z is the log-partition function with row t counted λ_t times (a Bayesian fit
    counts each row once). Newton's method minimizes the primal objective: its negative never decreases. With hidden
    components, states or numbers, each log-probability is replaced by a lower bound, and two alternating steps never
    increase the relative entropy (Theorem 6).

    Parameters
    ----------
    density : "auto", "product", "tree", "gaussian", "mixture" or "hmm"
        Density of the rows. "product": independent columns; "tree": average over all dependency trees (numbers are
        softly quantized by a fixed mixture per column; a column with a single component has no edges); "gaussian":
        jointly Gaussian numbers and independent categories; "mixture": a mixture of `n_hidden` such densities; "hmm": a
        hidden Markov model with `n_hidden` states, where each row is a sequence. "auto": "tree" if all columns are
        categorical, otherwise "gaussian" ("product" with more than 100 numbers, 300 categorical columns or 4000
        categories in total).
    n_hidden : int
        Number of mixture components or of hidden states; only used with density "mixture" and "hmm".
    objective : "margin" or "bayes"
        Training objective: the level set, or the Bayesian fit with the same prior, which is a baseline.
    margin : "exponential", "laplace", "gaussian" or Margin
        Prior of the margins. Its mode is the median of the training rows' log-probabilities under the Bayesian fit, or
        another `quantile` of a `Margin`.
    C : float
        Upper bound on each row's multiplier: the largest number of times that a row counts.
    ess : float
        Equivalent sample size of the prior: spread evenly over the cells of every table, and as many rows of a standard
        Gaussian (more if the number of columns requires it).
    contamination : float
        Share of new typical rows that `predict` labels as outliers. It sets the threshold, a quantile of the scores of
        held-out rows. Of the training rows fewer are labelled as outliers, since the density was fitted to them.
    tol : float
        Tolerance: stop when the duality gap per row is below it, in nats.
    max_iter : int
        Maximum number of iterations.
    categorical : "auto" or list
        Columns to treat as categorical whatever their type.
    progress : bool or callable
        True shows a progress bar; a callable is called with (done, total, text).

    Attributes
    ----------
    offset_ : float
        Threshold: `decision_function` is `score_samples` minus `offset_`.
    scores_ : (n,) array
        `score_samples` of the training rows.
    held_out_scores_ : (n,) array
        Scores of the training rows under densities fitted without them (ten-fold cross-validation). The share
        `contamination` of them is below `offset_`.
    bayes_scores_ : (n,) array
        The same under the Bayesian fit.
    multipliers_ : (n,) array
        Multipliers m of the training rows: the number of times each row counts; zero for typical rows.
    support_ : array
        Support rows: rows with a non-zero multiplier.
    level_ : float
        Level l, in nats.
    margin_ : MarginPrior or None
        Margin prior in use; None with objective="bayes".
    relative_entropy_ : float
        Minimum of the primal objective: D(P || P0) plus the cost of the margins.
    objective_ : float or None
        Dual objective J at the solution, in nats; None with objective="bayes".
    gap_ : float or None
        Duality gap: an upper bound on the distance of `objective_` from its optimum; None with objective="bayes".
    hidden_ : bool
        Whether the fit inferred hidden values: components, states, or missing numbers of a joint Gaussian.
    run_ : Run
        Status and trace of the optimization; with hidden variables, the sequence of Theorem 6.
    distribution_ : Distribution
        Distribution over the parameters of the density.
    bayes_ : Distribution
        The same under the Bayesian fit.
    model_ : NoveltyModel
        Family of densities, which computes the scores.
    schema_ : Schema
        Names and types of the columns.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if X had any.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    GaussianMixture : Mixture density, whose `score_samples` also detects outliers.
    HiddenMarkovModel : Hidden Markov model of sequences.
    sklearn.svm.OneClassSVM : One-class support vector machine.
    sklearn.ensemble.IsolationForest : Outlier detection by random trees.

    Notes
    -----
    A category that did not occur in training counts as new, not as missing, and has a low probability. A missing value
    makes a row neither more nor less typical: it is replaced by the average of the column. Missing numbers of a joint
    Gaussian have their conditional distribution, whose entropy is subtracted; a missing step of a sequence contributes
    the average of its other steps. The scores of rows with missing values vary less, so that somewhat fewer of them are
    below the threshold.

    References
    ----------
    .. [1] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Sections 4
       and 4.1, Theorem 6 (document 001).

    Examples
    --------
    >>> import numpy as np
    >>> from mixent import MEDNoveltyDetector
    >>> rng = np.random.default_rng(0)
    >>> typical = rng.normal(size=(200, 2))
    >>> model = MEDNoveltyDetector().fit(typical)
    >>> model.predict([[0.0, 0.0], [6.0, -6.0]])
    array([ 1, -1])
    """

    _groups = {"margin": Margin.read}

    def __init__(
        self,
        density: str = "auto",
        *,
        n_hidden: int = 3,
        objective: str = "margin",
        margin: str | Margin = "exponential",
        C: float = 1.0,
        ess: float = 1.0,
        contamination: float = 0.05,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Categorical = "auto",
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.density = density
        self.n_hidden = n_hidden
        self.objective = objective
        self.margin = margin
        self.C = C
        self.ess = ess
        self.contamination = contamination
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.progress = progress

    # --- options ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_choice("density", self.density, DENSITIES)
        check_choice("objective", self.objective, ("margin", "bayes"))
        self._check_margin()
        check_count("n_hidden", self.n_hidden)
        check_positive("C", self.C)
        if not check_number(self.ess) or not 1e-6 <= self.ess <= 1e5:
            raise ValueError(f"ess must be a number from 1e-6 to 1e5; got {self.ess!r}")
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        if not check_number(self.contamination) or not 0 <= self.contamination <= 0.5:
            raise ValueError(f"contamination must be a number from 0 to 0.5; got {self.contamination!r}")
        if self.n_hidden != 3 and self.density not in HIDDEN:
            densities = " and ".join(map(repr, HIDDEN))
            warn_unused(f"n_hidden={self.n_hidden!r}", f"density {densities}; got {self.density!r}")

    def _check_margin(self) -> None:
        margin = self._group("margin")
        margin.check(tuple(MARGINS))
        if margin.target is not None:
            warn_unused(f"target={margin.target!r} of the margin", "classifiers; set quantile")
        default = margin.distribution == "exponential" and margin.quantile is None
        for name, changed in {"margin": not default, "C": self.C != 1.0}.items():
            if changed and self.objective == "bayes":
                warn_unused(f"{name}={getattr(self, name)!r}", "objective='margin'")

    # --- fit ----------------------------------------------------------------------------------------------------

    def fit(self, X: TableLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the detector to typical rows.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : ignored
            For compatibility with scikit-learn.
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        keep_notes(self, table, quiet=isinstance(X, Table))
        weight = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if weight is None else weight
        if self.density == "hmm":
            table = one_alphabet(table)
        check_spread(table)
        self.schema_ = table.schema
        self.model_ = self._model(table, weight)
        with progress_bar(self.progress, "novelty") as show:
            self._fit_distribution(table, weight, show)
        return self

    def _model(self, table: Table, weight: Array) -> NoveltyModel:
        kind, ess = self._kind(table), float(self.ess)
        used = np.flatnonzero(weight > 0)
        table, weight = table.take(used), weight[used]
        if kind == "tree":
            return NoveltyTrees.of(table, weight, ess)
        if kind == "hmm":
            return NoveltyChain.of(table, weight, self.n_hidden, ess)
        joint = kind != "product"
        if joint and table.X.shape[1] > MOST_COLUMNS:
            raise ValueError(
                f"density={kind!r} takes at most {MOST_COLUMNS} continuous columns; got {table.X.shape[1]}. Select "
                f"columns, or set density='product'"
            )
        return NoveltyMixture.of(table, weight, self.n_hidden if kind == "mixture" else 1, joint, ess)

    def _kind(self, table: Table) -> str:
        if self.density != "auto":
            return self.density
        d = table.X.shape[1]
        if d:
            return "gaussian" if d <= MOST_COLUMNS else "product"
        cells = sum(table.schema.sizes) + len(table.schema.sizes)
        return "tree" if cells <= MAX_CELLS and len(table.schema.sizes) <= MAX_VERTICES else "product"

    def _fit_distribution(self, table: Table, weight: Array, show: Progress | None) -> None:
        data = self.model_.read(table)
        problem = self._problem(show)
        fit = problem.fit(data, weight)
        self.bayes_: Distribution = fit.bayes
        self.bayes_scores_, self.level_, self.margin_ = fit.bayes_scores, fit.level, fit.margin
        self.distribution_, self.multipliers_ = fit.distribution, fit.multipliers
        self.hidden_ = self.model_.has_hidden(data)
        self.relative_entropy_, self.objective_ = fit.minimum, fit.dual
        self.gap_ = None if fit.dual is None else max(fit.minimum - fit.dual, 0.0)
        self.run_ = replace(fit.run, last=None, params=None)
        self.support_ = np.flatnonzero(self.multipliers_)
        self._warn_if_no_support()
        self.scores_ = self._row_scores(data)
        held_out = deal_weights(table, weight, FOLDS)
        if len(held_out) > 1:
            self.held_out_scores_ = problem.held_out_scores(data, weight, held_out, fit, show)
        else:
            self.held_out_scores_ = self.scores_
        lowest = float(self.scores_[weight > 0].min())
        self.offset_ = _threshold(self.held_out_scores_, weight, float(self.contamination), lowest)
        if not (self.run_.status.ok and fit.last_run.status.ok):
            warn(
                f"{type(self).__name__} did not converge: "
                f"{(fit.last_run if self.run_.status.ok else self.run_).message}",
                ConvergenceWarning,
            )

    def _problem(self, show: Progress | None) -> NoveltyProblem:
        search = Search(float(self.tol), int(self.max_iter)).with_progress(show)
        margin = self._group("margin")
        prior = None if self.objective == "bayes" else lambda level: margin.prior(float(self.C), level)
        return NoveltyProblem(self.model_, self._quantile(), prior, search)

    def _quantile(self) -> float:
        quantile = self._group("margin").quantile
        return QUANTILE if quantile is None else float(quantile)

    def _warn_if_no_support(self) -> None:
        if self.margin_ is not None and not self.multipliers_.any():
            warn(
                f"all multipliers are zero: with C={self.C!r} the required log-probability is "
                f"{self.margin_.mean(0.0):.3g}, which every row already has under the prior, so that the scores are "
                f"those of the prior. Set a larger C or a smaller ess"
            )

    # --- scores -------------------------------------------------------------------------------------------------

    def score_samples(self, X: TableLike) -> Array:
        """Expected log-probability of each row, or a lower bound with hidden variables.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
            In nats; low for rows that are not typical.
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False, new=True)
        return in_batches(table, lambda rows: self._row_scores(self.model_.read(rows)))

    def _row_scores(self, data: Any) -> Array:
        return row_scores(self.model_, self.bayes_, self.distribution_, data)

    def decision_function(self, X: TableLike) -> Array:
        """`score_samples` minus `offset_`: negative for outliers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array
            In nats.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: TableLike) -> np.ndarray:
        """Label rows as typical (1) or outliers (-1).

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array of int
            1 or -1.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def contributions(self, X: TableLike) -> Array:
        """Contribution of each value to the score of its row: the score minus the score with the value missing.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, columns) array
            In nats; strongly negative for the values that make a row unusual.
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False, new=True)
        scores = self._row_scores(self.model_.read(table))
        without = (_without(table, given.columns) for given in table.schema.inputs)
        return np.column_stack([scores - self._row_scores(self.model_.read(rows)) for rows in without])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="a missing value makes a row neither more nor less typical",
            weights=YES,
            soft_labels=IGNORED,
            absent_labels=IGNORED,
            mixed=no('with density="hmm": a row is a sequence of one variable') if self.density == "hmm" else YES,
            explanations=yes("by column: `contributions` to the score, which do not add up"),
            density=yes("expected log-probability; a lower bound with hidden variables"),
            shifted_priors=NOTHING,
            saved=YES,
        )


def _without(table: Table, columns: tuple[int, ...]) -> Table:
    """The table with all values of some columns missing."""
    X, codes = table.X.copy(), None if table.codes is None else table.codes.copy()
    X[:, [place for place, j in enumerate(table.schema.continuous) if j in columns]] = np.nan
    if codes is not None:
        codes[:, [place for place, j in enumerate(table.schema.categorical) if j in columns]] = -1
    return replace(table, X=X, codes=codes)


def _threshold(scores: Array, weight: Array, share: float, lowest: float) -> float:
    """The r-th lowest held-out score, r = share (W + 1) for a total weight W: this share of new rows is below.

    It lies between two scores, or, with r < 1, below all of them and below the `lowest` score of a training row.
    """
    order = np.argsort(scores, kind="stable")
    order = order[weight[order] > 0]
    scores, below = scores[order], np.cumsum(weight[order])
    rank = share * (below[-1] + min(1.0, below[-1] / len(scores)))  # total weights may be small
    k = min(int(np.searchsorted(below, rank * (1 + 1e-12), side="right")), len(scores) - 1)
    close = 1e-9 * (1.0 + abs(scores[k]))  # equal rows are on the same side
    k, end = (int(np.searchsorted(scores, scores[k] + step)) for step in (-close, close))
    if k == 0:
        lowest = min(float(scores[0]), lowest)
        return lowest - 1e-6 * (1.0 + abs(lowest))
    fraction = np.clip((rank - below[k - 1]) / (below[end - 1] - below[k - 1]), 0.01, 0.99)
    return float(scores[k - 1] + fraction * (scores[k] - scores[k - 1]))
