"""What each value of each feature says of the classes, and how well the constraints are met."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mixent.evaluate.displays.palette import (
    FAINT,
    INK,
    OKABE_ITO,
    axes_or_new,
    beside_width,
    class_name,
    colour,
    legend,
    marker,
    plain,
    tidy,
)

NARROW = "\u00a0"  # plain spaces are drawn as one in a page
QUANTITIES = ("multipliers", "residuals")
MOST_VALUES = 10  # of a feature; the others are counted
MOST_DOTS = 6  # classes up to which each has a dot; beyond, shades in a table
NAMED = 5  # largest residuals that are named
NAME, LABEL = 40, 34  # characters of a feature and of a value


@dataclass
class Block:
    """The values of a feature that are drawn, in their own order."""

    name: str
    strength: float  # nats
    values: list[str]  # (V,)
    shares: np.ndarray  # (V,) of the rows; NaN where cells are no probabilities
    multipliers: np.ndarray  # (V, C), nats; NaN where a value says nothing of a class
    n_left_out: int


@dataclass
class ConstraintsDisplay:
    """The multipliers of the strongest features, value by value; or what the model leaves of each constraint.

    With two classes there is one dot for each value: the log-odds it adds for the second class. With more, a dot (or a
    shade, beyond six) for each class: how much the value raises that class's logit.
    """

    blocks: list[Block]
    classes: np.ndarray
    cells: list[tuple[str, str]]  # (S,) feature and value of all constraints
    truth: np.ndarray  # (S, C)
    model: np.ndarray  # (S, C)
    n_features: int  # of the model
    ax_: Any = field(default=None, repr=False)
    figure_: Any = field(default=None, repr=False)

    @classmethod
    def from_estimator(cls, est: Any, feature: Any = None, n_features: int = 8):
        """Of a fitted `MaxEntClassifier`: the `n_features` strongest features, or those named by `feature`."""
        if not hasattr(est, "constraints"):
            raise ValueError(f"{type(est).__name__} has no constraints; give a fitted MaxEntClassifier")
        if isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer)) or n_features < 1:
            raise ValueError(f"n_features must be a whole number >= 1; got {n_features!r}")
        found = est.constraints()
        strength = found.strength
        ranking = sorted(strength.items(), key=lambda item: -item[1])
        names = [name for name, _ in ranking[:n_features]] if feature is None else _wanted(feature, dict(ranking))
        by_name = {term.name: (term, span) for term, span in zip(est.layout_.terms, est.layout_.spans)}
        mask = est.layout_.mask(len(found.classes))
        blocks = [_block(found, *by_name[name], strength[name], mask) for name in names]
        cells = list(zip(found.features, found.values))
        model = found.model if mask is None else np.where(mask > 0, found.model, found.truth)  # else no constraint
        return cls(blocks, found.classes, cells, found.truth, model, len(ranking))

    def plot(self, ax: Any = None, *, quantity: str = "multipliers"):
        """Draw; `quantity`: "multipliers", or "residuals" (model less data, the largest named)."""
        if quantity not in QUANTITIES:
            raise ValueError(f"quantity must be one of {', '.join(map(repr, QUANTITIES))}; got {quantity!r}")
        if quantity == "residuals":
            return self._plot_residuals(ax)
        return self._plot_dots(ax) if len(self.classes) <= MOST_DOTS else self._plot_shades(ax)

    def size(self) -> tuple[float, float]:
        """Inches the picture of the multipliers needs."""
        lines = sum(len(block.values) + 1.35 for block in self.blocks)
        names = [self._class(c) for c in range(len(self.classes))]
        if len(names) > MOST_DOTS:
            return float(np.clip(4.6 + 0.34 * len(names), 6, 14)), 1.7 + 0.21 * lines
        return 6.4 + (beside_width(names) if len(names) > 2 else 0.0), 1.2 + 0.21 * lines

    def _class(self, c: int, longest: int = 20) -> str:
        return plain(class_name(self.classes[c]), longest).strip()

    def _rows(self, ax: Any, edge: float = 0.0) -> list[np.ndarray]:
        """Write names of features and values down the left side; where the values of each feature stand."""
        at, ticks, labels, places = 0.0, [], [], []
        to_left = ax.get_yaxis_transform()
        for block in self.blocks:
            some = f", {len(block.values)} of {len(block.values) + block.n_left_out} values" if block.n_left_out else ""
            text = f"{plain(block.name, NAME - len(some)).strip()}{2 * NARROW}({block.strength:.2g} nats{some})"
            look = {"va": "center", "weight": "bold", "fontsize": "small", "color": INK, "zorder": 2.5}
            back = {"fc": "white", "ec": "none", "pad": 1}
            ax.text(edge, at, text, transform=to_left, ha="left", bbox=back, **look)
            heights = at + 1.0 + np.arange(len(block.values))
            ticks += heights.tolist()
            labels += [_labelled(value, share) for value, share in zip(block.values, block.shares)]
            places.append(heights)
            at = heights[-1] + 1.35
        ax.set_yticks(ticks, labels, fontsize="small")
        ax.set_ylim(at - 0.6, -0.9)
        return places

    def _plot_dots(self, ax: Any):
        ax = axes_or_new(ax, self.size())
        two = len(self.classes) == 2
        places = self._rows(ax, 0.01)
        for block, heights in zip(self.blocks, places):
            ax.hlines(heights, 0, 1, transform=ax.get_yaxis_transform(), color="#e6e6e6", lw=0.7, zorder=0)
            if two:
                odds = np.nansum([block.multipliers[:, 1], -block.multipliers[:, 0]], axis=0)
                ax.hlines(heights, 0, odds, color=FAINT, lw=1.2, zorder=1)
                shades = [OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in odds]
                ax.scatter(odds, heights, c=shades, s=32, zorder=3)
                continue
            for c in range(len(self.classes)):
                look = {"color": colour(c), "marker": marker(c), "ls": "none", "ms": 5.5, "mec": "white", "mew": 0.4}
                label = self._class(c) if block is self.blocks[0] else None
                ax.plot(block.multipliers[:, c], heights, label=label, zorder=3, **look)
        ax.axvline(0, color=INK, lw=0.8, zorder=2)
        ax.margins(x=0.08)
        if two:
            ax.set_xlabel("log-odds the value adds (nats)")
            small = {"transform": ax.transAxes, "fontsize": "small", "va": "bottom"}
            ax.text(0, 1.01, f"← for {self._class(0)}", color=OKABE_ITO[0], **small)
            ax.text(1, 1.01, f"for {self._class(1)} →", color=OKABE_ITO[1], ha="right", **small)
        else:
            ax.set_xlabel("what the value adds to the class's logit (nats)")
            legend(ax, len(self.classes), beside=True)
        return self._done(ax)

    def _plot_shades(self, ax: Any):
        from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

        ax = axes_or_new(ax, self.size())
        C = len(self.classes)
        steps = [OKABE_ITO[1], "#f7d9c4", "#ffffff", "#a9cfe8", OKABE_ITO[0]]
        shades = LinearSegmentedColormap.from_list("says", steps).with_extremes(bad="#eeeeee")
        reach = max((float(np.nanmax(np.abs(block.multipliers))) for block in self.blocks), default=1.0) or 1.0
        norm = TwoSlopeNorm(0.0, -reach, reach)
        for block, heights in zip(self.blocks, self._rows(ax)):
            edges = np.arange(C + 1) - 0.5, np.append(heights - 0.5, heights[-1] + 0.5)
            image = ax.pcolormesh(
                *edges, np.ma.masked_invalid(block.multipliers), cmap=shades, norm=norm, lw=0.6, ec="white"
            )
        names = [self._class(c, 16) for c in range(C)]
        ax.set_xticks(range(C), names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize="small")
        ax.set_xlim(-0.5, C - 0.5)
        bar = ax.figure.colorbar(image, ax=ax, label="what the value adds to the class's logit (nats)", shrink=0.6)
        bar.outline.set_visible(False)
        return self._done(ax)

    def _done(self, ax: Any):
        if len(self.blocks) < self.n_features:
            ax.set_title(f"{len(self.blocks)} of {self.n_features} features", fontsize="medium", pad=18)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def largest(self, n: int = NAMED) -> list[tuple[str, str, Any, float]]:
        """(feature, value, class, model less data) of the constraints that are met least."""
        off = self.model - self.truth
        order = np.argsort(-np.abs(off), axis=None, kind="stable")[:n]
        at = zip(*np.unravel_index(order, off.shape))
        return [(*self.cells[s], self.classes[c], float(off[s, c])) for s, c in at]

    def _plot_residuals(self, ax: Any):
        named = self.largest()
        texts = [
            f"{i}{2 * NARROW}{plain(name, 20).strip()} = {plain(value, 26).strip()},\n{5 * NARROW}"
            f"{plain(class_name(c), 30).strip()}: " + f"{off:+.2g}".replace("-", "−")
            for i, (name, value, c, off) in enumerate(named, 1)
        ]
        ax = axes_or_new(ax, (5.2 + beside_width(texts), 4.0))
        off = self.model - self.truth
        ax.plot(self.truth.ravel(), off.ravel(), ls="none", marker="o", ms=4, color=colour(0), alpha=0.55, mec="none")
        ax.axhline(0, color=INK, lw=0.8)
        order = np.argsort(-np.abs(off), axis=None, kind="stable")[: len(named)]
        for i, at in enumerate(order, 1):
            x, y = self.truth.flat[at], off.flat[at]
            ax.plot(x, y, ls="none", marker="o", ms=5, color=colour(1))
            beside = (5, 3) if i % 2 else (-9, -8)  # classes that mirror each other stand close
            ax.annotate(str(i), (x, y), beside, textcoords="offset points", fontsize="small", color=INK)
        ax.margins(0.08)
        ax.set(xlabel="P of class and value, in the data", ylabel="P of the model − P of the data")
        ax.text(
            1.02, 1.0, "met least:\n" + "\n".join(texts), transform=ax.transAxes, va="top", fontsize="small", color=INK
        )
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _wanted(feature: Any, known: dict[str, float]) -> list[str]:
    names = [feature] if isinstance(feature, str) else list(feature)
    strange = [name for name in names if name not in known]
    if strange or not names:
        told = f"names a feature {strange[0]!r}" if strange else "is empty"
        raise ValueError(f"feature {told}; the model has {', '.join(list(known)[:10])}{', ...' * (len(known) > 10)}")
    return list(dict.fromkeys(names))


def _block(found: Any, term: Any, span: slice, strength: float, mask: np.ndarray | None) -> Block:
    from mixent.maxent.terms import Moments

    multipliers, shares = found.multipliers[span].copy(), found.truth[span].sum(axis=1)
    if mask is not None:
        multipliers[mask[span] == 0] = np.nan
    values = list(found.values[span])
    size = np.nanmax(np.abs(multipliers), axis=1) * np.sqrt(shares if not isinstance(term, Moments) else 1.0)
    kept = np.sort(np.argsort(-size, kind="stable")[:MOST_VALUES])
    if isinstance(term, Moments):
        shares = np.full(len(values), np.nan)
    left = len(values) - len(kept)
    return Block(term.name, strength, [values[i] for i in kept], shares[kept], multipliers[kept], left)


def _labelled(value: str, share: float) -> str:
    """The value, and the share of the rows that have it."""
    text = plain(value, LABEL).strip()
    if not np.isfinite(share):
        return text
    told = "never" if share == 0 else "<1 %" if share < 0.005 else f"{100 * share:.0f} %"
    return f"{text}{3 * NARROW}{told}"
