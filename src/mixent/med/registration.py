"""What the rest of the library knows of the estimators in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from mixent.base.kernels import RBF, Kernel, Linear, Nystrom, Polynomial, Precomputed
from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import register
from mixent.core.driver import Run
from mixent.data import Schema
from mixent.hmm.model import SequenceModel
from mixent.med.bayes_net import Net, NetModel
from mixent.med.bayes_net_classifier import MEDBayesNetClassifier
from mixent.med.calibration import Calibration
from mixent.med.classifier import DiscriminantFunction, MEDClassifier
from mixent.med.describe import describe_classifier, describe_gaussians, describe_kernel
from mixent.med.describe_margins import margins_on_rows
from mixent.med.describe_novelty import describe_novelty, novelty_on_rows
from mixent.med.describe_structures import describe_net, describe_trees
from mixent.med.encoding import Encoder
from mixent.med.exponential_family import JointDistribution
from mixent.med.families import CellLayout, Dirichlets, Distribution, Product, SingleTree, TreeDistribution, TreeTables
from mixent.med.fisher import FisherKernel
from mixent.med.gaussian_classifier import KernelComponents, MEDGaussianClassifier
from mixent.med.gaussians import ClassNormalWisharts, NormalWishart
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace, MarginPrior
from mixent.med.novelty import MEDNoveltyDetector
from mixent.med.novelty_models import Emission, NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees, Scale
from mixent.med.options import GaussianPrior, Margin, Tables, Trees
from mixent.med.tree_classifier import MEDTreeClassifier
from mixent.med.tree_columns import CodedColumn, PowersColumn, SoftColumn, TreeColumns
from mixent.med.tree_tables import EdgeTables
from mixent.med.trees import TreeModel
from mixent.med.wishart import Wishart
from mixent.mixtures.model import MixtureModel

CONSTRAINTS = 2_000  # rows times other classes: what the dual of a kernel has multipliers for
WIDE_GAUSSIANS, LONG_GAUSSIANS, MANY_GAUSSIANS = 12, 1_000, 3  # columns (bits), rows and classes of Gaussians of MED
TREE_COLUMNS = 100
STATE = {"schema_": Schema, "calibration_": Calibration, "margin_": MarginPrior, "run_": Run}


# --- files ------------------------------------------------------------------------------------------------------------


def storable_kernel(model: BaseEstimator) -> Any:
    """A file holds numbers, no code: neither the user's functions nor classes that mixent does not know."""
    for kernel in (model.kernel, getattr(model, "feature_map_", None)):
        kernel = kernel.estimator if isinstance(kernel, FrozenEstimator) else kernel
        if kernel is None or isinstance(kernel, str | FisherKernel | Nystrom | Linear | Polynomial | RBF | Precomputed):
            continue
        if hasattr(kernel, "transform"):
            raise TypeError(
                f"the kernel of this model is a {type(kernel).__name__}, which a mixent file cannot hold; transform "
                f"the rows first, fit {type(model).__name__}() to the features and keep the transformer apart, or take "
                "kernel='linear', 'poly', 'rbf' or a FisherKernel"
            )
        other = ", or give the matrix with kernel='precomputed'" if isinstance(model, MEDClassifier) else ""
        raise TypeError(
            "the kernel of this model is a function, and a mixent file holds no code; take kernel='rbf' or 'poly'"
            f"{other}"
        )
    return model


def storable_structure(model: MEDBayesNetClassifier) -> MEDBayesNetClassifier:
    """As for kernels."""
    structure = model.structure
    for one in structure.values() if isinstance(structure, dict) else (structure,):
        if callable(one):
            raise TypeError(
                "the structure of this model is a function, and a mixent file holds no code; set structure to the "
                "edges it returned, a list of (parent, child): see edges_"
            )
    return model


# --- compare ----------------------------------------------------------------------------------------------------------


def too_many_constraints(shape: Shape) -> str | None:
    """Why a kernel is not tried."""
    if shape.n_constraints > CONSTRAINTS:
        return f"it takes long where rows times other classes are more than {CONSTRAINTS}"
    return None


def no_gaussians(shape: Shape) -> str | None:
    """Why Gaussians of classes are not tried."""
    if not shape.n_numbers:
        return "there is no numeric column"
    if shape.n_bits > WIDE_GAUSSIANS or shape.n_labelled > LONG_GAUSSIANS or shape.n_classes > MANY_GAUSSIANS:
        return (
            f"it takes long beyond {WIDE_GAUSSIANS} columns (categories one by one), {LONG_GAUSSIANS} rows or "
            f"{MANY_GAUSSIANS} classes"
        )
    return None


