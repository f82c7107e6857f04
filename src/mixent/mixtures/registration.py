"""Registration of the estimators in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.recipes import Recipe
from mixent.base.registry import register, sizes_of
from mixent.base.saved_state import (
    Part,
    Sizes,
    Values,
    check_categories,
    free,
    index,
    log_shares,
    positive,
    real,
    shares,
)
from mixent.core.driver import Run
from mixent.data import Schema
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.gaussian.structures import COVARIANCES
from mixent.families.product import Components, ContaminatedFamily, ProductFamily
from mixent.families.student import StudentFamily, Students
from mixent.families.uniform import Uniform
from mixent.mixtures.classifier import MixtureClassifier
from mixent.mixtures.clustering import GaussianMixture
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.describe import describe_classifier, describe_mixture, describe_shared
from mixent.mixtures.describe_rows import classifier_on_rows, mixture_on_rows
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage
from mixent.mixtures.online import PastStatistics
from mixent.mixtures.options import Conditional, Likelihood, MinimumError, MixturePrior, Search
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.mixtures.shared import SharedMixtureClassifier

# --- files: C classes, K components, W with that of noise, c continuous columns, d of which vary, R categories of all


def all_categories(family: CategoricalFamily, known: Sizes) -> Sizes:
    """Every category of the table has a probability."""
    check_categories(family.sizes, known)
    return {"R": sum(family.sizes)}


def fitted_structure(group: Group, known: Sizes) -> Sizes:
    """The structure is known, and the components are in order."""
    if group.structure not in COVARIANCES or not 0 <= group.start <= group.stop:
        raise ValueError(f"a group of components has structure {group.structure!r}, {group.start} to {group.stop}")
    return {}


def all_components(fitted: Any, known: Sizes) -> Sizes:
    """The components have weights, and that of noise, too."""
    problem, params = (
        (fitted.problem, fitted.params) if isinstance(fitted, Fitted) else (fitted.problem_, fitted.params_)
    )
    part = params.components.gaussian if params.components.gaussian is not None else params.components.categorical
    first = next(iter(vars(part).values()), None) if part is not None else None
    if not isinstance(first, np.ndarray) or first.ndim == 0:
        raise ValueError("the components have no parameters")
    return {"K": len(first), "W": len(first) + isinstance(problem.family, ContaminatedFamily)}


def inside_range(uniform: Uniform, known: Sizes) -> Sizes:
    """The range of every column has a width, and every category a probability."""
    check_categories(uniform.sizes, known)
    if not np.all(np.asarray(uniform.high) > np.asarray(uniform.low)):
        raise ValueError("the range of a column is empty")
    return {}


def mixture_sizes(model: Any) -> dict[str, Any]:
    """Numbers of components are below `components`."""
    sizes = all_components(model, {})
    return {**sizes_of(model), **sizes, "components": 1 + sizes["K"]}


STATE = {
    "schema_": Schema,
    "problem_": MixtureProblem,
    "params_": MixtureParams,
    "run_": Run,
    "varying_": index("d", below="c"),
    "constants_": free("c"),
    "n_components_": index(" | C", below="components"),
}
CLASSES = {
    "classes_": np.ndarray,
    "class_prior_": shares("C"),
    "temperature_": positive(""),
    "uniform_share_": Values("", low=0.0, below=1.0, optional=True),
}
PARTS: dict[type, Any] = {
    CategoricalFamily: Part({"sizes": index("m", low=1), "rows": positive("R | K R")}, all_categories),
    Categoricals: {"log_probs": log_shares("K R")},
    ColumnMixture: {"weights": real("k", 0.0), "means": "k", "variances": positive("k")},
    Components: {},
    Conditional: {},
    ContaminatedFamily: {},
    Fitted: Part({}, all_components),
    GaussianFamily: {"center": "d", "scale": real("d", 0.0), "noise": real("d", 0.0)},
    Gaussians: {"means": "K d", "covs": "K d | K d d", "axes": real("d d", each=True)},
    Group: Part({}, fitted_structure),
    PastStatistics: {"counts": real("C W", 0.0), "categories": real("K R", 0.0)},
    Likelihood: {},
    MinimumError: {},
    MixtureParams: {"weights": Values("C W", low=0.0, total=1.0), "repairs": index("")},
    MixturePrior: {},
    MixtureProblem: {"class_prior": shares("C"), "weight_rows": real("C W", 0.0)},
    Prior: {
        "rows": real("K |", 0.0),
        "cov": "K d d | K d | d d | d",
        "mean": "K d | d",
        "mean_rows": real("K |", 0.0),
    },
    ProductFamily: {},
    Search: {},
    StudentFamily: {"center": "d", "scale": real("d", 0.0), "noise": real("d", 0.0)},
    Students: {"means": "K d", "covs": "K d | K d d", "axes": real("d d", each=True), "df": positive("K")},
    Uniform: Part({"low": "d", "high": "d", "sizes": index("m", low=1)}, inside_range),
    Stage: Part({"log_likelihood": free(""), "objective": free(""), "candidates": free("n")}, apart=True),
}

register(
    "gaussian-mixture",
    task="clustering",
    title="Gaussian mixture",
    describe=describe_mixture,
    on_rows=mixture_on_rows,
    state=STATE,
    sizes=mixture_sizes,
    parts=PARTS,
)(GaussianMixture)
register(
    "mixture",
    task="classification",
    title="Bayes classifier with a mixture for each class",
    describe=describe_classifier,
    on_rows=classifier_on_rows,
    state={**STATE, **CLASSES},
    sizes=mixture_sizes,
    recipes=(
        Recipe(
            "mixture",
            "a mixture for each class, with numbers of components and structure selected by cross-validation",
            lambda setting: MixtureClassifier(**setting.common),
            4.0,
            growth=0.2,
        ),
    ),
)(MixtureClassifier)
register(
    "shared-mixture",
    task="classification",
    title="Bayes classifier with mixture components shared by all classes",
    describe=describe_shared,
    on_rows=classifier_on_rows,
    state={**STATE, **CLASSES},
    sizes=mixture_sizes,
    recipes=(
        Recipe(
            "shared mixture",
            "components shared by all classes",
            lambda setting: SharedMixtureClassifier(**setting.common),
            5.0,
            growth=0.2,
        ),
    ),
)(SharedMixtureClassifier)
