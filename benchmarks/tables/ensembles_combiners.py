"""Combiners of boosted stages at several ensemble sizes, which all use the outputs of one boosting.

The stages of a short boosting are the first ones of a longer one. So the stages are trained once for each fold, and
once more in each of five inner folds for outputs of rows they have not seen; every combiner takes the first so many.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.naive_bayes import GaussianNB

from mixent import AdaBoostM1Classifier, HMMStackingClassifier, MaxEntStackingClassifier, WeightBoostClassifier
from mixent.base.folds import Fold, label_folds
from mixent.core.arrays import Array
from mixent.ensemble.inputs import Inputs
from mixent.ensemble.output_columns import OutputColumns
from mixent.ensemble.regions import fit_regions

SIZES = (10, 20, 50, 70, 100)
INNER = 5
SEED = 0
OWN_PRIOR = 20  # most stages for which each size has its prior chosen, beside the largest
KEPT = 24  # boostings in memory: two kinds in ten folds, and some
Boost = Callable[[int], Any]  # number of stages -> unfitted boosting


def adaboost(n_stages: int) -> Any:
    return AdaBoostM1Classifier(GaussianNB(), n_stages, resample=True, restart=True, random_state=SEED)


def weightboost(n_stages: int) -> Any:
    return WeightBoostClassifier(GaussianNB(), n_stages, resample=True, random_state=SEED)


def digest(*arrays: np.ndarray) -> str:
    """The same for the same rows."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()


@dataclass(frozen=True)
class StageOutputs:
    """The outputs of the stages of one boosting on its training rows, and on others."""

    X: Array  # (n, d)
    y: np.ndarray  # (n,)
    boosting: Any  # fitted to all of them
    make: Callable[[], Any]  # the same, not fitted
    asked: dict[str, Any] = field(default_factory=dict)  # answers by the rows they are about

    @property
    def classes(self) -> np.ndarray:
        return self.boosting.classes_

    @cached_property
    def train(self) -> Array:
        """(M, n, C) of the rows they were trained on."""
        return self.boosting.stage_proba(self.X)

    @cached_property
    def folds(self) -> list[Fold]:
        """Those that MaxEntStackingClassifier(cv=5) takes itself."""
        seed = int(np.random.RandomState(SEED).randint(2**31 - 1))
        return label_folds(np.searchsorted(self.classes, self.y), np.full(len(self.y), True), seed, INNER)

    @cached_property
    def held(self) -> Array:
        """(M, n, C) by stages that have not seen the row; NaN where a fold had fewer of them."""
        out = np.full(self.train.shape, np.nan)
        for train, held in self.folds:
            proba = self.make().fit(self.X[train], self.y[train]).stage_proba(self.X[held])[: len(out)]
            out[: len(proba), held] = proba
        return out

    def of(self, X: Array) -> Array:
        """(M, m, C) of other rows."""
        return self._kept("stages", X, lambda: self.boosting.stage_proba(X))

    def votes(self, X: Array) -> list[Array]:
        """Its own probabilities (m, C) after every stage."""
        return self._kept("votes", X, lambda: [p.copy() for p in self.boosting.staged_predict_proba(X)])

    def _kept(self, what: str, X: Array, answer: Callable[[], Any]) -> Any:
        key = what + digest(X)
        if key not in self.asked:
            self.asked[key] = answer()
        return self.asked[key]


_RECENT: OrderedDict[tuple, StageOutputs] = OrderedDict()


def stage_outputs(boost: Boost, X: Array, y: np.ndarray, n_stages: int) -> StageOutputs:
    """The boosting of these rows; the last few are kept, since one method after the other asks for them."""
    key = boost, n_stages, digest(X, np.searchsorted(np.unique(y), y))
    if key not in _RECENT:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a base that is no better than chance
            _RECENT[key] = StageOutputs(X, y, boost(n_stages).fit(X, y), lambda: boost(n_stages))
    _RECENT.move_to_end(key)
    while len(_RECENT) > KEPT:
        _RECENT.popitem(last=False)
    return _RECENT[key]


