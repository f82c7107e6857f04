"""Confusion counts of a source on labelled rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mixent.base.delegation import aligned
from mixent.base.folds import label_folds
from mixent.base.params import check_number
from mixent.core.arrays import Array
from mixent.data import listed, read_labels
from mixent.fusion.reading import alphabet_of, by_name, counts_by_name, read_names, read_numbers, read_values
from mixent.fusion.scales import bin_names, even_edges, fitted_line, fitted_scale, line_pmf

JEFFREYS = 0.5  # pseudo-counts of every symbol in every class
BINS = 10  # of scores
GUESSED = (0.7, 2.0)  # accuracy assumed of a source without calibration, and the rows of each class it is worth


class Options(TypedDict, total=False):
    """Further parameters of a `Calibration` that every way to make one takes."""

    priors: ArrayLike | Mapping[Any, float]
    calibration_set: str
    copy_of: str
    smoothing: float
    context: bool


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Confusion counts of a source; counts rather than rates, because their sampling error is part of the fusion.

    Parameters
    ----------
    classes : tuple of K labels
        The true classes.
    symbols : tuple of V labels
        The possible answers of the source: the classes, fewer, more ("unsure"), or names of bins of its score.
    counts : (K, V) array
        Number of calibration rows of each class with each answer; sums of probabilities for a source that gives
        probabilities. With `cells`, (K, V, L). For a class without rows the answers of the source carry no evidence.
    priors : (K,) array, optional
        Class priors of its training, which its probabilities contain (default: those of the calibration rows).
    calibration_set : str, optional
        Name of the rows it was calibrated on. Sources of one set share their calibration error.
    copy_of : str, optional
        Name of the source it is a copy of. Copies share one vote.
    edges : (V - 1,) array, optional
        Increasing edges of the bins of its score; a score equal to an edge belongs to the bin above.
    line : (slope, offset), optional
        For scores: slope * score + offset is the log-likelihood ratio of the second class against the first.
    scale : (1 + K,) numbers, optional
        For probabilities that are overconfident, underconfident or contain unknown priors: the log-likelihood ratio of
        class k is scale[0] * log p_k + scale[k], up to a constant. See `from_predictions(scaled=True)`.
    cells : tuple of L labels, optional
        With each answer the source gives the cell its input lies in, or a distribution over the cells (6.1).
    context : bool
        The cells are circumstances and not part of the answer: answers are counted within each cell (6.4) instead of
        together with it.
    smoothing : float
        Pseudo-counts of every symbol in every class, shared among the cells; 0.5 is Jeffreys' prior.

    Examples
    --------
    >>> from mixent.fusion.calibration import Calibration
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
    cells: tuple | None = None
    context: bool = False
    smoothing: float = JEFFREYS

    def __post_init__(self) -> None:
        for name in ("classes", "symbols", "cells"):
            if name != "cells" or self.cells is not None:
                object.__setattr__(self, name, read_names(name, getattr(self, name)))
        if len(self.classes) < 2:
            raise ValueError(f"classes must hold at least two labels; got {list(self.classes)!r}")
        object.__setattr__(self, "counts", self._read_counts())
        object.__setattr__(self, "priors", self._read_priors())
        object.__setattr__(self, "edges", self._read_edges())
        object.__setattr__(self, "line", self._read_line())
        object.__setattr__(self, "scale", self._read_scale())
        if not isinstance(self.context, (bool, np.bool_)) or (self.context and self.cells is None):
            raise ValueError(f"context must be True or False, and True only with cells; got {self.context!r}")
        for name in ("calibration_set", "copy_of"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise ValueError(f"{name} must be a name, or None; got {value!r}")
        if not check_number(self.smoothing) or not np.isfinite(self.smoothing) or self.smoothing < 0:
            raise ValueError(f"smoothing must be a number >= 0; got {self.smoothing!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calibration) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.classes, self.symbols, self.counts.tobytes()))

    def __repr__(self) -> str:
        rows = ", ".join(f"{label!r}: {n:g}" for label, n in zip(self.classes, self.n_rows))
        return f"Calibration(rows={{{rows}}}, symbols={listed(list(self.symbols))})"

    def _read_counts(self) -> Array:
        inner = () if self.cells is None else (len(self.cells),)
        counts = read_numbers("counts", self.counts, (len(self.classes), len(self.symbols), *inner))
        if (counts < 0).any():
            k, v, *_ = place = np.argwhere(counts < 0)[0]
            raise ValueError(
                f"counts must be >= 0; class {self.classes[k]!r} with answer {self.symbols[v]!r} has "
                f"{counts[tuple(place)]:g}"
            )
        if not counts.any():
            raise ValueError("counts are all zero; give at least one labelled answer, or use `Calibration.guess`")
        return counts

    def _read_priors(self) -> Array | None:
        if self.priors is None:
            return None
        given: Any = self.priors
        if isinstance(given, Mapping):
            given = [given.get(label, np.nan) for label in self.classes]
        priors = read_numbers("priors", given, (len(self.classes),))
        if (priors < 0).any() or priors.sum() <= 0:
            raise ValueError(f"priors must be >= 0, and not all zero; got {priors.tolist()}")
        total = priors.sum()
        return priors if abs(total - 1) < 1e-12 else priors / total  # exact where it has been read before

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
            raise ValueError("line needs scores of two classes, with the classes as symbols and without edges")
        return slope, offset

    def _read_scale(self) -> tuple[float, ...] | None:
        if self.scale is None:
            return None
        scale = read_numbers("scale", self.scale, (1 + len(self.symbols),))
        if self.symbols != self.classes or self.cells is not None or self.line is not None:
            raise ValueError(
                "scale needs probabilities of the classes, with the classes as symbols and without cells or line"
            )
        return tuple(scale.tolist())

    @property
    def n_rows(self) -> Array:
        """(K,) calibration rows of each class."""
        return self.counts.reshape(len(self.classes), -1).sum(axis=1)

    @property
    def seen(self) -> np.ndarray:
        """(K,) whether there are calibration rows of the class."""
        return self.n_rows > 0

    @property
    def confusion(self) -> Array:
        """(K, V) A(symbol | class), smoothed.

        With cells (K, V, L): A(symbol, cell | class), or A(symbol | cell, class) where they are a context. A class
        without rows has the rates of all other classes pooled.
        """
        pooled = self.counts.sum(axis=0)
        seen = self.seen.reshape(-1, *[1] * pooled.ndim)
        n_cells = 1 if self.cells is None else len(self.cells)
        counts = np.where(seen, self.counts, pooled) + self.smoothing / n_cells
        axes = (1,) if self.context else tuple(range(1, counts.ndim))
        return counts / counts.sum(axis=axes, keepdims=True)

    @property
    def class_prior(self) -> Array:
        """(K,) class priors of its training; by default those of the calibration rows."""
        return self.n_rows / self.n_rows.sum() if self.priors is None else self.priors

    @classmethod
    def guess(cls, classes: Sequence[Any], accuracy: float = GUESSED[0], n_rows: float = GUESSED[1]) -> Self:
        """An assumption about a source that has not been calibrated.

        Parameters
        ----------
        classes : list of labels
        accuracy : float
            Assumed probability of a correct answer, between one over the number of classes and one.
        n_rows : float
            Number of rows of each class that the assumption is worth.

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
        classes: Sequence[Any],
        symbols: Sequence[Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """From a table of counts.

        Parameters
        ----------
        counts : (K, V) array
            A row for each class and a column for each symbol.
        classes : list of labels
        symbols : list of labels, optional
            Default: the classes.
        **options
            priors, calibration_set, copy_of, smoothing: see `Calibration`.

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
        classes: Sequence[Any],
        symbols: Sequence[Any] | None = None,
        **options: Unpack[Options],
    ) -> Self:
        """From a confusion matrix and the number of rows behind it.

        Parameters
        ----------
        rates : (K, V) array
            Each row sums to one.
        n_rows : number, or (K,) array
            Calibration rows of each class.
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
            raise ValueError(f"rates must be >= 0 and sum to 1 in each class; {classes[k]!r} has {table[k].tolist()}")
        rows = np.broadcast_to(np.asarray(n_rows, dtype=float), (len(classes),))
        if not np.isfinite(rows).all() or (rows < 0).any():
            raise ValueError(f"n_rows must be numbers >= 0; got {n_rows!r}")
        return cls.from_counts(table * rows[:, None], classes, symbols, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        predictions: ArrayLike,
        symbols: Sequence[Any] | None = None,
        *,
        cells: ArrayLike | None = None,
        scaled: bool = False,
        **options: Unpack[Options],
    ) -> Self:
        """From labelled rows and the answers of the source to them.

        Parameters
        ----------
        y_true : (n,) labels
            Rows without a label are left out.
        predictions : (n,) labels or (n, V) probabilities
            Blank, or a row of NaN: no answer.
        symbols : list of labels, optional
            The columns of probabilities, or all possible answers (default: the classes and all other answers; if no
            answer is a class, the answers).
        cells : (n,) labels or (n, L) probabilities, optional
            The cell of each row, see `Calibration.cells`; columns of probabilities are cells 0, 1, ..., or the column
            names of a DataFrame.
        scaled : bool
            Calibrate the probabilities on these rows, see `Calibration.scale`; otherwise they are divided by the
            priors of the training and used as they are.
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
        scaled: bool = False,
        **fields: Any,
    ) -> Self:
        """Answers counted by true class; `fields` are further fields of the calibration."""
        labels = read_labels(y_true, len(predictions))
        if labels.codes is None:
            raise ValueError("y_true must be labels; it holds probabilities")
        classes = tuple(labels.classes.tolist())
        wanted = classes if symbols is None else tuple(symbols)
        answers = by_name(predictions, wanted, "the source")
        if symbols is None and answers.ndim == 1:
            wanted = alphabet_of(answers, classes)
        names, values = read_values(answers, wanted, "the source")
        rows = (labels.codes >= 0) & ~np.isnan(values).any(axis=1)
        if scaled:
            if answers.ndim != 2 or names != classes or cells is not None:
                raise ValueError("scaled=True needs probabilities of the classes, without cells")
            fields["scale"] = fitted_scale(values[rows], labels.codes[rows])
        if cells is None:
            return cls(classes, names, np.eye(len(classes))[labels.codes[rows]].T @ values[rows], **fields)
        cell_names, where = _read_cells(cells, len(answers))
        rows &= ~np.isnan(where).any(axis=1)
        truths = np.eye(len(classes))[labels.codes[rows]]
        counts = np.einsum("tk,tv,tl->kvl", truths, values[rows], where[rows])
        return cls(classes, names, counts, cells=cell_names, **fields)

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
        """From a scikit-learn classifier, by its out-of-fold predictions.

        Parameters
        ----------
        estimator : unfitted classifier
        X, y : rows and labels
        cv : int
            Number of folds.
        hard : bool
            Count labels, even where the classifier has probabilities.
        random_state : int
            Of the folds.
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
            raise ValueError("y must be labels; it holds probabilities")
        known = labels.codes >= 0
        values = np.full((len(labels.codes), len(labels.classes)), np.nan)
        for train, held in label_folds(labels.codes, known, random_state, cv):
            train = train[known[train]]
            model = trained(
                estimator, _safe_indexing(X, train), labels.classes[labels.codes[train]], None, random_state
            )
            alphabet, answers = answers_of(
                model, _safe_indexing(X, held), "hard" if hard else "auto", type(model).__name__
            )
            values[held] = aligned(answers, alphabet, labels.classes)
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
        """From scores of labelled rows: the symbols are bins of the score.

        By default the bins have equal mass, with the same mass for every class.

        Parameters
        ----------
        y_true : (n,) labels
        scores : (n,) numbers
            NaN: no answer.
        bins : int
            Maximum number of bins.
        edges : array, optional
            Edges of the bins, instead of `bins`.
        ratio : bool
            With two classes: the log-likelihood ratio as a linear function of the score, by logistic regression,
            instead of bins.
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
        seen = np.isfinite(values)
        if not seen.any():
            raise ValueError("scores must hold at least one finite number")
        if ratio:
            return cls._logistic(y_true, values, seen, **options)
        borders = even_edges(y_true, values, seen, bins) if edges is None else np.asarray(edges, dtype=float)
        symbols = bin_names(borders)
        codes = np.searchsorted(borders, values, side="right")
        seen = ~np.isnan(values)  # an infinite score lies in the first or the last bin
        answers = np.array([symbols[c] if ok else None for c, ok in zip(codes, seen)], dtype=object)
        return cls._counted(y_true, answers, symbols, edges=borders, **options)

    @classmethod
    def _logistic(cls, y_true: ArrayLike, scores: Array, seen: np.ndarray, **options: Unpack[Options]) -> Self:
        labels = read_labels(y_true, len(scores))
        if labels.codes is None or len(labels.classes) != 2:
            raise ValueError(f"ratio=True needs labels of two classes; y_true has {listed(labels.classes.tolist())}")
        rows = seen & (labels.codes >= 0)
        codes = labels.codes[rows]
        if len(set(codes.tolist())) < 2:
            raise ValueError("ratio=True needs scores of both classes")
        line = fitted_line(scores[rows], codes)
        given = options.get("priors")
        prior = np.bincount(codes, minlength=2) / len(codes) if given is None else np.asarray(given, dtype=float)
        proba = np.full((len(scores), 2), np.nan)
        proba[seen] = line_pmf(scores[seen], line, prior)
        return cls._counted(y_true, proba, labels.classes.tolist(), line=line, **options)

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON types."""
        out = {}
        for field in fields(self):
            value = getattr(self, field.name)
            out[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """The calibration that `to_json` wrote; fields that are left out have their defaults."""
        if not isinstance(entry, Mapping):
            raise ValueError(f"a calibration must be a JSON object; got {type(entry).__name__}")
        known = {field.name for field in fields(cls)}
        strange = sorted(set(entry) - known)
        if strange:
            raise ValueError(f"unknown field {strange[0]!r} of a calibration; choose one of {listed(sorted(known))}")
        absent = [name for name in ("classes", "counts") if name not in entry]
        if absent:
            raise ValueError(f"a calibration needs the field {absent[0]!r}")
        given = {**entry, "symbols": entry.get("symbols", entry["classes"])}
        return cls(**{name: value for name, value in given.items() if value is not None})


def _read_cells(cells: Any, n_rows: int) -> tuple[tuple, Array]:
    """Names of the cells, and (n, L) distributions over them."""
    columns = list(getattr(cells, "columns", ()))
    values = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
    if len(values) != n_rows:
        raise ValueError(f"cells must have one entry for each of {n_rows} rows; got {len(values)}")
    numbered = columns or range(values.shape[1]) if values.ndim == 2 else None
    return read_values(values, numbered, "the cells")
