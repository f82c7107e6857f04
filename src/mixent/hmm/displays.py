"""Display of hidden states: transitions, emissions, and the most probable path of a sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import FAINT, INK, color, divided, marker, plain, share_colors, tidy
from mixent.base.text import count
from mixent.show import Short

MAX_STATES = 10  # number of states up to which probabilities are written
MAX_VALUES = 12  # number of categories drawn; those that differ most between states


@dataclass(repr=False)
class Emitted(Short):
    """Emissions of the states: mean and standard deviation of a number, or probabilities of categories."""

    name: str
    mean: np.ndarray | None = None  # (S,)
    std: np.ndarray | None = None  # (S,)
    table: np.ndarray | None = None  # (S, values)
    values: tuple[Any, ...] = ()


@dataclass(repr=False)
class StatesDisplay(Display):
    """Transitions, emissions and optionally a sequence with its most probable path of states (Viterbi algorithm)."""

    start: np.ndarray  # (S,)
    transitions: np.ndarray  # (S, S); with a matrix for every step, their mean
    emitted: Emitted | None  # None with emissions="precomputed"
    n_matrices: int = 1
    path: np.ndarray | None = None  # (T,) state of each step
    steps: np.ndarray | None = None  # (T,) values: numbers, or positions among the values; NaN missing
    axes_: Any = field(default=None, repr=False)  # of the panels

    @classmethod
    @draws
    def from_estimator(
        cls,
        est: Any,
        X: Any = None,
        sequence: int = 0,
        *,
        lengths: Any = None,
        groups: Any = None,
        variable: Any = None,
    ) -> Self:
        """Create the display from a fitted `HiddenMarkovModel`, or one of the `models_` of a `HMMClassifier`.

        Parameters
        ----------
        est : HiddenMarkovModel
        X, lengths, groups : optional
            Sequences, see `fit`; one of them is drawn with its path.
        sequence : int
            Index of this sequence.
        variable : str, optional
            The variable to draw (default: the first).
        """
        if hasattr(est, "models_"):
            raise ValueError(f"{type(est).__name__} has a model for each class; pass one of its models_")
        if not hasattr(est, "transitions_"):
            raise ValueError(f"{type(est).__name__} has no transitions_; pass a fitted HiddenMarkovModel")
        transitions = np.asarray(est.transitions_)
        matrices = 1 if transitions.ndim == 2 else len(transitions)
        mean = transitions if transitions.ndim == 2 else transitions.mean(axis=0)
        emitted = None if est.emissions == "precomputed" else _emitted(est, variable)
        out = cls(est.start_, mean, emitted, matrices)
        if X is not None:
            out.path, out.steps = _decoded(est, X, sequence, lengths, groups, emitted)
        return out

    def _panels(self) -> dict[Any, float]:
        """Return the drawing functions of the panels, and their shares of the width."""
        panels: dict[Any, float] = {self._draw_transitions: 1.0}
        if self.emitted is not None:
            panels[self._draw_emissions] = 1.1
        if self.path is not None:
            panels[self._draw_path] = 2.0
        return panels

    def size(self) -> tuple[float, float]:
        return 3.3 * sum(self._panels().values()), 3.2

    def _draw(self, ax: Any) -> None:
        """Draw the panels next to each other in the area of `ax`."""
        panels = self._panels()
        self.axes_ = divided(ax, len(panels), 1, len(panels), list(panels.values()))
        for draw, panel in zip(panels, self.axes_):
            draw(panel)

    def _draw_transitions(self, ax: Any) -> None:
        S = len(self.start)
        table = np.vstack([self.start, self.transitions])
        _table(ax, table, [f"{s}" for s in range(S)], ["start", *(f"{s}" for s in range(S))])
        ax.axhline(0.5, color="white", lw=4)
        ax.set(xlabel="Next state", ylabel="State")
        mean = "" if self.n_matrices == 1 else f", mean of {self.n_matrices} steps"
        _title(ax, f"Transition probabilities{mean}")

    def _draw_emissions(self, ax: Any) -> None:
        emitted = self.emitted
        assert emitted is not None
        S = len(self.start)
        _title(ax, f"Emissions of {plain(emitted.name, 20).strip()}")
        if emitted.table is not None:
            shown = _most_different(emitted.table)
            _table(ax, emitted.table[:, shown], [plain(emitted.values[v], 10).strip() for v in shown], range(S))
            ax.set(xlabel="Value", ylabel="State")
            return
        assert emitted.mean is not None and emitted.std is not None
        for s in range(S):
            style: dict[str, Any] = {"color": color(s), "marker": marker(s), "ms": 6, "lw": 1.6, "capsize": 3}
            ax.errorbar(emitted.mean[s], s, xerr=emitted.std[s], **style)
        ax.set(xlabel="Mean ± standard deviation", ylabel="State", ylim=(S - 0.5, -0.5), yticks=range(S))
        tidy(ax)

    def _draw_path(self, ax: Any) -> None:
        assert self.path is not None
        T, S = len(self.path), len(self.start)
        time = np.arange(T)
        _title(ax, "Most probable path")
        if self.steps is None or self.emitted is None:
            ax.step(time, self.path, where="mid", color=FAINT, lw=1)
            for s in range(S):
                inside = self.path == s
                ax.plot(time[inside], self.path[inside], ls="none", color=color(s), marker=marker(s), ms=4)
            ax.set(ylabel="State", yticks=range(S), ylim=(S - 0.5, -0.5))
        else:
            ax.plot(time, self.steps, color=FAINT, lw=0.7, zorder=1)
            for s in range(S):
                inside = self.path == s
                style: dict[str, Any] = {"color": color(s), "marker": marker(s), "ls": "none", "ms": 4.5}
                ax.plot(time[inside], self.steps[inside], label=f"state {s}", zorder=3, **style)
                for first, last in _runs(inside):
                    ax.axvspan(first - 0.5, last + 0.5, color=color(s), alpha=0.12, lw=0, zorder=0)
            if self.emitted.table is not None:
                values = self.emitted.values
                ticks = range(0, len(values), -(-len(values) // MAX_VALUES))
                ax.set_yticks(ticks, [plain(values[v], 10).strip() for v in ticks])
            ax.set_ylabel(plain(self.emitted.name, 24).strip())
            ax.legend(frameon=False, fontsize="x-small", loc="lower right", bbox_to_anchor=(1, 1), ncols=min(S, 5))
        ax.set(xlabel="Step", xlim=(-0.7, T - 0.3))
        ax.xaxis.get_major_locator().set_params(integer=True)
        tidy(ax)


def _emitted(est: Any, variable: Any) -> Emitted:
    names = list(est.variables_.names)
    variable = names[0] if variable is None else variable
    if variable not in names:
        raise ValueError(f"variable must be one of {', '.join(map(repr, names))}; got {variable!r}")
    position = names.index(variable)
    if position in est.variables_.continuous:
        j = est.variables_.continuous.index(position)
        return Emitted(variable, est.means_[:, j], np.sqrt(est.covariances_[:, j, j]))
    return Emitted(variable, table=est.tables_[variable], values=est.variables_.columns[position].categories)


def _decoded(
    est: Any, X: Any, sequence: int, lengths: Any, groups: Any, emitted: Emitted | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the most probable path of a sequence, (T,), and its values."""
    steps = est._read(X, lengths, groups)
    if not -steps.n_sequences <= sequence < steps.n_sequences:
        raise ValueError(
            f"sequence must be an index of the {count(steps.n_sequences, 'sequence')} in X, starting at 0; "
            f"got {sequence!r}"
        )
    index = range(steps.n_sequences)[sequence]
    rows = slice(steps.starts[index], steps.starts[index] + steps.lengths[index])
    paths = est.decode(X, lengths=lengths, groups=groups)
    path = paths[index] if est.by_row_ else paths[np.arange(len(paths)) if steps.rows is None else steps.rows][rows]
    if emitted is None:
        return path, None
    names = list(est.variables_.names)
    position = names.index(emitted.name)
    if emitted.table is None:
        j = est.variables_.continuous.index(position)
        if j not in est.varying_:
            return path, np.full(len(path), est.constants_[j])
        return path, steps.table.X[rows, int(np.searchsorted(est.varying_, j))]
    codes = steps.table.codes[rows, est.variables_.categorical.index(position)].astype(float)
    return path, np.where(codes < 0, np.nan, codes)


