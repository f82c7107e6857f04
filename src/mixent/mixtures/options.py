"""Checks of the options of a search for components."""

from __future__ import annotations

from typing import Any

from mixent.base.params import check_choice, check_folds, check_positive

GROWTHS = ("restart", "incremental")
SELECTIONS = ("cv", "bic", "icl", "dic", "dic_robust", "cbic")


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
