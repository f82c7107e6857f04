"""Save and load fitted mixent models: one file, plain numbers, safe to open."""

from __future__ import annotations

import copy
import os
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
from mixent.mixtures import GaussianMixture, MixtureClassifier
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.tables import Column, Schema

ESTIMATORS = (GaussianMixture, MixtureClassifier)
PARTS = (
    CategoricalFamily,
    Categoricals,
    Column,
    Components,
    GaussianFamily,
    Gaussians,
    Group,
    MixtureParams,
    MixtureProblem,
    Prior,
    ProductFamily,
    Run,
    Schema,
    Starts,
    Status,
    Step,
)
STATE = {"schema_": Schema, "problem_": MixtureProblem, "params_": MixtureParams, "run_": Run}  # of every model
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
    for name, kind in STATE.items():
        if not isinstance(getattr(model, name, None), kind):
            raise SavedFileError(f"{path}: the contents are damaged ({name} is missing or no {kind.__name__})")
    return model
