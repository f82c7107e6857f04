"""Text and hashes that change with any part of a value, to recognize the same data and the same parameters again."""

from __future__ import annotations

import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator


def fingerprint_of(*values: Any) -> str:
    """Return a hash of these values, the same in every process."""
    return hashlib.sha256(written(values).encode()).hexdigest()


def written(value: Any) -> str:
    """Return a text that differs for different values; unlike `repr`, it does not abbreviate arrays."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape}{hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, dict):
        return str(sorted((written(name), written(item)) for name, item in value.items()))
    if isinstance(value, list | tuple | np.ndarray):
        return str([written(item) for item in value])
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__qualname__}{[written(getattr(value, part.name)) for part in fields(value)]}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        return f"{kind}({written(value.get_params(deep=False))}{_state(value)})"
    return repr(value)


def _state(estimator: Any) -> str:
    """Return a hash of a fitted estimator; an empty text if it is not fitted."""
    fitted = any(name.endswith("_") and not name.startswith("_") for name in vars(estimator))
    if not fitted and not isinstance(estimator, FrozenEstimator):
        return ""
    import joblib

    try:
        return f" {joblib.hash(estimator)}"
    except Exception:  # it cannot be pickled: its address, so that it never equals one of another run
        return f" {object.__repr__(estimator)}"
