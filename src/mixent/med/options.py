"""Grouped constructor parameters of the estimators by maximum entropy discrimination."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from mixent.base.options import Options
from mixent.base.params import check_choice, check_count, check_number, check_positive
from mixent.med.margins import MARGINS, MarginPrior, margin_prior

DISTRIBUTIONS = (*MARGINS, "fixed")


class Margin(Options):
    """The margin that is required of every training row: a prior distribution about a target.

    Parameters
    ----------
    distribution : "laplace", "exponential", "gaussian" or "fixed"
        Prior of the margin. "fixed" is the hard margin: rows that cannot keep it are an error.
    target : float or None
        The margin about which the prior lies, in nats where scores are log-likelihood ratios. None: 1 for
        MEDClassifier; for other classifiers the `quantile` (MEDTreeClassifier: at least 2; MEDBayesNetClassifier: from
        0.1 to 2).
    quantile : float or None
        Sets the target to this quantile of the training rows' margins before discrimination (for MEDNoveltyDetector: of
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
        """Whether the margin is certain, so that no C bounds the multipliers."""
        return self.distribution == "fixed"

    def check(self, distributions: tuple[str, ...] = DISTRIBUTIONS) -> None:
        """Refuse parameters out of range."""
        check_choice("margin", self.distribution, distributions)
        if self.target is not None:
            check_positive("target of the margin", self.target)
        if self.quantile is not None and not (check_number(self.quantile) and 0 <= self.quantile <= 1):
            raise ValueError(f"quantile of the margin must be a number from 0 to 1, or None; got {self.quantile!r}")
        if self.target is not None and self.quantile is not None:
            raise ValueError(
                f"a margin has a target or a quantile; got target={self.target!r} and quantile={self.quantile!r}"
            )

    def prior(self, C: float | None, target: float) -> MarginPrior:
        """The prior distribution, its multipliers bounded by C."""
        return margin_prior(self.distribution, C, target)


class GaussianPrior(Options):
    """Prior of the Gaussian of each class: rows with a mean and a covariance, added to the class's own.

    Parameters
    ----------
    strength : "auto" or float
        How many rows the prior counts for; "auto": 1, or as many as the number of columns requires. 0 is the
        document's.
    mean, cov : arrays or None
        Mean and covariance matrix of those rows, in the units of the columns; None: the mean of all rows, the
        covariance within classes.

    Examples
    --------
    >>> from mixent import MEDGaussianClassifier
    >>> from mixent.options import GaussianPrior
    >>> MEDGaussianClassifier(prior=GaussianPrior(5.0)).get_params()["prior__strength"]
    5.0
    """

    short_forms: ClassVar = {"auto": {}}

    def __init__(self, strength: str | float = "auto", mean: Any = None, cov: Any = None) -> None:
        self.strength = strength
        self.mean = mean
        self.cov = cov

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        """A number is the strength."""
        return cls(value) if check_number(value) else super().read(name, value)

    def check(self) -> None:
        """Refuse parameters out of range."""
        if not (isinstance(self.strength, str) and self.strength == "auto"):
            check_positive("strength of the prior", self.strength, zero=True)
        for name in self.given:
            if self.strength == 0:
                raise ValueError(f"{name} of the prior is only used with a strength > 0; got strength=0")

    @property
    def given(self) -> list[str]:
        """Which of mean and cov are given."""
        return [name for name in ("mean", "cov") if getattr(self, name) is not None]

    @property
    def n_rows(self) -> float | None:
        """The strength; None: found from the columns."""
        return None if isinstance(self.strength, str) else float(self.strength)


class Tables(Options):
    """Probability tables of the edges of trees.

    Parameters
    ----------
    kind : "fixed" or "integrated"
        "fixed": the marginals of the class's rows, smoothed; "integrated": they have Dirichlet distributions, learned
        together with the trees (appendix B).
    ess : float
        Equivalent sample size of the prior: rows spread evenly over every table.
    continuous : "auto", "gaussian" or "quantized"
        How numbers enter: as Gaussian marginals of pairs, or as probabilities of the components of one mixture per
        column. "auto": whichever has the lower cross-validated log-loss; "gaussian" where there are no folds,
        "quantized" where tables are integrated or a class has several trees.

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
        """Refuse parameters out of range."""
        check_choice("tables", self.kind, ("fixed", "integrated"))
        check_positive("ess", self.ess)
        check_choice("continuous", self.continuous, ("auto", "gaussian", "quantized"))


class Trees(Options):
    """The trees of each class.

    Parameters
    ----------
    sharing : "separate" or "shared"
        Trees of its own for every class; or the same for all classes, each with tables of its own: with
        objective="likelihood" that is tree-augmented naive Bayes.
    structure_prior : "uniform" or "posterior"
        Before discrimination all trees are equally probable; or as probable as the class's rows make them.
    n_trees : int
        Trees of a class: more than one makes a mixture of trees, by the bound of section 4.1.

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
        """Refuse parameters out of range."""
        check_choice("trees", self.sharing, ("separate", "shared"))
        check_choice("structure_prior", self.structure_prior, ("uniform", "posterior"))
        check_count("n_trees", self.n_trees)
