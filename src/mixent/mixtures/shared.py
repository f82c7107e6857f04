"""The Bayes classifier whose components all classes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mixent.base.params import check_count
from mixent.data import Labels
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, Job, Outcome

if TYPE_CHECKING:
    from mixent.mixtures.training import Training


class SharedMixtureClassifier(BayesMixture):
    """Bayes classifier with components shared by all classes: p(x | class) = sum_k a_ck f_k(x).

    With joint weights W_ck = p_c a_ck, label likelihoods l_n (one-hot when known, all ones when absent) and
    a_n = log sum_ck l_nc W_ck f_k(x_n),  b_n = log sum_ck W_ck f_k(x_n).  Maximises

    * objective="likelihood":   sum_n w_n a_n + log prior(f)  by EM (Theorem 3.1 of Baras and Baras);
    * objective="conditional":  sum_n w_n [a_n - alpha b_n] + (1 - alpha) log prior(f) - anchor,  that is, at alpha = 1,
      sum log p(class | x) (Theorem 4.2);
    * objective="error":        - sum_n w_n / (1 + (p_n / (1 - p_n))^sharpness) - anchor  with p_n = p(label_n | x_n),
      a smoothed count of errors.

    The anchor pays for leaving the solution where training starts: `anchor` pseudo-rows of each component times
    KL(component there || component here), and likewise for the weights. That is the likelihood solution, or that with
    the components divided among the classes, whichever leads further. The objective never falls.

    Classes made of the same hidden groups in different proportions need fewer parameters than with a mixture each.
    Missing values are integrated out exactly, for every objective.

    Parameters
    ----------
    n_components : int or "auto"
        Components in all. "auto" tries numbers up to `max_components`, and chooses by `selection`.
    covariance : str, list or "auto"
        Covariance structure (see `GaussianMixture`). With n_components="auto" a list is searched, and "auto" stands
        for VVI, EEE and VVV; otherwise "auto" means "VVV".
    prior : "auto", float or None
        Pseudo-rows that pull each covariance towards that within the parts EM starts from; None is maximum likelihood.
    class_prior : "empirical" or (C,) array
        Class priors: learned with the rest, or held at these values.
    objective : "likelihood", "conditional" or "error"
        What is maximised, see above. The likelihood gives a model of the rows too; the others better decisions where
        the densities are not quite Gaussian.
    alpha : float in [0, 1]
        For "conditional": the share of the conditional likelihood; 0 is the likelihood.
    sharpness : float >= 1
        For "error": how near the smoothed count is to the count.
    anchor : "auto" or float
        Pseudo-rows per component that hold training to where it starts; "auto" takes the geometric mean of columns + 2
        and the free parameters of a component.
    solver : "ebw" or "lbfgs"
        Extended Baum-Welch, or L-BFGS on the same statistics.
    validation : float or None
        Stop early: hold out this share of the labelled rows, learn after how many passes they gain nothing more,
        then train on all rows for as many.
    growth, grow_by
        How K components are found: by EM from partitions, or one by one (see `MixtureClassifier`).
    selection, nested, beta, cv
        How "auto" chooses; see `MixtureClassifier`.
    init : "kmeans++" or "random"
        How parts of the rows start.
    n_init : int
        Starts; odd ones split each class, even ones all rows together. Each runs a few passes, the best runs on.
    max_components : int
        Most components tried by "auto".
    tol, max_iter, accelerate, smoothing, categorical, random_state, n_jobs, progress
        See `GaussianMixture`.
    forgetting : float
        Share of what earlier batches left behind that each call of `partial_fit` forgets.

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    weights_ : (C, K) array
        Joint weight of class and component.
    class_given_component_ : (C, K) array
        Which components speak for which class.
    means_, covariances_, category_probabilities_, run_
        See `GaussianMixture`. `run_` tells of the training where there was one.
    search_, path_, temperature_
        See `MixtureClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import SharedMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SharedMixtureClassifier(4, "EEE", objective="conditional", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        covariance: str | list = "auto",
        *,
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
        nested: Any = None,
        beta: float = 1.0,
        init: str = "kmeans++",
        n_init: int = 2,
        max_components: int = 12,
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
        self.nested = nested
        self.beta = beta
        self.init = init
        self.n_init = n_init
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

    def _check(self) -> None:
        super()._check()
        check_count("n_init", self.n_init)
        if isinstance(self.covariance, dict):
            raise ValueError("covariance by class makes no sense for shared components; name one structure")

    def _fit_job(self, job: Job, labels: Labels, training: Training | None, show: Any) -> Outcome:
        from mixent.mixtures.selection import grown_shared, select_shared
        from mixent.mixtures.training import shared_starts, train

        if isinstance(self.n_components, str):
            outcome = select_shared(job, self._structures(), show)
        elif self.growth == "incremental":
            outcome = grown_shared(job, self._candidate(job), show)
        else:
            candidate = self._candidate(job)
            found, _ = job.fit(candidate, None if training else show, starts=job.parts(candidate, self.n_init))
            outcome = Outcome(found, candidate)
        if training is None:
            return outcome

        self._tell(outcome)
        starts = shared_starts(job, outcome.candidate, outcome.found)
        # folds have trained too, so their temperature is that of the trained model
        return replace(outcome, found=train(job, starts, training, show))

    def _candidate(self, job: Job) -> Candidate:
        count = check_count("n_components", self.n_components, also="'auto'")
        if count > job.table.n_rows:
            raise ValueError(f"n_components={count} needs at least as many rows; X has {job.table.n_rows}")
        names = self._structures() or ["VVV"]
        if not isinstance(self.covariance, str):
            raise ValueError("a list of covariances is searched: set n_components='auto', or name one structure")
        return shared_candidate(job, count, names[0])

    def _keep(self, outcome: Outcome, labels: Labels, schema: Any) -> None:
        super()._keep(outcome, labels, schema)
        self.n_components_ = outcome.found.params.n_components


def shared_candidate(job: Job, count: int, name: str) -> Candidate:
    return Candidate((count,), (name,), False, job.default_rows(), local=True, shared=True)
