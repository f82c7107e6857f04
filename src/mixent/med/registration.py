"""Registration of the estimators by maximum entropy discrimination."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from mixent.base.background import Background
from mixent.base.few_rows import few_rows, predictions
from mixent.base.kernels import RBF, Kernel, Linear, Nystrom, Polynomial, Precomputed
from mixent.base.recipes import Recipe, Setting, Shape
from mixent.base.registry import register, sizes_of, sizes_of_columns
from mixent.base.saved_state import (
    Part,
    Several,
    Sizes,
    Values,
    check_categories,
    free,
    index,
    maybe,
    positive,
    real,
    shares,
    size,
)
from mixent.core.driver import Run
from mixent.data import Schema
from mixent.hmm.model import SequenceModel
from mixent.hmm.registration import few_sequences
from mixent.hmm.sequences import step_schema
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
from mixent.med.margins import Exponential, Fixed, Gaussian, Laplace, MarginPrior
from mixent.med.novelty import MEDNoveltyDetector
from mixent.med.novelty_models import SPARE, Emission, NoveltyChain, NoveltyMixture, NoveltyModel, NoveltyTrees, Scale
from mixent.med.options import GaussianPrior, LabelUpdates, Margin, Tables, Trees
from mixent.med.spanning_trees import n_edges
from mixent.med.tied_wishart import TiedWishart
from mixent.med.tree_classifier import MEDTreeClassifier
from mixent.med.tree_columns import CodedColumn, PowersColumn, SoftColumn, TreeColumns
from mixent.med.tree_tables import EdgeTables
from mixent.med.trees import TreeModel
from mixent.med.wishart import Frame, Wishart
from mixent.mixtures.model import MixtureModel

# `compare` leaves a method out beyond these sizes
MOST_CONSTRAINTS = 2_000  # rows times other classes, with a kernel
MOST_GAUSSIAN_COLUMNS, MOST_GAUSSIAN_ROWS, MOST_GAUSSIAN_CLASSES = 60, 5_000, 10  # encoded columns, rows, classes
MOST_TREE_COLUMNS = 100
LARGEST = 1e150  # coefficient of a feature: its square is finite
STATE = {
    "schema_": Schema,
    "classes_": np.ndarray,
    "background_": Background | None,
    "calibration_": Calibration,
    "margin_": MarginPrior,
    "run_": Run,
    "n_rows_": size("n"),
    "class_prior_": shares("C"),
    "label_posterior_": free("n C"),
    "multipliers_": free("n | n constraints"),
    "support_": index("support", below="n"),
}


# --- files: C classes, n training rows, c continuous and m categorical columns, W encoded columns --------------------


def all_categories(encoder: Encoder, known: Sizes) -> Sizes:
    """Every category of the table is encoded."""
    check_categories(encoder.sizes, known)
    return {}


def encoded_sizes(model: Any) -> dict[str, Any]:
    """W encoded columns and G = C - 1 coefficients of the bias; the kernel in use has numbers as parameters."""
    sizes, fitted = sizes_of(model), vars(model)
    if isinstance(fitted.get("kernel_"), Kernel):
        fitted["kernel_"].check(())
    if isinstance(encoder := fitted.get("encoder_"), Encoder):
        sizes["W"] = len(encoder.center) + len(encoder.with_missing) + sum(encoder.sizes)
    return {**sizes, "G": sizes["C"] - 1}


def coded_column(column: CodedColumn, known: Sizes) -> Sizes:
    """Every category has a cell, and with novelty detection new ones have another."""
    if not 0 <= column.position < known["m"] or column.size - known["categories"][column.position] not in (0, SPARE):
        raise ValueError(f"a column of {column.size} values is not a column of the table")
    return {}


def cells_of_columns(columns: TreeColumns, known: Sizes) -> Sizes:
    """R cells of all columns, and E pairs of columns."""
    if not all(isinstance(column, CodedColumn | PowersColumn | SoftColumn) for column in columns.columns):
        raise ValueError("a column is neither coded nor quantized nor a number")
    if columns.fill is not None and [len(fill) for fill in columns.fill] != list(columns.layout.sizes):
        raise ValueError("fill does not have the cells of the columns")
    return {}


def of_columns(model: TreeModel | NetModel | NoveltyTrees, known: Sizes) -> Sizes:
    """R cells of all columns, and E pairs of columns."""
    layout = model.columns.layout
    return {"R": layout.n_cells, "E": n_edges(layout.n)}


def model_sizes(model: Any) -> dict[str, Any]:
    """Sizes of trees and networks, and their distributions, one for each output or one for all."""
    sizes = encoded_sizes(model)
    sizes |= of_columns(model.model_, sizes)
    outputs = model.model_.nets if isinstance(model.model_, NetModel) else model.model_.class_of
    parts = model.distribution_.parts
    if len(parts) not in (1, len(outputs)):
        raise ValueError(f"{len(parts)} distributions are stored for {len(outputs)} outputs")
    if isinstance(model.model_, NetModel):
        sizes["tables"] = [net.n_cells for net in model.model_.nets]
        if [len(part.T) for part in parts] != sizes["tables"]:
            raise ValueError("the tables of a network do not have the cells of its columns")
    return sizes


def network(net: Net, known: Sizes) -> Sizes:
    """The parents are columns before in an order without a cycle, and the tables are those of the columns."""
    n = len(net.sizes)
    if len(net.parents) != n or not all(0 <= u < n for parents in net.parents for u in parents):
        raise ValueError("a parent is not a column")
    return {}


def networks(model: NetModel, known: Sizes) -> Sizes:
    """A network for each class, of the columns."""
    sizes = model.columns.layout.sizes
    if len(model.nets) != known["C"] or any(tuple(net.sizes) != sizes for net in model.nets):
        raise ValueError("a network does not have the columns of the table")
    return of_columns(model, known)


def all_classes(model: TreeModel, known: Sizes) -> Sizes:
    """Every class has an output."""
    if np.unique(model.class_of).tolist() != list(range(known["C"])):
        raise ValueError("class_of does not name every class")
    if model.tables is not None and len(model.tables) != len(model.class_of):
        raise ValueError("tables are missing")
    return of_columns(model, known)


def emitted_cells(part: Emission | Scale, known: Sizes) -> Sizes:
    """Every category has a cell, and new ones have another."""
    if tuple(part.sizes) != tuple(n + SPARE for n in known["categories"]):
        raise ValueError(f"sizes are {part.sizes}, and the columns have {known['categories']} categories")
    return {"cells": sum(part.sizes)}


def novelty_sizes(model: MEDNoveltyDetector) -> dict[str, Any]:
    """The sizes of rows, or of the steps of rows that are sequences."""
    by_step = isinstance(model.model_, NoveltyChain)
    sizes = sizes_of_columns(step_schema(model.schema_) if by_step else model.schema_)
    sizes["n"] = len(model.multipliers_)
    more = of_columns(model.model_, sizes) if isinstance(model.model_, NoveltyTrees) else {}
    return {**sizes, **more}


def of_components(model: NoveltyMixture | NoveltyChain, known: Sizes) -> Sizes:
    """The prior has counts, and a part for each component or state."""
    K = model.n_components if isinstance(model, NoveltyMixture) else model.n_states
    counts = (K,) if isinstance(model, NoveltyMixture) else (K, K * K)
    if [len(part.T) for part in model.prior.parts[: len(counts)]] != [*counts]:
        raise ValueError("the counts of the prior are not those of the components")
    if len(model.prior.parts) != len(counts) + K:
        raise ValueError("the prior does not have a part for each component")
    return {}


def all_pairs(tables: TreeTables, known: Sizes) -> Sizes:
    """The tables are those of the columns."""
    if tables.layout.n_cells != known.get("R", tables.layout.n_cells):
        raise ValueError("the tables do not have the cells of the columns")
    return {}


def kernel_predictions(kernel: FisherKernel) -> Iterator[tuple[str, Any]]:
    """The features of a few rows of the model."""
    is_chain = isinstance(kernel.model_, SequenceModel)
    rows, more = few_sequences(kernel.model_) if is_chain else (few_rows(kernel.model_.schema_), {})
    return predictions(kernel, rows, **more)


def kernel_sizes(kernel: FisherKernel) -> dict[str, Any]:
    """No columns: they are those of the model."""
    return {}


ENCODED: dict[type, Any] = {
    Encoder: Part({"center": "c", "scale": positive("c"), "with_missing": index("x", below="c")}, all_categories),
    Linear: {},
    Nystrom: {"landmarks": "l W", "root": "l r"},
    Polynomial: {},
    RBF: {},
}


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


def gaussian_sizes(model: MEDGaussianClassifier) -> dict[str, Any]:
    """A distribution for each class, or one for all; those of the prior have the same form."""
    sizes = encoded_sizes(model)
    forms = {tuple(map(type, parts)) for parts in (model.distribution_.parts, model.prior_gaussians_)}
    if not (len(forms) == 1 and forms <= {(Wishart,) * sizes["C"], (TiedWishart,)}):
        raise ValueError(f"the distributions are not those of the Gaussians of {sizes['C']} classes")
    return sizes


@dataclass(frozen=True)
class NormalWishart:
    """The form of `Wishart` in files of version 0.3."""

    def __new__(cls, rows: float, mean: np.ndarray, root: np.ndarray) -> Any:
        return Wishart.standard(rows, mean, root)


@dataclass(frozen=True)
class ClassNormalWisharts:
    """The form of `JointDistribution` in files of version 0.3."""

    def __new__(cls, classes: tuple, bias: np.ndarray) -> Any:
        return JointDistribution(classes, bias)


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
        "_support_vectors": maybe("support W"),
        "encoder_": Encoder | None,
        "kernel_": Kernel | None,
        "feature_map_": Nystrom | FisherKernel | None,
    },
    parts={
        **ENCODED,
        Calibration: {"offset": "C", "lapse": Values("", low=0.0, below=1.0), "prior_shift": "C"},
        DiscriminantFunction: {
            "weights": "r C",
            "bias": "C",
            "rows": index("r", below="n"),
            "vectors": "r W",
        },
        Exponential: {},
        Fixed: {},
        Gaussian: {},
        JointDistribution: {"bias": "G"},
        Laplace: {},
        Margin: {},
        LabelUpdates: {},
        Precomputed: {},
    },
    sizes=encoded_sizes,
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
    state={
        **STATE,
        "distribution_": JointDistribution,
        "encoder_": Encoder,
        "components_": KernelComponents | None,
        "training_prior_": shares("C"),
        "n_encoded_features_": size("g"),
        "prior_gaussians_": Several(Wishart | TiedWishart),
    },
    parts={
        ClassNormalWisharts: {},
        Frame: {"center": "g", "root": "g g"},
        GaussianPrior: {},
        KernelComponents: {"center": "r", "axes": "r g"},
        NormalWishart: {},
        TiedWishart: {"total": positive(""), "square": "g g"},
    },
    sizes=gaussian_sizes,
    to_file=storable_kernel,
    recipes=(
        Recipe(
            "Gaussian MED",
            "Gaussian density for each class, trained for margins",
            lambda setting: MEDGaussianClassifier(**setting.common),
            1.0,
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
    parts={
        CellLayout: {"sizes": index("columns", low=1)},
        CodedColumn: Part({}, coded_column),
        Dirichlets: {"T": positive("M"), "group": index("M", below="M")},
        EdgeTables: {"log_marginals": "R", "log_ratios": "R R", "gains": "E", "rows": "E"},
        SingleTree: {"T": "E"},
        PowersColumn: {
            "position": index("", below="c"),
            "scale": positive(""),
            "size": Values("", kinds="i", low=3, below=4),
        },
        Product: {},
        SoftColumn: {"position": index("", below="c")},
        TreeColumns: Part({"fill": real(None, 0.0, each=True)}, cells_of_columns),
        TreeModel: Part({"class_of": index("S", below="C"), "log_shares": "S"}, all_classes),
        TreeDistribution: {"T": "E"},
        TreeTables: Part({"structure": "E"}, all_pairs),
        Tables: {},
        Trees: {},
    },
    sizes=model_sizes,
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
    state={**STATE, "distribution_": JointDistribution, "model_": NetModel, "training_prior_": shares("C")},
    parts={Net: Part({"sizes": index("columns", low=1)}, network), NetModel: Part({}, networks)},
    sizes=model_sizes,
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
        "offset_": real(""),
        "level_": real(""),
        "margin_": MarginPrior | None,
        "run_": Run,
        "multipliers_": free("n"),
        "scores_": free("n"),
        "bayes_scores_": free("n"),
        "held_out_scores_": Values("n", finite=False, optional=True),
        "support_": index("support", below="n"),
    },
    parts={
        Emission: Part({"d": size("c")}, emitted_cells),
        NoveltyChain: Part({}, of_components),
        NoveltyMixture: Part({}, of_components),
        NoveltyTrees: Part({}, of_columns),
        Scale: Part({"center": "c", "scale": positive("c"), "shares": real("cells", 0.0)}, emitted_cells),
        Wishart: {"d": size("g", low=1)},
    },
    sizes=novelty_sizes,
)(MEDNoveltyDetector)
register(
    "fisher-kernel",
    task="features",
    title="Fisher kernel",
    describe=describe_kernel,
    columns=lambda kernel: kernel.model_.schema_,
    state={
        "model_": MixtureModel | SequenceModel,
        "information_": "q q",
        "root_": Values("q r", low=-LARGEST, below=LARGEST),
        "rank_": size("r"),
    },
    sizes=kernel_sizes,
    predictions=kernel_predictions,
    holds=("model", "model_"),
)(FisherKernel)
