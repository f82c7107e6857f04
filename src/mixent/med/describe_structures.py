"""Descriptions of fitted dependency trees and Bayesian networks: text, tables, figures and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mixent.base.displays import computed
from mixent.base.document import Content, Document, Figure, Number, Table
from mixent.base.text import count, listing, plain
from mixent.med.describe_margins import SOLUTION, Facts, describe_margins, label_name
from mixent.med.displays.edges import EdgeWeightsDisplay
from mixent.med.displays.trees import TreeDisplay
from mixent.med.families import SingleTree
from mixent.med.tree_columns import PowersColumn, SoftColumn

if TYPE_CHECKING:
    from mixent.med.bayes_net_classifier import MEDBayesNetClassifier
    from mixent.med.tree_classifier import MEDTreeClassifier

MOST_EDGES = 12  # edges of a class listed in a table
MOST_DRAWN = 9  # trees drawn
MOST_COLUMNS = 60  # columns of a tree that is drawn
WIDTHS = "The line width is the probability that a tree contains the edge."
WEIGHTS = (
    "Edge weights. Above the diagonal: the learned weights log W; below: {below}. An edge that is dark above and pale "
    "below separates the classes, although its columns have little mutual information."
)


def describe_trees(model: MEDTreeClassifier) -> Document:
    """Describe distributions over trees, or trees of maximum likelihood."""
    trees = _trees(model)
    certain = model.objective == "likelihood"
    text = _trees_text(model)
    lead = SOLUTION.format(over="the trees of each class", model=text)
    if certain:
        lead = f"{text}. A baseline, trained without margins."
    content: list[Content] = []
    drawn = _can_be_drawn([tree["edges"] for tree in trees], len(model.column_names_))
    if drawn:
        caption = "Trees of maximum likelihood." if certain else f"The most probable trees. {WIDTHS}"
        content.append(_drawing(model, [_edge_line(tree, certain) for tree in trees], caption))
    if any(tree["edges"] for tree in trees):
        content.append(_edges_table(trees, certain))
    if drawn and not certain and len(model.column_names_) > 2:
        content.append(_weights(model))
    return describe_margins(model, lead, content, {"objective": model.objective, "trees": trees})


def describe_net(model: MEDBayesNetClassifier) -> Document:
    """Describe Bayesian networks of given structure."""
    nets = [
        {"class": plain(label), "edges": [list(edge) for edge in edges]}
        for label, edges in zip(model.classes_, model.edges_)
    ]
    shared = all(net["edges"] == nets[0]["edges"] for net in nets)
    shown = [{**nets[0], "class": None}] if shared else nets
    text = _net_text(model, nets[0]["edges"] if shared else None)
    lead = SOLUTION.format(over="the probability tables of each class", model=text)
    if model.objective == "likelihood":
        lead = f"{text}, fitted to the rows of each class. A baseline, trained without margins."
    lines = [f"{label_name(net['class'])}: {_arrows(net['edges'])}" for net in shown]
    content: list[Content] = []
    if any(net["edges"] for net in nets):
        if _can_be_drawn([net["edges"] for net in nets], len(model.column_names_)):
            content.append(_drawing(model, lines, "Edges from parent to child."))
        rows = [[label_name(net["class"]), _arrows(net["edges"])] for net in shown]
        content.append(Table("Edges from parent to child", ["class", "edges"], rows))
    cells = [int(net.n_cells) for net in model.model_.nets]
    return describe_margins(model, lead, content, {"objective": model.objective, "nets": nets, "n_cells": cells})


# --- trees ------------------------------------------------------------------------------------------------------------


def _trees(model: MEDTreeClassifier) -> list[Facts]:
    """The most probable trees: one for each class, one for all classes if they share it, or several of a mixture."""
    names, class_of = list(model.column_names_), model.model_.class_of.tolist()
    shared = len(model.distribution_.parts) < len(class_of)
    trees = []
    for i, (edges, marginal, part) in enumerate(zip(model.trees_, model.edge_marginals_, model.distribution_.parts)):
        tree: Facts = {"class": None if shared else plain(model.classes_[class_of[i]])}
        if model.model_.is_mixture:
            share = float(np.exp(model.model_.log_shares[i]))
            tree |= {"tree": class_of[:i].count(class_of[i]), "share": share}
        facts = [{"between": [a, b], "probability": float(marginal[names.index(a), names.index(b)])} for a, b in edges]
        facts.sort(key=lambda edge: -edge["probability"])  # type: ignore[operator]
        trees.append({**tree, "probability": _tree_probability(part), "edges": facts})
    return trees


def _tree_probability(part: Any) -> float:
    """Probability of the most probable tree."""
    if isinstance(part, SingleTree):
        return 1.0
    return float(np.exp(part.trees.tree_weights.sum() - part.trees.log_partition))


def _trees_text(model: MEDTreeClassifier) -> str:
    n, n_trees = len(model.column_names_), len(model.distribution_.parts)
    if model.model_.is_mixture:
        sharing = f"in a mixture of {n_trees // len(model.classes_)} for each class"
    else:
        sharing = "shared by all classes" if n_trees < len(model.classes_) else "separate for each class"
    kinds = {type(column) for column in model.model_.columns.columns}
    numbers = "; numbers are Gaussian" if PowersColumn in kinds else ""
    numbers = "; numbers are quantized by a mixture per column" if SoftColumn in kinds else numbers
    if model.objective == "likelihood":
        return f"Trees of maximum likelihood of {count(n, 'column')}, {sharing}{numbers}"
    tables = "Dirichlet tables, learned with the trees" if model.model_.tables is None else "fixed tables"
    return f"Average over all trees of {count(n, 'column')}, {sharing}, with {tables}{numbers}"


def _tree_name(tree: Facts) -> str:
    return label_name(tree["class"]) + (f", tree {tree['tree']} (share {tree['share']:.2f})" if "tree" in tree else "")


def _edge_line(tree: Facts, certain: bool) -> str:
    edges = [" – ".join(edge["between"]) + ("" if certain else f" {edge['probability']:.2f}") for edge in tree["edges"]]
    return f"{_tree_name(tree)}: {listing(edges, MOST_EDGES) or 'no edges'}"


def _edges_table(trees: list[Facts], certain: bool) -> Table:
    rows: list[Any] = []
    for tree in trees:
        for edge in tree["edges"][:MOST_EDGES]:
            probability = [] if certain else [Number(f"{edge['probability']:.3f}")]
            rows.append([_tree_name(tree), " – ".join(edge["between"]), *probability])
    longest = max(len(tree["edges"]) for tree in trees)
    most = f" (at most {MOST_EDGES} of {longest})" if longest > MOST_EDGES else ""
    if certain:
        return Table(f"Edges of the trees of maximum likelihood{most}", ["class", "edge"], rows)
    whole = listing([f"{_tree_name(tree)} {tree['probability']:.2g}" for tree in trees], MOST_DRAWN)
    caption = (
        f"Edges of the most probable trees{most}, and the probability that a tree contains the edge. Probability of "
        f"the most probable tree: {whole}"
    )
    return Table(caption, ["class", "edge", "probability"], rows)


# --- nets -------------------------------------------------------------------------------------------------------------


def _net_text(model: MEDBayesNetClassifier, edges: list | None) -> str:
    """The networks as text; `edges` are those of all classes, or None if they differ."""
    n, cells = len(model.column_names_), max(net.n_cells for net in model.model_.nets)
    text = "with a structure for each class" if edges is None else f"with {count(len(edges), 'edge')}"
    if edges == []:
        text = "without edges (naive Bayes)"
    return f"Bayesian networks over {count(n, 'column')} {text} and at most {count(int(cells), 'table cell')} per class"


def _arrows(edges: list) -> str:
    return listing([f"{a} → {b}" for a, b in edges], MOST_EDGES) or "no edges"


# --- figures ----------------------------------------------------------------------------------------------------------


def _can_be_drawn(edges: list[list], n_columns: int) -> bool:
    return len(edges) <= MOST_DRAWN and n_columns <= MOST_COLUMNS and any(edges)


def _drawing(model: MEDTreeClassifier | MEDBayesNetClassifier, lines: list[str], caption: str) -> Figure:
    return Figure(computed(TreeDisplay.from_estimator, model).picture, "Edges. " + "; ".join(lines), caption)


def _weights(model: MEDTreeClassifier) -> Figure:
    display = computed(EdgeWeightsDisplay.from_estimator, model)
    heaviest = []
    for title, weights in zip(display.titles, display.weights):
        u, v = np.unravel_index(np.triu(weights, 1).argmax(), weights.shape)
        heaviest.append(f"{title}: {display.names[u]} – {display.names[v]}")
    below = "mutual information" if display.kind == "information" else "the probability that a tree contains the edge"
    alt = f"Edge weights; the heaviest edges: {'; '.join(heaviest)}."
    return Figure(display.picture, alt, WEIGHTS.format(below=below))
