"""Contributions of the features to the classes, and residuals of the constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.params import check_choice
from mixent.base.style import (
    FAINT,
    INK,
    OKABE_ITO,
    axes_or_new,
    beside_width,
    color,
    divided,
    legend,
    marker,
    plain,
    tidy,
)
from mixent.base.text import class_name
from mixent.maxent.contributions import Contribution, cells_without_constraint, feature_contributions
from mixent.maxent.displays.panels import MOST_DOTS, MOST_VALUES, NARROW, draw_panel, limits_of, shade, value_labels
from mixent.maxent.model import EntropyModel
from mixent.show import Short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

QUANTITIES = ("contributions", "multipliers", "residuals")
NAMED = 5  # largest residuals that are listed
NAME, LABEL = 40, 34  # most characters of a feature and of a value
PANEL = 3.7, 2.2  # inches
NO_FEATURES = "The model has no features:\nit predicts the class priors for every row."


@dataclass(repr=False)
class Block(Short):
    """The multipliers of a feature that are drawn, in the order of its values."""

    name: str
    strength: float  # nats
    values: list[str]  # (V,)
    shares: np.ndarray  # (V,) share of the rows with each value; NaN for cells that are not probabilities
    multipliers: np.ndarray  # (V, C), nats; NaN where a value has no constraint with a class
    n_omitted: int  # values that are not drawn


@dataclass(repr=False)
class ConstraintsDisplay(Display):
    """Contributions of the strongest features, their multipliers, or the residuals of the constraints.

    For a numeric column, a curve shows the contribution to the log-odds at each value, relative to the average training
    row. For other features, a dot shows the contribution of each value (with more than six classes, a row of a heat
    map). With two classes there is one curve or dot: the log-odds of the second class. With more, there is one for each
    class: the contribution to its logit minus the mean over the classes.
    """

    _shown = ("n_features", "classes", "contributions")

    contributions: list[Contribution]
    blocks: list[Block]
    classes: np.ndarray
    cells: list[tuple[str, str]]  # (S,) feature and value of all constraints
    truth: np.ndarray  # (S, C)
    model: np.ndarray  # (S, C)
    n_features: int  # of the model
    axes_: Any = field(default=None, repr=False)  # list of matplotlib axes, one for each panel

    @classmethod
    @draws
    def from_estimator(cls, est: Any, feature: Any = None, n_features: int = 8) -> Self:
        """Compute the contributions from a fitted maximum entropy model.

        Parameters
        ----------
        est : fitted MaxEntClassifier or MaxEntStackingClassifier
        feature : str or list of str, optional
            Features to show (default: the strongest).
        n_features : int
            Maximum number of features if `feature` is not given.
        """
        if not isinstance(est, EntropyModel):
            raise ValueError(
                f"{type(est).__name__} has no constraints; give a fitted MaxEntClassifier or MaxEntStackingClassifier"
            )
        if isinstance(n_features, bool) or not isinstance(n_features, (int, np.integer)) or n_features < 1:
            raise ValueError(f"n_features must be a whole number >= 1; got {n_features!r}")
        table = est.constraint_table()
        strength = table.strength
        ranking = sorted(strength.items(), key=lambda item: -item[1])
        names = [name for name, _ in ranking[:n_features]] if feature is None else _checked(feature, dict(ranking))
        spans = {term.name: span for term, span in zip(est.layout_.terms, est.layout_.spans)}
        mask = est.layout_.mask(len(table.classes))
        contributions = feature_contributions(est, names)
        blocks = []
        for contribution in contributions:
            span = spans[contribution.name]
            blocks.append(_block(contribution, table.multipliers[span], cells_without_constraint(mask, span)))
        cells = list(zip(table.features, table.values))
        model = table.model if mask is None else np.where(mask > 0, table.model, table.truth)  # no residual elsewhere
        return cls(contributions, blocks, table.classes, cells, table.truth, model, len(ranking))

    def plot(self, ax: Axes | None = None, *, quantity: str = "contributions") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw (default: a new figure). With several features, its area is divided into panels.
        quantity : {"contributions", "multipliers", "residuals"}, default="contributions"
            "contributions": the contribution of each feature to the log-odds, one panel for each. "multipliers": the
            Lagrange multipliers; those of one numeric column can cancel each other. "residuals": the probability in the
            model minus that in the data for each constraint, with a list of the largest.

        Returns
        -------
        self
        """
        check_choice("quantity", quantity, QUANTITIES)
        if not self.blocks:
            return self._plot_no_features(ax)
        if quantity == "contributions":
            return self._plot_panels(ax)
        if quantity == "residuals":
            return self._plot_residuals(ax)
        return self._plot_dots(ax) if len(self.classes) <= MOST_DOTS else self._plot_shades(ax)

    def size(self, quantity: str = "contributions") -> tuple[float, float]:
        """Width and height in inches of a figure of the contributions, or of the multipliers."""
        names = [self._class(c) for c in range(len(self.classes))]
        beside = beside_width(names) if len(names) > 2 else 0.0
        if not self.blocks:
            return 5.2, 1.6
        if quantity == "contributions":
            rows, columns = self._grid()
            width, height = (5.2, 3.4) if len(self.contributions) == 1 else PANEL
            labels = [value for feature in self.contributions if feature.curve is None for value in feature.values]
            margin = 0.03 * min(max(map(len, labels), default=0), 30)  # for the names of the values
            return (width + margin) * columns + beside, height * rows + 0.3
        lines = sum(len(block.values) + 1.35 for block in self.blocks)
        if len(names) > MOST_DOTS:
            return float(np.clip(4.6 + 0.34 * len(names), 6, 14)), 1.7 + 0.21 * lines
        return 6.4 + beside, 1.2 + 0.21 * lines

    def _grid(self) -> tuple[int, int]:
        columns = min(len(self.contributions), 2)
        return -(-len(self.contributions) // columns), columns

    def _plot_panels(self, ax: Any) -> Self:
        ax = axes_or_new(ax, self.size())
        panels = divided(ax, len(self.contributions), *self._grid(), what="features", instead=", or name one feature")
        for panel, contribution, limits in zip(panels, self.contributions, limits_of(self.contributions)):
            draw_panel(panel, contribution, self.classes, limits)
        if len(self.classes) > 2:
            self._legend(panels)
        if len(self.contributions) < self.n_features:
            panels[-1].annotate(
                f"{len(self.contributions)} of {self.n_features} features",
                (1, 0),
                (0, -34),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="right",
                va="top",
                fontsize="small",
                color=INK,
            )
        self.ax_, self.axes_, self.figure_ = ax, panels, ax.figure
        return self

    def _legend(self, panels: list) -> None:
        """Draw the legend to the right of a panel, with the handles of one that has them; not beside a color bar."""
        handles = next((lines for panel in panels if (lines := panel.get_legend_handles_labels()[0])), None)
        columns = self._grid()[1]
        right = [i for i in range(len(panels)) if i % columns == columns - 1 or i == len(panels) - 1]
        without_bar = [i for i in right if self.contributions[i].surface is None]
        if handles:
            names = [self._class(c) for c in range(len(self.classes))]
            panels[(without_bar or right)[0]].legend(
                handles,
                names,
                frameon=False,
                fontsize="small",
                loc="upper left",
                bbox_to_anchor=(1.1 if without_bar else 1.6, 1.0),
                borderaxespad=0,
            )

    def _plot_no_features(self, ax: Any) -> Self:
        ax = axes_or_new(ax, self.size())
        ax.text(0.5, 0.5, NO_FEATURES, ha="center", va="center", color=INK, transform=ax.transAxes)
        ax.set_axis_off()
        self.ax_, self.axes_, self.figure_ = ax, [ax], ax.figure
        return self

    def _class(self, c: int, longest: int = 20) -> str:
        return plain(class_name(self.classes[c]), longest).strip()

    def _rows(self, ax: Any, edge: float = 0.0) -> list[np.ndarray]:
        """Write the names of features and values on the left; return the heights of the values of each feature."""
        y, ticks, labels, all_heights = 0.0, [], [], []
        transform = ax.get_yaxis_transform()
        for block in self.blocks:
            n_values = len(block.values) + block.n_omitted
            some = f", {len(block.values)} of {n_values} values" if block.n_omitted else ""
            text = f"{plain(block.name, NAME - len(some)).strip()}{2 * NARROW}({block.strength:.2g} nats{some})"
            style = {"va": "center", "weight": "bold", "fontsize": "small", "color": INK, "zorder": 2.5}
            box = {"fc": "white", "ec": "none", "pad": 1}
            ax.text(edge, y, text, transform=transform, ha="left", bbox=box, **style)
            heights = y + 1.0 + np.arange(len(block.values))
            ticks += heights.tolist()
            labels += value_labels(block.values, block.shares, LABEL)
            all_heights.append(heights)
            y = heights[-1] + 1.35
        ax.set_yticks(ticks, labels, fontsize="small")
        ax.set_ylim(y - 0.6, -0.9)
        return all_heights

    def _plot_dots(self, ax: Any) -> Self:
        ax = axes_or_new(ax, self.size("multipliers"))
        two = len(self.classes) == 2
        for block, heights in zip(self.blocks, self._rows(ax, 0.01)):
            ax.hlines(heights, 0, 1, transform=ax.get_yaxis_transform(), color="#e6e6e6", lw=0.7, zorder=0)
            if two:
                odds = np.nansum([block.multipliers[:, 1], -block.multipliers[:, 0]], axis=0)
                ax.hlines(heights, 0, odds, color=FAINT, lw=1.2, zorder=1)
                shades = [OKABE_ITO[1] if value >= 0 else OKABE_ITO[0] for value in odds]
                ax.scatter(odds, heights, c=shades, s=32, zorder=3)
                continue
            for c in range(len(self.classes)):
                style = {"color": color(c), "marker": marker(c), "ls": "none", "ms": 5.5, "mec": "white", "mew": 0.4}
                label = self._class(c) if block is self.blocks[0] else None
                ax.plot(block.multipliers[:, c], heights, label=label, zorder=3, **style)
        ax.axvline(0, color=INK, lw=0.8, zorder=2)
        ax.margins(x=0.08)
        if two:
            ax.set_xlabel("Multiplier: change of the log-odds (nats)")
            small = {"transform": ax.transAxes, "fontsize": "small", "va": "bottom"}
            ax.text(0, 1.01, f"← for {self._class(0)}", color=OKABE_ITO[0], **small)
            ax.text(1, 1.01, f"for {self._class(1)} →", color=OKABE_ITO[1], ha="right", **small)
        else:
            ax.set_xlabel("Multiplier: change of the class's logit (nats)")
            legend(ax, len(self.classes), beside=True)
        return self._done(ax)

    def _plot_shades(self, ax: Any) -> Self:
        ax = axes_or_new(ax, self.size("multipliers"))
        C = len(self.classes)
        largest = max((float(np.nanmax(np.abs(block.multipliers))) for block in self.blocks), default=1.0) or 1.0
        for block, heights in zip(self.blocks, self._rows(ax)):
            image = shade(ax, block.multipliers, largest, heights)
        names = [self._class(c, 16) for c in range(C)]
        ax.set_xticks(range(C), names, rotation=90 if max(map(len, names)) > 2 else 0, fontsize="small")
        ax.set_xlim(-0.5, C - 0.5)
        bar = ax.figure.colorbar(image, ax=ax, label="Multiplier: change of the class's logit (nats)", shrink=0.6)
        bar.outline.set_visible(False)
        return self._done(ax)

    def _done(self, ax: Any) -> Self:
        if len(self.blocks) < self.n_features:
            ax.set_title(f"{len(self.blocks)} of {self.n_features} features", fontsize="medium", pad=18)
        tidy(ax)
        ax.tick_params(axis="y", length=0)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def largest(self, n: int = NAMED) -> list[tuple[str, str, Any, float]]:
        """(feature, value, class, model minus data) of the constraints with the largest residuals."""
        residuals = self.model - self.truth
        order = np.argsort(-np.abs(residuals), axis=None, kind="stable")[:n]
        cells = zip(*np.unravel_index(order, residuals.shape))
        return [(*self.cells[s], self.classes[c], float(residuals[s, c])) for s, c in cells]

    def _plot_residuals(self, ax: Any) -> Self:
        largest = self.largest()
        texts = [
            f"{i}{2 * NARROW}{plain(name, 20).strip()} = {plain(value, 26).strip()},\n{5 * NARROW}"
            f"{plain(class_name(c), 30).strip()}: " + f"{residual:+.2g}".replace("-", "−")
            for i, (name, value, c, residual) in enumerate(largest, 1)
        ]
        ax = axes_or_new(ax, (5.2 + beside_width(texts), 4.0))
        residuals = self.model - self.truth
        style = {"ls": "none", "marker": "o", "ms": 4, "color": color(0), "alpha": 0.55, "mec": "none"}
        ax.plot(self.truth.ravel(), residuals.ravel(), **style)
        ax.axhline(0, color=INK, lw=0.8)
        order = np.argsort(-np.abs(residuals), axis=None, kind="stable")[: len(largest)]
        for i, cell in enumerate(order, 1):
            x, y = self.truth.flat[cell], residuals.flat[cell]
            ax.plot(x, y, ls="none", marker="o", ms=5, color=color(1))
            offset = (5, 3) if i % 2 else (-9, -8)  # points of two classes are close to each other
            ax.annotate(str(i), (x, y), offset, textcoords="offset points", fontsize="small", color=INK)
        ax.margins(0.08)
        ax.set(xlabel="P(class, value) in the data", ylabel="P(class, value): model − data")
        text = "Largest residuals:\n" + "\n".join(texts)
        ax.text(1.02, 1.0, text, transform=ax.transAxes, va="top", fontsize="small", color=INK)
        tidy(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _checked(feature: Any, known: dict[str, float]) -> list[str]:
    """The names in `feature`; an error if one is unknown or there are none."""
    names = [feature] if isinstance(feature, str) else list(feature)
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        message = f"unknown feature {unknown[0]!r}" if unknown else "feature is empty"
        features = f"{', '.join(list(known)[:10])}{', ...' * (len(known) > 10)}"
        raise ValueError(f"{message}; the features of the model are {features}")
    return list(dict.fromkeys(names))


def _block(contribution: Contribution, multipliers: np.ndarray, absent: np.ndarray | None) -> Block:
    multipliers = multipliers.copy() if absent is None else np.where(absent, np.nan, multipliers)
    shares = contribution.shares
    weight = np.sqrt(np.where(np.isnan(shares), 1.0, np.maximum(shares, 0.0)))
    kept = np.sort(np.argsort(-np.nanmax(np.abs(multipliers), axis=1) * weight, kind="stable")[:MOST_VALUES])
    values, n_omitted = [contribution.values[i] for i in kept], len(contribution.values) - len(kept)
    return Block(contribution.name, contribution.strength, values, shares[kept], multipliers[kept], n_omitted)
