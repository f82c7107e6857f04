"""The candidates of a comparison: the recipes of all registered estimators, and classifiers of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Any

from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import Entry, entries
from mixent.comparison.baselines import BASELINES
from mixent.data import Categorical
from mixent.show import Short

OWN = ("mixent", "classical")  # kinds of mixent's estimators


@dataclass(frozen=True, repr=False)
class Candidate(Short):
    """A method to be compared."""

    _shown = ("name", "kind", "about")

    name: str
    estimator: Any  # not fitted
    kind: str  # "mixent", "classical", "scikit-learn", "baseline", the package of a registered estimator, or "given"
    about: str  # a short description
    cost: float = 1.0  # approximate relative cost; with a time budget, cheap methods are tried first
    growth: float = 0.8  # exponent of the time in the number of rows

    @property
    def from_mixent(self) -> bool:
        """Whether it is a method of mixent."""
        return self.kind in OWN


def recipes() -> dict[str, Recipe]:
    """All recipes by name: those of the registered estimators, then the baselines."""
    registered = (replace(r, kind=r.kind or package_of(entry.cls)) for entry in entries() for r in entry.recipes)
    return {recipe.name: recipe for recipe in (*registered, *BASELINES)}


def models() -> dict[str, Recipe]:
    """Registered classifiers with their defaults, by their names on the command line."""
    listed = [entry for entry in entries() if entry.listed and entry.task == "classification"]
    return {e.name: Recipe(e.name, e.title, partial(_default, e), kind=package_of(e.cls)) for e in listed}


def package_of(cls: type) -> str:
    """The package in which a class is defined."""
    return cls.__module__.partition(".")[0]


def _default(entry: Entry, setting: Setting) -> Any:
    """The estimator with its defaults, and the parameters that all methods share, also of estimators inside it."""
    estimator, common = entry.make(), setting.common
    shared = {key: common[last] for key in estimator.get_params() if (last := key.rpartition("__")[2]) in common}
    return estimator.set_params(**shared)


def candidates(
    shape: Shape,
    *,
    categorical: Categorical = "auto",
    random_state: int = 0,
    names: Sequence[str] | None = None,
    baselines: bool = True,
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """The methods that suit a table of this shape, and the methods left out with the reasons.

    Parameters
    ----------
    shape : Shape
    categorical : "auto" or list
        Columns to treat as categories, whatever their type.
    random_state : int
    names : list of str, optional
        Use these methods only, or models with their defaults by their names on the command line; they are never left
        out.
    baselines : bool
        Whether to add classifiers of scikit-learn.

    Returns
    -------
    candidates : dict of name -> Candidate
    left_out : dict of name -> reason
    """
    usual = recipes()
    known = models() | usual
    unknown = [name for name in names or () if name not in known]
    if unknown:
        close = get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {close[0]!r}? Choose" if close else "choose"
        raise ValueError(f"unknown method {unknown[0]!r}; {hint} one of {', '.join(map(repr, usual | known))}")
    registered = [name for name in usual if usual[name] not in BASELINES] if names is None else names
    chosen = [known[name] for name in dict.fromkeys(registered)]
    chosen += [recipe for recipe in BASELINES if baselines and recipe not in chosen]
    left_out = {r.name: reason for r in chosen if r.name not in (names or ()) and (reason := r.left_out(shape))}
    setting = Setting(shape, categorical, random_state)
    made = [r for r in chosen if r.name not in left_out]
    tried = {r.name: Candidate(r.name, r.make(setting), r.kind, r.about, r.cost, r.growth) for r in made}
    return tried, left_out
