"""Colours, markers and the small habits that all displays share."""

from __future__ import annotations

from typing import Any

# Okabe and Ito (2008): told apart under the common kinds of colour blindness. Yellow is left out: unreadable on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", ">", "*")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
INK, FAINT = "#333333", "#9a9a9a"


def colour(i: int) -> str:
    return OKABE_ITO[i % len(OKABE_ITO)]


def marker(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def dash(i: int) -> Any:
    """Line style of the i-th line: changes when the colours come round again."""
    return DASHES[(i // len(OKABE_ITO)) % len(DASHES)]


def share_colours() -> Any:
    """From white (0) to dark blue (1)."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("share", ["#ffffff", "#a9cfe8", OKABE_ITO[0], "#00375a"])


def plain(text: Any, longest: int = 40) -> str:
    """A user's text, drawn as it is: no mathematics between dollars, not hidden for an underscore, not too long."""
    text = " ".join(str(text).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return (" " + text if text.startswith("_") else text).replace("$", r"\$")


def axes_or_new(ax: Any, size: tuple[float, float] = (5.2, 4.0)) -> Any:
    """`ax`, or the axes of a new pyplot figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


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
        options.setdefault("ncols", 1 + (n_entries - 1) // 16)
    ax.legend(frameon=False, fontsize="small", **options)
