"""What a fit costs, whatever it does inside: densities evaluated, rows x components."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mixent.families.product import ProductWork


@contextmanager
def counting() -> Iterator[list[int]]:
    """A list to which every evaluation of densities adds its rows x components; this process only."""
    results: list[int] = []
    plain = ProductWork.log_prob

    def counted(work: ProductWork) -> np.ndarray:
        log_prob = plain(work)
        results.append(log_prob.size)
        return log_prob

    ProductWork.log_prob = counted  # type: ignore[method-assign]
    try:
        yield results
    finally:
        ProductWork.log_prob = plain  # type: ignore[method-assign]


class Counted:
    """A classifier whose `fit` also counts what it evaluates: passes of EM, criteria, rows held out, all of it.

    The estimators' own `evaluations` are of EM only, and `nested` keeps those of the last fit only.
    """

    def __init__(self, model: Any) -> None:
        assert model.n_jobs == 1, "other processes would not be counted"
        self.model = model

    def fit(self, X: Any, y: Any) -> Counted:
        with counting() as result:
            self.model.fit(X, y)
        self.evaluations_ = sum(result)
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)
