"""Grouped constructor parameters of the estimators by maximum entropy discrimination."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from mixent.base.options import Options
from mixent.base.params import check_choice, check_count, check_number, check_positive, warn_unused
from mixent.base.priors import read_class_prior
from mixent.core.arrays import Array
from mixent.med.margins import MARGINS, MarginPrior, margin_prior

DISTRIBUTIONS = (*MARGINS, "fixed")
COVARIANCES = ("full", "diagonal", "tied")


class Margin(Options):
    """Prior distribution of the margins of the training rows.

    Parameters
    ----------
    distribution : "laplace", "exponential", "gaussian" or "fixed"
        Family of the prior. "fixed" is the hard margin: `fit` raises an error if some rows cannot have it.
    target : float or None
        Mode of the prior: the required margin, in nats where scores are log-likelihood ratios. None: 1 for
        MEDClassifier; for other classifiers the `quantile` (at least 2 for MEDTreeClassifier, from 0.1 to 2 for
        MEDBayesNetClassifier).
    quantile : float or None
        Sets the target to this quantile of the training rows' margins before discrimination (for MEDNoveltyDetector, of
        their log-probabilities under the Bayesian fit). None: 0.1, for MEDNoveltyDetector 0.5.

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> from mixent.options import Margin
    >>> MEDTreeClassifier(margin=Margin("laplace", target=3.0)).get_params()["margin__target"]
    3.0
    """

    short_forms: ClassVar = {name: {"distribution": name} for name in DISTRIBUTIONS}

    def __init__(
        self, distribution: str = "laplace", target: float | None = None, quantile: float | None = None
    ) -> None:
        self.distribution = distribution
        self.target = target
        self.quantile = quantile

    @property
    def fixed(self) -> bool:
        """Whether the margin is hard, so that the multipliers have no upper bound C."""
        return self.distribution == "fixed"

    def check(self, distributions: tuple[str, ...] = DISTRIBUTIONS) -> None:
        """Raise an error for parameters out of range."""
        check_choice("margin", self.distribution, distributions)
        if self.target is not None:
            check_positive("target of the margin", self.target, also="None")
        if self.quantile is not None and not (check_number(self.quantile) and 0 <= self.quantile <= 1):
            raise ValueError(f"quantile of the margin must be a number from 0 to 1, or None; got {self.quantile!r}")
        if self.target is not None and self.quantile is not None:
            raise ValueError(
                f"give either the target or the quantile of the margin; got target={self.target!r} and "
                f"quantile={self.quantile!r}"
            )

    def prior(self, C: float | None, target: float) -> MarginPrior:
        """The prior distribution for a given C and target."""
        return margin_prior(self.distribution, C, target)


class LabelUpdates(Options):
    """Updates of labels that are uncertain or missing.

    Parameters
    ----------
    relaxation : float
        Step size of the label updates, above 0 and at most 1.
    max_rounds : int or None
        Maximum number of rounds, each of which updates the labels and then the discriminant function; a small number
        stops early, near the initial labels. None: until convergence, at most 30.
    class_prior : "empirical", array of shape (n_classes,) or dict of label -> probability
        Class shares of the unlabelled rows. "empirical" estimates them, with a Dirichlet prior from the labelled
        counts.

    Examples
    --------
    >>> from mixent import MEDClassifier
    >>> from mixent.options import LabelUpdates
    >>> MEDClassifier(relaxation=LabelUpdates(max_rounds=5)).get_params()["relaxation__max_rounds"]
    5
    """

    short_forms: ClassVar = {}

    def __init__(self, relaxation: float = 0.5, max_rounds: int | None = None, class_prior: Any = "empirical") -> None:
        self.relaxation = relaxation
        self.max_rounds = max_rounds
        self.class_prior = class_prior

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        """Read the updates; a number is their step size."""
        return value if isinstance(value, cls) else cls(value)

    def check(self) -> None:
        """Raise an error for parameters out of range."""
        if not check_number(self.relaxation) or not 0 < self.relaxation <= 1:
            raise ValueError(
                f"relaxation must be the step size of label updates, above 0 and at most 1; got {self.relaxation!r}"
            )
        if self.max_rounds is not None:
            check_count("max_rounds", self.max_rounds, also="None")

    def shares(self, classes: np.ndarray) -> Array | None:
        """(C,) given class shares of the unlabelled rows; None: estimated."""
        return read_class_prior(self.class_prior, classes)


class GaussianPrior(Options):
    """Normal-Wishart prior of the Gaussian of each class, as pseudo-rows with a mean and a covariance.

    Parameters
    ----------
    strength : "auto" or float
        Number of pseudo-rows. "auto": 1, or as many as the number of columns requires. 0: no prior, as in
        Jaakkola, Meila and Jebara 1999.
    mean, cov : arrays or None
        Mean and covariance matrix of the pseudo-rows, in the units of the columns. None: the mean of all rows
        and the covariance within classes.
    covariances : "full", "diagonal" or "tied"
        Covariances of the classes: any; diagonal, with independent columns; or one covariance of all classes, whose
        boundaries are linear.

    Examples
    --------
    >>> from mixent import MEDGaussianClassifier
    >>> from mixent.options import GaussianPrior
    >>> MEDGaussianClassifier(prior=GaussianPrior(5.0)).get_params()["prior__strength"]
    5.0
    """

    short_forms: ClassVar = {"auto": {}}

    def __init__(
        self, strength: str | float = "auto", mean: Any = None, cov: Any = None, covariances: str = "full"
    ) -> None:
        self.strength = strength
        self.mean = mean
        self.cov = cov
        self.covariances = covariances

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        """Read the prior; a number is its strength."""
        if isinstance(value, cls):
            return value
        if check_number(value) or value in cls.short_forms:
            return cls(value)
        raise ValueError(f"{name} must be 'auto', a number of pseudo-rows >= 0, or a {cls.__name__}; got {value!r}")

    def check(self) -> None:
        """Raise an error for parameters out of range."""
        if not (isinstance(self.strength, str) and self.strength == "auto"):
            check_positive("strength of the prior", self.strength, zero=True, also="'auto'")
        check_choice("covariances", self.covariances, COVARIANCES)
        for name in self.given:
            if self.strength == 0:
                warn_unused(f"{name} of the prior", "a strength > 0; got strength=0")

    @property
    def given(self) -> list[str]:
        """Names of the parameters among mean and cov that are given."""
        return [name for name in ("mean", "cov") if getattr(self, name) is not None]

    @property
    def n_rows(self) -> float | None:
        """Number of pseudo-rows; None: depends on the number of columns."""
        return None if isinstance(self.strength, str) else float(self.strength)


class Tables(Options):
    """Probability tables of tree-structured distributions.

    Parameters
    ----------
    kind : "fixed" or "integrated"
        Kind of the tables: fixed at the smoothed marginals of the class's rows, or with Dirichlet distributions that
        are learned together with the trees (Jaakkola, Meila and Jebara 1999, appendix B).
    ess : float
        Equivalent sample size of the Dirichlet prior, spread evenly over the cells of every table.
    continuous : "auto", "gaussian" or "quantized"
        Model of continuous columns: Gaussian marginals of pairs, or soft quantization by a mixture per column. "auto"
        chooses the one with the lower cross-validated log-loss; it is "gaussian" without cross-validation, and
        "quantized" with integrated tables or several trees per class.

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> from mixent.options import Tables
    >>> MEDTreeClassifier(Tables("integrated", ess=2.0)).get_params()["tables__ess"]
    2.0
    """

    short_forms: ClassVar = {name: {"kind": name} for name in ("fixed", "integrated")}

    def __init__(self, kind: str = "fixed", ess: float = 1.0, continuous: str = "auto") -> None:
        self.kind = kind
        self.ess = ess
        self.continuous = continuous

    def check(self) -> None:
        """Raise an error for parameters out of range."""
        check_choice("tables", self.kind, ("fixed", "integrated"))
        check_positive("ess", self.ess)
        check_choice("continuous", self.continuous, ("auto", "gaussian", "quantized"))


class Trees(Options):
    """Tree structures of the classes.

    Parameters
    ----------
    sharing : "separate" or "shared"
        A distribution over trees for every class, or one that all classes share. Each class always has its own tables;
        shared trees with objective="likelihood" are tree-augmented naive Bayes.
    structure_prior : "uniform" or "posterior"
        Prior over trees: uniform, or the posterior given the class's rows.
    n_trees : int
        Number of trees of each class. More than one is a mixture of trees (Jaakkola, Meila and Jebara 1999,
        section 4.1).

    Examples
    --------
    >>> from mixent import MEDTreeClassifier
    >>> from mixent.options import Trees
    >>> MEDTreeClassifier(trees=Trees(n_trees=2)).get_params()["trees__n_trees"]
    2
    """

    short_forms: ClassVar = {name: {"sharing": name} for name in ("separate", "shared")}

    def __init__(self, sharing: str = "separate", structure_prior: str = "uniform", n_trees: int = 1) -> None:
        self.sharing = sharing
        self.structure_prior = structure_prior
        self.n_trees = n_trees

    def check(self) -> None:
        """Raise an error for parameters out of range."""
        check_choice("trees", self.sharing, ("separate", "shared"))
        check_choice("structure_prior", self.structure_prior, ("uniform", "posterior"))
        check_count("n_trees", self.n_trees)
