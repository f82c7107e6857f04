"""Scores of methods on test batches with shifted class priors (document 004, section 4.4).

A batch with given priors is drawn with replacement from labelled rows. The index M of (4.18) measures the divergence of
these priors from the training priors of the sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr
from sklearn.utils import check_random_state

from mixent.base.document import Bullets, Content, Number, Table
from mixent.base.params import RandomState, check_count, check_workers
from mixent.base.result import Records, Result
from mixent.data.labels import as_labels, classes_of, encode, label_value, labelled_rows
from mixent.evaluate.cross_validation import Progress
from mixent.evaluate.journal import Journal, fingerprint_of_labels
from mixent.evaluate.records import Recorded, check_asked
from mixent.evaluate.runner import Method, Runner, Split
from mixent.evaluate.scores import METRICS, score_table
from mixent.evaluate.text import WORDS

Priors = Mapping[Any, float] | ArrayLike  # shares by label, or in the order of the sorted labels
SHOWN = ("error", "log_loss")
MEASURES = (*METRICS, "prior_error")
LONGEST_PRIOR = 6  # most classes whose probabilities are shown in a table


def resample_priors(y: ArrayLike, priors: Priors, size: int | None = None, random_state: RandomState = 0) -> np.ndarray:
    """Draw rows with replacement such that the classes have given frequencies.

    The number of rows of class c is size * prior_c, rounded by largest remainder (ties go to the first class). Within a
    class, every row has the same probability. The rows are in random order, so any part of the batch is a batch too.

    Parameters
    ----------
    y : (n,) labels
        Unlabelled rows are never drawn.
    priors : dict of label -> frequency, or array of frequencies
        An array is in the order of the sorted labels; a pandas Series is read by its index. A class with frequency
        zero, or not in the dict, is left out.
    size : int, optional
        Number of rows to draw (default: the number of labelled rows).
    random_state : int, RandomState or None

    Returns
    -------
    array (size,) of row numbers

    Examples
    --------
    >>> import numpy as np
    >>> from mixent.studies import resample_priors
    >>> y = np.array(["ill"] * 30 + ["well"] * 70)
    >>> rows = resample_priors(y, {"ill": 0.05, "well": 0.95})
    >>> len(rows), int(np.sum(y[rows] == "ill"))
    (100, 5)
    """
    y, known = as_labels(y), labelled_rows(y)
    classes = classes_of(y)
    share = _shares_of(priors, classes)
    size = int(known.sum()) if size is None else check_count("size", size)
    rows = np.flatnonzero(known)
    codes = encode(y[rows], classes)
    rng = check_random_state(random_state)
    drawn = [rng.choice(rows[codes == c], n) for c, n in enumerate(_largest_remainder(share, size)) if n]
    return rng.permutation(np.concatenate(drawn))


def prior_mismatch(source_priors: ArrayLike | Mapping[str, ArrayLike], test_priors: ArrayLike) -> float:
    """Kullback-Leibler divergence of the test priors from the training priors, summed over the sources, in nats.

    This is the index M of Pal (2006, equation 4.18),

        M = sum_j sum_k P_j(k) log(P_j(k) / P_test(k)),

    which is zero only if all priors are equal. M grows with the number of sources: ten copies of a source count ten
    times. It is infinite if the test batch has no rows of a class that a source was trained on. A class that a source
    was not trained on contributes nothing.

    Parameters
    ----------
    source_priors : (J, K) array, list of J rows, or dict of source -> row
        Training priors of each source; (K,) for one source.
    test_priors : (K,) array
        Priors of the batch, with the classes in the same order.

    Returns
    -------
    float

    Examples
    --------
    >>> from mixent.studies import prior_mismatch
    >>> prior_mismatch([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5])
    0.0
    >>> round(prior_mismatch([[0.5, 0.5], [0.3, 0.7]], [0.2, 0.8]), 3)
    0.251
    """
    test = _distribution("test_priors", test_priors)
    given = _rows_of(source_priors)
    if not given:
        raise ValueError("source_priors is empty; give one row with the training priors of each source")
    sources = [_distribution(f"row {j} of source_priors", row) for j, row in enumerate(given)]
    for j, row in enumerate(sources):
        if len(row) != len(test):
            raise ValueError(f"row {j} of source_priors has {len(row)} classes, but test_priors has {len(test)}")
    return float(rel_entr(np.stack(sources), test).sum())


def without_class(y: ArrayLike, label: Any) -> np.ndarray:
    """Positions of the labelled rows of all classes except one: a batch without that class (section 4.4).

    Parameters
    ----------
    y : (n,) labels
    label : label
        The class to leave out.

    Returns
    -------
    array of row numbers
    """
    y, classes = as_labels(y), [label_value(value) for value in classes_of(y)]
    if label_value(label) not in classes:
        raise ValueError(f"label must be one of the labels in y, {classes}; got {label!r}")
    if len(classes) == 1:
        raise ValueError(f"all labels in y are {label!r}; y must have rows of another class")
    known = np.flatnonzero(labelled_rows(y))
    return known[encode(y[known], classes) != classes.index(label_value(label))]


def with_copies(answers: Mapping[str, Any], name: str, k: int) -> dict[str, Any]:
    """The answers of the sources, with k copies of one source (table 4.5): `"a copy 1"`, ..., `"a copy k"`.

    Parameters
    ----------
    answers : dict of source -> answers
        Labels, probabilities, scores or calibrations. Copies refer to the same object.
    name : str
        The source to copy.
    k : int
        Number of copies, zero or more.

    Returns
    -------
    dict
    """
    if name not in answers:
        raise ValueError(f"unknown source {name!r}; choose one of {list(answers)}")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 0:
        raise ValueError(f"k must be a whole number >= 0; got {k!r}")
    copies = {f"{name} copy {i + 1}": answers[name] for i in range(k)}
    existing = [copy for copy in copies if copy in answers]
    if existing:
        raise ValueError(f"a source named {existing[0]!r} already exists; make all copies of a source in one call")
    return {**answers, **copies}


@dataclass(frozen=True, repr=False)
class PriorShiftStudy(Result, Recorded):
    """Scores of methods on batches with given priors; `str()` is a table.

    `records` has one dict per prior, repeat and method: setting (number of the prior), prior (class frequencies of the
    batch), mismatch (M of (4.18); NaN without the training priors of the sources), repeat, method, the scores,
    estimated_prior (mean posterior), prior_error (half of sum_k |estimated - true|) and failed (None, or the error).
    """

    _title = "Scores under shifted priors"
    _shown = ("methods", "priors", "size")

    records: list[dict[str, Any]]
    priors: np.ndarray  # (S, K) class frequencies of the batches
    mismatch: np.ndarray  # (S,) index M
    methods: list[str]
    classes: np.ndarray  # (K,)
    size: int  # number of rows of a batch

    def values(self, method: str, metric: str = "error") -> np.ndarray:
        """(S, R) the metric by prior and repeat; NaN if the method failed."""
        check_asked(method, self.methods, metric, MEASURES)
        return self._column(method, metric).reshape(len(self.priors), -1)

    def mean(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) mean over the repeats."""
        return self.values(method, metric).mean(axis=1)

    def std_error(self, method: str, metric: str = "error") -> np.ndarray:
        """(S,) standard error of the mean over repeats; NaN for one repeat.

        All repeats draw from the same rows; the sampling error of these rows is not included.
        """
        return _std_error(self.values(method, metric))

    def difference(self, a: str, b: str, metric: str = "error") -> tuple[np.ndarray, np.ndarray]:
        """(S,) mean of a - b and its standard error, from the differences on common batches."""
        difference = self.values(a, metric) - self.values(b, metric)
        return difference.mean(axis=1), _std_error(difference)

    def frame(self) -> Any:
        """Means as a pandas DataFrame: a row for each prior and method, with mean and standard error of every score."""
        rows = []
        for s, prior in enumerate(self.priors):
            for name in self.methods:
                row = {"prior": tuple(prior.tolist()), "mismatch": float(self.mismatch[s]), "method": name}
                row["repeats"] = self.values(name).shape[1]
                for metric in MEASURES:
                    row[metric] = float(self.mean(name, metric)[s])
                    row[f"{metric}_se"] = float(self.std_error(name, metric)[s])
                rows.append(row)
        return Records(rows).frame()

    def _content(self) -> list[Content]:
        blocks: list[Content] = [_document_table(self, metric) for metric in SHOWN]
        failed = [f"{name} failed: {message}" for name, message in self.failures.items()]
        return [*blocks, *([Bullets(failed)] if failed else [])]

    def __str__(self) -> str:
        n_repeats = self.values(self.methods[0]).shape[1]
        title = f"Mean over {n_repeats} batch{'es' * (n_repeats != 1)} of {self.size} rows (standard error)"
        failed = [f"{name} failed: {message}" for name, message in self.failures.items()]
        return "\n".join([title, *(_block(self, metric) for metric in SHOWN), *failed])


