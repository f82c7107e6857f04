"""The estimator of fusion: posteriors of items from the answers of sources."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, able, no, yes
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_share
from mixent.base.priors import shifted_priors
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Status
from mixent.data import read_labels, row_weights
from mixent.data.frames import is_frame, unwrapped
from mixent.fusion.answers import Answers, AnswersLike, Column, LongAnswers, read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import Marginals, all_marginals, prior_shift_test
from mixent.fusion.calibration import Calibration
from mixent.fusion.dependence import Dependence, dependence
from mixent.fusion.drift import Drift, drift
from mixent.fusion.learning import guesses, with_labels
from mixent.fusion.messages import fit_warnings
from mixent.fusion.methods import METHODS, PSEUDO_ITEMS, Fit, Settings, Task, window_prior
from mixent.fusion.rules import only_known
from mixent.fusion.sources import Layout, Source

SEARCHED = ("auto", "ml-product", "ml-sum", "composite", "trimmed-mean", "min-divergence", "dawid-skene")
MOST_COST = 1e7  # sources squared times classes cubed, likewise
MOST_DRIFTS = 64  # sources that are tested for drift: each needs an estimate by all others


class Fuser(Estimator):
    """Fusion of black-box classifiers on an unlabelled batch whose class priors may have shifted.

    Each source was trained elsewhere, with other class priors, and gives labels, probabilities or scores for the items.
    Its `Calibration` holds its confusion counts. No item needs a label. The fit estimates the posteriors of the items
    and the class priors of the batch together.

    Maximizes an objective that depends on the method, and never decreases from pass to pass.

    * "ml-product": sum_i w_i log sum_k p_k prod_j r_ij(k), with r_ij(k) the likelihood ratio of the answer of source j
      (4.2, 4.3); "ml-sum" and "composite" use means instead of products.
    * "min-divergence": minus R, the sum over sources of the divergence of the confusion matrix on the batch from the
      calibrated one (4.13; the document calls this method information-theoretic). R is convex, and `gap_` bounds the
      distance to its minimum.
    * "pool": minus R over one trust weight for each source; "discounted" takes the weights from the correlation of
      pairs of sources, and minimizes R close to them.
    * "dawid-skene": the likelihood of the batch, with the confusion matrices estimated anew and the calibration counts
      as their prior.
    * "majority", "sum", "product" are fixed rules, "trimmed-mean" a mean without the extremes.
    * "auto" uses "ml-product" where the sources do not agree more than their confusion matrices imply, "discounted"
      where they do, and "dawid-skene" where the calibrations are assumptions.

    Parameters
    ----------
    sources : dict of name -> Calibration or Source, optional
        None: every column of the table is a source that has not been calibrated and is assumed to be right more often
        than not, see `Calibration.guess`.
    method : str
        "auto", "majority", "sum", "product", "ml-product", "ml-sum", "composite", "min-divergence", "pool",
        "discounted", "trimmed-mean", "dawid-skene".
    class_prior : "training", "uniform", (K,) array or dict of class -> prior
        Class priors of the fixed rules, initial values of the others, and the null hypothesis of `prior_shift_`.
        "training": the priors of the sources' training sets, weighted by their numbers of rows.
    missing_class_safe : bool
        False: "min-divergence" minimizes the R~ of (4.11), which assigns items to every class; for comparison.
    trim : float
        Share of the sources removed at either end by "trimmed-mean".
    confidence : float
        Level of the intervals and of the tests behind the warnings.
    tol : float
        "min-divergence": the gap to stop at, in nats per item.
    max_iter : int
        Maximum number of passes.

    Attributes
    ----------
    classes_ : (K,) array
    posterior_ : (n, K) array
        Of the items fitted; after `partial_fit`, of the items of the last call.
    labels_ : (n,) array
        The most probable classes.
    prior_ : (K,) array
        Class priors used in the posteriors.
    prior_estimate_ : PriorEstimate
        Priors estimated from the sources' histograms alone, with intervals (`low`, `high`) that include the sampling
        error of the batch and of the calibrations.
    method_ : str
        The method used.
    trust_ : dict of name -> float, or None
        Exponent of each source's likelihood ratio in the posteriors: shares of a vote in product rules, learned in
        "pool" and "discounted"; None for methods without weights.
    confusion_ : dict of name -> (K, V) array
        Rates of each source's symbols in each class, from the calibration and the labels given; estimated anew by
        "dawid-skene".
    dependence_ : Dependence
        Pairs of sources: `z`, `correlation`, and `n_effective`, the effective number of independent sources.
    drift_ : dict of name -> Drift
        Test of each source's answers against its calibration.
    prior_shift_ : PriorShiftTest
        Test whether the class priors differ from `class_prior`.
    objective_ : float or None
        In nats per item: log-likelihood, or minus R; None for fixed rules.
    gap_ : float or None
        "min-divergence": upper bound on the distance to the minimum of R, in nats per item.
    history_ : tuple
        One entry for each pass of the optimizer.
    warnings_ : list of str
        What to check, in sentences.
    items_ : (n,) array or None
        Names of the items of a long table.
    n_items_, n_patterns_ : int

    Examples
    --------
    >>> from mixent import Calibration, Fuser
    >>> vendors = {
    ...     "A": Calibration.from_counts([[90, 10], [20, 80]], classes=["healthy", "ill"]),
    ...     "B": Calibration.from_counts([[80, 20], [10, 90]], classes=["healthy", "ill"]),
    ... }
    >>> votes = {"A": ["ill", "healthy", "healthy", "ill"] * 10, "B": ["ill", "healthy", "healthy", None] * 10}
    >>> fuser = Fuser(vendors, method="ml-product").fit(votes)
    >>> fuser.labels_[:4].tolist()
    ['ill', 'healthy', 'healthy', 'ill']
    >>> {label: round(p, 2) for label, p in fuser.fuse_one({"A": "ill"}).items()}
    {'healthy': 0.13, 'ill': 0.87}
    """

    classes_: np.ndarray
    posterior_: Array | None
    labels_: np.ndarray | None
    prior_: Array
    items_: np.ndarray | None
    n_items_: int

    def __init__(
        self,
        sources: Mapping[str, Calibration | Source] | None = None,
        *,
        method: str = "auto",
        class_prior: str | ArrayLike | Mapping[Any, float] = "training",
        missing_class_safe: bool = True,
        trim: float = 0.2,
        confidence: float = 0.95,
        tol: float = 1e-4,
        max_iter: int = 5000,
    ) -> None:
        self.sources = sources
        self.method = method
        self.class_prior = class_prior
        self.missing_class_safe = missing_class_safe
        self.trim = trim
        self.confidence = confidence
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, answers: AnswersLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fuse a batch.

        Parameters
        ----------
        answers : DataFrame, dict, 2-D array or LongAnswers
            A wide table with a column for each source (probabilities in columns "source:symbol"); a dict of source ->
            labels (n,), scores (n,) or probabilities (n, V); rows of labels in the order of the sources; or the result
            of `long_answers` for a long table. Blank: no answer.
        y : (n,) labels, optional
            Classes of the items where known, blank for the others. These items keep their class, are added to the
            calibrations, and are used to estimate the trust weights.
        sample_weight : (n,) array, optional
            Weights of the items; a weight of 2 is equivalent to repeating the item.

        Returns
        -------
        self
        """
        layout = self._layout(answers, y)
        read = read_answers(layout, answers)
        self.items_ = answers.items if isinstance(answers, LongAnswers) else None
        return self._fit(layout, read, y, sample_weight)

    def fit_blocks(self, blocks: Iterable[AnswersLike]) -> Self:
        """Fuse a batch that does not fit into memory, read a block at a time.

        Only the distinct patterns of labels and binned scores are kept; of a source that gives probabilities every
        item is. Predict the items afterwards, block by block, with `predict_proba`.

        Parameters
        ----------
        blocks : iterable of tables
            Each as for `fit`; for example the batches of a Parquet file.

        Returns
        -------
        self
            `posterior_` and `labels_` are None.
        """
        batch, n = None, 0
        layout = None if self.sources is None else Layout.of(self.sources)
        for table in blocks:
            layout = layout or self._layout(table, None)
            part = Batch.of(layout, read_answers(layout, table))
            n += len(part.weight) if part.pattern_of is None else len(part.pattern_of)
            batch = part if batch is None else batch.joined(part)
        if layout is None or batch is None or not n:
            raise ValueError("there are no items to fuse")
        self._learn(layout, batch)
        self.n_items_, self.items_ = n, None
        self.posterior_ = self.labels_ = None
        return self

    def partial_fit(
        self, answers: AnswersLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fuse further items: the fit uses all items so far, and the new ones get posteriors.

        Parameters
        ----------
        answers, y, sample_weight
            As for `fit`, one item or more.

        Returns
        -------
        self
            `posterior_` and `labels_` are those of the new items.
        """
        if not hasattr(self, "_batch"):
            return self.fit(answers, y, sample_weight=sample_weight)
        layout, before, n_before = self._first_layout, self._batch, self.n_items_
        read = read_answers(layout, answers)
        known = self._known(layout, y, read.n_items)
        weight = row_weights(sample_weight, read.n_items)
        batch = before.joined(Batch(layout, read, weight, known))
        self.items_ = answers.items if isinstance(answers, LongAnswers) else None
        self._learn(layout, batch)
        self.n_items_: int = n_before + read.n_items  # earlier items are kept as patterns
        return self._decided(
            self._fitted.posterior if batch.pattern_of is None else batch.items(self._fitted.posterior), read.n_items
        )

    def _fit(self, layout: Layout, answers: Answers, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        n = answers.n_items
        if n == 0:
            raise ValueError("there are no items to fuse")
        batch = Batch.of(layout, answers, row_weights(sample_weight, n), self._known(layout, y, n))
        self._learn(layout, batch)
        return self._decided(batch.items(self._fitted.posterior), n)

    def _decided(self, posterior: Array, n_new: int) -> Self:
        self.posterior_ = posterior[len(posterior) - n_new :]
        self.labels_ = self.classes_[self.posterior_.argmax(axis=1)]
        return self

    def _layout(self, answers: AnswersLike, y: ArrayLike | None) -> Layout:
        if self.sources is not None:
            return Layout.of(self.sources)
        return Layout.of(_guessed(answers, y))

    def _known(self, layout: Layout, y: ArrayLike | None, n: int) -> np.ndarray:
        if y is None:
            return np.full(n, -1)
        codes = read_labels(y, n, classes=layout.classes, some=False).codes
        if codes is None:
            raise ValueError("y must be labels, blank where the class is not known; it holds probabilities")
        return codes.astype(int)

    def _learn(self, layout: Layout, batch: Batch) -> None:
        settings = self._settings(layout)
        check_choice("method", self.method, tuple(METHODS))
        self._refuse_idle()
        self._first_layout, self._batch = layout, batch
        unanswered = tuple(np.flatnonzero(~batch.answered.any(axis=1)).tolist())
        plain = Batch(
            replace(layout, unanswered=unanswered), batch.answers, batch.weight, batch.known, batch.pattern_of
        )
        layout = with_labels(plain)
        _refuse_unknown(layout)
        batch = replace(plain, layout=layout)
        task = self._task(batch, settings, plain.layout.counts)
        fit = METHODS[self.method](task)
        self._keep(task, fit, plain)
        if fit.run is not None and fit.run.status is Status.MAX_PASSES:
            warnings.warn(fit.run.message, ConvergenceWarning, stacklevel=4)

    def _task(self, batch: Batch, settings: Settings, counts: Array) -> Task:
        found = Diagnosis(all_marginals(batch))
        return Task(batch, found.marginals, settings, lambda: found.dependence, counts)

    def _keep(self, task: Task, fit: Fit, plain: Batch) -> None:
        batch, layout = task.batch, task.batch.layout
        self._fitted, self._fitted_layout, self.rule_ = fit, layout, fit.rule
        self.classes_, self.method_ = layout.classes, fit.method
        self.prior_, self.objective_, self.gap_ = fit.rule.prior, fit.objective, fit.gap
        self.history_ = () if fit.run is None else fit.run.trace
        self.n_items_, self.n_patterns_ = (
            batch.n_patterns if batch.pattern_of is None else len(batch.pattern_of),
            batch.n_patterns,
        )
        trust = getattr(fit.rule, "trust", None)
        self.trust_ = None if trust is None else dict(zip(layout.names, trust.tolist()))
        self.confusion_ = _by_source(layout, fit)
        self._look(task, plain)

    def _look(self, task: Task, plain: Batch) -> None:
        """Estimates and tests of priors and sources; `plain` has the calibrations without the labels."""
        batch, settings = task.batch, task.settings
        self.dependence_ = task.dependence()
        self.prior_estimate_ = task.marginals.estimate(self.dependence_.correlation, self.confidence)
        self.drift_ = _drifts(plain, self.dependence_.correlation)
        counted = self._first_layout.n_training if _is_training(self.class_prior) else np.inf
        n, gain = float(batch.weight.sum()), _gain(batch, settings.prior)
        self.prior_shift_ = prior_shift_test(self.prior_estimate_, settings.prior, counted, n, gain, self.confidence)
        self.warnings_ = fit_warnings(self, batch.layout, batch)

    def _refuse_idle(self) -> None:
        for name, serves, default in (
            ("missing_class_safe", ("min-divergence",), True),
            ("trim", ("trimmed-mean",), 0.2),
            ("tol", ("min-divergence",), 1e-4),
            ("max_iter", SEARCHED, 5000),
        ):
            value = getattr(self, name)
            if value != default and self.method not in serves:
                methods = ", ".join(map(repr, serves))
                raise ValueError(f"{name}={value!r} is only used with method {methods}; got method={self.method!r}")

    def _settings(self, layout: Layout) -> Settings:
        check_flag("missing_class_safe", self.missing_class_safe)
        if not 0 <= check_share("trim", self.trim) < 0.5:
            raise ValueError(f"trim must be less than 0.5, as it is removed at either end; got {self.trim!r}")
        if check_share("confidence", self.confidence) == 0:
            raise ValueError(f"confidence must be more than 0; got {self.confidence!r}")
        return Settings(
            self._start(layout),
            bool(self.missing_class_safe),
            self.trim,
            check_positive("tol", self.tol),
            check_count("max_iter", self.max_iter),
            PSEUDO_ITEMS if self.method == "auto" else 0.0,
        )

    def _start(self, layout: Layout) -> Array:
        K = layout.n_classes
        if _is_training(self.class_prior):
            prior = layout.training_prior
            return np.maximum(prior, 1e-6) / np.maximum(prior, 1e-6).sum()
        if isinstance(self.class_prior, str) and self.class_prior == "uniform":
            return np.full(K, 1 / K)
        given = self.class_prior
        if isinstance(given, Mapping):
            given = [given.get(label, np.nan) for label in layout.classes.tolist()]
        try:
            prior = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            prior = np.empty(0)
        if prior.shape != (K,) or not np.isfinite(prior).all() or (prior <= 0).any():
            raise ValueError(
                f"class_prior must be 'training', 'uniform' or {K} positive numbers, one per class; "
                f"got {self.class_prior!r}"
            )
        return prior / prior.sum()

    def predict_proba(self, answers: AnswersLike) -> Array:
        """Posteriors of new items by the fitted rule.

        Parameters
        ----------
        answers
            As for `fit`.

        Returns
        -------
        (n, K) array, columns in the order of `classes_`.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(answers)
        return batch.items(self.rule_.posterior(batch))

    def _new(self, answers: AnswersLike) -> Batch:
        read = read_answers(self._fitted_layout, answers)
        if read.n_items == 0:
            raise ValueError("there are no items to fuse")
        return Batch.of(self._fitted_layout, read)

    def predict(self, answers: AnswersLike) -> np.ndarray:
        """The most probable class of new items.

        Parameters
        ----------
        answers
            As for `fit`.

        Returns
        -------
        (n,) array
        """
        proba = self.predict_proba(answers)
        return self.classes_[proba.argmax(axis=1)]

    def fuse_one(self, answers: Mapping[str, Any]) -> dict[Any, float]:
        """Posterior of one item.

        Parameters
        ----------
        answers : dict of source -> its answer
            A label, a score, or probabilities of its symbols; sources that are not named have no answer.

        Returns
        -------
        dict of class -> probability
        """
        check_is_fitted(self, "rule_")
        one = {name: _as_column(value) for name, value in answers.items()}
        batch = Batch(self._fitted_layout, read_answers(self._fitted_layout, one), np.ones(1), np.full(1, -1))
        return dict(zip(self.classes_.tolist(), self.rule_.posterior(batch)[0].tolist()))

    def explain(self, answers: AnswersLike) -> Array:
        """Contributions of the sources and of the priors to the log posterior.

        Parameters
        ----------
        answers
            As for `fit`.

        Returns
        -------
        (n, J + 1, K) array: the sources in their order, then the priors. The mean over the classes is zero, and the sum
        over sources and priors is the log posterior up to a constant.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(answers)
        parts = self.rule_.contributions(batch)
        if parts is None:
            raise ValueError(
                f"method {self.method_!r} averages posteriors, without additive contributions; use a product rule, "
                "'min-divergence', 'pool', 'discounted' or 'dawid-skene'"
            )
        rest = np.broadcast_to(self.rule_.base, parts.shape[1:])
        every = np.concatenate([parts, rest[None]])
        every -= every.mean(axis=2, keepdims=True)
        return batch.items(every.transpose(1, 0, 2))

    def update_prior(self, window: AnswersLike) -> Self:
        """Keep the rule, and estimate the class priors anew from a recent window of items, for streams.

        Parameters
        ----------
        window
            Answers, as for `fit`.

        Returns
        -------
        self
            `prior_`, which later predictions use, `prior_estimate_`, `dependence_`, `drift_`, `prior_shift_` and
            `warnings_` are those of the window. "majority" has no priors.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(window)
        task = self._task(batch, self._settings(self._fitted_layout), self._fitted_layout.counts)
        self.rule_ = self.rule_.at(window_prior(task, self.method_, self.rule_))
        self.prior_ = self.rule_.prior
        self._look(task, Batch(self._first_layout, batch.answers, batch.weight, batch.known, batch.pattern_of))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.required = False
        tags.classifier_tags = ClassifierTags()
        return able(
            tags,
            missing="a source without an answer to an item is left out of it",
            weights=YES,
            soft_labels=no("known labels, blank for the others"),
            absent_labels=yes("labels are optional: sources are calibrated elsewhere"),
            mixed=yes("labels, probabilities, scores or no answer"),
            out_of_core=yes("`fit_blocks`, a block at a time"),
            explanations=yes("by source; for product rules"),
            batches=YES,
            shifted_priors=yes("estimated in `fit`; `update_prior` for streams"),
            saved=YES,
        )


def _drifts(batch: Batch, correlation: Array) -> dict[str, Drift]:
    """Tested on items without a known class: the others are part of the calibrations."""
    layout = batch.layout
    if layout.n_sources > MOST_DRIFTS or layout.n_sources**2 * layout.n_classes**3 > MOST_COST:
        return {}
    unknown = np.flatnonzero(batch.known < 0)
    marginals = all_marginals(batch if len(unknown) == batch.n_patterns else batch.part(unknown))
    return {name: drift(marginals, j, correlation) for j, name in enumerate(layout.names)}


def _refuse_unknown(layout: Layout) -> None:
    seen = layout.n_rows.sum(axis=0) > 0
    if not seen.all():
        label = layout.classes.tolist()[int(np.argmin(seen))]
        raise ValueError(
            f"no source has calibration rows of class {label!r}; leave it out of the classes of the calibrations, or "
            "give labels"
        )


def _by_source(layout: Layout, fit: Fit) -> dict[str, Array]:
    rates = layout.confusion if fit.confusion is None else fit.confusion
    return {name: rates[here].T.copy() for name, here in zip(layout.names, layout.slices)}


def _is_training(class_prior: object) -> bool:
    return isinstance(class_prior, str) and class_prior == "training"


class Diagnosis:
    """Diagnostics of a batch, computed when needed."""

    def __init__(self, marginals: Marginals) -> None:
        self.marginals = marginals

    @cached_property
    def dependence(self) -> Dependence:
        return dependence(self.marginals)


def _gain(batch: Batch, old: Array) -> float:
    """Increase of the product rule's log-likelihood from the reference priors to its own."""
    ratio = only_known(batch.ratio, batch.known)
    found = shifted_priors(ratio, old, weight=batch.weight)
    before = float(batch.weight @ log_sum_exp(ratio + np.log(old), axis=1))
    return max(found.objective - before, 0.0)


def _as_column(value: Any) -> Column:
    """The answer to one item as a column."""
    if isinstance(value, Mapping):
        return {symbol: np.array([p]) for symbol, p in value.items()}
    values = np.asarray(value)
    return values[None] if values.ndim == 1 and values.dtype.kind in "fiu" else [value]


def _guessed(answers: AnswersLike, y: ArrayLike | None) -> dict[str, Calibration]:
    """Assumed calibrations of all columns, with all labels among the answers."""
    if isinstance(answers, LongAnswers):
        columns = answers.values
    elif isinstance(answers, Mapping):
        columns = dict(answers)
    elif is_frame(unwrapped(answers)):
        import narwhals.stable.v1 as nw

        frame = nw.from_native(unwrapped(answers), eager_only=True)
        columns = {str(name): frame.get_column(name).to_list() for name in frame.columns}
    else:
        raise ValueError(
            "without sources the answers must be a DataFrame, a dict or LongAnswers, whose columns are the sources"
        )
    return guesses(columns, y)
