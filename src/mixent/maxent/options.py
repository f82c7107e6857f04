"""Options of `MaxEntClassifier`: conversion of numeric columns to features, and feature selection."""

from __future__ import annotations

from typing import Any

from mixent.base.options import Options, one_of
from mixent.base.params import check_choice, check_count, check_flag, check_share

KINDS = ("union", "class", "pooled")
STRATEGIES = ("quantile", "uniform", "entropy")
CRITERIA = ("bic", "validation")


class ComponentOptions(Options):
    """Base of the options for components of mixtures of columns, with their number chosen by BIC."""

    short_forms = {kind: {"kind": kind} for kind in KINDS}

    kind: str
    max_components: int

    def check(self) -> None:
        """Raise an error if a value is invalid."""
        check_choice("kind", self.kind, KINDS)
        check_count("max_components", self.max_components)


class ComponentFeatures(ComponentOptions):
    """Represent a numeric column by the hidden component of a mixture: the probabilities of the components given x.

    The number of components is chosen by BIC.

    Parameters
    ----------
    kind : {"union", "class", "pooled"}, default="union"
        Kind of the mixtures. "union": one per class, with responsibilities over the components of all classes;
        "pooled": one of all rows; "class": responsibilities within the mixture of each class, with multipliers for that
        class only.
    max_components : int, default=6
        Maximum number of components of a mixture (of each class).
    means : bool, default=True
        Also constrain the mean of each numeric column in each class (values beyond three standard deviations are
        clipped). Components do not distinguish the values within them; the mean does.
    groups : list of lists of columns, "auto" or None, default=None
        Numeric columns that share a multivariate mixture; "auto" groups columns that are correlated within the classes.

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
        """Raise an error if a value is invalid."""
        super().check()
        check_flag("means", self.means)


class BinFeatures(Options):
    """Represent a numeric column by the bin that contains its value.

    Parameters
    ----------
    strategy : {"quantile", "uniform", "entropy"}, default="quantile"
        Bins with equal numbers of rows, bins of equal width, or bins with edges where the class frequencies change
        (Fayyad and Irani 1993).
    n_bins : int, default=8
        Maximum number of bins of a column.

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
        """Raise an error if a value is invalid."""
        check_choice("strategy", self.strategy, STRATEGIES)
        check_count("n_bins", self.n_bins)


class MomentFeatures(Options):
    """Represent a numeric column by its value and its square: constrain its mean and second moment in each class.

    Classes whose distributions differ in shape only cannot be distinguished.
    """

    short_forms = {"moments": {}}

    def check(self) -> None:
        """Do nothing: there are no parameters."""


class ForwardSelection(Options):
    """Forward selection of features and pairs of features, one at a time, the most informative first; see `path_`.

    Parameters
    ----------
    criterion : {"bic", "validation"}, default="bic"
        Criterion that selects the number of features: BIC, or the log-loss of held-out rows.
    validation : float, default=0.2
        Share of the labelled rows that is held out; only used with criterion="validation".

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
        """Raise an error if a value is invalid or would have no effect."""
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
