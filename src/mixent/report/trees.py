"""The section of a classifier by maximum entropy discrimination with trees or Bayes nets: edges, support, margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Figure, Number, Paragraph, Table
from mixent.base.document import canvas as figure
from mixent.base.text import class_name, count
from mixent.displays import EdgeWeightsDisplay, TreeDisplay
from mixent.report.med import margins, tried
from mixent.report.structures import describe_structure, edges_in_words, structure_in_words

LISTED = 12  # edges of a class
MOST_DRAWN = 9  # trees
MOST_COLUMNS = 60  # of a tree that is drawn
BESIDE = 3


def structures_section(name: str, model: Any, X: Any, y: Any, *, draw: bool) -> list[Content]:
    """What a fitted `MEDTreeClassifier` or `MEDBayesNetClassifier` found, and how sure that is."""
    about = describe_structure(model)
    see = "the comparison above says what it is on rows not seen"
    facts = [f"{text}." for text in structure_in_words(about, see=see)[1:]]
    content: list[Content] = [Paragraph(_what_it_is(name, model, about)), Bullets(facts)]
    each = about["trees"] if "trees" in about else about["nets"]
    few = len(each) <= MOST_DRAWN and len(model.column_names_) <= MOST_COLUMNS
    some = any(one["edges"] for one in each)
    drawn = draw and few and some
    if drawn:
        content.append(_drawn(model, about))
    if "trees" in about and about["objective"] == "margin":
        content.append(_edges(about))
        content += [_weights(model)] if drawn and len(model.column_names_) > 2 else []
    elif some:
        content.append(_listed(about))
    if about["c"]["tried"]:
        content.append(tried(about["c"]))
    if draw and X is not None and about["objective"] == "margin":
        content.append(margins(model, X, y))
    return content


def _what_it_is(name: str, model: Any, about: dict[str, Any]) -> str:
    words = f"{about['words']}."
    if about["objective"] == "likelihood":
        return f"{name}, fitted on all rows without discrimination, a baseline. {words}"
    over = "the trees of the classes" if "trees" in about else "the tables of the classes' Bayes nets"
    passes = count(model.run_.n_passes, "pass", "passes")
    return (
        f"{name}, fitted on all rows: of all distributions over {over} that keep the margin of every label on average, "
        f"the one of least relative entropy to the prior. {words} Solving took {passes}; {model.run_.message}."
    )


def _whose(entry: dict[str, Any]) -> str:
    label = "all classes" if entry["class"] is None else class_name(entry["class"])
    return label + (f", tree {entry['component']}" if "component" in entry else "")


def _edges(about: dict[str, Any]) -> Table:
    """The most probable edges of the most probable trees."""
    rows: list = []
    for tree in about["trees"]:
        for edge in tree["edges"][:LISTED]:
            rows.append([_whose(tree), " – ".join(edge["between"]), Number(f"{100 * edge['probability']:.1f}")])
    longest = max(len(tree["edges"]) for tree in about["trees"])
    most = f" (the {LISTED} most probable of {longest})" if longest > LISTED else ""
    whole = ", ".join(f"{_whose(tree)} {tree['probability']:.2g}" for tree in about["trees"][:MOST_DRAWN])
    caption = (
        f"Edges of the most probable tree{most}, and the probability that a tree of the class has each. Probability of "
        f"that tree as a whole: {whole}"
    )
    return Table(caption, ["class", "edge", "probability (%)"], rows)


def _listed(about: dict[str, Any]) -> Table:
    rows: list = [["all classes" if c is None else class_name(c), edges] for c, edges in edges_in_words(about)]
    given = "trees" not in about
    return Table("Edges, as given" if given else "Edges of the tree of highest likelihood", ["class", "edges"], rows)


def _drawn(model: Any, about: dict[str, Any]) -> Figure:
    display = TreeDisplay.from_estimator(model)
    n, columns = len(display.edges), min(len(display.edges), BESIDE)
    rows = -(-n // columns)
    longest = max(len(name) for name in display.names)
    canvas = figure(columns * min(max(2.6, 1.2 + 0.1 * longest), 4.5), (0.2 * len(display.names) + 0.9) * rows)
    display.plot(canvas.subplots())
    lines = [f"{'all classes' if c is None else class_name(c)}: {edges}" for c, edges in edges_in_words(about)]
    if "nets" in about:
        return Figure(canvas, "Edges of the Bayes nets. " + "; ".join(lines), "Edges from parent to child.")
    sure = about["objective"] == "likelihood"
    caption = "The tree of highest likelihood." if sure else "The most probable tree; wide lines are edges that most "
    caption += "" if sure else "trees of the class have."
    return Figure(canvas, "Trees. " + "; ".join(lines), caption)


def _weights(model: Any) -> Figure:
    display = EdgeWeightsDisplay.from_estimator(model)
    n, columns = len(display.weights), min(len(display.weights), BESIDE)
    canvas = figure(3.3 * columns + 0.9, 3.4 * -(-n // columns))
    display.plot(canvas.subplots())
    below = "the mutual information" if display.kind == "information" else "the probability that a tree has the edge"
    told = []
    for title, weights in zip(display.titles, display.weights):
        u, v = np.unravel_index(np.triu(weights, 1).argmax(), weights.shape)
        told.append(f"{title}: {display.names[u]} and {display.names[v]}")
    caption = (
        f"Weights of the edges. Above the diagonal, log W: what discrimination makes of an edge; below, {below}. Where "
        "the upper half is dark and the lower pale, an edge tells the classes apart and says little of the rows."
    )
    return Figure(canvas, "Edge weights of each class. Heaviest: " + "; ".join(told) + ".", caption)
