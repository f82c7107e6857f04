"""What the owner of a source knows of it: how often it says what, given the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from mixent.base.delegation import aligned
from mixent.base.folds import label_folds
from mixent.base.params import check_number
from mixent.core.arrays import Array
from mixent.data import listed, read_labels
from mixent.fusion.reading import alphabet_of, by_name, counts_by_name, read_names, read_numbers, read_values
from mixent.fusion.scales import bin_names, even_edges, fitted_line, fitted_scale, line_pmf

JEFFREYS = 0.5  # pseudo-counts of every symbol in every class: a count of zero is no proof
BINS = 10  # of scores
GUESSED = (0.7, 2.0)  # share of right answers of a source nobody has calibrated, and the rows that belief is worth


@dataclass(frozen=True, eq=False, repr=False)
class Calibration:
    """Confusion counts of a source, kept as counts: how sure one can be of them is part of the answer.

    Parameters
    ----------
    classes : tuple of K labels
        The true classes.
    symbols : tuple of V labels
        What the source may say: the classes, fewer, more ("unsure"), or names of bins of its score.
    counts : (K, V) array
        Rows of each class, in the set it was calibrated on, of which it said each symbol; sums of probabilities where
        it says probabilities. With `cells`, (K, V, L). A class without rows is one it was never calibrated on: then
        what it says is held to tell nothing of that class.
    priors : (K,) array, optional
        Class priors of its training, which its probabilities contain. Default: those of the calibration set.
    calibration_set : str, optional
        Name of the rows it was calibrated on. Sources of one set share their calibration error, and nothing else.
    copy_of : str, optional
        Name of the source it is a copy of. Copies share one vote.
    edges : (V - 1,) array, optional
        Borders between the bins of its score, rising; a score equal to a border belongs to the bin above.
    line : (slope, offset), optional
        It gives scores, and slope * score + offset is the log-likelihood ratio of the second class to the first.
    scale : (1 + K,) numbers, optional
        Its probabilities are too sure or too timid, or hold other priors than it says: the log-likelihood ratio of
        class k is scale[0] * log p_k + scale[k], up to a constant. See `from_predictions(scaled=True)`.
    cells : tuple of L labels, optional
        With each answer the source tells where its input lies: one of these cells, or a pmf over them (6.1).
    context : bool
        The cells are no part of the answer, only the circumstances it was given in: answers are counted within each
        cell (6.4) instead of together with it.
    smoothing : float
        Pseudo-counts of every symbol in every class, shared among the cells; 0.5 is Jeffreys'.

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
            raise ValueError(f"a calibration needs at least two classes; got {list(self.classes)!r}")
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
                f"counts must be >= 0; of class {self.classes[k]!r} it said {self.symbols[v]!r} "
                f"{counts[tuple(place)]:g} times"
            )
        if not counts.any():
            raise ValueError(
                "counts are all zero; a source needs at least one labelled answer (or `Calibration.guess`)"
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
            raise ValueError(f"priors must be >= 0, and not all zero; got {priors.tolist()}")
        total = priors.sum()
        return priors if abs(total - 1) < 1e-12 else priors / total  # read again, it is the same to the last bit

    def _read_edges(self) -> Array | None:
        if self.edges is None:
            return None
        edges = read_numbers("edges", self.edges, (len(self.symbols) - 1,))
        if (np.diff(edges) <= 0).any():
            raise ValueError(f"edges must rise; got {edges.tolist()}")
        return edges

    def _read_line(self) -> tuple[float, float] | None:
        if self.line is None:
            return None
        slope, offset = read_numbers("line", self.line, (2,)).tolist()
        if self.symbols != self.classes or len(self.classes) != 2 or self.edges is not None:
            raise ValueError("line is for scores of two classes, which are the symbols, and excludes edges")
        return slope, offset

    def _read_scale(self) -> tuple[float, ...] | None:
        if self.scale is None:
            return None
        scale = read_numbers("scale", self.scale, (1 + len(self.symbols),))
        if self.symbols != self.classes or self.cells is not None or self.line is not None:
            raise ValueError("scale is for probabilities of the classes, which are the symbols, without cells or line")
        return tuple(scale.tolist())

    @property
    def n_rows(self) -> Array:
        """(K,) rows of each class it was calibrated on."""
        return self.counts.reshape(len(self.classes), -1).sum(axis=1)

    @property
    def seen(self) -> np.ndarray:
        """(K,) whether it was calibrated on rows of the class."""
        return self.n_rows > 0

    @property
    def confusion(self) -> Array:
        """(K, V) A(symbol | class), smoothed.

        With cells (K, V, L): A(symbol, cell | class), or, where they are a context, A(symbol | cell, class). A class
        without rows has what is said of the others together.
        """
        pooled = self.counts.sum(axis=0)
        seen = self.seen.reshape(-1, *[1] * pooled.ndim)
        n_cells = 1 if self.cells is None else len(self.cells)
        counts = np.where(seen, self.counts, pooled) + self.smoothing / n_cells
        axes = (1,) if self.context else tuple(range(1, counts.ndim))
        return counts / counts.sum(axis=axes, keepdims=True)

    @property
    def class_prior(self) -> Array:
        """(K,) of its training; by default of the set it was calibrated on."""
        return self.n_rows / self.n_rows.sum() if self.priors is None else self.priors

    @classmethod
    def guess(cls, classes: Sequence[Any], accuracy: float = GUESSED[0], n_rows: float = GUESSED[1]) -> Self:
        """Of a source nobody has calibrated: it says the truth with this probability, a belief worth so few rows.

        Parameters
        ----------
        classes : list of labels
        accuracy : float
            Between one over the number of classes and one.
        n_rows : float
            Rows of each class the belief is worth.

        Returns
        -------
        Calibration
        """
        K = len(classes)
        if not check_number(accuracy) or not check_number(n_rows) or not 1 / K < accuracy < 1 or n_rows <= 0:
            raise ValueError(
                f"a guess needs an accuracy between 1/{K} and 1, and n_rows > 0; got {accuracy!r} and {n_rows!r}"
            )
        rates = np.full((K, K), (1 - accuracy) / (K - 1))
        np.fill_diagonal(rates, accuracy)
        return cls(tuple(classes), tuple(classes), rates * n_rows, smoothing=0.0)

    @classmethod
    def from_counts(
        cls, counts: Any, classes: Sequence[Any], symbols: Sequence[Any] | None = None, **more: Any
    ) -> Self:
        """From a table of counts, a row per class and a column per symbol; symbols are the classes unless named.

        Parameters
        ----------
        counts : (K, V) array
        classes, symbols : lists of labels
        **more
            priors, calibration_set, copy_of, smoothing.

        Returns
        -------
        Calibration
        """
        symbols = tuple(classes if symbols is None else symbols)
        return cls(tuple(classes), symbols, counts_by_name(counts, tuple(classes), symbols), **more)

    @classmethod
    def from_rates(
        cls, rates: Any, n_rows: Any, classes: Sequence[Any], symbols: Sequence[Any] | None = None, **more: Any
    ) -> Self:
        """From rates that sum to one in each class, and how many rows of each class they were counted on.

        Parameters
        ----------
        rates : (K, V) array
        n_rows : number, or (K,) array
        classes, symbols : lists of labels
        **more
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
        return cls(tuple(classes), symbols, table * rows[:, None], **more)

    @classmethod
    def from_predictions(
        cls,
        truth: Any,
        said: Any,
        symbols: Sequence[Any] | None = None,
        *,
        cells: Any = None,
        scaled: bool = False,
        **more: Any,
    ) -> Self:
        """From rows whose truth is known: what the source said of each, as labels or as probabilities.

        Parameters
        ----------
        truth : (n,) labels
            Rows without one are left out.
        said : (n,) labels or (n, V) probabilities
            Blank, or a row of NaN: no answer.
        symbols : list of labels, optional
            What the columns of probabilities are about, or all that may be said. Default: the classes, and what was
            said beside them; where nothing said is a class, what was said.
        cells : (n,) labels or (n, L) probabilities, optional
            The cell of each row, see `Calibration.cells`; columns of probabilities are cells 0, 1, ..., or those of a
            DataFrame its names.
        scaled : bool
            Learn from these rows how much its probabilities are worth, see `Calibration.scale`; else they are taken as
            they are, divided by its priors.
        **more
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        labels = read_labels(truth, len(said))
        if labels.codes is None:
            raise ValueError("truth must be labels; it holds probabilities")
        classes = tuple(labels.classes.tolist())
        wanted = classes if symbols is None else tuple(symbols)
        said = by_name(said, wanted, "the source")
        if symbols is None and said.ndim == 1:
            wanted = alphabet_of(said, classes)
        names, values = read_values(said, wanted, "the source")
        rows = (labels.codes >= 0) & ~np.isnan(values).any(axis=1)
        if scaled:
            if said.ndim != 2 or names != classes or cells is not None:
                raise ValueError("scaled=True is for probabilities of the classes, without cells")
            more["scale"] = fitted_scale(values[rows], labels.codes[rows])
        if cells is None:
            return cls(classes, names, np.eye(len(classes))[labels.codes[rows]].T @ values[rows], **more)
        columns = list(getattr(cells, "columns", ()))
        cells = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
        if len(cells) != len(said):
            raise ValueError(f"{len(cells)} cells for {len(said)} rows")
        numbered = columns or range(cells.shape[1]) if cells.ndim == 2 else None
        cell_names, where = read_values(cells, numbered, "the cells")
        rows &= ~np.isnan(where).any(axis=1)
        truths = np.eye(len(classes))[labels.codes[rows]]
        counts = np.einsum("tk,tv,tl->kvl", truths, values[rows], where[rows])
        return cls(classes, names, counts, cells=cell_names, **more)

    @classmethod
    def from_cv(
        cls, estimator: Any, X: Any, y: Any, *, cv: int = 5, hard: bool = False, random_state: int = 0, **more: Any
    ) -> Self:
        """From a scikit-learn classifier, by what it says out of fold: on its training rows it looks better than it is.

        Parameters
        ----------
        estimator : classifier, not fitted
        X, y : rows and labels
        cv : int
            Folds.
        hard : bool
            Count labels, even where it has probabilities.
        random_state : int
            For the folds.
        **more
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        from sklearn.utils import _safe_indexing

        from mixent.ensemble.members import output_of as answers_of
        from mixent.ensemble.members import trained

        labels = read_labels(y, len(y))
        if labels.codes is None:
            raise ValueError("y must be labels; it holds probabilities")
        known = labels.codes >= 0
        values = np.full((len(labels.codes), len(labels.classes)), np.nan)
        for train, held in label_folds(labels.codes, known, random_state, cv):
            train = train[known[train]]
            model = trained(
                estimator, _safe_indexing(X, train), labels.classes[labels.codes[train]], None, random_state
            )
            alphabet, said = answers_of(
                model, _safe_indexing(X, held), "hard" if hard else "auto", type(model).__name__
            )
            values[held] = aligned(said, alphabet, labels.classes)
        truth = np.array([labels.classes[c] if c >= 0 else None for c in labels.codes], dtype=object)
        return cls.from_predictions(truth, values, symbols=labels.classes.tolist(), **more)

    @classmethod
    def from_scores(
        cls, truth: Any, scores: Any, *, bins: int = BINS, edges: Any = None, ratio: bool = False, **more: Any
    ) -> Self:
        """From scores: their bins are the symbols, by default so that each holds as much of the classes, taken alike.

        Parameters
        ----------
        truth : (n,) labels
        scores : (n,) numbers
            NaN: no answer.
        bins : int
            How many, at most.
        edges : array, optional
            Borders of the bins, instead.
        ratio : bool
            Two classes: read scores as log-likelihood ratios on a line (logistic regression) instead of in bins.
        **more
            As for `from_counts`.

        Returns
        -------
        Calibration
        """
        try:
            scores = np.asarray(scores, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"scores must be numbers; {error}") from error
        seen = np.isfinite(scores)
        if not seen.any():
            raise ValueError("scores hold no number")
        if ratio:
            return cls._on_a_line(truth, scores, seen, **more)
        if edges is None:
            edges = even_edges(truth, scores, seen, bins)
        edges = np.asarray(edges, dtype=float)
        symbols = bin_names(edges)
        seen = ~np.isnan(scores)  # an infinite one lies in the first bin or the last
        codes = np.searchsorted(edges, scores, side="right")
        said = np.array([symbols[c] if ok else None for c, ok in zip(codes, seen)], dtype=object)
        return cls.from_predictions(truth, said, symbols=symbols, edges=edges, **more)

    @classmethod
    def _on_a_line(cls, truth: Any, scores: Array, seen: np.ndarray, **more: Any) -> Self:
        labels = read_labels(truth, len(scores))
        if labels.codes is None or len(labels.classes) != 2:
            raise ValueError(f"ratio=True is for labels of two classes; truth has {listed(labels.classes.tolist())}")
        rows = seen & (labels.codes >= 0)
        codes = labels.codes[rows]
        if len(set(codes.tolist())) < 2:
            raise ValueError("ratio=True needs scores of both classes")
        line = fitted_line(scores[rows], codes)
        prior = np.bincount(codes, minlength=2) / len(codes) if more.get("priors") is None else more["priors"]
        said = np.full((len(scores), 2), np.nan)
        said[seen] = line_pmf(scores[seen], line, np.asarray(prior, dtype=float))
        return cls.from_predictions(truth, said, symbols=labels.classes.tolist(), line=line, **more)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        out = {}
        for field in fields(self):
            value = getattr(self, field.name)
            out[field.name] = value.tolist() if isinstance(value, np.ndarray) else value
        return {name: list(value) if isinstance(value, tuple) else value for name, value in out.items()}

    @classmethod
    def from_json(cls, entry: Any) -> Self:
        """Read what `to_json` wrote; what is left out has its default."""
        if not isinstance(entry, Mapping):
            raise ValueError(f"a calibration is a JSON object; got {type(entry).__name__}")
        known = {field.name for field in fields(cls)}
        strange = sorted(set(entry) - known)
        if strange:
            raise ValueError(f"a calibration has no field {strange[0]!r}; it has {listed(sorted(known))}")
        absent = [name for name in ("classes", "counts") if name not in entry]
        if absent:
            raise ValueError(f"a calibration needs the field {absent[0]!r}")
        given = {**entry, "symbols": entry.get("symbols", entry["classes"])}
        return cls(**{name: value for name, value in given.items() if value is not None})
