"""What a table is: settings (a set and its folds), methods, measures, printed values, marks, a view."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables.data import Dataset

Make = Callable[[Dataset], Any]  # the unfitted classifier for a set
Measure = Callable[[Any], float | None]  # of a fitted classifier; None where it makes no sense
Score = Callable[[Any, Any, Any], float | None]  # the same, with the test rows and their labels
Curve = Callable[[Any, Any, Any], list[float]]  # many numbers of these
Splits = Callable[[Dataset, int], tuple[np.ndarray, np.ndarray]]  # a seed's training and test rows
Mark = Callable[[Mapping[str, list[dict]]], str]  # raw records by method -> pass or miss
View = Callable[..., None]  # like `show`
Picture = Callable[[Mapping, Path], None]  # raw records by setting and method, and the file to write


@dataclass(frozen=True)
class Setting:
    """A data set and how it is divided; `folds` 1 means the split the set came with.

    With `train_rows`, `folds` random splits with so many training rows, the rest for testing; with `splits`, as many of
    these.
    """

    name: str
    folds: int = 10
    repeats: int = 5
    mixed: bool = False  # categories and missing values kept
    discrete: bool = False  # with `mixed`: every column a category, numbers too
    train_rows: int | None = None
    data: str | None = None  # the data set, where it is not called `name`
    splits: Splits | None = None

    @property
    def dataset(self) -> str:
        return self.data or self.name

    def planned(self, folds: int | None, repeats: int | None) -> Setting:
        """The same with other folds and repeats; a split of its own stays."""
        if self.folds == 1:
            return self
        return replace(self, folds=folds or self.folds, repeats=repeats or self.repeats)


@dataclass(frozen=True)
class Printed:
    """A value printed elsewhere, in the unit of the metric."""

    value: float
    source: str
    sd: float | None = None


@dataclass(frozen=True)
class Table:
    """Everything the runner needs; `methods` and `mixed_methods` are by name, ours first."""

    name: str
    settings: tuple[Setting, ...]
    methods: Mapping[str, Make]
    mixed_methods: Mapping[str, Make] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)  # by metric, beside the scores every table has
    scores: Mapping[str, Score] = field(default_factory=dict)  # the same for what needs the test rows
    curves: Mapping[str, Curve] = field(default_factory=dict)  # kept in the raw records only
    printed: Mapping[tuple[str, str, str], Printed] = field(default_factory=dict)  # by set, method, metric
    remarks: Mapping[str, str] = field(default_factory=dict)  # by set: the printed values in words
    marks: Mapping[str, Mark] = field(default_factory=dict)
    quick: tuple[str, ...] = ()
    view: View | None = None  # None: that of `show`
    picture: Picture | None = None
    peers: tuple[str, ...] = ()  # methods that are not mixent's
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sets of a method that is not run on all
    compared: tuple[str, ...] = ()  # methods whose differences to the others are shown, beside ours

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        methods = self.mixed_methods if setting.mixed else self.methods
        return {m: make for m, make in methods.items() if setting.name in self.only.get(m, (setting.name,))}

    @property
    def ours(self) -> str:
        return next(iter(self.methods))

    def is_ours(self, method: str) -> bool:
        return method not in self.peers
