"""The user's own classifiers in a comparison: their names, and the encoding that those of scikit-learn need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.utils import get_tags

from mixent.base.delegation import by_class_name, check_classifier
from mixent.base.recipes import Setting, Shape
from mixent.base.registry import adapter, find
from mixent.comparison.candidates import Candidate, package_of


def read_methods(methods: Any) -> tuple[list[str] | None, dict[str, Any]]:
    """The names of known methods (None: all that suit the table), and the user's classifiers by name."""
    if isinstance(methods, str) and methods == "auto":
        return None, {}
    if isinstance(methods, Mapping):
        given = {name: estimator for name, estimator in methods.items() if estimator is not None}
        names = [name for name in methods if name not in given]
    elif isinstance(methods, list | tuple):
        names = [method for method in methods if isinstance(method, str)]
        given = by_class_name(method for method in methods if not isinstance(method, str))
    else:
        raise ValueError(
            f"methods must be 'auto', a list of names and classifiers, or a dict, name -> classifier; got {methods!r}"
        )
    for name, estimator in given.items():
        check_classifier(f"methods[{name!r}]", estimator)
    return names, given


def given_candidate(name: str, estimator: Any, setting: Setting) -> Candidate:
    """A classifier of the user, with encoded columns if it is one of scikit-learn that needs them."""
    if find(type(estimator)) is not None:
        return Candidate(name, estimator, package_of(type(estimator)), "as given")
    if not _needs_numbers(estimator, setting.shape):
        return Candidate(name, estimator, "given", "as given")
    encoding = "codes" if _allows_missing(estimator) else "bits"
    tuned = adapter().cls(estimator, encoding=encoding, categorical=setting.categorical)
    return Candidate(name, tuned, "given", "as given, with encoded columns")


def _needs_numbers(estimator: Any, shape: Shape) -> bool:
    """Whether a classifier of scikit-learn cannot take this table; a Pipeline prepares the columns itself."""
    if not type(estimator).__module__.startswith("sklearn."):
        return False
    from sklearn.pipeline import Pipeline  # slow to import

    if any(isinstance(part, Pipeline) for part in (estimator, *estimator.get_params().values())):
        return False
    return shape.n_categories > 0 or (shape.share_missing > 0 and not _allows_missing(estimator))


def _allows_missing(estimator: Any) -> bool:
    return get_tags(estimator).input_tags.allow_nan
