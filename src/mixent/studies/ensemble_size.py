"""Cross-validated scores by ensemble size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from mixent.base.delegation import aligned, aligned_proba, has_stages
from mixent.base.document import Bullets, Content, Number, Table
from mixent.base.folds import assign_folds
from mixent.base.params import check_count, check_workers
from mixent.base.result import Records, Result
from mixent.evaluate.cross_validation import Progress, failure, fit_rows, shown
from mixent.evaluate.journal import Journal, fingerprint, settings_of
from mixent.evaluate.paired import TTest, corrected_t_test
from mixent.evaluate.records import Recorded, check_asked
from mixent.evaluate.runner import Method, Runner, Split, splits_of
from mixent.evaluate.samples import Samples, read_samples
from mixent.evaluate.scores import METRICS, check_proba, scores_of
from mixent.evaluate.text import WORDS, without_rounding

Maker = Callable[[int], Any]  # size -> unfitted classifier
SHOWN = ("error", "log_loss")


@dataclass(frozen=True, repr=False)
class SizeCurves(Result, Recorded):
    """Scores of methods by ensemble size; `str()` is a table.

    `records` has one dict per method, repeat, fold and size: method, repeat, fold, size, reached (the number of stages,
    which is smaller than size if the ensemble stopped early), the scores, fit_seconds, staged (whether the scores come
    from one fit of the largest size) and failed (None, or the error).
    """

    _title = "Scores by ensemble size"
    _shown = ("methods", "sizes")

    records: list[dict[str, Any]]
    sizes: np.ndarray  # (S,) increasing
    methods: list[str]
    test_ratio: float  # number of test rows per training row

    def values(self, method: str, metric: str = "error") -> np.ndarray:
        """(J, S) the metric in every fold of every repeat, by size; NaN if the method failed."""
        check_asked(method, self.methods, metric, METRICS)
        return self._column(method, metric).reshape(-1, len(self.sizes))

    def mean(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) mean over the folds."""
        return self.values(method, metric).mean(axis=0)

    def std_error(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) standard error of the mean, corrected for the overlap of training folds; see `corrected_t_test`."""
        values = self.values(method, metric)
        return np.sqrt((1 / len(values) + self.test_ratio) * values.var(axis=0, ddof=1))

    def difference(self, a: str, b: str, *, size: int, metric: str = "error", confidence: float = 0.95) -> TTest:
        """Corrected t test of two methods at one size, on the common folds.

        Parameters
        ----------
        a, b : str
            Names of the methods.
        size : int
            One of `sizes`.
        metric : str
        confidence : float
            Confidence level of the interval.
        """
        if size not in self.sizes:
            raise ValueError(f"size must be one of {self.sizes.tolist()}; got {size!r}")
        for name in (a, b):
            if name in self.failures:
                raise ValueError(
                    f"{name} failed in some folds and cannot be tested; first error: {self.failures[name]}"
                )
        column = int(np.searchsorted(self.sizes, size))
        first, second = (self.values(name, metric)[:, column] for name in (a, b))
        scores = float(first.mean()), float(second.mean())
        difference = without_rounding(first - second, first, second)
        options: dict[str, Any] = {"confidence": confidence, "names": (a, b), "metric": metric, "scores": scores}
        return corrected_t_test(difference, self.test_ratio, **options)

    def frame(self) -> Any:
        """Means as a pandas DataFrame: a row for each method and size, with mean and standard error of every score."""
        rows: list[dict[str, Any]] = []
        for name in self.methods:
            scores = {metric: (self.mean(name, metric), self.std_error(name, metric)) for metric in METRICS}
            for s, size in enumerate(self.sizes.tolist()):
                row: dict[str, Any] = {"method": name, "size": size}
                for metric, (mean, std_error) in scores.items():
                    row |= {metric: float(mean[s]), f"{metric}_se": float(std_error[s])}
                rows.append(row)
        return Records(rows).frame()

    def _content(self) -> list[Content]:
        blocks: list[Content] = [_document_table(self, metric) for metric in SHOWN]
        failed = [f"{name} failed: {message}" for name, message in self.failures.items()]
        return [*blocks, *([Bullets(failed)] if failed else [])]

    def __str__(self) -> str:
        n_folds = len(self.records) // (len(self.methods) * len(self.sizes))
        blocks = [_table(self, metric) for metric in SHOWN]
        title = f"Mean over {n_folds} folds by ensemble size (standard error)"
        failed = [f"{name} failed: {message}" for name, message in self.failures.items()]
        return "\n".join([title, *blocks, *failed])


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
    journal: str | Path | None = None,
    n_jobs: int | None = 1,
    progress: Progress | None = None,
) -> SizeCurves:
    """Cross-validated scores of ensembles of several sizes, with the same folds for all methods.

    An estimator with `staged_predict_proba` (such as AdaBoostClassifier and GradientBoostingClassifier of scikit-learn)
    is fitted once, with the largest size, and scored at each of the sizes; if it stopped early, larger sizes have its
    last score. This requires that the estimators of different sizes differ in the size only. Other estimators are
    fitted once for each size.

    Parameters
    ----------
    makers : dict of name -> maker
        A maker is an unfitted classifier with `n_estimators` (alone or as the last step of a pipeline), or a callable
        that takes a size and returns an unfitted classifier. A method that raises an exception is recorded as failed.
    X : array or DataFrame (n, d)
    y : (n,) labels
        Unlabelled rows are always used for training and never scored.
    sizes : list of int
    folds : int, default=10
        Number of folds.
    repeats : int, default=1
        Number of repetitions with other folds.
    random_state : int or RandomState, default=0
        Seed of the folds; makers have their own seeds.
    sample_weight : (n,) array, optional
        Weights for fitting and scoring.
    journal : path, optional
        A file that stores finished folds; the same call with the same file resumes an interrupted run.
    n_jobs : int, default=1
        Number of processes; None or -1 uses all cores.
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
    checked, steps = _checked(makers, sizes)
    samples = read_samples(X, y, sample_weight, estimators=[make(steps[-1]) for make in checked.values()])
    fold_of = assign_folds(samples.labels, folds=folds, repeats=repeats, random_state=random_state)
    runner = Runner(
        {name: Method(make, _settings(make, steps) if journal else "") for name, make in checked.items()},
        partial(_score_fold, samples, steps),
        splits_of(fold_of),
        Journal.open(journal, "size_curves", fingerprint(samples, fold_of) if journal else ""),
        n_jobs=check_workers(n_jobs),
        watch=shown(progress, folds, repeats),
    )
    fits = runner.run()
    records = [{**{k: fit[k] for k in ("method", "repeat", "fold")}, **point} for fit in fits for point in fit["sizes"]]
    ratio = float(np.mean([fit["n_test"] / max(fit["n_train"], 1) for fit in fits]))
    curves = SizeCurves(records, np.array(steps), list(checked), ratio)
    curves.check_some_worked("in every fold")
    return curves


