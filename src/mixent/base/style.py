"""Colors, markers and the small habits that all displays share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# Okabe and Ito (2008): distinct under the common kinds of color blindness. Yellow is left out: unreadable on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
INK, FAINT = "#333333", "#9a9a9a"
RING: dict[str, Any] = {"marker": "o", "ms": 12, "mfc": "none", "mec": INK, "mew": 1.4, "ls": "none", "zorder": 4}


def color(i: int) -> str:
    return OKABE_ITO[i % len(OKABE_ITO)]


def marker(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def dash(i: int) -> Any:
    """Line style of the i-th line: changes when the colors come round again."""
    return DASHES[(i // len(OKABE_ITO)) % len(DASHES)]


def share_colors() -> Any:
    """From white (0) to dark blue (1)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("share", ["#ffffff", "#a9cfe8", OKABE_ITO[0], "#00375a"])


def plain(text: Any, longest: int = 40) -> str:
    """A user's text, drawn as it is: no mathematics between dollars, not hidden for an underscore, not too long."""
    text = " ".join(str(text).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return (" " + text if text.startswith("_") else text).replace("$", r"\$")


def class_style(i: int) -> dict[str, Any]:
    """Color and dash of the line of the i-th class; with `marker(i)` no two are alike up to 140."""
    return {"color": color(i), "ls": DASHES[i % len(DASHES)], "ms": 4.5, "lw": 1.4}


def dodge(i: int, n: int, width: float = 0.4) -> float:
    """How far the i-th of n lines stands beside its place, so that points at the same place are seen apart."""
    return width * (i / (n - 1) - 0.5) if n > 1 else 0.0


def wrapped(text: str, width: int) -> str:
    """Text in lines of about `width` characters."""
    import textwrap

    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def beside_width(labels: Any) -> float:
    """Inches that a legend beside the axes takes, so that these keep theirs."""
    labels = list(labels)
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    return (0.5 + 0.078 * longest) * legend_columns(len(labels))


def legend_columns(n_entries: int) -> int:
    return 1 + (n_entries - 1) // 16


def axes_or_new(ax: Any, size: tuple[float, float] = (5.2, 4.0)) -> Any:
    """`ax`, or the axes of a new pyplot figure."""
    if ax is not None:
        return ax
    return _pyplot().subplots(figsize=size, layout="constrained")[1]


def _pyplot() -> Any:
    """Import pyplot, or raise an error that explains how to install it."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('matplotlib is needed to draw; install it with: pip install "mixent[plot]"') from error
    return pyplot


def divided(
    ax: Any, n: int, rows: int, columns: int, ratios: Any = None, *, what: str = "panels", instead: str = ""
) -> list[Any]:
    """`n` axes in the place of one, which is left empty; `ratios` are the widths of the columns.

    Where the axes cannot be divided, the error names `what` would be in them, and what to do `instead`.
    """
    if n == 1:
        return [ax]
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(f"{n} {what} need axes that can be divided: make ax with plt.subplots{instead}")
    ax.set_axis_off()
    grid = place.subgridspec(rows, columns, width_ratios=ratios)
    return [ax.figure.add_subplot(grid[i // columns, i % columns]) for i in range(n)]


def stacked_bars(groups: Sequence[list[int]], apart: Callable[[list[int], list[int]], bool]) -> list[list[list[int]]]:
    """Groups by level: a group goes to the first level whose last group is `apart` from it."""
    levels: list[list[list[int]]] = []
    for group in groups:
        free = next((level for level in levels if apart(level[-1], group)), None)
        if free is None:
            levels.append([group])
        else:
            free.append(group)
    return levels


def tidy(ax: Any) -> None:
    """No box, quiet ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=INK, length=3)


def legend(ax: Any, n_entries: int, *, beside: bool = False, **options: Any) -> None:
    """A legend inside for a few entries, beside the axes for many."""
    if n_entries == 0:
        return
    if n_entries > 6 or beside:
        options |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
        options.setdefault("ncols", legend_columns(n_entries))
    ax.legend(frameon=False, fontsize="small", **options)
