"""Contributions to the log-odds of one row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mixent.base.delegation import check_provides
from mixent.base.displays import Display, computed, draws
from mixent.base.explanation import Explanation
from mixent.base.style import FAINT, INK, OKABE_ITO, plain, tidy
from mixent.base.text import class_name

MOST_BARS = 8
LONGEST = 46  # characters beside a bar
SMALL = 0.01  # of the sum of all parts' sizes: less is pooled


@dataclass(repr=False)
class ExplanationDisplay(Display):
    """Contributions to the log-odds of one row: of the class priors, and of each component or column.

    They add up to the log-odds.
    """

    label: Any
    rival: Any
    probability: float | None  # p(label | x), among all classes; None: not known
    log_odds: float  # log p(label | x) / p(rival | x), nats
    baseline: float  # the part of the class priors (of a maximum entropy model, of the average row)
    parts: np.ndarray  # (K,) the part of each component, or of each feature
    names: list[str]  # (K,) what each is called
    baseline_name: str = "class priors"

    @classmethod
    @draws
    def from_estimator(cls, est: Any, X: Any, row: int = 0, label: Any = None) -> Self:
        """Contributions to the log-odds of `label` against its strongest rival.

        Parameters
        ----------
        est : fitted classifier with `explain`
        X : table
        row : int
            Position of the row in `X`.
        label : class, optional
            Default: the most probable class.
        """
        from sklearn.utils import _safe_indexing

        check_provides(est, ("explain",), "see the capability table for models that explain their decisions")
        n_rows = len(X)
        if not 0 <= row < n_rows:
            raise ValueError(f"X has {n_rows} row{'s' * (n_rows != 1)}, numbered from 0; got row {row}")
        case = _safe_indexing(X, [row])
        explanation = est.explain(case, label=label)
        display = computed(cls.from_explanation, explanation)
        display.probability = float(est.predict_proba(case)[0, est.classes_.tolist().index(explanation.label[0])])
        display.names = [_with_value(*both, explanation.by) for both in zip(explanation.names, explanation.values()[0])]
        return display

    @classmethod
    @draws
    def from_explanation(cls, explanation: Explanation, row: int = 0) -> Self:
        """Contributions in the result of `explain`; columns are shown without the values of the row.

        Parameters
        ----------
        explanation : Explanation
        row : int
        """
        odds, baseline = float(explanation.log_odds[row]), float(explanation.baseline[row])
        parts, names = explanation.parts[row], list(explanation.names)
        labels = explanation.label[row], explanation.rival[row]
        return cls(*labels, None, odds, baseline, parts, names, explanation.baseline_name)

    def bars(self) -> list[tuple[str, float]]:
        """Name and size of every bar: the class priors, the largest contributions, the sum of all others."""
        sizes = np.abs(self.parts)
        order = np.argsort(-sizes, kind="stable")
        least = SMALL * (sizes.sum() + abs(self.baseline))
        shown = [k for k in order[:MOST_BARS] if sizes[k] >= least]
        rest = [k for k in order if k not in shown]
        if len(rest) == 1:  # no need to pool one
            shown, rest = [*shown, *rest], []
        pooled = [(f"{len(rest)} others", float(self.parts[rest].sum()))] if rest else []
        parts = [(self.names[k], float(self.parts[k])) for k in shown]
        return [(self.baseline_name, self.baseline), *parts, *pooled]

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        return 6.8, 1.7 + 0.32 * (len(self.bars()) + 1)

    def _draw(self, ax: Any) -> None:
        bars = self.bars()
        n = len(bars)
        sizes = np.array([size for _, size in bars] + [self.log_odds])
        heights = np.append(np.arange(n), n + 0.3)
        shades = [*(OKABE_ITO[0] if size >= 0 else OKABE_ITO[1] for size in sizes[:-1]), INK]
        ax.barh(heights, sizes, color=shades, height=0.68, zorder=2)
        ax.axvline(0, color=INK, lw=0.8, zorder=3)
        ax.axhline(n - 0.35, color=FAINT, lw=0.8)
        self._write_sizes(ax, heights, sizes)
        ax.set_yticks(heights, [*(plain(name, LONGEST).strip() for name, _ in bars), "total"])
        ax.set_ylim(n + 0.85, -0.6)
        ax.set_xlabel("Contribution to the log-odds (nats)")
        ours, theirs = plain(class_name(self.label), 20).strip(), plain(class_name(self.rival), 20).strip()
        ax.text(0, 1.01, f"← for {theirs}", color=OKABE_ITO[1], transform=ax.transAxes, fontsize="small")
        ax.text(1, 1.01, f"for {ours} →", color=OKABE_ITO[0], transform=ax.transAxes, fontsize="small", ha="right")
        odds = f"{self.log_odds:.3g}".replace("-", "−")
        title = f"log-odds {odds} nats"
        title += "" if self.probability is None else f", probability {probability_text(self.probability)}"
        ax.set_title(f"{ours} vs {theirs}\n{title}", fontsize="medium", pad=18)
        tidy(ax)
        ax.tick_params(axis="y", length=0)

    def _write_sizes(self, ax: Any, heights: np.ndarray, sizes: np.ndarray) -> None:
        """The size of each bar at its end, all with the same digits, and room for them."""
        reach = max(float(np.abs(sizes).max()), 1e-12)
        digits = int(np.clip(2 - np.floor(np.log10(reach)), 0, 6))
        rounded = [round(float(size), digits) for size in sizes]
        for height, size, shown in zip(heights, sizes, rounded):
            left = shown < 0
            text = f"{shown:+.{digits}f}".replace("-", "−") if shown else "0"
            look = {"ha": "right" if left else "left", "va": "center", "fontsize": "small", "color": INK}
            ax.annotate(text, (size, height), (-4 if left else 4, 0), textcoords="offset points", **look)
        low, high = min(sizes.min(), 0.0), max(sizes.max(), 0.0)
        room = 0.22 * (high - low) or 1.0
        ax.set_xlim(low - (room if min(rounded) < 0 else 0.05 * room), high + room)


def _with_value(name: str, value: str, by: str) -> str:
    """The name of a contribution with the row's value, or with the class of the component; long names are cut."""
    sign = ": " if by == "component" else " = "
    value = value if len(value) <= 22 else value[:21] + "…"
    room = LONGEST - len(value) - len(sign)
    return f"{name if len(name) <= room else name[: room - 1] + '…'}{sign}{value}"


def probability_text(p: float) -> str:
    """A probability with enough digits to show its distance from 0 and from 1."""
    if p in (0.0, 1.0) or 0.001 <= p <= 0.999:
        return f"{p:.3g}"
    if p < 0.5:
        return f"{p:.1e}"
    distance = f"{1 - p:.0e}"
    n_digits = -int(distance.split("e")[1])
    return f"{p:.{n_digits}f}" if n_digits <= 6 else f"1 − {distance}"
