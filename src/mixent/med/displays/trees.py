"""Dependencies between columns: the most probable tree of each class, or its Bayesian network."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mixent.base.displays import Display, draws
from mixent.base.style import INK, color, divided, plain
from mixent.med.bayes_net_classifier import MEDBayesNetClassifier
from mixent.med.displays.edges import chosen_classes
from mixent.med.tree_classifier import MEDTreeClassifier

NAME = 22  # maximum characters of a column name
THIN, THICK = 0.5, 4.0  # line widths in points, of an edge with probability 0 and 1
LINE, LETTER = 0.2, 0.078  # inches between vertices, and of a letter
LANE = 0.4, 0.11, 1.8  # inches between lanes: minimum, for each branch of a vertex, maximum
MOST_BESIDE = 3  # trees in a row
LEGEND = (0.1, 0.5, 1.0)  # edge probabilities in the legend

Edges = list[tuple[int, int]]


@dataclass(frozen=True)
class Layout:
    """Positions of the vertices: a line for each, the longest path in the first lane, and branches to the right."""

    line: np.ndarray  # (n,) vertical position
    lane: np.ndarray  # (n,) horizontal position
    parent: np.ndarray  # (n,) -1 for a root


def layout_forest(n: int, edges: Edges) -> Layout:
    """Lay out a forest such that no edges cross, and none crosses a name to the right of a vertex."""
    neighbors: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges:
        neighbors[u].append(v)
        neighbors[v].append(u)
    line, lane, parent = np.full(n, -1), np.zeros(n, dtype=int), np.full(n, -1)
    height, next_line = np.zeros(n, dtype=int), 0
    for first in range(n):
        if line[first] >= 0:
            continue
        root = min(_farthest(neighbors, v) for v in (first, _farthest(neighbors, first)))
        order = _breadth_first(neighbors, root, parent)
        for v in reversed(order):
            height[v] = 1 + max((height[c] for c in neighbors[v] if c != parent[v]), default=0)
        stack = [root]
        while stack:
            v = stack.pop()
            line[v], next_line = next_line, next_line + 1
            children = sorted((c for c in neighbors[v] if c != parent[v]), key=lambda c: (height[c], c))
            for c in children[:-1]:
                lane[c] = lane[v] + 1
            if children:
                lane[children[-1]] = lane[v]
            stack += reversed(children)  # the highest subtree comes last, in the same lane
    return Layout(line, lane, parent)


def _breadth_first(neighbors: list[list[int]], root: int, parent: np.ndarray) -> list[int]:
    """Vertices in breadth-first order from the root; `parent` is filled in."""
    order = [root]
    for v in order:
        for c in neighbors[v]:
            if c != parent[v]:
                parent[c] = v
                order.append(c)
    return order


def _farthest(neighbors: list[list[int]], root: int) -> int:
    """A vertex at the greatest distance from the root."""
    return _breadth_first(neighbors, root, np.full(len(neighbors), -1))[-1]


def _topological(n: int, edges: Edges) -> list[int]:
    """Vertices in topological order, with ties in their original order."""
    remaining, order = set(range(n)), []
    while remaining:
        order.append(min(v for v in remaining if not any(c == v and u in remaining for u, c in edges)))
        remaining.remove(order[-1])
    return order


@dataclass(repr=False)
class TreeDisplay(Display):
    """The most probable tree of each class; the line width is the probability that a tree contains the edge.

    Each column has a line; the longest path is on the left, and branches are to the right of it. The edges of a
    Bayesian network, whose structure is given, are arrows from parent to child, all of the same width.
    """

    edges: list[Edges]  # for each class (or tree), as positions of columns
    marginals: list[np.ndarray] | None  # (edges,) probabilities for each; None for a Bayesian network
    titles: list[str]
    names: tuple[str, ...]  # (n,) names of the columns
    axes_: Any = field(default=None, init=False, repr=False)  # one for each tree

    @classmethod
    @draws
    def from_estimator(cls, est: MEDTreeClassifier | MEDBayesNetClassifier, label: Hashable | None = None) -> Self:
        """Read the trees or networks of a fitted classifier.

        Parameters
        ----------
        est : fitted MEDTreeClassifier or MEDBayesNetClassifier
        label : class, optional
            Draw only this class (default: all classes).
        """
        if not isinstance(est, MEDTreeClassifier | MEDBayesNetClassifier):
            raise TypeError(
                f"this display needs a fitted MEDTreeClassifier or MEDBayesNetClassifier; got {type(est).__name__}"
            )
        position = {name: v for v, name in enumerate(est.column_names_)}
        structures: Sequence = est.trees_ if isinstance(est, MEDTreeClassifier) else est.edges_
        edges = [[(position[u], position[v]) for u, v in structure] for structure in structures]
        chosen, titles = chosen_classes(est, len(edges), label)
        marginals = None
        if isinstance(est, MEDTreeClassifier):
            all_marginals = est.edge_marginals_
            marginals = [np.array([all_marginals[i][u, v] for u, v in edges[i]]) for i in chosen]
        return cls([edges[i] for i in chosen], marginals, titles, est.column_names_)

    def size(self) -> tuple[float, float]:
        """Width and height of the figure, in inches."""
        rows, columns = self._panels()
        return self._panel_width() * columns, (LINE * len(self.names) + 0.75) * rows

    def _panels(self) -> tuple[int, int]:
        """Number of rows and columns of trees."""
        columns = min(len(self.edges), MOST_BESIDE)
        return -(-len(self.edges) // columns), columns

    def _panel_width(self) -> float:
        """Width of a tree with its names, in inches."""
        return max(2.6, *(float(np.max(self._positions(edges)[0] + self._name_widths())) + 0.4 for edges in self.edges))

    def _draw(self, ax: Any) -> None:
        n, width = len(self.names), self._panel_width()
        positions = [self._positions(edges) for edges in self.edges]
        panels = divided(ax, len(self.edges), *self._panels())
        for i, (panel, title) in enumerate(zip(panels, self.titles)):
            panel.set_axis_off()
            panel.set_title(plain(title, 40), loc="left", fontsize="medium", color=INK)
            draw = self._draw_net if self.marginals is None else self._draw_tree
            draw(panel, i, *positions[i])
            panel.set(xlim=(-0.25, width), ylim=(-LINE * n, LINE))
        if self.marginals is not None:
            _width_legend(panels[0])
        self.axes_ = panels

    def _name_widths(self) -> np.ndarray:
        """(n,) widths of the names, in inches."""
        return np.array([LETTER * min(len(name), NAME) for name in self.names])

    def _positions(self, edges: Edges) -> tuple[np.ndarray, np.ndarray]:
        """(n,) x and y of the columns, in inches."""
        n = len(self.names)
        if self.marginals is not None:
            layout = layout_forest(n, edges)
            is_branch = layout.lane > layout.lane[layout.parent]
            n_branches = np.bincount(layout.parent[is_branch], minlength=n).max(initial=0)
            return float(np.clip(LANE[1] * n_branches, LANE[0], LANE[2])) * layout.lane, -LINE * layout.line
        order = _topological(n, edges)
        y = np.empty(n)
        y[order] = -LINE * np.arange(n)
        return np.full(n, float(self._name_widths().max()) + 0.1), y

    def _draw_tree(self, ax: Any, i: int, x: np.ndarray, y: np.ndarray) -> None:
        assert self.marginals is not None
        parent = layout_forest(len(x), self.edges[i]).parent
        probability = {frozenset(edge): p for edge, p in zip(self.edges[i], self.marginals[i])}
        for v in range(len(x)):
            children = sorted(np.flatnonzero(parent == v).tolist(), key=lambda c: -y[c])
            branches = [c for c in children if x[c] > x[v]]
            for k, c in enumerate(branches):
                turn = 0.75 * (x[c] - x[v]) * (len(branches) - k) / (len(branches) + 1)  # the nearest is farthest out
                _draw_edge(ax, _branch(x[v], y[v], x[c], y[c], turn), probability[frozenset((v, c))], i)
            for c in children[len(branches) :]:
                _draw_edge(ax, ([(x[v], y[v]), (x[c], y[c])], [1, 2]), probability[frozenset((v, c))], i)
        ax.plot(x, y, ls="none", marker="o", ms=4.5, color=INK, mec="white", mew=0.8, zorder=3)
        for name, a, b in zip(self.names, x, y):
            ax.text(a + 0.1, b, plain(name, NAME).strip(), va="center", fontsize="small", color=INK, zorder=4)

    def _draw_net(self, ax: Any, i: int, x: np.ndarray, y: np.ndarray) -> None:
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        for u, v in self.edges[i]:
            out = x[u] + 0.12 + 0.55 * abs(y[u] - y[v]) ** 0.7
            curve = Path([(x[u], y[u]), (out, y[u]), (out, y[v]), (x[v], y[v])], [1, 4, 4, 4])
            style: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 9, "shrinkA": 0, "shrinkB": 3}
            ax.add_patch(FancyArrowPatch(path=curve, color=color(i), lw=1.3, zorder=2, **style))
        ax.plot(x, y, ls="none", marker="o", ms=4.5, color=INK, mec="white", mew=0.8, zorder=3)
        for name, a, b in zip(self.names, x, y):
            text = plain(name, NAME).strip()
            ax.text(a - 0.1, b, text, va="center", ha="right", fontsize="small", color=INK, zorder=4)


def _branch(x0: float, y0: float, x1: float, y1: float, turn: float) -> tuple[list, list]:
    """Path from the parent down below its name and across to the child: points and matplotlib's path codes."""
    if y0 - y1 < 1.5 * LINE:
        return [(x0, y0), (x0, y1), (x1, y1)], [1, 3, 3]
    aside = x0 + turn
    down = [(x0, y0), (x0, y0 - 0.9 * LINE), (aside, y0 - 0.7 * LINE), (aside, y0 - 1.4 * LINE)]
    return [*down, (aside, y1 + 0.5 * LINE), (aside, y1), (x1, y1)], [1, 4, 4, 4, 2, 3, 3]


def _draw_edge(ax: Any, path: tuple[list, list], probability: float, i: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    width = THIN + (THICK - THIN) * float(probability)
    style = {"fc": "none", "ec": color(i), "lw": width, "capstyle": "round", "zorder": 2}
    ax.add_patch(PathPatch(Path(*path), **style))


def _width_legend(ax: Any) -> None:
    """A legend of the line widths, below the axes."""
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=INK, lw=THIN + (THICK - THIN) * p, label=f"{100 * p:.0f} %") for p in LEGEND]
    style: dict[str, Any] = {"frameon": False, "fontsize": "x-small", "title_fontsize": "x-small", "ncols": len(LEGEND)}
    ax.legend(handles=lines, title="Probability of the edge", loc="upper left", bbox_to_anchor=(0, 0), **style)
