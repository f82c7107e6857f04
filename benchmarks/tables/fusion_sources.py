"""Local classifiers on drawn columns, their outputs on a batch, and a fusion of it.

The classifiers are trained once for each training half, and once more in each of five inner folds for answers on rows
they have not seen; every method, at every mismatch, reads these.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.tables.ensembles_combiners import digest
from mixent import Calibration, Fuser, GaussianMixture
from mixent.base.folds import label_folds
from mixent.core.arrays import Array
from mixent.options import Search
from mixent.studies import with_copies

INNER, SEED = 5, 0
KEPT = 12  # training halves in memory: those of one set
UNSEEN = 1e-6  # rows that a category is worth which was never seen in a class
STRUCTURES, MOST_CELLS = ["VVI", "VVV"], 9
SHARED = "training rows"  # all are calibrated on the same rows
Make = Callable[[], Any]


# --- local classifiers ------------------------------------------------------------------------------------------------


class CategoricalBayes(ClassifierMixin, BaseEstimator):
    """Naive Bayes of categories, a gap being one of them; relative frequencies, all but unsmoothed."""

    def fit(self, X: Any, y: np.ndarray) -> CategoricalBayes:
        table = X.fillna("?")
        self.encoder_ = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(table)
        sizes = [len(values) + 1 for values in self.encoder_.categories_]
        self.model_ = CategoricalNB(alpha=UNSEEN, min_categories=sizes).fit(self._codes(X), y)
        self.classes_ = self.model_.classes_
        return self

    def _codes(self, X: Any) -> np.ndarray:
        return self.encoder_.transform(X.fillna("?")).astype(int) + 1  # 0: never seen

    def predict_proba(self, X: Any) -> Array:
        return self.model_.predict_proba(self._codes(X))


def machine() -> Any:
    """Linear SVM with C = 1: its columns have one scale."""
    return make_pipeline(StandardScaler(), LinearSVC(random_state=SEED, dual=False))


LOCAL: dict[str, Make] = {"gaussian": GaussianNB, "categorical": CategoricalBayes, "svm": machine}


def answers_of(model: Any, X: Any, classes: np.ndarray) -> Array:
    """(n, C) probabilities, or ones where it gives labels."""
    if not hasattr(model, "predict_proba"):
        return np.eye(len(classes))[np.searchsorted(classes, model.predict(X))]
    outputs = np.zeros((len(X), len(classes)))
    outputs[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(X)
    return outputs / outputs.sum(axis=1, keepdims=True)


def columns_of(X: Any, columns: np.ndarray) -> Any:
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def rows_of(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def mark(X: Any) -> str:
    """The same for the same rows."""
    if hasattr(X, "iloc"):
        import pandas as pd

        X = pd.util.hash_pandas_object(X, index=False).to_numpy()
    return digest(X)


@dataclass(frozen=True)
class SourceOutputs:
    """The outputs of the classifiers on their training rows, and on others; names of sources are "1", "2", ..."""

    X: Any
    y: np.ndarray  # (n,)
    make: Make
    hard: bool
    columns: tuple[np.ndarray, ...]  # of each classifier
    members: tuple[Any, ...]
    asked: dict[str, Any] = field(default_factory=dict)  # answers by the rows they are about

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(j + 1) for j in range(len(self.columns)))

    @cached_property
    def classes(self) -> np.ndarray:
        return np.unique(self.y)

    @cached_property
    def priors(self) -> Array:
        return np.unique(self.y, return_counts=True)[1] / len(self.y)

    def of(self, X: Any) -> Array:
        """(J, m, C)"""
        return self._kept("members", X, lambda: self._predicted(self.members, X))

    def _predicted(self, members: Sequence[Any], X: Any) -> Array:
        pairs = zip(members, self.columns)
        return np.stack([answers_of(model, columns_of(X, own), self.classes) for model, own in pairs])

    @cached_property
    def held(self) -> Array:
        """(J, n, C) by classifiers that have not seen the row."""
        codes = np.searchsorted(self.classes, self.y)
        out = np.empty((len(self.columns), len(codes), len(self.classes)))
        for train, rest in label_folds(codes, np.ones(len(codes), dtype=bool), SEED, INNER):
            members = trained(self.make, rows_of(self.X, train), self.y[train], self.columns)
            out[:, rest] = self._predicted(members, rows_of(self.X, rest))
        return out

    @cached_property
    def mixtures(self) -> tuple[GaussianMixture, ...]:
        """One of each classifier's columns, without classes; components and structure by BIC."""
        options: dict[str, Any] = {"search": Search(max_components=MOST_CELLS), "random_state": SEED, "n_jobs": 1}
        return tuple(
            GaussianMixture("auto", STRUCTURES, **options).fit(columns_of(self.X, own)) for own in self.columns
        )

    def cells_of(self, X: Any) -> list[Array]:
        """(m, L) responsibilities of each mixture."""
        pairs = zip(self.mixtures, self.columns)
        return self._kept("cells", X, lambda: [m.predict_proba(columns_of(X, own)) for m, own in pairs])

    def answers(self, X: Any, *, cells: bool = False) -> dict[str, Any]:
        """As `Fuser.fit` reads them."""
        outputs = self.of(X)
        columns: dict[str, Any] = {
            name: self.classes[proba.argmax(axis=1)] if self.hard else proba for name, proba in zip(self.names, outputs)
        }
        if cells:
            columns |= {f"{name}@": proba for name, proba in zip(self.names, self.cells_of(X))}
        return columns

    def calibrations(
        self, *, held: bool, scaled: bool = True, cells: bool = False, context: bool = False
    ) -> dict[str, Calibration]:
        """Confusions (4.6) of training rows, or of answers out of fold; with cells (6.2), or within them (6.5)."""
        outputs = self.held if held else self.of(self.X)
        more: dict[str, Any] = {"priors": self.priors, "calibration_set": SHARED, "scaled": scaled}
        out = {}
        for j, name in enumerate(self.names):
            at = {"cells": self.cells_of(self.X)[j], "context": context} if cells else {}
            out[name] = Calibration.from_predictions(self.y, outputs[j], self.classes.tolist(), **at, **more)
        return out

    def _kept(self, what: str, X: Any, answer: Callable[[], Any]) -> Any:
        key = what + mark(X)
        if key not in self.asked:
            if len(self.asked) > 4 * KEPT:
                self.asked.clear()
            self.asked[key] = answer()
        return self.asked[key]