class Combiner(ABC):
    """A rule that combines stages, fitted at every ensemble size; the largest is used by `predict_proba`.

    A boosting that ended early has one answer for all sizes beyond its end.
    """

    def __init__(self, boost: Boost, sizes: Sequence[int] = SIZES) -> None:
        self.boost, self.sizes = boost, tuple(sizes)

    def fit(self, X: Array, y: np.ndarray) -> Combiner:
        self.outputs = stage_outputs(self.boost, X, y, max(self.sizes))
        self.classes_ = self.outputs.classes
        self.models: dict[int, Any] = {}
        for m in sorted(set(map(self.reached, self.sizes)), reverse=True):
            self.models[m] = self.combine(m)
        self._about: tuple[str, dict[int, Array]] = ("", {})
        return self

    @property
    def n_stages(self) -> int:
        return len(self.outputs.train)

    def reached(self, size: int) -> int:
        """Stages there are of so many."""
        return min(size, self.n_stages)

    @abstractmethod
    def combine(self, m: int) -> Any:
        """The rule for the first m stages."""

    @abstractmethod
    def probabilities(self, m: int, X: Array) -> Array:
        """(n, C) by that rule."""

    def at(self, size: int, X: Array) -> Array:
        """Probabilities at an ensemble size."""
        key, m = digest(X), self.reached(size)
        if self._about[0] != key:
            self._about = key, {}
        known = self._about[1]
        if m not in known:
            known[m] = self.probabilities(m, X)
        return known[m]

    def predict_proba(self, X: Array) -> Array:
        return self.at(max(self.sizes), X)

    def error(self, size: int, X: Array, y: np.ndarray) -> float | None:
        """In %; None at a size that was not asked for."""
        if size not in self.sizes:
            return None
        return 100.0 * float(np.mean(self.classes_[self.at(size, X).argmax(axis=1)] != y))


class Votes(Combiner):
    """The boosting's own vote."""

    def combine(self, m: int) -> None:
        return None

    def probabilities(self, m: int, X: Array) -> Array:
        return self.outputs.votes(X)[m - 1]


class Peer(Combiner):
    """scikit-learn's AdaBoost of the same base, on weights instead of drawn rows; its stages are its own."""

    def __init__(self, sizes: Sequence[int] = SIZES) -> None:
        super().__init__(adaboost, sizes)

    def fit(self, X: Array, y: np.ndarray) -> Combiner:
        self.model = AdaBoostClassifier(GaussianNB(), n_estimators=max(self.sizes), random_state=SEED).fit(X, y)
        self.classes_, self._about = self.model.classes_, ("", {})
        return self

    @property
    def n_stages(self) -> int:
        return len(self.model.estimators_)

    def combine(self, m: int) -> None:
        return None

    def probabilities(self, m: int, X: Array) -> Array:
        return next(p for i, p in enumerate(self.model.staged_predict_proba(X)) if i == m - 1)


class OnOutputs(Combiner):
    """A classifier of scikit-learn on the N_c N_e probabilities, of the training rows or (`held`) of rows not seen."""

    def __init__(self, boost: Boost, model: Callable[[], Any], *, held: bool, sizes: Sequence[int] = SIZES) -> None:
        super().__init__(boost, sizes)
        self.model, self.held = model, held

    def combine(self, m: int) -> Any:
        known = self.outputs.held if self.held else self.outputs.train
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged
            return self.model().fit(flat(known[:m]), self.outputs.y)

    def probabilities(self, m: int, X: Array) -> Array:
        model, inputs = self.models[m], flat(self.outputs.of(X)[:m])
        if hasattr(model, "predict_proba"):
            return model.predict_proba(inputs)
        return np.eye(len(self.classes_))[np.searchsorted(self.classes_, model.predict(inputs))]


def flat(proba: Array) -> Array:
    """(M, n, C) as columns (n, M C), of two classes the second alone as in StackingClassifier; a missing value is 0."""
    n_classes = proba.shape[2]
    even = np.where(np.isnan(proba), 1 / n_classes, proba)
    kept = even[:, :, 1:] if n_classes == 2 else even
    return np.ascontiguousarray(kept.transpose(1, 0, 2)).reshape(len(kept[0]), -1)


