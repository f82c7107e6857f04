"""Options of `MaxEntStackingClassifier`: regions of the input space."""

from __future__ import annotations

from mixent.base.options import one_of
from mixent.families.gaussian.structures import get_structure
from mixent.maxent.options import ComponentOptions


class InputRegions(ComponentOptions):
    """Regions of the input space: the components of a mixture of the columns, with their number chosen by BIC.

    Parameters
    ----------
    kind : {"union", "class", "pooled"}, default="union"
        Kind of the mixtures. "union": one per class, with responsibilities over the components of all classes;
        "pooled": one of all rows; "class": responsibilities within the mixture of each class, with multipliers for that
        class only.
    max_components : int, default=6
        Maximum number of components of a mixture (of each class).
    covariance : str, default="VVV"
        Covariance structure of the mixtures; see `GaussianMixture`.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from mixent import MaxEntStackingClassifier
    >>> from mixent.options import InputRegions
    >>> model = MaxEntStackingClassifier([GaussianNB()], regions=InputRegions(max_components=2))
    >>> model.get_params()["regions__max_components"]
    2
    """

    def __init__(self, kind: str = "union", *, max_components: int = 6, covariance: str = "VVV") -> None:
        self.kind = kind
        self.max_components = max_components
        self.covariance = covariance

    def check(self) -> None:
        """Raise an error if a value is invalid."""
        super().check()
        get_structure(self.covariance)


read_regions = one_of(InputRegions, optional=True)
