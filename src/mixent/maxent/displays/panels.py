"""A small picture of the contribution of one feature: a curve along a column of numbers, dots or shades for values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.style import FAINT, INK, OKABE_ITO, class_style, color, marker, plain, tidy
from mixent.base.text import class_name
from mixent.maxent.contributions import Contribution, evidence

NARROW = "\u00a0"  # plain spaces are drawn as one in a page
MOST_VALUES = 10  # of a feature; the others are counted
MOST_DOTS = 6  # classes up to which each has a dot; beyond, shades in a table
SEEN = 0.005  # share of the rows from which missing values are shown
FAR_FROM_OTHERS = 4  # times the median height of the panels: one as high has a scale of its own
LABEL = 30  # characters of a value
NAME, SHORT = 28, 24  # characters of a feature; of a line that fits beside values' names
NATS = "nats"

Limits = tuple[float, float]


def with_missing(contribution: Contribution) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(values, shares, parts) that are drawn: those that matter most, in their own order, and missing values."""
    weight = np.sqrt(np.where(np.isnan(contribution.shares), 1.0, np.maximum(contribution.shares, 0.0)))
    size = np.nanmax(np.abs(evidence(contribution.parts)), axis=1) * weight
    kept = np.sort(np.argsort(-size, kind="stable")[:MOST_VALUES])
    values, shares, parts = [contribution.values[i] for i in kept], contribution.shares[kept], contribution.parts[kept]
    if contribution.missing_share < SEEN or np.isnan(parts).any():
        return values, shares, parts
    return [*values, "missing"], np.append(shares, contribution.missing_share), np.vstack([parts, contribution.missing])


def limits_of(every: list[Contribution]) -> list[Limits]:
    """The range of nats of each panel: one for all, but for those that would leave nothing of the others."""
    ranges = np.array([_range(contribution) for contribution in every])
    height = np.ptp(ranges, axis=1)
    alike = height <= FAR_FROM_OTHERS * np.median(height)
    common = ranges[alike, 0].min(), ranges[alike, 1].max()
    return [_roomy(*(common if same else own)) for own, same in zip(ranges.tolist(), alike)]


def _range(contribution: Contribution) -> Limits:
    parts = with_missing(contribution)[2] if contribution.curve is None else contribution.curve.parts
    nats = evidence(parts)
    nats = nats[:, 1] if nats.shape[1] == 2 and np.isfinite(nats).all() else nats
    return min(0.0, float(np.nanmin(nats))), max(0.0, float(np.nanmax(nats)))


def _roomy(low: float, high: float) -> Limits:
    room = 0.12 * (high - low) or 1.0
    return low - room, high + room


