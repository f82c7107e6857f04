"""The estimator of fusion: class posteriors of items from the answers of several sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import YES, able, no, yes
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_flag, check_positive, check_share
from mixent.base.priors import read_class_prior, shifted_priors
from mixent.base.text import count
from mixent.core.arrays import Array, log_sum_exp
from mixent.core.driver import Status
from mixent.data import read_labels, row_weights
from mixent.data.frames import is_frame, unwrapped
from mixent.fusion.answers import UNKNOWN, Answers, AnswersLike, Column, LongAnswers, read_answers, with_symbols
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import Marginals, all_marginals, prior_shift_test
from mixent.fusion.calibration import Calibration
from mixent.fusion.dependence import Dependence, dependence, without_tests
from mixent.fusion.faults import MAX_SOURCES, SourceTests, repaired, source_tests
from mixent.fusion.learning import default_calibrations, with_labels
from mixent.fusion.messages import fit_warnings, uncalibrated
from mixent.fusion.methods import METHODS, PSEUDO_ITEMS, Fit, Settings, Task, window_prior
from mixent.fusion.rules import with_labels_fixed
from mixent.fusion.shares import estimated_shares
from mixent.fusion.sources import Layout, Source
from mixent.fusion.stream import Computed, Items
from mixent.warn import warn

Block: TypeAlias = AnswersLike | tuple[Any, ...]  # answers, (answers, y) or (answers, y, sample_weight)
ITERATIVE = ("auto", "ml-product", "ml-sum", "composite", "trimmed-mean", "min-divergence", "dawid-skene")


class Fuser(Estimator):
    """Fusion of black-box classifiers on an unlabelled batch whose class priors may have shifted.

    Several sources give labels, probabilities or scores for the same items. Each source was trained elsewhere, with
    other class priors, and has a `Calibration` with its confusion counts. No item needs a label. The fit estimates the
    class posteriors of the items and the class priors of the batch jointly [1]_.

    Maximizes an objective that depends on the method; it never decreases from one pass of the optimizer to the next.

    * "ml-product": the log-likelihood sum_i w_i log sum_k p_k prod_j r_ij(k) over the class priors p, with r_ij(k) the
      likelihood ratio of the answer of source j to item i (4.2, 4.3; for one source the EM algorithm of [2]_).
      "ml-sum" and "composite" use means over the sources instead of products.
    * "min-divergence": -R, where R is the sum over the sources of the divergence between the confusion matrix on the
      batch and the calibrated one (4.13; called information-theoretic in [1]_). R is convex, and `gap_` is an upper
      bound on the distance to its minimum. Of its many minimizers, the one of largest entropy is returned.
    * "pool": -R over one trust weight for each source. "discounted" computes the trust weights from the correlations of
      pairs of sources, and minimizes R close to them. If there are at least three sources, it then re-estimates the
      confusion matrices of those that give labels: a row of a calibration counts as much as 20 items, and all rows at
      least as much as all items.
    * "stacking" (experimental): the log-likelihood of logistic stacking over one weight for each source, near these
      discounts. Only its linear term needs labels; it is estimated from each source's own posteriors and the class
      priors of the batch.
    * "dawid-skene": the log-likelihood of the batch over the class priors and the confusion matrices [3]_, with the
      calibration counts as Dirichlet priors.
    * "majority", "sum" and "product" are fixed rules [4]_; "trimmed-mean" is a mean without the extremes.
    * "auto" leaves out a source whose answers turn out to be random, and re-estimates the confusion matrix of any other
      faulty source from the batch (`faults_`). Then it uses "discounted", unless the calibrations are assumptions: in
      this case it uses the model of the sources with the best predictions of held-out answers ("dawid-skene", "equal",
      "one-coin" or "hierarchical"), and calibrates the posteriors by these answers; a single source is returned as it
      is. Labelled items are used in such a model if it then predicts held-out labels better.

    Parameters
    ----------
    sources : dict of name -> Calibration or Source, optional
        The sources. None: every column of the table is a source without calibration, which is assumed to be correct
        more often than not, see `Calibration.guess`.
    method : {"auto", "majority", "sum", "product", "ml-product", "ml-sum", "composite", "min-divergence", "pool", \
"discounted", "stacking", "trimmed-mean", "dawid-skene"}, default="auto"
        Method of combination, see above.
    class_prior : "training", "uniform", (K,) array or dict of label -> probability, default="training"
        A list or an array is in the order of the classes of the calibrations, which must be the same for all of them.
        Class priors of the fixed rules, initial values of the others, and the null hypothesis of `prior_shift_`.
        "training": the mean of the class priors of the training sets, weighted by their numbers of rows.
    missing_class_safe : bool, default=True
        If False, "min-divergence" minimizes R~ of (4.11), which assigns items to every class; for comparison only.
    trim : float, default=0.2
        Share of the sources removed at either end by "trimmed-mean".
    confidence : float, default=0.95
        Level of the intervals. 1 - confidence is the significance level of the tests.
    tol : float, default=1e-8
        Stop when `gap_` is below this value, in nats per item; only used with method="min-divergence". If it is not
        reached, a `ConvergenceWarning` states the gap. Posteriors differ more from the minimizer than R does: with
        1e-4 by up to .5 for single items. A large value acts as a regularization. With several hundred sources, only
        first-order steps are feasible, and values below 1e-5 take thousands of passes.
    max_iter : int, default=5000
        Maximum number of iterations of the optimizer.
    unknown : {"ignore", "symbol", "error"}, default="ignore"
        What is done with an answer that is not among the symbols of the calibration. "ignore": it is no answer, with a
        warning (`mixent.DataWarning`). "symbol": in `fit`, it becomes a further symbol without calibration rows, which
        "dawid-skene" and labelled items can learn; later, as for "ignore". "error": a ValueError.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels.
    posterior_ : (n, K) array or None
        Class posteriors of the items of the fit; after `partial_fit`, of the items of the last call; None after
        `fit_blocks`.
    labels_ : (n,) array or None
        The most probable class of each item.
    prior_ : (K,) array
        Class priors that the posteriors use.
    prior_estimate_ : PriorEstimate
        Class priors of the batch with confidence intervals (`low`, `high`) that include the sampling errors of the
        batch and of the calibrations: `prior_` for "ml-product" and "discounted", and so for "auto" with calibrated
        sources; estimated from the sources' histograms alone for the other methods.
    method_ : str
        The method used; differs from `method` for "auto".
    rule_ : object
        The fitted rule, used by `predict_proba`.
    trust_ : dict of name -> float, or None
        Exponent of the likelihood ratio of each source in the posteriors: the share of a vote in product rules, an
        estimated weight in "pool", "discounted" and "stacking"; None for methods without weights.
    confusion_ : dict of name -> (K, V) array
        Confusion matrix of each source, from its calibration and the labelled items; estimated from the batch by
        "dawid-skene" and if the calibrations are assumptions, and in part by "discounted" for sources that give labels.
    dependence_ : Dependence
        Dependence of pairs of sources: `z`, `correlation` (shrunk towards that of all pairs), and `n_effective`, the
        effective number of independent sources.
    drift_ : dict of name -> Drift
        Test of the histogram of each source against its calibration.
    agreement_ : dict of name -> Agreement
        Test of the agreement of each source with the others against its calibration.
    faults_ : tuple of Fault
        Sources that contradict the others according to these tests: name, test, p-value and kind of the fault.
    prior_shift_ : PriorShiftTest
        Test whether the class priors of the batch differ from `class_prior`.
    objective_ : float or None
        Log-likelihood or -R, in nats per item; None for fixed rules.
    gap_ : float or None
        "min-divergence": upper bound on the distance to the minimum of R, in nats per item.
    history_ : tuple
        One entry for each pass of the optimizer. For "min-divergence" its objective includes a penalty that tends to
        zero.
    warnings_ : list of str
        Findings that should be checked, in sentences, the most serious first.
    items_ : (n,) array or None
        Names of the items of a long table.
    n_items_ : int
        Number of items.
    n_patterns_ : int
        Number of distinct patterns of answers.

    See Also
    --------
    Calibration : Confusion counts of a source.
    Source : A calibration with the columns of the answers.
    MaxEntStackingClassifier : Combination of classifiers that is learned from common labels.
    sklearn.ensemble.VotingClassifier : Majority vote or mean of probabilities of classifiers trained on the same rows.

    References
    ----------
    .. [1] Pal, S. (2006). Maximum entropy and improved iterative scaling for classification on mixed spaces, ensemble
       classification and extensions. PhD thesis, The Pennsylvania State University. Chapters 4 to 6 (document 004).
       Numbers of equations refer to it.
    .. [2] Saerens, M., Latinne, P. and Decaestecker, C. (2002). Adjusting the outputs of a classifier to new a priori
       probabilities: a simple procedure. Neural Computation, 14(1), 21-41.
    .. [3] Dawid, A. P. and Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates using the EM
       algorithm. Applied Statistics, 28(1), 20-28.
    .. [4] Kittler, J., Hatef, M., Duin, R. P. W. and Matas, J. (1998). On combining classifiers. IEEE Transactions on
       Pattern Analysis and Machine Intelligence, 20(3), 226-239.

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
    items_: np.ndarray | None
    n_items_: int

    # set by `fit`; after `partial_fit` when one of them is read
    posterior_: Any = Computed("_fit_all")
    labels_: Any = Computed("_fit_all")
    prior_: Any = Computed("_fit_all")
    method_: Any = Computed("_fit_all")
    rule_: Any = Computed("_fit_all")
    trust_: Any = Computed("_fit_all")
    confusion_: Any = Computed("_fit_all")
    objective_: Any = Computed("_fit_all")
    gap_: Any = Computed("_fit_all")
    history_: Any = Computed("_fit_all")
    n_patterns_: Any = Computed("_fit_all")
    _batch: Any = Computed("_fit_all")
    _fitted: Any = Computed("_fit_all")
    _fitted_layout: Any = Computed("_fit_all")

    # set when one of them is read
    dependence_: Any = Computed("_diagnose")
    prior_estimate_: Any = Computed("_diagnose")
    drift_: Any = Computed("_diagnose")
    agreement_: Any = Computed("_diagnose")
    faults_: Any = Computed("_diagnose")
    prior_shift_: Any = Computed("_diagnose")
    warnings_: Any = Computed("_diagnose")

    def __init__(
        self,
        sources: Mapping[str, Calibration | Source] | None = None,
        *,
        method: str = "auto",
        class_prior: str | ArrayLike | Mapping[Any, float] = "training",
        missing_class_safe: bool = True,
        trim: float = 0.2,
        confidence: float = 0.95,
        tol: float = 1e-8,
        max_iter: int = 5000,
        unknown: str = "ignore",
    ) -> None:
        self.sources = sources
        self.method = method
        self.class_prior = class_prior
        self.missing_class_safe = missing_class_safe
        self.trim = trim
        self.confidence = confidence
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown

    def fit(self, answers: AnswersLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the class priors of a batch and the posteriors of its items.

        Parameters
        ----------
        answers : DataFrame, dict, 2-D array or LongAnswers
            A wide table with a column for each source (probabilities in columns "source:symbol"); a dict of source ->
            labels (n,), scores (n,) or probabilities (n, V); an array of labels with the sources as columns; or the
            result of `long_answers` for a long table. Leave a value blank if the source did not answer.
        y : (n,) labels, optional
            Labels of some of the items, blank for the others. Labelled items keep their class, are added to the
            calibrations, and are used to estimate the trust weights.
        sample_weight : (n,) array, optional
            Weights of the items; a weight of 2 is equivalent to repeating the item.

        Returns
        -------
        self
        """
        layout = self._layout(answers, y)
        checked = read_answers(layout, answers, self.unknown)
        self.items_ = answers.items if isinstance(answers, LongAnswers) else None
        return self._fit(layout, checked, y, sample_weight)

    def fit_blocks(self, blocks: Iterable[Block]) -> Self:
        """Fit a batch that does not fit into memory, one block at a time.

        Only the distinct patterns of labels and binned scores are kept in memory; with a source that gives
        probabilities, all items are. Compute the posteriors afterwards, block by block, with `predict_proba`.

        Parameters
        ----------
        blocks : iterable of tables, or of tuples (answers, y) or (answers, y, sample_weight)
            Each block as for `fit`; for example the batches of a Parquet file.

        Returns
        -------
        self
            `posterior_` and `labels_` are None.
        """
        items, n, layout = None, 0, None
        for block in blocks:
            answers, y, weight = (*block, None, None)[:3] if isinstance(block, tuple) else (block, None, None)
            layout = layout or self._layout(answers, y)
            part = self._part(layout, answers, y, weight)
            n += part.n_patterns
            if items is None:
                items = Items(Batch.of(layout, part.answers, part.weight, part.labels))
            else:
                items.add(part)
        if layout is None or items is None or not n:
            raise ValueError("the answers must contain at least one item; got none")
        self._learn(layout, items.joined())
        self.n_items_, self.items_ = n, None
        self.posterior_ = self.labels_ = None
        return self

    def partial_fit(
        self, answers: AnswersLike, y: ArrayLike | None = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Update the fit with further items.

        The fit uses all items so far. It is computed when a result is read (an attribute, or a prediction); until then,
        the items are only stored.

        Parameters
        ----------
        answers, y, sample_weight
            One or more new items, as for `fit`.

        Returns
        -------
        self
            `posterior_` and `labels_` are those of the new items.
        """
        if not hasattr(self, "_first_layout"):
            return self.fit(answers, y, sample_weight=sample_weight)
        part = self._part(self._first_layout, answers, y, sample_weight)
        state = vars(self)
        items = state.get("_new_items") or Items(state["_batch"])
        items.add(part)
        self._forget("_fit_all", "_diagnose")
        self._new_items = items
        self.items_ = answers.items if isinstance(answers, LongAnswers) else None
        self.n_items_ += part.n_patterns  # of the part: its items
        return self

    def _part(
        self, layout: Layout, answers: AnswersLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> Batch:
        """Some items, each a pattern."""
        checked = read_answers(layout, answers, self.unknown)
        n = checked.n_items
        return Batch(layout, checked, row_weights(sample_weight, n), self._label_codes(layout, y, n))

    def _forget(self, *methods: str) -> None:
        """Remove the results of these methods."""
        for name in _computed_by(methods):
            self.__dict__.pop(name, None)

    def _fit_all(self) -> None:
        """Fit to all items after `partial_fit`; nothing if there are no new ones."""
        items = vars(self).get("_new_items")
        if items is None:
            return
        n_items, batch = self.n_items_, items.joined()
        self._learn(self._first_layout, batch)
        self.n_items_ = n_items
        self._set_posterior(batch.items(self._fitted.posterior), items.waiting[-1].n_patterns)

    def __getstate__(self) -> Any:
        """The state with all results, which need not be computed again by a copy."""
        self._fit_all()
        self._diagnose()
        return super().__getstate__()

    def _fit(self, layout: Layout, answers: Answers, y: ArrayLike | None, sample_weight: ArrayLike | None) -> Self:
        n = answers.n_items
        if n == 0:
            raise ValueError("the answers must contain at least one item; got none")
        batch = Batch.of(layout, answers, row_weights(sample_weight, n), self._label_codes(layout, y, n))
        self._learn(layout, batch)
        return self._set_posterior(batch.items(self._fitted.posterior), n)

    def _set_posterior(self, posterior: Array, n_new: int) -> Self:
        """Posteriors and labels of the last `n_new` items."""
        self.posterior_ = posterior[len(posterior) - n_new :]
        self.labels_ = self.classes_[self.posterior_.argmax(axis=1)]
        return self

    def _layout(self, answers: AnswersLike, y: ArrayLike | None) -> Layout:
        check_choice("unknown", self.unknown, UNKNOWN)
        if self.sources is None:
            return Layout.of(_uncalibrated(answers, y))
        layout = Layout.of(self.sources)
        return with_symbols(layout, answers) if self.unknown == "symbol" else layout

    def _label_codes(self, layout: Layout, y: ArrayLike | None, n: int) -> np.ndarray:
        """(n,) indices of the classes of labelled items, -1 for the others."""
        if y is None:
            return np.full(n, -1)
        codes = read_labels(y, n, classes=layout.classes, some=False).codes
        if codes is None:
            raise ValueError("y must be labels, blank for unlabelled items; got probabilities")
        return codes.astype(int)

    def _learn(self, layout: Layout, batch: Batch) -> None:
        settings = self._settings(layout)
        check_choice("method", self.method, tuple(METHODS))
        self._refuse_unused()
        unanswered = tuple(np.flatnonzero(~batch.answered.any(axis=1)).tolist())
        original = Batch(
            replace(layout, unanswered=unanswered), batch.answers, batch.weight, batch.labels, batch.pattern_of
        )
        tests: Callable[[], SourceTests] = partial(source_tests, original, 1 - self.confidence)
        if self.method == "auto":
            result = tests()
            original, tests = repaired(original, result), lambda: result
        fitted = with_labels(original)
        _refuse_unseen_class(fitted)
        task = self._task(replace(original, layout=fitted), settings, original.layout)
        fit = METHODS[self.method](task)
        self.__dict__.pop("_new_items", None)
        self._first_layout, self._batch = layout, batch
        self._set_fit(task, fit, tests)
        message = _shortfall(fit, settings.tol)
        if message:
            warn(message, ConvergenceWarning)

    def _task(self, batch: Batch, settings: Settings, calibrated: Layout) -> Task:
        diagnosis = Diagnosis(all_marginals(batch))
        return Task(batch, diagnosis.marginals, settings, lambda: diagnosis.dependence, calibrated)

    def _set_fit(self, task: Task, fit: Fit, tests: Callable[[], SourceTests]) -> None:
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
        self._postpone(task, tests)

    def _postpone(self, task: Task, tests: Callable[[], SourceTests]) -> None:
        """Compute the diagnostics when they are read."""
        self._forget("_diagnose")
        n_rows = self._first_layout.n_training if _is_training(self.class_prior) else np.inf
        self._not_diagnosed = task, tests, n_rows, self.confidence

    def _diagnose(self) -> None:
        """Estimates and tests of priors and sources; the tests use the calibrations without the labelled items."""
        self._fit_all()
        if "_not_diagnosed" not in vars(self):
            return
        (task, tests, n_rows, confidence), batch = self._not_diagnosed, self._not_diagnosed[0].batch
        result, reference = tests(), task.settings.prior
        self.dependence_ = task.dependence()
        self.prior_estimate_ = estimated_shares(task, self.method_, self.rule_, confidence)
        self.drift_, self.agreement_, self.faults_ = result.drift, result.agreement, result.faults
        n, gain = float(batch.weight.sum()), _gain(batch, reference)
        self.prior_shift_ = prior_shift_test(self.prior_estimate_, reference, n_rows, n, gain, confidence)
        self.warnings_ = fit_warnings(self, batch.layout, batch)
        del self._not_diagnosed

    def _refuse_unused(self) -> None:
        """Refuse parameters that the method does not use."""
        for name, methods, default in (
            ("missing_class_safe", ("min-divergence",), True),
            ("trim", ("trimmed-mean",), 0.2),
            ("tol", ("min-divergence",), 1e-8),
            ("max_iter", ITERATIVE, 5000),
        ):
            value = getattr(self, name)
            if value != default and self.method not in methods:
                listing = ", ".join(map(repr, methods))
                raise ValueError(f"{name}={value!r} is only used with method {listing}; got method={self.method!r}")

    def _settings(self, layout: Layout) -> Settings:
        check_flag("missing_class_safe", self.missing_class_safe)
        if not 0 <= check_share("trim", self.trim) < 0.5:
            raise ValueError(f"trim must be less than 0.5, because it is removed at both ends; got {self.trim!r}")
        if check_share("confidence", self.confidence) == 0:
            raise ValueError(f"confidence must be more than 0; got {self.confidence!r}")
        return Settings(
            self._reference_prior(layout),
            bool(self.missing_class_safe),
            self.trim,
            check_positive("tol", self.tol),
            check_count("max_iter", self.max_iter),
            PSEUDO_ITEMS if self.method == "auto" else 0.0,
        )

    def _reference_prior(self, layout: Layout) -> Array:
        """(K,) class priors from `class_prior`."""
        given = read_class_prior(layout.in_order(self.class_prior), layout.classes, words=("training", "uniform"))
        if given is not None:
            return given
        if not _is_training(self.class_prior):
            return np.full(layout.n_classes, 1 / layout.n_classes)
        prior = np.maximum(layout.training_prior, 1e-6)
        return prior / prior.sum()

    def predict_proba(self, answers: AnswersLike) -> Array:
        """Class posteriors of new items by the fitted rule.

        Parameters
        ----------
        answers
            As for `fit`.

        Returns
        -------
        (n, K) array
            Columns in the order of `classes_`.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(answers)
        return batch.items(self.rule_.posterior(batch))

    def _new(self, answers: AnswersLike, y: ArrayLike | None = None) -> Batch:
        checked = read_answers(self._fitted_layout, answers, self.unknown)
        n = checked.n_items
        if n == 0:
            raise ValueError("the answers must contain at least one item; got none")
        return Batch.of(self._fitted_layout, checked, labels=self._label_codes(self._fitted_layout, y, n))

    def predict(self, answers: AnswersLike) -> np.ndarray:
        """The most probable class of each new item.

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
        """Class posteriors of one item.

        Parameters
        ----------
        answers : dict of source -> answer
            A label, a score, or the probabilities of its symbols; sources that are not in the dict did not answer.

        Returns
        -------
        dict of class -> probability
        """
        check_is_fitted(self, "rule_")
        columns = {name: _as_column(value) for name, value in answers.items()}
        checked = read_answers(self._fitted_layout, columns, self.unknown)
        batch = Batch(self._fitted_layout, checked, np.ones(1), np.full(1, -1))
        return dict(zip(self.classes_.tolist(), self.rule_.posterior(batch)[0].tolist()))

    def explain(self, answers: AnswersLike) -> Array:
        """Contributions of the sources and of the class priors to the log posteriors.

        Parameters
        ----------
        answers
            As for `fit`.

        Returns
        -------
        (n, J + 1, K) array
            Contributions in nats: the sources in their order, then the class priors. The mean over the classes is
            zero, and the sum over sources and priors is the log posterior up to a constant.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(answers)
        parts = self.rule_.contributions(batch)
        if parts is None:
            raise ValueError(
                f"method {self.method_!r} averages posteriors, so that there are no additive contributions; use "
                "'product', 'ml-product', 'min-divergence', 'pool', 'discounted' or 'dawid-skene'"
            )
        of_prior = np.broadcast_to(self.rule_.prior_contribution, parts.shape[1:])
        contributions = np.concatenate([parts, of_prior[None]])
        contributions -= contributions.mean(axis=2, keepdims=True)
        return batch.items(contributions.transpose(1, 0, 2))

    def update_prior(self, window: AnswersLike) -> Self:
        """Estimate the class priors from a recent window of items, for streams; the rule stays the same otherwise.

        Parameters
        ----------
        window
            Answers to the items of the window, as for `fit`.

        Returns
        -------
        self
            `prior_estimate_`, `dependence_`, `drift_`, `prior_shift_`, `warnings_` and `prior_`, which later
            predictions use, are those of the window. "majority" does not use priors.
        """
        check_is_fitted(self, "rule_")
        batch = self._new(window)
        task = self._task(batch, self._settings(self._fitted_layout), self._fitted_layout)
        self.rule_ = self.rule_.with_prior(window_prior(task, self.method_, self.rule_))
        self.prior_ = self.rule_.prior
        original = Batch(self._first_layout, batch.answers, batch.weight, batch.labels, batch.pattern_of)
        self._postpone(task, partial(source_tests, original, 1 - self.confidence))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.required = False
        tags.classifier_tags = ClassifierTags()
        return able(
            tags,
            missing="items use the sources that answered",
            weights=YES,
            soft_labels=no("labels, blank for unlabelled items"),
            absent_labels=yes("labels are optional: sources are calibrated elsewhere"),
            mixed=yes("labels, probabilities, scores or no answer"),
            out_of_core=yes("`fit_blocks`, one block at a time"),
            explanations=yes("by source; not for means and votes"),
            batches=YES,
            shifted_priors=yes("estimated in `fit`; `update_prior` for streams"),
            saved=YES,
        )


@cache
def _computed_by(methods: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the attributes that these methods compute."""
    return tuple(name for name, value in vars(Fuser).items() if isinstance(value, Computed) and value.method in methods)


def _shortfall(fit: Fit, tol: float) -> str:
    """Why the optimizer ended before it converged; empty if it converged."""
    if fit.run is None or (fit.gap is None and fit.run.status is not Status.MAX_PASSES):
        return ""
    if fit.gap is None:
        return fit.run.message
    if fit.gap <= tol:
        return ""
    return (
        f"R is only known to be within {fit.gap:.2g} nats per item of its minimum after "
        f"{count(fit.run.n_passes, 'pass')}, not within tol={tol:g}; raise max_iter, or loosen tol"
    )


def _refuse_unseen_class(layout: Layout) -> None:
    seen = layout.n_rows.sum(axis=0) > 0
    if not seen.all():
        label = layout.classes.tolist()[int(np.argmin(seen))]
        raise ValueError(
            f"no source has calibration rows of class {label!r}; remove it from the classes of the calibrations, or "
            "pass labelled items of this class as y"
        )


def _by_source(layout: Layout, fit: Fit) -> dict[str, Array]:
    rates = layout.confusion if fit.confusion is None else fit.confusion
    return {name: rates[here].T.copy() for name, here in zip(layout.names, layout.slices)}


def _is_training(class_prior: object) -> bool:
    return isinstance(class_prior, str) and class_prior == "training"


class Diagnosis:
    """Estimates and tests of a batch, computed when needed."""

    def __init__(self, marginals: Marginals) -> None:
        self.marginals = marginals

    @cached_property
    def dependence(self) -> Dependence:
        layout = self.marginals.layout
        if uncalibrated(layout) and layout.n_sources > MAX_SOURCES:  # the pairs of many workers have few common items
            return without_tests(self.marginals)
        return dependence(self.marginals)


def _gain(batch: Batch, reference: Array) -> float:
    """Increase of the log-likelihood of the product rule from the reference priors to the maximum likelihood priors."""
    ratio = with_labels_fixed(batch.ratio, batch.labels)
    fit = shifted_priors(ratio, reference, weight=batch.weight)
    at_reference = float(batch.weight @ log_sum_exp(ratio + np.log(reference), axis=1))
    return max(fit.objective - at_reference, 0.0)


def _as_column(value: Any) -> Column:
    """The answer to one item as a column."""
    if isinstance(value, Mapping):
        return {symbol: np.array([p]) for symbol, p in value.items()}
    values = np.asarray(value)
    return values[None] if values.ndim == 1 and values.dtype.kind in "fiu" else [value]


def _uncalibrated(answers: AnswersLike, y: ArrayLike | None) -> dict[str, Calibration]:
    """Default calibrations of all columns."""
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
            "without sources the answers must be a DataFrame, a dict or LongAnswers, with a column for each source; "
            f"got {type(answers).__name__}"
        )
    return default_calibrations(columns, y)
