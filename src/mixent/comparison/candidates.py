"""The candidates of a comparison: the recipes of all registered estimators, and classifiers of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import entries
from mixent.comparison.baselines import BASELINES
from mixent.data import Categorical
from mixent.show import Short


@dataclass(frozen=True, repr=False)
class Candidate(Short):
    """A method to be compared."""

    _shown = ("name", "kind", "about")

    name: str
    estimator: Any  # not fitted
    kind: str  # "mixent", "scikit-learn" or another kind of its recipe, or "given"
    about: str  # a short description
    cost: float = 1.0  # approximate relative cost; with a time budget, cheap methods are tried first

    @property
    def from_mixent(self) -> bool:
        """Whether it is a method of mixent."""
        return self.kind == "mixent"


def recipes() -> dict[str, Recipe]:
    """All recipes by name: those of the registered estimators, then the baselines."""
    registered = (recipe for entry in entries() for recipe in entry.recipes)
    return {recipe.name: recipe for recipe in (*registered, *BASELINES)}


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
        Use these methods only; they are never left out.
    baselines : bool
        Whether to add classifiers of scikit-learn.

    Returns
    -------
    candidates : dict of name -> Candidate
    left_out : dict of name -> reason
    """
    known = recipes()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        close = get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {close[0]!r}? Choose" if close else "choose"
        raise ValueError(f"unknown method {unknown[0]!r}; {hint} one of {', '.join(map(repr, known))}")
    registered = [name for name in known if known[name] not in BASELINES] if names is None else names
    chosen = [known[name] for name in dict.fromkeys(registered)]
    chosen += [recipe for recipe in BASELINES if baselines and recipe not in chosen]
    left_out = {r.name: reason for r in chosen if r.name not in (names or ()) and (reason := r.left_out(shape))}
    setting = Setting(shape, categorical, random_state)
    tried = {
        r.name: Candidate(r.name, r.make(setting), r.kind, r.about, r.cost) for r in chosen if r.name not in left_out
    }
    return tried, left_out
