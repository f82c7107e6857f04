"""Constructor parameters that belong together, as one small object with short forms.

`MixtureClassifier(search="bic")` and `MixtureClassifier(search=Search(criterion="bic"))` are the same. The constructor
stores what it is given; `fit` asks `estimator._group("search")` for the object. `get_params` and `set_params` see
through a short form, so that `GridSearchCV` can vary `search__max_components` on a default estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import CapableTags, able
from mixent.base.registry import entry_of

Reader = Callable[[str, Any], Any]  # (name of the parameter, its value) -> the object it stands for


class Options(BaseEstimator):
    """Parameters that belong together. A subclass stores them in its constructor and lists its short forms."""

    short_forms: ClassVar[Mapping[Any, Mapping[str, Any]]] = {None: {}}  # short form -> the parameters it stands for

    @classmethod
    def read(cls, name: str, value: Any) -> Self:
        """The object that a parameter's value stands for.

        Parameters
        ----------
        name : str
            Of the parameter, for the message.
        value : an object of this class, or a short form
        """
        if isinstance(value, cls):
            return value
        if (value is None or isinstance(value, str)) and value in cls.short_forms:
            return cls(**cls.short_forms[value])
        raise _unknown(name, value, (cls,))


@dataclass(frozen=True)
class OneOf:
    """Reads a parameter that takes objects of several classes or their short forms; with `optional` also None."""

    kinds: tuple[type[Options], ...]
    optional: bool = False

    def __call__(self, name: str, value: Any) -> Options | None:
        if self.optional and value is None:
            return None
        for kind in self.kinds:
            if isinstance(value, kind) or (isinstance(value, str) and value in kind.short_forms):
                return kind.read(name, value)
        raise _unknown(name, value, self.kinds, (None,) if self.optional else ())


def one_of(*kinds: type[Options], optional: bool = False) -> OneOf:
    """A reader of a parameter that takes objects of several classes; see `OneOf`."""
    return OneOf(kinds, optional)


@dataclass(frozen=True)
class ReadBy:
    """Reads a parameter by a function of its own, which gives objects of these classes."""

    kinds: tuple[type[Options], ...]
    function: Reader

    def __call__(self, name: str, value: Any) -> Any:
        return self.function(name, value)


def reads(*kinds: type[Options]) -> Callable[[Reader], ReadBy]:
    """Decorator: states the classes of the objects that a function gives which reads a parameter."""
    return lambda function: ReadBy(kinds, function)


def option_classes(estimator: Estimator) -> dict[str, tuple[type[Options], ...]]:
    """Grouped parameter -> the classes of the objects it takes.

    Parameters
    ----------
    estimator : Estimator
    """
    groups = type(estimator)._groups
    return {
        name: reader.kinds if isinstance(reader, OneOf | ReadBy) else (type(estimator._group(name)),)
        for name, reader in groups.items()
    }


def option_owners(estimator: Any, key: str) -> list[type[Options]]:
    """The classes with a parameter that the object of a group does not have; empty where it has it.

    Parameters
    ----------
    estimator : estimator, also one that holds others
    key : such as "training__blend" or "mixture__training__blend"
    """
    path, _, parameter = key.rpartition("__")
    outer, _, group = path.rpartition("__")
    params = estimator.get_params()
    holder = params.get(outer) if outer else estimator
    if key in params or not isinstance(holder, Estimator):
        return []
    return [kind for kind in option_classes(holder).get(group, ()) if parameter in kind._get_param_names()]


def _other_option(key: str, owners: Sequence[type[Options]]) -> ValueError:
    group, _, parameter = key.partition("__")
    names = " and ".join(kind.__name__ for kind in owners)
    forms = [f"{group}={form!r}" for kind in owners for form in kind.short_forms if form is not None]
    given = " or ".join(forms) or f"{group}={owners[0].__name__}(...)"
    return ValueError(f"{parameter} is a parameter of {names}; set {given} too")


def _unknown(name: str, value: Any, kinds: Sequence[type[Options]], also: tuple[Any, ...] = ()) -> ValueError:
    words = ", ".join(map(repr, [*also, *(form for kind in kinds for form in kind.short_forms)]))
    objects = " or ".join(f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}" for kind in kinds)
    return ValueError(f"{name} must be one of {words}, or {objects}; got {value!r}")


class Estimator(BaseEstimator):
    """Base of all estimators of mixent: grouped parameters and a summary."""

    _groups: ClassVar[Mapping[str, Reader]] = {}  # parameter -> what reads it

    def __sklearn_tags__(self) -> CapableTags:
        return able(super().__sklearn_tags__())

    def _group(self, name: str) -> Any:
        """The object behind a grouped parameter."""
        return type(self)._groups[name](name, getattr(self, name))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator; with `deep`, also those of the objects that short forms stand for.

        Parameters
        ----------
        deep : bool

        Returns
        -------
        dict of parameter -> value
        """
        params = super().get_params(deep=deep)
        for name in type(self)._groups if deep else ():
            if not hasattr(params[name], "get_params"):
                try:
                    inner = self._group(name)
                except (TypeError, ValueError):  # `fit` refuses it, with its message
                    continue
                if hasattr(inner, "get_params"):
                    params |= {f"{name}__{key}": value for key, value in inner.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `search__max_components=8` sets one of a group, whether or not that is given by a short form.

        Parameters
        ----------
        **params : parameter -> value

        Returns
        -------
        self
        """
        super().set_params(**{key: value for key, value in params.items() if "__" not in key})
        nested = {key: value for key, value in params.items() if "__" in key}
        for key in nested:
            if key.count("__") == 1 and (owners := option_owners(self, key)):
                raise _other_option(key, owners)
        for name in {key.partition("__")[0] for key in nested} & set(type(self)._groups):
            if not hasattr(getattr(self, name), "set_params"):
                group = self._group(name)
                if group is None:
                    raise ValueError(f"{name} is None, which has no parameters; set {name} too")
                setattr(self, name, group)
        return super().set_params(**nested)

    def summary(self) -> Any:
        """What this fitted model is: a `Document`, which prints itself and shows itself in a notebook.

        Returns
        -------
        mixent.base.document.Document
        """
        check_is_fitted(self)
        return entry_of(self).describe(self)