def prior_shift_study(
    methods: Mapping[str, Callable[[np.ndarray], Any]],
    y: ArrayLike,
    priors: Iterable[Priors],
    *,
    n_repeats: int = 20,
    size: int | None = None,
    source_priors: ArrayLike | Mapping[str, ArrayLike] | None = None,
    random_state: RandomState = 0,
    journal: str | Path | None = None,
    n_jobs: int | None = 1,
    progress: Progress | None = None,
) -> PriorShiftStudy:
    """Scores of methods on batches drawn at each of several priors; all methods are scored on the same batches.

    Parameters
    ----------
    methods : dict of name -> callable(rows)
        A function that takes (m,) row numbers, possibly repeated, and returns (m, K) posteriors of these rows, with
        sorted classes. A method that raises an exception is recorded as failed.
    y : (n,) labels
        Used to draw and to score the batches. Unlabelled rows are never drawn.
    priors : list of priors
        Each as in `resample_priors`.
    n_repeats : int, default=20
        Number of batches drawn at each prior.
    size : int, optional
        Number of rows of a batch (default: the number of labelled rows).
    source_priors : (J, K) array, optional
        Training priors of the sources, for the index M of `prior_mismatch`.
    random_state : int or RandomState, default=0
        Seed of the batches; methods have their own seeds.
    journal : path, optional
        A file that stores finished batches; the same call with the same file resumes an interrupted run. A method is
        identified by its name only: if you change its function, change its name or delete the file.
    n_jobs : int, default=1
        Number of processes; None or -1 uses all cores.
    progress : callable(done, total, text), optional

    Returns
    -------
    PriorShiftStudy

    Examples
    --------
    >>> import numpy as np
    >>> from mixent.studies import prior_shift_study
    >>> y = np.repeat([0, 1], 50)
    >>> trained = np.where(y == 1, 0.8, 0.3)  # p(1 | x) of a source trained at equal priors
    >>> def as_trained(rows):
    ...     return np.column_stack([1 - trained[rows], trained[rows]])
    >>> study = prior_shift_study({"as trained": as_trained}, y, [[0.5, 0.5], [0.9, 0.1]], source_priors=[[0.5, 0.5]])
    >>> study.mean("as trained", "error").tolist()
    [0.0, 0.0]
    >>> study.mismatch.round(2).tolist()
    [0.0, 0.51]
    """
    if not isinstance(methods, Mapping) or not methods or not all(map(callable, methods.values())):
        raise ValueError(f"methods must be a dict, name -> callable of row numbers; got {methods!r}")
    y, classes = as_labels(y), classes_of(y)
    n_repeats, settings = check_count("n_repeats", n_repeats), list(priors)
    if not settings:
        raise ValueError("priors is empty; give at least one prior, such as [[0.5, 0.5], [0.2, 0.8]]")
    size = int(labelled_rows(y).sum()) if size is None else check_count("size", size)
    shares = np.stack([_largest_remainder(_shares_of(prior, classes), size) for prior in settings]) / size
    index = np.full(len(shares), np.nan)
    if source_priors is not None:
        index = np.array([prior_mismatch(source_priors, share) for share in shares])
    batches = _batches(y, settings, n_repeats, size, random_state)
    runner = Runner(
        {str(name): Method(method) for name, method in methods.items()},
        partial(_score_batch, y, classes),
        batches,
        Journal.open(journal, "prior_shift_study", _fingerprint(y, batches, len(settings)) if journal else ""),
        n_jobs=check_workers(n_jobs),
        watch=_watch(progress, len(settings), n_repeats),
    )
    runner.run()
    records = [
        _with_prior(o.record, shares, index) for batch in zip(*map(runner.finished, runner.methods)) for o in batch
    ]
    study = PriorShiftStudy(records, shares, index, list(runner.methods), classes, size)
    study.check_some_worked("on every batch")
    return study


