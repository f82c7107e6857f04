"""Cross-validation of several classifiers on the same folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from mixent.base.delegation import weight_argument, weight_arguments
from mixent.base.labels import as_labels, classes_of, encode, key, labelled_rows, plain_dtype
from mixent.evaluate.records import Recorded
from mixent.evaluate.scores import METRICS, _weights, score_table
from mixent.evaluate.text import without_rounding

Progress = Callable[[int, int, str], None]
# metric, factor and decimals of the short table
SHOWN = (("error", 100, 1), ("log_loss", 1, 3), ("brier", 1, 3), ("calibration", 100, 1), ("fit_seconds", 1, 2))


@dataclass(frozen=True, repr=False)
class CrossValidation(Recorded):
    """What a cross-validation found.

    `records` has one dict per method, repeat and fold: method, repeat, fold, n_train and n_test (rows with a label),
    the scores, fit_seconds, predict_seconds, labelled_only (the method could not use rows without a label) and failed
    (None, or the error).
    """

    records: list[dict[str, Any]]
    proba: dict[str, np.ndarray]  # method: (n, C) out-of-fold probabilities of the first repeat; NaN where never scored
    classes: np.ndarray  # (C,)
    y: np.ndarray  # (n,) as given
    folds: np.ndarray  # (repeats, n) the fold that scores each row; -1 = always in training, never scored
    sample_weight: np.ndarray | None = None
    random_state: Any = None  # as given

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order given."""
        return list(dict.fromkeys(record["method"] for record in self.records))

    def values(self, method: str, metric: str) -> np.ndarray:
        """The metric of a method in every repeat and fold; NaN where it failed."""
        return self._column(method, metric)

    def summary(self) -> list[dict[str, Any]]:
        """One dict per method and metric: method, metric, mean, sd (over the folds that worked), folds (how many)."""
        rows = []
        for method in self.methods:
            for metric in (*METRICS, "fit_seconds", "predict_seconds"):
                values = self.values(method, metric)
                values = values[np.isfinite(values)]
                mean = float(values.mean()) if len(values) else float("nan")
                sd = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
                rows.append({"method": method, "metric": metric, "mean": mean, "sd": sd, "folds": len(values)})
        return rows

    def ranking(self, metric: str = "log_loss") -> list[str]:
        """Methods that worked in every fold, the best (lowest mean) first."""
        means = {method: self.values(method, metric).mean() for method in self.methods}
        return sorted((m for m in means if np.isfinite(means[m])), key=lambda m: means[m])

    def __repr__(self) -> str:
        repeats, folds = len(self.folds), int(self.folds.max()) + 1
        return f"CrossValidation({len(self.methods)} methods, {folds} folds, {repeats} repeats, {len(self.y)} rows)"

    def __str__(self) -> str:
        """Means over the folds, the best first."""
        means = {(s["method"], s["metric"]): s["mean"] for s in self.summary()}
        lines = ["method                       error %  log-loss     Brier  calib. %     fit s"]
        for method in [*self.ranking(), *(m for m in self.methods if m not in self.ranking())]:
            cells = [factor * means[method, metric] for metric, factor, _ in SHOWN]
            told = [f"{v:.{d}f}" if np.isfinite(v) else "failed" for v, (_, _, d) in zip(cells, SHOWN)]
            lines.append(f"{method:<26}" + "".join(f"{cell:>10}" for cell in told))
        return "\n".join(lines)

    def difference(self, a: str, b: str, metric: str = "log_loss") -> dict[str, float]:
        """Mean of metric(a) - metric(b) over the folds, its standard error and two-sided p-value.

        Folds share training rows, so the plain standard error is too small; this one has the factor
        1/J + n_test/n_train of Nadeau and Bengio (2003) on the variance, with J - 1 degrees of freedom; see
        `corrected_t_test`.
        """
        from mixent.evaluate.paired import corrected_t_test  # which cross-validates itself

        strange = [name for name in (a, b) if name not in self.methods]
        if strange:
            raise ValueError(f"there is no method {strange[0]!r}; there are {', '.join(map(repr, self.methods))}")
        first, second = self.values(a, metric), self.values(b, metric)
        both = np.isfinite(first) & np.isfinite(second)
        gap = without_rounding((first - second)[both], first[both], second[both])
        if len(gap) < 2:
            mean = float(gap.mean()) if len(gap) else float("nan")
            return {"mean": mean, "se": float("nan"), "p_value": float("nan")}
        found = corrected_t_test(gap, float(np.mean([r["n_test"] / r["n_train"] for r in self.records])))
        return {"mean": found.mean, "se": found.std_error, "p_value": found.p_value}


