"""Models of scikit-learn from a file, before they are used: their compiled code takes the numbers in them on trust.

A node of a tree names other nodes and a column by their places, a neighbor its class, a support vector its weights;
the code that follows them asks nothing. Here every such place is seen to lie inside the array it points into.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.neighbors._base import NeighborsBase
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.svm._base import BaseSVC
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import TREE_LEAF, Tree
from sklearn.utils import check_array

from mixent.core.serialize import SavedFileError

TREE = f"{Tree.__module__}.{Tree.__name__}"
WORDS = 8  # of 32 bits: a set of categories, of which there are 256 at most


def check_parts(model: Any, trusted: tuple[str, ...] = ()) -> None:
    """Refuse a model if compiled code would read, for one of its parts, what is not that part's own."""
    for part, owner in _parts(model, None, set()):
        _check_data(part)
        if isinstance(part, BaseGradientBoosting) and TREE not in trusted:
            raise SavedFileError(
                f"holds a {type(part).__name__}, whose trees are used unseen by compiled code; take "
                f"Hist{type(part).__name__}, or, if you trust the file, load(path, trusted=[{TREE!r}])"
            )
        for kind, check in CHECKS.items():
            if isinstance(part, kind):
                check(part, owner)


def _parts(value: Any, owner: Any, seen: set[tuple[int, int]]) -> Iterator[tuple[Any, Any]]:
    """Every object in a model and whose it is: one that has two owners is seen with both."""
    if isinstance(value, str | bytes | int | float | type(None)) or (id(value), id(owner)) in seen:
        return
    seen.add((id(value), id(owner)))
    if isinstance(value, np.ndarray):
        inner: Any = value.ravel().tolist() if value.dtype == object else ()
    elif isinstance(value, dict | list | tuple | set | frozenset):
        inner = value.values() if isinstance(value, dict) else value
    else:
        yield value, owner
        inner, owner = getattr(value, "__dict__", {}).values(), value
    for part in inner:
        yield from _parts(part, owner, seen)


def _need(holds: Any, part: Any, what: str) -> None:
    if not holds:
        name = "tree" if isinstance(part, Tree | TreePredictor) else type(part).__name__
        raise SavedFileError(f"holds a {name} that is damaged: {what}")


def _check_data(part: Any) -> None:
    """What a file sets are data: no method of scikit-learn is replaced."""
    if type(part).__module__.startswith("sklearn.") and not isinstance(part, type):
        for name in getattr(part, "__dict__", {}):
            _need(not callable(getattr(type(part), name, None)), part, f"it sets {name!r}, which is not data")


def _width(model: Any, part: Any) -> int:
    """The number of columns that scikit-learn itself wants of rows given to the model: without it, it wants none."""
    width = getattr(model, "n_features_in_", None)
    _need(isinstance(width, Integral), part, "its number of columns is missing")
    return int(width)  # type: ignore[arg-type]


# --- trees ------------------------------------------------------------------------------------------------------------


def _check_tree(tree: Any, owner: Any) -> None:
    _need(isinstance(owner, BaseDecisionTree), tree, "it is not part of a model of trees")
    _need(0 < tree.node_count <= tree.capacity, tree, "nodes are missing")  # first: more would be read below
    _need(tree.n_features == _width(owner, tree), tree, "it has other columns than its model")
    n_classes = np.max(getattr(owner, "n_classes_", 1))
    _need(tree.max_n_classes == n_classes, tree, "it has other classes than its model")
    nodes = tree.__getstate__()["nodes"]
    below = np.stack([nodes["left_child"], nodes["right_child"]], axis=1)
    _check_nodes(tree, (below == TREE_LEAF).all(axis=1), below, nodes["feature"], tree.n_features)


def _check_nodes(tree: Any, leaf: Any, below: Any, column: Any, width: int) -> None:
    """Inner nodes have two others, (m, 2), further down, so that there is no circle, and a column."""
    inside = ((below > np.arange(len(leaf))[:, None]) & (below < len(leaf))).all(axis=1)
    _need(len(leaf) and (leaf | inside).all(), tree, "a branch leads out of it")
    _need((leaf | ((column >= 0) & (column < width))).all(), tree, "it asks for a column that is not there")


