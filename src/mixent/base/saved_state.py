"""What the numbers of a saved model may be: declared by each folder of models, checked when a file is read.

A registration declares the attributes of its classes in the notation of their comments: `Gaussians: {"means": "K d"}`
is an array of K rows and d columns. A size that is already known, from the object itself, from what holds it or from
the columns and classes of the model, must agree; another becomes known for the rest of the object and for all that it
holds. `index("M", below="C")` are whole numbers that serve as positions. What is not declared is checked by the
annotations of the class, and all numbers are finite unless `free` declares that they need not be.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np

Sizes = Mapping[str, Any]  # name -> a number, or what a declaration of the same class uses
_CHUNK = 1 << 20  # numbers that are checked at a time: no copy of a large array is made
ROUNDING = 1e-6  # of shares, which add up to one


@dataclass(frozen=True)
class Values:
    """What one attribute may be: a number, an array, or a tuple or list of numbers; or None where the class allows it.

    Parameters
    ----------
    shape : str or None
        Names of sizes, "K d", or "K d | d" for alternatives; "" is a single number, None any shape.
    kinds : str
        Of numpy: "f" real (whole numbers are, too), "i" whole, "b" true or false.
    low : float
        Smallest value.
    below : float or str
        Limit that no value reaches; a name is a size.
    finite : bool
        Whether NaN and infinities are excluded.
    total : float or None
        What the numbers add up to.
    each : bool
        Whether it is a tuple or list of such values, some of which may be None.
    size : str
        Name of the size that the number itself is.
    optional : bool
        Whether a fitted model may be without it.
    """

    shape: str | None = None
    kinds: str = "f"
    low: float = -np.inf
    below: float | str = np.inf
    finite: bool = True
    total: float | None = None
    each: bool = False
    size: str = ""
    optional: bool = False


def maybe(values: Values | str) -> Values:
    """The same, of an attribute that a fitted model may be without."""
    return replace(Values(values) if isinstance(values, str) else values, optional=True)


def real(shape: str | None = None, low: float = -np.inf, *, each: bool = False) -> Values:
    """Finite numbers."""
    return Values(shape, low=low, each=each)


def positive(shape: str | None = None, *, each: bool = False) -> Values:
    """Numbers greater than zero."""
    return Values(shape, low=np.nextafter(0.0, 1.0), each=each)


def free(shape: str | None = None) -> Values:
    """Numbers that need not be finite."""
    return Values(shape, finite=False)


def log_shares(shape: str | None = None) -> Values:
    """Logarithms of probabilities, which may be minus infinity but not NaN, nor greater than zero beyond rounding."""
    return Values(shape, finite=False, below=ROUNDING)


def shares(shape: str | None = None) -> Values:
    """Probabilities that add up to one."""
    return Values(shape, low=0.0, total=1.0)


def index(shape: str | None, below: float | str = np.inf, low: float = 0.0, *, each: bool = False) -> Values:
    """Whole numbers that are positions, from `low` to `below` (exclusive)."""
    return Values(shape, kinds="i", low=low, below=below, each=each)


def size(name: str, low: float = 0.0) -> Values:
    """A whole number that is the size of arrays."""
    return Values("", kinds="i", low=low, size=name)


def flags(shape: str) -> Values:
    """True or false."""
    return Values(shape, kinds="b")


@dataclass(frozen=True)
class Several:
    """A tuple or list of objects of some class, as many as a size states.

    Parameters
    ----------
    kind : class, or several
    size : name of a size
    """

    kind: Any
    size: str | None = None


# attribute -> Values, or the shape of finite numbers; other entries are ignored
Declared = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """The declaration of a class whose objects are held by models.

    Parameters
    ----------
    values : attribute -> Values, or a str: the shape of finite numbers
    sizes : (object, sizes known before) -> further sizes
        Raises ValueError where the object does not fit them.
    apart : bool
        Whether what it holds has sizes of its own, such as an earlier stage of the model.
    """

    values: Declared
    sizes: Callable[[Any, Sizes], Sizes] | None = None
    apart: bool = False


def check_values(values: Declared, state: Mapping[str, Any], known: Sizes) -> dict[str, Any]:
    """Check attributes; return the sizes that are known afterwards.

    Parameters
    ----------
    values : what is declared
    state : attribute -> value
    known : sizes
    """
    sizes = dict(known)
    for name, declared in values.items():
        declared = Values(declared) if isinstance(declared, str) else declared
        if isinstance(declared, Several):
            _check_several(name, state.get(name), declared, sizes)
        if isinstance(declared, Values) and state.get(name) is not None:
            items = state[name] if declared.each else [state[name]]
            for item in items:
                if item is not None:
                    _check(name, item, declared, sizes)
    return sizes


def _check_several(name: str, value: Any, declared: Several, sizes: dict[str, Any]) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(item, declared.kind) for item in value):
        raise ValueError(f"{name} is not a list of {_name_of(declared.kind)}")
    if declared.size is not None:
        _fit(name, (len(value),), declared.size, sizes)


def check_categories(sizes: tuple[int, ...], known: Sizes) -> None:
    """Raise a ValueError if the numbers of categories are not those of the columns of the table.

    Parameters
    ----------
    sizes : number of categories of each column
    known : sizes
    """
    if tuple(sizes) != known.get("categories", tuple(sizes)):
        raise ValueError(f"sizes are {sizes}, and the columns have {known['categories']} categories")


def check_held(value: Any, parts: Mapping[type, Part], known: Sizes, is_model: Callable[[Any], bool]) -> None:
    """Check an attribute and all that it holds, other models excepted.

    Parameters
    ----------
    value : attribute of a model
    parts : what is declared of each class
    known : sizes
    is_model : whether an object is a model, which is checked by itself
    """
    if isinstance(value, list | tuple):
        for item in value:
            check_held(item, parts, known, is_model)
    elif isinstance(value, dict):
        check_held(list(value.values()), parts, known, is_model)
    elif is_dataclass(value) and not isinstance(value, type) and not is_model(value):
        part = parts.get(type(value), Part({}))
        state = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        _check_types(value, state)
        known = {} if part.apart else known
        if part.sizes is not None:
            known = {**known, **part.sizes(value, known)}
        known = check_values(part.values, state, known)
        for name, item in state.items():
            if not isinstance(part.values.get(name), str | Values):
                check_held(item, parts, known, is_model)
                _check_finite(name, item)


def _check_finite(name: str, value: Any) -> None:
    """What nothing is declared of has no NaN and no infinity."""
    if isinstance(value, np.ndarray | float | np.floating) and np.asarray(value).dtype.kind == "f":
        _check(name, value, Values(), {})


# --- numbers ----------------------------------------------------------------------------------------------------------


def _check(name: str, value: Any, declared: Values, sizes: dict[str, Any]) -> None:
    array = _as_array(value)
    if array is None or array.dtype.kind not in {"f": "fiu", "i": "iu", "b": "b"}[declared.kinds]:
        raise ValueError(f"{name} does not hold {_KINDS[declared.kinds]}")
    if declared.shape is not None:
        _fit(name, array.shape, declared.shape, sizes)
    if declared.size:
        number = int(array)
        if sizes.setdefault(declared.size, number) != number:
            raise ValueError(f"{name} is {number}, and {sizes[declared.size]} are stored")
    below = sizes[declared.below] if isinstance(declared.below, str) else declared.below
    flat, total = array.ravel(order="K"), 0.0
    for start in range(0, flat.size, _CHUNK):
        chunk = flat[start : start + _CHUNK]
        low, high = chunk.min(), chunk.max()  # NaN if there is one
        is_nan = np.isnan(low) and (declared.finite or below < np.inf)
        if is_nan or (declared.finite and not (np.isfinite(low) and np.isfinite(high))):
            raise ValueError(f"{name} holds a number that is not finite")
        if low < declared.low or (below < np.inf and high >= below):
            raise ValueError(f"{name} holds numbers from {low} to {high}, outside of its range")
        total += float(chunk.sum()) if declared.total is not None else 0.0
    if declared.total is not None and not abs(total - declared.total) <= ROUNDING:
        raise ValueError(f"{name} adds up to {total}, not to {declared.total}")


_KINDS = {"f": "numbers", "i": "whole numbers", "b": "true and false"}


def _as_array(value: Any) -> np.ndarray | None:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, list | tuple):
        return np.array(value, dtype=None if value else np.int64) if all(map(_is_number, value)) else None
    return np.asarray(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.generic)


def _fit(name: str, shape: tuple[int, ...], declared: str, sizes: dict[str, Any]) -> None:
    """Check a shape, and add the sizes that it makes known."""
    for alternative in declared.split("|"):
        dims = alternative.split()
        wanted = [int(dim) if dim.isdigit() else sizes.get(dim, dim) for dim in dims]
        new: dict[str, int] = {}
        fits = len(dims) == len(shape) and all(
            w == n if isinstance(w, int) else new.setdefault(w, n) == n for w, n in zip(wanted, shape)
        )
        if fits:
            sizes.update(new)
            return
    raise ValueError(f"{name} has the shape {shape}, not ({declared}){_known(declared, sizes)}")


def _known(declared: str, sizes: Sizes) -> str:
    named = {dim: sizes[dim] for dim in declared.replace("|", " ").split() if dim in sizes}
    return " with " + ", ".join(f"{dim} = {n}" for dim, n in named.items()) if named else ""


# --- annotations ------------------------------------------------------------------------------------------------------


def check_type(name: str, value: Any, kind: Any) -> None:
    """Raise a ValueError for an attribute that is not of a type, or of one of several.

    Parameters
    ----------
    name : of the attribute
    value : object
    kind : class, or several
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} is missing or is not of type {_name_of(kind)}")