def _batches(
    y: np.ndarray, settings: list[Priors], n_repeats: int, size: int, random_state: RandomState
) -> list[Split]:
    """Batches drawn at each prior, as splits without training rows; for the runner, a prior is a fold."""
    rng, none = check_random_state(random_state), np.empty(0, dtype=int)
    return [
        Split(repeat, s, none, resample_priors(y, prior, size, rng))
        for s, prior in enumerate(settings)
        for repeat in range(n_repeats)
    ]


def _fingerprint(y: np.ndarray, batches: list[Split], n_priors: int) -> str:
    """A text that changes with any label, any row of a batch, and the numbers of priors and repeats."""
    rows = np.stack([batch.test for batch in batches])
    return fingerprint_of_labels(y, rows.reshape(n_priors, -1, rows.shape[1]))


def _watch(progress: Progress | None, n_priors: int, n_repeats: int) -> Callable[[Runner], None]:
    def watch(runner: Runner) -> None:
        if progress is not None:
            s, repeat = (0, 0) if runner.latest is None else (runner.latest.record[k] for k in ("fold", "repeat"))
            text = f"prior {s + 1} of {n_priors}, batch {repeat + 1} of {n_repeats}"
            progress(runner.n_done, runner.n_total, text)

    return watch


def _with_prior(record: dict[str, Any], shares: np.ndarray, index: np.ndarray) -> dict[str, Any]:
    """The record of a batch with its prior, which the runner numbers as a fold."""
    s, estimated = record["fold"], record["estimated_prior"]
    setting = {"setting": s, "prior": tuple(shares[s].tolist()), "mismatch": float(index[s])}
    rest = {key: value for key, value in record.items() if key != "fold"}
    return setting | rest | {"estimated_prior": None if estimated is None else tuple(estimated)}  # a list in a journal


