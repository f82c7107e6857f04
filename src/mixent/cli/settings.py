"""From `--model NAME --set key=value` to an estimator: names and parameters come from the registry."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.parsing import unknown

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from mixent.base.registry import Entry

OPTIONS = {  # parameters that all models share -> the option that sets them
    "categorical": "--categorical",
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "progress": "--quiet",
    "checkpoint": "--resume",
}
DEFAULTS = {True: "mixture", False: "gaussian-mixture"}  # model with a target, and without
KINDS = {  # task -> what a model for it is called
    "classification": "a classifier",
    "clustering": "a model of clusters",
    "density": "a density model",
    "novelty": "a novelty detector",
    "joint": "a joint model of all columns",
    "fusion": "a fusion of sources",
    "features": "a feature map",
}
OTHER_LIBRARIES = ("logistic", "naive-bayes")  # classifiers of scikit-learn that can be bases of an ensemble


def models() -> dict[str, Entry]:
    """Models by name."""
    from mixent.base.registry import entries

    return {entry.name: entry for entry in entries() if entry.listed}


def model_entry(name: str) -> Entry:
    """The model of this name."""
    known = models()
    if name not in known:
        raise unknown("model", name, list(known))
    return known[name]


def model_for(task: str) -> Entry:
    """The first model for a task."""
    return next(entry for entry in models().values() if entry.task == task)


def make_estimator(name: str, settings: Mapping[str, Any], common: Mapping[str, Any]) -> BaseEstimator:
    """An unfitted estimator.

    Parameters
    ----------
    name : of the model
    settings : parameter, with dots for grouped ones -> value
    common : parameters that all models share, where they have them -> value
    """
    entry = model_entry(name)
    estimator = entry.make()
    own = estimator.get_params(deep=False)
    estimator.set_params(**{key: _with_names(own[key]) for key in entry.holds if key in own})
    set_common(estimator, common)
    apply_settings(estimator, name, settings, common)
    return estimator


def apply_settings(
    estimator: BaseEstimator, name: str, settings: Mapping[str, Any], common: Mapping[str, Any] = {}
) -> None:
    """Set parameters of an estimator; names that it does not have are refused, values are for its `fit` to check."""
    holds, before = model_entry(name).holds, estimator.get_params(deep=False)
    own = {key: value for key, value in settings.items() if "." not in key}
    for key in own:
        if key in OPTIONS:
            raise typer.BadParameter(f"--set {key} is not used: {OPTIONS[key]} sets it")
        if key not in before:
            raise unknown("parameter", key, parameters_of(estimator), name)
        if key in holds:
            own[key] = _with_models(own[key], before[key], common)
    estimator.set_params(**own)
    for key, value in settings.items():
        if "." in key:
            _set_nested(estimator, name, key, value)


def set_common(estimator: BaseEstimator, common: Mapping[str, Any]) -> None:
    """Set parameters that all models share, also of models inside this one."""
    params = estimator.get_params()
    estimator.set_params(**{key: common[last] for key in params if (last := key.rpartition("__")[2]) in common})


def parameters_of(estimator: BaseEstimator) -> list[str]:
    """Names that `--set` takes, without those inside others."""
    return [key for key in estimator.get_params(deep=False) if key not in OPTIONS]


def _set_nested(estimator: BaseEstimator, name: str, key: str, value: object) -> None:
    from mixent.base.options import option_owners

    first, *rest = key.split(".")
    params = estimator.get_params()
    if first not in params:
        inside = sorted({other.partition("__")[0] for other in params if "__" in other})
        raise unknown("parameter", first, list(dict.fromkeys([*inside, *parameters_of(estimator)])), name)
    known = [other.removeprefix(f"{first}__") for other in params if other.startswith(f"{first}__")]
    full = "__".join([first, *rest])
    if known and "__".join(rest) not in known and not option_owners(estimator, full):
        raise unknown("parameter", ".".join(rest), [other.replace("__", ".") for other in known], first)
    try:
        estimator.set_params(**{full: value})
    except AttributeError:
        raise typer.BadParameter(f"{first} is {params[first]!r}, which has no parameters; set {first} itself") from None


def check_columns(estimator: BaseEstimator, name: str, columns: Iterable[str]) -> None:
    """Refuse words in a list of models that name neither a model nor an input column of the table."""
    known, params = list(columns), estimator.get_params(deep=False)
    for key in model_entry(name).holds:
        pairs = params[key] if isinstance(params.get(key), list) else []
        for word in (item[1] for item in pairs if isinstance(item, tuple) and len(item) == 2):
            if isinstance(word, str) and word not in known:
                raise _neither(key, word, known)


def _neither(key: str, word: str, columns: Sequence[str]) -> ValueError:
    every = dict.fromkeys([*models(), *OTHER_LIBRARIES], "model") | dict.fromkeys(columns, "column")
    close = difflib.get_close_matches(word, every, n=1)
    hint = f"did you mean the {every[close[0]]} {close[0]!r}?" if close else "`mixent models` lists the models"
    return ValueError(f"{key}: {word!r} is neither a model nor an input column of the table; {hint}")


def _with_models(value: Any, default: Any, common: Mapping[str, Any]) -> Any:
    """Names of models in a value replaced by models; in a list each has its name, and other words name columns."""
    if not isinstance(value, list):
        model = _model(value, common)
        if isinstance(model, str) and not isinstance(default, str):
            raise unknown("model", model, [*models(), *OTHER_LIBRARIES])
        return model
    pairs = [item if isinstance(item, tuple) and len(item) == 2 else (item, item) for item in value]
    for _, word in pairs:
        if isinstance(word, str) and word in models() and models()[word].task != "classification":
            raise typer.BadParameter(f"only classifiers can be combined; {word} is {KINDS[models()[word].task]}")
    return [(key, _model(item, common)) if isinstance(key, str) else item for key, item in pairs]


def _model(word: Any, common: Mapping[str, Any]) -> Any:
    """The model of this name; anything else as it is, for the estimator to check."""
    if not isinstance(word, str):
        return word
    if word in models():
        return make_estimator(word, {}, common)
    return _of_other_library(word, common) if word in OTHER_LIBRARIES else word


def _of_other_library(word: str, common: Mapping[str, Any]) -> BaseEstimator:
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    from mixent.base.registry import adapter

    tuned = adapter().make()
    set_common(tuned, common)
    return tuned.set_params(estimator=LogisticRegression(max_iter=5000) if word == "logistic" else GaussianNB())


def _with_names(value: Any) -> Any:
    """Models in a list with their names, by which `--set name.key=value` finds them."""
    from mixent.base.registry import find

    if not isinstance(value, list):
        return value
    registered = [find(type(item)) for item in value]
    return [item if entry is None else (entry.name, item) for item, entry in zip(value, registered)]


def check_can_save(estimator: BaseEstimator) -> None:
    """Refuse before the fit what could not be written after it."""
    from importlib.util import find_spec

    from mixent.base.capabilities import FOREIGN, cells_of

    if cells_of(estimator)["saved"] == FOREIGN and find_spec("skops") is None:
        raise typer.BadParameter(
            "this model holds an estimator of another library, and the package skops is needed to save it; install it "
            'with: pip install "mixent[skops]", or use models of mixent only'
        )
