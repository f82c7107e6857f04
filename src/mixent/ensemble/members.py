"""The classifiers that a stacking model combines: a list of classifiers, or the members of one ensemble.

The output of a classifier for a row is a pmf over its labels, P[C_i = c | x]; an abstention is a row of NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from mixent.base.delegation import aligned, reads_tables, weight_arguments
from mixent.core.arrays import Array
from mixent.data import Table
from mixent.ensemble.base_estimators import read_base
from mixent.ensemble.inputs import Columns, Inputs
from mixent.ensemble.output_columns import OutputColumns
from mixent.ensemble.pmfs import hardened, one_hot, pmf
from mixent.show import Short

DECISIONS = ("auto", "soft", "hard")


@dataclass(frozen=True)
class Outputs:
    """The output of every classifier for every row."""

    names: tuple[str, ...]
    classes: tuple[np.ndarray, ...]  # the labels of each classifier
    values: tuple[Array, ...]  # (n, V) of each classifier; NaN where it abstains

    @property
    def n_rows(self) -> int:
        return len(self.values[0])


class Members(ABC):
    """Classifiers to be combined."""

    @abstractmethod
    def fit(self, X: Inputs, y: np.ndarray, weight: Array | None, seed: int) -> Any:
        """Train copies of the classifiers."""

    @abstractmethod
    def open(self, X: Inputs) -> list[Table]:
        """Read the columns used in training, once for all rows."""

    @abstractmethod
    def outputs(self, fitted: Any, X: Inputs, decisions: str) -> Outputs:
        """The outputs of the trained classifiers."""

    def with_fitted_columns(self, fitted: Any) -> Members:
        """A copy in which output columns are fitted, so that they are not fitted again in each fold."""
        return self

    @property
    def used(self) -> tuple:
        """Columns that hold outputs and are therefore not inputs."""
        return ()


@dataclass(frozen=True, repr=False)
class NamedMembers(Short, Members):
    """Named classifiers and their input columns."""

    names: tuple[str, ...]
    bases: tuple[Any, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def with_models(self, convert: Callable[[Any, str], Any]) -> NamedMembers:
        """A copy in which each model is replaced by `convert(model, name)`."""
        return replace(self, bases=tuple(convert(base, repr(name)) for name, base in zip(self.names, self.bases)))

    def open(self, X: Inputs) -> list[Table]:
        tables = []
        for name, base in zip(self.names, self.bases):
            with noted(f"in the training of {name!r}"):
                if reads_tables(base):
                    tables.append(X.read(self.columns(X, name)))
        return tables

    def fit(self, X: Inputs, y: np.ndarray, weight: Array | None, seed: int) -> list[Any]:
        out = []
        for i, (name, base) in enumerate(zip(self.names, self.bases)):
            own_seed = int(np.random.default_rng((seed, i)).integers(2**31 - 1))  # different for equal classifiers
            with noted(f"in the training of {name!r}"):
                part = X.for_fit(base, self.columns(X, name))
                out.append(base if is_fitted_columns(base) else trained(base, part, y, weight, own_seed))
        return out

    def with_fitted_columns(self, fitted: list[Any]) -> NamedMembers:
        bases = zip(self.bases, fitted)
        return replace(self, bases=tuple(model if isinstance(base, OutputColumns) else base for base, model in bases))

    def outputs(self, fitted: list[Any], X: Inputs, decisions: str) -> Outputs:
        each = []
        for name, model in zip(self.names, fitted):
            with noted(f"in the prediction of {name!r}"):
                each.append(output_of(model, X.for_predict(model, self.columns(X, name)), decisions, name))
        return Outputs(self.names, tuple(classes for classes, _ in each), tuple(values for _, values in each))

    def columns(self, X: Inputs, name: str) -> Columns:
        """The input columns of a classifier (default: all that are not outputs of other classifiers)."""
        if isinstance(self.bases[self.names.index(name)], OutputColumns):  # its `inputs` are for the regions
            return None
        if name in self.inputs:
            return tuple(self.inputs[name])
        if not self.used:
            return None
        names = X.names
        outputs = {c if c in names else names[c] for c in self.used if c in names or isinstance(c, (int, np.integer))}
        rest = [j for j, column in enumerate(names) if column not in outputs]
        if not rest:
            raise ValueError(
                f"{name!r} has no input columns: all columns are outputs of other classifiers; add columns to X"
            )
        return tuple(rest)

    @property
    def used(self) -> tuple:
        return tuple(c for base in self.bases if isinstance(base, OutputColumns) for c in base.used)


@contextmanager
def noted(where: str) -> Iterator[None]:
    """Add to an exception which classifier raised it."""
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


@dataclass(frozen=True, repr=False)
class EnsembleMembers(Short, Members):
    """The stages of boosting, or the members of bagging and forests of scikit-learn."""

    ensemble: Any

    def with_models(self, convert: Callable[[Any, str], Any]) -> EnsembleMembers:
        """A copy with another ensemble."""
        return replace(self, ensemble=convert(self.ensemble, "the ensemble"))

    def open(self, X: Inputs) -> list[Table]:
        return [X.read(None)] if reads_tables(self.ensemble) else []

    def fit(self, X: Inputs, y: np.ndarray, weight: Array | None, seed: int) -> Any:
        return trained(self.ensemble, X.for_fit(self.ensemble, None), y, weight, seed)

    def outputs(self, fitted: Any, X: Inputs, decisions: str) -> Outputs:
        proba = stage_proba(fitted, X.for_predict(fitted, None))
        kind = "stage" if hasattr(fitted, "stage_proba") else "member"
        names = tuple(f"{kind} {m + 1}" for m in range(len(proba)))
        values = [hardened(p) if decisions == "hard" else pmf(p, name) for p, name in zip(proba, names)]
        return Outputs(names, (np.asarray(fitted.classes_),) * len(names), tuple(values))


def read_members(estimators: Any, inputs: Any, prefit: bool) -> Members:
    """The classifiers in the parameter `estimators`: a list of classifiers or of pairs with names, or one ensemble."""
    if is_ensemble(estimators):
        if inputs is not None:
            raise ValueError("inputs is only used with a list of classifiers; leave it out for an ensemble")
        if prefit:
            _check_fitted(type(estimators).__name__, estimators)
        return EnsembleMembers(estimators)
    named = _named(estimators)
    members = NamedMembers(tuple(named), tuple(named.values()), _read_inputs(inputs, tuple(named)))
    if prefit:
        for name, base in named.items():
            _check_fitted(name, base)
    return members


def _check_fitted(name: str, base: Any) -> None:
    if isinstance(base, OutputColumns):
        return
    try:
        check_is_fitted(base)
    except (TypeError, ValueError) as error:  # NotFittedError is the latter
        raise NotFittedError(
            f"cv='prefit' requires fitted classifiers; {name!r} is not fitted. cross_val_score and GridSearchCV clone "
            "classifiers without their fit: wrap them in sklearn.frozen.FrozenEstimator"
        ) from error


def is_ensemble(value: Any) -> bool:
    """Whether an object is an ensemble of classifiers."""
    many = hasattr(value, "n_estimators") or hasattr(value, "stage_proba")
    return many and not isinstance(value, (list, tuple, Mapping, type))


def _named(estimators: Any) -> dict[str, Any]:
    if isinstance(estimators, (str, type)) or not isinstance(estimators, Sequence) or not len(estimators):
        raise ValueError(
            f"estimators must be a list of classifiers or of (name, classifier), or an ensemble; got {estimators!r}"
        )
    pairs = [as_pair(entry) for entry in estimators]
    pairs = [(name, base) for name, base in pairs if not is_dropped(base)]
    if not pairs:
        raise ValueError("all classifiers of estimators are 'drop'; keep at least one")
    pairs = [(name, _read_classifier(base)) for name, base in pairs]
    kinds = Counter(type(base).__name__.lower() for name, base in pairs if name is None)
    numbers: Counter = Counter()
    named: dict[str, Any] = {}
    for name, base in pairs:
        if name is None:
            kind = type(base).__name__.lower()
            numbers[kind] += 1
            name = kind if kinds[kind] == 1 else f"{kind}-{numbers[kind]}"
        if name in named:
            raise ValueError(f"estimators has two classifiers named {name!r}; names must be unique")
        named[name] = base
    return named


def as_pair(entry: Any) -> tuple[str | None, Any]:
    """(name, classifier) of an entry of the parameter `estimators`; the name is None if there is none."""
    return entry if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) else (None, entry)


def is_dropped(base: Any) -> bool:
    """Whether the classifier of an entry is left out, as in scikit-learn."""
    return isinstance(base, str) and base == "drop"


def _read_classifier(base: Any) -> Any:
    """A classifier, or the columns that hold its outputs."""
    if base is None:
        raise ValueError("estimators contains None instead of a classifier; leave it out")
    if isinstance(base, (str, int, np.integer, list, Mapping)) and not isinstance(base, bool):
        return OutputColumns(base)
    return read_base(base)


def _read_inputs(inputs: Any, names: tuple[str, ...]) -> dict[str, list]:
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise ValueError(f"inputs must be None or a dict, classifier name -> list of columns; got {inputs!r}")
    for name, columns in inputs.items():
        if name not in names:
            raise ValueError(f"inputs: unknown classifier {name!r}; the names are {', '.join(map(repr, names))}")
        if isinstance(columns, str) or not np.iterable(columns) or not len(list(columns)):
            raise ValueError(f"inputs must be a dict, classifier name -> list of columns; {name!r} has {columns!r}")
    return {name: list(columns) for name, columns in inputs.items()}


def is_fitted_columns(base: Any) -> bool:
    """Whether a base is output columns whose labels are already known."""
    return isinstance(base, OutputColumns) and hasattr(base, "classes_")


def trained(base: Any, X: Any, y: np.ndarray, weight: Array | None, seed: int) -> Any:
    """A fitted copy; every `random_state` that is None is set to the seed."""
    model = clone(base)
    options = model.get_params()
    unseeded = [n for n, value in options.items() if n.split("__")[-1] == "random_state" and value is None]
    if unseeded:
        model.set_params(**dict.fromkeys(unseeded, seed))
    model.fit(X, y, **weight_arguments(model, weight))  # what `fit` of another library returns does not matter
    return model


def output_of(model: Any, X: Any, decisions: str, name: str) -> tuple[np.ndarray, Array]:
    """The labels of a fitted classifier, and its pmf over them for every row, (n, V)."""
    soft = hasattr(model, "predict_proba")
    if decisions == "soft" and not soft:
        raise ValueError(
            f"decisions='soft' requires predict_proba, which {name!r} ({type(model).__name__}) does not have; set "
            "decisions='auto', or wrap it in CalibratedClassifierCV of scikit-learn"
        )
    if soft and decisions != "hard":
        return np.asarray(model.classes_), pmf(np.array(model.predict_proba(X), dtype=float), name)
    labels = np.asarray(model.classes_)
    return labels, one_hot(np.asarray(model.predict(X), dtype=object), labels)


def stage_proba(ensemble: Any, X: Any) -> Sequence[Array]:
    """(n, C) output of each member of a fitted ensemble, in the order of its `classes_`."""
    if hasattr(ensemble, "stage_proba"):
        return list(ensemble.stage_proba(X))
    if not hasattr(ensemble, "estimators_"):
        raise ValueError(
            f"{type(ensemble).__name__} has neither estimators_ nor stage_proba, so its members are not accessible; "
            "give a list of classifiers"
        )
    members = members_of(ensemble)
    if is_regressor(members[0]):
        raise ValueError(
            f"the members of {type(ensemble).__name__} are regressors, not classifiers; give the ensemble as an "
            "element of a list"
        )
    columns = getattr(ensemble, "estimators_features_", [None] * len(members))
    classes = np.asarray(ensemble.classes_)
    # bagging and forests of scikit-learn train their members on arrays, with positions in `classes_` as labels
    numbered = type(members[0]).__module__.startswith("sklearn.tree") or hasattr(ensemble, "estimators_features_")
    plain = np.asarray(X) if numbered else X
    out = []
    for member, used in zip(members, columns):
        part = plain if used is None else _safe_indexing(plain, used, axis=1)
        labels, proba = output_of(member, part, "auto", type(member).__name__)
        codes = np.asarray(labels).astype(int) if numbered and not _same(labels, classes) else None
        out.append(aligned(proba, labels if codes is None else classes[codes], classes))
    return out


def members_of(ensemble: Any) -> list:
    """The fitted members of an ensemble."""
    members = ensemble.estimators_
    return list(members.ravel() if isinstance(members, np.ndarray) else members)


def _same(labels: np.ndarray, classes: np.ndarray) -> bool:
    return len(labels) == len(classes) and bool((labels == classes).all())
