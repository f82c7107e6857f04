"""What all displays share, and the display that any fitted estimator may use: the objective, pass by pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from mixent.base.style import FAINT, OKABE_ITO, axes_or_new, legend, tidy
from mixent.core.driver import Step
from mixent.show import Short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

D = TypeVar("D", bound="Display")
RULE = "Parameters\n----------\n"  # of numpydoc


def draws(compute: Callable[..., D]) -> Callable[..., D]:
    """A class method `from_...` that computes a display, made to draw it at once, as those of scikit-learn do.

    It takes `ax` and the options of `plot` as keywords. See `computed` for the display alone.
    """

    @wraps(compute)
    def make(cls: Any, *args: Any, ax: Axes | None = None, **options: Any) -> D:
        of_plot = {name: options.pop(name) for name in _plot_options(cls) if name in options}
        return compute(cls, *args, **options).plot(ax, **of_plot)

    return make


def computed(make: Callable[..., D], *args: Any, **options: Any) -> D:
    """The display of a class method `from_...`, not drawn: for pages, and for displays made from other sources.

    Parameters
    ----------
    make : class method, such as `ReliabilityDisplay.from_estimator`
    *args, **options : its arguments, without `ax`
    """
    return make.__func__.__wrapped__(make.__self__, *args, **options)  # type: ignore[attr-defined]


class Display(Short):
    """A dataclass that computes and draws in `from_...` (see `draws`); `plot` draws again, elsewhere.

    `ax_` and `figure_` hold what was drawn.
    """

    ax_: Any = None  # matplotlib axes
    figure_: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Add the parameters of `plot` to the signatures and docstrings of the methods that draw."""
        super().__init_subclass__(**options)
        for member in vars(cls).values():
            if isinstance(member, classmethod) and hasattr(member.__func__, "__wrapped__"):
                _add_plot_parameters(member.__func__, cls.plot)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 5.2, 4.0

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw (default: a new figure).

        Returns
        -------
        self
        """
        return self._plot(ax)

    def picture(self, **options: Any) -> Figure:
        """A figure of its own that pyplot does not know, for pages.

        Parameters
        ----------
        **options : of `plot`

        Returns
        -------
        matplotlib figure
        """
        from mixent.base.document import canvas

        figure = canvas(*self.size())
        self.plot(figure.subplots(), **options)
        return figure

    def _plot(self, ax: Axes | None, **options: Any) -> Self:
        drawn = axes_or_new(ax, self.size())
        self._draw(drawn, **options)
        self.ax_, self.figure_ = drawn, drawn.figure
        return self

    def _draw(self, ax: Any) -> None:
        """Draw on axes; what a display defines."""
        raise NotImplementedError


def _plot_options(cls: type[Display]) -> list[str]:
    """Names of the parameters of `plot` beside `self` and `ax`."""
    return list(inspect.signature(cls.plot).parameters)[2:]


def _add_plot_parameters(make: Any, plot: Any) -> None:
    compute, drawing = inspect.signature(make.__wrapped__), inspect.signature(plot)
    added = [p.replace(kind=p.KEYWORD_ONLY) for p in list(drawing.parameters.values())[1:]]
    make.__signature__ = compute.replace(parameters=[*compute.parameters.values(), *added])
    if not make.__wrapped__.__doc__:  # python -OO
        return
    before, after = _split(inspect.cleandoc(make.__wrapped__.__doc__))
    parameters = _split(inspect.cleandoc(plot.__doc__))[0].split(RULE, 1)[1]
    make.__doc__ = f"{before}\n{parameters}{after}"


def _split(doc: str) -> tuple[str, str]:
    """A docstring up to the end of its parameters, and the rest."""
    start = doc.index(RULE)
    end = doc.find("\n\n", start)
    return (doc, "") if end < 0 else (doc[:end], doc[end:])


@dataclass(repr=False)
class ConvergenceDisplay(Display):
    """Objective (nats) against passes over the data.

    A repair (a component re-seeded) or a new estimate of the prior starts a new segment; only there may the objective
    decrease.
    """

    n_pass: np.ndarray  # (T,)
    objective: np.ndarray  # (T,) nats
    kind: np.ndarray  # (T,) "start", "plain", "proposal", "repair"
    accepted: np.ndarray  # (T,) bool
    segment: np.ndarray  # (T,)

    @classmethod
    @draws
    def from_estimator(cls, est: Any) -> Self:
        """The trace of a fitted estimator.

        Parameters
        ----------
        est : fitted estimator with `run_`
        """
        if getattr(est, "run_", None) is None:
            raise ValueError(f"{type(est).__name__} has no run_ with a trace; fit a mixent estimator first")
        return computed(cls.from_trace, est.run_.trace)

    @classmethod
    @draws
    def from_trace(cls, trace: Sequence[Step]) -> Self:
        """The steps of a run.

        Parameters
        ----------
        trace : sequence of steps, such as `run_.trace` or `Fuser.history_`
        """
        if not trace:
            raise ValueError("the trace is empty: no pass was made")
        names = ("n_pass", "objective", "kind", "accepted", "segment")
        return cls(*(np.array([getattr(record, name) for record in trace]) for name in names))

    def _draw(self, ax: Any) -> None:
        """One line per segment; accelerated, rejected and repaired steps are marked."""
        ok, finite = self.accepted.astype(bool), np.isfinite(self.objective)
        base = self._base(ok & finite)
        objective = self.objective - base
        for segment in np.unique(self.segment):
            rows = ok & finite & (self.segment == segment)
            ax.plot(self.n_pass[rows], objective[rows], color=OKABE_ITO[0], marker=".", ms=4, lw=1.5, zorder=2)
        fast = ok & finite & (self.kind == "proposal")
        style = {"ls": "none", "zorder": 3}
        if fast.any():
            look = {"marker": "^", "ms": 6, "color": OKABE_ITO[2], "label": "accelerated step"}
            ax.plot(self.n_pass[fast], objective[fast], **look, **style)
        self._limit(ax, objective[ok & finite])
        if (~ok).any():
            floor = ax.get_ylim()[0]
            height = np.where(finite[~ok], np.maximum(objective[~ok], floor), floor)
            look = {"marker": "x", "ms": 5, "color": OKABE_ITO[1], "label": "rejected", "clip_on": False}
            ax.plot(self.n_pass[~ok], height, **look, **style)
        for i, at in enumerate(self.n_pass[self.kind == "repair"]):
            ax.axvline(at, color=FAINT, lw=1, ls=(0, (2, 2)), zorder=1, label="component re-seeded" if i == 0 else None)
        from_base = "" if base == 0 else f" − ({base:.8g})"
        ax.set(xlabel="Pass over the data", ylabel=f"Objective{from_base} (nats)")
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend(ax, len(ax.get_legend_handles_labels()[1]), loc="lower right")
        tidy(ax)

    def _base(self, shown: np.ndarray) -> float:
        """The last value, to subtract where all values agree in their first digits, which would fill the axis."""
        values = self.objective[shown]
        close = len(values) > 1 and 0 < np.ptp(values) < 1e-4 * np.abs(values[-1])
        return float(values[-1]) if close else 0.0

    def _limit(self, ax: Any, values: np.ndarray) -> None:
        """Limits from the accepted values alone; rejected trials far below are drawn at the lower edge."""
        if len(values) and np.ptp(values) > 0:
            ax.set_ylim(values.min() - 0.06 * np.ptp(values), values.max() + 0.06 * np.ptp(values))