def draw_panel(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    """Draw the contribution of a feature, nats within `limits`."""
    if contribution.curve is not None:
        _draw_curve(ax, contribution, classes, limits)
    elif len(classes) <= MOST_DOTS:
        _draw_dots(ax, contribution, classes, limits)
    else:
        _draw_shades(ax, contribution, classes, limits)
    tidy(ax)
    if contribution.curve is None:
        ax.tick_params(axis="y", length=0)
    _say_name(ax, contribution)


def _say_name(ax: Any, contribution: Contribution) -> None:
    """Above the panel; a long line reaches over the values' names at the left, not out of the picture."""
    many = contribution.curve is None and len(contribution.values) > MOST_VALUES
    some = f", {MOST_VALUES} of {len(contribution.values)} values" if many else ""
    text = f"{plain(contribution.name, NAME - len(some)).strip()}{2 * NARROW}({contribution.strength:.2g} nats{some})"
    side = "right" if contribution.curve is None and len(text) > SHORT else "left"
    ax.set_title(text, fontsize="small", weight="bold", color=INK, loc=side)


def _draw_curve(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    curve = contribution.curve
    assert curve is not None
    nats, ends = evidence(curve.parts), evidence(contribution.missing[None])[0]
    if curve.counted:
        _draw_rows(ax, curve)
    ax.axhline(0, color=FAINT, lw=0.8, zorder=1)
    if len(classes) == 2:
        odds = nats[:, 1]
        for c, where in ((1, odds >= 0), (0, odds <= 0)):
            ax.fill_between(curve.x, odds, 0, where=where, interpolate=True, color=color(c), alpha=0.25, lw=0)
        ax.plot(curve.x, odds, color=INK, lw=1.6, zorder=3, label="log-odds")
        _say_directions(ax, classes)
    else:
        for c in range(len(classes)):
            look = class_style(c) | {"lw": 1.5, "zorder": 3}
            ax.plot(curve.x, nats[:, c], label=plain(class_name(classes[c]), 20).strip(), **look)
    if contribution.missing_share >= SEEN:
        _draw_missing(ax, ends, contribution.missing_share)
    ax.set(xlim=(curve.x[0], curve.x[-1]), ylim=limits, ylabel=NATS)
    ax.locator_params(axis="both", nbins=6)
    ax.tick_params(labelsize="small")


def _draw_rows(ax: Any, curve: Any) -> None:
    """Where the rows are: their density along the bottom."""
    wide = np.gradient(curve.x) if (np.diff(curve.x) > 0).all() else np.repeat(np.diff(curve.x)[::2] / 2, 2)
    density = curve.mass / wide
    high = 0.16 * density / max(density.max(), 1e-300)
    ax.fill_between(curve.x, high, 0, transform=ax.get_xaxis_transform(), color="#dcdcdc", lw=0, zorder=0)


def _draw_missing(ax: Any, ends: np.ndarray, share: float) -> None:
    """The contribution of a missing value, to the right of the curve."""
    look: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "clip_on": False, "ls": "none", "ms": 4.5}
    if len(ends) == 2:
        ax.plot(1.05, ends[1], color=INK, marker="o", **look)
    else:
        for c, end in enumerate(ends):
            ax.plot(1.05, end, color=color(c), marker=marker(c), mec="white", mew=0.4, **look)
    look = {"fontsize": "x-small", "color": INK, "rotation": 90, "ha": "left", "va": "center"}
    ax.text(1.08, 0.5, f"missing{2 * NARROW}{_percent(share)}", transform=ax.transAxes, **look)


def _say_directions(ax: Any, classes: np.ndarray) -> None:
    for c, (height, side) in enumerate(((0.03, "bottom"), (0.97, "top"))):
        text = f"for {plain(class_name(classes[c]), 20).strip()}"
        look: dict[str, Any] = {"fontsize": "x-small", "color": OKABE_ITO[c], "va": side, "zorder": 4}
        ax.text(0.02, height, text, transform=ax.transAxes, **look)


def _draw_dots(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    values, shares, parts = with_missing(contribution)
    nats, at = evidence(parts), np.arange(len(values))
    ax.hlines(at, 0, 1, transform=ax.get_yaxis_transform(), color="#e6e6e6", lw=0.7, zorder=0)
    if len(classes) == 2 and np.isfinite(nats).all():
        odds = nats[:, 1]
        ax.hlines(at, 0, odds, color=FAINT, lw=1.2, zorder=1)
        ax.scatter(odds, at, c=[OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in odds], s=28, zorder=3)
        ours, theirs = (plain(class_name(name), 16).strip() for name in classes)
        ax.set_xlabel(f"← {ours}{3 * NARROW}nats{3 * NARROW}{theirs} →", fontsize="small")
    else:
        for c in range(len(classes)):
            look = {"color": color(c), "marker": marker(c), "ls": "none", "ms": 5.5, "mec": "white", "mew": 0.4}
            ax.plot(nats[:, c], at, zorder=3, label=plain(class_name(classes[c]), 20).strip(), **look)
        ax.set_xlabel(NATS, fontsize="small")
    ax.axvline(0, color=INK, lw=0.8, zorder=2)
    ax.set_yticks(at, labelled(values, shares), fontsize="x-small")
    ax.set(xlim=limits, ylim=(len(values) - 0.4, -0.6))
    ax.tick_params(axis="x", labelsize="small")


def _draw_shades(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    values, shares, parts = with_missing(contribution)
    image = shade(ax, evidence(parts), max(map(abs, limits)))
    ax.set_yticks(np.arange(len(values)), labelled(values, shares), fontsize="x-small")
    names = [plain(class_name(name), 12).strip() for name in classes]
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize="x-small")
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(values) - 0.5, -0.5))
    bar = ax.figure.colorbar(image, ax=ax, label=NATS)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="x-small")


def shade(ax: Any, nats: np.ndarray, reach: float, heights: np.ndarray | None = None) -> Any:
    """A table of shades (V, C): blue raises the class, orange lowers it, gray has no constraint."""
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    steps = [OKABE_ITO[1], "#f7d9c4", "#ffffff", "#a9cfe8", OKABE_ITO[0]]
    shades = LinearSegmentedColormap.from_list("evidence", steps).with_extremes(bad="#eeeeee")
    heights = np.arange(len(nats), dtype=float) if heights is None else heights
    edges = np.arange(nats.shape[1] + 1) - 0.5, np.append(heights - 0.5, heights[-1] + 0.5)
    norm = TwoSlopeNorm(0.0, -reach, reach)
    return ax.pcolormesh(*edges, np.ma.masked_invalid(nats), cmap=shades, norm=norm, lw=0.6, ec="white")


def labelled(values: list[str], shares: np.ndarray, longest: int = LABEL) -> list[str]:
    """The values, each with the share of the rows that have it."""
    out = []
    for value, share in zip(values, shares):
        text = plain(value, longest).strip()
        out.append(f"{text}{3 * NARROW}{_percent(share)}" if np.isfinite(share) else text)
    return out


def _percent(share: float) -> str:
    return "never" if share == 0 else "<1 %" if share < 0.005 else f"{100 * share:.0f} %"
