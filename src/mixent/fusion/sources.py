"""The sources of a fusion, with the symbols of all of them in one list."""

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
    """A source of answers: its calibration, the columns of its answers, and how its probabilities are used.

    Whether it gives labels, probabilities or scores follows from the answers and the calibration (`edges`, `line`).

    Parameters
    ----------
    calibration : Calibration
    columns : str, list or dict, optional
        Columns of a wide table: one with labels or scores; a list with the probabilities of its symbols, in their
        order; a dict of symbol -> column. Default: the column with its name, or the columns "name:symbol".
    cells : str or list, optional
        The column with the cell of each item, or a list of columns with the probabilities of the cells. Default: the
        column "name@", or the columns "name@cell". Only used where the calibration has cells.
    as_is : bool
        Use its probabilities as they are, divided by its priors (or scaled, see `Calibration.scale`). False: as an
        uncertain label, through its confusion matrix, which is underconfident if they are true probabilities.

    Examples
    --------
    >>> from mixent.fusion import Calibration, Source
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
        if not self.as_is and self.calibration.scale is not None:
            raise ValueError("as_is=False cannot be combined with a calibration with scale; leave one of them out")


@dataclass(frozen=True)
class Layout:
    """All symbols of all sources, one below the other: S in all. A pair (symbol, cell) is a symbol here."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]
    unanswered: tuple[int, ...] = ()  # sources without any answer: they take no share of a vote from copies

    @staticmethod
    def of(sources: Mapping[str, Source | Calibration]) -> Layout:
        """The layout of a mapping of name -> Calibration or Source."""
        if not isinstance(sources, Mapping) or not sources:
            raise ValueError(f"sources must be a dict, name -> Calibration or Source, and not empty; got {sources!r}")
        read = []
        for name, one in sources.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"the name of a source must be text; got {name!r}")
            if not isinstance(one, (Source, Calibration)):
                raise ValueError(f"source {name!r} must be a Calibration or a Source; got {type(one).__name__}")
            read.append(one if isinstance(one, Source) else Source(one))
        layout = Layout(tuple(sources), tuple(read))
        layout._check()
        return layout

    def _check(self) -> None:
        for name, one in zip(self.names, self.calibrations):
            if one.copy_of is not None and (one.copy_of == name or one.copy_of not in self.names):
                raise ValueError(
                    f"copy_of of source {name!r} must be another of the sources {listed(self.names)}; "
                    f"got {one.copy_of!r}"
                )
            if not (one.confusion > 0).all():
                raise ValueError(
                    f"source {name!r} has a rate of zero and smoothing 0, so items with this answer are impossible "
                    "in the class; use smoothing > 0"
                )
        labels = sorted_labels({label for one in self.calibrations for label in one.classes})
        if len({isinstance(label, str) for label in labels}) > 1:
            raise ValueError(f"the sources' classes must be all text or all numbers; got {listed(labels)}")

    @cached_property
    def calibrations(self) -> tuple[Calibration, ...]:
        return tuple(source.calibration for source in self.sources)

    @property
    def n_sources(self) -> int:
        return len(self.names)

    @cached_property
    def classes(self) -> np.ndarray:
        """(K,) of any source, sorted."""
        return np.array(sorted_labels({label for one in self.calibrations for label in one.classes}))

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Symbols of each source."""
        return tuple(one.counts[0].size for one in self.calibrations)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        ends = np.cumsum((0, *self.sizes)).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @property
    def n_symbols(self) -> int:
        return sum(self.sizes)

    @cached_property
    def source_of(self) -> np.ndarray:
        """(S,)"""
        return np.repeat(np.arange(self.n_sources), self.sizes)

    @cached_property
    def group(self) -> np.ndarray:
        """(S,) source and, where cells are a context, cell of each symbol."""
        out: list[np.ndarray] = []
        start = 0
        for one, size in zip(self.calibrations, self.sizes):
            within = np.arange(size) % len(one.cells) if one.context and one.cells else np.zeros(size, dtype=np.intp)
            out.append(start + within)
            start += within.max() + 1
        return np.concatenate(out)

    def _spread(self, one: Calibration, rows: Array, fill: Array | float) -> Array:
        """(S_j, K): rows (K_j, ...) of a calibration's classes among all classes."""
        flat = rows.reshape(len(one.classes), -1)
        out = np.empty((flat.shape[1], self.n_classes))
        out[:] = np.asarray(fill).reshape(-1, 1) if np.ndim(fill) else fill
        places = {label: k for k, label in enumerate(self.classes.tolist())}
        out[:, [places[label] for label in one.classes]] = flat.T
        return out

    @cached_property
    def confusion(self) -> Array:
        """(S, K) A; a class without calibration rows has the pooled rates of the others."""
        return np.concatenate([self._spread(one, one.confusion, pooled_symbols(one)) for one in self.calibrations])

    @cached_property
    def counts(self) -> Array:
        """(S, K) calibration counts with pseudo-counts: parameters of Dirichlet distributions."""
        out = []
        for one in self.calibrations:
            n_cells = 1 if one.cells is None else len(one.cells)
            out.append(self._spread(one, one.counts, 0.0) + one.smoothing / n_cells)
        counts = np.concatenate(out)
        # a class without rows: the pooled rates, with the weight of the pseudo-counts alone
        return np.where(self.free, self.confusion * self.within(counts), counts)

    @cached_property
    def n_groups(self) -> tuple[int, ...]:
        """Contexts of each source; one where it has none."""
        return tuple(len(one.cells) if one.context and one.cells else 1 for one in self.calibrations)

    @cached_property
    def rates(self) -> Array:
        """(S, K) as counted, without pseudo-counts, whose bias matters with many symbols and many pairs."""
        counts = np.concatenate([self._spread(one, one.counts, 0.0) for one in self.calibrations])
        mass = self.within(counts)
        return np.where(self.free | (mass <= 0), self.confusion, counts / np.where(mass > 0, mass, 1.0))

    @cached_property
    def concentration(self) -> Array:
        """(S, K) counts of the Dirichlet distribution each rate belongs to."""
        return self.within(self.counts)

    @cached_property
    def rate_std(self) -> Array:
        """(S, K) square root of A / (concentration + 1), for the variance of a rate."""
        return np.sqrt(self.confusion / (self.concentration + 1.0))

    def within(self, values: Array) -> Array:
        """(..., S, K) sums over the group of each symbol."""
        moved = np.moveaxis(values, -2, 0)
        mass = np.zeros((self.group.max() + 1, *moved.shape[1:]))
        np.add.at(mass, self.group, moved)
        return np.moveaxis(mass[self.group], 0, -2)

    @cached_property
    def calibration_sets(self) -> list[list[int]]:
        """Sources by calibration set; a copy with the counts of its original belongs to the same set."""
        sets: dict[object, list[int]] = {}
        for j, one in enumerate(self.calibrations):
            root = int(self.root[j])
            same = np.array_equal(one.counts, self.calibrations[root].counts)
            of_root = self.calibrations[root].calibration_set
            inherited = (root if of_root is None else of_root) if same else j
            key = inherited if one.calibration_set is None else one.calibration_set
            sets.setdefault(key, []).append(j)
        return list(sets.values())

    @cached_property
    def set_of(self) -> np.ndarray:
        """(J,) the calibration set of each source."""
        out = np.empty(self.n_sources, dtype=np.intp)
        for place, members in enumerate(self.calibration_sets):
            out[members] = place
        return out

    @cached_property
    def pooled(self) -> Array:
        """(S,) share of each symbol in its group over the rows of the calibration."""
        return np.concatenate([pooled_symbols(one) for one in self.calibrations])

    @cached_property
    def free(self) -> np.ndarray:
        """(S, K) symbols of a source with classes without calibration rows."""
        return np.concatenate(
            [
                self._spread(
                    one, np.broadcast_to(~one.seen.reshape(-1, *[1] * (one.counts.ndim - 1)), one.counts.shape), 1.0
                )
                for one in self.calibrations
            ]
        ).astype(bool)

    @cached_property
    def n_rows(self) -> Array:
        """(J, K) calibration rows."""
        return np.stack([self._spread(one, one.n_rows[:, None], 0.0)[0] for one in self.calibrations])

    @cached_property
    def root(self) -> np.ndarray:
        """(J,) the original of each source, through copies of copies; itself where it is none."""
        places = {name: j for j, name in enumerate(self.names)}
        out = []
        for j in range(self.n_sources):
            seen = [j]
            while (origin := self.calibrations[seen[-1]].copy_of) is not None and places[origin] not in seen:
                seen.append(places[origin])
            # copies that name each other in a ring are one group, represented by its first source
            ring = origin is not None
            out.append(min(seen[seen.index(places[origin]) :]) if ring and origin is not None else seen[-1])
        return np.array(out)

    @cached_property
    def share(self) -> Array:
        """(J,) u: copies share one vote."""
        active = np.array([j not in self.unanswered for j in range(self.n_sources)], dtype=float)
        return 1.0 / np.maximum(np.bincount(self.root, active, minlength=self.n_sources), 1.0)[self.root]

    @property
    def n_training(self) -> float:
        """Number of rows behind `training_prior`; infinite where the priors of a source were given."""
        if any(one.priors is not None for one in self.calibrations):
            return np.inf
        return float(sum(self.calibrations[members[0]].n_rows.sum() for members in self.calibration_sets))

    @cached_property
    def training_prior(self) -> Array:
        """(K,) mean of the sources' class priors, weighted by their numbers of rows."""
        total = np.zeros(self.n_classes)
        for members in self.calibration_sets:  # sources of one set share their rows
            for one in (self.calibrations[j] for j in members):
                total += one.n_rows.sum() / len(members) * self._spread(one, one.class_prior[:, None], 0.0)[0]
        return total / total.sum()


def pooled_symbols(one: Calibration) -> Array:
    """(S_j,) shares of its answers over all its rows, smoothed, within each context."""
    n_cells = 1 if one.cells is None else len(one.cells)
    counts = one.counts.sum(axis=0) + one.smoothing / n_cells
    return (counts / counts.sum(axis=0 if one.context or counts.ndim == 1 else None)).ravel()