class Stack(Combiner):
    """A stacking classifier of mixent: the stages are columns beside the table's own.

    With `held` the columns of the training rows are outputs of stages that have not seen them, and the folds are the
    same, so that nothing else has seen them either; this is the classifier with cv=5. Else it is that with cv="train".
    A prior is chosen for the largest size, and for those of at most `OWN_PRIOR` stages; others take the largest's.
    """

    def __init__(
        self, boost: Boost, stack: Callable[..., Any], *, held: bool, sizes: Sequence[int] = SIZES, **options: Any
    ) -> None:
        super().__init__(boost, sizes)
        self.stack, self.held, self.options = stack, held, options

    def combine(self, m: int) -> Any:
        known, n_columns = self.outputs, self.outputs.X.shape[1]
        proba, cv = (known.held, known.folds) if self.held else (known.train, "train")
        C, m = (
            len(self.classes_),
            min(m, int(np.sum(~np.isnan(proba).all(axis=(1, 2))))),
        )  # those that no fold has: none
        at = [list(range(n_columns + C * i, n_columns + C * (i + 1))) for i in range(m)]
        bases = [(f"stage {i + 1}", Columns(columns)) for i, columns in enumerate(at)]
        model = self.stack(bases, cv=cv, random_state=SEED, n_jobs=1, **self.options)
        largest = max(self.models, default=0)
        if OWN_PRIOR < m < largest and hasattr(self.models[largest], "prior_variance_"):
            model.set_params(prior_variance=self.models[largest].prior_variance_)
        with mock.patch("mixent.ensemble.maxent_stacking.fit_regions", remembered_regions):
            return model.fit(beside(known.X, proba[:m]), known.y)

    def probabilities(self, m: int, X: Array) -> Array:
        model = self.models[m]
        return model.predict_proba(beside(X, self.outputs.of(X)[: len(model.base_names_)]))

    @property
    def cells(self) -> Any:
        """Of the input space, at the largest size; None without."""
        result = getattr(self.models[self.reached(max(self.sizes))], "regions_", ())
        return result[0] if result else None


class Columns(OutputColumns):
    """The same, for a table of numbers that are known to be probabilities: they need no check of each."""

    def predict_proba(self, X: Array) -> Array:
        return X[:, self.columns]


_CELLS: OrderedDict[str, Any] = OrderedDict()


def remembered_regions(X: Inputs, y: np.ndarray, weight: Any, columns: tuple, kind: str, options: dict) -> Any:
    """The mixtures of the input are the same for every boosting and size, and are learned once."""
    key = f"{kind} {options}" + digest(X.given(columns), np.searchsorted(np.unique(y), y))
    if key not in _CELLS:
        _CELLS[key] = fit_regions(X, y, weight, columns, kind, options)
        while len(_CELLS) > KEPT:
            _CELLS.popitem(last=False)
    return _CELLS[key]


def beside(X: Array, proba: Array) -> Array:
    """The table, and behind it the outputs of each stage."""
    return np.hstack([X, *proba])


def sime(boost: Boost, *, held: bool, sizes: Sequence[int] = SIZES) -> Stack:
    return Stack(boost, MaxEntStackingClassifier, held=held, sizes=sizes)


def lvme(boost: Boost, *, held: bool, sizes: Sequence[int] = SIZES, regions: str = "union") -> Stack:
    return Stack(boost, MaxEntStackingClassifier, held=held, sizes=sizes, regions=regions)


def hmm(boost: Boost, *, held: bool, sizes: Sequence[int] = SIZES) -> Stack:
    """With training outputs all else as the document has it, too."""
    document = {"start": "uniform", "transition_smoothing": 0.0, "calibration": None, "tol": 1e-4}
    return Stack(boost, HMMStackingClassifier, held=held, sizes=sizes, **({} if held else document))
