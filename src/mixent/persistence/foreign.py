"""Estimators of other libraries inside a model file: as bytes of skops, which builds only types that are trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from mixent.base.text import with_library
from mixent.core.serialize import SavedFileError

INSTALL = 'pip install "mixent[skops]"'
OWN = ("mixent.comparison.naive_bayes.MixedNaiveBayes",)
HARMLESS = (  # parts of scikit-learn's models that skops leaves to its users: numbers that are used as such
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.model_selection._split.StratifiedKFold",
)
TREES = (  # whose numbers are places in other arrays: `check_parts` sees that they are
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.tree._tree.Tree",
)


def pack(value: Any) -> bytes | None:
    """An estimator as bytes, read back once to see that it can be; None: it is not an estimator."""
    if not hasattr(value, "fit") or isinstance(value, type):
        return None
    io = _skops(f"to save a {with_library(value)}")
    try:
        data = io.dumps(_without_checks(value))
        io.loads(data, trusted=io.get_untrusted_types(data=data))
    except Exception as error:  # whatever it stumbles over, the model cannot be saved so
        raise TypeError(
            f"skops cannot save a {with_library(value)} and read it again ({error}); a mixent model inside it should "
            "be a base itself, and functions of your own cannot be saved"
        ) from error
    return data


def _without_checks(value: Any) -> Any:
    """Boosting with declared categories without its function that checks rows: files hold no functions."""
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
        from mixent.persistence.foreign_checks import check_parts  # only now: it needs much of scikit-learn

        models = [io.loads(data, trusted=names) for data, names in zip(parts, asked)]
        for model in models:
            check_parts(model, tuple(trusted))
        return models

    return unpack


def _skops(what: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(f"the package skops is needed {what}; install it with: {INSTALL}") from error
    return skops.io
