"""The registry: each estimator states once, in its own folder, everything that files, pages, commands and tables need.

Surfaces (persistence, command line, reports, `compare`, the capability table, the reference) iterate the entries and
name no model. Other packages register their estimators through the entry point group `mixent.estimators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from mixent.base.document import Content, Document
from mixent.base.recipes import Recipe
from mixent.base.saved_state import Part, Sizes
from mixent.data import Column, Schema
from mixent.warn import warn

BUILT_IN = ("mixtures", "hmm", "maxent", "med", "classical", "ensemble", "fusion")
ENTRY_POINTS = "mixent.estimators"
TASKS = ("classification", "clustering", "density", "novelty", "joint", "fusion", "features")

Cls = TypeVar("Cls", bound=type)


def keep(model: Any) -> Any:
    """A file can hold the model as it is."""
    return model


def whole(model: Any) -> Iterable[Any]:
    """Nothing to check beyond the types of `state`."""
    return ()


def check_parameters(model: Any) -> None:
    """As `fit` checks them first."""
    check = getattr(model, "_check", None)
    if check is not None:
        check()


def kept_schema(model: Any) -> Schema | None:
    """The columns as `read_features` left them in the fitted model, or names that scikit-learn's checks left."""
    fitted = vars(model)
    if "schema_" in fitted or "feature_names_in_" not in fitted:
        return fitted.get("schema_")
    return Schema(tuple(Column(str(name), "continuous") for name in fitted["feature_names_in_"]), named=True)


def sizes_of(model: Any) -> dict[str, Any]:
    """C classes, c continuous and m categorical columns, R categories in all and `categories` of each column."""
    fitted = vars(model)
    sizes = {} if fitted.get("classes_") is None else {"C": len(fitted["classes_"])}
    schema = fitted.get("schema_")
    return sizes if schema is None else {**sizes, **sizes_of_columns(schema)}


def sizes_of_columns(schema: Schema) -> dict[str, Any]:
    """The sizes that columns determine; see `sizes_of`."""
    categories = schema.sizes
    return {"c": len(schema.continuous), "m": len(categories), "R": sum(categories), "categories": categories}


def check_columns(model: Any) -> None:
    """Raise a ValueError unless the columns of a model are those of its schema, and its classes differ."""
    state = vars(model)
    schema = state.get("schema_")
    if isinstance(schema, Schema):
        names = state.get("feature_names_in_")
        if state.get("n_features_in_") != len(schema.inputs) or (
            names is not None and tuple(names.tolist()) != schema.input_names
        ):
            raise ValueError("the columns are not those of schema_")
    classes = state.get("classes_")
    if classes is not None and (classes.ndim != 1 or len(set(classes.tolist())) != len(classes) or not len(classes)):
        raise ValueError("classes_ does not hold different classes")


def no_rows(model: Any, X: Any, y: Any) -> list[Content]:
    """No pictures beyond those of the description."""
    return []


@dataclass(frozen=True)
class Entry:
    """Everything that the surfaces know of an estimator.

    Parameters
    ----------
    cls : the estimator
    name : on the command line, such as "med-tree"
    task : "classification", "clustering", "density", "novelty", "joint", "fusion" or "features"
    title : the model in a few words, such as "Tree distributions by maximum entropy discrimination"
    describe : fitted model -> Document
    on_rows : (fitted model, X, y or None) -> what a page shows of the model on these rows
    columns : fitted model -> Schema of the columns it reads, or None where it keeps none
    state : fitted attribute -> its type or types, or what its numbers are (see `mixent.base.saved_state`); a file
        without one is damaged
    parts : classes of objects that its fitted attributes hold, or a mapping of them to what their numbers are
    sizes : fitted model -> sizes of its arrays that its columns and classes determine
    holds : attributes that may hold other estimators; models in the fitted ones are checked when a file is read
    to_file : model -> copy without what a file cannot hold; raises TypeError with the reason and the remedy
    from_file : loaded model -> further models inside it, which are checked in turn; raises ValueError on damage
    parameters : model -> None; raises ValueError for constructor parameters that `fit` would refuse
    predictions : loaded model -> (method, values) for a few rows, with which a loaded file is checked
    recipes : how `compare` tries it
    example : () -> an unfitted estimator, where the class needs arguments
    listed : whether lists of models show it; False for what serves only inside other models
    adapter : whether it encodes tables for its `estimator`, a classifier of another library
    """

    cls: type
    name: str
    task: str
    title: str
    describe: Callable[[Any], Document]
    on_rows: Callable[[Any, Any, Any], list[Content]] = no_rows
    columns: Callable[[Any], Schema | None] = kept_schema
    state: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[type, Part | Mapping[str, Any]] | tuple[type, ...] = ()
    sizes: Callable[[Any], Sizes] = sizes_of
    holds: tuple[str, ...] = ()
    to_file: Callable[[Any], Any] = keep
    from_file: Callable[[Any], Iterable[Any]] = whole
    parameters: Callable[[Any], Any] = check_parameters
    predictions: Callable[[Any], Iterable[tuple[str, Any]]] | None = None
    recipes: tuple[Recipe, ...] = ()
    example: Callable[[], Any] | None = None
    listed: bool = True
    adapter: bool = False

    @property
    def family(self) -> str:
        """The package it comes from: "mixtures", "med", or the name of another distribution's package."""
        return family_of(self.cls)

    def make(self) -> Any:
        """An unfitted estimator with its defaults."""
        return self.cls() if self.example is None else self.example()


