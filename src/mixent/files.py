"""Save and load fitted mixent models: one file, plain numbers, safe to open."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import mixent
from mixent.core import saved
from mixent.core.driver import Run, Status, Step
from mixent.core.starts import Starts
from mixent.families.categorical import CategoricalFamily, Categoricals
from mixent.families.gaussian.family import GaussianFamily, Gaussians, Group
from mixent.families.gaussian.prior import Prior
from mixent.families.product import Components, ProductFamily
from mixent.hmm import HiddenMarkovModel, HMMClassifier
from mixent.hmm.fitting import FittedChain
from mixent.hmm.model import SequenceModel
from mixent.hmm.problem import ChainParams, ChainProblem
from mixent.maxent import MaxEntClassifier, MaxEntJoint
from mixent.maxent.induction import Added
from mixent.maxent.joint_cells import Category, Constant, Hidden
from mixent.maxent.joint_problem import Pairwise
from mixent.maxent.layout import Layout
from mixent.maxent.problem import Multipliers
from mixent.maxent.terms import Binned, Coded, Crossed, CrossedDense, Given, Grouped, Latent, Moments, Slope
from mixent.med import (
    FisherKernel,
    MEDBayesNetClassifier,
    MEDClassifier,
    MEDGaussianClassifier,
    MEDNoveltyDetector,
    MEDTreeClassifier,
)
from mixent.med.bayes_net import Net, NetModel
from mixent.med.calibration import Calibration
from mixent.med.classifier import Function
from mixent.med.encoding import Encoder
from mixent.med.families import CellLayout, Dirichlets, Distribution, OneTree, Product, Trees, TreeTables
from mixent.med.gaussian_classifier import KernelComponents
from mixent.med.gaussians import Ensemble, NormalWishart
from mixent.med.kernels import RBF, Kernel, Linear, Nystrom, Polynomial
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace, Margin
from mixent.med.natural import Joint
from mixent.med.novelty_models import Emission, NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees, Scale
from mixent.med.tree_columns import CodedColumn, PowersColumn, SoftColumn, TreeColumns
from mixent.med.tree_tables import EdgeTables
from mixent.med.trees import TreeModel
from mixent.med.wishart import Wishart
from mixent.mixtures import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.mixtures.arriving import Kept
from mixent.mixtures.columns import ColumnMixture
from mixent.mixtures.fitting import Fitted
from mixent.mixtures.growth import Stage
from mixent.mixtures.model import MixtureModel
from mixent.mixtures.problem import MixtureParams, MixtureProblem
from mixent.tables import Column, Schema

MIXTURES = (GaussianMixture, MixtureClassifier, SharedMixtureClassifier)
KERNELS = (MEDClassifier, MEDGaussianClassifier)
DISCRIMINATIONS = (*KERNELS, MEDTreeClassifier, MEDBayesNetClassifier)
SEQUENCES = (HMMClassifier, HiddenMarkovModel)
ESTIMATORS = (
    *MIXTURES,
    *SEQUENCES,
    FisherKernel,
    *DISCRIMINATIONS,
    MEDNoveltyDetector,
    MaxEntClassifier,
    MaxEntJoint,
)
PARTS = (
    Added,
    Binned,
    Calibration,
    CategoricalFamily,
    Categoricals,
    Category,
    CellLayout,
    ChainParams,
    ChainProblem,
    Coded,
    CodedColumn,
    Column,
    ColumnMixture,
    Components,
    Constant,
    Crossed,
    CrossedDense,
    Dirichlets,
    EdgeTables,
    Emission,
    Encoder,
    Ensemble,
    Exponential,
    Fitted,
    FittedChain,
    Fixed,
    Function,
    Gaussian,
    GaussianFamily,
    Gaussians,
    Given,
    Group,
    Grouped,
    Hidden,
    Joint,
    Kept,
    KernelComponents,
    Laplace,
    Latent,
    Layout,
    Linear,
    MixtureParams,
    MixtureProblem,
    Moments,
    Multipliers,
    Net,
    NetModel,
    NormalWishart,
    NoveltyChain,
    NoveltyMixture,
    NoveltyTrees,
    Nystrom,
    OneTree,
    Pairwise,
    Polynomial,
    PowersColumn,
    Prior,
    Product,
    ProductFamily,
    RBF,
    Run,
    Scale,
    Schema,
    Slope,
    SoftColumn,
    Stage,
    Starts,
    Status,
    Step,
    TreeColumns,
    TreeModel,
    TreeTables,
    Trees,
    Wishart,
)
MARGINAL = {"schema_": Schema, "calibration_": Calibration, "margin_": Margin, "run_": Run}
STATE: dict[type, dict[str, Any]] = {  # what a fitted model cannot do without
    **{
        kind: {"schema_": Schema, "problem_": MixtureProblem, "params_": MixtureParams, "run_": Run}
        for kind in MIXTURES
    },
    HiddenMarkovModel: {"schema_": Schema, "variables_": Schema, "by_row_": bool, "chain_": FittedChain},
    HMMClassifier: {"schema_": Schema, "variables_": Schema, "by_row_": bool, "chains_": tuple},
    MaxEntClassifier: {"schema_": Schema, "layout_": Layout, "params_": Multipliers, "run_": Run},
    MaxEntJoint: {"schema_": Schema, "terms_": tuple, "params_": Pairwise, "run_": Run},
    MEDClassifier: {
        **MARGINAL,
        "function_": Function,
        "encoder_": Encoder | None,
        "kernel_": Kernel | None,
        "map_": Nystrom | FisherKernel | None,
    },
    MEDGaussianClassifier: {
        **MARGINAL,
        "ensemble_": Ensemble,
        "encoder_": Encoder,
        "components_": KernelComponents | None,
    },
    MEDTreeClassifier: {**MARGINAL, "joint_": Joint, "model_": TreeModel},
    MEDBayesNetClassifier: {**MARGINAL, "joint_": Joint, "model_": NetModel, "shares_": np.ndarray},
    MEDNoveltyDetector: {
        "schema_": Schema,
        "model_": NoveltyModel,
        "distribution_": Distribution,
        "bayes_": Distribution,
        "offset_": float,
        "margin_": Margin | None,
        "run_": Run,
    },
    FisherKernel: {
        "model_": MixtureModel | SequenceModel,
        "information_": np.ndarray,
        "root_": np.ndarray,
        "rank_": int,
    },
}
INSIDE: dict[type, tuple[str, ...]] = {  # where models may hold others
    MEDClassifier: ("kernel", "map_"),
    FisherKernel: ("model", "model_"),
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
    model = _bare(model)
    if isinstance(model, KERNELS):
        _check_kernel(model)
    if isinstance(model, MEDBayesNetClassifier):
        _check_structure(model.structure)
    about = {"class": type(model).__name__, "mixent_version": mixent.__version__}
    saved.save(path, model, CLASSES, about)


def _bare(model: Any) -> Any:
    """A copy without what is of this process alone: functions that show progress, and scikit-learn's wrapping."""
    if isinstance(model, FrozenEstimator):
        return _bare(model.estimator)
    if not isinstance(model, ESTIMATORS):
        return model
    model = copy.copy(model)
    if callable(getattr(model, "progress", None)):
        model.progress = False
    for name in INSIDE.get(type(model), ()):
        if hasattr(model, name):
            setattr(model, name, _bare(getattr(model, name)))
    return model


