"""The Bayes classifier with mixture components shared by all classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mixent.base.params import check_count
from mixent.core.observers import Progress
from mixent.data import Labels, Schema
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.fit_plan import Candidate, Job, Outcome
from mixent.mixtures.options import Conditional, MinimumError, MixturePrior, Search, read_training

if TYPE_CHECKING:
    from mixent.mixtures.training import Plan


class SharedMixtureClassifier(BayesMixture):
    """Bayes classifier with components shared by all classes: p(x | class) = sum_k a_ck f_k(x).

    With joint weights W_ck = p_c a_ck, label likelihoods l_n (one-hot when known, all ones when absent) and
    a_n = log sum_ck l_nc W_ck f_k(x_n),  b_n = log sum_ck W_ck f_k(x_n).  Maximizes

    * training="likelihood":   sum_n w_n a_n + log prior(f)  by EM (Theorem 3.1 of Baras and Baras);
    * training="conditional":  sum_n w_n [a_n - blend b_n] + (1 - blend) log prior(f) - anchor,  that is, at blend = 1,
      sum log p(class | x) (Theorem 4.2);
    * training="error":        - sum_n w_n / (1 + (p_n / (1 - p_n))^sharpness) - anchor  with p_n = p(label_n | x_n),
      a smoothed count of errors.

    The anchor pays for leaving the solution where training starts: `anchor` pseudo-rows of each component times
    KL(component there || component here), and likewise for the weights. That is the likelihood solution, or that with
    the components divided among the classes, whichever leads further. The objective never falls.

    Classes made of the same hidden groups in different proportions need fewer parameters than with a mixture each.
    Missing values are integrated out exactly, for every kind of training.

    Parameters
    ----------
    n_components : int or "auto"
        Components in all; "auto" chooses their number, see `search`.
    covariance : str, list or "auto"
        Covariance structure (see `GaussianMixture`). With n_components="auto" a list is searched, and "auto" stands
        for VVI, EEE and VVV; otherwise "auto" means "VVV".
    prior : "auto", float, None or MixturePrior
        Pseudo-rows that shrink each covariance towards that within the parts EM starts from; "auto" takes columns + 2,
        None is plain maximum likelihood. A `MixturePrior` also has the smoothing of category tables.
    class_prior : "empirical" or (C,) array
        Class priors: learned with the rest, or held at these values.
    training : "likelihood", "conditional", "error", Conditional or MinimumError
        What is maximized, see above. The likelihood also gives a model of the rows; the others give better decisions
        where the densities are not quite Gaussian.
    search : None, str or Search
        How components are found and, with n_components="auto", chosen: a criterion ("cv", "bic", "icl", "dic",
        "dic_robust", "cbic") or a `Search`. Defaults: criterion "cv", up to 12 components.
    init : "kmeans++" or "random"
        How parts of the rows start.
    n_init : int
        Starts; odd ones split each class, even ones all rows together. Each runs a few passes, the best runs on.
    tol, max_iter, accelerate, categorical, random_state, n_jobs, progress
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
        p(class | component).
    means_, covariances_, category_probabilities_, run_
        See `GaussianMixture`. `run_` is that of the discriminative training where there was one.
    search_, path_, temperature_
        See `MixtureClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mixent import SharedMixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SharedMixtureClassifier(4, "EEE", training="conditional", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    _groups = {"prior": MixturePrior.read, "training": read_training, "search": Search.reader("cv", 12)}
    _unused = ("per_class",)

    def __init__(
        self,
        n_components: int | str = "auto",
        covariance: str | list = "auto",
        *,
        prior: str | float | MixturePrior | None = "auto",
        class_prior: Any = "empirical",
        training: str | Conditional | MinimumError = "likelihood",
        search: str | Search | None = None,
        init: str = "kmeans++",
        n_init: int = 2,
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
        self.prior = prior
        self.class_prior = class_prior
        self.training = training
        self.search = search
        self.init = init
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
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

    def _fit_job(self, job: Job, labels: Labels, training: Plan | None, show: Progress | None) -> Outcome:
        from mixent.mixtures.selection import grown_shared, select_shared
        from mixent.mixtures.training import shared_starts, train

        if isinstance(self.n_components, str):
            outcome = select_shared(job, self._structures(), show)
        elif self._group("search").grown:
            outcome = grown_shared(job, self._candidate(job), show)
        else:
            candidate = self._candidate(job)
            found, _ = job.fit(candidate, None if training else show, starts=job.parts(candidate, self.n_init))
            outcome = Outcome(found, candidate)
        if training is None:
            return outcome

        self._warn(outcome)
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

    def _keep(self, outcome: Outcome, labels: Labels, schema: Schema) -> None:
        super()._keep(outcome, labels, schema)
        self.n_components_ = outcome.found.params.n_components


def shared_candidate(job: Job, count: int, name: str) -> Candidate:
    return Candidate((count,), (name,), False, job.default_rows(), local=True, shared=True)
