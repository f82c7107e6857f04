"""Which methods to try on a table: the recipes of all registered estimators, and scikit-learn's classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import entries
from mixent.comparison.baselines import BASELINES
from mixent.data import Categorical


@dataclass(frozen=True)
class Candidate:
    """A method to be compared."""

    name: str
    estimator: Any  # not fitted
    kind: str  # that of its recipe, or "given"
    about: str  # what it is, in a few words
    cost: float = 1.0  # roughly, relative to the others: a time budget begins with the cheap ones

    @property
    def ours(self) -> bool:
        """Whether it is one of mixent's families."""
        return self.kind == "mixent"


def recipes() -> dict[str, Recipe]:
    """Every recipe by name: those of the registered estimators, then scikit-learn's."""
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
    """Methods for a table of this shape by name, and those left out with the reason.

    Parameters
    ----------
    shape : Shape
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int
    names : list of str, optional
        Only these methods; one that is named is never left out.
    baselines : bool
        Whether to add scikit-learn's.
    """
    known = recipes()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        close = get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {close[0]!r}? Choose" if close else "choose"
        raise ValueError(f"unknown method {unknown[0]!r}; {hint} one of {', '.join(map(repr, known))}")
    own = [name for name in known if known[name] not in BASELINES] if names is None else names
    wanted = [known[name] for name in dict.fromkeys(own)]
    wanted += [recipe for recipe in BASELINES if baselines and recipe not in wanted]
    left_out = {r.name: reason for r in wanted if r.name not in (names or ()) and (reason := r.left_out(shape))}
    setting = Setting(shape, categorical, random_state)
    made = {
        r.name: Candidate(r.name, r.make(setting), r.kind, r.about, r.cost) for r in wanted if r.name not in left_out
    }
    return made, left_out
