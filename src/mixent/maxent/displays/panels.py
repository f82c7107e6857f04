"""A panel with the contribution of one feature: a curve for a numeric column, dots or a heat map for values."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.style import FAINT, INK, OKABE_ITO, class_style, color, marker, plain, tidy
from mixent.base.text import class_name
from mixent.maxent.contributions import Contribution, Surface, evidence

NARROW = "\u00a0"  # HTML collapses several ordinary spaces into one
MOST_VALUES = 10  # values of a feature that are drawn
MOST_DOTS = 6  # most classes that are drawn as dots; more are drawn as a heat map
SHOWN = 0.005  # least share of missing values that is shown
OUTLYING = 4  # a panel whose range exceeds this multiple of the median has its own scale
LABEL = 30  # most characters of a value
WIDE = 26  # most characters of all values of the horizontal axis, without rotation
NAME, SHORT = 28, 24  # most characters of a feature, and of a title that fits above the panel
NATS = "Contribution (nats)"

Limits = tuple[float, float]


def with_missing(contribution: Contribution) -> tuple[list[str], np.ndarray, np.ndarray]:
    """(values, shares, logits) to draw: the most important values in their order, and missing values."""
    weight = np.sqrt(np.where(np.isnan(contribution.shares), 1.0, np.maximum(contribution.shares, 0.0)))
    size = np.nanmax(np.abs(evidence(contribution.logits)), axis=1) * weight
    kept = np.sort(np.argsort(-size, kind="stable")[:MOST_VALUES])
    values, shares = [contribution.values[i] for i in kept], contribution.shares[kept]
    logits = contribution.logits[kept]
    if contribution.missing_share < SHOWN or np.isnan(logits).any():
        return values, shares, logits
    shares = np.append(shares, contribution.missing_share)
    return [*values, "missing"], shares, np.vstack([logits, contribution.missing_logits])


def limits_of(contributions: list[Contribution]) -> list[Limits]:
    """The axis limits of each panel: common to all panels, except those with a much larger range."""
    ranges = np.array([_range(contribution) for contribution in contributions])
    height = np.ptp(ranges, axis=1)
    comparable = height <= OUTLYING * np.median(height)
    common = ranges[comparable, 0].min(), ranges[comparable, 1].max()
    return [_with_margin(*(common if shared else own)) for own, shared in zip(ranges.tolist(), comparable)]


def _range(contribution: Contribution) -> Limits:
    logits = with_missing(contribution)[2] if contribution.curve is None else contribution.curve.logits
    nats = evidence(logits)
    nats = nats[:, 1] if nats.shape[1] == 2 and np.isfinite(nats).all() else nats
    return min(0.0, float(np.nanmin(nats))), max(0.0, float(np.nanmax(nats)))


def _with_margin(low: float, high: float) -> Limits:
    margin = 0.12 * (high - low) or 1.0
    return low - margin, high + margin


def draw_panel(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    """Draw the contribution of a feature, nats within `limits`."""
    if contribution.surface is not None:
        _draw_surface(ax, contribution.surface, classes)
    elif contribution.curve is not None:
        _draw_curve(ax, contribution, classes, limits)
    elif len(classes) <= MOST_DOTS:
        _draw_dots(ax, contribution, classes, limits)
    else:
        _draw_shades(ax, contribution, classes, limits)
    tidy(ax)
    if contribution.curve is None:
        ax.tick_params(axis="y", length=0)
    _draw_title(ax, contribution)


def _draw_title(ax: Any, contribution: Contribution) -> None:
    """Write the name of the feature above the panel; a long name extends to the left, over the names of the values."""
    listed = contribution.curve is None and contribution.surface is None  # by the names of its values
    many = listed and len(contribution.values) > MOST_VALUES
    some = f", {MOST_VALUES} of {len(contribution.values)} values" if many else ""
    text = f"{plain(contribution.name, NAME - len(some)).strip()}{2 * NARROW}({contribution.strength:.2g} nats{some})"
    side = "right" if listed and len(text) > SHORT else "left"
    ax.set_title(text, fontsize="small", weight="bold", color=INK, loc=side)


def _draw_curve(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    curve = contribution.curve
    assert curve is not None
    nats, missing = evidence(curve.logits), evidence(contribution.missing_logits[None])[0]
    if curve.has_density:
        _draw_density(ax, curve)
    ax.axhline(0, color=FAINT, lw=0.8, zorder=1)
    if len(classes) == 2:
        odds = nats[:, 1]
        for c, where in ((1, odds >= 0), (0, odds <= 0)):
            ax.fill_between(curve.x, odds, 0, where=where, interpolate=True, color=color(c), alpha=0.25, lw=0)
        ax.plot(curve.x, odds, color=INK, lw=1.6, zorder=3, label="log-odds")
        _draw_directions(ax, classes)
    else:
        for c in range(len(classes)):
            style = class_style(c) | {"lw": 1.5, "zorder": 3}
            ax.plot(curve.x, nats[:, c], label=plain(class_name(classes[c]), 20).strip(), **style)
    if contribution.missing_share >= SHOWN:
        _draw_missing(ax, missing, contribution.missing_share)
    ax.set(xlim=(curve.x[0], curve.x[-1]), ylim=limits, ylabel=NATS)
    ax.locator_params(axis="both", nbins=6)
    ax.tick_params(labelsize="small")


def _draw_density(ax: Any, curve: Any) -> None:
    """Draw the density of the rows along the bottom."""
    width = np.gradient(curve.x) if (np.diff(curve.x) > 0).all() else np.repeat(np.diff(curve.x)[::2] / 2, 2)
    density = curve.mass / width
    height = 0.16 * density / max(density.max(), 1e-300)
    ax.fill_between(curve.x, height, 0, transform=ax.get_xaxis_transform(), color="#dcdcdc", lw=0, zorder=0)


def _draw_missing(ax: Any, nats: np.ndarray, share: float) -> None:
    """Draw the contribution of a missing value to the right of the curve."""
    style: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "clip_on": False, "ls": "none", "ms": 4.5}
    if len(nats) == 2:
        ax.plot(1.05, nats[1], color=INK, marker="o", **style)
    else:
        for c, value in enumerate(nats):
            ax.plot(1.05, value, color=color(c), marker=marker(c), mec="white", mew=0.4, **style)
    style = {"fontsize": "x-small", "color": INK, "rotation": 90, "ha": "left", "va": "center"}
    ax.text(1.08, 0.5, f"missing{2 * NARROW}{_percent(share)}", transform=ax.transAxes, **style)


def _draw_directions(ax: Any, classes: np.ndarray) -> None:
    """Write which class positive and negative values are evidence for."""
    for c, (height, side) in enumerate(((0.03, "bottom"), (0.97, "top"))):
        text = f"for {plain(class_name(classes[c]), 20).strip()}"
        style: dict[str, Any] = {"fontsize": "x-small", "color": OKABE_ITO[c], "va": side, "zorder": 4}
        ax.text(0.02, height, text, transform=ax.transAxes, **style)


def _draw_dots(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    values, shares, logits = with_missing(contribution)
    nats, y = evidence(logits), np.arange(len(values))
    ax.hlines(y, 0, 1, transform=ax.get_yaxis_transform(), color="#e6e6e6", lw=0.7, zorder=0)
    if len(classes) == 2 and np.isfinite(nats).all():
        odds = nats[:, 1]
        ax.hlines(y, 0, odds, color=FAINT, lw=1.2, zorder=1)
        ax.scatter(odds, y, c=[OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in odds], s=28, zorder=3)
        first, second = (plain(class_name(name), 16).strip() for name in classes)
        ax.set_xlabel(f"← {first}{3 * NARROW}nats{3 * NARROW}{second} →", fontsize="small")
    else:
        for c in range(len(classes)):
            style = {"color": color(c), "marker": marker(c), "ls": "none", "ms": 5.5, "mec": "white", "mew": 0.4}
            ax.plot(nats[:, c], y, zorder=3, label=plain(class_name(classes[c]), 20).strip(), **style)
        ax.set_xlabel(NATS, fontsize="small")
    ax.axvline(0, color=INK, lw=0.8, zorder=2)
    ax.set_yticks(y, value_labels(values, shares), fontsize="x-small")
    ax.set(xlim=limits, ylim=(len(values) - 0.4, -0.6))
    ax.tick_params(axis="x", labelsize="small")


def _draw_shades(ax: Any, contribution: Contribution, classes: np.ndarray, limits: Limits) -> None:
    values, shares, logits = with_missing(contribution)
    image = shade(ax, evidence(logits), max(map(abs, limits)))
    ax.set_yticks(np.arange(len(values)), value_labels(values, shares), fontsize="x-small")
    names = [plain(class_name(name), 12).strip() for name in classes]
    ax.set_xticks(range(len(names)), names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize="x-small")
    ax.set(xlim=(-0.5, len(names) - 0.5), ylim=(len(values) - 0.5, -0.5))
    bar = ax.figure.colorbar(image, ax=ax, label=NATS)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="x-small")


def _draw_surface(ax: Any, surface: Surface, classes: np.ndarray) -> None:
    """Draw a heat map of the log-odds of two classes, or of the evidence for the class with the most of it."""
    K, L, C = surface.logits.shape
    nats = evidence(surface.logits.reshape(K * L, C)).reshape(K, L, C)
    c = 1 if C == 2 else int((nats**2).sum(axis=(0, 1)).argmax())
    rows, columns = (_largest(nats[:, :, c], axis) for axis in (0, 1))
    part = nats[:, :, c][np.ix_(rows, columns)]
    shades = (color(0), color(1)) if C == 2 else (INK, color(c))
    image = shade(ax, part, float(np.abs(part).max(initial=0.0)) or 1.0, shades=shades)
    for axis, kept, values in ((ax.yaxis, rows, surface.values[0]), (ax.xaxis, columns, surface.values[1])):
        names = [plain(values[i].removeprefix("about "), 12).strip() for i in kept]
        long = axis is ax.xaxis and sum(map(len, names)) > WIDE
        axis.set_ticks(np.arange(len(kept)), names, rotation=90 if long else 0)
    if not surface.values[0][0].startswith("about "):
        ax.invert_yaxis()  # categories from the top, as in the other panels
    ax.tick_params(labelsize="x-small", length=0)
    ax.set_ylabel(plain(surface.names[0], SHORT).strip(), fontsize="small")
    ax.set_xlabel(plain(surface.names[1], SHORT).strip(), fontsize="small")
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.05, 1.0)))  # beside this panel, not its column
    bar.set_label(f"Evidence for {plain(class_name(classes[c]), 12).strip()} (nats)", fontsize="small")
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize="x-small")


def _largest(nats: np.ndarray, axis: int) -> np.ndarray:
    """The rows (0) or columns (1) of a map with the largest values, in their order."""
    size = np.abs(nats).max(axis=1 - axis)
    return np.sort(np.argsort(-size, kind="stable")[:MOST_VALUES])


def shade(
    ax: Any,
    nats: np.ndarray,
    limit: float,
    heights: np.ndarray | None = None,
    *,
    shades: tuple[str, str] = (OKABE_ITO[1], OKABE_ITO[0]),
) -> Any:
    """Draw a heat map: the two colors are evidence against the class and for it, light gray has no constraint."""
    from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

    steps = [shades[0], "#ffffff", shades[1]]
    colors = LinearSegmentedColormap.from_list("evidence", steps).with_extremes(bad="#eeeeee")
    heights = np.arange(len(nats), dtype=float) if heights is None else heights
    edges = np.arange(nats.shape[1] + 1) - 0.5, np.append(heights - 0.5, heights[-1] + 0.5)
    norm = TwoSlopeNorm(0.0, -limit, limit)
    return ax.pcolormesh(*edges, np.ma.masked_invalid(nats), cmap=colors, norm=norm, lw=0.6, ec="white")


def value_labels(values: list[str], shares: np.ndarray, max_length: int = LABEL) -> list[str]:
    """The values, each with its share of the rows."""
    out = []
    for value, share in zip(values, shares):
        text = plain(value, max_length).strip()
        out.append(f"{text}{3 * NARROW}{_percent(share)}" if np.isfinite(share) else text)
    return out


def _percent(share: float) -> str:
    return "never" if share == 0 else "<1 %" if share < 0.005 else f"{100 * share:.0f} %"
