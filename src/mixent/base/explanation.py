"""Why a row has its class: the log-odds against another class as a sum of parts, one format for every classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.base.document import Content, Number, Table
from mixent.base.result import MOST_ROWS, Result
from mixent.core.arrays import Array
from mixent.data import Origin


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The log-odds of each row's class against a rival, as a sum: log_odds = baseline + parts.sum(axis=1), exactly.

    Attributes
    ----------
    label : (n,) array
        The class explained.
    rival : (n,) array
        The class it is compared with.
    log_odds : (n,) array
        log p(label | x) / p(rival | x), nats.
    baseline : (n,) array
        What is there before any part: the log-odds of the class priors, or of the average training row.
    parts : (n, K) array
        Part of each component, column or classifier; a positive part is evidence for the label.
    names : (K,) tuple of str
        Of the parts.
    by : "component", "column" or "classifier"
        What the parts belong to.
    baseline_name : str
        "class priors" or "average row".
    origin : Origin
        Library and row labels of the rows.
    """

    _title = "Explanation"

    label: np.ndarray
    rival: np.ndarray
    log_odds: Array
    baseline: Array
    parts: Array
    names: tuple[str, ...]
    by: str
    baseline_name: str
    _values: Callable[[], list[list[str]]] = field(repr=False, compare=False)
    origin: Origin = field(default=Origin(), compare=False)

    def values(self) -> list[list[str]]:
        """For each row what it holds for every part, as short text; of a component the class it mostly belongs to."""
        return self._values()

    def _brief(self) -> str:
        return f"{len(self.log_odds)} rows, {len(self.names)} {self.by}s, baseline={self.baseline_name!r}"

    def _content(self) -> list[Content]:
        header = ["label", "rival", "log-odds", self.baseline_name, *self.names]
        columns = np.column_stack([self.log_odds, self.baseline, self.parts])[:MOST_ROWS]
        labels = zip(self.label.tolist(), self.rival.tolist())
        rows: list[list[Any]] = [
            [str(a), str(b), *(Number(f"{x:+.2f}") for x in row)] for (a, b), row in zip(labels, columns)
        ]
        return [Table(f"Contributions of the {self.by}s to the log-odds of label against rival, nats", header, rows)]

    def frame(self) -> Any:
        """One row for each row explained, with its index: label, rival, log_odds, baseline, then the parts.

        Returns
        -------
        DataFrame of the library of the rows (of pandas if they are an array)
            A part is called by its name, with " (part)" added if that is the name of one of the first four columns.
        """
        known = {"label": self.label, "rival": self.rival, "log_odds": self.log_odds, "baseline": self.baseline}
        parts = {f"{name} (part)" if name in known else name: part for name, part in zip(self.names, self.parts.T)}
        return self.origin.frame(known | parts)
