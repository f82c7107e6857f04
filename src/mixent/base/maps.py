"""Maps of two columns: what displays of regions, boundaries and projections share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mixent.base.registry import kept_schema
from mixent.base.style import color, legend, marker, plain, tidy
from mixent.base.text import class_name
from mixent.data import new_frame
from mixent.data.frames import library_of
from mixent.data.labels import as_labels, encode, labelled_rows

MANY_POINTS = 2000  # above this points are drawn as a picture, small and pale
FEW_VALUES = 10  # a column with no more different values is jittered
OUTERMOST = (0.005, 0.995)  # quantiles of the values that a map spans, so that outliers do not squeeze all others
UNLABELLED = "#555555"
SIZE = (5.8, 4.4)  # inches: of a figure with a map and its legend

Grid = tuple[np.ndarray, np.ndarray]  # (G,) first and (G,) second column
Entry = tuple[Any, str]  # of a legend: handle and label


def find_columns(est: Any, X: Any, columns: Sequence[int | str]) -> tuple[tuple[str, str], tuple[int, int]]:
    """Names and positions of two columns."""
    if len(columns) != 2:
        raise ValueError(f"columns must name two columns; got {columns!r}")
    known = getattr(X, "columns", getattr(est, "feature_names_in_", None))
    names = [f"column {j}" for j in range(np.shape(X)[1])] if known is None else [str(name) for name in known]
    where = []
    for column in columns:
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"X has no column {column!r}; its columns are {names}")
            where.append(names.index(column))
        elif not 0 <= column < len(names):
            raise ValueError(f"X has {len(names)} column{'s' * (len(names) != 1)}; got column {column}")
        else:
            where.append(int(column))
    return (names[where[0]], names[where[1]]), (where[0], where[1])


def refuse_categories(model: Any, names: Sequence[str]) -> None:
    """A map needs numbers on both axes."""
    schema = kept_schema(model)
    if schema is not None and len(schema.categorical):
        columns = " and ".join(repr(names[j]) for j in schema.categorical)
        raise ValueError(f"a map needs two continuous columns; the model takes {columns} as categorical")


def column_values(X: Any, where: tuple[int, int]) -> np.ndarray:
    """(n, 2) values of two columns."""
    from sklearn.utils import _safe_indexing

    pair = [_safe_indexing(X, j, axis=1) for j in where]
    try:
        return np.stack([np.asarray(column, dtype=float) for column in pair], axis=1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the two columns of a map must be numbers: {error}") from None


def map_grid(points: np.ndarray, names: tuple[str, str], size: int) -> tuple[np.ndarray, Grid, np.ndarray]:
    """Rows with both values (n,), the two axes of a grid that spans them, and its points (size^2, 2)."""
    shown = np.isfinite(points).all(axis=1)
    if not shown.any():
        raise ValueError(f"no row of X has values in both {names[0]!r} and {names[1]!r}; choose other columns")
    axes = span(points[shown, 0], size), span(points[shown, 1], size)
    return shown, axes, np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)


def mesh_like(mesh: np.ndarray, model: Any, X: Any) -> Any:
    """The grid as a frame like `X` if the model was fitted to one: scikit-learn warns where names are missing."""
    names = getattr(model, "feature_names_in_", None)
    if names is None or getattr(X, "columns", None) is None:
        return mesh
    return new_frame(library_of(X), {str(name): mesh[:, j] for j, name in enumerate(names)})


def span(values: np.ndarray, size: int) -> np.ndarray:
    """The grid of one column: all but the most extreme values, and some room; of few different values all."""
    low, high = float(values.min()), float(values.max())
    if len(np.unique(values)) > FEW_VALUES:  # inwards to a value: halfway to an outlier is as bad
        first = float(np.quantile(values, OUTERMOST[0], method="higher"))
        last = float(np.quantile(values, OUTERMOST[1], method="lower"))
        low, high = (first, last) if first < last else (low, high)
    room = 0.08 * (high - low) or max(abs(low), 1.0) * 0.1
    return np.linspace(low - room, high + room, size)


def jittered(values: np.ndarray, seed: int) -> np.ndarray:
    """A column of few different values, spread a little, so that points do not hide each other."""
    different = np.unique(values)
    if not 1 < len(different) <= FEW_VALUES:
        return values
    width = min(0.2 * np.diff(different).min(), 0.06 * (different[-1] - different[0]))
    return values + np.random.default_rng(seed).uniform(-width, width, len(values))


def point_classes(y: ArrayLike | None, classes: Any, n_rows: int) -> np.ndarray:
    """(n,) class of each row; -1 without a label."""
    codes = np.full(n_rows, -1)
    if y is not None and classes is not None:
        labels = as_labels(y)
        known = labelled_rows(labels)
        codes[known] = encode(labels[known], classes)
    return codes


def draw_classes(ax: Any, grid: Grid, codes: np.ndarray, strength: ArrayLike, **look: Any) -> None:
    """Color the map by class (G, G), from white (strength 0) to full color (1)."""
    ends = [*grid[0][[0, -1]], *grid[1][[0, -1]]]
    ax.imshow(shaded(codes, strength), extent=ends, origin="lower", aspect="auto", zorder=0, **look)


def draw_posterior(ax: Any, grid: Grid, posterior: np.ndarray, near: ArrayLike = 1.0) -> None:
    """Color the map by the most probable class, from white (all equally probable) to the color of the class (certain).

    `posterior` is (G, G, C); `near`, (G, G) from 0 to 1, fades what is far from the data.
    """
    top, n_classes = posterior.max(axis=2), posterior.shape[2]
    sure = np.clip((top - 1 / n_classes) / (1 - 1 / n_classes), 0, 1) if n_classes > 1 else np.full_like(top, 0.67)
    draw_classes(ax, grid, posterior.argmax(axis=2), 0.45 * sure * np.asarray(near), interpolation="bilinear")


def draw_level(ax: Any, grid: Grid, values: np.ndarray, level: float, **look: Any) -> None:
    """The contour where the values (G, G) equal `level`, if they do anywhere: otherwise matplotlib would warn."""
    if values.min() < level < values.max():
        ax.contour(*grid, values, levels=[level], **look)


def draw_frame(ax: Any, grid: Grid, names: tuple[str, str], entries: Sequence[Entry], beside: bool = True) -> None:
    """Limits and labels of the axes, and a legend; `beside` the map, so that it covers no point."""
    ax.set(xlim=grid[0][[0, -1]], ylim=grid[1][[0, -1]])
    ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]))
    handles, labels = [handle for handle, _ in entries], [label for _, label in entries]
    legend(ax, len(labels), handles=handles, labels=labels, beside=beside)
    tidy(ax)


def draw_points(ax: Any, points: np.ndarray, codes: np.ndarray) -> None:
    """Rows (n, 2) by class; -1 without a label."""
    many = len(points) > MANY_POINTS
    style = {"s": 6 if many else 18, "alpha": 0.4 if many else 0.9, "lw": 0 if many else 0.5, "rasterized": many}
    for c in np.unique(codes):
        look = {"color": UNLABELLED if c < 0 else color(int(c)), "marker": "o" if c < 0 else marker(int(c))}
        ax.scatter(*points[codes == c].T, edgecolors="white", zorder=2, **look, **style)


def draw_gaussian(ax: Any, mean: np.ndarray, cov: np.ndarray, shade: Any, widths: Iterable[float], **look: Any) -> None:
    """A Gaussian as ellipses at 1, 2, ... standard deviations with these line widths, and a cross at its mean."""
    from matplotlib.patches import Ellipse

    spread, turn = np.linalg.eigh(cov)
    width, height = 2 * np.sqrt(np.maximum(spread[::-1], 0))
    angle = np.degrees(np.arctan2(turn[1, 1], turn[0, 1]))
    for radius, line in enumerate(widths, start=1):
        style = {"fill": False, "edgecolor": shade, "lw": line, "zorder": 3} | look
        ax.add_patch(Ellipse((mean[0], mean[1]), radius * width, radius * height, angle=angle, **style))
    ax.plot(*mean, marker="+", color=shade, ms=8, mew=1.6, zorder=3)


def class_entries(classes: Iterable[Any], codes: np.ndarray) -> list[Entry]:
    """Handles and labels of a legend: every class, and rows without a label where there are any."""
    from matplotlib.lines import Line2D

    look: dict[str, Any] = {"markeredgecolor": "white", "ls": "none", "ms": 7}
    entries = [
        (Line2D([], [], color=color(c), marker=marker(c), **look), plain(class_name(label), 24))
        for c, label in enumerate(classes)
    ]
    if (codes < 0).any():
        entries.append((Line2D([], [], marker="o", color=UNLABELLED, ls="none", ms=5), "no label"))
    return entries


def shaded(winner: np.ndarray, strength: ArrayLike) -> np.ndarray:
    """(G, G, 3) colors of the classes (G, G), from white (strength 0) to full (1)."""
    from matplotlib.colors import to_rgb

    paint = np.array([to_rgb(color(c)) for c in range(int(winner.max()) + 1)])[winner]
    return 1 - np.asarray(strength)[..., None] * (1 - paint)


def darker(shade: str) -> tuple[float, ...]:
    """A color with 65 % of its brightness."""
    from matplotlib.colors import to_rgb

    return tuple(0.65 * channel for channel in to_rgb(shade))
