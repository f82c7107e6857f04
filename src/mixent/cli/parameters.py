"""Parameters of a model as its docstring explains them: name, default, allowed values and a sentence."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

UNDERLINE = re.compile(r"\s*-{3,}\s*")
REFERENCE = re.compile(r"(?:see|as (?:in|for)) `(\w+)`", re.IGNORECASE)


@dataclass(frozen=True)
class Parameter:
    """A parameter that `--set` takes.

    Parameters
    ----------
    name : with dots for grouped ones, such as "search.max_components"
    default : as Python writes it
    values : what is allowed, such as "float or None"
    meaning : a sentence
    """

    name: str
    default: str
    values: str
    meaning: str


def parameters(estimator: BaseEstimator, without: Mapping[str, Any]) -> list[Parameter]:
    """Parameters of an estimator in the order of its constructor, grouped ones below their group.

    Parameters
    ----------
    estimator : unfitted estimator with its defaults
    without : parameters to leave out
    """
    from mixent.base.options import option_classes

    groups, values = option_classes(estimator), estimator.get_params()
    parameters = []
    for parameter in _of_class(type(estimator), "", values):
        if parameter.name not in without:
            parameters.append(parameter)
            for cls in groups.get(parameter.name, ()):
                known = {other.name for other in parameters}
                parameters += [part for part in _of_class(cls, f"{parameter.name}.", values) if part.name not in known]
    return parameters


def _of_class(cls: type, prefix: str, values: Mapping[str, Any]) -> Iterator[Parameter]:
    documented = documented_parameters(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        allowed, text = documented.get(name, ("", ""))
        default = values.get(f"{prefix}{name}".replace(".", "__"), parameter.default)
        yield Parameter(f"{prefix}{name}", _short(default), allowed, first_sentence(text))


def _short(value: object) -> str:
    if value is inspect.Parameter.empty:
        return ""
    if isinstance(value, list):
        return ",".join(type(item).__name__ for item in value)
    return repr(value)


def first_sentence(text: str) -> str:
    """Up to the first full stop."""
    return re.split(r"(?<=[.])\s", " ".join(text.split()), maxsplit=1)[0]


def documented_parameters(cls: type, seen: tuple[type, ...] = ()) -> dict[str, tuple[str, str]]:
    """Parameter -> allowed values and explanation, from the numpydoc section of the class and of those it refers to."""
    texts: dict[str, tuple[str, str]] = {}
    for names, values, text in _entries_of(inspect.getdoc(cls) or ""):
        reference = REFERENCE.search(text)
        other = None if reference is None or values else _class_named(reference[1], cls)
        theirs = {} if other is None or other in seen else documented_parameters(other, (*seen, cls))
        texts |= {name: theirs.get(name, (values, text)) for name in names}
    return texts


def _entries_of(doc: str) -> Iterator[tuple[list[str], str, str]]:
    """(names, allowed values, explanation) of each entry under the heading Parameters."""
    lines = doc.splitlines()
    heads = [i - 1 for i, line in enumerate(lines) if i and UNDERLINE.fullmatch(line)]
    start = next((i for i in heads if lines[i].strip() == "Parameters"), None)
    if start is None:
        return
    end = next((i for i in heads if i > start), len(lines))
    entry: list[str] = []
    for line in [*lines[start + 2 : end], "end"]:
        if line and not line.startswith(" "):
            if entry:
                names, _, values = entry[0].partition(" : ")
                yield [name.strip(" *") for name in names.split(",")], values.strip(), " ".join(entry[1:])
            entry = [line]
        else:
            entry.append(line)


def _class_named(name: str, near: type) -> type | None:
    """A class of this name: a model, a class above, or a neighbor in the same module."""
    from mixent.base.registry import entries

    module = inspect.getmodule(near)
    known = [*near.__mro__, *(entry.cls for entry in entries()), *vars(module).values()]
    return next((cls for cls in known if isinstance(cls, type) and cls.__name__ == name), None)
