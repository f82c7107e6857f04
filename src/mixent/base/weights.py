"""How classifiers of any make take weights."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import has_fit_parameter

from mixent.core.arrays import Array


def weight_argument(estimator: Any) -> str | None:
    """Name under which `fit` takes weights; None if it takes none. A pipeline hands them to its last step."""
    steps = getattr(estimator, "steps", None)
    if steps:
        inner = weight_argument(steps[-1][1])
        return None if inner is None else f"{steps[-1][0]}__{inner}"
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def weight_arguments(estimator: Any, weight: Array | None) -> dict[str, Array]:
    """What to add to the arguments of `fit`: nothing without weights, or where it takes none."""
    name = None if weight is None else weight_argument(estimator)
    return {} if name is None or weight is None else {name: weight}