def cross_validate(
    estimators: Any,
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    repeats: int = 1,
    random_state: Any = 0,
    sample_weight: Any = None,
    progress: Progress | None = None,
) -> CrossValidation:
    """Score classifiers by repeated stratified cross-validation, all on the same folds.

    Parameters
    ----------
    estimators : classifier, or dict of name to classifier
        One alone is called by the name of its class. Each is cloned for every fold. One that raises is recorded as
        failed, with its message; only if all fail in every fold is that an error.
    X : array or DataFrame (n, d)
    y : (n,) labels
        Rows without a label (None, NaN, blank) are always in training and never scored. An estimator that refuses them
        is fitted on the labelled rows alone.
    folds, repeats : int
        A class with fewer rows than folds is missing from some test folds; a class with one row stays in training
        always and is not scored. Both are warned about.
    random_state : int or RandomState
        Shuffles rows into folds.
    sample_weight : (n,) weights for fitting and scoring, optional
        An estimator that takes none is fitted without, with a warning; the scores are weighted all the same.
    progress : callable(done, total, text), optional

    Returns
    -------
    CrossValidation
    """
    estimators = _by_name(estimators)
    y = as_labels(y)
    if _num_samples(X) != len(y):
        raise ValueError(f"X has {_num_samples(X)} rows, y has {len(y)}")
    weight = None if sample_weight is None else _weights(sample_weight, len(y))
    fold_of = stratified_folds(y, folds=folds, repeats=repeats, random_state=random_state)
    data = FoldData(X, y, classes_of(y), weight, labelled_rows(y))
    jobs = [(r, f, name) for r in range(repeats) for f in range(folds) for name in estimators]
    proba = {name: np.full((len(y), len(data.classes)), np.nan) for name in estimators}
    records, report = [], progress or (lambda done, total, text: None)
    for name, estimator in estimators.items():
        if weight is not None and weight_argument(estimator) is None:
            warnings.warn(f"{name} takes no sample_weight: it is fitted without; its scores are weighted", stacklevel=2)
    for done, (repeat, fold, name) in enumerate(jobs):
        report(done, len(jobs), f"{name}, fold {fold + 1} of {folds}" + f", repeat {repeat + 1}" * (repeats > 1))
        test = np.flatnonzero(fold_of[repeat] == fold)
        train = np.flatnonzero(fold_of[repeat] != fold)
        scores, predicted = score_fold(estimators[name], data, train, test)
        records.append({"method": name, "repeat": repeat, "fold": fold, **scores})
        if repeat == 0 and predicted is not None:
            proba[name][test] = predicted
    report(len(jobs), len(jobs), "done")
    records.sort(key=lambda r: list(estimators).index(r["method"]))  # stable: repeat and fold stay in order
    found = CrossValidation(records, proba, data.classes, y, fold_of, weight, random_state)
    if all(record["failed"] for record in records):
        told = "; ".join(f"{name}: {message}" for name, message in found.failures.items())
        raise RuntimeError(f"every method failed in every fold. {told}")
    return found


def _by_name(estimators: Any) -> Mapping[str, Any]:
    if not isinstance(estimators, Mapping):
        if not hasattr(estimators, "fit") or isinstance(estimators, type):
            what = estimators.__name__ if isinstance(estimators, type) else type(estimators).__name__
            kind = "the class " if isinstance(estimators, type) else "a "
            raise TypeError(f"estimators must be a classifier, or a dict of name to classifier; got {kind}{what}")
        return {type(estimators).__name__: estimators}
    if not estimators:
        raise ValueError("estimators is empty; pass a classifier, or a dict of name to classifier")
    return estimators


def stratified_folds(y: Any, *, folds: int = 5, repeats: int = 1, random_state: Any = 0) -> np.ndarray:
    """Fold that scores each row, (repeats, n); -1 for rows that are never scored (no label, or alone in their class).

    Inside a class the shuffled rows are dealt to the folds in turn, the next class going on where the last one stopped:
    sizes of folds differ by one row at most, and a class with m < folds rows is in m different folds.
    """
    if folds < 2 or repeats < 1:
        raise ValueError(f"folds must be at least 2 and repeats at least 1; got folds={folds}, repeats={repeats}")
    y, rng = as_labels(y), check_random_state(random_state)
    known, classes = np.flatnonzero(labelled_rows(y)), classes_of(y)
    codes = encode(plain_dtype(y[known]), classes)
    members = [known[codes == c] for c in range(len(classes))]
    _warn_small([str(key(c)) for c in classes], [len(rows) for rows in members], folds)
    members = [rows for rows in members if len(rows) > 1]
    if sum(map(len, members)) < folds:
        raise ValueError(f"{folds} folds need at least {folds} rows in classes of two rows or more; lower folds")
    found = np.full((repeats, len(y)), -1)
    for assigned in found:
        dealt = np.concatenate([rng.permutation(rows) for rows in members])
        assigned[dealt] = np.arange(len(dealt)) % folds
    return found