def _check_kernel(model: Any) -> None:
    """A file holds numbers, no code: neither the user's functions nor classes that mixent does not know."""
    by_pairs = isinstance(model, MEDGaussianClassifier)  # its kernels are functions of two rows, whatever else they are
    for kernel in (model.kernel, getattr(model, "map_", None)):
        if kernel is None or isinstance(kernel, str if by_pairs else str | FisherKernel | Nystrom):
            continue
        if hasattr(kernel, "transform") and not by_pairs:
            raise TypeError(
                f"the kernel of this model is a {type(kernel).__name__}, which a mixent file cannot hold; transform "
                f"the rows first, fit {type(model).__name__}() to the features and keep the transformer apart, or take "
                "kernel='linear', 'poly', 'rbf' or a FisherKernel"
            )
        other = "" if by_pairs else ", or give the matrix with kernel='precomputed'"
        raise TypeError(
            "the kernel of this model is a function, and a mixent file holds no code; take kernel='rbf' or 'poly'"
            f"{other}"
        )


def _check_structure(structure: Any) -> None:
    """As for kernels."""
    for one in structure.values() if isinstance(structure, dict) else (structure,):
        if callable(one):
            raise TypeError(
                "the structure of this model is a function, and a mixent file holds no code; set structure to the "
                "edges it returned, a list of (parent, child): see edges_"
            )


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
    """A whole model, and whole models inside it: those of columns that share a mixture, and those of a kernel."""
    for name, kind in STATE[type(model)].items():
        if not isinstance(getattr(model, name, ABSENT), kind):
            raise SavedFileError(f"{path}: the contents are damaged ({name} is missing or no {_name_of(kind)})")
    if isinstance(model, MaxEntClassifier):
        for term in _single(model.layout_):
            if isinstance(term, Grouped):
                if not isinstance(term.mixture, MIXTURES):
                    raise SavedFileError(f"{path}: the contents are damaged (a group of columns has no mixture)")
                _checked(term.mixture, path)
    for name in INSIDE.get(type(model), ()):
        if name.endswith("_") and isinstance(getattr(model, name), ESTIMATORS):  # an option need not be fitted
            _checked(getattr(model, name), path)
    return _brought_up_to_date(model)


ABSENT = object()


def _name_of(kind: Any) -> str:
    """Of a class, or of several that would do."""
    return getattr(kind, "__name__", None) or " or ".join(getattr(k, "__name__", "None") for k in get_args(kind))


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
    for name, value in LATER.items() if isinstance(model, MIXTURES) and "params_" in state else ():
        state.setdefault(name, copy.copy(value))
    for name in INSIDE.get(type(model), ()):
        if isinstance(state.get(name), ESTIMATORS):
            _brought_up_to_date(state[name])
    return model
