"""Confusion counts of a source on labelled rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mixent.base.delegation import aligned
from mixent.base.document import Content, Paragraph, Table
from mixent.base.folds import label_folds
from mixent.base.params import check_number
from mixent.base.result import Result
from mixent.core.arrays import Array
from mixent.data import listed, read_labels
from mixent.fusion.reading import alphabet_of, by_name, counts_by_name, read_names, read_numbers, read_values
from mixent.fusion.scales import (
    bin_names,
    equal_mass_edges,
    fitted_line,
    line_pmf,
    midpoints,
    monotone_counts,
)
from mixent.fusion.stated import SIGNIFICANT, Reliability, rescaled

JEFFREYS = 0.5  # pseudo-counts of every symbol in every class
BINS = 10  # of scores
MAX_STEPS = 20  # different values of an ordinal score that have a symbol each
ASSUMED_ACCURACY = 0.7  # of a source without calibration
ASSUMED_ROWS = 2.0  # rows of each class that the assumption is equivalent to


class Options(TypedDict, total=False):
    """Parameters of a `Calibration` that all its constructors accept."""

    priors: ArrayLike | Mapping[Any, float] | None
    calibration_set: str
    copy_of: str
    smoothing: float
    context: bool
    ordinal: bool


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result):
    """Confusion counts of a source on labelled rows.

    The confusion matrix of the source is estimated by the smoothed relative frequencies

        A(v | k) = (n_kv + s) / sum_v' (n_kv' + s),

    with n_kv the number of calibration rows of class k with the answer (symbol) v, and s = `smoothing`. The counts
    themselves are stored, because `Fuser` uses their sampling error: the rates of class k have a Dirichlet distribution
    with parameters n_kv + s.

    Use rows that the source was not trained on. The usual constructors are `from_counts`, `from_rates`,
    `from_predictions`, `from_scores` and `from_cv`; `guess` is for a source without labelled rows.
    `mixent.fusion.save_calibrations` and `mixent.fusion.load_calibrations` store calibrations in a JSON file.

    Parameters
    ----------
    classes : tuple of K labels
        The true classes.
    symbols : tuple of V labels
        The possible answers of the source: the classes, some of them, further answers ("unsure"), or names of bins of
        its score.
    counts : (K, V) array
        Number of calibration rows of each class with each answer; sums of probabilities for a source that gives
        probabilities. With `cells`, (K, V, L). The answers of the source are no evidence for or against a class
        without rows.
    priors : (K,) array or dict of class -> prior, optional
        Class priors of the training set of the source, which its probabilities contain (default: those of the
        calibration rows).
    calibration_set : str, optional
        Name of the calibration rows. Sources with the same calibration set have dependent calibration errors.
    copy_of : str, optional
        Name of the source that this one is a copy of. Copies share one vote.
    edges : (V - 1,) array, optional
        Increasing edges of the bins of its score; a score equal to an edge belongs to the bin above.
    line : (slope, offset), optional
        For scores: slope * score + offset is the log-likelihood ratio of the second class against the first.
    scale : (1 + K,) numbers, optional
        For probabilities: the log-likelihood ratio of the class of symbol k is scale[0] * log p_k + scale[k], up to a
        constant; without it, log p_k minus the logarithm of its prior. `from_predictions` estimates it, because
        probabilities are often overconfident, or contain unknown priors.
    reliability : (subject, stated, observed, p_value), optional
        Test whether the probabilities are calibrated as they are stated, and their largest deviation on the
        calibration rows: the mean probability and the share of the class `subject`, or, with None, the mean of the
        highest probability and the share of rows on which that class is right.
    cells : tuple of L labels, optional
        Cells of a partition of the input space. With each answer, the source reports the cell of its input or a
        distribution over the cells (Pal 2006, section 6.1).
    context : bool, default=False
        Whether the cells are a context instead of a part of the answer: answers are then counted within each cell
        (Pal 2006, section 6.4) instead of together with it.
    smoothing : float, default=0.5
        Pseudo-count of every symbol in every class, divided equally among the cells; 0.5 is Jeffreys' prior.
    ordinal : bool, default=False
        Whether the symbols are in increasing order, such as grades from 1 to 5, and the likelihood ratios of the
        classes are monotone in them. For two classes, the smoothed counts are those of maximum likelihood under this
        constraint (pool-adjacent-violators); for several, the classes above each class have a share that increases with
        the symbol, with the classes in the order of their mean symbol (isotonic distributional regression). Cannot be
        combined with cells, line or scale.

    Examples
    --------
    >>> from mixent import Calibration
    >>> vendor = Calibration.from_counts([[89.5, 9.5], [19.5, 79.5]], classes=["healthy", "ill"])
    >>> vendor.confusion.tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """

    classes: tuple
    symbols: tuple
    counts: Array
    priors: Array | None = None
    calibration_set: str | None = None
    copy_of: str | None = None
    edges: Array | None = None
    line: tuple[float, float] | None = None
    scale: tuple[float, ...] | None = None
    reliability: Reliability | None = None
    cells: tuple | None = None
    context: bool = False
    smoothing: float = JEFFREYS
    ordinal: bool = False

    def __post_init__(self) -> None:
        for name in ("classes", "symbols", "cells"):
            if name != "cells" or self.cells is not None:
                object.__setattr__(self, name, read_names(name, getattr(self, name)))
        if len(self.classes) < 2:
            raise ValueError(f"classes must contain at least two labels; got {list(self.classes)!r}")
        object.__setattr__(self, "counts", self._read_counts())
        object.__setattr__(self, "priors", self._read_priors())
        object.__setattr__(self, "edges", self._read_edges())
        object.__setattr__(self, "line", self._read_line())
        object.__setattr__(self, "scale", self._read_scale())
        object.__setattr__(self, "reliability", self._read_reliability())
        if not isinstance(self.context, (bool, np.bool_)) or (self.context and self.cells is None):
            raise ValueError(f"context must be True or False, and can be True only with cells; got {self.context!r}")
        if not isinstance(self.ordinal, (bool, np.bool_)):
            raise ValueError(f"ordinal must be True or False; got {self.ordinal!r}")
        if self.ordinal and not (self.cells is None and self.line is None and self.scale is None):
            raise ValueError("ordinal=True cannot be combined with cells, line or scale; use only one of them")
        for name in ("calibration_set", "copy_of"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise ValueError(f"{name} must be a non-empty string or None; got {value!r}")
        if not check_number(self.smoothing) or not np.isfinite(self.smoothing) or self.smoothing < 0:
            raise ValueError(f"smoothing must be a finite number >= 0; got {self.smoothing!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calibration) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.classes, self.symbols, self.counts.tobytes()))

    def _brief(self) -> str:
        rows = ", ".join(f"{label!r}: {n:g}" for label, n in zip(self.classes, self.n_rows))
        return f"rows={{{rows}}}, symbols={listed(list(self.symbols))}"

    def _content(self) -> list[Content]:
        counts = self.counts.reshape(len(self.classes), len(self.symbols), -1).sum(axis=2)
        rows = [[str(label), *row] for label, row in zip(self.classes, counts.tolist())]
        table = Table("Rows of each class with each answer", ["class", *map(str, self.symbols)], rows)
        return [table, *([] if self.reliability is None else [Paragraph(self._reliability_text(self.reliability))])]

    def _reliability_text(self, reliability: Reliability) -> str:
        if reliability.p_value >= SIGNIFICANT:
            return (
                "The probabilities do not differ significantly from calibrated ones on these rows "
                f"(p = {reliability.p_value:.2g})."
            )
        return (
            f"The source {reliability}. Its probabilities are {'used as stated' if self.scale is None else 'rescaled'}."
        )

    def _read_counts(self) -> Array:
        n_cells = () if self.cells is None else (len(self.cells),)
        counts = read_numbers("counts", self.counts, (len(self.classes), len(self.symbols), *n_cells))
        if (counts < 0).any():
            k, v, *_ = index = np.argwhere(counts < 0)[0]
            raise ValueError(
                f"counts must be >= 0; got {counts[tuple(index)]:g} for class {self.classes[k]!r} and answer "
                f"{self.symbols[v]!r}"
            )
        if not counts.any():
            raise ValueError(
                "counts must not be all zero; for a source without labelled answers use `Calibration.guess`"
            )
        return counts

    def _read_priors(self) -> Array | None:
        if self.priors is None:
            return None
        given: Any = self.priors
        if isinstance(given, Mapping):
            given = [given.get(label, np.nan) for label in self.classes]
        priors = read_numbers("priors", given, (len(self.classes),))
        if (priors < 0).any() or priors.sum() <= 0:
            raise ValueError(f"priors must be >= 0 and not all zero; got {priors.tolist()}")
        total = priors.sum()
        return priors if abs(total - 1) < 1e-12 else priors / total  # normalized priors are not rounded again

    def _read_edges(self) -> Array | None:
        if self.edges is None:
            return None
        edges = read_numbers("edges", self.edges, (len(self.symbols) - 1,))
        if (np.diff(edges) <= 0).any():
            raise ValueError(f"edges must be increasing; got {edges.tolist()}")
        return edges

    def _read_line(self) -> tuple[float, float] | None:
        if self.line is None:
            return None
        slope, offset = read_numbers("line", self.line, (2,)).tolist()
        if self.symbols != self.classes or len(self.classes) != 2 or self.edges is not None:
            raise ValueError("line requires two classes, symbols equal to the classes, and no edges")
        return slope, offset

    def _read_scale(self) -> tuple[float, ...] | None:
        if self.scale is None:
            return None
        scale = read_numbers("scale", self.scale, (1 + len(self.symbols),))
        if set(self.symbols) != set(self.classes) or self.cells is not None or self.line is not None:
            raise ValueError("scale requires symbols equal to the classes, and neither cells nor line")
        return tuple(scale.tolist())

    def _read_reliability(self) -> Reliability | None:
        if self.reliability is None:
            return None
        result = Reliability(*self.reliability)
        numbers = read_numbers("reliability", result[1:], (3,))
        if (
            not (result.subject is None or result.subject in self.classes)
            or not ((numbers >= 0) & (numbers <= 1)).all()
        ):
            raise ValueError(
                "reliability must be (subject, stated, observed, p_value), with a class or None and three numbers from "
                f"0 to 1; got {tuple(self.reliability)!r}"
            )
        return Reliability(result.subject, *numbers.tolist())

    @property
    def n_rows(self) -> Array:
        """(K,) number of calibration rows of each class."""
        return self.counts.reshape(len(self.classes), -1).sum(axis=1)

    @property
    def seen(self) -> np.ndarray:
        """(K,) whether the class has calibration rows."""
        return self.n_rows > 0

    @property
    def confusion(self) -> Array:
        """(K, V) smoothed confusion matrix A(symbol | class).

        With cells (K, V, L): A(symbol, cell | class), or A(symbol | cell, class) if the cells are a context. A class
        without rows has the pooled rates of all other classes.
        """
        pooled = self.counts.sum(axis=0)
        seen = self.seen.reshape(-1, *[1] * pooled.ndim)
        n_cells = 1 if self.cells is None else len(self.cells)
        counts = self.restricted(np.where(seen, self.counts, pooled) + self.smoothing / n_cells)
        axes = (1,) if self.context else tuple(range(1, counts.ndim))
        return counts / counts.sum(axis=axes, keepdims=True)

    def restricted(self, counts: Array) -> Array:
        """(K, V) counts with monotone likelihood ratios if the symbols are ordinal; otherwise the counts."""
        if not self.ordinal:
            return counts
        out = counts.copy()
        out[self.seen] = monotone_counts(counts[self.seen])
        return out

    @property
    def class_prior(self) -> Array:
        """(K,) class priors of the training set of the source; by default those of the calibration rows."""
        return self.n_rows / self.n_rows.sum() if self.priors is None else self.priors

    @classmethod
    def guess(
        cls, classes: Sequence[Hashable], accuracy: float = ASSUMED_ACCURACY, n_rows: float = ASSUMED_ROWS
    ) -> Self:
        """Calibration of a source without labelled rows, with an assumed accuracy.

        Parameters
        ----------
        classes : list of labels
        accuracy : float, default=0.7
            Assumed probability of a correct answer, between 1 / K and 1 for K classes.
        n_rows : float, default=2.0
            Number of rows of each class that the assumption is equivalent to.

        Returns
        -------
        Calibration
        """
        K = len(classes)
        if not check_number(accuracy) or not check_number(n_rows) or not 1 / K < accuracy < 1 or n_rows <= 0:
            raise ValueError(f"accuracy must be between 1/{K} and 1, and n_rows > 0; got {accuracy!r} and {n_rows!r}")
        rates = np.full((K, K), (1 - accuracy) / (K - 1))
        np.fill_diagonal(rates, accuracy)
        return cls(tuple(classes), tuple(classes), rates * n_rows, smoothing=0.0)

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        classes: Sequence[Hashable],
        symbols: Sequence[Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Calibration from a table of counts.

        Parameters
        ----------
        counts : (K, V) array
            A row for each class and a column for each symbol.
        classes : list of labels
        symbols : list of labels, optional
            Default: the classes.
        **options
            `priors`, `calibration_set`, `copy_of`, `smoothing`, `ordinal`: see `Calibration`.

        Returns
        -------
        Calibration
        """
        symbols, fields = tuple(classes if symbols is None else symbols), dict[str, Any](options)
        return cls(tuple(classes), symbols, counts_by_name(counts, tuple(classes), symbols), **fields)

    @classmethod
    def from_rates(
        cls,
        rates: ArrayLike,
        n_rows: ArrayLike,
        classes: Sequence[Hashable],
        symbols: Sequence[Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """Calibration from a confusion matrix and the number of rows it was estimated from.

        Parameters
        ----------
        rates : (K, V) array
            Confusion matrix; each row sums to one.
        n_rows : float or (K,) array
            Number of calibration rows of each class.
        classes : list of labels
        symbols : list of labels, optional
            Default: the classes.
        **options
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        symbols = tuple(classes if symbols is None else symbols)
        table = read_numbers("rates", rates, (len(classes), len(symbols)))
        wrong = (table < 0).any(axis=1) | (np.abs(table.sum(axis=1) - 1) > 1e-3)
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"rates must be >= 0 and sum to 1 in each class; got {table[k].tolist()} for class {classes[k]!r}"
            )
        rows = np.broadcast_to(np.asarray(n_rows, dtype=float), (len(classes),))
        if not np.isfinite(rows).all() or (rows < 0).any():
            raise ValueError(f"n_rows must be a number >= 0, or one for each class; got {n_rows!r}")
        return cls.from_counts(table * rows[:, None], classes, symbols, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: ArrayLike,
        symbols: Sequence[Any] | None = None,
        *,
        cells: ArrayLike | None = None,
        scaled: bool = True,
        **options: Unpack[Options],
    ) -> Self:
        """Calibration from labelled rows and the answers of the source to them.

        Parameters
        ----------
        y_true : (n,) labels
            True classes; rows without a label are ignored.
        predictions : (n,) labels or (n, V) probabilities
            Answers of the source; blank, or a row of NaN, if it did not answer.
        symbols : list of labels, optional
            Symbols of the columns of probabilities, or all possible answers. Default: the classes and all other
            answers; the answers alone if none of them is a class.
        cells : (n,) labels or (n, L) probabilities, optional
            The cell of each row, see `Calibration.cells`; columns of probabilities are cells 0, 1, ..., or the column
            names of a DataFrame.
        scaled : bool, default=True
            Whether to rescale probabilities of the classes by a power and an offset for each class, see
            `Calibration.scale`. The prior distribution of these is centered on calibrated probabilities, so that they
            change little if the probabilities are calibrated or the rows are few. With False, the probabilities are
            used as they are, divided by the class priors of the training. Not used with cells, or for labels.
        **options
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        return cls._counted(y_true, predictions, symbols, cells=cells, scaled=scaled, **options)

    @classmethod
    def _counted(
        cls,
        y_true: ArrayLike,
        predictions: Any,
        symbols: Sequence[Any] | None,
        *,
        cells: Any = None,
        scaled: bool = True,
        **fields: Any,
    ) -> Self:
        """Counts of the answers by true class; `fields` are further fields of the calibration."""
        labels = read_labels(y_true, len(predictions))
        if labels.codes is None:
            raise ValueError("y_true must be labels; got probabilities")
        classes = tuple(labels.classes.tolist())
        if fields.get("ordinal") and symbols is None:
            raise ValueError(
                "ordinal=True requires symbols, all possible answers in increasing order; for numbers use `from_scores`"
            )
        alphabet = classes if symbols is None else tuple(symbols)
        answers = by_name(predictions, alphabet, "the source")
        if symbols is None and answers.ndim == 1:
            alphabet = alphabet_of(answers, classes)
        names, values = read_values(answers, alphabet, "the source")
        rows = (labels.codes >= 0) & ~np.isnan(values).any(axis=1)
        if cells is None:
            made = cls(classes, names, np.eye(len(classes))[labels.codes[rows]].T @ values[rows], **fields)
            return made._tested(values[rows], labels.codes[rows], scaled=scaled) if answers.ndim == 2 else made
        cell_names, cell_proba = _read_cells(cells, len(answers))
        rows &= ~np.isnan(cell_proba).any(axis=1)
        truths = np.eye(len(classes))[labels.codes[rows]]
        counts = np.einsum("tk,tv,tl->kvl", truths, values[rows], cell_proba[rows])
        return cls(classes, names, counts, cells=cell_names, **fields)

    def _tested(self, values: Array, codes: np.ndarray, *, scaled: bool) -> Self:
        """The calibration with the test of the probabilities (n, V) of these rows, and with their scale if `scaled`."""
        is_labels = not ((values > 0) & (values < 1)).any()
        if is_labels or self.ordinal or self.line is not None or set(self.symbols) != set(self.classes):
            return self
        column = [self.symbols.index(label) for label in self.classes]
        result = rescaled(values[:, column], codes, self.class_prior, self.classes)
        if result is None:
            return self
        scale = result.scale.copy()
        scale[1 + np.array(column)] = result.scale[1:]
        return replace(self, scale=tuple(scale.tolist()) if scaled else None, reliability=result.reliability)

    @classmethod
    def from_cv(
        cls,
        estimator: BaseEstimator,
        X: Any,
        y: ArrayLike,
        *,
        cv: int = 5,
        hard: bool = False,
        random_state: int = 0,
        **options: Unpack[Options],
    ) -> Self:
        """Calibration of a scikit-learn classifier from its out-of-fold predictions.

        Parameters
        ----------
        estimator : classifier
            Not fitted.
        X : (n, d) array or DataFrame
            Training rows.
        y : (n,) labels
            Classes of the rows; rows without a label are ignored.
        cv : int, default=5
            Number of folds.
        hard : bool, default=False
            Whether to count predicted labels even if the classifier has probabilities.
        random_state : int, default=0
            Seed of the folds.
        **options
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        from sklearn.utils import _safe_indexing

        from mixent.ensemble.members import output_of as answers_of
        from mixent.ensemble.members import trained

        labels = read_labels(y, np.shape(y)[0])
        if labels.codes is None:
            raise ValueError("y must be labels; got probabilities")
        labelled = labels.codes >= 0
        values = np.full((len(labels.codes), len(labels.classes)), np.nan)
        for train, test in label_folds(labels.codes, labelled, random_state, cv):
            train = train[labelled[train]]
            model = trained(
                estimator, _safe_indexing(X, train), labels.classes[labels.codes[train]], None, random_state
            )
            alphabet, answers = answers_of(
                model, _safe_indexing(X, test), "hard" if hard else "auto", type(model).__name__
            )
            values[test] = aligned(answers, alphabet, labels.classes)
        truth = np.array([labels.classes[c] if c >= 0 else None for c in labels.codes], dtype=object)
        return cls.from_predictions(truth, values, symbols=labels.classes.tolist(), **options)

    @classmethod
    def from_scores(
        cls,
        y_true: ArrayLike,
        scores: ArrayLike,
        *,
        bins: int = BINS,
        edges: ArrayLike | None = None,
        ratio: bool = False,
        **options: Unpack[Options],
    ) -> Self:
        """Calibration from scores of labelled rows, with bins of the score as symbols.

        By default the bins have equal mass, with all classes weighted equally. With `ordinal=True`, a score of at most
        20 different values has a bin for each value, and the likelihood ratios are monotone in the score.

        Parameters
        ----------
        y_true : (n,) labels
            True classes; rows without a label are ignored.
        scores : (n,) numbers
            Scores of the source; NaN if it did not answer.
        bins : int, default=10
            Maximum number of bins.
        edges : array, optional
            Edges of the bins, instead of `bins`.
        ratio : bool, default=False
            For two classes: whether to fit the log-likelihood ratio as a linear function of the score, by logistic
            regression, instead of using bins.
        **options
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        try:
            values = np.asarray(scores, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"scores must be numbers; {error}") from error
        finite = np.isfinite(values)
        if not finite.any():
            raise ValueError("scores must contain at least one finite number")
        if ratio:
            return cls._logistic(y_true, values, finite, **options)
        steps = np.unique(values[finite])
        if edges is None and options.get("ordinal") and len(steps) <= MAX_STEPS:
            edges, symbols = midpoints(steps), tuple(int(v) if v.is_integer() else v for v in steps.tolist())
        else:
            edges = equal_mass_edges(y_true, values, finite, bins) if edges is None else np.asarray(edges, dtype=float)
            symbols = bin_names(edges)
        codes = np.searchsorted(edges, values, side="right")
        answered = ~np.isnan(values)  # an infinite score lies in the first or the last bin
        answers = np.array([symbols[c] if ok else None for c, ok in zip(codes, answered)], dtype=object)
        return cls._counted(y_true, answers, symbols, edges=edges, **options)

    @classmethod
    def _logistic(cls, y_true: ArrayLike, scores: Array, finite: np.ndarray, **options: Unpack[Options]) -> Self:
        """Log-likelihood ratio as a linear function of the score."""
        labels = read_labels(y_true, len(scores))
        if labels.codes is None or len(labels.classes) != 2:
            raise ValueError(f"ratio=True requires two classes; y_true has {listed(labels.classes.tolist())}")
        rows = finite & (labels.codes >= 0)
        codes = labels.codes[rows]
        if len(set(codes.tolist())) < 2:
            raise ValueError(
                f"ratio=True requires finite scores of both classes; got scores of {labels.classes[codes[0]]!r} only"
                if len(codes)
                else "ratio=True requires finite scores of both classes; got none with a label"
            )
        line = fitted_line(scores[rows], codes)
        given = options.get("priors")
        prior = np.bincount(codes, minlength=2) / len(codes) if given is None else np.asarray(given, dtype=float)
        proba = np.full((len(scores), 2), np.nan)
        proba[finite] = line_pmf(scores[finite], line, prior)
        return cls._counted(y_true, proba, labels.classes.tolist(), line=line, **options)

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON-compatible values."""
        out = {}
        for field in fields(self):
            value = getattr(self, field.name)
            out[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Calibration from the result of `to_json`; fields that are left out have their defaults."""
        if not isinstance(entry, Mapping):
            raise ValueError(f"a calibration must be a JSON object; got {type(entry).__name__}")
        names = {field.name for field in fields(cls)}
        unknown = sorted(set(entry) - names)
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r} of a calibration; choose one of {listed(sorted(names))}")
        absent = [name for name in ("classes", "counts") if name not in entry]
        if absent:
            raise ValueError(f"a calibration must have the field {absent[0]!r}; it has {listed(sorted(entry))}")
        given = {**entry, "symbols": entry.get("symbols", entry["classes"])}
        return cls(**{name: value for name, value in given.items() if value is not None})


def _read_cells(cells: Any, n_rows: int) -> tuple[tuple, Array]:
    """Names of the cells, and the distribution of each row over them (n, L)."""
    columns = list(getattr(cells, "columns", ()))
    values = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
    if len(values) != n_rows:
        raise ValueError(f"cells must have one entry for each of the {n_rows} rows; got {len(values)}")
    names = columns or range(values.shape[1]) if values.ndim == 2 else None
    return read_values(values, names, "the cells")
