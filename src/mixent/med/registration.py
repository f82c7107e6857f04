"""Registration of the estimators by maximum entropy discrimination."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from mixent.base.background import Background
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

# `compare` leaves a method out beyond these sizes
MOST_CONSTRAINTS = 2_000  # rows times other classes, with a kernel
MOST_GAUSSIAN_COLUMNS, MOST_GAUSSIAN_ROWS, MOST_GAUSSIAN_CLASSES = 12, 1_000, 3  # encoded columns, rows, classes
MOST_TREE_COLUMNS = 100
STATE = {
    "schema_": Schema,
    "background_": Background | None,
    "calibration_": Calibration,
    "margin_": MarginPrior,
    "run_": Run,
}


# --- files ------------------------------------------------------------------------------------------------------------


def storable_kernel(model: BaseEstimator) -> Any:
    """Raise an error for kernels that are functions or classes of other packages: a file contains no code."""
    for kernel in (model.kernel, getattr(model, "feature_map_", None)):
        kernel = kernel.estimator if isinstance(kernel, FrozenEstimator) else kernel
        if kernel is None or isinstance(kernel, str | FisherKernel | Nystrom | Linear | Polynomial | RBF | Precomputed):
            continue
        if hasattr(kernel, "transform"):
            raise TypeError(
                f"the kernel of this model is a {type(kernel).__name__}, which a mixent file cannot hold; transform "
                f"the rows first, fit {type(model).__name__}() to the features and save the transformer separately, or "
                "use kernel='linear', 'poly', 'rbf' or a FisherKernel"
            )
        precomputed = ", or the kernel matrix with kernel='precomputed'" if isinstance(model, MEDClassifier) else ""
        raise TypeError(
            "the kernel of this model is a function, and a mixent file holds no code; use kernel='rbf' or 'poly'"
            f"{precomputed}"
        )
    return model


def storable_structure(model: MEDBayesNetClassifier) -> MEDBayesNetClassifier:
    """Raise an error for a structure that is a function."""
    structure = model.structure
    for edges in structure.values() if isinstance(structure, dict) else (structure,):
        if callable(edges):
            raise TypeError(
                "the structure of this model is a function, and a mixent file holds no code; set structure to the "
                "edges it returned, a list of (parent, child): see edges_"
            )
    return model


# --- compare ----------------------------------------------------------------------------------------------------------


def too_many_constraints(shape: Shape) -> str | None:
    """The reason to leave a kernel out, or None."""
    if shape.n_constraints > MOST_CONSTRAINTS:
        return f"it is slow with more than {MOST_CONSTRAINTS} margin constraints (rows times other classes)"
    return None


def no_gaussians(shape: Shape) -> str | None:
    """The reason to leave Gaussian densities out, or None."""
    if not shape.n_numbers:
        return "the table has no numeric column"
    if (
        shape.n_bits > MOST_GAUSSIAN_COLUMNS
        or shape.n_labelled > MOST_GAUSSIAN_ROWS
        or shape.n_classes > MOST_GAUSSIAN_CLASSES
    ):
        return (
            f"it is slow with more than {MOST_GAUSSIAN_COLUMNS} one-hot encoded columns, {MOST_GAUSSIAN_ROWS} rows or "
            f"{MOST_GAUSSIAN_CLASSES} classes"
        )
    return None


def no_trees(shape: Shape) -> str | None:
    """The reason to leave dependency trees out, or None."""
    if 2 * shape.n_categories < shape.n_columns or shape.n_columns < 2:
        return "fewer than half of the columns are categorical"
    if shape.n_columns > MOST_TREE_COLUMNS:
        return f"there are more than {MOST_TREE_COLUMNS} columns"
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
        Recipe("linear MED", "maximum margin, linear", _linear, 0.5),
        Recipe("RBF MED", "maximum margin, RBF kernel", _rbf, 1.5, too_many_constraints, growth=1.5),
    ),
)(MEDClassifier)
register(
    "med-gaussian",
    task="classification",
    title="Gaussian densities by maximum entropy discrimination",
    describe=describe_gaussians,
    on_rows=margins_on_rows,
    state={**STATE, "distribution_": ClassNormalWisharts, "encoder_": Encoder, "components_": KernelComponents | None},
    parts=(ClassNormalWisharts, GaussianPrior, KernelComponents, NormalWishart, Wishart),
    to_file=storable_kernel,
    recipes=(
        Recipe(
            "Gaussian MED",
            "Gaussian density for each class, trained for margins",
            lambda setting: MEDGaussianClassifier(**setting.common),
            6.0,
            no_gaussians,
        ),
    ),
)(MEDGaussianClassifier)
register(
    "med-tree",
    task="classification",
    title="Dependency trees by maximum entropy discrimination",
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
            "average over dependency trees of the columns, trained for margins",
            lambda setting: MEDTreeClassifier(**setting.common),
            3.0,
            no_trees,
        ),
    ),
)(MEDTreeClassifier)
register(
    "med-bayes-net",
    task="classification",
    title="Bayesian networks by maximum entropy discrimination",
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