@dataclass(frozen=True)
class FoldData:
    """A table with its labels, from which folds are taken."""

    X: Any
    y: np.ndarray
    classes: np.ndarray
    weight: np.ndarray | None
    known: np.ndarray  # mask of labelled rows


def _warn_small(names: list[str], sizes: list[int], folds: int) -> None:
    alone = [name for name, size in zip(names, sizes) if size == 1]
    small = [f"{name} ({size})" for name, size in zip(names, sizes) if 1 < size < folds]
    if alone:
        warnings.warn(
            f"classes with one row stay in training and are never scored: {_some(alone)}; add rows, or merge",
            stacklevel=4,
        )
    if small:
        warnings.warn(
            f"classes with fewer rows than the {folds} folds are missing from some test folds: {_some(small)}; "
            "lower folds, or raise repeats",
            stacklevel=4,
        )


def _some(names: list[str], most: int = 10) -> str:
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")


def score_fold(estimator: Any, data: FoldData, train: np.ndarray, test: np.ndarray) -> tuple[dict, np.ndarray | None]:
    """Scores and probabilities of one method in one fold, or how it failed."""
    size = {"n_train": int(data.known[train].sum()), "n_test": len(test)}
    try:
        model, fit_seconds, labelled_only = fit_rows(estimator, data, train)
        began = time.perf_counter()
        proba = aligned_proba(model, _safe_indexing(data.X, test), data.classes)
        predict_seconds = time.perf_counter() - began
        weight = None if data.weight is None else data.weight[test]
        scores = score_table(data.y[test], proba, data.classes, weight)
    except Exception as error:  # one method's trouble must not lose the others' results
        nan = dict.fromkeys((*METRICS, "fit_seconds", "predict_seconds"), float("nan"))
        return {**size, **nan, "labelled_only": False, "failed": f"{type(error).__name__}: {error}"}, None
    seconds = {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
    return {**size, **scores, **seconds, "labelled_only": labelled_only, "failed": None}, proba


def fit_rows(estimator: Any, data: FoldData, train: np.ndarray) -> tuple[Any, float, bool]:
    """The fitted clone, its seconds, and whether it had to do without the unlabelled rows."""
    trouble = None
    for rows in _training_sets(data, train):
        model, began = clone(estimator), time.perf_counter()
        y = data.y[rows]
        fit_args = weight_arguments(model, None if data.weight is None else data.weight[rows])
        known = data.known[rows]
        y = plain_dtype(y) if known.all() else _marked_absent(y, known)
        try:
            model.fit(_safe_indexing(data.X, rows), y, **fit_args)
            if not labelled_rows(model.classes_).all():
                raise ValueError("absent labels were taken for a class")
        except Exception as error:
            trouble = error
            continue
        return model, time.perf_counter() - began, len(rows) < len(train)
    assert trouble is not None
    raise trouble


def _training_sets(data: FoldData, train: np.ndarray) -> Iterator[np.ndarray]:
    yield train
    if not data.known[train].all():
        yield train[data.known[train]]


def _marked_absent(y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Absent labels as NaN among numbers, as None among other labels: never as a blank that could pass for a class."""
    if y.dtype.kind == "f":
        return y
    return np.array([value if has else None for value, has in zip(y, known)], dtype=object)


def aligned_proba(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """`model.predict_proba(X)` with columns in the order of `classes`; 0 for classes the model has not seen."""
    if not hasattr(model, "predict_proba"):
        raise TypeError(f"{type(model).__name__} has no predict_proba; wrap it in sklearn's CalibratedClassifierCV")
    given = np.asarray(model.predict_proba(X), dtype=float)
    column = {key(label): j for j, label in enumerate(classes)}
    proba = np.zeros((len(given), len(classes)))
    proba[:, [column[key(label)] for label in model.classes_]] = given
    return proba