def _settings(make: Maker, sizes: list[int]) -> str:
    """A text that changes with any parameter of the ensembles of these sizes."""
    return " ".join(settings_of(make(size)) for size in sizes)


def _checked(makers: Any, sizes: Any) -> tuple[dict[str, Maker], list[int]]:
    """The makers as functions of a size, and the sorted sizes."""
    if not isinstance(makers, Mapping) or not makers:
        raise ValueError(f"makers must be a dict, name -> maker; got {makers!r}")
    steps = sorted({check_count("each of sizes", size) for size in sizes})
    if not steps:
        raise ValueError("sizes is empty; give numbers of estimators, such as [10, 20, 50]")
    return {str(name): _maker(str(name), maker) for name, maker in makers.items()}, steps


def _maker(name: str, maker: Any) -> Maker:
    from sklearn.pipeline import Pipeline  # slow to import

    if isinstance(maker, type):
        raise TypeError(f"{name!r} is the class {maker.__name__}; give an instance, or a callable of a size")
    if not isinstance(maker, BaseEstimator):
        if not callable(maker):
            raise TypeError(f"{name!r} must be a classifier with n_estimators, or a callable of a size; got {maker!r}")
        return maker

    last = f"{maker.steps[-1][0]}__n_estimators" if isinstance(maker, Pipeline) else "n_estimators"
    if last not in maker.get_params():
        raise TypeError(
            f"{name!r} is a {type(maker).__name__}, which has no parameter {last}; give a callable of a size, such as "
            "lambda size: Ensemble(n_members=size)"
        )
    return lambda size: clone(maker).set_params(**{last: size})


