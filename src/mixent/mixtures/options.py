"""Checks of constructor options, and the progress bar: the same words for every estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

GROWTHS = ("restart", "incremental")
SELECTIONS = ("cv", "bic", "icl", "dic", "dic_robust", "cbic")


def check_count(name: str, value: Any, also: str = "") -> int:
    """A whole number >= 1."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 1:
        return int(value)
    extra = f", or {also}" if also else ""
    raise ValueError(f"{name} must be a whole number >= 1{extra}; got {value!r}")


def check_positive(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number > 0 (>= 0 with zero=True)."""
    if check_number(value) and np.isfinite(value) and (value > 0 or (zero and value == 0)):
        return float(value)
    raise ValueError(f"{name} must be a number {'>=' if zero else '>'} 0; got {value!r}")


def check_share(name: str, value: Any) -> float:
    """A share: at least 0, less than 1."""
    if check_number(value) and 0 <= value < 1:
        return float(value)
    raise ValueError(f"{name} must be a share, at least 0 and less than 1; got {value!r}")


def check_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_grow_by(est: Any, criteria: tuple[str, ...]) -> None:
    """What growth keeps: the candidate of highest penalised likelihood, or of the best criterion."""
    check_choice("grow_by", est.grow_by, ("likelihood", "criterion"))
    if est.grow_by == "criterion" and est.growth != "incremental":
        raise ValueError("grow_by='criterion' has no effect with growth='restart'; set growth='incremental'")
    if est.grow_by == "criterion" and est.selection not in criteria:
        raise ValueError(
            f"grow_by='criterion' needs selection to be one of {', '.join(map(repr, criteria))}; got {est.selection!r}"
        )


def _check_idle(est: Any) -> None:
    """What chooses the number of components has nothing to choose when it is given."""
    idle = {"nested": None, "per_class": False, "beta": 1.0, "selection": "cv"}
    if est.grow_by == "criterion":  # which reads the criterion
        del idle["selection"], idle["beta"]
    for name, default in idle.items():
        value = getattr(est, name, default)
        if value != default:
            raise ValueError(
                f"{name}={value!r} has no effect with n_components={est.n_components!r}; set n_components='auto'"
            )


def check_selection(est: Any) -> None:
    """How the number of components is found: growth, criterion, folds."""
    check_choice("growth", est.growth, GROWTHS)
    check_choice("selection", est.selection, SELECTIONS)
    check_grow_by(est, ("bic", "icl", "dic", "dic_robust"))
    check_positive("beta", est.beta)
    if est.beta != 1.0 and est.selection not in ("dic", "dic_robust"):
        raise ValueError(
            f"beta={est.beta!r} has no effect with selection={est.selection!r}; it serves 'dic' and 'dic_robust'"
        )
    if est.nested is not None:
        check_folds("nested", est.nested)
        if est.selection == "cv":
            raise ValueError(
                "nested chooses among what a criterion picks in each fold, and selection='cv' is none; "
                f"take one of {', '.join(map(repr, SELECTIONS[1:]))}"
            )
    if not isinstance(est.n_components, str):
        _check_idle(est)


def check_folds(name: str, value: Any) -> None:
    """A whole number >= 2, a splitter, or splits."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 2:
        return
    if not isinstance(value, (str, bytes)) and (hasattr(value, "split") or np.iterable(value)):
        return
    raise ValueError(f"{name} must be a whole number >= 2, a splitter or a list of splits; got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_flag(name: str, value: Any) -> bool:
    """True or False: a word that stands for no would count as yes."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ValueError(f"{name} must be True or False; got {value!r}")


def check_jobs(n_jobs: Any) -> int | None:
    """How many at once; None or -1: as many as there are cores."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is None or (whole and (n_jobs == -1 or n_jobs > 0)):
        return None if n_jobs is None else int(n_jobs)
    raise ValueError(f"n_jobs must be None, -1 or a positive number of threads; got {n_jobs!r}")


def check_calibration(value: Any, choices: tuple[str, ...]) -> None:
    """One of a few words, or None for none."""
    if value is not None and not (isinstance(value, str) and value in choices):
        raise ValueError(f"calibration must be one of {', '.join(map(repr, choices))}, or None; got {value!r}")


@contextmanager
def progress_bar(progress: Any, title: str) -> Iterator[Callable[[int, int, str], None] | None]:
    """True: a bar on the terminal; a callable: itself; otherwise None."""
    if not callable(progress) and not isinstance(progress, (bool, np.bool_)):
        raise ValueError(f"progress must be True, False or a function of (done, total, text); got {progress!r}")
    if callable(progress):
        yield progress
    elif not progress:
        yield None
    else:
        from rich.progress import Progress  # only when a bar is shown

        with Progress(transient=True) as bar:
            task = bar.add_task(title)
            yield lambda done, total, text: bar.update(
                task, completed=done, total=total, description=f"{title}: {text}"
            )
