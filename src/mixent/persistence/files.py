"""Save and load fitted models by what the registry knows of them."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

import mixent
from mixent.base.background import Background
from mixent.base.few_rows import are_proper, few_predictions
from mixent.base.options import Options
from mixent.base.registry import Entry, check_columns, entries, entry_of, find, name_in_files, sizes_of_columns
from mixent.base.saved_state import (
    Part,
    Several,
    Sizes,
    Values,
    check_held,
    check_type,
    check_values,
    free,
    index,
)
from mixent.base.text import with_library
from mixent.core import serialize
from mixent.core.driver import Run, Status, Step
from mixent.core.serialize import SavedFileError
from mixent.core.starts import Starts
from mixent.data import Column, Input, Schema
from mixent.data.formats import KINDS
from mixent.persistence import foreign as other_libraries

ABSENT = object()
MAX_DEPTH = 10  # of models inside of models
MAX_SHARING = 16  # answers per model that is stored


def _read_again(schema: Schema, known: Sizes) -> Sizes:
    """The schema is one that JSON keeps: known kinds of columns, and plain categories."""
    Schema.from_json(schema.to_json())
    return {}


def _kept_rows(background: Background, known: Sizes) -> Sizes:
    """The rows have the columns of their schema, and its categories."""
    sizes, codes = sizes_of_columns(background.schema), background.codes
    if codes is not None and codes.ndim == 2 and len(codes) and not (codes.max(axis=0) < sizes["categories"]).all():
        raise ValueError("codes holds a category that is not in the schema")
    return {**sizes, "b": len(background.X)}


COMMON: dict[type, Any] = {  # parts of any model
    Background: Part({"X": free("b c"), "codes": index("b m", low=-1)}, _kept_rows),
    Column: {},
    Input: {},
    **dict.fromkeys(KINDS.values(), Part({})),
    Run: Part({"objective": free(""), "n_passes": index("")}, apart=True),
    Schema: Part({}, _read_again),
    Starts: {"best": index("")},
    Status: {},
    Step: dict.fromkeys(("objective", "gain", "step", "seconds"), free("")),
}


def known_classes() -> dict[str, type]:
    """Every class that a file may name: folder and class name -> class."""
    registered = (cls for entry in entries() for cls in (entry.cls, *entry.parts))
    return {name_in_files(cls): cls for cls in (*COMMON, *registered)}


def save(model: Any, path: str | os.PathLike[str], *, foreign: str | None = None) -> None:
    """Write a fitted mixent model to one file.

    Parameters
    ----------
    model : fitted mixent estimator
    path : file name, usually ending in .mixent
    foreign : "skops" or None
        What to do with estimators of other libraries in an ensemble: None refuses them by name, "skops" writes them
        with that package (`pip install "mixent[skops]"`), which is needed to load them too.
    """
    save_with(model, path, {}, foreign=foreign)


def save_with(
    model: Any, path: str | os.PathLike[str], about: Mapping[str, Any], *, foreign: str | None = None
) -> None:
    """The same as `save`, with further entries of the header, which `mixent.core.serialize.read_header` returns."""
    if not _is_model(model):
        names = ", ".join(entry.cls.__name__ for entry in entries() if entry.listed)
        raise TypeError(f"save takes a mixent estimator ({names}); got {type(model).__name__}")
    if foreign not in (None, "skops"):
        raise ValueError(f"foreign must be 'skops' or None; got {foreign!r}")
    check_is_fitted(model)
    storable = _Storable(refuse=foreign is None)(model, "the model")
    about = {"class": type(model).__name__, "mixent_version": mixent.__version__, **about}
    pack = None if foreign is None else other_libraries.pack
    serialize.save(path, storable, known_classes(), about, shared=_shared_classes(), pack=pack)


def load(path: str | os.PathLike[str], *, max_bytes: int = serialize.MAX_BYTES, trusted: Sequence[str] = ()) -> Any:
    """Read a model that `save` wrote. Safe on files you do not trust: nothing in a file is ever run.

    All numbers are checked, as are predictions for a few rows; a damaged or crafted file raises `SavedFileError`. Parts
    that were written through skops are built by skops, and only of types it trusts by itself or that you name.

    Parameters
    ----------
    path : file name
    max_bytes : int
        Refuse files that would take more memory. Increase it for a large model that you trust.
    trusted : list of str
        For a file with estimators of other libraries: names of types, such as "package.module.Class", that may be built
        besides those of scikit-learn and numpy that skops knows to be harmless.

    Returns
    -------
    The fitted estimator.
    """
    if isinstance(trusted, str) or not all(isinstance(name, str) for name in trusted):
        raise TypeError(f"trusted must be a list of names of types; got {trusted!r}")
    unpack = other_libraries.unpacker(tuple(trusted))
    model = serialize.load(path, known_classes(), max_bytes=max_bytes, unpack=unpack)
    if not _is_model(model):
        raise SavedFileError(f"{path} holds a {type(model).__name__}, not a model")
    try:
        seen: dict[int, int] = {}
        if _check(model, seen) > MAX_SHARING * len(seen):
            raise ValueError("models that hold one model several times would take exponential time")
        _check_predictions(model, entry_of(model))
    except Exception as error:  # a manipulated file may raise anything; callers get one type of exception
        raise SavedFileError(f"{path}: the contents are damaged ({error})") from None
    return model


def _is_model(value: Any) -> bool:
    """Whether it is a registered estimator that stands alone; a subclass of one is not known to files."""
    entry = find(type(value))
    return entry is not None and entry.cls is type(value) and entry.listed


def _entry(value: Any) -> Entry | None:
    entry = find(type(value))
    return entry if entry is not None and entry.cls is type(value) else None


def _shared_classes() -> tuple[type, ...]:
    """Classes of which one object held in two places is one object again when a file is read."""
    holders = [part for entry in entries() for part in entry.parts if hasattr(part, "with_models")]
    return (*(entry.cls for entry in entries()), *holders)


class _Storable:
    """Copies without what belongs to this process alone: functions that show progress, files of
    checkpoints, and scikit-learn's wrapping.

    What is held in two places is copied once. What a file cannot hold is refused here, by its name.
    """

    def __init__(self, refuse: bool) -> None:
        self.refuse = refuse  # estimators of other libraries
        self.done: dict[int, tuple[Any, Any]] = {}  # id -> object, kept alive; its copy

    def __call__(self, value: Any, name: str) -> Any:
        if id(value) in self.done:
            return self.done[id(value)][1]
        if isinstance(value, FrozenEstimator):
            return self(value.estimator, name)
        if isinstance(value, (list, tuple)):
            if len(value) == 2 and isinstance(value[0], str):  # a classifier and its name
                name = repr(value[0])
            return type(value)(self(item, name) for item in value)
        entry = _entry(value)
        if entry is not None:
            result = self._model(value, entry, name)
        elif hasattr(type(value), "with_models"):
            result = value.with_models(lambda model, its_name: self(model, its_name or name))
        else:
            if self.refuse and hasattr(value, "fit"):
                _refuse_foreign(value, name)
            return value
        self.done[id(value)] = value, result
        return result

    def _model(self, model: Any, entry: Entry, name: str) -> Any:
        model = entry.to_file(copy.copy(model))
        state = vars(model)
        if callable(state.get("progress")):
            model.progress = False
        if "checkpoint" in state:
            model.checkpoint = None
        inner = f"the base of {name}" if "estimator" in entry.holds else name
        for attribute in entry.holds:
            if attribute in state:
                setattr(model, attribute, self(state[attribute], inner))
        return model


def _refuse_foreign(value: Any, name: str) -> None:
    columns = "" if name.startswith("the base of") else ", give its answers as columns of the table (OutputColumns)"
    raise TypeError(
        f"{name} is a {with_library(value)}, and a mixent file holds mixent's own models; take mixent "
        f"bases{columns}, or save(model, path, foreign='skops')"
    )


def _check(model: Any, seen: dict[int, int], depth: int = 0) -> int:
    """Check a whole model and the whole models inside it, each once; return how many models answer a row.

    A model that is held in several places answers several times, and what it holds, too.
    """
    entry = _entry(model)
    if entry is None:
        return 1
    if depth > MAX_DEPTH:
        raise ValueError(f"models are nested more than {MAX_DEPTH} deep")
    if id(model) in seen:
        return seen[id(model)]
    state = vars(model)
    for name, kind in entry.state.items():
        if isinstance(kind, str | Values | Several):
            if state.get(name) is None and not (isinstance(kind, Values) and kind.optional):
                raise ValueError(f"{name} is missing")
        else:
            check_type(name, state.get(name, ABSENT), kind)
    _complete(model)
    for name, value in state.items():
        for options in _options_in(value):
            parameters = set(inspect.signature(type(options)).parameters)
            if not set(vars(options)) <= parameters or (name.endswith("_") and set(vars(options)) < parameters):
                raise ValueError(f"{name} holds a {type(options).__name__} with other parameters than its own")
            _complete(options)
    held = list(_flat(state.get(name) for name in entry.holds if name.endswith("_")))  # an option need not be fitted
    inner = list(_flat(entry.from_file(model))) or held
    for part in (*held, *inner):  # first: sizes of this one may be those of what it holds
        _check(part, seen, depth + 1)
    entry.parameters(model)
    check_columns(model)
    sizes = check_values(entry.state, state, entry.sizes(model))
    parts = _declared_parts()
    for name, value in state.items():
        if not isinstance(entry.state.get(name), str | Values):
            check_held(value, parts, sizes, lambda part: _entry(part) is not None)
    seen[id(model)] = 1 + sum(seen.get(id(part), 1) for part in inner)
    return seen[id(model)]


def _declared_parts() -> dict[type, Part]:
    declared = dict(COMMON)
    for entry in entries():
        if isinstance(entry.parts, Mapping):
            declared |= entry.parts
    return {cls: part if isinstance(part, Part) else Part(part) for cls, part in declared.items()}


def _check_predictions(model: Any, entry: Entry) -> None:
    """Try a few rows: what arrays of the right shapes hold may still not be a model."""
    with np.errstate(all="ignore"):
        for name, values in entry.predictions(model) if entry.predictions is not None else few_predictions(model):
            if not are_proper(name, values):
                raise ValueError(f"{name} returns values that are not finite or not probabilities")


def _complete(holder: Any) -> None:
    """Fill parameters that the file does not have, because they are newer, with their defaults."""
    for name, parameter in inspect.signature(type(holder)).parameters.items():
        if name not in vars(holder):
            if parameter.default is inspect.Parameter.empty:
                raise ValueError(f"{name} of {type(holder).__name__} is missing")
            setattr(holder, name, parameter.default)


def _options_in(value: Any) -> Iterator[Options]:
    """Option objects in an attribute, in parts of it too."""
    if isinstance(value, Options):
        yield value
        value = list(vars(value).values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _options_in(item)
    elif isinstance(value, dict):
        yield from _options_in(list(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _options_in([getattr(value, part.name) for part in fields(value)])


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
