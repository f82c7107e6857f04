"""The Bayes classifier with a mixture per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.params import check_count
from mixent.data import Labels
from mixent.families.gaussian.structures import get_structure
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, Job, Outcome
from mixent.mixtures.fitting import Fitted

if TYPE_CHECKING:
    from mixent.mixtures.training import Training


class MixtureClassifier(BayesMixture):
    """Bayes classifier with one mixture per class: p(class | x) proportional to p(class) p(x | class).

    Maximises  sum_n w_n log sum_c l_nc p_c sum_k a_ck f_ck(x_n) + log prior(f)  by EM, where l_n is one-hot for a
    known label, a distribution for an uncertain one, and all ones for an absent one (semi-supervised learning).
    Each update maximises a lower bound that touches it, so this value never falls.

    With `objective="conditional"` or `"error"` the components so found are then trained to tell the classes apart (see
    `SharedMixtureClassifier`, which has the same options and says what they maximise).

    Missing values are integrated out exactly, in training and prediction. One component per class is quadratic
    discriminant analysis; with `covariance="EEE", across_classes=True` it is linear discriminant analysis, and with
    another structure the EDDA family.

    Parameters
    ----------
    n_components : int, dict or "auto"
        Components of each class, the same for all or by class label. "auto" chooses components and covariance
        structure together, by `selection`.
    covariance : str, dict, list or "auto"
        Covariance structure (see `GaussianMixture`), the same for all classes or by class label. With
        n_components="auto", a list restricts the search; otherwise "auto" means "VVV".
    across_classes : bool
        Whether what a structure calls equal is equal among all classes, or only among a class's own components.
    prior : "auto", float or None
        Pseudo-rows that pull each covariance towards the covariance within classes; None is maximum likelihood.
    class_prior : "empirical" or (C,) array
        Class priors: learned with the rest, or held at these values.
    objective, alpha, sharpness, anchor, solver, validation
        What is trained for; see `SharedMixtureClassifier`.
    growth : "restart" or "incremental"
        How K components of a class are found: by EM from k-means, or one by one: candidates from the leaves of a
        kd-tree are fitted with all else frozen, the best joins, EM runs on (`path_`).
    grow_by : "likelihood" or "criterion"
        Which candidate growth keeps: that of highest penalised likelihood among the few best, or, as document 002
        prints it, that of the best `selection` criterion after full EM of all (many times the cost).
    selection : "cv", "bic", "icl", "dic", "dic_robust" or "cbic"
        For "auto". "cv" takes the lowest cross-validated log-loss and a temperature that makes the probabilities fit
        the held-out rows; with growth="restart" and per_class=False also the strength of the prior. The others are
        criteria of the training rows, -2 x their printed form so that lower is better: BIC and ICL of each class's
        density; DIC, which subtracts the density a class gives to rows of other classes and has no penalty when
        classes are of equal size; "dic_robust" with that density floored at the 1 % quantile of the class's own rows
        and BIC's penalty; "cbic", BIC of p(class | x).
    per_class : bool
        Whether each class chooses its own number of components and structure, or all take the same.
    nested : int, splitter, list of (train, test) or None
        Instead of one choice on all rows: the criterion chooses in each fold's training part, and of these
        choices the one with the least error over all held-out parts is taken (document 002 has nine folds).
    beta : float
        Weight of the other classes' rows in DIC.
    init : "kmeans++" or "random"
        How the components of a class start.
    max_components : int
        Most components of a class tried by "auto".
    cv : int, splitter or list of (train, test)
        Folds of selection="cv".
    forgetting : float
        Share of what earlier batches left behind that each call of `partial_fit` forgets.
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
        What "auto" tried: n_components, covariance, its criteria or log_loss and error, and which was `chosen`.
    path_ : list of lists of Stage
        With growth="incremental", for each class every stage: n_components, log_likelihood, n_free,
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

    def __init__(
        self,
        n_components: int | dict | str = "auto",
        covariance: str | dict | list = "auto",
        *,
        across_classes: bool = False,
        prior: str | float | None = "auto",
        class_prior: Any = "empirical",
        objective: str = "likelihood",
        alpha: float = 1.0,
        sharpness: float = 1.0,
        anchor: str | float = "auto",
        solver: str = "ebw",
        validation: float | None = None,
        growth: str = "restart",
        grow_by: str = "likelihood",
        selection: str = "cv",
        per_class: bool = False,
        nested: Any = None,
        beta: float = 1.0,
        init: str = "kmeans++",
        max_components: int = 8,
        cv: Any = 5,
        tol: float = 1e-5,
        max_iter: int = 500,
        accelerate: bool = True,
        smoothing: float = 1.0,
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
        self.objective = objective
        self.alpha = alpha
        self.sharpness = sharpness
        self.anchor = anchor
        self.solver = solver
        self.validation = validation
        self.growth = growth
        self.grow_by = grow_by
        self.selection = selection
        self.per_class = per_class
        self.nested = nested
        self.beta = beta
        self.init = init
        self.max_components = max_components
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.smoothing = smoothing
        self.categorical = categorical
        self.forgetting = forgetting
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def _fit_job(self, job: Job, labels: Labels, training: Training | None, show: Any) -> Outcome:
        from mixent.mixtures.selection import grown_classes, select_classes
        from mixent.mixtures.training import softened, train

        if isinstance(self.n_components, str):
            outcome = select_classes(job, self._structures(), show)
        elif self.growth == "incremental":
            outcome = grown_classes(job, self._candidate(labels.classes, job), show)
        else:
            candidate = self._candidate(labels.classes, job)
            outcome = Outcome(job.fit(candidate, None if training else show)[0], candidate)
        if training is None:
            return outcome

        self._tell(outcome)

        def starts(part: Job) -> list[Fitted]:
            found = outcome.found if part is job else part.fit(outcome.candidate)[0]
            return [softened(found, outcome.temperature)]

        return replace(outcome, found=train(job, starts, training, show), temperature=1.0)

    def _keep(self, outcome: Outcome, labels: Labels, schema: Any) -> None:
        super()._keep(outcome, labels, schema)
        self.n_components_ = (outcome.found.params.weights > 0).sum(axis=1)

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
        names = by_class("covariance", given, classes, lambda v: get_structure(v).name)
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