def family_of(cls: type) -> str:
    """The folder of mixent a class stands in, or the top package of another distribution."""
    top, *rest = cls.__module__.split(".")
    return rest[0] if top == "mixent" and rest else top


def name_in_files(cls: type) -> str:
    """The name by which files refer to a class: its folder or package, and its own name."""
    return f"{family_of(cls)}.{cls.__name__}"


_entries: dict[type, Entry] = {}


def register(
    name: str, *, task: str, title: str, describe: Callable[[Any], Document], **facts: Any
) -> Callable[[Cls], Cls]:
    """Class decorator: make an estimator known to every command, page and file.

    Parameters
    ----------
    name, task, title, describe, **facts
        See `Entry`.
    """

    def enter(cls: Cls) -> Cls:
        if not cls.__module__.startswith("mixent."):
            _load_built_in()  # their names come first
        entry = Entry(cls, name, task, title, describe, **facts)
        other = next((e for e in _entries.values() if e.name == name and _origin(e.cls) != _origin(cls)), None)
        if other is not None:
            raise ValueError(f"the name {name!r} of {cls.__name__} belongs to {other.cls.__name__}; choose another")
        if task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {task!r}")
        _check_names_in_files(entry)
        for again in [known for known in _entries if _origin(known) == _origin(cls)]:  # a module that was reloaded
            del _entries[again]
        _entries[cls] = entry
        return cls

    return enter


def _check_names_in_files(entry: Entry) -> None:
    """Refuse a class whose name in files is that of another class."""
    known: dict[str, type] = {}
    for cls in [cls for e in (*_entries.values(), entry) for cls in (e.cls, *e.parts)]:
        other = known.setdefault(name_in_files(cls), cls)
        if _origin(other) != _origin(cls):
            names = " and ".join(".".join(_origin(each)) for each in (other, cls))
            raise ValueError(f"{names} have the same name in files, {name_in_files(cls)}; rename one of them")


def unregister(cls: type) -> None:
    """Forget an estimator; for tests."""
    _entries.pop(cls, None)


def _origin(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__


_loaded: set[str] = set()  # also while it is being loaded


def _load_built_in() -> None:
    if BUILT_IN[0] in _loaded:
        return
    _loaded.update(BUILT_IN)
    try:
        for package in BUILT_IN:
            import_module(f"mixent.{package}.registration")
    except BaseException:
        _loaded.difference_update(BUILT_IN)  # the next call meets the same error, not half of the models
        raise


def entries() -> tuple[Entry, ...]:
    """Every registered estimator: mixent's own in the order of its folders, then those of other packages."""
    _load_built_in()
    if ENTRY_POINTS not in _loaded:
        _loaded.add(ENTRY_POINTS)
        for point in entry_points(group=ENTRY_POINTS):
            try:
                point.load()  # registers on import
            except Exception as error:  # a broken plug-in must not stop the others
                warn(f"the plug-in {point.value} cannot be used: {error}", RuntimeWarning)
    order = {family: place for place, family in enumerate(BUILT_IN)}
    return tuple(sorted(_entries.values(), key=lambda entry: order.get(entry.family, len(order))))


def find(cls: type) -> Entry | None:
    """The entry of a class, or of the nearest class above it; None where there is none."""
    entries()  # all are registered by now
    return next((_entries[base] for base in cls.__mro__ if base in _entries), None)


def entry_of(model: Any) -> Entry:
    """The entry of an estimator.

    Parameters
    ----------
    model : estimator of mixent or of a package that registers its own
    """
    entry = find(type(model))
    if entry is None:
        raise TypeError(f"{type(model).__name__} is not a registered estimator of mixent")
    return entry


def adapter() -> Entry:
    """The entry of the estimator that encodes tables for a classifier of another library."""
    return next(entry for entry in entries() if entry.adapter)


def by_name(name: str) -> Entry:
    """The entry of a name on the command line.

    Parameters
    ----------
    name : str
    """
    known = {entry.name: entry for entry in entries()}
    if name not in known:
        raise ValueError(f"unknown model {name!r}; choose one of {', '.join(known)}")
    return known[name]
