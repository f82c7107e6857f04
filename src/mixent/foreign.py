"""Estimators of other libraries inside a model file: as bytes of skops, which builds only types that are trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mixent.core.saved import SavedFileError

INSTALL = 'pip install "mixent[skops]"'
OWN = ("mixent.comparison.naive_bayes.MixedNaiveBayes",)
HARMLESS = (  # parts of scikit-learn's models that skops leaves to its users: numbers that are used as such
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
)
TREES = (  # whose numbers are places in other arrays: `check_trees` sees that they are
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)
PACKAGES = {"sklearn": "scikit-learn"}  # module: what people call it


def whose(value: Any) -> str:
    """A type and its library, such as `GaussianNB of scikit-learn`."""
    package = type(value).__module__.partition(".")[0]
    return f"{type(value).__name__} of {PACKAGES.get(package, package)}"


def pack(value: Any) -> bytes | None:
    """An estimator as bytes, read back once to see that it can be; None: it is no estimator."""
    if not hasattr(value, "fit") or isinstance(value, type):
        return None
    io = _skops(f"to save a {whose(value)}")
    try:
        data = io.dumps(_without_checks(value))
        io.loads(data, trusted=io.get_untrusted_types(data=data))
    except Exception as error:  # whatever it stumbles over, the model cannot be saved so
        raise TypeError(
            f"skops cannot save a {whose(value)} and read it again ({error}); a mixent model inside it should be a "
            "base itself, and functions of your own cannot be saved"
        ) from error
    return data


def _without_checks(value: Any) -> Any:
    """Boosting told of categories keeps a function that checks rows, which no file should hold; ours are checked."""
    if getattr(value, "_preprocessor", None) is None:
        return value
    value = copy.deepcopy(value)
    steps = value._preprocessor
    for _, step, _ in (*steps.transformers, *steps.transformers_):
        if hasattr(step, "func"):
            step.func = None  # the rows as they are
    return value


def unpacker(trusted: Sequence[str]) -> Callable[[list[bytes]], list[Any]]:
    """What reads all such parts of a file, if all types in them are scikit-learn's, numpy's, or among these."""

    def unpack(parts: list[bytes]) -> list[Any]:
        try:
            io = _skops("to read it")
        except ImportError as error:
            raise SavedFileError(f"holds a model of another library: {error}") from None
        asked = [io.get_untrusted_types(data=data) for data in parts]
        known = (*OWN, *HARMLESS, *TREES)
        needed = [name for name in dict.fromkeys(name for names in asked for name in names) if name not in known]
        strange = [name for name in needed if name not in trusted]
        if strange:
            raise SavedFileError(
                f"holds a model of another library that needs {', '.join(strange)}, which skops does not know to be "
                f"harmless; if you trust the file, load(path, trusted={needed!r})"
            )
        found = [io.loads(data, trusted=names) for data, names in zip(parts, asked)]
        for one in found:
            check_trees(one)
        return found

    return unpack


def check_trees(model: Any) -> None:
    """Refuse trees whose branches or columns lie outside them: their compiled code would read what is not theirs."""
    for tree in _trees(model, set()):
        nodes = tree.nodes if hasattr(tree, "nodes") else tree.__getstate__()["nodes"]
        below, column, n_columns = _branches(tree, nodes)
        places = np.arange(len(nodes))[:, None]
        inside = (below > places) & (below < len(nodes))  # below its parent: no circle
        if not len(nodes) or not (inside.all(axis=1) | (below < 0).all(axis=1) | _leaf(tree, nodes)).all():
            raise SavedFileError("holds a tree that is damaged: a branch leads out of it")
        if n_columns is not None and (column >= n_columns).any():
            raise SavedFileError("holds a tree that is damaged: it asks for a column that is not there")


def _trees(value: Any, seen: set[int]) -> Iterator[Any]:
    """Trees anywhere in a model of scikit-learn."""
    if id(value) in seen or isinstance(value, str | bytes | int | float | type(None)):
        return
    seen.add(id(value))
    if f"{type(value).__module__}.{type(value).__name__}" in TREES:
        yield value
        return
    if isinstance(value, np.ndarray):
        inner: Any = value.ravel().tolist() if value.dtype == object else ()
    elif isinstance(value, dict):
        inner = value.values()
    else:
        inner = value if isinstance(value, list | tuple) else getattr(value, "__dict__", {}).values()
    for one in inner:
        yield from _trees(one, seen)


def _branches(tree: Any, nodes: Any) -> tuple[Any, Any, int | None]:
    """(m, 2) the nodes below each, (m,) the column it asks for, and how many columns there are."""
    if hasattr(tree, "nodes"):  # of boosting: unsigned, and leaves have 0
        return np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64), nodes["feature_idx"], None
    return np.stack([nodes["left_child"], nodes["right_child"]], axis=1), nodes["feature"], tree.n_features


def _leaf(tree: Any, nodes: Any) -> Any:
    return nodes["is_leaf"].astype(bool) if hasattr(tree, "nodes") else np.zeros(len(nodes), dtype=bool)


def _skops(what: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f"the package skops is needed {what}; install it with: {INSTALL}") from error
    return skops.io
