"""Dependencies between columns: the most probable tree of each class, or its Bayes net."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mixent.base.style import INK, Display, color, divided, plain
from mixent.med.bayes_net_classifier import MEDBayesNetClassifier
from mixent.med.displays.edges import chosen_classes
from mixent.med.tree_classifier import MEDTreeClassifier

NAME = 22  # characters of a column
THIN, THICK = 0.5, 4.0  # points: of an edge no tree has, of one that all have
LINE, LETTER = 0.2, 0.078  # inches: between lines, of a letter
LANE = 0.4, 0.11, 1.8  # inches between lanes: at least, for each that branches off one vertex, at most
MOST_BESIDE = 3
SHOWN = (0.1, 0.5, 1.0)  # edge probabilities in the legend

Edges = list[tuple[int, int]]


@dataclass(frozen=True)
class Outline:
    """A line for each vertex: its longest path runs straight down, what branches off stands to the right of it."""

    line: np.ndarray  # (n,)
    lane: np.ndarray  # (n,)
    parent: np.ndarray  # (n,) -1: none


def outline(n: int, edges: Edges) -> Outline:
    """Of a forest. No lines cross, and none runs through a name that stands to the right of its vertex."""
    near: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        near[u].append(v)
        near[v].append(u)
    line, lane, parent = np.full(n, -1), np.zeros(n, dtype=int), np.full(n, -1)
    height, below = np.zeros(n, dtype=int), 0
    for first in range(n):
        if line[first] >= 0:
            continue
        root = min(_farthest(near, v) for v in (first, _farthest(near, first)))
        order = _downwards(near, root, parent)
        for v in reversed(order):
            height[v] = 1 + max((height[c] for c in near[v] if c != parent[v]), default=0)
        left = [root]
        while left:
            v = left.pop()
            line[v], below = below, below + 1
            children = sorted((c for c in near[v] if c != parent[v]), key=lambda c: (height[c], c))
            for c in children[:-1]:
                lane[c] = lane[v] + 1
            if children:
                lane[children[-1]] = lane[v]
            left += reversed(children)  # the highest comes last, straight below
    return Outline(line, lane, parent)


def _downwards(near: list[list[int]], root: int, parent: np.ndarray) -> list[int]:
    """Vertices from the root on, parents before their children; `parent` is filled in."""
    order = [root]
    for v in order:
        for c in near[v]:
            if c != parent[v]:
                parent[c] = v
                order.append(c)
    return order


def _farthest(near: list[list[int]], root: int) -> int:
    return _downwards(near, root, np.full(len(near), -1))[-1]


def _topological(n: int, edges: Edges) -> list[int]:
    """Vertices, parents first, else in their own order."""
    left, order = set(range(n)), []
    while left:
        order.append(min(v for v in left if not any(c == v and u in left for u, c in edges)))
        left.remove(order[-1])
    return order


@dataclass(repr=False)
class TreeDisplay(Display):
    """The most probable tree of each class, the width of a line being the probability that a tree has the edge.

    The longest path runs down the left, a line for each column, and branches stand to the right. The edges of a Bayes
    net, which is given, are arrows from parent to child, all of one width.
    """

    edges: list[Edges]  # of each class (tree), positions of columns
    marginals: list[np.ndarray] | None  # (edges,) of each; None: a Bayes net, whose edges have directions
    titles: list[str]
    names: tuple[str, ...]  # (n,) of the columns
    axes_: Any = field(default=None, init=False, repr=False)  # of each tree

    @classmethod
    def from_estimator(cls, est: MEDTreeClassifier | MEDBayesNetClassifier, label: Hashable | None = None) -> Self:
        """The trees or nets of a fitted classifier.

        Parameters
        ----------
        est : fitted MEDTreeClassifier or MEDBayesNetClassifier
        label : class, optional
            Draw this class alone (default: all classes).
        """
        if not isinstance(est, MEDTreeClassifier | MEDBayesNetClassifier):
            raise TypeError(
                f"this display needs a fitted MEDTreeClassifier or MEDBayesNetClassifier; got {type(est).__name__}"
            )
        place = {name: v for v, name in enumerate(est.column_names_)}
        named: Sequence = est.trees_ if isinstance(est, MEDTreeClassifier) else est.edges_
        edges = [[(place[u], place[v]) for u, v in one] for one in named]
        kept, titles = chosen_classes(est, len(edges), label)
        marginals = None
        if isinstance(est, MEDTreeClassifier):
            every = est.edge_marginals_
            marginals = [np.array([every[i][u, v] for u, v in edges[i]]) for i in kept]
        return cls([edges[i] for i in kept], marginals, titles, est.column_names_)

    def size(self) -> tuple[float, float]:
        """Width and height of a figure of its own, in inches."""
        rows, columns = self._panels()
        return self._panel_width() * columns, (LINE * len(self.names) + 0.75) * rows

    def _panels(self) -> tuple[int, int]:
        """Rows and columns of trees."""
        columns = min(len(self.edges), MOST_BESIDE)
        return -(-len(self.edges) // columns), columns

    def _panel_width(self) -> float:
        """Inches."""
        return max(2.6, *(float(np.max(self._laid_out(one)[0] + self._letters())) + 0.4 for one in self.edges))

    def _draw(self, ax: Any) -> None:
        n, wide = len(self.names), self._panel_width()
        laid = [self._laid_out(one) for one in self.edges]
        panels = divided(ax, len(self.edges), *self._panels())
        for i, (panel, title) in enumerate(zip(panels, self.titles)):
            panel.set_axis_off()
            panel.set_title(plain(title, 40), loc="left", fontsize="medium", color=INK)
            draw = self._draw_net if self.marginals is None else self._draw_tree
            draw(panel, i, *laid[i])
            panel.set(xlim=(-0.25, wide), ylim=(-LINE * n, LINE))
        if self.marginals is not None:
            _widths(panels[0])
        self.axes_ = panels

    def _letters(self) -> np.ndarray:
        """(n,) inches of the names."""
        return np.array([LETTER * min(len(name), NAME) for name in self.names])

    def _laid_out(self, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
        """(n,) x and y of the columns, inches."""
        n = len(self.names)
        if self.marginals is not None:
            found = outline(n, edges)
            off = np.bincount(found.parent[found.lane > found.lane[found.parent]], minlength=n).max(initial=0)
            return float(np.clip(LANE[1] * off, LANE[0], LANE[2])) * found.lane, -LINE * found.line
        order = _topological(n, edges)
        y = np.empty(n)
        y[order] = -LINE * np.arange(n)
        return np.full(n, float(self._letters().max()) + 0.1), y

    def _draw_tree(self, ax: Any, i: int, x: np.ndarray, y: np.ndarray) -> None:
        assert self.marginals is not None
        parent = outline(len(x), self.edges[i]).parent
        share = {frozenset(edge): p for edge, p in zip(self.edges[i], self.marginals[i])}
        for v in range(len(x)):
            children = sorted(np.flatnonzero(parent == v).tolist(), key=lambda c: -y[c])
            beside = [c for c in children if x[c] > x[v]]
            for k, c in enumerate(beside):
                turn = 0.75 * (x[c] - x[v]) * (len(beside) - k) / (len(beside) + 1)  # the nearest is farthest out
                _line(ax, _branch(x[v], y[v], x[c], y[c], turn), share[frozenset((v, c))], i)
            for c in children[len(beside) :]:
                _line(ax, ([(x[v], y[v]), (x[c], y[c])], [1, 2]), share[frozenset((v, c))], i)
        ax.plot(x, y, ls="none", marker="o", ms=4.5, color=INK, mec="white", mew=0.8, zorder=3)
        for name, a, b in zip(self.names, x, y):
            ax.text(a + 0.1, b, plain(name, NAME).strip(), va="center", fontsize="small", color=INK, zorder=4)

    def _draw_net(self, ax: Any, i: int, x: np.ndarray, y: np.ndarray) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        for u, v in self.edges[i]:
            out = x[u] + 0.12 + 0.55 * abs(y[u] - y[v]) ** 0.7
            curve = Path([(x[u], y[u]), (out, y[u]), (out, y[v]), (x[v], y[v])], [1, 4, 4, 4])
            look: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 3}
            ax.add_patch(FancyArrowPatch(path=curve, color=color(i), lw=1.3, zorder=2, **look))
        ax.plot(x, y, ls="none", marker="o", ms=4.5, color=INK, mec="white", mew=0.8, zorder=3)
        for name, a, b in zip(self.names, x, y):
            said = plain(name, NAME).strip()
            ax.text(a - 0.1, b, said, va="center", ha="right", fontsize="small", color=INK, zorder=4)


def _branch(x0: float, y0: float, x1: float, y1: float, turn: float) -> tuple[list, list]:
    """Down from the parent, below its name, and across to the child: points and matplotlib's codes."""
    if y0 - y1 < 1.5 * LINE:
        return [(x0, y0), (x0, y1), (x1, y1)], [1, 3, 3]
    aside = x0 + turn
    down = [(x0, y0), (x0, y0 - 0.9 * LINE), (aside, y0 - 0.7 * LINE), (aside, y0 - 1.4 * LINE)]
    return [*down, (aside, y1 + 0.5 * LINE), (aside, y1), (x1, y1)], [1, 4, 4, 4, 2, 3, 3]


def _line(ax: Any, drawn: tuple[list, list], share: float, i: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    width = THIN + (THICK - THIN) * float(share)
    look = {"fc": "none", "ec": color(i), "lw": width, "capstyle": "round", "zorder": 2}
    ax.add_patch(PathPatch(Path(*drawn), **look))


def _widths(ax: Any) -> None:
    """What the widths of lines mean, below."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=INK, lw=THIN + (THICK - THIN) * p, label=f"{100 * p:.0f} %") for p in SHOWN]
    look: dict[str, Any] = {"frameon": False, "fontsize": "x-small", "title_fontsize": "x-small", "ncols": len(SHOWN)}
    ax.legend(handles=lines, title="probability of the edge", loc="upper left", bbox_to_anchor=(0, 0), **look)