def _most_different(table: np.ndarray) -> np.ndarray:
    """Return the positions of the values (columns) that differ most between states, in their order."""
    return np.sort(np.argsort(-np.ptp(table, axis=0), kind="stable")[:MAX_VALUES])


def _runs(inside: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and last index of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(int)))
    return [(int(a), int(b) - 1) for a, b in zip(edges[::2], edges[1::2])]


def _table(ax: Any, table: np.ndarray, columns: Any, rows: Any) -> None:
    """Draw probabilities as a heat map, with their values if they fit."""
    ax.imshow(table, cmap=share_colors(), vmin=0, vmax=1, aspect="auto")
    long = max(len(str(name)) for name in columns) > 3
    ax.set_xticks(range(table.shape[1]), columns, rotation=90 if long else 0)
    ax.set_yticks(range(table.shape[0]), rows)
    ax.tick_params(length=0, colors=INK, labelsize="small")
    ax.spines[:].set_visible(False)
    if max(table.shape) <= MAX_STATES + 1:
        for (row, column), share in np.ndenumerate(table):
            shade = "white" if share > 0.5 else INK
            ax.text(column, row, f"{share:.2f}", ha="center", va="center", color=shade, fontsize="x-small")


def _title(ax: Any, text: str) -> None:
    ax.set_title(text, loc="left", fontsize="small", color=INK)