def _score_batch(
    y: np.ndarray, classes: np.ndarray, method: Callable[[np.ndarray], Any], batch: Split
) -> tuple[dict[str, Any], None]:
    """Scores of one method on one batch, or the reason why it failed."""
    rows = batch.test
    try:
        proba = np.asarray(method(rows.copy()), dtype=float)
        scores = score_table(y[rows], proba, classes)
    except Exception as error:  # the failure of one method must not lose the results of the others
        missing = dict.fromkeys(MEASURES, float("nan"))
        return {**missing, "estimated_prior": None, "failed": f"{type(error).__name__}: {error}"}, None
    estimated = proba.mean(axis=0)
    share = np.bincount(encode(y[rows], classes), minlength=len(classes)) / len(rows)
    prior_error = float(np.abs(estimated - share).sum() / 2)
    return {**scores, "estimated_prior": tuple(estimated.tolist()), "prior_error": prior_error, "failed": None}, None


def _rows_of(values: Any) -> list[Any]:
    """The rows of an array, a DataFrame, a list or a dict; a single row is a list of one row."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values
    rows = list(values.values() if isinstance(values, Mapping) else values)
    return [rows] if rows and np.ndim(rows[0]) == 0 else rows


def _distribution(name: str, values: Any) -> np.ndarray:
    """Checked frequencies, normalized to a sum of exactly 1."""
    share = np.asarray(values, dtype=float)
    if share.ndim != 1 or not len(share):
        raise ValueError(f"{name} must hold one number per class; got {values!r}")
    if not (np.isfinite(share) & (share >= 0)).all() or abs(share.sum() - 1) > 1e-6:
        raise ValueError(f"{name} must be >= 0 and sum to 1; got {share.tolist()}")
    return share / share.sum()


def _shares_of(priors: Any, classes: np.ndarray) -> np.ndarray:
    """(K,) frequency of every class."""
    names = [label_value(value) for value in classes]
    priors = priors.to_dict() if hasattr(priors, "to_dict") else priors  # the order of value_counts differs
    if not isinstance(priors, Mapping):
        share = _distribution("priors", priors)
        if len(share) != len(names):
            raise ValueError(
                f"priors must hold one number for each of the {len(names)} classes {names}; got {len(share)}"
            )
        return share
    given = {label_value(label): value for label, value in priors.items()}
    share = _distribution("priors", list(given.values()))
    for label, value in zip(given, share):
        if value > 0 and label not in names:
            raise ValueError(
                f"priors has a frequency {value:.3g} of class {label!r}, which is not a label in y; the labels "
                f"are {names}"
            )
    by_label = dict(zip(given, share))
    return np.array([by_label.get(label, 0.0) for label in names])


def _largest_remainder(share: np.ndarray, size: int) -> np.ndarray:
    """Integers that sum to `size`, each within one of share * size."""
    quota = share * size
    count = np.floor(quota).astype(int)
    order = np.argsort(count - quota, kind="stable")  # the largest remainder first
    count[order[: size - count.sum()]] += 1
    return count


def _std_error(values: np.ndarray) -> np.ndarray:
    n_repeats = values.shape[1]
    if n_repeats < 2:
        return np.full(len(values), np.nan)
    return values.std(axis=1, ddof=1) / np.sqrt(n_repeats)


def _block(study: PriorShiftStudy, metric: str) -> str:
    """A table of one metric, with a row for each prior and a column for each method."""
    title, _, unit, _ = WORDS[metric]
    rows = [[f"  prior {prior}", *cells] for prior, *cells in _table_rows(study, metric)]
    lines = [[title + (", " + unit.strip() if unit else ""), "M", *study.methods], *rows]
    widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]) for line in lines
    )


def _document_table(study: PriorShiftStudy, metric: str) -> Table:
    title, _, unit, _ = WORDS[metric]
    rows: list[list[Any]] = [[prior, *map(Number, cells)] for prior, *cells in _table_rows(study, metric)]
    caption = f"Mean {title}{f' ({unit.strip()})' if unit else ''} over batches of {study.size} rows (standard error)"
    return Table(caption, ["prior", "divergence M (nats)", *study.methods], rows)


def _table_rows(study: PriorShiftStudy, metric: str) -> list[list[str]]:
    """For each prior: the prior, the index M, and mean and standard error of each method."""
    factor = WORDS[metric][1]
    digits, rows = 1 if factor == 100.0 else 3, []
    for s, prior in enumerate(study.priors):
        cells = []
        for name in study.methods:
            mean, error = factor * study.mean(name, metric)[s], factor * study.std_error(name, metric)[s]
            cells.append(f"{mean:.{digits}f} ({'-' if np.isnan(error) else f'{error:.{digits}f}'})")
        index = study.mismatch[s]
        rows.append([_prior_text(prior), "-" if np.isnan(index) else f"{index:.2f}", *cells])
    return rows


def _prior_text(prior: Sequence[float] | np.ndarray) -> str:
    text = " ".join(f"{share:.3g}" for share in prior[:LONGEST_PRIOR])
    return text + " …" * (len(prior) > LONGEST_PRIOR)
