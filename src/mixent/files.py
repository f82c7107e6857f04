"""Save and load fitted mixent models: one file, plain numbers, safe to open."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator
from typing import Any

from sklearn.utils.validation import check_is_fitted

import mixent
from mixent.core import saved
from mixent.core.driver import Run, Status, Step
from mixent.core.starts import Starts
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.maxent import MaxEntClassifier, MaxEntJoint
from mixent.maxent.induction import Added
from mixent.maxent.joint_cells import Category, Constant, Hidden
from mixent.maxent.joint_problem import Pairwise
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Given, Grouped, Latent, Moments, Slope
from mixent.mixtures import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.mixtures.arriving import Kept
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.tables import Column, Schema

MIXTURES = (GaussianMixture, MixtureClassifier, SharedMixtureClassifier)
ESTIMATORS = (*MIXTURES, MaxEntClassifier, MaxEntJoint)
PARTS = (
    Added,
    Binned,
    CategoricalFamily,
    Categoricals,
    Category,
    Coded,
    Column,
    ColumnMixture,
    Components,
    Constant,
    Crossed,
    CrossedDense,
    Fitted,
    GaussianFamily,
    Gaussians,
    Given,
    Group,
    Grouped,
    Hidden,
    Kept,
    Latent,
    Layout,
    MixtureParams,
    MixtureProblem,
    Moments,
    Multipliers,
    Pairwise,
    Prior,
    ProductFamily,
    Run,
    Schema,
    Slope,
    Stage,
    Starts,
    Status,
    Step,
)
STATE: dict[type, dict[str, type]] = {  # what a fitted model cannot do without
    **{
        kind: {"schema_": Schema, "problem_": MixtureProblem, "params_": MixtureParams, "run_": Run}
        for kind in MIXTURES
    },
    MaxEntClassifier: {"schema_": Schema, "layout_": Layout, "params_": Multipliers, "run_": Run},
    MaxEntJoint: {"schema_": Schema, "terms_": tuple, "params_": Pairwise, "run_": Run},
}
CLASSES = {cls.__name__: cls for cls in (*ESTIMATORS, *PARTS)}

SavedFileError = saved.SavedFileError


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted mixent model to one file.

    Parameters
    ----------
    model : fitted mixent estimator
    path : file name, usually ending in .mixent
    """
    if not isinstance(model, ESTIMATORS):
        raise TypeError(
            f"save takes a mixent estimator ({', '.join(c.__name__ for c in ESTIMATORS)}); got {type(model).__name__}"
        )
    check_is_fitted(model)
    if callable(getattr(model, "progress", None)):  # a function of this process, no part of the model
        model = copy.copy(model).set_params(progress=False)
    about = {"class": type(model).__name__, "mixent_version": mixent.__version__}
    saved.save(path, model, CLASSES, about)


def load(path: str | os.PathLike[str], *, max_bytes: int = saved.MAX_BYTES) -> Any:
    """Read a model that `save` wrote. Safe on files you do not trust: nothing in a file is ever run.

    Parameters
    ----------
    path : file name
    max_bytes : int
        Refuse files that unpack to more.

    Returns
    -------
    The fitted estimator.
    """
    model = saved.load(path, CLASSES, max_bytes=max_bytes)
    if not isinstance(model, ESTIMATORS):
        raise SavedFileError(f"{path} holds a {type(model).__name__}, not a model")
    return _checked(model, path)


def _checked(model: Any, path: Any) -> Any:
    """A whole model, and whole models inside it: those of columns that share a mixture."""
    for name, kind in STATE[type(model)].items():
        if not isinstance(getattr(model, name, None), kind):
            raise SavedFileError(f"{path}: the contents are damaged ({name} is missing or no {kind.__name__})")
    if isinstance(model, MaxEntClassifier):
        for term in _single(model.layout_):
            if isinstance(term, Grouped):
                if not isinstance(term.mixture, MIXTURES):
                    raise SavedFileError(f"{path}: the contents are damaged (a group of columns has no mixture)")
                _checked(term.mixture, path)
    return _brought_up_to_date(model)


def _single(layout: Layout) -> Iterator[Any]:
    """The features, those of pairs one by one."""
    for term in layout.terms:
        yield from (term.first, term.second) if isinstance(term, Crossed | CrossedDense) else (term,)


RENAMED = {"criterion": "selection"}  # options of mixent 0.1
LATER: dict[str, Any] = {"path_": [], "kept_": None}  # what mixtures fitted before it existed did not have


def _brought_up_to_date(model: Any) -> Any:
    """A model of an older mixent: its options under their new names, later ones at their defaults."""
    state = vars(model)
    options = inspect.signature(type(model)).parameters
    for old, new in RENAMED.items():
        if old in state and old not in options:
            state[new] = state.pop(old)
    for name, option in options.items():
        state.setdefault(name, option.default)
    for name, value in LATER.items() if isinstance(model, MIXTURES) else ():
        state.setdefault(name, copy.copy(value))
    return model
