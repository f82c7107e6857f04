"""Grouped parameters of mixtures: search for components, objective of the training, prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from mixent.base.options import Options, Reader, one_of
from mixent.base.params import check_choice, check_count, check_flag, check_folds, check_number, check_positive

CRITERIA = ("cv", "bic", "icl", "dic", "dic_robust", "cbic")
OF_A_DENSITY = ("bic", "icl", "dic", "dic_robust")  # criteria of a single mixture, by which growth can select
GROWTHS = ("restart", "incremental")
SOLVERS = ("ebw", "lbfgs")


class Search(Options):
    """How components are found, and how their number and covariance structure are selected.

    `search="bic"` is short for `search=Search(criterion="bic")`, and likewise for the other criteria.

    Parameters
    ----------
    criterion : "cv", "bic", "icl", "dic", "dic_robust", "cbic" or None, default=None
        Criterion that selects the components if n_components="auto"; lower is better. None: default of the estimator.

        * "cv": the log-loss of held-out rows. The temperature of the probabilities is estimated from the same rows;
          with growth="restart" and per_class=False, the strength of the prior is selected, too. For `GaussianMixture`,
          -2 times the log density of held-out rows.
        * "bic", "icl": of the density of each class (with the sign of scikit-learn).
        * "dic": like "bic", but subtracts the log density of the class at rows of other classes; it has no penalty if
          classes have equal size.
        * "dic_robust": like "dic", with this log density bounded below by the 1 % quantile of the rows of the class,
          and with the penalty of BIC.
        * "cbic": BIC of p(class | x).
    max_components : int or None, default=None
        Maximum number of components tried. None is the default of the estimator.
    growth : "restart" or "incremental", default="restart"
        How K components are found: by EM from `init`, or one at a time. With "incremental", candidates from the leaves
        of a kd-tree are fitted with all other components fixed, the best is added, and EM continues (`path_`).
    grow_by : "likelihood" or "criterion", default="likelihood"
        How incremental growth selects a candidate: by penalized likelihood among the few best candidates, or by the
        criterion after full EM of all candidates (much slower).
    cv : int, splitter or list of (train, test), default=5
        Cross-validation folds of criterion="cv".
    per_class : bool, default=False
        Whether to select the number of components and structure separately for each class. Only used by
        `MixtureClassifier`.
    nested : int, splitter, list of (train, test) or None, default=None
        If not None, the criterion selects a model in the training part of each of these folds; of these models, that
        with the fewest errors on all held-out parts is used. Only used by classifiers.
    dic_weight : float, default=1.0
        Weight of the rows of other classes in DIC (beta in the literature). Only used by "dic" and "dic_robust".

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
        """Return a reader of the parameter `search` of an estimator with these defaults."""
        defaults = {"criterion": criterion, "max_components": max_components}

        def read(name: str, value: Any) -> Search:
            params = cls.read(name, value).get_params(deep=False)
            return cls(**params | {key: default for key, default in defaults.items() if params[key] is None})

        return read

    @property
    def grown(self) -> bool:
        """Whether components are added one at a time."""
        return self.growth == "incremental"

    def check(self, owner: str, criteria: tuple[str, ...] = CRITERIA, unused: tuple[str, ...] = ()) -> None:
        """Raise a ValueError for invalid values, and for values that have no effect.

        Parameters
        ----------
        owner : str
            Name of the estimator.
        criteria : the criteria of the estimator
        unused : parameters that the estimator does not use
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
        """Raise a ValueError for parameters of the selection if the number of components is given.

        Parameters
        ----------
        n_components : parameter of the estimator
        criterion : default of the estimator
        """
        idle = {"nested": None, "per_class": False, "dic_weight": 1.0, "criterion": criterion}
        if self.grow_by == "criterion":  # growth uses the criterion
            del idle["criterion"], idle["dic_weight"]
        for name, default in idle.items():
            if (value := getattr(self, name)) != default:
                raise ValueError(
                    f"{name}={value!r} is only used with n_components='auto'; got n_components={n_components!r}"
                )


DEFAULTS = Search().get_params(deep=False)


class Likelihood(Options):
    """Training by maximum likelihood of rows and labels (EM), without options."""

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {"likelihood": {}}


class Conditional(Options):
    """Training by maximum conditional likelihood of the labels, log p(label | x), after a fit by likelihood.

    `training="conditional"` is short for `training=Conditional()`.

    Parameters
    ----------
    blend : float in [0, 1], default=1.0
        Share of the conditional likelihood in the objective; 1 - blend is the share of the joint likelihood.
    anchor : "auto" or float, default="auto"
        Strength of the regularization towards the initial solution, in pseudo-rows per component; "auto" is the
        geometric mean of the number of numeric columns + 2 and the number of free parameters of a component.
    solver : "ebw" or "lbfgs", default="ebw"
        Optimization algorithm: extended Baum-Welch or L-BFGS.
    validation : float or None, default=None
        Early stopping: hold out this share of the labelled rows, determine the number of passes after which their score
        no longer improves, then train with all rows for this number of passes.

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
        """Raise a ValueError for invalid values."""
        if not check_number(self.blend) or not 0 <= self.blend <= 1:
            raise ValueError(
                f"blend must be between 0 (joint likelihood) and 1 (conditional likelihood); got {self.blend!r}"
            )
        _check_training(self)


class MinimumError(Options):
    """Training by minimum smoothed error rate, after a fit by likelihood.

    `training="error"` is short for `training=MinimumError()`.

    Parameters
    ----------
    sharpness : float >= 1, default=1.0
        Slope of the smoothed error; the larger, the closer it is to the number of errors.
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
        """Raise a ValueError for invalid values."""
        if not check_number(self.sharpness) or not 1 <= self.sharpness < np.inf:
            raise ValueError(
                f"sharpness must be a number >= 1, the slope of the smoothed error; got {self.sharpness!r}"
            )
        _check_training(self)


read_training = one_of(Likelihood, Conditional, MinimumError)


def by_likelihood(training: Any) -> bool:
    """Whether the parameter `training` is maximum likelihood."""
    return isinstance(training, Likelihood) or (isinstance(training, str) and training in Likelihood.short_forms)


def training_name(est: Any) -> str:
    """Return the short form of the parameter `training`: "likelihood", "conditional" or "error"."""
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
    """Prior of the components, in pseudo-rows.

    A number, "auto" or None instead of this object is its `strength`.

    Parameters
    ----------
    strength : "auto", float or None, default="auto"
        Number of pseudo-rows that shrink each covariance towards a common covariance within the components; "auto" is
        the number of numeric columns + 2. None is maximum likelihood.
    smoothing : float, default=1.0
        Number of pseudo-rows of the categorical columns of each component, with the frequencies of the whole table.

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
        """Return the object for the value of a parameter."""
        if type(value) is cls:  # not its subclass for hidden Markov models
            return value
        if value is None or isinstance(value, str) or check_number(value):
            return cls(value)
        raise ValueError(f"{name} must be {STRENGTHS}, or a {cls.__name__}; got {value!r}")

    def check(self) -> None:
        """Raise a ValueError for invalid values."""
        self.rows(0)
        check_positive("smoothing", self.smoothing)

    def rows(self, n_columns: int) -> float | None:
        """Return the number of pseudo-rows, given the number of numeric columns; None for maximum likelihood."""
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


STRENGTHS = "'auto', None (maximum likelihood) or a positive number of pseudo-rows"