def _score_fold(samples: Samples, sizes: list[int], make: Maker, split: Split) -> tuple[dict[str, Any], None]:
    """The record of one method in one fold, with a record for each size under the key `sizes`."""
    weight, true, records = samples.weights(split.test), samples.codes[split.test], []
    failed = None
    try:
        for proba, fit in _by_size(make, sizes, samples, split):
            check_proba(proba)
            records.append({**fit, **scores_of(true, proba, weight), "failed": None})
    except Exception as error:  # the failure of one method must not lose the results of the others
        failed = failure(error)
        records += [{"size": size, "reached": 0, "staged": False, **failed} for size in sizes[len(records) :]]
    n_train = int((samples.codes[split.train] >= 0).sum())  # without unlabelled rows
    fold = {"n_train": n_train, "n_test": len(split.test), "failed": None if failed is None else failed["failed"]}
    return {**fold, "sizes": records, "fit_seconds": sum({r["fit_seconds"] for r in records})}, None


def _by_size(make: Maker, sizes: list[int], samples: Samples, split: Split) -> Iterator[tuple[np.ndarray, dict]]:
    """Probabilities of the test rows at each size, and a record of the fit."""
    if _differ_in_size_only(make, sizes) and has_stages(make(sizes[-1])):
        model, seconds, _ = fit_rows(make(sizes[-1]), samples, split.train)
        yield from _staged(model, sizes, samples, split, seconds)
        return
    for size in sizes:
        model, seconds, _ = fit_rows(make(size), samples, split.train)
        fit = {"size": size, "reached": size, "staged": False, "fit_seconds": seconds}
        yield aligned_proba(model, samples.features(model, split.test), samples.classes), fit


def _staged(
    model: Any, sizes: list[int], samples: Samples, split: Split, seconds: float
) -> Iterator[tuple[np.ndarray, dict]]:
    """Probabilities after each of the sizes; if there are fewer stages, after the last stage."""
    remaining, stage, proba = list(sizes), 0, None
    for stage, output in enumerate(model.staged_predict_proba(samples.features(model, split.test)), 1):
        proba = aligned(np.asarray(output, dtype=float), model.classes_, samples.classes)
        if stage == remaining[0]:
            yield proba, {"size": remaining.pop(0), "reached": stage, "staged": True, "fit_seconds": seconds}
        if not remaining:
            return
    if proba is None:
        raise ValueError(f"{type(model).__name__}.staged_predict_proba returned no stage")
    for size in remaining:
        yield proba, {"size": size, "reached": stage, "staged": True, "fit_seconds": seconds}


def _differ_in_size_only(make: Maker, sizes: list[int]) -> bool:
    """Whether the ensembles of all sizes have the same parameters, except for the size."""
    largest = make(sizes[-1])
    if len(sizes) == 1 or not isinstance(largest, BaseEstimator):
        return len(sizes) == 1
    reference = largest.get_params()
    for size in sizes[:-1]:
        other = make(size)
        params = other.get_params()
        if type(other) is not type(largest) or set(params) != set(reference):
            return False
        differ = [name for name in reference if repr(params[name]) != repr(reference[name])]
        if [(params[name], reference[name]) for name in differ] != [(size, sizes[-1])]:
            return False
    return True


def _cells(curves: SizeCurves, name: str, metric: str) -> list[str]:
    """Mean and standard error of a method at each size."""
    factor = WORDS[metric][1]
    digits = 2 if factor == 100 else 3
    values = zip(factor * curves.mean(name, metric), factor * curves.std_error(name, metric))
    return [f"{mean:.{digits}f} ({se:.{digits}f})" for mean, se in values]


def _document_table(curves: SizeCurves, metric: str) -> Table:
    title, _, unit, _ = WORDS[metric]
    rows: list[list[Any]] = [[name, *map(Number, _cells(curves, name, metric))] for name in curves.methods]
    caption = f"Mean {title}{f' ({unit.strip()})' if unit else ''} over folds by ensemble size, with its standard error"
    return Table(caption, ["method", *map(str, curves.sizes.tolist())], rows)


def _table(curves: SizeCurves, metric: str) -> str:
    title, _, unit, _ = WORDS[metric]
    width = max(len(name) for name in curves.methods)
    head = f"{title + (', ' + unit.strip() if unit else ''):<{width}}"
    lines = [[head, *(f"{size}" for size in curves.sizes)]]
    for name in curves.methods:
        lines.append([f"{name:<{width}}", *_cells(curves, name, metric)])
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines
    )
