"""What a table is: settings (a set and its folds), methods, printed values, marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.tables.data import Dataset

Make = Callable[[Dataset], Any]  # the unfitted classifier for a set


@dataclass(frozen=True)
class Setting:
    """A data set and how it is divided; `folds` 1 means the split the set came with."""

    name: str
    folds: int = 10
    repeats: int = 5
    mixed: bool = False  # categories and gaps kept

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


@dataclass(frozen=True)
class Table:
    """Everything the runner needs; `methods` and `mixed_methods` are by name, ours first."""

    name: str
    settings: tuple[Setting, ...]
    methods: Mapping[str, Make]
    mixed_methods: Mapping[str, Make]
    printed: Mapping[tuple[str, str, str], Printed]  # by set, method, metric
    remarks: Mapping[str, str]  # by set: the printed values in words
    marks: Mapping[str, Callable[[Mapping[str, list[dict]]], str]]  # by name: raw records by method -> pass or miss
    quick: tuple[str, ...] = field(default=())

    def methods_of(self, setting: Setting) -> Mapping[str, Make]:
        return self.mixed_methods if setting.mixed else self.methods

    @property
    def ours(self) -> str:
        return next(iter(self.methods))
