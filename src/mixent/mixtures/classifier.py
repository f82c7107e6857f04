"""The Bayes classifier with a mixture per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from mixent.base import ProbabilisticClassifier
from mixent.core.arrays import Array
from mixent.families.gaussian.structures import get_structure
from mixent.mixtures.fitting import Fitted, read_prior_rows, tell
from mixent.mixtures.job import Candidate, Job
from mixent.mixtures.model import MixtureModel, taking_part, varying_columns
from mixent.mixtures.options import check_choice, check_count, check_folds, check_positive, progress_bar
from mixent.mixtures.search import search
from mixent.tables import Labels, Table, check_spread, read_features, read_labels, read_weights


class MixtureClassifier(ProbabilisticClassifier, MixtureModel):
    """Bayes classifier with one mixture per class: p(class | x) proportional to p(class) p(x | class).

    Maximises  sum_n w_n log sum_c l_nc p_c sum_k a_ck f_ck(x_n) + log prior(f)  by EM, where l_n is one-hot for a
    known label, a distribution for an uncertain one, and all ones for an absent one (semi-supervised learning).
    Each update maximises a lower bound that touches it, so this value never falls.

    Missing values are integrated out exactly, in training and prediction. One component per class is quadratic
    discriminant analysis; with `covariance="EEE", across_classes=True` it is linear discriminant analysis, and with
    another structure the EDDA family.

    Parameters
    ----------
    n_components : int, dict or "auto"
        Components of each class, the same for all or by class label. "auto" chooses components, covariance
        structure and strength of the prior together by cross-validated log-loss, and a temperature that makes the
        probabilities fit the held-out rows (`search_`, `temperature_`).
    covariance : str, dict, list or "auto"
        Covariance structure (see `GaussianMixture`), the same for all classes or by class label. With
        n_components="auto", a list restricts the search; otherwise "auto" means "VVV".
    across_classes : bool
        Whether what a structure calls equal is equal among all classes, or only among a class's own components.
    prior : "auto", float or None
        Pseudo-rows that pull each covariance towards the covariance within classes; None is maximum likelihood.
    class_prior : "empirical" or (C,) array
        Class priors: learned with the rest, or held at these values.
    init : "kmeans++" or "random"
        How the components of a class start.
    max_components : int
        Most components of a class tried by "auto".
    cv : int, splitter or list of (train, test)
        Folds of "auto".
    tol, max_iter, accelerate, smoothing, categorical, random_state, n_jobs, progress
        See `GaussianMixture`.

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    weights_ : (C, K) array
        Joint weight of class and component.
    component_class_ : (K,) array of int
        The class each component belongs to.
    means_, covariances_, category_probabilities_, run_
        See `GaussianMixture`.
    search_ : list of dict
        What "auto" tried, best first: log_loss, error, n_components, covariance, across_classes, prior_rows,
        prior_local, noise, temperature, folds, and which was `chosen` (the simplest within noise of the best).
    temperature_ : float
        T in p(class | x) proportional to p(class) p(x | class)^T; below 1 where "auto" found the model over-confident
        on held-out rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import MixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureClassifier(n_components=1, covariance="VVV").fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        n_components: int | dict | str = "auto",
        covariance: str | dict | list = "auto",
        *,
        across_classes: bool = False,
        prior: str | float | None = "auto",
        class_prior: Any = "empirical",
        init: str = "kmeans++",
        max_components: int = 8,
        cv: Any = 5,
        tol: float = 1e-5,
        max_iter: int = 500,
        accelerate: bool = True,
        smoothing: float = 1.0,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.across_classes = across_classes
        self.prior = prior
        self.class_prior = class_prior
        self.init = init
        self.max_components = max_components
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.smoothing = smoothing
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
            None, NaN or "" for a row without a label.
        sample_weight : (n,) array, optional
            Counts: weight two is the row twice.

        Returns
        -------
        self
        """
        self._check()
        table = read_features(self, X, reset=True, categorical=self.categorical)
        check_spread(table)
        labels = read_labels(y, table.n_rows)
        weight = read_weights(sample_weight, table.n_rows)
        columns = varying_columns(table.X, weight)
        job = self._job(table, columns[0], labels, weight)
        searched = isinstance(self.n_components, str)
        records: list[dict] = []
        temperature = 1.0
        with progress_bar(self.progress, "classifier") as show:
            if searched:
                candidate, records, temperature = search(job, self._structures(), self.max_components, self.cv, show)
            else:
                candidate = self._candidate(labels.classes, job)
            found, _ = job.fit(candidate, show if not searched else None)
        self._keep(found, labels, table.schema, candidate)
        self.varying_, self.constants_ = columns
        self.search_, self.temperature_ = records, temperature
        tell(found.run, type(self).__name__, searched=searched)
        return self

    def _check(self) -> None:
        if isinstance(self.n_components, str):
            check_choice("n_components", self.n_components, ("auto",))
            if isinstance(self.covariance, dict):
                raise ValueError("covariance by class needs n_components by class or as a number, not 'auto'")
            self._structures()
        check_choice("init", self.init, ("kmeans++", "random"))
        for name in ("max_iter", "max_components"):
            check_count(name, getattr(self, name))
        check_folds("cv", self.cv)
        check_positive("tol", self.tol, zero=True)
        check_positive("smoothing", self.smoothing)
        read_prior_rows(self.prior)

    def _structures(self) -> list[str] | None:
        if isinstance(self.covariance, str) or not np.iterable(self.covariance):
            return None if self.covariance == "auto" else [get_structure(self.covariance).name]
        if not len(self.covariance):
            raise ValueError("covariance is an empty list; name at least one structure")
        return [get_structure(name).name for name in self.covariance]

    def _job(self, table: Table, varying: np.ndarray, labels: Labels, weight: Array | None) -> Job:
        soft = None if labels.codes is not None else labels.likelihood
        codes = labels.codes if labels.codes is not None else labels.likelihood.argmax(axis=1)
        absent = np.ptp(labels.likelihood, axis=1) == 0  # all ones, or even probabilities: they say as little
        codes = np.where(absent, -1, codes)
        if absent.all():
            raise ValueError("y tells no class from another in any row; label some rows of each class")
        if weight is not None and not weight[~absent].any():
            raise ValueError("every labelled row has sample_weight 0; give some labelled rows of each class a weight")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        block = taking_part(table, varying, soft, weight)
        prior = self._read_class_prior(labels)
        return Job(self, block, table.schema.sizes, seed, codes, labels.classes, prior)

    def _read_class_prior(self, labels: Labels) -> Array | None:
        if isinstance(self.class_prior, str):
            check_choice("class_prior", self.class_prior, ("empirical",))
            return None
        n = len(labels.classes)
        try:
            prior = np.asarray(self.class_prior, dtype=float)
        except (TypeError, ValueError):
            prior = np.empty(0)
        if prior.shape != (n,) or not np.isfinite(prior).all() or (prior <= 0).any():
            raise ValueError(
                f"class_prior must be 'empirical' or {n} positive numbers, one per class; got {self.class_prior!r}"
            )
        return prior / prior.sum()

    def _candidate(self, classes: np.ndarray, job: Job) -> Candidate:
        counts = by_class(
            "n_components", self.n_components, classes, lambda v: check_count("n_components", v, also="'auto'")
        )
        if max(counts) > job.table.n_rows:
            raise ValueError(f"n_components={max(counts)} needs at least as many rows; X has {job.table.n_rows}")
        given = "VVV" if isinstance(self.covariance, str) and self.covariance == "auto" else self.covariance
        if isinstance(given, list):
            raise ValueError("a list of covariances is searched: set n_components='auto', or name one structure")
        names = by_class("covariance", given, classes, lambda v: get_structure(v).name)
        if self.across_classes and len(set(names)) > 1:
            raise ValueError("across_classes=True needs one covariance structure for all classes")
        return Candidate(counts, names, bool(self.across_classes), job.default_rows())

    def _keep(self, found: Fitted, labels: Labels, schema: Any, candidate: Candidate) -> None:
        self.problem_, self.params_, self.schema_ = found.problem, found.params, schema
        self.run_ = replace(found.run, last=None)
        self.classes_ = labels.classes
        self.class_prior_ = found.params.weights.sum(axis=1)
        self.n_components_ = (found.params.weights > 0).sum(axis=1)
        self.covariance_ = list(candidate.structures)
        self.prior_rows_ = candidate.prior_rows

    def _log_joint(self, X: Any) -> Array:
        """log p(class) + T log p(x | class): the temperature softens the densities, the priors stay exact."""
        joint = self._each(self._read(X), self.problem_.log_joint, len(self.classes_))
        if self.temperature_ == 1.0:
            return joint
        log_prior = np.log(self.class_prior_)
        return log_prior + self.temperature_ * (joint - log_prior)

    def _set_class_prior(self, prior: Array) -> None:
        prior = np.maximum(prior, 1e-12)  # a class the batch seems to lack stays possible
        prior = prior / prior.sum()
        within = self.params_.weights / self.params_.weights.sum(axis=1, keepdims=True)
        self.params_ = replace(self.params_, weights=prior[:, None] * within)
        self.class_prior_ = prior

    def _sample_label(self, label: np.ndarray, component: np.ndarray) -> np.ndarray:
        return self.classes_[label]

    @property
    def weights_(self) -> Array:
        """(C, K) joint weights of class and component."""
        return self.params_.weights

    @property
    def component_class_(self) -> np.ndarray:
        """(K,) index of the class each component belongs to."""
        return self.params_.weights.argmax(axis=0)


def by_class(name: str, value: Any, classes: np.ndarray, read: Callable[[Any], Any]) -> tuple:
    """One value for all classes, or a dict with an entry for each."""
    if not isinstance(value, dict):
        return (read(value),) * len(classes)
    known = {c: c for c in classes.tolist()}
    unknown = [k for k in value if k not in known]
    missing = [c for c in known if c not in value]
    if unknown or missing:
        what = f"unknown class {unknown[0]!r}" if unknown else f"no entry for class {missing[0]!r}"
        raise ValueError(f"{name}: {what}; the classes are {', '.join(map(repr, known))}")
    return tuple(read(value[c]) for c in known)
