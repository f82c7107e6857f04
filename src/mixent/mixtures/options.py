"""Grouped parameters of mixtures: how components are searched for, what they are trained for, the prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mixent.base.options import Options, Reader, one_of
from mixent.base.params import check_choice, check_count, check_flag, check_folds, check_number, check_positive

CRITERIA = ("cv", "bic", "icl", "dic", "dic_robust", "cbic")
OF_A_DENSITY = ("bic", "icl", "dic", "dic_robust")  # which growth can follow, one mixture at a time
GROWTHS = ("restart", "incremental")
SOLVERS = ("ebw", "lbfgs")


class Search(Options):
    """How components are found, and how their number and covariance structure are chosen.

    `search="bic"` stands for `search=Search(criterion="bic")`, and so for the other criteria.

    Parameters
    ----------
    criterion : "cv", "bic", "icl", "dic", "dic_robust", "cbic" or None
        What n_components="auto" chooses by; lower is better. None takes the estimator's default.

        * "cv": the log-loss of held-out rows, together with a temperature that fits the probabilities to them; with
          growth="restart" and per_class=False also the strength of the prior. For `GaussianMixture`, -2 times their log
          density.
        * "bic", "icl": of each class's density (scikit-learn's sign).
        * "dic": like "bic", but subtracts the density that a class gives to rows of other classes; it has no penalty
          when classes are of equal size.
        * "dic_robust": like "dic", with that density floored at the 1 % quantile of the class's own rows, and BIC's
          penalty.
        * "cbic": BIC of p(class | x).
    max_components : int or None
        Largest number of components tried. None takes the estimator's default.
    growth : "restart" or "incremental"
        How K components are found: by EM from `init`, or one by one: candidates from the leaves of a kd-tree are
        fitted with all else frozen, the best is added, and EM continues (`path_`).
    grow_by : "likelihood" or "criterion"
        Which candidate incremental growth keeps: that of the highest penalized likelihood among the few best, or that
        of the best criterion after full EM of all (many times the cost).
    cv : int, splitter or list of (train, test)
        Folds of criterion="cv".
    per_class : bool
        Whether each class has its own number of components and structure, or all have the same. Only used by
        `MixtureClassifier`.
    nested : int, splitter, list of (train, test) or None
        Instead of one choice on all rows: the criterion chooses in the training part of each fold, and of these
        choices the one with the fewest errors on all held-out parts is taken. Only used by classifiers.
    dic_weight : float
        Weight of the other classes' rows in DIC (beta in the literature). Only used by "dic" and "dic_robust".

    Examples
    --------
    >>> from mixent import MixtureClassifier
    >>> from mixent.options import Search
    >>> model = MixtureClassifier(search=Search("bic", 4, per_class=True))
    >>> model.set_params(search__max_components=6).search.max_components
    6
    """

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {
        None: {},
        **{name: {"criterion": name} for name in CRITERIA},
    }

    def __init__(
        self,
        criterion: str | None = None,
        max_components: int | None = None,
        *,
        growth: str = "restart",
        grow_by: str = "likelihood",
        cv: Any = 5,
        per_class: bool = False,
        nested: Any = None,
        dic_weight: float = 1.0,
    ) -> None:
        self.criterion: Any = criterion  # None is replaced by the estimator's default, see `reader`
        self.max_components: Any = max_components
        self.growth = growth
        self.grow_by = grow_by
        self.cv = cv
        self.per_class = per_class
        self.nested = nested
        self.dic_weight = dic_weight

    @classmethod
    def reader(cls, criterion: str, max_components: int) -> Reader:
        """Reads the parameter of an estimator with these defaults."""
        defaults = {"criterion": criterion, "max_components": max_components}

        def read(name: str, value: Any) -> Search:
            given = cls.read(name, value).get_params(deep=False)
            return cls(**given | {key: default for key, default in defaults.items() if given[key] is None})

        return read

    @property
    def grown(self) -> bool:
        """Whether components are added one by one."""
        return self.growth == "incremental"

    def check(self, owner: str, criteria: tuple[str, ...] = CRITERIA, unused: tuple[str, ...] = ()) -> None:
        """Refuse wrong values, and values without effect.

        Parameters
        ----------
        owner : str
            Name of the estimator.
        criteria : the criteria it can use
        unused : parameters it does not use
        """
        for name in unused:
            if (value := getattr(self, name)) != (default := DEFAULTS[name]):
                raise ValueError(f"{name}={value!r} is not used by {owner}; leave it at {default!r}")
        check_choice("criterion", self.criterion, criteria, also="None")
        check_count("max_components", self.max_components, also="None")
        check_choice("growth", self.growth, GROWTHS)
        check_flag("per_class", self.per_class)
        check_folds("cv", self.cv)
        self._check_grow_by(tuple(name for name in OF_A_DENSITY if name in criteria))
        check_positive("dic_weight", self.dic_weight)
        if self.dic_weight != 1.0 and self.criterion not in ("dic", "dic_robust"):
            raise ValueError(
                f"dic_weight={self.dic_weight!r} is only used with criterion 'dic' or 'dic_robust'; "
                f"got {self.criterion!r}"
            )
        if self.nested is not None:
            check_folds("nested", self.nested, also="None")
            if self.criterion == "cv":
                others = ", ".join(map(repr, CRITERIA[1:]))
                raise ValueError(f"nested is only used with one of the criteria {others}; got 'cv'")

    def _check_grow_by(self, criteria: tuple[str, ...]) -> None:
        check_choice("grow_by", self.grow_by, ("likelihood", "criterion"))
        if self.grow_by == "criterion" and not self.grown:
            raise ValueError("grow_by='criterion' is only used with growth='incremental'; got growth='restart'")
        if self.grow_by == "criterion" and self.criterion not in criteria:
            raise ValueError(
                f"grow_by='criterion' needs criterion to be one of {', '.join(map(repr, criteria))}; "
                f"got {self.criterion!r}"
            )

    def check_idle(self, n_components: Any, criterion: str) -> None:
        """With a given number of components there is nothing to choose: refuse what would choose it.

        Parameters
        ----------
        n_components : as given by the user
        criterion : the estimator's default
        """
        idle = {"nested": None, "per_class": False, "dic_weight": 1.0, "criterion": criterion}
        if self.grow_by == "criterion":  # which uses the criterion
            del idle["criterion"], idle["dic_weight"]
        for name, default in idle.items():
            if (value := getattr(self, name)) != default:
                raise ValueError(
                    f"{name}={value!r} is only used with n_components='auto'; got n_components={n_components!r}"
                )


DEFAULTS = Search().get_params(deep=False)


class Likelihood(Options):
    """Maximize the joint likelihood of rows and labels: plain EM, which has no options."""

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {"likelihood": {}}


class Conditional(Options):
    """Maximize the conditional likelihood of the labels, log p(label | x), after a fit by likelihood.

    `training="conditional"` stands for `training=Conditional()`.

    Parameters
    ----------
    blend : float in [0, 1]
        Share of the conditional likelihood; 1 - blend is the share of the joint likelihood. 0 is the joint likelihood
        alone.
    anchor : "auto" or float
        Pseudo-rows per component that hold training to where it starts; "auto" takes the geometric mean of columns + 2
        and the free parameters of a component.
    solver : "ebw" or "lbfgs"
        Extended Baum-Welch, or L-BFGS on the same statistics.
    validation : float or None
        Stop early: hold out this share of the labelled rows, find the number of passes after which they gain nothing
        more, then train on all rows for as many.

    Examples
    --------
    >>> from mixent import SharedMixtureClassifier
    >>> from mixent.options import Conditional
    >>> model = SharedMixtureClassifier(4, training=Conditional(blend=0.8, solver="lbfgs"))
    """

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {"conditional": {}}

    def __init__(
        self,
        blend: float = 1.0,
        *,
        anchor: str | float = "auto",
        solver: str = "ebw",
        validation: float | None = None,
    ) -> None:
        self.blend = blend
        self.anchor = anchor
        self.solver = solver
        self.validation = validation

    def check(self) -> None:
        """Refuse wrong values."""
        if not check_number(self.blend) or not 0 <= self.blend <= 1:
            raise ValueError(
                f"blend must lie between 0 (joint likelihood) and 1 (conditional likelihood); got {self.blend!r}"
            )
        _check_training(self)


class MinimumError(Options):
    """Minimize a smoothed count of classification errors, after a fit by likelihood.

    `training="error"` stands for `training=MinimumError()`.

    Parameters
    ----------
    sharpness : float >= 1
        How close the smoothed count is to the count.
    anchor, solver, validation
        See `Conditional`.

    Examples
    --------
    >>> from mixent import MixtureClassifier
    >>> from mixent.options import MinimumError
    >>> model = MixtureClassifier(2, training=MinimumError(sharpness=3.0))
    """

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {"error": {}}

    def __init__(
        self,
        sharpness: float = 1.0,
        *,
        anchor: str | float = "auto",
        solver: str = "ebw",
        validation: float | None = None,
    ) -> None:
        self.sharpness = sharpness
        self.anchor = anchor
        self.solver = solver
        self.validation = validation

    def check(self) -> None:
        """Refuse wrong values."""
        if not check_number(self.sharpness) or not 1 <= self.sharpness < np.inf:
            raise ValueError(
                f"sharpness must be a number >= 1, the slope of the smoothed error; got {self.sharpness!r}"
            )
        _check_training(self)


read_training = one_of(Likelihood, Conditional, MinimumError)


def by_likelihood(training: Any) -> bool:
    """Whether the parameter stands for plain likelihood."""
    return isinstance(training, Likelihood) or (isinstance(training, str) and training in Likelihood.short_forms)


def training_name(est: Any) -> str:
    """The short form of what an estimator was trained for: "likelihood", "conditional" or "error"."""
    return str(next(iter(est._group("training").short_forms)))


def _check_training(training: Conditional | MinimumError) -> None:
    anchor, validation = training.anchor, training.validation
    automatic = isinstance(anchor, str) and anchor == "auto"
    if not automatic and not (check_number(anchor) and 0 < anchor < np.inf):  # type: ignore[operator]
        raise ValueError(f"anchor must be 'auto' or a positive number of pseudo-rows per component; got {anchor!r}")
    check_choice("solver", training.solver, SOLVERS)
    if validation is not None and not (isinstance(validation, (float, np.floating)) and 0 < validation < 1):
        raise ValueError(
            f"validation must be None or the share of rows to hold out, between 0 and 1; got {validation!r}"
        )


class MixturePrior(Options):
    """Pseudo-rows that regularize the components.

    A number, "auto" or None in place of this object stands for its `strength`.

    Parameters
    ----------
    strength : "auto", float or None
        Pseudo-rows that shrink each covariance towards the covariance within classes, or within the parts of the first
        start where components have no class; "auto" takes columns + 2. None is plain maximum likelihood.
    smoothing : float
        Pseudo-rows of each component's category tables, spread as in the whole table.

    Examples
    --------
    >>> from mixent import MixtureClassifier
    >>> from mixent.options import MixturePrior
    >>> model = MixtureClassifier(2, prior=MixturePrior(5.0, smoothing=0.1))
    """

    def __init__(self, strength: str | float | None = "auto", smoothing: float = 1.0) -> None:
        self.strength = strength
        self.smoothing = smoothing

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        """The object that a parameter's value stands for."""
        if type(value) is cls:  # the prior of a hidden Markov model is another one
            return value
        if value is None or isinstance(value, str) or check_number(value):
            return cls(value)
        raise ValueError(f"{name} must be {STRENGTHS}, or a {cls.__name__}; got {value!r}")

    def check(self) -> None:
        """Refuse wrong values."""
        self.rows(0)
        check_positive("smoothing", self.smoothing)

    def rows(self, n_columns: int) -> float | None:
        """Pseudo-rows for so many numeric columns; None for plain maximum likelihood."""
        if self.strength is None:
            return None
        if self.automatic:
            return n_columns + 2.0
        if check_number(self.strength) and 0 < self.strength < np.inf:  # type: ignore[operator]
            return float(self.strength)
        raise ValueError(f"prior must be {STRENGTHS}; got {self.strength!r}")

    @property
    def automatic(self) -> bool:
        """Whether the estimator chooses the strength."""
        return isinstance(self.strength, str) and self.strength == "auto"


STRENGTHS = "'auto', None (plain maximum likelihood) or a positive number of pseudo-rows"