def _check_types(value: Any, state: Mapping[str, Any]) -> None:
    cls: Any = type(value)
    hints = _hints(cls)
    for name, item in state.items():
        if name in hints and not _is_a(item, hints[name]):
            raise ValueError(f"{name} of {type(value).__name__} is a {type(item).__name__}")


@cache
def _hints(cls: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # a name that only type checkers import
        return {}


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, as far as this can be seen; numbers may be numpy's."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return any(_is_a(value, each) for each in arguments)
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return isinstance(value, tuple) and all(_is_a(item, arguments[0]) for item in value)
    if origin is tuple and arguments:
        return isinstance(value, tuple) and len(value) == len(arguments) and all(map(_is_a, value, arguments))
    if origin is np.ndarray:  # core.arrays.Array
        return isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
    cls = origin or hint
    if cls is Any or not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return True
    if cls in (int, float, bool):
        kinds = {int: int | np.integer, float: int | float | np.integer | np.floating, bool: bool | np.bool_}[cls]
        return isinstance(value, kinds) and (cls is bool) == isinstance(value, bool | np.bool_)
    return isinstance(value, cls)


def _name_of(kind: Any) -> str:
    """Of a class, or of several that would do."""
    return " or ".join("None" if part is types.NoneType else part.__name__ for part in typing.get_args(kind) or (kind,))
