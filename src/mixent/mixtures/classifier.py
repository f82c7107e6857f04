"""The Bayes classifier with a mixture per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.params import check_count, check_flag
from mixent.core.observers import Progress
from mixent.data import Labels, Schema
from mixent.families.gaussian.structures import get_structure
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, Job, Outcome
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search, read_training

if TYPE_CHECKING:
    from mixent.mixtures.training import Plan


class MixtureClassifier(BayesMixture):
    """Bayes classifier with one mixture per class: p(class | x) proportional to p(class) p(x | class).

    Maximizes  sum_n w_n log sum_c l_nc p_c sum_k a_ck f_ck(x_n) + log prior(f)  by EM, where l_n is one-hot for a
    known label, a distribution for an uncertain one, and all ones for an absent one (semi-supervised learning).
    Each update maximizes a lower bound that touches it, so this value never falls.

    With `training="conditional"` or `"error"` the components so found are then trained to discriminate the classes;
    `SharedMixtureClassifier` has the formulas.

    Missing values are integrated out exactly, in training and prediction. One component per class is quadratic
    discriminant analysis; with `covariance="EEE", across_classes=True` it is linear discriminant analysis, and with
    another structure the EDDA family.

    Parameters
    ----------
    n_components : int, dict or "auto"
        Components of each class, the same for all or by class label. "auto" chooses components and covariance
        structure together; see `search`.
    covariance : str, dict, list or "auto"
        Covariance structure (see `GaussianMixture`), the same for all classes or by class label. With
        n_components="auto", a list restricts the search; otherwise "auto" means "VVV".
    across_classes : bool
        Whether what a structure calls equal is equal among all classes, or only among a class's own components.
    prior : "auto", float, None or MixturePrior
        Pseudo-rows that shrink each covariance towards the covariance within classes; "auto" takes columns + 2, or
        chooses the strength together with the components. None is plain maximum likelihood. A `MixturePrior` also has
        the smoothing of category tables.
    class_prior : "empirical" or (C,) array
        Class priors: learned with the rest, or held at these values.
    training : "likelihood", "conditional", "error", Conditional or MinimumError
        What the parameters are trained for: the joint likelihood, the conditional likelihood of the labels
        (`Conditional`), or few errors (`MinimumError`).
    search : None, str or Search
        How components are found and, with n_components="auto", chosen: a criterion ("cv", "bic", "icl", "dic",
        "dic_robust", "cbic") or a `Search`. Defaults: criterion "cv", up to 8 components for each class.
    init : "kmeans++" or "random"
        How the components of a class start.
    forgetting : float
        Share of what earlier batches left behind that each call of `partial_fit` forgets.
    tol, max_iter, accelerate, categorical, random_state, n_jobs, progress
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
        What "auto" tried: n_components, covariance, its criteria or log_loss and error, and which was `chosen`.
    path_ : list of lists of Stage
        With incremental growth, for each class every stage: n_components, log_likelihood, n_free,
        evaluations (rows x components), fitted.
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

    _groups = {"prior": MixturePrior.read, "training": read_training, "search": Search.reader("cv", 8)}

    def __init__(
        self,
        n_components: int | dict | str = "auto",
        covariance: str | dict | list = "auto",
        *,
        across_classes: bool = False,
        prior: str | float | MixturePrior | None = "auto",
        class_prior: Any = "empirical",
        training: str | Conditional | MinimumError = "likelihood",
        search: str | Search | None = None,
        init: str = "kmeans++",
        tol: float = 1e-5,
        max_iter: int = 500,
        accelerate: bool = True,
        categorical: Any = "auto",
        forgetting: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.n_components = n_components
        self.covariance = covariance
        self.across_classes = across_classes
        self.prior = prior
        self.class_prior = class_prior
        self.training = training
        self.search = search
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.categorical = categorical
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _fit_job(self, job: Job, labels: Labels, training: Plan | None, show: Progress | None) -> Outcome:
        from mixent.mixtures.selection import grown_classes, select_classes
        from mixent.mixtures.training import softened, train

        if isinstance(self.n_components, str):
            outcome = select_classes(job, self._structures(), show)
        elif self._group("search").grown:
            outcome = grown_classes(job, self._candidate(labels.classes, job), show)
        else:
            candidate = self._candidate(labels.classes, job)
            outcome = Outcome(job.fit(candidate, None if training else show)[0], candidate)
        if training is None:
            return outcome

        self._warn(outcome)

        def starts(part: Job) -> list[Fitted]:
            found = outcome.found if part is job else part.fit(outcome.candidate)[0]
            return [softened(found, outcome.temperature)]

        return replace(outcome, found=train(job, starts, training, show), temperature=1.0)

    def _keep(self, outcome: Outcome, labels: Labels, schema: Schema) -> None:
        super()._keep(outcome, labels, schema)
        self.n_components_ = (outcome.found.params.weights > 0).sum(axis=1)

    def _check(self) -> None:
        super()._check()
        check_flag("across_classes", self.across_classes)

    def _check_classes(self, job: Job) -> None:
        missing = np.flatnonzero(job.class_rows() == 0)
        if len(missing):
            name = job.classes.tolist()[missing[0]]
            raise ValueError(f"class {name!r} has no rows in the first batch; its components start from its own rows")

    def _candidate(self, classes: np.ndarray, job: Job) -> Candidate:
        counts = by_class(
            "n_components", self.n_components, classes, lambda v: check_count("n_components", v, also="'auto'")
        )
        if max(counts) > job.table.n_rows:
            raise ValueError(f"n_components={max(counts)} needs at least as many rows; X has {job.table.n_rows}")
        given = "VVV" if isinstance(self.covariance, str) and self.covariance == "auto" else self.covariance
        if isinstance(given, list):
            raise ValueError("a list of covariances is searched: set n_components='auto', or name one structure")
        names = by_class("covariance", given, classes, lambda v: get_structure(v, also="'auto'").name)
        if self.across_classes and len(set(names)) > 1:
            raise ValueError("across_classes=True needs one covariance structure for all classes")
        return Candidate(counts, names, bool(self.across_classes), job.default_rows())


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
