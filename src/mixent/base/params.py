"""Checks of constructor parameters: the same message for every estimator."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mixent.warn import warn

RandomState = int | np.random.RandomState | None  # as scikit-learn takes it


def check_count(name: str, value: Any, also: str = "") -> int:
    """A whole number >= 1; `also` names other values that are allowed, for the message."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return int(value)
    raise ValueError(f"{name} must be a whole number >= 1{_or(also)}; got {value!r}")


def check_positive(name: str, value: Any, *, zero: bool = False, also: str = "") -> float:
    """A finite number > 0 (>= 0 with zero=True); `also` names other values that are allowed, for the message."""
    if check_number(value) and np.isfinite(value) and (value > 0 or (zero and value == 0)):
        return float(value)
    raise ValueError(f"{name} must be a number {'>=' if zero else '>'} 0{_or(also)}; got {value!r}")


def _or(also: str) -> str:
    return f", or {also}" if also else ""


def check_share(name: str, value: Any) -> float:
    """A share: at least 0, less than 1."""
    if check_number(value) and 0 <= value < 1:
        return float(value)
    raise ValueError(f"{name} must be a share, at least 0 and less than 1; got {value!r}")


def check_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def warn_unused(option: str, only_with: str) -> None:
    """Warn of a parameter without effect. This is no error, so that a grid search can try all combinations."""
    warn(f"{option} has no effect; it is only used with {only_with}")


def check_class_weight(value: Any) -> None:
    """None, "balanced", or a dict of class labels and positive numbers."""
    if value is None or (isinstance(value, str) and value == "balanced"):
        return
    if not isinstance(value, dict):
        raise ValueError(f"class_weight must be None, 'balanced', or a dict of class -> weight; got {value!r}")
    for label, weight in value.items():
        check_positive(f"class_weight of {label!r}", weight)


def class_weights(value: Any, classes: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(C,) weights of the classes; "balanced" makes the mass (C,) of all classes equal and keeps its sum."""
    if value is None:
        return np.ones(len(classes))
    if isinstance(value, str):
        return mass.sum() / (len(classes) * mass)
    labels = classes.tolist()
    for label in value:
        if label not in labels:
            raise ValueError(f"class_weight contains {label!r}, which is not a class; the classes are {labels}")
    return np.array([float(value.get(label, 1.0)) for label in labels])


def check_folds(name: str, value: Any, also: str = "") -> None:
    """A whole number >= 2, a splitter, or splits; `also` names other values that are allowed, for the message."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 2:
        return
    if not isinstance(value, (str, bytes)) and (hasattr(value, "split") or np.iterable(value)):
        return
    raise ValueError(f"{name} must be a whole number >= 2, a splitter or a list of splits{_or(also)}; got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...], also: str = "") -> str:
    """One of a few words; `also` names other values that are allowed, for the message."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}{_or(also)}; got {value!r}")


def check_flag(name: str, value: Any) -> bool:
    """True or False: a word that stands for no would count as yes."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ValueError(f"{name} must be True or False; got {value!r}")


def check_file(name: str, value: Any) -> None:
    """The name of a file, or None."""
    if not (value is None or (isinstance(value, (str, os.PathLike)) and str(value))):
        raise ValueError(f"{name} must be the name of a file, or None; got {value!r}")


def check_jobs(n_jobs: Any) -> int | None:
    """How many at once; None or -1: as many as there are cores."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is None or (whole and (n_jobs == -1 or n_jobs > 0)):
        return None if n_jobs is None else int(n_jobs)
    raise ValueError(f"n_jobs must be None, -1 or a positive number of threads; got {n_jobs!r}")


def check_workers(n_jobs: Any) -> int:
    """Number of processes; None or -1: as many as there are cores."""
    wanted = check_jobs(n_jobs)
    if wanted is not None and wanted > 0:
        return wanted
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_calibration(value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words, or None for none."""
    if value is not None:
        check_choice("calibration", value, choices, also="None")
