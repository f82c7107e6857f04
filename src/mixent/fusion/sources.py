"""The sources of a fusion, and the layout of all their symbols in one list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mixent.core.arrays import Array
from mixent.data import listed
from mixent.fusion.calibration import Calibration
from mixent.fusion.reading import sorted_labels


@dataclass(frozen=True)
class Source:
    """A source of answers: its calibration, the columns of its answers, and the use of its probabilities.

    `Fuser` also accepts a `Calibration` in place of a `Source`; a `Source` is needed only for other column names or
    for `as_is=False`. Whether the source gives labels, probabilities or scores follows from its answers and from its
    calibration (`edges`, `line`).

    Parameters
    ----------
    calibration : Calibration
        Confusion counts of the source.
    columns : str, list or dict, optional
        Columns of a wide table: the name of the column with its labels or scores, a list of the columns with the
        probabilities of its symbols in their order, or a dict of symbol -> column. Default: the column with the name
        of the source, or the columns "name:symbol".
    cells : str or list, optional
        Name of the column with the cell of each item, or a list of the columns with the probabilities of the cells.
        Default: the column "name@", or the columns "name@cell". Only used with a calibration that has cells.
    as_is : bool, default=True
        Whether probabilities are used as probabilities, rescaled (see `Calibration.scale`) or divided by the class
        priors of the training. Otherwise they are used as uncertain labels, through the confusion matrix, which is
        underconfident.

    Examples
    --------
    >>> from mixent import Calibration, Source
    >>> camera = Calibration.from_rates([[0.9, 0.1], [0.2, 0.8]], 50, classes=["day", "night"])
    >>> Source(camera, columns="Camera 1").calibration.confusion.round(2).tolist()
    [[0.89, 0.11], [0.21, 0.79]]
    """

    calibration: Calibration
    columns: str | Sequence[str] | Mapping[Any, str] | None = None
    cells: str | Sequence[str] | None = None
    as_is: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.calibration, Calibration):
            raise ValueError(f"calibration must be a Calibration; got {type(self.calibration).__name__}")
        if self.cells is not None and self.calibration.cells is None:
            raise ValueError("cells is only used with a calibration that has cells")
        if not isinstance(self.as_is, (bool, np.bool_)):
            raise ValueError(f"as_is must be True or False; got {self.as_is!r}")


@dataclass(frozen=True)
class Layout:
    """The symbols of all sources in one list of length S; a pair (symbol, cell) is one symbol."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    unanswered: tuple[int, ...] = ()  # sources without any answer, which have no share in the vote of their copies
    left_out: tuple[int, ...] = ()  # faulty sources without a vote
    relearned: tuple[int, ...] = ()  # faulty sources with rates estimated from the batch

    @staticmethod
    def of(sources: Mapping[str, Source | Calibration]) -> Layout:
        """The layout of a mapping of name -> Calibration or Source."""
        if not isinstance(sources, Mapping) or not sources:
            raise ValueError(f"sources must be a non-empty dict of name -> Calibration or Source; got {sources!r}")
        checked = []
        for name, source in sources.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"the name of a source must be a non-empty string; got {name!r}")
            if not isinstance(source, (Source, Calibration)):
                raise ValueError(f"source {name!r} must be a Calibration or a Source; got {type(source).__name__}")
            checked.append(source if isinstance(source, Source) else Source(source))
        layout = Layout(tuple(sources), tuple(checked))
        layout._check()
        return layout

    def _check(self) -> None:
        for name, calibration in zip(self.names, self.calibrations):
            original = calibration.copy_of
            if original is not None and (original == name or original not in self.names):
                raise ValueError(
                    f"copy_of of source {name!r} must be the name of another source, one of {listed(self.names)}; "
                    f"got {original!r}"
                )
            if not (calibration.confusion > 0).all():
                raise ValueError(
                    f"source {name!r} has a rate of zero and smoothing=0, which makes an answer impossible in a "
                    "class; use smoothing > 0"
                )
        labels = sorted_labels({label for calibration in self.calibrations for label in calibration.classes})
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError(f"the classes of all sources must be strings, or all numbers; got {listed(labels)}")

    @cached_property
    def calibrations(self) -> tuple[Calibration, ...]:
        return tuple(source.calibration for source in self.sources)

    @property
    def n_sources(self) -> int:
        return len(self.names)

    @cached_property
    def classes(self) -> np.ndarray:
        """(K,) classes of all sources, sorted."""
        return np.array(sorted_labels({label for calibration in self.calibrations for label in calibration.classes}))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of symbols of each source."""
        return tuple(calibration.counts[0].size for calibration in self.calibrations)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        ends = np.cumsum((0, *self.sizes)).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_symbols(self) -> int:
        return sum(self.sizes)

    @cached_property
    def source_of(self) -> np.ndarray:
        """(S,) source of each symbol."""
        return np.repeat(np.arange(self.n_sources), self.sizes)

    @cached_property
    def group(self) -> np.ndarray:
        """(S,) group of each symbol: its source, divided into the cells of a context."""
        out: list[np.ndarray] = []
        start = 0
        for n_groups, size in zip(self.n_groups, self.sizes):
            out.append(start + np.arange(size) % n_groups)
            start += n_groups
        return np.concatenate(out)

    def _expand(self, calibration: Calibration, values: Array, fill: Array | float) -> Array:
        """(S_j, K) values (K_j, ...) of the classes of one calibration, with `fill` for all other classes."""
        flat = values.reshape(len(calibration.classes), -1)
        out = np.empty((flat.shape[1], self.n_classes))
        out[:] = np.asarray(fill).reshape(-1, 1) if np.ndim(fill) else fill
        index = {label: k for k, label in enumerate(self.classes.tolist())}
        out[:, [index[label] for label in calibration.classes]] = flat.T
        return out

    @cached_property
    def confusion(self) -> Array:
        """(S, K) A; a class without calibration rows has the pooled rates of the others."""
        return np.concatenate([self._expand(c, c.confusion, pooled_rates(c)) for c in self.calibrations])

    @cached_property
    def counts(self) -> Array:
        """(S, K) calibration counts with pseudo-counts: parameters of Dirichlet distributions."""
        out = []
        for calibration in self.calibrations:
            n_cells = 1 if calibration.cells is None else len(calibration.cells)
            pseudo = calibration.smoothing / n_cells
            out.append(self._expand(calibration, calibration.restricted(calibration.counts + pseudo), pseudo))
        counts = np.concatenate(out)
        # a class without rows has the pooled rates, with the weight of the pseudo-counts alone
        return np.where(self.unconstrained, self.confusion * self.group_sums(counts), counts)

    @cached_property
    def n_groups(self) -> tuple[int, ...]:
        """Number of contexts of each source; one where it has none."""
        return tuple(len(c.cells) if c.context and c.cells else 1 for c in self.calibrations)

    @cached_property
    def rates(self) -> Array:
        """(S, K) relative frequencies without pseudo-counts, whose bias matters with many symbols and many pairs."""
        counts = np.concatenate([self._expand(c, c.restricted(c.counts), 0.0) for c in self.calibrations])
        mass = self.group_sums(counts)
        return np.where(self.unconstrained | (mass <= 0), self.confusion, counts / np.where(mass > 0, mass, 1.0))

    @cached_property
    def concentration(self) -> Array:
        """(S, K) total concentration of the Dirichlet distribution of each rate."""
        return self.group_sums(self.counts)

    @cached_property
    def rate_std(self) -> Array:
        """(S, K) square root of A / (concentration + 1), for the variance of a rate."""
        return np.sqrt(self.confusion / (self.concentration + 1.0))

    def group_sums(self, values: Array) -> Array:
        """(..., S, K) sums over the group of each symbol."""
        by_symbol = np.moveaxis(values, -2, 0)
        mass = np.zeros((self.group.max() + 1, *by_symbol.shape[1:]))
        np.add.at(mass, self.group, by_symbol)
        return np.moveaxis(mass[self.group], 0, -2)

    @cached_property
    def calibration_sets(self) -> list[list[int]]:
        """Sources by calibration set; a copy with the counts of its original belongs to the same set."""
        sets: dict[object, list[int]] = {}
        for j, calibration in enumerate(self.calibrations):
            root = int(self.root[j])
            same = np.array_equal(calibration.counts, self.calibrations[root].counts)
            of_root = self.calibrations[root].calibration_set
            inherited = (root if of_root is None else of_root) if same else j
            key = inherited if calibration.calibration_set is None else calibration.calibration_set
            sets.setdefault(key, []).append(j)
        return list(sets.values())

    @cached_property
    def set_of(self) -> np.ndarray:
        """(J,) index of the calibration set of each source."""
        out = np.empty(self.n_sources, dtype=np.intp)
        for index, members in enumerate(self.calibration_sets):
            out[members] = index
        return out

    @cached_property
    def pooled(self) -> Array:
        """(S,) share of each symbol in its group over the rows of the calibration."""
        return np.concatenate([pooled_rates(calibration) for calibration in self.calibrations])

    @cached_property
    def unconstrained(self) -> np.ndarray:
        """(S, K) whether the source has no calibration rows of the class."""
        out = []
        for calibration in self.calibrations:
            unseen = ~calibration.seen.reshape(-1, *[1] * (calibration.counts.ndim - 1))
            out.append(self._expand(calibration, np.broadcast_to(unseen, calibration.counts.shape), 1.0))
        return np.concatenate(out).astype(bool)

    @cached_property
    def n_rows(self) -> Array:
        """(J, K) number of calibration rows."""
        return np.stack([self._expand(c, c.n_rows[:, None], 0.0)[0] for c in self.calibrations])

    @cached_property
    def root(self) -> np.ndarray:
        """(J,) the original of each source, through copies of copies; the source itself where it is not a copy."""
        index = {name: j for j, name in enumerate(self.names)}
        out = []
        for j in range(self.n_sources):
            chain = [j]
            while (original := self.calibrations[chain[-1]].copy_of) is not None and index[original] not in chain:
                chain.append(index[original])
            # copies that refer to each other in a cycle are one group, represented by its first source
            out.append(chain[-1] if original is None else min(chain[chain.index(index[original]) :]))
        return np.array(out)

    @cached_property
    def share(self) -> Array:
        """(J,) u, the share of each source in one vote for each group of copies; zero for sources that are left out."""
        voting = np.array([j not in self.left_out for j in range(self.n_sources)], dtype=float)
        active = voting * [j not in self.unanswered for j in range(self.n_sources)]
        return voting / np.maximum(np.bincount(self.root, active, minlength=self.n_sources), 1.0)[self.root]

    def in_order(self, values: Any) -> Any:
        """A list in the order of the classes of the calibrations, in that of `classes`; anything else as it is.

        Raises ValueError if the calibrations have the classes in different orders, so that a list is ambiguous.
        """
        if isinstance(values, (str, Mapping)) or np.ndim(values) != 1 or len(values) != self.n_classes:
            return values
        whole = [calibration.classes for calibration in self.calibrations if len(calibration.classes) == self.n_classes]
        orders = list(dict.fromkeys(whole)) or [tuple(self.classes.tolist())]
        if len(orders) > 1:
            raise ValueError(
                "class_prior must be a dict of label -> probability, because the calibrations have the classes in "
                f"different orders: {listed(orders[0])} and {listed(orders[1])}"
            )
        return [list(values)[orders[0].index(label)] for label in self.classes.tolist()]

    @property
    def n_training(self) -> float:
        """Number of rows behind `training_prior`; infinite where the priors of a source were given."""
        if any(calibration.priors is not None for calibration in self.calibrations):
            return np.inf
        return float(sum(self.calibrations[members[0]].n_rows.sum() for members in self.calibration_sets))

    @cached_property
    def training_prior(self) -> Array:
        """(K,) mean of the sources' class priors, weighted by their numbers of rows."""
        total = np.zeros(self.n_classes)
        for members in self.calibration_sets:  # sources of one set share their rows
            for calibration in (self.calibrations[j] for j in members):
                prior = self._expand(calibration, calibration.class_prior[:, None], 0.0)[0]
                total += calibration.n_rows.sum() / len(members) * prior
        return total / total.sum()


def pooled_rates(calibration: Calibration) -> Array:
    """(S_j,) smoothed rates of the symbols over the rows of all classes, within each context."""
    n_cells = 1 if calibration.cells is None else len(calibration.cells)
    counts = calibration.counts.sum(axis=0) + calibration.smoothing / n_cells
    return (counts / counts.sum(axis=0 if calibration.context or counts.ndim == 1 else None)).ravel()
