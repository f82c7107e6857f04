"""Results that are a list of records, one for each fit: what is common to reading them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.params import check_choice


class Recorded:
    """Records with the keys method and failed (None, or the error), and a number for every metric."""

    records: list[dict[str, Any]]

    @property
    def failures(self) -> dict[str, str]:
        """First error of every method that failed somewhere."""
        found: dict[str, str] = {}
        for record in self.records:
            if record["failed"]:
                found.setdefault(record["method"], record["failed"])
        return found

    def _column(self, method: str, metric: str) -> np.ndarray:
        """The metric of a method, in the order of the records."""
        return np.array([record[metric] for record in self.records if record["method"] == method])


def check_asked(method: str, methods: list[str], metric: str, metrics: tuple[str, ...]) -> None:
    """Refuse a method or a metric that there is none of."""
    if method not in methods:
        raise ValueError(f"there is no method {method!r}; there are {methods}")
    check_choice("metric", metric, metrics)
