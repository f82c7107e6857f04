"""Options of `MaxEntClassifier`: how numeric columns become features, and which features are kept."""

from __future__ import annotations

from typing import Any

from mixent.base.options import Options, one_of
from mixent.base.params import check_choice, check_count, check_flag, check_share

KINDS = ("union", "class", "pooled")
STRATEGIES = ("quantile", "uniform", "entropy")
CRITERIA = ("bic", "validation")


class ComponentOptions(Options):
    """Components of mixtures of the columns, the number chosen by BIC: what features and regions share."""

    short_forms = {kind: {"kind": kind} for kind in KINDS}

    kind: str
    max_components: int

    def check(self) -> None:
        """Refuse values that are not allowed."""
        check_choice("kind", self.kind, KINDS)
        check_count("max_components", self.max_components)


class ComponentFeatures(ComponentOptions):
    """A numeric column becomes the hidden component of a mixture: a pmf over components, given the value.

    The number of components is chosen by BIC.

    Parameters
    ----------
    kind : "union", "class" or "pooled"
        "union": one mixture per class, responsibilities over the components of all classes; "pooled": one mixture of
        all rows; "class": responsibilities within each class's own mixture, which enter that class's multipliers only.
    max_components : int
        Most components of a mixture (of each class).
    means : bool
        Also constrain the mean of each numeric column in each class (values beyond three standard deviations count as
        three). A component does not distinguish the values within it; the mean does.
    groups : list of lists of columns, "auto" or None
        Numeric columns that share a multivariate mixture; "auto" joins those correlated within the classes.

    Examples
    --------
    >>> from mixent import MaxEntClassifier
    >>> from mixent.options import ComponentFeatures
    >>> MaxEntClassifier(ComponentFeatures(groups=[[2, 3]])).get_params()["features__groups"]
    [[2, 3]]
    """

    def __init__(self, kind: str = "union", *, max_components: int = 6, means: bool = True, groups: Any = None) -> None:
        self.kind = kind
        self.max_components = max_components
        self.means = means
        self.groups = groups

    def check(self) -> None:
        """Refuse values that are not allowed."""
        super().check()
        check_flag("means", self.means)


class BinFeatures(Options):
    """A numeric column becomes the bin its value lies in.

    Parameters
    ----------
    strategy : "quantile", "uniform" or "entropy"
        Bins with equally many rows, of equal width, or with borders where the class frequencies change (Fayyad and
        Irani 1993).
    n_bins : int
        Most bins of a column.

    Examples
    --------
    >>> from mixent import MaxEntClassifier
    >>> from mixent.options import BinFeatures
    >>> MaxEntClassifier(BinFeatures("entropy", n_bins=4)).get_params()["features__n_bins"]
    4
    """

    short_forms = {"bins": {}}

    def __init__(self, strategy: str = "quantile", *, n_bins: int = 8) -> None:
        self.strategy = strategy
        self.n_bins = n_bins

    def check(self) -> None:
        """Refuse values that are not allowed."""
        check_choice("strategy", self.strategy, STRATEGIES)
        check_count("n_bins", self.n_bins)


class MomentFeatures(Options):
    """A numeric column becomes its value and its square: means and second moments are constrained.

    Classes that differ in the shape of a distribution alone are not distinguished.
    """

    short_forms = {"moments": {}}

    def check(self) -> None:
        """Nothing can be wrong."""


class ForwardSelection(Options):
    """Features, and pairs of them, are added one at a time, the most informative first; see `path_`.

    Parameters
    ----------
    criterion : "bic" or "validation"
        When to stop: by BIC, or by the log-loss of held-out rows.
    validation : float
        Share of the labelled rows held out; only used with criterion="validation".

    Examples
    --------
    >>> from mixent import MaxEntClassifier
    >>> from mixent.options import ForwardSelection
    >>> model = MaxEntClassifier(selection=ForwardSelection("validation", validation=0.3))
    >>> model.get_params()["selection__validation"]
    0.3
    """

    short_forms = {"bic": {}, "validation": {"criterion": "validation"}}

    def __init__(self, criterion: str = "bic", *, validation: float = 0.2) -> None:
        self.criterion = criterion
        self.validation = validation

    def check(self) -> None:
        """Refuse values that are not allowed, or that would have no effect."""
        check_choice("criterion", self.criterion, CRITERIA)
        check_share("validation", self.validation)
        if self.validation != 0.2 and self.criterion != "validation":
            raise ValueError(
                f"validation={self.validation!r} is only used with criterion='validation'; got "
                f"criterion={self.criterion!r}"
            )


NumericFeatures = ComponentFeatures | BinFeatures | MomentFeatures
read_numeric = one_of(ComponentFeatures, BinFeatures, MomentFeatures)
read_selection = one_of(ForwardSelection, optional=True)
