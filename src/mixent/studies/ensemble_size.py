"""Scores by ensemble size, several methods on common folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from mixent.base.labels import as_labels, classes_of, labelled_rows
from mixent.base.params import check_count
from mixent.base.style import Short
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.records import Recorded, check_asked
from mixent.evaluate.scores import METRICS, _weights, score_table
from mixent.evaluate.text import WORDS, without_rounding
from mixent.evaluate.validate import FoldData, Progress, aligned_proba, fit_rows, stratified_folds

SHOWN = ("error", "log_loss")


@dataclass(frozen=True, repr=False)
class SizeCurves(Recorded, Short):
    """Scores of methods by ensemble size; `str()` is a table.

    `records` has one dict per method, repeat, fold and size: method, repeat, fold, size, reached (the stages there
    were: fewer than size where the ensemble stopped early), the scores, fit_seconds, staged (read from the one fit of
    the largest size) and failed (None, or the error).
    """

    records: list[dict[str, Any]]
    sizes: np.ndarray  # (S,) increasing
    methods: list[str]
    test_ratio: float  # test rows for each training row

    def values(self, method: str, metric: str = "error") -> np.ndarray:
        """(J, S) the metric in every fold of every repeat, by size; NaN where the method failed."""
        check_asked(method, self.methods, metric, METRICS)
        return self._column(method, metric).reshape(-1, len(self.sizes))

    def mean(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) mean over the folds."""
        return self.values(method, metric).mean(axis=0)

    def std_error(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) standard error of the mean; it accounts for the rows that folds share, see `corrected_t_test`."""
        values = self.values(method, metric)
        return np.sqrt((1 / len(values) + self.test_ratio) * values.var(axis=0, ddof=1))

    def difference(self, a: str, b: str, *, size: int, metric: str = "error", confidence: float = 0.95) -> TTest:
        """Paired difference of two methods at one size: folds are common, so it is surer than two bands are.

        Parameters
        ----------
        a, b : str
        size : int
            One of `sizes`.
        metric : str
        confidence : float
            Of the interval.
        """
        if size not in self.sizes:
            raise ValueError(f"size must be one of {self.sizes.tolist()}; got {size!r}")
        for name in (a, b):
            if name in self.failures:
                raise ValueError(f"{name} failed in some folds, so there is no test. First: {self.failures[name]}")
        at = int(np.searchsorted(self.sizes, size))
        first, second = (self.values(name, metric)[:, at] for name in (a, b))
        means = float(first.mean()), float(second.mean())
        gap = without_rounding(first - second, first, second)
        return corrected_t_test(gap, self.test_ratio, confidence=confidence, names=(a, b), metric=metric, scores=means)

    def __str__(self) -> str:
        n_folds = len(self.records) // (len(self.methods) * len(self.sizes))
        blocks = [_table(self, metric) for metric in SHOWN]
        said = f"Mean over {n_folds} folds by ensemble size (standard error)"
        failed = [f"{name} failed: {message}" for name, message in self.failures.items()]
        return "\n".join([said, *blocks, *failed])


def size_curves(
    makers: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    sizes: Sequence[int],
    folds: int = 10,
    repeats: int = 1,
    random_state: Any = 0,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> SizeCurves:
    """Cross-validated scores of ensembles of several sizes, all methods on the same folds.

    An estimator that has `staged_predict_proba` (scikit-learn's AdaBoostClassifier and GradientBoostingClassifier do)
    is fitted once, at the largest size, and read after each of the sizes; beyond the stage at which it stopped early it
    keeps its last value. This holds where its first stages do not depend on how many follow; so it is done only if
    the makers of all sizes differ in the size and nothing else. Others are fitted anew at each size.

    Parameters
    ----------
    makers : dict of name to maker
        A maker is an unfitted classifier that has an `n_estimators` (alone or as the last step of a pipeline), or a
        callable that takes a size and returns an unfitted classifier. One that raises is recorded as failed.
    X : array or DataFrame (n, d)
    y : (n,) labels
        Rows without a label are always in training and never scored.
    sizes : list of int
    folds, repeats : int
    random_state : int or RandomState
        Shuffles rows into folds. Makers have their own.
    sample_weight : (n,) weights for fitting and scoring, optional
    progress : callable(done, total, text), optional

    Returns
    -------
    SizeCurves

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
    >>> from mixent.studies import size_curves
    >>> X, y = load_iris(return_X_y=True)
    >>> makers = {"boosted": AdaBoostClassifier(random_state=0), "forest": RandomForestClassifier(random_state=0)}
    >>> curves = size_curves(makers, X, y, sizes=[2, 5, 10], folds=3)
    >>> curves.values("boosted", "error").shape
    (3, 3)
    """
    made, steps = _made(makers, sizes)
    y = as_labels(y)
    if _num_samples(X) != len(y):
        raise ValueError(f"X has {_num_samples(X)} rows, y has {len(y)}")
    weight = None if sample_weight is None else _weights(sample_weight, len(y))
    fold_of = stratified_folds(y, folds=folds, repeats=repeats, random_state=random_state)
    data = FoldData(X, y, classes_of(y), weight, labelled_rows(y))
    jobs = [(name, repeat, fold) for repeat in range(repeats) for fold in range(folds) for name in made]
    records, ratios, report = [], [], progress or (lambda done, total, text: None)
    for done, (name, repeat, fold) in enumerate(jobs):
        report(done, len(jobs), f"{name}, fold {fold + 1} of {folds}" + f", repeat {repeat + 1}" * (repeats > 1))
        test, train = (np.flatnonzero(side) for side in (fold_of[repeat] == fold, fold_of[repeat] != fold))
        ratios.append(len(test) / max(int(data.known[train].sum()), 1))  # rows without a label are no sample
        found = _one_fold(made[name], steps, data, train, test)
        records += [{"method": name, "repeat": repeat, "fold": fold, **record} for record in found]
    report(len(jobs), len(jobs), "done")
    records.sort(key=lambda record: list(made).index(record["method"]))  # stable
    curves = SizeCurves(records, np.array(steps), list(made), float(np.mean(ratios)))
    if all(record["failed"] for record in records):
        told = "; ".join(f"{name}: {message}" for name, message in curves.failures.items())
        raise RuntimeError(f"every method failed in every fold. {told}")
    return curves


def _made(makers: Any, sizes: Any) -> tuple[dict[str, Callable[[int], Any]], list[int]]:
    """Name to function of a size; sizes, sorted."""
    if not isinstance(makers, Mapping) or not makers:
        raise ValueError(f"makers must be a dict of name to maker; got {makers!r}")
    steps = sorted({check_count("each of sizes", size) for size in sizes})
    if not steps:
        raise ValueError("sizes is empty; give the numbers of estimators to look at, such as [10, 20, 50]")
    return {str(name): _maker(str(name), maker) for name, maker in makers.items()}, steps


def _maker(name: str, maker: Any) -> Callable[[int], Any]:
    if isinstance(maker, type):
        raise TypeError(f"{name!r} is the class {maker.__name__}; give an instance, or a callable of a size")
    if not hasattr(maker, "get_params"):
        if not callable(maker):
            raise TypeError(f"{name!r} must be a classifier with n_estimators, or a callable of a size; got {maker!r}")
        return maker
    last = f"{maker.steps[-1][0]}__n_estimators" if hasattr(maker, "steps") else "n_estimators"
    if last not in maker.get_params():
        raise TypeError(
            f"{name!r} is a {type(maker).__name__} and has no {last}; give a callable of a size, such as "
            "lambda size: Ensemble(n_members=size)"
        )
    return lambda size: clone(maker).set_params(**{last: size})


def _one_fold(make: Callable, sizes: list[int], data: FoldData, train: np.ndarray, test: np.ndarray) -> list[dict]:
    """A record for each size."""
    rows, records = _safe_indexing(data.X, test), []
    weight = None if data.weight is None else data.weight[test]
    try:
        for proba, about in _by_size(make, sizes, data, train, rows):
            records.append({**about, **score_table(data.y[test], proba, data.classes, weight), "failed": None})
    except Exception as error:  # one method's trouble must not lose the others' results
        nan = dict.fromkeys((*METRICS, "fit_seconds"), float("nan"))
        told = f"{type(error).__name__}: {error}"
        for size in sizes[len(records) :]:
            records.append({"size": size, "reached": 0, "staged": False, **nan, "failed": told})
    return records


def _by_size(make: Callable, sizes: list[int], data: FoldData, train: np.ndarray, rows: Any) -> Iterator[tuple]:
    """Probabilities of the test rows at each size, and how they came about."""
    if _same_but_for_size(make, sizes) and hasattr(make(sizes[-1]), "staged_predict_proba"):
        model, seconds, _ = fit_rows(make(sizes[-1]), data, train)
        yield from _staged(model, sizes, data, rows, seconds)
        return
    for size in sizes:
        model, seconds, _ = fit_rows(make(size), data, train)
        about = {"size": size, "reached": size, "staged": False, "fit_seconds": seconds}
        yield aligned_proba(model, rows, data.classes), about


def _staged(model: Any, sizes: list[int], data: FoldData, rows: Any, seconds: float) -> Iterator[tuple]:
    """Read after each of the sizes; where there are fewer stages, after the last."""
    left, stage, proba = list(sizes), 0, None
    for stage, proba in enumerate(model.staged_predict_proba(rows), 1):
        if stage == left[0]:
            about = {"size": left.pop(0), "reached": stage, "staged": True, "fit_seconds": seconds}
            yield _aligned(model, proba, data.classes), about
        if not left:
            return
    for size in left:
        about = {"size": size, "reached": stage, "staged": True, "fit_seconds": seconds}
        yield _aligned(model, proba, data.classes), about


def _same_but_for_size(make: Callable, sizes: list[int]) -> bool:
    """Whether ensembles of the sizes have the same options but for one, and that is the size."""
    largest = make(sizes[-1])
    if len(sizes) == 1 or not hasattr(largest, "get_params"):
        return len(sizes) == 1
    wanted = largest.get_params()
    for size in sizes[:-1]:
        other = make(size)
        given = other.get_params()
        if type(other) is not type(largest) or set(given) != set(wanted):
            return False
        differ = [name for name in wanted if repr(given[name]) != repr(wanted[name])]
        if [(given[name], wanted[name]) for name in differ] != [(size, sizes[-1])]:
            return False
    return True


@dataclass(frozen=True)
class _Read:
    """Probabilities already there, as a model would give them."""

    classes_: np.ndarray
    proba: np.ndarray

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.proba


def _aligned(model: Any, proba: Any, classes: np.ndarray) -> np.ndarray:
    if proba is None:
        raise ValueError(f"{type(model).__name__}.staged_predict_proba gave no stage")
    return aligned_proba(_Read(model.classes_, proba), None, classes)


def _table(curves: SizeCurves, metric: str) -> str:
    word, factor, unit, _ = WORDS[metric]
    digits = 2 if factor == 100 else 3
    wide = max(len(name) for name in curves.methods)
    head = f"{word + (', ' + unit.strip() if unit else ''):<{wide}}"
    lines = [[head, *(f"{size}" for size in curves.sizes)]]
    for name in curves.methods:
        cells = zip(factor * curves.mean(name, metric), factor * curves.std_error(name, metric))
        lines.append([f"{name:<{wide}}", *(f"{mean:.{digits}f} ({se:.{digits}f})" for mean, se in cells)])
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines
    )
