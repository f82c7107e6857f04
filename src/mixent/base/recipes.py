"""When and how `compare` tries an estimator: written beside the estimator, read by `compare`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixent.base.result import Result

FEW = 2_000  # rows up to which settings are searched widely


@dataclass(frozen=True, repr=False)
class Shape(Result):
    """Sizes of a table, as far as they decide which methods to try."""

    _title = "Shape of a table"
    _shown = ("n_rows", "n_columns", "n_classes")

    n_rows: int
    n_labelled: int
    n_numbers: int  # columns
    n_categories: int  # columns
    n_bits: int  # numbers, and a bit for each value of each category
    n_classes: int
    smallest_class: int  # rows
    share_missing: float  # of the cells
    weighted: bool

    @property
    def n_columns(self) -> int:
        """Columns of both kinds."""
        return self.n_numbers + self.n_categories

    @property
    def n_constraints(self) -> int:
        """Labelled rows times other classes: margin constraints of a discriminant."""
        return self.n_labelled * (self.n_classes - 1)

    def __str__(self) -> str:
        kinds = [f"{n} {what}" for n, what in ((self.n_numbers, "numeric"), (self.n_categories, "categorical")) if n]
        text = f"{self.n_rows} rows, {self.n_columns} columns ({', '.join(kinds)}), {self.n_classes} classes"
        if self.n_labelled < self.n_rows:
            text += f", {self.n_rows - self.n_labelled} rows without a label"
        if self.share_missing:
            text += f", {100 * self.share_missing:.2g} % of the cells missing"
        return text + (", weighted" if self.weighted else "")


@dataclass(frozen=True)
class Setting:
    """The table and the options that all methods of a comparison share."""

    shape: Shape
    categorical: Any
    seed: int

    @property
    def long(self) -> bool:
        """Whether there are so many rows that settings are searched less widely."""
        return self.shape.n_labelled > FEW

    @property
    def common(self) -> dict[str, Any]:
        """Parameters of mixent's estimators; methods run in parallel processes, so each has one thread."""
        return {"categorical": self.categorical, "random_state": self.seed, "n_jobs": 1}


def always(shape: Shape) -> str | None:
    """Never left out."""
    return None


@dataclass(frozen=True)
class Recipe:
    """How a method of `compare` is made, and when it is left out.

    Parameters
    ----------
    name : the method's name in tables, such as "tree MED"
    about : what it is, in a few words
    make : Setting -> estimator, not fitted
    cost : rough cost relative to the other methods; a time budget begins with the cheap ones
    left_out : Shape -> the reason why it is not tried on such a table, or None
    kind : "classical", "scikit-learn" or another (default: the package of the registered estimator)
    growth : the time of a fit grows about as this power of the number of rows, from a few hundred to many thousands
    """

    name: str
    about: str
    make: Callable[[Setting], Any]
    cost: float = 1.0
    left_out: Callable[[Shape], str | None] = always
    kind: str = ""
    growth: float = 0.8