def trained(make: Make, X: Any, y: np.ndarray, columns: Sequence[np.ndarray]) -> tuple[Any, ...]:
    return tuple(make().fit(columns_of(X, own), y) for own in columns)


def drawn_columns(n_columns: int, sizes: Sequence[int], seed: int) -> tuple[np.ndarray, ...]:
    """A subset of the columns for each classifier."""
    rng = np.random.default_rng(seed)
    return tuple(np.sort(rng.choice(n_columns, min(size, n_columns), replace=False)) for size in sizes)


_RECENT: OrderedDict[tuple, SourceOutputs] = OrderedDict()


def source_outputs(local: str, sizes: tuple[int, ...], X: Any, y: np.ndarray) -> SourceOutputs:
    """The classifiers of these rows; the last few are kept. Their columns are drawn anew for other training rows."""
    rows = mark(X)
    key = local, sizes, rows, digest(np.searchsorted(np.unique(y), y))
    if key not in _RECENT:
        columns = drawn_columns(X.shape[1], sizes, int(rows[:8], 16))
        _RECENT[key] = SourceOutputs(X, y, LOCAL[local], local == "svm", columns, trained(LOCAL[local], X, y, columns))
    _RECENT.move_to_end(key)
    while len(_RECENT) > KEPT:
        _RECENT.popitem(last=False)
    return _RECENT[key]


# --- fusion -----------------------------------------------------------------------------------------------------------


@dataclass
class Fused:
    """A fusion that learns from the batch it is asked about; `fit` trains and calibrates the sources.

    `held`: calibrated out of fold. `scaled`: then also with rescaled probabilities, which the document's rules are not.
    `cells`: "" for none, "I" for those of Extension I, "II" for those of II.
    """

    local: str
    sizes: tuple[int, ...]
    method: str
    held: bool = True
    scaled: bool = True
    cells: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def fit(self, X: Any, y: np.ndarray) -> Fused:
        self.outputs = source_outputs(self.local, self.sizes, X, y)
        self.classes_ = self.outputs.classes
        kinds = {"cells": bool(self.cells), "context": self.cells == "II"}
        self.sources = self.outputs.calibrations(held=self.held, scaled=self.scaled and self.held, **kinds)
        return self

    def predict_proba(self, X: Any) -> Array:
        self.fuser = self.fused(self.sources, self.outputs.answers(X, cells=bool(self.cells)))
        return self.fuser.posterior_

    def fused(self, sources: dict[str, Calibration], answers: dict[str, Any]) -> Fuser:
        with mock.patch("mixent.fusion.faults.MAX_SOURCES", 0):  # not needed here, and slow
            return Fuser(sources, method=self.method, **self.options).fit(answers)

    def error(self, fuser: Fuser, y: np.ndarray) -> float:
        """In %."""
        return 100.0 * float(np.mean(fuser.labels_ != y))

    def members_error(self, X: Any, y: np.ndarray) -> Array:
        """(J,) of the classifiers alone, in %."""
        return 100.0 * np.mean(self.classes_[self.outputs.of(X).argmax(axis=2)] != y, axis=1)

    def copies_error(self, X: Any, y: np.ndarray, k: int, *, declared: bool) -> float:
        """With k copies of the second weakest classifier, by test error as in the document."""
        name = self.outputs.names[int(np.argsort(self.members_error(X, y), kind="stable")[-2])]
        sources = with_copies(self.sources, name, k)
        if declared:
            sources |= {source: replace(sources[source], copy_of=name) for source in list(sources)[len(self.sources) :]}
        return self.error(self.fused(sources, with_copies(self.outputs.answers(X), name, k)), y)

    def batches_error(self, X: Any, y: np.ndarray, percent: int) -> float:
        """The batch in parts of so many percent, each fused alone; what is left over is not asked."""
        size = max(1, len(y) * percent // 100)
        answers = self.outputs.answers(X)
        parts = [slice(start, start + size) for start in range(0, len(y) - size + 1, size)]
        errors = []
        for part in parts:
            fuser = self.fused(self.sources, {name: answer[part] for name, answer in answers.items()})
            errors.append(self.error(fuser, y[part]))
        return float(np.mean(errors))