def _check_boosted(tree: Any, owner: Any) -> None:
    _need(isinstance(owner, BaseHistGradientBoosting), tree, "it is not part of a model of trees")
    nodes, width, sets = tree.nodes, _boosted_width(owner), tree.raw_left_cat_bitsets
    leaf = nodes["is_leaf"] != 0
    below = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)  # from unsigned
    _check_nodes(tree, leaf, below, nodes["feature_idx"], width)
    kinds = np.asarray(owner._bin_mapper.is_categorical_)
    _need(kinds.shape == (width,), tree, "it has other columns than its model")
    asked = nodes[~leaf & (nodes["is_categorical"] != 0)]
    _need(kinds[asked["feature_idx"]].all(), tree, "it asks for a category where there are numbers")
    _need(sets.shape[1:] == (WORDS,) and (asked["bitset_idx"] < len(sets)).all(), tree, "categories are missing")


def _boosted_width(model: Any) -> int:
    """The columns of rows that the trees see: behind the step that codes categories, where there is one."""
    steps = model._preprocessor
    if steps is None:
        return _width(model, model)
    _need(type(steps) is ColumnTransformer, model, "its columns are made in an unknown way")
    _check_data(steps)
    width = 0
    for name, step, mask in steps.transformers_:
        if not isinstance(step, str):
            places = np.flatnonzero(mask)
            _need(
                _keeps_columns(step) and np.asarray(mask).dtype == bool, model, "its columns are made in an unknown way"
            )
            _need(list(steps._transformer_to_input_indices[name]) == list(places), model, "columns are missing")
            width += len(places)
    return width


def _keeps_columns(step: Any) -> bool:
    """As many columns come out as go in."""
    if type(step) is FunctionTransformer:
        return step.func is None or (type(step.func) is partial and step.func.func is check_array)
    return type(step) is OrdinalEncoder


# --- others -----------------------------------------------------------------------------------------------------------


def _check_neighbors(model: Any, owner: Any) -> None:
    """Rows (n, d) of d columns, and for each a class that is there."""
    if not hasattr(model, "_fit_X"):
        return
    rows = model._fit_X
    _need(rows.ndim == 2 and rows.shape[1] == _width(model, model), model, "its rows have other columns")
    for options in (model.metric_params, model.effective_metric_params_):  # lengths given so are not looked at again
        _need(not any(str(name).endswith("_norm_squared") for name in options or ()), model, "its rows have lengths")
    if hasattr(model, "classes_"):
        y = np.asarray(model._y)
        several = y.ndim == 2 and model.outputs_2d_
        _need(len(y) == rows.shape[0] and (y.ndim == 1 or several), model, "rows and their classes do not agree")
        for codes, classes in zip(y.T, model.classes_, strict=True) if several else [(y, model.classes_)]:
            _need(((codes >= 0) & (codes < len(classes))).all(), model, "a row has a class that is not there")


def _check_vectors(model: Any, owner: Any) -> None:
    """For C classes and n support vectors: weights (C - 1, n), and a threshold for each of the C (C - 1) / 2 pairs."""
    if not hasattr(model, "_n_support"):
        return
    n, n_classes = len(model.support_), len(model.classes_)
    pairs = n_classes * (n_classes - 1) // 2
    counts = np.asarray(model._n_support)
    _need(model._impl == type(model)._impl, model, "it is of another kind")
    _need(n_classes > 1 and counts.shape == (n_classes,), model, "support vectors and classes do not agree")
    _need((counts >= 0).all() and counts.sum(dtype=np.int64) == n, model, "support vectors are missing")
    _need(model._dual_coef_.shape == (n_classes - 1, n), model, "weights of support vectors are missing")
    _need(model._intercept_.shape == (pairs,), model, "thresholds are missing")
    _need({len(model._probA), len(model._probB)} in ({0}, {pairs}), model, "its probabilities are not all there")
    if model._sparse:
        _need(model._dual_coef_.nnz == (n_classes - 1) * n, model, "weights of support vectors are missing")
    if model.kernel == "precomputed":  # the places of the vectors are columns of the rows
        inside = (model.support_ >= 0) & (model.support_ < _width(model, model))
        _need(inside.all() and not model._sparse, model, "a support vector is not there")
        _need(model.shape_fit_[0] == _width(model, model), model, "its rows have other columns")
    else:
        _need(model.support_vectors_.shape == (n, _width(model, model)), model, "support vectors are missing")


def _check_sparse(matrix: Any, owner: Any) -> None:
    """Its places as scipy checks them, if asked."""
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        _need(False, matrix, str(error))


CHECKS: dict[Any, Any] = {
    Tree: _check_tree,
    TreePredictor: _check_boosted,
    NeighborsBase: _check_neighbors,
    BaseSVC: _check_vectors,
    **dict.fromkeys((scipy.sparse.csr_matrix, scipy.sparse.csr_array), _check_sparse),
    **dict.fromkeys((scipy.sparse.csc_matrix, scipy.sparse.csc_array), _check_sparse),
}