def no_trees(shape: Shape) -> str | None:
    """Why trees of columns are not tried."""
    if 2 * shape.n_categories < shape.n_columns or shape.n_columns < 2:
        return "fewer than half of the columns are categories"
    if shape.n_columns > TREE_COLUMNS:
        return f"there are more than {TREE_COLUMNS} columns"
    return None


def _linear(setting: Setting) -> MEDClassifier:
    return MEDClassifier("linear", **setting.common)


def _rbf(setting: Setting) -> MEDClassifier:
    return MEDClassifier("rbf", **setting.common)


# --- the estimators ---------------------------------------------------------------------------------------------------

register(
    "med",
    task="classification",
    title="Maximum entropy discrimination",
    describe=describe_classifier,
    on_rows=margins_on_rows,
    state={
        **STATE,
        "function_": DiscriminantFunction,
        "encoder_": Encoder | None,
        "kernel_": Kernel | None,
        "feature_map_": Nystrom | FisherKernel | None,
    },
    parts=(
        Calibration,
        Encoder,
        Exponential,
        Fixed,
        DiscriminantFunction,
        Gaussian,
        JointDistribution,
        Laplace,
        Linear,
        Margin,
        Nystrom,
        Polynomial,
        Precomputed,
        RBF,
    ),
    holds=("kernel", "feature_map_"),
    to_file=storable_kernel,
    recipes=(
        Recipe("linear MED", "margins, linear", _linear, 0.5),
        Recipe("RBF MED", "margins, radial kernel", _rbf, 3.0, too_many_constraints),
    ),
)(MEDClassifier)
register(
    "med-gaussian",
    task="classification",
    title="Gaussians by maximum entropy discrimination",
    describe=describe_gaussians,
    on_rows=margins_on_rows,
    state={**STATE, "distribution_": ClassNormalWisharts, "encoder_": Encoder, "components_": KernelComponents | None},
    parts=(ClassNormalWisharts, GaussianPrior, KernelComponents, NormalWishart, Wishart),
    to_file=storable_kernel,
    recipes=(
        Recipe(
            "Gaussian MED",
            "a Gaussian for each class, trained for margins",
            lambda setting: MEDGaussianClassifier(**setting.common),
            6.0,
            no_gaussians,
        ),
    ),
)(MEDGaussianClassifier)
register(
    "med-tree",
    task="classification",
    title="Distributions over trees by maximum entropy discrimination",
    describe=describe_trees,
    on_rows=margins_on_rows,
    state={**STATE, "distribution_": JointDistribution, "model_": TreeModel},
    parts=(
        CellLayout,
        CodedColumn,
        Dirichlets,
        EdgeTables,
        SingleTree,
        PowersColumn,
        Product,
        SoftColumn,
        TreeColumns,
        TreeModel,
        TreeDistribution,
        TreeTables,
        Tables,
        Trees,
    ),
    recipes=(
        Recipe(
            "tree MED",
            "distributions over tree-shaped dependencies of the columns",
            lambda setting: MEDTreeClassifier(**setting.common),
            3.0,
            no_trees,
        ),
    ),
)(MEDTreeClassifier)
register(
    "med-bayes-net",
    task="classification",
    title="Bayes nets by maximum entropy discrimination",
    describe=describe_net,
    on_rows=margins_on_rows,
    state={**STATE, "distribution_": JointDistribution, "model_": NetModel, "training_prior_": np.ndarray},
    parts=(Net, NetModel),
    to_file=storable_structure,
)(MEDBayesNetClassifier)
register(
    "novelty",
    task="novelty",
    title="Novelty detection by maximum entropy discrimination",
    describe=describe_novelty,
    on_rows=novelty_on_rows,
    state={
        "schema_": Schema,
        "model_": NoveltyModel,
        "distribution_": Distribution,
        "bayes_": Distribution,
        "offset_": float,
        "margin_": MarginPrior | None,
        "run_": Run,
    },
    parts=(Emission, NoveltyChain, NoveltyMixture, NoveltyTrees, Scale),
)(MEDNoveltyDetector)
register(
    "fisher-kernel",
    task="features",
    title="Fisher kernel",
    describe=describe_kernel,
    columns=lambda kernel: kernel.model_.schema_,
    state={
        "model_": MixtureModel | SequenceModel,
        "information_": np.ndarray,
        "root_": np.ndarray,
        "rank_": int,
    },
    holds=("model", "model_"),
)(FisherKernel)
