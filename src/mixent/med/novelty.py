"""Novelty detection by level sets of probability models (001, section 4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import IGNORED, NOTHING, YES, able, no, yes
from mixent.base.convergence import FittedByRun
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_number, check_positive
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array, weighted_quantile
from mixent.core.driver import Event
from mixent.data import Table, check_spread, read_features, read_weights
from mixent.hmm.sequences import one_alphabet
from mixent.med.families import Distribution
from mixent.med.margins import MARGINS
from mixent.med.novelty_models import NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees
from mixent.med.novelty_problem import fit_posterior, level_set
from mixent.med.options import Margin
from mixent.med.solving import Search
from mixent.med.training_sets import in_batches
from mixent.med.tree_columns import MOST_CELLS, MOST_VERTICES

DENSITIES = ("auto", "product", "tree", "gaussian", "mixture", "hmm")
HIDDEN = ("mixture", "hmm")  # with components or states
MOST_COLUMNS = 100  # continuous, of a joint Gaussian
QUANTILE = 0.5  # of the training log-probabilities, that is required of every row (default)


class MEDNoveltyDetector(FittedByRun, OutlierMixin, Estimator):
    """Novelty detection by maximum entropy: fits a density under which all training rows are about equally probable.

    The fit is the distribution over the parameters of a density under which every training row is as probable as its
    margin on average, with the least relative entropy to the prior: typical rows need not become more probable. The
    margins have a prior about `l`, a quantile of the training rows' log-probabilities under the Bayesian fit.
    Maximizes the dual

        J(m) = sum_t w_t [ l m_t + log(1 - m_t / C) ] - log Z(m),    0 <= m_t < C                    (001, equation 45)

    for margin="exponential", where log Z is the log-partition with every row counted m_t times (a Bayesian fit counts
    each once). Newton's method minimizes the primal objective: its negative never falls. Where components, states or
    numbers are hidden, each log-probability is replaced by a lower bound, and the relative entropy never rises in the
    two alternating steps (Theorem 6).

    Parameters
    ----------
    density : "auto", "product", "tree", "gaussian", "mixture" or "hmm"
        "product": independent columns; "tree": averaged over all trees of the columns (numbers are softly quantized by
        a fixed mixture per column; one with a single component has no edges); "gaussian": numbers jointly Gaussian,
        categories independent; "mixture": of `n_hidden` such; "hmm": each row is a sequence, emitted by `n_hidden`
        hidden states. "auto": "tree" where all columns are categories, else "gaussian" ("product" beyond 100 numbers,
        300 categorical columns or 4000 values in all).
    n_hidden : int
        Components of a mixture, states of an hmm.
    objective : "margin" or "bayes"
        The level set; or the Bayesian fit with the same prior, a baseline.
    margin : "exponential", "laplace", "gaussian" or Margin
        Prior of the margins, about the median of the training rows' log-probabilities, or another `quantile` of a
        `Margin`.
    C : float
        Upper bound on each row's multiplier: how often a row may count at most.
    ess : float
        Equivalent sample size of the prior: rows spread evenly over every table, and as many of a standard
        Gaussian (more where the number of columns requires it).
    contamination : float
        Share of the training rows that `predict` calls outliers; it sets the threshold.
    tol : float
        Stop when the gap per row is smaller, in nats.
    max_iter : int
        Maximum number of passes.
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    offset_ : float
        The threshold: `decision_function` is `score_samples` minus it.
    scores_ : (n,) array
        `score_samples` of the training rows.
    bayes_scores_ : (n,) array
        The same under the Bayesian fit.
    multipliers_ : (n,) array
        How often each row counts; zero for a row that is typical without.
    support_ : array
        Rows that count.
    level_ : float
        l, nats.
    relative_entropy_ : float
        D(P || P0) plus the cost of the margins: the minimum found.
    objective_, gap_ : float or None
        J at the solution, and an upper bound on its distance from the optimum; None with objective="bayes".
    hidden_ : bool
        Whether the fit inferred hidden values: components, states, or missing numbers of a joint Gaussian.
    run_
        How the optimization ended; with hidden variables, its trace is the sequence of Theorem 6.
    distribution_, bayes_, model_
        The distributions over the parameters (solution and Bayesian fit), and the model that computes scores.

    Notes
    -----
    A category that no training row had is new, not missing, and improbable. A missing value makes a row neither more
    nor less typical: it is replaced by the column's average; missing numbers of a joint Gaussian have their conditional
    distribution, whose entropy is subtracted; a missing step of a sequence counts as its other steps do. The scores of
    rows with missing values vary less, so that somewhat fewer of them fall below the threshold.

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
        margin: Any = "exponential",
        C: float = 1.0,
        ess: float = 1.0,
        contamination: float = 0.05,
        tol: float = 1e-6,
        max_iter: int = 1000,
        categorical: Any = "auto",
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
            raise ValueError(f"ess must be a number of rows, from 1e-6 to 1e5; got {self.ess!r}")
        check_positive("tol", self.tol)
        check_count("max_iter", self.max_iter)
        if not check_number(self.contamination) or not 0 <= self.contamination <= 0.5:
            raise ValueError(f"contamination must be a share of the rows, from 0 to 0.5; got {self.contamination!r}")
        if self.n_hidden != 3 and self.density not in HIDDEN:
            words = " and ".join(map(repr, HIDDEN))
            raise ValueError(f"n_hidden={self.n_hidden!r} is only used with density {words}; got {self.density!r}")

    def _check_margin(self) -> None:
        margin = self._group("margin")
        margin.check(tuple(MARGINS))
        if margin.target is not None:
            raise ValueError(
                f"target of the margin is only used by classifiers; MEDNoveltyDetector takes a quantile, got "
                f"target={margin.target!r}"
            )
        usual = margin.distribution == "exponential" and margin.quantile is None
        for name, given in {"margin": not usual, "C": self.C != 1.0}.items():
            if given and self.objective == "bayes":
                raise ValueError(f"{name}={getattr(self, name)!r} is only used with objective='margin'")

    # --- fit ----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the detector to typical rows.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories.
        y : ignored
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        given = read_weights(sample_weight, table.n_rows)
        weight = np.ones(table.n_rows) if given is None else given
        if self.density == "hmm":
            table = one_alphabet(table)
        check_spread(table)
        self.schema_ = table.schema
        self.model_ = self._model(table, weight)
        data = self.model_.read(table)
        with progress_bar(self.progress, "novelty") as show:
            self._search(data, weight, show)
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
                f"density={kind!r} has a joint Gaussian of {table.X.shape[1]} numbers; the most are {MOST_COLUMNS}: "
                f"choose columns, or take density='product'"
            )
        return NoveltyMixture.of(table, weight, self.n_hidden if kind == "mixture" else 1, joint, ess)

    def _kind(self, table: Table) -> str:
        if self.density != "auto":
            return self.density
        d = table.X.shape[1]
        if d:
            return "gaussian" if d <= MOST_COLUMNS else "product"
        cells = sum(table.schema.sizes) + len(table.schema.sizes)
        return "tree" if cells <= MOST_CELLS and len(table.schema.sizes) <= MOST_VERTICES else "product"

    def _search(self, data: Any, weight: Array, show: Any) -> None:
        watch = () if show is None else (_watching(show, int(self.max_iter)),)
        search = Search(float(self.tol), int(self.max_iter), observers=watch)
        start = fit_posterior(self.model_, data, weight, search)
        self.bayes_: Distribution = start.params
        first = self.model_.evaluate(self.bayes_, data)
        self.bayes_scores_ = first.bound - first.missing_gain
        self.level_ = weighted_quantile(self.bayes_scores_, weight, self._quantile())
        self.margin_ = None if self.objective == "bayes" else self._group("margin").prior(float(self.C), self.level_)
        if self.margin_ is None:
            self.distribution_, run, inner, lam = self.bayes_, start, start, np.where(weight > 0, 1.0, 0.0)
            minimum, dual = self.bayes_.divergence(self.model_.prior), None
        else:
            found, run = level_set(self.model_, data, weight, self.margin_, search, self.bayes_, -first.missing_gain)
            self.distribution_, inner, lam = found.joint.parts[0], found.run, found.multipliers[:, 0]
            minimum, dual = found.minimum, found.dual
        self.hidden_ = self.model_.has_hidden(data)
        self.relative_entropy_, self.objective_ = minimum, dual
        self.gap_ = None if dual is None else max(minimum - dual, 0.0)
        self.run_ = replace(run, last=None, params=None)
        self.multipliers_ = lam
        self.support_ = np.flatnonzero(self.multipliers_)
        self._check_counted()
        self.scores_ = self._scored(data)
        self.offset_ = _threshold(self.scores_, weight, float(self.contamination))
        if not (self.run_.status.ok and inner.status.ok):
            warnings.warn(
                f"{type(self).__name__} did not converge: {(inner if self.run_.status.ok else self.run_).message}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _quantile(self) -> float:
        quantile = self._group("margin").quantile
        return QUANTILE if quantile is None else float(quantile)

    def _check_counted(self) -> None:
        if self.margin_ is not None and not self.multipliers_.any():
            warnings.warn(
                f"no row has a multiplier: with C={self.C!r} the required log-probability is "
                f"{self.margin_.mean(0.0):.3g}, which every row already has under the prior; the scores are those of "
                f"the prior. Set a larger C or a smaller ess",
                UserWarning,
                stacklevel=4,
            )

    # --- scores -------------------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """The expected log-probability of each row, nats; a lower bound of it with hidden variables.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array; low for rows that are not typical.
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False, new=True)
        return in_batches(table, lambda rows: self._scored(self.model_.read(rows)))

    def _scored(self, data: Any) -> Array:
        """(n,) what gaps bring, as the Bayesian fit has it, is taken off: they make no row more typical."""
        missing_gain = self.model_.evaluate(self.bayes_, data).missing_gain if self.model_.has_hidden(data) else 0.0
        return self.model_.evaluate(self.distribution_, data).bound - missing_gain

    def decision_function(self, X: Any) -> Array:
        """`score_samples` minus `offset_`: negative for outliers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for typical rows, -1 for outliers.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n,) array of int.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def contributions(self, X: Any) -> Array:
        """The contribution of each value to its row's score: the score minus that with the value missing.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, columns) array, nats; very negative for the values that make a row unusual.
        """
        check_is_fitted(self)
        table = read_features(self, X, reset=False, new=True)
        scores = self._scored(self.model_.read(table))
        without = (_without(table, j) for j in range(len(table.schema.columns)))
        return np.column_stack([scores - self._scored(self.model_.read(rows)) for rows in without])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return able(
            tags,
            reads_tables=True,
            missing="makes a row neither more nor less typical",
            weights=YES,
            soft_labels=IGNORED,
            absent_labels=IGNORED,
            mixed=no('with density="hmm": a row is a sequence of one variable') if self.density == "hmm" else YES,
            explanations=NOTHING,
            density=yes("expected log-probability; a lower bound with hidden variables"),
            shifted_priors=NOTHING,
            saved=YES,
        )


def _without(table: Table, j: int) -> Table:
    """The table with all values of a column missing."""
    if j in table.schema.continuous:
        X = table.X.copy()
        X[:, table.schema.continuous.index(j)] = np.nan
        return replace(table, X=X)
    codes = np.array(table.codes)
    codes[:, table.schema.categorical.index(j)] = -1
    return replace(table, codes=codes)


def _threshold(scores: Array, weight: Array, share: float) -> float:
    """Half-way between the rows that are to be outliers and the others."""
    order = np.argsort(scores, kind="stable")
    order = order[weight[order] > 0]
    scores, below = scores[order], np.cumsum(weight[order])
    k = int(np.searchsorted(below, share * below[-1] * (1 + 1e-12), side="right"))
    k = int(np.searchsorted(scores, scores[k] - 1e-9 * (1.0 + abs(scores[k]))))  # equal rows are treated alike
    return float(scores[0] - 1e-6 * (1.0 + abs(scores[0])) if k == 0 else 0.5 * (scores[k - 1] + scores[k]))


def _watching(show: Any, most: int) -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        show(event.n_pass, most, f"pass {event.n_pass}, objective {event.objective:.6g}")

    return watch
